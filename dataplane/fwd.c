/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/fwd.h"

#include <errno.h>
#include <rte_errno.h>
#include <rte_jhash.h>
#include <stdio.h>
#include <stdlib.h>

/* The direct tables of rte_fib take 32 MB and more each, which a laptop's switch with a dozen hosts
 * should not pay: up to this many prefixes the library's plain tree is used. */
enum { FEW_PREFIXES = 256, TBL8_SPARE = 256, DIRECT_BITS = 24, MAX_ADJ = 32767, FIB_NAME_LEN = 32 };

enum route_action { ROUTE_VIA, ROUTE_DIRECT, ROUTE_BLACKHOLE, ROUTE_ENCAP, ROUTE_ECMP };

struct build {
	struct fwd *fwd;
	struct rte_hash *neigh; /* address -> index in adj */
	struct table_error *err;
	fwd_port_fn port;
	void *arg;
};

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

/* How many second-level tables of 256 addresses a prefix can take: none for up to the 24 bits that
 * are looked up at once, then (IPv6) one for each further 8. */
static unsigned tbl8s(unsigned prefix)
{
	return prefix <= DIRECT_BITS ? 0 : (prefix - DIRECT_BITS + 7) / 8;
}

struct sizes {
	unsigned n4, n6, tbl8_4, tbl8_6;
};

static void add_sizes(struct sizes *s, const struct table_rows *rows, bool hosts)
{
	for (unsigned i = 0; i < rows->n; i++) {
		const struct table_value *key = &rows->entry[i].key[0];

		if (wire_ip_is4(&key->ip)) {
			s->n4++;
			s->tbl8_4 += tbl8s(hosts ? 32 : key->prefix);
		} else {
			s->n6++;
			s->tbl8_6 += tbl8s(hosts ? 128 : key->prefix);
		}
	}
}

/* An entry is the index of an adjacency or of a second-level table: what has too many of these for
 * two bytes has entries of four. */
static int create_fibs(struct build *b, const struct sizes *s)
{
	static unsigned serial;
	char name[FIB_NAME_LEN];
	struct rte_fib_conf c4 = {.type = RTE_FIB_DUMMY, .max_routes = (int)s->n4 + 2};
	struct rte_fib6_conf c6 = {.type = RTE_FIB6_DUMMY, .max_routes = (int)s->n6 + 2};

	if (s->n4 > FEW_PREFIXES) {
		c4.type = RTE_FIB_DIR24_8;
		c4.dir24_8.num_tbl8 = s->tbl8_4 + TBL8_SPARE;
		c4.dir24_8.nh_sz =
			c4.dir24_8.num_tbl8 > MAX_ADJ ? RTE_FIB_DIR24_8_4B : RTE_FIB_DIR24_8_2B;
	}
	if (s->n6 > FEW_PREFIXES) {
		c6.type = RTE_FIB6_TRIE;
		c6.trie.num_tbl8 = s->tbl8_6 + TBL8_SPARE;
		c6.trie.nh_sz = c6.trie.num_tbl8 > MAX_ADJ ? RTE_FIB6_TRIE_4B : RTE_FIB6_TRIE_2B;
	}
	snprintf(name, sizeof(name), "fwd4.%u", serial);
	b->fwd->fib4 = rte_fib_create(name, SOCKET_ID_ANY, &c4);
	snprintf(name, sizeof(name), "fwd6.%u", serial++);
	b->fwd->fib6 = rte_fib6_create(name, SOCKET_ID_ANY, &c6);
	if (b->fwd->fib4 == NULL || b->fwd->fib6 == NULL)
		return fail(b, -ENOMEM, "routes", NULL,
			"no memory for the lookup table: raise \"memory_mb\"");
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
		rc = rte_fib6_add(b->fwd->fib6, ip->b, (uint8_t)prefix, adj);
	return rc ? fail(b, -ENOMEM, table, ip, "no room in the lookup table: raise \"memory_mb\"")
		  : 0;
}

