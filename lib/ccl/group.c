/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/group.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/address.h"
#include "lib/wire/multicast.h"

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

/* An object of the file. */
static const struct ctl_field *part(const char *name)
{
	return ctl_member(&ccl_group_file, name);
}

/* What the table of fields (group_fields.c) says of a value. */
static int check(const struct reader *r, const struct ctl_field *field, const json_t *value)
{
	struct ctl_problem problem;

	if (ctl_check_value(field, value, field->name, &problem) == 0)
		return 0;
	ctl_problem_text(&problem, r->err, CCL_ERR_LEN);
	return -EINVAL;
}

/* A string that has been checked, its default, or "". */
static void copy(
	const struct ctl_field *of, const json_t *obj, const char *key, char *out, size_t cap)
{
	const char *text = ctl_text(of, obj, key);

	snprintf(out, cap, "%s", text ? text : "");
}

static int get_ip(const struct reader *r, const json_t *obj, struct wire_ip *ip)
{
	const char *text = json_string_value(json_object_get(obj, "ip"));

	return wire_ip_parse(text, ip) ? bad(r, "ip", "\"%s\" is not an IP address", text) : 0;
}

static int read_flags(struct reader *r, const json_t *doc, struct ccl_group *g)
{
	const json_t *flags = json_object_get(doc, "flags");

	g->flags = flags ? json_deep_copy(flags) : json_object();
	if (!g->flags)
		return -ENOMEM;
	g->reproducible = ctl_bool(part("flags"), g->flags, "reproducible");
	g->stall_rnr = !json_is_false(json_object_get(g->flags, "stall_rnr"));
	g->half = ctl_bool(part("flags"), g->flags, "half");
	g->sr = ctl_bool(part("flags"), g->flags, "sr");
	if (g->sr && g->mode_id != CCL_MODE_3 && g->mode_id != CCL_MODE_2)
		return bad(r, "flags.sr", "is for modes II and III, not %s", g->mode);
	if (g->sr && g->kind == CCL_WISH_MIXED)
		return bad(r, "flags.sr", "is for single groups: a mixed one leaves out PSNs");
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
	const char *kind = ctl_text(&ccl_group_file, doc, "kind");
	size_t i;

	while (strcmp(kind, wishes[g->kind]) != 0)
		g->kind++;
	g->fallback = ctl_bool(&ccl_group_file, doc, "fallback");
	g->collectives = list ? 0 : CCL_ALL_COLLECTIVES;
	g->collectives_given = list;
	json_array_foreach(list, i, name)
	{
		const int c = ccl_collective_parse(json_string_value(name));

		if (c < 0)
			return bad(r, "collectives", "item %zu is not the name of one", i);
		g->collectives |= 1u << c;
	}
	return 0;
}

static int read_verb(struct reader *r, const json_t *doc, struct ccl_group *g)
{
	g->write = !strcmp(ctl_text(&ccl_group_file, doc, "verb"), "write");
	if (g->write && g->mode_id != CCL_MODE_2 && g->mode_id != CCL_MODE_3)
		return bad(r, "verb", "write is for modes II and III, not %s", g->mode);
	return 0;
}

static int no_lease(struct reader *r, const json_t *doc)
{
	static const char *const fields[] = {"lease_ms", "lease_wait_ms"};

	for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (json_object_get(doc, fields[i]))
			return bad(r, fields[i], "is for groups with a \"lease\"");
	return 0;
}

/* The other ranks wait for rank 0's decision by the ring, with the timeout: it has to come before,
 * what the switches are asked at the end included. */
static int read_lease_wait(struct reader *r, const json_t *doc, struct ccl_group *g)
{
	const uint64_t most = g->timeout_ns / 1000000 / 4;

	g->lease_wait_ms = (unsigned)ctl_int(&ccl_group_file, doc, "lease_wait_ms");
	if (g->lease_wait_ms > most)
		return bad(r, "lease_wait_ms",
			"%u is more than %llu, a quarter of timeout_ms, in which all ranks have to "
			"know",
			g->lease_wait_ms, (unsigned long long)most);
	return 0;
}

