/* SPDX-License-Identifier: BSD-3-Clause */
/* Data-parallel training whose gradients are summed in the network: every rank computes the
 * gradient of its share of each batch, one AllReduce adds them, every rank makes the same step.
 * Afterwards rank 0 trains the same network alone, adding the shares in the order in which the
 * switches do, and compares every weight. */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "apps/mlp.h"
#include "apps/rank.h"
#include "lib/ccl/group.h"

enum { REJOIN_MS = 30000 };

struct options {
	const char *data, *json;
	long epochs, batch, seed, again;
	double rate, momentum;
};

struct training {
	struct rank rank;
	struct options opt;
	unsigned n_ranks;
	struct mlp_sample *sample;
	unsigned n_train, n_test; /* training samples come first */
	unsigned *order;          /* of the training samples in this epoch */
	struct mlp net;
	json_t *history;
	float max_diff;
	bool same; /* all ranks ended with the same weights */
	double accuracy, seconds;
	unsigned steps, rejoined;
	float last[MLP_GRAD]; /* what the last step went by */
};

/* Adds up one batch's gradients: in the network, or here in the network's order. */
typedef int (*sum_fn)(struct training *t, unsigned first, unsigned n, float grad[MLP_GRAD]);

static const char usage[] =
	"Usage: incline-train --group FILE --rank N [options]\n"
	"Trains an MLP 64-128-10 on all ranks of a group; gradients are summed in the network.\n"
	"      --group FILE   group file (INCLINE_GROUP)\n"
	"      --rank N       own rank (INCLINE_RANK, or as Open MPI, MPICH, PMIx, torchrun,\n"
	"                     Slurm set it)\n"
	"      --data FILE    gzipped CSV of digits (tests/data/digits.csv.gz)\n"
	"      --epochs N     (20)          --batch N      samples per step, all ranks together "
	"(128)\n"
	"      --rate X       (0.1)         --momentum X   (0.9)\n"
	"      --seed N       of weights and shuffles (1)\n"
	"      --again N      after a failure join again, up to N times, and go on (0)\n"
	"      --timeout MS   without any progress (group file)\n"
	"      --json FILE    results as JSON (rank 0)\n"
	"  -h, --help         this text     -V, --version\n"
	"Rank 0 then repeats the training in one process, adding in the switches' order. With a "
	"group whose\n"
	"flag \"reproducible\" is set, every weight must be bit-identical.\n"
	"Exit status: 0 if that and the ranks' agreement were verified, 1 if not or on failure, 2 "
	"usage.\n";

static bool parse_one(struct training *t, int c, const char *arg)
{
	struct options *o = &t->opt;

	switch (c) {
	case 'g':
		t->rank.group_file = arg;
		return true;
	case 'D':
		o->data = arg;
		return true;
	case 'j':
		o->json = arg;
		return true;
	case 'e':
		return rank_parse_int(arg, 1, 10000, &o->epochs);
	case 'b':
		return rank_parse_int(arg, 1, 100000, &o->batch);
	case 'a':
		return rank_parse_int(arg, 0, 1000, &o->again);
	case 's':
		return rank_parse_int(arg, 0, 1l << 60, &o->seed);
	case 'l':
		o->rate = strtod(arg, NULL);
		return o->rate > 0;
	case 'm':
		o->momentum = strtod(arg, NULL);
		return o->momentum >= 0 && o->momentum < 1;
	case 'r':
		return rank_parse_number(&t->rank, arg);
	case 't':
		return rank_parse_timeout(&t->rank, arg);
	default:
		return false;
	}
}

