/* SPDX-License-Identifier: BSD-3-Clause */
/* incline-perf's options: what they take, and what is said of anything else. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/perf.h"
#include "lib/ccl/group.h"
#include "lib/ctl/config.h"

static const char usage[] =
	"Usage: incline-perf --group FILE --rank N [options]\n"
	"Measures collectives in the network; every rank runs it, rank 0 prints.\n"
	"  -b, --minbytes SIZE   smallest size (4K)      -e, --maxbytes SIZE  largest size (1M)\n"
	"  -f, --stepfactor F    from size to size (4)   -n, --iters N        timed operations "
	"(20)\n"
	"  -w, --warmup_iters N  before them (5)         -c, --check N        checked operations "
	"(1)\n"
	"      --collective C    allreduce (default), reduce, broadcast, barrier, reduce_scatter,\n"
	"                        allgather, several with commas, or all\n"
	"  -d, --datatype TYPE   float (default), half, bfloat16, double, int8, uint8, int32,\n"
	"                        uint32, int64, uint64, several with commas, or all\n"
	"  -o, --op OP           sum (default), min, max, prod, several with commas, or all\n"
	"      --algorithm A     auto, inc, multicast (broadcast, allgather), ring,\n"
	"                        tree (broadcast); else as the group file says\n"
	"  -r, --root RANK       of reduce and broadcast (0), or all\n"
	"      --group FILE      group file (INCLINE_GROUP)\n"
	"      --help-config[=markdown|schema]\n"
	"                        print what can be in FILE\n"
	"      --rank N          own rank (INCLINE_RANK, or as Open MPI, MPICH, PMIx,\n"
	"                        torchrun, Slurm set it)\n"
	"      --timeout MS      without any progress (group file)\n"
	"      --json FILE       results as JSON (rank 0)\n"
	"      --seed N          of the data (1)\n"
	"      --reals           random floats, checked within a bound; else exact numbers\n"
	"      --staged          do not register the buffers: copy every message\n"
	"      --show-selection  only say how the ranks are joined, and why; by collective and\n"
	"                        size, how it would be done\n"
	"  -h, --help            this text                -V, --version\n"
	"SIZE may end in K, M or G (powers of 1024); of reduce_scatter and allgather it is that "
	"of\n"
	"all blocks together. Times are those of the slowest rank. algbw = size / time; busbw is\n"
	"comparable with ring algorithms: algbw times 2 (n-1) / n (allreduce), (n-1) / n\n"
	"(reduce_scatter, allgather) or 1. With reduction in the network each rank sends and\n"
	"receives `size` bytes once at most, whatever n is.\n"
	"The table has GB/s, as nccl-tests has; the JSON Gb/s, and percentiles of rank 0's\n"
	"operations: p99_us of at least 100 iterations, p999_us of 1000, else null.\n"
	"Exit status: 0, 1 failure or wrong results, 2 usage.\n";

/* ---- options ---- */

static const struct option longs[] = {{"minbytes", 1, NULL, 'b'}, {"maxbytes", 1, NULL, 'e'},
	{"stepfactor", 1, NULL, 'f'}, {"iters", 1, NULL, 'n'}, {"warmup_iters", 1, NULL, 'w'},
	{"warmup", 1, NULL, 'w'}, {"check", 1, NULL, 'c'}, {"collective", 1, NULL, 'C'},
	{"algorithm", 1, NULL, 'A'}, {"datatype", 1, NULL, 'd'}, {"op", 1, NULL, 'o'},
	{"root", 1, NULL, 'r'}, {"group", 1, NULL, 'g'}, {"rank", 1, NULL, 'R'},
	{"timeout", 1, NULL, 't'}, {"json", 1, NULL, 'j'}, {"seed", 1, NULL, 's'},
	{"reals", 0, NULL, 'F'}, {"staged", 0, NULL, 'S'}, {"show-selection", 0, NULL, 'W'},
	{"help", 0, NULL, 'h'}, {"version", 0, NULL, 'V'}, {"help-config", 2, NULL, 'G'}, {0}};

/* What an option takes. */
static const char *takes(int c)
{
	switch (c) {
	case 'b':
	case 'e':
		return "bytes, with K, M or G";
	case 'f':
		return "a number above 1";
	case 'C':
		return "allreduce, reduce, broadcast, barrier, reduce_scatter, allgather or all";
	case 'd':
		return "float, half, bfloat16, double, int8, uint8, int32, uint32, int64, uint64 "
		       "or all";
	case 'o':
		return "sum, min, max, prod or all";
	case 'A':
		return "auto, inc, multicast, ring or tree";
	case 'r':
		return "a rank, or all";
	case 'n':
		return "1 to 100000000";
	case 'w':
		return "0 to 100000000";
	case 'c':
		return "0 to 1000000";
	case 't':
		return RANK_TIMEOUTS;
	case 'R':
		return RANK_NUMBERS;
	default:
		return "0 to 1048576";
	}
}

