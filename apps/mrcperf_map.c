/* SPDX-License-Identifier: BSD-3-Clause */
/* incline-mrcperf --map: as a controller does it, what agents of incline-map see becomes denials in
 * the profile of --paths, and ends them, by the calls of mrc_ctl.h. A thread of its own: the data
 * path waits for no file. */
#include "apps/mrcperf.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/map/deny.h"
#include "lib/map/follow.h"

enum { FILES = 4096, EVERY_MS = 200, STALE_MS = 5000 };
static const uint64_t MS_NS = 1000000, SECOND_NS = 1000000000;

struct mrcperf_watch {
	struct mrcperf_end *end;
	char *names; /* of the files, one after the other */
	const char *file[FILES];
	unsigned n_files;
	struct map_follow follow;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct map_deny deny; /* under lock, as stop and complained */
	bool stop, complained;
};

static void complain(struct mrcperf_watch *w, const char *what)
{
	if (!w->complained)
		fprintf(stderr, "incline-mrcperf: --map: %s\n", what);
	w->complained = true;
}

static int fail(const char *what)
{
	fprintf(stderr, "incline-mrcperf: --map: %s\n", what);
	return -1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

/* ---- a turn ---- */

/* What has changed goes to the device, which then says how it is; false: it does not take it. */
static bool apply(struct mrcperf_watch *w)
{
	static struct mrc_ctl_ev_op_entry entry[MAP_DENY_EVS];
	struct mrc_ctl_ev_profile_attr attr = {.ev_op = {MRC_CTL_EV_OP_MODIFY_EV_STATE, entry, 0}};
	struct mrc_context *ctx = w->end->ctx;
	uint32_t ev[MAP_DENY_EVS];

	for (unsigned i = 0; i < w->deny.n; i++) {
		const struct map_deny_ev *e = &w->deny.ev[i];

		if (!e->changed)
			continue;
		ev[attr.ev_op.entry_count] = e->ev;
		entry[attr.ev_op.entry_count++] = (struct mrc_ctl_ev_op_entry){
			.ev = mrcperf_ev(w->end->map, e->ev, e->address.b),
			.state = e->denied ? MRC_CTL_EV_DENIED : MRC_CTL_EV_GOOD};
	}
	if (mrc_ctl_modify_ev_profile(ctx, MRCPERF_PROFILE, &attr, MRC_CTL_EV_PROFILE_EV_OP))
		return false;
	attr.ev_op.op = MRC_CTL_EV_OP_QUERY_EV_STATE;
	if (mrc_ctl_query_ev_profile(ctx, MRCPERF_PROFILE, &attr, MRC_CTL_EV_PROFILE_EV_OP))
		return false;
	for (int i = 0; i < attr.ev_op.entry_count; i++)
		printf("# map: path %#x %s\n", ev[i],
			entry[i].state == MRC_CTL_EV_DENIED ? "denied" : "returned");
	return true;
}

static void turn(struct mrcperf_watch *w)
{
	char err[MAP_ERR_LEN];
	struct map *m;

	/* A file that is not there, or not whole, is no news. */
	for (unsigned i = 0; i < w->n_files; i++)
		map_follow_report(&w->follow, i,
			json_load_file(w->file[i], JSON_REJECT_DUPLICATES, NULL), now_ns());
	if (map_follow_join(&w->follow, now_ns(), &m, err) < 0)
		complain(w, err);
	if (map_deny_turn(&w->deny, m, now_ns()) > 0 && !apply(w))
		complain(w, strerror(errno));
	map_free(m);
}

static void *watch(void *arg)
{
	struct mrcperf_watch *w = arg;

	pthread_mutex_lock(&w->lock);
	while (!w->stop) {
		const uint64_t next = now_ns() + EVERY_MS * MS_NS;
		const struct timespec until = {
			(time_t)(next / SECOND_NS), (long)(next % SECOND_NS)};

		turn(w);
		while (!w->stop && pthread_cond_timedwait(&w->wake, &w->lock, &until) == 0)
			;
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* ---- begin and end ---- */

static int split(struct mrcperf_watch *w, const char *files)
{
	char *save = NULL;

	w->names = strdup(files);
	if (w->names == NULL)
		return -1;
	for (char *f = strtok_r(w->names, ":", &save); f; f = strtok_r(NULL, ":", &save)) {
		if (w->n_files == FILES)
			return fail("more than 4096 files");
		w->file[w->n_files++] = f;
	}
	return w->n_files ? 0 : fail("no file");
}

static void release(struct mrcperf_watch *w)
{
	map_follow_fini(&w->follow);
	free(w->names);
	free(w);
}

static int start_thread(struct mrcperf_watch *w)
{
	pthread_condattr_t monotonic;

	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return pthread_create(&w->thread, NULL, watch, w) ? fail("no thread") : 0;
}

int mrcperf_watch_start(struct mrcperf_end *e, const union ibv_gid *peer)
{
	struct mrcperf_watch *w;
	char err[MAP_ERR_LEN] = "";
	struct wire_ip to;

	if (e->maps == NULL)
		return 0;
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return fail("out of memory");
	w->end = e;
	memcpy(to.b, peer->raw, sizeof(to.b));
	if (split(w, e->maps) < 0 ||
		map_follow_init(&w->follow, w->file, w->n_files, STALE_MS * MS_NS) < 0 ||
		map_deny_init(&w->deny, &map_deny_defaults, e->map, &to, err) < 0 ||
		start_thread(w) < 0) {
		if (err[0])
			fail(err);
		release(w);
		return -1;
	}
	e->watch = w;
	return 0;
}

json_t *mrcperf_watch_json(struct mrcperf_end *e)
{
	struct mrcperf_watch *w = e->watch;
	json_t *denied = json_array(), *out;

	if (w == NULL) {
		json_decref(denied);
		return json_null();
	}
	pthread_mutex_lock(&w->lock);
	for (unsigned i = 0; i < w->deny.n; i++)
		if (w->deny.ev[i].denied)
			json_array_append_new(denied, json_integer(w->deny.ev[i].ev));
	out = json_pack("{s:o,s:I,s:I}", "denied", denied, "denials", (json_int_t)w->deny.denials,
		"returns", (json_int_t)w->deny.returns);
	pthread_mutex_unlock(&w->lock);
	return out;
}

void mrcperf_watch_stop(struct mrcperf_end *e)
{
	struct mrcperf_watch *w = e->watch;

	if (w == NULL)
		return;
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	e->watch = NULL;
	release(w);
}
