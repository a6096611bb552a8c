/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets in the middle of a message whose First has come: their payload is copied to its place and
 * found right in one pass. What one that is wrong leaves behind, and which ones are verified first
 * all the same. */
#include "tests/unit/mrc_transport/fabric.h"

#include <string.h>

#include "lib/mrc/transport_priv.h"
#include "lib/wire/roce.h"

enum { P = 100, PART = 5, AT = 1 << 16, U = FABRIC_MTU, CLASS = 0, FAR = 1 << 17 };

static uint8_t from[PART * U];

/* Packet i of PART of a message to end 0, at AT. */
static struct mrc_pkt part(const struct fabric *f, unsigned i)
{
	const struct end *to = &f->net.end[0];

	return (struct mrc_pkt){.kind = MRC_KIND_DATA,
		.data = {.place = (i == 0 ? MRC_FIRST : 0) | (i + 1 == PART ? MRC_LAST : 0),
			.dqpn = rnic_qp_num(to->qp),
			.psn = P + i,
			.va = (uintptr_t)to->buf + AT + i * U,
			.rkey = rnic_mr_rkey(to->mr),
			.dmalen = PART * U,
			.has_ts = true,
			.pay_len = U}};
}

/* With one bit of its payload wrong, but for the last 100 bytes; or right. */
static unsigned take(
	struct fabric *f, const struct mrc_pkt *pkt, const uint8_t *payload, bool right)
{
	uint8_t frame[NET_FRAME];
	const size_t n = fabric_frame(f, 1, pkt, payload, 0, CLASS, NULL, frame, sizeof(frame));

	frame[n - ROCE_ICRC_LEN - 101] ^= !right;
	return rnic_rx(f->net.end[0].rnic, 0, frame, n, f->net.now);
}

static unsigned take_part(struct fabric *f, unsigned i, bool right)
{
	const struct mrc_pkt pkt = part(f, i);

	return take(f, &pkt, from + i * U, right);
}

static void holds(const struct fabric *f, unsigned i)
{
	assert_memory_equal(f->net.end[0].buf + AT + i * U, from + i * U, U);
}

static void untouched(const struct fabric *f, unsigned begin, unsigned end)
{
	for (unsigned i = begin; i < end; i++)
		assert_int_equal(0xee, f->net.end[0].buf[i]);
}

static struct fabric *open_one(enum rnic_mrc_format format)
{
	struct fabric *f = fabric_make(&(struct fabric_options){
		.format = format, .ip6 = format == RNIC_MRC_UDP, .psn = {P, P}});

