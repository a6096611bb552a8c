/* SPDX-License-Identifier: BSD-3-Clause */
/* The matcher of IPv6 prefixes against a scan of all rows, at random: rows of all lengths that lie
 * within one another, lookups while they are added. */
#include <errno.h>
#include <rte_eal.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the above first */
#include <cmocka.h>

#include "dataplane/match/prefix6.h"

enum { NONE = 7, VALUES = 32768, MOST = 100000, AT_ONCE = 150, EVERY = 16 };

struct row {
	struct wire_ip ip;
	uint8_t bits;
	uint16_t value;
};

static struct row rows[MOST];

static unsigned pick(unsigned n)
{
	return (unsigned)rand() % n;
}

static bool begins(const struct wire_ip *ip, const struct row *r)
{
	const unsigned whole = r->bits / 8, rest = r->bits % 8;

	return memcmp(ip->b, r->ip.b, whole) == 0 &&
	       (rest == 0 || (ip->b[whole] ^ r->ip.b[whole]) >> (8 - rest) == 0);
}

/* The later one of two equal rows holds. */
static uint16_t scan(unsigned n, const struct wire_ip *ip)
{
	const struct row *best = NULL;

	for (unsigned i = 0; i < n; i++)
		if ((best == NULL || rows[i].bits >= best->bits) && begins(ip, &rows[i]))
			best = &rows[i];
	return best != NULL ? best->value : NONE;
}

/* Few different bytes, so that rows begin one another and addresses. */
static struct wire_ip address(void)
{
	static const uint8_t bytes[] = {0, 0, 0, 0x20, 0x80, 0xff};
	struct wire_ip ip;

	for (unsigned i = 0; i < sizeof(ip.b); i++)
		ip.b[i] = pick(4) ? bytes[pick(sizeof(bytes))] : (uint8_t)rand();
	return ip;
}

/* Half of them begin as one of the rows does, or nearly. */
static struct wire_ip wanted(unsigned n)
{
	struct wire_ip ip = address();
	const struct row *r = &rows[pick(n)];

	if (pick(2)) {
		memcpy(ip.b, r->ip.b, r->bits / 8u);
		if (r->bits % 8)
			ip.b[r->bits / 8] = r->ip.b[r->bits / 8];
	}
	if (pick(4) == 0)
		ip.b[pick(16)] ^= (uint8_t)(1u << pick(8));
	return ip;
}

static void compare(const struct prefix6 *p, unsigned n, unsigned lookups)
{
	struct wire_ip ip[AT_ONCE] = {{{0}}};
	uint16_t value[AT_ONCE];

	for (unsigned i = 0; i < lookups; i++)
		ip[i] = wanted(n);
	prefix6_lookup(p, ip, value, lookups);
	for (unsigned i = 0; i < lookups; i++)
		assert_int_equal(value[i], scan(n, &ip[i]));
}

/* Of these lengths; some are a row of before again, and some are it with another length: rows of
 * one /48 among others. */
static void make_rows(unsigned n, const uint8_t *lengths, unsigned n_lengths)
{
	for (unsigned i = 0; i < n; i++) {
		const uint8_t bits = lengths[pick(n_lengths)];

		switch (i > 0 ? pick(8) : 2) {
		case 0:
			rows[i] = rows[pick(i)];
			break;
		case 1:
			rows[i] = (struct row){rows[pick(i)].ip, bits, 0};
			break;
		default:
			rows[i] = (struct row){address(), bits, 0};
		}
		rows[i].value = (uint16_t)pick(VALUES);
	}
}

static struct prefix6 *make(unsigned n)
{
	struct prefix6_sizes sizes = {{0}};
	struct prefix6 *p = NULL;

	for (unsigned i = 0; i < n; i++)
		prefix6_count(&sizes, &rows[i].ip, rows[i].bits);
	assert_int_equal(prefix6_create(&sizes, NONE, &p), 0);
	return p;
}

