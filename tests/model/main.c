/* SPDX-License-Identifier: BSD-3-Clause */
/* incline-model: explores all that can happen to a configuration of switches, hosts and links.
 * Exit status 0: explored completely and nothing wrong (or what --expect-violation asks for); 1: a
 * violation, or none where one was expected, or cut off; 2: usage. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/model/model.h"
#include "tests/model/seeded.h"

static int write_json(const struct mc_config *c, const struct mc_sys *s, const struct mc_outcome *o)
{
	json_t *j = json_pack("{s:I s:I s:I s:b s:f s:I s:f s:s? s:i s:I s:f s:f}", "states",
		(json_int_t)o->states, "transitions", (json_int_t)o->transitions, "depth",
		(json_int_t)o->depth, "complete", o->complete, "seconds", o->seconds, "bytes",
		(json_int_t)o->bytes, "collision_probability", o->collision, "violation",
		o->violation, "trace_steps", (int)o->n_trace, "engine_calls",
		(json_int_t)s->engine_calls, "spec_states", c->spec_states, "paper_states",
		c->paper_states);
	int rc = j ? json_dump_file(j, c->json, JSON_INDENT(1)) : -1;

	json_decref(j);
	if (rc != 0)
		fprintf(stderr, "incline-model: %s: cannot be written\n", c->json);
	return rc;
}

static void print_outcome(
	const struct mc_config *c, const struct mc_sys *s, const struct mc_outcome *o)
{
	const char *word = o->violation ? "VIOLATION" : o->complete ? "complete, ok" : "CUT OFF";

	printf("%s: %llu states, %llu transitions, depth %u", word, (unsigned long long)o->states,
		(unsigned long long)o->transitions, o->depth);
	if (c->spec_states > 0)
		printf(" (specification: %.0f states)", c->spec_states);
	if (c->paper_states > 0)
		printf(" (EPIC: %.0f states)", c->paper_states);
	printf("; %.1f s, %.0f MB, %llu engine calls, collision %.1g\n", o->seconds,
		(double)o->bytes / 1e6, (unsigned long long)s->engine_calls, o->collision);
}

/* A bug counts as found only if the same configuration is right without it. */
static int without_bug(struct mc_config c)
{
	struct mc_sys *s = malloc(sizeof(*s));
	struct mc_outcome o;

	mc_seed("none");
	mc_sys_open(s, &c);
	mc_explore(s, &o);
	if (!o.complete || o.violation) {
		printf("without the bug: ");
		print_outcome(&c, s, &o);
	}
	return o.complete && o.violation == NULL ? 0 : 1;
}

/* Violations are results as well: which exit status they lead to. */
static int judge(const struct mc_config *c, const struct mc_outcome *o)
{
	if (!c->expect_violation)
		return o->complete && o->violation == NULL ? 0 : 1;
	if (o->violation == NULL) {
		printf("a violation was expected\n");
		return 1;
	}
	if (c->max_trace && o->n_trace > c->max_trace) {
		printf("the trace has %u steps, more than %u\n", o->n_trace, c->max_trace);
		return 1;
	}
	return 0;
}

static int explore(const struct mc_config *c)
{
	struct mc_sys *s = malloc(sizeof(*s));
	struct mc_outcome o;
	int rc;

	mc_sys_open(s, c);
	mc_explore(s, &o);
	print_outcome(c, s, &o);
	if (o.violation) {
		printf("%s%s%s, after %u steps", mc_seeded() ? mc_seeded() : "",
			mc_seeded() ? ": " : "", o.violation, o.n_trace);
		if (o.doomed)
			printf("; %llu such states", (unsigned long long)o.doomed);
		putchar('\n');
		if (!c->quiet)
			mc_trace_print(s, &o);
	}
	rc = judge(c, &o);
	if (o.violation && c->pcap && mc_trace_pcap(s, &o, c->pcap) != 0)
		rc = 2;
	if (c->json && write_json(c, s, &o) != 0)
		rc = 2;
	fflush(stdout);
	return rc;
}

/* Each configuration in a process of its own: memory is not given back otherwise. */
static int run(int argc, char **argv)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		struct mc_config c;
		int rc;

		mc_config_defaults(&c);
		rc = mc_config_parse(&c, argc, argv) != 0 ? 2 : explore(&c);
		if (rc == 0 && c.expect_violation && mc_seeded())
			rc = without_bug(c);
		fflush(stdout);
		_exit(rc);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 2;
	return WEXITSTATUS(status);
}

enum { SUITE_MAX = 1 << 16, WORDS_MAX = 64 };

/* The whole file, since children must not share its position. Its length, 0 if it cannot be read.
 */
static size_t slurp(const char *path, char *text)
{
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(text, 1, SUITE_MAX - 1, f) : 0;

	if (n == 0)
		fprintf(stderr, "incline-model: %s: %s\n", path, strerror(errno));
	if (f)
		fclose(f);
	text[n] = '\0';
	return n;
}

/* Each line is a configuration; args come behind it. */
static int suite(const char *path, int more, char **args)
{
	static char text[SUITE_MAX];
	char program[] = "incline-model", *word[WORDS_MAX + 1] = {program}, *lines, *words;
	unsigned bad = 0, all = 0;

	if (slurp(path, text) == 0)
		return 2;
	for (char *line = strtok_r(text, "\n", &lines); line; line = strtok_r(NULL, "\n", &lines)) {
		int n = 1;

		line[strcspn(line, "#")] = '\0';
		if (line[strspn(line, " \t")] == '\0')
			continue;
		printf("%s\n    ", line);
		for (char *w = strtok_r(line, " \t", &words); w && n + more < WORDS_MAX;
			w = strtok_r(NULL, " \t", &words))
			word[n++] = w;
		for (int i = 0; i < more && n < WORDS_MAX; i++)
			word[n++] = args[i];
		word[n] = NULL;
		all++;
		bad += run(n, word) != 0;
	}
	printf("%u configurations, %u failed\n", all, bad);
	return bad != 0 || all == 0;
}

int main(int argc, char **argv)
{
	if (argc < 2 || strcmp(argv[1], "--help") == 0) {
		mc_config_usage();
		return argc < 2 ? 2 : 0;
	}
	if (strcmp(argv[1], "--suite") == 0 && argc > 2)
		return suite(argv[2], argc - 3, argv + 3);
	return run(argc, argv);
}
