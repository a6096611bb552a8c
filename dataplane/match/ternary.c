/* SPDX-License-Identifier: BSD-3-Clause */
/* rte_acl walks a packet's bytes through tries, a word of four at a time, after one byte that comes
 * first. So a rule here is a list of fields that leaves no byte of a word out: those of the keys,
 * and pads, which match everything. Numbers of rules are in host order, of packets in network
 * order. */
#include "dataplane/match/ternary.h"

#include <errno.h>
#include <rte_acl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/match/crossing.h"
#include "lib/wire/bytes.h"

enum { WORD = 4, IP4_LEN = 4, IP6_LEN = 16, MAX_FIELDS = TERNARY_MAX_LEN - WORD + 1, NO_KEY = -1 };

/* Rows that cross so much take some tenths of a second to build. */
enum { CROSSING_STEPS = 16000000 };

struct ternary {
	struct rte_acl_ctx *ctx;
};

/* What a field is of: a word of an address, a number, nothing. */
struct source {
	int key;
	uint8_t word;
};

struct shape {
	const struct table_desc *desc;
	const struct ternary_layout *layout;
	unsigned n;
	struct rte_acl_field_def def[MAX_FIELDS];
	struct source source[MAX_FIELDS];
};

/* ---- the layout ---- */

static bool fits_key(const struct table_field *f, const struct ternary_at *at)
{
	if (table_is_ip(f->type))
		return at->size == IP4_LEN || at->size == IP6_LEN;
	if (f->type == TABLE_BOOL)
		return at->size == 1;
	if (f->type == TABLE_PORT)
		return at->size == 2;
	return f->type == TABLE_UINT && (at->size == 1 || at->size == 2 || at->size == WORD) &&
	       f->max != 0 && f->max >> (8 * at->size - 1) >> 1 == 0;
}

static uint8_t type_of(const struct table_field *f)
{
	if (table_is_ip(f->type))
		return RTE_ACL_FIELD_TYPE_MASK;
	return f->match == TABLE_RANGE ? RTE_ACL_FIELD_TYPE_RANGE : RTE_ACL_FIELD_TYPE_BITMASK;
}

/* The next field, which is at this offset. */
static void put(struct shape *s, unsigned offset, unsigned size, uint8_t type, struct source source)
{
	s->source[s->n] = source;
	s->def[s->n] = (struct rte_acl_field_def){
		.type = type,
		.size = (uint8_t)size,
		.field_index = (uint8_t)s->n,
		.input_index = (uint8_t)(offset / WORD),
		.offset = offset,
	};
	s->n++;
}

/* The key whose bytes begin, or go on, at this offset. */
static int key_at(const struct shape *s, unsigned offset)
{
	for (unsigned i = 0; i < s->desc->n_keys; i++) {
		const struct ternary_at *at = &s->layout->at[i];

		if (offset >= at->offset && offset < (unsigned)at->offset + at->size)
			return (int)i;
	}
	return NO_KEY;
}

/* All fields from byte 0 on. */
static int make_shape(struct shape *s)
{
	unsigned at = 0, covered = 0;

	while (at < s->layout->len) {
		const int key = key_at(s, at);
		const struct ternary_at *k = key == NO_KEY ? NULL : &s->layout->at[key];
		const unsigned size = k == NULL ? 1 : RTE_MIN(k->size, (uint8_t)WORD);

		if (k != NULL && (!fits_key(&s->desc->keys[key], k) || at % size != 0))
			return -EINVAL;
		if (at == 0 && size != 1)
			return -EINVAL;
		put(s, at, size,
			k == NULL ? RTE_ACL_FIELD_TYPE_BITMASK : type_of(&s->desc->keys[key]),
			(struct source){key, k == NULL ? 0 : (uint8_t)((at - k->offset) / WORD)});
		covered += k == NULL ? 0 : size;
		at = at == 0 ? WORD : at + size;
	}
	for (unsigned i = 0; i < s->desc->n_keys; i++)
		covered -= s->layout->at[i].size;
	return covered == 0 ? 0 : -EINVAL;
}

/* ---- rows ---- */

