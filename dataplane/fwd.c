/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/fwd.h"

#include <errno.h>
#include <rte_errno.h>
#include <rte_jhash.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/match/wide.h"

/* The direct table of rte_fib takes 32 MB and more, which a laptop's switch with a dozen hosts
 * should not pay: up to this many IPv4 prefixes the library's plain tree is used. */
enum { FEW_PREFIXES = 256, TBL8_SPARE = 256, DIRECT_BITS = 24, MAX_ADJ = 32767, FIB_NAME_LEN = 32 };

enum route_action { ROUTE_VIA, ROUTE_DIRECT, ROUTE_BLACKHOLE, ROUTE_ENCAP, ROUTE_ECMP };

struct build {
	struct fwd *fwd;
	struct rte_hash *neigh; /* address -> index in adj */
	struct table_error *err;
	const struct fwd_sources *from;
};

static const struct port *port_of(const struct build *b, uint64_t id)
{
	return b->from->port(b->from->arg, id);
}

static int fail(
	struct build *b, int error, const char *table, const struct wire_ip *ip, const char *what)
{
	char text[WIRE_IP_STRLEN] = "";

	if (ip != NULL)
		wire_ip_format(ip, text, sizeof(text));
	snprintf(b->err->msg, sizeof(b->err->msg), "%s%s%s: %s", table, text[0] ? " " : "", text,
		what);
	return error;
}

static struct rte_hash *ip_hash(const char *what, unsigned n)
{
	static unsigned serial; /* old and new live side by side */
	char name[RTE_HASH_NAMESIZE];
	const struct rte_hash_parameters p = {
		.name = name,
		.entries = n < 8 ? 8 : n,
		.key_len = sizeof(struct wire_ip),
		.hash_func = rte_jhash,
		.socket_id = SOCKET_ID_ANY,
	};

	snprintf(name, sizeof(name), "%s%u", what, serial++);
	return rte_hash_create(&p);
}

struct sizes {
	unsigned n4, tbl8_4; /* second-level tables of 256 addresses */
	struct prefix6_sizes v6;
};

static void add_prefix(struct sizes *s, const struct wire_ip *ip, unsigned bits)
{
	if (wire_ip_is4(ip)) {
		s->n4++;
		s->tbl8_4 += bits > DIRECT_BITS;
	} else {
		prefix6_count(&s->v6, ip, bits);
	}
}

static unsigned host_prefix(const struct wire_ip *ip)
{
	return wire_ip_is4(ip) ? 32 : 128;
}

static void add_host(struct sizes *s, const struct wire_ip *ip)
{
	add_prefix(s, ip, host_prefix(ip));
}

static void add_sizes(struct sizes *s, const struct table_rows *rows, bool hosts)
{
	for (unsigned i = 0; i < rows->n; i++) {
		const struct table_value *key = &rows->entry[i].key[0];

		add_prefix(s, &key->ip, hosts ? host_prefix(&key->ip) : key->prefix);
	}
}

/* What cannot be so stays as it is: the plain tree, and all where EAL's options have set the limit.
 */
static void widen(struct fwd *f)
{
	const uint16_t width = wide_begin();

	if (width == 0)
		return;
	rte_fib_select_lookup(f->fib4, RTE_FIB_LOOKUP_DIR24_8_VECTOR_AVX512);
	wide_end(width);
}

/* An entry is the index of an adjacency or of a second-level table: what has too many of these for
 * two bytes has entries of four. */
static int create_fibs(struct build *b, const struct sizes *s)
{
	static unsigned serial;
	char name[FIB_NAME_LEN];
	struct rte_fib_conf c4 = {.type = RTE_FIB_DUMMY, .max_routes = (int)s->n4 + 2};

	if (s->n4 > FEW_PREFIXES) {
		c4.type = RTE_FIB_DIR24_8;
		c4.dir24_8.num_tbl8 = s->tbl8_4 + TBL8_SPARE;
		c4.dir24_8.nh_sz =
			c4.dir24_8.num_tbl8 > MAX_ADJ ? RTE_FIB_DIR24_8_4B : RTE_FIB_DIR24_8_2B;
	}
	snprintf(name, sizeof(name), "fwd4.%u", serial++);
	b->fwd->fib4 = rte_fib_create(name, SOCKET_ID_ANY, &c4);
	if (b->fwd->fib4 == NULL || prefix6_create(&s->v6, ADJ_NO_ROUTE, &b->fwd->fib6) < 0)
		return fail(b, -ENOMEM, "routes", NULL,
			"no memory for the lookup table: raise \"memory_mb\"");
	widen(b->fwd);
	return 0;
}

