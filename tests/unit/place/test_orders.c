/* SPDX-License-Identifier: BSD-3-Clause */
/* The room's real code as two threads, in every order in which their accesses to shared words can
 * follow each other (sequentially consistent; what weaker orders allow is a matter of the acquire
 * and release in place_priv.h). Each thread is a coroutine that stops before an access if the other
 * thread touches the same word and one of them writes it: the order of any other two accesses
 * changes nothing. A run is a list of choices, and the next run differs from it in the last one
 * that can be different. Which words those are is learned on the way; when one more is found, the
 * search begins again. */
#include <stdio.h>
#include <ucontext.h>

#include "tests/unit/place/place_test.h"

enum { STACK = 65536, MAX_CHOICES = 512, MAX_TOUCHED = 256 };

static ucontext_t scheduler, thread[2];
static uint8_t stacks[2][STACK] __attribute__((aligned(64)));
static bool done[2], running;
static int current;
static void (*body[2])(void);

/* What each thread has ever touched. */
static struct touched {
	const volatile void *address;
	bool writes, conflict;
} touched[2][MAX_TOUCHED];
static bool learned;

static struct touched *find_touched(int t, const volatile void *address, bool make)
{
	for (unsigned i = 0; i < MAX_TOUCHED; i++) {
		struct touched *k = &touched[t][i];

		if (k->address == NULL && make)
			k->address = address;
		if (k->address == address)
			return k;
		if (k->address == NULL)
			return NULL;
	}
	abort();
}

static bool conflicts(const volatile void *address, bool writes)
{
	struct touched *own = find_touched(current, address, true);
	struct touched *other = find_touched(!current, address, false);

	own->writes |= writes;
	if (other == NULL || !(own->writes || other->writes))
		return false;
	learned |= !own->conflict;
	own->conflict = other->conflict = true;
	return true;
}

void orders_step(const volatile void *address, bool writes)
{
	if (running && conflicts(address, writes))
		swapcontext(&thread[current], &scheduler);
}

static void enter(int i)
{
	body[i]();
	done[i] = true;
}

/* choice[k]: which thread makes step k, where both could. */
static uint8_t choice[MAX_CHOICES];
static unsigned n_choices;

static void run_once(void)
{
	unsigned at = 0;

	/* volatile: to the compiler getcontext may return a second time, as setjmp does. */
	for (volatile int i = 0; i < 2; i++) {
		getcontext(&thread[i]);
		thread[i].uc_stack.ss_sp = stacks[i];
		thread[i].uc_stack.ss_size = STACK;
		thread[i].uc_link = &scheduler;
		makecontext(&thread[i], (void (*)(void))enter, 1, i);
		done[i] = false;
	}
	running = true;
	while (!done[0] || !done[1]) {
		current = done[0] ? 1 : 0;
		if (!done[0] && !done[1]) {
			if (at == n_choices)
				choice[n_choices++] = 0;
			if (n_choices == MAX_CHOICES)
				abort();
			current = choice[at++];
		}
		swapcontext(&scheduler, &thread[current]);
	}
	running = false;
}

static bool next_order(void)
{
	while (n_choices > 0 && choice[n_choices - 1] == 1)
		n_choices--;
	if (n_choices == 0)
		return false;
	choice[n_choices - 1] = 1;
	return true;
}

/* ---- the scene ---- */

static const struct place_config tiny = {
	.max_flows = 2, .max_mrs = 4, .chunks = 3, .committed = 1, .peak = 2, .seed = 3};

/* The same addresses in every run. */
static uint8_t block[16384] __attribute__((aligned(64)));
static struct place *p;
static uint32_t flow, mr;
static uint8_t memory[128];
static bool told; /* the program has its bytes, or another flow its buffer */
static uint8_t at_telling[8];
static bool skip_grace; /* what the test must find out */
static bool reuse;      /* the program gives the buffer to somebody else once told */

static void fail_order(const char *what)
{
	fprintf(stderr, "order:");
	for (unsigned i = 0; i < n_choices; i++)
		fprintf(stderr, " %u", choice[i]);
	fprintf(stderr, "\n%s\n", what);
	abort();
}

/* The data path has placed the first 8 bytes; now come a duplicate of them with other bytes, and a
 * packet behind. It is quiet once in between. */
static void data_path(void)
{
	static const uint8_t lie[8] = "LIELIELI", more[8] = "morebyte";
	struct place_segment seg = {lie, 8, 0, 0, 0};

	place_packet(p, flow, &seg);
	place_quiesce(p);
	seg = (struct place_segment){more, 8, 8, 0, 0};
	place_packet(p, flow, &seg);
	place_quiesce(p);
}

/* One packet, of a flow that is looked up. */
static void data_path_once(void)
{
	static const uint8_t more[8] = "morebyte";
	const struct place_tuple tuple = tuple_of(0);
	const struct place_segment seg = {more, 8, 8, 0, 0};
	const uint32_t found = place_find(p, &tuple);

	if (found != 0)
		place_packet(p, found, &seg);
	place_quiesce(p);
}

static void tell(void)
{
	orders_step(memory, true);
	told = true;
	memcpy(at_telling, memory, 8);
	if (reuse)
		memcpy(memory, "reusedOK", 8);
}

