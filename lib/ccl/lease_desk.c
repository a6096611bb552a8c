/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0's desk: a thread that acquires and releases the lease on every switch of the tree. The
 * switches are asked in the order of their addresses, which is the same for all communicators: of
 * two that want the same switches at the same time, the one that gets the first gets them all. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/ccl/group.h"
#include "lib/ccl/lease.h"
#include "lib/ccl/talk.h"

enum { MAX_CALL_MS = 2000, MIN_CALL_MS = 10 };

struct desk {
	const struct ccl_group *group;
	unsigned *order;            /* of the switches */
	struct ctl_client **client; /* by switch; NULL: not connected */
	json_t *params;
	unsigned call_ms;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	bool quit, release, acquire; /* to be done */
	bool answered;
	int rc; /* of the last acquire */
	char why[CCL_LEASE_WHY];
	int fd;
};

/* ---- one switch ---- */

/* 0 or -errno; *local: it is not known whether the switch has done it. */
static int call(struct desk *d, unsigned i, const char *method, bool *local, char *why)
{
	const struct ccl_switch *sw = &d->group->sw[i];
	struct ctl_error e = {0};
	const bool fresh = !d->client[i];
	bool told;
	int rc = 0;

	if (fresh)
		rc = ctl_connect(sw->socket, d->call_ms, &d->client[i], &e);
	if (!rc && fresh)
		rc = ccl_talk_hold(d->group, d->client[i], d->call_ms, &e);
	told = !rc;
	if (!rc)
		rc = ctl_call(d->client[i], method, d->params, d->call_ms, NULL, &e);
	*local = rc && (e.code == 0 || !told);
	if (rc)
		snprintf(why, CCL_LEASE_WHY, "switch %s: %.180s", sw->name, e.msg);
	if (*local) {
		ctl_close(d->client[i]);
		d->client[i] = NULL;
	}
	return rc;
}

/* A switch that cannot be told now takes the lease back by itself, in lease_ms. */
static void release_some(struct desk *d, unsigned n)
{
	char ignored[CCL_LEASE_WHY];
	bool local;

	while (n-- > 0)
		if (call(d, d->order[n], "lease.release", &local, ignored) && local)
			call(d, d->order[n], "lease.release", &local, ignored);
}

/* All or nothing. What a switch says is the reason, what this end says is that none did. */
static int acquire_all(struct desk *d, char why[CCL_LEASE_WHY])
{
	for (unsigned k = 0; k < d->group->n_switches; k++) {
		bool local;
		const int rc = call(d, d->order[k], "lease.acquire", &local, why);

		if (rc == 0)
			continue;
		release_some(d, local ? k + 1 : k);
		return local ? -ETIMEDOUT : rc;
	}
	return 0;
}

/* ---- the thread ---- */

static void answer_with(struct desk *d, int rc, const char *why)
{
	const uint64_t one = 1;

	d->answered = true;
	d->rc = rc;
	snprintf(d->why, sizeof(d->why), "%s", rc ? why : "");
	(void)!write(d->fd, &one, sizeof(one));
}

static void *work(void *arg)
{
	struct desk *d = arg;
	char why[CCL_LEASE_WHY] = "";

	pthread_mutex_lock(&d->lock);
	for (;;) {
		if (d->release) {
			d->release = false;
			pthread_mutex_unlock(&d->lock);
			release_some(d, d->group->n_switches);
			pthread_mutex_lock(&d->lock);
		} else if (d->quit) {
			break;
		} else if (d->acquire) {
			int rc;

			d->acquire = false;
			pthread_mutex_unlock(&d->lock);
			rc = acquire_all(d, why);
			pthread_mutex_lock(&d->lock);
			answer_with(d, rc, why);
		} else {
			pthread_cond_wait(&d->wake, &d->lock);
		}
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

/* ---- the communicator's side ---- */

static void ask(void *arg, bool acquire)
{
	struct desk *d = arg;

	pthread_mutex_lock(&d->lock);
	if (acquire) {
		d->acquire = true;
		d->answered = false;
	} else {
		d->release = true;
	}
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
}

static int answer(void *arg, int *rc, char why[CCL_LEASE_WHY])
{
	struct desk *d = arg;
	uint64_t ignored;
	int done;

	pthread_mutex_lock(&d->lock);
	done = d->answered;
	if (done) {
		*rc = d->rc;
		memcpy(why, d->why, CCL_LEASE_WHY);
		d->answered = false;
		(void)!read(d->fd, &ignored, sizeof(ignored));
	}
	pthread_mutex_unlock(&d->lock);
	return done;
}

static void desk_free(struct desk *d)
{
	for (unsigned i = 0; d->client && i < d->group->n_switches; i++)
		ctl_close(d->client[i]);
	if (d->fd >= 0)
		close(d->fd);
	json_decref(d->params);
	free(d->client);
	free(d->order);
	free(d);
}

static void desk_close(void *arg)
{
	struct desk *d = arg;

	pthread_mutex_lock(&d->lock);
	d->quit = true;
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	pthread_cond_destroy(&d->wake);
	pthread_mutex_destroy(&d->lock);
	desk_free(d);
}

/* Of few switches. */
static void put_in_order(struct desk *d)
{
	const struct ccl_group *g = d->group;

	for (unsigned i = 0; i < g->n_switches; i++) {
		unsigned k = i;

		for (; k > 0 && memcmp(g->sw[d->order[k - 1]].ip.b, g->sw[i].ip.b,
					sizeof(g->sw[i].ip.b)) > 0;
			k--)
			d->order[k] = d->order[k - 1];
		d->order[k] = i;
	}
}

/* All calls of an invocation together, with what is taken back, end before the others lose their
 * patience. */
static unsigned call_ms(const struct ccl_group *g)
{
	const uint64_t ms = g->timeout_ns / 1000000 / 16 / g->n_switches;

	return ms > MAX_CALL_MS ? MAX_CALL_MS : ms < MIN_CALL_MS ? MIN_CALL_MS : (unsigned)ms;
}

int ccl_lease_desk_open(
	const struct ccl_group *g, struct ccl_lease_desk *desk, char err[CCL_ERR_LEN])
{
	struct desk *d = calloc(1, sizeof(*d));
	sigset_t all, before;
	int rc;

	snprintf(err, CCL_ERR_LEN, "rank 0: no memory or descriptors for the lease");
	if (!d)
		return -ENOMEM;
	d->group = g;
	d->call_ms = call_ms(g);
	d->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	d->order = calloc(g->n_switches, sizeof(*d->order));
	d->client = calloc(g->n_switches, sizeof(*d->client));
	d->params = json_pack("{s:s, s:s}", "lease", g->lease, "tenant", g->name);
	if (d->fd < 0 || !d->order || !d->client || !d->params) {
		desk_free(d);
		return -ENOMEM;
	}
	put_in_order(d);
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->wake, NULL);
	/* Signals are the program's. */
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	rc = pthread_create(&d->thread, NULL, work, d);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc) {
		desk_free(d);
		return -rc;
	}
	*desk = (struct ccl_lease_desk){
		.arg = d, .ask = ask, .answer = answer, .fd = d->fd, .close = desk_close};
	err[0] = '\0';
	return 0;
}
