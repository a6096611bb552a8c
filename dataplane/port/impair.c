/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/port/impair.h"

#include <string.h>

#include "lib/wire/frame.h"
#include "lib/wire/icrc.h"
#include "lib/wire/random.h"

enum { OVERTAKEN_MAX = 4, HOLD_NS = 1000000 };

static bool happens(struct impair *im, uint64_t probability)
{
	return probability != 0 && (wire_random(&im->rng) >> 32) < probability;
}

static bool is_roce(const struct rte_mbuf *m, struct wire_pkt *pkt)
{
	return wire_parse(rte_pktmbuf_mtod(m, const uint8_t *), rte_pktmbuf_data_len(m), pkt) ==
		       WIRE_OK &&
	       pkt->kind == WIRE_ROCE;
}

/* Is it lost for its opcode? */
static bool opcode_loses(struct impair *im, const struct rte_mbuf *m)
{
	struct wire_pkt pkt;

	if (im->n_lose == 0 || !is_roce(m, &pkt))
		return false;
	for (const struct impair_lose *l = im->lose; l < im->lose + im->n_lose; l++)
		if (l->opcode == pkt.opcode && happens(im, l->loss))
			return true;
	return false;
}

static void flip_bit(struct impair *im, struct rte_mbuf *m)
{
	uint64_t bit = wire_random(&im->rng) % ((uint64_t)rte_pktmbuf_data_len(m) * 8);

	rte_pktmbuf_mtod(m, uint8_t *)[bit / 8] ^= (uint8_t)(1 << (bit % 8));
}

static void seal(struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	struct wire_pkt pkt;

	if (is_roce(m, &pkt))
		icrc_store(frame + pkt.end - ROCE_ICRC_LEN, wire_icrc(frame, &pkt));
}

static bool hold(struct impair *im, struct rte_mbuf *m, uint64_t now)
{
	if (im->n_held == IMPAIR_HELD)
		return false;
	im->held[im->n_held].mbuf = m;
	im->held[im->n_held].left = 1 + (unsigned)(wire_random(&im->rng) % OVERTAKEN_MAX);
	im->held[im->n_held].overtaken = false;
	im->held[im->n_held].until_ns = now + HOLD_NS;
	im->n_held++;
	return true;
}

/* Lets go of what has waited long enough. */
static void let_go(struct impair *im, struct rte_mbuf **out, struct impair_result *r, uint64_t now)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < im->n_held; i++)
		if (im->held[i].until_ns <= now)
			out[r->out++] = im->held[i].mbuf;
		else
			im->held[kept++] = im->held[i];
	im->n_held = kept;
}

/* A packet goes past what is held; what has been overtaken enough follows it. */
static void overtake(struct impair *im, struct rte_mbuf **out, struct impair_result *r)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < im->n_held; i++) {
		r->overtaken += !im->held[i].overtaken;
		im->held[i].overtaken = true;
		if (--im->held[i].left == 0)
			out[r->out++] = im->held[i].mbuf;
		else
			im->held[kept++] = im->held[i];
	}
	im->n_held = kept;
}

static void pass_on(
	struct impair *im, struct rte_mbuf *m, struct rte_mbuf **out, struct impair_result *r)
{
	out[r->out++] = m;
	overtake(im, out, r);
}

void impair_change(struct impair *im, const struct impair *to)
{
	struct impair next = {.over = true};

	if (to != NULL)
		next = *to;
	next.n_held = im->n_held;
	memcpy(next.held, im->held, sizeof(next.held));
	*im = next;
}

struct impair_result impair_apply(struct impair *im, struct rte_mbuf **in, unsigned n,
	struct rte_mbuf **out, struct rte_mempool *pool, uint64_t now)
{
	struct impair_result r = {0};

	let_go(im, out, &r, now);
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = in[i], *copy = NULL;

		if (happens(im, im->loss) || opcode_loses(im, m)) {
			rte_pktmbuf_free(m);
			r.lost++;
			continue;
		}
		if (im->icrc)
			seal(m);
		if (happens(im, im->dup)) {
			copy = rte_pktmbuf_copy(m, pool, 0, UINT32_MAX);
			r.doubled++;
			r.no_mbuf += copy == NULL;
		}
		if (happens(im, im->corrupt) && rte_pktmbuf_data_len(m) > 0) {
			flip_bit(im, m);
			r.corrupted++;
		}
		if (copy != NULL)
			pass_on(im, copy, out, &r);
		if (happens(im, im->reorder) && hold(im, m, now))
			continue;
		pass_on(im, m, out, &r);
	}
	return r;
}

bool impair_loses(struct impair *im)
{
	return happens(im, im->tx_loss);
}

void impair_free_held(struct impair *im)
{
	for (unsigned i = 0; i < im->n_held; i++)
		rte_pktmbuf_free(im->held[i].mbuf);
	im->n_held = 0;
}
