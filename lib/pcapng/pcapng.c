/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/pcapng/pcapng.h"

#include <string.h>

#include "lib/pcapng/layout.h"

enum { NANOSECONDS = 9, MAX_TEXT = 1000 };

/* The options of a block: so many, and all of their bytes. */
struct option {
	uint16_t code, len;
	const void *value;
};

static const uint8_t zeros[4];

static uint32_t padded(uint32_t len)
{
	return (len + 3) & ~3u;
}

static struct option text(uint16_t code, const char *value)
{
	return (struct option){code, (uint16_t)strnlen(value, MAX_TEXT), value};
}

static void put(FILE *out, const void *data, uint32_t len)
{
	fwrite(data, 1, len, out);
	fwrite(zeros, 1, padded(len) - len, out);
}

/* Without options there is no end of options either. */
static uint32_t options_len(const struct option *options, unsigned n)
{
	uint32_t len = n ? 4 : 0;

	for (unsigned i = 0; i < n; i++)
		len += 4 + padded(options[i].len);
	return len;
}

/* A block of a fixed part, data of any length (or NULL) and options. */
static size_t put_block(FILE *out, uint32_t type, const void *fixed, uint32_t fixed_len,
	const void *data, uint32_t data_len, const struct option *options, unsigned n)
{
	const uint32_t len = BLOCK_FRAME + fixed_len + padded(data_len) + options_len(options, n);
	const uint32_t head[2] = {type, len};
	const uint16_t end[2] = {OPT_END, 0};

	fwrite(head, sizeof(head), 1, out);
	put(out, fixed, fixed_len);
	if (data_len)
		put(out, data, data_len);
	for (unsigned i = 0; i < n; i++) {
		const uint16_t of[2] = {options[i].code, options[i].len};

		fwrite(of, sizeof(of), 1, out);
		put(out, options[i].value, options[i].len);
	}
	if (n)
		fwrite(end, sizeof(end), 1, out);
	fwrite(&len, sizeof(len), 1, out);
	return len;
}

size_t pcapng_section(FILE *out, const char *application)
{
	const struct {
		uint32_t magic;
		uint16_t major, minor;
		uint32_t len[2]; /* not given */
	} body = {BYTE_ORDER_MAGIC, 1, 0, {UINT32_MAX, UINT32_MAX}};
	const struct option name = text(OPT_USER_APPL, application ? application : "");

	return put_block(
		out, BLOCK_SECTION, &body, sizeof(body), NULL, 0, &name, application ? 1 : 0);
}

size_t pcapng_interface(FILE *out, const char *name, uint32_t snaplen, const char *filter)
{
	const struct {
		uint16_t type, reserved;
		uint32_t snap_len;
	} body = {LINK_ETHERNET, 0, snaplen};
	const uint8_t resolution = NANOSECONDS;
	char expression[1 + MAX_TEXT] = ""; /* after a byte that says: an expression of libpcap's */
	struct option options[3] = {text(OPT_IF_NAME, name), {OPT_IF_TSRESOL, 1, &resolution}, {0}};
	const size_t len = filter ? strnlen(filter, MAX_TEXT) : 0;

	if (filter) {
		memcpy(expression + 1, filter, len);
		options[2] = (struct option){OPT_IF_FILTER, (uint16_t)(1 + len), expression};
	}
	return put_block(
		out, BLOCK_INTERFACE, &body, sizeof(body), NULL, 0, options, filter ? 3 : 2);
}

size_t pcapng_packet(FILE *out, const struct pcapng_packet *p)
{
	const uint32_t body[5] = {
		p->interface, (uint32_t)(p->ns >> 32), (uint32_t)p->ns, p->cap, p->len};
	const uint32_t flags = p->direction;
	struct option options[2];
	unsigned n = 0;

	if (p->direction)
		options[n++] = (struct option){OPT_EPB_FLAGS, sizeof(flags), &flags};
	if (p->comment)
		options[n++] = text(OPT_COMMENT, p->comment);
	return put_block(out, BLOCK_PACKET, body, sizeof(body), p->data, p->cap, options, n);
}

size_t pcapng_statistics(
	FILE *out, uint32_t interface, uint64_t ns, uint64_t received, uint64_t dropped)
{
	const uint32_t body[3] = {interface, (uint32_t)(ns >> 32), (uint32_t)ns};
	const struct option options[2] = {{OPT_ISB_IFRECV, sizeof(received), &received},
		{OPT_ISB_IFDROP, sizeof(dropped), &dropped}};

	return put_block(out, BLOCK_STATISTICS, body, sizeof(body), NULL, 0, options, 2);
}
