/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings that fail: ranks that disagree, what is kept of it, and who is told how. */
#include "tests/unit/netreduce/fixture.h"

#include <string.h>

static struct nf f;

enum { FATAL = ROCE_AETH_NAK | ROCE_NAK_REMOTE_OPERATION };

static int stop(void **state)
{
	(void)state;
	nf_stop(&f);
	return 0;
}

/* Where connections begin is known, as from CommLib: then what was acknowledged is, too. */
static void start(void (*make)(struct nf *, unsigned), unsigned n)
{
	make(&f, n);
	for (unsigned i = 0; i < f.spec.n_in; i++)
		f.in[i].psn_known = f.in[i].host;
	nf_start(&f);
}

static void failed(enum nr_fail_reason reason, const char *text)
{
	char got[256];

	assert_int_equal(f.ring->state, NR_FAILED);
	assert_int_equal(f.ring->fail.reason, reason);
	nr_fail_text(f.ring, got, sizeof(got));
	assert_string_equal(got, text);
}

static void works(void)
{
	assert_int_equal(f.ring->state, NR_ACTIVE);
}

/* out[i] tells a rank, in the name of the next one. */
static void expect_told(unsigned i, unsigned rank, uint32_t psn)
{
	const struct wire_pkt *p = &f.out[i].pkt;

	assert_true(i < f.n_out);
	assert_int_equal(p->opcode, ROCE_ACK);
	assert_int_equal(p->syndrome, FATAL);
	assert_int_equal(p->psn, psn);
	assert_int_equal(p->dqpn, f.in[rank].reply_qpn);
	assert_true(wire_ip_eq(&p->dst, &f.in[rank].key.src));
	assert_true(wire_ip_eq(&p->src, &f.in[rank].key.dst));
}

/* ---- disagreements ---- */

/* Another type, then another operation, than the rank's that came first. */
static void types(void **state)
{
	struct nf_pkt p;

	(void)state;
	start(nf_star, 3);
	nf_complete(&f, 0, 0, 1);
	assert_int_equal(nf_put(&f, 2, 1, 0, 1), NR_DROP_CONSUMED);
	p = nf_host(&f, 1, 1, 0, 1);
	p.ina.dtype = REDUCE_FP32;
	assert_int_equal(nf_send(&f, &p), NR_DROP_MISMATCH);
	failed(NR_FAIL_DTYPE, "message 1, packet 0: dtype fp32 of rank 1, int32 of rank 2");
	nf_stop(&f);
	start(nf_star, 3);
	nf_put(&f, 0, 0, 0, 1);
	p = nf_host(&f, 1, 0, 0, 1);
	p.ina.op = REDUCE_MAX;
	assert_int_equal(nf_send(&f, &p), NR_DROP_MISMATCH);
	failed(NR_FAIL_OP, "message 0, packet 0: operation max of rank 1, sum of rank 0");
}

static enum nr_drop shorter(unsigned rank, uint32_t msg, unsigned o, unsigned by)
{
	struct nf_pkt p = nf_host(&f, rank, msg, o, 1);

	p.len -= by;
	return nf_send(&f, &p);
}

static void lengths(void **state)
{
	(void)state;
	start(nf_star, 3);
	nf_put(&f, 0, 0, 0, 1);
	nf_put(&f, 2, 0, 0, 1);
	assert_int_equal(shorter(2, 0, 3, 56), NR_DROP_CONSUMED);
	assert_int_equal(nf_put(&f, 0, 0, 3, 1), NR_DROP_LENGTH);
	failed(NR_FAIL_LENGTH, "message 0, packet 3: bytes of data: 256 of rank 0, 200 of rank 2");
	nf_stop(&f);
	/* The sender has gone back into an older message: its place is certain. */
	start(nf_star, 2);
	nf_put(&f, 0, 0, 0, 1);
	nf_put(&f, 0, 1, 0, 1);
	nf_put(&f, 1, 0, 3, 1);
	assert_int_equal(shorter(0, 0, 3, 4), NR_DROP_LENGTH);
	failed(NR_FAIL_LENGTH, "message 0, packet 3: bytes of data: 252 of rank 0, 256 of rank 1");
	nf_stop(&f);
	/* Full packets that are not: another MTU. */
	start(nf_star, 2);
	assert_int_equal(shorter(1, 0, 0, 128), NR_DROP_LENGTH);
	failed(NR_FAIL_LENGTH,
		"message 0, packet 0: bytes of data: 112 of rank 1, 240 of the ring");
}

