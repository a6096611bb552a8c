/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/rnic/mcast_window.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/place/decide.h"
#include "lib/rnic/mcast_place.h"
#include "lib/rnic/mr.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/transport.h"
#include "lib/rnic/uc_mcast.h"
#include "lib/rnic/worker.h"

/* What each packet costs is counted (tools/bench multicast). */
#define HOT static inline __attribute__((always_inline))
#define COLD __attribute__((noinline, cold))
#define UNLIKELY(x) __builtin_expect(x, 0)

/* ---- what comes ---- */

/* The part's packet with that immediate data. */
HOT uint32_t index_of(const struct mcast_window *w, const struct mcast_part *p, uint32_t imm)
{
	return (imm - p->first) & w->mask;
}

/* The part that has that packet becomes the last one. */
static COLD bool search(struct mcast_window *w, uint32_t imm)
{
	const uint32_t number = (imm - w->part[0].first) & w->mask;
	unsigned from = 0, end = w->n_parts;

	while (end - from > 1) {
		const unsigned mid = from + (end - from) / 2;

		if (w->part[mid].start <= number)
			from = mid;
		else
			end = mid;
	}
	w->last = &w->part[from];
	return index_of(w, w->last, imm) < w->last->n;
}

HOT bool is_from(const struct mcast_part *p, const struct wire_pkt *pkt, bool ud)
{
	return wire_ip_eq(&p->ip, &pkt->src) && (!ud || p->qpn == pkt->sqpn);
}

/* Whether a packet with the number `index` of the last part is what it should be, and then where it
 * goes. */
HOT unsigned judge(const struct mcast_window *w, const struct wire_pkt *pkt, uint32_t index,
	bool ud, uint64_t *va)
{
	const struct mcast_part *p = w->last;

	*va = p->va + (uint64_t)index * w->chunk;
	if (!is_from(p, pkt, ud))
		return RNIC_DROP_SOURCE;
	if (pkt->pay_len != (index == p->last ? p->last_len : w->chunk))
		return RNIC_DROP_LENGTH;
	return ud || pkt->va == *va ? 0 : RNIC_DROP_ACCESS;
}

COLD bool mcast_translate(const struct rnic_qp *qp, struct mcast_window *w)
{
	w->memory = mr_translate(qp->init.pd, w->lkey, w->addr, w->len, IBV_ACCESS_LOCAL_WRITE);
	w->mr_changes = qp->rnic->mr_changes;
	return w->memory != NULL;
}

static COLD bool has_request(struct rnic_qp *qp)
{
	const struct place_flow flow = {.posted = qp_take_recv(qp), .unmatched = PLACE_DROP};

	return place_decide(&flow, 0, 1).verdict == PLACE_ACCEPT;
}

static COLD void tell(struct rnic_qp *qp, const struct wire_pkt *pkt, bool ud)
{
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS,
		.opcode = ud ? IBV_WC_RECV : IBV_WC_RECV_RDMA_WITH_IMM,
		.byte_len = ud ? 0 : pkt->pay_len,
		.src_qp = pkt->sqpn,
		.imm_data = htobe32(pkt->imm),
		.wc_flags = IBV_WC_WITH_IMM};

	qp_complete_recv(qp, &wc, pkt->se);
}

static COLD unsigned comes_again(struct mcast_window *w)
{
	__atomic_store_n(w->marks.again, *w->marks.again + 1, __ATOMIC_RELEASE);
	return 0;
}

HOT void take(struct mcast_window *w, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t va,
	uint64_t *word, uint64_t marked)
{
	w->left--;
	memcpy(w->memory + va, frame + pkt->pay_off, pkt->pay_len);
	__atomic_store_n(word, marked, __ATOMIC_RELEASE);
}

/* That of which somebody is told. */
static COLD unsigned take_last(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt,
	uint64_t va, uint64_t *word, uint64_t marked)
{
	if (!has_request(qp))
		return RNIC_DROP_RNR;
	take(qp->window, frame, pkt, va, word, marked);
	tell(qp, pkt, qp->init.type == IBV_QPT_UD);
	return 0;
}

/* Of another part than the one before. */
static COLD unsigned place_elsewhere(
	struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt)
{
	if (!search(qp->window, pkt->imm))
		return RNIC_DROP_ACCESS;
	return qp->init.type == IBV_QPT_UD ? mcast_place_datagram(qp, frame, pkt)
					   : mcast_place_write(qp, frame, pkt);
}

/* Marked; calls but for the copy are the last thing it does, so that few registers are saved. */
HOT unsigned place(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, bool ud)
{
	struct mcast_window *w = qp->window;
	uint64_t va, *word, marked;
	uint32_t index, mark;
	unsigned drop;

	if (UNLIKELY((pkt->imm & w->id_mask) != w->id))
		return RNIC_DROP_ACCESS;
	index = index_of(w, w->last, pkt->imm);
	if (UNLIKELY(index >= w->last->n))
		return place_elsewhere(qp, frame, pkt);
	drop = judge(w, pkt, index, ud, &va);
	if (UNLIKELY(drop != 0))
		return drop;
	mark = w->last->mark + index;
	word = &w->marks.bit[mark / 64];
	marked = *word | UINT64_C(1) << mark % 64;
	if (UNLIKELY(*word == marked))
		return comes_again(w);
	if (UNLIKELY(w->left == 1))
		return take_last(qp, frame, pkt, va, word, marked);
	take(w, frame, pkt, va, word, marked);
	return 0;
}

