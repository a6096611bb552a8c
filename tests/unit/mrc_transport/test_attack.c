/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets that lie: each is counted under its reason, and has no effect. After all of them the
 * connection carries what it should, and nothing was sent twice or taken for lost. */
#include "tests/unit/mrc_transport/fabric.h"

#include <string.h>

#include "lib/wire/bytes.h"
#include "lib/wire/outer.h"
#include "lib/wire/roce.h"

enum { CONTROL = 46, P = 100 };

static const struct fabric_options plain = {.format = RNIC_MRC_STEV, .psn = {P, P}};

static uint32_t qpn_of(const struct fabric *f, int i)
{
	return rnic_qp_num(f->net.end[i].qp);
}

static struct mrc_pkt sack_of(const struct fabric *f, uint32_t cack, uint64_t bitmap)
{
	return (struct mrc_pkt){.kind = MRC_KIND_SACK,
		.sack = {.dqpn = qpn_of(f, 0),
			.trigger_psn = cack,
			.cack_psn = cack,
			.base_psn = cack + 1,
			.bitmap = bitmap,
			.entropy = f->paths.path[0].ev}};
}

static struct mrc_pkt data_of(const struct fabric *f, uint32_t psn)
{
	return (struct mrc_pkt){.kind = MRC_KIND_DATA,
		.data = {.place = MRC_ONLY,
			.dqpn = qpn_of(f, 0),
			.psn = psn,
			.va = (uintptr_t)f->net.end[0].buf,
			.rkey = rnic_mr_rkey(f->net.end[0].mr),
			.dmalen = 8,
			.pay_len = 8}};
}

static void unharmed(struct fabric *f)
{
	fabric_messages(f, 100, 100);
	assert_true(fabric_run(f, SEC));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(0, fabric_count(f, i, "lost"));
		assert_in_range(fabric_count(f, i, "retransmits"), 0, 2);
	}
	assert_int_equal(0, f->ev_changes);
	fabric_free(f);
}

/* Every kind of packet from an address that is not the peer's. */
static void strangers(void **state)
{
	struct fabric *f = fabric_make(&plain);
	const struct rnic *rnic = f->net.end[0].rnic;
	struct mrc_pkt pkt[] = {
		sack_of(f, P, 0),
		{.kind = MRC_KIND_NACK,
			.nack = {.dqpn = qpn_of(f, 0), .psn = P, .reason = MRC_NACK_UNEXP_EVENT}},
		{.kind = MRC_KIND_ACK,
			.ack = {.dqpn = qpn_of(f, 0), .psn = P, .syndrome = MRC_SYNDROME_ACK}},
		{.kind = MRC_KIND_PROBE, .probe = {.dqpn = qpn_of(f, 0), .id = 7}},
		data_of(f, P),
		{.kind = MRC_KIND_ENDPOINT_REQUEST,
			.endpoint = {.id = 9, .op = MRC_PORT_STATUS, .port_mask = 0}},
	};
	struct wire_ip stranger;
	uint8_t first[8];

	(void)state;
	memcpy(first, f->net.end[0].buf, 8);
	assert_int_equal(0, wire_ip_parse("fd77::77", &stranger));
	for (unsigned i = 0; i < sizeof(pkt) / sizeof(pkt[0]); i++) {
		assert_int_equal(RNIC_DROP_SOURCE,
			fabric_inject(f, 1, &pkt[i], "AAAAAAAA", 0, CONTROL, &stranger));
		assert_int_equal(i + 1, rnic_drop_count(rnic, RNIC_DROP_SOURCE));
	}
	assert_int_equal(1, fabric_dev_count(f, 0, "strange"));
	assert_memory_equal(first, f->net.end[0].buf, 8);
	unharmed(f);
}

