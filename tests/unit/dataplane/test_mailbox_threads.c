/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that a worker's thread takes while it writes what is its own: what the caller wrote before
 * is seen by the call, what the call wrote by the caller behind it (ThreadSanitizer looks on). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#include "dataplane/runtime/mailbox.h"

enum { CALLS = 2000 };

static struct mailbox box;
static atomic_bool stop;
static unsigned turns;   /* the worker's alone */
static unsigned answers; /* the caller's, or the worker's during a call */

static void *loop(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		turns++;
		mailbox_take(&box, NULL);
		sched_yield();
	}
	return NULL;
}

static void look(struct worker *w, void *arg)
{
	unsigned *seen = arg;

	(void)w;
	*seen = turns++;
	answers++;
}

static void calls_while_it_works(void **state)
{
	pthread_t thread;
	unsigned last = 0;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, loop, NULL), 0);
	for (unsigned i = 0; i < CALLS; i++) {
		unsigned seen = 0;

		assert_int_equal(mailbox_call(&box, look, &seen), 0);
		assert_true(seen > last);
		last = seen;
		assert_int_equal(answers, i + 1);
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	assert_true(turns > last);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(calls_while_it_works)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
