/* SPDX-License-Identifier: BSD-3-Clause */
/* LLDP: the layout byte by byte, what is built is read as it was meant, each reason to refuse. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs the above first */
#include <cmocka.h>

#include "lib/wire/bytes.h"
#include "lib/wire/frame.h"
#include "lib/wire/lldp.h"

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 7};

/* Of a switch named leaf0, by its port p3. */
static const uint8_t whole[] = {0x01, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 7, 0x88, 0xcc, /* */
	0x02, 7, 4, 2, 0, 0, 0, 0, 1,                                                       /* */
	0x04, 3, 5, 'p', '3',                                                               /* */
	0x06, 2, 0, 121,                                                                    /* */
	0x0a, 5, 'l', 'e', 'a', 'f', '0',                                                   /* */
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

static struct wire_lldp of_leaf0(void)
{
	return (struct wire_lldp){.chassis = {LLDP_CHASSIS_MAC, 6, {2, 0, 0, 0, 0, 1}},
		.port = {LLDP_PORT_INTERFACE, 2, "p3"},
		.name_len = 5,
		.name = "leaf0",
		.ttl = 121};
}

/* A copy of exactly len bytes, so that ASan sees a read past the end. */
static enum wire_lldp_error parse(const uint8_t *frame, size_t len, struct wire_lldp *says)
{
	uint8_t *copy = malloc(len);
	enum wire_lldp_error error;

	memcpy(copy, frame, len);
	error = wire_lldp_parse(copy, len, says);
	free(copy);
	return error;
}

/* The TLVs behind the Ethernet header. */
static enum wire_lldp_error read_tlvs(const void *tlvs, size_t len, struct wire_lldp *says)
{
	uint8_t frame[2048] = {0};

	memcpy(frame, whole, ETH_HDR_LEN);
	memcpy(frame + ETH_HDR_LEN, tlvs, len);
	return parse(frame, ETH_HDR_LEN + len, says);
}

static void layout(void **state)
{
	struct wire_lldp says = of_leaf0(), got;
	const size_t type = ETH_HDR_LEN - 2; /* where that is */
	uint8_t b[LLDP_MAX_LEN];

	(void)state;
	assert_int_equal(sizeof(whole), ETH_MIN_LEN);
	assert_int_equal(wire_build_lldp(b, sizeof(b), mac, &says), sizeof(whole));
	assert_memory_equal(b, whole, sizeof(whole));
	assert_int_equal(wire_build_lldp(b, sizeof(whole), mac, &says), sizeof(whole));
	assert_int_equal(wire_build_lldp(b, sizeof(whole) - 1, mac, &says), -ENOSPC);
	assert_true(wire_is_lldp(b, sizeof(whole)));
	assert_int_equal(parse(b, sizeof(whole), &got), WIRE_LLDP_OK);
	assert_memory_equal(&got, &says, sizeof(got));
	/* To anybody else, of another type, tagged. */
	b[5] = 0;
	assert_false(wire_is_lldp(b, sizeof(whole)));
	b[5] = 0x0e;
	b[13] = 0xcd;
	assert_false(wire_is_lldp(b, sizeof(whole)));
	memcpy(b, whole, type);
	memcpy(b + type, "\x81\0\0\x07", VLAN_HDR_LEN);
	memcpy(b + type + VLAN_HDR_LEN, whole + type, sizeof(whole) - type - VLAN_HDR_LEN);
	assert_false(wire_is_lldp(b, sizeof(whole)));
	assert_false(wire_is_lldp(whole, ETH_HDR_LEN - 1));
}

/* The longest that there is, and what is not built. */
static void limits(void **state)
{
	struct wire_lldp says = of_leaf0(), got;
	uint8_t b[LLDP_MAX_LEN];
	int len;

	(void)state;
	says.chassis.type = 7;
	says.chassis.len = says.port.len = says.name_len = LLDP_ID_MAX;
	memset(says.chassis.b, 'c', LLDP_ID_MAX);
	memset(says.port.b, 'p', LLDP_ID_MAX);
	memset(says.name, 'n', LLDP_ID_MAX);
	len = wire_build_lldp(b, sizeof(b), mac, &says);
	assert_true(len > 3 * LLDP_ID_MAX && len <= LLDP_MAX_LEN);
	assert_int_equal(parse(b, (size_t)len, &got), WIRE_LLDP_OK);
	assert_memory_equal(&got, &says, sizeof(got));
	assert_int_equal(wire_build_lldp(b, (size_t)len, mac, &says), len);
	assert_int_equal(wire_build_lldp(b, (size_t)len - 1, mac, &says), -ENOSPC);
	says.chassis.type = LLDP_CHASSIS_MAC;
	assert_int_equal(wire_build_lldp(b, sizeof(b), mac, &says), -EINVAL);
	says.chassis.type = 8;
	assert_int_equal(wire_build_lldp(b, sizeof(b), mac, &says), -EINVAL);
	says = of_leaf0();
	says.port.len = 0;
	assert_int_equal(wire_build_lldp(b, sizeof(b), mac, &says), -EINVAL);
}

#define CHASSIS "\x02\x07\x04\x02\0\0\0\0\x01"
#define PORT "\x04\x03\x05p3"
#define TTL "\x06\x02\0\x79"
#define END "\0\0"

static void refused(void **state)
{
	static const struct {
		enum wire_lldp_error error;
		const char *tlvs;
		size_t len;
	} cases[] = {
#define C(error, tlvs) {WIRE_LLDP_##error, tlvs, sizeof(tlvs) - 1}
		C(OK, CHASSIS PORT TTL END),
		C(OK, CHASSIS PORT TTL),
		C(OK, CHASSIS PORT TTL END "behind it"),
		/* More of the time, other TLVs, a name twice. */
		C(OK, CHASSIS PORT "\x06\x04\0\x79xx" END),
		C(OK, CHASSIS PORT TTL "\xfe\x04\0\x12\x0f\x01\x0a\x01q\x0a\x01r" END),
		C(TLV, CHASSIS PORT TTL "\0\x01x"),
		C(TLV, CHASSIS PORT TTL "\x0a"),
		C(TLV, CHASSIS PORT TTL "\x0a\x03zz"),
		C(TLV, CHASSIS PORT "\x07\xff\0\x79"),
		C(ORDER, END),
		C(ORDER, CHASSIS),
		C(ORDER, CHASSIS PORT END),
		C(ORDER, PORT CHASSIS TTL END),
		C(ORDER, CHASSIS TTL PORT END),
		C(ORDER, CHASSIS CHASSIS PORT TTL END),
		C(ORDER, CHASSIS PORT TTL TTL END),
		C(ORDER, CHASSIS PORT TTL PORT END),
		C(ORDER, "\x0a\x01q" CHASSIS PORT TTL END),
		C(ID, "\x02\0" PORT TTL END),
		C(ID, "\x02\x01\x07" PORT TTL END),
		C(ID, "\x02\x02\0q" PORT TTL END),
		C(ID, "\x02\x02\x08q" PORT TTL END),
		C(ID, "\x02\x06\x04\x02\0\0\0\0" PORT TTL END),
		C(ID, CHASSIS "\x04\x04\x03"
			      "abc" TTL END),
		C(ID, CHASSIS "\x04\x01\x05" TTL END),
		C(TTL, CHASSIS PORT "\x06\x01\x79" END),
		C(TTL, CHASSIS PORT "\x06\0" END),
#undef C
	};
	uint8_t tlvs[1024] = {0x03, 0x01, 7};
	struct wire_lldp says;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (read_tlvs(cases[i].tlvs, cases[i].len, &says) != cases[i].error)
			fail_msg("case %zu: %d", i, read_tlvs(cases[i].tlvs, cases[i].len, &says));
	/* An id of 256 bytes; and no frame at all behind the header. */
	memset(tlvs + 3, 'c', 256);
	assert_int_equal(read_tlvs(tlvs, 600, &says), WIRE_LLDP_ID);
	assert_int_equal(read_tlvs(tlvs, 0, &says), WIRE_LLDP_ORDER);
	assert_int_equal(read_tlvs(CHASSIS PORT TTL "\x0a\x01q\x0a\x01r", 24, &says), WIRE_LLDP_OK);
	assert_true(says.name_len == 1 && says.name[0] == 'q');
}

/* A frame that ends anywhere before its last TLV says nothing. */
static void cut(void **state)
{
	struct wire_lldp says;

	(void)state;
	for (size_t len = ETH_HDR_LEN; len < ETH_HDR_LEN + 9 + 5 + 4; len++)
		assert_int_not_equal(parse(whole, len, &says), WIRE_LLDP_OK);
}

static void expect_chassis(const struct wire_lldp_id *id, const char *text)
{
	char buf[32];

	assert_string_equal(wire_lldp_chassis_text(id, buf, sizeof(buf)), text);
}

static void texts(void **state)
{
	struct wire_lldp says = of_leaf0();
	struct wire_lldp_id id = says.chassis, other = id;
	char buf[32];

	(void)state;
	expect_chassis(&id, "02:00:00:00:00:01");
	expect_chassis(&(struct wire_lldp_id){5, 5, {1, 10, 0, 0, 7}}, "10.0.0.7");
	expect_chassis(&(struct wire_lldp_id){5, 17, {2, 0xfd, [16] = 9}}, "fd00::9");
	expect_chassis(&(struct wire_lldp_id){5, 4, {1, 10, 0, 0}}, "0x010a0000");
	expect_chassis(&(struct wire_lldp_id){7, 6, "rack 1"}, "rack 1");
	expect_chassis(&(struct wire_lldp_id){7, 3, "a\nb"}, "0x610a62");
	assert_string_equal(wire_lldp_port_text(&says.port, buf, sizeof(buf)), "p3");
	id.type = LLDP_PORT_MAC;
	assert_string_equal(wire_lldp_port_text(&id, buf, sizeof(buf)), "02:00:00:00:00:01");
	assert_string_equal(wire_lldp_name_text(&says, buf, sizeof(buf)), "leaf0");
	says.name_len = 0;
	assert_string_equal(wire_lldp_name_text(&says, buf, sizeof(buf)), "");
	/* What does not fit is cut off. */
	says.name_len = LLDP_ID_MAX;
	memset(says.name, 'n', LLDP_ID_MAX);
	assert_int_equal(strlen(wire_lldp_name_text(&says, buf, sizeof(buf))), sizeof(buf) - 1);
	says.name[9] = 0;
	assert_true(strlen(wire_lldp_name_text(&says, buf, sizeof(buf))) < sizeof(buf));
	assert_false(wire_lldp_id_eq(&id, &other));
	other.type = LLDP_PORT_MAC;
	assert_true(wire_lldp_id_eq(&id, &other));
	other.b[5]++;
	assert_false(wire_lldp_id_eq(&id, &other));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layout),
		cmocka_unit_test(limits),
		cmocka_unit_test(refused),
		cmocka_unit_test(cut),
		cmocka_unit_test(texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
