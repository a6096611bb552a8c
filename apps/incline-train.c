/* SPDX-License-Identifier: BSD-3-Clause */
/* Data-parallel training whose gradients are summed in the network (apps/trainer.h): every rank
 * computes the gradient of its share of each batch, the network adds them, every rank makes the
 * same step; or, in shards, a part of it. Afterwards rank 0 trains the same network alone, adding
 * the shares in the order in which the switches do, and compares every weight. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/rank.h"
#include "apps/trainer.h"
#include "lib/ccl/group.h"

enum { REJOIN_MS = 30000 };

struct options {
	const char *data, *json;
	const struct model *model;
	bool shard, fixed;
	long epochs, batch, seed, again;
	double rate, momentum;
};

struct training {
	struct rank rank;
	struct options opt;
	struct digit *digit;
	unsigned n_digits;
	struct trainer part;  /* this rank's */
	struct trainer alone; /* at rank 0, all ranks' */
	json_t *history;
	float max_diff;
	bool same; /* all ranks ended with the same weights */
	double accuracy, seconds;
	uint64_t network_ns; /* in collectives of steps */
	unsigned rejoined;
	union trainer_sum *last; /* what the last step went by */
};

static const char usage[] =
	"Usage: incline-train --group FILE --rank N [options]\n"
	"Trains a small network on all ranks of a group; gradients are summed in the network.\n"
	"      --group FILE   group file (INCLINE_GROUP)\n"
	"      --rank N       own rank (INCLINE_RANK, or as Open MPI, MPICH, PMIx, torchrun,\n"
	"                     Slurm set it)\n"
	"      --data FILE    gzipped CSV of digits (tests/data/digits.csv.gz)\n"
	"      --model NAME   mlp: 64-128-10; cnn: two convolutions and 256-32-10 (mlp)\n"
	"      --shard        weights and momentum in shards, a rank each, as FSDP: AllGather "
	"before a\n"
	"                     step and ReduceScatter after it, instead of AllReduce\n"
	"      --fixed        gradients as int32, 2^-18 each: sums, and so weights, are the same "
	"bits\n"
	"                     over switches and rings of any kind (float)\n"
	"      --epochs N     (20)          --batch N      samples per step, all ranks together "
	"(128)\n"
	"      --rate X       (0.1)         --momentum X   (0.9)\n"
	"      --seed N       of weights and shuffles (1)\n"
	"      --again N      after a failure join again, up to N times, and go on (0); without "
	"--shard\n"
	"      --timeout MS   without any progress (group file)\n"
	"      --json FILE    results as JSON (rank 0)\n"
	"  -h, --help         this text     -V, --version\n"
	"Rank 0 then repeats the training in one process, adding in the switches' order. With "
	"--fixed, "
	"or a\n"
	"group whose flag \"reproducible\" is set and without --shard, every weight must be "
	"bit-identical.\n"
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
	case 'M':
		o->model = model_find(arg);
		return o->model != NULL;
	case 'S':
		o->shard = true;
		return true;
	case 'F':
		o->fixed = true;
		return true;
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
		{"model", 1, NULL, 'M'}, {"shard", 0, NULL, 'S'}, {"fixed", 0, NULL, 'F'},
		{"help", 0, NULL, 'h'}, {"version", 0, NULL, 'V'}, {0}};
	int c;

	t->opt = (struct options){.data = "tests/data/digits.csv.gz",
		.model = model_find("mlp"),
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
	if (optind == argc && t->opt.shard && t->opt.again) {
		fputs("incline-train: --again is not for --shard: with a rank its shard is gone\n",
			stderr);
		return 3;
	}
	if (optind == argc)
		return 0;
	fprintf(stderr, "incline-train: \"%s\" is not valid; see --help\n", argv[optind]);
	return 3;
}

/* ---- collectives ---- */

/* A collective of a step, and how long it takes. */
static int wait_for(struct training *t, uint64_t since, int rc, struct ccl_req req)
{
	rc = rank_wait(&t->rank, rc, req);
	t->network_ns += rank_clock_ns() - since;
	return rc;
}

static int sum_all(struct training *t)
{
	const uint64_t since = rank_clock_ns();
	union trainer_sum *grad = t->part.grad;
	struct ccl_req req = {0};
	const int rc = ccl_iallreduce(
		t->rank.comm, grad, grad, t->part.n_sum, trainer_dtype(&t->part), REDUCE_SUM, &req);

	return wait_for(t, since, rc, req);
}

