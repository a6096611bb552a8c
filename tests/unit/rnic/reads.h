/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection over which end 0 READs end 1's memory, for the tests of READs and atomics. */
#ifndef TEST_RNIC_READS_H
#define TEST_RNIC_READS_H

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "lib/wire/psn.h"
#include "tests/unit/rnic/net.h"

enum { P0 = 0x100, FAR = 1 << 19, CELL = 1 << 18 };

static struct net net;

static inline void open_with(const struct net_options *options)
{
	memset(&net, 0, sizeof(net));
	net_connect(&net, options);
	/* What is read is there; what is read into is not. */
	for (unsigned i = 0; i < FAR; i++)
		net.end[1].buf[i] = (uint8_t)(i * 5 + (i >> 10) + 1);
	memset(net.end[0].buf, 0, net.end[0].buf_len);
	net_run(&net, net.now + MS);
	net.n_log = 0;
}

static inline int read_at(uint64_t id, uint32_t len, size_t from, size_t to, unsigned flags)
{
	struct end *a = &net.end[0], *b = &net.end[1];
	struct ibv_sge sge = {(uintptr_t)a->buf + to, len, rnic_mr_lkey(a->mr)};
	struct ibv_send_wr wr = {.wr_id = id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = flags,
		.wr.rdma = {(uintptr_t)b->buf + from, rnic_mr_rkey(b->mr)}};

	return rnic_post_send(a->qp, &wr);
}

static inline int atomic(enum ibv_wr_opcode opcode, uint64_t id, size_t from, size_t to,
	uint64_t operand, uint64_t swap)
{
	struct end *a = &net.end[0], *b = &net.end[1];
	struct ibv_sge sge = {(uintptr_t)a->buf + to, 8, rnic_mr_lkey(a->mr)};
	struct ibv_send_wr wr = {.wr_id = id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.wr.atomic = {(uintptr_t)b->buf + from, operand, swap, rnic_mr_rkey(b->mr)}};

	return rnic_post_send(a->qp, &wr);
}

static inline void expect_wc(uint64_t id, enum ibv_wc_opcode opcode, uint32_t len)
{
	struct ibv_wc wc = end_wc(net.end[0].scq);

	assert_int_equal(IBV_WC_SUCCESS, wc.status);
	assert_int_equal(id, wc.wr_id);
	assert_int_equal(opcode, wc.opcode);
	assert_int_equal(len, wc.byte_len);
}

static inline unsigned count_log(int from, uint8_t opcode)
{
	unsigned n = 0;

	for (unsigned i = 0; i < net.n_log; i++)
		n += net.log[i].from == from && net.log[i].pkt.opcode == opcode;
	return n;
}

static inline uint64_t cell(const struct end *end, size_t at)
{
	uint64_t v;

	memcpy(&v, end->buf + at, sizeof(v));
	return v;
}

#endif
