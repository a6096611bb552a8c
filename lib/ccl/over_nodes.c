/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator of nodes with several ranks (nodes.h): each rank is in its node's ring, and in one
 * of several parallel rings across the nodes, that of its place in a node. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/ccl/boot.h"
#include "lib/ccl/comm.h"
#include "lib/ccl/nodes.h"
#include "lib/ccl/ring_priv.h"

/* A rank's two rings, in what it says to the others, too. */
enum { INSIDE, ACROSS, N_RINGS };
static const char *const names[N_RINGS] = {"inside", "across"};

int ccl_over_nodes(struct ccl_comm *c, const struct ccl_ring_conf *conf, unsigned rings,
	unsigned collectives, char err[CCL_ERR_LEN])
{
	const unsigned index = conf->rank % rings;
	struct ccl_ring_conf own = *conf;
	int rc;

	ccl_leave(c);
	c->kind = CCL_RING;
	c->n_local = rings;
	c->collectives = collectives & (1u << CCL_ALLREDUCE | 1u << CCL_BARRIER);
	own.rank = conf->rank / rings;
	own.n_ranks = conf->n_ranks / rings;
	own.of_first = index;
	own.of_step = rings;
	rc = ccl_ring_open(&own, &c->across, err);
	if (rc)
		return rc;
	own.netreduce = false;
	own.rank = index;
	own.n_ranks = rings;
	own.of_first = conf->rank - index;
	own.of_step = 1;
	return ccl_ring_open(&own, &c->ring, err);
}

/* ---- meeting ---- */

void ccl_over_nodes_addresses(
	const struct ccl_comm *c, struct ccl_ring_address *inside, struct ccl_ring_address *across)
{
	ccl_ring_address(c->ring, inside);
	ccl_ring_address(c->across, across);
}

int ccl_over_nodes_connect(struct ccl_comm *c, const struct ccl_ring_address *inside,
	const struct ccl_ring_address *across, unsigned mtu, char err[CCL_ERR_LEN])
{
	const unsigned m = c->n_local, n = c->n_ranks, index = c->rank % m, first = c->rank - index;
	const struct ccl_nodes_conf conf = {.way = CCL_NODES_PARALLEL,
		.index = index,
		.n_local = m,
		.local = c->ring,
		.across = c->across};
	int rc = ccl_ring_connect(c->ring, &inside[first + (index + m - 1) % m],
		&inside[first + (index + 1) % m], mtu, err);

	if (rc == 0)
		rc = ccl_ring_connect(c->across, &across[(c->rank + n - m) % n],
			&across[(c->rank + m) % n], mtu, err);
	return rc ? rc : ccl_nodes_open(&conf, &c->nodes, err);
}

struct meeting {
	struct ccl_comm *comm;
	ccl_ring_between between;
	void *arg;
	struct ccl_ring_address *at[N_RINGS]; /* by rank */
	unsigned mtu;
};

static int read_all(struct meeting *m, const json_t *list, char *err)
{
	const unsigned n = m->comm->n_ranks;

	m->mtu = 4096;
	for (unsigned ring = 0; ring < N_RINGS; ring++) {
		m->at[ring] = calloc(n, sizeof(*m->at[ring]));
		if (!m->at[ring]) {
			snprintf(err, CCL_ERR_LEN, "rank %u: out of memory", m->comm->rank);
			return -ENOMEM;
		}
		for (unsigned i = 0; i < n; i++)
			if (ring_address_read(json_object_get(json_array_get(list, i), names[ring]),
				    i, &m->at[ring][i], &m->mtu, err))
				return -EPROTO;
	}
	return 0;
}

static void forget_all(struct meeting *m)
{
	for (unsigned ring = 0; ring < N_RINGS; ring++) {
		free(m->at[ring]);
		m->at[ring] = NULL;
	}
}

static int look(void *arg, const json_t *list, char *err)
{
	struct meeting *m = arg;
	int rc = read_all(m, list, err);

	if (rc == 0 && m->between)
		rc = m->between(m->arg, m->at[ACROSS], m->comm->n_ranks, m->mtu, err);
	forget_all(m);
	return rc;
}

static int connect_to(void *arg, const json_t *list, char *err)
{
	struct meeting *m = arg;
	struct ccl_ring *across = m->comm->across;
	int rc = read_all(m, list, err);

	across->conf.netreduce &= !across->plain[0];
	if (rc == 0)
		rc = ccl_over_nodes_connect(m->comm, m->at[INSIDE], m->at[ACROSS], m->mtu, err);
	forget_all(m);
	return rc;
}

