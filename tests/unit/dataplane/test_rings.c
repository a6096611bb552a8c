/* SPDX-License-Identifier: BSD-3-Clause */
/* NetReduce rings in the whole graph: registered connections get sums, everything else is routed.
 */
#include "tests/unit/dataplane/harness.h"

#include <errno.h>
#include <string.h>

enum { SMALL = 256, LARGE = 1024, M = 2, HOSTS = 3, QPN = 0x100, REPLY = 0x200 };

static struct sw *sw;
static uint16_t mtu; /* of rings: packets that are copied, or sent from where the sums are */

/* ---- specs and packets ---- */

struct request {
	struct nr_spec spec;
	struct nr_in_spec in[HOSTS];
	uint16_t rank[HOSTS];
};

static struct nr_spec *request(struct request *q, const char *name)
{
	*q = (struct request){
		.spec = {.id = 7, .mtu = mtu, .m = M, .w = 2, .n_ranks = HOSTS, .n_in = HOSTS}};
	strcpy(q->spec.name, name);
	q->spec.in = q->in;
	for (unsigned r = 0; r < HOSTS; r++) {
		q->rank[r] = (uint16_t)r;
		q->in[r] = (struct nr_in_spec){
			.host = true,
			.key = {h_host4(r), h_host4((r + 1) % HOSTS), QPN + r},
			.reply_qpn = REPLY + r,
			.n_ranks = 1,
			.ranks = &q->rank[r],
		};
	}
	return &q->spec;
}

/* Packet o of a message of rank r: every element is value. */
static unsigned packet(uint8_t *out, unsigned r, uint32_t msg, unsigned o, int32_t value)
{
	static const uint8_t opcode[M] = {ROCE_WRITE_FIRST, ROCE_WRITE_LAST_IMM};
	const struct ina_hdr ina = {
		.ring = 7, .rank = (uint16_t)r, .msg = msg, .packets = M, .dtype = REDUCE_INT32};
	const struct wire_hdr hdr = {.opcode = opcode[o],
		.dqpn = QPN + r,
		.psn = 100 * r + msg * M + o,
		.va = 0x1000 * r,
		.rkey = r,
		.imm = msg};
	struct wire_flow flow = {
		.src = h_host4(r), .dst = h_host4((r + 1) % HOSTS), .ttl = 64, .sport = 0xc000};
	uint8_t payload[LARGE];

	h_host_mac(r, flow.smac);
	memcpy(flow.dmac, h_port_mac(sw, r), 6);
	for (unsigned i = 0; i < mtu / 4; i++)
		memcpy(payload + 4 * i, &value, 4);
	if (o == 0)
		ina_encode(&ina, payload);
	return (unsigned)wire_build_frame(out, 2048, &flow, &hdr, payload, mtu);
}

static void expect_result(unsigned r, unsigned o, int32_t value)
{
	const unsigned to = (r + 1) % HOSTS, skip = o == 0 ? INA_LEN : 0;
	struct wire_pkt pkt;
	struct frame f;
	uint8_t mac[6];
	int32_t got;

	assert_true(h_take(sw, to, &f));
	assert_int_equal(f.segs, mtu == LARGE ? 3 : 1);
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_true(wire_icrc_ok(f.b, &pkt));
	h_host_mac(to, mac);
	assert_memory_equal(f.b, mac, 6);
	assert_int_equal(pkt.ttl, 63);
	assert_int_equal(pkt.dqpn, QPN + r);
	assert_int_equal(pkt.psn, 100 * r + o);
	assert_int_equal(pkt.rkey, o == 0 ? r : 0);
	for (unsigned i = skip; i < mtu; i += 4) {
		memcpy(&got, f.b + pkt.pay_off + i, 4);
		assert_int_equal(got, value);
	}
}

static int setup(void **state)
{
	(void)state;
	sw = h_start(HOSTS, "{'slot_rest_ms': 0}", "{'mtu': 1500}");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	h_check_balance(sw);
	h_stop(sw);
	return 0;
}

static unsigned create(const char *name)
{
	char err[SW_ERR_LEN];
	struct request q;
	unsigned ring;

	if (sw_ring_create(sw, request(&q, name), true, &ring, err))
		fail_msg("%s", err);
	return ring;
}

