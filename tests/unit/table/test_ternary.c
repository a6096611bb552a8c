/* SPDX-License-Identifier: BSD-3-Clause */
/* The ternary and range matcher against a look at every row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/match/ternary.h"
#include "lib/port/port.h"
#include "lib/wire/bytes.h"

enum { SRC, DST, KIND, LOW, WIDE, TAG, PORT, FLAG, N_KEYS };
enum { ROWS = 60, PACKETS = 400, ROUNDS = 12, BYTES = 64 << 20 };

static const struct table_desc desc = {
	.name = "some",
	.n_keys = N_KEYS,
	.keys = {[SRC] = {.name = "src", .type = TABLE_IP, .match = TABLE_TERNARY},
		[DST] = {.name = "dst", .type = TABLE_IP, .match = TABLE_LPM},
		[KIND] = {.name = "kind", .match = TABLE_TERNARY, .max = 255},
		[LOW] = {.name = "low", .match = TABLE_RANGE, .max = 65535},
		[WIDE] = {.name = "wide", .match = TABLE_RANGE, .max = UINT32_MAX},
		[TAG] = {.name = "tag", .match = TABLE_TERNARY, .max = 4095},
		[PORT] = {.name = "port", .type = TABLE_PORT, .match = TABLE_TERNARY},
		[FLAG] = {.name = "flag", .type = TABLE_BOOL}},
	.n_actions = 1,
	.actions = {{.name = "is"}},
	.size = ROWS,
};

/* With holes, which nothing may look at. */
static const struct ternary_layout four = {.len = 28,
	.at = {[KIND] = {0, 1},
		[TAG] = {4, 2},
		[FLAG] = {7, 1},
		[LOW] = {10, 2},
		[WIDE] = {12, 4},
		[SRC] = {16, 4},
		[PORT] = {20, 2},
		[DST] = {24, 4}}};
static const struct ternary_layout six = {.len = 52,
	.at = {[KIND] = {0, 1},
		[SRC] = {4, 16},
		[LOW] = {20, 2},
		[PORT] = {22, 2},
		[WIDE] = {24, 4},
		[TAG] = {30, 2},
		[FLAG] = {32, 1},
		[DST] = {36, 16}}};

static uint64_t seed = 1;

static uint32_t random32(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33);
}

/* ---- rows ---- */

/* Few different ones, so that packets meet rows, and rows one another. */
static struct wire_ip some_ip(bool v4)
{
	struct wire_ip ip = {{0x20, 1}};

	if (v4)
		ip = wire_ip_from4(0x0a000000);
	for (unsigned i = 13; i < 16; i++)
		ip.b[i] = (uint8_t)(random32() % 3 << 6 | random32() % 2);
	return ip;
}

