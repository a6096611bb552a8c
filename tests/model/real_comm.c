/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/model/real_comm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/verbs/port_ops.h"

enum { OP_BYTES = MC_MAX_PSN * MC_MTU };
/* Where a control has what the model's leave out. */
enum { FLAGS_AT = 16, FLAGS_LEN = 4, TAG_AT = 24, TAG_LEN = 8 };
static const uint64_t FOREVER = UINT64_C(1) << 60;

struct real_comm {
	struct ibv_context *context;
	struct ccl_comm *comm;
	struct real_controls *controls;
	struct ccl_req req[MC_MAX_OPS];
	uint8_t *sent[MC_MAX_OPS], *got[MC_MAX_OPS];
};

static void must(int rc, const char *what, const char *why)
{
	if (rc != 0) {
		fprintf(stderr, "incline-model-conform: %s: %s %s\n", what, strerror(-rc), why);
		exit(2);
	}
}

/* ---- a port over which nothing goes: real_host.c hands frames in and takes them out ---- */

static unsigned no_rx(void *port, struct rnic_rx_frame *frames, unsigned n)
{
	(void)port, (void)frames, (void)n;
	return 0;
}

static void no_free(void *port, const struct rnic_rx_frame *frames, unsigned n)
{
	(void)port, (void)frames, (void)n;
}

static unsigned no_room(void *port)
{
	(void)port;
	return 0;
}

static void no_tx(void *port, const struct rnic_frame *frame)
{
	(void)port, (void)frame;
	abort();
}

static uint64_t port_now(void *port)
{
	return ((struct real_host *)port)->now;
}

static void no_wait(void *port, uint64_t until)
{
	(void)port, (void)until;
	abort();
}

static const struct verbs_port_ops ops = {.rx_burst = no_rx,
	.rx_free = no_free,
	.tx_room = no_room,
	.tx = no_tx,
	.tx_flush = no_room,
	.now = port_now,
	.wait = no_wait};

void real_comm_open(
	struct real_host *h, const struct rnic_config *config, struct real_controls *controls)
{
	const struct verbs_open_attr attr = {.rnic = *config};
	struct real_comm *c = calloc(1, sizeof(*c));

	must(c ? 0 : -ENOMEM, "communicator", "");
	c->controls = controls;
	h->comm = c;
	c->context = incline_verbs_open_port(&ops, h, &attr);
	must(c->context ? 0 : -EIO, "device", "");
	h->rnic = incline_verbs_rnic(c->context);
	for (unsigned op = 0; op < h->s->cfg.n_ops; op++) {
		c->sent[op] = calloc(2, OP_BYTES);
		must(c->sent[op] ? 0 : -ENOMEM, "buffer", "");
		c->got[op] = c->sent[op] + OP_BYTES;
	}
}

/* ---- a schedule ---- */

static unsigned op_bytes(const struct mc_op *op)
{
	return op->n ? (op->n - 1u) * MC_MTU + MC_SHORT : 0;
}

/* What one rank gives, or all ranks of a mask together. */
static void contribution(const struct real_host *h, unsigned op, unsigned ranks, uint8_t *out)
{
	const struct mc_sys *s = h->s;
	uint8_t part[MC_MTU];

	memset(out, 0, op_bytes(&s->cfg.op[op]));
	for (unsigned r = 0; ranks >> r; r++)
		for (unsigned k = 0; ranks >> r & 1 && k < s->cfg.op[op].n; k++) {
			const unsigned i = s->prog.ctrl[op] + 1u + k;
			const unsigned n = mc_payload_sent(&s->cfg, &s->prog, r, false, i, part);

			reduce_kernel(REDUCE_SUM, REDUCE_INT32)(out + k * MC_MTU, part, n);
		}
}

static int issue(const struct real_host *h, unsigned op)
{
	struct real_comm *c = h->comm;
	const struct mc_op *o = &h->s->cfg.op[op];
	const unsigned n = op_bytes(o) / 4;

	if (o->n == 0)
		return ccl_ibarrier(c->comm, &c->req[op]);
	if (o->prim == INC_BC)
		return ccl_ibroadcast(
			c->comm, c->sent[op], c->got[op], n, REDUCE_INT32, o->root, &c->req[op]);
	if (o->prim == INC_RED)
		return ccl_ireduce(c->comm, c->sent[op], c->got[op], n, REDUCE_INT32, REDUCE_SUM,
			o->root, &c->req[op]);
	return ccl_iallreduce(
		c->comm, c->sent[op], c->got[op], n, REDUCE_INT32, REDUCE_SUM, &c->req[op]);
}

/* Bit per collective of the program. */
static unsigned collectives(const struct mc_config *c)
{
	static const enum ccl_collective of[] = {
		[INC_AR] = CCL_ALLREDUCE, [INC_RED] = CCL_REDUCE, [INC_BC] = CCL_BROADCAST};
	unsigned mask = 0;

	for (unsigned op = 0; op < c->n_ops; op++)
		mask |= 1u << (c->op[op].n ? of[c->op[op].prim] : CCL_BARRIER);
	return mask;
}

/* The model has one group: of a single kind that of its only primitive and root. Another group's
 * queue pair leads nowhere and is not used. */
