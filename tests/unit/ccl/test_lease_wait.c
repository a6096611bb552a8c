/* SPDX-License-Identifier: BSD-3-Clause */
/* Two jobs that share a lease, on virtual time: who has it, who waits for how long, who goes by the
 * ring. Of each job there is rank 0, with an imaginary ring that is done at once; the switch is one
 * variable. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/ccl/lease.h"

static const uint64_t MS = 1000000;

/* The switch: it answers what was asked one ms later. */
static uint64_t now;
static struct job *holder;

struct job {
	const char *name;
	struct ccl_comm comm;
	bool asked, release;
	uint64_t asked_ns, by_ring, in_network;
	int broken; /* what the desk says instead */
	unsigned asks;
};

/* ---- instead of the ring and the engine ---- */

int ccl_ring_ibroadcast(
	struct ccl_ring *ring, void *buf, uint64_t bytes, unsigned root, struct ccl_req *req)
{
	(void)ring, (void)buf, (void)bytes, (void)root;
	*req = (struct ccl_req){0};
	return 0;
}

int ccl_ring_ibarrier(struct ccl_ring *ring, struct ccl_req *req)
{
	(void)ring;
	*req = (struct ccl_req){0};
	return 0;
}

int ccl_ring_test(const struct ccl_ring *ring, struct ccl_req req)
{
	(void)ring, (void)req;
	return 1;
}

int ccl_ring_progress(struct ccl_ring *ring, uint64_t at)
{
	(void)ring, (void)at;
	return 0;
}

const char *ccl_ring_error(const struct ccl_ring *ring)
{
	(void)ring;
	return "";
}

void ccl_ring_close(struct ccl_ring *ring)
{
	(void)ring;
}

int ccl_ring_issue(struct ccl_ring *ring, unsigned rank, struct ccl_coll *coll)
{
	(void)rank, (void)coll;
	((struct job *)ring)->by_ring++;
	return 0;
}

int ccl_pump(struct ccl_memb *mb)
{
	(void)mb;
	return 0;
}

void ccl_part_done(struct ccl_comm *c, uint64_t coll)
{
	assert_int_equal(coll, c->coll_done);
	c->coll_done++;
}

int ccl_fail(struct ccl_comm *c, int error, const char *fmt, ...)
{
	c->failed = error;
	fail_msg("%s", fmt);
	return error;
}

/* ---- the desk ---- */

static void ask(void *arg, uint32_t what)
{
	struct job *j = arg;

	if (what == CCL_LEASE_ACQUIRE) {
		assert_false(j->asked);
		j->asked = true;
		j->asked_ns = now;
		j->asks++;
	} else {
		assert_ptr_equal(holder, j);
		holder = NULL;
	}
}

static int answer(void *arg, int *rc, char why[CCL_DESK_WHY])
{
	struct job *j = arg;

	if (!j->asked || now - j->asked_ns < MS)
		return 0;
	j->asked = false;
	*rc = j->broken ? j->broken : holder ? -EBUSY : 0;
	if (*rc == 0)
		holder = j;
	snprintf(why, CCL_DESK_WHY, "%s",
		j->broken     ? "switch s0: timed out"
		: holder != j ? "switch s0: held by b"
			      : "");
	return 1;
}

static void open_job(struct job *j, const char *name, uint64_t wait_ms)
{
	const struct ccl_desk desk = {.arg = j, .ask = ask, .answer = answer, .fd = -1};

	memset(j, 0, sizeof(*j));
	j->name = name;
	assert_int_equal(ccl_lease_attach(&j->comm, (struct ccl_ring *)j, &desk, wait_ms * MS), 0);
}

static void close_job(struct job *j)
{
	ccl_lease_close(&j->comm);
}

/* A collective is issued, without anybody looking at the clock. */
static void issue(struct job *j)
{
	ccl_coll_at(&j->comm, j->comm.coll_issued)->parts_left = 2;
	j->comm.coll_issued++;
	assert_int_equal(ccl_lease_go(&j->comm), 0);
}

static void look(struct job *j)
{
	assert_true(ccl_lease_progress(&j->comm, now) >= 0);
}

/* The switches have done it. */
static void finish(struct job *j)
{
	assert_true(ccl_lease_in_network(&j->comm));
	ccl_coll_at(&j->comm, j->comm.coll_done)->parts_left = 1;
	j->in_network++;
	look(j);
}