static bool is_for(const struct shape *s, const struct table_entry *e)
{
	for (unsigned i = 0; i < s->desc->n_keys; i++)
		if (table_is_ip(s->desc->keys[i].type) && !e->key[i].any &&
			wire_ip_is4(&e->key[i].ip) != (s->layout->at[i].size == IP4_LEN))
			return false;
	return true;
}

static void put_address(
	struct rte_acl_field *to, const struct table_value *v, unsigned size, unsigned word)
{
	const unsigned skip = word * 32, bits = v->any || v->prefix < skip ? 0 : v->prefix - skip;
	const uint8_t *b = v->ip.b + (size == IP4_LEN ? IP6_LEN - IP4_LEN : 0) + word * WORD;

	to->value.u32 =
		v->any ? 0
		       : (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
	to->mask_range.u32 = RTE_MIN(bits, 32u);
}

static void put_value(struct rte_acl_field *to, unsigned size, uint64_t value, uint64_t mask)
{
	if (size == 1) {
		to->value.u8 = (uint8_t)value;
		to->mask_range.u8 = (uint8_t)mask;
	} else if (size == 2) {
		to->value.u16 = (uint16_t)value;
		to->mask_range.u16 = (uint16_t)mask;
	} else {
		to->value.u32 = (uint32_t)value;
		to->mask_range.u32 = (uint32_t)mask;
	}
}

static void put_key(const struct shape *s, const struct table_entry *e, unsigned field,
	struct rte_acl_field *to)
{
	const struct source *from = &s->source[field];
	const unsigned size = s->def[field].size;
	const struct table_value *v;
	const struct table_field *f;

	if (from->key == NO_KEY) {
		put_value(to, size, 0, 0);
		return;
	}
	f = &s->desc->keys[from->key];
	v = &e->key[from->key];
	if (table_is_ip(f->type))
		put_address(to, v, s->layout->at[from->key].size, from->word);
	else if (f->match == TABLE_RANGE)
		put_value(to, size, v->u, v->high);
	else
		put_value(to, size, v->u, f->match == TABLE_TERNARY ? v->mask : UINT32_MAX);
}

/* Of two rows of a table. */
struct rank {
	int32_t priority;
	uint32_t row;
};

static int by_rank(const void *a, const void *b)
{
	const struct rank *x = a, *y = b;

	if (x->priority != y->priority)
		return x->priority > y->priority ? -1 : 1;
	return x->row < y->row ? -1 : 1;
}

/* As many fields as the shape has, and so is the distance of two. */
static struct rte_acl_rule *rule_at(const struct shape *s, void *rules, unsigned i)
{
	return (struct rte_acl_rule *)((uint8_t *)rules + (size_t)i * RTE_ACL_RULE_SZ(s->n));
}

/* rte_acl does not say which of two equals it takes: each rule has a priority of its own. */
static unsigned make_rules(
	const struct shape *s, const struct table_rows *rows, struct rank *rank, void *rules)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < rows->n; i++)
		if (is_for(s, &rows->entry[i]))
			rank[n++] = (struct rank){rows->entry[i].priority, i};
	qsort(rank, n, sizeof(rank[0]), by_rank);
	for (unsigned i = 0; i < n; i++) {
		struct rte_acl_rule *rule = rule_at(s, rules, i);

		rule->data = (struct rte_acl_rule_data){
			.category_mask = 1,
			.priority = (int32_t)(n - i),
			.userdata = rank[i].row + 1,
		};
		for (unsigned k = 0; k < s->n; k++)
			put_key(s, &rows->entry[rank[i].row], k, &rule->field[k]);
	}
	return n;
}

/* ---- how they cross ---- */

static struct crossing_span address_span(const struct table_value *v)
{
	struct crossing_span s;
	unsigned first = v->any ? 0 : v->prefix + (wire_ip_is4(&v->ip) ? 96 : 0);

	memcpy(s.low, v->ip.b, sizeof(s.low));
	memcpy(s.high, v->ip.b, sizeof(s.high));
	for (; first < 128; first++)
		s.high[first / 8] |= (uint8_t)(0x80 >> first % 8);
	return s;
}

static struct crossing_span span_of(const struct table_field *f, const struct table_value *v)
{
	const uint64_t all = f->type == TABLE_PORT   ? UINT16_MAX
			     : f->type == TABLE_BOOL ? 1
						     : f->max;
	struct crossing_span s = {{0}, {0}};

