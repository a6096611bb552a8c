/* SPDX-License-Identifier: BSD-3-Clause */
/* Two devices at the ends of a cable (tests/unit/verbs/fabric.h), and the MRC API on both. */
#ifndef TESTS_LIBMRC_API_PAIR_H
#define TESTS_LIBMRC_API_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/libmrc/mrc_ctl.h"
#include "tests/unit/verbs/fabric.h"

enum { SIDE_BUF = 1 << 16, SIDE_DEPTH = 64, SIDE_PSN = 0xfffff0 };

struct side {
	struct ibv_context *verbs;
	struct mrc_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct mrc_comp_channel *channel;
	struct mrc_cq *cq;
	struct mrc_qp *qp;
	uint8_t *buf;
};

struct pair {
	struct fabric *f;
	struct side a, b;
};

/* planes: ports of each device, 1 or 2. */
struct pair *pair_create(bool threads, unsigned planes);
void pair_destroy(struct pair *p);
int pair_setup(void **state);
int pair_teardown(void **state);
#define PAIR_TEST(f) cmocka_unit_test_setup_teardown(f, pair_setup, pair_teardown)

struct mrc_qp *side_qp(struct side *s);
/* One transition with what it needs and no attribute of MRC, towards the other side. */
int to_init(struct side *s, struct mrc_qp_attr *attr, int mask);
int to_rtr(struct side *s, struct side *peer, int gid, struct mrc_qp_attr *attr, int mask);
int to_rts(struct side *s, struct mrc_qp_attr *attr, int mask);
int to_state(struct side *s, enum ibv_qp_state state);
void pair_connect(struct pair *p, int gid);

/* A write of a's (or b's) buffer to the other's at the same offset; imm 0: without. */
int write_to(
	struct side *from, struct side *to, uint64_t id, size_t offset, uint32_t len, uint32_t imm);
int recv_one(struct side *s, uint64_t id);
void wait_one(struct pair *p, struct side *s, struct ibv_wc *wc);

#endif
