/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps from one state to the next. What a node does depends on its own state and the event
 * alone, so it is computed once and looked up from then on. */
#include <string.h>

#include "dataplane/inc/seeded_bugs.h"
#include "tests/model/model.h"

/* With --noticed other numbers take the place of the budgets that are not there: the last lost
 * PSN, + 1, and how many NAKs there were. */
enum { LOST_SHIFT = 6, LOST_MASK = 0xff, NAK_SHIFT = 14, NAK_MASK = 0x3f };
enum { LOSS_SHIFT = 0, REORDER_SHIFT = 6, DUP_SHIFT = 12, EARLY_SHIFT = 18, HOLD_SHIFT = 24 };

#define MAY_FAIL (1u << 31) /* --fail: it has not happened yet */
#define MAY_END (1u << 30)  /* --drain, --again: it has not begun yet */

const struct mc_result *mc_node_step(struct mc_sys *s, unsigned node, uint32_t state,
	enum mc_event ev, unsigned port, uint32_t frame)
{
	uint64_t key = (uint64_t)state << 32 | (uint32_t)ev << 28 | port << 24 | frame;
	const uint32_t *have = memo_find(&s->memo[node], key);
	struct mc_result *r;

	if (have)
		return (struct mc_result *)(s->results + (uint64_t)*have * 8);
	r = (struct mc_result *)(s->results + s->results_used);
	memo_put(&s->memo[node], key, (uint32_t)(s->results_used / 8));
	if (mc_is_host(s, node))
		mc_host_step(s, node, state, ev, frame, r);
	else
		mc_switch_step(s, node, state, ev, port, frame, r);
	s->results_used += (offsetof(struct mc_result, out) + r->n * sizeof(r->out[0]) + 7) & ~7ULL;
	mc_mirror(s, node, state, ev, port, frame, r);
	return r;
}

/* ---- queues ---- */

static uint32_t *queue_of(const struct mc_sys *s, uint32_t *v, unsigned link)
{
	return &v[s->n_nodes + link];
}

static const uint32_t *queue_get(const struct mc_sys *s, uint32_t id, uint32_t *n)
{
	uint32_t len;
	const uint32_t *q = intern_get(&s->queues, id, &len);

	*n = len / (uint32_t)sizeof(*q);
	return q;
}

enum { QUEUE_MAX = 1024 };

static const char *queue_push(struct mc_sys *s, uint32_t *id, uint32_t frame)
{
	uint32_t buf[QUEUE_MAX + 1], n;
	const uint32_t *q = queue_get(s, *id, &n);

	if (n == QUEUE_MAX)
		return "packets in flight grow without bound";
	memcpy(buf, q, n * sizeof(*q));
	buf[n] = frame;
	*id = intern_add(&s->queues, buf, (n + 1) * (uint32_t)sizeof(*q));
	return NULL;
}

static uint32_t queue_pop(struct mc_sys *s, uint32_t *id)
{
	uint32_t buf[QUEUE_MAX], n, head;
	const uint32_t *q = queue_get(s, *id, &n);

	head = q[0];
	memcpy(buf, q + 1, (n - 1) * sizeof(*q));
	*id = intern_add(&s->queues, buf, (n - 1) * (uint32_t)sizeof(*q));
	return head;
}

static void queue_swap(struct mc_sys *s, uint32_t *id)
{
	uint32_t buf[QUEUE_MAX], n;
	const uint32_t *q = queue_get(s, *id, &n);

	memcpy(buf, q, n * sizeof(*q));
	buf[0] = q[1];
	buf[1] = q[0];
	*id = intern_add(&s->queues, buf, n * (uint32_t)sizeof(*q));
}

/* The head stays, too. */
static const char *queue_duplicate(struct mc_sys *s, uint32_t *id)
{
	uint32_t buf[QUEUE_MAX + 1], n;
	const uint32_t *q = queue_get(s, *id, &n);

	if (n == QUEUE_MAX)
		return "packets in flight grow without bound";
	memcpy(buf + 1, q, n * sizeof(*q));
	buf[0] = q[0];
	*id = intern_add(&s->queues, buf, (n + 1) * (uint32_t)sizeof(*q));
	return NULL;
}

