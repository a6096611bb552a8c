/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch that is the IncEngine in Mode-II or Mode-III. */
#include <stdlib.h>
#include <string.h>

#include "dataplane/inc/modules.h"
#include "tests/model/model.h"

enum { SLOT = 1 };                                          /* of the group */
static const uint64_t NOW = 1000000000, ARMED = 9000000000; /* of a timer that runs */

/* Timers either run or do not: when they fire is the checker's to say. Back-off and the count of
 * tries are left out, so nobody gives up. */
static void mask_timers(struct inc_group *g)
{
	g->timer_ns = UINT64_MAX;
	g->turn_ns = g->allowance = 0; /* every step is a turn of its own */
	g->cut = false;
	for (unsigned i = 0; i < g->n_ep; i++) {
		struct inc_ep *ep = inc_ep_at(g, i);

		ep->retries = ep->rto_shift = 0;
		ep->rtt_from = ep->rtt_ns = ep->rtt_psn = 0;
		if (ep->timer_ns)
			ep->timer_ns = g->timer_ns = ARMED;
	}
}

/* SR: of the order of sending only matters which of those in flight came before which, and before
 * the last that has arrived. */
static void mask_order(struct inc_group *g, unsigned i)
{
	struct inc_ep *ep = inc_ep_at(g, i);
	uint64_t *order = inc_order(g, i, 0), place[64], newest = 0;
	unsigned n = inc_n_order(g->log2n), out = 0;

	if (n > sizeof(place) / sizeof(place[0]))
		abort();
	for (unsigned k = 0; k < n; k++) {
		bool in_flight = false;

		for (uint32_t psn = ep->tx_una; psn_lt(psn, ep->tx_high); psn = psn_add(psn, 1))
			in_flight |= inc_order(g, i, psn) == &order[k];
		if (!in_flight)
			order[k] = 0;
	}
	for (unsigned k = 0; k < n; k++) {
		place[k] = order[k] / 2 ? 1 : 0;
		for (unsigned j = 0; j < n; j++)
			place[k] += order[k] / 2 && order[j] / 2 && order[j] / 2 < order[k] / 2;
		place[k] += order[k] / 2 > ep->newest;
		out += order[k] / 2 > 0;
	}
	for (unsigned k = 0; k < n; k++) {
		newest += order[k] / 2 > 0 && order[k] / 2 <= ep->newest;
		order[k] = place[k] * 2 + (order[k] & 1);
	}
	ep->newest = newest + 1;
	ep->n_sent = out + 2;
	ep->sack_end = psn_max(ep->sack_end, ep->tx_una);
	ep->rx_high = psn_max(ep->rx_high, ep->rx_epsn);
}

/* What a step does not depend on, or only through time, which the checker rules: statistics and
 * the times of the last event of a kind. With `fast`, times stay until a timeout passes: they then
 * are either 0, long ago, or NOW, just so. */
static void mask_block(const struct mc_sys *s, struct mc_switch *sw, bool age)
{
	struct inc_group *g = sw->g;

	memset(g->count, 0, sizeof(g->count));
	g->last_progress_ns = 0;
	mask_timers(g);
	for (unsigned i = 0; g->order_off && i < g->n_ep; i++)
		mask_order(g, i);
	if (s->cfg.fast && !age)
		return;
	g->nak_fwd_ns = g->moved_ns = 0;
	for (unsigned i = 0; i < g->n_ep; i++) {
		struct inc_ep *ep = inc_ep_at(g, i);

		ep->cnp_ns = ep->fail_nak_ns = ep->resent_ns = 0;
		ep->resent_psn = 0;
	}
}

struct sink {
	struct mc_sys *s;
	struct mc_result *r;
};

