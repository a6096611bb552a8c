/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mrc/nscc.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

enum {
	NS_PER_S = 1000000000,
	BASE_RTT_NS = 12000,      /* of the reference network, as the next two */
	REFERENCE_BDP = 150000,   /* 100 Gb/s */
	REFERENCE_TARGET = 12000, /* ns */
	PENALTY_SHIFT = 7,
	RCVD_SHIFT = 8,
};

static uint32_t min32(uint64_t v)
{
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static uint32_t q16(double v)
{
	return min32((uint64_t)(v * 65536 + 0.5));
}

static uint32_t or_bytes(float set, double derived)
{
	return min32((uint64_t)((set > 0 ? (double)set : derived) + 0.5));
}

static double share(uint32_t permille)
{
	return permille / 1000.0;
}

static uint32_t or_share(float set, double permille)
{
	return q16(set > 0 ? (double)set : permille / 1000);
}

static bool config_ok(const struct nscc_config *c, const struct nscc_link *link)
{
	const float numbers[] = {c->eta, c->fi, c->fi_scale, c->gamma, c->max_md_jump};

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		if (!isfinite(numbers[i]) || numbers[i] < 0 || numbers[i] > 1e9f)
			return false;
	}
	return link->bits_per_s > 0 && link->mtu > 0 && c->gamma <= 1 && c->max_md_jump <= 1 &&
	       c->qa_gate < 32 && (c->max_cwnd == 0 || c->max_cwnd >= link->mtu);
}

static uint32_t target_of(const struct nscc *cc, bool trims, const struct mrc_settings *s)
{
	const uint64_t permille = trims ? s->nscc_target_trim_permille : s->nscc_target_permille;
	const uint32_t ns = min32(cc->base_rtt_ns * permille / 1000);

	return ns ? ns : 1;
}

int nscc_init(struct nscc *cc, const struct nscc_config *c, const struct nscc_link *link)
{
	const struct mrc_settings dflt = mrc_settings_default();
	const struct mrc_settings *s = link->settings ? link->settings : &dflt;
	double bdp, a, b;

	if (!config_ok(c, link))
		return -EINVAL;
	*cc = (struct nscc){.mtu = link->mtu, .qa = !c->disable_qa};
	cc->base_rtt_ns = c->base_rtt_ns ? c->base_rtt_ns : BASE_RTT_NS;
	cc->target_ns = c->target_ns ? c->target_ns : target_of(cc, link->trims, s);
	bdp = (double)link->bits_per_s / 8 * cc->base_rtt_ns / NS_PER_S;
	a = bdp / REFERENCE_BDP;
	b = (double)cc->target_ns / REFERENCE_TARGET;
	cc->adjust_bytes = c->adjust_bytes ? c->adjust_bytes
					   : min32(s->nscc_adjust_mtus * (uint64_t)link->mtu);
	cc->period_ns = c->adjust_period_ns ? c->adjust_period_ns : cc->base_rtt_ns;
	cc->eta = or_bytes(c->eta, share(s->nscc_eta_permille) * link->mtu * a);
	cc->fi = or_bytes(c->fi, share(s->nscc_fi_permille) * link->mtu * a);
	cc->fi_scale_q16 = or_share(c->fi_scale, s->nscc_fi_scale_permille * a);
	cc->gamma_q16 = or_share(c->gamma, s->nscc_gamma_permille);
	cc->md_q16 = or_share(c->max_md_jump, s->nscc_md_permille);
	cc->alpha_q16 = q16(share(s->nscc_alpha_permille) * a * b * link->mtu / cc->target_ns);
	cc->max_cwnd =
		c->max_cwnd ? c->max_cwnd : min32((uint64_t)(share(s->nscc_cwnd_permille) * bdp));
	if (cc->max_cwnd < link->mtu)
		cc->max_cwnd = link->mtu;
	cc->qa_gate = c->qa_gate ? c->qa_gate : (uint8_t)s->nscc_qa_gate;
	cc->qa_threshold_ns = c->qa_threshold_ns
				      ? c->qa_threshold_ns
				      : min32(s->nscc_qa_targets * (uint64_t)cc->target_ns);
	cc->fast_ns = s->nscc_fast_ns;
	cc->low_bytes = s->nscc_low_bytes;
	cc->cwnd = cc->max_cwnd;
	return 0;
}

