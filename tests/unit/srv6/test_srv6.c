/* SPDX-License-Identifier: BSD-3-Clause */
/* uSIDs, templates and the API's expansion: a worked example, random templates, refusals. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/srv6/expand.h"
#include "lib/srv6/template.h"

static struct wire_ip ip(const char *text)
{
	struct wire_ip made;

	assert_int_equal(wire_ip_parse(text, &made), 0);
	return made;
}

static void is_ip(const struct wire_ip *got, const char *want)
{
	char text[WIRE_IP_STRLEN];

	assert_string_equal(wire_ip_format(got, text, sizeof(text)), want);
}

/* uSID = plane:4, role:2, index:10; EV = plane << 8 | uplink. Source T0, T1, destination T0, link
 * to the host. */
static struct srv6_template example(void)
{
	return (struct srv6_template){
		.address = ip("fcbb:bb00:12:400:155:800::"),
		.n_hops = 4,
		.n_copies = 5,
		.copy = {{8, 4, 0, 12}, {8, 4, 1, 12}, {8, 4, 2, 12}, {8, 4, 3, 12}, {0, 8, 1, 0}},
		.downlink = {0, 10, 3, 0},
	};
}

static void example_hop_by_hop(void **state)
{
	static const char *const nodes[] = {
		"fcbb:bb00:5012::", "fcbb:bb00:542a::", "fcbb:bb00:5155::", "fcbb:bb00:587f::"};
	static const char *const then[] = {
		"fcbb:bb00:542a:5155:587f::", "fcbb:bb00:5155:587f::", "fcbb:bb00:587f::"};
	static const uint16_t hops[] = {0x5012, 0x542a, 0x5155, 0x587f};
	struct srv6_template row = example(), dst;
	uint16_t usids[SRV6_USIDS];
	char err[SRV6_ERR_LEN];
	struct wire_ip addr, again;
	uint32_t ev;

	(void)state;
	assert_int_equal(srv6_template_check(&row, err), 0);
	assert_int_equal(srv6_template_ev_mask(&row), 0xfff);
	assert_int_equal(srv6_template_specialise(&row, 0x7f, &dst), 0);
	is_ip(&dst.address, "fcbb:bb00:12:400:155:87f::");
	assert_int_equal(srv6_template_check(&dst, err), 0);
	assert_int_equal(srv6_template_expand(&dst, 0x52a, &addr), 0);
	is_ip(&addr, "fcbb:bb00:5012:542a:5155:587f::");
	assert_int_equal(srv6_path(&addr, usids), 4);
	assert_memory_equal(usids, hops, sizeof(hops));
	assert_int_equal(srv6_address(0xfcbbbb00, hops, 4, &again), 0);
	assert_true(wire_ip_eq(&again, &addr));
	assert_int_equal(srv6_template_ev(&dst, &addr, &ev), 0);
	assert_int_equal(ev, 0x52a);
	for (unsigned i = 0; i < 4; i++) {
		struct wire_ip node = ip(nodes[i]), other = ip(nodes[(i + 1) % 4]);

		assert_true(srv6_is_for(&addr, &node));
		assert_false(srv6_is_for(&addr, &other));
		assert_int_equal(srv6_has_next(&addr), i < 3);
		if (i < 3) {
			srv6_shift(&addr);
			is_ip(&addr, then[i]);
		}
	}
	srv6_shift(&addr);
	assert_int_equal(srv6_path(&addr, usids), 0);
}

/* A path of six hops has no zeros behind it: the shift brings them. */
static void six_hops(void **state)
{
	static const uint16_t hops[] = {1, 2, 3, 4, 5, 6};
	static const uint16_t hole[] = {1, 0, 3};
	struct wire_ip addr, before;

	(void)state;
	assert_int_equal(srv6_address(0xfcbbbb00, hops, 6, &addr), 0);
	is_ip(&addr, "fcbb:bb00:1:2:3:4:5:6");
	srv6_shift(&addr);
	is_ip(&addr, "fcbb:bb00:2:3:4:5:6:0");
	before = addr;
	assert_int_equal(srv6_address(0xfcbbbb00, hops, 7, &addr), -EINVAL);
	assert_int_equal(srv6_address(0xfcbbbb00, hops, 0, &addr), -EINVAL);
	assert_int_equal(srv6_address(0xfcbbbb00, hole, 3, &addr), -EINVAL);
	assert_true(wire_ip_eq(&before, &addr));
}