/* ---- steps ---- */

void mc_initial(struct mc_sys *s, uint32_t *v)
{
	const struct mc_config *c = &s->cfg;

	memset(v, 0, s->words * sizeof(*v));
	for (unsigned i = 0; i < s->n_nodes; i++)
		v[i] = mc_is_host(s, i) ? mc_host_initial(s, i) : mc_switch_initial(s, i);
	v[s->words - 1] = (uint32_t)c->loss << LOSS_SHIFT | (uint32_t)c->reorder << REORDER_SHIFT |
			  (uint32_t)c->dup << DUP_SHIFT | (uint32_t)c->early << EARLY_SHIFT |
			  (uint32_t)c->rnr << HOLD_SHIFT | (c->fail ? MAY_FAIL : 0) |
			  (mc_may_end(c) ? MAY_END : 0);
	mc_symmetry_open(s, v);
}

static bool budget(const uint32_t *v, const struct mc_sys *s, unsigned shift)
{
	return (shift == LOSS_SHIFT || !s->cfg.noticed) && (v[s->words - 1] >> shift & 0x3f);
}

bool mc_quiet(const struct mc_sys *s, const uint32_t *v)
{
	for (unsigned l = 0; l < s->n_links; l++)
		if (v[s->n_nodes + l])
			return false;
	return true;
}

static bool some_switch_failed(struct mc_sys *s, const uint32_t *v)
{
	for (unsigned i = 0; i < s->n_sw; i++)
		if (mc_switch_flags(s, i, v[i]) & MC_S_FAILED)
			return true;
	return false;
}

static uint32_t head_of(const struct mc_sys *s, const uint32_t *v, unsigned link)
{
	uint32_t n;

	return queue_get(s, v[s->n_nodes + link], &n)[0];
}

/* T26: a host that RNR holds, or that has something to send, taken for one that is busy. */
static bool somebody_acts(struct mc_sys *s, const uint32_t *v)
{
	for (unsigned i = s->n_sw; i < s->n_nodes; i++)
		if (mc_host_flags(s, i, v[i]) & (MC_H_RNR | MC_H_SEND))
			return true;
	return false;
}

/* May the head of a link be lost, if losses must show? It is what the receiver waits for, there is
 * one behind it, and it has not been lost before. */
static bool may_be_lost(struct mc_sys *s, const uint32_t *v, unsigned link)
{
	const struct mc_link *l = &s->link[link];
	const struct wire_pkt *head, *next;
	const uint8_t *bytes;
	const uint32_t *q;
	uint32_t n;

	if (!s->cfg.noticed)
		return true;
	q = queue_get(s, v[s->n_nodes + link], &n);
	if (n < 2)
		return false;
	head = mc_frame_pkt(s, q[0], &bytes);
	next = mc_frame_pkt(s, q[1], &bytes);
	if (s->cfg.selective && head->opcode == ROCE_SEND_ONLY_IMM)
		return false; /* nothing behind it is kept */
	if (!(head->flags & (ROCE_F_SEND | ROCE_F_WRITE)) ||
		!(next->flags & (ROCE_F_SEND | ROCE_F_WRITE)) || !psn_lt(head->psn, next->psn) ||
		mc_index(s, head->psn) < (v[s->words - 1] >> LOST_SHIFT & LOST_MASK))
		return false;
	return mc_is_host(s, l->to)
		       ? mc_host_would_take(s, l->to, v[l->to], q[0])
		       : mc_switch_notices(s, l->to, v[l->to], l->to_port, head->psn, next->psn);
}

/* Timers that are for what was lost unnoticed do not fire. */
static unsigned ticks(struct mc_sys *s, const uint32_t *v, unsigned node)
{
	unsigned flags = mc_switch_flags(s, node, v[node]);

	return flags & MC_S_TIMERS & (s->cfg.prompt ? flags >> MC_S_HELD_SHIFT : ~0u);
}