/* Words of packets that were never sent, and such as cannot be. */
static void words_that_lie(void **state)
{
	struct fabric *f = fabric_make(&plain);
	const struct rnic *rnic = f->net.end[0].rnic;
	const uint32_t dqpn = qpn_of(f, 0);
	struct mrc_pkt pkt[] = {
		sack_of(f, P, 0),                /* nothing has been sent yet */
		sack_of(f, P + 5000, 0),         /* beyond all */
		sack_of(f, P - 1, UINT64_C(1)),  /* a bit that claims a packet */
		sack_of(f, P - 1, ~UINT64_C(0)), /* all of them */
		{.kind = MRC_KIND_NACK,
			.nack = {.dqpn = dqpn, .psn = P, .reason = MRC_NACK_TRIMMED}},
		{.kind = MRC_KIND_NACK,
			.nack = {.dqpn = dqpn, .psn = P - 1, .reason = MRC_NACK_UNEXP_EVENT}},
		{.kind = MRC_KIND_NACK, .nack = {.dqpn = dqpn, .psn = P + 9, .reason = 0x77}},
		{.kind = MRC_KIND_ACK,
			.ack = {.dqpn = dqpn, .psn = P, .syndrome = MRC_SYNDROME_ACK}},
		{.kind = MRC_KIND_ACK, .ack = {.dqpn = dqpn, .psn = P + 999, .syndrome = 0x62}},
		{.kind = MRC_KIND_ACK, .ack = {.dqpn = dqpn, .psn = P - 1, .syndrome = 0x61}},
		{.kind = MRC_KIND_SACK, /* an answer to no probe */
			.sack = {.dqpn = dqpn,
				.probe = true,
				.probe_id = 3,
				.mark = MRC_ALWAYS_SKIP,
				.cack_psn = P - 1,
				.base_psn = P,
				.entropy = f->paths.path[0].ev}},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(pkt) / sizeof(pkt[0]); i++) {
		assert_int_equal(
			RNIC_DROP_ACK_RANGE, fabric_inject(f, 1, &pkt[i], NULL, 0, CONTROL, NULL));
		assert_int_equal(i + 1, fabric_count(f, 0, "ignored"));
	}
	assert_int_equal(sizeof(pkt) / sizeof(pkt[0]), rnic_drop_count(rnic, RNIC_DROP_ACK_RANGE));
	unharmed(f);
}

/* Nothing of end 0 gets through. */
static bool swallow_data(struct fabric *f, int from, uint8_t *frame, size_t *len)
{
	(void)f;
	(void)frame;
	(void)len;
	return from != 0;
}

/* EVs that are none of ours, of packets that are on their way: nothing becomes of any path,
 * whatever mark they carry. */
static void evs_that_lie(void **state)
{
	struct fabric *f = fabric_make(&plain);
	struct mrc_pkt pkt = sack_of(f, P - 1, 0);
	const struct mrc_pkt nack = {.kind = MRC_KIND_NACK,
		.nack = {.dqpn = qpn_of(f, 0),
			.psn = P,
			.reason = MRC_NACK_TRIMMED,
			.entropy = 0xdeadbeef}};

	(void)state;
	f->hook = swallow_data;
	f->fixed = 8 * FABRIC_MTU;
	fabric_messages(f, 1, 0);
	assert_false(fabric_run(f, FABRIC_HOP));
	pkt.sack.trigger_psn = P;
	pkt.sack.entropy = 0xdeadbeef;
	for (uint8_t mark = MRC_MARK_NONE; mark <= MRC_ALWAYS_SKIP; mark++) {
		pkt.sack.mark = mark;
		assert_int_equal(0, fabric_inject(f, 1, &pkt, NULL, 0, CONTROL, NULL));
		assert_int_equal(mark + 1u, fabric_count(f, 0, "unknown_evs"));
	}
	assert_int_equal(RNIC_DROP_ACK_RANGE, fabric_inject(f, 1, &nack, NULL, 0, CONTROL, NULL));
	assert_int_equal(1, fabric_count(f, 0, "ignored"));
	assert_int_equal(0, f->ev_changes);
	assert_int_equal(0, fabric_count(f, 0, "lost"));
	assert_int_equal(0, fabric_count(f, 0, "trimmed"));
	f->hook = NULL;
	assert_true(fabric_run(f, SEC));
	fabric_free(f);
}