static bool busy(const struct job *j)
{
	return j->comm.coll_done != j->comm.coll_issued;
}

static void says(const struct job *j, const char *text)
{
	struct ccl_info info = {0};

	ccl_lease_describe(&j->comm, &info);
	if (!strstr(info.selection, text))
		fail_msg("\"%s\" does not contain \"%s\"", info.selection, text);
}

/* To the ms at which the job has the switches, or is done by the ring; at most so many. */
static uint64_t until_decided(struct job *j, uint64_t most_ms)
{
	const uint64_t start = now;

	while (busy(j) && !ccl_lease_in_network(&j->comm)) {
		assert_true(now - start <= most_ms * MS);
		now += MS;
		look(j);
	}
	return (now - start) / MS;
}

static struct job a, b;

/* b has the lease, a asks. */
static void contend(uint64_t wait_ms)
{
	now = 5000 * MS;
	holder = NULL;
	open_job(&a, "a", wait_ms);
	open_job(&b, "b", 0);
	issue(&b);
	look(&b);
	until_decided(&b, 1);
	assert_ptr_equal(holder, &b);
	now += 700 * MS; /* a has not looked for a while */
	issue(&a);
	look(&a);
}

static void end(void)
{
	close_job(&a);
	close_job(&b);
}

/* As it was before one could wait. */
static void without(void **state)
{
	(void)state;
	contend(0);
	assert_int_equal(until_decided(&a, 1), 1);
	assert_int_equal(a.by_ring, 1);
	assert_int_equal(a.asks, 1);
	says(&a, "0 collectives in the network, 1 by a ring of the hosts, the last because switch "
		 "s0: held by b");
	end();
}

/* The holder lets go in time. */
static void granted(void **state)
{
	uint64_t took;

	(void)state;
	contend(100);
	for (unsigned i = 0; i < 40; i++) {
		now += MS;
		look(&a);
	}
	assert_true(busy(&a));
	assert_int_equal(a.by_ring, 0);
	says(&a, "now waits for ");
	says(&a, " ms more, for switch s0: held by b");
	finish(&b);
	assert_null(holder);
	took = until_decided(&a, 17);
	assert_true(took <= 17); /* a pause and an answer */
	assert_ptr_equal(holder, &a);
	finish(&a);
	assert_false(busy(&a));
	assert_int_equal(a.by_ring, 0);
	says(&a, "1 collectives in the network, 0 by a ring of the hosts, 1 waited ");
	assert_null(holder);
	end();
}

/* It does not: the last try is at the end of the wait, and its answer decides. */
static void bounded(void **state)
{
	(void)state;
	contend(100);
	assert_int_equal(until_decided(&a, 102), 101);
	assert_int_equal(a.by_ring, 1);
	assert_true(a.asks >= 7 && a.asks <= 12);
	says(&a, "the last because switch s0: held by b, waited for 101 ms");
	/* The next one has a time of its own. */
	issue(&a);
	assert_int_equal(until_decided(&a, 110), 102);
	says(&a, "2 waited 202 ms, the longest 101 ms");
	end();
}

/* At the last moment. */
static void at_the_end(void **state)
{
	(void)state;
	contend(100);
	while (now < 5801 * MS) {
		now += MS;
		look(&a);
	}
	assert_true(a.asked); /* the last try is under way */
	finish(&b);
	assert_int_equal(until_decided(&a, 1), 1);
	assert_ptr_equal(holder, &a);
	end();
}

/* What nobody lets go of is not waited for. */
static void broken(void **state)
{
	(void)state;
	contend(100);
	a.broken = -ETIMEDOUT;
	assert_int_equal(until_decided(&a, 1), 1);
	assert_int_equal(a.by_ring, 1);
	says(&a, "the last because switch s0: timed out");
	end();
}

