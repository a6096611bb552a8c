/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/mcast/mcast_fwd.h"

#include <errno.h>
#include <rte_jhash.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/wire/multicast.h"

enum { KEY_GROUP, KEY_PORT, KEY_SRC = 1, PARAM_VLAN = 0, PARAM_PORT = 0, MIN_HASH = 8 };

static_assert(sizeof(struct mcast_sender_key) == 32, "no padding inside a key");

/* Rows come before those that are learnt. */
struct member {
	struct wire_ip group;
	uint64_t port;
	uint32_t row;
	uint16_t vlan;
};

enum { LEARNT = UINT32_MAX };

static int fail(struct table_error *err, int error, const char *table, const struct wire_ip *ip,
	const char *what)
{
	char text[WIRE_IP_STRLEN] = "";

	if (ip != NULL)
		wire_ip_format(ip, text, sizeof(text));
	snprintf(err->msg, sizeof(err->msg), "%s%s%s: %s", table, text[0] ? " " : "", text, what);
	return error;
}

static int check_group(const char *table, const struct wire_ip *ip, struct table_error *err)
{
	if (!wire_is_multicast(ip))
		return fail(err, -EINVAL, table, ip, "is not a multicast address");
	if (wire_multicast_stays(ip))
		return fail(err, -EINVAL, table, ip, "stays on its link (link-local scope)");
	return 0;
}

static struct rte_hash *hash(const char *what, unsigned key_len, unsigned n)
{
	static unsigned serial; /* old and new live side by side */
	char name[RTE_HASH_NAMESIZE];
	const struct rte_hash_parameters p = {
		.name = name,
		.entries = n < MIN_HASH ? MIN_HASH : n,
		.key_len = key_len,
		.hash_func = rte_jhash,
		.socket_id = SOCKET_ID_ANY,
	};

	snprintf(name, sizeof(name), "%s%u", what, serial++);
	return rte_hash_create(&p);
}

static int compare(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	const int by_group = memcmp(&x->group, &y->group, sizeof(x->group));

	if (by_group != 0)
		return by_group;
	if (x->port != y->port)
		return x->port < y->port ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static int add_out(struct mcast_fwd *f, const struct member *m, const char *table,
	const struct port *port, struct table_error *err)
{
	struct mcast_out *out = &f->out[f->n_outs];

	if (port == NULL)
		return fail(err, -EINVAL, table, &m->group, "there is no such port");
	*out = (struct mcast_out){.port = port->id, .vlan = m->vlan, .mtu = port->config.mtu};
	memcpy(out->smac, port->mac, sizeof(out->smac));
	f->out_group[f->n_outs] = m->group;
	if (m->row != LEARNT)
		f->row_out[m->row] = f->n_outs;
	f->n_outs++;
	return 0;
}

/* The index that a hash gives to a key is its own, and below its size. */
static int add_group(struct mcast_fwd *f, const struct wire_ip *ip, struct mcast_group **group)
{
	const int i = rte_hash_add_key(f->by_ip, ip);

	if (i < 0)
		return -ENOMEM;
	f->n_groups++;
	*group = &f->group[i];
	**group = (struct mcast_group){.ip = *ip, .out = f->n_outs};
	return 0;
}

static int collect(struct mcast_fwd *f, const struct mcast_sources *from, struct member *m,
	struct table_error *err)
{
	const struct table_rows *rows = from->groups;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < rows->n; i++) {
		const struct table_entry *e = &rows->entry[i];

		m[i] = (struct member){e->key[KEY_GROUP].ip, e->key[KEY_PORT].u, i,
			(uint16_t)e->param[PARAM_VLAN].u};
		rc = check_group(rows->desc->name, &m[i].group, err);
	}
	f->n_rows = rows->n;
	for (unsigned i = 0; from->learnt != NULL && i < from->learnt->n; i++) {
		const struct membership_entry *e = &from->learnt->entry[i];

		m[rows->n + i] =
			(struct member){e->group, from->ports[e->port].id, LEARNT, e->vlan};
	}
	return rc;
}

static int add_members(struct mcast_fwd *f, const struct member *m, unsigned n, const char *table,
	fwd_port_fn port, void *arg, struct table_error *err)
{
	struct mcast_group *g = NULL;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < n; i++) {
		const bool same = g != NULL && wire_ip_eq(&g->ip, &m[i].group);

		if (same && m[i - 1].port == m[i].port)
			continue; /* learnt, and in the table */
		if (!same && add_group(f, &m[i].group, &g) < 0)
			return fail(err, -ENOMEM, table, NULL, "no memory");
		rc = add_out(f, &m[i], table, port(arg, m[i].port), err);
		g->n_out++;
	}
	return rc;
}

static int add_sender(struct mcast_fwd *f, const struct table_entry *e, const char *table,
	const struct port *port, struct table_error *err)
{
	const struct mcast_sender_key key = {e->key[KEY_GROUP].ip, e->key[KEY_SRC].ip};
	const struct mcast_group *g;
	int rc = check_group(table, &key.group, err), i;

	if (rc < 0)
		return rc;
	if (wire_ip_is4(&key.src) != wire_ip_is4(&key.group) || wire_is_multicast(&key.src) ||
		wire_ip_is_zero(&key.src))
		return fail(err, -EINVAL, table, &key.group,
			"key.src must be a host's address of the same family");
	if (port == NULL)
		return fail(err, -EINVAL, table, &key.group, "there is no such port");
	i = rte_hash_add_key(f->by_sender, &key);
	if (i < 0)
		return fail(err, -ENOMEM, table, NULL, "no memory");
	f->sender_port[i] = port->id;
	f->sender[f->n_senders++] = key;
	g = mcast_find(f, &key.group);
	if (g != NULL)
		f->group[g - f->group].named = true;
	return 0;
}

