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
	bool ina;            /* it was */
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

/* Keeps the packet's headers. */
void nr_store_head(const struct nr_ctx *c, struct nr_buf *buf);

/* The kept headers of host input i with other data behind them. */
void nr_emit_host(const struct nr_ctx *c, const struct nr_agg *a, const struct nr_buf *buf,
	unsigned i, const uint8_t *data);

/* A packet of the virtual connection to input i, or NR_PARENT_EP. */
void nr_emit_switch(
	const struct nr_ctx *c, const struct nr_agg *a, unsigned i, const uint8_t *data);

/* RNR NAK for the packet at hand, in the name of the host that it was sent to. */
void nr_emit_rnr(const struct nr_ctx *c, const struct nr_in *in);

#endif
