/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a file of captures that lies in memory: pcapng of either byte order, or classic pcap of
 * either byte order with micro- or nanoseconds; Ethernet only. Nothing beyond the file is read,
 * whatever it says; frames and texts point into it. */
#ifndef PCAPNG_READER_H
#define PCAPNG_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/pcapng/pcapng.h"

enum { PCAP_MAX_INTERFACES = 1024, PCAP_MAX_CAP = 1 << 18 };

struct pcap_text {
	const char *text; /* not ended by a zero; may hold any bytes */
	uint16_t len;
};

struct pcap_interface {
	struct pcap_text name;
	uint8_t resolution; /* if_tsresol: power of ten, with bit 7 of two */
	uint32_t snaplen;
};

struct pcap_frame {
	size_t offset;      /* in the file, of its block or header */
	uint64_t ns;        /* since 1970, as the file has it */
	uint32_t interface; /* number among those of the file, over all sections */
	uint32_t len, cap;
	const uint8_t *data;
	enum pcapng_direction direction;
	struct pcap_text comment; /* len 0: none */
};

struct pcap_reader {
	const uint8_t *data;
	size_t len, at;
	bool classic, swapped, nano;
	uint32_t first; /* interface of this section */
	uint32_t n;     /* interfaces; of a classic file: 1 without a name */
	struct pcap_interface interface[PCAP_MAX_INTERFACES];
	/* After an error: where in the file, and why. */
	size_t bad_at;
	char bad[96];
};

/* -EPROTO: no such file; r->bad says why. */
int pcap_open(struct pcap_reader *r, const void *data, size_t len);
/* 1: the next frame, 0: there is none, -EPROTO: what follows is malformed. */
int pcap_next(struct pcap_reader *r, struct pcap_frame *frame);

#endif
