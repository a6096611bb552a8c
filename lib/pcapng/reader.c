/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/pcapng/reader.h"

#include <byteswap.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/pcapng/layout.h"

enum {
	PCAP_HEADER = 24,
	PCAP_RECORD = 16,
	PCAP_MICRO = (int)0xa1b2c3d4,
	PCAP_NANO = (int)0xa1b23c4d,
	LINK_MASK = 0xffff, /* the upper half says of an FCS */
	MICROSECONDS = 6,
	NANO_PER_SECOND = 1000000000,
};

static int bad(struct pcap_reader *r, size_t at, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int bad(struct pcap_reader *r, size_t at, const char *fmt, ...)
{
	va_list ap;

	r->bad_at = at;
	va_start(ap, fmt);
	vsnprintf(r->bad, sizeof(r->bad), fmt, ap);
	va_end(ap);
	return -EPROTO;
}

static uint32_t get32(const struct pcap_reader *r, size_t at)
{
	uint32_t v;

	memcpy(&v, r->data + at, sizeof(v));
	return r->swapped ? bswap_32(v) : v;
}

static uint16_t get16(const struct pcap_reader *r, size_t at)
{
	uint16_t v;

	memcpy(&v, r->data + at, sizeof(v));
	return r->swapped ? bswap_16(v) : v;
}

/* ---- classic ---- */

/* False: the file does not begin so. */
static bool is_classic(struct pcap_reader *r)
{
	uint32_t magic;

	memcpy(&magic, r->data, sizeof(magic));
	r->swapped =
		magic == bswap_32((uint32_t)PCAP_MICRO) || magic == bswap_32((uint32_t)PCAP_NANO);
	magic = get32(r, 0);
	r->nano = magic == (uint32_t)PCAP_NANO;
	return r->nano || magic == (uint32_t)PCAP_MICRO;
}

static int open_classic(struct pcap_reader *r)
{
	if (r->len < PCAP_HEADER)
		return bad(r, r->len, "the file ends inside its header of %d bytes", PCAP_HEADER);
	if ((get32(r, 20) & LINK_MASK) != LINK_ETHERNET)
		return bad(r, 20, "link type %u is not Ethernet", get32(r, 20) & LINK_MASK);
	r->classic = true;
	r->at = PCAP_HEADER;
	r->n = 1;
	r->interface[0] = (struct pcap_interface){.snaplen = get32(r, 16)};
	return 0;
}

static int next_classic(struct pcap_reader *r, struct pcap_frame *f)
{
	const size_t at = r->at;
	uint32_t fraction;

	if (at == r->len)
		return 0;
	if (r->len - at < PCAP_RECORD)
		return bad(
			r, at, "the file ends inside a packet's header of %d bytes", PCAP_RECORD);
	fraction = get32(r, at + 4);
	*f = (struct pcap_frame){.offset = at,
		.cap = get32(r, at + 8),
		.len = get32(r, at + 12),
		.data = r->data + at + PCAP_RECORD};
	if (fraction >= (r->nano ? NANO_PER_SECOND : NANO_PER_SECOND / 1000))
		return bad(r, at + 4, "%u is no part of a second", fraction);
	if (f->cap > PCAP_MAX_CAP)
		return bad(
			r, at + 8, "a packet of %u bytes, the limit is %d", f->cap, PCAP_MAX_CAP);
	if (f->cap > r->len - at - PCAP_RECORD)
		return bad(r, at + 8, "a packet of %u bytes, the file has %zu", f->cap,
			r->len - at - PCAP_RECORD);
	if (f->len < f->cap)
		return bad(r, at + 12, "%u bytes of a packet of %u", f->cap, f->len);
	f->ns = get32(r, at) * (uint64_t)NANO_PER_SECOND + fraction * (r->nano ? 1ull : 1000ull);
	r->at = at + PCAP_RECORD + f->cap;
	return 1;
}

/* ---- blocks ---- */

struct options {
	struct pcap_text name, comment;
	uint8_t resolution;
	uint32_t flags;
};

/* One option of a block of this type; len has been checked. */
static int take_option(struct pcap_reader *r, uint32_t type, uint16_t code, size_t at, uint16_t len,
	struct options *o)
{
	const struct pcap_text text = {(const char *)r->data + at, len};

	if (code == OPT_COMMENT && type == BLOCK_PACKET)
		o->comment = text;
	if (code == OPT_IF_NAME && type == BLOCK_INTERFACE)
		o->name = text;
	if (code == OPT_IF_TSRESOL && type == BLOCK_INTERFACE) {
		if (len != 1)
			return bad(r, at, "if_tsresol of %u bytes, not 1", len);
		o->resolution = r->data[at];
	}
	if (code == OPT_EPB_FLAGS && type == BLOCK_PACKET) {
		if (len != 4)
			return bad(r, at, "epb_flags of %u bytes, not 4", len);
		o->flags = get32(r, at);
	}
	return 0;
}

static int take_options(
	struct pcap_reader *r, uint32_t type, size_t at, size_t end, struct options *o)
{
	*o = (struct options){.resolution = MICROSECONDS};
	while (at < end) {
		uint16_t code, len;
		int rc;

		if (end - at < 4)
			return bad(r, at, "an option of 4 bytes at least, the block has %zu",
				end - at);
		code = get16(r, at);
		len = get16(r, at + 2);
		if (code == OPT_END)
			return 0;
		if (len > end - at - 4)
			return bad(r, at, "an option of %u bytes, the block has %zu", len,
				end - at - 4);
		rc = take_option(r, type, code, at + 4, len, o);
		if (rc)
			return rc;
		at += 4 + ((len + 3u) & ~3u);
	}
	return 0;
}

/* The block at r->at: its byte order, if it is a section, and its length. */
static int take_frame(struct pcap_reader *r, uint32_t *type, uint32_t *len)
{
	const size_t at = r->at, left = r->len - at;
	uint32_t magic;

	if (left < BLOCK_FRAME)
		return bad(r, at, "a block has %d bytes at least, the file %zu", BLOCK_FRAME, left);
	*type = get32(r, at);
	if (*type == BLOCK_SECTION) { /* reads the same either way */
		memcpy(&magic, r->data + at + 8, sizeof(magic));
		if (magic != BYTE_ORDER_MAGIC && magic != bswap_32(BYTE_ORDER_MAGIC))
			return bad(r, at + 8, "%08x is no byte order", magic);
		r->swapped = magic != BYTE_ORDER_MAGIC;
	}
	*len = get32(r, at + 4);
	if (*len < BLOCK_FRAME || *len % 4)
		return bad(r, at + 4, "a block of %u bytes", *len);
	if (*len > left)
		return bad(r, at + 4, "a block of %u bytes, the file has %zu", *len, left);
	if (get32(r, at + *len - 4) != *len)
		return bad(r, at + *len - 4, "a block of %u bytes that ends as one of %u", *len,
			get32(r, at + *len - 4));
	return 0;
}

static int too_short(struct pcap_reader *r, uint32_t len, uint32_t least)
{
	return bad(r, r->at + 4, "a block of %u bytes, its type has %u at least", len, least);
}

static int take_section(struct pcap_reader *r, uint32_t len)
{
	if (len < BLOCK_FRAME + SECTION_LEN)
		return too_short(r, len, BLOCK_FRAME + SECTION_LEN);
	if (get16(r, r->at + 12) != 1)
		return bad(r, r->at + 12, "version %u of pcapng is not 1", get16(r, r->at + 12));
	r->first = r->n;
	return 0;
}

static int take_interface(struct pcap_reader *r, uint32_t len)
{
	const size_t body = r->at + 8;
	struct options o;
	int rc;

	if (len < BLOCK_FRAME + INTERFACE_LEN)
		return too_short(r, len, BLOCK_FRAME + INTERFACE_LEN);
	if (get16(r, body) != LINK_ETHERNET)
		return bad(r, body, "link type %u is not Ethernet", get16(r, body));
	if (r->n == PCAP_MAX_INTERFACES)
		return bad(r, r->at, "more than %d interfaces", PCAP_MAX_INTERFACES);
	rc = take_options(r, BLOCK_INTERFACE, body + INTERFACE_LEN, r->at + len - 4, &o);
	if (rc)
		return rc;
	if ((o.resolution & 0x80) ? (o.resolution & 0x7f) > 63 : o.resolution > 19)
		return bad(r, body, "if_tsresol %u: times are not that fine", o.resolution);
	r->interface[r->n++] = (struct pcap_interface){
		.name = o.name, .resolution = o.resolution, .snaplen = get32(r, body + 4)};
	return 0;
}

/* Any resolution to nanoseconds; what is later than they can tell is the last that they can. */
static uint64_t to_ns(uint64_t t, uint8_t resolution)
{
	unsigned __int128 per_second = 1, ns;

	if (resolution & 0x80)
		per_second <<= resolution & 0x7f;
	else
		for (unsigned i = 0; i < resolution; i++)
			per_second *= 10;
	ns = (unsigned __int128)t * NANO_PER_SECOND / per_second;
	return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

static int take_packet(struct pcap_reader *r, uint32_t len, struct pcap_frame *f)
{
	const size_t body = r->at + 8, end = r->at + len - 4;
	struct options o;
	uint32_t number;
	int rc;

	if (len < BLOCK_FRAME + PACKET_LEN)
		return too_short(r, len, BLOCK_FRAME + PACKET_LEN);
	number = get32(r, body);
	if (number >= r->n - r->first)
		return bad(r, body, "interface %u, the section has %u", number, r->n - r->first);
	*f = (struct pcap_frame){.offset = r->at,
		.interface = r->first + number,
		.cap = get32(r, body + 12),
		.len = get32(r, body + 16),
		.data = r->data + body + PACKET_LEN};
	if (f->cap > PCAP_MAX_CAP)
		return bad(r, body + 12, "a packet of %u bytes, the limit is %d", f->cap,
			PCAP_MAX_CAP);
	if (f->cap > end - body - PACKET_LEN)
		return bad(r, body + 12, "a packet of %u bytes, the block has %zu", f->cap,
			end - body - PACKET_LEN);
	if (f->len < f->cap)
		return bad(r, body + 16, "%u bytes of a packet of %u", f->cap, f->len);
	f->ns = to_ns((uint64_t)get32(r, body + 4) << 32 | get32(r, body + 8),
		r->interface[f->interface].resolution);
	rc = take_options(r, BLOCK_PACKET, body + PACKET_LEN + ((f->cap + 3) & ~3u), end, &o);
	f->direction = o.flags & 3;
	f->comment = o.comment;
	return rc ? rc : 1;
}

/* Without a time or options, at the section's first interface. */
static int take_simple(struct pcap_reader *r, uint32_t len, struct pcap_frame *f)
{
	const size_t body = r->at + 8;
	uint32_t snaplen;

	if (len < BLOCK_FRAME + SIMPLE_LEN)
		return too_short(r, len, BLOCK_FRAME + SIMPLE_LEN);
	if (r->n == r->first)
		return bad(r, r->at, "a packet of a section without interfaces");
	snaplen = r->interface[r->first].snaplen;
	*f = (struct pcap_frame){.offset = r->at,
		.interface = r->first,
		.len = get32(r, body),
		.data = r->data + body + SIMPLE_LEN};
	f->cap = snaplen && snaplen < f->len ? snaplen : f->len;
	if (f->cap > len - BLOCK_FRAME - SIMPLE_LEN || f->cap > PCAP_MAX_CAP)
		return bad(r, body, "a packet of %u bytes, the block has %u", f->cap,
			(unsigned)(len - BLOCK_FRAME - SIMPLE_LEN));
	return 1;
}

/* ---- files ---- */

int pcap_open(struct pcap_reader *r, const void *data, size_t len)
{
	uint32_t type, block;
	int rc;

	memset(r, 0, sizeof(*r));
	r->data = data;
	r->len = len;
	if (len < sizeof(uint32_t))
		return bad(r, 0, "%zu bytes are no capture", len);
	if (is_classic(r))
		return open_classic(r);
	r->swapped = false;
	if (get32(r, 0) != BLOCK_SECTION)
		return bad(r, 0, "begins as neither pcap nor pcapng");
	rc = take_frame(r, &type, &block);
	return rc ? rc : take_section(r, block);
}

int pcap_next(struct pcap_reader *r, struct pcap_frame *f)
{
	int rc = 0;

	if (r->classic)
		return next_classic(r, f);
	while (!rc && r->at < r->len) {
		uint32_t type, len;

		rc = take_frame(r, &type, &len);
		if (rc)
			return rc;
		if (type == BLOCK_SECTION)
			rc = take_section(r, len);
		else if (type == BLOCK_INTERFACE)
			rc = take_interface(r, len);
		else if (type == BLOCK_PACKET)
			rc = take_packet(r, len, f);
		else if (type == BLOCK_SIMPLE)
			rc = take_simple(r, len, f);
		if (rc >= 0)
			r->at += len;
	}
	return rc;
}
