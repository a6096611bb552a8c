/* SPDX-License-Identifier: BSD-3-Clause */
/* The network that incline-train trains, and what its programs parse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/mlp.h"
#include "apps/rank.h"

static struct mlp_sample sample(unsigned label)
{
	struct mlp_sample s = {.label = label};

	for (unsigned i = 0; i < MLP_IN; i++)
		s.pixel[i] = (float)(i * 5 % 17) / 16;
	return s;
}

/* The gradient is the slope of the loss, by every kind of parameter. */
static void gradient_is_the_slope(void **state)
{
	static const unsigned at[] = {MLP_W1 + 7, MLP_W1 + 64 * 77 + 13, MLP_B1 + 3, MLP_B1 + 100,
		MLP_W2 + 5, MLP_W2 + 128 * 9 + 127, MLP_B2, MLP_B2 + 4};
	const struct mlp_sample s = sample(4);
	const float h = 1e-2f;
	static float grad[MLP_GRAD], up[MLP_GRAD], down[MLP_GRAD];
	static struct mlp net;

	(void)state;
	mlp_init(&net, 3);
	mlp_backward(&net, &s, grad);
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
		const float keep = net.param[at[i]];
		float slope;

		memset(up, 0, sizeof(up));
		memset(down, 0, sizeof(down));
		net.param[at[i]] = keep + h;
		mlp_backward(&net, &s, up);
		net.param[at[i]] = keep - h;
		mlp_backward(&net, &s, down);
		net.param[at[i]] = keep;
		slope = (up[MLP_LOSS] - down[MLP_LOSS]) / (2 * h);
		if (!(fabsf(slope - grad[at[i]]) < 2e-3f))
			fail_msg("parameter %u: %g, slope %g", at[i], (double)grad[at[i]],
				(double)slope);
	}
}

static void learns(void **state)
{
	const struct mlp_sample a = sample(2);
	static float grad[MLP_GRAD];
	static struct mlp net;
	float first = 0;

	(void)state;
	mlp_init(&net, 1);
	for (int i = 0; i < 50; i++) {
		memset(grad, 0, sizeof(grad));
		mlp_backward(&net, &a, grad);
		if (i == 0)
			first = grad[MLP_LOSS];
		mlp_step(&net, grad, 1, 0.05f, 0.5f);
	}
	assert_true(grad[MLP_LOSS] < first / 10);
	assert_int_equal(mlp_classify(&net, &a), 2);
}

static void seeds_matter(void **state)
{
	static struct mlp a, b;

	(void)state;
	mlp_init(&a, 1);
	mlp_init(&b, 1);
	assert_memory_equal(&a, &b, sizeof(a));
	mlp_init(&b, 2);
	assert_memory_not_equal(&a, &b, sizeof(a));
}

static void digits(void **state)
{
	struct mlp_sample *s;
	char err[256];
	float sum = 0;

	(void)state;
	assert_int_equal(mlp_load(TEST_DATA "/digits.csv.gz", &s, err, sizeof(err)), 1797);
	for (unsigned i = 0; i < MLP_IN; i++)
		sum += s[0].pixel[i];
	assert_true(sum == 294.0f / 16);
	assert_int_equal(s[0].label, 0);
	assert_int_equal(s[1796].label, 8);
	free(s);
}

static void bad_data(void **state)
{
	static const char *const bad[] = {"1,2,3\n", "x\n", "", "\n"};
	struct mlp_sample *s;
	char err[256];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char path[] = "/tmp/ccl-digits-XXXXXX";
		const int fd = mkstemp(path);

		assert_int_equal(write(fd, bad[i], strlen(bad[i])), strlen(bad[i]));
		close(fd);
		assert_int_equal(mlp_load(path, &s, err, sizeof(err)), -EINVAL);
		assert_non_null(strstr(err, path));
		unlink(path);
	}
	assert_int_equal(mlp_load("/no/such/file", &s, err, sizeof(err)), -ENOENT);
}

static void sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {{"4", 4}, {"4K", 4096}, {"4k", 4096}, {"1.5M", 3 << 19}, {"2G", 2ull << 30},
		{"64KB", 65536}, {"1T", 1ull << 40}};
	static const char *const bad[] = {"", "K", "4X", "4KK", "-4", "4 K", "nan", "1e30"};
	uint64_t n;
	long v;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_true(rank_parse_size(good[i].text, &n));
		assert_int_equal(n, good[i].bytes);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(rank_parse_size(bad[i], &n));
	assert_true(rank_parse_int("17", 1, 17, &v));
	assert_int_equal(v, 17);
	assert_false(rank_parse_int("18", 1, 17, &v));
	assert_false(rank_parse_int("1x", 1, 17, &v));
	assert_false(rank_parse_int("", 0, 17, &v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gradient_is_the_slope),
		cmocka_unit_test(learns),
		cmocka_unit_test(seeds_matter),
		cmocka_unit_test(digits),
		cmocka_unit_test(bad_data),
		cmocka_unit_test(sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