static int scatter_sums(struct training *t)
{
	const uint64_t since = rank_clock_ns();
	struct ccl_req req = {0};
	const int rc = ccl_ireduce_scatter(t->rank.comm, t->part.grad, t->part.part, t->part.block,
		trainer_dtype(&t->part), REDUCE_SUM, &req);

	return wait_for(t, since, rc, req);
}

/* All weights to all ranks, if they are in shards. */
static int gather(struct training *t)
{
	const uint64_t since = rank_clock_ns();
	struct ccl_req req = {0};
	int rc;

	if (!t->opt.shard)
		return 0;
	rc = ccl_iallgather(
		t->rank.comm, t->part.own, t->part.param, t->part.block, REDUCE_FP32, &req);
	return wait_for(t, since, rc, req);
}

/* ---- steps in the network ---- */

/* Some ranks may have got the sum that the others have missed, as bits: those get it from the first
 * that has it, added to zeros. 1: this rank has; 0: it need not; else an error. */
static int catch_up(struct training *t)
{
	const unsigned n = t->part.n_sum, n_ranks = t->part.conf.n_ranks;
	uint64_t step[CCL_MAX_RANKS], most = 0;
	unsigned from = 0;
	int rc = rank_gather(&t->rank, t->part.steps, step);

	for (unsigned r = 0; r < n_ranks && !rc; r++)
		if (step[r] > most) {
			most = step[r];
			from = r;
		}
	for (unsigned r = 0; r < n_ranks && !rc; r++)
		if (step[r] < most) {
			if ((unsigned)t->rank.number == from)
				memcpy(t->part.grad, t->last, n * sizeof(*t->last));
			else
				memset(t->part.grad, 0, n * sizeof(*t->last));
			rc = rank_allreduce(&t->rank, t->part.grad, t->part.grad, n, REDUCE_INT32);
			break;
		}
	return rc ? rc : t->part.steps < most;
}

/* After a failure: 1: the sum has come from a rank that had it; 0: it is to be done again. */
static int go_on(struct training *t, int rc)
{
	while (rc < 0 && rc != -EINTR && t->opt.again-- > 0) {
		if (rank_rejoin(&t->rank, REJOIN_MS))
			return rc;
		t->rejoined++;
		rc = catch_up(t);
	}
	return rc;
}

static int step_data(struct training *t, unsigned first, unsigned n)
{
	bool again;
	int rc;

	do {
		trainer_gradient(&t->part, first, n);
		rc = sum_all(t);
		again = rc && (rc = go_on(t, rc)) == 0;
	} while (again);
	if (rc < 0)
		return rc;
	memcpy(t->last, t->part.grad, t->part.n_sum * sizeof(*t->last));
	trainer_step(&t->part, t->part.grad, n);
	return 0;
}

static int step_shards(struct training *t, unsigned first, unsigned n)
{
	int rc = gather(t);

	if (rc)
		return rc;
	trainer_gradient(&t->part, first, n);
	rc = scatter_sums(t);
	if (rc)
		return rc;
	trainer_step(&t->part, t->part.part, n);
	return 0;
}

/* ---- steps alone ---- */

/* A switch adds its children in ascending order of their lowest rank, starting from the first; a
 * child switch contributes its own sum. */
static int sum_below(struct training *t, const struct ccl_switch *sw, unsigned first, unsigned n,
	union trainer_sum *sum)
{
	struct trainer *m = &t->alone;
	union trainer_sum *part = calloc((size_t)m->block * m->conf.n_ranks, sizeof(*part));
	int rc = part ? 0 : -ENOMEM;

	for (unsigned c = 0; c < sw->n_children && !rc; c++) {
		const struct ccl_child *child = &sw->child[c];
		union trainer_sum *to = c ? part : sum;

		if (child->host)
			trainer_share(m, child->index, first, n, to);
		else
			rc = sum_below(
				t, &ccl_comm_group(t->rank.comm)->sw[child->index], first, n, to);
		if (c && !rc)
			trainer_add(m, sum, part);
	}
	free(part);
	return rc;
}

static int step_alone(struct training *t, unsigned first, unsigned n)
{
	const struct ccl_group *g = ccl_comm_group(t->rank.comm);
	struct trainer *m = &t->alone;
	int rc = 0;

	if (g->n_switches) {
		rc = sum_below(t, &g->sw[g->root], first, n, m->grad);
	} else { /* a ring of the hosts, which adds in another order */
		trainer_share(m, 0, first, n, m->grad);
		for (unsigned r = 1; r < m->conf.n_ranks; r++) {
			trainer_share(m, r, first, n, m->part);
			trainer_add(m, m->grad, m->part);
		}
	}
	if (!rc)
		trainer_step(m, m->grad, n);
	return rc;
}

/* ---- training ---- */

