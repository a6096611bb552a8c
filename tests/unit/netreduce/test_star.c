/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of docs/inc-protocol.md, section 6, on one switch. */
#include "tests/unit/netreduce/fixture.h"

#include <string.h>

static struct nf f;

static int stop(void **state)
{
	(void)state;
	nf_stop(&f);
	return 0;
}

static void star(unsigned n)
{
	nf_star(&f, n);
	nf_start(&f);
}

/* ---- header, lookup ---- */

static void header_layout(void **state)
{
	const struct ina_hdr h = {
		.ring = 0x0102, .rank = 0x0304, .msg = 0x05060708, .packets = 0x090a, .dtype = 3};
	static const uint8_t want[INA_LEN] = {
		0x43, 0x44, 0x52, 0x4e, 2, 1, 4, 3, 8, 7, 6, 5, 0x0a, 9, 3, 0};
	struct ina_hdr back;
	uint8_t b[INA_LEN];

	(void)state;
	star(2);
	ina_encode(&h, b);
	assert_memory_equal(b, want, INA_LEN);
	assert_true(ina_decode(b, &back));
	assert_memory_equal(&h, &back, sizeof(h));
	b[0] ^= 1;
	assert_false(ina_decode(b, &back));
}

/* A header that lies is dropped, and changes nothing. */
static void lying_headers(void **state)
{
	struct nf_pkt p;
	struct nr_in before;

	(void)state;
	star(2);
	before = *nr_in_at(f.ring, 0);
	for (unsigned i = 0; i < 5; i++) {
		p = nf_host(&f, 0, 0, 0, 1);
		p.ina.ring += i == 0;
		p.ina.rank += i == 1;
		p.ina.dtype = i == 2 ? 99 : p.ina.dtype;
		p.ina.op = i == 3 ? REDUCE_NONE : p.ina.op;
		p.ina.dtype = i == 4 ? REDUCE_BYTES : p.ina.dtype;
		assert_int_equal(nf_send(&f, &p), NR_DROP_HEADER);
		assert_int_equal(f.n_out, 0);
	}
	assert_memory_equal(&before, nr_in_at(f.ring, 0), sizeof(before));
	/* A message number out of any window. */
	p = nf_host(&f, 0, 0, 0, 1);
	p.ina.msg = 4;
	assert_int_equal(nf_send(&f, &p), NR_DROP_AHEAD);
	p.ina.msg = 0x80000000;
	assert_int_equal(nf_send(&f, &p), NR_DROP_HEADER); /* nothing was before the first one */
	p = nf_host(&f, 0, 0, 0, 1);
	assert_int_equal(nf_send(&f, &p), NR_DROP_CONSUMED);
	/* An older message with a newer PSN, a newer one with an older PSN, another at the same. */
	nf_complete(&f, 1, 0, 1);
	p = nf_host(&f, 0, 2, 0, 1);
	p.ina.msg = 0;
	assert_int_equal(nf_send(&f, &p), NR_DROP_HEADER);
	p = nf_host(&f, 0, 0, 0, 1);
	p.ina.msg = 2;
	assert_int_equal(nf_send(&f, &p), NR_DROP_HEADER);
	p = nf_host(&f, 0, 1, 0, 1);
	p.ina.msg = 2;
	assert_int_equal(nf_send(&f, &p), NR_DROP_HEADER);
	assert_int_equal(nr_in_at(f.ring, 0)->msg, 1);
}

static void bad_icrc(void **state)
{
	struct nf_pkt p;
	uint8_t payload[NF_MTU] = {0}, frame[NF_FRAME];
	int len;

	(void)state;
	star(2);
	p = nf_host(&f, 0, 0, 0, 1);
	ina_encode(&p.ina, payload);
	len = wire_build_frame(frame, sizeof(frame), &p.flow, &p.hdr, payload, sizeof(payload));
	frame[len - 10] ^= 1;
	assert_int_equal(nf_send_frame(&f, frame, (size_t)len), NR_ICRC_BAD);
	assert_false(nr_in_at(f.ring, 0)->known);
}