/* Messages of another number of packets, as the header says or as they end. */
static void counts(void **state)
{
	struct nf_pkt p;

	(void)state;
	start(nf_star, 2);
	p = nf_host(&f, 1, 0, 0, 1);
	p.ina.packets = 3;
	assert_int_equal(nf_send(&f, &p), NR_DROP_HEADER);
	failed(NR_FAIL_PACKETS,
		"message 0, packet 0: packets of a message: 3 of rank 1, 4 of the ring");
	nf_stop(&f);
	start(nf_star, 2);
	nf_put(&f, 1, 0, 0, 1);
	p = nf_host(&f, 1, 0, 1, 1);
	p.hdr.opcode = ROCE_WRITE_LAST;
	assert_int_equal(nf_send(&f, &p), NR_DROP_OPCODE);
	failed(NR_FAIL_PACKETS,
		"message 0, packet 1: packets of a message: 2 of rank 1, 4 of the ring");
	nf_stop(&f);
	start(nf_star, 2);
	nf_put(&f, 1, 0, 0, 1);
	p = nf_host(&f, 1, 0, 3, 1);
	p.hdr.opcode = ROCE_WRITE_MIDDLE;
	assert_int_equal(nf_send(&f, &p), NR_DROP_OPCODE);
	failed(NR_FAIL_PACKETS,
		"message 0, packet 3: packets of a message: 5 of rank 1, 4 of the ring");
}

/* What may be lost, late, of others or garbled fails nothing. */
static void not_certain(void **state)
{
	struct nf_pkt p;

	(void)state;
	start(nf_star, 2);
	nf_put(&f, 0, 0, 0, 1);
	nf_put(&f, 1, 0, 0, 1);
	/* Behind a first packet that was not seen: it may be a message of others. */
	nf_put(&f, 0, 1, 3, 1);
	assert_int_equal(shorter(1, 1, 3, 4), NR_DROP_LENGTH);
	works();
	p = nf_host(&f, 1, 1, 1, 1);
	p.hdr.opcode = ROCE_WRITE_LAST;
	assert_int_equal(nf_send(&f, &p), NR_DROP_OPCODE);
	works();
	/* A header of another ring or rank, or with a number that does not fit the PSN. */
	p = nf_host(&f, 1, 1, 0, 1);
	p.ina.ring++;
	p.ina.dtype = REDUCE_FP32;
	p.ina.packets++;
	assert_int_equal(nf_send(&f, &p), NR_DROP_HEADER);
	works();
	p = nf_host(&f, 1, 1, 0, 1);
	p.ina.msg = 2;
	p.ina.packets++;
	assert_int_equal(nf_send(&f, &p), NR_DROP_HEADER);
	works();
	/* Then the first packet comes, and it is the rank's word. */
	nf_put(&f, 1, 1, 0, 1);
	assert_int_equal(shorter(1, 1, 3, 4), NR_DROP_LENGTH);
	failed(NR_FAIL_LENGTH, "message 1, packet 3: bytes of data: 252 of rank 1, 256 of rank 0");
}

/* ---- telling ---- */

static void disagree(void)
{
	struct nf_pkt p = nf_host(&f, 1, 0, 0, 1);

	nf_put(&f, 0, 0, 0, 1);
	p.ina.op = REDUCE_MAX;
	assert_int_equal(nf_send(&f, &p), NR_DROP_MISMATCH);
}

