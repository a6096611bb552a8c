/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/subgroup.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "lib/wire/ip.h"

enum { BASE_LEN = 18 }; /* of a group's name, which has at most 31 characters */

/* ---- the tree ---- */

static int index_of(const struct ccl_part *part, int n, json_int_t number)
{
	for (int i = 0; i < n; i++)
		if (part[i].number == number)
			return i;
	return -1;
}

static json_t *find_switch(json_t *switches, const char *name)
{
	size_t i;
	json_t *sw;

	json_array_foreach(switches, i,
		sw) if (name &&
			!strcmp(json_string_value(json_object_get(sw, "name")), name)) return sw;
	return NULL;
}

/* Below a switch: ranks get their new numbers, what has none of them goes. How many are left. Depth
 * is bounded, for the file has been checked. */
static unsigned prune(json_t *switches, json_t *sw, const struct ccl_part *part, int n)
{
	json_t *children = json_object_get(sw, "children");
	unsigned left = 0;

	for (size_t i = 0; i < json_array_size(children);) {
		json_t *child = json_array_get(children, i), *rank = json_object_get(child, "rank");
		json_t *below =
			find_switch(switches, json_string_value(json_object_get(child, "switch")));
		const int is = rank ? index_of(part, n, json_integer_value(rank)) : -1;

		if (is >= 0)
			json_object_set_new(child, "rank", json_integer(is));
		if (is >= 0 || (below && prune(switches, below, part, n))) {
			left++;
			i++;
		} else {
			json_array_remove(children, i);
		}
	}
	return left;
}

static json_t *root_of(json_t *switches)
{
	size_t i;
	json_t *sw;

	json_array_foreach(
		switches, i, sw) if (!json_is_string(json_object_get(sw, "parent"))) return sw;
	return NULL;
}

/* A root with one switch below it is of no use. */
static void lower_root(json_t *switches)
{
	for (;;) {
		json_t *root = root_of(switches), *children = json_object_get(root, "children");
		json_t *below = json_array_size(children) == 1
					? find_switch(switches,
						  json_string_value(json_object_get(
							  json_array_get(children, 0), "switch")))
					: NULL;

		if (!below)
			return;
		json_object_set_new(root, "children", json_array());
		json_object_set_new(root, "parent", json_string("gone"));
		json_object_set_new(below, "parent", json_null());
		json_object_del(below, "parent_port");
	}
}

static void drop_empty(json_t *switches)
{
	for (size_t i = 0; i < json_array_size(switches);)
		if (json_array_size(json_object_get(json_array_get(switches, i), "children")))
			i++;
		else
			json_array_remove(switches, i);
}

/* ---- all of it ---- */

static json_t *load(const char *path, char why[CCL_ERR_LEN])
{
	struct ccl_group *group;
	json_error_t e;
	json_t *doc;

	if (!path)
		return json_object();
	/* CommLib knows what is wrong with it. */
	if (ccl_group_load(path, &group, why))
		return NULL;
	ccl_group_free(group);
	doc = json_load_file(path, 0, &e);
	if (!doc)
		snprintf(why, CCL_ERR_LEN, "%s: %s", path, e.text);
	return doc;
}

static int put_ranks(json_t *doc, const struct ccl_part *part, int n, char *why)
{
	const json_t *given = json_object_get(doc, "ranks");
	json_t *ranks = json_array();

	for (int i = 0; i < n; i++) {
		const char *ip =
			given ? json_string_value(json_object_get(
					json_array_get(given, (size_t)part[i].number), "ip"))
			      : part[i].ip;

		if (!ip || (given && index_of(part, n, part[i].number) != i)) {
			snprintf(why, CCL_ERR_LEN,
				ip ? "two processes are rank %d of the group (INCLINE_RANK)"
				   : "the group file has no rank %d",
				part[i].number);
			json_decref(ranks);
			return -EINVAL;
		}
		json_array_append_new(ranks, json_pack("{s:s}", "ip", ip));
	}
	return json_object_set_new(doc, "ranks", ranks) ? -ENOMEM : 0;
}

