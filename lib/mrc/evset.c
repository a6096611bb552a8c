/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mrc/evset.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "lib/mrc/seeded_bugs.h"
#include "lib/mrc/settings.h"
#include "lib/wire/random.h"

enum { FIRST_PROBE_RTTS = 8, LOST_PROBE_RTTS = 4, LEAST_PROBE_MS = 1, NS_PER_MS = 1000000 };
enum { MARKED_RTTS = 8, LEAST_REST = 64, LONGEST_REST = 1 << 20 }; /* changing places, in RTTs */

static uint64_t draw(struct mrc_evset *s)
{
	return wire_random(&s->random);
}

static void shuffle(struct mrc_evset *s, unsigned port)
{
	uint8_t *index = s->ring[port].index;

	for (unsigned i = s->ring[port].n; i > 1; i--) {
		unsigned j = (unsigned)(draw(s) % i);
		uint8_t swap = index[i - 1];

		index[i - 1] = index[j];
		index[j] = swap;
	}
	s->ring[port].at = 0;
}

static struct mrc_ev *get(struct mrc_evset *s, int index)
{
	return index >= 0 && (unsigned)index < s->n ? &s->ev[index] : NULL;
}

static void set_state(struct mrc_evset *s, struct mrc_ev *e, enum mrc_ev_state state)
{
	unsigned i = (unsigned)(e - s->ev);
	bool was_good = e->state <= MRC_EV_SKIP, is_good = state <= MRC_EV_SKIP;

	if (e->state != state && !(was_good && is_good))
		s->changed[i / 64] |= (uint64_t)1 << i % 64;
	s->n_bad += (state == MRC_EV_BAD) - (e->state == MRC_EV_BAD);
	e->state = (uint8_t)state;
}

static void enter(struct mrc_evset *s, struct mrc_ev *e)
{
	e->active = true;
	s->ring[e->port].index[s->ring[e->port].n++] = (uint8_t)(e - s->ev);
	s->n_active++;
}

static int backup_of(const struct mrc_evset *s, unsigned port)
{
	for (unsigned i = 0; i < s->n; i++) {
		const struct mrc_ev *e = &s->ev[i];

		if ((e->port == port || MRC_BUG(OTHER_PLANE)) && !e->active &&
			e->state <= MRC_EV_SKIP)
			return (int)i;
	}
	return MRC_NO_EV;
}

/* Out of the ring: a backup of the same port takes the very place, or (MRC_NO_EV) the ring gets
 * shorter. */
static void leave_to(struct mrc_evset *s, struct mrc_ev *e, int backup)
{
	uint8_t *index = s->ring[e->port].index;
	unsigned place = 0;

	if (!e->active)
		return;
	e->active = false;
	e->moved_in = 0;
	while (index[place] != (uint8_t)(e - s->ev))
		place++;
	if (backup != MRC_NO_EV) {
		index[place] = (uint8_t)backup;
		s->ev[backup].active = true;
		return;
	}
	s->n_active--;
	s->ring[e->port].n--;
	memmove(index + place, index + place + 1, (size_t)s->ring[e->port].n - place);
	if (s->ring[e->port].at > place)
		s->ring[e->port].at--;
}

static void leave(struct mrc_evset *s, struct mrc_ev *e)
{
	leave_to(s, e, backup_of(s, e->port));
}

/* Usable again: into the ring if that is short, else backup. */
static void come_back(struct mrc_evset *s, struct mrc_ev *e, enum mrc_ev_state state)
{
	set_state(s, e, state);
	e->probing = false;
	e->successes = 0;
	if (!e->active && s->ring[e->port].n < s->per_port)
		enter(s, e);
}

/* Where ev is in the table, or the free place where it would be. */
static unsigned bucket_of(const struct mrc_evset *s, uint32_t ev)
{
	unsigned at = ev * 0x9e3779b1u >> 23;

	static_assert(MRC_EV_BUCKETS == 1 << (32 - 23), "the hash covers the table");
	while (s->bucket[at] && s->ev[s->bucket[at] - 1].ev != ev)
		at = (at + 1) % MRC_EV_BUCKETS;
	return at;
}

static bool config_ok(const struct mrc_evset_config *c, const uint8_t *port, unsigned n)
{
	if (n == 0 || n > MRC_MAX_EVS || c->min_active > n || c->n_ports == 0 ||
		c->n_ports > MRC_MAX_PORTS || c->max_active < c->n_ports || c->base_rtt_ns == 0)
		return false;
	for (unsigned i = 0; i < n; i++) {
		if (port[i] >= c->n_ports)
			return false;
	}
	return true;
}

