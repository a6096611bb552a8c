/* SPDX-License-Identifier: BSD-3-Clause */
/* Whom switches hear at their ports by LLDP, beside whom the file has there, or whom they heard
 * before (discover.c). A link between switches whose port hears another
 * node of the fabric than it should is not used, and what runs over it ends, as if the port was
 * down: a tree over it would go another way than was promised. A host's link is used whatever is
 * heard: a rank's own connection tells where it is, and any program on that host can send a frame.
 * Who is no node of the fabric says nothing against the
 * file: a NIC has a word of its own to say, a host another name, and what lies between may speak as
 * well. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/manager/priv.h"

/* Cables of a switch, more than any has ports; where the file has a link there is always room for
 * one. */
enum { MAX_CABLES = 128 };

static struct mg_cable *find(const struct mg_switch *s, const char *port)
{
	struct mg_cable *c;

	LIST_FOREACH(c, &s->cables, link)
	if (!strcmp(c->port, port))
		return c;
	return NULL;
}

bool mg_cable_is_wrong(const struct mg_switch *s, const char *port)
{
	const struct mg_cable *c = find(s, port);

	return c && c->unused;
}

/* ---- who is who ---- */

/* A switch is known by its chassis, which it tells us as it tells its neighbours; one that several
 * switches have is nobody's. */
static void settle(struct manager *m, const char *chassis)
{
	unsigned n = 0, last = 0;

	if (!chassis[0])
		return;
	for (unsigned i = 0; i < m->n_sw; i++)
		if (!strcmp(m->sw[i].chassis, chassis)) {
			last = i;
			n++;
		}
	if (n == 1)
		json_object_set_new(m->chassis, chassis, json_integer(last));
	else
		json_object_del(m->chassis, chassis);
}

static void note_chassis(struct manager *m, struct mg_switch *s, const char *chassis)
{
	char before[sizeof(s->chassis)];

	if (!strcmp(s->chassis, chassis))
		return;
	memcpy(before, s->chassis, sizeof(before));
	snprintf(s->chassis, sizeof(s->chassis), "%s", chassis);
	settle(m, before);
	settle(m, s->chassis);
}

/* ---- beside the file ---- */

struct other_end {
	int node; /* negative: there is no link */
	const char *port;
	bool learnt; /* the file has none there */
};

static struct other_end in_file(struct manager *m, const struct mg_switch *s, const char *port)
{
	struct mgr_link l;
	const int link = mg_link_at(m, s->node, port, &l);

	if (link < 0)
		return (struct other_end){.node = -ENOENT};
	const unsigned far =
		l.node[0] == s->node && !strcmp(mgr_graph_port(m->g, l.port[0])->name, port);
	return (struct other_end){(int)l.node[far], mgr_graph_port(m->g, l.port[far])->name,
		mg_is_learnt(m, (unsigned)link)};
}

/* What a host calls its ports is its own affair. */
static bool agrees(struct manager *m, const struct other_end *file, int node, const char *port)
{
	return node == file->node && (mgr_graph_node(m->g, (unsigned)node)->kind == MGR_HOST ||
					     !strcmp(port, file->port));
}

/* Of those that a port hears the one that should not be there; NULL: nobody, or who should is
 * there as well. */
static const json_t *stranger(
	struct manager *m, const struct other_end *file, const json_t *list, int *node)
{
	const json_t *heard, *wrong = NULL;
	size_t i;

	json_array_foreach(list, i, heard)
	{
		const char *port = rpc_string(heard, "port");
		const int is = port ? mg_cable_who(m, heard) : -ENOENT;

		if (is < 0)
			continue;
		if (agrees(m, file, is, port))
			return NULL;
		if (!wrong) {
			wrong = heard;
			*node = is;
		}
	}
	return wrong;
}

static void describe(struct manager *m, const struct mg_switch *s, const char *port,
	const struct other_end *file, const json_t *heard, int node, bool unused,
	char line[MGR_LINE_LEN])
{
	const int n = snprintf(line, MGR_LINE_LEN, "%s:%s hears %s:%s by LLDP, where %s ", s->name,
		port, mgr_graph_node(m->g, (unsigned)node)->name, rpc_string(heard, "port"),
		file->learnt ? "it heard" : "the file has");
	const size_t at = n < MGR_LINE_LEN ? (size_t)n : MGR_LINE_LEN - 1;

	if (file->node < 0)
		snprintf(line + at, MGR_LINE_LEN - at, "no link%s",
			m->discover ? ": not learnt" : "");
	else
		snprintf(line + at, MGR_LINE_LEN - at, "%s:%s: %s",
			mgr_graph_node(m->g, (unsigned)file->node)->name, file->port,
			unused ? "not used" : "used all the same");
}