/* What a shift by any number of bytes is, byte by byte. */
static void shift_by_bytes(void **state)
{
	(void)state;
	srand(48);
	for (unsigned i = 0; i < 20000; i++) {
		const unsigned end = SRV6_BLOCK_LEN + (unsigned)rand() % (17 - SRV6_BLOCK_LEN);
		const unsigned tail = (unsigned)rand() % 17; /* from there on there are zeros */
		struct wire_ip addr, want = {{0}}, got;
		bool more = false;

		for (unsigned k = 0; k < 16; k++)
			addr.b[k] = k < tail ? (uint8_t)rand() : 0;
		for (unsigned k = end; k < 16; k++)
			more |= addr.b[k] != 0;
		memcpy(want.b, addr.b, SRV6_BLOCK_LEN);
		memcpy(want.b + SRV6_BLOCK_LEN, addr.b + end, 16 - end);
		srv6_number_put(&got, srv6_shifted(srv6_number(&addr), 8 * end));
		assert_memory_equal(&got, &want, sizeof(got));
		assert_int_equal(srv6_has_argument(&addr, 8 * end), more);
		if (end == 6 || end == 8) {
			uint64_t halves[2];

			assert_int_equal(srv6_shift_usids(&addr, 8 * end, halves), more);
			put_be64(got.b, halves[0]);
			put_be64(got.b + 8, halves[1]);
			assert_memory_equal(&got, &want, sizeof(got));
		}
	}
}

/* Between clusters: two uplinks vary. */
static void between_clusters(void **state)
{
	struct srv6_template t = {
		.address = ip("fcbb:bb00:11:400:c00:480:155:800"),
		.n_hops = 6,
		.n_copies = 9,
		.copy = {{16, 4, 0, 12}, {16, 4, 1, 12}, {16, 4, 2, 12}, {16, 4, 3, 12},
			{16, 4, 4, 12}, {16, 4, 5, 12}, {8, 6, 1, 0}, {8, 6, 3, 0}, {0, 8, 2, 0}},
	};
	char err[SRV6_ERR_LEN];
	struct wire_ip addr;
	uint32_t ev;

	(void)state;
	assert_int_equal(srv6_template_check(&t, err), 0);
	assert_int_equal(srv6_template_expand(&t, 0x32a07, &addr), 0);
	is_ip(&addr, "fcbb:bb00:3011:342a:3c07:34aa:3155:3800");
	assert_int_equal(srv6_template_ev(&t, &addr, &ev), 0);
	assert_int_equal(ev, 0x32a07);
	srv6_usid_put(&addr, 3, 0x34ab); /* the two copies of the first uplink disagree */
	assert_int_equal(srv6_template_ev(&t, &addr, &ev), -ENOENT);
}

static void refused(const struct srv6_template *t, const char *word)
{
	char err[SRV6_ERR_LEN] = "";

	assert_int_equal(srv6_template_check(t, err), -EINVAL);
	if (!strstr(err, word))
		fail_msg("\"%s\" does not say \"%s\"", err, word);
}

