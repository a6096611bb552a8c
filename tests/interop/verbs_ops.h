/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of verbs_ops share. */
#ifndef VERBS_OPS_H
#define VERBS_OPS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum { OPS_MAX = 32, AREA = 1 << 16, GRH = 40, QKEY = 0x11111111, WAIT_S = 60 };
enum { OUT, IN, SHARED, RECV, N_REGIONS };
enum { LISTENER = 1, CONNECTOR = 2 };

struct verb {
	const char *name;
	enum ibv_wr_opcode opcode;
	bool uses_recv;
	enum ibv_wc_status status; /* what becomes of it */
};

struct op {
	const struct verb *verb;
	uint32_t len;
};

/* What the other side has to know; exchanged once, and windows' keys before every round. */
struct peer {
	uint32_t qpn, psn, rkey, soft_roce, window[OPS_MAX];
	uint64_t addr;
	union ibv_gid gid;
};

struct conf {
	enum ibv_qp_type type;
	int gid, mtu, side, active, rounds, late_ms;
	bool one;
	uint32_t psn;
	const char *at;
	struct op op[OPS_MAX];
	unsigned n_ops;
};

struct state {
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_mw *mw[OPS_MAX];
	uint8_t *memory;
	struct peer here, there;
	int control, round;
	bool soft_roce; /* our own device is Linux's; docs/interop.md has its quirks */
	/* completions of a round */
	unsigned sent, received, n_recv;
	unsigned recv_op[OPS_MAX]; /* which operation the n-th receive is for */
	unsigned long long bytes, done;
};

extern struct conf conf;
extern struct state state;

void __attribute__((format(printf, 1, 2), noreturn)) fail(const char *format, ...);
void check(bool ok, const char *what); /* else fails with errno */

bool asks(int side);
int other(void); /* side */

/* ---- verbs_ops_content.c ---- */

/* Of operation i: here, and at the other side. */
uint8_t *area(unsigned region, unsigned i);
uint64_t remote(unsigned region, unsigned i);

/* Fills that region with what is ours in this round. */
void fill(unsigned region);
/* What side has in SHARED, as a number. */
uint64_t number(int side, unsigned i);

/* n bytes of an area against what side had in that region, and nothing behind them. */
void expect(unsigned region, unsigned i, uint32_t skip, uint32_t n, int side, unsigned theirs);

/* The effects of the operation on our side: as the one who asked, and as the one asked. */
void verify(unsigned i);

/* ---- verbs_ops_peer.c ---- */

/* A TCP connection with the other side: [HOST:]PORT. */
int dial(const char *at);

/* Both have come here; what each says of itself has arrived. */
void meet(void);

/* All objects, and state.here; the queue pair up to RTS, with what state.there says. */
void create(struct ibv_context *c);
void bring_up(void);

#endif