/* ---- tests ---- */

static void sums(void **state)
{
	unsigned ring = create("r");
	char err[SW_ERR_LEN];
	struct frame f;
	uint8_t b[2048];

	(void)state;
	for (unsigned o = 0; o < M; o++) {
		for (unsigned r = 0; r < HOSTS; r++)
			h_inject(sw, r, b, packet(b, r, 0, o, (int32_t)(10 + r)));
		h_run(sw);
		for (unsigned r = 0; r < HOSTS; r++)
			expect_result(r, o, 33);
	}
	assert_int_equal(h_drop(sw, "nr_consumed"), 2 * (HOSTS - 1));
	assert_int_equal(h_drop(sw, "nr_done"), 2);
	/* A duplicate is answered on its own connection only. */
	h_exchange(sw, 1, b, packet(b, 1, 0, 0, 11), 2, &f);
	assert_int_equal(sw_ring_get(sw, ring)->count[NR_C_DUP_ANSWERED], 1);
	h_check_balance(sw);
	/* A bad ICRC never gets in. */
	unsigned len = packet(b, 0, 1, 0, 5);
	b[len - 6] ^= 1;
	h_expect_drop(sw, 0, b, len, "icrc_bad");
	assert_int_equal(sw_ring_delete(sw, ring, err), 0);
}

/* Other flows between the same hosts, acknowledgements, and anything once the ring is gone. */
static void others(void **state)
{
	unsigned ring = create("r");
	char err[SW_ERR_LEN];
	struct wire_hdr ack = {
		.opcode = ROCE_ACK, .dqpn = REPLY, .psn = 1, .syndrome = ROCE_AETH_NO_CREDITS};
	struct wire_flow flow = {.src = h_host4(1), .dst = h_host4(0), .ttl = 9, .sport = 1};
	struct wire_pkt pkt;
	struct frame f;
	uint8_t b[2048];
	unsigned len;

	(void)state;
	len = packet(b, 0, 0, 0, 1);
	b[ETH_HDR_LEN + 20 + 8 + 7] ^= 1; /* another QPN */
	h_exchange(sw, 0, b, len, 1, &f);
	assert_memory_equal(f.b + ETH_HDR_LEN + 28, b + ETH_HDR_LEN + 28, len - ETH_HDR_LEN - 28);
	memcpy(flow.dmac, h_port_mac(sw, 1), 6);
	len = (unsigned)wire_build_frame(b, sizeof(b), &flow, &ack, NULL, 0);
	h_exchange(sw, 1, b, len, 0, &f);
	assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
	assert_int_equal(pkt.opcode, ROCE_ACK);
	assert_int_equal(nr_in_at(sw_ring_get(sw, ring), 0)->acked, 2);
	/* RoCE to the switch itself still finds its way. */
	flow.dst = h_ip("10.0.0.1");
	len = (unsigned)wire_build_frame(b, sizeof(b), &flow, &ack, NULL, 0);
	h_expect_drop(sw, 1, b, len, "rnic_no_qp");
	/* Not addressed to the switch's MAC: not ours to look at. */
	len = packet(b, 0, 0, 0, 1);
	b[5] ^= 1;
	h_expect_drop(sw, 0, b, len, "l2_not_ours");
	assert_int_equal(sw_ring_delete(sw, ring, err), 0);
	h_exchange(sw, 0, b, packet(b, 0, 0, 0, 1), 1, &f);
}

/* A ring that has failed keeps its connections, also when the table of them is made anew: nothing
 * passes, hosts are told. Deleted, it can be made again. */