static void check(unsigned n, const uint8_t *lengths, unsigned n_lengths, bool trie)
{
	struct prefix6 *p;

	make_rows(n, lengths, n_lengths);
	p = make(n);
	assert_int_equal(prefix6_is_trie(p), trie);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(prefix6_add(p, &rows[i].ip, rows[i].bits, rows[i].value), 0);
		if (i < 1000 && i % EVERY == 0)
			compare(p, i + 1, EVERY);
	}
	for (unsigned i = 0; i < (n < 1000 ? 20 : 3); i++)
		compare(p, n, AT_ONCE);
	prefix6_destroy(p);
}

static const unsigned sizes[] = {1, 2, 3, 17, 255, 256, 257, 1000};
enum { N_SIZES = sizeof(sizes) / sizeof(*sizes) };

static void few_lengths(void **state)
{
	static const uint8_t fabric[] = {128, 64, 48, 0}, odd[] = {127, 63, 49, 47, 33, 7, 1};

	(void)state;
	for (unsigned i = 0; i < 2 * N_SIZES; i++) {
		check(sizes[i / 2], fabric, sizeof(fabric), false);
		check(sizes[i / 2], odd, sizeof(odd), false);
	}
}

/* Each time other ones. */
static void all_lengths(void **state)
{
	uint8_t some[PREFIX6_BITS + 1];

	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		for (unsigned i = 0; i < PREFIX6_FEW_LENGTHS; i++)
			some[i] = (uint8_t)pick(PREFIX6_BITS + 1);
		check(sizes[pick(6)], some, PREFIX6_FEW_LENGTHS, false);
		check(257 + pick(1000), some, PREFIX6_MANY_LENGTHS, false);
	}
}

static void many_rows(void **state)
{
	static const uint8_t lengths[] = {128, 96, 64, 56, 48, 40, 32, 20, 0};

	(void)state;
	check(MOST, lengths, sizeof(lengths), false);
}

/* As many lengths as there can be, and one more; with few rows and with many. */
static void too_many_lengths(void **state)
{
	static const struct {
		unsigned rows, lengths;
		bool trie;
	} cases[] = {
		{PREFIX6_FEW, PREFIX6_FEW_LENGTHS, false},
		{PREFIX6_FEW, PREFIX6_FEW_LENGTHS + 1, true},
		{PREFIX6_FEW + 1, PREFIX6_MANY_LENGTHS, false},
		{PREFIX6_FEW + 1, PREFIX6_MANY_LENGTHS + 1, true},
		{1000, PREFIX6_BITS, true},
		/* more second-level tables than two bytes count */
		{6000, PREFIX6_BITS, true},
	};

	(void)state;
	for (unsigned c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
		struct prefix6 *p;

		for (unsigned i = 0; i < cases[c].rows; i++) {
			rows[i] = (struct row){address(), (uint8_t)(1 + i % cases[c].lengths),
				(uint16_t)pick(VALUES)};
			rows[i].ip.b[0] &= 0x7f;
		}
		p = make(cases[c].rows);
		assert_int_equal(prefix6_is_trie(p), cases[c].trie);
		for (unsigned i = 0; i < cases[c].rows; i++)
			assert_int_equal(
				prefix6_add(p, &rows[i].ip, rows[i].bits, rows[i].value), 0);
		for (unsigned i = 0; i < 5; i++)
			compare(p, cases[c].rows, AT_ONCE);
		prefix6_destroy(p);
	}
}

/* Rows up to the last address, with more lengths than a trie would be for. */
static void last_address(void **state)
{
	struct prefix6 *p;

	(void)state;
	for (unsigned round = 0; round < 20; round++) {
		const unsigned n = 2 + pick(600), at = pick(n);

		for (unsigned i = 0; i < n; i++)
			rows[i] = (struct row){address(), (uint8_t)(round % 2 + i % PREFIX6_BITS),
				(uint16_t)pick(VALUES)};
		memset(rows[at].ip.b, 0xff, sizeof(rows[at].ip.b));
		rows[at].bits = (uint8_t)(1 + pick(PREFIX6_BITS));
		p = make(n);
		assert_false(prefix6_is_trie(p));
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(
				prefix6_add(p, &rows[i].ip, rows[i].bits, rows[i].value), 0);
		for (unsigned i = 0; i < 5; i++)
			compare(p, n, AT_ONCE);
		prefix6_destroy(p);
	}
}

