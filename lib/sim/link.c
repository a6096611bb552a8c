/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/sim/link.h"

#include "lib/wire/random.h"

enum { REORDER_NS = 20000 };

static const char *const names[] = {
#define X(sym, name) [SIM_L_##sym] = name,
	SIM_LINK_COUNTERS(X)
#undef X
};

const char *sim_link_counter_name(unsigned c)
{
	return c < SIM_N_LINK_COUNTERS ? names[c] : "?";
}

uint64_t sim_random(uint64_t *state)
{
	return wire_random(state);
}

/* Nothing is drawn for what is switched off: a fault added to one link leaves the others' alone. */
bool sim_chance(uint64_t *state, double p)
{
	return p > 0 && (double)(sim_random(state) >> 11) * 0x1p-53 < p;
}

void sim_link_init(struct sim_link *link, const struct sim_link_conf *conf, uint64_t seed)
{
	link->conf = *conf;
	link->rng = seed;
	link->bad = false;
}

static uint64_t half_out(const struct sim_link *link, uint64_t now)
{
	if (link->busy <= now)
		return 0;
	return (uint64_t)((unsigned __int128)(link->busy - now) * link->conf.mbps / 8000);
}

uint64_t sim_link_backlog(const struct sim_link *link, uint64_t now)
{
	return link->queue.bytes + half_out(link, now);
}

uint64_t sim_link_left(const struct sim_link *link, uint64_t now)
{
	const uint64_t backlog = half_out(link, now), bytes = link->count[SIM_L_BYTES];

	return backlog < bytes ? bytes - backlog : 0;
}

static bool is_down(const struct sim_link_conf *conf, uint64_t now)
{
	for (unsigned i = 0; i < conf->n_down; i++)
		if (now >= conf->down[i].from && now < conf->down[i].until)
			return true;
	return false;
}

static bool lost(struct sim_link *link)
{
	const struct sim_link_conf *conf = &link->conf;
	bool bad = link->bad;

	if (conf->burst_enter > 0 &&
		sim_chance(&link->rng, bad ? conf->burst_leave : conf->burst_enter))
		link->bad = !bad;
	if (conf->lose_nth && link->count[SIM_L_FRAMES] == conf->lose_nth)
		return true;
	return sim_chance(&link->rng, conf->loss) ||
	       (link->bad && sim_chance(&link->rng, conf->burst_loss));
}

/* When a frame that takes so long has left: behind all others, or those that go ahead of them and
 * what is half out. */
static uint64_t leave(struct sim_link *link, uint64_t now, uint64_t takes, bool first)
{
	uint64_t busy = link->busy < now ? now : link->busy, from = link->first;

	link->busy = busy + takes;
	if (!first)
		return link->busy;
	if (from < now)
		from = busy - now < takes ? busy : now + takes;
	return link->first = (from < busy ? from : busy) + takes;
}

static bool marks(struct sim_link *link, uint64_t backlog)
{
	const uint64_t from = link->conf.ecn_bytes, to = link->conf.ecn_max_bytes;

	if (from == 0 || backlog <= from)
		return false;
	return backlog >= to ||
	       sim_chance(&link->rng, (double)(backlog - from) / (double)(to - from));
}

/* Takes its place in the queue: false if there is none. */
static bool enqueue(
	struct sim_link *link, uint64_t now, unsigned len, bool first, struct sim_verdict *v)
{
	const struct sim_link_conf *conf = &link->conf;
	uint64_t wire = len + SIM_WIRE_OVERHEAD, backlog;

	if (conf->mbps == 0) {
		link->count[SIM_L_BYTES] += wire;
		v->at[0] = now + conf->delay_ns;
		return true;
	}
	backlog = sim_link_backlog(link, now);
	if (conf->queue_bytes && conf->pfc_xoff == 0 && backlog + wire > conf->queue_bytes) {
		wire = sim_link_trims_to(conf) + SIM_WIRE_OVERHEAD;
		if (!conf->trim || len <= sim_link_trims_to(conf) ||
			backlog + wire > 2 * conf->queue_bytes)
			return false;
		v->trim = first = true;
		link->count[SIM_L_TRIMMED]++;
	}
	if (backlog > link->count[SIM_L_PEAK_QUEUE])
		link->count[SIM_L_PEAK_QUEUE] = backlog;
	v->mark = marks(link, backlog);
	link->count[SIM_L_BYTES] += wire;
	v->at[0] = leave(link, now, wire * 8000 / conf->mbps, first) + conf->delay_ns;
	return true;
}

struct sim_verdict sim_link_send(struct sim_link *link, uint64_t now, unsigned len, bool first)
{
	const struct sim_link_conf *conf = &link->conf;
	const uint64_t late = conf->reorder_ns ? conf->reorder_ns : REORDER_NS;
	struct sim_verdict v = {0};

	link->count[SIM_L_FRAMES]++;
	if (is_down(conf, now)) {
		link->count[SIM_L_DOWN_DROP]++;
		return v;
	}
	if (!enqueue(link, now, len, first && conf->priority, &v)) {
		link->count[SIM_L_QUEUE_DROP]++;
		return v;
	}
	if (lost(link)) {
		link->count[SIM_L_LOST]++;
		return v;
	}
	v.copies = 1;
	if (sim_chance(&link->rng, conf->dup)) {
		v.at[v.copies++] = v.at[0] + sim_random(&link->rng) % late;
		link->count[SIM_L_DUPLICATED]++;
	}
	if (sim_chance(&link->rng, conf->reorder)) {
		v.at[0] += sim_random(&link->rng) % late;
		link->count[SIM_L_REORDERED]++;
	}
	if (sim_chance(&link->rng, conf->corrupt)) {
		v.corrupt = true;
		v.bit = sim_random(&link->rng);
		link->count[SIM_L_CORRUPTED]++;
	}
	link->count[SIM_L_MARKED] += v.mark;
	link->count[SIM_L_DELIVERED] += v.copies;
	return v;
}
