/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies to our request, by hand: those that ask for what there is not are answered by a Terminate
 * message that names it, those that are none by a reset; the queue pair is as it was. */
#include "lib/rnic/transport.h"
#include "tests/unit/iwarp/pair.h"

enum { PORT = 9 };

/* Side 1 has asked; side 0 listens without a link, and has what was asked. */
struct raw {
	struct pair p;
	uint32_t conn; /* of side 0 */
	uint8_t heard[256];
	size_t n_heard;
};

static void raw_poll(struct raw *r)
{
	struct stream_completion done[8];
	const unsigned n = stream_poll(r->p.net->s[0], done, 8);

	for (unsigned i = 0; i < n; i++) {
		if (done[i].event == STREAM_ACCEPTED)
			r->conn = done[i].conn;
		if (done[i].event == STREAM_ARRIVED)
			r->n_heard = (size_t)done[i].result;
	}
}

static void raw_open(struct raw *r)
{
	const struct mpa_offer depths = {.ird = 4, .ord = 4};
	struct mpa_start start;
	struct pair *p = &r->p;

	memset(r, 0, sizeof(*r));
	pair_open(p, &(struct pair_options){.raw = true});
	end_qp(&p->end[1], END_ALL);
	assert_int_equal(stream_listen(p->net->s[0], PORT, 1), 0);
	assert_int_equal(iwarp_connect(p->link[1], p->net->now, p->net->mac[0], &p->net->ip[0],
				 PORT, p->end[1].qp, &depths, 7, &p->conn[1]),
		0);
	pair_run(p, PAIR_SECOND / 100);
	raw_poll(r);
	assert_int_equal(stream_recv(p->net->s[0], r->conn, r->heard, sizeof(r->heard), 2), 0);
	pair_run(p, PAIR_SECOND / 100);
	raw_poll(r);
	assert_int_equal(mpa_start_parse(r->heard, r->n_heard, false, &start), 0);
	assert_int_equal(r->n_heard, MPA_START_LEN + MPA_ENHANCED_LEN);
}

static void raw_send(struct raw *r, const void *bytes, size_t len)
{
	assert_int_equal(stream_send(r->p.net->s[0], r->conn, bytes, len, 3), 0);
	pair_run(&r->p, PAIR_SECOND / 100);
	raw_poll(r);
}

static void test_replies(void **state)
{
	static const struct {
		uint8_t rtr;
		uint16_t ird, ord, reads; /* reads: own ones outstanding, if established */
		bool markers;
		enum iwarp_fault fault;
		enum iwarp_link_counter counter;
	} cases[] = {
		{MPA_RTR_WRITE, 4, 4, 4, false, IWARP_OK, IWARP_LINK_ESTABLISHED},
		{MPA_RTR_WRITE, 0, 0, 0, false, IWARP_OK, IWARP_LINK_ESTABLISHED},
		/* Depths that it does not want to agree upon here: one says it of both, and a limit
		 * is kept. */
		{MPA_RTR_WRITE, MPA_MAX_DEPTH, MPA_MAX_DEPTH, 4, false, IWARP_OK,
			IWARP_LINK_ESTABLISHED},
		{MPA_RTR_WRITE, MPA_MAX_DEPTH, 5, 4, false, IWARP_OK, IWARP_LINK_ESTABLISHED},
		{MPA_RTR_WRITE, 2, MPA_MAX_DEPTH, 2, false, IWARP_OK, IWARP_LINK_ESTABLISHED},
		{MPA_RTR_WRITE, 2, 4, 2, false, IWARP_OK, IWARP_LINK_ESTABLISHED},
		{MPA_RTR_WRITE, 4, 5, 0, false, IWARP_FAULT_IRD, IWARP_LINK_LOW_IRD},
		{MPA_RTR_SEND | MPA_RTR_READ, 4, 4, 0, false, IWARP_FAULT_RTR, IWARP_LINK_NO_RTR},
		{MPA_RTR_WRITE, 4, 4, 0, true, IWARP_FAULT_MARKER, IWARP_LINK_MARKERS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct mpa_start start = {.reply = true,
			.crc = true,
			.markers = cases[i].markers,
			.revision = 2,
			.enhanced = true,
			.peer_to_peer = true,
			.rtr = cases[i].rtr,
			.ird = cases[i].ird,
			.ord = cases[i].ord};
		uint8_t reply[MPA_MAX_START];
		struct ibv_qp_init_attr init;
		struct ibv_qp_attr attr;
		struct rdmap_terminate t;
		struct ddp_segment s;
		const uint8_t *ulpdu;
		struct raw r;
		size_t len, at;

		raw_open(&r);
		at = r.n_heard;
		raw_send(&r, reply, (size_t)mpa_start_build(reply, sizeof(reply), &start));
		assert_int_equal(iwarp_link_count(r.p.link[1], cases[i].counter), 1);
		assert_int_equal(mpa_fpdu_peek(r.heard + at, r.n_heard - at), r.n_heard - at);
		assert_true(mpa_fpdu_open(r.heard + at, &ulpdu, &len));
		assert_int_equal(ddp_parse(ulpdu, len, &s), IWARP_OK);
		if (cases[i].fault == IWARP_OK) {
			assert_int_equal(s.opcode, RDMAP_WRITE); /* ready to receive */
			pair_event(&r.p, 1, IWARP_ESTABLISHED);
			rnic_qp_query(r.p.end[1].qp, &attr, &init);
			assert_int_equal(attr.max_rd_atomic, cases[i].reads);
			pair_close(&r.p);
			continue;
		}
		assert_int_equal(s.opcode, RDMAP_TERMINATE);
		assert_int_equal(
			rdmap_terminate_parse(ulpdu + s.header_len, len - s.header_len, &t), 0);
		assert_int_equal(t.fault, cases[i].fault);
		assert_int_equal(stream_shutdown(r.p.net->s[0], r.conn), 0);
		pair_run(&r.p, PAIR_SECOND);
		assert_int_equal(pair_event(&r.p, 1, IWARP_CLOSED).result, -EPROTO);
		assert_int_equal(stream_conns(r.p.net->s[1]), 0);
		assert_int_equal(r.p.end[1].n_event, 0);
		assert_false(iwarp_failed(r.p.end[1].qp));
		pair_close(&r.p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
