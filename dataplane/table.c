/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries lie in one array per table, in the order of insertion. An open-addressing index of entry
 * numbers finds them by identity. A batch works on copies of the tables it touches: deleted entries
 * are only marked there, and squeezed out before the copy is published. */
#include "dataplane/table.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <rte_jhash.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct table {
	const struct table_desc *desc;
	bool prioritized;
	uint32_t n, cap;
	struct table_entry *entry;
	uint32_t *hash; /* of each entry's identity */
	uint32_t *slot; /* the index: entry number + 1, or 0 */
	uint32_t slot_mask;
};

/* A table under work. */
struct draft {
	struct table t;
	bool *dead;
	uint32_t n_dead;
	bool used;
};

struct table_registry {
	unsigned n;
	table_publish_fn publish;
	void *arg;
	struct table tables[];
};

/* ---- descriptors ---- */

static_assert(sizeof(struct table_value) == 24, "no padding inside a key");

static bool field_sane(const struct table_field *f, bool key)
{
	if (!f->name || !f->name[0] || f->type > TABLE_PORT)
		return false;
	if (f->max && f->min > f->max)
		return false;
	if (!key || f->match == TABLE_EXACT)
		return true;
	if (f->match == TABLE_TERNARY)
		return f->type == TABLE_UINT || f->type == TABLE_PORT || table_is_ip(f->type);
	return f->match == TABLE_LPM ? table_is_ip(f->type)
				     : f->match == TABLE_RANGE && f->type == TABLE_UINT;
}

static bool fields_sane(const struct table_field *f, unsigned n, bool key)
{
	for (unsigned i = 0; i < n; i++) {
		if (!field_sane(&f[i], key))
			return false;
		for (unsigned j = 0; j < i; j++)
			if (!strcmp(f[i].name, f[j].name))
				return false;
	}
	return true;
}

static bool desc_sane(const struct table_desc *d)
{
	if (!d->name || !d->name[0] || !d->size || d->size > INT32_MAX)
		return false;
	if (!d->n_keys || d->n_keys > TABLE_MAX_KEYS || !d->n_actions ||
		d->n_actions > TABLE_MAX_ACTIONS)
		return false;
	if (!fields_sane(d->keys, d->n_keys, true))
		return false;
	for (unsigned i = 0; i < d->n_actions; i++) {
		const struct table_action *a = &d->actions[i];

		if (!a->name || a->n_params > TABLE_MAX_PARAMS ||
			!fields_sane(a->params, a->n_params, false))
			return false;
		for (unsigned j = 0; j < i; j++)
			if (!strcmp(a->name, d->actions[j].name))
				return false;
	}
	return true;
}

static bool has_priority(const struct table_desc *d)
{
	for (unsigned i = 0; i < d->n_keys; i++)
		if (d->keys[i].match == TABLE_TERNARY || d->keys[i].match == TABLE_RANGE)
			return true;
	return false;
}

int table_registry_create(const struct table_desc *const *descs, unsigned n,
	table_publish_fn publish, void *arg, struct table_registry **reg)
{
	for (unsigned i = 0; i < n; i++) {
		if (!desc_sane(descs[i]))
			return -EINVAL;
		for (unsigned j = 0; j < i; j++)
			if (!strcmp(descs[i]->name, descs[j]->name))
				return -EEXIST;
	}
	struct table_registry *r = calloc(1, sizeof(*r) + n * sizeof(r->tables[0]));
	if (!r)
		return -ENOMEM;
	r->n = n;
	r->publish = publish;
	r->arg = arg;
	for (unsigned i = 0; i < n; i++) {
		r->tables[i].desc = descs[i];
		r->tables[i].prioritized = has_priority(descs[i]);
	}
	*reg = r;
	return 0;
}

static void table_free(struct table *t)
{
	free(t->entry);
	free(t->hash);
	free(t->slot);
}

void table_registry_destroy(struct table_registry *reg)
{
	if (!reg)
		return;
	for (unsigned i = 0; i < reg->n; i++)
		table_free(&reg->tables[i]);
	free(reg);
}