/* Bitmaps that take back what has arrived, or tell of packets that are long done. */
static void bitmaps_that_lie(void **state)
{
	static const uint32_t cack[] = {P - 1, P + 5, P + 50, P + 99};
	struct fabric *f = fabric_make(&plain);
	uint64_t words;

	(void)state;
	fabric_messages(f, 200, 0);
	assert_true(fabric_run(f, SEC));
	fabric_wait(f, MS);
	words = fabric_count(f, 0, "words");
	for (unsigned i = 0; i < 4; i++) {
		struct mrc_pkt pkt = sack_of(f, cack[i], 0);

		pkt.sack.rcvd_units = 0xfff;
		assert_int_equal(0, fabric_inject(f, 1, &pkt, NULL, 0, CONTROL, NULL));
	}
	assert_int_equal(words + 4, fabric_count(f, 0, "words"));
	unharmed(f);
}

/* Data outside of the window, and opcodes and lengths that are none. */
static void data_that_lies(void **state)
{
	struct fabric *f = fabric_make(&plain);
	uint8_t frame[NET_FRAME], first[8];
	struct mrc_pkt pkt = data_of(f, P + 1024);
	struct end *a = &f->net.end[0];
	size_t len;

	(void)state;
	memcpy(first, a->buf, 8);
	assert_int_equal(RNIC_DROP_SEQUENCE, fabric_inject(f, 1, &pkt, "AAAAAAAA", 0, 4, NULL));
	pkt = data_of(f, P - 1);
	assert_int_equal(RNIC_DROP_DUPLICATE, fabric_inject(f, 1, &pkt, "AAAAAAAA", 0, 4, NULL));
	assert_memory_equal(first, a->buf, 8);
	/* No connection at all. */
	pkt.data.dqpn = 0xabcdef;
	assert_int_equal(RNIC_DROP_NO_QP, fabric_inject(f, 1, &pkt, "AAAAAAAA", 0, 4, NULL));
	/* One bit of a packet that is right. */
	pkt = data_of(f, P);
	len = fabric_frame(f, 1, &pkt, "AAAAAAAA", 0, 4, NULL, frame, sizeof(frame));
	frame[len - 8] ^= 1;
	assert_int_equal(WIRE_ICRC_BAD, rnic_rx(a->rnic, 0, frame, len, f->net.now));
	assert_memory_equal(first, a->buf, 8);
	unharmed(f);
}

/* What says that a switch has cut it, and is not data, or too little of it. */
static void cut_that_lie(void **state)
{
	struct fabric *f = fabric_make(&plain);
	struct mrc_pkt pkt = sack_of(f, P - 1, 0);
	struct end *a = &f->net.end[0];
	uint8_t frame[NET_FRAME];
	size_t len;

	(void)state;
	assert_int_equal(RNIC_DROP_MRC_TRIMMED, fabric_inject(f, 1, &pkt, NULL, 0, 12, NULL));
	pkt = data_of(f, P);
	len = fabric_frame(f, 1, &pkt, "AAAAAAAA", 0, 16, NULL, frame, sizeof(frame));
	/* Of every length: shorter ones are no packet of ours, longer ones are cut. Nothing is
	 * written, whatever they say. */
	for (size_t n = 0; n < len; n++) {
		unsigned drop = rnic_rx(a->rnic, 0, frame, n, f->net.now);

		assert_int_equal(n >= ETH_HDR_LEN + 40 + 8 + 12, drop == 0);
	}
	assert_true(fabric_dev_count(f, 0, "cut") > 0);
	assert_int_equal(0, fabric_count(f, 0, "placed"));
	fabric_wait(f, MS);
	fabric_free(f);
}

