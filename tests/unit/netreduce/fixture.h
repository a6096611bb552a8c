/* SPDX-License-Identifier: BSD-3-Clause */
/* One switch with a ring, and packets that hosts and other switches would send to it. */
#ifndef TESTS_NR_FIXTURE_H
#define TESTS_NR_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>

#include "dataplane/netreduce/engine.h"

enum { NF_MTU = 256, NF_M = 4, NF_MAX = 8, NF_OUT = 32, NF_ID = 7, NF_FRAME = 4400 };

struct nf_frame {
	uint8_t b[NF_FRAME];
	size_t len;
	struct wire_pkt pkt;
	const uint8_t *payload;
};

struct nf {
	struct nr_spec spec;
	struct nr_in_spec in[NF_MAX];
	uint16_t ranks[NF_MAX][NF_MAX];
	struct nr_ring *ring;
	struct inc_arena arena;
	unsigned n_rows;
	struct nr_key key[NR_MAX_ROWS];
	struct nr_look look[NR_MAX_ROWS];
	uint64_t now;
	unsigned n_out; /* what was emitted by the last packet */
	struct nf_frame out[NF_OUT];
};

/* A star of n hosts, W = 2 messages of NF_M packets; change the spec before nf_start. */
void nf_star(struct nf *f, unsigned n);
/* A leaf with ranks 0 .. n-1 of n + 2; a root with hosts 0 .. n-1 and a leaf with the next two. */
void nf_leaf(struct nf *f, unsigned n);
void nf_root(struct nf *f, unsigned n);
void nf_start(struct nf *f);
void nf_stop(struct nf *f);

/* First PSN of a rank's connection. */
uint32_t nf_psn(const struct nf *f, unsigned rank, uint32_t msg, unsigned o);

/* What is said about a packet before it is built: all of it may be changed. */
struct nf_pkt {
	struct wire_flow flow;
	struct wire_hdr hdr;
	struct ina_hdr ina;
	bool has_ina;
	unsigned len; /* of the data */
	uint8_t data[NF_MTU];
};

/* Packet o of message msg of a rank: WRITE, last with Immediate; int32 elements of value. */
struct nf_pkt nf_host(const struct nf *f, unsigned rank, uint32_t msg, unsigned o, int32_t value);
/* Between switches: from the leaf below (to a root), or from the parent (to a leaf). */
struct nf_pkt nf_switch(const struct nf *f, uint32_t msg, unsigned o, int32_t value);
/* From the receiver of a rank's connection. */
struct nf_pkt nf_reply(
	const struct nf *f, unsigned rank, uint8_t opcode, uint8_t syndrome, uint32_t psn);

/* Gives it to the engine; f->out is what comes of it. */
enum nr_drop nf_send(struct nf *f, const struct nf_pkt *p);
enum nr_drop nf_send_frame(struct nf *f, const uint8_t *frame, size_t len);
/* nf_host and nf_send. */
enum nr_drop nf_put(struct nf *f, unsigned rank, uint32_t msg, unsigned o, int32_t value);
/* All ranks of a star: the last one completes it. */
void nf_complete(struct nf *f, uint32_t msg, unsigned o, int32_t value);

/* out[i] is rank's packet (msg, o) with every element sum. */
void nf_expect(
	const struct nf *f, unsigned i, unsigned rank, uint32_t msg, unsigned o, int32_t sum);

#endif
