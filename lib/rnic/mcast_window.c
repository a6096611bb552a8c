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

/* As opened: numbers count from the first part's first packet. */
struct part {
	struct wire_ip ip;
	uint32_t qpn;
	uint32_t start, n; /* packets */
	uint32_t last_len; /* bytes of the last one */
	uint64_t va;
};

struct mcast_window {
	uint32_t key, mask, base, chunk;
	struct part *last; /* whose the last packet was: most often also the next */
	uint8_t *memory;   /* as translated at mr_changes */
	uint64_t mr_changes;
	struct rnic_mcast_marks marks;
	uint32_t left; /* until somebody is told */
	uint32_t lkey;
	uint64_t addr, len;
	unsigned n_parts;
	struct part part[];
};

/* ---- what comes ---- */

HOT bool is_of(const struct part *p, uint32_t number)
{
	return number - p->start < p->n;
}

static COLD struct part *search(struct mcast_window *w, uint32_t number)
{
	unsigned from = 0, end = w->n_parts;

	while (end - from > 1) {
		const unsigned mid = from + (end - from) / 2;

		if (w->part[mid].start <= number)
			from = mid;
		else
			end = mid;
	}
	if (!is_of(&w->part[from], number))
		return NULL;
	return w->last = &w->part[from];
}

HOT bool is_from(const struct part *p, const struct wire_pkt *pkt, bool ud)
{
	return wire_ip_eq(&p->ip, &pkt->src) && (!ud || p->qpn == pkt->sqpn);
}

/* Regions may have gone since the last packet. */
static COLD bool translate(const struct rnic_qp *qp, struct mcast_window *w)
{
	w->memory = mr_translate(qp->init.pd, w->lkey, w->addr, w->len, IBV_ACCESS_LOCAL_WRITE);
	w->mr_changes = qp->rnic->mr_changes;
	return w->memory != NULL;
}

/* Where a packet with that number goes. */
HOT unsigned judge(struct rnic_qp *qp, struct mcast_window *w, const struct wire_pkt *pkt,
	uint32_t number, bool ud, uint64_t *va)
{
	const struct part *p = is_of(w->last, number) ? w->last : search(w, number);
	uint32_t index, len;

	if (!ud && (pkt->rkey != w->key || !(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE)))
		return RNIC_DROP_ACCESS;
	if (((pkt->imm ^ w->base) & ~w->mask) != 0 || p == NULL)
		return RNIC_DROP_ACCESS;
	if (!is_from(p, pkt, ud))
		return RNIC_DROP_SOURCE;
	index = number - p->start;
	len = index + 1 < p->n ? w->chunk : p->last_len;
	*va = p->va + (uint64_t)index * w->chunk;
	if (pkt->pay_len != len || (!ud && pkt->dmalen != len))
		return RNIC_DROP_LENGTH;
	if (!ud && pkt->va != *va)
		return RNIC_DROP_ACCESS;
	if (w->mr_changes != qp->rnic->mr_changes || w->memory == NULL)
		return translate(qp, w) ? 0 : RNIC_DROP_ACCESS;
	return 0;
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

/* Marked, and told when it is the last that is expected. */
HOT unsigned place(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, bool ud)
{
	struct mcast_window *w = qp->window;
	const uint32_t number = (pkt->imm - w->base) & w->mask, at = w->marks.first + number;
	const uint64_t bit = UINT64_C(1) << at % 64;
	uint64_t *word = &w->marks.bit[at / 64], va = 0;
	const unsigned drop = judge(qp, w, pkt, number, ud, &va);

	if (drop != 0)
		return drop;
	if (*word & bit)
		return comes_again(w);
	if (w->left == 1 && !has_request(qp))
		return RNIC_DROP_RNR;
	memcpy(w->memory + va, frame + pkt->pay_off, pkt->pay_len);
	__atomic_store_n(word, *word | bit, __ATOMIC_RELEASE);
	if (w->left-- == 1)
		tell(qp, pkt, ud);
	return 0;
}

/* Not marked: each is told. */
static unsigned place_each(struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt)
{
	struct mcast_window *w = qp->window;
	uint64_t va = 0;
	const unsigned drop = judge(qp, w, pkt, (pkt->imm - w->base) & w->mask, false, &va);

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
	return qp->window->marks.bit != NULL ? place(qp, frame, pkt, false)
					     : place_each(qp, frame, pkt);
}

/* ---- windows ---- */

static uint32_t packets(uint64_t len, uint32_t chunk)
{
	const uint64_t n = len / chunk + (len % chunk != 0);

	return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static int add_part(struct mcast_window *w, const struct rnic_mcast_writer *from)
{
	const uint32_t n = packets(from->len, w->chunk), start = (from->first - w->base) & w->mask;
	const struct part *before = w->n_parts > 0 ? &w->part[w->n_parts - 1] : NULL;
	struct part *p = &w->part[w->n_parts++];

	if (from->va > w->len || from->len > w->len - from->va)
		return -EINVAL;
	if (((from->first ^ w->base) & ~w->mask) != 0 ||
		(uint64_t)start + n > (uint64_t)w->mask + 1)
		return -EINVAL;
	if (before != NULL && (start <= before->start || start - before->start < before->n))
		return -EINVAL;
	if (w->marks.bit != NULL && (uint64_t)w->marks.first + start + n > w->marks.n)
		return -EINVAL;
	*p = (struct part){.ip = from->ip,
		.qpn = from->qpn,
		.start = start,
		.n = n,
		.last_len = n > 0 ? (uint32_t)(from->len - (uint64_t)(n - 1) * w->chunk) : 0,
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
	w->base = from->n_writers > 0 ? from->writer[0].first : 0;
	w->chunk = from->chunk != 0 ? from->chunk : qp->mtu;
	w->last = w->part;
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
