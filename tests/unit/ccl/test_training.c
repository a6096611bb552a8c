/* SPDX-License-Identifier: BSD-3-Clause */
/* The networks that incline-train trains, a rank's part of it, and what its programs parse. */
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

#include "apps/rank.h"
#include "apps/trainer.h"

enum { MAX_PARAMS = 10000, RANKS = 3, DIGITS = 50 };

static const char *const names[] = {"mlp", "cnn"};

static struct digit sample(unsigned label)
{
	struct digit s = {.label = label};

	for (unsigned i = 0; i < DIGIT_PIXELS; i++)
		s.pixel[i] = (float)(i * (5 + label) % 17) / 16;
	return s;
}

static float loss_of(const struct model *m, const float *param, const struct digit *s)
{
	static float grad[MAX_PARAMS];

	memset(grad, 0, sizeof(grad));
	model_backward(m, param, s, grad);
	return grad[model_params(m)];
}

/* The gradient is the slope of the loss, by parameters of every layer, weights and biases. */
static void gradient_is_the_slope(void **state)
{
	const struct digit s = sample(4);
	const float h = 5e-4f; /* a larger one comes past where a ReLU bends */
	static float grad[MAX_PARAMS], param[MAX_PARAMS];

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		const struct model *m = model_find(names[k]);
		const unsigned n = model_params(m);

		assert_true(n < MAX_PARAMS);
		model_init(m, param, 3);
		memset(grad, 0, sizeof(grad));
		model_backward(m, param, &s, grad);
		for (unsigned i = 0; i < n; i += i < 200 || i > n - 20 ? 1 : 7) {
			const float keep = param[i];
			float up, slope;

			param[i] = keep + h;
			up = loss_of(m, param, &s);
			param[i] = keep - h;
			slope = (up - loss_of(m, param, &s)) / (2 * h);
			param[i] = keep;
			if (!(fabsf(slope - grad[i]) < 3e-3f + 0.01f * fabsf(slope)))
				fail_msg("%s, parameter %u: %g, slope %g", m->name, i,
					(double)grad[i], (double)slope);
		}
	}
}

/* One pixel that comes out, of the picture's corner: of its window four pixels are in the picture.
 */
static void window_of_a_convolution(void **state)
{
	const struct model corner = {"corner", "", 1,
		{{.conv = true, .from = 1, .to = DIGIT_CLASSES, .side = 8, .stride = 8}}};
	static const struct {
		unsigned tap, pixel;
	} in[] = {{4, 0}, {5, 1}, {7, 8}, {8, 9}};
	float param[DIGIT_CLASSES * 10];

	(void)state;
	assert_int_equal(model_params(&corner), DIGIT_CLASSES * 10);
	for (unsigned i = 0; i < 4; i++) {
		struct digit s = {.label = 0};

		memset(param, 0, sizeof(param));
		param[5 * 9 + 0] = 100; /* outside */
		param[3 * 9 + in[i].tap] = 1;
		assert_int_equal(model_classify(&corner, param, &s), 0);
		s.pixel[in[i].pixel] = 1;
		assert_int_equal(model_classify(&corner, param, &s), 3);
	}
}

static void learns(void **state)
{
	const struct digit a = sample(2), b = sample(7);
	static float grad[MAX_PARAMS], param[MAX_PARAMS];

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		const struct model *m = model_find(names[k]);
		const unsigned n = model_params(m);
		float first = 0;

		model_init(m, param, 1);
		for (int i = 0; i < 60; i++) {
			memset(grad, 0, sizeof(grad));
			model_backward(m, param, &a, grad);
			model_backward(m, param, &b, grad);
			if (i == 0)
				first = grad[n];
			for (unsigned j = 0; j < n; j++)
				param[j] -= 0.05f * grad[j];
		}
		assert_true(grad[n] < first / 10);
		assert_int_equal(model_classify(m, param, &a), 2);
		assert_int_equal(model_classify(m, param, &b), 7);
	}
	assert_null(model_find("gpt"));
}