/* What a hash of n keys may give as index, and one more. */
static size_t places(unsigned n)
{
	return (n < MIN_HASH ? MIN_HASH : n) + 1;
}

static bool alloc(struct mcast_fwd *f, unsigned n_rows, unsigned n_senders, unsigned n_workers)
{
	const size_t lines = (n_rows + places(n_senders) + 7) / 8;

	f->n_workers = n_workers;
	f->n_counts = (unsigned)lines * 8;
	f->by_ip = hash("mcast", sizeof(struct wire_ip), n_rows);
	f->group = calloc(places(n_rows), sizeof(*f->group));
	f->out = calloc(n_rows + 1, sizeof(*f->out));
	f->out_group = calloc(n_rows + 1, sizeof(*f->out_group));
	f->row_out = calloc(n_rows + 1, sizeof(*f->row_out));
	f->sender = calloc(n_senders + 1, sizeof(*f->sender));
	f->sender_port = calloc(places(n_senders), sizeof(*f->sender_port));
	f->inherited = calloc(f->n_counts, sizeof(*f->inherited));
	f->count = aligned_alloc(RTE_CACHE_LINE_SIZE, n_workers * lines * 8 * sizeof(*f->count));
	if (f->count != NULL)
		memset(f->count, 0, n_workers * lines * 8 * sizeof(*f->count));
	if (n_senders > 0)
		f->by_sender = hash("senders", sizeof(struct mcast_sender_key), n_senders);
	return f->by_ip && f->group && f->out && f->out_group && f->row_out && f->sender &&
	       f->sender_port && f->inherited && f->count && (n_senders == 0 || f->by_sender);
}

static int build(struct mcast_fwd *f, struct member *members, const struct mcast_sources *from,
	unsigned n, fwd_port_fn port, void *arg, struct table_error *err)
{
	const struct table_rows *senders = from->senders;
	int rc = collect(f, from, members, err);

	if (rc < 0)
		return rc;
	qsort(members, n, sizeof(*members), compare);
	rc = add_members(f, members, n, from->groups->desc->name, port, arg, err);
	for (uint32_t i = 0; rc == 0 && i < senders->n; i++) {
		const struct table_entry *e = &senders->entry[i];

		rc = add_sender(f, e, senders->desc->name, port(arg, e->param[PARAM_PORT].u), err);
	}
	return rc;
}

int mcast_fwd_create(const struct mcast_sources *from, fwd_port_fn port, void *arg,
	unsigned n_workers, struct mcast_fwd **mcast, struct table_error *err)
{
	const unsigned n = from->groups->n + (from->learnt != NULL ? from->learnt->n : 0);
	struct mcast_fwd *f;
	struct member *members;
	int rc;

	*mcast = NULL;
	if (n == 0 && from->senders->n == 0)
		return 0;
	f = calloc(1, sizeof(*f));
	members = calloc(n + 1, sizeof(*members));
	if (f == NULL || members == NULL || !alloc(f, n, from->senders->n, n_workers))
		rc = fail(err, -ENOMEM, from->groups->desc->name, NULL, "no memory");
	else
		rc = build(f, members, from, n, port, arg, err);
	free(members);
	if (rc < 0)
		mcast_fwd_destroy(f);
	else
		*mcast = f;
	return rc;
}

void mcast_fwd_destroy(struct mcast_fwd *f)
{
	if (f == NULL)
		return;
	rte_hash_free(f->by_ip);
	rte_hash_free(f->by_sender);
	free(f->group);
	free(f->out);
	free(f->out_group);
	free(f->row_out);
	free(f->sender);
	free(f->sender_port);
	free(f->inherited);
	free(f->count);
	free(f);
}

/* ---- counters ---- */

static uint64_t counted(const struct mcast_fwd *f, size_t i)
{
	uint64_t n = f->inherited[i];

	for (unsigned w = 0; w < f->n_workers; w++)
		n += f->count[(size_t)w * f->n_counts + i];
	return n;
}

static void inherit_outs(struct mcast_fwd *to, const struct mcast_fwd *from)
{
	unsigned k = 0;

	for (unsigned i = 0; i < to->n_outs; i++) {
		int order = -1;

		for (; k < from->n_outs; k++) {
			order = memcmp(
				&from->out_group[k], &to->out_group[i], sizeof(*to->out_group));
			if (order == 0)
				order = (int)from->out[k].port - (int)to->out[i].port;
			if (order >= 0)
				break;
		}
		if (k < from->n_outs && order == 0)
			to->inherited[i] += counted(from, k);
	}
}

void mcast_fwd_inherit(struct mcast_fwd *to, const struct mcast_fwd *from)
{
	if (to == NULL || from == NULL)
		return;
	inherit_outs(to, from);
	for (unsigned i = 0; i < from->n_senders && to->n_senders > 0; i++) {
		const int old = rte_hash_lookup(from->by_sender, &from->sender[i]);
		const int now = rte_hash_lookup(to->by_sender, &from->sender[i]);

		if (now >= 0)
			to->inherited[to->n_outs + (unsigned)now] +=
				counted(from, from->n_outs + (unsigned)old);
	}
}

bool mcast_fwd_hits(const struct mcast_fwd *f, unsigned table, unsigned row, uint64_t *hits)
{
	if (f == NULL)
		return false;
	if (table == FWD_MCAST_GROUP && row < f->n_rows)
		*hits = counted(f, f->row_out[row]);
	else if (table == FWD_MCAST_SENDER && row < f->n_senders)
		*hits = counted(
			f, f->n_outs + (unsigned)rte_hash_lookup(f->by_sender, &f->sender[row]));
	else
		return false;
	return true;
}