/* Not marked: each is told. */
unsigned mcast_place_each(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt)
{
	struct mcast_window *w = qp->window;
	unsigned drop;
	uint64_t va;

	if ((pkt->imm & w->id_mask) != w->id || !search(w, pkt->imm))
		return RNIC_DROP_ACCESS;
	drop = judge(w, pkt, index_of(w, w->last, pkt->imm), false, &va);
	if (drop != 0)
		return drop;
	if (!has_request(qp))
		return RNIC_DROP_RNR;
	memcpy(w->memory + va, frame + pkt->pay_off, pkt->pay_len);
	tell(qp, pkt, false);
	return 0;
}

unsigned mcast_place_datagram(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt)
{
	return place(qp, frame, pkt, true);
}

unsigned mcast_place_write(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt)
{
	return place(qp, frame, pkt, false);
}

/* ---- windows ---- */

static uint32_t packets(uint64_t len, uint32_t chunk)
{
	const uint64_t n = len / chunk + (len % chunk != 0);

	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static int add_part(struct mcast_window *w, const struct rnic_mcast_writer *from)
{
	const uint32_t n = packets(from->len, w->chunk);
	const uint32_t start = w->n_parts > 0 ? (from->first - w->part[0].first) & w->mask : 0;
	const struct mcast_part *before = w->n_parts > 0 ? &w->part[w->n_parts - 1] : NULL;
	struct mcast_part *p = &w->part[w->n_parts++];

	if (from->va > w->len || from->len > w->len - from->va)
		return -EINVAL;
	if ((from->first & ~w->mask) != w->id || (uint64_t)start + n > (uint64_t)w->mask + 1)
		return -EINVAL;
	if (before != NULL && (start <= before->start || start - before->start < before->n))
		return -EINVAL;
	if (w->marks.bit != NULL && (uint64_t)w->marks.first + start + n > w->marks.n)
		return -EINVAL;
	*p = (struct mcast_part){.ip = from->ip,
		.qpn = from->qpn,
		.first = from->first,
		.start = start,
		.n = n,
		.last = n - 1,
		.last_len = n > 0 ? (uint32_t)(from->len - (uint64_t)(n - 1) * w->chunk) : 0,
		.mark = w->marks.first + start,
		.va = from->va};
	return 0;
}

static int check_window(const struct rnic_qp *qp, const struct rnic_mcast_window *from)
{
	const struct rnic_mcast_marks *marks = &from->marks;

	const bool ud = qp->init.type == IBV_QPT_UD;

	if (!qp_receives(qp) || from->n_writers > RNIC_MAX_WRITERS ||
		(from->number_mask & (from->number_mask + 1)) != 0)
		return -EINVAL;
	if (marks->bit != NULL ? marks->again == NULL : ud)
		return -EINVAL;
	if (from->n_writers == 0 ? !ud : marks->bit != NULL && marks->expect == 0)
		return -EINVAL;
	if (from->chunk > qp->mtu || mr_translate(qp->init.pd, from->lkey, from->addr, from->len,
					     IBV_ACCESS_LOCAL_WRITE) == NULL)
		return -EINVAL;
	return 0;
}

static int make_window(
	const struct rnic_qp *qp, const struct rnic_mcast_window *from, struct mcast_window **made)
{
	/* At least one, of no packets. */
	const size_t n = from->n_writers > 0 ? from->n_writers : 1;
	struct mcast_window *w = calloc(1, sizeof(*w) + n * sizeof(w->part[0]));
	int err = 0;

	if (w == NULL)
		return -ENOMEM;
	w->key = from->key;
	w->mask = from->number_mask;
	w->id_mask = ~w->mask;
	w->id = from->n_writers > 0 ? from->writer[0].first & ~w->mask : 0;
	w->chunk = from->chunk != 0 ? from->chunk : qp->mtu;
	w->last = w->part; /* of no packets, if there are no writers */
	w->marks = from->marks;
	w->left = from->marks.expect;
	w->lkey = from->lkey;
	w->addr = from->addr;
	w->len = from->len;
	for (unsigned i = 0; err == 0 && i < from->n_writers; i++)
		err = add_part(w, &from->writer[i]);
	if (err < 0)
		free(w);
	else
		*made = w;
	return err;
}

void mcast_window_close(struct rnic_qp *qp)
{
	free(qp->window);
	qp->window = NULL;
}

int rnic_qp_mcast_window(struct rnic_qp *qp, const struct rnic_mcast_window *window)
{
	struct mcast_window *made = NULL;
	int err = 0;

	if (qp->ops != &rnic_uc_mcast && qp->ops != &rnic_ud)
		return -EOPNOTSUPP;
	if (window != NULL)
		err = check_window(qp, window);
	if (err == 0 && window != NULL)
		err = make_window(qp, window, &made);
	if (err < 0)
		return err;
	workers_hold(qp->rnic);
	mcast_window_close(qp);
	qp->window = made;
	workers_let_go(qp->rnic);
	return 0;
}
