/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings as they are asked for. */
#include "tests/unit/netreduce/fixture.h"

#include <errno.h>
#include <string.h>

static struct nf f;

static void refused(const char *text)
{
	char err[NR_ERR_LEN] = "";

	assert_int_equal(nr_check(&f.spec, err), -EINVAL);
	if (strstr(err, text) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err, text);
}

static void refusals(void **state)
{
	(void)state;
#define REFUSED(make, change, text) \
	do {                        \
		make;               \
		change;             \
		refused(text);      \
	} while (0)
	REFUSED(nf_star(&f, 3), f.spec.name[0] = 0, "name");
	REFUSED(nf_star(&f, 3), f.spec.mtu = 1000, "mtu: 1000");
	REFUSED(nf_star(&f, 3), f.spec.m = 1025, "M: 1025");
	REFUSED(nf_star(&f, 3), f.spec.w = 0, "W: 0");
	REFUSED(nf_star(&f, 3), f.spec.n_ranks = 1, "ranks: 1");
	REFUSED(nf_star(&f, 3), f.spec.n_in = 0, "flows, leaves: 0");
	REFUSED(nf_star(&f, 3), f.spec.n_in = 64, "flows, leaves: 64");
	REFUSED(nf_star(&f, 3), f.ranks[1][0] = 3, "ranks: 3, must be below 3");
	REFUSED(nf_star(&f, 3), f.ranks[1][0] = 2, "2 is named twice");
	REFUSED(nf_star(&f, 3), f.in[1].key.dst = f.in[1].key.src, "the same host");
	REFUSED(nf_star(&f, 3), f.in[1].psn_known = (f.in[1].psn = 1 << 24), "psn");
	REFUSED(nf_star(&f, 3), f.in[1].reply_qpn = 1 << 24, "QPN");
	REFUSED(nf_star(&f, 3), f.in[1].n_ranks = 2, "a host is one rank");
	REFUSED(nf_leaf(&f, 2), f.spec.n_ranks = 2, "nobody above");
	REFUSED(nf_leaf(&f, 2), f.spec.parent_qpn = 1 << 24, "parent.qpn");
	REFUSED(nf_root(&f, 2), f.in[2].n_ranks = 0, "one without ranks");
	REFUSED(nf_root(&f, 2), f.in[2].n_ranks = 1, "1 of 4 ranks are missing");
	REFUSED(nf_root(&f, 2), f.in[2].remote_qpn = 1 << 24, "qpn");
	REFUSED(nf_root(&f, 2), memset(&f.in[2].remote_ip, 0, 16), "leaves");
}

/* Sums are in order of ranks, whatever order the inputs were listed in. */
static void sorted(void **state)
{
	struct nr_in_spec swap;

	(void)state;
	nf_root(&f, 2);
	swap = f.in[0];
	f.in[0] = f.in[2];
	f.in[2] = swap;
	nf_start(&f);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(nr_in_at(f.ring, i)->min_rank, i);
	assert_int_equal(nr_rank_in(f.ring)[3], 2);
	assert_int_equal(f.n_rows, 5); /* two hosts both ways, one switch */
	nf_stop(&f);
}

static void activation(void **state)
{
	char err[NR_ERR_LEN];

	(void)state;
	nf_root(&f, 2);
	nf_start(&f);
	nr_in_at(f.ring, 2)->remote_qpn = 0;
	assert_int_equal(nr_activate(f.ring, err), -EINVAL);
	assert_non_null(strstr(err, "rank 2"));
	nf_stop(&f);
	nf_leaf(&f, 2);
	nf_start(&f);
	f.ring->parent_qpn = 0;
	assert_int_equal(nr_activate(f.ring, err), -EINVAL);
	nf_stop(&f);
}

/* Windows that are no power of two get the slots of the next one. */
static void slots(void **state)
{
	static const uint16_t want[][2] = {{1, 2}, {2, 4}, {3, 8}, {5, 16}, {8, 16}};

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		nf_star(&f, 2);
		f.spec.w = want[i][0];
		nf_start(&f);
		assert_int_equal(f.ring->n_msgs, want[i][1]);
		nf_stop(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(refusals), cmocka_unit_test(sorted),
		cmocka_unit_test(activation), cmocka_unit_test(slots)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
