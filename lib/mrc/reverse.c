/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mrc/reverse.h"

#include "lib/mrc/rcv.h"
#include "lib/wire/psn.h"
#include "lib/wire/random.h"

void mrc_reverse_init(
	struct mrc_reverse *r, const struct mrc_evset *evs, unsigned silent, uint64_t seed)
{
	*r = (struct mrc_reverse){.n_ports = evs->n_ports,
		.silent_most = silent,
		.base_rtt_ns = evs->base_rtt_ns,
		.random = seed};
	for (unsigned i = 0; i < MRC_REVERSE_OUT; i++)
		r->out[i] = MRC_NO_EV;
	for (unsigned p = 0; p < evs->n_ports; p++)
		r->ev[p] = evs->ring[p].n ? evs->ring[p].index[0] : MRC_NO_EV;
}

/* Of these ports those that seem to work; if none does, all. */
static uint8_t trusted(const struct mrc_reverse *r, const struct mrc_evset *evs, uint8_t ports)
{
	uint8_t good = 0;

	for (unsigned p = 0; p < r->n_ports; p++)
		good |= (uint8_t)((evs->ring[p].n > 0 && r->silent[p] < r->silent_most) << p);
	return ports & good ? ports & good : ports;
}

uint8_t mrc_reverse_ports(const struct mrc_reverse *r, const struct mrc_evset *evs)
{
	return trusted(r, evs, evs->up);
}

int mrc_reverse_next(struct mrc_reverse *r, const struct mrc_evset *evs, uint8_t usable)
{
	const uint8_t ports = trusted(r, evs, usable & evs->up);

	for (unsigned i = 0; i < r->n_ports; i++) {
		const unsigned p = r->turn;

		r->turn = (r->turn + 1) % r->n_ports;
		if (!(ports >> p & 1) || r->ev[p] == MRC_NO_EV)
			continue;
		/* A controller's denial holds for control packets as well. */
		if (evs->ev[r->ev[p]].state == MRC_EV_DENIED)
			r->ev[p] = evs->ring[p].n ? evs->ring[p].index[0] : MRC_NO_EV;
		if (r->ev[p] != MRC_NO_EV)
			return r->ev[p];
	}
	return MRC_NO_EV;
}

void mrc_reverse_worked(struct mrc_reverse *r, const struct mrc_evset *evs, int ev)
{
	if (ev < 0 || (unsigned)ev >= evs->n || evs->ev[ev].state != MRC_EV_GOOD)
		return;
	r->ev[evs->ev[ev].port] = (int16_t)ev;
	r->silent[evs->ev[ev].port] = 0;
}

static uint64_t draw(struct mrc_reverse *r)
{
	return wire_random(&r->random);
}

void mrc_reverse_doubt(struct mrc_reverse *r, const struct mrc_evset *evs)
{
	const unsigned p = r->doubted;

	r->doubted = (p + 1) % r->n_ports;
	if (evs->ring[p].n)
		r->ev[p] = evs->ring[p].index[draw(r) % evs->ring[p].n];
}

/* What is too far behind the newest to be remembered counts as known. PSNs come round: what is
 * further behind than any window is ahead. */
static bool is_first(struct mrc_reverse *r, uint32_t psn)
{
	enum { FAR = MRC_MPR_MAX * MRC_MPR_UNIT, KEPT = 64 };
	const int32_t ahead = psn_diff(psn, r->repeated_psn);
	uint64_t bit;
	bool first;

	if (r->repeated == 0 || ahead > 0 || ahead < -FAR) {
		r->repeated = ahead > 0 && ahead < KEPT ? r->repeated << ahead | 1 : 1;
		r->repeated_psn = psn;
		return true;
	}
	if (ahead <= -KEPT)
		return false;
	bit = UINT64_C(1) << -ahead;
	first = !(r->repeated & bit);
	r->repeated |= bit;
	return first;
}

void mrc_reverse_repeated(struct mrc_reverse *r, const struct mrc_evset *evs, uint32_t psn)
{
	if (!is_first(r, psn))
		mrc_reverse_doubt(r, evs);
}

/* One of the active EVs of a usable port. */
static int any(struct mrc_reverse *r, const struct mrc_evset *evs, uint8_t usable)
{
	unsigned n = 0, at;

	for (unsigned p = 0; p < evs->n_ports; p++)
		n += usable >> p & 1 ? evs->ring[p].n : 0;
	if (n == 0)
		return MRC_NO_EV;
	at = (unsigned)(draw(r) % n);
	for (unsigned p = 0; p < evs->n_ports; p++) {
		if (!(usable >> p & 1))
			continue;
		if (at < evs->ring[p].n)
			return evs->ring[p].index[at];
		at -= evs->ring[p].n;
	}
	return MRC_NO_EV;
}

/* The probe whose place it takes was not answered in all this time. */
static void remember(struct mrc_reverse *r, const struct mrc_evset *evs, uint16_t id, int ev)
{
	int16_t *place = &r->out[id % MRC_REVERSE_OUT];

	if (*place != MRC_NO_EV && r->silent[evs->ev[*place].port] < r->silent_most)
		r->silent[evs->ev[*place].port]++;
	*place = (int16_t)ev;
}

bool mrc_reverse_probe(struct mrc_reverse *r, const struct mrc_evset *evs, uint8_t usable,
	uint64_t now, int *ev, uint16_t *id)
{
	const bool wanted = r->received && !r->sent;

	if (now < r->round)
		return false;
	if (!r->received && !r->sent)
		return false;
	r->round = now + r->base_rtt_ns;
	r->received = r->sent = false;
	if (!wanted || (*ev = any(r, evs, usable & evs->up)) == MRC_NO_EV)
		return false;
	*id = ++r->probe_id;
	remember(r, evs, *id, *ev);
	return true;
}

void mrc_reverse_answered(struct mrc_reverse *r, const struct mrc_evset *evs, uint16_t id)
{
	int16_t *place = &r->out[id % MRC_REVERSE_OUT];

	if ((uint16_t)(r->probe_id - id) >= MRC_REVERSE_OUT || *place == MRC_NO_EV)
		return;
	mrc_reverse_worked(r, evs, *place);
	*place = MRC_NO_EV;
}

uint64_t mrc_reverse_deadline(const struct mrc_reverse *r)
{
	return r->received || r->sent ? r->round : UINT64_MAX;
}