/* ---- aggregation ---- */

static void completion(void **state)
{
	(void)state;
	star(3);
	for (unsigned o = 0; o < NF_M; o++) {
		nf_complete(&f, 0, o, 100);
		assert_int_equal(f.n_out, 3);
		for (unsigned r = 0; r < 3; r++)
			nf_expect(&f, r, r, 0, o, 303);
	}
	assert_int_equal(f.ring->count[NR_C_COMPLETED], NF_M);
	assert_int_equal(f.ring->count[NR_C_TX], 3 * NF_M);
}

/* A ring whose sums are marked: at the end of each message, with a right ICRC; also when it is
 * asked for again, and with a congestion mark. */
static void marked_sums(void **state)
{
	struct nf_pkt p;

	(void)state;
	nf_star(&f, 3);
	f.spec.flags |= NR_F_MARK_SUMS;
	nf_start(&f);
	for (unsigned o = 0; o < NF_M; o++) {
		nf_complete(&f, 0, o, 100);
		assert_int_equal(f.n_out, 3);
		for (unsigned r = 0; r < 3; r++)
			nf_expect(&f, r, r, 0, o, 303);
		assert_int_equal(nf_put(&f, 1, 0, o, 101), NR_DROP_DONE);
		nf_expect(&f, 0, 1, 0, o, 303);
	}
	nf_complete(&f, 1, 0, 100);
	p = nf_host(&f, 0, 1, NF_M - 1, 1);
	p.flow.tos |= IP_ECN_CE;
	assert_int_equal(nf_send(&f, &p), NR_DROP_CONSUMED);
	assert_int_equal(nf_put(&f, 1, 1, NF_M - 1, 1), NR_DROP_CONSUMED);
	assert_int_equal(nf_put(&f, 2, 1, NF_M - 1, 1), NR_DROP_DONE);
	nf_expect(&f, 1, 1, 1, NF_M - 1, 3);
	assert_int_equal(f.out[1].pkt.tos & IP_ECN_MASK, IP_ECN_CE);
}

/* The same packet again does not count twice, and the result of a complete one goes to the asker.
 */
static void duplicates(void **state)
{
	(void)state;
	star(3);
	assert_int_equal(nf_put(&f, 1, 0, 0, 5), NR_DROP_CONSUMED);
	assert_int_equal(nf_put(&f, 1, 0, 0, 5), NR_DROP_DUP_WAIT);
	assert_int_equal(f.n_out, 0);
	assert_int_equal(nf_put(&f, 2, 0, 0, 6), NR_DROP_CONSUMED);
	assert_int_equal(nf_put(&f, 1, 0, 0, 5), NR_DROP_DUP_WAIT);
	assert_int_equal(nf_put(&f, 0, 0, 0, 7), NR_DROP_DONE);
	assert_int_equal(f.n_out, 3);
	nf_expect(&f, 2, 2, 0, 0, 18);
	for (unsigned again = 0; again < 3; again++) {
		assert_int_equal(nf_put(&f, 1, 0, 0, 5), NR_DROP_DONE);
		assert_int_equal(f.n_out, 1);
		nf_expect(&f, 0, 1, 0, 0, 18);
	}
}

/* Float sums do not depend on the order of arrival. */
static void reproducible(void **state)
{
	static const float values[4] = {1e8f, 3.14159f, -1e8f, 2.71828f};
	static const unsigned orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {2, 0, 3, 1}};
	float want = values[0];

	(void)state;
	for (unsigned i = 1; i < 4; i++)
		want += values[i];
	star(4);
	for (unsigned k = 0; k < 3; k++) {
		for (unsigned i = 0; i < 4; i++) {
			const unsigned r = orders[k][i];
			struct nf_pkt p = nf_host(&f, r, 0, 0, 0);
			float got;

			p.ina.dtype = REDUCE_FP32;
			p.ina.msg = k;
			p.hdr.psn = nf_psn(&f, r, k, 0);
			for (unsigned j = 0; j < p.len; j += 4)
				memcpy(p.data + j, &values[r], 4);
			nf_send(&f, &p);
			if (i < 3)
				continue;
			assert_int_equal(f.n_out, 4);
			memcpy(&got, f.out[0].payload + INA_LEN, 4);
			assert_memory_equal(&got, &want, 4);
		}
	}
}

