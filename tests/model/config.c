/* SPDX-License-Identifier: BSD-3-Clause */
/* A configuration from command-line words. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/model.h"
#include "tests/model/seeded.h"

void mc_config_usage(void)
{
	fputs("usage: incline-model [OPTION...]\n"
	      "  --mode 1|2|3|netreduce mode of the group\n"
	      "  --topology star:N|tree:A+B+...\n"
	      "                         N hosts at one switch, or leaves with A, B ... hosts\n"
	      "  --kind single|mixed\n"
	      "  --ops A2,B0:2,R1:3     allreduce of 2 data packets, broadcast from rank 0, reduce "
	      "to 1\n"
	      "  --m M --w W            packets per message, messages per window (1, 2)\n"
	      "  --host-w W             the hosts' own window, default W\n"
	      "  --in-flight K          packets that a host's NIC sends unacknowledged (any)\n"
	      "  --window-results       the hosts' windows follow results, not acknowledgements\n"
	      "  --learn                a ring's first PSNs are not known to the switch\n"
	      "  --n N                  slots (default 2 M W, Mode-III M W); --any-n: too few are "
	      "allowed\n"
	      "  --loss K --reorder K --dup K --early-timeout K --rnr K\n"
	      "                         how often each may happen, anywhere (0); rnr: hosts\n"
	      "                         without a receive\n"
	      "  --start-psn P          (0xfffffe)\n"
	      "  --flags LATE_FLUSH,STALL_RNR,DUP_ALL,REPRODUCIBLE,SR,WRITE\n"
	      "                         (LATE_FLUSH)\n"
	      "  --mismatch RANK:OP     this rank's control of operation OP differs\n"
	      "  --fail                 somebody fails one switch's group, at any time\n"
	      "  --drain                a star's group is destroyed, at any time, by and by\n"
	      "  --again numbers|behind|ahead\n"
	      "                         the group ends anywhere, and is made again while its "
	      "packets are under way:\n"
	      "                         with other queue pairs, or with the same ones and old "
	      "PSNs behind or ahead\n"
	      "  --resync               hosts leave no PSNs out: behind a Broadcast or Reduce all "
	      "begin anew\n"
	      "  --coalesce             what a host answers waits, and may become one answer\n"
	      "  --no-por               without partial-order reduction\n"
	      "  --no-symmetry          without taking equal ranks for equal\n"
	      "  --fast                 rate limits hold until a timeout, else they never hold\n"
	      "  --prompt               nothing is lost, so nobody may have to wait for a timer\n"
	      "  --noticed              Mode-III, and so with losses, if the receiver can see "
	      "them\n"
	      "  --least-burst          a switch's turn sends again as little as it can\n"
	      "  --selective            hosts send again what is missing, and nothing behind it\n"
	      "  --every-nak            hosts that do not take a NAK's copy for one (lib/rnic "
	      "does)\n"
	      "  --max-states K         stop there (50000000)\n"
	      "  --expect-violation     exit status 0 if one is found\n"
	      "  --max-trace K          and only if its trace has at most K steps\n"
	      "  --bug T                a seeded bug (incline-model-bugs only)\n"
	      "  --spec K               states that the specification's exploration had, to print\n"
	      "  --paper K              the same for EPIC's own model\n"
	      "  --pcap FILE            the counterexample's frames\n"
	      "  --json FILE            result\n"
	      "  --suite FILE           runs each line of a file as options of its own\n"
	      "  --quiet                no progress\n",
		stderr);
}

void mc_config_defaults(struct mc_config *c)
{
	*c = (struct mc_config){
		.mode = INC_MODE_2,
		.kind = INC_MIXED,
		.hosts = {2},
		.n_ranks = 2,
		.n_ops = 1,
		.op = {{INC_AR, 0, 2}},
		.m = 1,
		.w = 2,
		.start_psn = 0xfffffe,
		.flags = INC_F_LATE_FLUSH,
		.mismatch_rank = MC_NONE,
		.in_flight = UINT8_MAX,
		.por = true,
		.symmetry = true,
		.max_states = 50000000,
	};
}

static int parse_mode(struct mc_config *c, const char *text)
{
	if (strcmp(text, "netreduce") == 0)
		c->mode = MC_NETREDUCE;
	else if (strlen(text) == 1 && strchr("123", text[0]))
		c->mode = (uint8_t)(text[0] - '0');
	else
		return -EINVAL;
	return 0;
}

static int parse_topology(struct mc_config *c, const char *text)
{
	bool tree = strncmp(text, "tree:", 5) == 0;
	unsigned n = 0, leaves = 0;
	char *end;

	if (!tree && strncmp(text, "star:", 5) != 0)
		return -EINVAL;
	for (text += 5;; text = end + 1) {
		unsigned long k = strtoul(text, &end, 10);

		if (k < 1 || k > MC_MAX_RANKS || leaves == MC_MAX_SWITCHES - 1)
			return -EINVAL;
		c->hosts[leaves++] = (uint8_t)k;
		n += (unsigned)k;
		if (*end != '+')
			break;
	}
	if (*end || n > MC_MAX_RANKS || (!tree && leaves != 1))
		return -EINVAL;
	c->n_leaf = tree ? (uint8_t)leaves : 0;
	c->n_ranks = (uint8_t)n;
	return 0;
}

static int parse_ops(struct mc_config *c, const char *text)
{
	unsigned psns = 0;

	for (c->n_ops = 0; *text; c->n_ops++) {
		struct mc_op *o = &c->op[c->n_ops];
		char *end, prim = *text++;

		if (c->n_ops == MC_MAX_OPS || strchr("ARB", prim) == NULL)
			return -EINVAL;
		*o = (struct mc_op){.prim = prim == 'A' ? INC_AR : prim == 'R' ? INC_RED : INC_BC};
		if (prim != 'A') {
			o->root = (uint8_t)strtoul(text, &end, 10);
			if (end == text || *end != ':')
				return -EINVAL;
			text = end + 1;
		}
		o->n = (uint8_t)strtoul(text, &end, 10);
		psns += o->n + 1u;
		if (end == text || (*end && *end != ',') || psns > MC_MAX_PSN)
			return -EINVAL;
		text = *end ? end + 1 : end;
	}
	return c->n_ops ? 0 : -EINVAL;
}

static int parse_flags(struct mc_config *c, const char *text)
{
	static const struct {
		const char *name;
		uint16_t bit;
	} flags[] = {{"SR", INC_F_SR}, {"WRITE", INC_F_WRITE}, {"LATE_FLUSH", INC_F_LATE_FLUSH},
		{"STALL_RNR", INC_F_STALL_RNR}, {"DUP_ALL", INC_F_DUP_ALL},
		{"REPRODUCIBLE", INC_F_REPRODUCIBLE}, {"NONE", 0}};

	for (c->flags = 0; *text;) {
		size_t len = strcspn(text, ","), i;

		for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
			if (strlen(flags[i].name) == len && strncmp(flags[i].name, text, len) == 0)
				break;
		if (i == sizeof(flags) / sizeof(flags[0]))
			return -EINVAL;
		c->flags |= flags[i].bit;
		text += len + (text[len] == ',');
	}
	return 0;
}

static int parse_again(struct mc_config *c, const char *text)
{
	static const char *const ways[] = {
		[MC_NUMBERS] = "numbers", [MC_BEHIND] = "behind", [MC_AHEAD] = "ahead"};

	for (uint8_t i = MC_NUMBERS; i <= MC_AHEAD; i++)
		if (strcmp(text, ways[i]) == 0)
			c->again = i;
	return c->again ? 0 : -EINVAL;
}

static int parse_mismatch(struct mc_config *c, const char *text)
{
	unsigned rank, op;

	if (sscanf(text, "%u:%u", &rank, &op) != 2 || rank >= MC_MAX_RANKS || op >= MC_MAX_OPS)
		return -EINVAL;
	c->mismatch_rank = (uint8_t)rank;
	c->mismatch_op = (uint8_t)op;
	return 0;
}

enum option_code {
	O_MODE = 256,
	O_TOPOLOGY,
	O_KIND,
	O_OPS,
	O_M,
	O_W,
	O_HOST_W,
	O_N,
	O_ANY_N,
	O_LOSS,
	O_REORDER,
	O_DUP,
	O_EARLY,
	O_RNR,
	O_START,
	O_FLAGS,
	O_MISMATCH,
	O_FAIL,
	O_DRAIN,
	O_AGAIN,
	O_FAST,
	O_MAX_STATES,
	O_EXPECT,
	O_MAX_TRACE,
	O_BUG,
	O_SPEC,
	O_PAPER,
	O_PCAP,
	O_JSON,
	O_QUIET,
	O_NO_POR,
	O_NO_SYM,
	O_PROMPT,
	O_WINDOW,
	O_LEARN,
	O_IN_FLIGHT,
	O_NOTICED,
	O_LEAST_BURST,
	O_SELECTIVE,
	O_EVERY_NAK,
	O_RESYNC,
	O_COALESCE,
};

static const struct option options[] = {
	{"mode", required_argument, NULL, O_MODE},
	{"topology", required_argument, NULL, O_TOPOLOGY},
	{"kind", required_argument, NULL, O_KIND},
	{"ops", required_argument, NULL, O_OPS},
	{"m", required_argument, NULL, O_M},
	{"w", required_argument, NULL, O_W},
	{"host-w", required_argument, NULL, O_HOST_W},
	{"n", required_argument, NULL, O_N},
	{"any-n", no_argument, NULL, O_ANY_N},
	{"loss", required_argument, NULL, O_LOSS},
	{"reorder", required_argument, NULL, O_REORDER},
	{"dup", required_argument, NULL, O_DUP},
	{"early-timeout", required_argument, NULL, O_EARLY},
	{"rnr", required_argument, NULL, O_RNR},
	{"start-psn", required_argument, NULL, O_START},
	{"flags", required_argument, NULL, O_FLAGS},
	{"mismatch", required_argument, NULL, O_MISMATCH},
	{"fail", no_argument, NULL, O_FAIL},
	{"drain", no_argument, NULL, O_DRAIN},
	{"again", required_argument, NULL, O_AGAIN},
	{"fast", no_argument, NULL, O_FAST},
	{"max-states", required_argument, NULL, O_MAX_STATES},
	{"expect-violation", no_argument, NULL, O_EXPECT},
	{"max-trace", required_argument, NULL, O_MAX_TRACE},
	{"bug", required_argument, NULL, O_BUG},
	{"spec", required_argument, NULL, O_SPEC},
	{"paper", required_argument, NULL, O_PAPER},
	{"pcap", required_argument, NULL, O_PCAP},
	{"json", required_argument, NULL, O_JSON},
	{"no-symmetry", no_argument, NULL, O_NO_SYM},
	{"no-por", no_argument, NULL, O_NO_POR},
	{"prompt", no_argument, NULL, O_PROMPT},
	{"in-flight", required_argument, NULL, O_IN_FLIGHT},
	{"window-results", no_argument, NULL, O_WINDOW},
	{"noticed", no_argument, NULL, O_NOTICED},
	{"least-burst", no_argument, NULL, O_LEAST_BURST},
	{"selective", no_argument, NULL, O_SELECTIVE},
	{"every-nak", no_argument, NULL, O_EVERY_NAK},
	{"resync", no_argument, NULL, O_RESYNC},
	{"coalesce", no_argument, NULL, O_COALESCE},
	{"learn", no_argument, NULL, O_LEARN},
	{"quiet", no_argument, NULL, O_QUIET},
	{0},
};

/* A number within limits, or -1. */
static long number(const char *text, long min, long max)
{
	char *end;
	long v = strtol(text, &end, 0);

	return end == text || *end || v < min || v > max ? -1 : v;
}

