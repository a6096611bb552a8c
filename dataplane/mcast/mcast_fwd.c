/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/mcast/mcast_fwd.h"

#include <errno.h>
#include <rte_jhash.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/wire/multicast.h"

enum { KEY_GROUP, KEY_PORT, KEY_SRC = 1, PARAM_VLAN = 0, PARAM_PORT = 0, MIN_HASH = 8 };

static_assert(sizeof(struct mcast_sender_key) == 32, "no padding inside a key");

struct member {
	struct wire_ip group;
	uint64_t port;
	uint32_t row;
};

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
	return x->port < y->port ? -1 : x->port > y->port;
}

static int add_out(struct mcast_fwd *f, const struct member *m, const struct table_rows *rows,
	const struct port *port, struct table_error *err)
{
	struct mcast_out *out = &f->out[f->n_outs];

	if (port == NULL)
		return fail(err, -EINVAL, rows->desc->name, &m->group, "there is no such port");
	*out = (struct mcast_out){.port = port->id,
		.vlan = (uint16_t)rows->entry[m->row].param[PARAM_VLAN].u,
		.mtu = port->config.mtu};
	memcpy(out->smac, port->mac, sizeof(out->smac));
	f->out_group[f->n_outs] = m->group;
	f->row_out[m->row] = f->n_outs++;
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

static int add_members(struct mcast_fwd *f, struct member *m, const struct table_rows *rows,
	fwd_port_fn port, void *arg, struct table_error *err)
{
	struct mcast_group *g = NULL;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < rows->n; i++) {
		const struct table_value *key = rows->entry[i].key;

		m[i] = (struct member){key[KEY_GROUP].ip, key[KEY_PORT].u, i};
		rc = check_group(rows->desc->name, &m[i].group, err);
	}
	if (rc < 0)
		return rc;
	qsort(m, rows->n, sizeof(*m), compare);
	for (uint32_t i = 0; rc == 0 && i < rows->n; i++) {
		if ((g == NULL || !wire_ip_eq(&g->ip, &m[i].group)) &&
			add_group(f, &m[i].group, &g) < 0)
			return fail(err, -ENOMEM, rows->desc->name, NULL, "no memory");
		rc = add_out(f, &m[i], rows, port(arg, m[i].port), err);
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

static int build(struct mcast_fwd *f, struct member *members, const struct table_rows *groups,
	const struct table_rows *senders, fwd_port_fn port, void *arg, struct table_error *err)
{
	int rc = add_members(f, members, groups, port, arg, err);

	for (uint32_t i = 0; rc == 0 && i < senders->n; i++) {
		const struct table_entry *e = &senders->entry[i];

		rc = add_sender(f, e, senders->desc->name, port(arg, e->param[PARAM_PORT].u), err);
	}
	return rc;
}

int mcast_fwd_create(const struct table_rows *groups, const struct table_rows *senders,
	fwd_port_fn port, void *arg, unsigned n_workers, struct mcast_fwd **mcast,
	struct table_error *err)
{
	struct mcast_fwd *f;
	struct member *members;
	int rc;

	*mcast = NULL;
	if (groups->n == 0 && senders->n == 0)
		return 0;
	f = calloc(1, sizeof(*f));
	members = calloc(groups->n + 1, sizeof(*members));
	if (f == NULL || members == NULL || !alloc(f, groups->n, senders->n, n_workers))
		rc = fail(err, -ENOMEM, groups->desc->name, NULL, "no memory");
	else
		rc = build(f, members, groups, senders, port, arg, err);
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
	if (table == FWD_MCAST_GROUP && row < f->n_outs)
		*hits = counted(f, f->row_out[row]);
	else if (table == FWD_MCAST_SENDER && row < f->n_senders)
		*hits = counted(
			f, f->n_outs + (unsigned)rte_hash_lookup(f->by_sender, &f->sender[row]));
	else
		return false;
	return true;
}
