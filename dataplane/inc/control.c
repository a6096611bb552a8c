/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of a group: the in-band control message (docs/inc-protocol.md, section 2) and the
 * descriptors made from it. */
#include "dataplane/inc/modules.h"

enum { CTRL_VERSION = 1, CTRL_MAGIC = 0x31434e49, CTRL_F_WRITE = 1, CTRL_F_LAST = 2 };

/* Immediate: version 31..29, primitive 28..26, op 25..23, dtype 22..19, root 18..8, opSeq 7..0. */
static void imm_unpack(uint32_t imm, struct inc_desc *d, unsigned *version, unsigned *root)
{
	*version = imm >> 29;
	d->prim = imm >> 26 & 7;
	d->op = imm >> 23 & 7;
	d->dtype = imm >> 19 & 15;
	*root = imm >> 8 & 0x7ff;
	d->op_seq = (uint8_t)imm;
}

static uint32_t get_le32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The primitive and root that this group can have. */
static bool primitive_valid(const struct inc_group *g, unsigned prim, unsigned root)
{
	if (g->kind == INC_SINGLE)
		return prim == g->prim && root == g->root;
	return prim == INC_AR ? root == 0 : prim <= INC_BC && root < g->n_ranks;
}

/* What the data are and what is done to them. A barrier carries none: any pair that is spelled
 * right will do. */
static bool type_valid(const struct inc_group *g, const struct inc_desc *d)
{
	if (d->elem == 0)
		return false;
	if (d->wide && g->mode != INC_MODE_1 && !(g->flags & (INC_F_HALF | INC_F_REPRODUCIBLE)))
		return false;
	if (d->prim == INC_BC)
		return d->op == REDUCE_NONE;
	return d->n == 0 || (d->bytes % d->elem == 0 && reduce_kernel(d->op, d->dtype) != NULL);
}

bool inc_control_parse(
	const struct inc_group *g, uint32_t imm, const uint8_t *payload, struct inc_desc *d)
{
	unsigned version, root;
	uint32_t flags, m;
	uint64_t n;

	imm_unpack(imm, d, &version, &root);
	d->bytes = get_le32(payload + 8) | (uint64_t)get_le32(payload + 12) << 32;
	flags = get_le32(payload + 16);
	m = get_le32(payload + 20);
	if (version != CTRL_VERSION || get_le32(payload) != CTRL_MAGIC)
		return false;
	if (!primitive_valid(g, d->prim, root) || d->op_seq != g->next_seq)
		return false;
	if (d->bytes > (uint64_t)INC_MAX_OP_PACKETS * g->mtu)
		return false;
	n = (d->bytes + g->mtu - 1) / g->mtu;
	d->write = g->flags & INC_F_WRITE;
	if (n != get_le32(payload + 4) || m == 0 || m > g->m ||
		(flags & ~(uint32_t)CTRL_F_LAST) != (d->write ? CTRL_F_WRITE : 0))
		return false;
	d->n = (uint32_t)n;
	d->m = (uint16_t)m;
	d->elem = (uint8_t)reduce_size(d->dtype);
	d->wide = reduce_acc_size(d->dtype) > d->elem && d->n > 0 && d->prim != INC_BC;
	d->route = inc_route_of(g, d->prim, root);
	return type_valid(g, d);
}

struct inc_desc *inc_desc_find_older(struct inc_group *g, uint32_t psn)
{
	for (unsigned k = 2; k <= INC_N_DESC; k++)
		if (inc_desc_covers(inc_desc_newest(g, k), psn))
			return inc_desc_newest(g, k);
	return NULL;
}

bool inc_aggregates(struct inc_group *g, unsigned ep, uint32_t psn)
{
	const struct inc_desc *d;

	if (g->kind == INC_SINGLE)
		return inc_role_of(g, &g->control, ep) == INC_ROLE_UP;
	d = inc_desc_find(g, psn);
	return d && inc_role_of(g, inc_route_at(g, d, psn), ep) == INC_ROLE_UP;
}

static bool carries(
	const struct inc_group *g, const struct inc_route *route, enum inc_flow flow, unsigned i)
{
	switch (flow) {
	case INC_FLOW_RX:
		return inc_role_of(g, route, i) != INC_ROLE_NONE;
	case INC_FLOW_TX:
		return (inc_pipe_outs(g, route, INC_AGG) | inc_pipe_outs(g, route, INC_BCAST)) >>
			       i &
		       1;
	case INC_FLOW_PIPE:
		return route->prim != (i == INC_AGG ? INC_BC : INC_RED);
	case INC_FLOW_SUM:
		return route->prim != INC_BC && route->in != 0;
	default:
		return route->prim == INC_AR;
	}
}

uint32_t inc_adjust(struct inc_group *g, enum inc_flow flow, unsigned i, uint32_t psn)
{
	for (unsigned k = 0; k < 2 * INC_N_DESC; k++) { /* controls and data */
		const struct inc_desc *d = inc_desc_find(g, psn);

		if (d == NULL || carries(g, inc_route_at(g, d, psn), flow, i))
			break;
		psn = psn_add(psn == d->ctrl_psn ? psn : d->last, 1);
	}
	return psn;
}