/* The later one of two equal prefixes holds. prefix: of 32 or 128. */
static int add(
	struct build *b, const char *table, const struct wire_ip *ip, unsigned prefix, unsigned adj)
{
	int rc;

	if (wire_ip_is4(ip))
		rc = rte_fib_add(b->fwd->fib4, wire_ip_to4(ip), (uint8_t)prefix, adj);
	else
		rc = prefix6_add(b->fwd->fib6, ip, prefix, (uint16_t)adj);
	return rc ? fail(b, -ENOMEM, table, ip, "no room in the lookup table: raise \"memory_mb\"")
		  : 0;
}

static int add_local(struct build *b, const struct table_rows *rows)
{
	struct fwd *f = b->fwd;

	if (rows->n > FWD_FEW_LOCAL) {
		f->local = ip_hash("local", rows->n);
		if (f->local == NULL)
			return fail(b, -ENOMEM, "local_addr", NULL, "no memory");
	}
	for (unsigned i = 0; i < rows->n; i++) {
		const struct wire_ip *ip = &rows->entry[i].key[0].ip;
		int rc = 0;

		if (wire_ip_is_zero(ip))
			return fail(b, -EINVAL, "local_addr", ip, "is not an address");
		if (f->local != NULL)
			rc = rte_hash_add_key(f->local, ip) < 0 ? -ENOMEM : 0;
		else
			f->few[f->n_local] = *ip;
		f->n_local++;
		f->local_ends[ip->b[15] / 64] |= 1ull << ip->b[15] % 64;
		if (wire_ip_is_zero(&f->own[wire_ip_is4(ip)]))
			f->own[wire_ip_is4(ip)] = *ip;
		if (rc == 0)
			rc = add(b, "local_addr", ip, host_prefix(ip), ADJ_LOCAL);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* The next adjacency: a neighbour's. */
static int neigh_adj(struct build *b, const struct port *port, const struct wire_ip *ip,
	const uint8_t mac[6], uint16_t vlan)
{
	struct fwd *f = b->fwd;
	struct adj *adj = &f->adj[f->n_adj];

	*adj = (struct adj){
		.kind = ADJ_REWRITE, .port = port->id, .mtu = port->config.mtu, .vlan = vlan};
	memcpy(adj->smac, port->mac, sizeof(adj->smac));
	memcpy(adj->dmac, mac, sizeof(adj->dmac));
	f->neigh[f->n_adj] = *ip;
	f->vlans[port->id].bit[vlan / 64] |= 1ull << vlan % 64;
	if (rte_hash_add_key_data(b->neigh, ip, (void *)(uintptr_t)f->n_adj) < 0)
		return fail(b, -ENOMEM, "neigh", NULL, "no memory");
	return add(b, "neigh", ip, host_prefix(ip), f->n_adj++);
}

static int add_neigh(struct build *b, const struct table_rows *rows)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < rows->n; i++) {
		const struct table_entry *e = &rows->entry[i];
		const struct port *port = port_of(b, e->param[0].u);

		if (port == NULL)
			return fail(b, -EINVAL, "neigh", &e->key[0].ip, "there is no such port");
		if (e->param[1].mac[0] & 1)
			return fail(b, -EINVAL, "neigh", &e->key[0].ip,
				"data.mac must not be a multicast address");
		rc = neigh_adj(b, port, &e->key[0].ip, e->param[1].mac, (uint16_t)e->param[2].u);
	}
	return rc;
}

static unsigned hashed_adj(const struct build *b, const struct wire_ip *ip)
{
	void *data;

	return rte_hash_lookup_data(b->neigh, ip, &data) < 0 ? ADJ_NO_NEIGH
							     : (unsigned)(uintptr_t)data;
}

/* A next hop without neighbour entry is not an error: entries may come in any order. */
static unsigned known_adj(const struct build *b, const struct wire_ip *ip)
{
	const unsigned adj = hashed_adj(b, ip);

	return b->fwd->adj[adj].kind == ADJ_REWRITE ? adj : ADJ_NO_NEIGH;
}

/* An adjacency of a kind whose details are at an index in an array of their own. */
static unsigned indexed_adj(struct build *b, enum adj_kind kind, unsigned index)
{
	b->fwd->adj[b->fwd->n_adj] = (struct adj){.kind = (uint8_t)kind, .at = (uint16_t)index};
	return b->fwd->n_adj++;
}

