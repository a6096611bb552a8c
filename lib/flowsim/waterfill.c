/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/flowsim/waterfill.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Links whose shares differ by no more than rounding are full at the same time. */
static const double SAME = 1.0 + 1e-12;

/* Where a flow goes over a link: both know the place of the other's record of it. */
struct hop {
	unsigned link, times, at; /* at: index into the link's users */
};

struct user {
	int flow;
	unsigned hop; /* index into the flow's hops */
};

struct flow {
	unsigned n; /* 0: free */
	struct hop *hop;
	double rate;
	unsigned seen;
	bool still; /* has its rate, in the filling that goes on */
	int next_free;
};

struct link {
	double capacity, left;
	unsigned load;   /* flows, each as often as it comes */
	unsigned rising; /* of them, those that still rise */
	unsigned n, room;
	struct user *user;
	unsigned seen;
	bool dirty;
};

struct fs_water {
	unsigned n_links, n_flows, room;
	struct link *link;
	struct flow *flow;
	int free; /* -1: none */
	unsigned mark;
	unsigned *dirty, n_dirty;
	unsigned *reached, n_reached; /* links of what is worked out */
	int *changed;
	unsigned n_changed, changed_room;
};

struct fs_water *fs_water_new(unsigned n_links)
{
	struct fs_water *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->n_links = n_links;
	w->free = -1;
	w->link = calloc((size_t)n_links + 1, sizeof(w->link[0]));
	w->dirty = calloc((size_t)n_links + 1, sizeof(w->dirty[0]));
	w->reached = calloc((size_t)n_links + 1, sizeof(w->reached[0]));
	if (w->link == NULL || w->dirty == NULL || w->reached == NULL) {
		fs_water_free(w);
		return NULL;
	}
	return w;
}

void fs_water_free(struct fs_water *w)
{
	if (w == NULL)
		return;
	for (unsigned i = 0; w->link && i < w->n_links; i++)
		free(w->link[i].user);
	for (unsigned i = 0; i < w->n_flows; i++)
		free(w->flow[i].hop);
	free(w->link);
	free(w->flow);
	free(w->dirty);
	free(w->reached);
	free(w->changed);
	free(w);
}

static void touch(struct fs_water *w, unsigned link)
{
	if (w->link[link].dirty)
		return;
	w->link[link].dirty = true;
	w->dirty[w->n_dirty++] = link;
}

int fs_water_capacity(struct fs_water *w, unsigned link, double capacity)
{
	if (link >= w->n_links || !(capacity > 0))
		return -ERANGE;
	w->link[link].capacity = capacity;
	touch(w, link);
	return 0;
}

static int new_flow(struct fs_water *w)
{
	int at = w->free;

	if (at >= 0) {
		w->free = w->flow[at].next_free;
		return at;
	}
	if (w->n_flows == FS_MAX_FLOWS)
		return -ENOSPC;
	if (w->n_flows == w->room) {
		unsigned room = w->room ? 2 * w->room : 64;
		struct flow *more = realloc(w->flow, room * sizeof(*more));

		if (more == NULL)
			return -ENOMEM;
		w->flow = more;
		w->room = room;
	}
	w->flow[w->n_flows] = (struct flow){.n = 0};
	return (int)w->n_flows++;
}

static void give_back(struct fs_water *w, int at)
{
	w->flow[at] = (struct flow){.next_free = w->free};
	w->free = at;
}

static int by_link(const void *a, const void *b)
{
	const struct hop *x = a, *y = b;

	return (x->link > y->link) - (x->link < y->link);
}