/* The actions at one node: what may become of the heads of the links to it, and its own. */
static unsigned node_actions(
	struct mc_sys *s, const uint32_t *v, unsigned node, bool early, struct mc_action *a)
{
	unsigned n = 0, flags;

	for (unsigned l = 0; l < s->n_links; l++) {
		uint32_t len;

		if (s->link[l].to != node || v[s->n_nodes + l] == 0)
			continue;
		queue_get(s, v[s->n_nodes + l], &len);
		a[n++] = (struct mc_action){MC_DELIVER, (uint8_t)l};
		if (budget(v, s, LOSS_SHIFT) && may_be_lost(s, v, l))
			a[n++] = (struct mc_action){MC_LOSE, (uint8_t)l};
		if (budget(v, s, DUP_SHIFT))
			a[n++] = (struct mc_action){MC_DUP, (uint8_t)l};
		if (len > 1 && budget(v, s, REORDER_SHIFT))
			a[n++] = (struct mc_action){MC_SWAP, (uint8_t)l};
		if (budget(v, s, HOLD_SHIFT) && mc_is_host(s, node) &&
			mc_host_may_hold(s, node, v[node], head_of(s, v, l)))
			a[n++] = (struct mc_action){MC_HOLD, (uint8_t)l};
	}
	if (!mc_is_host(s, node)) {
		flags = early ? ticks(s, v, node) : 0;
		for (; flags != 0; flags &= flags - 1)
			a[n++] = (struct mc_action){
				MC_TICK, (uint8_t)node, (uint8_t)__builtin_ctz(flags)};
		return n;
	}
	flags = mc_host_flags(s, node, v[node]);
	if (flags & MC_H_SEND)
		a[n++] = (struct mc_action){MC_SEND, (uint8_t)node};
	if (flags & MC_H_ANSWER)
		a[n++] = (struct mc_action){MC_ANSWER, (uint8_t)node};
	/* A host that RNR holds is no activity that would keep others' timers waiting. */
	if (INC_BUG(T26) && (flags & MC_H_TIMER))
		early = early && !somebody_acts(s, v);
	if (early && (flags & (s->cfg.prompt ? MC_H_RNR : MC_H_TIMER | MC_H_RNR)))
		a[n++] = (struct mc_action){MC_TIMEOUT, (uint8_t)node};
	return n;
}

/* Nodes whose actions form a stubborn set, from one node on: whoever might put a packet into an
 * empty link to them belongs to them (or into a link of one, if packets may change places). */
static unsigned stubborn(const struct mc_sys *s, unsigned seed, uint64_t open_links)
{
	unsigned set = 1u << seed, before = 0;

	while (set != before) {
		before = set;
		for (uint64_t links = open_links; links != 0; links &= links - 1) {
			const struct mc_link *l = &s->link[__builtin_ctzll(links)];

			if (set >> l->to & 1)
				set |= 1u << l->from;
		}
	}
	return set;
}

/* The nodes to explore at this state: all, or the fewest that suffice (docs/model-checking.md says
 * why). */
static unsigned ample(struct mc_sys *s, const uint32_t *v)
{
	unsigned all = (1u << s->n_nodes) - 1, best = all, busy = 0;
	uint64_t open_links = 0;

	if (!s->cfg.por || budget(v, s, EARLY_SHIFT) || mc_may_fail(&s->cfg) || mc_may_end(&s->cfg))
		return all;
	for (unsigned l = 0; l < s->n_links; l++) {
		uint32_t len;

		queue_get(s, v[s->n_nodes + l], &len);
		if (len == 0 || (len == 1 && (s->cfg.noticed || budget(v, s, REORDER_SHIFT))))
			open_links |= 1ULL << l;
		if (len != 0)
			busy |= 1u << s->link[l].to;
	}
	for (unsigned i = s->n_nodes; i-- > 0;) {
		unsigned set;

		if (!(busy >> i & 1)) /* a packet that stays keeps timers from firing */
			continue;
		set = stubborn(s, i, open_links);
		if (s->cfg.resync && !mc_anew_waits_for(s, v, set))
			continue;
		if (__builtin_popcount(set) < __builtin_popcount(best))
			best = set;
	}
	return best;
}

