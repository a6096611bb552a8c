/* SPDX-License-Identifier: BSD-3-Clause */
/* A bell, one step after another: what a sleeper does about a ringer that is in the middle. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/verbs/bell.h"

/* Between asleep and the ppoll. */
static bool nothing(void *arg)
{
	(void)arg;
	return false;
}

static bool rings(void *arg)
{
	iv_bell_ring(arg);
	return false;
}

/* The first half of iv_bell_ring. */
static bool begins_to_ring(void *arg)
{
	struct iv_bell *bell = arg;

	return atomic_exchange(&bell->asleep, false);
}

static void back_off(struct iv_bell *bell, bool (*ready)(void *arg))
{
	struct port_backoff backoff = {.idle = PORT_IDLE_SLEEP, .worked_ns = 1};

	iv_bell_back_off(bell, ready, bell, &backoff, 0, 1000000, UINT64_MAX);
	assert_false(atomic_load(&bell->asleep));
}

static bool has_rung(const struct iv_bell *bell)
{
	struct pollfd fd = {.fd = bell->fd, .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

static void ring(void **state)
{
	struct iv_bell bell;

	(void)state;
	assert_true(iv_bell_init(&bell));
	iv_bell_ring(&bell); /* nobody sleeps */
	assert_false(has_rung(&bell));
	back_off(&bell, rings);
	assert_false(has_rung(&bell));
	iv_bell_fini(&bell);
}

/* A thread may end between the two halves, or be stopped there by a signal whose handler waits for
 * the sleeper. */
static void half_a_ring(void **state)
{
	struct iv_bell bell;

	(void)state;
	assert_true(iv_bell_init(&bell));
	back_off(&bell, begins_to_ring);
	assert_false(has_rung(&bell));
	/* Or the other half comes late: one sleep is short, not all of them. */
	assert_int_equal(0, eventfd_write(bell.fd, 1));
	back_off(&bell, nothing);
	assert_false(has_rung(&bell));
	iv_bell_fini(&bell);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(ring), cmocka_unit_test(half_a_ring)};

	return cmocka_run_group_tests_name("bell", tests, NULL, NULL);
}
