/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank makes of rank 0's plan: queue pairs for its groups, or a ring. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/ccl/resume.h"
#include "lib/ccl/setup_priv.h"
#include "lib/ctl/schema.h"

/* Rank 0, when it has all addresses of the ring. */
static int install_ring(
	void *arg, const struct ccl_ring_address *all, unsigned n, unsigned mtu, char *err)
{
	struct ccl_setup *s = arg;
	const int rc = ccl_rings_plan(s->group, &s->rings, err);

	(void)n;
	return rc ? rc : ccl_rings_install(s->rings, all, mtu, err);
}

/* All ranks: opens and meets. fallback: without the switches. */
static int join_ring(struct ccl_setup *s, unsigned collectives, bool fallback, char *err)
{
	const struct ccl_group *g = s->group;
	const bool netreduce = g->mode_id == CCL_MODE_NETREDUCE && !fallback, many = g->rings > 1;
	struct ccl_comm *c = s->comm;
	const struct ccl_ring_conf conf = {
		.context = c->context,
		.port = c->port,
		.gid_index = c->gid_index,
		.rank = s->rank,
		.n_ranks = g->n_ranks,
		.mtu = g->mtu,
		.m = g->m,
		.w = g->w,
		.timeout_ns = g->timeout_ns,
		.start_psn = ccl_random_psn(),
		.netreduce = netreduce,
		.ring_id = ccl_rings_id(g, s->rank),
		.fallback = g->fallback,
	};
	const ccl_ring_between between = netreduce ? install_ring : NULL;
	const char *plain;
	int rc = many ? ccl_over_nodes(c, &conf, g->rings, collectives, err)
		      : ccl_over_ring(c, &conf, collectives, err);

	if (rc) {
		ccl_boot_abort(s->boot, err);
		return rc;
	}
	c->no_half = false;
	c->fallback = s->fallback = fallback;
	rc = many ? ccl_over_nodes_meet(c, s->boot, between, s, err)
		  : ccl_ring_meet(c->ring, s->boot, between, s, err);
	plain = ccl_ring_plain(many ? c->across : c->ring);
	if (rc == 0 && plain[0]) {
		c->collectives = many ? collectives : g->collectives;
		c->fallback = s->fallback = true;
		snprintf(c->selection, sizeof(c->selection),
			"%s of the hosts, without the switches: %.400s",
			many ? "rings across the nodes and inside each," : "a ring", plain);
	}
	c->connected = rc == 0;
	return rc;
}

/* All ranks: multicast or a tree by itself. */
static int join_hosts(struct ccl_setup *s, bool tree, unsigned collectives, char *err)
{
	struct ccl_comm *c = s->comm;
	int rc;

	ccl_leave(c);
	c->kind = tree ? CCL_TREE : CCL_MULTICAST;
	c->collectives = collectives;
	rc = tree ? ccl_over_tree(c, s->group, s->boot, err)
		  : ccl_over_mcast(c, s->group, s->boot, err);
	c->connected = rc == 0;
	return rc;
}

int ccl_setup_join(struct ccl_setup *s, const json_t *plan, char *err)
{
	struct ccl_comm *c = s->comm;
	const char *kind, *why, *owner;
	int collectives, fallback, stall_rnr, multicast, resume, resync, mtu, rc;

	if (json_unpack((json_t *)plan, "{s:s, s:b, s:b, s:b, s:b, s:b, s:i, s:s, s:i, s:s}",
		    "kind", &kind, "fallback", &fallback, "stall_rnr", &stall_rnr, "multicast",
		    &multicast, "resume", &resume, "resync", &resync, "collectives", &collectives,
		    "why", &why, "mtu", &mtu, "owner", &owner) ||
		(s->group->write && ccl_use_write(c, (unsigned)mtu))) {
		snprintf(err, CCL_ERR_LEN, "rank %u: rank 0's plan makes no sense", c->rank);
		return -EPROTO;
	}
	snprintf(c->selection, sizeof(c->selection), "%.200s%s%.250s", why,
		s->managed ? "; manager: " : "", s->placed);
	if (c->rank)
		snprintf(s->own.owner, sizeof(s->own.owner), "%s", owner);
	c->stall_rnr = s->own.stall_rnr = stall_rnr;
	s->beside = multicast;
	s->resync = resync;
	ccl_resume_close(c); /* of a former round */
	if (!strcmp(kind, "multicast") || !strcmp(kind, "tree"))
		return join_hosts(s, !strcmp(kind, "tree"), (unsigned)collectives, err);
	if (!strcmp(kind, "ring"))
		return join_ring(s, (unsigned)collectives, fallback, err);
	ccl_leave(c);
	rc = ccl_join(
		c, strcmp(kind, "mixed") ? CCL_SINGLE : CCL_MIXED, (unsigned)collectives, err);
	if (rc == 0 && resume && c->n_ranks > 1 && (rc = ccl_resume_enable(c)))
		snprintf(err, CCL_ERR_LEN, "rank %u: resume: %s", c->rank, strerror(-rc));
	return rc;
}

json_t *ccl_setup_qpns(const struct ccl_comm *c)
{
	json_t *list = json_array();
	struct ccl_member m;

	for (unsigned i = 0; ccl_member(c, i, &m) == 0; i++)
		json_array_append_new(
			list, json_pack("[i, o, I, I]", (int)m.qpn, ctl_u64(m.mr_addr),
				      (json_int_t)m.mr_len, (json_int_t)m.rkey));
	return json_pack("{s:o}", "qpns", list);
}
