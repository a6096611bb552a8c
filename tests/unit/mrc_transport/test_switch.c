/* SPDX-License-Identifier: BSD-3-Clause */
/* MRC through a switch that is the real one, graph and queues, and slower than the sender: what it
 * trims comes back as a NACK that says so, what it marks as a mark in a SACK, and the data is
 * right. One process, virtual time. */
#include "tests/unit/mrc_transport/fabric.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/dataplane/harness.h"

enum { THERE = 1, L3_4 = 20, L3_6 = 40, UDP = 8, MESSAGES = 400, MOST_TURNS = 1000000 };

/* Of both ports; the sender takes 50 Gb/s for its link's rate. The rings are the wire. */
#define PORT(gbps, more)                                                         \
	"{'rxd':1024,'txd':1024,'queue':{'rate_mbps':" #gbps "000,'burst_kb':4," \
	"'control_kb':1024,'hold_ms':3600000," more "}}"

struct middle {
	struct sw *sw;
	uint64_t clock; /* of the switch, when the fabric's was 0 */
	unsigned nacks[2],
		marks; /* of end 1: trimmed on the last hop, or before; EVs to be passed over */
};

static struct middle m;

/* What a word of end 1 says. */
static void hear(const uint8_t *frame, size_t len)
{
	const size_t bth = ETH_HDR_LEN + (frame[ETH_HDR_LEN] >> 4 == 4 ? L3_4 : L3_6) + UDP;
	struct mrc_pkt pkt;

	if (mrc_codec_ocp_r1.decode(frame + bth, len - bth, false, &pkt) != MRC_OK)
		return;
	if (pkt.kind == MRC_KIND_NACK)
		m.nacks[pkt.nack.reason == MRC_NACK_TRIMMED_LASTHOP]++;
	m.marks += pkt.kind == MRC_KIND_SACK && pkt.sack.mark == MRC_SKIP_ONCE;
}

/* The switch does what it can do by now. */
static void turn(struct fabric *f)
{
	struct frame out;

	do
		sw_turn(m.sw, 0, m.clock + f->net.now);
	while (m.sw->worker[0]->work > 0);
	for (int to = 0; to < 2; to++)
		while (h_take(m.sw, (unsigned)to, &out))
			net_put_at(&f->net, to, 0, out.b, out.len, FABRIC_HOP);
}

static bool into_switch(struct fabric *f, int from, uint8_t *frame, size_t *len)
{
	if (from == THERE)
		hear(frame, *len);
	memcpy(frame, h_port_mac(m.sw, (unsigned)from), 6);
	h_inject(m.sw, (unsigned)from, frame, (unsigned)*len);
	turn(f);
	return false;
}

/* The ends have the MAC addresses of the harness's hosts 0 and 1. */
static void add_host(struct fabric *f, int i)
{
	struct table_error why = {0};

	for (unsigned gid = 1; gid <= 2; gid++) {
		struct table_entry e = {0};

		assert_int_equal(0, rnic_gid(f->net.end[i].rnic, 0, gid, &e.key[0].ip));
		e.param[0].u = m.sw->ports[i].id;
		rnic_mac(f->net.end[i].rnic, 0, e.param[1].mac);
		if (h_write(m.sw, TABLE_INSERT, FWD_NEIGH, &e, &why) != 0)
			fail_msg("%s", why.msg);
	}
}

static struct fabric *start(enum rnic_mrc_format format, const char *port)
{
	const struct fabric_options o = {.format = format};
	struct fabric *f = fabric_make(&o);

	m = (struct middle){.sw = h_start(2, NULL, port)};
	m.clock = port_now_ns();
	for (int i = 0; i < 2; i++)
		add_host(f, i);
	f->hook = into_switch;
	f->fixed = FABRIC_LONGEST;
	return f;
}

/* All is written, and checked as it completes; then what is still under way arrives. */
static void write_all(struct fabric *f)
{
	unsigned turns = 0;

	fabric_messages(f, MESSAGES, 0);
	while (!fabric_run(f, FABRIC_HOP / 8)) {
		turn(f);
		assert_true(turns++ < MOST_TURNS);
	}
	for (unsigned i = 0; i < 100; i++) {
		fabric_wait(f, FABRIC_HOP / 8);
		turn(f);
	}
	assert_int_equal(MESSAGES, f->stream[0].done);
	assert_int_equal(f->stream[0].wimms, f->stream[0].next_imm);
	h_check_balance(m.sw);
}

static struct egress_count data_queue(unsigned port)
{
	struct sw_queue q;

	assert_int_equal(0, sw_queue_get(m.sw, port, EGRESS_Q_DATA, &q));
	assert_int_equal(0, q.packets);
	return q.count;
}

static void end(struct fabric *f)
{
	h_stop_whole(m.sw);
	fabric_free(f);
}

static const enum rnic_mrc_format formats[] = {RNIC_MRC_UDP, RNIC_MRC_STEV};

/* Every packet that the switch has cut is asked for by its PSN and its EV, and nobody waits for a
 * timeout. The reason says where it was. */
static void trimmed(void **state)
{
	static const char *const port[2] = {PORT(10, "'data_kb':48,'trim_bytes':142"),
		PORT(10, "'data_kb':48,'trim_bytes':142,'last_hop':true")};

	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		const unsigned last_hop = k % 2;
		struct fabric *f = start(formats[k / 2], port[last_hop]);
		struct egress_count q;

		write_all(f);
		q = data_queue(1);
		printf("# %lu packets trimmed, %u NACKs, %lu sent again, %lu taken as lost\n",
			(unsigned long)q.trimmed, m.nacks[last_hop],
			(unsigned long)fabric_count(f, 0, "retransmits"),
			(unsigned long)fabric_count(f, 0, "lost"));
		assert_true(q.trimmed > 0);
		assert_int_equal(0, q.full);
		assert_int_equal(q.trimmed, fabric_count(f, 1, "came_trimmed"));
		assert_int_equal(q.trimmed, m.nacks[last_hop]);
		assert_int_equal(0, m.nacks[!last_hop]);
		assert_int_equal(q.trimmed, fabric_count(f, 0, "trimmed"));
		assert_int_equal(q.trimmed, fabric_count(f, 0, "retransmits"));
		assert_int_equal(0, fabric_count(f, 0, "lost"));
		assert_int_equal(0, rnic_count(f->net.end[0].rnic, RNIC_C_TIMEOUTS));
		end(f);
	}
}

/* What waits long is marked, the mark comes back with the path's EV, and the sender slows down:
 * nothing is lost though the queue would never take what it began with. */
static void marked(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		struct fabric *f = start(
			formats[k], PORT(40, "'data_kb':256,'mark_min_kb':8,'mark_max_kb':32"));
		struct egress_count q;

		write_all(f);
		q = data_queue(1);
		printf("# %lu packets marked, %u SACKs with a mark, %lu KB waited at most\n",
			(unsigned long)q.marked, m.marks, (unsigned long)q.peak_bytes >> 10);
		assert_true(q.marked > 0);
		assert_true(m.marks > 0);
		assert_true(m.marks <= q.marked);
		assert_int_equal(0, q.full + q.trimmed);
		assert_int_equal(0, fabric_count(f, 0, "retransmits"));
		end(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(trimmed), cmocka_unit_test(marked)};
	const int failed = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed;
}