	memset(f->net.end[0].buf, 0xee, f->net.end[0].buf_len);
	for (unsigned i = 0; i < sizeof(from); i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	return f;
}

static void check(enum rnic_mrc_format format)
{
	struct fabric *f = open_one(format);
	const uint8_t *buf = f->net.end[0].buf;

	assert_int_equal(WIRE_ICRC_BAD, take_part(f, 2, false)); /* no First yet */
	assert_int_equal(WIRE_ICRC_BAD, take_part(f, 0, false));
	untouched(f, 0, FAR);
	assert_int_equal(0, take_part(f, 0, true));
	assert_int_equal(WIRE_ICRC_BAD, take_part(f, 2, false));
	assert_memory_equal(buf + AT + 2 * U, from + 2 * U, U - 101);
	assert_memory_not_equal(buf + AT + 2 * U, from + 2 * U, U);
	untouched(f, 0, AT);
	untouched(f, AT + U, AT + 2 * U);
	untouched(f, AT + 3 * U, FAR);
	assert_int_equal(1, fabric_count(f, 0, "placed"));
	assert_int_equal(0, take_part(f, 2, true));
	holds(f, 2);
	assert_int_equal(WIRE_ICRC_BAD, take_part(f, 2, false)); /* it has come */
	assert_int_equal(WIRE_ICRC_BAD, take_part(f, 4, false)); /* the message's end */
	holds(f, 2);
	untouched(f, AT + 4 * U, FAR);
	assert_int_equal(0, take_part(f, 4, true));
	assert_int_equal(0, take_part(f, 3, true));
	assert_int_equal(RNIC_DROP_DUPLICATE, take_part(f, 3, true));
	assert_int_equal(0, take_part(f, 1, true));
	for (unsigned i = 0; i < PART; i++)
		holds(f, i);
	untouched(f, 0, AT);
	untouched(f, AT + PART * U, FAR);
	assert_int_equal(0, conn_of(f->net.end[0].qp)->part.n); /* PSNs come round */
	assert_int_equal(PART, fabric_count(f, 0, "placed"));
	assert_int_equal(5, rnic_drop_count(f->net.end[0].rnic, WIRE_ICRC_BAD));
	net_check_counters(&f->net);
	fabric_free(f);
}

/* A wrong packet leaves its bytes in the place that its PSN has, if that one has not come, and no
 * others; what has come keeps its bytes. The right one comes to the same as ever. */
static void wrong_ones(void **state)
{
	(void)state;
	check(RNIC_MRC_UDP);
	check(RNIC_MRC_STEV);
}

/* One that says of its place what is not so is verified first; also if that place is registered. */
static void disagrees(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 7; i++) {
		struct fabric *f = open_one(RNIC_MRC_STEV);
		struct mrc_pkt pkt = part(f, 2);

		assert_int_equal(0, take_part(f, 0, true));
		pkt.data.va += i == 0 ? U : 0;
		pkt.data.rkey ^= i == 1;
		pkt.data.dmalen -= i == 2;
		pkt.data.psn += i == 3;
		pkt.data.psn += i == 4 ? PART : 0; /* behind the message's end */
		pkt.data.va += i == 4 ? PART * U : 0;
		pkt.data.place = i == 5 ? MRC_LAST : pkt.data.place;
		pkt.data.psn += i == 6 ? 2 : 0; /* the end, and no Last */
		pkt.data.va += i == 6 ? 2 * U : 0;
		assert_int_equal(WIRE_ICRC_BAD, take(f, &pkt, from, false));
		untouched(f, 0, AT);
		untouched(f, AT + U, FAR);
		fabric_free(f);
	}
}

/* The region has gone since the First. */
static void no_region(void **state)
{
	struct fabric *f = open_one(RNIC_MRC_STEV);
	struct end *to = &f->net.end[0];
	struct mrc_pkt pkt = part(f, 0);
	struct rnic_mr *mr;
	uint32_t rkey;

	(void)state;
	assert_int_equal(0,
		rnic_mr_reg(to->pd, to->buf, to->buf_len, (uintptr_t)to->buf, NET_ALL_ACCESS, &mr));
	rkey = rnic_mr_rkey(mr);
	pkt.data.rkey = rkey;
	assert_int_equal(0, take(f, &pkt, from, true));
	assert_int_equal(0, rnic_mr_dereg(mr));
	pkt = part(f, 1);
	pkt.data.rkey = rkey;
	assert_int_equal(WIRE_ICRC_BAD, take(f, &pkt, from, false));
	assert_int_equal(RNIC_DROP_ACCESS, take(f, &pkt, from, true));
	untouched(f, 0, AT);
	untouched(f, AT + U, FAR);
	f->may_fail = true;
	fabric_free(f);
}

/* A peer in a hurry repeats what it will hear of: that words are lost is thought when it repeats
 * the same again. */
static void repeated(void **state)
{
	struct fabric *f = open_one(RNIC_MRC_UDP);
	const struct mrc_reverse *r = &conn_of(f->net.end[0].qp)->reverse;
	struct mrc_pkt pkt = part(f, 0);

	(void)state;
	assert_int_equal(0, take(f, &pkt, from, true));
	pkt.data.rtx = true;
	for (unsigned i = 0; i < 3; i++) {
		const unsigned turn = r->doubted;

		assert_int_equal(RNIC_DROP_DUPLICATE, take(f, &pkt, from, true));
		assert_int_equal(i > 0, r->doubted != turn);
	}
	fabric_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repeated),
		cmocka_unit_test(wrong_ones),
		cmocka_unit_test(disagrees),
		cmocka_unit_test(no_region),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
