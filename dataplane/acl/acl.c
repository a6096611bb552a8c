/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/acl/acl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/bytes.h"
#include "lib/wire/l4.h"

/* The most that the matcher of a family takes of "memory_mb"; twice while a change is published. */
enum { MATCHER_BYTES = 16 << 20 };

enum { SRC, DST, PROTOCOL, SPORT, DPORT, HAS_PORTS, DSCP, PORT, VLAN, N_KEYS };

const struct table_desc acl_table = {
	.name = "acl",
	.node = "acl",
	.miss = "permit",
	.help = "what may come in: IP packets of any kind but neighbour discovery, before all "
		"other "
		"tables; the row with the highest priority has them, of equals the oldest",
	.n_keys = N_KEYS,
	.keys = {[SRC] = {.name = "src",
			 .help = "prefix",
			 .type = TABLE_IP,
			 .match = TABLE_TERNARY},
		[DST] = {.name = "dst", .help = "prefix", .type = TABLE_IP, .match = TABLE_TERNARY},
		[PROTOCOL] = {.name = "protocol",
			.help = "of IP, behind IPv6's extension headers: 6 is TCP, 17 UDP; 44: a "
				"later fragment that does not say",
			.match = TABLE_TERNARY,
			.max = UINT8_MAX},
		[SPORT] = {.name = "sport",
			.help = "TCP or UDP source port; rows with ports match no packets without",
			.match = TABLE_RANGE,
			.max = UINT16_MAX},
		[DPORT] = {.name = "dport",
			.help = "TCP or UDP destination port",
			.match = TABLE_RANGE,
			.max = UINT16_MAX},
		[HAS_PORTS] = {.name = "has_ports",
			.help = "0: other protocols, later fragments, ports cut off or behind "
				"headers "
				"that are not known",
			.match = TABLE_TERNARY,
			.max = 1},
		[DSCP] = {.name = "dscp", .help = "as it came", .match = TABLE_TERNARY, .max = 63},
		[PORT] = {.name = "port",
			.help = "that it came by",
			.type = TABLE_PORT,
			.match = TABLE_TERNARY},
		[VLAN] = {.name = "vlan",
			.help = "0: untagged",
			.match = TABLE_TERNARY,
			.max = WIRE_VLAN_ID}},
	.n_actions = 3,
	.actions = {[ACL_PERMIT] = {.name = "permit", .help = "as if there were no table"},
		[ACL_DENY] = {.name = "deny", .help = "drop (acl_denied); nobody is told"},
		[ACL_DSCP] = {.name = "dscp",
			.help = "permit, with another DSCP from here on, and so another class",
			.n_params = 1,
			.params = {{.name = "dscp", .help = "the new one", .max = 63}}}},
	.size = 1024,
};

#define AT(type, field)                                                            \
	{                                                                          \
		offsetof(struct type, field), sizeof(((struct type *)NULL)->field) \
	}
#define LAYOUT(type)                                            \
	{                                                       \
		.len = sizeof(struct type),                     \
		.at = { [SRC] = AT(type, src),                  \
			[DST] = AT(type, dst),                  \
			[PROTOCOL] = AT(type, rest.protocol),   \
			[SPORT] = AT(type, rest.sport),         \
			[DPORT] = AT(type, rest.dport),         \
			[HAS_PORTS] = AT(type, rest.has_ports), \
			[DSCP] = AT(type, rest.dscp),           \
			[PORT] = AT(type, rest.port),           \
			[VLAN] = AT(type, rest.vlan) }          \
	}

static const struct ternary_layout layout4 = LAYOUT(acl_key4), layout6 = LAYOUT(acl_key6);

/* ---- making ---- */

static int fail(struct table_error *err, int error, const char *what)
{
	snprintf(err->msg, sizeof(err->msg), "acl: %s", what);
	return error;
}

static bool names_ports(const struct table_entry *e)
{
	return e->key[SPORT].u > 0 || e->key[SPORT].high < UINT16_MAX || e->key[DPORT].u > 0 ||
	       e->key[DPORT].high < UINT16_MAX;
}

static int check_row(const struct table_entry *e, struct table_error *err)
{
	const struct table_value *src = &e->key[SRC], *dst = &e->key[DST], *has;

	has = &e->key[HAS_PORTS];
	if (!src->any && !dst->any && wire_ip_is4(&src->ip) != wire_ip_is4(&dst->ip))
		return fail(err, -EINVAL, "key.src and key.dst must be of one family");
	if (names_ports(e) && has->mask != 0 && has->u == 0)
		return fail(err, -EINVAL, "key.sport and key.dport need packets that have ports");
	return 0;
}

/* Ports that a packet has not are zeros in its key, which are nobody's port 0. */
static void want_ports(struct table_entry *e)
{
	if (names_ports(e))
		e->key[HAS_PORTS].u = e->key[HAS_PORTS].mask = 1;
}