unsigned table_count(const struct table_registry *reg)
{
	return reg->n;
}

const struct table_desc *table_desc(const struct table_registry *reg, unsigned table)
{
	return table < reg->n ? reg->tables[table].desc : NULL;
}

int table_find(const struct table_registry *reg, const char *name)
{
	for (unsigned i = 0; i < reg->n; i++)
		if (!strcmp(reg->tables[i].desc->name, name))
			return (int)i;
	return -ENOENT;
}

void table_rows(const struct table_registry *reg, unsigned table, struct table_rows *rows)
{
	const struct table *t = &reg->tables[table];

	*rows = (struct table_rows){.desc = t->desc, .n = t->n, .entry = t->entry};
}

/* ---- values ---- */

static int fail(struct table_error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(struct table_error *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return code;
}

static int check_range(const struct table_field *f, uint64_t u, struct table_error *err)
{
	uint64_t max = f->max ? f->max : UINT64_MAX;

	if (u < f->min || u > max)
		return fail(err, -EINVAL, "%" PRIu64 " is not in %" PRIu64 "..%" PRIu64, u, f->min,
			max);
	return 0;
}

/* All bits that a value up to max can have. */
static uint64_t width_mask(uint64_t max)
{
	return max ? UINT64_MAX >> __builtin_clzll(max) : UINT64_MAX;
}

static int check_uint(const struct table_field *f, bool key, const struct table_value *in,
	struct table_value *out, struct table_error *err)
{
	out->u = in->u;
	if (!key || f->match == TABLE_EXACT)
		return check_range(f, in->u, err);
	if (f->match == TABLE_RANGE) {
		out->high = in->high;
		if (in->u > in->high)
			return fail(err, -EINVAL, "range %" PRIu64 "..%" PRIu64 " is empty", in->u,
				in->high);
		int rc = check_range(f, in->u, err);
		return rc ? rc : check_range(f, in->high, err);
	}
	out->mask = in->mask;
	if (in->mask & ~width_mask(f->max))
		return fail(err, -EINVAL, "mask 0x%" PRIx64 " is wider than 0x%" PRIx64, in->mask,
			width_mask(f->max));
	if (in->u & ~in->mask)
		return fail(err, -EINVAL,
			"value 0x%" PRIx64 " has bits outside its mask 0x%" PRIx64, in->u,
			in->mask);
	/* A partly masked value stands for many: only its upper limit can be checked. */
	if (f->max && in->u > f->max)
		return fail(err, -EINVAL, "0x%" PRIx64 " is above 0x%" PRIx64, in->u, f->max);
	return 0;
}

static int check_prefix(
	const struct table_value *in, struct table_value *out, struct table_error *err)
{
	bool is4 = wire_ip_is4(&in->ip);
	unsigned width = is4 ? 32 : 128, first = is4 ? 96 : 0;
	char given[WIRE_IP_STRLEN], net[WIRE_IP_STRLEN];
	struct wire_ip masked = in->ip;

	if (in->prefix > width)
		return fail(err, -EINVAL, "prefix length %u > %u", in->prefix, width);
	for (unsigned bit = first + in->prefix; bit < 128; bit++)
		masked.b[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
	if (!wire_ip_eq(&masked, &in->ip))
		return fail(err, -EINVAL, "%s/%u has host bits set, the network is %s/%u",
			wire_ip_format(&in->ip, given, sizeof(given)), in->prefix,
			wire_ip_format(&masked, net, sizeof(net)), in->prefix);
	out->prefix = in->prefix;
	return 0;
}

static int check_ip(const struct table_field *f, bool key, const struct table_value *in,
	struct table_value *out, struct table_error *err)
{
	char text[WIRE_IP_STRLEN];
	bool is4 = wire_ip_is4(&in->ip);

	out->any = key && f->match == TABLE_TERNARY && in->any;
	if (out->any)
		return 0;
	out->ip = in->ip;
	if ((f->type == TABLE_IP4 && !is4) || (f->type == TABLE_IP6 && is4))
		return fail(err, -EINVAL, "%s is not an IPv%c address",
			wire_ip_format(&in->ip, text, sizeof(text)),
			f->type == TABLE_IP4 ? '4' : '6');
	return key && f->match != TABLE_EXACT ? check_prefix(in, out, err) : 0;
}

static int check_port(const struct table_field *f, bool key, const struct table_value *in,
	struct table_value *out, struct table_error *err)
{
	if (key && f->match == TABLE_TERNARY && in->mask == 0)
		return 0; /* any */
	out->u = in->u;
	out->mask = key && f->match == TABLE_TERNARY ? UINT16_MAX : 0;
	return in->u > UINT16_MAX ? fail(err, -EINVAL, "%" PRIu64 " is not a port id", in->u) : 0;
}

static bool value_is_zero(const struct table_field *f, const struct table_value *v)
{
	static const uint8_t no_mac[6];

	if (table_is_ip(f->type))
		return wire_ip_is_zero(&v->ip);
	return f->type == TABLE_MAC ? !memcmp(v->mac, no_mac, 6) : !v->u;
}

/* Checks one value and writes its canonical form to the zeroed *out. */
static int check_value(const struct table_field *f, bool key, const struct table_value *in,
	struct table_value *out, struct table_error *err)
{
	int rc = 0;

	if (!key && f->optional && value_is_zero(f, in))
		return 0;
	switch (f->type) {
	case TABLE_UINT:
		rc = check_uint(f, key, in, out, err);
		break;
	case TABLE_BOOL:
		out->u = in->u;
		if (in->u > 1)
			rc = fail(err, -EINVAL, "%" PRIu64 " is not a boolean", in->u);
		break;
	case TABLE_IP4:
	case TABLE_IP6:
	case TABLE_IP:
		rc = check_ip(f, key, in, out, err);
		break;
	case TABLE_MAC:
		memcpy(out->mac, in->mac, sizeof(out->mac));
		break;
	case TABLE_PORT:
		rc = check_port(f, key, in, out, err);
		break;
	}
	if (rc)
		snprintf(err->path, sizeof(err->path), "%s.%s", key ? "key" : "data", f->name);
	return rc;
}

static int check_action(const struct table_desc *d, const struct table_entry *in,
	struct table_entry *out, struct table_error *err)
{
	if (in->action >= d->n_actions) {
		snprintf(err->path, sizeof(err->path), "action");
		return fail(err, -EINVAL, "table %s has no action %u", d->name, in->action);
	}
	const struct table_action *a = &d->actions[in->action];
	out->action = in->action;
	for (unsigned i = 0; i < a->n_params; i++) {
		int rc = check_value(&a->params[i], false, &in->param[i], &out->param[i], err);
		if (rc)
			return rc;
	}
	return 0;
}

/* The canonical entry of an update. */
static int check_entry(const struct table *t, const struct table_update *u, struct table_entry *out,
	struct table_error *err)
{
	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < t->desc->n_keys; i++) {
		int rc = check_value(&t->desc->keys[i], true, &u->entry.key[i], &out->key[i], err);
		if (rc)
			return rc;
	}
	if (u->entry.priority && !t->prioritized) {
		snprintf(err->path, sizeof(err->path), "priority");
		return fail(err, -EINVAL, "table %s has no ternary or range key, so no priorities",
			t->desc->name);
	}
	out->priority = u->entry.priority;
	return u->verb == TABLE_DELETE ? 0 : check_action(t->desc, &u->entry, out, err);
}

/* ---- index ---- */

static uint32_t identity_hash(const struct table *t, const struct table_entry *e)
{
	uint32_t bytes = t->desc->n_keys * (uint32_t)sizeof(e->key[0]);

	return rte_jhash(e->key, bytes, (uint32_t)e->priority);
}

static bool same_identity(
	const struct table *t, const struct table_entry *a, const struct table_entry *b)
{
	return a->priority == b->priority &&
	       !memcmp(a->key, b->key, t->desc->n_keys * sizeof(a->key[0]));
}

static void index_add(struct table *t, uint32_t entry)
{
	uint32_t i = t->hash[entry] & t->slot_mask;

	while (t->slot[i])
		i = (i + 1) & t->slot_mask;
	t->slot[i] = entry + 1;
}

static void index_build(struct table *t)
{
	memset(t->slot, 0, ((size_t)t->slot_mask + 1) * sizeof(t->slot[0]));
	for (uint32_t i = 0; i < t->n; i++)
		index_add(t, i);
}

/* Number of the entry with e's identity that is not dead (NULL: none is), or UINT32_MAX. */
static uint32_t find(
	const struct table *t, const bool *dead, const struct table_entry *e, uint32_t hash)
{
	for (uint32_t i = hash & t->slot_mask; t->slot[i]; i = (i + 1) & t->slot_mask) {
		uint32_t k = t->slot[i] - 1;

		if (t->hash[k] == hash && !(dead && dead[k]) && same_identity(t, &t->entry[k], e))
			return k;
	}
	return UINT32_MAX;
}

const struct table_entry *table_lookup(
	const struct table_registry *reg, unsigned table, const struct table_entry *e)
{
	struct table_update u = {.verb = TABLE_DELETE, .entry = *e};
	struct table_entry canonical;
	struct table_error err;

	if (table >= reg->n || !reg->tables[table].n ||
		check_entry(&reg->tables[table], &u, &canonical, &err))
		return NULL;
	const struct table *t = &reg->tables[table];
	uint32_t k = find(t, NULL, &canonical, identity_hash(t, &canonical));
	return k == UINT32_MAX ? NULL : &t->entry[k];
}

/* ---- batches ---- */

static void draft_free(struct draft *d)
{
	table_free(&d->t);
	free(d->dead);
}

/* A copy of a table with room for more entries. */
static int draft_begin(struct draft *d, const struct table *from, uint32_t more)
{
	uint32_t cap = from->n + more, slots = 16;

	while (slots < 2 * (uint64_t)cap)
		slots *= 2;
	*d = (struct draft){.used = true, .t = *from};
	d->t.cap = cap;
	d->t.slot_mask = slots - 1;
	d->t.entry = calloc(cap + 1, sizeof(d->t.entry[0]));
	d->t.hash = calloc(cap + 1, sizeof(d->t.hash[0]));
	d->t.slot = calloc(slots, sizeof(d->t.slot[0]));
	d->dead = calloc(cap + 1, sizeof(d->dead[0]));
	if (!d->t.entry || !d->t.hash || !d->t.slot || !d->dead)
		return -ENOMEM;
	if (from->n) {
		memcpy(d->t.entry, from->entry, from->n * sizeof(from->entry[0]));
		memcpy(d->t.hash, from->hash, from->n * sizeof(from->hash[0]));
	}
	index_build(&d->t);
	return 0;
}

static int draft_insert(
	struct draft *d, const struct table_entry *e, uint32_t hash, struct table_error *err)
{
	struct table *t = &d->t;

	if (t->n - d->n_dead >= t->desc->size)
		return fail(err, -ENOSPC, "table %s is full, its size is %u", t->desc->name,
			t->desc->size);
	t->entry[t->n] = *e;
	t->hash[t->n] = hash;
	index_add(t, t->n++);
	return 0;
}

static int draft_apply(struct draft *d, const struct table_update *u, struct table_error *err)
{
	struct table *t = &d->t;
	struct table_entry e;
	int rc = check_entry(t, u, &e, err);

	if (rc)
		return rc;
	uint32_t hash = identity_hash(t, &e), k = find(t, d->dead, &e, hash);
	const char *same = t->prioritized ? "this key and priority" : "this key";

	if (u->verb == TABLE_INSERT && k == UINT32_MAX)
		return draft_insert(d, &e, hash, err);
	snprintf(err->path, sizeof(err->path), "key");
	if (u->verb == TABLE_INSERT)
		return fail(err, -EEXIST, "table %s has an entry with %s", t->desc->name, same);
	if (k == UINT32_MAX)
		return fail(err, -ENOENT, "table %s has no entry with %s", t->desc->name, same);
	err->path[0] = '\0';
	if (u->verb == TABLE_MODIFY) {
		t->entry[k] = e;
	} else {
		d->dead[k] = true;
		d->n_dead++;
	}
	return 0;
}

static void draft_finish(struct draft *d)
{
	uint32_t n = 0;

	if (!d->n_dead)
		return;
	for (uint32_t i = 0; i < d->t.n; i++) {
		if (d->dead[i])
			continue;
		if (n != i) {
			d->t.entry[n] = d->t.entry[i];
			d->t.hash[n] = d->t.hash[i];
		}
		n++;
	}
	d->t.n = n;
	index_build(&d->t);
}

/* Copies the tables that the batch touches, and applies it to them. */
static int drafts_apply(const struct table_registry *reg, struct draft *drafts,
	const struct table_update *updates, unsigned n, struct table_error *err)
{
	uint32_t *more = calloc(reg->n + 1, sizeof(*more));
	int rc = more ? 0 : fail(err, -ENOMEM, "out of memory");

	for (unsigned i = 0; i < n && more; i++)
		if (updates[i].table < reg->n && updates[i].verb == TABLE_INSERT)
			more[updates[i].table]++;
	for (unsigned i = 0; i < n && !rc; i++) {
		const struct table_update *u = &updates[i];

		err->index = i;
		if (u->table >= reg->n || u->verb > TABLE_DELETE) {
			snprintf(err->path, sizeof(err->path), "%s",
				u->table >= reg->n ? "table" : "verb");
			rc = fail(err, -EINVAL, "%u is unknown",
				u->table >= reg->n ? u->table : (unsigned)u->verb);
			break;
		}
		struct draft *d = &drafts[u->table];
		if (!d->used && draft_begin(d, &reg->tables[u->table], more[u->table]))
			rc = fail(err, -ENOMEM, "out of memory");
		else
			rc = draft_apply(d, u, err);
	}
	free(more);
	return rc;
}

static int drafts_publish(
	const struct table_registry *reg, struct draft *drafts, unsigned n, struct table_error *err)
{
	struct table_rows *rows = calloc(reg->n, sizeof(*rows));

	err->index = n == 1 ? 0 : TABLE_NO_INDEX;
	if (!rows)
		return fail(err, -ENOMEM, "out of memory");
	for (unsigned i = 0; i < reg->n; i++) {
		table_rows(reg, i, &rows[i]);
		if (!drafts[i].used)
			continue;
		draft_finish(&drafts[i]);
		rows[i].changed = true;
		rows[i].n = drafts[i].t.n;
		rows[i].entry = drafts[i].t.entry;
	}
	int rc = reg->publish ? reg->publish(reg->arg, rows, reg->n, err) : 0;
	if (rc && !err->msg[0])
		fail(err, rc, "the dataplane refused the tables: %s", strerror(-rc));
	free(rows);
	return rc;
}

static void take_over(struct table_registry *reg, struct draft *drafts)
{
	for (unsigned i = 0; i < reg->n; i++) {
		if (!drafts[i].used)
			continue;
		struct table old = reg->tables[i];

		reg->tables[i] = drafts[i].t;
		drafts[i].t = old;
	}
}

int table_write(struct table_registry *reg, const struct table_update *updates, unsigned n,
	struct table_error *err)
{
	*err = (struct table_error){.index = TABLE_NO_INDEX};
	if (!n)
		return 0;
	struct draft *drafts = calloc(reg->n + 1, sizeof(*drafts));
	if (!drafts)
		return fail(err, -ENOMEM, "out of memory");
	int rc = drafts_apply(reg, drafts, updates, n, err);
	if (!rc)
		rc = drafts_publish(reg, drafts, n, err);
	if (!rc)
		take_over(reg, drafts);
	for (unsigned i = 0; i < reg->n; i++)
		draft_free(&drafts[i]);
	free(drafts);
	return rc;
}
