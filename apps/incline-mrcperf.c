/* SPDX-License-Identifier: BSD-3-Clause */
/* Benchmark of MRC connections by nothing but the API of the OCP (mrc.h) and libibverbs: it is a
 * program of that API as others are. */
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "apps/mrcperf.h"

static const char usage[] =
	"Usage: incline-mrcperf [options]            the receiver\n"
	"       incline-mrcperf [options] HOST       the sender, which says what is measured\n"
	"Writes over MRC queue pairs and checks what arrives. The ends find each other by TCP.\n"
	"  -s, --size N       bytes of a message (65536)\n"
	"  -a, --all          all powers of 2 up to --size\n"
	"  -n, --iters N      messages of each queue pair and size (1000)\n"
	"  -q, --qps N        queue pairs, 1 to 64 (1)\n"
	"  -t, --depth N      messages of a queue pair on their way, 1 to 256 (16)\n"
	"      --imm          with immediate: every message is checked as it arrives, and their "
	"order;\n"
	"                     else the last ones of each queue pair, at the end\n"
	"      --seconds N    rounds of --iters messages until so long has passed, or SIGINT\n"
	"      --paths FILE   the node's file of paths (docs/srv6.md): every packet in SRv6, over "
	"all\n"
	"                     paths to the peer; takes CAP_NET_ADMIN, and --gid-index from the "
	"file\n"
	"      --map FILE[:FILE...]  with --paths: what agents of incline-map write (docs/map.md); "
	"paths\n"
	"                     that they see bad are denied until they see them good\n"
	"  -d, --device NAME  (the first)              -x, --gid-index N  (1)\n"
	"  -p, --port N       of TCP (18516)           --seed N  of the data (1)\n"
	"      --json FILE    results as JSON (sender)\n"
	"  -h, --help         this text                -V, --version\n"
	"Exit status: 0, 1 failure or wrong data, 2 usage.\n";

enum { OPT_IMM = 256, OPT_SEED, OPT_JSON, OPT_SECONDS, OPT_PATHS, OPT_MAP };

struct options {
	const char *host, *port, *json;
	bool all;
	unsigned long seconds;
};

