/* SPDX-License-Identifier: BSD-3-Clause */
/* Links with priority flow control. Frames wait in front of the link in two lists, those that may
 * go ahead and the rest, and only the first of them is on the wire. A switch counts what waits in
 * it by the link that it came over; more than pfc_xoff, and that link's sender is asked to pause
 * the rest, by a frame that takes its turn and its time on the way back. A frame that is half out
 * goes on.
 *
 * Simpler than the standard: a pause lasts until it is taken back, as if it was asked for again in
 * time, and frames that ask are never lost. Hosts take all that comes and ask for nothing. What a
 * paused NIC has in its list stays in front of the host's acknowledgements, for want of room. */
#include <stdlib.h>

#include "lib/sim/priv.h"

enum { GO_ON, PAUSE, RESUME, N_KINDS };
enum { PAUSE_BYTES = 60 + SIM_WIRE_OVERHEAD };

/* Where the frame counts as long as it waits at link i; NULL: nowhere. */
static struct sim_link *source(struct sim *sim, unsigned in)
{
	struct sim_link *l = in ? &sim->link[in - 1] : NULL;

	return l && l->conf.pfc_xoff ? l : NULL;
}

/* Asks the sender of a link for a pause, or for more. Links of two directions are neighbours. */
static void ask(struct sim *sim, struct sim_link *of, bool pause)
{
	const unsigned i = (unsigned)(of - sim->link);
	struct sim_link *back = &sim->link[i ^ 1];
	const uint64_t from = back->busy > sim->now ? back->busy : sim->now;

	of->pausing = pause;
	back->busy = from;
	if (back->conf.mbps)
		back->busy += PAUSE_BYTES * UINT64_C(8000) / back->conf.mbps;
	back->count[SIM_L_BYTES] += PAUSE_BYTES;
	sim_queue_wake(
		sim, i * N_KINDS + (pause ? PAUSE : RESUME), back->busy + back->conf.delay_ns);
}

static void hold(struct sim *sim, struct sim_link *from, uint64_t bytes)
{
	from->held += bytes;
	if (!from->pausing && from->held > from->conf.pfc_xoff)
		ask(sim, from, true);
}

static void release(struct sim *sim, struct sim_link *from, uint64_t bytes)
{
	from->held -= bytes;
	if (from->pausing && from->held <= from->conf.pfc_xon)
		ask(sim, from, false);
}

/* What may leave next; NULL: nothing. */
static struct sim_frame *take(struct sim_queue *q, bool *ahead)
{
	struct sim_frame *f;

	*ahead = q->of[true].first != NULL;
	if (!*ahead && q->paused)
		return NULL;
	f = q->of[*ahead].first;
	if (f) {
		q->of[*ahead].first = f->next;
		f->next = NULL; /* it goes into lists that rely on that */
	}
	return f;
}

/* The frame that was half out has left: it counts no more. */
static void has_left(struct sim *sim, struct sim_queue *q)
{
	struct sim_link *from = source(sim, q->source);

	q->sending = false;
	if (from)
		release(sim, from, q->leaving);
}

static void go_on(struct sim *sim, unsigned i)
{
	struct sim_link *l = &sim->link[i];
	struct sim_queue *q = &l->queue;
	struct sim_frame *f;
	bool ahead;

	while (!q->sending && (f = take(q, &ahead))) {
		const uint64_t busy = l->busy;

		q->leaving = f->len + SIM_WIRE_OVERHEAD;
		q->source = ahead ? 0 : f->in;
		q->bytes -= q->leaving;
		q->sending = true;
		sim_transmit(sim, i, f, ahead);
		if (l->busy > sim->now && l->busy != busy)
			sim_queue_wake(sim, i * N_KINDS + GO_ON, l->busy);
		else /* a link that is down, or takes no time */
			has_left(sim, q);
	}
}

void sim_queue_put(struct sim *sim, unsigned i, struct sim_frame *f, bool ahead)
{
	struct sim_link *l = &sim->link[i], *from = ahead ? NULL : source(sim, f->in);
	struct sim_queue *q = &l->queue;
	const uint64_t bytes = f->len + SIM_WIRE_OVERHEAD;

	if (from && from->conf.pfc_room && from->held + bytes > from->conf.pfc_room) {
		l->count[SIM_L_FRAMES]++;
		l->count[SIM_L_QUEUE_DROP]++;
		sim_frame_put(sim, f);
		return;
	}
	f->next = NULL;
	if (q->of[ahead].first)
		q->of[ahead].last->next = f;
	else
		q->of[ahead].first = f;
	q->of[ahead].last = f;
	q->bytes += bytes;
	if (from)
		hold(sim, from, bytes);
	go_on(sim, i);
}

void sim_queue_event(struct sim *sim, unsigned event)
{
	const unsigned i = event / N_KINDS;
	struct sim_link *l = &sim->link[i];

	switch (event % N_KINDS) {
	case GO_ON:
		has_left(sim, &l->queue);
		break;
	case PAUSE:
		l->count[SIM_L_PAUSES]++;
		l->queue.paused = true;
		return;
	default:
		l->queue.paused = false;
	}
	go_on(sim, i);
	if (l->queue.bytes == 0 && l->from < sim->topo->n_hosts)
		sim_kick(sim, l->from); /* there is room */
}

void sim_queue_close(struct sim_link *l)
{
	for (unsigned c = 0; c < 2; c++)
		for (struct sim_frame *f; (f = l->queue.of[c].first); free(f))
			l->queue.of[c].first = f->next;
}