static void answers_unasked(void **state)
{
	struct fabric *f = fabric_make(&plain);
	struct mrc_pkt pkt = {.kind = MRC_KIND_ENDPOINT_RESPONSE};
	struct end *a = &f->net.end[0];
	unsigned busy = 0;

	(void)state;
	for (unsigned id = 0; id < 600; id++) {
		pkt.endpoint.id = (uint16_t)id;
		assert_int_equal(
			RNIC_DROP_UNASKED, fabric_inject(f, 1, &pkt, NULL, 0, CONTROL, NULL));
	}
	assert_int_equal(600, fabric_dev_count(f, 0, "unasked"));
	/* Questions in a flood: so many are answered in a time, and no more wait than there is room
	 * for. */
	pkt = (struct mrc_pkt){.kind = MRC_KIND_ENDPOINT_REQUEST, .endpoint = {.op = MRC_EV_PROBE}};
	for (unsigned i = 0; i < 2000; i++)
		busy += fabric_inject(f, 1, &pkt, NULL, 0, CONTROL, NULL) == RNIC_DROP_BUSY;
	assert_int_equal(2000 - 256, busy);
	assert_true(rnic_drop_count(a->rnic, RNIC_DROP_REPLY_QUEUE) > 0);
	unharmed(f);
}

/* Requests do not arrive; their id. */
static uint16_t asked_id;
static bool swallow_requests(struct fabric *f, int from, uint8_t *frame, size_t *len)
{
	const uint8_t *bth = frame + ETH_HDR_LEN + 40 + 8;

	(void)f;
	(void)from;
	(void)len;
	if (bth[0] == 0xd8)
		asked_id = get_be16(bth + 10);
	return bth[0] != 0xd8;
}

static unsigned answer(struct fabric *f, unsigned id, const struct wire_ip *src)
{
	const struct mrc_pkt pkt = {
		.kind = MRC_KIND_ENDPOINT_RESPONSE, .endpoint = {.id = (uint16_t)id}};

	return fabric_inject(f, 1, &pkt, NULL, 0, CONTROL, src);
}

/* Answers to what was asked of another, or with an id that is remembered at the same place. */
static void answers_that_lie(void **state)
{
	struct fabric *f = fabric_make(&plain);
	struct rnic *rnic = f->net.end[0].rnic;
	struct rnic_mrc_request r = {
		.op = MRC_EV_PROBE, .format = RNIC_MRC_STEV, .path = f->paths.path[5]};
	struct wire_ip stranger;

	(void)state;
	f->hook = swallow_requests;
	assert_int_equal(0, wire_ip_parse("fd77::77", &stranger));
	rnic_gid(rnic, 0, 2, &r.src);
	rnic_gid(f->net.end[1].rnic, 0, 2, &r.dst);
	assert_int_equal(0, rnic_mrc_ask(rnic, &r, f->net.now));
	fabric_wait(f, FABRIC_HOP);
	assert_int_not_equal(0, asked_id);
	assert_int_equal(RNIC_DROP_UNASKED, answer(f, asked_id + RNIC_MRC_ASKED, NULL));
	assert_int_equal(RNIC_DROP_UNASKED, answer(f, asked_id ^ 1, NULL));
	assert_int_equal(RNIC_DROP_UNASKED, answer(f, asked_id, &stranger));
	assert_int_equal(0, f->n_answered);
	assert_int_equal(0, answer(f, asked_id, NULL));
	assert_int_equal(1, f->n_answered);
	assert_int_equal(RNIC_DROP_UNASKED, answer(f, asked_id, NULL));
	assert_int_equal(1, f->n_answered);
	/* A port status update, which the device sends by itself. */
	rnic_mrc_ports(rnic, 0x07, f->net.now);
	fabric_wait(f, FABRIC_HOP);
	assert_int_equal(0, asked_id & 1);
	assert_int_equal(RNIC_DROP_UNASKED, answer(f, asked_id + 2, NULL));
	assert_int_equal(RNIC_DROP_UNASKED, answer(f, asked_id, &stranger));
	assert_int_equal(0, answer(f, asked_id, NULL));
	assert_int_equal(RNIC_DROP_UNASKED, answer(f, asked_id, NULL));
	assert_int_equal(7, fabric_dev_count(f, 0, "unasked"));
	f->hook = NULL;
	rnic_mrc_ports(rnic, 0x0f, f->net.now);
	unharmed(f);
}