/* 0: go on; else the exit status + 1. */
static int parse(struct training *t, int argc, char **argv)
{
	static const struct option longs[] = {{"group", 1, NULL, 'g'}, {"rank", 1, NULL, 'r'},
		{"data", 1, NULL, 'D'}, {"epochs", 1, NULL, 'e'}, {"batch", 1, NULL, 'b'},
		{"rate", 1, NULL, 'l'}, {"momentum", 1, NULL, 'm'}, {"seed", 1, NULL, 's'},
		{"timeout", 1, NULL, 't'}, {"again", 1, NULL, 'a'}, {"json", 1, NULL, 'j'},
		{"help", 0, NULL, 'h'}, {"version", 0, NULL, 'V'}, {0}};
	int c;

	t->opt = (struct options){.data = "tests/data/digits.csv.gz",
		.epochs = 20,
		.batch = 128,
		.seed = 1,
		.rate = 0.1,
		.momentum = 0.9};
	while ((c = getopt_long(argc, argv, "hV", longs, NULL)) != -1) {
		if (c == 'h' || c == 'V') {
			fputs(c == 'h' ? usage : "incline-train " INCLINE_VERSION "\n", stdout);
			return 1;
		}
		if (c != '?' && parse_one(t, c, optarg))
			continue;
		if (c != '?')
			fprintf(stderr, "incline-train: \"%s\" is not valid; see --help\n", optarg);
		return 3;
	}
	if (optind == argc)
		return 0;
	fprintf(stderr, "incline-train: \"%s\" is not valid; see --help\n", argv[optind]);
	return 3;
}

/* ---- data ---- */

/* Four fifths for training, by a seeded shuffle that is the same on every rank. */
static int load(struct training *t)
{
	uint64_t rng = (uint64_t)t->opt.seed;
	char err[256];
	const int n = mlp_load(t->opt.data, &t->sample, err, sizeof(err));

	if (n < 0) {
		fprintf(stderr, "incline-train: %s\n", err);
		return 1;
	}
	for (unsigned i = (unsigned)n - 1; i > 0; i--) {
		const unsigned j = (unsigned)(mlp_random(&rng) % (i + 1));
		const struct mlp_sample swap = t->sample[i];

		t->sample[i] = t->sample[j];
		t->sample[j] = swap;
	}
	t->n_train = (unsigned)n * 4 / 5;
	t->n_test = (unsigned)n - t->n_train;
	t->order = calloc(t->n_train + 1, sizeof(*t->order));
	return t->order ? 0 : 1;
}

static void shuffle(struct training *t, uint64_t *rng)
{
	for (unsigned i = 0; i < t->n_train; i++)
		t->order[i] = i;
	for (unsigned i = t->n_train - 1; i > 0; i--) {
		const unsigned j = (unsigned)(mlp_random(rng) % (i + 1)), swap = t->order[i];

		t->order[i] = t->order[j];
		t->order[j] = swap;
	}
}

static double test_accuracy(const struct training *t)
{
	unsigned right = 0;

	for (unsigned i = t->n_train; i < t->n_train + t->n_test; i++)
		right += mlp_classify(&t->net, &t->sample[i]) == t->sample[i].label;
	return (double)right / t->n_test;
}

/* ---- gradients ---- */

/* The share of a rank: every n_ranks-th sample of the batch. */
static void share(const struct training *t, unsigned rank, unsigned first, unsigned n, float *grad)
{
	memset(grad, 0, MLP_GRAD * sizeof(*grad));
	for (unsigned i = rank; i < n; i += t->n_ranks)
		mlp_backward(&t->net, &t->sample[t->order[first + i]], grad);
}

/* Some ranks may have got the sum that the others have missed, as bits: those get it from the first
 * that has it, added to zeros. 1: this rank has; 0: it need not; else an error. */
static int catch_up(struct training *t, float grad[MLP_GRAD])
{
	uint64_t step[CCL_MAX_RANKS], most = 0;
	unsigned from = 0;
	int rc = rank_gather(&t->rank, t->steps, step);

	for (unsigned r = 0; r < t->n_ranks && !rc; r++)
		if (step[r] > most) {
			most = step[r];
			from = r;
		}
	for (unsigned r = 0; r < t->n_ranks && !rc; r++)
		if (step[r] < most) {
			if ((unsigned)t->rank.number == from)
				memcpy(grad, t->last, sizeof(t->last));
			else
				memset(grad, 0, sizeof(t->last));
			rc = rank_allreduce(&t->rank, grad, grad, MLP_GRAD, REDUCE_INT32);
			break;
		}
	return rc ? rc : t->steps < most;
}

/* After a failure: 1: the sum has come from a rank that had it; 0: it is to be done again. */
static int go_on(struct training *t, int rc, float grad[MLP_GRAD])
{
	while (rc < 0 && rc != -EINTR && t->opt.again-- > 0) {
		if (rank_rejoin(&t->rank, REJOIN_MS))
			return rc;
		t->rejoined++;
		rc = catch_up(t, grad);
	}
	return rc;
}