static void failed(void **state)
{
	struct request q, other;
	struct nr_spec *s = request(&q, "r");
	unsigned ring, second;
	char err[SW_ERR_LEN];
	struct wire_pkt pkt;
	struct frame f;
	uint8_t b[2048];

	(void)state;
	for (unsigned r = 0; r < HOSTS; r++) {
		q.in[r].psn_known = true;
		q.in[r].psn = 100 * r;
	}
	assert_int_equal(sw_ring_create(sw, s, true, &ring, err), 0);
	h_inject(sw, 0, b, packet(b, 0, 0, 0, 1));
	h_run(sw);
	assert_int_equal(sw_ring_fail(sw, ring, err), 0);
	request(&other, "other");
	for (unsigned r = 0; r < HOSTS; r++) {
		other.in[r].key.qpn += 0x1000;
		other.in[r].reply_qpn += 0x1000;
	}
	assert_int_equal(sw_ring_create(sw, &other.spec, true, &second, err), 0);
	for (unsigned r = 0; r < HOSTS; r++) {
		h_exchange(sw, r, b, packet(b, r, 0, 0, 1), r, &f);
		assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
		assert_true(wire_icrc_ok(f.b, &pkt));
		assert_int_equal(pkt.syndrome, ROCE_AETH_NAK | ROCE_NAK_REMOTE_OPERATION);
		assert_int_equal(pkt.dqpn, REPLY + r);
		assert_int_equal(pkt.psn, 100 * r);
	}
	assert_int_equal(h_drop(sw, "nr_failed"), HOSTS);
	sw_tick(sw, sw_now(sw));
	assert_int_equal(sw_ring_activate(sw, ring, (uint32_t[NR_MAX_IN]){0}, 0, err), -EBUSY);
	assert_string_equal(err, "the ring is failed");
	request(&other, "again");
	assert_int_equal(sw_ring_create(sw, &other.spec, true, &second, err), -EEXIST);
	assert_int_equal(sw_ring_delete(sw, ring, err), 0);
	create("r");
	for (unsigned r = 0; r < HOSTS; r++)
		h_inject(sw, r, b, packet(b, r, 0, 0, 11));
	h_run(sw);
	for (unsigned r = 0; r < HOSTS; r++)
		expect_result(r, 0, 33);
}

/* Members' packets, but from another host's port. */
static void strict_port(void **state)
{
	const struct wire_hdr ack = {
		.opcode = ROCE_ACK, .dqpn = REPLY, .psn = 1, .syndrome = ROCE_AETH_NO_CREDITS};
	struct wire_flow flow = {.src = h_host4(1), .dst = h_host4(0), .ttl = 9, .sport = 1};
	struct request q;
	struct nr_spec *s = request(&q, "r");
	char err[SW_ERR_LEN];
	struct frame f;
	uint8_t b[2048];
	unsigned ring, len;

	(void)state;
	s->flags = NR_F_STRICT_PORT;
	assert_int_equal(sw_ring_create(sw, s, true, &ring, err), 0);
	len = packet(b, 0, 0, 0, 1);
	memcpy(b, h_port_mac(sw, 2), 6);
	h_expect_drop(sw, 2, b, len, "nr_port");
	assert_int_equal(sw_ring_get(sw, ring)->count[NR_C_CONSUMED], 0);
	memcpy(flow.dmac, h_port_mac(sw, 2), 6);
	len = (unsigned)wire_build_frame(b, sizeof(b), &flow, &ack, NULL, 0);
	h_expect_drop(sw, 2, b, len, "nr_port");
	assert_false(nr_in_at(sw_ring_get(sw, ring), 0)->acked_known);
	/* From their own. */
	memcpy(b, h_port_mac(sw, 1), 6);
	h_exchange(sw, 1, b, len, 0, &f);
	for (unsigned r = 0; r < HOSTS; r++)
		h_inject(sw, r, b, packet(b, r, 0, 0, (int32_t)(10 + r)));
	h_run(sw);
	for (unsigned r = 0; r < HOSTS; r++)
		expect_result(r, 0, 33);
	assert_int_equal(sw_ring_delete(sw, ring, err), 0);
}