/* Old news of ports, and the order of ids when they wrap. */
static void stale_ports(void **state)
{
	struct fabric *f = fabric_make(&plain);
	struct mrc_pkt pkt = {.kind = MRC_KIND_ENDPOINT_REQUEST,
		.endpoint = {.id = 5, .op = MRC_PORT_STATUS, .port_mask = 0x1e}};

	(void)state;
	assert_int_equal(0, fabric_inject(f, 1, &pkt, NULL, 0, CONTROL, NULL));
	pkt.endpoint = (struct mrc_endpoint){.id = 4, .op = MRC_PORT_STATUS, .port_mask = 0};
	assert_int_equal(0, fabric_inject(f, 1, &pkt, NULL, 0, CONTROL, NULL));
	pkt.endpoint.id = 0x8006;
	assert_int_equal(0, fabric_inject(f, 1, &pkt, NULL, 0, CONTROL, NULL));
	assert_int_equal(2, fabric_dev_count(f, 0, "stale"));
	assert_int_equal(3, fabric_dev_count(f, 0, "statuses"));
	unharmed(f);
}

/* Outer headers that lead elsewhere, or with segments that are still to come. */
static void tunnels_that_lie(void **state)
{
	const struct fabric_options srv6 = {.format = RNIC_MRC_SRV6, .psn = {P, P}};
	struct fabric *f = fabric_make(&srv6);
	struct mrc_pkt pkt = data_of(f, P);
	struct end *a = &f->net.end[0];
	uint8_t in[NET_FRAME], out[NET_FRAME];
	size_t len = fabric_frame(f, 1, &pkt, "AAAAAAAA", 0, 4, NULL, in, sizeof(in));
	uint8_t first[8];

	(void)state;
	memcpy(first, a->buf, 8);
	memcpy(out, in, ETH_HDR_LEN + 40);
	memcpy(out + ETH_HDR_LEN + 40, in + ETH_HDR_LEN, len - ETH_HDR_LEN);
	len += 40;
	put_be16(out + ETH_HDR_LEN + 4, (uint16_t)(len - ETH_HDR_LEN - 40));
	out[ETH_HDR_LEN + 6] = 41;
	/* Not here. */
	memcpy(out + ETH_HDR_LEN + 24, f->template.address.b, 16);
	assert_int_equal(RNIC_DROP_NOT_ROCE, rnic_rx(a->rnic, 0, out, len, f->net.now));
	/* Here, and marked where inside it is said that marks are not understood. */
	memcpy(out + ETH_HDR_LEN + 24, f->sid[0].b, 16);
	out[ETH_HDR_LEN + 1] |= 0x30;
	assert_int_equal(RNIC_DROP_TUNNEL, rnic_rx(a->rnic, 0, out, len, f->net.now));
	/* A routing header with a segment left. */
	out[ETH_HDR_LEN + 1] &= 0x0f;
	out[ETH_HDR_LEN + 6] = 43;
	assert_int_equal(RNIC_DROP_NOT_ROCE, rnic_rx(a->rnic, 0, out, len, f->net.now));
	/* Cut off anywhere. */
	out[ETH_HDR_LEN + 6] = 41;
	for (size_t n = ETH_HDR_LEN; n < len; n++)
		assert_int_not_equal(0, rnic_rx(a->rnic, 0, out, n, f->net.now));
	assert_memory_equal(first, a->buf, 8);
	assert_int_equal(0, fabric_count(f, 0, "placed"));
	/* As it should be. */
	assert_int_equal(0, rnic_rx(a->rnic, 0, out, len, f->net.now));
	assert_memory_equal("AAAAAAAA", a->buf, 8);
	fabric_free(f);
}

