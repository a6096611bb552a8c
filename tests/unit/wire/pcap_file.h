/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a capture of Ethernet frames into memory: classic little-endian pcap, or pcapng of this
 * machine's byte order. For tests. */
#ifndef TEST_PCAP_FILE_H
#define TEST_PCAP_FILE_H

#include <stddef.h>
#include <stdint.h>

struct pcap_packet {
	uint8_t *data; /* its own allocation of len bytes, so that ASan sees every overrun */
	size_t len;
};

struct pcap_file {
	struct pcap_packet *packets;
	size_t n;
};

/* 0, -errno of opening and reading, -EPROTO if the file is no such capture or a packet in it is cut
 * short. On error *file is empty. */
int pcap_file_read(const char *path, struct pcap_file *file);
void pcap_file_free(struct pcap_file *file);

#endif
