/* SPDX-License-Identifier: BSD-3-Clause */
/* From a group file to a connected communicator and back. Everybody says what its device can do;
 * rank 0 chooses the kind of groups, collects the queue pairs' numbers, makes the groups on the
 * switches and hands out the switches' numbers; then everybody connects. A barrier ends it, so that
 * no rank sends before all can receive. If the switches do not offer a kind, there is another round
 * with the next one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/hello.h"
#include "lib/ccl/lease.h"
#include "lib/ccl/random.h"
#include "lib/ccl/resume.h"
#include "lib/ccl/resync.h"
#include "lib/ccl/setup_priv.h"
#include "lib/ctl/schema.h"

_Static_assert((int)CCL_BOOT_ERR_LEN == (int)CCL_ERR_LEN, "errors are passed on");

static void prefix(unsigned rank, char err[CCL_ERR_LEN])
{
	char text[CCL_ERR_LEN];

	if (strncmp(err, "rank ", 5) == 0)
		return;
	snprintf(text, sizeof(text), "rank %u: %.480s", rank, err);
	memcpy(err, text, sizeof(text));
}

/* ---- own part ---- */

/* Who finds the tree decides mode and window with it. */
static int ask_manager(struct ccl_setup *s, struct ccl_conn *conn, char *err)
{
	const int mtu = ccl_port_mtu(conn->context, conn->port);
	struct ccl_ability able = {.skip = ccl_device_skip(conn->context) != NULL,
		.selective = ccl_device_create(conn->context) != NULL};
	int rc;

	if (!s->own.manager[0])
		return 0;
	if (mtu < 0) {
		snprintf(err, CCL_ERR_LEN, "the device's port has no MTU");
		return mtu;
	}
	snprintf(
		able.device, sizeof(able.device), "%s", ibv_get_device_name(conn->context->device));
	rc = ccl_managed_join(&s->own, s->rank, (unsigned)mtu, &able, &s->managed, s->placed, err);
	conn->m = s->own.m;
	conn->w = s->own.w;
	conn->mode = s->own.mode_id;
	return rc;
}

static int open_own(struct ccl_setup *s, char *err)
{
	const struct ccl_group *g = s->group;
	struct ccl_conn conn = {.rank = s->rank,
		.n_ranks = g->n_ranks,
		.m = g->m,
		.w = g->w,
		.mode = g->mode_id,
		.place = s->place,
		.timeout_ns = g->timeout_ns};
	int rc = ccl_device_open(g->device, &g->rank_ip[s->rank], g->gid_index, &conn.context,
		&conn.port, &conn.gid_index, err);

	if (rc == 0) {
		rc = ask_manager(s, &conn, err);
		if (rc == 0)
			rc = ccl_comm_new(&conn, &s->comm, err);
		if (rc)
			ibv_close_device(conn.context);
	}
	if (rc) {
		prefix(s->rank, err);
		return rc;
	}
	s->comm->own_context = true;
	s->comm->stall_rnr = g->stall_rnr;
	s->comm->selective = g->sr;
	s->comm->no_half = !g->half && !g->reproducible;
	return 0;
}

/* ---- all ranks ---- */

static int tell_qpns(struct ccl_setup *s, char *err)
{
	json_t *qpns = ccl_setup_qpns(s->comm);
	const int rc = ccl_boot_tell(s->boot, qpns, err);

	json_decref(qpns);
	return rc;
}

/* Follows one plan after the other, until rank 0 answers or a ring has met. */
static int follow(struct ccl_setup *s, json_t *mine, bool opened, json_t **own, char *err)
{
	int rc;

	if (!opened) {
		ccl_boot_abort(s->boot, err);
		return -ENODEV;
	}
	rc = ccl_boot_tell(s->boot, mine, err);
	while (rc == 0 && !ccl_by_hosts(s->comm) && (rc = ccl_boot_hear(s->boot, own, err)) == 0) {
		const json_t *plan = json_object_get(*own, "plan");

		if (!plan)
			return 0;
		rc = ccl_setup_join(s, plan, err);
		if (rc)
			ccl_boot_abort(s->boot, err);
		else if (!ccl_by_hosts(s->comm))
			rc = tell_qpns(s, err);
		json_decref(*own);
		*own = NULL;
	}
	return rc;
}