static uint32_t number(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

/* Two that wait for each other, for 10 000 collectives: never both, each decided within its bound,
 * and with patience longer than what the other needs nobody ever goes by the ring. */
static void two(void **state)
{
	enum { MOST = 10000, WORK = 10 };
	uint64_t random = 15, since[2] = {0}, left[2] = {0};
	struct job *job[] = {&a, &b};

	(void)state;
	for (unsigned k = 0; k < 2; k++) {
		const uint64_t wait = k ? 40 : 10000;

		now = MS;
		holder = NULL;
		open_job(&a, "a", wait);
		open_job(&b, "b", wait);
		while (a.comm.coll_done + b.comm.coll_done < MOST) {
			unsigned i = number(&random) % 2;
			struct job *j = job[i];

			now += number(&random) % 3 * MS;
			look(j);
			if (!busy(j)) {
				issue(j);
				look(j);
				since[i] = now;
				left[i] = now + (1 + number(&random) % WORK) * MS;
			} else if (ccl_lease_in_network(&j->comm)) {
				assert_ptr_equal(holder, j);
				if (now >= left[i])
					finish(j);
			} else {
				assert_true(now - since[i] <= (wait + 200) * MS);
			}
		}
		if (k == 0)
			assert_int_equal(a.by_ring + b.by_ring, 0);
		printf("%s ms: %llu of %u by a ring\n", k ? "40" : "10000",
			(unsigned long long)(a.by_ring + b.by_ring), MOST);
		while (holder)
			finish(holder);
		end();
	}
}

/* ---- turns ---- */

enum { CYCLE_MS = 100 };

static void give_turn(struct job *j, unsigned start_ms, unsigned length_ms)
{
	const struct ccl_turn turn = {.cycle_ns = CYCLE_MS * MS,
		.zero_ns = 30 * MS,
		.start_ns = start_ms * MS,
		.length_ns = length_ms * MS};

	j->comm.timeout_ns = 10000 * MS;
	ccl_lease_set_turn(&j->comm, &turn);
}

static unsigned at_ms(void)
{
	return (unsigned)((now + (CYCLE_MS - 30) * MS) / MS % CYCLE_MS);
}

/* Two jobs without a pause, collectives of 3, 6 or 12 ms: how often one asked for the lease in
 * vain, and for how many ms each had it outside its half of the cycle. */
static uint64_t work_together(bool turns, uint64_t outside[2])
{
	struct job *job[] = {&a, &b};
	uint64_t random = 3, until[2] = {0}, waited;

	now = 7 * MS;
	holder = NULL;
	open_job(&a, "a", CYCLE_MS);
	open_job(&b, "b", CYCLE_MS);
	for (unsigned i = 0; turns && i < 2; i++)
		give_turn(job[i], 50 * i, 50);
	for (unsigned k = 0; k < 20000; k++) {
		struct job *j = job[k % 2];
		const unsigned half = at_ms() / 50;

		now += k % 2 * MS;
		look(j);
		if (!busy(j)) {
			ccl_coll_at(&j->comm, j->comm.coll_issued)->bytes = 1u
									    << number(&random) % 3;
			issue(j);
			look(j);
			until[k % 2] = 0;
		}
		if (ccl_lease_in_network(&j->comm) && !until[k % 2])
			until[k % 2] =
				now + ccl_coll_at(&j->comm, j->comm.coll_done)->bytes * 3 * MS;
		if (ccl_lease_in_network(&j->comm) && now >= until[k % 2])
			finish(j);
		outside[k % 2] += ccl_lease_in_network(&j->comm) && half != k % 2;
	}
	assert_int_equal(turns ? a.by_ring + b.by_ring : 0, 0);
	waited = a.by_ring + b.by_ring + (a.asks - a.in_network) + (b.asks - b.in_network);
	while (holder)
		finish(holder);
	end();
	return waited;
}

/* With turns nobody is ever in another's way, once it is known what collectives take; without,
 * often.
 */
static void in_turns(void **state)
{
	uint64_t outside[2] = {0}, without_turns[2] = {0};
	const uint64_t in_the_way = work_together(true, outside);

	(void)state;
	assert_true(work_together(false, without_turns) > 200);
	if (in_the_way > 12 || outside[0] > 12 || outside[1] > 12)
		fail_msg("%llu in the way, %llu and %llu ms outside",
			(unsigned long long)in_the_way, (unsigned long long)outside[0],
			(unsigned long long)outside[1]);
}

/* A turn is waited for, and how long is said; one that is taken away is not. */
static void waits_for_turn(void **state)
{
	(void)state;
	now = 10030 * MS; /* a cycle begins */
	holder = NULL;
	open_job(&a, "a", 20);
	give_turn(&a, 60, 30);
	issue(&a);
	look(&a);
	assert_int_equal(ccl_lease_due(&a.comm, now), 60 * MS);
	assert_int_equal(until_decided(&a, 62), 61);
	assert_int_equal(ccl_lease_due(&a.comm, now), UINT64_MAX);
	finish(&a);
	says(&a, ", 1 waited 60 ms for their turn");
	assert_int_equal(at_ms(), 61);
	/* It took nothing: the next one begins at once, and is longer than what is left of a turn.
	 */
	issue(&a);
	assert_int_equal(until_decided(&a, 2), 2);
	now += 40 * MS;
	finish(&a);
	issue(&a); /* 3 ms after the turn's beginning, which such a one has to keep to */
	look(&a);
	assert_int_equal(ccl_lease_due(&a.comm, now), 57 * MS);
	give_turn(&a, 0, 0);
	look(&a);
	assert_true(a.asked);
	until_decided(&a, 1);
	finish(&a);
	/* So is one whose cycle is too long for the others' patience. */
	a.comm.timeout_ns = 4 * CYCLE_MS * MS - 1;
	ccl_lease_set_turn(&a.comm, &(struct ccl_turn){CYCLE_MS * MS, 0, 0, 1});
	now += 50 * MS;
	issue(&a);
	look(&a);
	assert_true(a.asked);
	until_decided(&a, 1);
	finish(&a);
	close_job(&a);
}

/* To the decision, looked at so often; at most two cycles and an answer. */
static void until_decided_by(uint64_t step_ns)
{
	const uint64_t start = now;

	while (!a.asked) {
		now += step_ns;
		look(&a);
		if (now - start > 2 * CYCLE_MS * MS + step_ns)
			fail_msg("waits for ever");
	}
	now += MS;
	look(&a);
	assert_true(ccl_lease_in_network(&a.comm));
}

/* What takes nearly all of a turn has more than a moment of it to begin in. */
static void as_long_as_a_turn(void **state)
{
	const uint64_t length = 40 * MS;

	(void)state;
	now = 10030 * MS;
	holder = NULL;
	open_job(&a, "a", 20);
	give_turn(&a, 0, 40);
	issue(&a);
	look(&a);
	until_decided_by(MS);
	now += length - 1000;
	finish(&a);
	for (unsigned i = 0; i < 50; i++) {
		now += 700000; /* not at a turn's very beginning */
		issue(&a);
		look(&a);
		until_decided_by(700000);
		assert_true(at_ms() <= 12); /* the first quarter, and the answer */
		now += length - 1000;
		finish(&a);
	}
	assert_int_equal(a.in_network, 51);
	close_job(&a);
}

/* Nobody looks while it is its turn: it begins all the same, in bounded time. */
static void a_turn_is_missed(void **state)
{
	uint64_t start;

	(void)state;
	now = 10080 * MS;
	holder = NULL;
	open_job(&a, "a", 20);
	give_turn(&a, 60, 30);
	start = now;
	issue(&a);
	look(&a);
	until_decided_by(CYCLE_MS * MS);
	assert_int_equal(now - start, 2 * CYCLE_MS * MS + MS);
	finish(&a);
	says(&a, ", 1 waited 200 ms for their turn, 1 of them in vain");
	/* It is due then, and before, if the others have less patience. */
	a.comm.timeout_ns = 6 * CYCLE_MS * MS;
	now = 20021 * MS; /* just over */
	ccl_lease_set_turn(
		&a.comm, &(struct ccl_turn){CYCLE_MS * MS, 30 * MS, 90 * MS - 1000, 1000});
	issue(&a);
	look(&a);
	now += 140 * MS;
	assert_int_equal(ccl_lease_due(&a.comm, now), 10 * MS);
	now += 10 * MS;
	assert_int_equal(ccl_lease_due(&a.comm, now), 0);
	look(&a);
	assert_true(a.asked);
	now += MS;
	look(&a);
	finish(&a);
	close_job(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(without), cmocka_unit_test(granted),
		cmocka_unit_test(bounded), cmocka_unit_test(at_the_end), cmocka_unit_test(broken),
		cmocka_unit_test(two), cmocka_unit_test(in_turns), cmocka_unit_test(waits_for_turn),
		cmocka_unit_test(as_long_as_a_turn), cmocka_unit_test(a_turn_is_missed)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
