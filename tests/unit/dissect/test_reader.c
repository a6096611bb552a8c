/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of captures: what is written is read again, in every byte order; what is malformed is
 * refused by its offset and a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/pcapng/reader.h"

static struct pcap_reader r;

struct file {
	uint8_t b[4096];
	size_t len;
};

static void put32(struct file *f, uint32_t v, bool swapped)
{
	v = swapped ? __builtin_bswap32(v) : v;
	memcpy(f->b + f->len, &v, 4);
	f->len += 4;
}

/* In an allocation of its own, so that a sanitizer sees every overrun. */
static int open_file(const struct file *f, uint8_t **copy)
{
	*copy = malloc(f->len + !f->len);
	memcpy(*copy, f->b, f->len);
	return pcap_open(&r, *copy, f->len);
}

static void expect_bad(const struct file *f, size_t at, const char *why)
{
	struct pcap_frame frame;
	uint8_t *copy;
	int rc = open_file(f, &copy);

	while (rc == 0 && (rc = pcap_next(&r, &frame)) > 0)
		rc = 0;
	assert_int_equal(rc, -EPROTO);
	assert_string_equal(r.bad, why);
	assert_int_equal(r.bad_at, at);
	free(copy);
}

/* ---- classic ---- */

static struct file classic(uint32_t magic, bool swapped)
{
	struct file f = {.len = 0};

	put32(&f, magic, swapped);
	put32(&f, 2 | 4 << 16, false);
	put32(&f, 0, swapped);
	put32(&f, 0, swapped);
	put32(&f, 65535, swapped);
	put32(&f, 1, swapped);
	put32(&f, 1700000000, swapped);
	put32(&f, 123456, swapped);
	put32(&f, 5, swapped);
	put32(&f, 60, swapped);
	memcpy(f.b + f.len, "hello", 5);
	f.len += 5;
	return f;
}

static void test_classic(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		const bool nano = i & 1, swapped = i & 2;
		const struct file f = classic(nano ? 0xa1b23c4d : 0xa1b2c3d4, swapped);
		struct pcap_frame frame;
		uint8_t *copy;

		assert_int_equal(open_file(&f, &copy), 0);
		assert_int_equal(pcap_next(&r, &frame), 1);
		assert_int_equal(frame.ns, 1700000000000000000 + (nano ? 123456 : 123456000));
		assert_int_equal(frame.offset, 24);
		assert_int_equal(frame.len, 60);
		assert_int_equal(frame.cap, 5);
		assert_memory_equal(frame.data, "hello", 5);
		assert_int_equal(pcap_next(&r, &frame), 0);
		free(copy);
	}
}

static void test_classic_bad(void **state)
{
	const struct file good = classic(0xa1b2c3d4, false);
	struct file f = good;

	(void)state;
	f.len = 3;
	expect_bad(&f, 0, "3 bytes are no capture");
	f.len = 20;
	expect_bad(&f, 20, "the file ends inside its header of 24 bytes");
	f = good;
	f.b[20] = 113;
	expect_bad(&f, 20, "link type 113 is not Ethernet");
	f = good;
	f.len = 30;
	expect_bad(&f, 24, "the file ends inside a packet's header of 16 bytes");
	f = good;
	f.len--;
	expect_bad(&f, 32, "a packet of 5 bytes, the file has 4");
	f = good;
	f.b[35] = 0xff;
	expect_bad(&f, 32, "a packet of 4278190085 bytes, the limit is 262144");
	f = good;
	f.b[36] = 4;
	expect_bad(&f, 36, "5 bytes of a packet of 4");
	f = good;
	f.b[31] = 1;
	expect_bad(&f, 28, "16900672 is no part of a second");
	f.b[0] = 0;
	expect_bad(&f, 0, "begins as neither pcap nor pcapng");
}

/* ---- pcapng ---- */

static struct file written(void)
{
	const struct pcapng_packet p = {.interface = 1,
		.ns = 1700000000123456789,
		.len = 99,
		.cap = 5,
		.data = (const uint8_t *)"hello",
		.direction = PCAPNG_OUT,
		.comment = "drop ip_ttl"};
	struct pcapng_packet plain = p;
	struct file f = {.len = 0};
	FILE *out = fmemopen(f.b, sizeof(f.b), "wb");

	plain.comment = NULL;
	plain.direction = PCAPNG_UNKNOWN;
	plain.interface = 0;
	f.len = pcapng_section(out, "a test");
	f.len += pcapng_interface(out, "p0", 0, NULL);
	f.len += pcapng_interface(out, "p1", 96, "udp port 4791");
	f.len += pcapng_packet(out, &p);
	f.len += pcapng_statistics(out, 1, p.ns, 7, 3);
	f.len += pcapng_packet(out, &plain);
	fclose(out);
	return f;
}

static void test_written(void **state)
{
	const struct file f = written();
	struct pcap_frame frame;
	uint8_t *copy;

	(void)state;
	assert_int_equal(open_file(&f, &copy), 0);
	assert_int_equal(pcap_next(&r, &frame), 1);
	assert_int_equal(r.n, 2);
	assert_int_equal(r.interface[1].name.len, 2);
	assert_memory_equal(r.interface[1].name.text, "p1", 2);
	assert_int_equal(r.interface[1].snaplen, 96);
	assert_int_equal(frame.interface, 1);
	assert_int_equal(frame.ns, 1700000000123456789);
	assert_int_equal(frame.len, 99);
	assert_int_equal(frame.cap, 5);
	assert_memory_equal(frame.data, "hello", 5);
	assert_int_equal(frame.direction, PCAPNG_OUT);
	assert_int_equal(frame.comment.len, 11);
	assert_memory_equal(frame.comment.text, "drop ip_ttl", 11);
	assert_int_equal(pcap_next(&r, &frame), 1);
	assert_int_equal(frame.interface, 0);
	assert_int_equal(frame.direction, PCAPNG_UNKNOWN);
	assert_int_equal(frame.comment.len, 0);
	assert_int_equal(pcap_next(&r, &frame), 0);
	free(copy);
}