static int parse_answer(const struct ccl_comm *c, const json_t *own, struct ccl_conn *conn,
	struct ccl_remote *remote)
{
	const json_t *groups;
	const char *ip;
	int mtu, m, w;

	if (json_unpack((json_t *)own, "{s:s, s:o, s:i, s:i, s:i}", "ip", &ip, "groups", &groups,
		    "mtu", &mtu, "M", &m, "W", &w) ||
		wire_ip_parse(ip, &conn->remote_ip) || m != (int)c->m || w != (int)c->w ||
		json_array_size(groups) != c->n_memb)
		return -EPROTO;
	for (unsigned i = 0; i < c->n_memb; i++) {
		int qpn, psn;

		if (json_unpack(json_array_get(groups, i), "[i, i]", &qpn, &psn))
			return -EPROTO;
		remote[i] = (struct ccl_remote){(uint32_t)qpn, (uint32_t)psn};
	}
	conn->mtu = (unsigned)mtu;
	conn->remote = remote;
	return 0;
}

static int connect_own(struct ccl_comm *c, const json_t *own, char *err)
{
	struct ccl_remote *remote = calloc(c->n_memb, sizeof(*remote));
	struct ccl_conn conn = {.context = c->context};
	int rc = remote ? parse_answer(c, own, &conn, remote) : -ENOMEM;

	if (rc)
		snprintf(err, CCL_ERR_LEN, "rank %u: rank 0's answer makes no sense", c->rank);
	else
		rc = ccl_comm_connect(c, &conn, err);
	free(remote);
	return rc;
}

/* The barrier that ends the set-up carries the failures of connecting. */
static int finish(struct ccl_setup *s, int rc, char *err)
{
	char other[CCL_ERR_LEN];

	if (rc == 0)
		return ccl_boot_barrier(s->boot, err);
	if (s->rank == 0) {
		json_t **all = calloc(s->group->n_ranks, sizeof(json_t *));

		/* The others are about to come to the barrier: there they will hear it. */
		if (all && ccl_boot_gather(s->boot, all, other) == 0)
			for (unsigned r = 1; r < s->group->n_ranks; r++)
				json_decref(all[r]);
		free(all);
	}
	ccl_boot_abort(s->boot, err);
	return rc;
}

static void setup_free(struct ccl_setup *s)
{
	if (!s)
		return;
	ccl_boot_close(s->boot);
	ccl_managed_leave(s->managed, false);
	ccl_install_fini(&s->in);
	if (s->own.manager[0])
		ccl_group_drop_tree(&s->own);
	json_decref(s->own.flags);
	free(s->ranks);
	ccl_rings_free(s->rings);
	free(s);
}

/* Rank 0: what is on the switches. */
static int take_away(struct ccl_setup *s, bool force, char *err)
{
	const int rc = s->rank ? 0 : ccl_uninstall(&s->in, force, err);
	const int rc2 = ccl_rings_uninstall(s->rings, err);

	return rc ? rc : rc2;
}

static int set_up(struct ccl_setup *s, char *err)
{
	const bool opened = open_own(s, err) == 0;
	json_t *mine = opened ? ccl_hello(s->group, s->comm) : NULL, *own = NULL;
	char ignored[CCL_ERR_LEN];
	int rc;

	rc = s->rank ? follow(s, mine, opened, &own, err)
		     : ccl_setup_lead(s, mine, opened, &own, err);
	if (rc == 0 && !ccl_by_hosts(s->comm)) {
		rc = connect_own(s->comm, own, err);
		rc = finish(s, rc, err);
		if (rc == 0 && s->group->lease[0])
			rc = ccl_lease_open(s->comm, s->group, s->boot, err);
		if (rc == 0 && s->resync)
			rc = ccl_resync_open(s->comm, s->group, s->boot, err);
	}
	if (rc == 0 && s->beside)
		rc = ccl_over_mcast(s->comm, s->group, s->boot, err);
	if (rc == 0 && s->managed)
		rc = ccl_managed_ready(s->managed, err);
	json_decref(mine);
	json_decref(own);
	if (rc) {
		ccl_comm_free(s->comm);
		take_away(s, true, ignored);
	}
	return rc;
}