/* A half-precision sum is rounded once, not at every step: 2048 + 1 + 1. */
static void rounded_once(void **state)
{
	static const uint16_t values[3] = {0x6800, 0x3c00, 0x3c00}, want = 0x6801;

	(void)state;
	star(3);
	for (unsigned r = 0; r < 3; r++) {
		struct nf_pkt p = nf_host(&f, r, 0, 0, 0);

		p.ina.dtype = REDUCE_FP16;
		for (unsigned j = 0; j < p.len; j += 2)
			memcpy(p.data + j, &values[r], 2);
		nf_send(&f, &p);
	}
	assert_int_equal(f.n_out, 3);
	assert_memory_equal(f.out[2].payload + INA_LEN, &want, 2);
}

/* Nothing of an earlier message is left in a buffer that a later one claims, lap after lap, and
 * message numbers and PSNs wrap on the way. */
static void laps(void **state)
{
	(void)state;
	nf_star(&f, 2);
	f.spec.first_msg = 0xfffffffa;
	nf_start(&f);
	for (uint32_t k = 0; k < 16; k++)
		for (unsigned o = 0; o < NF_M; o++) {
			nf_complete(&f, 0xfffffffa + k, o, (int32_t)(10 * k + o));
			nf_expect(&f, 1, 1, 0xfffffffa + k, o, (int32_t)(2 * (10 * k + o) + 1));
		}
	assert_int_equal(f.ring->count[NR_C_DUP], 0);
}

/* Two messages may be unfinished; what is beyond twice the window needs an older one complete. */
static void window(void **state)
{
	(void)state;
	star(2);
	for (unsigned o = 0; o < NF_M; o++)
		for (uint32_t msg = 0; msg < 4; msg++)
			if (msg != 1 || o != 2)
				nf_complete(&f, msg, o, 1);
	assert_int_equal(nf_put(&f, 0, 4, 0, 1), NR_DROP_CONSUMED); /* 0 is complete */
	assert_int_equal(nf_put(&f, 0, 5, 0, 1), NR_DROP_AHEAD);    /* 1 lacks packet 2 */
	assert_int_equal(nf_put(&f, 0, 5, 1, 1), NR_DROP_AHEAD);
	nf_complete(&f, 1, 2, 1);
	assert_int_equal(nf_put(&f, 0, 5, 0, 1), NR_DROP_CONSUMED);
}

/* Older than its buffer's owner: forwarded as it is. */
static void stale(void **state)
{
	(void)state;
	star(2);
	for (uint32_t msg = 0; msg < 5; msg++)
		for (unsigned o = 0; o < NF_M; o++)
			nf_complete(&f, msg, o, 1);
	assert_int_equal(nf_put(&f, 0, 0, 1, 1), NR_FORWARD); /* 4 has its place */
	assert_int_equal(nf_put(&f, 0, 0, 0, 1), NR_FORWARD);
	assert_int_equal(f.n_out, 0);
	assert_int_equal(f.ring->count[NR_C_STALE_FORWARDED], 2);
	/* The row went back with the first packet: the rest follows from there. */
	assert_int_equal(nr_in_at(f.ring, 0)->msg, 0);
	assert_int_equal(nf_put(&f, 0, 1, 3, 1), NR_DROP_DONE);
	nf_expect(&f, 0, 0, 1, 3, 3);
}

/* ---- places ---- */