static int bad(int c, const char *value)
{
	const struct option *o = longs;

	while (o->val != c)
		o++;
	fprintf(stderr, "incline-perf: --%s: \"%s\" is not valid: %s\n", o->name, value, takes(c));
	return 2;
}

static int parse_reducing(const char *name)
{
	const int op = reduce_op_parse(name);

	return op == REDUCE_NONE ? -EINVAL : op;
}

/* Names with commas between them, as a set of numbers; "all" is given. */
static bool parse_set(const char *text, int (*parse)(const char *), unsigned all, unsigned *set)
{
	char copy[200], *save, *name;

	if (strcmp(text, "all") == 0) {
		*set = all;
		return true;
	}
	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	*set = 0;
	for (name = strtok_r(copy, ",", &save); name; name = strtok_r(NULL, ",", &save)) {
		const int n = parse(name);

		if (n < 0)
			return false;
		*set |= 1u << n;
	}
	return *set != 0;
}

static bool parse_root(struct perf_options *o, const char *text)
{
	long n = -1;

	if (strcmp(text, "all") != 0 && !rank_parse_int(text, 0, 1 << 20, &n))
		return false;
	o->root = (int)n;
	return true;
}

static bool parse_number(struct perf *p, int c, const char *arg)
{
	struct perf_options *o = &p->opt;
	bool ok;
	long n;

	switch (c) {
	case 'n':
		return rank_parse_int(arg, 1, 100000000, &o->iters);
	case 'w':
		return rank_parse_int(arg, 0, 100000000, &o->warmup);
	case 'c':
		return rank_parse_int(arg, 0, 1000000, &o->checks);
	case 'R':
		return rank_parse_number(&p->rank, arg);
	case 't':
		return rank_parse_timeout(&p->rank, arg);
	default:
		ok = rank_parse_int(arg, 0, 1l << 20, &n);
		o->seed = (uint64_t)n;
		return ok;
	}
}

static bool parse_one(struct perf *p, int c, const char *arg)
{
	struct perf_options *o = &p->opt;

	switch (c) {
	case 'b':
		return rank_parse_size(arg, &o->min);
	case 'e':
		return rank_parse_size(arg, &o->max);
	case 'f':
		o->factor = strtod(arg, NULL);
		return o->factor > 1;
	case 'C':
		return parse_set(arg, ccl_collective_parse, CCL_ALL_COLLECTIVES, &o->collectives);
	case 'd':
		return parse_set(arg, perf_type_parse, (1u << (REDUCE_UINT64 + 1)) - 1, &o->dtypes);
	case 'o':
		return parse_set(arg, parse_reducing,
			1u << REDUCE_SUM | 1u << REDUCE_MIN | 1u << REDUCE_MAX | 1u << REDUCE_PROD,
			&o->ops);
	case 'r':
		return parse_root(o, arg);
	case 'A':
		return (p->rank.algorithm = ccl_algorithm_parse(arg)) >= 0;
	case 'g':
		p->rank.group_file = arg;
		return true;
	case 'j':
		o->json = arg;
		return true;
	case 'S':
		return o->staged = true;
	case 'F':
		return o->reals = true;
	case 'W':
		return o->show_selection = true;
	default:
		return parse_number(p, c, arg);
	}
}

int perf_parse(struct perf *p, int argc, char **argv)
{
	int c;

	p->opt = (struct perf_options){.min = 4096,
		.max = 1 << 20,
		.seed = 1,
		.factor = 4,
		.iters = 20,
		.warmup = 5,
		.checks = 1,
		.collectives = 1u << CCL_ALLREDUCE,
		.dtypes = 1u << REDUCE_FP32,
		.ops = 1u << REDUCE_SUM};
	while ((c = getopt_long(argc, argv, "b:e:f:n:w:c:d:o:r:hV", longs, NULL)) != -1) {
		if (c == 'h' || c == 'V') {
			fputs(c == 'h' ? usage : "incline-perf " INCLINE_VERSION "\n", stdout);
			return 1;
		}
		if (c == 'G')
			return 1 + ctl_config_help("incline-perf", &ccl_group_file, optarg);
		if (c == '?' || !parse_one(p, c, optarg))
			return 1 + (c == '?' ? 2 : bad(c, optarg));
	}
	if (optind < argc) {
		fprintf(stderr, "incline-perf: \"%s\": there are only options; see --help\n",
			argv[optind]);
		return 3;
	}
	if (p->opt.max < p->opt.min)
		p->opt.max = p->opt.min;
	return 0;
}