int ccl_over_nodes_meet(struct ccl_comm *c, struct ccl_boot *boot, ccl_ring_between between,
	void *arg, char err[CCL_ERR_LEN])
{
	struct meeting two = {.comm = c, .between = between, .arg = arg};
	const struct ring_meeting m = {.boot = boot,
		.rank = c->rank,
		.n_ranks = c->n_ranks,
		.fallback = between && c->across->conf.fallback,
		.plain = c->across->plain,
		.look = look,
		.connect = connect_to,
		.arg = &two};
	struct ccl_ring_address inside, across;
	json_t *own;
	int rc;

	ccl_over_nodes_addresses(c, &inside, &across);
	own = json_pack("{s:o, s:o}", names[INSIDE], ccl_ring_address_json(&inside), names[ACROSS],
		ccl_ring_address_json(&across));
	rc = ring_meet(&m, own, err);
	json_decref(own);
	return rc;
}

/* ---- memory ---- */

int ccl_over_nodes_register(struct ccl_comm *c, void *buf, size_t len)
{
	int rc = ccl_ring_register(c->ring, buf, len);

	if (rc)
		return rc;
	rc = ccl_ring_register(c->across, buf, len);
	if (rc)
		ccl_ring_deregister(c->ring, buf);
	return rc;
}

/* Between two steps of a collective neither ring uses it: its beginning tells. */
static bool in_use(const struct ccl_comm *c, const struct ccl_ring *ring, const void *buf)
{
	const struct ring_region *reg = ring->region;

	for (unsigned i = 0; i < CCL_RING_MAX_REGIONS; i++)
		if (reg[i].mr && reg[i].base == buf && ccl_uses(c, reg[i].base, reg[i].len))
			return true;
	return false;
}

/* Last registered, first taken away; where a ring still keeps it, what is left goes when it is
 * asked for again. */
int ccl_over_nodes_deregister(struct ccl_comm *c, void *buf)
{
	int rc, inside;

	if (!c->failed && (in_use(c, c->ring, buf) || in_use(c, c->across, buf)))
		return -EBUSY;
	rc = ccl_ring_deregister(c->across, buf);
	if (rc && rc != -ENOENT)
		return rc;
	inside = ccl_ring_deregister(c->ring, buf);
	return inside == -ENOENT ? rc : inside;
}

/* ---- collectives ---- */

int ccl_over_nodes_issue(struct ccl_comm *c, struct ccl_coll *coll)
{
	const enum reduce_dtype dtype = (enum reduce_dtype)coll->dtype;

	if (coll->kind == CCL_BARRIER)
		return ccl_nodes_ibarrier(c->nodes, &coll->handed_req);
	return ccl_nodes_iallreduce(c->nodes, coll->send, coll->recv,
		coll->bytes / reduce_size(dtype), dtype, (enum reduce_op)coll->op,
		&coll->handed_req);
}

int ccl_over_nodes_go_on(struct ccl_comm *c, uint64_t now)
{
	const int n = ccl_nodes_progress(c->nodes, now);

	for (uint64_t i = c->coll_done; i != c->coll_issued; i++) {
		const struct ccl_coll *coll = ccl_coll_at(c, i);

		if (coll->parts_left && coll->by == CCL_BY_RING &&
			ccl_nodes_test(c->nodes, coll->handed_req) == 1)
			ccl_part_done(c, i);
	}
	return n < 0 ? ccl_fail(c, n, "%s", ccl_nodes_error(c->nodes)) : n;
}

void ccl_over_nodes_describe(const struct ccl_comm *c, struct ccl_info *info)
{
	struct ccl_ring_info inside, across;

	ccl_ring_query(c->ring, &inside);
	ccl_ring_query(c->across, &across);
	wire_ip_format(&across.next_ip, info->remote_ip, sizeof(info->remote_ip));
	info->local_qpn = across.next_qpn;
	info->mtu = across.mtu;
	info->operations = across.collectives;
	info->messages = inside.messages_sent + across.messages_sent;
	info->staged_sends = inside.staged_sends + across.staged_sends;
}

void ccl_over_nodes_close(struct ccl_comm *c)
{
	ccl_ring_close(c->across);
	ccl_nodes_close(c->nodes);
}
