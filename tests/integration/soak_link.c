/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/integration/soak_link.h"

#include <inttypes.h>
#include <stdlib.h>

enum { DELAY = 4000, JITTER = 20000, TICK = 1000 };

static uint64_t random64(struct link *link)
{
	uint64_t x = link->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return link->random = x;
}

struct link *link_open(struct rnic *a, struct rnic *b, uint64_t seed)
{
	struct link *link = calloc(1, sizeof(*link));

	if (link == NULL)
		exit(2);
	*link = (struct link){.rnic = {a, b},
		.random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1,
		.loss = 5,
		.twice = 5,
		.late = 20,
		.corrupt = 5,
		.frames = malloc(LINK_SLOTS * sizeof(*link->frames)),
		.free = malloc(LINK_SLOTS * sizeof(*link->free)),
		.heap = malloc(LINK_SLOTS * sizeof(*link->heap))};
	if (link->frames == NULL || link->free == NULL || link->heap == NULL)
		exit(2);
	for (uint32_t i = 0; i < LINK_SLOTS; i++)
		link->free[link->n_free++] = i;
	return link;
}

void link_close(struct link *link)
{
	free(link->frames);
	free(link->free);
	free(link->heap);
	free(link);
}

/* ---- frames on the way ---- */

static bool before(const struct link *link, uint32_t a, uint32_t b)
{
	const struct link_frame *x = &link->frames[a], *y = &link->frames[b];

	return x->at != y->at ? x->at < y->at : x->order < y->order;
}

static void push(struct link *link, uint32_t frame)
{
	uint32_t i = link->n_heap++;

	for (; i > 0 && before(link, frame, link->heap[(i - 1) / 2]); i = (i - 1) / 2)
		link->heap[i] = link->heap[(i - 1) / 2];
	link->heap[i] = frame;
}

static uint32_t pop(struct link *link)
{
	uint32_t first = link->heap[0], last = link->heap[--link->n_heap], i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child >= link->n_heap)
			break;
		child += child + 1 < link->n_heap &&
			 before(link, link->heap[child + 1], link->heap[child]);
		if (!before(link, link->heap[child], last))
			break;
		link->heap[i] = link->heap[child];
		i = child;
	}
	link->heap[i] = last;
	return first;
}

static bool chance(struct link *link, unsigned per_mille)
{
	return random64(link) % 1000 < per_mille;
}

/* A bit that the ICRC covers: from the BTH on, without the byte of FECN and BECN. */
static void spoil(struct link *link, struct link_frame *frame)
{
	const uint32_t bth = 14 + 20 + 8, fecn = bth + 4;
	uint32_t at = bth + (uint32_t)(random64(link) % (frame->len - bth));

	frame->bytes[at == fecn ? bth : at] ^= (uint8_t)(1 << random64(link) % 8);
	frame->corrupt = true;
}

static void put(struct link *link, int from, const struct rnic_frame *rf, bool late)
{
	struct link_frame *frame;
	uint32_t i;

	if (link->n_free == 0 || chance(link, link->loss)) {
		link->count[from].lost++;
		return;
	}
	i = link->free[--link->n_free];
	frame = &link->frames[i];
	*frame = (struct link_frame){.order = link->order++, .to = !from};
	frame->len = (uint32_t)rnic_frame_flatten(rf, frame->bytes, sizeof(frame->bytes));
	/* Many arrive together: as bursts do, and for the sake of speed. */
	frame->at = link->now + DELAY + (late ? random64(link) % JITTER : 0);
	frame->at = (frame->at + TICK - 1) / TICK * TICK;
	if (chance(link, link->corrupt)) {
		spoil(link, frame);
		link->count[from].corrupt++;
	}
	push(link, i);
}

static void send_all(struct link *link, int from)
{
	struct rnic_frame frame;

	while (rnic_tx(link->rnic[from], RNIC_ALL_PORTS, &frame, link->now)) {
		link->count[from].sent++;
		put(link, from, &frame, chance(link, link->late));
		if (chance(link, link->twice)) {
			link->count[from].doubled++;
			put(link, from, &frame, true);
		}
	}
}

static void deliver(struct link *link, const struct link_frame *frame)
{
	struct link_count *count = &link->count[!frame->to];
	unsigned drop = rnic_rx(link->rnic[frame->to], 0, frame->bytes, frame->len, link->now);

	count->taken += drop == 0;
	count->dropped += drop != 0;
	count->corrupt_dropped += frame->corrupt && drop > 0 && drop < WIRE_N_DROPS;
}

void link_step(struct link *link, void (*on_frame)(void *arg, int to), void *arg)
{
	uint64_t next = UINT64_MAX;

	for (int i = 0; i < 2; i++) {
		uint64_t deadline;

		send_all(link, i);
		deadline = rnic_deadline(link->rnic[i]);
		next = deadline < next ? deadline : next;
	}
	if (link->n_heap > 0 && link->frames[link->heap[0]].at < next)
		next = link->frames[link->heap[0]].at;
	/* Time goes on even when nothing is due: the caller may be waiting for it. */
	link->now = next == UINT64_MAX ? link->now + TICK : next > link->now ? next : link->now;
	while (link->n_heap > 0 && link->frames[link->heap[0]].at <= link->now) {
		uint32_t i = pop(link);

		deliver(link, &link->frames[i]);
		on_frame(arg, link->frames[i].to);
		link->free[link->n_free++] = i;
	}
	rnic_timer(link->rnic[0], link->now);
	rnic_timer(link->rnic[1], link->now);
}

bool link_idle(const struct link *link)
{
	return link->n_heap == 0 && !rnic_has_work(link->rnic[0]) && !rnic_has_work(link->rnic[1]);
}

/* ---- accounts ---- */

static bool balance_end(const struct link *link, int from, FILE *out)
{
	const struct link_count *c = &link->count[from];
	const struct rnic *tx = link->rnic[from], *rx = link->rnic[!from];
	uint64_t drops = 0;
	bool ok;

	fprintf(out,
		"end %d: %" PRIu64 " frames + %" PRIu64 " doubled = %" PRIu64 " lost + %" PRIu64
		" taken + %" PRIu64 " dropped\n",
		from, c->sent, c->doubled, c->lost, c->taken, c->dropped);
	for (unsigned i = 1; i < RNIC_N_DROPS; i++) {
		uint64_t n = rnic_drop_count(rx, i);

		drops += n;
		if (n > 0)
			fprintf(out, "  %-18s %10" PRIu64 "  %s\n", rnic_drop_name(i), n,
				rnic_drop_text(i));
	}
	ok = c->sent + c->doubled == c->lost + c->taken + c->dropped;
	ok = ok && c->sent == rnic_count(tx, RNIC_C_TX_FRAMES);
	ok = ok && c->taken == rnic_count(rx, RNIC_C_RX_ACCEPTED) && c->dropped == drops;
	ok = ok && c->taken + c->dropped == rnic_count(rx, RNIC_C_RX_FRAMES);
	ok = ok && c->corrupt == c->corrupt_dropped;
	if (!ok)
		fprintf(out, "end %d: the accounts do not balance\n", from);
	return ok;
}

bool link_balance(const struct link *link, FILE *out)
{
	bool ok = balance_end(link, 0, out);

	return balance_end(link, 1, out) && ok && link_idle(link);
}