static int number_option(struct mc_config *c, int code)
{
	static const struct {
		int code;
		long min, max;
	} limits[] = {{O_M, 1, 16}, {O_W, 1, 64}, {O_HOST_W, 1, 64}, {O_N, 1, 256}, {O_LOSS, 0, 63},
		{O_REORDER, 0, 63}, {O_DUP, 0, 63}, {O_EARLY, 0, 63}, {O_RNR, 0, 63},
		{O_START, 0, PSN_MASK}, {O_MAX_STATES, 1, 1000000000}, {O_MAX_TRACE, 1, 100000},
		{O_IN_FLIGHT, 1, 255}};
	long v = -1;

	for (unsigned i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (limits[i].code == code)
			v = number(optarg, limits[i].min, limits[i].max);
	if (v < 0)
		return -EINVAL;
	switch (code) {
	case O_M:
		c->m = (uint16_t)v;
		break;
	case O_W:
		c->w = (uint16_t)v;
		break;
	case O_HOST_W:
		c->host_w = (uint16_t)v;
		break;
	case O_N:
		c->slots = (uint32_t)v;
		break;
	case O_LOSS:
		c->loss = (uint8_t)v;
		break;
	case O_REORDER:
		c->reorder = (uint8_t)v;
		break;
	case O_DUP:
		c->dup = (uint8_t)v;
		break;
	case O_EARLY:
		c->early = (uint8_t)v;
		break;
	case O_RNR:
		c->rnr = (uint8_t)v;
		break;
	case O_START:
		c->start_psn = (uint32_t)v;
		break;
	case O_MAX_STATES:
		c->max_states = (uint32_t)v;
		break;
	case O_IN_FLIGHT:
		c->in_flight = (uint8_t)v;
		break;
	default:
		c->max_trace = (uint32_t)v;
	}
	return 0;
}

static int one_option(struct mc_config *c, int code)
{
	switch (code) {
	case O_MODE:
		return parse_mode(c, optarg);
	case O_TOPOLOGY:
		return parse_topology(c, optarg);
	case O_KIND:
		c->kind = strcmp(optarg, "single") == 0 ? INC_SINGLE : INC_MIXED;
		return c->kind == INC_SINGLE || strcmp(optarg, "mixed") == 0 ? 0 : -EINVAL;
	case O_OPS:
		return parse_ops(c, optarg);
	case O_FLAGS:
		return parse_flags(c, optarg);
	case O_MISMATCH:
		return parse_mismatch(c, optarg);
	case O_BUG:
		return mc_seed(optarg);
	case O_ANY_N:
		c->any_slots = true;
		return 0;
	case O_FAIL:
		c->fail = true;
		return 0;
	case O_DRAIN:
		c->drain = true;
		return 0;
	case O_AGAIN:
		return parse_again(c, optarg);
	case O_FAST:
		c->fast = true;
		return 0;
	case O_WINDOW:
		c->window_results = true;
		return 0;
	case O_SELECTIVE:
		c->selective = true;
		return 0;
	case O_EVERY_NAK:
		c->every_nak = true;
		return 0;
	case O_RESYNC:
		c->resync = true;
		return 0;
	case O_COALESCE:
		c->coalesce = true;
		return 0;
	case O_LEAST_BURST:
		c->least_burst = true;
		return 0;
	case O_NOTICED:
		c->noticed = c->prompt = true;
		return 0;
	case O_LEARN:
		c->learn = true;
		return 0;
	case O_PROMPT:
		c->prompt = true;
		return 0;
	case O_EXPECT:
		c->expect_violation = true;
		return 0;
	case O_NO_SYM:
		c->symmetry = false;
		return 0;
	case O_NO_POR:
		c->por = false;
		return 0;
	case O_QUIET:
		c->quiet = true;
		return 0;
	case O_SPEC:
		c->spec_states = atof(optarg);
		return 0;
	case O_PAPER:
		c->paper_states = atof(optarg);
		return 0;
	case O_PCAP:
		c->pcap = optarg;
		return 0;
	case O_JSON:
		c->json = optarg;
		return 0;
	default:
		return number_option(c, code);
	}
}

static unsigned psns(const struct mc_config *c)
{
	unsigned n = 0;

	for (unsigned i = 0; i < c->n_ops; i++)
		n += 1u + c->op[i].n;
	return n;
}

static int check(const struct mc_config *c)
{
	if ((c->flags & INC_F_SR) && psns(c) > MC_SR_PSN) {
		fprintf(stderr, "incline-model: --ops: more packets than hosts with SR count\n");
		return -EINVAL;
	}
	for (unsigned i = 0; i < c->n_ops; i++)
		if (c->op[i].root >= c->n_ranks) {
			fprintf(stderr, "incline-model: --ops: rank %u, there are %u\n",
				c->op[i].root, c->n_ranks);
			return -EINVAL;
		} else if (c->kind == INC_SINGLE &&
			   (c->op[i].prim != c->op[0].prim || c->op[i].root != c->op[0].root)) {
			fprintf(stderr, "incline-model: --ops: a single group has one primitive "
					"and root\n");
			return -EINVAL;
		}
	for (unsigned i = 0; c->mode == MC_NETREDUCE && i < c->n_ops; i++)
		if (c->op[i].prim != INC_AR || (c->learn && mc_may_fail(c))) {
			fprintf(stderr, "incline-model: NetReduce has allreduces only, and with "
					"--learn no failures: it may not know what to tell\n");
			return -EINVAL;
		}
	if (mc_may_end(c) &&
		((c->mode != INC_MODE_2 && c->mode != INC_MODE_3) || c->prompt || mc_may_fail(c) ||
			(c->flags & INC_F_SR) || (c->drain && (c->n_leaf || c->again)))) {
		fprintf(stderr, "incline-model: --drain and --again: modes II and III, without "
				"failures, SR and --prompt; --drain: a star, and by itself\n");
		return -EINVAL;
	}
	if (((c->flags & INC_F_WRITE) || c->resync || c->coalesce) &&
		((c->mode != INC_MODE_2 && c->mode != INC_MODE_3) || (c->flags & INC_F_SR))) {
		fprintf(stderr, "incline-model: WRITE, --resync, --coalesce: modes II and III, "
				"without SR\n");
		return -EINVAL;
	}
	if (c->resync && (c->kind != INC_MIXED || mc_may_end(c) || mc_may_fail(c))) {
		fprintf(stderr,
			"incline-model: --resync: mixed groups that neither end nor fail\n");
		return -EINVAL;
	}
	if (c->coalesce && c->again) {
		fprintf(stderr, "incline-model: --coalesce: not with --again\n");
		return -EINVAL;
	}
	if (c->fail && c->noticed) {
		fprintf(stderr, "incline-model: --fail: not with --noticed\n");
		return -EINVAL;
	}
	if (c->noticed && (c->mode != INC_MODE_3 || c->dup)) {
		fprintf(stderr, "incline-model: --noticed: only Mode-III without duplicates\n");
		return -EINVAL;
	}
	if (c->prompt && ((c->loss && !c->noticed) || c->reorder || c->early || c->rnr ||
				 mc_may_fail(c) || (c->flags & INC_F_STALL_RNR))) {
		fprintf(stderr, "incline-model: --prompt: only where nothing is lost, overtaken or "
				"held\n");
		return -EINVAL;
	}
	return 0;
}

int mc_config_parse(struct mc_config *c, int argc, char **argv)
{
	int code, at;

	optind = 0;
	while ((code = getopt_long(argc, argv, "", options, &at)) != -1) {
		if (code == '?')
			return -EINVAL;
		if (one_option(c, code) != 0) {
			fprintf(stderr, "incline-model: --%s: bad value%s%s\n", options[at].name,
				optarg ? " " : "", optarg ? optarg : "");
			return -EINVAL;
		}
	}
	if (optind != argc) {
		fprintf(stderr, "incline-model: what is %s?\n", argv[optind]);
		return -EINVAL;
	}
	if (c->mode == INC_MODE_1) {
		c->flags = 0;        /* of the other modes */
		c->symmetry = false; /* buffers have numbers */
	}
	if (c->mode == MC_NETREDUCE)
		c->kind = INC_SINGLE; /* MSNs are the hosts' own */
	if (c->slots == 0 && c->mode != INC_MODE_1)
		for (c->slots = c->mode == INC_MODE_3 ? 2 : 4;
			c->slots < (c->mode == INC_MODE_3 ? 1u : 2u) * c->m * c->w;)
			c->slots *= 2;
	if (c->host_w == 0)
		c->host_w = c->w;
	return check(c);
}
