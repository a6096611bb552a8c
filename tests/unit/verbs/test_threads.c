/* SPDX-License-Identifier: BSD-3-Clause */
/* The device with its datapath thread, on the real clock, used by several threads at once. Nothing
 * here depends on how fast anything is; under a sanitizer it also looks for races. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/verbs/internal.h"
#include "tests/unit/verbs/fabric.h"

/* What one thread of a device writes while others read it without owning the device. */
#define SHARED(type, field)                                                             \
	_Static_assert(_Generic(&((struct iv_dev *)0)->field, type * : 1, default : 0), \
		#field " is read by threads that do not own the device")
SHARED(atomic_uint, control);
SHARED(atomic_uint, mrc_up);
SHARED(atomic_ullong, deadline);
SHARED(atomic_ullong, turn_ns);
SHARED(atomic_uint, polling);
SHARED(atomic_ullong, polled_ns);
SHARED(atomic_uint, n_qp);
SHARED(atomic_bool, threaded);
SHARED(atomic_bool, stop);

enum { N_THREADS = 3, PER_THREAD = 200, LEN = 1500 };

/* Nothing is lost here, so a retransmission could only come of a thread that waits for its core;
 * and too many of them would be an error. */
enum { PATIENT = 20 };

static void connect_patiently(struct endpoint *a, struct endpoint *b, int gid)
{
	a->timeout = b->timeout = PATIENT;
	endpoints_connect(a, b, gid);
}

struct job {
	struct endpoint *ep;
	int id;
};

static int setup(void **state)
{
	struct fabric *f = fabric_create();

	fabric_open(f, true);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	fabric_destroy(*state);
	return 0;
}

/* Posts to a send queue that others post to as well. */
static void *sender(void *arg)
{
	const struct job *job = arg;

	for (int i = 0; i < PER_THREAD; i++) {
		int ret;

		while ((ret = post_send(job->ep, job->id, IBV_WR_SEND, 0, LEN)) == ENOMEM)
			sched_yield();
		if (ret)
			return (void *)1;
	}
	return NULL;
}

static void drain_sends(struct endpoint *ep, int *done)
{
	struct ibv_wc wc[8];
	int n = ibv_poll_cq(ep->cq, 8, wc);

	assert_true(n >= 0);
	for (int i = 0; i < n; i++)
		assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
	*done += n;
}

static void many_posters_one_queue(void **state)
{
	struct fabric *f = *state;
	struct endpoint a, b;
	struct job jobs[N_THREADS];
	pthread_t threads[N_THREADS];
	int sent = 0, received = 0;

	endpoint_create(&a, f->end[0].context, LEN, false);
	endpoint_create(&b, f->end[1].context, LEN, false);
	connect_patiently(&a, &b, 1);
	for (int i = 0; i < EP_DEPTH; i++)
		assert_int_equal(post_recv(&b, i, 0, LEN), 0);
	for (int i = 0; i < N_THREADS; i++) {
		jobs[i] = (struct job){&a, i};
		assert_int_equal(pthread_create(&threads[i], NULL, sender, &jobs[i]), 0);
	}
	while (sent < N_THREADS * PER_THREAD || received < N_THREADS * PER_THREAD) {
		struct ibv_wc wc;
		int n = ibv_poll_cq(b.cq, 1, &wc);

		assert_true(n >= 0);
		if (n) {
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			received++;
			assert_int_equal(post_recv(&b, 0, 0, LEN), 0);
		}
		drain_sends(&a, &sent);
	}
	for (int i = 0; i < N_THREADS; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	endpoint_destroy(&a);
	endpoint_destroy(&b);
}

/* A pair that sleeps in ibv_get_cq_event: only the datapath threads run. */
struct sleeper {
	struct endpoint *ep;
	int rounds;
	bool failed;
};

static void *echo(void *arg)
{
	struct sleeper *s = arg;
	int sends = 0, recvs = 0;

	while (sends < s->rounds || recvs < s->rounds) {
		struct ibv_cq *cq;
		struct ibv_wc wc;
		void *context;

		if (ibv_get_cq_event(s->ep->channel, &cq, &context) || ibv_req_notify_cq(cq, 0)) {
			s->failed = true;
			return NULL;
		}
		ibv_ack_cq_events(cq, 1);
		while (ibv_poll_cq(cq, 1, &wc) == 1) {
			s->failed |= wc.status != IBV_WC_SUCCESS;
			if (wc.opcode != IBV_WC_RECV) {
				sends++;
				continue;
			}
			if (++recvs < s->rounds)
				s->failed |= post_recv(s->ep, 0, 0, LEN) != 0;
			s->failed |= post_send(s->ep, 0, IBV_WR_SEND, 0, LEN) != 0;
		}
	}
	return NULL;
}

static void event_ping_pong(void **state)
{
	struct fabric *f = *state;
	struct endpoint a, b;
	struct sleeper s = {.ep = &b, .rounds = 50};
	pthread_t thread;

	endpoint_create(&a, f->end[0].context, LEN, true);
	endpoint_create(&b, f->end[1].context, LEN, true);
	connect_patiently(&a, &b, 2);
	assert_int_equal(post_recv(&b, 0, 0, LEN), 0);
	assert_int_equal(ibv_req_notify_cq(b.cq, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, echo, &s), 0);
	for (int i = 0; i < s.rounds; i++) {
		struct ibv_wc wc;

		assert_int_equal(post_recv(&a, 1, 0, LEN), 0);
		assert_int_equal(post_send(&a, 2, IBV_WR_SEND, 0, LEN), 0);
		for (int n = 0; n < 2; n++) {
			wait_wc(&a, &wc);
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
		}
	}
	pthread_join(thread, NULL);
	assert_false(s.failed);
	endpoint_destroy(&a);
	endpoint_destroy(&b);
}

/* Control calls beside the traffic of others. */
static void *churn(void *arg)
{
	struct endpoint *other = arg;

	for (int i = 0; i < 30; i++) {
		struct endpoint ep;

		endpoint_create(&ep, other->context, 4096, true);
		if (endpoint_init(&ep))
			return (void *)1;
		endpoint_destroy(&ep);
	}
	return NULL;
}

static void control_beside_traffic(void **state)
{
	struct fabric *f = *state;
	struct endpoint a, b;
	struct job job = {&a, 0};
	pthread_t posts, controls;
	void *failed;
	int sent = 0, received = 0;

	endpoint_create(&a, f->end[0].context, LEN, false);
	endpoint_create(&b, f->end[1].context, LEN, false);
	connect_patiently(&a, &b, 1);
	for (int i = 0; i < EP_DEPTH; i++)
		assert_int_equal(post_recv(&b, i, 0, LEN), 0);
	assert_int_equal(pthread_create(&posts, NULL, sender, &job), 0);
	assert_int_equal(pthread_create(&controls, NULL, churn, &b), 0);
	while (sent < PER_THREAD || received < PER_THREAD) {
		struct ibv_wc wc;

		if (ibv_poll_cq(b.cq, 1, &wc) == 1) {
			received++;
			assert_int_equal(post_recv(&b, 0, 0, LEN), 0);
		}
		drain_sends(&a, &sent);
	}
	pthread_join(posts, &failed);
	assert_null(failed);
	pthread_join(controls, &failed);
	assert_null(failed);
	endpoint_destroy(&a);
	endpoint_destroy(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(many_posters_one_queue, setup, teardown),
		cmocka_unit_test_setup_teardown(event_ping_pong, setup, teardown),
		cmocka_unit_test_setup_teardown(control_beside_traffic, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