/* Somebody fails a group, once; or on a switch because it has failed on another. Switches of Mode-I
 * tell each other; a ring's do, which suffices while nothing is lost. */
static bool somebody_fails(struct mc_sys *s, const uint32_t *v)
{
	const bool told = s->cfg.mode == INC_MODE_1 || (mc_is_ring(s) && s->cfg.loss == 0);

	if (v[s->words - 1] & MAY_FAIL)
		return true;
	return s->n_sw > 1 && !told && some_switch_failed(s, v);
}

/* The end of the first group: switches drain, or lose it at once, hosts leave it, in any order;
 * once all have, the second one is there. Its makers meet before anybody sends
 * (docs/inc-protocol.md, 8.2), so that is one step. */
static unsigned ends(struct mc_sys *s, const uint32_t *v, struct mc_action *a)
{
	bool begun = v[s->words - 1] & MAY_END, all = true;
	unsigned n = 0;

	for (unsigned i = 0; i < s->n_nodes; i++) {
		const bool host = mc_is_host(s, i);
		const unsigned f = host ? mc_host_flags(s, i, v[i]) : mc_switch_flags(s, i, v[i]);
		const bool gone = f & (host ? (unsigned)MC_H_GONE : MC_S_GONE);

		if (f & (host ? (unsigned)MC_H_AGAIN : MC_S_AGAIN))
			return 0;
		begun |= gone || (!host && f & MC_S_DRAINS);
		all &= gone;
		if (!host && !gone && !(f & MC_S_DRAINS))
			a[n++] = (struct mc_action){MC_DRAIN, (uint8_t)i};
		if (s->cfg.again && !gone)
			a[n++] = (struct mc_action){MC_END, (uint8_t)i};
	}
	if (all)
		a[n++] = (struct mc_action){MC_AGAIN, 0};
	return begun ? n : 0;
}

unsigned mc_actions(struct mc_sys *s, const uint32_t *v, struct mc_action *a)
{
	bool early = budget(v, s, EARLY_SHIFT) || mc_quiet(s, v);
	unsigned n = 0;

	for (unsigned nodes = ample(s, v); nodes != 0; nodes &= nodes - 1)
		n += node_actions(s, v, (unsigned)__builtin_ctz(nodes), early, a + n);
	if (mc_may_end(&s->cfg))
		n += ends(s, v, a + n);
	if (s->cfg.resync)
		n += mc_anew_actions(s, v, a + n);
	if (!mc_may_fail(&s->cfg) || !somebody_fails(s, v))
		return n;
	for (unsigned i = 0; i < s->n_sw; i++)
		if (!(mc_switch_flags(s, i, v[i]) & MC_S_FAILED))
			a[n++] = (struct mc_action){MC_MANAGER, (uint8_t)i};
	return n;
}

/* What the acknowledgements of rank r's PSNs from `from` to before `to` say of the other ranks in
 * Mode-II or NetReduce: in an allreduce that all have sent, in the others that receivers have it.
 */
static const char *check_acknowledged(
	struct mc_sys *s, const uint32_t *v, unsigned r, unsigned from, unsigned to)
{
	if (s->cfg.mode == INC_MODE_3 || s->cfg.mode == INC_MODE_1)
		return NULL;
	const uint8_t again = mc_host(s, s->n_sw + r, v[s->n_sw + r])->again;

	for (unsigned i = from; i < to; i++) {
		const struct mc_psn *q = &s->prog.psn[i];

		if (!(q->senders >> r & 1))
			continue;
		for (unsigned k = 0; k < s->n_ranks; k++) {
			const struct mc_host_state *h = mc_host(s, s->n_sw + k, v[s->n_sw + k]);

			if (h->err || h->gone || h->again != again)
				continue;
			if (q->prim == INC_AR && h->high <= i)
				return "acknowledged although a rank has not sent its share";
			if (mc_is_ring(s) && k == (r + 1) % s->n_ranks && h->epsn <= i)
				return "acknowledged although the next rank lacks it";
			if (q->prim != INC_AR && (q->receivers >> k & 1) && h->epsn <= i)
				return "acknowledged although a receiver lacks it";
		}
	}
	return NULL;
}