/* A rank is in its host's VLAN, or in none; each sum leaves in that of the host it goes to. */
static void vlans(void **state)
{
	enum { VLAN = 7, OTHER = 99 };
	struct table_entry entry = {.key[0].ip = h_host4(1)};
	struct table_error e = {0};
	struct wire_pkt pkt;
	struct frame f;
	uint8_t b[2048];
	unsigned ring, len;

	(void)state;
	entry.param[0].u = sw->ports[1].id;
	h_host_mac(1, entry.param[1].mac);
	entry.param[2].u = VLAN;
	assert_int_equal(h_write(sw, TABLE_MODIFY, FWD_NEIGH, &entry, &e), 0);
	ring = create("r");
	for (unsigned r = 0; r < HOSTS; r++) {
		len = h_tag(b, packet(b, r, 0, 0, (int32_t)(10 + r)), OTHER);
		h_expect_drop(sw, r, b, len, "l2_vlan");
	}
	assert_int_equal(sw_ring_get(sw, ring)->count[NR_C_CONSUMED], 0);
	for (unsigned r = 0; r < HOSTS; r++) {
		len = packet(b, r, 0, 0, (int32_t)(10 + r));
		h_inject(sw, r, b, r == 1 ? h_tag(b, len, VLAN) : len);
	}
	h_run(sw);
	for (unsigned r = 0; r < HOSTS; r++) {
		assert_true(h_take(sw, r, &f));
		assert_int_equal(wire_parse(f.b, f.len, &pkt), WIRE_OK);
		assert_int_equal(pkt.vlan, r == 1 ? VLAN : 0);
		assert_int_equal(pkt.l3_off, ETH_HDR_LEN + (r == 1 ? VLAN_HDR_LEN : 0));
		assert_true(wire_icrc_ok(f.b, &pkt));
	}
}

static void refusals(void **state)
{
	struct request q;
	char err[SW_ERR_LEN];
	uint64_t size, used, before;
	struct nr_spec *s;
	unsigned ring, first;
	struct table_entry entry = {0};
	struct table_error e = {0};

	(void)state;
	sw_arena_usage(sw, &size, &before);
#define REFUSED(change, code, text)                                                 \
	do {                                                                        \
		s = request(&q, "x");                                               \
		change;                                                             \
		assert_int_equal(sw_ring_create(sw, s, true, &ring, err), -(code)); \
		if (strstr(err, text) == NULL)                                      \
			fail_msg("\"%s\" does not say \"%s\"", err, text);          \
	} while (0)
	REFUSED(s->mtu = 300, EINVAL, "mtu: 300");
	REFUSED(s->m = 0, EINVAL, "M: 0");
	REFUSED(s->w = 1025, EINVAL, "W: 1025");
	REFUSED((s->m = 1024, s->w = 1024), EINVAL, "M, W");
	REFUSED(s->n_ranks = 4, EINVAL, "1 of 4 ranks are missing");
	REFUSED(q.rank[2] = 1, EINVAL, "1 is named twice");
	REFUSED(q.in[1].key.qpn = 1, EINVAL, "rank 1: a QPN");
	REFUSED(q.in[1].key.dst = h_ip("192.0.2.1"), ENOENT, "flows.dst: 192.0.2.1");
	REFUSED(q.in[1].key.dst = h_host6(1), EINVAL, "one family");
	REFUSED(q.in[1].key = q.in[0].key, EINVAL, "ranks 0 and 1 have the same connection");
	REFUSED(s->has_parent = true, EINVAL, "parent: ip and local_ip");
	REFUSED((s->mtu = 1024, s->m = 64, s->w = 64), ENOSPC, "arena_kb");
	REFUSED(s->mtu = 2048, EINVAL, "more than the MTU");
	sw_arena_usage(sw, &size, &used);
	assert_int_equal(used, before);
	first = create("r");
	REFUSED((void)0, EEXIST, "is registered already, by ring \"r\"");
	REFUSED(strcpy(s->name, "r"), EEXIST, "a ring \"r\" already");
	assert_int_equal(sw_ring_delete(sw, first, err), 0);
	assert_int_equal(sw_ring_delete(sw, first, err), -ENOENT);
	sw_arena_usage(sw, &size, &used);
	assert_int_equal(used, before);
	assert_null(sw->clt);
	assert_int_equal(create("r"), first);

	/* The tables keep the ways that it needs. */
	entry.key[0].ip = h_host4(1);
	assert_int_equal(h_write(sw, TABLE_DELETE, FWD_NEIGH, &entry, &e), -EBUSY);
	assert_string_equal(e.msg, "neigh 10.0.0.11: ring \"r\" sends to it: delete that first");
	assert_int_equal(sw_ring_delete(sw, first, err), 0);
	assert_int_equal(h_write(sw, TABLE_DELETE, FWD_NEIGH, &entry, &e), 0);
}

