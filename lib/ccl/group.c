/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/group.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where in the document we are, and where to complain. */
struct reader {
	char *err;
	char at[96]; /* "switches[1].children[0]." */
};

static int __attribute__((format(printf, 3, 4)))
bad(const struct reader *r, const char *key, const char *fmt, ...)
{
	va_list ap;
	int n = snprintf(r->err, CCL_ERR_LEN, "%s%s: ", r->at, key);

	va_start(ap, fmt);
	if (n < CCL_ERR_LEN)
		vsnprintf(r->err + n, (size_t)(CCL_ERR_LEN - n), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int check_keys(const struct reader *r, const json_t *obj, const char *const *known)
{
	const char *key;
	json_t *value;

	if (!json_is_object(obj))
		return bad(r, "", "an object is expected here");
	json_object_foreach((json_t *)obj, key, value)
	{
		const char *const *k = known;

		while (*k && strcmp(*k, key) != 0)
			k++;
		if (!*k && key[0] != '#')
			return bad(r, key, "no such field");
	}
	return 0;
}

/* Copies a string of 1 .. cap-1 bytes; def (may be "") when it is missing, NULL def: required. */
static int get_str(const struct reader *r, const json_t *obj, const char *key, const char *def,
	char *out, size_t cap)
{
	const json_t *v = json_object_get(obj, key);

	if (!v && def) {
		snprintf(out, cap, "%s", def);
		return 0;
	}
	if (!json_is_string(v))
		return bad(r, key, v ? "must be a string" : "missing");
	if (json_string_length(v) == 0 || json_string_length(v) >= cap)
		return bad(r, key, "must have 1 to %zu bytes", cap - 1);
	snprintf(out, cap, "%s", json_string_value(v));
	return 0;
}

static int get_int(const struct reader *r, const json_t *obj, const char *key, long long def,
	long long min, long long max, long long *out)
{
	const json_t *v = json_object_get(obj, key);

	*out = v ? json_integer_value(v) : def;
	if (v && !json_is_integer(v))
		return bad(r, key, "must be an integer");
	if (v && (*out < min || *out > max))
		return bad(r, key, "%lld is not in %lld..%lld", *out, min, max);
	return 0;
}

static int get_ip(const struct reader *r, const json_t *obj, struct wire_ip *ip)
{
	char text[WIRE_IP_STRLEN];
	const int rc = get_str(r, obj, "ip", NULL, text, sizeof(text));

	if (rc)
		return rc;
	if (wire_ip_parse(text, ip))
		return bad(r, "ip", "\"%s\" is not an IP address", text);
	return 0;
}

static int read_flags(struct reader *r, const json_t *doc, struct ccl_group *g)
{
	static const char *const known[] = {"reproducible", "dup_all", "late_flush", "stall_rnr",
		"strict_port", "half", "sr", NULL};
	const json_t *flags = json_object_get(doc, "flags");
	const char *key;
	json_t *value;
	int rc = 0;

	g->flags = json_object();
	if (!g->flags)
		return -ENOMEM;
	g->stall_rnr = g->half = true;
	if (!flags)
		return 0;
	snprintf(r->at, sizeof(r->at), "flags.");
	rc = check_keys(r, flags, known);
	if (rc)
		return rc;
	json_object_foreach((json_t *)flags, key, value)
	{
		if (key[0] == '#')
			continue;
		if (!json_is_boolean(value))
			return bad(r, key, "must be true or false");
		if (json_object_set(g->flags, key, value))
			return -ENOMEM;
	}
	g->reproducible = json_is_true(json_object_get(g->flags, "reproducible"));
	g->stall_rnr = !json_is_false(json_object_get(g->flags, "stall_rnr"));
	g->half = !json_is_false(json_object_get(g->flags, "half"));
	g->sr = json_is_true(json_object_get(g->flags, "sr"));
	if (g->sr && g->mode_id != CCL_MODE_3)
		return bad(r, "sr", "is for mode III, not %s", g->mode);
	if (g->sr && g->kind == CCL_WISH_MIXED)
		return bad(r, "sr", "is for single groups: a mixed one leaves out PSNs");
	r->at[0] = '\0';
	return 0;
}

static const char name_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789_.-";

static const char *const wishes[] = {"auto", "single", "mixed"};

const char *ccl_wish_name(enum ccl_wish wish)
{
	return wishes[wish];
}

static enum ccl_mode mode_of(const char *name)
{
	static const char *const modes[] = {"", "I", "II", "III", "netreduce", "ring"};

	for (unsigned i = 1; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(name, modes[i]) == 0)
			return (enum ccl_mode)i;
	return (enum ccl_mode)0;
}

/* Which groups there shall be, and what is to be done without. */
static int read_choices(struct reader *r, const json_t *doc, struct ccl_group *g)
{
	const json_t *list = json_object_get(doc, "collectives"), *name;
	const json_t *fallback = json_object_get(doc, "fallback");
	char kind[CCL_NAME_LEN];
	size_t i;
	int rc = get_str(r, doc, "kind", "auto", kind, sizeof(kind));

	if (rc)
		return rc;
	for (i = 0; i < 3 && strcmp(kind, wishes[i]) != 0;)
		i++;
	if (i == 3)
		return bad(r, "kind", "\"%s\" is not auto, single or mixed", kind);
	g->kind = (enum ccl_wish)i;
	if (fallback && !json_is_boolean(fallback))
		return bad(r, "fallback", "must be true or false");
	g->fallback = !json_is_false(fallback);
	g->collectives = CCL_ALL_COLLECTIVES;
	if (!list)
		return 0;
	if (!json_is_array(list))
		return bad(r, "collectives", "must be an array of names");
	g->collectives = 0;
	json_array_foreach(list, i, name)
	{
		const int c = json_is_string(name) ? ccl_collective_parse(json_string_value(name))
						   : -EINVAL;

		if (c < 0)
			return bad(r, "collectives", "item %zu is not the name of one", i);
		g->collectives |= 1u << c;
	}
	return 0;
}

static int read_verb(struct reader *r, const json_t *doc, struct ccl_group *g)
{
	char verb[CCL_NAME_LEN];
	const int rc = get_str(r, doc, "verb", "send", verb, sizeof(verb));

	if (rc)
		return rc;
	g->write = !strcmp(verb, "write");
	if (!g->write && strcmp(verb, "send") != 0)
		return bad(r, "verb", "\"%s\" is not send or write", verb);
	if (g->write && g->mode_id != CCL_MODE_2 && g->mode_id != CCL_MODE_3)
		return bad(r, "verb", "write is for modes II and III, not %s", g->mode);
	return 0;
}

/* After the choices and flags. */
static int read_lease(struct reader *r, const json_t *doc, struct ccl_group *g)
{
	long long ms;
	int rc;

	if ((rc = get_str(r, doc, "lease", "", g->lease, sizeof(g->lease))) ||
		(rc = get_int(r, doc, "lease_ms", (long long)(g->timeout_ns / 1000000), 10, 3600000,
			 &ms)))
		return rc;
	g->lease_ms = ms < 10 ? 10 : (unsigned)ms;
	if (!g->lease[0])
		return json_object_get(doc, "lease_ms")
			       ? bad(r, "lease_ms", "is for groups with a \"lease\"")
			       : 0;
	if (g->lease[strspn(g->lease, name_letters)])
		return bad(r, "lease", "\"%s\" is not made of letters, digits, '_', '.', '-'",
			g->lease);
	if (g->mode_id != CCL_MODE_2 && g->mode_id != CCL_MODE_3)
		return bad(r, "lease", "is for modes II and III, not %s", g->mode);
	if (!g->fallback)
		return bad(r, "lease",
			"needs \"fallback\": who does not get it does without the "
			"switches");
	if (g->reproducible)
		return bad(r, "lease",
			"a reproducible group cannot have one: a ring of the hosts "
			"adds in another order");
	return 0;
}

static int read_scalars(struct reader *r, const json_t *doc, struct ccl_group *g)
{
	long long mtu, m, w, ms, gid;
	int rc;

	if ((rc = get_str(r, doc, "name", NULL, g->name, sizeof(g->name))) ||
		(rc = get_str(r, doc, "mode", "II", g->mode, sizeof(g->mode))) ||
		(rc = get_str(r, doc, "bootstrap", NULL, g->bootstrap, sizeof(g->bootstrap))) ||
		(rc = get_str(r, doc, "device", "", g->device, sizeof(g->device))) ||
		(rc = get_int(r, doc, "gid_index", -1, 0, 255, &gid)) ||
		(rc = get_int(r, doc, "mtu", 0, 256, 4096, &mtu)) ||
		(rc = get_int(r, doc, "M", 4, 1, 1024, &m)) ||
		(rc = get_int(r, doc, "W", 8, 1, 1024, &w)) ||
		(rc = get_int(r, doc, "timeout_ms", 10000, 1, 3600000, &ms)))
		return rc;
	if (g->name[strspn(g->name, name_letters)] || !g->name[strspn(g->name, "0123456789")])
		return bad(r, "name",
			"\"%s\" is not made of letters, digits, '_', '.', '-' (or of "
			"digits alone)",
			g->name);
	if (mtu & (mtu - 1))
		return bad(r, "mtu", "%lld is not 256, 512, 1024, 2048 or 4096", mtu);
	if (m * w < 2 || m * w > CCL_MAX_MW)
		return bad(r, "W", "M*W is %lld, must be in 2..%d", m * w, CCL_MAX_MW);
	g->mode_id = mode_of(g->mode);
	if (!g->mode_id)
		return bad(r, "mode", "\"%s\" is not I, II, III, netreduce or ring", g->mode);
	if (strncmp(g->bootstrap, "unix:/", 6) && strncmp(g->bootstrap, "tcp:", 4))
		return bad(r, "bootstrap", "\"%s\" is neither unix:/PATH nor tcp:HOST:PORT",
			g->bootstrap);
	g->gid_index = (int)gid;
	g->mtu = (unsigned)mtu;
	g->m = (unsigned)m;
	g->w = (unsigned)w;
	g->timeout_ns = (uint64_t)ms * 1000000;
	return 0;
}

static int read_ranks(struct reader *r, const json_t *doc, struct ccl_group *g)
{
	static const char *const known[] = {"ip", NULL};
	const json_t *ranks = json_object_get(doc, "ranks");
	const size_t n = json_array_size(ranks);

	if (!json_is_array(ranks) || n < 1 || n > CCL_MAX_RANKS)
		return bad(r, "ranks", "must be an array of 1 to %d ranks", CCL_MAX_RANKS);
	g->rank_ip = calloc(n, sizeof(*g->rank_ip));
	if (!g->rank_ip)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const json_t *rank = json_array_get(ranks, i);
		int rc;

		snprintf(r->at, sizeof(r->at), "ranks[%zu].", i);
		if ((rc = check_keys(r, rank, known)) || (rc = get_ip(r, rank, &g->rank_ip[i])))
			return rc;
	}
	g->n_ranks = (unsigned)n;
	r->at[0] = '\0';
	return 0;
}

static int find_switch(const struct ccl_group *g, const char *name)
{
	for (unsigned i = 0; i < g->n_switches; i++)
		if (strcmp(g->sw[i].name, name) == 0)
			return (int)i;
	return -1;
}

/* First pass: everything of a switch that does not refer to another one. */
static int read_switch(struct reader *r, const json_t *obj, struct ccl_group *g, unsigned i)
{
	static const char *const known[] = {
		"name", "socket", "ip", "parent", "parent_port", "children", NULL};
	struct ccl_switch *sw = &g->sw[i];
	const json_t *children = json_object_get(obj, "children");
	const size_t n = json_array_size(children);
	int rc;

	if ((rc = check_keys(r, obj, known)) ||
		(rc = get_str(r, obj, "name", NULL, sw->name, sizeof(sw->name))) ||
		(rc = get_str(r, obj, "socket", NULL, sw->socket, sizeof(sw->socket))) ||
		(rc = get_ip(r, obj, &sw->ip)) ||
		(rc = get_str(r, obj, "parent_port", "", sw->parent_port, sizeof(sw->parent_port))))
		return rc;
	if (find_switch(g, sw->name) != (int)i)
		return bad(r, "name", "\"%s\" is used twice", sw->name);
	if (!json_is_array(children) || n < 1 || n > CCL_MAX_CHILDREN)
		return bad(r, "children", "must be an array of 1 to %d", CCL_MAX_CHILDREN);
	sw->child = calloc(n, sizeof(*sw->child));
	if (!sw->child)
		return -ENOMEM;
	sw->n_children = (unsigned)n;
	return 0;
}

static int read_parent(struct reader *r, const json_t *obj, struct ccl_group *g, unsigned i)
{
	const json_t *parent = json_object_get(obj, "parent");
	struct ccl_switch *sw = &g->sw[i];

	sw->parent = -1;
	if (!parent || json_is_null(parent)) {
		if (sw->parent_port[0])
			return bad(r, "parent_port", "the switch has no parent");
		return 0;
	}
	if (!json_is_string(parent))
		return bad(r, "parent", "must be null or the name of a switch");
	sw->parent = find_switch(g, json_string_value(parent));
	if (sw->parent < 0 || sw->parent == (int)i)
		return bad(r, "parent", "\"%s\" is not another switch of this file",
			json_string_value(parent));
	if (!sw->parent_port[0])
		return bad(r, "parent_port", "missing, the switch has a parent");
	return 0;
}

static int read_child(
	struct reader *r, const json_t *obj, struct ccl_group *g, unsigned i, unsigned c)
{
	static const char *const known[] = {"rank", "switch", "port", NULL};
	struct ccl_child *child = &g->sw[i].child[c];
	const json_t *below = json_object_get(obj, "switch");
	long long rank;
	int sub, rc;

	snprintf(r->at, sizeof(r->at), "switches[%u].children[%u].", i, c);
	if ((rc = check_keys(r, obj, known)) ||
		(rc = get_int(r, obj, "rank", -1, 0, (long long)g->n_ranks - 1, &rank)) ||
		(rc = get_str(r, obj, "port", NULL, child->port, sizeof(child->port))))
		return rc;
	if ((rank >= 0) == (below != NULL))
		return bad(r, "rank", "give either \"rank\" or \"switch\"");
	if (rank >= 0) {
		child->host = true;
		child->index = (unsigned)rank;
		return 0;
	}
	if (!json_is_string(below))
		return bad(r, "switch", "must be the name of a switch");
	sub = find_switch(g, json_string_value(below));
	if (sub < 0)
		return bad(r, "switch", "\"%s\" is not a switch of this file",
			json_string_value(below));
	if (g->sw[sub].parent != (int)i)
		return bad(r, "switch", "\"%s\" does not name this switch as its parent",
			g->sw[sub].name);
	child->index = (unsigned)sub;
	return 0;
}

/* One switch without parent, and every switch at most CCL_MAX_DEPTH - 1 steps below it: no cycles.
 */
static int check_root(struct reader *r, struct ccl_group *g)
{
	int root = -1;

	for (unsigned i = 0; i < g->n_switches; i++) {
		if (g->sw[i].parent >= 0)
			continue;
		if (root >= 0)
			return bad(r, "switches", "both \"%s\" and \"%s\" have no parent",
				g->sw[root].name, g->sw[i].name);
		root = (int)i;
	}
	if (root < 0)
		return bad(r, "switches", "every switch has a parent: there is no tree root");
	for (unsigned i = 0; i < g->n_switches; i++) {
		unsigned depth = 1;

		for (int up = g->sw[i].parent; up >= 0; up = g->sw[up].parent)
			if (++depth > CCL_MAX_DEPTH)
				return bad(r, "switches", "\"%s\" is more than %d levels deep",
					g->sw[i].name, CCL_MAX_DEPTH);
	}
	g->root = (unsigned)root;
	return 0;
}

static int read_switches(struct reader *r, const json_t *doc, struct ccl_group *g)
{
	const json_t *list = json_object_get(doc, "switches");
	const size_t n = json_array_size(list);
	int rc = 0;

	if (!list && g->manager[0])
		return 0;
	if (!json_is_array(list) || n < 1 || n > 2 * CCL_MAX_RANKS)
		return bad(r, "switches", "must be an array of at least one switch");
	g->sw = calloc(n, sizeof(*g->sw));
	if (!g->sw)
		return -ENOMEM;
	for (unsigned i = 0; i < n && !rc; i++) {
		snprintf(r->at, sizeof(r->at), "switches[%u].", i);
		g->n_switches = i + 1;
		rc = read_switch(r, json_array_get(list, i), g, i);
	}
	for (unsigned i = 0; i < n && !rc; i++) {
		snprintf(r->at, sizeof(r->at), "switches[%u].", i);
		rc = read_parent(r, json_array_get(list, i), g, i);
	}
	r->at[0] = '\0';
	if (!rc)
		rc = check_root(r, g);
	for (unsigned i = 0; i < n && !rc; i++) {
		const json_t *children = json_object_get(json_array_get(list, i), "children");

		for (unsigned c = 0; c < g->sw[i].n_children && !rc; c++)
			rc = read_child(r, json_array_get(children, c), g, i, c);
	}
	r->at[0] = '\0';
	return rc;
}

/* Only a group without switches needs one. */
static int read_manager(struct reader *r, const json_t *doc, struct ccl_group *g)
{
	const char *env = getenv("INCLINE_MANAGER");
	int rc = get_str(r, doc, "manager", env ? env : "", g->manager, sizeof(g->manager));

	if (rc)
		return rc;
	g->mode_given = json_object_get(doc, "mode") != NULL;
	g->m_given = json_object_get(doc, "M") != NULL;
	if (json_object_get(doc, "switches"))
		g->manager[0] = '\0';
	if (!g->manager[0])
		return 0;
	if (g->mode_id == CCL_MODE_NETREDUCE || g->mode_id == CCL_MODE_RING)
		return bad(r, "mode", "%s has no tree for a manager to find: name the switches",
			g->mode);
	if (g->lease[0])
		return bad(r, "lease", "a manager places groups that have their own memory");
	return 0;
}

static int by_min_rank(const void *a, const void *b)
{
	const struct ccl_child *x = a, *y = b;

	return (x->min_rank > y->min_rank) - (x->min_rank < y->min_rank);
}

/* Depth is bounded by check_root. */
static unsigned order_children(struct ccl_group *g, unsigned i)
{
	struct ccl_switch *sw = &g->sw[i];

	for (unsigned c = 0; c < sw->n_children; c++) {
		struct ccl_child *child = &sw->child[c];

		child->min_rank = child->host ? child->index : order_children(g, child->index);
	}
	qsort(sw->child, sw->n_children, sizeof(*sw->child), by_min_rank);
	sw->min_rank = sw->child[0].min_rank;
	return sw->min_rank;
}

static int check_tree(struct reader *r, struct ccl_group *g)
{
	uint8_t *rank_seen = calloc(g->n_ranks + g->n_switches, 1);
	uint8_t *sw_seen = rank_seen + g->n_ranks;
	int rc = 0;

	if (!rank_seen)
		return -ENOMEM;
	if (!g->n_switches) { /* a manager finds the tree */
		free(rank_seen);
		return 0;
	}
	for (unsigned i = 0; i < g->n_switches && !rc; i++) {
		for (unsigned c = 0; c < g->sw[i].n_children && !rc; c++) {
			const struct ccl_child *child = &g->sw[i].child[c];
			uint8_t *seen = child->host ? rank_seen : sw_seen;

			if (seen[child->index]++)
				rc = bad(r, "switches",
					"%s %u is the child of \"%s\" a second time",
					child->host ? "rank" : "switch", child->index,
					g->sw[i].name);
		}
	}
	for (unsigned i = 0; i < g->n_ranks && !rc; i++)
		if (!rank_seen[i])
			rc = bad(r, "switches", "rank %u is nobody's child", i);
	for (unsigned i = 0; i < g->n_switches && !rc; i++)
		if (!sw_seen[i] && i != g->root)
			rc = bad(r, "switches",
				"\"%s\" is not among the children of its parent \"%s\"",
				g->sw[i].name, g->sw[g->sw[i].parent].name);
	free(rank_seen);
	if (!rc)
		order_children(g, g->root);
	return rc;
}

int ccl_group_parse(const json_t *doc, struct ccl_group **group, char err[CCL_ERR_LEN])
{
	static const char *const known[] = {"name", "mode", "bootstrap", "device", "gid_index",
		"mtu", "M", "W", "timeout_ms", "flags", "kind", "collectives", "fallback", "verb",
		"lease", "lease_ms", "ranks", "switches", "manager", NULL};
	struct reader r = {.err = err};
	struct ccl_group *g = calloc(1, sizeof(*g));
	int rc;

	snprintf(err, CCL_ERR_LEN, "out of memory");
	if (!g)
		return -ENOMEM;
	g->io = &ctl_sockets;
	if ((rc = check_keys(&r, doc, known)) || (rc = read_scalars(&r, doc, g)) ||
		(rc = read_choices(&r, doc, g)) || (rc = read_flags(&r, doc, g)) ||
		(rc = read_verb(&r, doc, g)) || (rc = read_lease(&r, doc, g)) ||
		(rc = read_ranks(&r, doc, g)) || (rc = read_manager(&r, doc, g)) ||
		(rc = read_switches(&r, doc, g)) || (rc = check_tree(&r, g))) {
		ccl_group_free(g);
		return rc;
	}
	err[0] = '\0';
	*group = g;
	return 0;
}

int ccl_group_take_plan(struct ccl_group *own, const char *mode, unsigned m, unsigned w,
	const json_t *switches, char err[CCL_ERR_LEN])
{
	struct reader r = {.err = err};
	json_t *doc = json_pack("{s:O}", "switches", switches);
	int rc = doc ? 0 : -ENOMEM;

	snprintf(own->mode, sizeof(own->mode), "%s", mode);
	own->mode_id = mode_of(mode);
	own->m = m;
	/* The least window is two packets. */
	own->w = m * w < 2 ? 2 : w;
	if (!rc)
		rc = read_switches(&r, doc, own);
	if (!rc)
		rc = check_tree(&r, own);
	if (rc)
		ccl_group_drop_tree(own);
	json_decref(doc);
	return rc;
}