static void report(struct training *t, long epoch)
{
	const double loss = trainer_loss(&t->part);

	t->accuracy = trainer_accuracy(&t->part);
	printf("epoch %3ld  loss %.4f  test accuracy %.2f %%\n", epoch, loss, 100 * t->accuracy);
	fflush(stdout);
	json_array_append_new(t->history, json_pack("{s:i, s:f, s:f}", "epoch", (int)epoch, "loss",
						  loss, "accuracy", t->accuracy));
}

typedef int (*step_fn)(struct training *t, unsigned first, unsigned n);

/* What comes after each epoch. */
typedef int (*after_fn)(struct training *t, long epoch);

static int train(struct training *t, struct trainer *m, step_fn step, after_fn after)
{
	int rc = 0;

	trainer_begin(m);
	for (long epoch = 1; epoch <= t->opt.epochs && !rc; epoch++) {
		unsigned n;

		trainer_epoch(m);
		for (unsigned first = 0; first < m->n_train && !rc; first += n) {
			n = trainer_batch(m, first);
			rc = step(t, first, n);
		}
		if (!rc)
			rc = after(t, epoch);
	}
	return rc;
}

static int gather_and_report(struct training *t, long epoch)
{
	const int rc = gather(t);

	if (!rc && t->rank.number == 0)
		report(t, epoch);
	return rc;
}

/* The other ranks wait for this training to end. */
static int keep_company(struct training *t, long epoch)
{
	(void)epoch;
	return rank_barrier(&t->rank);
}

/* ---- verifying ---- */

/* Two sums of 16-bit halves of a checksum: equal to n_ranks times the own halves at every rank only
 * if all ranks have the same. */
static int compare_ranks(struct training *t)
{
	const int32_t n_ranks = (int32_t)t->part.conf.n_ranks;
	const uint32_t crc = trainer_checksum(&t->part);
	int32_t half[2] = {(int32_t)(crc & 0xffff), (int32_t)(crc >> 16)}, sum[2], differ, all;
	int rc = rank_allreduce(&t->rank, half, sum, 2, REDUCE_INT32);

	if (rc)
		return rc;
	differ = sum[0] != half[0] * n_ranks || sum[1] != half[1] * n_ranks;
	rc = rank_allreduce(&t->rank, &differ, &all, 1, REDUCE_INT32);
	t->same = all == 0;
	return rc;
}

static int open_trainer(struct training *t, struct trainer *m, bool shard)
{
	const struct trainer_conf conf = {.model = t->opt.model,
		.rank = (unsigned)t->rank.number,
		.n_ranks = ccl_size(t->rank.comm),
		.sharded = shard,
		.fixed = t->opt.fixed,
		.batch = (unsigned)t->opt.batch,
		.seed = (uint64_t)t->opt.seed,
		.rate = (float)t->opt.rate,
		.momentum = (float)t->opt.momentum};

	return trainer_open(m, &conf, t->digit, t->n_digits);
}

/* Rank 0 trains alone. The others keep it company at barriers: its work takes as long as all of
 * theirs together, and a collective that waits so long would count as stuck. */
static int compare_alone(struct training *t)
{
	int rc = 0;

	for (long i = 0; t->rank.number > 0 && i < t->opt.epochs && !rc; i++)
		rc = rank_barrier(&t->rank);
	if (t->rank.number > 0 || rc)
		return rc;
	rc = open_trainer(t, &t->alone, false);
	if (!rc)
		rc = train(t, &t->alone, step_alone, keep_company);
	t->max_diff = 0;
	for (unsigned i = 0; i < t->part.n_params && !rc; i++) {
		const float d = fabsf(t->part.param[i] - t->alone.param[i]);

		if (isnan(d))
			t->max_diff = INFINITY;
		else if (d > t->max_diff)
			t->max_diff = d;
	}
	return rc;
}

/* ---- results ---- */

/* Sums do not depend on what adds them. */
static bool exact(const struct training *t)
{
	return t->opt.fixed || (t->rank.group->reproducible && !t->opt.shard);
}

static double step_us(const struct training *t)
{
	return t->seconds * 1e6 / t->part.steps;
}

static double network_us(const struct training *t)
{
	return (double)t->network_ns / 1e3 / t->part.steps;
}

