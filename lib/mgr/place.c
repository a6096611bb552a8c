/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mgr/place_priv.h"

enum { NAMES_LEN = 80 }; /* of switches in a line */

const struct mgr_policy *mgr_policy_find(const char *name)
{
	static const struct mgr_policy *const all[] = {
		&mgr_policy_edt, &mgr_policy_spatial, &mgr_policy_temporal};

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	}
	return NULL;
}

struct mgr_place *mgr_place_new(struct mgr_graph *g, struct mgr_book *b)
{
	struct mgr_place *p = calloc(1, sizeof(*p));

	if (p == NULL)
		return NULL;
	p->g = g;
	p->b = b;
	p->f = mgr_finder_new(g, b);
	if (p->f == NULL) {
		free(p);
		return NULL;
	}
	return p;
}

void mgr_place_free(struct mgr_place *p)
{
	if (p == NULL)
		return;
	mgr_finder_free(p->f);
	free(p->root);
	free(p->width);
	free(p);
}

struct mgr_finder *mgr_place_finder(struct mgr_place *p)
{
	return p->f;
}

const unsigned *mgr_place_roots(struct mgr_place *p, unsigned *n)
{
	*n = p->n_roots;
	return p->root;
}

unsigned mgr_place_tier(struct mgr_place *p, unsigned node)
{
	return mgr_graph_tier(p->g, node);
}

/* By tier, one after the other: a stable sort. */
static int list_roots(struct mgr_place *p)
{
	unsigned n = mgr_graph_bound(p->g);

	if (n > p->root_room) {
		unsigned *more = realloc(p->root, n * sizeof(*more));

		if (more == NULL)
			return -ENOMEM;
		p->root = more;
		p->root_room = n;
	}
	p->n_roots = 0;
	for (unsigned tier = 0; tier <= MGR_NO_TIER; tier++) {
		for (unsigned i = 0; i < n; i++) {
			const struct mgr_node *node = mgr_graph_node(p->g, i);

			if (node != NULL && node->kind == MGR_SWITCH && node->up &&
				mgr_graph_tier(p->g, i) == tier)
				p->root[p->n_roots++] = i;
		}
	}
	return 0;
}

static uint64_t share_of(struct mgr_place *p, unsigned link, const struct mgr_bar *bar)
{
	struct mgr_link l;
	struct mgr_edge e;

	if (mgr_graph_link(p->g, link, &l))
		return 0;
	e = (struct mgr_edge){.link = link, .bps = l.bps, .up = l.up};
	return mgr_link_share(p->f, &e, bar);
}

static uint64_t lower(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t width_of(struct mgr_place *p, const struct mgr_wish *wish,
	const struct mgr_bar *bar, const struct mgr_tree *t)
{
	uint64_t width = wish->want_bps ? wish->want_bps : UINT64_MAX;

	for (unsigned i = 0; i < t->n_sw; i++) {
		const struct mgr_tree_sw *s = &t->sw[i];
		const struct mgr_node *node = mgr_graph_node(p->g, s->node);

		if (s->parent >= 0)
			width = lower(width, share_of(p, s->link, bar));
		if (s->transit)
			continue;
		if (mgr_book_switch_holders(p->b, s->node) >= node->groups)
			return 0;
		width = lower(width, mgr_size_rate(&wish->shape, bar->mode, t->height,
					     mgr_finder_free_bytes(p->f, s->node, bar->duty),
					     mgr_tree_endpoints(s)));
	}
	for (unsigned i = 0; i < t->n_members; i++)
		width = lower(width, share_of(p, t->member[i].link, bar));
	return width;
}

bool mgr_place_size(struct mgr_place *p, const struct mgr_wish *wish, const struct mgr_bar *bar,
	struct mgr_plan *plan)
{
	const struct mgr_tree *t = &plan->tree;
	uint64_t bps = width_of(p, wish, bar, t);

	if (bps == 0 || bps < wish->least_bps ||
		mgr_size_for(&wish->shape, bar->mode, t->height, bps, &plan->size))
		return false;
	plan->bps = bps;
	plan->goodput = mgr_size_goodput(&wish->shape, bar->mode, t->height, t->n_children, bps);
	return true;
}

uint64_t mgr_plan_bytes(const struct mgr_plan *plan, const struct mgr_shape *shape)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < plan->tree.n_sw; i++) {
		const struct mgr_tree_sw *s = &plan->tree.sw[i];

		if (!s->transit)
			sum += mgr_size_bytes(shape, &plan->size, mgr_tree_endpoints(s));
	}
	return sum;
}