/* Has seen the header of the first 8 bytes: cursor, retirement, and the program is told after a
 * grace period, if one passes while the data path is at it. */
static void control_cursor(void)
{
	uint64_t ticket;

	place_cursor(p, flow, 8, 100);
	ticket = place_grace(p);
	place_retire(p, flow, PLACE_RX, 8);
	for (unsigned tries = 0; tries < 3; tries++)
		if (skip_grace || place_passed(p, ticket)) {
			tell();
			return;
		}
}

/* Takes the memory away. */
static void control_region(void)
{
	uint64_t ticket;

	place_mr_remove(p, mr);
	ticket = place_grace(p);
	for (unsigned tries = 0; tries < 3; tries++)
		if (skip_grace || place_passed(p, ticket)) {
			tell();
			return;
		}
}

/* Takes the flow away; its chunk goes to another flow, whose buffer is elsewhere. The old flow's
 * packets must not get there. */
static void control_flow(void)
{
	struct place_flow_init init = {.tuple = tuple_of(1), .limit = 100};
	uint32_t other;

	place_flow_remove(p, flow);
	if (skip_grace)
		place_quiesce(p); /* as if it had been quiet */
	place_reclaim(p);
	if (place_flow_add(p, &init, &other) == 0)
		told = place_post(p, other, PLACE_RX, mr, 64, 40) == 0;
}

static void scene(unsigned chunks_used)
{
	struct place_flow_init init = {.tuple = tuple_of(0), .limit = 100};
	struct place_segment seg = {(const uint8_t *)"truth888", 8, 0, 0, 0};
	struct place_config c = tiny;

	c.chunks -= chunks_used;
	assert_true(place_size(&c) <= sizeof(block));
	assert_int_equal(place_init(&c, block, &p), 0);
	memset(memory, '.', sizeof(memory));
	mr = region(p, memory, sizeof(memory));
	assert_int_equal(place_flow_add(p, &init, &flow), 0);
	assert_int_equal(place_post(p, flow, PLACE_RX, mr, 0, 8), 0);
	assert_int_equal(place_post(p, flow, PLACE_RX, mr, 16, 8), 0);
	assert_int_equal(place_packet(p, flow, &seg).verdict, PLACE_ACCEPT);
	place_quiesce(p);
	told = false;
}

/* How many orders there are, and in how many of them something was wrong, or the program was told.
 */
struct outcome {
	unsigned orders, wrong, told;
};

static struct outcome every_order(void (*control)(void), unsigned chunks_used, bool (*right)(void))
{
	struct outcome o = {0};

	body[0] = control == control_flow ? data_path_once : data_path;
	body[1] = control;
	memset(touched, 0, sizeof(touched));
	n_choices = 0;
	do {
		scene(chunks_used);
		learned = false;
		run_once();
		if (learned) {
			n_choices = 0;
			o = (struct outcome){0};
		}
		o.orders++;
		o.told += told;
		if (!right()) {
			o.wrong++;
			if (!skip_grace)
				fail_order("wrong");
		}
	} while (!(skip_grace && o.wrong > 0) && (learned || next_order()));
	return o;
}

/* Whatever else happens, nothing but what was posted is ever written. */
static bool elsewhere_untouched(void)
{
	for (unsigned i = 0; i < sizeof(memory); i++)
		if (!(i < 8 || (i >= 16 && i < 24)) && memory[i] != '.')
			return false;
	return true;
}

/* Once told, the program's bytes are the program's: what it then writes stays. */
static bool stays(void)
{
	return elsewhere_untouched() && (!told || memcmp(memory, "reusedOK", 8) == 0);
}

/* What is told is whole: all of the truth, or all of the lie, which the checksum covered as well.
 */
static bool whole(void)
{
	return stays() && (!told || memcmp(at_telling, "truth888", 8) == 0 ||
				  memcmp(at_telling, "LIELIELI", 8) == 0);
}

static void run_scene(
	void (*control)(void), unsigned chunks_used, bool (*right)(void), const char *name)
{
	struct outcome o;

	skip_grace = false;
	reuse = true;
	o = every_order(control, chunks_used, right);
	print_message("%s: %u orders, told in %u\n", name, o.orders, o.told);
	assert_int_equal(o.wrong, 0);
	assert_true(o.orders > 100);
	assert_true(o.told > 0);
	/* Without the grace period the same search finds what it is for. */
	skip_grace = true;
	o = every_order(control, chunks_used, right);
	print_message("%s, without grace: wrong in order %u\n", name, o.orders);
	assert_true(o.wrong > 0);
}

static void test_cursor(void **state)
{
	(void)state;
	run_scene(control_cursor, 0, whole, "cursor");
}

static void test_region(void **state)
{
	(void)state;
	run_scene(control_region, 0, stays, "region");
}

/* Chunk and entry are used again at once if they may be. */
static void test_flow(void **state)
{
	(void)state;
	run_scene(control_flow, 2, elsewhere_untouched, "flow");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cursor),
		cmocka_unit_test(test_region),
		cmocka_unit_test(test_flow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