/* A loss draws one NAK, and nothing else does. (Pipes that are too small hold hosts, who then see
 * gaps.) */
static const char *count_nak(struct mc_sys *s, uint32_t *v, uint32_t frame)
{
	uint32_t *budgets = &v[s->words - 1], naks = *budgets >> NAK_SHIFT & NAK_MASK;
	const uint8_t *bytes;
	const struct wire_pkt *pkt = mc_frame_pkt(s, frame, &bytes);

	if (!s->cfg.prompt || s->cfg.any_slots || pkt->opcode != ROCE_ACK ||
		pkt->syndrome != (ROCE_AETH_NAK | ROCE_NAK_SEQUENCE))
		return NULL;
	if (s->cfg.loss == 0)
		return "nothing was lost, but somebody asks for it again";
	if (naks == s->cfg.loss - (*budgets >> LOSS_SHIFT & 0x3f))
		return "somebody asks again for what was not lost, or asked for before";
	*budgets += 1u << NAK_SHIFT;
	return NULL;
}

static const char *emissions(
	struct mc_sys *s, unsigned node, uint32_t *v, const struct mc_result *r)
{
	const char *why = r->violation;

	for (unsigned k = 0; why == NULL && k < r->n; k++) {
		unsigned link = s->out_link[node][r->out[k].port];

		why = count_nak(s, v, r->out[k].frame);
		if (why == NULL)
			why = queue_push(s, queue_of(s, v, link), r->out[k].frame);
	}
	return why;
}

static const char *deliver(struct mc_sys *s, unsigned link, enum mc_event ev, uint32_t *v,
	const struct mc_result **res)
{
	const struct mc_link *l = &s->link[link];
	uint32_t frame = queue_pop(s, queue_of(s, v, link)), before = v[l->to];
	const struct mc_result *r = mc_node_step(s, l->to, before, ev, l->to_port, frame);
	const char *why;

	*res = r;
	v[l->to] = r->state;
	why = emissions(s, l->to, v, r);
	if (why == NULL && r->acked)
		why = check_acknowledged(s, v, l->to - s->n_sw, mc_host(s, l->to, before)->una,
			mc_host(s, l->to, r->state)->una);
	return why;
}

static const char *own_event(struct mc_sys *s, unsigned node, unsigned port, enum mc_event ev,
	uint32_t *v, const struct mc_result **res)
{
	const struct mc_result *r = mc_node_step(s, node, v[node], ev, port, 0);

	*res = r;
	v[node] = r->state;
	return emissions(s, node, v, r);
}

/* Much longer than every rate limit has passed. */
static void age(struct mc_sys *s, uint32_t *v)
{
	for (unsigned i = 0; s->cfg.fast && i < s->n_sw; i++)
		v[i] = mc_node_step(s, i, v[i], MC_EV_AGE, 0, 0)->state;
}

static void note_lost(struct mc_sys *s, uint32_t *budgets, uint32_t frame)
{
	const uint8_t *bytes;
	uint32_t psn = mc_frame_pkt(s, frame, &bytes)->psn;

	if (s->cfg.noticed)
		*budgets = (*budgets & ~((uint32_t)LOST_MASK << LOST_SHIFT)) |
			   (mc_index(s, psn) + 1) << LOST_SHIFT;
}