static void seeds_matter(void **state)
{
	static float a[MAX_PARAMS], b[MAX_PARAMS];

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		const struct model *m = model_find(names[k]);

		model_init(m, a, 1);
		model_init(m, b, 1);
		assert_memory_equal(a, b, model_params(m) * sizeof(*a));
		model_init(m, b, 2);
		assert_memory_not_equal(a, b, model_params(m) * sizeof(*a));
	}
}

/* ---- a rank's part ---- */

static void open_ranks(struct trainer *t, const char *model, bool sharded, bool fixed)
{
	struct digit digit[DIGITS];

	for (unsigned i = 0; i < DIGITS; i++)
		digit[i] = sample(i % DIGIT_CLASSES);
	for (unsigned r = 0; r < RANKS; r++) {
		const struct trainer_conf conf = {.model = model_find(model),
			.rank = r,
			.n_ranks = RANKS,
			.sharded = sharded,
			.fixed = fixed,
			.batch = 16,
			.seed = 5,
			.rate = 0.1f,
			.momentum = 0.9f};

		assert_int_equal(trainer_open(&t[r], &conf, digit, DIGITS), 0);
		trainer_begin(&t[r]);
		trainer_epoch(&t[r]);
	}
}

static void close_ranks(struct trainer *t)
{
	for (unsigned r = 0; r < RANKS; r++)
		trainer_close(&t[r]);
}

/* What AllGather does, in memory. */
static void gather(struct trainer *t)
{
	for (unsigned r = 0; t[0].conf.sharded && r < RANKS; r++)
		for (unsigned to = 0; to < RANKS; to++)
			memcpy(t[to].param + r * t[r].block, t[r].own,
				t[r].block * sizeof(*t[r].own));
}

static void step(struct trainer *t, unsigned first)
{
	const unsigned n = trainer_batch(&t[0], first);

	gather(t);
	for (unsigned r = 0; r < RANKS; r++)
		trainer_gradient(&t[r], first, n);
	for (unsigned r = 1; r < RANKS; r++)
		trainer_add(&t[0], t[0].grad, t[r].grad);
	for (unsigned r = 0; r < RANKS; r++)
		trainer_step(&t[r], t[0].grad + (t[0].conf.sharded ? r * t[0].block : 0), n);
}

/* All weights, the losses and their momentum, bit by bit. */
static void shards_make_the_same_steps(void **state)
{
	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		struct trainer data[RANKS], shard[RANKS];

		open_ranks(data, names[k % 2], false, k < 2);
		open_ranks(shard, names[k % 2], true, k < 2);
		for (unsigned first = 0; first < data[0].n_train; first += 16) {
			step(data, first);
			step(shard, first);
		}
		gather(shard);
		for (unsigned r = 0; r < RANKS; r++) {
			assert_int_equal(data[r].steps, 3);
			assert_int_equal(shard[r].steps, 3);
			assert_memory_equal(data[r].param, data[0].param,
				data[0].n_sum * sizeof(*data[0].param));
			assert_memory_equal(shard[r].param, data[0].param,
				data[0].n_sum * sizeof(*data[0].param));
			assert_int_equal(trainer_checksum(&shard[r]), trainer_checksum(&data[0]));
		}
		assert_true(trainer_loss(&shard[1]) > 0.1 && trainer_loss(&shard[1]) < 5);
		close_ranks(data);
		close_ranks(shard);
	}
}

/* A step without AllGather computes with what is not there. */
static void others_weights_are_forgotten(void **state)
{
	struct trainer t[RANKS];

	(void)state;
	open_ranks(t, "mlp", true, false);
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned r = 0; r < RANKS; r++)
			for (unsigned k = 0; k < RANKS * t[r].block; k++)
				assert_true(isnan(t[r].param[k]));
		step(t, 0);
	}
	close_ranks(t);
}

/* However large, the sum over all ranks is within the type. */
static void what_is_too_large_is_cut(void **state)
{
	struct trainer t[RANKS];
	bool at_the_end = false;

	(void)state;
	open_ranks(t, "mlp", false, true);
	for (unsigned i = 0; i < t[0].n_params; i++)
		t[0].param[i] *= i % 2 ? 1e9f : -1e9f;
	trainer_gradient(&t[0], 0, 16);
	for (unsigned i = 0; i < t[0].n_sum; i++) {
		assert_in_range(abs(t[0].grad[i].fixed), 0, INT32_MAX / RANKS);
		at_the_end |= abs(t[0].grad[i].fixed) == INT32_MAX / RANKS;
	}
	assert_true(at_the_end);
	close_ranks(t);
}