static bool number(const char *text, unsigned long low, unsigned long high, unsigned long *out)
{
	char *end;

	*out = strtoul(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && *out >= low && *out <= high;
}

static bool parse_one(struct mrcperf_end *e, struct options *o, int c, const char *arg)
{
	unsigned long n = 0;
	bool ok = true;

	switch (c) {
	case 's':
		ok = number(arg, 1, 1ul << 30, &e->plan.max);
		break;
	case 'n':
		ok = number(arg, 1, 1000000000, &e->plan.iters);
		break;
	case 'q':
		ok = number(arg, 1, MRCPERF_QPS, &n);
		e->plan.qps = (unsigned)n;
		break;
	case 't':
		ok = number(arg, 1, MRCPERF_DEPTH, &n);
		e->plan.depth = (unsigned)n;
		break;
	case 'x':
		ok = number(arg, 0, 255, &n);
		e->gid = (int)n;
		break;
	case 'p':
		ok = number(arg, 1, 65535, &n);
		o->port = arg;
		break;
	case OPT_SEED:
		ok = number(arg, 0, UINT32_MAX, &n);
		e->plan.seed = (unsigned)n;
		break;
	case OPT_IMM:
		e->plan.imm = 1;
		break;
	case OPT_JSON:
		o->json = arg;
		break;
	case OPT_SECONDS:
		ok = number(arg, 1, 86400, &o->seconds);
		break;
	case OPT_PATHS:
		e->paths = arg;
		break;
	case OPT_MAP:
		e->maps = arg;
		break;
	case 'a':
		o->all = true;
		break;
	case 'd':
		e->device = arg;
		break;
	default:
		ok = false;
	}
	return ok;
}

/* 0: go on; else the exit status + 1. */
static int parse(struct mrcperf_end *e, struct options *o, int argc, char **argv)
{
	static const struct option longs[] = {{"size", 1, 0, 's'}, {"all", 0, 0, 'a'},
		{"iters", 1, 0, 'n'}, {"qps", 1, 0, 'q'}, {"depth", 1, 0, 't'},
		{"imm", 0, 0, OPT_IMM}, {"device", 1, 0, 'd'}, {"gid-index", 1, 0, 'x'},
		{"port", 1, 0, 'p'}, {"seed", 1, 0, OPT_SEED}, {"json", 1, 0, OPT_JSON},
		{"seconds", 1, 0, OPT_SECONDS}, {"paths", 1, 0, OPT_PATHS}, {"map", 1, 0, OPT_MAP},
		{"help", 0, 0, 'h'}, {"version", 0, 0, 'V'}, {0}};
	int c;

	while ((c = getopt_long(argc, argv, "s:an:q:t:d:x:p:hV", longs, NULL)) != -1) {
		if (c == 'h' || c == 'V') {
			fputs(c == 'h' ? usage : "incline-mrcperf " INCLINE_VERSION "\n", stdout);
			return 1;
		}
		if (c == '?')
			return 3;
		if (!parse_one(e, o, c, optarg)) {
			fprintf(stderr, "incline-mrcperf: \"%s\" is not valid; see --help\n",
				optarg);
			return 3;
		}
	}
	if (argc - optind > 1) {
		fprintf(stderr, "incline-mrcperf: one host; see --help\n");
		return 3;
	}
	if (e->maps && !e->paths) {
		fprintf(stderr, "incline-mrcperf: --map needs --paths; see --help\n");
		return 3;
	}
	o->host = argv[optind];
	e->plan.min = o->all ? 1 : e->plan.max;
	return 0;
}

static void report(const struct mrcperf_row *r, json_t *rows)
{
	double gbps = (double)r->size * (double)r->messages * 8 / r->seconds / 1e9;
	double rate = (double)r->messages / r->seconds;

	printf("%10lu %10lu %10.3f %12.0f %10lu %8lu\n", r->size, r->messages, gbps, rate,
		r->checked, r->wrong);
	json_array_append_new(
		rows, json_pack("{s:I,s:I,s:f,s:f,s:f,s:I,s:I}", "size", (json_int_t)r->size,
			      "messages", (json_int_t)r->messages, "seconds", r->seconds, "gbps",
			      gbps, "messages_per_s", rate, "checked", (json_int_t)r->checked,
			      "wrong", (json_int_t)r->wrong));
}

static int write_json(struct mrcperf_end *e, const char *path, json_t *rows)
{
	json_t *all = json_pack("{s:i,s:i,s:b,s:i,s:o,s:O}", "qps", (int)e->plan.qps, "depth",
		(int)e->plan.depth, "imm", (int)e->plan.imm, "srv6_paths", (int)e->n_paths, "map",
		mrcperf_watch_json(e), "rows", rows);
	int ret = all ? json_dump_file(all, path, JSON_INDENT(1)) : -1;

	json_decref(all);
	if (ret)
		fprintf(stderr, "incline-mrcperf: cannot write %s\n", path);
	return ret;
}

/* An interrupt ends the measurement, with its report (what the peer is about to say is waited for
 * all the same); a second one the program. */
static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

/* All rounds of a size. */
static int rounds(
	struct mrcperf_end *e, const struct options *o, unsigned long size, struct mrcperf_row *sum)
{
	*sum = (struct mrcperf_row){.size = size};
	do {
		struct mrcperf_row row;

		if (mrcperf_send(e, size, &row))
			return -1;
		sum->messages += row.messages;
		sum->seconds += row.seconds;
		sum->checked += row.checked;
		sum->wrong += row.wrong;
	} while (!interrupted && sum->seconds < (double)o->seconds);
	return 0;
}

static int client(struct mrcperf_end *e, const struct options *o)
{
	json_t *rows = json_array();
	unsigned long wrong = 0;
	int ret = 0;

	if (e->n_paths)
		printf("# SRv6, %u paths\n", e->n_paths);
	sigaction(SIGINT,
		&(struct sigaction){
			.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND | SA_RESTART},
		NULL);
	printf("%10s %10s %10s %12s %10s %8s\n", "bytes", "messages", "Gb/s", "messages/s",
		"checked", "wrong");
	for (unsigned long size = e->plan.min; !ret && !interrupted && size <= e->plan.max;
		size *= 2) {
		struct mrcperf_row row;

		ret = rounds(e, o, size, &row);
		if (!ret)
			report(&row, rows);
		wrong += ret ? 0 : row.wrong;
	}
	if (!ret)
		ret = mrcperf_say(e, "end", 0) || mrcperf_hear(e, "end") < 0;
	if (!ret && o->json)
		ret = write_json(e, o->json, rows);
	json_decref(rows);
	return ret || wrong ? 1 : 0;
}

static int server(struct mrcperf_end *e)
{
	unsigned long size;
	int more;

	for (unsigned q = 0; e->plan.imm && q < e->plan.qps; q++) {
		for (unsigned i = 0; i < e->plan.depth; i++) {
			struct ibv_recv_wr *bad, wr = {.wr_id = q};

			if (mrc_post_recv(e->qp[q], &wr, &bad))
				return 1;
		}
	}
	while ((more = mrcperf_next(e, &size)) > 0) {
		if (mrcperf_receive(e, size))
			return 1;
	}
	/* The sender may still wait for acknowledgements: neither goes before both are done. */
	return more < 0 || mrcperf_say(e, "end", 0) ? 1 : 0;
}

int main(int argc, char **argv)
{
	static struct mrcperf_end e = {
		.plan = {.qps = 1, .depth = 16, .max = 65536, .iters = 1000, .seed = 1}, .gid = 1};
	struct options o = {.port = "18516"};
	int ret = parse(&e, &o, argc, argv);

	if (ret)
		return ret - 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	ret = o.host ? mrcperf_dial(&e, o.host, o.port) : mrcperf_listen(&e, o.port);
	if (!ret)
		ret = mrcperf_open(&e);
	ret = ret ? 1 : o.host ? client(&e, &o) : server(&e);
	mrcperf_close(&e);
	return ret;
}