/* A secret, of which rank 0's counts. */
static int make_owner(char owner[CCL_OWNER_LEN], char *err)
{
	uint8_t random[(CCL_OWNER_LEN - 1) / 2];
	const int rc = ccl_random(random, sizeof(random));

	if (rc) {
		snprintf(err, CCL_ERR_LEN, "no random numbers for a secret: %s", strerror(-rc));
		return rc;
	}
	for (unsigned i = 0; i < sizeof(random); i++)
		snprintf(owner + 2 * i, 3, "%02x", random[i]);
	return 0;
}

int ccl_setup_make(const struct ccl_group *g, unsigned rank, struct ccl_comm *place,
	struct ccl_comm **comm, char err[CCL_ERR_LEN])
{
	struct ccl_setup *s;
	int rc;

	*comm = NULL;
	if (rank >= g->n_ranks) {
		snprintf(err, CCL_ERR_LEN, "rank %u: the group has ranks 0 to %u", rank,
			g->n_ranks - 1);
		return -EINVAL;
	}
	s = calloc(1, sizeof(*s));
	if (s)
		s->ranks = calloc(g->n_ranks, sizeof(*s->ranks));
	if (!s || !s->ranks) {
		free(s);
		snprintf(err, CCL_ERR_LEN, "out of memory");
		return -ENOMEM;
	}
	s->own = *g;
	s->own.flags = json_deep_copy(g->flags);
	ccl_group_apply_algorithm(&s->own);
	s->group = &s->own;
	s->rank = rank;
	s->place = place;
	rc = make_owner(s->own.owner, err);
	if (rc == 0)
		rc = s->own.flags ? ccl_boot_open(g->bootstrap, rank, g->n_ranks,
					    (unsigned)(g->timeout_ns / 1000000), &s->boot, err)
				  : -ENOMEM;
	if (rc == 0)
		rc = set_up(s, err);
	if (rc) {
		setup_free(s);
		return rc;
	}
	*comm = s->comm;
	s->comm = NULL;
	(*comm)->setup = s;
	(*comm)->given = g;
	err[0] = '\0';
	return 0;
}

int ccl_comm_create(
	const struct ccl_group *g, unsigned rank, struct ccl_comm **comm, char err[CCL_ERR_LEN])
{
	return ccl_setup_make(g, rank, NULL, comm, err);
}

void ccl_setup_end(struct ccl_setup *s, const char *why)
{
	char ignored[CCL_ERR_LEN];

	if (!s)
		return;
	ccl_boot_abort(s->boot, why);
	take_away(s, false, ignored);
	setup_free(s);
}

const struct ccl_group *ccl_comm_group(const struct ccl_comm *comm)
{
	return comm->setup ? comm->setup->group : comm->given;
}

/* It has failed, but nothing of this rank is unfinished: others may need what it has kept. */
static bool may_help(const struct ccl_comm *c)
{
	return ccl_resume_may(c) && c->coll_done == c->coll_issued;
}

/* Everybody is done before anybody's queue pair goes, and every queue pair is idle before the group
 * goes. A communicator that has failed for good does not wait: the others hear why. */
int ccl_comm_destroy(struct ccl_comm *c)
{
	struct ccl_setup *s = c ? c->setup : NULL;
	char err[CCL_ERR_LEN];
	int rc = 0, rc2 = 0;

	if (s && c->failed && !may_help(c)) {
		rc = c->failed;
		ccl_boot_abort(s->boot, c->err);
	} else if (s) {
		rc = c->resume ? ccl_resume_leave(c, err) : ccl_boot_barrier(s->boot, err);
	} else if (c && c->given) {
		rc = c->failed;
	}
	if (c)
		c->placed = false; /* its memory goes, too */
	ccl_comm_free(c);
	if (s)
		rc2 = take_away(s, rc == 0, err);
	if (s && rc == 0) {
		ccl_managed_leave(s->managed, true);
		s->managed = NULL;
	}
	setup_free(s);
	return rc ? rc : rc2;
}
