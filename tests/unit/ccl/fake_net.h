/* SPDX-License-Identifier: BSD-3-Clause */
/* What the imaginary switch (fake_net.c) and the verbs in front of it (fake_verbs.c) share. */
#ifndef FAKE_NET_H
#define FAKE_NET_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/ccl/fake_verbs.h"

enum { QLEN = 8192, MAX_QP = 20, MAX_OPS = 1 << 15, MAX_MR = 128 };

#define CHECK(cond)                                                                \
	do {                                                                       \
		if (!(cond)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			abort();                                                   \
		}                                                                  \
	} while (0)

struct wr {
	uint64_t id;
	uint8_t *addr;
	uint32_t len, psn;
	bool imm;
	uint32_t imm_data;
	uint8_t *copy; /* of a send, as it was posted */
};

/* Message i of operation k; 0 is the control. */
struct pos {
	unsigned k, i;
};

struct range {
	uint32_t from, count;
};

/* Queue pair g of a device is its membership in group g. */
struct fqp {
	struct ibv_qp qp;
	bool used;
	struct ibv_qp_cap cap;
	struct ibv_qp_attr attr;
	struct wr *send, *recv;
	unsigned cap_send, cap_recv;
	unsigned n_send, n_acked, n_recv, n_delivered; /* by the network */
	unsigned seen_acked, seen_delivered;           /* polled by the program */
	struct pos next;                               /* to be delivered */
	unsigned n_ops, op_start[MAX_OPS];             /* controls among the sends */
	unsigned ctrl_at[MAX_OPS];                     /* deliveries when it was delivered */
	bool plain;                                    /* AllReduce only, so far */
	uint32_t tx_psn, rx_psn;
	struct range skip[16]; /* of what is received */
	unsigned n_skip;
};

struct done {
	struct ibv_wc wc;
	struct fqp *q;
};

struct dev {
	struct ibv_device base;
	struct ibv_context ctx;
	unsigned rank;
	atomic_uint opened; /* every rank looks at every device for its own */
	union ibv_gid gid;
	struct ibv_mr mr[MAX_MR];
	bool mr_used[MAX_MR];
	unsigned n_pd, n_cq, n_channel;

	struct ibv_comp_channel channel;
	struct ibv_cq cq;
	bool armed;
	struct done wc[QLEN];
	unsigned wc_head, wc_tail;

	struct fqp q[MAX_QP];
	bool hold, hold_acks, can_skip;
	int fail_rtr;
	unsigned fail_rtr_left;
	unsigned shorten, flip, flip_byte; /* message + 1 */
};

struct fake_net {
	pthread_mutex_t lock;
	struct dev *dev[FAKE_MAX];
	unsigned n, mtu, window, rnr;
	enum fake_kind kind;
	bool automatic;
	uint64_t rng;
};

extern struct fake_net fake_net;

/* Primitive of a control with this immediate. */
unsigned fake_prim(uint32_t imm);

/* Packets of a message; the PSN n behind this one. */
uint32_t fake_packets(const struct fqp *q, uint32_t len);
uint32_t fake_forward(uint32_t psn, uint32_t n);

/* A completion of d's. */
void fake_push(struct dev *d, struct fqp *q, const struct ibv_wc *wc);

/* Passes over what this rank does not receive; the control of what is next, NULL: not known yet. */
const struct wr *fake_skim(const struct dev *d, struct fqp *q);

/* As fake_step, of one who holds the lock. */
bool fake_step_locked(void);

#endif