static void note_cable(struct manager *m, struct mg_switch *s, const char *port, bool in_file,
	bool unused, const char line[MGR_LINE_LEN])
{
	struct mg_cable *c = find(s, port);

	if (!c && (in_file || s->n_cables < MAX_CABLES) && (c = calloc(1, sizeof(*c)))) {
		c->sw = s;
		c->since = m->now;
		snprintf(c->port, sizeof(c->port), "%s", port);
		LIST_INSERT_HEAD(&s->cables, c, link);
		s->n_cables++;
	}
	if (!c)
		return;
	if (strcmp(c->line, line) != 0)
		mg_say(m, JOURNAL_WARNING, "%s", line);
	c->told = true;
	c->unused = unused;
	memcpy(c->line, line, sizeof(c->line));
}

static void take_port(struct manager *m, struct mg_switch *s, const json_t *row)
{
	const char *port = rpc_string(row, "name");
	const json_t *list = json_object_get(row, "lldp"), *heard;
	char line[MGR_LINE_LEN];
	const struct mg_switch *far;
	struct other_end file;
	int node = -ENOENT;
	bool unused;

	if (!port || !list || strlen(port) >= MGR_NAME_LEN)
		return;
	file = in_file(m, s, port);
	heard = stranger(m, &file, list, &node);
	if (mg_discover_refused(s, port) && (!heard || file.node < 0)) {
		snprintf(line, sizeof(line), "%s:%s %s", s->name, port,
			mg_discover_refused(s, port));
		note_cable(m, s, port, file.node >= 0, false, line);
		return;
	}
	if (!heard)
		return;
	far = file.node < 0 ? NULL : mg_switch_of(m, (unsigned)file.node);
	/* Who should be there, and has not said hello yet, may have that chassis as well: settle.
	 */
	if (far && !far->met)
		return;
	unused = m->lldp_decides && far;
	describe(m, s, port, &file, heard, node, unused, line);
	note_cable(m, s, port, file.node >= 0, unused, line);
}

static void forget(struct mg_cable *c)
{
	LIST_REMOVE(c, link);
	c->sw->n_cables--;
	free(c);
}

void mg_cabling_hello(struct manager *m, struct mg_switch *s, const json_t *hello)
{
	const json_t *row;
	struct mg_cable *c, *next;
	size_t i;

	s->met = true;
	note_chassis(m, s, rpc_string(hello, "chassis") ?: "");
	mg_discover_hello(m, s, hello);
	LIST_FOREACH(c, &s->cables, link)
	c->told = false;
	json_array_foreach(json_object_get(hello, "ports"), i, row) take_port(m, s, row);
	for (c = LIST_FIRST(&s->cables); c; c = next) {
		next = LIST_NEXT(c, link);
		if (c->told)
			continue;
		mg_say(m, JOURNAL_NOTICE, "%s:%s: nobody is heard any more who should not be there",
			s->name, c->port);
		forget(c);
	}
}

const struct mg_cable *mg_cable_next(const struct manager *m, const struct mg_cable *c)
{
	unsigned i = c ? (unsigned)(c->sw - m->sw) + 1 : 0;

	c = c ? LIST_NEXT(c, link) : NULL;
	while (!c && i < m->n_sw)
		c = LIST_FIRST(&m->sw[i++].cables);
	return c;
}

const struct mg_cable *mg_cable_unused(const struct manager *m, unsigned *n)
{
	const struct mg_cable *c = NULL, *first = NULL;

	*n = 0;
	while ((c = mg_cable_next(m, c))) {
		if (!c->unused)
			continue;
		if (!first || c->since <= first->since)
			first = c;
		++*n;
	}
	return first;
}

void mg_cabling_close(struct manager *m)
{
	for (unsigned i = 0; i < m->n_sw; i++) {
		while (LIST_FIRST(&m->sw[i].cables))
			forget(LIST_FIRST(&m->sw[i].cables));
		mg_discover_deaf(&m->sw[i]);
		json_decref(m->sw[i].named);
		json_decref(m->sw[i].numbered);
	}
	json_decref(m->chassis);
}
