/* SPDX-License-Identifier: BSD-3-Clause */
/* DSCP, ECN and length of frames in transit, byte for byte. */
#include "lib/wire/bytes.h"
#include "lib/wire/outer.h"
#include "tests/unit/wire/wire_test.h"

enum { CAP = 2048, PAYLOAD = 1000, TAGS = 3 };

/* A frame of this family behind this many tags, the outermost 802.1ad. */
static size_t tagged(uint8_t *frame, int family, unsigned tags)
{
	size_t len = test_frame(frame, CAP, family, 0, ROCE_SEND_ONLY, PAYLOAD);

	for (unsigned i = 0; i < tags; i++) {
		memmove(frame + 16, frame + 12, len - 12);
		put_be16(frame + 12, i == 1 ? 0x88a8 : ETH_TYPE_VLAN);
		put_be16(frame + 14, (uint16_t)(0x2000 + i));
		len += VLAN_HDR_LEN;
	}
	return len;
}

static void set_tos(uint8_t *frame, size_t l3, int family, uint8_t tos)
{
	if (family == 4)
		frame[l3 + 1] = tos;
	else
		put_be16(frame + l3,
			(uint16_t)(0x600a | tos << 4)); /* and a bit of the flow label */
}

static void found(void **state)
{
	uint8_t frame[CAP];

	(void)state;
	for (int family = 4; family <= 6; family += 2)
		for (unsigned tags = 0; tags < TAGS; tags++) {
			size_t len = tagged(frame, family, tags), l3 = 14 + 4 * tags;
			struct wire_outer o = wire_outer(frame, len);

			assert_int_equal(o.ver, family);
			assert_int_equal(o.l3_off, l3);
			assert_int_equal(o.l3_len, family == 4 ? 20 : 40);
			assert_int_equal(o.tos, 0x68 | IP_ECN_ECT0);
			for (size_t n = 0; n < len; n++) {
				uint8_t *exact = malloc(n ? n : 1);

				memcpy(exact, frame, n);
				assert_int_equal(
					wire_outer(exact, n).ver, n < l3 + o.l3_len ? 0 : family);
				free(exact);
			}
		}
}

static void not_found(void **state)
{
	uint8_t frame[CAP];
	size_t len;

	(void)state;
	len = tagged(frame, 4, 3);
	assert_int_equal(wire_outer(frame, len).ver, 0);
	len = tagged(frame, 4, 0);
	frame[14] = 0x44; /* a header of 16 bytes */
	assert_int_equal(wire_outer(frame, len).ver, 0);
	frame[14] = 0x65;
	assert_int_equal(wire_outer(frame, len).ver, 0);
	frame[14] = 0x4f; /* 60 */
	assert_int_equal(wire_outer(frame, len).l3_len, 60);
	put_be16(frame + 12, ETH_TYPE_ARP);
	assert_int_equal(wire_outer(frame, len).ver, 0);
	len = tagged(frame, 6, 0);
	frame[14] = 0x45;
	assert_int_equal(wire_outer(frame, len).ver, 0);
}

/* Every TOS to every other; all else stays, and the checksum is what it would be afresh. */
static void tos(void **state)
{
	uint8_t frame[CAP], want[CAP];

	(void)state;
	for (unsigned i = 0; i < 2 * 65536; i++) {
		const int family = i & 65536 ? 6 : 4;
		const unsigned tags = i % TAGS;
		const size_t l3 = 14 + 4 * tags, len = tagged(frame, family, tags);
		struct wire_outer o;

		set_tos(frame, l3, family, (uint8_t)i);
		if (family == 4) {
			put_be16(frame + l3 + 4, (uint16_t)(i * 40503));
			test_fix_ip4(frame + l3);
		}
		memcpy(want, frame, len);
		set_tos(want, l3, family, (uint8_t)(i >> 8));
		if (family == 4)
			test_fix_ip4(want + l3);
		o = wire_outer(frame, len);
		wire_outer_set_tos(frame, &o, (uint8_t)(i >> 8));
		assert_memory_equal(frame, want, len);
		assert_int_equal(o.tos, (uint8_t)(i >> 8));
		assert_memory_equal(&o, &(struct wire_outer[]){wire_outer(frame, len)}, sizeof(o));
	}
}

static void mark(void **state)
{
	(void)state;
	for (int family = 4; family <= 6; family += 2)
		for (unsigned ecn = 0; ecn < 4; ecn++) {
			uint8_t frame[CAP], want[CAP];
			size_t len = tagged(frame, family, 1);
			struct wire_outer o;

			set_tos(frame, 18, family, (uint8_t)(0x68 | ecn));
			if (family == 4)
				test_fix_ip4(frame + 18);
			memcpy(want, frame, len);
			if (ecn != IP_ECN_NOT_ECT)
				set_tos(want, 18, family, 0x68 | IP_ECN_CE);
			if (family == 4)
				test_fix_ip4(want + 18);
			o = wire_outer(frame, len);
			assert_int_equal(wire_outer_mark(frame, &o), ecn != IP_ECN_NOT_ECT);
			assert_memory_equal(frame, want, len);
		}
}

/* A checksum that was wrong does not become right. */
static void wrong_stays_wrong(void **state)
{
	uint8_t frame[CAP];
	size_t len = tagged(frame, 4, 0);
	struct wire_outer o = wire_outer(frame, len);

	uint16_t wrong;

	(void)state;
	frame[14 + 10] ^= 0x20;
	wrong = ip_sum(frame + 14, 20, 0);
	assert_int_not_equal(wrong, 0xffff);
	assert_true(wire_outer_mark(frame, &o));
	wire_outer_cut(frame, &o, 128);
	assert_int_equal(ip_sum(frame + 14, 20, 0), wrong);
}

static void cut(void **state)
{
	(void)state;
	for (int family = 4; family <= 6; family += 2)
		for (size_t keep = 80; keep < 300; keep++) {
			uint8_t frame[CAP], want[CAP];
			size_t len = tagged(frame, family, 1);
			struct wire_outer o = wire_outer(frame, len);

			memcpy(want, frame, len);
			put_be16(want + 18 + (family == 4 ? 2 : 4),
				(uint16_t)(keep - 18 - (family == 4 ? 0 : 40)));
			if (family == 4)
				test_fix_ip4(want + 18);
			wire_outer_cut(frame, &o, keep);
			assert_memory_equal(frame, want, len);
		}
}

int run_outer_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found),
		cmocka_unit_test(not_found),
		cmocka_unit_test(tos),
		cmocka_unit_test(mark),
		cmocka_unit_test(wrong_stays_wrong),
		cmocka_unit_test(cut),
	};

	return cmocka_run_group_tests_name("outer", tests, NULL, NULL);
}