bool nscc_may_send(const struct nscc *cc, uint32_t bytes)
{
	return cc->inflight <= 0 || cc->inflight + bytes <= cc->cwnd;
}

bool nscc_want_ack(const struct nscc *cc, bool last)
{
	return last || cc->cwnd < cc->low_bytes || (int64_t)cc->cwnd - cc->inflight < cc->mtu;
}

void nscc_sent(struct nscc *cc, uint64_t *mine, uint32_t bytes)
{
	cc->inflight += bytes;
	cc->parts += bytes;
	*mine += bytes;
}

/* Up to fast_ns all are numbers of 32 bits without gaps. */
bool nscc_same_rules(const struct nscc *a, const struct nscc *b)
{
	return memcmp(a, b, offsetof(struct nscc, fast_ns)) == 0 && a->fast_ns == b->fast_ns &&
	       a->low_bytes == b->low_bytes && a->qa_gate == b->qa_gate && a->qa == b->qa;
}

static void clamp(struct nscc *cc)
{
	if (cc->cwnd < cc->mtu)
		cc->cwnd = cc->mtu;
	if (cc->cwnd > cc->max_cwnd)
		cc->cwnd = cc->max_cwnd;
}

static void grow(struct nscc *cc, uint64_t bytes)
{
	cc->cwnd = min32(cc->cwnd + bytes);
}

static void shrink(struct nscc *cc, uint32_t bytes)
{
	cc->cwnd = cc->cwnd > cc->mtu + (uint64_t)bytes ? cc->cwnd - bytes : cc->mtu;
}

/* Average with the weight of the bytes against the window. */
static void blend(struct nscc *cc, uint64_t delay, uint32_t bytes)
{
	uint64_t weight = (uint64_t)cc->cwnd + bytes;

	cc->avg_delay_ns = (uint64_t)(((unsigned __int128)cc->avg_delay_ns * cc->cwnd +
					      (unsigned __int128)delay * bytes) /
				      weight);
}

/* Once per round trip: if hardly anything came through, the window becomes what did. */
static bool quick_adapt(struct nscc *cc, bool loss, bool marked, uint64_t delay, uint64_t now)
{
	bool done = false;

	if (!cc->qa)
		return false;
	if (cc->ignored < cc->to_ignore && marked) {
		done = true; /* news from before the last cut */
	} else if (now >= cc->qa_end) {
		if (cc->qa_end != 0 && (cc->trigger_qa || loss || delay > cc->qa_threshold_ns) &&
			cc->achieved < cc->max_cwnd >> cc->qa_gate) {
			cc->cwnd = min32(cc->achieved);
			clamp(cc);
			cc->to_ignore = cc->inflight > 0 ? (uint64_t)cc->inflight : 0;
			cc->ignored = 0;
			cc->trigger_qa = false;
			done = true;
		}
		cc->achieved = 0;
		cc->qa_end = now + cc->base_rtt_ns + cc->target_ns;
	}
	if (done) {
		cc->inc_bytes = 0;
		cc->received = 0;
	}
	return done;
}

static bool fast_increase(struct nscc *cc, uint32_t bytes, uint64_t delay)
{
	if (delay >= cc->fast_ns) {
		cc->fi_count = 0;
		cc->increasing = false;
		return false;
	}
	cc->fi_count += bytes;
	if (cc->fi_count <= cc->cwnd && !cc->increasing)
		return false;
	grow(cc, (uint64_t)bytes * cc->fi_scale_q16 >> 16);
	cc->increasing = true;
	return true;
}

static void decrease(struct nscc *cc, uint64_t now)
{
	uint64_t avg = cc->avg_delay_ns, keep;

	cc->increasing = false;
	cc->fi_count = 0;
	if (avg <= cc->target_ns || now - cc->last_decrease <= cc->base_rtt_ns)
		return;
	keep = 65536 - (uint64_t)((unsigned __int128)cc->gamma_q16 * (avg - cc->target_ns) / avg);
	if (keep < cc->md_q16)
		keep = cc->md_q16;
	cc->cwnd = (uint32_t)((uint64_t)cc->cwnd * keep >> 16);
	cc->last_decrease = now;
}