static json_t *results(const struct training *t, bool verified)
{
	const struct trainer *m = &t->part;
	char crc[16];

	snprintf(crc, sizeof(crc), "%08x", trainer_checksum(m));
	return json_pack("{s:s, s:b, s:s, s:i, s:f, s:f, s:O, s:i, s:i, s:i, s:i, s:i, s:b, s:b, "
			 "s:b, s:f, s:f, s:f, s:s, s:i}",
		"model", m->conf.model->name, "sharded", m->conf.sharded, "sums",
		m->conf.fixed ? "fixed" : "float", "epochs", (int)t->opt.epochs, "accuracy",
		t->accuracy, "max_weight_diff", (double)t->max_diff, "history", t->history, "ranks",
		(int)m->conf.n_ranks, "parameters", (int)m->n_params, "steps", (int)m->steps,
		"train_samples", (int)m->n_train, "test_samples", (int)m->n_test, "reproducible",
		t->rank.group->reproducible, "ranks_agree", t->same, "verified", verified,
		"seconds", t->seconds, "step_us", step_us(t), "network_us", network_us(t),
		"weights_crc32", crc, "rejoined", (int)t->rejoined);
}

/* Everybody learns rank 0's verdict. */
static int verify(struct training *t)
{
	int32_t bad = 0;
	int rc = compare_ranks(t), status = 0;

	if (!rc)
		rc = compare_alone(t);
	if (rc)
		return rank_failed(&t->rank, rc);
	if (t->rank.number == 0) {
		bad = !t->same || (exact(t) ? t->max_diff != 0 : !isfinite(t->max_diff));
		printf("weights: %s on all %u ranks; largest difference from training in one "
		       "process: %g%s\n",
			t->same ? "identical" : "NOT identical", t->part.conf.n_ranks,
			(double)t->max_diff, exact(t) ? "" : " (sums depend on their order)");
		printf("%s\n", bad ? "NOT verified" : "verified");
		if (t->opt.json)
			status = rank_write_json(&t->rank, t->opt.json,
				json_pack("{s:o}", "training", results(t, !bad)));
	}
	rc = rank_allreduce(&t->rank, &bad, &bad, 1, REDUCE_INT32);
	if (rc)
		return rank_failed(&t->rank, rc);
	return bad ? 1 : status;
}

static void say_what(const struct training *t)
{
	const struct trainer *m = &t->part;

	printf("# incline-train %s: %s, %u parameters%s, %u + %u samples, %u ranks, batch %ld, "
	       "seed %ld\n",
		INCLINE_VERSION, m->conf.model->text, m->n_params,
		m->conf.sharded ? " in shards" : "", m->n_train, m->n_test, m->conf.n_ranks,
		t->opt.batch, t->opt.seed);
}

static void say_time(const struct training *t)
{
	const struct trainer *m = &t->part;

	if (m->conf.sharded)
		printf("%u steps, each with an AllGather and a ReduceScatter of %zu bytes, in ",
			m->steps, (size_t)m->block * m->conf.n_ranks * sizeof(float));
	else
		printf("%u steps, each with one AllReduce of %zu bytes, in ", m->steps,
			m->n_sum * sizeof(float));
	printf("%.2f s\n%.0f us a step, %.0f of them in collectives\n", t->seconds, step_us(t),
		network_us(t));
}

static int load(struct training *t)
{
	char err[256];
	const int n = digits_load(t->opt.data, &t->digit, err, sizeof(err));

	if (n < 0) {
		fprintf(stderr, "incline-train: %s\n", err);
		return 1;
	}
	t->n_digits = (unsigned)n;
	return 0;
}

/* Has this group what a training in shards needs? */
static bool can(const struct training *t)
{
	const unsigned needs = 1u << CCL_REDUCE_SCATTER | 1u << CCL_ALLGATHER;
	struct ccl_info info;

	ccl_query(t->rank.comm, &info);
	if (!t->opt.shard || (info.collectives & needs) == needs)
		return true;
	fputs("incline-train: --shard needs reduce_scatter and allgather, which this group does "
	      "not do\n",
		stderr);
	return false;
}

static int run(struct training *t)
{
	uint64_t start;
	int rc;

	if (!can(t))
		return 1;
	rc = open_trainer(t, &t->part, t->opt.shard);
	t->last = calloc(t->part.n_sum + 1, sizeof(*t->last));
	t->history = json_array();
	if (rc || !t->last || !t->history)
		return rank_failed(&t->rank, -ENOMEM);
	if (t->rank.number == 0)
		say_what(t);
	start = rank_clock_ns();
	rc = train(t, &t->part, t->opt.shard ? step_shards : step_data, gather_and_report);
	if (rc)
		return rank_failed(&t->rank, rc);
	t->seconds = (double)(rank_clock_ns() - start) / 1e9;
	if (t->rank.number == 0)
		say_time(t);
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
	trainer_close(&t.part);
	trainer_close(&t.alone);
	json_decref(t.history);
	free(t.last);
	free(t.digit);
	return status;
}