/* Big-endian, a coarse clock, a simple packet; and a second section of the other order. */
static void test_foreign(void **state)
{
	struct file f = {.len = 0};
	const struct file second = written();
	struct pcap_frame frame;
	uint8_t *copy;

	(void)state;
	put32(&f, 0x0a0d0d0a, true);
	put32(&f, 28, true);
	put32(&f, 0x1a2b3c4d, true);
	put32(&f, 1 << 16, true);
	put32(&f, UINT32_MAX, true);
	put32(&f, UINT32_MAX, true);
	put32(&f, 28, true);
	put32(&f, 1, true);
	put32(&f, 28, true);
	put32(&f, 1 << 16, true);
	put32(&f, 3, true); /* snaplen */
	put32(&f, 9 << 16 | 1, true);
	put32(&f, 0x8a000000, true); /* 2^-10 s */
	put32(&f, 28, true);
	put32(&f, 6, true);
	put32(&f, 36, true);
	put32(&f, 0, true);
	put32(&f, 0, true);
	put32(&f, 1536, true);
	put32(&f, 1, true);
	put32(&f, 1, true);
	put32(&f, 0x41000000, true);
	put32(&f, 36, true);
	put32(&f, 3, true);
	put32(&f, 20, true);
	put32(&f, 9, true);
	put32(&f, 0x61626300, true);
	put32(&f, 20, true);
	memcpy(f.b + f.len, second.b, second.len);
	f.len += second.len;
	assert_int_equal(open_file(&f, &copy), 0);
	assert_int_equal(pcap_next(&r, &frame), 1);
	assert_int_equal(frame.ns, 1500000000);
	assert_int_equal(frame.data[0], 'A');
	assert_int_equal(pcap_next(&r, &frame), 1);
	assert_int_equal(frame.len, 9);
	assert_int_equal(frame.cap, 3);
	assert_memory_equal(frame.data, "abc", 3);
	assert_int_equal(pcap_next(&r, &frame), 1);
	assert_int_equal(frame.interface, 2);
	assert_int_equal(frame.comment.len, 11);
	assert_int_equal(pcap_next(&r, &frame), 1);
	assert_int_equal(pcap_next(&r, &frame), 0);
	free(copy);
}

/* Where the blocks of written() begin. */

static size_t nth_block(const struct file *f, unsigned n)
{
	size_t at = 0;

	while (n-- > 0) {
		uint32_t len;

		memcpy(&len, f->b + at + 4, 4);
		at += len;
	}
	return at;
}

static void test_bad(void **state)
{
	const struct file good = written();
	const size_t interface = nth_block(&good, 1), packet = nth_block(&good, 3);
	struct file f = good;

	(void)state;
	f.len = 8;
	expect_bad(&f, 0, "a block has 12 bytes at least, the file 8");
	f = good;
	f.b[8] = 0;
	expect_bad(&f, 8, "1a2b3c00 is no byte order");
	f = good;
	f.b[12] = 2;
	expect_bad(&f, 12, "version 2 of pcapng is not 1");
	f = good;
	f.b[4]++;
	expect_bad(&f, 4, "a block of 45 bytes");
	f = good;
	f.b[interface + 8] = 113;
	expect_bad(&f, interface + 8, "link type 113 is not Ethernet");
	f = good;
	f.b[packet + 8] = 2;
	expect_bad(&f, packet + 8, "interface 2, the section has 2");
	f = good;
	f.b[packet + 20] = 200;
	expect_bad(&f, packet + 20, "a packet of 200 bytes, the block has 36");
	f = good;
	f.b[packet + 24] = 3;
	expect_bad(&f, packet + 24, "5 bytes of a packet of 3");
	f = good;
	f.b[packet + 36 + 2] = 200; /* the length of the first option */
	expect_bad(&f, packet + 36, "an option of 200 bytes, the block has 24");
	f = good;
	f.b[packet + 36 + 2] = 3;
	expect_bad(&f, packet + 40, "epb_flags of 3 bytes, not 4");
	f = good;
	f.len -= 4;
	const size_t last = nth_block(&good, 5);
	expect_bad(&f, last + 4, "a block of 40 bytes, the file has 36");
	f = good;
	f.b[f.len - 4]++;
	expect_bad(&f, f.len - 4, "a block of 40 bytes that ends as one of 41");
}

/* Every cut of a file is read as far as whole blocks go, and refused there. */
static void test_cut(void **state)
{
	const struct file good = written();

	(void)state;
	for (size_t len = 0; len < good.len; len++) {
		struct file f = good;
		struct pcap_frame frame;
		uint8_t *copy;
		int rc;

		f.len = len;
		rc = open_file(&f, &copy);
		while (rc == 0 && (rc = pcap_next(&r, &frame)) > 0)
			rc = 0;
		if (rc) {
			assert_int_equal(rc, -EPROTO);
			assert_true(r.bad_at <= len && r.bad[0]);
		}
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classic),
		cmocka_unit_test(test_classic_bad),
		cmocka_unit_test(test_written),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