static int sum_in_network(struct training *t, unsigned first, unsigned n, float grad[MLP_GRAD])
{
	bool again;
	int rc;

	do {
		share(t, (unsigned)t->rank.number, first, n, grad);
		rc = rank_allreduce(&t->rank, grad, grad, MLP_GRAD, REDUCE_FP32);
		again = rc && (rc = go_on(t, rc, grad)) == 0;
	} while (again);
	if (rc < 0)
		return rc;
	memcpy(t->last, grad, sizeof(t->last));
	return 0;
}

/* A switch adds its children in ascending order of their lowest rank, starting from the first; a
 * child switch contributes its own sum. */
static void sum_below(const struct training *t, const struct ccl_switch *sw, unsigned first,
	unsigned n, float *grad)
{
	float part[MLP_GRAD];

	for (unsigned c = 0; c < sw->n_children; c++) {
		const struct ccl_child *child = &sw->child[c];
		float *to = c ? part : grad;

		if (child->host)
			share(t, child->index, first, n, to);
		else
			sum_below(t, &ccl_comm_group(t->rank.comm)->sw[child->index], first, n, to);
		for (unsigned i = 0; c && i < MLP_GRAD; i++)
			grad[i] += part[i];
	}
}

static int sum_alone(struct training *t, unsigned first, unsigned n, float grad[MLP_GRAD])
{
	const struct ccl_group *g = ccl_comm_group(t->rank.comm);

	float part[MLP_GRAD];

	if (g->n_switches) {
		sum_below(t, &g->sw[g->root], first, n, grad);
		return 0;
	}
	/* A ring of the hosts, which adds in another order. */
	share(t, 0, first, n, grad);
	for (unsigned r = 1; r < t->n_ranks; r++) {
		share(t, r, first, n, part);
		for (unsigned i = 0; i < MLP_GRAD; i++)
			grad[i] += part[i];
	}
	return 0;
}

/* ---- training ---- */

static void report(struct training *t, long epoch, double loss)
{
	t->accuracy = test_accuracy(t);
	printf("epoch %3ld  loss %.4f  test accuracy %.2f %%\n", epoch, loss, 100 * t->accuracy);
	fflush(stdout);
	json_array_append_new(t->history, json_pack("{s:i, s:f, s:f}", "epoch", (int)epoch, "loss",
						  loss, "accuracy", t->accuracy));
}

/* meet: a barrier after each epoch, for those who wait for this training to end. */
static int train(struct training *t, sum_fn sum, bool loud, bool meet)
{
	uint64_t rng = (uint64_t)t->opt.seed + 1;
	float grad[MLP_GRAD];

	mlp_init(&t->net, (uint64_t)t->opt.seed + 2);
	t->steps = 0;
	for (long epoch = 1; epoch <= t->opt.epochs; epoch++) {
		double loss = 0;

		shuffle(t, &rng);
		for (unsigned first = 0; first < t->n_train; first += (unsigned)t->opt.batch) {
			const unsigned left = t->n_train - first;
			const unsigned n = left < t->opt.batch ? left : (unsigned)t->opt.batch;
			const int rc = sum(t, first, n, grad);

			if (rc)
				return rc;
			mlp_step(&t->net, grad, n, (float)t->opt.rate, (float)t->opt.momentum);
			loss += (double)grad[MLP_LOSS];
			t->steps++;
		}
		if (loud)
			report(t, epoch, loss / t->n_train);
		if (meet) {
			const int rc = rank_barrier(&t->rank);

			if (rc)
				return rc;
		}
	}
	return 0;
}

/* ---- verifying ---- */

/* Two sums of 16-bit halves of a checksum: equal to n_ranks times the own halves at every rank only
 * if all ranks have the same. */
static int compare_ranks(struct training *t)
{
	const uint32_t crc = (uint32_t)crc32(0, (const void *)t->net.param, sizeof(t->net.param));
	int32_t half[2] = {(int32_t)(crc & 0xffff), (int32_t)(crc >> 16)}, sum[2], differ, all;
	int rc = rank_allreduce(&t->rank, half, sum, 2, REDUCE_INT32);

	if (rc)
		return rc;
	differ = sum[0] != half[0] * (int32_t)t->n_ranks || sum[1] != half[1] * (int32_t)t->n_ranks;
	rc = rank_allreduce(&t->rank, &differ, &all, 1, REDUCE_INT32);
	t->same = all == 0;
	return rc;
}

