/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocking waits over imaginary verbs, on a clock and a poll of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/lease.h"
#include "lib/ccl/resume.h"
#include "tests/unit/ccl/fake_verbs.h"

enum { N = 4, US = 1000, MS = 1000000, LOOK_NS = 50 * US };

static uint64_t now;
static int longest, naps;
static bool no_memory;

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);
void *__wrap_realloc(void *at, size_t len);
void *__real_realloc(void *at, size_t len);

void *__wrap_realloc(void *at, size_t len)
{
	return no_memory ? NULL : __real_realloc(at, len);
}

/* Whoever looks at it spends some of it. */
int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
	(void)id;
	now += LOOK_NS;
	*ts = (struct timespec){(time_t)(now / 1000000000u), (long)(now % 1000000000u)};
	return 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
	(void)fds;
	(void)n;
	naps++;
	longest = ms > longest ? ms : longest;
	now += (uint64_t)ms * MS;
	return 0;
}

static struct ccl_comm *open_one(void)
{
	const struct ccl_conn conn = {.context = fake_context(0),
		.gid_index = 1,
		.n_ranks = N,
		.m = 2,
		.w = 4,
		.timeout_ns = 1000000000,
		.mtu = 256,
		.remote_ip = wire_ip_from4(0x0a4dff01),
		.remote_qpn = 0x1040};
	struct ccl_comm *comm;
	char err[CCL_ERR_LEN];

	assert_int_equal(ccl_comm_create_connected(&conn, &comm, err), 0);
	return comm;
}

/* A caller that has other things to do, as an MPI program's messages, gets its turn when it has
 * said, not when CommLib has slept. */
static void a_short_wait_is_short(void **state)
{
	static const unsigned slices[] = {100 * US, 600 * US, 2 * MS, 7 * MS, 30 * MS};
	struct ccl_comm *comm;
	struct ccl_req req;

	(void)state;
	fake_init(N, 1024, 1);
	fake_window(4);
	comm = open_one();
	assert_int_equal(ccl_ibarrier(comm, &req), 0);
	for (unsigned i = 0; i < sizeof(slices) / sizeof(slices[0]); i++) {
		const uint64_t start = now;

		longest = 0;
		assert_int_equal(ccl_wait(comm, req, slices[i]), -ETIMEDOUT);
		/* Whole milliseconds, and a few looks at the clock. */
		assert_true(now - start <= slices[i] + MS + 4 * LOOK_NS);
		assert_true(longest <= 10);
	}
	assert_true(naps > 0);
	ccl_comm_destroy(comm);
	fake_fini();
}

static uint64_t asked_ns;

static void ask(void *arg, uint32_t what)
{
	(void)arg;
	asked_ns = what == CCL_LEASE_ACQUIRE && !asked_ns ? now : asked_ns;
}

static int answer(void *arg, int *rc, char why[CCL_DESK_WHY])
{
	(void)arg, (void)rc, (void)why;
	return 0;
}

/* Instead of the lease's ring, which sleeps by the communicator's queue. */
struct ibv_cq *__wrap_ccl_ring_cq(const struct ccl_ring *ring);
struct ibv_comp_channel *__wrap_ccl_ring_channel(const struct ccl_ring *ring);
int __wrap_ccl_ring_progress(struct ccl_ring *ring, uint64_t at);
void __wrap_ccl_ring_close(struct ccl_ring *ring);

struct ibv_cq *__wrap_ccl_ring_cq(const struct ccl_ring *ring)
{
	return ((const struct ccl_comm *)ring)->cq;
}

struct ibv_comp_channel *__wrap_ccl_ring_channel(const struct ccl_ring *ring)
{
	return ((const struct ccl_comm *)ring)->channel;
}

int __wrap_ccl_ring_progress(struct ccl_ring *ring, uint64_t at)
{
	(void)ring, (void)at;
	return 0;
}

void __wrap_ccl_ring_close(struct ccl_ring *ring)
{
	(void)ring;
}

/* A turn's beginning is not slept through, whatever part of a millisecond it comes at. */
static void a_turn_is_not_overslept(void **state)
{
	const struct ccl_desk desk = {.ask = ask, .answer = answer, .fd = -1};

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		struct ccl_turn turn = {.cycle_ns = 100 * MS, .length_ns = 4 * MS};
		struct ccl_comm *comm;
		struct ccl_req req;
		uint64_t begins;

		fake_init(N, 1024, 1);
		fake_window(4);
		comm = open_one();
		assert_int_equal(ccl_lease_attach(comm, (struct ccl_ring *)comm, &desk, 0), 0);
		begins = now + 25 * MS + i * 100 * US;
		turn.zero_ns = begins % turn.cycle_ns;
		ccl_lease_set_turn(comm, &turn);
		asked_ns = 0;
		naps = 0;
		assert_int_equal(ccl_ibarrier(comm, &req), 0);
		assert_int_equal(ccl_wait(comm, req, 40 * MS), -ETIMEDOUT);
		assert_true(naps > 2);
		assert_true(asked_ns >= begins);
		assert_true(asked_ns - begins <= 4 * LOOK_NS);
		ccl_comm_destroy(comm);
		fake_fini();
	}
}

/* A rank that has no memory for a collective, and goes on, would give the others its next one in
 * the place of this: so it ends, and is not mended. */
static void without_memory_it_ends(void **state)
{
	struct ccl_req req = {UINT64_MAX};
	struct ccl_comm *comm;
	int v = 1, sum;

	(void)state;
	fake_init(N, 1024, 1);
	fake_window(4);
	comm = open_one();
	assert_int_equal(ccl_resume_enable(comm), 0);
	no_memory = true;
	assert_int_equal(
		ccl_iallreduce(comm, &v, &sum, 1, REDUCE_INT32, REDUCE_SUM, &req), -ECANCELED);
	no_memory = false;
	assert_int_equal(req.seq, UINT64_MAX);
	assert_non_null(strstr(ccl_error(comm), "out of memory for a collective that the others"));
	assert_int_equal(ccl_ibarrier(comm, &req), -ECANCELED);
	assert_false(ccl_resume_may(comm));
	ccl_comm_destroy(comm);
	fake_fini();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_short_wait_is_short),
		cmocka_unit_test(a_turn_is_not_overslept),
		cmocka_unit_test(without_memory_it_ends)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
