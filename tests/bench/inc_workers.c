/* SPDX-License-Identifier: BSD-3-Clause */
/* What a second worker is worth: the graph's path for a worker alone, and for all of them at the
 * same time, in turns. Each is a thread on a CPU of its own with ports, packets and a group of its
 * own; tables, buffers and what the CPU shares they share. */
#include <jansson.h>
#include <pthread.h>
#include <rte_lcore.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/inc_path.h"

enum { MAX_ROUNDS = 100, EACH = 8 /* repetitions of a round */ };

struct team {
	unsigned n, rounds;
	pthread_barrier_t together;
	atomic_bool failed;
	struct path path[PATH_MAX_WORKERS];
	uint64_t alone[PATH_MAX_WORKERS][MAX_ROUNDS], beside[PATH_MAX_WORKERS][MAX_ROUNDS];
};

struct member {
	struct team *team;
	unsigned k;
	pthread_t thread;
};

static int by_size(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t median(uint64_t *ns, unsigned n)
{
	qsort(ns, n, sizeof(ns[0]), by_size);
	return ns[n / 2];
}

/* The middle one of some repetitions: not the best, which may have met no other. */
static uint64_t once(struct path *p)
{
	uint64_t ns[EACH];

	for (unsigned i = 0; i < EACH; i++) {
		path_restore(p);
		ns[i] = p->run(p);
	}
	return median(ns, EACH);
}

static bool take_cpu(unsigned k)
{
	cpu_set_t all, one;

	CPU_ZERO(&one);
	if (sched_getaffinity(0, sizeof(all), &all) != 0)
		return false;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && k-- == 0) {
			CPU_SET(cpu, &one);
			return pthread_setaffinity_np(pthread_self(), sizeof(one), &one) == 0;
		}
	return false;
}

/* A round: each in turn alone, then all. */
static void *work(void *arg)
{
	struct member *m = arg;
	struct team *t = m->team;

	if (!take_cpu(m->k) || rte_thread_register() != 0)
		atomic_store(&t->failed, true);
	pthread_barrier_wait(&t->together);
	for (unsigned r = 0; r < t->rounds && !atomic_load(&t->failed); r++) {
		for (unsigned k = 0; k < t->n; k++) {
			if (k == m->k)
				t->alone[k][r] = once(&t->path[k]);
			pthread_barrier_wait(&t->together);
		}
		t->beside[m->k][r] = once(&t->path[m->k]);
		pthread_barrier_wait(&t->together);
	}
	rte_thread_unregister();
	return NULL;
}

static int run_all(struct team *t)
{
	struct member member[PATH_MAX_WORKERS];
	unsigned n = 0;

	pthread_barrier_init(&t->together, NULL, t->n);
	for (; n < t->n; n++) {
		member[n] = (struct member){.team = t, .k = n};
		if (pthread_create(&member[n].thread, NULL, work, &member[n]) != 0)
			exit(1); /* the others wait for it */
	}
	while (n-- > 0)
		pthread_join(member[n].thread, NULL);
	pthread_barrier_destroy(&t->together);
	return atomic_load(&t->failed) ? -1 : 0;
}

static json_t *report(struct team *t)
{
	const struct path *p = &t->path[0];
	const double bits = (double)p->n_psn * PATH_FAN_IN * p->spec.mtu * 8;
	double alone = 0, all = 0;

	for (unsigned k = 0; k < t->n; k++) {
		alone += bits / (double)median(t->alone[k], t->rounds) / t->n;
		all += bits / (double)median(t->beside[k], t->rounds);
	}
	printf("%7u %7u %9.1f %9.1f %6.2f\n", t->n, p->spec.mtu, alone, all, all / alone);
	return json_pack("{s:i,s:i,s:f,s:f,s:f}", "workers", (int)t->n, "payload", (int)p->spec.mtu,
		"one_gbps", alone, "all_gbps", all, "ratio", all / alone);
}

static int measure(struct team *t, uint32_t mtu, size_t pool, json_t *results)
{
	int rc;

	for (unsigned k = 0; k < t->n; k++) {
		const struct path_spec spec = {"II", mtu, pool / t->n, 1, false, k, t->n};

		path_graph_open(&t->path[k], &spec);
	}
	rc = run_all(t);
	if (rc == 0)
		json_array_append_new(results, report(t));
	else
		fprintf(stderr, "bench-inc: --workers %u: there are not so many CPUs\n", t->n);
	for (unsigned k = 0; k < t->n; k++) {
		for (unsigned i = 0; i < t->path[k].n_blocks; i++)
			free(t->path[k].block[i].copy);
		free(t->path[k].block);
		free(t->path[k].frame);
		t->path[k].close(&t->path[k]);
	}
	return rc;
}

int path_workers(unsigned n, unsigned rounds, size_t pool, json_t *results)
{
	struct team *t = calloc(1, sizeof(*t));
	int rc = t ? 0 : -1;

	printf("# one worker alone, and all at the same time: CPU, ports and group of its own "
	       "each\n");
	printf("%7s %7s %9s %9s %6s\n", "workers", "payload", "one Gb/s", "all Gb/s", "ratio");
	for (uint32_t mtu = 1024; rc == 0 && mtu <= 4096; mtu *= 4) {
		*t = (struct team){.n = n, .rounds = rounds < MAX_ROUNDS ? rounds : MAX_ROUNDS};
		rc = measure(t, mtu, pool, results);
	}
	free(t);
	return rc;
}
