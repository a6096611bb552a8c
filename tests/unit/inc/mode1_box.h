/* SPDX-License-Identifier: BSD-3-Clause */
/* Mode-I's switch in a box: its peers are software RNICs, driven message by message over a wire of
 * no delay. */
#ifndef MODE1_BOX_H
#define MODE1_BOX_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dataplane/inc/mode1.h"

enum { MTU = 256, MAX_PEERS = 4, PEER_WR = 256 };

static const uint64_t MS = 1000000;

struct peer {
	struct rnic *rnic;
	struct rnic_pd *pd;
	struct rnic_mr *mr;
	struct rnic_cq *cq;
	struct rnic_qp *qp;
	uint8_t *mem; /* sends from the lower half, receives into the upper */
	unsigned n_in, n_sent, posted;
	struct ibv_wc in[PEER_WR];
	enum ibv_wc_status bad;
	bool dead;
};

struct box {
	struct mode1_device *dev;
	struct mode1 *m;
	struct inc_group *g;
	struct inc_arena arena;
	unsigned n;
	struct peer peer[MAX_PEERS];
	uint64_t now;
};

struct shape {
	unsigned n; /* peers; the last is the parent if parent */
	bool parent;
	uint16_t m, w;
	uint32_t start;
};

/* Three ranks, two packets a message; the numbers wrap. */
static const struct shape star3 = {.n = 3, .m = 2, .w = 4, .start = 0xfffffe};

/* Switch and peers i have addresses 10.0.0.1 and 10.0.0.(10+i). */
struct wire_ip ip_of(unsigned i);

/* A group of this shape, active, and its peers connected to it. */
void open_box(struct box *b, const struct shape *s);
void close_box(struct box *b);

/* Frames to and fro, and timers, for ns of virtual time. */
void run(struct box *b, uint64_t ns);

/* Receives of size bytes: of one peer, of all. */
void post_receives(struct box *b, unsigned peer, unsigned n, unsigned size);
void all_receive(struct box *b, unsigned n, unsigned size);

/* What a peer sends: anything (imm 0: without one), the control of bytes, and data, words values:
 * value, value + 1 ... */
void send_bytes(struct box *b, unsigned peer, const void *bytes, unsigned len, uint32_t imm);
uint32_t imm_of(enum inc_prim prim, unsigned root, unsigned seq);
void control(struct box *b, unsigned peer, uint32_t imm, unsigned bytes);
void data(struct box *b, unsigned peer, int32_t value, unsigned words);

/* What a peer has received as its message index. */
void expect(
	struct box *b, unsigned peer, unsigned index, int32_t value, int32_t step, unsigned words);
void expect_control(struct box *b, unsigned peer, unsigned index, uint32_t imm);

void assert_failed(struct box *b, enum inc_fail reason, unsigned ep);

#endif
