/* SPDX-License-Identifier: BSD-3-Clause */
/* A device is closed while RDMA-CM uses it: its IDs hear of it, the others do not, and what threads
 * are in the middle of comes to an end first. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/verbs/fabric.h"

enum { PORT = 7471, ANY_PORT = 7472, MS = 1000, ROUNDS = 12, N_THREADS = 4, CALLS = 40 };

static struct sockaddr_in address(unsigned last, uint16_t port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(last ? 0x0a4d0000 + last : 0)};
}

/* ---- one thread, virtual time ---- */

struct cm_test {
	struct fabric *f;
	struct rdma_event_channel *channel;
	struct rdma_cm_id *listener; /* on the second device's address */
	struct rdma_cm_id *any;      /* on any */
	struct rdma_cm_id *client;   /* of the first device */
};

static struct rdma_cm_id *listen_at(
	struct rdma_event_channel *channel, unsigned last, uint16_t port)
{
	struct sockaddr_in at = address(last, port);
	struct rdma_cm_id *id;

	assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&at), 0);
	assert_int_equal(rdma_listen(id, 4), 0);
	return id;
}

/* The next event is this one; of that ID unless it is NULL. Returns whose it is. */
static struct rdma_cm_id *expect(
	struct cm_test *t, enum rdma_cm_event_type type, const struct rdma_cm_id *of)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type got;
	struct rdma_cm_id *id;

	assert_int_equal(rdma_get_cm_event(t->channel, &event), 0);
	got = event->event;
	id = event->id;
	rdma_ack_cm_event(event); /* or a failed test would never end */
	assert_int_equal(got, type);
	assert_true(!of || of == id);
	return id;
}

static int setup(void **state)
{
	struct cm_test *t = calloc(1, sizeof(*t));

	t->f = fabric_create();
	fabric_open(t->f, false);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(incline_verbs_cm_add(t->f->end[i].context), 0);
	t->channel = rdma_create_event_channel();
	assert_non_null(t->channel);
	t->listener = listen_at(t->channel, 2, PORT);
	t->any = listen_at(t->channel, 0, ANY_PORT);
	assert_int_equal(rdma_create_id(t->channel, &t->client, NULL, RDMA_PS_TCP), 0);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct cm_test *t = *state;

	rdma_destroy_qp(t->client);
	assert_int_equal(rdma_destroy_id(t->client), 0);
	assert_int_equal(rdma_destroy_id(t->any), 0);
	rdma_destroy_event_channel(t->channel);
	fabric_destroy(t->f);
	free(t);
	return 0;
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};

	assert_int_equal(rdma_create_qp(id, NULL, &init), 0);
}

/* Until the REQ is on its way. */
static void ask(struct cm_test *t)
{
	struct sockaddr_in from = address(1, 0), to = address(2, PORT);

	assert_int_equal(
		rdma_resolve_addr(t->client, (struct sockaddr *)&from, (struct sockaddr *)&to, MS),
		0);
	expect(t, RDMA_CM_EVENT_ADDR_RESOLVED, t->client);
	assert_int_equal(rdma_resolve_route(t->client, MS), 0);
	expect(t, RDMA_CM_EVENT_ROUTE_RESOLVED, t->client);
	make_qp(t->client);
	assert_int_equal(rdma_connect(t->client, NULL), 0);
}

static void close_second(struct cm_test *t)
{
	struct ibv_context *context = t->f->end[1].context;

	t->f->end[1].context = NULL; /* the cable does not run it any more */
	assert_int_equal(ibv_close_device(context), 0);
}

