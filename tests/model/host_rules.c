/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/inc/seeded_bugs.h"
#include "tests/model/host_priv.h"
#include "tests/model/mutants.h"

/* ---- PSNs ---- */

unsigned mc_host_begin(const struct mc_sys *s, const struct mc_host_state *h)
{
	return s->prog.ctrl[h->from];
}

unsigned mc_host_end(const struct mc_sys *s, const struct mc_host_state *h)
{
	return s->prog.ctrl[mc_anew_next(&s->cfg, h->from)];
}

uint8_t mc_next_send(const struct mc_sys *s, const struct mc_host_state *h, unsigned r, unsigned i)
{
	const unsigned end = mc_host_end(s, h);

	while (i < end && !mc_sends(s, r, i))
		i++;
	return (uint8_t)i;
}

uint8_t mc_next_receive(
	const struct mc_sys *s, const struct mc_host_state *h, unsigned r, unsigned i)
{
	const unsigned end = mc_host_end(s, h);

	while (i < end && !mc_receives(s, r, i))
		i++;
	return (uint8_t)i;
}

uint32_t mc_messages_sent(
	const struct mc_sys *s, const struct mc_host_state *h, unsigned r, unsigned i)
{
	uint32_t n = 0;

	for (unsigned k = mc_host_begin(s, h); k < i; k++)
		n += s->prog.psn[k].last && mc_sends(s, r, k);
	return n;
}

uint32_t mc_messages_received(
	const struct mc_sys *s, const struct mc_host_state *h, unsigned r, unsigned i)
{
	uint32_t n = 0;

	for (unsigned k = mc_host_begin(s, h); k < i; k++)
		n += (s->prog.psn[k].last || MUT(MSN_PACKETS)) && mc_receives(s, r, k);
	return n - (MUT(MSN_LATE) && n > 1);
}

/* ---- CommLib ---- */

bool mc_finished_before(
	const struct mc_sys *s, const struct mc_host_state *h, unsigned r, unsigned i)
{
	return h->una >= i && mc_next_receive(s, h, r, h->epsn) >= i;
}

static bool is_ar(const struct mc_sys *s, unsigned op)
{
	return s->cfg.op[op].prim == INC_AR;
}

/* Has message msg what the window counts: is it acknowledged where it is sent, and there where it
 * is received? */
static bool message_over(
	const struct mc_sys *s, const struct mc_host_state *h, unsigned r, unsigned msg)
{
	unsigned last = s->prog.msg_last[msg];

	if (mc_sends(s, r, last) && h->una <= last && !s->cfg.window_results &&
		!MUT(WINDOW_RESULTS))
		return false;
	if (INC_BUG(FIG6) || MUT(WINDOW_ACKS) || (MUT(WINDOW_AR) && !mc_sends(s, r, last)))
		return true;
	return !mc_receives(s, r, last) || h->epsn > last;
}

bool mc_admitted(const struct mc_sys *s, const struct mc_host_state *h, unsigned r, unsigned i)
{
	const struct mc_program *p = &s->prog;
	const struct mc_psn *q = &p->psn[i];
	bool fenced = s->cfg.kind == INC_MIXED && (s->cfg.mode == INC_MODE_2 || MUT(FENCE_3));
	const unsigned ops = MUT(OPS_MORE) ? 5 : MUT(OPS_LESS) ? 3 : 4;
	unsigned oldest = 0;

	while (oldest < q->msg && message_over(s, h, r, oldest))
		oldest++;
	if (q->msg >= oldest + s->cfg.host_w + MUT(WINDOW_MORE) - MUT(WINDOW_LESS))
		return false;
	if (q->ctrl && q->op >= ops && !mc_finished_before(s, h, r, p->ctrl[q->op - ops + 1]))
		return false;
	fenced = fenced && !(is_ar(s, q->op) && !MUT(FENCE_AR) &&
				   (q->op == 0 || is_ar(s, q->op - 1u) || MUT(FENCE_BEHIND)));
	if (!fenced ||
		(q->ctrl ? INC_BUG(T10) || MUT(FENCE_NONE) : INC_BUG(T11) || MUT(RENDEZVOUS_NONE)))
		return true;
	if (!q->ctrl && MUT(RENDEZVOUS_RESULT))
		return h->epsn > p->ctrl[q->op];
	return mc_finished_before(s, h, r, q->ctrl ? i : p->ctrl[q->op] + 1u);
}