/* Rank 0 trains alone. The others keep it company at barriers: its work takes as long as all of
 * theirs together, and a collective that waits so long would count as stuck. */
static int compare_alone(struct training *t)
{
	static float param[MLP_PARAMS];
	int rc = 0;

	for (long i = 0; t->rank.number > 0 && i < t->opt.epochs && !rc; i++)
		rc = rank_barrier(&t->rank);
	if (t->rank.number > 0 || rc)
		return rc;
	memcpy(param, t->net.param, sizeof(param));
	rc = train(t, sum_alone, false, true);
	t->max_diff = 0;
	for (unsigned i = 0; i < MLP_PARAMS; i++) {
		const float d = fabsf(param[i] - t->net.param[i]);

		if (isnan(d))
			t->max_diff = INFINITY;
		else if (d > t->max_diff)
			t->max_diff = d;
	}
	return rc;
}

static int write_json(const struct training *t, bool verified)
{
	return rank_write_json(&t->rank, t->opt.json,
		json_pack("{s:{s:i, s:f, s:f, s:O, s:i, s:i, s:i, s:i, s:i, s:b, s:b, s:b, s:f, "
			  "s:i}}",
			"training", "epochs", (int)t->opt.epochs, "accuracy", t->accuracy,
			"max_weight_diff", (double)t->max_diff, "history", t->history, "ranks",
			(int)t->n_ranks, "parameters", MLP_PARAMS, "steps", (int)t->steps,
			"train_samples", (int)t->n_train, "test_samples", (int)t->n_test,
			"reproducible", t->rank.group->reproducible, "ranks_agree", t->same,
			"verified", verified, "seconds", t->seconds, "rejoined", (int)t->rejoined));
}

/* Everybody learns rank 0's verdict. */
static int verify(struct training *t)
{
	const bool exact = t->rank.group->reproducible;
	int32_t bad = 0;
	int rc = compare_ranks(t), status = 0;

	if (!rc)
		rc = compare_alone(t);
	if (rc)
		return rank_failed(&t->rank, rc);
	if (t->rank.number == 0) {
		bad = !t->same || (exact ? t->max_diff != 0 : !isfinite(t->max_diff));
		printf("weights: %s on all %u ranks; largest difference from training in one "
		       "process: "
		       "%g%s\n",
			t->same ? "identical" : "NOT identical", t->n_ranks, (double)t->max_diff,
			exact ? "" : " (group is not \"reproducible\")");
		printf("%s\n", bad ? "NOT verified" : "verified");
		if (t->opt.json)
			status = write_json(t, !bad);
	}
	rc = rank_allreduce(&t->rank, &bad, &bad, 1, REDUCE_INT32);
	if (rc)
		return rank_failed(&t->rank, rc);
	return bad ? 1 : status;
}

static int run(struct training *t)
{
	uint64_t start;
	int rc;

	t->n_ranks = ccl_size(t->rank.comm);
	t->history = json_array();
	if (t->rank.number == 0)
		printf("# incline-train %s: MLP %d-%d-%d, %d parameters, %u + %u samples, %u "
		       "ranks, "
		       "batch %ld, seed %ld\n",
			INCLINE_VERSION, MLP_IN, MLP_HIDDEN, MLP_OUT, MLP_PARAMS, t->n_train,
			t->n_test, t->n_ranks, t->opt.batch, t->opt.seed);
	start = rank_clock_ns();
	rc = train(t, sum_in_network, t->rank.number == 0, false);
	if (rc)
		return rank_failed(&t->rank, rc);
	t->seconds = (double)(rank_clock_ns() - start) / 1e9;
	if (t->rank.number == 0)
		printf("%u steps, each with one AllReduce of %zu bytes, in %.2f s\n", t->steps,
			MLP_GRAD * sizeof(float), t->seconds);
	return verify(t);
}

int main(int argc, char **argv)
{
	static struct training t;
	int status;

	rank_init(&t.rank, "incline-train");
	status = parse(&t, argc, argv);
	if (status)
		return status - 1;
	status = load(&t);
	if (!status)
		status = rank_join(&t.rank);
	if (!status)
		status = rank_leave(&t.rank, run(&t));
	json_decref(t.history);
	free(t.order);
	free(t.sample);
	return status;
}