/* What leaves is a whole frame, as TranslateHeader makes it. */
static void emit(void *arg, struct inc_group *g, const struct inc_emit *e)
{
	const struct sink *sink = arg;
	uint8_t frame[MC_FRAME], tail[WIRE_MAX_TRAILER];

	for (uint64_t outs = e->out_mask; outs != 0; outs &= outs - 1) {
		unsigned ep = (unsigned)__builtin_ctzll(outs), tail_len;
		struct mc_out *out;
		size_t len;

		/* A host may be as slow as it likes without being told. */
		if (e->opcode == ROCE_CNP && inc_ep_at(g, ep)->host)
			continue;
		len = (size_t)inc_translate_header(g, ep, e, 0, frame, tail, &tail_len);

		out = mc_switch_out(sink->r);
		if (out == NULL)
			return;
		if (e->pay_len)
			memcpy(frame + len, e->payload, e->pay_len);
		len += e->pay_len;
		memcpy(frame + len, tail, tail_len);
		out->port = (uint8_t)ep;
		out->frame = mc_frame_id(sink->s, frame, len + tail_len);
	}
}

/* The group has ended, and no other is there. */
static bool is_gone(const struct mc_switch *sw)
{
	return sw->g->state == INC_FREE;
}

static enum inc_drop take(
	struct mc_sys *s, struct mc_switch *sw, unsigned port, uint32_t id, struct mc_result *r)
{
	struct sink arg = {s, r};
	const struct inc_sink sink = {&arg, emit};
	const uint8_t *frame;
	const struct wire_pkt *pkt = mc_frame_pkt(s, id, &frame);
	struct inc_look look;
	uint32_t crc = 0;
	enum inc_drop drop;

	inc_table_set(&sw->table, SLOT, is_gone(sw) ? NULL : sw->g);
	drop = inc_lookup(&sw->table, pkt, (uint16_t)port, &look);
	if (drop != INC_OK)
		return drop;
	if (!inc_check_icrc(&look, frame, pkt, &crc)) {
		r->violation = "inc_check_icrc refuses a right packet";
		return INC_OK;
	}
	return inc_packet(
		look.group, &sw->arena, &look, pkt, frame + pkt->pay_off, crc, NOW, &sink);
}

/* What a turn of the worker leaves the next ones do, before anything else happens. */
static void go_on(struct mc_sys *s, struct mc_switch *sw, struct mc_result *r)
{
	struct sink arg = {s, r};
	const struct inc_sink sink = {&arg, emit};

	for (uint64_t now = NOW + 1; sw->g->timer_ns <= now; now++)
		inc_tick(sw->g, &sw->arena, now, &sink);
}

static void receive(
	struct mc_sys *s, unsigned node, unsigned port, uint32_t frame, struct mc_result *r)
{
	const enum inc_drop drop = take(s, &s->sw[node], port, frame, r);

	go_on(s, &s->sw[node], r);
	r->verdict = drop == INC_OK ? "?" : inc_drop_name(drop);
}

/* The timer of one endpoint, and no other. */
static void tick(struct mc_sys *s, unsigned node, unsigned port, struct mc_result *r)
{
	struct mc_switch *sw = &s->sw[node];
	struct sink arg = {s, r};
	const struct inc_sink sink = {&arg, emit};

	inc_ep_at(sw->g, port)->timer_ns = sw->g->timer_ns = NOW;
	inc_tick(sw->g, &sw->arena, NOW, &sink);
	go_on(s, sw, r);
}

static void fail(struct mc_sys *s, unsigned node, struct mc_result *r)
{
	(void)r;
	inc_group_fail(s->sw[node].g, INC_FAIL_MANAGER, 0xff);
}

static void drain(struct mc_sys *s, unsigned node)
{
	inc_group_set_state(s->sw[node].g, INC_ACTIVE, INC_DRAINING);
}

/* What sw_group_resync does: it stops, and goes on once the worker has seen that. */
static void anew(struct mc_sys *s, unsigned node)
{
	struct inc_group *g = s->sw[node].g;

	if (inc_group_set_state(g, INC_ACTIVE, INC_INSTALLED))
		return;
	inc_group_resync(g);
	inc_group_set_state(g, INC_INSTALLED, INC_ACTIVE);
}