static void fulfil(struct nscc *cc, uint64_t now)
{
	grow(cc, cc->inc_bytes / cc->cwnd);
	if (now - cc->last_adjust >= cc->period_ns) {
		grow(cc, cc->eta);
		cc->last_adjust = now;
	}
	cc->inc_bytes = 0;
	cc->received = 0;
}

/* What the path says, when the receiver says nothing. */
static void react(struct nscc *cc, const struct nscc_sack *s, uint64_t delay, uint64_t now)
{
	bool high = delay >= cc->target_ns;

	if (s->marked) {
		if (high)
			decrease(cc, now);
		return; /* marks without delay are for those who balance load */
	}
	if (high)
		cc->inc_bytes += (uint64_t)cc->fi * s->bytes;
	else if (!fast_increase(cc, s->bytes, delay))
		cc->inc_bytes += (uint64_t)((unsigned __int128)cc->alpha_q16 * s->bytes *
						    (cc->target_ns - delay) >>
					    16);
}

static void penalize(struct nscc *cc, const struct nscc_sack *s)
{
	int64_t from = cc->inflight < cc->cwnd ? cc->inflight : cc->cwnd;

	if (cc->saved_cwnd == 0)
		cc->saved_cwnd = cc->cwnd;
	from -= (int64_t)((uint64_t)s->penalty * s->bytes >> PENALTY_SHIFT);
	cc->cwnd = from > cc->mtu ? (uint32_t)from : cc->mtu;
}

void nscc_sack(struct nscc *cc, const struct nscc_sack *s, uint64_t now)
{
	uint64_t delay = cc->avg_delay_ns;

	cc->inflight -= s->bytes;
	cc->ignored += s->bytes;
	cc->received += s->bytes;
	cc->achieved += s->bytes;
	if (s->penalty > 0) {
		penalize(cc, s);
	} else if (s->restore && cc->saved_cwnd) {
		cc->cwnd = cc->saved_cwnd;
		cc->saved_cwnd = 0;
	}
	if (s->has_rtt) {
		if (s->rtt_ns < cc->base_rtt_ns)
			cc->base_rtt_ns = s->rtt_ns ? (uint32_t)s->rtt_ns : 1;
		delay = s->rtt_ns - cc->base_rtt_ns;
		blend(cc, delay, s->bytes);
	}
	if (!quick_adapt(cc, false, s->marked, delay, now) && s->penalty == 0) {
		react(cc, s, delay, now);
		if (now - cc->last_adjust >= cc->period_ns || cc->received > cc->adjust_bytes)
			fulfil(cc, now);
	}
	clamp(cc);
}

void nscc_trimmed(struct nscc *cc, uint32_t bytes, uint64_t now)
{
	cc->inflight -= bytes;
	cc->ignored += bytes;
	blend(cc, cc->base_rtt_ns, bytes);
	cc->trigger_qa = true;
	if (!quick_adapt(cc, true, true, 0, now))
		shrink(cc, bytes);
}

void nscc_lost(struct nscc *cc, uint32_t bytes)
{
	cc->inflight -= bytes;
	cc->ignored += bytes;
	shrink(cc, bytes);
}

void nscc_refused(struct nscc *cc, uint32_t bytes)
{
	cc->inflight -= bytes;
}

void nscc_set_inflight(struct nscc *cc, uint64_t *mine, uint64_t bytes)
{
	cc->parts += bytes - *mine;
	cc->inflight = (int64_t)cc->parts;
	*mine = bytes;
}

uint32_t nscc_share(const struct nscc *cc, uint64_t mine)
{
	return cc->parts > mine ? (uint32_t)(cc->cwnd * mine / cc->parts) : cc->cwnd;
}

uint32_t nscc_received(uint32_t last_units, uint32_t units)
{
	int32_t moved = (int32_t)((units - last_units) << 8) >> 8;

	return moved > 0 ? (uint32_t)moved << RCVD_SHIFT : 0;
}
