/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch in a box: one group, an arena, and an outbox of whole frames. Packets go in as frames
 * and come out as frames, through the same functions as in the graph. */
#ifndef INC_FIXTURE_H
#define INC_FIXTURE_H

#include "dataplane/inc/arena.h"
#include "dataplane/inc/engine.h"

enum { FX_MAX_OUT = 512, FX_FRAME = 4400, FX_HOST_QPN = 0x11, FX_SLOT = 7, FX_GEN = 3 };

struct fx_out {
	unsigned ep;
	size_t len;
	struct wire_pkt pkt;
	uint8_t frame[FX_FRAME];
};

struct fx {
	struct inc_table table;
	struct inc_arena arena;
	struct inc_group *g;
	uint64_t now;
	unsigned n_out;
	struct fx_out *out;
	uint8_t op_seq; /* of the next control that fx_control makes */
};

struct fx_opts {
	unsigned n_hosts;
	bool parent;  /* an interior switch: one more endpoint, the parent */
	uint8_t mode; /* 0: Mode-II */
	uint8_t kind, prim;
	uint16_t root;
	uint16_t mtu, m, w, flags;
	uint32_t slots; /* 0: by default */
	uint32_t start_psn;
	bool ip6;
};

/* Hosts are endpoints 0..n-1 with address 10.0.0.(10+i) (or fd00::) and QPN 0x11+i. */
void fx_open(struct fx *fx, const struct fx_opts *opts);
void fx_close(struct fx *fx);
/* The spec fx_open makes its group from, for tests of the checks. ep: room for n_hosts + 1. */
void fx_spec(const struct fx_opts *opts, struct inc_group_spec *spec, struct inc_ep_spec *ep);

/* Feeds one packet from endpoint ep; the outbox is emptied first. */
enum inc_drop fx_packet(
	struct fx *fx, unsigned ep, const struct wire_hdr *hdr, const void *payload, size_t len);
enum inc_drop fx_frame(struct fx *fx, const uint8_t *frame, size_t len);
/* The timers that are due; the outbox is emptied first. Mode-III's switch keeps time. */
void fx_tick(struct fx *fx);
int fx_build(struct fx *fx, unsigned ep, const struct wire_hdr *hdr, const void *payload,
	size_t len, uint8_t *frame);

/* The control message of an operation of bytes int32 sums, at psn. */
void fx_ctrl_payload(const struct fx *fx, uint64_t bytes, uint8_t payload[INC_CTRL_LEN]);
uint32_t fx_imm(uint8_t seq, enum reduce_op op, enum reduce_dtype dtype);
enum inc_drop fx_control(struct fx *fx, unsigned ep, uint32_t psn, uint8_t seq, uint64_t bytes);
/* Of any primitive and root. */
enum inc_drop fx_control_of(struct fx *fx, unsigned ep, uint32_t psn, uint8_t seq, uint64_t bytes,
	enum inc_prim prim, unsigned root);

/* Data packet: opcode as given; words int32 values value, value+1, ... */
enum inc_drop fx_data(
	struct fx *fx, unsigned ep, uint32_t psn, uint8_t opcode, int32_t value, unsigned words);
enum inc_drop fx_ack(struct fx *fx, unsigned ep, uint32_t psn, uint8_t syndrome);

/* SR: psn is missing, bit i says that psn + 1 + i is not; 0: no map. */
enum inc_drop fx_map(struct fx *fx, unsigned ep, uint32_t psn, uint64_t map);

/* Word k of an emitted payload. */
int32_t fx_word(const struct fx_out *out, unsigned k);

#endif