/* Every rank is told, the one with the other word at once; nothing is forwarded nor summed. */
static void ranks_are_told(void **state)
{
	(void)state;
	start(nf_star, 2);
	disagree();
	assert_int_equal(f.n_out, 1);
	expect_told(0, 1, nf_psn(&f, 1, 0, 0));
	assert_int_equal(nf_put(&f, 0, 0, 2, 1), NR_DROP_FAILED);
	assert_int_equal(f.n_out, 1);
	expect_told(0, 0, nf_psn(&f, 0, 0, 0)); /* its oldest: what is before a NAK has arrived */
	/* Once in a while. */
	assert_int_equal(nf_put(&f, 0, 0, 0, 1), NR_DROP_FAILED);
	assert_int_equal(f.n_out, 0);
	f.now += 10000000;
	assert_int_equal(nf_put(&f, 0, 0, 0, 1), NR_DROP_FAILED);
	expect_told(0, 0, nf_psn(&f, 0, 0, 0));
	assert_int_equal(nf_put(&f, 1, 0, 0, 1), NR_DROP_FAILED);
	assert_int_equal(f.ring->count[NR_C_FAIL_NAK], 4);
	assert_int_equal(f.ring->count[NR_C_COMPLETED], 0);
	/* What the last word was is not what counts. */
	failed(NR_FAIL_OP, "message 0, packet 0: operation max of rank 1, sum of rank 0");
}

/* Told is what the receiver has: not less, not more. */
static void acknowledged_before(void **state)
{
	struct nf_pkt p;

	(void)state;
	start(nf_star, 2);
	for (unsigned o = 0; o < NF_M; o++)
		nf_complete(&f, 0, o, 1);
	p = nf_reply(&f, 0, ROCE_ACK, ROCE_AETH_ACK, nf_psn(&f, 0, 0, 1));
	assert_int_equal(nf_send(&f, &p), NR_FORWARD);
	assert_true(nr_set_failed(f.ring));
	failed(NR_FAIL_MANAGER, "somebody has ended it (ring.fail), or nobody held it");
	assert_int_equal(nf_put(&f, 0, 1, 0, 1), NR_DROP_FAILED);
	expect_told(0, 0, nf_psn(&f, 0, 0, 2));
	f.now += 10000000;
	/* The acknowledgement was lost: sent again is what the receiver has. */
	assert_int_equal(nf_put(&f, 0, 0, 0, 1), NR_DROP_FAILED);
	expect_told(0, 0, nf_psn(&f, 0, 0, 0));
	/* Acknowledgements pass, and count. */
	p = nf_reply(&f, 0, ROCE_ACK, ROCE_AETH_ACK, nf_psn(&f, 0, 0, 3));
	assert_int_equal(nf_send(&f, &p), NR_FORWARD);
	f.now += 10000000;
	nf_put(&f, 0, 1, 0, 1);
	expect_told(0, 0, nf_psn(&f, 0, 1, 0));
	assert_false(nr_set_failed(f.ring));
}

/* Nobody's acknowledgement was seen, or it is not known where to: then nothing is said, and nothing
 * passes; the transport gives up by itself. */
static void not_told(void **state)
{
	struct nf_pkt p;

	(void)state;
	nf_star(&f, 2);
	f.in[1].psn_known = true;
	f.in[1].reply_qpn = 0;
	nf_start(&f);
	disagree();
	assert_int_equal(f.n_out, 0);
	assert_int_equal(nf_put(&f, 0, 0, 0, 1), NR_DROP_FAILED);
	assert_int_equal(nf_put(&f, 1, 0, 0, 1), NR_DROP_FAILED);
	assert_int_equal(f.n_out, 0);
	/* What is no request is the hosts' own business. */
	p = nf_host(&f, 0, 0, 0, 1);
	p.hdr.opcode = ROCE_CNP;
	assert_int_equal(nf_send(&f, &p), NR_FORWARD);
	f.ring->state = NR_INSTALLED;
	assert_false(nr_set_failed(f.ring));
	/* Somebody fails it while its owner writes down why: what is written stays. */
	f.ring->state = NR_FAILING;
	assert_false(nr_set_failed(f.ring));
	assert_int_equal(f.ring->state, NR_FAILING);
	assert_int_equal(nf_put(&f, 0, 0, 0, 1), NR_DROP_FAILED);
}

