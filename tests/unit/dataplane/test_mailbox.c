/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a call waits for a worker: time and sleep are this file's, and sleeps last longer than
 * they should (--wrap=usleep). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <errno.h>
#include <unistd.h>

#include "dataplane/runtime/mailbox.h"
#include "lib/port/port.h"

enum { SLACK_NS = 50000 };
static const uint64_t SECOND = UINT64_C(1000000000);

static uint64_t now;
static struct mailbox box;
static struct mailbox_call *taken;
static uint64_t takes_at, done_at;
static unsigned runs;

uint64_t port_now_ns(void)
{
	return now;
}

static void work(struct worker *w, void *arg)
{
	(void)w;
	assert_ptr_equal(arg, &box);
	runs++;
}

/* The worker, meanwhile. */
int __wrap_usleep(useconds_t us);
int __wrap_usleep(useconds_t us)
{
	now += us * UINT64_C(1000) + SLACK_NS;
	if (!taken && now >= takes_at)
		taken = atomic_exchange(&box.call, NULL);
	if (taken && now >= done_at) {
		taken->fn(NULL, taken->arg);
		atomic_store(&taken->done, true);
	}
	return 0;
}

static int start(void **state)
{
	(void)state;
	now = 7 * SECOND;
	taken = NULL;
	runs = 0;
	takes_at = done_at = UINT64_MAX;
	return 0;
}

/* A second, however long sleeps are; and it is not done later. */
static void nobody_takes_it(void **state)
{
	(void)state;
	assert_int_equal(mailbox_call(&box, work, &box), -ETIMEDOUT);
	assert_in_range(now, 8 * SECOND, 8 * SECOND + SECOND / 1000);
	mailbox_take(&box, NULL);
	assert_int_equal(runs, 0);
}

static void begun_is_waited_for(void **state)
{
	(void)state;
	takes_at = now + SECOND - SECOND / 100;
	done_at = now + 5 * SECOND;
	assert_int_equal(mailbox_call(&box, work, &box), 0);
	assert_int_equal(runs, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nobody_takes_it, start),
		cmocka_unit_test_setup(begun_is_waited_for, start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
