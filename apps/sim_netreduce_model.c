/* SPDX-License-Identifier: BSD-3-Clause */
/* NetReduce, section 3.4 and appendix A. */
#include <math.h>
#include <stdio.h>

#include "apps/sim_models.h"
#include "lib/sim/ring_cost.h"

static const double B_INTER = 12.5e9, SIZE = 100e6, ALPHA = 1e-6;

struct three {
	struct ring_cost flat, tencent, parallel;
};

static struct three three(const struct ring_cost_setting *s)
{
	return (struct three){ring_cost_flat(s), ring_cost_tencent(s), ring_cost_parallel(s)};
}

/* A size in MB, "never": the latter is faster whatever the size. */
static json_t *crossing(double bytes, char text[16])
{
	if (isnan(bytes)) {
		snprintf(text, 16, "never");
		return json_null();
	}
	snprintf(text, 16, "%.2f", bytes / 1e6);
	return json_real(bytes);
}

static void setting(json_t *rows, const struct ring_cost_setting *s)
{
	const struct three t = three(s);
	const double fr = ring_cost_seconds(t.flat, s, SIZE) * 1e3,
		     ta = ring_cost_seconds(t.tencent, s, SIZE) * 1e3,
		     pn = ring_cost_seconds(t.parallel, s, SIZE) * 1e3;
	char text[16];
	json_t *from = crossing(ring_cost_crossing(t.flat, t.parallel, s), text);

	printf("%8.2f %6u %8.1f %10.3f %10.3f %10.3f %14s\n", s->b_intra / 1e9, s->p,
		s->alpha * 1e6, fr, ta, pn, text);
	json_array_append_new(
		rows, json_pack("{s:f,s:i,s:f,s:f,s:f,s:f,s:o}", "b_intra_gbytes", s->b_intra / 1e9,
			      "p", (int)s->p, "alpha_us", s->alpha * 1e6, "flat_ms", fr,
			      "tencent_ms", ta, "parallel_ms", pn, "flat_wins_above_bytes", from));
}

static json_t *figure(void)
{
	static const double intra[] = {15.75, 25, 50, 100}, alpha[] = {0.1, 1, 10, 100};
	static const unsigned p[] = {32, 64, 128, 256, 512, 1024};
	struct ring_cost_setting s = {8, 32, ALPHA, 0, B_INTER};
	json_t *rows = json_array();

	printf("NetReduce figure 7: n = 8, B_inter = 12.5 GB/s, 100 MB; times in ms\n"
	       "%8s %6s %8s %10s %10s %10s %14s\n",
		"B_intra", "P", "alpha", "flat ring", "Tencent", "parallel", "flat wins from");
	printf("%8s %6s %8s %10s %10s %10s %14s\n", "GB/s", "", "us", "", "", "", "MB");
	for (unsigned i = 0; i < sizeof(intra) / sizeof(intra[0]); i++) {
		s.b_intra = intra[i] * 1e9;
		setting(rows, &s);
	}
	s.b_intra = 15.75e9;
	for (unsigned i = 1; i < sizeof(p) / sizeof(p[0]); i++) {
		s.p = p[i];
		setting(rows, &s);
	}
	s.p = 32;
	for (unsigned i = 0; i < sizeof(alpha) / sizeof(alpha[0]); i++) {
		s.alpha = alpha[i] * 1e-6;
		setting(rows, &s);
	}
	return rows;
}

static void say(json_t *rows, const char *what, double ours, const char *paper)
{
	printf("  %-68s %8.2f   paper: %s\n", what, ours, paper);
	json_array_append_new(
		rows, json_pack("{s:s,s:f,s:s}", "what", what, "ours", ours, "paper", paper));
}

static json_t *statements(void)
{
	const struct ring_cost_setting nvlink = {8, 32, ALPHA, 150e9, B_INTER},
				       pcie = {8, 32, ALPHA, 15.75e9, B_INTER},
				       pcie_1024 = {8, 1024, ALPHA, 15.75e9, B_INTER};
	const struct three t = three(&nvlink), slow = three(&pcie), many = three(&pcie_1024);
	const struct ring_cost d = ring_cost_minus(
		ring_cost_tencent(&(struct ring_cost_setting){16, 48, ALPHA, 150e9, B_INTER}),
		ring_cost_parallel(&(struct ring_cost_setting){16, 48, ALPHA, 150e9, B_INTER}));
	json_t *rows = json_array();

	printf("what the paper says, and what its formulas give (P = 32, n = 8 where not said)\n");
	say(rows, "(6): B_intra/B_inter that is enough against the flat ring", ring_cost_enough(32),
		"2.3 (section 7)");
	say(rows, "(5): the ratio that is needed", ring_cost_needed(8, 32), "-");
	say(rows, "the same as B_intra, GB/s", ring_cost_needed(8, 32) * 12.5,
		"15.75 (figure 7: parallel always faster)");
	say(rows, "and with P = 1024", ring_cost_needed(8, 1024) * 12.5, "15.75");
	say(rows, "at 15.75 GB/s the flat ring is faster from, MB",
		ring_cost_crossing(slow.flat, slow.parallel, &pcie) / 1e6, "never");
	say(rows, "and with P = 1024",
		ring_cost_crossing(many.flat, many.parallel, &pcie_1024) / 1e6, "never");
	say(rows, "(4): hops that Tencent's has more, P = 3n, n = 16", d.hops,
		"above 0 for P > 3n");
	say(rows, "B_intra/B_inter below which flat beats Tencent's at large sizes",
		ring_cost_hierarchy(8, 32), "it does with 12");
	say(rows, "Tencent's at 150 GB/s, 1 GB, as a part of the flat ring's time",
		ring_cost_seconds(t.tencent, &nvlink, 1e9) /
			ring_cost_seconds(t.flat, &nvlink, 1e9),
		"above 1");
	say(rows, "hops of parallel NetReduce, which alpha multiplies", slow.parallel.hops,
		"does not vary with alpha");
	return rows;
}

void sim_netreduce_model(json_t *result)
{
	json_object_set_new(result, "figure_7", figure());
	json_object_set_new(result, "statements", statements());
}