static void remotes(const struct real_host *h, struct ccl_remote *remote, uint32_t *qpn)
{
	const struct mc_config *c = &h->s->cfg;
	struct ccl_member m;

	for (unsigned i = 0; ccl_member(h->comm->comm, i, &m) == 0; i++) {
		const bool own =
			m.kind == CCL_MIXED ||
			(m.prim == c->op[0].prim && (m.prim == INC_AR || m.root == c->op[0].root));

		must(i < 2 * MC_MAX_RANKS + 1 ? 0 : -E2BIG, "groups", "");
		remote[i] = (struct ccl_remote){own ? h->s->dqpn[h->rank] : 0xffff, c->start_psn};
		*qpn = own ? m.qpn : *qpn;
	}
}

static int skip(struct ibv_qp *qp, int dir, uint32_t from, uint32_t count)
{
	return inc_dv_qp_skip(qp, dir, from, count);
}

void real_comm_reset(struct real_host *h)
{
	struct real_comm *c = h->comm;
	const struct mc_config *cfg = &h->s->cfg;
	struct ccl_remote remote[2 * MC_MAX_RANKS + 1];
	struct ccl_conn conn = {.context = c->context,
		.gid_index = 1,
		.rank = h->rank,
		.n_ranks = cfg->n_ranks,
		.m = cfg->m,
		.w = cfg->host_w,
		.timeout_ns = FOREVER,
		.mode = cfg->mode == INC_MODE_3 ? CCL_MODE_3 : CCL_MODE_2,
		.kind = cfg->kind == INC_SINGLE ? CCL_SINGLE : CCL_MIXED,
		.collectives = collectives(cfg),
		.skip = skip,
		.selective = cfg->flags & INC_F_SR,
		.create = inc_dv_create_qp,
		.mtu = MC_MTU,
		.remote_ip = h->s->flow[h->rank].dst};
	char err[CCL_ERR_LEN] = "";
	uint32_t qpn = 0;

	if (c->comm)
		ccl_comm_destroy(c->comm);
	memset(c->controls, 0, sizeof(*c->controls));
	must(ccl_comm_open(&conn, &c->comm, err), "communicator", err);
	remotes(h, remote, &qpn);
	conn.remote = remote;
	must(ccl_comm_connect(c->comm, &conn, err), "connection", err);
	h->qp = rnic_qp_find(h->rnic, qpn);
	must(h->qp ? 0 : -ENOENT, "queue pair", "");
	for (unsigned op = 0; op < cfg->n_ops; op++) {
		contribution(h, op, 1u << h->rank, c->sent[op]);
		must(issue(h, op), "collective", "");
	}
	must(ccl_progress(c->comm, h->now) < 0 ? -EIO : 0, "progress", ccl_error(c->comm));
}

void real_comm_poll(struct real_host *h, struct real_out *out)
{
	if (ccl_progress(h->comm->comm, h->now) < 0 && out->why == NULL)
		out->why = ccl_error(h->comm->comm);
}

/* ---- controls ---- */

/* The operation whose control it is; MC_NONE: it is none. */
static unsigned control_of(const struct real_host *h, const struct wire_pkt *pkt)
{
	const unsigned i = mc_index(h->s, pkt->psn);

	if (!(pkt->flags & ROCE_F_SEND) || !(pkt->flags & ROCE_F_IMM) || i >= h->s->prog.n ||
		!h->s->prog.psn[i].ctrl || pkt->pay_len != CCL_CTRL_LEN)
		return MC_NONE;
	return h->s->prog.psn[i].op;
}

const char *real_comm_out(struct real_host *h, const struct wire_pkt *pkt, uint8_t *bytes)
{
	struct real_controls *c = h->comm->controls;
	const unsigned op = control_of(h, pkt);
	uint8_t *payload = bytes + pkt->pay_off;

	if (op == MC_NONE)
		return NULL;
	if (c->known[op] && memcmp(c->payload[op], payload, CCL_CTRL_LEN) != 0)
		return "a control that is not the other ranks'";
	c->known[op] = true;
	memcpy(c->payload[op], payload, CCL_CTRL_LEN);
	memset(payload + FLAGS_AT, 0, FLAGS_LEN);
	memset(payload + TAG_AT, 0, TAG_LEN);
	return NULL;
}

const char *real_comm_in(struct real_host *h, const struct wire_pkt *pkt, uint8_t *bytes)
{
	const struct real_controls *c = h->comm->controls;
	const unsigned op = control_of(h, pkt);

	if (op == MC_NONE)
		return NULL;
	if (!c->known[op])
		return "a control that nobody has sent";
	memcpy(bytes + pkt->pay_off, c->payload[op], CCL_CTRL_LEN);
	return NULL;
}

/* ---- the end ---- */

static bool is_right(const struct real_host *h, unsigned op)
{
	const struct mc_op *o = &h->s->cfg.op[op];
	uint8_t due[OP_BYTES];

	if (o->prim == INC_RED && o->root != h->rank)
		return true;
	contribution(h, op, o->prim == INC_BC ? 1u << o->root : (1u << h->s->cfg.n_ranks) - 1, due);
	return memcmp(h->comm->got[op], due, op_bytes(o)) == 0;
}

bool real_comm_done(const struct real_host *h)
{
	for (unsigned op = 0; op < h->s->cfg.n_ops; op++)
		if (ccl_test(h->comm->comm, h->comm->req[op]) != 1 || !is_right(h, op))
			return false;
	return true;
}