/* The first packet of a message is lost: its others are found by the PSN. */
static void first_lost(void **state)
{
	(void)state;
	star(2);
	nf_complete(&f, 0, 0, 1);
	for (unsigned o = 1; o < NF_M; o++) {
		assert_int_equal(nf_put(&f, 0, 1, o, 40), NR_DROP_CONSUMED);
		assert_int_equal(nr_in_at(f.ring, 0)->msg, 0);
	}
	/* The other's as well: nobody has said what to do, so the sum waits. */
	assert_int_equal(nf_put(&f, 1, 1, 2, 2), NR_DROP_CONSUMED);
	assert_int_equal(nf_put(&f, 1, 1, 0, 2), NR_DROP_CONSUMED);
	assert_int_equal(nf_put(&f, 1, 1, 2, 2), NR_DROP_DONE);
	nf_expect(&f, 0, 0, 1, 2, 42);
	assert_int_equal(nf_put(&f, 0, 1, 0, 40), NR_DROP_DONE);
}

/* Going back into the middle of an older message (T25): no first packet comes to tell. */
static void back_into_the_middle(void **state)
{
	(void)state;
	star(2);
	for (unsigned o = 0; o < NF_M; o++)
		if (o != 2)
			nf_complete(&f, 0, o, 1);
	assert_int_equal(nf_put(&f, 0, 0, 2, 1), NR_DROP_CONSUMED); /* rank 1's is lost */
	for (unsigned o = 0; o < NF_M; o++)
		nf_complete(&f, 1, o, 5);
	assert_int_equal(nr_in_at(f.ring, 1)->msg, 1);
	assert_int_equal(nf_put(&f, 1, 0, 2, 2), NR_DROP_DONE);
	assert_int_equal(f.n_out, 2);
	nf_expect(&f, 0, 0, 0, 2, 3);
	assert_int_equal(nr_in_at(f.ring, 1)->msg, 1); /* the row stays */
	assert_int_equal(nf_put(&f, 1, 0, 3, 2), NR_DROP_DONE);
	assert_int_equal(nf_put(&f, 1, 1, 0, 6), NR_DROP_DONE);
	nf_expect(&f, 0, 1, 1, 0, 11);
}

static void out_of_range(void **state)
{
	struct nf_pkt p;

	(void)state;
	star(2);
	assert_int_equal(nf_put(&f, 0, 0, 1, 1), NR_DROP_NO_FIRST);
	assert_int_equal(nf_put(&f, 0, 0, 0, 1), NR_DROP_CONSUMED);
	p = nf_host(&f, 0, 0, 1, 1);
	p.hdr.psn = psn_add(nf_psn(&f, 0, 0, 0), 4 * NF_M); /* 2N' = 4 messages ahead */
	assert_int_equal(nf_send(&f, &p), NR_DROP_RANGE);
	p.hdr.psn = psn_add(nf_psn(&f, 0, 0, 0), -4 * NF_M - 1);
	assert_int_equal(nf_send(&f, &p), NR_DROP_RANGE);
	p.hdr.psn = psn_add(nf_psn(&f, 0, 0, 0), -4 * NF_M + 1); /* three PSNs of message -4 */
	assert_int_equal(nf_send(&f, &p), NR_FORWARD);
	p.hdr.psn = psn_add(nf_psn(&f, 0, 0, 0), 1 << 23);
	assert_int_equal(nf_send(&f, &p), NR_DROP_RANGE);
}

/* Told where the connections begin, the switch needs no first packet. */
static void psn_known(void **state)
{
	(void)state;
	nf_star(&f, 2);
	f.in[0].psn_known = f.in[1].psn_known = true;
	nf_start(&f);
	assert_int_equal(nf_put(&f, 0, 0, 3, 1), NR_DROP_CONSUMED);
	assert_int_equal(nf_put(&f, 0, 1, 1, 1), NR_DROP_CONSUMED);
	/* Before that there was nothing that could be answered. */
	assert_int_equal(nf_put(&f, 0, UINT32_MAX, 3, 1), NR_FORWARD);
	assert_int_equal(nf_put(&f, 0, UINT32_MAX, 0, 1), NR_FORWARD);
	assert_int_equal(f.n_out, 0);
}