int mrc_evset_init(struct mrc_evset *s, const struct mrc_evset_config *c, const uint32_t *ev,
	const uint8_t *port, unsigned n)
{
	unsigned active = n < c->max_active ? n : c->max_active;

	if (!config_ok(c, port, n))
		return -EINVAL;
	memset(s, 0, sizeof(*s));
	s->n = n;
	s->n_ports = c->n_ports;
	s->min_active = c->min_active;
	s->per_port = active / c->n_ports > 0 ? active / c->n_ports : 1;
	s->base_rtt_ns = c->base_rtt_ns;
	s->probe_cap_ns =
		c->probe_cap_ns ? c->probe_cap_ns : MRC_DFLT_probe_cap_ms * (uint64_t)NS_PER_MS;
	s->rest_rtts = LEAST_REST;
	s->attempt = 1;
	s->probes_to_return = c->probes_to_return ? c->probes_to_return : MRC_DFLT_probes_to_return;
	s->up = (uint8_t)((1u << c->n_ports) - 1);
	s->random = c->seed;
	for (unsigned i = 0; i < n; i++) {
		unsigned bucket = bucket_of(s, ev[i]);

		if (s->bucket[bucket])
			return -EINVAL; /* twice */
		s->bucket[bucket] = (uint16_t)(i + 1);
		s->ev[i] = (struct mrc_ev){.ev = ev[i], .port = port[i]};
		if (s->ring[port[i]].n < s->per_port)
			enter(s, &s->ev[i]);
	}
	for (unsigned p = 0; p < c->n_ports; p++)
		shuffle(s, p);
	return 0;
}

/* The entry under the ring's hand, which moves on; a lap ends with another order. */
static struct mrc_ev *step(struct mrc_evset *s, unsigned port)
{
	if (s->ring[port].at >= s->ring[port].n)
		shuffle(s, port);
	return &s->ev[s->ring[port].index[s->ring[port].at++]];
}

/* At most one SKIP ends for each packet: passed over, its turn is served. Where all are SKIP, the
 * first one met serves. */
static int next_of_port(struct mrc_evset *s, unsigned port, uint64_t now)
{
	struct mrc_ev *first = NULL;

	for (unsigned i = 0; i < s->ring[port].n; i++) {
		struct mrc_ev *e = step(s, port);

		if (e->state == MRC_EV_SKIP && e->skip_until <= now)
			e->state = MRC_EV_GOOD;
		if (e->state == MRC_EV_GOOD)
			return (int)(e - s->ev);
		if (first == NULL) {
			first = e;
			e->state = MRC_EV_GOOD;
		}
	}
	return first ? (int)(first - s->ev) : MRC_NO_EV;
}

/* Rather than stand still: what has been bad for the longest time may have healed. */
static int oldest_bad(const struct mrc_evset *s, uint8_t ports)
{
	int oldest = MRC_NO_EV;

	for (unsigned i = 0; i < s->n; i++) {
		const struct mrc_ev *e = &s->ev[i];

		if (e->state == MRC_EV_BAD && ports >> e->port & 1 &&
			(oldest == MRC_NO_EV || e->bad_since < s->ev[oldest].bad_since))
			oldest = (int)i;
	}
	return oldest;
}

static bool any_usable(const struct mrc_evset *s)
{
	for (unsigned p = 0; p < s->n_ports; p++) {
		if (s->up >> p & 1 && s->ring[p].n > 0)
			return true;
	}
	return false;
}

int mrc_evset_next(struct mrc_evset *s, uint8_t room, uint64_t now)
{
	uint8_t ports = room & s->up;

	/* In lap L the turns begin with port L modulo n_ports: none is always first. So many turns
	 * have a whole lap in them. */
	for (unsigned i = 0; i < 2 * s->n_ports; i++) {
		unsigned port = (s->turn / s->n_ports + s->turn) % s->n_ports;
		int index;

		s->turn = (s->turn + 1) % (s->n_ports * s->n_ports);
		index = ports >> port & 1 ? next_of_port(s, port, now) : MRC_NO_EV;
		if (index != MRC_NO_EV)
			return index;
	}
	return any_usable(s) ? MRC_NO_EV : oldest_bad(s, ports);
}

