/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures of fabrics on virtual time: classic pcap, nanoseconds. */
#ifndef TESTS_CAPTURE_H
#define TESTS_CAPTURE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { CAPTURE_FRAME = 4400 };

/* A new file; the caller closes it. */
FILE *capture_open(const char *path);
/* In the directory that the environment variable FABRIC_PCAP names, one per call; NULL: it names
 * none. */
FILE *capture_if_asked(void);
void capture_frame(FILE *f, uint64_t now_ns, const uint8_t *frame, size_t len);

#endif