/* By its PSN a packet has a place in a message, which says what it is. */
static void position(void **state)
{
	static const struct {
		unsigned msg, o, shorter;
		uint8_t opcode;
		enum nr_drop drop;
	} t[] = {
		{0, 1, 0, ROCE_WRITE_LAST, NR_DROP_OPCODE},
		{0, 3, 0, ROCE_WRITE_MIDDLE, NR_DROP_OPCODE},
		{1, 0, 0, ROCE_WRITE_MIDDLE, NR_DROP_OPCODE}, /* a first place */
		{0, 0, 0, ROCE_WRITE_ONLY, NR_DROP_OPCODE},   /* four packets are a message here */
		{0, 1, 4, ROCE_WRITE_MIDDLE, NR_DROP_LENGTH},
		{0, 0, 4, ROCE_WRITE_FIRST, NR_DROP_LENGTH},
	};
	struct nf_pkt p;

	(void)state;
	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		star(2);
		nf_put(&f, 0, 0, 0, 1);
		p = nf_host(&f, 0, t[i].msg, t[i].o, 1);
		p.hdr.opcode = t[i].opcode;
		p.len -= t[i].shorter;
		assert_int_equal(nf_send(&f, &p), t[i].drop);
		nf_stop(&f);
	}
	star(2);
	nf_put(&f, 0, 0, 0, 1);
	/* SEND does as well as WRITE. */
	p = nf_host(&f, 0, 0, 1, 1);
	p.hdr.opcode = ROCE_SEND_MIDDLE;
	assert_int_equal(nf_send(&f, &p), NR_DROP_CONSUMED);
}

/* The last packet of a message may be short, odd and even empty, alike at all ranks. */
static void short_last(void **state)
{
	static const unsigned lens[] = {200, 3, 1, 0};

	(void)state;
	star(2);
	for (uint32_t msg = 0; msg < 4; msg++) {
		struct nf_pkt p;

		for (unsigned r = 0; r < 2; r++) {
			p = nf_host(&f, r, msg, 0, 1);
			p.ina.dtype = REDUCE_INT8;
			nf_send(&f, &p);
		}
		p = nf_host(&f, 0, msg, 3, 0x01010101);
		p.len = lens[msg];
		assert_int_equal(nf_send(&f, &p), NR_DROP_CONSUMED);
		p = nf_host(&f, 1, msg, 3, 0x02020202);
		p.len = lens[msg];
		assert_int_equal(nf_send(&f, &p), NR_DROP_DONE);
		assert_int_equal(f.n_out, 2);
		assert_int_equal(f.out[1].pkt.pay_len, lens[msg]);
		for (unsigned i = 0; i < lens[msg]; i++)
			assert_int_equal(f.out[1].payload[i], 3);
	}
}

/* ---- what is not NetReduce's ---- */

/* Messages without the tag on a registered connection, and those behind them. */
static void foreign(void **state)
{
	struct nf_pkt p;

	(void)state;
	star(2);
	assert_int_equal(nf_put(&f, 0, 0, 0, 1), NR_DROP_CONSUMED);
	p = nf_host(&f, 0, 1, 0, 1);
	p.has_ina = false;
	p.len = NF_MTU;
	assert_int_equal(nf_send(&f, &p), NR_FORWARD);
	assert_int_equal(nf_put(&f, 0, 1, 1, 1), NR_FORWARD);
	assert_int_equal(nf_put(&f, 0, 1, 3, 1), NR_FORWARD);
	assert_int_equal(f.ring->count[NR_C_FOREIGN], 3);
	assert_int_equal(nf_put(&f, 0, 0, 3, 1), NR_DROP_CONSUMED); /* before them */
	/* The next message of ours has a PSN that only its header explains. */
	p = nf_host(&f, 0, 2, 0, 1);
	p.ina.msg = 1;
	assert_int_equal(nf_send(&f, &p), NR_DROP_CONSUMED);
	assert_int_equal(nf_put(&f, 0, 2, 1, 1), NR_DROP_CONSUMED);
	assert_int_equal(nr_agg_at(f.ring, nr_index(f.ring, 1, 1))->arrived, 1);
	/* Too short for a header. */
	p = nf_host(&f, 0, 3, 0, 1);
	p.has_ina = false;
	p.len = 8;
	p.hdr.opcode = ROCE_SEND_ONLY;
	assert_int_equal(nf_send(&f, &p), NR_FORWARD);
}

