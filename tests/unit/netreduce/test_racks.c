/* SPDX-License-Identifier: BSD-3-Clause */
/* Several switches: a leaf with hosts 0 and 1 of four, and a root with hosts 0, 1 and a leaf with 2
 * and 3. */
#include "tests/unit/netreduce/fixture.h"

#include <string.h>

static struct nf f;

static int leaf(void **state)
{
	(void)state;
	nf_leaf(&f, 2);
	nf_start(&f);
	return 0;
}

static int root(void **state)
{
	(void)state;
	nf_root(&f, 2);
	nf_start(&f);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	nf_stop(&f);
	return 0;
}

/* out[i] is a packet of the virtual connection with every element sum. */
static void expect_virtual(unsigned i, uint32_t msg, unsigned o, unsigned rank, int32_t sum)
{
	const struct nf_frame *out = &f.out[i];
	struct ina_hdr h;
	int32_t got;

	assert_true(i < f.n_out);
	assert_int_equal(out->pkt.opcode, ROCE_SEND_ONLY);
	assert_int_equal(out->pkt.dqpn, 0xfc1234);
	assert_int_equal(out->pkt.psn, (msg * NF_M + o) & PSN_MASK);
	assert_int_equal(out->pkt.ttl, 65);
	assert_true(ina_decode(out->payload, &h));
	assert_int_equal(h.ring, NF_ID);
	assert_int_equal(h.rank, rank);
	assert_int_equal(h.msg, msg);
	assert_int_equal(h.packets, NF_M);
	assert_int_equal(h.dtype, REDUCE_INT32);
	assert_int_equal(out->pkt.pay_len, o == 0 ? NF_MTU : NF_MTU + INA_LEN);
	for (unsigned at = INA_LEN; at < out->pkt.pay_len; at += 4) {
		memcpy(&got, out->payload + at, 4);
		assert_int_equal(got, sum);
	}
}

static enum nr_drop from_switch(uint32_t msg, unsigned o, int32_t value)
{
	const struct nf_pkt p = nf_switch(&f, msg, o, value);

	return nf_send(&f, &p);
}

static void leaf_up_and_down(void **state)
{
	(void)state;
	for (unsigned o = 0; o < NF_M; o++) {
		assert_int_equal(nf_put(&f, 0, 0, o, 1), NR_DROP_CONSUMED);
		assert_int_equal(nf_put(&f, 1, 0, o, 2), NR_DROP_DONE);
		assert_int_equal(f.n_out, 1);
		expect_virtual(0, 0, o, 0, 3);
		assert_int_equal(from_switch(0, o, 100), NR_DROP_DONE);
		assert_int_equal(f.n_out, 2);
		nf_expect(&f, 0, 0, 0, o, 100);
		nf_expect(&f, 1, 1, 0, o, 100);
		assert_int_equal(from_switch(0, o, 100), NR_DROP_DUP_RESULT);
	}
	/* Whoever asks now gets it from here. */
	assert_int_equal(nf_put(&f, 1, 0, 1, 2), NR_DROP_DONE);
	assert_int_equal(f.n_out, 1);
	nf_expect(&f, 0, 1, 0, 1, 100);
}

/* The sum or the result was lost: a host's packet draws it again. */
static void leaf_asks_again(void **state)
{
	struct nf_pkt ack = nf_reply(&f, 0, ROCE_ACK, ROCE_AETH_RNR, nf_psn(&f, 0, 0, 0));
	uint32_t msg, o;

	(void)state;
	nf_send(&f, &ack);
	nf_put(&f, 0, 0, 0, 1);
	nf_put(&f, 1, 0, 0, 2);
	assert_int_equal(nr_missing(f.ring, &msg, &o), 1ULL << NR_PARENT_EP);
	assert_int_equal(nf_put(&f, 1, 0, 0, 2), NR_DROP_DONE);
	assert_int_equal(f.n_out, 1);
	expect_virtual(0, 0, 0, 0, 3);
	assert_int_equal(nf_put(&f, 0, 0, 0, 1), NR_DROP_DONE); /* and is told to wait */
	assert_int_equal(f.n_out, 2);
	expect_virtual(0, 0, 0, 0, 3);
	assert_int_equal(f.out[1].pkt.syndrome, ROCE_AETH_RNR | 14);
}