/* The deadline that the owner of the group watches is not after any timer's. */
static void check_deadline(struct mc_sys *s, struct mc_switch *sw, struct mc_result *r)
{
	struct inc_group *g = sw->g;

	(void)s;
	for (unsigned i = 0; i < g->n_ep; i++) {
		uint64_t timer = inc_ep_at(g, i)->timer_ns;

		if (timer && timer < g->timer_ns)
			r->violation = "a timer runs that the group's deadline does not cover";
	}
}

/* Nobody is waited for; in Mode-III both pipes are empty. */
static bool is_clean(struct inc_group *g)
{
	uint64_t eps;
	uint32_t psn;

	if (inc_group_busy(g, &psn, &eps))
		return false;
	for (uint32_t i = 0; g->mode == INC_MODE_3 && i < 1u << g->log2n; i++)
		if (inc_pipe_slot(g, INC_AGG, i)->arrived ||
			inc_pipe_slot(g, INC_BCAST, i)->arrived)
			return false;
	return true;
}

static unsigned flags(struct mc_switch *sw)
{
	struct inc_group *g = sw->g;
	const struct inc_group *again = (const struct inc_group *)sw->again;
	const bool works = g->state == INC_ACTIVE || g->state == INC_DRAINING;
	unsigned flags;
	uint64_t eps;
	uint32_t psn;

	if (is_gone(sw))
		return MC_S_CLEAN | MC_S_GONE;
	flags = is_clean(g) ? MC_S_CLEAN : 0;
	flags |= g->state == INC_FAILED ? MC_S_FAILED : 0;
	flags |= g->state == INC_DRAINING ? MC_S_DRAINS : 0;
	flags |= again && g->gen == again->gen && g->start_psn == again->start_psn ? MC_S_AGAIN : 0;
	flags |= g->next_op << MC_S_OPS_SHIFT & MC_S_OPS;
	flags |= inc_group_is_anew(g) ? MC_S_ANEW : 0;
	flags |= g->state == INC_INSTALLED ? MC_S_STOPPED : 0;
	flags |= inc_group_busy(g, &psn, &eps) ? MC_S_BUSY : 0;
	for (unsigned i = 0; i < g->n_ep; i++) {
		flags |= inc_ep_at(g, i)->timer_ns && works ? 1u << i : 0;
		flags |= inc_ep_at(g, i)->rnr_wait ? 1u << (MC_S_HELD_SHIFT + i) : 0;
	}
	return flags;
}

static bool notices(struct mc_switch *sw, unsigned port, uint32_t psn, uint32_t next)
{
	return inc_adjust(sw->g, INC_FLOW_RX, port, inc_ep_at(sw->g, port)->rx_epsn) == psn &&
	       inc_desc_find(sw->g, next) != NULL;
}

static const struct mc_engine engine = {
	.mask = mask_block,
	.receive = receive,
	.tick = tick,
	.fail = fail,
	.drain = drain,
	.anew = anew,
	.check = check_deadline,
	.flags = flags,
	.notices = notices,
};

void mc_inc_open(struct mc_sys *s, unsigned node, struct inc_group_spec *spec)
{
	struct mc_switch *sw = &s->sw[node];
	char err[INC_ERR_LEN];

	mc_switch_image(sw, &engine, inc_group_bytes(spec), inc_group_payload_bytes(spec));
	sw->g = (struct inc_group *)sw->image;
	inc_group_init(sw->g, spec, SLOT, 1, 0);
	if (s->cfg.least_burst)
		sw->g->burst = 0;
	if (inc_group_activate(sw->g, err) != 0)
		abort();
	mc_switch_done(s, sw);
}

void mc_inc_again(
	struct mc_sys *s, unsigned node, const struct inc_group_spec *spec, unsigned generation)
{
	struct mc_switch *sw = &s->sw[node];
	char err[INC_ERR_LEN];

	memset(sw->image, 0, sw->len);
	inc_group_init(sw->g, spec, SLOT, generation, 0);
	if (s->cfg.least_burst)
		sw->g->burst = 0;
	if (inc_group_activate(sw->g, err) != 0)
		abort();
	mask_block(s, sw, true);
	sw->again = malloc(sw->len);
	memcpy(sw->again, sw->image, sw->len);
}