static int no_matcher(struct table_error *err, int rc)
{
	if (rc == -E2BIG)
		return fail(err, -ENOSPC,
			"too many rows cross one another: write fewer ranges and masks");
	if (rc == -ENOMEM)
		return fail(err, rc,
			"the rows take too much memory: raise \"memory_mb\", or write fewer "
			"ranges and masks");
	return fail(err, rc, "no matcher can be made of the rows");
}

static int make_matchers(struct acl *acl, const struct table_rows *rows, struct table_error *err)
{
	struct table_entry *entry = calloc(rows->n, sizeof(*entry));
	struct table_rows own = *rows;
	int rc;

	if (entry == NULL)
		return fail(err, -ENOMEM, "no memory");
	memcpy(entry, rows->entry, rows->n * sizeof(*entry));
	for (uint32_t i = 0; i < rows->n; i++)
		want_ports(&entry[i]);
	own.entry = entry;
	rc = ternary_create(&own, &layout4, MATCHER_BYTES, &acl->by4);
	if (rc == 0)
		rc = ternary_create(&own, &layout6, MATCHER_BYTES, &acl->by6);
	free(entry);
	return rc < 0 ? no_matcher(err, rc) : 0;
}

static int make(
	struct acl *acl, const struct table_rows *rows, unsigned n_workers, struct table_error *err)
{
	acl->rule = calloc(rows->n, sizeof(*acl->rule));
	acl->row = calloc(rows->n, sizeof(*acl->row));
	if (!row_hits_alloc(&acl->hits, rows->n, n_workers) || acl->rule == NULL ||
		acl->row == NULL)
		return fail(err, -ENOMEM, "no memory");
	for (uint32_t i = 0; i < rows->n; i++) {
		const struct table_entry *e = &rows->entry[i];
		const int rc = check_row(e, err);

		if (rc < 0)
			return rc;
		acl->row[i] = *e;
		acl->rule[i] = (struct acl_rule){(uint8_t)e->action, (uint8_t)e->param[0].u};
	}
	return make_matchers(acl, rows, err);
}

int acl_create(const struct table_rows *rows, unsigned n_workers, struct acl **out,
	struct table_error *err)
{
	struct acl *acl;
	int rc;

	*out = NULL;
	if (rows->n == 0)
		return 0;
	acl = calloc(1, sizeof(*acl));
	rc = acl == NULL ? fail(err, -ENOMEM, "no memory") : make(acl, rows, n_workers, err);
	if (rc < 0)
		acl_destroy(acl);
	else
		*out = acl;
	return rc;
}

void acl_destroy(struct acl *acl)
{
	if (acl == NULL)
		return;
	ternary_destroy(acl->by4);
	ternary_destroy(acl->by6);
	row_hits_free(&acl->hits);
	free(acl->rule);
	free(acl->row);
	free(acl);
}

/* ---- counters ---- */

struct pair {
	const struct acl *to, *from;
};

static bool same(const void *arg, unsigned i, unsigned k)
{
	const struct pair *p = arg;
	const struct table_entry *a = &p->to->row[i], *b = &p->from->row[k];

	return a->priority == b->priority &&
	       memcmp(a->key, b->key, N_KEYS * sizeof(a->key[0])) == 0;
}

void acl_inherit(struct acl *to, const struct acl *from)
{
	const struct pair pair = {to, from};

	if (to != NULL && from != NULL)
		row_hits_inherit(&to->hits, &from->hits, same, &pair);
}

bool acl_hits(const struct acl *acl, unsigned row, uint64_t *hits)
{
	if (acl == NULL || row >= acl->hits.n)
		return false;
	*hits = row_hits_get(&acl->hits, row);
	return true;
}

/* ---- keys ---- */

static void put_rest(
	struct acl_key_rest *to, const uint8_t *frame, const struct wire_pkt *pkt, uint16_t port)
{
	const struct wire_l4 l4 = wire_l4(frame, pkt);

	*to = (struct acl_key_rest){
		.protocol = l4.proto, .dscp = pkt->tos >> 2, .has_ports = l4.has_ports};
	put_be16(to->sport, l4.sport);
	put_be16(to->dport, l4.dport);
	put_be16(to->port, port);
	put_be16(to->vlan, pkt->vlan & WIRE_VLAN_ID);
}

void acl_key4(struct acl_key4 *key, const uint8_t *frame, const struct wire_pkt *pkt, uint16_t port)
{
	put_rest(&key->rest, frame, pkt, port);
	memcpy(key->src, pkt->src.b + 12, sizeof(key->src));
	memcpy(key->dst, pkt->dst.b + 12, sizeof(key->dst));
}

void acl_key6(struct acl_key6 *key, const uint8_t *frame, const struct wire_pkt *pkt, uint16_t port)
{
	put_rest(&key->rest, frame, pkt, port);
	memcpy(key->src, pkt->src.b, sizeof(key->src));
	memcpy(key->dst, pkt->dst.b, sizeof(key->dst));
}