/* Somebody who is asked for: each packet's destination at a port, or a next hop there. */
static unsigned glean_adj(struct build *b, const struct port *port, uint16_t vlan, unsigned glean)
{
	const unsigned at = indexed_adj(b, ADJ_GLEAN, glean);
	struct adj *adj = &b->fwd->adj[at];

	adj->port = port->id;
	adj->mtu = port->config.mtu;
	adj->vlan = vlan;
	memcpy(adj->smac, port->mac, sizeof(adj->smac));
	return at;
}

/* Known, or at a port where it can be asked for. */
static unsigned nexthop_adj(struct build *b, const struct wire_ip *ip)
{
	struct fwd *f = b->fwd;
	const struct adj *direct;
	unsigned adj = hashed_adj(b, ip);

	if (adj != ADJ_NO_NEIGH || f->n_glean == FWD_MAX_GLEANS)
		return adj;
	direct = fwd_lookup(f, ip);
	if (direct->kind != ADJ_GLEAN || direct->at != 0)
		return ADJ_NO_NEIGH;
	adj = glean_adj(b, port_of(b, direct->port), direct->vlan, f->n_glean);
	if (rte_hash_add_key_data(b->neigh, ip, (void *)(uintptr_t)adj) < 0)
		return ADJ_NO_NEIGH; /* and the adjacency is nobody's */
	f->glean[f->n_glean++] = (struct fwd_glean){*ip, (uint16_t)adj};
	return adj;
}

static int encap_adj(struct build *b, const struct table_entry *e, const char *table)
{
	struct fwd *f = b->fwd;
	const char *why;

	if (fwd_encap_from_row(e, &f->encap[f->n_encap], &why) < 0)
		return fail(b, -EINVAL, table, &e->key[0].ip, why);
	return (int)indexed_adj(b, ADJ_ENCAP, f->n_encap++);
}

static int by_ip(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct wire_ip));
}

static bool link_is_up(const struct build *b, unsigned adj)
{
	return port_link_up(port_of(b, b->fwd->adj[adj].port));
}

/* The next hops of a route that are known, by address: the order in which they are given, and when,
 * says nothing. How many; *unknown: one of the others that can be asked for, or ADJ_NO_NEIGH. */
static unsigned known_nexthops(struct build *b, const struct table_entry *e,
	struct wire_ip ip[FWD_MAX_NEXTHOPS], unsigned *unknown)
{
	unsigned n = 0;

	*unknown = ADJ_NO_NEIGH;
	for (unsigned i = 0; i < FWD_MAX_NEXTHOPS; i++) {
		const struct wire_ip *hop = &e->param[i].ip;
		const unsigned adj = wire_ip_is_zero(hop) ? ADJ_NO_NEIGH : nexthop_adj(b, hop);

		if (b->fwd->adj[adj].kind == ADJ_REWRITE)
			ip[n++] = *hop;
		else if (adj != ADJ_NO_NEIGH)
			*unknown = adj;
	}
	qsort(ip, n, sizeof(ip[0]), by_ip);
	return n;
}

static unsigned ecmp_adj(struct build *b, const struct table_entry *e)
{
	struct fwd_ecmp *ecmp = &b->fwd->ecmp[b->fwd->n_ecmp];
	struct wire_ip ip[FWD_MAX_NEXTHOPS];
	unsigned up = 0, unknown;
	const unsigned n = known_nexthops(b, e, ip, &unknown);

	for (unsigned i = 0; i < n; i++)
		up += link_is_up(b, known_adj(b, &ip[i]));
	for (unsigned i = 0; i < n; i++) {
		const unsigned adj = known_adj(b, &ip[i]);

		if (up > 0 && !link_is_up(b, adj))
			continue;
		ecmp->key[ecmp->n] = rte_jhash(&ip[i], sizeof(ip[i]), 0);
		ecmp->adj[ecmp->n++] = (uint16_t)adj;
	}
	return ecmp->n == 0 ? unknown : indexed_adj(b, ADJ_ECMP, b->fwd->n_ecmp++);
}