static unsigned host_prefix(const struct wire_ip *ip)
{
	return wire_ip_is4(ip) ? 32 : 128;
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
		if (rc == 0)
			rc = add(b, "local_addr", ip, host_prefix(ip), ADJ_LOCAL);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int add_neigh(struct build *b, const struct table_rows *rows)
{
	struct fwd *f = b->fwd;

	for (unsigned i = 0; i < rows->n; i++) {
		const struct table_entry *e = &rows->entry[i];
		const struct port *port = b->port(b->arg, e->param[0].u);
		struct adj *adj = &f->adj[f->n_adj];
		int rc;

		if (port == NULL)
			return fail(b, -EINVAL, "neigh", &e->key[0].ip, "there is no such port");
		if (e->param[1].mac[0] & 1)
			return fail(b, -EINVAL, "neigh", &e->key[0].ip,
				"data.mac must not be a multicast address");
		adj->kind = ADJ_REWRITE;
		adj->port = port->id;
		adj->mtu = port->config.mtu;
		f->neigh[f->n_adj] = e->key[0].ip;
		adj->vlan = (uint16_t)e->param[2].u;
		f->vlans[port->id].bit[adj->vlan / 64] |= 1ull << adj->vlan % 64;
		memcpy(adj->smac, port->mac, sizeof(adj->smac));
		memcpy(adj->dmac, e->param[1].mac, sizeof(adj->dmac));
		rc = rte_hash_add_key_data(b->neigh, &e->key[0].ip, (void *)(uintptr_t)f->n_adj);
		if (rc < 0)
			return fail(b, -ENOMEM, "neigh", NULL, "no memory");
		rc = add(b, "neigh", &e->key[0].ip, host_prefix(&e->key[0].ip), f->n_adj++);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* A next hop without neighbour entry is not an error: entries may come in any order. */
static unsigned nexthop_adj(const struct build *b, const struct wire_ip *ip)
{
	void *data;

	return rte_hash_lookup_data(b->neigh, ip, &data) < 0 ? ADJ_NO_NEIGH
							     : (unsigned)(uintptr_t)data;
}

/* An adjacency of a kind whose details are at an index in an array of their own. */
static unsigned indexed_adj(struct build *b, enum adj_kind kind, unsigned index)
{
	b->fwd->adj[b->fwd->n_adj] = (struct adj){.kind = (uint8_t)kind, .at = (uint16_t)index};
	return b->fwd->n_adj++;
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
	return port_link_up(b->port(b->arg, b->fwd->adj[adj].port));
}

/* The next hops of a route that are in neigh, by address: the order in which they are given, and
 * when, says nothing. How many. */
static unsigned known_nexthops(
	const struct build *b, const struct table_entry *e, struct wire_ip ip[FWD_MAX_NEXTHOPS])
{
	unsigned n = 0;

	for (unsigned i = 0; i < FWD_MAX_NEXTHOPS; i++)
		if (!wire_ip_is_zero(&e->param[i].ip) &&
			nexthop_adj(b, &e->param[i].ip) != ADJ_NO_NEIGH)
			ip[n++] = e->param[i].ip;
	qsort(ip, n, sizeof(ip[0]), by_ip);
	return n;
}

static unsigned ecmp_adj(struct build *b, const struct table_entry *e)
{
	struct fwd_ecmp *ecmp = &b->fwd->ecmp[b->fwd->n_ecmp];
	struct wire_ip ip[FWD_MAX_NEXTHOPS];
	const unsigned n = known_nexthops(b, e, ip);
	unsigned up = 0;

	for (unsigned i = 0; i < n; i++)
		up += link_is_up(b, nexthop_adj(b, &ip[i]));
	for (unsigned i = 0; i < n; i++) {
		const unsigned adj = nexthop_adj(b, &ip[i]);

		if (up > 0 && !link_is_up(b, adj))
			continue;
		ecmp->key[ecmp->n] = rte_jhash(&ip[i], sizeof(ip[i]), 0);
		ecmp->adj[ecmp->n++] = (uint16_t)adj;
	}
	return ecmp->n == 0 ? ADJ_NO_NEIGH : indexed_adj(b, ADJ_ECMP, b->fwd->n_ecmp++);
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

		if (fwd_sid_from_row(e, &f->sid[i], &why) < 0)
			return fail(b, -EINVAL, "local_sid", ip, why);
		if (e->key[0].prefix == 128 && fwd_is_local(f, ip))
			return fail(b, -EINVAL, "local_sid", ip, "is an address of the switch");
		f->sid[i].adj = e->action == SRV6_UA ? (uint16_t)nexthop_adj(b, &e->param[0].ip)
						     : ADJ_NO_NEIGH;
		f->n_sid++;
		rc = add(b, "local_sid", ip, e->key[0].prefix, indexed_adj(b, ADJ_SID, i));
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int add_routes(struct build *b, const struct table_rows *rows)
{
	const char *table = rows->desc->name;

	for (unsigned i = 0; i < rows->n; i++) {
		const struct table_entry *e = &rows->entry[i];
		const struct table_value *dst = &e->key[0];
		unsigned adj = ADJ_BLACKHOLE;
		int rc;

		if (dst->prefix == host_prefix(&dst->ip) && fwd_is_local(b->fwd, &dst->ip))
			return fail(b, -EINVAL, table, &dst->ip, "is an address of the switch");
		if (e->action == ROUTE_VIA)
			adj = nexthop_adj(b, &e->param[0].ip);
		else if (e->action == ROUTE_DIRECT)
			adj = ADJ_NO_NEIGH; /* neighbours are found by their host routes */
		if (e->action == ROUTE_DIRECT && b->port(b->arg, e->param[0].u) == NULL)
			return fail(b, -EINVAL, table, &dst->ip, "there is no such port");
		/* A host route "direct" to a known neighbour says nothing new. */
		if (e->action == ROUTE_DIRECT && dst->prefix == host_prefix(&dst->ip))
			adj = nexthop_adj(b, &dst->ip);
		if (e->action == ROUTE_ENCAP) {
			rc = encap_adj(b, e, table);
			if (rc < 0)
				return rc;
			adj = (unsigned)rc;
		}
		if (e->action == ROUTE_ECMP)
			adj = ecmp_adj(b, e);
		rc = add(b, table, &dst->ip, dst->prefix, adj);
		if (rc < 0)
			return rc;
	}
	return 0;
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
	const unsigned neighs = t[FWD_NEIGH].n, n = ADJ_REWRITE + neighs + sids + encaps + ecmps;
	struct fwd *f = b->fwd;

	if (n > MAX_ADJ)
		return fail(b, -ENOSPC, "neigh", NULL,
			"too many neighbours, SIDs, routes into tunnels and over several next "
			"hops");
	f->adj = calloc(n, sizeof(*f->adj));
	f->neigh = calloc(ADJ_REWRITE + neighs, sizeof(*f->neigh));
	f->vlans = calloc(RTE_MAX_ETHPORTS, sizeof(*f->vlans));
	f->sid = calloc(sids + 1, sizeof(*f->sid));
	f->encap = calloc(encaps + 1, sizeof(*f->encap));
	f->ecmp = calloc(ecmps + 1, sizeof(*f->ecmp));
	b->neigh = ip_hash("neigh", neighs);
	if (f->adj == NULL || f->neigh == NULL || f->vlans == NULL || f->sid == NULL ||
		f->encap == NULL || f->ecmp == NULL || b->neigh == NULL)
		return fail(b, -ENOMEM, "neigh", NULL, "no memory");
	for (unsigned i = 0; i < ADJ_REWRITE; i++)
		f->adj[i].kind = (uint8_t)i;
	f->n_adj = ADJ_REWRITE;
	return 0;
}

static int build(struct build *b, const struct table_rows *t)
{
	struct sizes sizes = {0};
	int rc;

	for (unsigned i = 0; i <= FWD_LOCAL_SID; i++)
		add_sizes(&sizes, &t[i], i == FWD_LOCAL_ADDR || i == FWD_NEIGH);

	rc = alloc_adjs(b, t);
	if (rc == 0)
		rc = create_fibs(b, &sizes);
	if (rc == 0)
		rc = add_neigh(b, &t[FWD_NEIGH]);
	/* An address of the switch is the switch's, whoever claims it as well. */
	if (rc == 0)
		rc = add_local(b, &t[FWD_LOCAL_ADDR]);
	if (rc == 0)
		rc = add_routes(b, &t[FWD_ROUTE4]);
	if (rc == 0)
		rc = add_routes(b, &t[FWD_ROUTE6]);
	if (rc == 0)
		rc = add_sids(b, &t[FWD_LOCAL_SID]);
	return rc;
}

int fwd_create(const struct table_rows *tables, fwd_port_fn port, void *arg, struct fwd **fwd,
	struct table_error *err)
{
	struct build b = {.err = err, .port = port, .arg = arg};
	int rc;

	b.fwd = calloc(1, sizeof(*b.fwd));
	if (b.fwd == NULL)
		return fail(&b, -ENOMEM, "tables", NULL, "no memory");
	rc = build(&b, tables);
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
	rte_fib6_free(fwd->fib6);
	free(fwd->adj);
	free(fwd->neigh);
	free(fwd->vlans);
	free(fwd->sid);
	free(fwd->encap);
	free(fwd->ecmp);
	free(fwd);
}

const struct adj *fwd_lookup(const struct fwd *fwd, const struct wire_ip *ip)
{
	uint8_t ip6[1][RTE_FIB6_IPV6_ADDR_SIZE];
	uint64_t nh = ADJ_NO_ROUTE;
	uint32_t ip4;

	if (wire_ip_is4(ip)) {
		ip4 = wire_ip_to4(ip);
		rte_fib_lookup_bulk(fwd->fib4, &ip4, &nh, 1);
	} else {
		memcpy(ip6[0], ip->b, sizeof(ip6[0]));
		rte_fib6_lookup_bulk(fwd->fib6, ip6, &nh, 1);
	}
	if (fwd->adj[nh].kind == ADJ_ECMP)
		nh = fwd->ecmp[fwd->adj[nh].at].adj[0];
	return &fwd->adj[nh];
}
