/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device's thread does between two turns, one step after another: it waits in each until
 * the test lets it go on. Time is the test's. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "lib/verbs/incline_dv.h"
#include "lib/verbs/port_ops.h"

static const uint64_t us = 1000, second = 1000000000, begin = 5000000000;

/* ---- the thread's steps ---- */

enum { YIELD = 0, BETWEEN_STEPS = -1 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	long step; /* where it waits: YIELD or how many us it would sleep */
	bool free;
} thread = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, BETWEEN_STEPS, false};

static pthread_t test_thread;
static _Atomic uint64_t clock_ns;
static atomic_uint asked;
static atomic_bool ticks;    /* a look at the clock takes a microsecond */
static atomic_uint arriving; /* frames, which mean nothing */

static void wait_for_test(long step)
{
	pthread_mutex_lock(&thread.lock);
	if (!thread.free) {
		thread.step = step;
		pthread_cond_broadcast(&thread.changed);
		while (thread.step != BETWEEN_STEPS)
			pthread_cond_wait(&thread.changed, &thread.lock);
	}
	pthread_mutex_unlock(&thread.lock);
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *left);
int __real_nanosleep(const struct timespec *t, struct timespec *left);
int __wrap_sched_yield(void);
int __real_sched_yield(void);

int __wrap_nanosleep(const struct timespec *t, struct timespec *left)
{
	if (pthread_equal(pthread_self(), test_thread))
		return __real_nanosleep(t, left);
	wait_for_test((long)t->tv_sec * 1000000 + t->tv_nsec / 1000);
	return 0;
}

int __wrap_sched_yield(void)
{
	if (pthread_equal(pthread_self(), test_thread))
		return __real_sched_yield();
	wait_for_test(YIELD);
	return 0;
}

/* Where it waits next, at that time. */
static long step_at(uint64_t now)
{
	long step;

	pthread_mutex_lock(&thread.lock);
	clock_ns = now;
	thread.step = BETWEEN_STEPS;
	pthread_cond_broadcast(&thread.changed);
	while (thread.step == BETWEEN_STEPS)
		pthread_cond_wait(&thread.changed, &thread.lock);
	step = thread.step;
	pthread_mutex_unlock(&thread.lock);
	return step;
}

/* ---- a port at which nothing happens ---- */

static unsigned rx_burst(void *port, struct rnic_rx_frame *frames, unsigned n)
{
	static const uint8_t nonsense[64];

	(void)port, (void)n;
	if (arriving == 0)
		return 0;
	arriving--;
	frames[0] = (struct rnic_rx_frame){.data = nonsense, .len = sizeof(nonsense)};
	return 1;
}

static void rx_free(void *port, const struct rnic_rx_frame *frames, unsigned n)
{
	(void)port, (void)frames, (void)n;
}

static unsigned tx_room(void *port)
{
	(void)port;
	return VERBS_BURST;
}

static void tx(void *port, const struct rnic_frame *frame)
{
	(void)port, (void)frame;
}

static unsigned tx_flush(void *port)
{
	(void)port;
	return 0;
}

static uint64_t now_of(void *port)
{
	(void)port;
	atomic_fetch_add(&asked, 1);
	return ticks ? clock_ns += us : clock_ns;
}

/* Of who polls in vain: he yields, and gets his processor back when the thread has had its turn. */
static uint64_t off_until;

static void idle(void *port)
{
	(void)port;
	if (off_until) {
		arriving = 1;
		assert_int_equal(step_at(clock_ns + 900 * us), 100);
		assert_int_equal(arriving, 1);
		ticks = true;
		assert_int_equal(step_at(off_until), YIELD);
		ticks = false;
		assert_int_equal(arriving, 0);
	}
}

static const struct verbs_port_ops quiet_port = {.rx_burst = rx_burst,
	.rx_free = rx_free,
	.tx_room = tx_room,
	.tx = tx,
	.tx_flush = tx_flush,
	.idle = idle,
	.now = now_of};

static struct ibv_context *device;
static struct ibv_cq *cq;

