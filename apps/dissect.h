/* SPDX-License-Identifier: BSD-3-Clause */
/* What incline-dissect makes of a file of captures, as JSON; its text is made from that. Packets
 * are decoded by lib/wire, lib/srv6 and lib/ccl alone: no layout is known here. */
#ifndef APPS_DISSECT_H
#define APPS_DISSECT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "lib/pcapng/reader.h"
#include "lib/wire/ip.h"
#include "lib/wire/mrc.h"

/* Packets to one queue pair from one address; of a datagram's also from one queue pair. */
struct dissect_key {
	struct wire_ip src, dst;
	uint32_t dqpn, sqpn;
};

/* What the ladder wants to know of a packet beside its JSON. */
struct dissect_packet {
	json_t *json;  /* a new reference */
	bool has_psn;  /* of a queue pair: the rest is set */
	bool icrc_bad; /* what it says counts for nothing */
	struct dissect_key key;
	bool request, response, nak;
	bool whole_mtu; /* the payload is as long as the path MTU */
	uint32_t psn, payload;
	uint32_t read; /* bytes that a READ asks for; 0: it is none */
};

/* One frame. block: of micro-segments, the first 32 bits of an address. */
void dissect_frame(const struct pcap_reader *r, const struct pcap_frame *f, unsigned number,
	uint32_t block, struct dissect_packet *p);

/* Connections. Packets are given in the order of the file; the ladder takes p->json, and adds to it
 * what its PSN says ("marks"). */
struct dissect_ladder;
struct dissect_ladder *dissect_ladder_new(void); /* NULL: out of memory */
void dissect_ladder_add(struct dissect_ladder *l, struct dissect_packet *p);
/* One item per connection, in the order in which they began; with their packets. left_out: packets
 * of more connections than are kept. Frees l. */
json_t *dissect_ladder_end(struct dissect_ladder *l, uint64_t *left_out);

/* Words for what packets say, also those of the dissector for Wireshark (wireshark_facts.c). buf is
 * for those that are put together. */
enum { DISSECT_NAME = 48 };
const char *dissect_syndrome(uint8_t syndrome, char buf[DISSECT_NAME]); /* of an AETH */
const char *dissect_primitive(unsigned prim);
const char *dissect_mrc_op(const struct mrc_pkt *m); /* "MRC SACK" */
const char *dissect_mark(unsigned mark);
const char *dissect_nack(unsigned reason);
const char *dissect_endpoint_op(unsigned op);
/* Has a switch cut it? Its class says so, the upper six bits of tos. */
bool dissect_is_trimmed(uint8_t tos);

/* A whole file in memory: {frames, icrc: {ok, bad, cut, trimmed}, refused, left_out, connections,
 * others}. NULL and a sentence with the offset in err. */
enum { DISSECT_ERR = 160 };
json_t *dissect_file(const void *data, size_t len, uint32_t block, char err[DISSECT_ERR]);

void dissect_text(FILE *out, const json_t *result);

#endif