/* One that no other group has. */
static void put_name(json_t *doc, const struct ccl_subgroup *want)
{
	const char *base = json_string_value(json_object_get(doc, "name"));
	char name[64];

	if (base)
		snprintf(name, sizeof(name), "%.*s.%s", BASE_LEN, base, want->suffix);
	else
		snprintf(name, sizeof(name), "%s", want->alone);
	json_object_set_new(doc, "name", json_string(name));
}

static void put_tree(
	json_t *doc, const struct ccl_subgroup *want, const struct ccl_part *part, int n)
{
	json_t *switches = json_object_get(doc, "switches");

	if (switches) {
		prune(switches, root_of(switches), part, n);
		lower_root(switches);
		drop_empty(switches);
	} else if (!json_object_get(doc, "manager") && want->manager) {
		json_object_set_new(doc, "manager", json_string(want->manager));
	}
}

/* Nodes are those of the file's ranks, in its order. */
static void put_rings(json_t *doc, const struct ccl_part *part, int n, bool all)
{
	for (int i = 0; all && i < n; i++)
		all = part[i].number == i;
	if (!all)
		json_object_del(doc, "rings");
}

/* Without it algorithm auto goes on; -EINVAL: multicast is all there is. */
static int put_multicast(json_t *doc, const struct ccl_subgroup *want, char *why)
{
	const char *algorithm = json_string_value(json_object_get(doc, "algorithm"));

	if (want->multicast)
		return 0;
	json_object_del(doc, "multicast");
	if (!algorithm || strcmp(algorithm, "multicast"))
		return 0;
	snprintf(why, CCL_ERR_LEN,
		"algorithm: multicast, but multicast.group is another communicator's");
	return -EINVAL;
}

char *ccl_subgroup(
	const struct ccl_subgroup *want, const struct ccl_part *part, int n, char why[CCL_ERR_LEN])
{
	json_t *doc = load(want->path, why);
	char *text = NULL;
	bool all;

	if (!doc)
		return NULL;
	all = json_array_size(json_object_get(doc, "ranks")) == (size_t)n;
	if (!put_ranks(doc, part, n, why) && !put_multicast(doc, want, why)) {
		put_tree(doc, want, part, n);
		put_rings(doc, part, n, all);
		put_name(doc, want);
		json_object_set_new(doc, "bootstrap", json_string(want->bootstrap));
		if (want->half && json_object_get(doc, "flags"))
			json_object_set_new(json_object_get(doc, "flags"), "half", json_true());
		if (!want->resumes)
			json_object_del(doc, "resume");
		if (!json_object_get(doc, "lease") && !json_is_true(json_object_get(doc, "resume")))
			json_object_set_new(doc, "fallback", json_false());
		text = json_dumps(doc, JSON_COMPACT);
		if (!text)
			snprintf(why, CCL_ERR_LEN, "out of memory");
	}
	json_decref(doc);
	return text;
}

/* ---- which rank ---- */

static bool same_address(const char *a, const char *b)
{
	struct wire_ip x, y;

	return a && !wire_ip_parse(a, &x) && !wire_ip_parse(b, &y) && wire_ip_eq(&x, &y);
}

int ccl_subgroup_find(
	const char *path, const char (*ip)[CCL_IP_LEN], int n, int prefer, char why[CCL_ERR_LEN])
{
	json_t *doc = load(path, why), *ranks = json_object_get(doc, "ranks");
	int number = -ENOENT, found = 0;

	if (!doc)
		return -EINVAL;
	for (size_t r = 0; r < json_array_size(ranks); r++) {
		const char *its =
			json_string_value(json_object_get(json_array_get(ranks, r), "ip"));
		bool is = false;

		for (int i = 0; i < n; i++)
			is = is || same_address(its, ip[i]);
		if (is && (++found == 1 || (int)r == prefer))
			number = (int)r;
	}
	json_decref(doc);
	if (found == 0)
		snprintf(why, CCL_ERR_LEN, "%s: no rank has an address of the device", path);
	if (found < 2 || number == prefer)
		return number;
	snprintf(why, CCL_ERR_LEN, "%s: %d ranks have addresses of the device: set INCLINE_RANK",
		path, found);
	return -EINVAL;
}