/* Acknowledgements and the like, in both directions, end to end. */
static void answers(void **state)
{
	static const uint8_t opcodes[] = {
		ROCE_ACK, ROCE_CNP, ROCE_READ_REQUEST, ROCE_ATOMIC_ACK, ROCE_UD | ROCE_SEND_ONLY};
	struct nf_pkt p;

	(void)state;
	star(2);
	for (unsigned i = 0; i < sizeof(opcodes); i++) {
		p = nf_reply(&f, 0, opcodes[i], ROCE_AETH_ACK, 3);
		assert_int_equal(nf_send(&f, &p), NR_FORWARD);
		p.flow = nf_host(&f, 0, 0, 0, 0).flow; /* the other way */
		p.hdr.dqpn = nf_host(&f, 0, 0, 0, 0).hdr.dqpn;
		assert_int_equal(nf_send(&f, &p), NR_FORWARD);
	}
	assert_int_equal(f.n_out, 0);
}

/* ---- waiting ---- */

/* A host that asks again for what others hold up is told to wait, but only for its oldest packet.
 */
static void told_to_wait(void **state)
{
	struct nf_pkt p;

	(void)state;
	star(2);
	for (unsigned o = 0; o < NF_M; o++)
		nf_put(&f, 0, 0, o, 1);
	assert_int_equal(nf_put(&f, 0, 0, 0, 1), NR_DROP_DUP_WAIT);
	assert_int_equal(
		f.n_out, 0); /* nothing was ever acknowledged: not known to be the oldest */
	nf_put(&f, 1, 0, 0, 1);
	p = nf_reply(&f, 0, ROCE_ACK, ROCE_AETH_ACK, nf_psn(&f, 0, 0, 0));
	assert_int_equal(nf_send(&f, &p), NR_FORWARD);
	assert_int_equal(nf_put(&f, 0, 0, 2, 1), NR_DROP_DUP_WAIT);
	assert_int_equal(f.n_out, 0);
	/* Whoever acknowledges what was not sent is not believed: RNR would acknowledge all before.
	 */
	p = nf_reply(&f, 0, ROCE_ACK, ROCE_AETH_ACK, nf_psn(&f, 0, 1, 0));
	assert_int_equal(nf_send(&f, &p), NR_FORWARD);
	assert_int_equal(nf_put(&f, 0, 0, 1, 1), NR_DROP_DUP_WAIT);
	assert_int_equal(f.n_out, 1);
	assert_int_equal(f.out[0].pkt.opcode, ROCE_ACK);
	assert_int_equal(f.out[0].pkt.syndrome, ROCE_AETH_RNR | 14);
	assert_int_equal(f.out[0].pkt.psn, nf_psn(&f, 0, 0, 1));
	assert_int_equal(f.out[0].pkt.dqpn, f.in[0].reply_qpn);
	assert_int_equal(f.out[0].pkt.msn, 5);
	assert_true(wire_ip_eq(&f.out[0].pkt.dst, &f.in[0].key.src));
	assert_true(wire_ip_eq(&f.out[0].pkt.src, &f.in[0].key.dst));
	/* A NAK acknowledges what is before it; an older acknowledgement takes nothing back. */
	p = nf_reply(&f, 0, ROCE_ACK, ROCE_AETH_NAK, nf_psn(&f, 0, 0, 2));
	nf_send(&f, &p);
	p = nf_reply(&f, 0, ROCE_ACK, ROCE_AETH_ACK, nf_psn(&f, 0, 0, 0));
	nf_send(&f, &p);
	assert_int_equal(nr_in_at(f.ring, 0)->acked, nf_psn(&f, 0, 0, 2));
	nf_put(&f, 0, 0, 2, 1);
	assert_int_equal(f.n_out, 1);
	f.ring->flags = 0;
	nf_put(&f, 0, 0, 2, 1);
	assert_int_equal(f.n_out, 0);
}