static int rested_backup(const struct mrc_evset *s, unsigned port, uint32_t rtt)
{
	for (unsigned i = 0; i < s->n; i++) {
		const struct mrc_ev *e = &s->ev[i];

		if (e->port == port && !e->active && e->state <= MRC_EV_SKIP &&
			(e->marked_at == 0 || rtt - e->marked_at > s->rest_rtts))
			return (int)i;
	}
	return MRC_NO_EV;
}

/* RTTs on end in which the path was marked; 0: this one was counted. */
static unsigned count_marked(struct mrc_evset *s, struct mrc_ev *e, uint32_t rtt)
{
	const uint32_t since = rtt - e->marked_at;

	if (e->marked_at && since == 0)
		return 0;
	if (e->marked_at == 0 || since > 2)
		e->marked_rtts = 0;
	if (e->moved_in && since > s->rest_rtts) { /* it did help */
		e->moved_in = 0;
		s->rest_rtts = LEAST_REST;
	}
	e->marked_at = rtt;
	e->marked_rtts += e->marked_rtts < UINT8_MAX;
	return e->marked_rtts;
}

/* It did not help. Once for all that have moved since it was last said, however often they are
 * marked. */
static void rest_longer(struct mrc_evset *s, const struct mrc_ev *e)
{
	if (e->moved_in != s->attempt || s->rest_rtts == LONGEST_REST)
		return;
	s->rest_rtts *= 2;
	s->attempt = (uint16_t)(s->attempt % UINT16_MAX + 1);
}

/* A mark passes a path over once, which is little where it is one of few. Marked all the time, it
 * leaves the others' traffic alone if there is a path to go to. Where all are marked, since what is
 * full is not the path's alone, that is tried ever more seldom. */
static void marked(struct mrc_evset *s, struct mrc_ev *e, uint64_t now)
{
	const uint32_t rtt = (uint32_t)(now / s->base_rtt_ns) + 1;
	unsigned n;
	int backup;

	if (!e->active || s->n_active == s->n)
		return;
	n = count_marked(s, e, rtt);
	if (n < MARKED_RTTS)
		return;
	if (n == MARKED_RTTS)
		rest_longer(s, e);
	backup = rested_backup(s, e->port, rtt);
	if (backup == MRC_NO_EV)
		return;
	leave_to(s, e, backup);
	s->ev[backup].moved_in = s->attempt;
	s->ev[backup].marked_at = rtt;
	s->ev[backup].marked_rtts = 0;
	e->state = MRC_EV_GOOD;
}

void mrc_evset_skip(struct mrc_evset *s, int index, uint64_t now)
{
	struct mrc_ev *e = get(s, index);

	if (e == NULL || e->state > MRC_EV_SKIP)
		return;
	e->state = MRC_EV_SKIP;
	e->skip_until = now + s->base_rtt_ns;
	marked(s, e, now);
}

/* Too few are left to do without e: what has been bad for so long that it might have been probed
 * takes its turn, of whichever port. False: there is nothing of the kind. */
static bool take_turns(struct mrc_evset *s, const struct mrc_ev *e, uint64_t now)
{
	const int other = oldest_bad(s, s->up);

	if (other == MRC_NO_EV || s->ev[other].bad_since + FIRST_PROBE_RTTS * s->base_rtt_ns > now)
		return false;
	come_back(s, &s->ev[other], MRC_EV_GOOD);
	return s->n_active > s->min_active || !e->active;
}

bool mrc_evset_bad(struct mrc_evset *s, int index, uint64_t now)
{
	struct mrc_ev *e = get(s, index);

	if (e == NULL || e->state > MRC_EV_SKIP)
		return false;
	if (!MRC_BUG(MIN_ACTIVE) && e->active && s->n_active <= s->min_active &&
		backup_of(s, e->port) == MRC_NO_EV && !take_turns(s, e, now))
		return false;
	leave(s, e);
	set_state(s, e, MRC_EV_BAD);
	e->bad_since = now;
	e->probing = false;
	e->successes = 0;
	e->probe_wait = FIRST_PROBE_RTTS * s->base_rtt_ns;
	e->probe_at = now + e->probe_wait;
	return true;
}

void mrc_evset_reprieve(struct mrc_evset *s, int index, uint64_t now)
{
	struct mrc_ev *e = get(s, index);

	if (e == NULL || e->state != MRC_EV_BAD)
		return;
	come_back(s, e, MRC_EV_SKIP);
	e->skip_until = now + s->base_rtt_ns;
}