static void expect_nothing(struct cm_test *t)
{
	const int flags = fcntl(t->channel->fd, F_GETFL);
	struct rdma_cm_event *event;

	assert_int_equal(fcntl(t->channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
	assert_int_equal(rdma_get_cm_event(t->channel, &event), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(fcntl(t->channel->fd, F_SETFL, flags), 0);
}

static void assert_removed(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT};
	int mask;

	assert_null(id->verbs);
	assert_null(id->pd);
	assert_null(id->qp);
	assert_int_equal(rdma_create_qp(id, NULL, &init), -1);
	assert_int_equal(errno, ENODEV);
	assert_int_equal(rdma_accept(id, NULL), -1);
	assert_int_equal(errno, ENODEV);
	assert_int_equal(rdma_disconnect(id), -1);
	assert_int_equal(errno, ENODEV);
	assert_int_equal(rdma_init_qp_attr(id, &attr, &mask), -1);
	assert_int_equal(errno, ENODEV);
	rdma_destroy_qp(id);
}

static void connected(void **state)
{
	struct cm_test *t = *state;
	struct rdma_cm_id *server, *first, *second;

	ask(t);
	server = expect(t, RDMA_CM_EVENT_CONNECT_REQUEST, NULL);
	make_qp(server);
	assert_int_equal(rdma_accept(server, NULL), 0);
	expect(t, RDMA_CM_EVENT_ESTABLISHED, NULL);
	expect(t, RDMA_CM_EVENT_ESTABLISHED, NULL);
	close_second(t);
	/* The IDs in any order, and the peer of the one that was connected. */
	first = expect(t, RDMA_CM_EVENT_DEVICE_REMOVAL, NULL);
	second = expect(t, RDMA_CM_EVENT_DEVICE_REMOVAL, NULL);
	assert_true((first == server && second == t->listener) ||
		    (first == t->listener && second == server));
	expect(t, RDMA_CM_EVENT_DISCONNECTED, t->client);
	expect_nothing(t);
	assert_removed(server);
	assert_removed(t->listener);
	assert_non_null(t->client->verbs);
	assert_int_equal(rdma_destroy_id(server), 0);
	assert_int_equal(rdma_destroy_id(t->listener), 0);
}

static void not_found_any_more(void **state)
{
	struct cm_test *t = *state;
	struct sockaddr_in at = address(2, PORT + 2);
	struct ibv_context **list;
	struct rdma_cm_id *id;
	int n;

	close_second(t);
	expect(t, RDMA_CM_EVENT_DEVICE_REMOVAL, t->listener);
	assert_int_equal(rdma_create_id(t->channel, &id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&at), -1);
	assert_int_equal(errno, ENODEV);
	assert_int_equal(rdma_destroy_id(id), 0);
	list = rdma_get_devices(&n);
	assert_int_equal(n, 1);
	assert_ptr_equal(list[0], t->f->end[0].context);
	rdma_free_devices(list);
	assert_int_equal(rdma_destroy_id(t->listener), 0);
}

/* The program has not heard of the request yet: it hears of both. */
static void requested(void **state)
{
	struct cm_test *t = *state;
	struct rdma_cm_id *server, *one;

	ask(t);
	for (int i = 0; i < 200; i++)
		fabric_step(t->f);
	close_second(t);
	server = expect(t, RDMA_CM_EVENT_CONNECT_REQUEST, NULL);
	one = expect(t, RDMA_CM_EVENT_DEVICE_REMOVAL, NULL);
	expect(t, RDMA_CM_EVENT_DEVICE_REMOVAL, one == server ? t->listener : server);
	assert_removed(server);
	expect(t, RDMA_CM_EVENT_REJECTED, t->client);
	assert_int_equal(rdma_destroy_id(server), 0);
	assert_int_equal(rdma_destroy_id(t->listener), 0);
}

/* It never asks: what waits for it goes with the listener. */
static void unheard(void **state)
{
	struct cm_test *t = *state;

	ask(t);
	for (int i = 0; i < 200; i++)
		fabric_step(t->f);
	close_second(t);
	assert_int_equal(rdma_destroy_id(t->listener), 0);
	expect(t, RDMA_CM_EVENT_REJECTED, t->client);
	expect_nothing(t);
}

/* Another context of the device stays: RDMA-CM leaves all the same, and can be given that one. */
static void one_context_of_two(void **state)
{
	struct cm_test *t = *state;
	struct ibv_context *first = t->f->end[1].context, *second = ibv_open_device(first->device);

	assert_non_null(second);
	t->f->end[1].context = second;
	assert_int_equal(ibv_close_device(first), 0);
	expect(t, RDMA_CM_EVENT_DEVICE_REMOVAL, t->listener);
	assert_int_equal(rdma_destroy_id(t->listener), 0);
	assert_int_equal(incline_verbs_cm_add(second), 0);
	t->listener = listen_at(t->channel, 2, PORT);
	assert_ptr_equal(t->listener->verbs, second);
	ask(t);
	assert_int_equal(rdma_destroy_id(expect(t, RDMA_CM_EVENT_CONNECT_REQUEST, NULL)), 0);
	expect(t, RDMA_CM_EVENT_REJECTED, t->client);
	assert_int_equal(rdma_destroy_id(t->listener), 0);
}

/* ---- threads, the real clock ---- */

struct busy {
	atomic_uint calls;
	atomic_bool stop, failed;
};

static bool all_right(int ret)
{
	return ret == 0 || errno == ENODEV || errno == EINVAL || errno == ETIMEDOUT;
}

/* What a program does to IDs, on either device, whether there is one or not. */
static void *use(void *arg)
{
	struct busy *b = arg;

	for (unsigned i = 0; !atomic_load(&b->stop); i++) {
		struct sockaddr_in from = address(1 + i % 2, 0), to = address(2 - i % 2, PORT);
		struct rdma_cm_id *id;

		atomic_fetch_add(&b->calls, 1);
		if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP)) {
			if (errno != ENODEV)
				atomic_store(&b->failed, true);
			sched_yield();
			continue;
		}
		if (!all_right(rdma_bind_addr(id, (struct sockaddr *)&from)) ||
			!all_right(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, MS)) ||
			!all_right(rdma_resolve_route(id, MS)))
			atomic_store(&b->failed, true);
		if (rdma_destroy_id(id))
			atomic_store(&b->failed, true);
	}
	return NULL;
}