/* PSNs that are compared must lie within 2^23. What was acknowledged may lag behind by any number
 * of operations that an endpoint has no part in; what is waited for lies within windows. */
static void catch_up(struct inc_group *g, uint32_t psn)
{
	enum { FAR = 1 << 21 };
	uint32_t far = psn_add(psn, -(int32_t)FAR);

	for (unsigned i = 0; i < g->n_ep; i++) {
		struct inc_ep *ep = inc_ep_at(g, i);

		ep->ack_next = psn_max(ep->ack_next, far);
		ep->refl_next = psn_max(ep->refl_next, far);
		ep->rx_epsn = psn_max(ep->rx_epsn, far);
		ep->rx_acked = psn_max(ep->rx_acked, far);
		ep->tx_una = psn_max(ep->tx_una, far);
		ep->tx_next = psn_max(ep->tx_next, far);
		ep->tx_high = psn_max(ep->tx_high, far);
		inc_sr_catch_up(ep, far);
	}
	g->node_ack = psn_max(g->node_ack, far);
	g->red_ack = psn_max(g->red_ack, far);
	g->sum_next = psn_max(g->sum_next, far);
}

/* The same for slots. Data of broadcasts pass without one, so that a slot may go unused for any
 * number of PSNs; its next owner must not look older than its last. Seldom: operations are short
 * against FAR, and what is in use lies within a window of the newest control. */
static void age_slots(struct inc_group *g, uint32_t psn)
{
	enum { FAR = 1 << 21 };
	uint32_t slots = 1u << g->log2n;

	if (g->mode != INC_MODE_2 || psn_diff(psn, g->aged_psn) < FAR)
		return;
	g->aged_psn = psn;
	for (uint32_t k = 1; k <= slots; k++) {
		uint32_t owner = psn_add(psn, -(int32_t)k);
		struct inc_slot *slot = inc_slot_at(g, owner);

		if (psn_diff(psn, slot->tag) >= FAR / 2)
			*slot = (struct inc_slot){.tag = owner};
	}
}

static enum inc_drop desc_install(struct inc_ctx *c)
{
	struct inc_group *g = c->g;
	struct inc_desc *d = inc_desc_at(g, g->next_seq % INC_N_DESC);
	struct inc_desc fresh = {0};

	if (__atomic_load_n(&g->state, __ATOMIC_ACQUIRE) == INC_DRAINING)
		return INC_DROP_DRAINING;
	if (!inc_control_parse(g, c->pkt->imm, c->payload, &fresh))
		return INC_DROP_CTRL_INVALID;
	if (d->valid && !inc_ops_of(g)->retire(g, d))
		return INC_DROP_NO_DESCRIPTOR;
	if (d->valid) /* nobody will know then what its PSNs were */
		g->sum_next = psn_max(g->sum_next, psn_add(d->last, 1));
	fresh.valid = 1;
	fresh.imm = c->pkt->imm;
	fresh.ctrl_psn = c->pkt->psn;
	fresh.last = psn_add(c->pkt->psn, (int32_t)fresh.n);
	fresh.pay_crc = c->pay_crc;
	fresh.first_msg = g->next_msg;
	fresh.first_op = g->next_op++;
	memcpy(fresh.payload, c->payload, INC_CTRL_LEN);
	*d = fresh;
	c->desc = d;
	catch_up(g, fresh.ctrl_psn);
	age_slots(g, fresh.ctrl_psn);
	g->bc_next = fresh.ctrl_psn;
	g->next_msg += (fresh.n + fresh.m - 1) / fresh.m;
	g->next_ctrl = psn_add(fresh.last, 1);
	g->next_seq++;
	inc_count(g, INC_C_CONTROLS);
	return INC_OK;
}

/* Takes a control packet: compares it with a known descriptor or installs a new one, and notes that
 * this endpoint has sent it. A disagreement fails the group (2.2, rule 2). */
static enum inc_drop control(struct inc_ctx *c)
{
	struct inc_group *g = c->g;
	uint32_t psn = c->pkt->psn;
	enum inc_drop drop = INC_OK;

	if (c->pkt->pay_len != INC_CTRL_LEN)
		return INC_DROP_CTRL_INVALID;
	if (psn == g->next_ctrl) {
		drop = desc_install(c);
	} else if (psn_lt(g->next_ctrl, psn)) {
		return INC_DROP_NO_CONTROL; /* the operation before it has not begun */
	} else {
		c->desc = inc_desc_find(g, psn);
		if (c->desc == NULL)
			return INC_DROP_PSN_STALE;
		if (c->desc->ctrl_psn != psn)
			return INC_DROP_OPCODE_POS;
		if (c->desc->imm != c->pkt->imm ||
			memcmp(c->desc->payload, c->payload, INC_CTRL_LEN) != 0) {
			inc_group_fail(g, INC_FAIL_CTRL_MISMATCH, c->ep);
			return INC_DROP_CTRL_INVALID;
		}
	}
	if (drop == INC_OK)
		c->desc->ctrl_seen |= 1ULL << c->ep;
	return drop;
}