void mrc_evset_deny(struct mrc_evset *s, int index)
{
	struct mrc_ev *e = get(s, index);

	if (e == NULL || e->state == MRC_EV_DENIED)
		return;
	leave(s, e);
	set_state(s, e, MRC_EV_DENIED);
}

void mrc_evset_allow(struct mrc_evset *s, int index)
{
	struct mrc_ev *e = get(s, index);

	if (e != NULL && e->state > MRC_EV_SKIP)
		come_back(s, e, MRC_EV_GOOD);
}

void mrc_evset_port(struct mrc_evset *s, unsigned port, bool up)
{
	if (port >= s->n_ports)
		return;
	s->up = (uint8_t)(up ? s->up | 1u << port : s->up & ~(1u << port));
}

static void probe_failed(struct mrc_evset *s, struct mrc_ev *e, uint64_t now)
{
	e->probing = MRC_BUG(PROBE_STUCK);
	e->successes = 0;
	e->probe_wait = 2 * e->probe_wait < s->probe_cap_ns ? 2 * e->probe_wait : s->probe_cap_ns;
	e->probe_at = now + e->probe_wait;
}

static uint64_t probe_patience(const struct mrc_evset *s)
{
	uint64_t least = LEAST_PROBE_MS * NS_PER_MS, rtts = LOST_PROBE_RTTS * s->base_rtt_ns;

	return rtts > least ? rtts : least;
}

int mrc_evset_probe_due(struct mrc_evset *s, uint64_t now)
{
	struct mrc_ev *due = NULL;

	for (unsigned i = 0; s->n_bad > 0 && i < s->n; i++) {
		struct mrc_ev *e = &s->ev[i];

		if (e->state != MRC_EV_BAD || e->probe_at > now)
			continue;
		if (e->probing)
			probe_failed(s, e, now);
		else if (s->up >> e->port & 1 && (due == NULL || e->probe_at < due->probe_at))
			due = e;
	}
	if (due == NULL || s->next_probe > now)
		return MRC_NO_EV;
	s->next_probe = now + s->base_rtt_ns;
	due->probing = true;
	due->probe_at = now + probe_patience(s);
	return (int)(due - s->ev);
}

uint64_t mrc_evset_probe_deadline(const struct mrc_evset *s)
{
	uint64_t deadline = UINT64_MAX;

	for (unsigned i = 0; s->n_bad > 0 && i < s->n; i++) {
		const struct mrc_ev *e = &s->ev[i];
		uint64_t at = e->probe_at;

		if (e->state != MRC_EV_BAD || (!e->probing && !(s->up >> e->port & 1)))
			continue;
		if (!e->probing && at < s->next_probe)
			at = s->next_probe;
		if (at < deadline)
			deadline = at;
	}
	return deadline;
}

void mrc_evset_probe_answered(struct mrc_evset *s, int index, bool marked, uint64_t now)
{
	struct mrc_ev *e = get(s, index);

	if (e == NULL || e->state != MRC_EV_BAD || !e->probing)
		return;
	e->probing = false;
	if (++e->successes < s->probes_to_return) {
		e->probe_wait = FIRST_PROBE_RTTS * s->base_rtt_ns;
		e->probe_at = now + s->base_rtt_ns;
		return;
	}
	come_back(s, e, marked ? MRC_EV_SKIP : MRC_EV_GOOD);
	e->skip_until = now + s->base_rtt_ns;
}

int mrc_evset_find(const struct mrc_evset *s, uint32_t ev)
{
	return s->bucket[bucket_of(s, ev)] - 1;
}

int mrc_evset_echoed(const struct mrc_evset *s, uint32_t ev)
{
	const int i = mrc_evset_find(s, ev);

	return i != MRC_NO_EV ? i : mrc_evset_find(s, ev << 16 | ev >> 16);
}

int mrc_evset_take_changed(struct mrc_evset *s)
{
	for (unsigned w = 0; w < MRC_MAX_EVS / 64; w++) {
		if (s->changed[w]) {
			unsigned bit = (unsigned)__builtin_ctzll(s->changed[w]);

			s->changed[w] &= s->changed[w] - 1;
			return (int)(w * 64 + bit);
		}
	}
	return MRC_NO_EV;
}
