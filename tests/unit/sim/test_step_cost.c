/* SPDX-License-Identifier: BSD-3-Clause */
/* The step model: its parts written once more with the figures of EPIC's table 33, and that with
 * the rates of the paper's own network (table 25 at 1 GB) it gives the paper's table 34. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/sim/step_cost.h"

static const struct step_cost_setting gpt_175b = {
	125e12, 96, 12288, 175e9, 2048, 1536, 2, 4, 32, 8, 131.4e9};
static const struct step_cost_setting llama_65b = {
	312e12, 80, 8192, 65e9, 4096, 128, 2, 8, 16, 1, 131.4e9};

static void same(double a, double b)
{
	assert_true(fabs(a - b) <= 1e-9 * fabs(b));
}

static void parts(void **state)
{
	const struct step_cost l = step_cost_of(&llama_65b), g = step_cost_of(&gpt_175b);

	(void)state;
	/* 65e9 parameters, 128 sequences of 4096 tokens, 128 GPUs. */
	same(l.compute, 6 * 65e9 * 128 * 4096 / 128 / 312e12);
	/* 8 sequences, 4 times 80 AllReduces, of which a ring of 8 sends 7/4. */
	same(step_cost_activations(&llama_65b), 8.0 * 4096 * 8192 * 2);
	same(l.tensor, 320 * 1.75 * step_cost_activations(&llama_65b) / 131.4e9);
	assert_true(l.bubble == 0);
	same(l.data_bytes, 65e9 / 8 * 2);
	/* 1024 GPUs; a stage has 12 layers and waits for 7 of 48 micro-batches. */
	same(g.compute, 6 * 175e9 * 1536 * 2048 / 1024 / 125e12);
	same(g.tensor, 48 * 1.5 * (48.0 * 2048 * 12288 * 2) / 131.4e9);
	same(g.bubble, (g.compute + g.tensor) * 7 / 48);
	same(g.data_bytes, 175e9 / 32 * 2);
	same(step_cost_seconds(&g, 1.5), g.compute + g.tensor + g.bubble + 1.5);
}

/* At 91.5 Gb/s a link, a ring of n ranks sends 2 (n - 1) / n of the vector, EPIC once. */
static void the_papers_network(void **state)
{
	static const struct {
		struct step_cost_setting s;
		double epic, ring;
	} row[] = {
		{{125e12, 96, 12288, 175e9, 2048, 1536, 2, 4, 32, 8, 131.4e9}, 32.35, 33.19},
		{{312e12, 40, 5120, 13e9, 2048, 128, 2, 8, 16, 1, 131.4e9}, 1.154, 1.403},
		{{312e12, 80, 8192, 65e9, 4096, 128, 2, 8, 16, 1, 131.4e9}, 8.831, 10.08},
		{{312e12, 32, 4096, 6.7e9, 4096, 128, 2, 8, 16, 1, 131.4e9}, 1.132, 1.261},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const struct step_cost c = step_cost_of(&row[i].s);
		const double once = c.data_bytes * 8 / 91.5e9, n = row[i].s.dp;
		const double epic = step_cost_seconds(&c, once),
			     ring = step_cost_seconds(&c, once * 2 * (n - 1) / n);

		if (fabs(epic / row[i].epic - 1) > 0.015 || fabs(ring / row[i].ring - 1) > 0.015)
			fail_msg("row %zu: %g and %g, the paper has %g and %g", i, epic, ring,
				row[i].epic, row[i].ring);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts),
		cmocka_unit_test(the_papers_network),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
