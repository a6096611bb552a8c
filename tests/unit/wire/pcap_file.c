/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/wire/pcap_file.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PCAP_MAGIC = 0xa1b2c3d4,
	PCAP_NANO_MAGIC = 0xa1b23c4d,
	PCAPNG_SECTION = 0x0a0d0d0a,
	PCAPNG_PACKET = 6,
	PCAP_ETHERNET = 1,
	PCAP_MAX_LEN = 1 << 18
};

struct pcap_header {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, precision, snap_len, link_type;
};

struct pcap_record {
	uint32_t sec, usec, len, wire_len;
};

/* The body of pcapng's block of a packet, without its options. */
struct pcapng_packet {
	uint32_t interface, time[2], len, wire_len;
};

static int read_data(FILE *in, struct pcap_packet *packet)
{
	packet->data = malloc(packet->len);
	if (packet->len == 0 || fread(packet->data, packet->len, 1, in) == 1)
		return 1;
	free(packet->data);
	return -EPROTO;
}

/* As read_packet; blocks of other types are passed over, all of this machine's byte order. */
static int read_block(FILE *in, struct pcap_packet *packet)
{
	struct pcapng_packet body;
	uint32_t head[2];
	long rest;
	int rc = 0;

	while (rc == 0) {
		const size_t got = fread(head, 1, sizeof(head), in);

		if (got == 0 && feof(in))
			return 0;
		if (got != sizeof(head) || head[1] < sizeof(head) || head[1] > PCAP_MAX_LEN)
			return -EPROTO;
		rest = (long)(head[1] - sizeof(head));
		if (head[0] == PCAPNG_PACKET) {
			rest -= (long)sizeof(body);
			if (fread(&body, sizeof(body), 1, in) != 1 || body.len > PCAP_MAX_LEN ||
				(long)body.len > rest)
				return -EPROTO;
			packet->len = body.len;
			rest -= (long)body.len;
			rc = read_data(in, packet);
		}
		fseek(in, rest, SEEK_CUR); /* too far: the next block ends the file */
	}
	return rc;
}

/* 1: a packet, 0: end of file, or -EPROTO. */
static int read_packet(FILE *in, struct pcap_packet *packet)
{
	struct pcap_record rec;
	size_t got = fread(&rec, 1, sizeof(rec), in);

	if (got == 0 && feof(in))
		return 0;
	packet->len = le32toh(rec.len);
	if (got != sizeof(rec) || packet->len > PCAP_MAX_LEN || rec.len != rec.wire_len)
		return -EPROTO;
	return read_data(in, packet);
}

static int read_all(FILE *in, struct pcap_file *file)
{
	int (*read_next)(FILE * in, struct pcap_packet * packet) = read_packet;
	struct pcap_header header;
	struct pcap_packet packet;
	int rc;

	if (fread(&header, sizeof(header), 1, in) != 1)
		return -EPROTO;
	if (header.magic == PCAPNG_SECTION) {
		rewind(in);
		read_next = read_block;
	} else if ((le32toh(header.magic) != PCAP_MAGIC &&
			   le32toh(header.magic) != PCAP_NANO_MAGIC) ||
		   le32toh(header.link_type) != PCAP_ETHERNET) {
		return -EPROTO;
	}
	while ((rc = read_next(in, &packet)) > 0) {
		file->packets = realloc(file->packets, (file->n + 1) * sizeof(packet));
		file->packets[file->n++] = packet;
	}
	return rc;
}

int pcap_file_read(const char *path, struct pcap_file *file)
{
	FILE *in = fopen(path, "rb");
	int rc;

	*file = (struct pcap_file){0};
	if (!in)
		return -errno;
	rc = read_all(in, file);
	fclose(in);
	if (rc < 0)
		pcap_file_free(file);
	return rc;
}

void pcap_file_free(struct pcap_file *file)
{
	for (size_t i = 0; i < file->n; i++)
		free(file->packets[i].data);
	free(file->packets);
	*file = (struct pcap_file){0};
}