/* After the routes: a SID is the switch's, whatever else is said of its prefix. */
static int add_sids(struct build *b, const struct table_rows *rows)
{
	struct fwd *f = b->fwd;

	for (unsigned i = 0; i < rows->n; i++) {
		const struct table_entry *e = &rows->entry[i];
		const struct wire_ip *ip = &e->key[0].ip;
		const char *why;
		int rc;

		if (fwd_sid_from_row(e, &f->sids.row[i], &why) < 0)
			return fail(b, -EINVAL, "local_sid", ip, why);
		if (e->key[0].prefix == 128 && fwd_is_local(f, ip))
			return fail(b, -EINVAL, "local_sid", ip, "is an address of the switch");
		f->sids.row[i].adj = e->action == SRV6_UA ? (uint16_t)known_adj(b, &e->param[0].ip)
							  : ADJ_NO_NEIGH;
		f->sids.n++;
		rc = add(b, "local_sid", ip, e->key[0].prefix, indexed_adj(b, ADJ_SID, i));
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Destinations are neighbours at this port: those that are known have host routes, others can be
 * asked for. */
static int direct_adj(struct build *b, const struct table_entry *e, const char *table)
{
	const struct table_value *dst = &e->key[0];
	const struct port *port = port_of(b, e->param[0].u);
	const uint16_t vlan = (uint16_t)e->param[1].u;
	unsigned known = ADJ_NO_NEIGH;

	if (port == NULL)
		return fail(b, -EINVAL, table, &dst->ip, "there is no such port");
	/* A host route "direct" to a known neighbour says nothing new. */
	if (dst->prefix == host_prefix(&dst->ip))
		known = known_adj(b, &dst->ip);
	if (known != ADJ_NO_NEIGH || !b->from->learns(b->from->arg, port->id))
		return (int)known;
	b->fwd->vlans[port->id].bit[vlan / 64] |= 1ull << vlan % 64;
	return (int)glean_adj(b, port, vlan, 0);
}

static int route_adj(struct build *b, const struct table_entry *e, const char *table)
{
	switch (e->action) {
	case ROUTE_VIA:
		return (int)nexthop_adj(b, &e->param[0].ip);
	case ROUTE_DIRECT:
		return direct_adj(b, e, table);
	case ROUTE_ENCAP:
		return encap_adj(b, e, table);
	case ROUTE_ECMP:
		return (int)ecmp_adj(b, e);
	default:
		return ADJ_BLACKHOLE;
	}
}

/* Those that are "direct", or all others: next hops are asked for where the former say. */
static int add_routes(struct build *b, const struct table_rows *rows, bool direct)
{
	const char *table = rows->desc->name;

	for (unsigned i = 0; i < rows->n; i++) {
		const struct table_entry *e = &rows->entry[i];
		const struct table_value *dst = &e->key[0];
		int adj, rc;

		if ((e->action == ROUTE_DIRECT) != direct)
			continue;
		if (dst->prefix == host_prefix(&dst->ip) && fwd_is_local(b->fwd, &dst->ip))
			return fail(b, -EINVAL, table, &dst->ip, "is an address of the switch");
		adj = route_adj(b, e, table);
		if (adj < 0)
			return adj;
		b->fwd->n_nowhere += adj == ADJ_NO_NEIGH;
		rc = add(b, table, &dst->ip, dst->prefix, (unsigned)adj);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Where direct routes lead, and nobody is that is configured. */
static int add_learnt(struct build *b)
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < b->from->n_learnt; i++) {
		struct fwd_learnt *l = &b->from->learnt[i];
		const struct adj *direct = fwd_lookup(b->fwd, &l->ip);

		l->adj = 0;
		if (direct->kind != ADJ_GLEAN || direct->port != l->port || direct->vlan != l->vlan)
			continue;
		l->adj = (uint16_t)b->fwd->n_adj;
		rc = neigh_adj(b, port_of(b, l->port), &l->ip, l->mac, l->vlan);
		b->fwd->adj[l->adj].learnt = true;
	}
	return rc;
}

static unsigned count_routes(const struct table_rows *t, enum route_action action)
{
	unsigned n = 0;

	for (unsigned table = FWD_ROUTE4; table <= FWD_ROUTE6; table++)
		for (unsigned i = 0; i < t[table].n; i++)
			n += t[table].entry[i].action == action;
	return n;
}

static int alloc_adjs(struct build *b, const struct table_rows *t)
{
	const unsigned encaps = count_routes(t, ROUTE_ENCAP), sids = t[FWD_LOCAL_SID].n;
	const unsigned ecmps = count_routes(t, ROUTE_ECMP);
	const unsigned neighs = t[FWD_NEIGH].n + b->from->n_learnt;
	const unsigned n = ADJ_REWRITE + neighs + sids + encaps + ecmps +
			   count_routes(t, ROUTE_DIRECT) + FWD_MAX_GLEANS;
	struct fwd *f = b->fwd;

	if (n > MAX_ADJ)
		return fail(b, -ENOSPC, "neigh", NULL,
			"too many neighbours, SIDs, direct routes, routes into tunnels and over "
			"several next hops");
	f->adj = calloc(n, sizeof(*f->adj));
	f->used = calloc(n, sizeof(*f->used));
	f->neigh = calloc(n, sizeof(*f->neigh));
	f->vlans = calloc(RTE_MAX_ETHPORTS, sizeof(*f->vlans));
	f->encap = calloc(encaps + 1, sizeof(*f->encap));
	f->ecmp = calloc(ecmps + 1, sizeof(*f->ecmp));
	f->glean = calloc(FWD_MAX_GLEANS, sizeof(*f->glean));
	b->neigh = ip_hash("neigh", neighs + FWD_MAX_GLEANS);
	if (!fwd_sids_alloc(&f->sids, sids, b->from->n_workers) || f->adj == NULL ||
		f->used == NULL || f->neigh == NULL || f->vlans == NULL || f->encap == NULL ||
		f->ecmp == NULL || f->glean == NULL || b->neigh == NULL)
		return fail(b, -ENOMEM, "neigh", NULL, "no memory");
	for (unsigned i = 0; i < ADJ_REWRITE; i++)
		f->adj[i].kind = (uint8_t)i;
	f->n_adj = ADJ_REWRITE;
	f->n_glean = 1;
	return 0;
}

static int build_routes(struct build *b, const struct table_rows *t)
{
	int rc = add_routes(b, &t[FWD_ROUTE4], true);

	if (rc == 0)
		rc = add_routes(b, &t[FWD_ROUTE6], true);
	if (rc == 0)
		rc = add_learnt(b);
	if (rc == 0)
		rc = add_routes(b, &t[FWD_ROUTE4], false);
	return rc < 0 ? rc : add_routes(b, &t[FWD_ROUTE6], false);
}

static int build(struct build *b, const struct table_rows *t)
{
	struct sizes sizes = {0};
	int rc;

	for (unsigned i = 0; i <= FWD_LOCAL_SID; i++)
		add_sizes(&sizes, &t[i], i == FWD_LOCAL_ADDR || i == FWD_NEIGH);
	for (unsigned i = 0; i < b->from->n_learnt; i++)
		add_host(&sizes, &b->from->learnt[i].ip);

	rc = alloc_adjs(b, t);
	if (rc == 0)
		rc = create_fibs(b, &sizes);
	if (rc == 0)
		rc = add_neigh(b, &t[FWD_NEIGH]);
	/* An address of the switch is the switch's, whoever claims it as well. */
	if (rc == 0)
		rc = add_local(b, &t[FWD_LOCAL_ADDR]);
	if (rc == 0)
		rc = build_routes(b, t);
	if (rc == 0)
		rc = add_sids(b, &t[FWD_LOCAL_SID]);
	return rc;
}

int fwd_create(const struct fwd_sources *from, struct fwd **fwd, struct table_error *err)
{
	struct build b = {.err = err, .from = from};
	int rc;

	b.fwd = calloc(1, sizeof(*b.fwd));
	if (b.fwd == NULL)
		return fail(&b, -ENOMEM, "tables", NULL, "no memory");
	rc = build(&b, from->tables);
	rte_hash_free(b.neigh);
	if (rc < 0) {
		fwd_destroy(b.fwd);
		return rc;
	}
	*fwd = b.fwd;
	return 0;
}

void fwd_destroy(struct fwd *fwd)
{
	if (fwd == NULL)
		return;
	rte_hash_free(fwd->local);
	rte_fib_free(fwd->fib4);
	prefix6_destroy(fwd->fib6);
	free(fwd->adj);
	free(fwd->neigh);
	free(fwd->vlans);
	fwd_sids_free(&fwd->sids);
	free(fwd->encap);
	free(fwd->ecmp);
	free(fwd->glean);
	free(fwd->used);
	free(fwd);
}

const struct adj *fwd_lookup(const struct fwd *fwd, const struct wire_ip *ip)
{
	uint16_t adj = ADJ_NO_ROUTE;
	uint64_t nh;
	uint32_t ip4;

	if (wire_ip_is4(ip)) {
		ip4 = wire_ip_to4(ip);
		rte_fib_lookup_bulk(fwd->fib4, &ip4, &nh, 1);
		adj = (uint16_t)nh;
	} else {
		prefix6_lookup(fwd->fib6, ip, &adj, 1);
	}
	if (fwd->adj[adj].kind == ADJ_ECMP)
		adj = fwd->ecmp[fwd->adj[adj].at].adj[0];
	return &fwd->adj[adj];
}
