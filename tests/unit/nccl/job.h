/* SPDX-License-Identifier: BSD-3-Clause */
/* What NCCL does with a plug-in's collective network, on imaginary switches and devices: loads the
 * library by the name that it makes of NCCL_NET_PLUGIN, looks up the symbols of version 8, and
 * drives a rank per thread. */
#ifndef TESTS_NCCL_JOB_H
#define TESTS_NCCL_JOB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdbool.h>

#include "lib/nccl/abi.h"
#include "tests/unit/ccl/fake_switch.h"
#include "tests/unit/ccl/fake_verbs.h"

enum { N = 4 };

extern const struct nccl_net *net;
extern const struct nccl_collnet *coll;

struct job;

struct rank {
	struct job *job;
	unsigned rank, dev;
	pthread_t thread;
	void *listener, *comm;
	nccl_rc connected;
	unsigned wrong;
};

struct job {
	unsigned n; /* ranks; rank r has device order[r] */
	unsigned order[N];
	struct fake_switch sw;
	char path[64]; /* of the group file */
	char handle[N][NCCL_HANDLE_LEN];
	pthread_barrier_t all;
	void (*work)(struct rank *me);
	struct rank rank[N];
};

int load(void **state); /* cmocka: of all tests */
int unload(void **state);

/* Whether a warning was logged, by any rank, that has this text. */
bool has_warned(const char *text);
bool warned(const char *text); /* and if not, shows what was */
/* How often memory was said not to be registered. */
unsigned copied(void);
void forget_warnings(void);

/* Ranks on devices 0 .. n-1; the file has all N. */
void prepare(struct job *j, unsigned n, void (*work)(struct rank *me));
/* Every rank listens, connects, and works if it could. */
void run(struct job *j);
/* All have connected, and counted nothing wrong. */
void all_right(const struct job *j);
void finish(struct job *j);

/* Tests until done: the bytes. An error ends the program's test. */
int complete(void *request);

#endif