static void bad_templates(void **state)
{
	struct srv6_template t = example(), out;
	struct wire_ip addr;

	(void)state;
	t.n_hops = 7;
	refused(&t, "hops: 7 of 1..6");
	t = example();
	t.n_hops = 0;
	refused(&t, "hops: 0");
	t = example();
	t.n_copies = SRV6_MAX_COPIES + 1;
	refused(&t, "copies: 17");
	t = example();
	t.copy[1].width = 0;
	refused(&t, "copies[1]: width is 0");
	t = example();
	t.copy[1].from = 29;
	refused(&t, "copies[1]: from 29, width 4, usid 1, shift 12: bits beyond the 32");
	t = example();
	t.copy[1].shift = 13;
	refused(&t, "beyond the 16 of a uSID");
	t = example();
	t.copy[1].usid = 4;
	refused(&t, "behind the last hop");
	t = example();
	t.copy[1].usid = 0;
	refused(&t, "copies[1]: from 8, width 4, usid 0, shift 12: bits that another copy has");
	t = example();
	t.copy[4].width = 11;
	refused(&t, "bits that are not 0 in the address");
	t = example();
	t.downlink.width = 12;
	refused(&t, "downlink: ");
	t = example();
	srv6_usid_put(&t.address, 5, 1);
	refused(&t, "address: uSID 5 is not 0");
	t = example();
	t.n_hops = 5;
	refused(&t, "address: uSID 4 is 0");
	t = example();
	assert_int_equal(srv6_template_expand(&t, 0x1000, &addr), -ERANGE);
	assert_int_equal(srv6_template_specialise(&t, 1 << 10, &out), -ERANGE);
	/* A hop that only the EV makes other than 0. */
	srv6_usid_put(&t.address, 1, 0);
	assert_int_equal(srv6_template_expand(&t, 0, &addr), -EINVAL);
	assert_int_equal(srv6_template_expand(&t, 1, &addr), 0);
}

static struct srv6_template random_template(void)
{
	struct srv6_template t;
	char err[SRV6_ERR_LEN];

	do {
		t = (struct srv6_template){.address = ip("fcbb:bb00::"),
			.n_hops = (uint8_t)(1 + rand() % SRV6_USIDS),
			.n_copies = (uint8_t)(1 + rand() % 8)};
		for (unsigned i = 0; i < t.n_hops; i++)
			srv6_usid_put(&t.address, i, (uint16_t)(rand() & rand() & rand()));
		for (unsigned i = 0; i < t.n_copies; i++)
			t.copy[i] = (struct srv6_copy){(uint8_t)(rand() % 32),
				(uint8_t)(1 + rand() % 6), (uint8_t)(rand() % t.n_hops),
				(uint8_t)(rand() % 14)};
	} while (srv6_template_check(&t, err) < 0);
	return t;
}

/* Every EV of the mask makes an address of its own, from which it comes back; an address with one
 * bit flipped is another EV's or nobody's. */
static void one_to_one(void **state)
{
	(void)state;
	srand(2026);
	for (unsigned i = 0; i < 2000; i++) {
		struct srv6_template t = random_template();
		uint32_t mask = srv6_template_ev_mask(&t);

		for (unsigned j = 0; j < 20; j++) {
			uint32_t ev = ((uint32_t)rand() << 16 ^ (uint32_t)rand()) & mask, back;
			struct wire_ip addr, again;
			unsigned bit = (unsigned)rand() % 128;

			if (srv6_template_expand(&t, ev, &addr) < 0)
				continue;
			assert_int_equal(srv6_template_ev(&t, &addr, &back), 0);
			assert_int_equal(back, ev);
			addr.b[bit / 8] ^= (uint8_t)(1 << bit % 8);
			if (srv6_template_ev(&t, &addr, &back) < 0)
				continue;
			assert_int_not_equal(back, ev);
			assert_int_equal(srv6_template_expand(&t, back, &again), 0);
			assert_true(wire_ip_eq(&again, &addr));
		}
	}
}

