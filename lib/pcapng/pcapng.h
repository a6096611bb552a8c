/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of captures: pcapng (draft-ietf-opsawg-pcapng) in the machine's byte order, Ethernet, times
 * in nanoseconds. A file is a section, then its interfaces, then packets and statistics. One thread
 * per file. */
#ifndef PCAPNG_PCAPNG_H
#define PCAPNG_PCAPNG_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum pcapng_direction { PCAPNG_UNKNOWN, PCAPNG_IN, PCAPNG_OUT };

struct pcapng_packet {
	uint32_t interface; /* number, from 0 in the order of pcapng_interface */
	uint64_t ns;
	uint32_t len, cap; /* on the wire; bytes that are here */
	const uint8_t *data;
	enum pcapng_direction direction;
	const char *comment; /* NULL: none */
};

/* Each returns the bytes of its block. What could not be written ferror tells. Texts are cut off at
 * 1000 bytes. */
size_t pcapng_section(FILE *out, const char *application); /* NULL: not named */
/* snaplen 0: no limit. filter: the expression that packets have passed, or NULL. */
size_t pcapng_interface(FILE *out, const char *name, uint32_t snaplen, const char *filter);
size_t pcapng_packet(FILE *out, const struct pcapng_packet *packet);
/* Packets of an interface that were to be captured, and of these those that were lost. */
size_t pcapng_statistics(
	FILE *out, uint32_t interface, uint64_t ns, uint64_t received, uint64_t dropped);

#endif
