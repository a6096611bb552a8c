/* SPDX-License-Identifier: BSD-3-Clause */
/* A job from group file to collectives: threads stand for processes, verbs and switches are
 * imaginary. */
#ifndef SETUP_JOB_H
#define SETUP_JOB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "lib/ccl/group.h"
#include "tests/unit/ccl/fake_switch.h"
#include "tests/unit/ccl/fake_verbs.h"

enum { N = 4 };

struct job {
	struct ccl_group *group[N]; /* each rank reads its own file */
	struct fake_switch sw[3];
	unsigned n_sw;
	unsigned start; /* ranks that are started */
	unsigned lazy;  /* rank that does not take part */
	/* What a rank does when its work is done, before it ends; NULL: nothing. */
	void (*after)(unsigned rank, struct ccl_comm *comm);
	struct rank {
		struct job *job;
		unsigned rank;
		pthread_t thread;
		int created, worked, destroyed, wrong;
		struct ccl_info info, ended; /* at its beginning, at its end */
		char err[CCL_ERR_LEN], failure[CCL_ERR_LEN];
	} rank[N];
};

/* What a test wants in the group file, and takes away again; NULL: AllReduce and Barrier. */
extern json_t *wish;

/* Group files of a star, or of a tree: s0 over s1 (ranks 0, 1) and s2 (ranks 2, 3). */
void prepare(struct job *j, bool tree, unsigned timeout_ms);
/* From the start of the switches to the end of the last rank. */
void run(struct job *j);
void finish(struct job *j);

void all_worked(const struct job *j);
/* No rank has a communicator, and each says why. */
void nobody_came_through(const struct job *j, const char *says);

#endif
