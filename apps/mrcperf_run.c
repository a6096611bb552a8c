/* SPDX-License-Identifier: BSD-3-Clause */
/* incline-mrcperf: messages of one size, and whether they are right.
 *
 * Message i of a queue pair goes to slot i modulo depth. With immediate the receiver checks it as
 * it completes, and writes back how many it has checked: a slot is not written again before, and
 * there is always a receive request. Without, the receiver hears of nothing, so the last message of
 * each slot is checked when the sender says that all are done. */
#include "apps/mrcperf.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

enum { BATCH = 32 };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- data: no two messages are alike, nor is one shifted ---- */

static uint64_t word_of(const struct mrcperf_plan *p, unsigned qp, uint64_t message, size_t at)
{
	uint64_t z = (message * MRCPERF_QPS + qp) * 0x9e3779b97f4a7c15 + at + p->seed;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	return z ^ z >> 27;
}

static uint8_t *slot(const struct mrcperf_end *e, unsigned qp, uint64_t message)
{
	return e->buf + (qp * e->plan.depth + message % e->plan.depth) * e->plan.max;
}

static void fill(const struct mrcperf_end *e, unsigned qp, uint64_t message, size_t len)
{
	uint8_t *to = slot(e, qp, message);

	for (size_t at = 0; at < len; at += sizeof(uint64_t)) {
		uint64_t w = word_of(&e->plan, qp, message, at);

		memcpy(to + at, &w, len - at < sizeof(w) ? len - at : sizeof(w));
	}
}

static bool right(const struct mrcperf_end *e, unsigned qp, uint64_t message, size_t len)
{
	const uint8_t *from = slot(e, qp, message);

	for (size_t at = 0; at < len; at += sizeof(uint64_t)) {
		uint64_t w = word_of(&e->plan, qp, message, at);

		if (memcmp(from + at, &w, len - at < sizeof(w) ? len - at : sizeof(w)))
			return false;
	}
	return true;
}

/* ---- work requests; wr_id is the number of the queue pair ---- */

static int post(struct mrcperf_end *e, unsigned qp, struct ibv_sge *sge, uint64_t to,
	unsigned flags, bool imm, uint32_t number)
{
	struct ibv_send_wr *bad,
		wr = {.wr_id = qp,
			.sg_list = sge,
			.num_sge = 1,
			.opcode = imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED | flags,
			.imm_data = htonl(number),
			.wr.rdma = {to, e->peer_rkey}};

	errno = mrc_post_send(e->qp[qp], &wr, &bad);
	if (errno)
		perror("incline-mrcperf: mrc_post_send");
	return errno ? -1 : 0;
}

static int post_message(struct mrcperf_end *e, unsigned qp, uint64_t message, size_t len)
{
	struct ibv_sge sge = {(uintptr_t)slot(e, qp, message), (uint32_t)len, e->mr->lkey};

	fill(e, qp, message, len);
	return post(e, qp, &sge, e->peer_addr + (uint64_t)(slot(e, qp, message) - e->buf), 0,
		e->plan.imm, (uint32_t)message);
}

static int post_credit(struct mrcperf_end *e, unsigned qp, uint64_t checked)
{
	struct ibv_sge sge = {(uintptr_t)&checked, sizeof(checked), 0};

	return post(e, qp, &sge, e->peer_addr + e->slots + qp * sizeof(checked), IBV_SEND_INLINE,
		false, 0);
}

static int post_recv(struct mrcperf_end *e, unsigned qp)
{
	struct ibv_recv_wr *bad, wr = {.wr_id = qp};

	errno = mrc_post_recv(e->qp[qp], &wr, &bad);
	if (errno)
		perror("incline-mrcperf: mrc_post_recv");
	return errno ? -1 : 0;
}

static int poll(struct mrcperf_end *e, struct ibv_wc *wc)
{
	int n = mrc_poll_cq(e->cq, BATCH, wc);

	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "incline-mrcperf: queue pair %lu: %s\n",
				(unsigned long)wc[i].wr_id, ibv_wc_status_str(wc[i].status));
			return -1;
		}
	}
	return n;
}

/* ---- the client ---- */

static bool has_room(const struct mrcperf_end *e, unsigned qp, uint64_t sent, uint64_t done)
{
	const struct mrcperf_plan *p = &e->plan;

	return sent < p->iters && sent - done < p->depth &&
	       (!p->imm || sent - e->credit[qp] < p->depth);
}

