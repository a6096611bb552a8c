/* SPDX-License-Identifier: BSD-3-Clause */
/* The group of a communicator: of the job's group file what is left of its tree for these ranks, or
 * for a manager their addresses. */
#include <errno.h>
#include <jansson.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/mpi/im.h"

enum { BASE_LEN = 18 }; /* of a group's name, which has at most 31 characters */

static uint64_t random_number(void)
{
	uint64_t n = 0;

	while (getrandom(&n, sizeof(n), 0) != sizeof(n))
		;
	return n;
}

/* ---- the tree ---- */

static int index_of(const struct im_member *member, int n, json_int_t number)
{
	for (int i = 0; i < n; i++)
		if (member[i].number == number)
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
static unsigned prune(json_t *switches, json_t *sw, const struct im_member *member, int n)
{
	json_t *children = json_object_get(sw, "children");
	unsigned left = 0;

	for (size_t i = 0; i < json_array_size(children);) {
		json_t *child = json_array_get(children, i), *rank = json_object_get(child, "rank");
		json_t *below =
			find_switch(switches, json_string_value(json_object_get(child, "switch")));
		const int is = rank ? index_of(member, n, json_integer_value(rank)) : -1;

		if (is >= 0)
			json_object_set_new(child, "rank", json_integer(is));
		if (is >= 0 || (below && prune(switches, below, member, n))) {
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

/* ---- where they meet ---- */

static int free_port(void)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6};
	socklen_t len = sizeof(a);
	const int s = socket(AF_INET6, SOCK_STREAM, 0);
	int port = 0;

	if (s >= 0 && !bind(s, (struct sockaddr *)&a, sizeof(a)) &&
		!getsockname(s, (struct sockaddr *)&a, &len))
		port = ntohs(a.sin6_port);
	if (s >= 0)
		close(s);
	return port;
}

/* On one machine by a socket in the file system, else at this rank's. */
static void meet(const struct im_member *member, int n, char at[128])
{
	const char *host = getenv("INCLINE_MPI_HOST"), *tmp = getenv("TMPDIR");
	char own[64] = "localhost";
	bool together = !host;

	for (int i = 1; i < n; i++)
		together = together && !strcmp(member[0].node, member[i].node);
	gethostname(own, sizeof(own) - 1);
	if (together)
		snprintf(at, 128, "unix:%.60s/incline-mpi-%016llx",
			tmp && tmp[0] == '/' ? tmp : "/tmp", (unsigned long long)random_number());
	else
		snprintf(at, 128, "tcp:%.100s:%d", host ? host : own, free_port());
}

/* ---- all of it ---- */

static json_t *load(char why[CCL_ERR_LEN])
{
	const char *path = getenv("INCLINE_GROUP");
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

static int put_ranks(json_t *doc, const struct im_member *member, int n, char *why)
{
	const json_t *given = json_object_get(doc, "ranks");
	json_t *ranks = json_array();

	for (int i = 0; i < n; i++) {
		const char *ip =
			given ? json_string_value(json_object_get(
					json_array_get(given, (size_t)member[i].number), "ip"))
			      : member[i].ip;

		if (!ip || index_of(member, n, member[i].number) != i) {
			snprintf(why, CCL_ERR_LEN,
				ip ? "two processes are rank %d of the group (INCLINE_RANK)"
				   : "the group file has no rank %d",
				member[i].number);
			json_decref(ranks);
			return -EINVAL;
		}
		json_array_append_new(ranks, json_pack("{s:s}", "ip", ip));
	}
	return json_object_set_new(doc, "ranks", ranks) ? -ENOMEM : 0;
}

/* One that no other communicator has: by its first rank, and how many that one has led. */
static void put_name(json_t *doc)
{
	static unsigned led;
	const char *base = json_string_value(json_object_get(doc, "name"));
	char name[64];

	if (base)
		snprintf(name, sizeof(name), "%.*s.%d.%u", BASE_LEN, base, im.world_rank, led++);
	else
		snprintf(name, sizeof(name), "mpi-%08x", (unsigned)random_number());
	json_object_set_new(doc, "name", json_string(name));
}

char *im_group(const struct im_member *member, int n, char why[CCL_ERR_LEN])
{
	json_t *doc = load(why), *switches = json_object_get(doc, "switches");
	const char *manager = getenv("INCLINE_MANAGER");
	char at[128], *text = NULL;

	if (!doc)
		return NULL;
	if (!put_ranks(doc, member, n, why)) {
		if (switches) {
			prune(switches, root_of(switches), member, n);
			lower_root(switches);
			drop_empty(switches);
		} else if (!json_object_get(doc, "manager") && manager) {
			json_object_set_new(doc, "manager", json_string(manager));
		}
		put_name(doc);
		meet(member, n, at);
		json_object_set_new(doc, "bootstrap", json_string(at));
		/* What the switches do not take is the MPI library's, which has better than a ring
		 * for it; but what has begun may have to go on by one. */
		if (!json_object_get(doc, "lease") && !json_is_true(json_object_get(doc, "resume")))
			json_object_set_new(doc, "fallback", json_false());
		text = json_dumps(doc, JSON_COMPACT);
		if (!text)
			snprintf(why, CCL_ERR_LEN, "out of memory");
	}
	json_decref(doc);
	return text;
}

void im_read_group(struct im_comm *c, const char *text)
{
	json_t *doc = json_loads(text, 0, NULL);
	const char *name = json_string_value(json_object_get(doc, "name"));

	snprintf(c->name, sizeof(c->name), "%s", name ? name : "");
	c->resumes = json_is_true(json_object_get(doc, "resume"));
	json_decref(doc);
}