/* A result that cannot be one yet, or any more. */
static void leaf_early_and_late(void **state)
{
	struct nf_pkt p;

	(void)state;
	assert_int_equal(from_switch(0, 0, 100), NR_DROP_AHEAD);
	nf_put(&f, 0, 0, 0, 1);
	assert_int_equal(from_switch(0, 0, 100), NR_DROP_AHEAD);
	nf_put(&f, 1, 0, 0, 2);
	assert_int_equal(from_switch(4, 0, 100), NR_DROP_AHEAD);
	p = nf_switch(&f, 0, 0, 100);
	p.len -= 4;
	assert_int_equal(nf_send(&f, &p), NR_DROP_LENGTH);
	for (uint32_t msg = 0; msg < 5; msg++)
		for (unsigned o = 0; o < NF_M; o++) {
			nf_put(&f, 0, msg, o, 1);
			nf_put(&f, 1, msg, o, 2);
			from_switch(msg, o, 100);
		}
	assert_int_equal(f.ring->count[NR_C_RESULTS], 5 * NF_M);
	assert_int_equal(from_switch(0, 0, 100), NR_DROP_STALE);
}

static void root_sums(void **state)
{
	(void)state;
	for (unsigned o = 0; o < NF_M; o++) {
		assert_int_equal(from_switch(0, o, 30), NR_DROP_CONSUMED);
		assert_int_equal(from_switch(0, o, 30), NR_DROP_DUP_WAIT);
		assert_int_equal(nf_put(&f, 1, 0, o, 2), NR_DROP_CONSUMED);
		assert_int_equal(nf_put(&f, 0, 0, o, 1), NR_DROP_DONE);
		assert_int_equal(f.n_out, 3);
		nf_expect(&f, 0, 0, 0, o, 33);
		nf_expect(&f, 1, 1, 0, o, 33);
		expect_virtual(2, 0, o, 2, 33);
		/* Asked again by the leaf: it alone is answered. */
		assert_int_equal(from_switch(0, o, 30), NR_DROP_DONE);
		assert_int_equal(f.n_out, 1);
		expect_virtual(0, 0, o, 2, 33);
	}
}

static void root_refuses(void **state)
{
	struct nf_pkt p = nf_switch(&f, 0, 1, 1);

	(void)state;
	p.hdr.psn = NF_M;
	assert_int_equal(nf_send(&f, &p), NR_DROP_RANGE);
	p = nf_switch(&f, 0, 1, 1);
	p.ina.rank = 3; /* not the leaf's lowest */
	assert_int_equal(nf_send(&f, &p), NR_DROP_HEADER);
	p = nf_switch(&f, 0, 1, 1);
	p.has_ina = false;
	assert_int_equal(nf_send(&f, &p), NR_DROP_HEADER);
	p = nf_switch(&f, 0, 1, 1);
	p.len -= 4;
	assert_int_equal(nf_send(&f, &p), NR_DROP_LENGTH);
	p = nf_switch(&f, 0, 1, 1);
	p.hdr.opcode = ROCE_WRITE_ONLY;
	assert_int_equal(nf_send(&f, &p), NR_DROP_OPCODE);
	assert_int_equal(from_switch(4, 0, 1), NR_DROP_AHEAD);
	for (uint32_t msg = 0; msg < 5; msg++)
		for (unsigned o = 0; o < NF_M; o++) {
			nf_put(&f, 0, msg, o, 1);
			nf_put(&f, 1, msg, o, 2);
			assert_int_equal(from_switch(msg, o, 3), NR_DROP_DONE);
		}
	assert_int_equal(from_switch(0, 0, 3), NR_DROP_STALE);
	assert_int_equal(f.n_out, 0);
}

/* A mark set on the way between switches reaches the hosts. */
static void mark_passes(void **state)
{
	struct nf_pkt p = nf_switch(&f, 0, 0, 3);

	(void)state;
	p.flow.tos = IP_ECN_CE;
	nf_send(&f, &p);
	nf_put(&f, 0, 0, 0, 1);
	nf_put(&f, 1, 0, 0, 1);
	assert_int_equal(f.n_out, 3);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(f.out[i].pkt.tos & IP_ECN_MASK, IP_ECN_CE);
}

/* Message numbers times M wrap in the 24 bits of the virtual connection's PSN. */
static void virtual_wrap(void **state)
{
	const uint32_t first = 0x3ffffe;

	(void)state;
	nf_stop(&f);
	nf_root(&f, 2);
	f.spec.first_msg = first;
	nf_start(&f);
	for (uint32_t msg = first; msg < first + 6; msg++)
		for (unsigned o = 0; o < NF_M; o++) {
			nf_put(&f, 0, msg, o, 1);
			nf_put(&f, 1, msg, o, 2);
			assert_int_equal(from_switch(msg, o, 3), NR_DROP_DONE);
			expect_virtual(2, msg, o, 2, 6);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(leaf_up_and_down, leaf, stop),
		cmocka_unit_test_setup_teardown(leaf_asks_again, leaf, stop),
		cmocka_unit_test_setup_teardown(leaf_early_and_late, leaf, stop),
		cmocka_unit_test_setup_teardown(root_sums, root, stop),
		cmocka_unit_test_setup_teardown(root_refuses, root, stop),
		cmocka_unit_test_setup_teardown(mark_passes, root, stop),
		cmocka_unit_test_setup_teardown(virtual_wrap, root, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
