/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/integration/capture.h"

#include <assert.h>
#include <stdlib.h>

static void write_words(FILE *f, const uint32_t *words, unsigned n)
{
	fwrite(words, sizeof(*words), n, f);
}

FILE *capture_open(const char *path)
{
	const uint32_t head[6] = {0xa1b23c4d, 2 | 4 << 16, 0, 0, CAPTURE_FRAME, 1 /* Ethernet */};
	FILE *f = fopen(path, "wb");

	assert(f);
	write_words(f, head, 6);
	return f;
}

FILE *capture_if_asked(void)
{
	const char *dir = getenv("FABRIC_PCAP");
	static unsigned n;
	char path[512];

	if (!dir)
		return NULL;
	snprintf(path, sizeof(path), "%s/%u.pcap", dir, n++);
	return capture_open(path);
}

void capture_frame(FILE *f, uint64_t now_ns, const uint8_t *frame, size_t len)
{
	const uint32_t head[4] = {(uint32_t)(now_ns / 1000000000), (uint32_t)(now_ns % 1000000000),
		(uint32_t)len, (uint32_t)len};

	write_words(f, head, 4);
	fwrite(frame, 1, len, f);
}
