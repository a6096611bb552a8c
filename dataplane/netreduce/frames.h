/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of the NetReduce engine, from the parts it keeps. Internal. */
#ifndef NR_FRAMES_H
#define NR_FRAMES_H

#include "dataplane/netreduce/engine.h"

/* One packet on its way through the engine. */
struct nr_ctx {
	struct nr_ring *r;
	const struct inc_arena *arena;
	const struct wire_pkt *pkt;
	const uint8_t *frame;
	const uint8_t *data; /* payload; behind the INA header once that was read */
	uint16_t len;        /* of it */
	bool sure;           /* it belongs to the message and place that it is taken for */
	uint64_t now;
	uint32_t head_crc; /* by nr_icrc_ok: ICRC of the headers */
	const struct nr_sink *sink;
};

static inline uint8_t *nr_buf_data(struct nr_buf *buf)
{
	return (uint8_t *)(buf + 1);
}

bool nr_icrc_ok(struct nr_ctx *c);

/* The INA header belongs to the headers: what follows is data. */
void nr_skip_ina(struct nr_ctx *c);

/* Keeps the packet's headers, as those of a sum: marked if the ring's sums are. */
void nr_store_head(const struct nr_ctx *c, struct nr_buf *buf);

/* The kept headers of host input i with other data behind them. */
void nr_emit_host(const struct nr_ctx *c, const struct nr_agg *a, const struct nr_buf *buf,
	unsigned i, const uint8_t *data);

/* A packet of the virtual connection to input i, or NR_PARENT_EP. */
void nr_emit_switch(
	const struct nr_ctx *c, const struct nr_agg *a, unsigned i, const uint8_t *data);

/* An answer to a host, in the name of the one that it sends to. */
void nr_emit_answer(const struct nr_ctx *c, const struct nr_in *in, uint8_t syndrome, uint32_t psn);
/* RNR NAK for the packet at hand. */
void nr_emit_rnr(const struct nr_ctx *c, const struct nr_in *in);
/* To a switch, input i or NR_PARENT_EP: the ring has failed here. */
void nr_emit_failure(const struct nr_ctx *c, unsigned i);

/* ---- fail.c ---- */

/* An input says something else of packet o of message msg than another (NR_NOBODY: than how the
 * ring was made). Fails the ring, if the packet's place is certain. */
void nr_disagree(const struct nr_ctx *c, const struct nr_fail *f);
/* A switch says that the ring has failed there? */
bool nr_is_failure(const struct wire_pkt *pkt);
/* A packet of a ring that has failed, from input i or NR_PARENT_EP: its sender is told, and
 * switches are. Requests of hosts and packets of switches only, with a right ICRC. */
enum nr_drop nr_answer_failed(const struct nr_ctx *c, unsigned i);

#endif