/* ---- trees ---- */

static void expect_switch_told(unsigned i)
{
	assert_true(i < f.n_out);
	assert_int_equal(f.out[i].pkt.opcode, ROCE_ACK);
	assert_int_equal(f.out[i].pkt.syndrome, FATAL);
	assert_int_equal(f.out[i].pkt.dqpn, 0xfc1234);
}

static struct nf_pkt from_failed_switch(void)
{
	struct nf_pkt p = nf_switch(&f, 0, 0, 1);

	p.hdr.opcode = ROCE_ACK;
	p.hdr.syndrome = FATAL;
	p.has_ina = false;
	p.len = 0;
	return p;
}

/* A leaf's ranks disagree: the switch above hears it with them. */
static void leaf_tells(void **state)
{
	(void)state;
	start(nf_leaf, 2);
	disagree();
	assert_int_equal(f.n_out, 2);
	expect_told(0, 1, nf_psn(&f, 1, 0, 0));
	expect_switch_told(1);
}

/* Leaves disagree: the root tells both, and its hosts as they ask. */
static void root_tells(void **state)
{
	struct nf_pkt p;

	(void)state;
	start(nf_root, 2);
	nf_put(&f, 0, 0, 0, 1);
	p = nf_switch(&f, 0, 0, 1);
	p.ina.dtype = REDUCE_FP32;
	assert_int_equal(nf_send(&f, &p), NR_DROP_MISMATCH);
	failed(NR_FAIL_DTYPE, "message 0, packet 0: dtype fp32 of the switch of ranks 2,3, "
			      "int32 of rank 0");
	assert_int_equal(f.n_out, 1);
	expect_switch_told(0);
	f.now += 10000000;
	p = nf_switch(&f, 0, 1, 1); /* it has not heard */
	assert_int_equal(nf_send(&f, &p), NR_DROP_FAILED);
	assert_int_equal(f.n_out, 1);
	expect_switch_told(0);
	assert_int_equal(nf_put(&f, 1, 0, 0, 1), NR_DROP_FAILED);
	expect_told(0, 1, nf_psn(&f, 1, 0, 0));
}

static void told_by_a_switch(void **state)
{
	struct nf_pkt p;

	(void)state;
	start(nf_root, 2);
	p = from_failed_switch();
	assert_int_equal(nf_send(&f, &p), NR_DROP_FAILED);
	failed(NR_FAIL_SWITCH, "the switch of ranks 2,3 has failed it");
	assert_int_equal(f.n_out, 0); /* it knows */
	assert_int_equal(nf_put(&f, 0, 0, 0, 1), NR_DROP_FAILED);
	assert_int_equal(f.n_out, 2);
	expect_told(0, 0, nf_psn(&f, 0, 0, 0));
	f.now += 10000000;
	p = from_failed_switch();
	assert_int_equal(nf_send(&f, &p), NR_DROP_FAILED);
	assert_int_equal(f.n_out, 0);
	nf_stop(&f);
	start(nf_leaf, 2);
	p = from_failed_switch();
	assert_int_equal(nf_send(&f, &p), NR_DROP_FAILED);
	failed(NR_FAIL_SWITCH, "the switch above has failed it");
	assert_int_equal(f.n_out, 0);
}

#define T(name) cmocka_unit_test_teardown(name, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {T(types), T(lengths), T(counts), T(not_certain),
		T(ranks_are_told), T(acknowledged_before), T(not_told), T(leaf_tells),
		T(root_tells), T(told_by_a_switch)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