static void api_examples(void **state)
{
	static const struct srv6_ev_format two = {
		.n_fields = 2,
		.field = {{16, 0x1000, 0, 255, 0x0f0f}, {16, 0x2000, 0, 255, 0x0f0f}},
		.n_widths = 2,
		.width = {16, 16},
	};
	static const struct srv6_ev_format path = {
		.n_fields = 5,
		.field = {{32, 0xfcbbbb00, 0, 0, 0}, {16, 0x0012, 0, 15, 0xf000},
			{16, 0x0400, 0, 0x3fff, 0xf3ff}, {16, 0x0155, 0, 15, 0xf000},
			{16, 0x087f, 0, 15, 0xf000}},
		.n_widths = 5,
		.width = {32, 16, 16, 16, 16},
	};
	static const uint8_t two_ev[] = {0x35, 0xa7}, two_want[] = {0x13, 0x05, 0x2a, 0x07};
	static const uint8_t path_ev[] = {0x55, 0x0a, 0x95, 0x40};
	struct srv6_template t = example(), dst;
	uint8_t out[SRV6_EV_BYTES];
	struct wire_ip addr;

	(void)state;
	assert_int_equal(srv6_ev_check(&two), 0);
	assert_int_equal(srv6_ev_bits(&two), 16);
	assert_int_equal(srv6_ev_expand(&two, two_ev, sizeof(two_ev), out), 4);
	assert_memory_equal(out, two_want, 4);
	assert_int_equal(srv6_ev_check(&path), 0);
	assert_int_equal(srv6_ev_bits(&path), 4 + 14 + 4 + 4);
	assert_int_equal(srv6_ev_expand(&path, path_ev, sizeof(path_ev), out), 12);
	assert_int_equal(srv6_template_specialise(&t, 0x7f, &dst), 0);
	assert_int_equal(srv6_template_expand(&dst, 0x52a, &addr), 0);
	assert_memory_equal(out, addr.b, 16);
}

static void api_refusals(void **state)
{
	const struct srv6_ev_format good = {
		.n_fields = 1, .field = {{8, 0xf0, 1, 3, 0x03}}, .n_widths = 2, .width = {12, 4}};
	static const uint8_t evs[] = {0x40, 0x00, 0x60, 0xc0};
	struct srv6_ev_format f = good;
	uint8_t out[SRV6_EV_BYTES];

	(void)state;
	assert_int_equal(srv6_ev_check(&f), 0);
	assert_int_equal(srv6_ev_expand(&f, evs, 1, out), 2);
	assert_int_equal(out[0] << 8 | out[1], 0x0f10); /* 12 bits of 0x0f1, then 4 of 0 */
	assert_int_equal(srv6_ev_expand(&f, evs + 1, 1, out), -EINVAL); /* below min */
	assert_int_equal(srv6_ev_expand(&f, evs + 2, 1, out), -EINVAL); /* a bit is left over */
	assert_int_equal(srv6_ev_expand(&f, evs + 3, 1, out), 2);
	assert_int_equal(srv6_ev_expand(&f, evs, 0, out), -EINVAL);
	f.field[0].max = 4;
	assert_int_equal(srv6_ev_check(&f), -EINVAL);
	f = good, f.field[0].min = 4;
	assert_int_equal(srv6_ev_check(&f), -EINVAL);
	f = good, f.field[0].init = 0x100;
	assert_int_equal(srv6_ev_check(&f), -EINVAL);
	f = good, f.field[0].mask = 0x103;
	assert_int_equal(srv6_ev_check(&f), -EINVAL);
	f = good, f.width[0] = 7;
	assert_int_equal(srv6_ev_check(&f), -EINVAL);
	f = good, f.n_fields = 3;
	assert_int_equal(srv6_ev_check(&f), -EINVAL);
	f = good, f.n_fields = SRV6_EV_FIELDS + 1;
	assert_int_equal(srv6_ev_check(&f), -E2BIG);
	f = good, f.width[1] = 245;
	assert_int_equal(srv6_ev_check(&f), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(example_hop_by_hop),
		cmocka_unit_test(six_hops),
		cmocka_unit_test(shift_by_bytes),
		cmocka_unit_test(between_clusters),
		cmocka_unit_test(bad_templates),
		cmocka_unit_test(one_to_one),
		cmocka_unit_test(api_examples),
		cmocka_unit_test(api_refusals),
	};

	return cmocka_run_group_tests_name("srv6", tests, NULL, NULL);
}