bool mgr_plan_better(
	const struct mgr_plan *a, const struct mgr_plan *b, const struct mgr_shape *shape)
{
	if (a->goodput != b->goodput)
		return a->goodput > b->goodput;
	return mgr_plan_bytes(a, shape) < mgr_plan_bytes(b, shape);
}

void mgr_plan_free(struct mgr_plan *plan)
{
	mgr_tree_free(&plan->tree);
}

static int by_number(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

/* Links of a tree, each once: ranks of one host may share its link. */
static unsigned list_links(const struct mgr_tree *t, unsigned *link)
{
	unsigned n = 0, kept = 0;

	for (unsigned i = 1; i < t->n_sw; i++)
		link[n++] = t->sw[i].link;
	for (unsigned i = 0; i < t->n_members; i++)
		link[n++] = t->member[i].link;
	qsort(link, n, sizeof(link[0]), by_number);
	for (unsigned i = 0; i < n; i++) {
		if (kept == 0 || link[kept - 1] != link[i])
			link[kept++] = link[i];
	}
	return kept;
}

/* again: it was promised before. */
static int promise_plan(struct mgr_place *p, const struct mgr_shape *shape, bool promised,
	const struct mgr_plan *plan, bool again, uint64_t deadline, mgr_promise *promise)
{
	const struct mgr_tree *t = &plan->tree;
	struct mgr_demand_sw *sw = malloc(t->n_sw * sizeof(*sw));
	unsigned *link = malloc((t->n_sw + t->n_members) * sizeof(*link));
	struct mgr_demand d = {.sw = sw,
		.link = link,
		.bps = promised ? plan->bps : 0,
		.duty = plan->duty,
		.whole = plan->whole};
	int rc = -ENOMEM, node, at;

	if (sw && link) {
		for (unsigned i = 0; i < t->n_sw; i++) {
			const struct mgr_tree_sw *s = &t->sw[i];

			if (!s->transit)
				sw[d.n_sw++] = (struct mgr_demand_sw){s->node,
					mgr_size_bytes(shape, &plan->size, mgr_tree_endpoints(s))};
		}
		d.n_link = list_links(t, link);
		rc = again ? mgr_book_restore(p->b, &d, promise)
			   : mgr_book_reserve(p->b, &d, deadline, promise, &node, &at);
	}
	free(sw);
	free(link);
	return rc;
}

int mgr_place_restore(struct mgr_place *p, const struct mgr_shape *shape, bool promised,
	const struct mgr_plan *plan, mgr_promise *promise)
{
	return promise_plan(p, shape, promised, plan, true, 0, promise);
}

static bool hosts_ok(struct mgr_place *p, const struct mgr_wish *wish)
{
	for (unsigned i = 0; i < wish->n_members; i++) {
		const struct mgr_node *host = mgr_graph_node(p->g, wish->member[i].node);
		const struct mgr_edge *e;
		unsigned n, up = 0;

		if (host == NULL || host->kind != MGR_HOST || !host->up)
			return false;
		n = mgr_graph_edges(p->g, wish->member[i].node, &e);
		for (unsigned k = 0; k < n; k++)
			up += e[k].up;
		if (up == 0)
			return false;
	}
	return true;
}

/* Whether any root has a tree within the bar, in any of the modes. */
static bool any_root(
	struct mgr_place *p, const struct mgr_wish *wish, struct mgr_bar bar, unsigned modes)
{
	struct mgr_tree t;

	for (bar.mode = MGR_MODE_I; bar.mode <= MGR_MODE_III; bar.mode <<= 1) {
		struct mgr_bar all = bar;

		if (modes != 0 && !(modes & bar.mode))
			continue;
		all.mode = modes ? bar.mode : 0;
		if (!mgr_tree_possible(p->f, wish->member, wish->n_members, &all) ||
			!mgr_tree_sift(p->f, wish->member, wish->n_members, &all))
			continue;
		for (unsigned i = 0; i < p->n_roots; i++) {
			if (!mgr_tree_may_root(p->f, p->root[i]))
				continue;
			if (mgr_tree_grow(p->f, wish->member, wish->n_members, p->root[i], &all,
				    &t) == 0) {
				mgr_tree_free(&t);
				return true;
			}
		}
	}
	return false;
}

/* What is in the way: with everything else out of it, one thing after the other. */
static enum mgr_why why_not(
	struct mgr_place *p, const struct mgr_policy *policy, const struct mgr_wish *wish)
{
	struct mgr_bar bar = {.max_tier = MGR_NO_TIER,
		.max_height = MGR_MAX_HEIGHT,
		.duty = policy->shared ? wish->duty : MGR_DUTY,
		.promised = wish->promised,
		.ignore_memory = true,
		.ignore_links = true};

	if (!(wish->modes & MGR_MODES))
		return MGR_WHY_DEVICE;
	if (!any_root(p, wish, bar, 0))
		return MGR_WHY_TREE;
	if (!any_root(p, wish, bar, wish->modes))
		return MGR_WHY_MODE;
	bar.ignore_links = false;
	bar.whole = policy->whole;
	if (!any_root(p, wish, bar, wish->modes))
		return policy->whole ? MGR_WHY_POLICY : MGR_WHY_LINKS;
	bar.ignore_memory = false;
	bar.bytes = 2 * wish->shape.mtu;
	if (!any_root(p, wish, bar, wish->modes)) {
		mgr_finder_limit(p->f, NULL);
		return wish->most && any_root(p, wish, bar, wish->modes) ? MGR_WHY_OWNER
									 : MGR_WHY_MEMORY;
	}
	/* Not enough for any window at all, or for the rate below which it is of no use. */
	return wish->least_bps ? MGR_WHY_WIDTH : MGR_WHY_MEMORY;
}

/* -ENOSPC: where it goes, no block can be as large as it needs on all switches; *why says so. */
static int give_window(struct mgr_place *p, const struct mgr_wish *wish, struct mgr_plan *plan,
	mgr_promise promise, enum mgr_why *why)
{
	if (!wish->turns || plan->duty == MGR_DUTY ||
		mgr_book_give_window(p->b, promise, &plan->window) == 0)
		return 0;
	mgr_book_release(p->b, promise);
	*why = MGR_WHY_MEMORY;
	return -ENOSPC;
}

/* Takes the one that the job likes best and that the book grants. */
static int take(struct mgr_place *p, const struct mgr_wish *wish, struct mgr_plan *all, int n,
	uint64_t deadline, struct mgr_plan *plan, mgr_promise *promise, enum mgr_why *why)
{
	int taken = -1, rc = -ENOSPC;

	for (int i = 0; i < n && rc == -ENOSPC; i++) {
		taken = wish->low ? i : n - 1 - i;
		rc = promise_plan(
			p, &wish->shape, wish->promised, &all[taken], false, deadline, promise);
		if (rc == 0)
			rc = give_window(p, wish, &all[taken], *promise, why);
	}
	for (int i = 0; i < n; i++) {
		if (rc || i != taken)
			mgr_plan_free(&all[i]);
	}
	if (rc == 0)
		*plan = all[taken];
	return rc;
}

/* What follows from the graph alone, once per change of it. */
static int follow_graph(struct mgr_place *p)
{
	uint64_t version = mgr_graph_version(p->g) + 1;
	int rc;

	if (p->synced == version)
		return 0;
	mgr_finder_sync(p->g, p->b);
	rc = list_roots(p);
	if (rc == 0)
		p->synced = version;
	return rc;
}

static bool wish_ok(const struct mgr_wish *wish)
{
	return mgr_shape_check(&wish->shape) == 0 && wish->duty > 0 && wish->duty <= MGR_DUTY &&
	       !(wish->want_bps && wish->want_bps < wish->least_bps) &&
	       (wish->member != NULL || wish->n_members == 0);
}

int mgr_place_group(struct mgr_place *p, const struct mgr_policy *policy,
	const struct mgr_wish *wish, uint64_t deadline, struct mgr_plan *plan, mgr_promise *promise,
	enum mgr_why *why)
{
	struct mgr_plan all[MGR_MAX_PLANS];
	int n, rc;

	if (!wish_ok(wish))
		return -EINVAL;
	*why = MGR_WHY_NO_ROOM;
	if (follow_graph(p))
		return -ENOENT;
	*why = MGR_WHY_RANKS;
	if (wish->n_members < 2 || wish->n_members > MGR_MAX_MEMBERS)
		return -ENOENT;
	*why = MGR_WHY_HOST;
	if (!hosts_ok(p, wish))
		return -ENOENT;
	mgr_finder_limit(p->f, wish->most);
	n = policy->candidates(p, wish, all);
	*why = MGR_WHY_NO_ROOM;
	rc = n < 0 ? n : take(p, wish, all, n, deadline, plan, promise, why);
	if (rc == -ENOSPC && *why != MGR_WHY_MEMORY)
		*why = why_not(p, policy, wish);
	else if (rc != -ENOSPC)
		*why = rc ? MGR_WHY_NO_ROOM : MGR_WHY_OK;
	mgr_finder_limit(p->f, NULL);
	return rc ? -ENOENT : 0;
}

const char *mgr_why_line(enum mgr_why why)
{
	static const char *const line[MGR_WHYS] = {
		[MGR_WHY_OK] = "in the network",
		[MGR_WHY_RANKS] = "not in the network: needs 2 to 2048 ranks",
		[MGR_WHY_HOST] = "not in the network: a rank's host is unknown, down, or without a "
				 "link that is up; it would fit when that is mended",
		[MGR_WHY_MODE] = "not in the network: no mode that the ranks ask for is offered by "
				 "all switches of a tree between them; another mode, or none, in "
				 "the group file would do",
		[MGR_WHY_TREE] =
			"not in the network: no common switch: none that is up reaches all "
			"ranks within 4 levels and 63 children each; a link or a switch "
			"has to come back, or ranks have to be nearer to each other",
		[MGR_WHY_LINKS] = "not in the network: links of every tree are promised to other "
				  "groups; it would fit when one of them ends",
		[MGR_WHY_MEMORY] = "not in the network: a switch of every tree has no memory or no "
				   "group left; it would fit when another group ends",
		[MGR_WHY_WIDTH] = "not in the network: the widest tree gives less than the job's "
				  "least rate; lower that, or wait until other groups end",
		[MGR_WHY_NO_ROOM] = "not in the network: the manager is out of memory or promises",
		[MGR_WHY_DEVICE] = "not in the network: the ranks' devices have no mode in common; "
				   "their group files have to ask for the same one, or for none",
		[MGR_WHY_POLICY] = "not in the network: the policy edt gives a link to one tree, "
				   "and every tree needs one that is taken; it would fit when "
				   "another group ends, or with the policy spatial",
		[MGR_WHY_OWNER] = "not in the network: its tenant's jobs have all memory that they "
				  "may have on a switch of every tree; it would fit when one of "
				  "them ends",
	};

	return (unsigned)why < MGR_WHYS ? line[why] : "?";
}

/* Switches that take part, the root first. */
static void list_names(const struct mgr_place *p, const struct mgr_tree *t, char *names, size_t cap)
{
	unsigned left = 0;
	size_t at = 0;

	names[0] = '\0';
	for (unsigned i = 0; i < t->n_sw; i++) {
		const struct mgr_node *node = mgr_graph_node(p->g, t->sw[i].node);
		const char *name = node ? node->name : "?";

		if (t->sw[i].transit)
			continue;
		if (left > 0 || at + strlen(name) + 1 > NAMES_LEN)
			left++;
		else
			at += (size_t)snprintf(names + at, cap - at, "%s%s", at ? " " : "", name);
	}
	if (left > 0)
		snprintf(names + at, cap - at, " and %u more", left);
}

void mgr_plan_line(const struct mgr_place *p, const struct mgr_wish *wish,
	const struct mgr_plan *plan, char *line, unsigned len)
{
	char names[NAMES_LEN + 24], turn[64] = "";
	const struct mgr_window *w = &plan->window;

	if (w->length)
		snprintf(turn, sizeof(turn), " shared as block %u, %u to %u of 1000", w->block,
			w->start, w->start + w->length);
	else if (plan->duty < MGR_DUTY)
		snprintf(turn, sizeof(turn), " shared as block %u, when it is free", w->block);
	list_names(p, &plan->tree, names, sizeof(names));
	snprintf(line, len,
		"in the network: height %u, %u switches, root first: %s; mode %s, M %u, W %u, "
		"%llu bytes in all%s, %.1f Gbit/s",
		plan->tree.height, plan->tree.n_sw, names, mgr_mode_name(plan->size.mode),
		plan->size.m, plan->size.w, (unsigned long long)mgr_plan_bytes(plan, &wish->shape),
		turn, (double)plan->goodput / 1e9);
}