static int list_hops(const struct fs_water *w, const unsigned *link, unsigned n, struct flow *f)
{
	struct hop *hop;
	unsigned kept = 0;

	if (n == 0 || n > FS_MAX_FLOW_LINKS)
		return -EINVAL;
	for (unsigned i = 0; i < n; i++) {
		if (link[i] >= w->n_links || !(w->link[link[i]].capacity > 0))
			return -ERANGE;
	}
	hop = malloc(n * sizeof(*hop));
	if (hop == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		hop[i] = (struct hop){.link = link[i], .times = 1};
	qsort(hop, n, sizeof(*hop), by_link);
	for (unsigned i = 0; i < n; i++) {
		if (kept > 0 && hop[kept - 1].link == hop[i].link)
			hop[kept - 1].times++;
		else
			hop[kept++] = hop[i];
	}
	f->hop = hop;
	f->n = kept;
	return 0;
}

static int make_room(struct fs_water *w, const struct flow *f)
{
	for (unsigned i = 0; i < f->n; i++) {
		struct link *l = &w->link[f->hop[i].link];
		unsigned room = l->room ? 2 * l->room : 4;
		struct user *more;

		if (l->n < l->room)
			continue;
		more = realloc(l->user, room * sizeof(*more));
		if (more == NULL)
			return -ENOMEM;
		l->user = more;
		l->room = room;
	}
	return 0;
}

int fs_water_add(struct fs_water *w, const unsigned *link, unsigned n)
{
	int at = new_flow(w), rc;
	struct flow *f;

	if (at < 0)
		return at;
	f = &w->flow[at];
	*f = (struct flow){.n = 0};
	rc = list_hops(w, link, n, f);
	if (rc == 0)
		rc = make_room(w, f);
	if (rc) {
		free(f->hop);
		give_back(w, at);
		return rc;
	}
	for (unsigned i = 0; i < f->n; i++) {
		struct link *l = &w->link[f->hop[i].link];

		f->hop[i].at = l->n;
		l->user[l->n++] = (struct user){at, i};
		l->load += f->hop[i].times;
		touch(w, f->hop[i].link);
	}
	return at;
}

int fs_water_remove(struct fs_water *w, int flow)
{
	struct flow *f;

	if (flow < 0 || (unsigned)flow >= w->n_flows || w->flow[flow].n == 0)
		return -ENOENT;
	f = &w->flow[flow];
	for (unsigned i = 0; i < f->n; i++) {
		struct link *l = &w->link[f->hop[i].link];
		struct user last = l->user[--l->n];

		l->user[f->hop[i].at] = last;
		w->flow[last.flow].hop[last.hop].at = f->hop[i].at;
		l->load -= f->hop[i].times;
		touch(w, f->hop[i].link);
	}
	free(f->hop);
	give_back(w, flow);
	return 0;
}

static void reach(struct fs_water *w, unsigned link)
{
	struct link *l = &w->link[link];

	if (l->seen == w->mark)
		return;
	l->seen = w->mark;
	l->left = l->capacity;
	l->rising = l->load;
	w->reached[w->n_reached++] = link;
}

/* All flows and links that hang together with the dirty links. */
static int spread(struct fs_water *w)
{
	if (w->n_flows > w->changed_room) {
		int *more = realloc(w->changed, w->n_flows * sizeof(*more));

		if (more == NULL)
			return -ENOMEM;
		w->changed = more;
		w->changed_room = w->n_flows;
	}
	w->mark++;
	w->n_reached = w->n_changed = 0;
	for (unsigned i = 0; i < w->n_dirty; i++)
		reach(w, w->dirty[i]);
	for (unsigned i = 0; i < w->n_reached; i++) {
		const struct link *l = &w->link[w->reached[i]];

		for (unsigned k = 0; k < l->n; k++) {
			struct flow *f = &w->flow[l->user[k].flow];

			if (f->seen == w->mark)
				continue;
			f->seen = w->mark;
			f->still = false;
			w->changed[w->n_changed++] = l->user[k].flow;
			for (unsigned h = 0; h < f->n; h++)
				reach(w, f->hop[h].link);
		}
	}
	return 0;
}

static void stop_at(struct fs_water *w, struct flow *f, double rate)
{
	f->still = true;
	f->rate = rate;
	for (unsigned h = 0; h < f->n; h++) {
		struct link *l = &w->link[f->hop[h].link];

		l->left -= rate * f->hop[h].times;
		if (l->left < 0) /* rounding */
			l->left = 0;
		l->rising -= f->hop[h].times;
	}
}

/* The level at which the next links are full; links where nothing rises are left out from now on.
 */
static double next_level(struct fs_water *w)
{
	double level = -1;
	unsigned kept = 0;

	for (unsigned i = 0; i < w->n_reached; i++) {
		const struct link *l = &w->link[w->reached[i]];
		double share;

		if (l->rising == 0)
			continue;
		share = l->left / l->rising;
		if (level < 0 || share < level)
			level = share;
		w->reached[kept++] = w->reached[i];
	}
	w->n_reached = kept;
	return level;
}

/* Which links are full is said before anything stops: that changes the others' shares by rounding
 * alone. */
static void fill(struct fs_water *w)
{
	double level;

	while ((level = next_level(w)) >= 0) {
		unsigned n_full = 0;

		for (unsigned i = 0; i < w->n_reached; i++) {
			const struct link *l = &w->link[w->reached[i]];
			unsigned link = w->reached[i];

			if (l->left / l->rising > level * SAME)
				continue;
			w->reached[i] = w->reached[n_full];
			w->reached[n_full++] = link;
		}
		for (unsigned i = 0; i < n_full; i++) {
			const struct link *l = &w->link[w->reached[i]];

			for (unsigned k = 0; k < l->n; k++) {
				struct flow *f = &w->flow[l->user[k].flow];

				if (!f->still)
					stop_at(w, f, level);
			}
		}
	}
}

int fs_water_settle(struct fs_water *w, const int **changed)
{
	int rc = spread(w);

	if (rc)
		return rc;
	for (unsigned i = 0; i < w->n_dirty; i++)
		w->link[w->dirty[i]].dirty = false;
	w->n_dirty = 0;
	fill(w);
	*changed = w->changed;
	return (int)w->n_changed;
}

double fs_water_rate(const struct fs_water *w, int flow)
{
	return flow >= 0 && (unsigned)flow < w->n_flows ? w->flow[flow].rate : 0;
}

unsigned fs_water_load(const struct fs_water *w, unsigned link)
{
	return link < w->n_links ? w->link[link].load : 0;
}

double fs_water_used(const struct fs_water *w, unsigned link)
{
	double used = 0;

	for (unsigned i = 0; link < w->n_links && i < w->link[link].n; i++) {
		const struct flow *f = &w->flow[w->link[link].user[i].flow];

		used += f->rate * f->hop[w->link[link].user[i].hop].times;
	}
	return used;
}