static int stream(struct mrcperf_end *e, unsigned long size)
{
	const struct mrcperf_plan *p = &e->plan;
	uint64_t sent[MRCPERF_QPS] = {0}, done[MRCPERF_QPS] = {0}, left = p->iters * p->qps;
	struct ibv_wc wc[BATCH];

	while (left) {
		int n;

		for (unsigned q = 0; q < p->qps; q++) {
			while (has_room(e, q, sent[q], done[q])) {
				if (post_message(e, q, sent[q]++, size))
					return -1;
			}
		}
		n = poll(e, wc);
		if (n < 0)
			return -1;
		for (int i = 0; i < n; i++)
			done[wc[i].wr_id]++;
		left -= (unsigned)n;
	}
	return 0;
}

int mrcperf_send(struct mrcperf_end *e, unsigned long size, struct mrcperf_row *row)
{
	double begin;
	long checked, wrong;

	for (unsigned q = 0; q < e->plan.qps; q++)
		e->credit[q] = 0;
	if (mrcperf_say(e, "size", size) || mrcperf_hear(e, "go") < 0)
		return -1;
	begin = now();
	if (stream(e, size))
		return -1;
	row->seconds = now() - begin;
	if (mrcperf_say(e, "sent", 0))
		return -1;
	checked = mrcperf_hear(e, "checked");
	wrong = checked < 0 ? -1 : mrcperf_hear(e, "wrong");
	if (wrong < 0)
		return -1;
	row->size = size;
	row->messages = e->plan.iters * e->plan.qps;
	row->checked = (unsigned long)checked;
	row->wrong = (unsigned long)wrong;
	return 0;
}

/* ---- the server ---- */

/* A queue pair's messages, as the server counts them. Writes are placed in any order, so that an
 * older credit, sent again, would undo a newer one: one is on its way at a time. */
struct counts {
	uint64_t got, told;
	bool telling;
};

static bool due(const struct mrcperf_plan *p, const struct counts *c)
{
	return !c->telling && c->got < p->iters && c->got - c->told >= (p->depth + 3) / 4;
}

static int one_arrived(struct mrcperf_end *e, struct counts *c, const struct ibv_wc *wc,
	unsigned long size, unsigned long *wrong)
{
	const unsigned q = (unsigned)wc->wr_id;

	if (ntohl(wc->imm_data) != (uint32_t)c->got || wc->byte_len != size ||
		!right(e, q, c->got, size))
		++*wrong;
	c->got++;
	return post_recv(e, q);
}

/* Ends when all messages are there and no credit is on its way: the next size begins at 0. */
static int check_arriving(struct mrcperf_end *e, unsigned long size, unsigned long *wrong)
{
	const struct mrcperf_plan *p = &e->plan;
	struct counts counts[MRCPERF_QPS] = {0};
	uint64_t left = p->iters * p->qps, telling = 0;
	struct ibv_wc wc[BATCH];

	while (left + telling) {
		int n = poll(e, wc);

		if (n < 0)
			return -1;
		for (int i = 0; i < n; i++) {
			const unsigned q = (unsigned)wc[i].wr_id;
			struct counts *c = &counts[q];

			if (wc[i].opcode != IBV_WC_RECV_RDMA_WITH_IMM) {
				c->telling = false;
				telling--;
			} else {
				left--;
				if (one_arrived(e, c, &wc[i], size, wrong))
					return -1;
			}
			if (!due(p, c))
				continue;
			c->telling = true;
			c->told = c->got;
			telling++;
			if (post_credit(e, q, c->got))
				return -1;
		}
	}
	return 0;
}

int mrcperf_receive(struct mrcperf_end *e, unsigned long size)
{
	const struct mrcperf_plan *p = &e->plan;
	unsigned long checked = p->iters * p->qps, wrong = 0;

	memset(e->buf, 0, e->slots);
	if (mrcperf_say(e, "go", 0))
		return -1;
	if (p->imm && check_arriving(e, size, &wrong))
		return -1;
	if (mrcperf_hear(e, "sent") < 0)
		return -1;
	if (!p->imm) {
		uint64_t first = p->iters > p->depth ? p->iters - p->depth : 0;

		checked = p->qps * (p->iters - first);
		for (unsigned q = 0; q < p->qps; q++) {
			for (uint64_t i = first; i < p->iters; i++)
				wrong += !right(e, q, i, size);
		}
	}
	return mrcperf_say(e, "checked", checked) || mrcperf_say(e, "wrong", wrong) ? -1 : 0;
}
