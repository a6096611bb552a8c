/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0's desk: a thread that acquires and releases the lease on every switch of the tree, or has
 * the group begin anew there (resync.h). The switches are asked in the order of their addresses,
 * which is the same for all communicators: of two that want the same switches at the same time, the
 * one that gets the first gets them all. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "lib/ccl/group.h"
#include "lib/ccl/lease.h"
#include "lib/ccl/resync.h"
#include "lib/ccl/talk.h"

enum { MAX_CALL_MS = 2000, MIN_CALL_MS = 10 };

struct desk {
	const struct ccl_group *group;
	unsigned *order;            /* of the switches */
	struct ctl_client **client; /* by switch; NULL: not connected */
	json_t *params;             /* of a lease; NULL: it is for resync */
	unsigned call_ms;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	bool quit, release, acquire, resync; /* to be done */
	uint32_t psn;                        /* of a resync */
	bool answered;
	int rc; /* of the last acquire or resync */
	char why[CCL_DESK_WHY];
	int fd;
};

/* ---- one switch ---- */

/* 0 or -errno; *local: it is not known whether the switch has done it. */
static int call(struct desk *d, unsigned i, const char *method, const json_t *params,
	json_t **result, bool *local, char *why)
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
		rc = ctl_call(d->client[i], method, params, d->call_ms, result, &e);
	*local = rc && (e.code == 0 || !told);
	if (rc)
		snprintf(why, CCL_DESK_WHY, "switch %s: %.180s", sw->name, e.msg);
	if (*local) {
		ctl_close(d->client[i]);
		d->client[i] = NULL;
	}
	return rc;
}

static int of_lease(struct desk *d, unsigned i, const char *method, bool *local, char *why)
{
	return call(d, i, method, d->params, NULL, local, why);
}

/* A switch that cannot be told now takes the lease back by itself, in lease_ms. */
static void release_some(struct desk *d, unsigned n)
{
	char ignored[CCL_DESK_WHY];
	bool local;

	while (n-- > 0)
		if (of_lease(d, d->order[n], "lease.release", &local, ignored) && local)
			of_lease(d, d->order[n], "lease.release", &local, ignored);
}

/* All or nothing. What a switch says is the reason, what this end says is that none did. */
static int acquire_all(struct desk *d, char why[CCL_DESK_WHY])
{
	for (unsigned k = 0; k < d->group->n_switches; k++) {
		bool local;
		const int rc = of_lease(d, d->order[k], "lease.acquire", &local, why);

		if (rc == 0)
			continue;
		release_some(d, local ? k + 1 : k);
		return local ? -ETIMEDOUT : rc;
	}
	return 0;
}

/* One question: 1 if the switch is ready; 0: not yet, or nobody knows. */
static int is_anew(struct desk *d, unsigned i, const json_t *params, char *why)
{
	json_t *result = NULL;
	bool local;
	int rc = call(d, i, "group.resync", params, &result, &local, why);

	if (rc == 0)
		rc = json_is_true(json_object_get(result, "done"));
	else if (local || rc == -EBUSY)
		rc = 0;
	json_decref(result);
	return rc;
}

static bool has_to_quit(struct desk *d)
{
	bool quit;

	pthread_mutex_lock(&d->lock);
	quit = d->quit;
	pthread_mutex_unlock(&d->lock);
	return quit;
}

/* Asking again does no harm: an acknowledgement may be on its way, the worker at work, a connection
 * broken. For a quarter of the time that the other ranks wait, unless the desk is closed. */
static int begin_anew(struct desk *d, uint32_t psn, char *why)
{
	static const struct timespec pause = {.tv_nsec = 1000000};
	const uint64_t end = ccl_clock_ns() + d->group->timeout_ns / 4;
	json_t *params = json_pack("{s:s, s:i}", "group", d->group->name, "psn", (int)psn);
	int rc = params ? 1 : -ENOMEM;

	snprintf(why, CCL_DESK_WHY, "%s", params ? "" : "out of memory");
	for (unsigned k = 0; rc > 0 && k < d->group->n_switches; k++) {
		snprintf(why, CCL_DESK_WHY, "switch %s is not ready",
			d->group->sw[d->order[k]].name);
		while ((rc = is_anew(d, d->order[k], params, why)) == 0 && ccl_clock_ns() < end &&
			!has_to_quit(d))
			nanosleep(&pause, NULL);
	}
	json_decref(params);
	return rc == 0 ? -ETIMEDOUT : rc < 0 ? rc : 0;
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
	char why[CCL_DESK_WHY] = "";

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
		} else if (d->resync) {
			const uint32_t psn = d->psn;
			int rc;

			d->resync = false;
			pthread_mutex_unlock(&d->lock);
			rc = begin_anew(d, psn, why);
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

static void ask_lease(void *arg, uint32_t what)
{
	struct desk *d = arg;

	pthread_mutex_lock(&d->lock);
	if (what == CCL_LEASE_ACQUIRE) {
		d->acquire = true;
		d->answered = false;
	} else {
		d->release = true;
	}
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
}

static void ask_resync(void *arg, uint32_t psn)
{
	struct desk *d = arg;

	pthread_mutex_lock(&d->lock);
	d->resync = true;
	d->psn = psn;
	d->answered = false;
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
}

static int answer(void *arg, int *rc, char why[CCL_DESK_WHY])
{
	struct desk *d = arg;
	uint64_t ignored;
	int done;

	pthread_mutex_lock(&d->lock);
	done = d->answered;
	if (done) {
		*rc = d->rc;
		memcpy(why, d->why, CCL_DESK_WHY);
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

static int desk_open(const struct ccl_group *g, struct desk **desk)
{
	struct desk *d = calloc(1, sizeof(*d));
	sigset_t all, before;
	int rc;

	if (!d)
		return -ENOMEM;
	d->group = g;
	d->call_ms = call_ms(g);
	d->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	d->order = calloc(g->n_switches, sizeof(*d->order));
	d->client = calloc(g->n_switches, sizeof(*d->client));
	if (g->lease[0])
		d->params = json_pack("{s:s, s:s}", "lease", g->lease, "tenant", g->name);
	if (d->fd < 0 || !d->order || !d->client || (g->lease[0] && !d->params)) {
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
	*desk = d;
	return 0;
}

static int open_for(void (*ask_it)(void *arg, uint32_t what), const char *what,
	const struct ccl_group *g, struct ccl_desk *desk, char err[CCL_ERR_LEN])
{
	struct desk *d = NULL;
	const int rc = desk_open(g, &d);

	err[0] = '\0';
	if (rc)
		snprintf(err, CCL_ERR_LEN, "rank 0: no memory or descriptors for %s", what);
	else
		*desk = (struct ccl_desk){d, ask_it, answer, d->fd, desk_close};
	return rc;
}

int ccl_lease_desk_open(const struct ccl_group *g, struct ccl_desk *desk, char err[CCL_ERR_LEN])
{
	return open_for(ask_lease, "the lease", g, desk, err);
}

int ccl_resync_desk_open(const struct ccl_group *g, struct ccl_desk *desk, char err[CCL_ERR_LEN])
{
	return open_for(ask_resync, "asking the switches", g, desk, err);
}
