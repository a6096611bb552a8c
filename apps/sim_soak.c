/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/sim_soak.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "apps/sim_scenario.h"
#include "apps/sim_soak_case.h"

enum { SECONDS = 120, EVERY = 1000 }; /* of a processor: an endless loop; a line of progress */

/* The case in a process of its own. -errno if there is none to be had. */
static int run_apart(const struct soak_case *c, const char *pcap, struct soak_outcome *out)
{
	int pipes[2], status;
	pid_t pid;
	ssize_t n;

	fflush(NULL);
	if (pipe(pipes) < 0)
		return -errno;
	pid = fork();
	if (pid < 0) {
		close(pipes[0]);
		close(pipes[1]);
		return -EAGAIN;
	}
	if (pid == 0) {
		const struct rlimit limit = {.rlim_cur = SECONDS, .rlim_max = SECONDS + 1};

		close(pipes[0]);
		setrlimit(RLIMIT_CPU, &limit);
		soak_case_run(c, pcap, out);
		_exit(write(pipes[1], out, sizeof(*out)) != (ssize_t)sizeof(*out));
	}
	close(pipes[1]);
	n = read(pipes[0], out, sizeof(*out));
	close(pipes[0]);
	waitpid(pid, &status, 0);
	if (n == (ssize_t)sizeof(*out))
		return 0;
	memset(out, 0, sizeof(*out));
	out->rc = -ECANCELED;
	if (WIFSIGNALED(status))
		snprintf(out->text, sizeof(out->text), "ended by signal %d (%s)", WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	else
		snprintf(out->text, sizeof(out->text), "ended with status %d", WEXITSTATUS(status));
	return 0;
}

/* Leaves out one thing after the other as long as it still fails, however it fails. */
static int shrink(struct soak_case *c, struct soak_outcome *out)
{
	for (bool any = true; any;) {
		struct soak_case smaller = *c;
		bool changed;

		any = false;
		for (unsigned i = 0; soak_case_shrink(&smaller, i, &changed); i++) {
			struct soak_outcome now;
			int rc = changed ? run_apart(&smaller, NULL, &now) : 0;

			if (rc)
				return rc;
			if (changed && now.rc) {
				*c = smaller;
				*out = now;
				any = true;
			}
			smaller = *c;
		}
	}
	return 0;
}

static int report(struct soak_case *c, struct soak_outcome *out, const char *pcap, json_t *failures)
{
	int rc;

	printf("seed %llu: FAILED: %s\n", (unsigned long long)c->seed, out->text);
	rc = shrink(c, out);
	if (rc)
		return rc;
	printf("seed %llu: the smallest case that fails: %s\n", (unsigned long long)c->seed,
		out->text);
	soak_case_print(c, stdout);
	json_array_append_new(
		failures, json_pack("{s:I,s:s}", "seed", (json_int_t)c->seed, "reason", out->text));
	return pcap ? run_apart(c, pcap, out) : 0;
}

int soak_run(const struct soak_options *o, json_t *result)
{
	const double start = sim_seconds();
	json_t *failures = json_array();
	uint64_t hash = 0, hops = 0, virtual_ns = 0, refused = 0;
	char text[20];
	int rc = 0;

	json_object_set_new(result, "failures", failures);
	for (uint64_t i = 0; rc == 0 && i < o->count; i++) {
		struct soak_case c;
		struct soak_outcome out;

		soak_case_make(&c, o->first + i, o->mode);
		if (o->verbose) {
			printf("seed %llu:\n", (unsigned long long)c.seed);
			soak_case_print(&c, stdout);
		}
		rc = run_apart(&c, NULL, &out);
		hash ^= out.hash;
		sim_random(&hash);
		hops += out.hops;
		virtual_ns += out.virtual_ns;
		refused += out.refused;
		if (rc == 0 && out.rc)
			rc = report(&c, &out, o->pcap, failures);
		if ((i + 1) % EVERY == 0)
			printf("%llu seeds, %zu failed, %.0f s\n", (unsigned long long)(i + 1),
				json_array_size(failures), sim_seconds() - start);
	}
	snprintf(text, sizeof(text), "%016llx", (unsigned long long)hash);
	json_object_set_new(result, "first", json_integer((json_int_t)o->first));
	json_object_set_new(result, "seeds", json_integer((json_int_t)o->count));
	json_object_set_new(result, "refused", json_integer((json_int_t)refused));
	json_object_set_new(result, "hops", json_integer((json_int_t)hops));
	json_object_set_new(result, "trace_hash", json_string(text));
	printf("seeds %llu..%llu: %zu failed, %llu groups refused, %llu packet-hops, %.1f s of "
	       "virtual time in %.0f s, trace %s\n",
		(unsigned long long)o->first, (unsigned long long)(o->first + o->count - 1),
		json_array_size(failures), (unsigned long long)refused, (unsigned long long)hops,
		(double)virtual_ns * 1e-9, sim_seconds() - start, text);
	return rc ? rc : (int)json_array_size(failures);
}
