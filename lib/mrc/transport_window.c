/* SPDX-License-Identifier: BSD-3-Clause */
/* One congestion window for all queue pairs to a destination (setting nscc_shared; docs/mrc.md, 9).
 *
 * It has the parameters of the first queue pair that needs it, for as long as anyone has it; who
 * has others keeps a window of its own. Its bytes on the way are the sum of what each of them has
 * there. Word to one of them may make room that another one waits for. So who finds it full stands
 * in a line, and whoever is first there sends its next packet, and goes to the end: turns are
 * packet by packet. Who could send but for another reason cannot (its ports have no room, its
 * peer's window is full) leaves the line, so that nobody is held up by it. */
#include "lib/mrc/transport_priv.h"
#include "lib/rnic/device.h"

static struct mrc_window *window_of(const struct mrc_conn *c)
{
	return &c->peer->window;
}

struct nscc *mrc_window_join(struct mrc_conn *c)
{
	struct mrc_window *w = window_of(c);

	if (!c->dev->set.nscc_shared || (w->n > 0 && !nscc_same_rules(&w->nscc, &c->nscc)))
		return &c->nscc;
	if (w->n++ == 0) {
		w->nscc = c->nscc;
		TAILQ_INIT(&w->line);
	}
	c->shares = true;
	return &w->nscc;
}

static void stand(struct mrc_conn *c)
{
	TAILQ_INSERT_TAIL(&window_of(c)->line, c, in_line);
	c->waits = true;
}

static void step_out(struct mrc_conn *c)
{
	if (c->waits)
		TAILQ_REMOVE(&window_of(c)->line, c, in_line);
	c->waits = false;
}

static void call_first(struct mrc_window *w)
{
	struct mrc_conn *first = TAILQ_FIRST(&w->line);

	if (first != NULL && nscc_may_send(&w->nscc, 1))
		qp_ready(first->qp);
}

void mrc_window_leave(struct mrc_conn *c)
{
	struct mrc_window *w;

	if (!c->shares)
		return;
	w = window_of(c);
	step_out(c);
	mrc_req_leave_window(&c->req);
	c->shares = false;
	w->n--;
	call_first(w);
}

void mrc_window_turn(struct mrc_conn *c)
{
	const struct mrc_conn *first = c->shares ? TAILQ_FIRST(&window_of(c)->line) : NULL;

	c->req.held = first != NULL && first != c;
}

void mrc_window_turned(struct mrc_conn *c, bool sent)
{
	if (!c->shares)
		return;
	if (!sent && mrc_req_blocked(&c->req)) {
		if (!c->waits)
			stand(c);
	} else if (c->waits) {
		step_out(c);
		if (sent && !TAILQ_EMPTY(&window_of(c)->line))
			stand(c);
		call_first(window_of(c));
	}
}

void mrc_window_news(struct mrc_conn *c)
{
	if (c->shares)
		call_first(window_of(c));
}