struct waiter {
	struct rdma_cm_id *id;
	int error; /* of rdma_resolve_addr; 0: it resolved */
	int destroyed;
};

/* Waits in rdma_resolve_addr for a host that does not exist. */
static void *wait_for_nobody(void *arg)
{
	struct sockaddr_in to = address(99, PORT);
	struct waiter *w = arg;

	w->error = rdma_resolve_addr(w->id, NULL, (struct sockaddr *)&to, 3600 * MS) ? errno : 0;
	w->destroyed = rdma_destroy_id(w->id);
	return NULL;
}

static void close_in_use(struct busy *b)
{
	const unsigned before = atomic_load(&b->calls);
	struct fabric *f = fabric_create();
	struct sockaddr_in from = address(1, 0);
	struct waiter w = {0};
	pthread_t waiter;

	fabric_open(f, true);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(incline_verbs_cm_add(f->end[i].context), 0);
	assert_int_equal(rdma_create_id(NULL, &w.id, NULL, RDMA_PS_TCP), 0);
	assert_int_equal(rdma_bind_addr(w.id, (struct sockaddr *)&from), 0);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_nobody, &w), 0);
	while (atomic_load(&b->calls) - before < CALLS)
		sched_yield();
	fabric_destroy(f);
	assert_int_equal(pthread_join(waiter, NULL), 0);
	assert_int_equal(w.error, ENODEV);
	assert_int_equal(w.destroyed, 0);
}

static void in_use(void **state)
{
	struct busy b = {0};
	pthread_t threads[N_THREADS];

	(void)state;
	for (unsigned i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use, &b), 0);
	for (unsigned i = 0; i < ROUNDS; i++)
		close_in_use(&b);
	atomic_store(&b.stop, true);
	for (unsigned i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_false(atomic_load(&b.failed));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(connected, setup, teardown),
		cmocka_unit_test_setup_teardown(not_found_any_more, setup, teardown),
		cmocka_unit_test_setup_teardown(requested, setup, teardown),
		cmocka_unit_test_setup_teardown(unheard, setup, teardown),
		cmocka_unit_test_setup_teardown(one_context_of_two, setup, teardown),
		cmocka_unit_test(in_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
