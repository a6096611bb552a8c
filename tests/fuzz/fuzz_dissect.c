/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures: any bytes are dissected, or refused with an offset within the file and a reason. The
 * first byte of an input says whether it is a file, or a frame to be put into one. */
#include <string.h>

#include "apps/dissect.h"
#include "lib/wire/frame.h"
#include "tests/fuzz/fuzz.h"

enum { BLOCK = (int)0xfcbbbb00 };

static void whole_file(const void *data, size_t len)
{
	static struct pcap_reader r;
	char err[DISSECT_ERR];
	json_t *result = dissect_file(data, len, (uint32_t)BLOCK, err);
	struct pcap_frame f;
	size_t at = 0, n = 0;
	int rc = pcap_open(&r, data, len);

	while (!rc && (rc = pcap_next(&r, &f)) > 0) {
		const uint8_t *begin = data;

		fuzz_check(f.data >= begin && f.cap <= len - (size_t)(f.data - begin),
			"frames are in the file");
		fuzz_check(f.offset >= at, "frames come in their order");
		fuzz_check(f.interface < r.n && f.cap <= f.len, "an interface, and a length");
		at = f.offset;
		n++;
		rc = 0;
	}
	fuzz_check(!rc == !!result, "both read it, or neither");
	if (rc)
		fuzz_check(r.bad_at <= len && r.bad[0], "where and why");
	else
		fuzz_check(json_integer_value(json_object_get(result, "frames")) == (json_int_t)n,
			"each frame counts");
	if (result) {
		FILE *out = fopen("/dev/null", "w");

		dissect_text(out, result);
		fclose(out);
	}
	json_decref(result);
}

/* As two packets of a capture, the second cut off. */
static void as_frame(const uint8_t *data, size_t len)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);
	struct pcapng_packet p = {.len = (uint32_t)len, .cap = (uint32_t)len, .data = data};

	pcapng_section(out, "fuzz");
	pcapng_interface(out, "p0", 0, NULL);
	pcapng_packet(out, &p);
	p.cap = p.len / 2;
	p.direction = PCAPNG_OUT;
	p.comment = "half";
	pcapng_packet(out, &p);
	pcapng_statistics(out, 0, 1, 2, 3);
	fclose(out);
	whole_file(text, n);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t classic[] = {0xd4, 0xc3, 0xb2, 0xa1}, section[] = {0x0a, 0x0d};

	if (size >= 4 && (!memcmp(data, classic, 4) || !memcmp(data, section, 2)))
		whole_file(data, size);
	else if (size <= UINT16_MAX)
		as_frame(data, size);
	return 0;
}

/* A pcapng of two interfaces with everything in it. */
size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	const uint8_t frame[] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45};
	const struct pcapng_packet p = {.interface = 1,
		.ns = 1234567890123456789,
		.len = 100,
		.cap = sizeof(frame),
		.data = frame,
		.direction = PCAPNG_IN,
		.comment = "drop ip_ttl"};
	FILE *file = i == 0 ? fmemopen(out, cap, "wb") : NULL;
	size_t n;

	if (!file)
		return 0;
	n = pcapng_section(file, "fuzz");
	n += pcapng_interface(file, "p0", 64, "udp");
	n += pcapng_interface(file, "p1", 0, NULL);
	n += pcapng_packet(file, &p);
	n += pcapng_statistics(file, 1, 2, 3, 4);
	fclose(file);
	return n;
}