static void missing(void **state)
{
	uint32_t msg, o;

	(void)state;
	star(3);
	assert_int_equal(nr_missing(f.ring, &msg, &o), 0);
	nf_put(&f, 0, 0, 0, 1);
	nf_put(&f, 0, 0, 1, 1);
	nf_put(&f, 2, 0, 0, 1);
	assert_int_equal(nr_missing(f.ring, &msg, &o), 2);
	assert_int_equal(msg, 0);
	assert_int_equal(o, 0);
	nf_put(&f, 1, 0, 0, 1);
	assert_int_equal(nr_missing(f.ring, &msg, &o), 6);
	assert_int_equal(o, 1);
}

/* ---- headers of results ---- */

static void congestion_mark(void **state)
{
	struct nf_pkt p;

	(void)state;
	star(3);
	p = nf_host(&f, 0, 0, 0, 1);
	p.flow.tos = IP_ECN_CE | 0x20;
	nf_send(&f, &p);
	p = nf_host(&f, 1, 0, 0, 1);
	p.flow.tos = IP_ECN_NOT_ECT;
	nf_send(&f, &p);
	nf_put(&f, 2, 0, 0, 1);
	assert_int_equal(f.n_out, 3);
	assert_int_equal(f.out[0].pkt.tos, IP_ECN_CE | 0x20);
	assert_int_equal(f.out[1].pkt.tos, IP_ECN_NOT_ECT);
	assert_int_equal(f.out[2].pkt.tos, IP_ECN_CE);
}

/* A UDP checksum over the old payload does not survive; VLAN tags do; IPv6 as well. */
static void odd_headers(void **state)
{
	uint8_t payload[NF_MTU] = {0}, frame[NF_FRAME];
	struct nf_pkt p;
	struct wire_pkt pkt;
	int len;

	(void)state;
	nf_star(&f, 2);
	for (unsigned r = 0; r < 2; r++) {
		wire_ip_parse(r ? "fd00::2" : "fd00::1", &f.in[r].key.src);
		wire_ip_parse(r ? "fd00::1" : "fd00::2", &f.in[r].key.dst);
	}
	nf_start(&f);
	for (unsigned r = 0; r < 2; r++) {
		p = nf_host(&f, r, 0, 0, 0);
		p.flow.src = f.in[r].key.src;
		p.flow.dst = f.in[r].key.dst;
		p.flow.vlan = 42;
		ina_encode(&p.ina, payload);
		len = wire_build_frame(
			frame, sizeof(frame), &p.flow, &p.hdr, payload, sizeof(payload));
		assert_int_equal(wire_parse(frame, (size_t)len, &pkt), WIRE_OK);
		uint16_t sum = ip_l4_checksum(&p.flow.src, &p.flow.dst, IP_PROTO_UDP,
			frame + pkt.l4_off, (size_t)(pkt.end - pkt.l4_off));
		frame[pkt.l4_off + 6] = (uint8_t)(sum >> 8);
		frame[pkt.l4_off + 7] = (uint8_t)sum;
		nf_send_frame(&f, frame, (size_t)len);
	}
	assert_int_equal(f.n_out, 2);
	assert_int_equal(f.out[0].pkt.ip_ver, 6);
	assert_int_equal(f.out[0].pkt.vlan, 42);
	assert_int_equal(f.out[0].b[f.out[0].pkt.l4_off + 6], 0);
	assert_int_equal(f.out[0].b[f.out[0].pkt.l4_off + 7], 0);
}

#define T(name) cmocka_unit_test_teardown(name, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {T(header_layout), T(lying_headers), T(bad_icrc),
		T(completion), T(marked_sums), T(duplicates), T(reproducible), T(rounded_once),
		T(laps), T(window), T(stale), T(first_lost), T(back_into_the_middle),
		T(out_of_range), T(psn_known), T(position), T(short_last), T(foreign), T(answers),
		T(told_to_wait), T(missing), T(congestion_mark), T(odd_headers)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