/* Check 14: has this endpoint agreed to the operation? What comes down is the work of those who
 * have, and in a MIXED group that is all the parent sends. */
static bool has_agreed(const struct inc_ctx *c, enum inc_role role)
{
	if (role == INC_ROLE_DOWN || (c->g->kind == INC_MIXED && c->ep == c->g->parent_ep))
		return true;
	if (INC_BUG(T23) && __builtin_popcountll(c->desc->ctrl_seen) <
				    (int)c->g->n_ep - (c->g->parent_ep != 0xff))
		return false;
	return INC_BUG(T22) || (c->desc->ctrl_seen >> c->ep & 1);
}

/* By the first and the last packet of a message. */
static uint8_t data_opcode(
	const struct inc_group *g, const struct inc_desc *d, bool first, bool last)
{
	static const uint8_t sends[2][2] = {
		{ROCE_SEND_MIDDLE, ROCE_SEND_LAST}, {ROCE_SEND_FIRST, ROCE_SEND_ONLY}};
	static const uint8_t writes[2][2] = {
		{ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST_IMM}, {ROCE_WRITE_FIRST, ROCE_WRITE_ONLY_IMM}};

	return (d->write ? writes : sends)[first][last] | inc_transport(g);
}

/* rest: packets of data to come, it included. */
static uint16_t data_len(const struct inc_group *g, const struct inc_desc *d, uint32_t rest)
{
	return rest == 1 ? (uint16_t)(d->bytes - (uint64_t)(d->n - 1) * g->mtu) : g->mtu;
}

/* Check 15 for data: what inc_position_of says of its PSN, and no more of it than is needed. */
static enum inc_drop is_in_place(
	const struct inc_group *g, const struct inc_desc *d, const struct wire_pkt *pkt)
{
	const uint32_t k = (pkt->psn - d->ctrl_psn - 1) & PSN_MASK;
	const uint32_t i = k % d->m, rest = d->n - k;

	if (pkt->psn == d->ctrl_psn ||
		pkt->opcode != data_opcode(g, d, i == 0, rest == 1 || i + 1 == d->m))
		return INC_DROP_OPCODE_POS;
	return pkt->pay_len != data_len(g, d, rest) ? INC_DROP_LENGTH_POS : INC_OK;
}

enum inc_drop inc_admit(struct inc_ctx *c, enum inc_role *role)
{
	struct inc_group *g = c->g;
	uint32_t psn = c->pkt->psn;

	c->ctrl = c->cls == INC_CLASS_CTRL;
	if (c->ctrl) {
		c->route = &g->control;
		*role = inc_role_of(g, c->route, c->ep);
		return *role == INC_ROLE_NONE ? INC_DROP_WRONG_ENDPOINT : control(c);
	}
	c->desc = inc_desc_find(g, psn);
	if (c->desc == NULL)
		return psn_le(g->next_ctrl, psn) ? INC_DROP_NO_CONTROL : INC_DROP_PSN_STALE;
	c->route = &c->desc->route;
	*role = inc_role_of(g, c->route, c->ep);
	if (*role == INC_ROLE_NONE)
		return INC_DROP_WRONG_ENDPOINT;
	if (!has_agreed(c, *role))
		return INC_DROP_NO_CONTROL;
	if ((*role == INC_ROLE_UP || g->mode == INC_MODE_3) && g->pay_off == INC_NO_ARENA)
		return INC_DROP_NO_ARENA;
	return is_in_place(g, c->desc, c->pkt);
}

struct inc_position inc_position_of(
	const struct inc_group *g, const struct inc_desc *d, uint32_t psn)
{
	uint32_t k = (psn - d->ctrl_psn - 1) & PSN_MASK; /* index of the data packet */
	uint32_t i, rest, len;
	struct inc_position pos = {0};

	if (psn == d->ctrl_psn)
		return (struct inc_position){.opcode = ROCE_SEND_ONLY_IMM | inc_transport(g),
			.ackreq = true,
			.len = INC_CTRL_LEN,
			.imm = d->imm,
			.recv = (uint32_t)d->first_msg + d->first_op};
	i = k % d->m;
	rest = d->n - k;
	len = rest + i < d->m ? rest + i : d->m; /* packets in this message */
	pos.len = data_len(g, d, rest);
	pos.opcode = data_opcode(g, d, i == 0, i == len - 1);
	pos.ackreq = i == len - 1;
	pos.imm = k / d->m;
	pos.msg = d->first_msg + pos.imm;
	pos.msg_len = len * g->mtu;
	pos.offset = i * g->mtu;
	pos.recv = (uint32_t)pos.msg + d->first_op + 1; /* this operation's control is one, too */
	if (rest + i <= d->m)                           /* the last message */
		pos.msg_len = (uint32_t)(d->bytes - (uint64_t)(k - i) * g->mtu);
	return pos;
}
