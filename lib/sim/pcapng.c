/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures: pcapng (draft-ietf-opsawg-pcapng), little-endian or as the machine is: a section, an
 * interface per link with its name and nanoseconds, a packet block per frame. */
#include <errno.h>

#include "lib/sim/priv.h"

enum {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_PACKET = 6,
	BYTE_ORDER_MAGIC = 0x1a2b3c4d,
	LINK_ETHERNET = 1,
	OPT_IF_NAME = 2,
	OPT_IF_TSRESOL = 9,
	NANOSECONDS = 9,
};

static const uint8_t zeros[4];

static void put(FILE *out, const void *data, size_t len)
{
	fwrite(data, 1, len, out);
	fwrite(zeros, 1, -len & 3, out);
}

static void put_option(FILE *out, uint16_t code, const void *value, uint16_t len)
{
	const uint16_t head[2] = {code, len};

	fwrite(head, sizeof(head), 1, out);
	put(out, value, len);
}

/* Type, length, .., length again. */
static void begin(FILE *out, uint32_t type, uint32_t len)
{
	const uint32_t head[2] = {type, len};

	fwrite(head, sizeof(head), 1, out);
}

static void section(FILE *out)
{
	const struct {
		uint32_t magic;
		uint16_t major, minor;
		uint32_t len[2]; /* not given */
	} body = {BYTE_ORDER_MAGIC, 1, 0, {UINT32_MAX, UINT32_MAX}};
	const uint32_t len = 12 + sizeof(body);

	begin(out, BLOCK_SECTION, len);
	fwrite(&body, sizeof(body), 1, out);
	fwrite(&len, sizeof(len), 1, out);
}

static void interface(FILE *out, const char *name)
{
	const struct {
		uint16_t type, reserved;
		uint32_t snap_len;
	} body = {LINK_ETHERNET, 0, 0};
	const uint8_t resolution = NANOSECONDS;
	const uint16_t n = (uint16_t)strlen(name);
	const uint32_t len = 12 + sizeof(body) + (4 + ((n + 3u) & ~3u)) + 8 + 4;

	begin(out, BLOCK_INTERFACE, len);
	fwrite(&body, sizeof(body), 1, out);
	put_option(out, OPT_IF_NAME, name, n);
	put_option(out, OPT_IF_TSRESOL, &resolution, 1);
	put_option(out, 0, zeros, 0);
	fwrite(&len, sizeof(len), 1, out);
}

int sim_capture(struct sim *sim, const char *path)
{
	char name[2 * SIM_NAME_LEN + 2];

	sim->pcap = fopen(path, "wb");
	if (!sim->pcap)
		return -errno;
	section(sim->pcap);
	for (unsigned i = 0; i < sim->n_links; i++) {
		sim_link_name(sim, i, name, sizeof(name));
		interface(sim->pcap, name);
	}
	return 0;
}

void sim_capture_frame(struct sim *sim, unsigned link, const struct sim_frame *f)
{
	const uint32_t len = 12 + 20 + ((f->len + 3) & ~3u);
	const uint32_t body[5] = {
		link, (uint32_t)(sim->now >> 32), (uint32_t)sim->now, f->len, f->len};

	begin(sim->pcap, BLOCK_PACKET, len);
	fwrite(body, sizeof(body), 1, sim->pcap);
	put(sim->pcap, f->data, f->len);
	fwrite(&len, sizeof(len), 1, sim->pcap);
}