/* After the choices and flags. */
static int read_lease(struct reader *r, const json_t *doc, struct ccl_group *g)
{
	int64_t ms = ctl_int(&ccl_group_file, doc, "lease_ms");
	int rc;

	if (ms == 0)
		ms = (int64_t)(g->timeout_ns / 1000000);
	copy(&ccl_group_file, doc, "lease", g->lease, sizeof(g->lease));
	g->lease_ms = ms < 10 ? 10 : (unsigned)ms;
	if (!g->lease[0])
		return no_lease(r, doc);
	rc = read_lease_wait(r, doc, g);
	if (rc)
		return rc;
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

/* After the choices, flags and lease. */
static int read_resume(struct reader *r, const json_t *doc, struct ccl_group *g)
{
	g->resume = ctl_bool(&ccl_group_file, doc, "resume");
	if (!g->resume)
		return 0;
	if (!g->fallback)
		return bad(r, "resume", "needs \"fallback\": it goes on without the switches");
	if (g->mode_id == CCL_MODE_NETREDUCE)
		return bad(r, "resume", "is for modes I, II and III, not %s", g->mode);
	if (g->lease[0])
		return bad(r, "resume", "a group with a \"lease\" cannot");
	if (g->reproducible)
		return bad(r, "resume",
			"a reproducible group cannot: a ring of the hosts adds in another order");
	if (json_object_get(doc, "multicast"))
		return bad(r, "resume", "not with \"multicast\": nobody keeps what went by it");
	return 0;
}

static int read_scalars(struct reader *r, const json_t *doc, struct ccl_group *g)
{
	const struct ctl_field *const f = &ccl_group_file;

	copy(f, doc, "name", g->name, sizeof(g->name));
	copy(f, doc, "mode", g->mode, sizeof(g->mode));
	copy(f, doc, "bootstrap", g->bootstrap, sizeof(g->bootstrap));
	copy(f, doc, "device", g->device, sizeof(g->device));
	g->mode_id = mode_of(g->mode);
	g->gid_index = json_object_get(doc, "gid_index") ? (int)ctl_int(f, doc, "gid_index") : -1;
	g->mtu = (unsigned)ctl_int(f, doc, "mtu");
	g->m = (unsigned)ctl_int(f, doc, "M");
	g->w = (unsigned)ctl_int(f, doc, "W");
	g->rings = (unsigned)ctl_int(f, doc, "rings");
	g->duty = (unsigned)ctl_int(f, doc, "duty");
	g->timeout_ns = (uint64_t)ctl_int(f, doc, "timeout_ms") * 1000000;
	if (g->name[strspn(g->name, name_letters)] || !g->name[strspn(g->name, "0123456789")])
		return bad(r, "name",
			"\"%s\" is not made of letters, digits, '_', '.', '-' (or of "
			"digits alone)",
			g->name);
	if (g->mtu & (g->mtu - 1))
		return bad(r, "mtu", "%u is not 256, 512, 1024, 2048 or 4096", g->mtu);
	if (g->m * g->w < 2 || g->m * g->w > CCL_MAX_MW)
		return bad(r, "W", "M*W is %u, must be in 2..%d", g->m * g->w, CCL_MAX_MW);
	if (strncmp(g->bootstrap, "unix:/", 6) && strncmp(g->bootstrap, "tcp:", 4))
		return bad(r, "bootstrap", "\"%s\" is neither unix:/PATH nor tcp:HOST:PORT",
			g->bootstrap);
	return 0;
}

static int read_ranks(struct reader *r, const json_t *doc, struct ccl_group *g)
{
	const json_t *ranks = json_object_get(doc, "ranks");
	const size_t n = json_array_size(ranks);

	g->rank_ip = calloc(n, sizeof(*g->rank_ip));
	if (!g->rank_ip)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		snprintf(r->at, sizeof(r->at), "ranks[%zu].", i);
		if (get_ip(r, json_array_get(ranks, i), &g->rank_ip[i]))
			return -EINVAL;
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
	const struct ctl_field *const f = part("switches");
	struct ccl_switch *sw = &g->sw[i];
	const size_t n = json_array_size(json_object_get(obj, "children"));

	copy(f, obj, "name", sw->name, sizeof(sw->name));
	copy(f, obj, "socket", sw->socket, sizeof(sw->socket));
	copy(f, obj, "parent_port", sw->parent_port, sizeof(sw->parent_port));
	if (get_ip(r, obj, &sw->ip))
		return -EINVAL;
	if (find_switch(g, sw->name) != (int)i)
		return bad(r, "name", "\"%s\" is used twice", sw->name);
	sw->child = calloc(n, sizeof(*sw->child));
	if (!sw->child)
		return -ENOMEM;
	sw->n_children = (unsigned)n;
	return 0;
}

static int read_parent(struct reader *r, const json_t *obj, struct ccl_group *g, unsigned i)
{
	const char *parent = json_string_value(json_object_get(obj, "parent"));
	struct ccl_switch *sw = &g->sw[i];

	sw->parent = -1;
	if (!parent)
		return sw->parent_port[0] ? bad(r, "parent_port", "the switch has no parent") : 0;
	sw->parent = find_switch(g, parent);
	if (sw->parent < 0 || sw->parent == (int)i)
		return bad(r, "parent", "\"%s\" is not another switch of this file", parent);
	if (!sw->parent_port[0])
		return bad(r, "parent_port", "missing, the switch has a parent");
	return 0;
}

static int read_child(
	struct reader *r, const json_t *obj, struct ccl_group *g, unsigned i, unsigned c)
{
	struct ccl_child *child = &g->sw[i].child[c];
	const json_t *rank = json_object_get(obj, "rank");
	const char *below = json_string_value(json_object_get(obj, "switch"));
	int sub;

	snprintf(r->at, sizeof(r->at), "switches[%u].children[%u].", i, c);
	copy(part("switches"), obj, "port", child->port, sizeof(child->port));
	if ((rank != NULL) == (below != NULL))
		return bad(r, "rank", "give either \"rank\" or \"switch\"");
	if (rank) {
		child->host = true;
		child->index = (unsigned)json_integer_value(rank);
		if (child->index < g->n_ranks)
			return 0;
		return bad(r, "rank", "%u is not in 0..%u", child->index, g->n_ranks - 1);
	}
	sub = find_switch(g, below);
	if (sub < 0)
		return bad(r, "switch", "\"%s\" is not a switch of this file", below);
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

	if (!list)
		return g->manager[0] ? 0
				     : bad(r, "switches", "is missing, and no manager is named");
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

/* After ranks and lease. */
static int read_algorithm(struct reader *r, const json_t *doc, struct ccl_group *g)
{
	const struct ctl_field *const f = part("multicast");
	const json_t *multicast = json_object_get(doc, "multicast");

	g->algorithm = (enum ccl_algorithm)ccl_algorithm_parse(
		ctl_text(&ccl_group_file, doc, "algorithm"));
	g->tree.binary = !strcmp(ctl_text(&ccl_group_file, doc, "tree"), "binary");
	g->tree.radix = (unsigned)ctl_int(&ccl_group_file, doc, "tree_radix");
	g->mcast.given = multicast;
	if (multicast) {
		const char *text = ctl_text(f, multicast, "group");

		g->mcast.uc = !strcmp(ctl_text(f, multicast, "transport"), "uc");
		g->mcast.chains = (unsigned)ctl_int(f, multicast, "chains");
		g->mcast.trees = (unsigned)ctl_int(f, multicast, "trees");
		g->mcast.min_bytes = (uint64_t)ctl_int(f, multicast, "min_bytes");
		if (wire_ip_parse(text, &g->mcast.group) || !wire_is_multicast(&g->mcast.group))
			return bad(r, "multicast.group", "\"%s\" is not a multicast address", text);
	}
	return ccl_group_check_algorithm(g, r->err);
}

/* One of several leads, and is asked for in turn. */
static int check_managers(const struct reader *r, const char *list)
{
	char item[CCL_ADDRESS_LEN];
	unsigned i = 0;
	int n;

	while ((n = ctl_address_item(list, i, item, sizeof(item))) != -ENOENT) {
		if (i == CCL_MAX_MANAGERS)
			return bad(r, "manager", "must be at most %d addresses", CCL_MAX_MANAGERS);
		if (n == 0)
			return bad(r, "manager", "address %u is empty", i);
		if (n < 0)
			return bad(r, "manager", "address %u must have at most %d bytes", i,
				CCL_ADDRESS_LEN - 1);
		i++;
	}
	return 0;
}

/* Memory that is lent by turns. */
static int read_duty(struct reader *r, struct ccl_group *g)
{
	if (g->duty == 1000)
		return 0;
	if (g->mode_given && g->mode_id == CCL_MODE_1)
		return bad(r, "duty", "below 1000 is for modes II and III, not %s", g->mode);
	if (!g->fallback)
		return bad(r, "duty", "below 1000 needs \"fallback\", as a lease does");
	if (g->reproducible)
		return bad(r, "duty", "a reproducible group cannot share memory by turns");
	if (g->resume || g->mcast.given || g->algorithm != CCL_BY_AUTO)
		return bad(r, "duty", "below 1000 is not for resume, multicast, algorithms");
	return 0;
}

/* Only a group without switches needs one. */
static int read_manager(struct reader *r, const json_t *doc, struct ccl_group *g)
{
	const char *env = getenv("INCLINE_MANAGER");

	copy(&ccl_group_file, doc, "manager", g->manager, sizeof(g->manager));
	if (!g->manager[0] && env && strlen(env) >= sizeof(g->manager))
		return bad(r, "manager", "INCLINE_MANAGER must have at most %zu bytes",
			sizeof(g->manager) - 1);
	if (!g->manager[0] && env)
		snprintf(g->manager, sizeof(g->manager), "%s", env);
	g->mode_given = json_object_get(doc, "mode") != NULL;
	g->m_given = json_object_get(doc, "M") != NULL;
	if (json_object_get(doc, "switches"))
		g->manager[0] = '\0';
	if (g->sr && g->mode_id == CCL_MODE_2 && (g->mode_given || !g->manager[0]) &&
		(g->collectives & ~(1u << CCL_ALLREDUCE | 1u << CCL_BARRIER)))
		return bad(
			r, "flags.sr", "is for \"collectives\" allreduce and barrier in mode II");
	if (!g->manager[0])
		return g->duty == 1000 ? 0 : bad(r, "duty", "is for a manager, and there is none");
	if (check_managers(r, g->manager))
		return -EINVAL;
	if (g->mode_id == CCL_MODE_NETREDUCE || g->mode_id == CCL_MODE_RING)
		return bad(r, "mode", "%s has no tree for a manager to find: name the switches",
			g->mode);
	if (g->lease[0])
		return bad(r, "lease", "a manager names leases by itself: \"duty\"");
	return read_duty(r, g);
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
		ccl_group_order(g, g->root);
	return rc;
}

static int read_all(struct reader *r, const json_t *doc, struct ccl_group *g)
{
	int rc;

	(void)((rc = check(r, &ccl_group_file, doc)) || (rc = read_scalars(r, doc, g)) ||
		(rc = read_choices(r, doc, g)) || (rc = read_flags(r, doc, g)) ||
		(rc = read_verb(r, doc, g)) || (rc = read_lease(r, doc, g)) ||
		(rc = read_resume(r, doc, g)) || (rc = read_ranks(r, doc, g)) ||
		(rc = read_algorithm(r, doc, g)) || (rc = read_manager(r, doc, g)) ||
		(rc = read_switches(r, doc, g)) || (rc = check_tree(r, g)) ||
		(rc = ccl_group_check_rings(g, r->err)));
	return rc;
}

int ccl_group_parse(const json_t *doc, struct ccl_group **group, char err[CCL_ERR_LEN])
{
	struct reader r = {.err = err};
	struct ccl_group *g = calloc(1, sizeof(*g));
	json_t *own = ctl_strip_comments(doc);
	int rc;

	snprintf(err, CCL_ERR_LEN, "out of memory");
	if (!g || !own) {
		json_decref(own);
		free(g);
		return -ENOMEM;
	}
	g->io = &ctl_sockets;
	rc = read_all(&r, own, g);
	json_decref(own);
	if (rc) {
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
	json_t *doc = json_pack("{s:O}", "switches", switches),
	       *of_plan = doc ? ctl_strip_comments(doc) : NULL;
	int rc = of_plan ? 0 : -ENOMEM;

	snprintf(err, CCL_ERR_LEN, "out of memory");
	snprintf(own->mode, sizeof(own->mode), "%s", mode);
	own->mode_id = mode_of(mode);
	own->m = m;
	/* The least window is two packets. */
	own->w = m * w < 2 ? 2 : w;
	if (!rc && !own->mode_id)
		rc = bad(&r, "mode", "\"%s\" is none", mode);
	if (!rc)
		rc = check(&r, part("switches"), json_object_get(of_plan, "switches"));
	if (!rc)
		rc = read_switches(&r, of_plan, own);
	if (!rc)
		rc = check_tree(&r, own);
	if (rc)
		ccl_group_drop_tree(own);
	json_decref(of_plan);
	json_decref(doc);
	return rc;
}