static void digits(void **state)
{
	struct digit *s;
	char err[256];
	float sum = 0;

	(void)state;
	assert_int_equal(digits_load(TEST_DATA "/digits.csv.gz", &s, err, sizeof(err)), 1797);
	for (unsigned i = 0; i < DIGIT_PIXELS; i++)
		sum += s[0].pixel[i];
	assert_true(sum == 294.0f / 16);
	assert_int_equal(s[0].label, 0);
	assert_int_equal(s[1796].label, 8);
	free(s);
}

static void bad_data(void **state)
{
	static const struct {
		unsigned good; /* lines before it */
		const char *rest, *said;
	} bad[] = {{0, "1,2,3\n", ":1: not 64 pixels 0..16 and a label 0..9"},
		{0, "x\n", ":1: not 64"}, {0, "\n", ":1: not 64"},
		{0, "", ": 0 digits, at least 2"}, {0, "1,2,3", ":1: not 64"},
		{2, "1,2,3", ":3: not 64"}, /* cut off */
		{1, "", ": 1 digits, at least 2 are needed"}};
	struct digit *s;
	char err[256];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		char path[] = "/tmp/ccl-digits-XXXXXX";
		FILE *f = fdopen(mkstemp(path), "w");

		for (unsigned k = 0; k < bad[i].good * (DIGIT_PIXELS + 1); k++)
			fprintf(f, k % (DIGIT_PIXELS + 1) < DIGIT_PIXELS ? "0," : "7\n");
		fprintf(f, "%s", bad[i].rest);
		fclose(f);
		assert_int_equal(digits_load(path, &s, err, sizeof(err)), -EINVAL);
		assert_ptr_equal(strstr(err, path), err);
		assert_ptr_equal(strstr(err, bad[i].said), err + strlen(path));
		unlink(path);
	}
	assert_int_equal(digits_load("/no/such/file", &s, err, sizeof(err)), -ENOENT);
}

static void cut_off(void **state)
{
	char path[] = "/tmp/ccl-digits-XXXXXX", part[3000], err[256];
	FILE *from = fopen(TEST_DATA "/digits.csv.gz", "r"), *to = fdopen(mkstemp(path), "w");
	struct digit *s;

	(void)state;
	assert_int_equal(fread(part, sizeof(part), 1, from), 1);
	assert_int_equal(fwrite(part, sizeof(part), 1, to), 1);
	fclose(from);
	fclose(to);
	assert_int_equal(digits_load(path, &s, err, sizeof(err)), -EINVAL);
	assert_non_null(strstr(err, ": damaged"));
	unlink(path);
}

/* One digit to train with and one to test are enough. */
static void few_digits(void **state)
{
	const struct trainer_conf conf = {.model = model_find("mlp"), .n_ranks = 1, .batch = 1};
	const struct digit digit[DIGITS_MIN] = {sample(1), sample(2)};
	struct trainer t;

	(void)state;
	assert_int_equal(trainer_open(&t, &conf, digit, 1), -EINVAL);
	assert_int_equal(trainer_open(&t, &conf, digit, 2), 0);
	trainer_begin(&t);
	trainer_epoch(&t);
	assert_int_equal(trainer_batch(&t, 0), 1);
	trainer_close(&t);
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
		cmocka_unit_test(window_of_a_convolution),
		cmocka_unit_test(learns),
		cmocka_unit_test(seeds_matter),
		cmocka_unit_test(shards_make_the_same_steps),
		cmocka_unit_test(others_weights_are_forgotten),
		cmocka_unit_test(what_is_too_large_is_cut),
		cmocka_unit_test(digits),
		cmocka_unit_test(bad_data),
		cmocka_unit_test(cut_off),
		cmocka_unit_test(few_digits),
		cmocka_unit_test(sizes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