/* A leaf and its parent know one another's QPNs after one another. */
static void activation(void **state)
{
	uint32_t qpn[NR_MAX_IN] = {0};
	char err[SW_ERR_LEN];
	struct request q;
	struct nr_spec *s = request(&q, "leaf");
	struct frame f;
	uint8_t b[2048];
	unsigned ring;

	(void)state;
	s->n_in = 2;
	s->has_parent = true;
	s->parent_ip = h_host4(2);
	assert_int_equal(sw_ring_create(sw, s, true, &ring, err), -EINVAL);
	assert_non_null(strstr(err, "parent.qpn: not known yet"));
	assert_int_equal(sw_ring_create(sw, s, false, &ring, err), 0);
	h_exchange(sw, 0, b, packet(b, 0, 0, 0, 1), 1, &f); /* not active: routed */
	assert_int_equal(sw_ring_activate(sw, ring, qpn, 0x5000, err), 0);
	assert_int_equal(sw_ring_activate(sw, ring, qpn, 0x5000, err), -EBUSY);
	h_inject(sw, 0, b, packet(b, 0, 0, 0, 1));
	h_exchange(sw, 1, b, packet(b, 1, 0, 0, 2), 2, &f); /* the sum, to the parent */
	assert_int_equal(sw_ring_delete(sw, ring, err), 0);
}

/* The sums of a traced packet say what happened to it. */
static void trace(void **state)
{
	struct sw_trace_rec rec[16];
	char err[SW_ERR_LEN];
	uint8_t b[2048];
	unsigned n, found = 0;

	(void)state;
	create("r");
	assert_int_equal(sw_trace_start(sw, 0, 1, err), 0);
	h_inject(sw, 0, b, packet(b, 0, 0, 0, 1));
	h_run(sw);
	n = sw_trace_read(sw, 0, rec, 16);
	for (unsigned i = 0; i < n; i++)
		found += strcmp(rec[i].text, "ring r, input 0: nr_consumed") == 0;
	assert_int_equal(found, 1);
}

/* What a port has not sent yet lies in the ring's memory, which waits for it. */
static void by_reference(void **state)
{
	unsigned ring = create("r");
	char err[SW_ERR_LEN];
	uint64_t size, taken;
	uint8_t b[2048];

	(void)state;
	for (unsigned r = 0; r < HOSTS; r++)
		h_inject(sw, r, b, packet(b, r, 0, 0, (int32_t)(10 + r)));
	h_run(sw);
	assert_int_equal(sw_ring_delete(sw, ring, err), 0);
	sw_arena_usage(sw, &size, &taken);
	assert_true((taken > 0) == (mtu == LARGE));
	assert_int_equal(h_value(sw, "arena_draining_bytes"), taken);
	/* The account of what is read is the place's. */
	assert_true((create("next") != ring) == (mtu == LARGE));
	for (unsigned r = 0; r < HOSTS; r++)
		expect_result(r, 0, 33);
	sw_reclaim(sw);
	assert_int_equal(sw_ring_delete(sw, (unsigned)sw_ring_find(sw, "next"), err), 0);
	sw_arena_usage(sw, &size, &taken);
	assert_int_equal(taken, 0);
	assert_int_equal(h_value(sw, "arena_draining_bytes"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sums, setup, teardown),
		cmocka_unit_test_setup_teardown(by_reference, setup, teardown),
		cmocka_unit_test_setup_teardown(others, setup, teardown),
		cmocka_unit_test_setup_teardown(failed, setup, teardown),
		cmocka_unit_test_setup_teardown(strict_port, setup, teardown),
		cmocka_unit_test_setup_teardown(vlans, setup, teardown),
		cmocka_unit_test_setup_teardown(refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(activation, setup, teardown),
		cmocka_unit_test_setup_teardown(trace, setup, teardown),
	};

	mtu = SMALL;
	if (cmocka_run_group_tests_name("copied", tests, NULL, NULL) != 0)
		return 1;
	mtu = LARGE;
	return cmocka_run_group_tests_name("by reference", tests, NULL, NULL);
}