	if (table_is_ip(f->type))
		return address_span(v);
	put_be64(s.low + 8, v->u);
	put_be64(s.high + 8, f->match == TABLE_RANGE     ? v->high
			     : f->match == TABLE_TERNARY ? v->u | (all & ~v->mask)
							 : v->u);
	return s;
}

static int check_crossing(const struct shape *s, const struct table_rows *rows)
{
	const unsigned n_keys = s->desc->n_keys;
	struct crossing_span *span = calloc((size_t)rows->n * n_keys + 1, sizeof(*span));
	unsigned n = 0;
	int rc;

	if (span == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < rows->n; i++) {
		if (!is_for(s, &rows->entry[i]))
			continue;
		for (unsigned k = 0; k < n_keys; k++)
			span[n * n_keys + k] = span_of(&s->desc->keys[k], &rows->entry[i].key[k]);
		n++;
	}
	rc = crossing_within(span, n, n_keys, CROSSING_STEPS);
	free(span);
	return rc == 0 ? -E2BIG : rc < 0 ? rc : 0;
}

/* ---- making ---- */

static int build(struct rte_acl_ctx *ctx, const struct shape *s, const void *rules, unsigned n,
	size_t max_bytes)
{
	struct rte_acl_config config = {
		.num_categories = 1, .num_fields = s->n, .max_size = max_bytes};

	memcpy(config.defs, s->def, s->n * sizeof(s->def[0]));
	if (rte_acl_add_rules(ctx, rules, n) != 0)
		return -EINVAL;
	return rte_acl_build(ctx, &config) == 0 ? 0 : -ENOMEM;
}

static struct rte_acl_ctx *create_context(unsigned n_rules, unsigned n_fields)
{
	static unsigned serial; /* old and new live side by side */
	char name[RTE_ACL_NAMESIZE];
	const struct rte_acl_param param = {
		.name = name,
		.socket_id = SOCKET_ID_ANY,
		.rule_size = RTE_ACL_RULE_SZ(n_fields),
		.max_rule_num = n_rules,
	};

	snprintf(name, sizeof(name), "ternary%u", serial++);
	return rte_acl_create(&param);
}

static int create(const struct shape *s, const void *rules, unsigned n, size_t max_bytes,
	struct ternary **out)
{
	struct ternary *t = calloc(1, sizeof(*t));
	int rc = -ENOMEM;

	if (t == NULL)
		return rc;
	t->ctx = create_context(n, s->n);
	if (t->ctx != NULL)
		rc = build(t->ctx, s, rules, n, max_bytes);
	if (rc < 0) {
		ternary_destroy(t);
		return rc;
	}
	*out = t;
	return 0;
}

int ternary_create(const struct table_rows *rows, const struct ternary_layout *layout,
	size_t max_bytes, struct ternary **t)
{
	struct shape s = {.desc = rows->desc, .layout = layout};
	void *rules;
	struct rank *rank;
	unsigned n;
	int rc;

	*t = NULL;
	if (layout->len > TERNARY_MAX_LEN || layout->len % WORD != 0 || make_shape(&s) < 0)
		return -EINVAL;
	rc = check_crossing(&s, rows);
	if (rc < 0)
		return rc;
	rules = calloc(rows->n + 1, RTE_ACL_RULE_SZ(s.n));
	rank = calloc(rows->n + 1, sizeof(*rank));
	rc = rules == NULL || rank == NULL ? -ENOMEM : 0;
	if (rc == 0) {
		n = make_rules(&s, rows, rank, rules);
		rc = n == 0 ? 0 : create(&s, rules, n, max_bytes, t);
	}
	free(rules);
	free(rank);
	return rc;
}

void ternary_destroy(struct ternary *t)
{
	if (t == NULL)
		return;
	rte_acl_free(t->ctx);
	free(t);
}

void ternary_lookup(const struct ternary *t, const uint8_t *const *keys, uint32_t *rows, unsigned n)
{
	if (t == NULL)
		memset(rows, 0, n * sizeof(*rows));
	else if (n > 0)
		rte_acl_classify(t->ctx, (const uint8_t **)(uintptr_t)keys, rows, n, 1);
}
