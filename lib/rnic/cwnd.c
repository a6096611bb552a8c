/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/rnic/cwnd.h"

enum {
	SLOW_ROUNDS = 8, /* that show that a rate is gone, and not only held up once */
};

static const uint64_t NS_PER_S = 1000000000;

void cwnd_init(struct cwnd *w, uint32_t least)
{
	*w = (struct cwnd){.bytes = least, .least = least};
}

static void resize(struct cwnd *w, uint64_t bytes)
{
	w->bytes = (uint32_t)(bytes < w->least ? w->least : bytes > CWND_MAX ? CWND_MAX : bytes);
	w->fresh = true;
	w->timing = false;
	w->slow = 0;
}

/* The path has become less, by how much is not known: as long as half the window gives the same
 * rate it was too large. One that does not fill the path is a quarter of what it is to be. */
static void go_down(struct cwnd *w, uint64_t rate)
{
	if (rate < w->best - w->best / 5) {
		w->down = false;
		resize(w, w->bytes * UINT64_C(4));
	} else if (w->bytes > w->least) {
		resize(w, w->bytes / 2);
	} else {
		w->down = false;
	}
}

/* Twice the window gives twice the rate unless the path is full before. A round in which the
 * window was not all used tells nothing of it. */
static void judge(struct cwnd *w, uint32_t bytes, uint64_t ns)
{
	const uint64_t rate = bytes * NS_PER_S / (ns > 0 ? ns : 1);

	if (w->fresh || !w->wanted) {
		w->fresh = false;
		return;
	}
	if (rate >= w->best + w->best / 4) {
		w->best = rate;
		w->down = false;
		resize(w, w->bytes * UINT64_C(2));
	} else if (w->down) {
		go_down(w, rate);
	} else if (rate >= w->best / 2) {
		w->slow = 0;
	} else if (++w->slow == SLOW_ROUNDS) {
		w->best = rate;
		w->down = true;
		resize(w, w->bytes / 2);
	}
}

void cwnd_sent(struct cwnd *w, uint64_t next, uint32_t acked, uint64_t now)
{
	if (w->timing)
		return;
	w->timing = true;
	w->wanted = false;
	w->from = acked;
	w->end = next;
	w->begun = now;
}

void cwnd_acked(struct cwnd *w, uint64_t una, uint32_t acked, uint64_t now)
{
	if (!w->timing || una < w->end)
		return;
	w->timing = false;
	judge(w, acked - w->from, now - w->begun);
}

void cwnd_again(struct cwnd *w, uint64_t next)
{
	w->timing = w->timing && next != w->end;
}

void cwnd_cut(struct cwnd *w)
{
	w->best /= 2;
	resize(w, w->bytes / 2);
}

void cwnd_restart(struct cwnd *w)
{
	cwnd_init(w, w->least);
}