/* Its first turns, which are as work, are at the time begin. */
static int set_up(void **state)
{
	struct verbs_open_attr attr = {.thread = true,
		.idle = PORT_IDLE_SLEEP,
		.rnic.port[0] = {.mac = {2, 0, 0, 0, 0, 1},
			.ip = {wire_ip_from4(0x0a4d0001)},
			.n_ip = 1,
			.mtu = 4200}};
	unsigned before;

	(void)state;
	test_thread = pthread_self();
	thread.free = false;
	clock_ns = begin;
	ticks = false;
	device = incline_verbs_open_port(&quiet_port, NULL, &attr);
	assert_non_null(device);
	before = asked;
	while (asked - before < 16)
		__real_sched_yield();
	cq = ibv_create_cq(device, 16, NULL, NULL, 0);
	assert_non_null(cq);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	pthread_mutex_lock(&thread.lock);
	thread.free = true;
	thread.step = BETWEEN_STEPS;
	pthread_cond_broadcast(&thread.changed);
	pthread_mutex_unlock(&thread.lock);
	clock_ns += second; /* or it would pause until then */
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_close_device(device), 0);
	return 0;
}

static void poll_in_vain(uint64_t now)
{
	struct ibv_wc wc;

	clock_ns = now;
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

/* ---- the tests ---- */

/* Naps are a quarter of the time since its yields, 20 us at least; with no queue pair 1000 at most.
 */
static void naps_grow(void **state)
{
	static const struct {
		uint64_t us;
		long step;
	} rows[] = {{2, YIELD}, {201, YIELD}, {202, 20}, {282, 20}, {286, 21}, {602, 100},
		{2202, 500}, {4198, 999}, {4202, 1000}, {60000000, 1000}};

	(void)state;
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(step_at(begin + rows[i].us * us), rows[i].step);
}

/* While the program polls the thread stands aside, ever longer. What the program may have found is
 * work: when it polls no more the thread is back at once, and backs off from there. */
static void polling_is_work(void **state)
{
	uint64_t now = begin + 10 * second;

	(void)state;
	assert_int_equal(step_at(now), 1000);
	for (unsigned round = 0; round < 2; round++) {
		static const long aside[] = {100, 200, 400, 400};

		for (unsigned i = 0; i < sizeof(aside) / sizeof(aside[0]); i++) {
			now += second;
			poll_in_vain(now);
			assert_int_equal(step_at(now), aside[i]);
		}
		now += 400 * us;
		ticks = true;
		assert_int_equal(step_at(now), YIELD);
		ticks = false;
		assert_int_equal(step_at(now + 201 * us), YIELD);
		assert_int_equal(step_at(now + 210 * us), 20);
		assert_int_equal(step_at(now + 605 * us), 100);
	}
}

/* Who waits for a peer's WRITE in memory, and polls a CQ now and then, is not left alone: what lay
 * there while the thread stood aside makes it stay for 10 ms, whoever polls. */
static void memory_is_waited_for(void **state)
{
	uint64_t now = begin + 10 * second;

	(void)state;
	assert_int_equal(step_at(now), 1000);
	poll_in_vain(now);
	assert_int_equal(step_at(now + 19 * us), 100);
	arriving = 1;
	ticks = true;
	now += 119 * us;
	assert_int_equal(step_at(now), YIELD);
	assert_int_equal(arriving, 0);
	ticks = false;
	for (unsigned ms = 3; ms < 10; ms++) { /* naps of its own, of 700 us and more */
		poll_in_vain(now + ms * 1000 * us);
		assert_true(step_at(now + ms * 1000 * us) > 400);
	}
	now += 10001 * us;
	poll_in_vain(now);
	assert_int_equal(step_at(now), 100);
	poll_in_vain(now + 100 * us);
	assert_int_equal(step_at(now + 100 * us), 200);
}

/* Who polls and has no processor does nobody's work. */
static void poller_without_a_processor(void **state)
{
	const uint64_t now = begin + 10 * second;

	(void)state;
	assert_int_equal(step_at(now), 1000);
	off_until = now + 1001 * us;
	poll_in_vain(now);
	off_until = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(naps_grow),
		T(polling_is_work),
		T(memory_is_waited_for),
		T(poller_without_a_processor),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