/* Hosts are numbered as their subnets are. */
static void counted(void **state)
{
	enum { SUBNETS = 128, HOSTS = 250, LONGEST = 100 };

	(void)state;
	for (unsigned round = 0; round < 4; round++) {
		struct prefix6_sizes sizes = {.n[PREFIX6_BITS] = SUBNETS * HOSTS};
		struct wire_ip ip = {.b = {0x20, 0x01, 0x0d, 0xb8}};
		struct prefix6 *p;

		assert_int_equal(prefix6_create(&sizes, NONE, &p), 0);
		for (unsigned i = 0; i < SUBNETS * HOSTS; i++) {
			ip.b[7] = (uint8_t)(i / HOSTS);
			ip.b[15] = (uint8_t)(i % HOSTS);
			assert_int_equal(prefix6_add(p, &ip, PREFIX6_BITS, 1), 0);
		}
		assert_in_range(prefix6_longest(p), 1, LONGEST);
		prefix6_destroy(p);
	}
}

/* Bursts as they are: much the same, or a few addresses by turns. */
static void alike(void **state)
{
	static const uint8_t lengths[] = {128, 64, 56, 48, 40, 32, 0};
	struct wire_ip ip[AT_ONCE];
	uint16_t value[AT_ONCE];
	struct prefix6 *p;

	(void)state;
	make_rows(300, lengths, sizeof(lengths));
	p = make(300);
	for (unsigned i = 0; i < 300; i++)
		assert_int_equal(prefix6_add(p, &rows[i].ip, rows[i].bits, rows[i].value), 0);
	for (unsigned round = 0; round < 300; round++) {
		ip[0] = wanted(300);
		for (unsigned i = 1; i < AT_ONCE; i++) {
			ip[i] = pick(50) ? ip[i - 1] : wanted(300);
			if (pick(2))
				ip[i].b[pick(16)] ^= (uint8_t)(1u << pick(8));
		}
		prefix6_lookup(p, ip, value, AT_ONCE);
		for (unsigned i = 0; i < AT_ONCE; i++)
			assert_int_equal(value[i], scan(300, &ip[i]));
	}
	prefix6_destroy(p);
}

/* What sizes did not say is refused, and all is as before; a row again is no more than one. */
static void full(void **state)
{
	struct prefix6_sizes one = {{0}};
	const struct wire_ip a = {{0x20, 1}}, b = {{0x20, 2}};
	struct prefix6 *p;
	uint16_t value;

	(void)state;
	prefix6_count(&one, &a, 48);
	assert_int_equal(prefix6_create(&one, NONE, &p), 0);
	assert_int_equal(prefix6_add(p, &a, 48, 1), 0);
	assert_int_equal(prefix6_add(p, &a, 48, 2), 0);
	assert_int_equal(prefix6_add(p, &b, 48, 3), -ENOMEM);
	assert_int_equal(prefix6_add(p, &a, 64, 4), -ENOMEM);
	prefix6_lookup(p, &a, &value, 1);
	assert_int_equal(value, 2);
	prefix6_lookup(p, &b, &value, 1);
	assert_int_equal(value, NONE);
	prefix6_destroy(p);
	prefix6_destroy(NULL);
}

static int eal(void **state)
{
	static char args[][16] = {"test", "--no-huge", "-m", "256", "--no-pci", "--no-telemetry",
		"--no-shconf", "--log-level", "error"};
	enum { N = sizeof(args) / sizeof(*args) };
	char *argv[N + 1] = {NULL};

	(void)state;
	for (unsigned i = 0; i < N; i++)
		argv[i] = args[i];
	srand(4291);
	return rte_eal_init(N, argv) < 0 ? -1 : 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_lengths),
		cmocka_unit_test(all_lengths),
		cmocka_unit_test(many_rows),
		cmocka_unit_test(too_many_lengths),
		cmocka_unit_test(last_address),
		cmocka_unit_test(counted),
		cmocka_unit_test(alike),
		cmocka_unit_test(full),
	};

	return cmocka_run_group_tests_name("dataplane-prefix6", tests, eal, NULL);
}