/* The outer header of in, and behind it a routing header that says what it says, then the packet.
 */
static size_t with_srh(const struct fabric *f, const uint8_t *in, size_t len, const uint8_t srh[8],
	size_t room, uint8_t *out)
{
	memcpy(out, in, ETH_HDR_LEN + 40);
	memcpy(out + ETH_HDR_LEN + 24, f->sid[0].b, 16);
	memset(out + ETH_HDR_LEN + 40, 0, room);
	memcpy(out + ETH_HDR_LEN + 40, srh, 8);
	memcpy(out + ETH_HDR_LEN + 40 + room, in + ETH_HDR_LEN, len - ETH_HDR_LEN);
	len += 40 + room;
	put_be16(out + ETH_HDR_LEN + 4, (uint16_t)(len - ETH_HDR_LEN - 40));
	out[ETH_HDR_LEN + 6] = 43;
	return len;
}

/* Routing headers whose fields lie: next, length in 8 bytes, type, segments left, last entry. */
static void srhs_that_lie(void **state)
{
	static const uint8_t lies[][8] = {
		{41, 2, 4, 1, 0},   /* a segment is left */
		{41, 2, 4, 255, 0}, /* many are */
		{17, 2, 4, 0, 0},   /* UDP without an IP header */
		{43, 2, 4, 0, 0},   /* another one */
		{41, 255, 4, 0, 0}, /* longer than the packet */
		{41, 1, 4, 0, 0},   /* shorter than it is: the inner header begins in a segment */
		{41, 3, 4, 0, 0},   /* longer: it begins in itself */
		{41, 0, 4, 0, 0},
	};
	const struct fabric_options srv6 = {.format = RNIC_MRC_SRV6, .psn = {P, P}};
	struct fabric *f = fabric_make(&srv6);
	struct mrc_pkt pkt = data_of(f, P);
	struct end *a = &f->net.end[0];
	uint8_t in[NET_FRAME], out[NET_FRAME], first[8];
	const size_t len = fabric_frame(f, 1, &pkt, "AAAAAAAA", 0, 4, NULL, in, sizeof(in));
	uint64_t before = 0, after = 0;

	(void)state;
	memcpy(first, a->buf, 8);
	for (unsigned d = 1; d < RNIC_N_DROPS; d++)
		before += rnic_drop_count(a->rnic, d);
	for (unsigned i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		const size_t n = with_srh(f, in, len, lies[i], 24, out);

		assert_int_not_equal(0, rnic_rx(a->rnic, 0, out, n, f->net.now));
	}
	for (unsigned d = 1; d < RNIC_N_DROPS; d++)
		after += rnic_drop_count(a->rnic, d);
	assert_int_equal(before + sizeof(lies) / sizeof(lies[0]), after);
	assert_memory_equal(first, a->buf, 8);
	assert_int_equal(0, fabric_count(f, 0, "placed"));
	/* One that does not. */
	assert_int_equal(0,
		rnic_rx(a->rnic, 0, out,
			with_srh(f, in, len, (const uint8_t[8]){41, 2, 4}, 24, out), f->net.now));
	assert_memory_equal("AAAAAAAA", a->buf, 8);
	fabric_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strangers),
		cmocka_unit_test(words_that_lie),
		cmocka_unit_test(evs_that_lie),
		cmocka_unit_test(bitmaps_that_lie),
		cmocka_unit_test(data_that_lies),
		cmocka_unit_test(cut_that_lie),
		cmocka_unit_test(answers_unasked),
		cmocka_unit_test(answers_that_lie),
		cmocka_unit_test(stale_ports),
		cmocka_unit_test(tunnels_that_lie),
		cmocka_unit_test(srhs_that_lie),
	};

	return cmocka_run_group_tests_name("attack", tests, NULL, NULL);
}