const char *mc_apply(struct mc_sys *s, const uint32_t *v, struct mc_action a, uint32_t *to,
	const struct mc_result **res)
{
	uint32_t *budgets = &to[s->words - 1];

	*res = NULL;
	memcpy(to, v, s->words * sizeof(*v));
	switch ((enum mc_kind)a.kind) {
	case MC_DELIVER:
		return deliver(s, a.index, MC_EV_PACKET, to, res);
	case MC_HOLD:
		*budgets -= 1u << HOLD_SHIFT;
		return deliver(s, a.index, MC_EV_HOLD, to, res);
	case MC_LOSE:
		*budgets -= 1u << LOSS_SHIFT;
		note_lost(s, budgets, queue_pop(s, queue_of(s, to, a.index)));
		return NULL;
	case MC_DUP:
		*budgets -= 1u << DUP_SHIFT;
		return queue_duplicate(s, queue_of(s, to, a.index));
	case MC_SWAP:
		*budgets -= 1u << REORDER_SHIFT;
		queue_swap(s, queue_of(s, to, a.index));
		return NULL;
	case MC_SEND:
	case MC_ANSWER:
		return own_event(
			s, a.index, a.port, a.kind == MC_SEND ? MC_EV_SEND : MC_EV_ANSWER, to, res);
	case MC_TIMEOUT:
	case MC_TICK:
		if (!mc_quiet(s, v))
			*budgets -= 1u << EARLY_SHIFT;
		age(s, to);
		return own_event(s, a.index, a.port, a.kind == MC_TICK ? MC_EV_TICK : MC_EV_TIMEOUT,
			to, res);
	case MC_MANAGER:
		*budgets &= ~MAY_FAIL;
		return own_event(s, a.index, a.port, MC_EV_FAIL, to, res);
	case MC_DRAIN:
	case MC_END:
		*budgets &= ~MAY_END;
		return own_event(
			s, a.index, 0, a.kind == MC_END ? MC_EV_END : MC_EV_DRAIN, to, res);
	case MC_AGAIN:
		for (unsigned i = 0; i < s->n_nodes; i++)
			to[i] = mc_node_step(s, i, v[i], MC_EV_AGAIN, 0, 0)->state;
		return NULL;
	case MC_ANEW:
		return mc_anew_apply(s, a.index, v, to);
	}
	return "no such step";
}

/* After a failure: the switch has told the host, or (Mode-III; a ring's, if all agree) has
 * acknowledged all it sent, so that it hears of the failure from the manager, or its neighbour,
 * only. */
static bool knows_failure(struct mc_sys *s, const uint32_t *v, unsigned flags)
{
	const bool waits = s->cfg.mode == INC_MODE_3 || (mc_is_ring(s) && s->cfg.fail);

	if (flags & MC_H_ERR)
		return true;
	return waits && some_switch_failed(s, v) && !(flags & (MC_H_SEND | MC_H_TIMER | MC_H_RNR));
}

/* What a group that drains has begun ends as if it did not drain; what it has not, nobody waits
 * for. */
static bool drained(struct mc_sys *s, const uint32_t *v)
{
	const unsigned flags = mc_switch_flags(s, 0, v[0]);

	if (!(flags & MC_S_DRAINS) || flags & MC_S_TIMERS || !mc_quiet(s, v))
		return false;
	for (unsigned i = s->n_sw; i < s->n_nodes; i++)
		if (!mc_host_finished(s, i, v[i], (flags & MC_S_OPS) >> MC_S_OPS_SHIFT))
			return false;
	return true;
}

bool mc_final(struct mc_sys *s, const uint32_t *v, const char **why)
{
	const bool failed = s->cfg.fail && !(v[s->words - 1] & MAY_FAIL);
	bool agree = s->cfg.mismatch_rank == MC_NONE && !failed;

	*why = NULL;
	if (s->cfg.drain && drained(s, v))
		return true;
	for (unsigned i = s->n_sw; i < s->n_nodes; i++) {
		unsigned flags = mc_host_flags(s, i, v[i]);

		if (!(agree ? flags & MC_H_DONE : knows_failure(s, v, flags)) &&
			!(failed && flags & MC_H_DONE))
			return false;
	}
	if (!mc_quiet(s, v))
		return false;
	/* A switch of Mode-I may ask a host that is in error until it has asked often enough. */
	for (unsigned i = 0; (agree || s->cfg.mode != INC_MODE_1) && i < s->n_sw; i++)
		if (mc_switch_flags(s, i, v[i]) & MC_S_TIMERS)
			return false;
	for (unsigned i = 0; agree && i < s->n_sw; i++)
		if (!(mc_switch_flags(s, i, v[i]) & MC_S_CLEAN))
			*why = "all ranks are done, but a switch still waits for somebody";
	return true;
}