static void cut(struct table_value *v)
{
	const unsigned first = wire_ip_is4(&v->ip) ? 96 : 0;

	v->prefix = (uint8_t)(random32() % 4 ? 128 - first - random32() % 26 : 0);
	for (unsigned bit = first + v->prefix; bit < 128; bit++)
		v->ip.b[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
}

static void some_range(struct table_value *v, uint64_t max)
{
	const uint64_t a = random32() % 8 * (max / 7), b = random32() % 8 * (max / 7);

	v->u = a < b ? a : b;
	v->high = a < b ? b : a;
	if (random32() % 3)
		*v = (struct table_value){.high = max};
}

static void some_mask(struct table_value *v, uint64_t max)
{
	v->mask = (random32() % 3 ? max : random32()) & max & (random32() % 3 ? 0 : max);
	v->u = random32() % 4 * 0x111 & v->mask;
}

static struct table_entry some_row(void)
{
	struct table_entry e = {.priority = (int32_t)(random32() % 7) - 3};
	const bool v4 = random32() % 2;

	e.key[SRC].any = random32() % 3 > 0;
	if (!e.key[SRC].any) {
		e.key[SRC].ip = some_ip(v4);
		cut(&e.key[SRC]);
	}
	e.key[DST].ip = some_ip(v4);
	cut(&e.key[DST]);
	some_mask(&e.key[KIND], 255);
	some_range(&e.key[LOW], 65535);
	some_range(&e.key[WIDE], UINT32_MAX);
	some_mask(&e.key[TAG], 4095);
	if (random32() % 4 == 0)
		e.key[PORT] = (struct table_value){.u = random32() % 2 * 300, .mask = UINT16_MAX};
	e.key[FLAG].u = random32() % 2;
	return e;
}

/* ---- packets ---- */

struct packet {
	bool v4;
	struct wire_ip src, dst;
	uint64_t value[N_KEYS];
	uint8_t key[TERNARY_MAX_LEN];
};

static void put(struct packet *p, const struct ternary_layout *l, unsigned k)
{
	uint8_t *to = p->key + l->at[k].offset;

	if (l->at[k].size == 1)
		*to = (uint8_t)p->value[k];
	else if (l->at[k].size == 2)
		put_be16(to, (uint16_t)p->value[k]);
	else
		put_be32(to, (uint32_t)p->value[k]);
}

static struct packet some_packet(bool v4)
{
	const struct ternary_layout *l = v4 ? &four : &six;
	struct packet p = {.v4 = v4, .src = some_ip(v4), .dst = some_ip(v4)};
	const unsigned skip = v4 ? 12 : 0;

	for (unsigned i = 0; i < sizeof(p.key); i++)
		p.key[i] = (uint8_t)random32();
	p.value[KIND] = random32() % 4 * 0x111 & 255;
	p.value[LOW] = random32() % 16 * (65535 / 15);
	p.value[WIDE] = random32() % 16 * (uint64_t)(UINT32_MAX / 15);
	p.value[TAG] = random32() % 4 * 0x111 & 4095;
	p.value[PORT] = random32() % 2 * 300;
	p.value[FLAG] = random32() % 2;
	for (unsigned k = KIND; k < N_KEYS; k++)
		put(&p, l, k);
	memcpy(p.key + l->at[SRC].offset, p.src.b + skip, 16 - skip);
	memcpy(p.key + l->at[DST].offset, p.dst.b + skip, 16 - skip);
	return p;
}

/* ---- the oracle ---- */

static bool in_prefix(const struct table_value *v, const struct wire_ip *ip)
{
	const unsigned first = wire_ip_is4(&v->ip) ? 96 : 0;

	if (v->any)
		return true;
	if (wire_ip_is4(&v->ip) != wire_ip_is4(ip))
		return false;
	for (unsigned bit = first; bit < first + v->prefix; bit++)
		if ((v->ip.b[bit / 8] ^ ip->b[bit / 8]) & 0x80 >> bit % 8)
			return false;
	return true;
}

static bool matches(const struct table_entry *e, const struct packet *p)
{
	static const uint8_t ranges[] = {LOW, WIDE}, masks[] = {KIND, TAG, PORT};

	for (unsigned i = 0; i < 2; i++) {
		const struct table_value *v = &e->key[ranges[i]];

		if (p->value[ranges[i]] < v->u || p->value[ranges[i]] > v->high)
			return false;
	}
	for (unsigned i = 0; i < 3; i++)
		if ((p->value[masks[i]] & e->key[masks[i]].mask) != e->key[masks[i]].u)
			return false;
	return p->value[FLAG] == e->key[FLAG].u && in_prefix(&e->key[SRC], &p->src) &&
	       in_prefix(&e->key[DST], &p->dst);
}

static uint32_t oracle(const struct table_rows *rows, const struct packet *p)
{
	uint32_t best = 0;

	for (uint32_t i = 0; i < rows->n; i++)
		if (matches(&rows->entry[i], p) &&
			(best == 0 || rows->entry[i].priority > rows->entry[best - 1].priority))
			best = i + 1;
	return best;
}

/* ---- tests ---- */

static unsigned round_of(const struct table_rows *rows)
{
	static struct packet packets[PACKETS];
	const uint8_t *keys[PACKETS];
	uint32_t found[PACKETS];
	unsigned hits = 0;

	for (unsigned v4 = 0; v4 < 2; v4++) {
		struct ternary *t;

		assert_int_equal(ternary_create(rows, v4 ? &four : &six, BYTES, &t), 0);
		for (unsigned i = 0; i < PACKETS; i++) {
			packets[i] = some_packet(v4);
			keys[i] = packets[i].key;
		}
		ternary_lookup(t, keys, found, PACKETS);
		for (unsigned i = 0; i < PACKETS; i++) {
			assert_int_equal(found[i], oracle(rows, &packets[i]));
			hits += found[i] != 0;
		}
		ternary_destroy(t);
	}
	return hits;
}

static void random_rows(void **state)
{
	static struct table_entry entry[ROWS];
	struct table_rows rows = {.desc = &desc, .entry = entry};
	unsigned hits = 0;

	(void)state;
	for (unsigned round = 0; round < ROUNDS; round++) {
		rows.n = round == 0 ? 1 : 1 + random32() % ROWS;
		for (unsigned i = 0; i < rows.n; i++)
			entry[i] = some_row();
		hits += round_of(&rows);
	}
	/* The rows are not such that hardly a packet meets one, or each does. */
	assert_in_range(hits, ROUNDS * PACKETS / 4, ROUNDS * PACKETS * 7 / 4);
}

static void no_rows(void **state)
{
	const struct table_entry six_only = {
		.key = {[SRC] = {.any = true}, [DST] = {.ip = {{0x20}}, .prefix = 8}}};
	struct table_rows rows = {.desc = &desc};
	const uint8_t none[TERNARY_MAX_LEN] = {0}, *key = none;
	uint32_t row = 7;
	struct ternary *t;

	(void)state;
	assert_int_equal(ternary_create(&rows, &four, BYTES, &t), 0);
	assert_null(t);
	rows.n = 1;
	rows.entry = &six_only;
	assert_int_equal(ternary_create(&rows, &four, BYTES, &t), 0);
	assert_null(t);
	ternary_lookup(t, &key, &row, 1);
	assert_int_equal(row, 0);
	ternary_destroy(t);
}

static void refused(void **state)
{
	struct table_entry entry[ROWS];
	struct table_rows rows = {.desc = &desc, .n = ROWS, .entry = entry};
	struct ternary_layout wrong;
	struct ternary *t;

	(void)state;
	for (unsigned i = 0; i < ROWS; i++)
		entry[i] = some_row();
	assert_int_equal(ternary_create(&rows, &six, 1024, &t), -ENOMEM);
	assert_null(t);
	wrong = four;
	wrong.at[LOW].size = 1; /* too small for its limit */
	assert_int_equal(ternary_create(&rows, &wrong, BYTES, &t), -EINVAL);
	wrong = four;
	wrong.at[DST].size = 8; /* of no family */
	assert_int_equal(ternary_create(&rows, &wrong, BYTES, &t), -EINVAL);
	wrong = four;
	wrong.at[LOW].offset = 9; /* over the end of a word */
	assert_int_equal(ternary_create(&rows, &wrong, BYTES, &t), -EINVAL);
	wrong = four;
	wrong.len = 24; /* the last key is beyond */
	assert_int_equal(ternary_create(&rows, &wrong, BYTES, &t), -EINVAL);
	wrong = four;
	wrong.at[KIND].offset = 6; /* nothing of one byte comes first, which is no fault */
	assert_int_equal(ternary_create(&rows, &wrong, BYTES, &t), 0);
	ternary_destroy(t);
}

/* Many rows that are apart, and fewer that are nested in several keys at once. */
static void crossing(void **state)
{
	enum { MANY = 1000, NESTED = 400 };
	struct table_entry *entry = calloc(MANY, sizeof(*entry));
	struct table_rows rows = {.desc = &desc, .n = MANY, .entry = entry};
	struct ternary *t;

	(void)state;
	for (unsigned i = 0; i < MANY; i++) {
		entry[i].key[SRC].any = true;
		entry[i].key[DST] = (struct table_value){
			.ip = wire_ip_from4(0x0a000000 + (i << 8)), .prefix = 24};
		entry[i].key[LOW].high = 65535;
		entry[i].key[WIDE].u = entry[i].key[WIDE].high = i % 7;
	}
	assert_int_equal(ternary_create(&rows, &four, BYTES, &t), 0);
	ternary_destroy(t);
	rows.n = NESTED;
	for (unsigned i = 0; i < NESTED; i++) {
		entry[i].key[DST] = (struct table_value){
			.ip = wire_ip_from4(0x0a000000), .prefix = (uint8_t)(8 + i * 7 % 17)};
		entry[i].key[LOW].u = i;
		entry[i].key[LOW].high = 65535 - i;
		entry[i].key[WIDE].u = 1000 - i;
		entry[i].key[WIDE].high = 1000 + 2 * i;
	}
	assert_int_equal(ternary_create(&rows, &four, BYTES, &t), -E2BIG);
	assert_null(t);
	free(entry);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_rows),
		cmocka_unit_test(no_rows),
		cmocka_unit_test(refused),
		cmocka_unit_test(crossing),
	};
	char err[PORT_ERR_LEN];
	int failed;

	if (port_eal_init(&(struct port_eal){.program = "ternary", .memory_mb = 256}, err) != 0)
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	port_eal_fini();
	return failed;
}
