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
#include <sys/random.h>

#include "lib/ccl/boot.h"
#include "lib/ccl/comm.h"
#include "lib/ccl/hello.h"
#include "lib/ccl/install.h"
#include "lib/ccl/lease.h"
#include "lib/ccl/ring.h"
#include "lib/ccl/ring_install.h"
#include "lib/ccl/select.h"
#include "lib/ctl/schema.h"

_Static_assert((int)CCL_BOOT_ERR_LEN == (int)CCL_ERR_LEN, "errors are passed on");

struct ccl_setup {
	const struct ccl_group *group; /* = &own */
	struct ccl_group
		own; /* as given, but for what is chosen here: flags (its own), stall_rnr */
	unsigned rank;
	struct ccl_boot *boot;
	struct ccl_comm *comm;              /* until it is the caller's */
	bool fallback;                      /* the switches know nothing of it */
	struct ccl_install in;              /* rank 0 */
	struct ccl_ring_installed *ring_at; /* rank 0, NetReduce: one per switch */
	struct ccl_ability *ranks;          /* rank 0 */
	int64_t renewed_ms;                 /* rank 0: when the switches were last looked after */
};

enum { RENEW_MS = 2000 };

static void prefix(unsigned rank, char err[CCL_ERR_LEN])
{
	char text[CCL_ERR_LEN];

	if (strncmp(err, "rank ", 5) == 0)
		return;
	snprintf(text, sizeof(text), "rank %u: %.480s", rank, err);
	memcpy(err, text, sizeof(text));
}

/* ---- own part ---- */

static int open_own(struct ccl_setup *s, char *err)
{
	const struct ccl_group *g = s->group;
	struct ccl_conn conn = {.rank = s->rank,
		.n_ranks = g->n_ranks,
		.m = g->m,
		.w = g->w,
		.mode = g->mode_id,
		.timeout_ns = g->timeout_ns};
	int rc = ccl_device_open(g->device, &g->rank_ip[s->rank], g->gid_index, &conn.context,
		&conn.port, &conn.gid_index, err);

	if (rc == 0) {
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

/* Rank 0, when it has all addresses of the ring. */
static int install_ring(
	void *arg, const struct ccl_ring_address *all, unsigned n, unsigned mtu, char *err)
{
	struct ccl_setup *s = arg;

	(void)n;
	return ccl_ring_install(s->group, all, mtu, s->ring_at, err);
}

/* All ranks: opens and meets. fallback: without the switches. */
static int join_ring(struct ccl_setup *s, unsigned collectives, bool fallback, char *err)
{
	const struct ccl_group *g = s->group;
	const bool netreduce = g->mode_id == CCL_MODE_NETREDUCE && !fallback;
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
		.ring_id = ccl_ring_id(g),
		.fallback = g->fallback,
	};
	int rc = ccl_over_ring(c, &conf, collectives, err);

	if (rc) {
		ccl_boot_abort(s->boot, err);
		return rc;
	}
	c->no_half = false;
	c->fallback = s->fallback = fallback;
	rc = ccl_ring_meet(c->ring, s->boot, netreduce ? install_ring : NULL, s, err);
	if (rc == 0 && ccl_ring_plain(c->ring)[0]) {
		c->collectives = g->collectives;
		c->fallback = s->fallback = true;
		snprintf(c->selection, sizeof(c->selection),
			"a ring of the hosts, without the switches: %.400s",
			ccl_ring_plain(c->ring));
	}
	c->connected = rc == 0;
	return rc;
}

/* Queue pairs for the groups that rank 0 has chosen. */
static int join_own(struct ccl_setup *s, const json_t *plan, char *err)
{
	struct ccl_comm *c = s->comm;
	const char *kind, *why, *owner;
	int collectives, fallback, stall_rnr, mtu;

	if (json_unpack((json_t *)plan, "{s:s, s:b, s:b, s:i, s:s, s:i, s:s}", "kind", &kind,
		    "fallback", &fallback, "stall_rnr", &stall_rnr, "collectives", &collectives,
		    "why", &why, "mtu", &mtu, "owner", &owner) ||
		(s->group->write && ccl_use_write(c, (unsigned)mtu))) {
		snprintf(err, CCL_ERR_LEN, "rank %u: rank 0's plan makes no sense", c->rank);
		return -EPROTO;
	}
	snprintf(c->selection, sizeof(c->selection), "%s", why);
	if (c->rank)
		snprintf(s->own.owner, sizeof(s->own.owner), "%s", owner);
	c->stall_rnr = s->own.stall_rnr = stall_rnr;
	if (!strcmp(kind, "ring"))
		return join_ring(s, (unsigned)collectives, fallback, err);
	ccl_leave(c);
	return ccl_join(
		c, strcmp(kind, "mixed") ? CCL_SINGLE : CCL_MIXED, (unsigned)collectives, err);
}

static json_t *own_qpns(const struct ccl_comm *c)
{
	json_t *list = json_array();
	struct ccl_member m;

	for (unsigned i = 0; ccl_member(c, i, &m) == 0; i++)
		json_array_append_new(
			list, json_pack("[i, o, I, I]", (int)m.qpn, ctl_u64(m.mr_addr),
				      (json_int_t)m.mr_len, (json_int_t)m.rkey));
	return json_pack("{s:o}", "qpns", list);
}

/* ---- rank 0: hellos ---- */

static int check_hello(struct ccl_setup *s, unsigned rank, const json_t *h, char *err)
{
	unsigned mtu;
	const int rc = ccl_hello_check(s->group, rank, h, &s->ranks[rank], &mtu, err);

	if (rc == 0 && (rank == 0 || mtu < s->in.mtu))
		s->in.mtu = mtu;
	return rc;
}

static void forget(json_t **all, unsigned n)
{
	for (unsigned r = 0; r < n; r++) {
		json_decref(all[r]);
		all[r] = NULL;
	}
}

/* ---- rank 0: one round ---- */

static int take_qpn(struct ccl_sub *sub, unsigned rank, const json_t *item)
{
	struct ccl_mr *mr = &sub->rank_mr[rank];
	json_int_t len, rkey;
	json_t *addr;
	int qpn;

	if (json_unpack((json_t *)item, "[i, o, I, I]", &qpn, &addr, &len, &rkey) ||
		ctl_get_u64(addr, &mr->addr))
		return -EPROTO;
	sub->rank_qpn[rank] = (uint32_t)qpn;
	mr->len = (uint32_t)len;
	mr->rkey = (uint32_t)rkey;
	return 0;
}

static int take_qpns(struct ccl_setup *s, json_t **all, char *err)
{
	for (unsigned r = 0; r < s->group->n_ranks; r++) {
		const json_t *list = json_object_get(all[r], "qpns");

		if (json_array_size(list) != s->in.n) {
			snprintf(err, CCL_ERR_LEN, "rank %u: names %zu queue pairs instead of %u",
				r, json_array_size(list), s->in.n);
			return -EPROTO;
		}
		for (unsigned i = 0; i < s->in.n; i++)
			if (take_qpn(&s->in.sub[i], r, json_array_get(list, i)))
				return snprintf(err, CCL_ERR_LEN,
					       "rank %u: queue pair %u makes no sense", r, i),
				       -EPROTO;
	}
	return 0;
}

static json_t *answer(const struct ccl_setup *s, unsigned rank)
{
	const struct ccl_group *g = s->group;
	json_t *groups = json_array();
	char ip[WIRE_IP_STRLEN];

	for (unsigned i = 0; i < s->in.n; i++)
		json_array_append_new(
			groups, json_pack("[i, i]", (int)ccl_installed_qpn(&s->in, i, rank),
					(int)s->in.sub[i].start_psn));
	wire_ip_format(&g->sw[ccl_group_first_hop(g, rank)].ip, ip, sizeof(ip));
	return json_pack("{s:s, s:o, s:i, s:i, s:i}", "ip", ip, "groups", groups, "mtu",
		(int)s->in.mtu, "M", (int)g->m, "W", (int)g->w);
}

static json_t *plan_of(const struct ccl_setup *s, const struct ccl_choice *choice)
{
	return json_pack("{s:{s:s, s:b, s:b, s:i, s:s, s:i, s:s}}", "plan", "kind",
		ccl_kind_name(choice->kind), "fallback", choice->fallback, "stall_rnr",
		s->own.stall_rnr, "collectives", (int)choice->collectives, "why", choice->why,
		"mtu", (int)s->in.mtu, "owner", s->own.owner);
}

/* Unless the group file says what it wants: switches send no RNR NAKs to hosts that wait, if a
 * device of the group cannot bear them. */
static int choose_stall(struct ccl_setup *s, struct ccl_choice *choice, int n)
{
	const unsigned r = ccl_cannot_stall(s->group, s->ranks);

	if (r == s->group->n_ranks)
		return 0;
	s->own.stall_rnr = false;
	for (int i = 0; i < n; i++) {
		const size_t len = strlen(choice[i].why);

		snprintf(choice[i].why + len, sizeof(choice[i].why) - len,
			"; no RNR NAKs for rank %u's %s", r, s->ranks[r].device);
	}
	return json_object_set_new(s->own.flags, "stall_rnr", json_false()) ? -ENOMEM : 0;
}

/* A ring meets by itself. */
static int attempt_ring(struct ccl_setup *s, const struct ccl_choice *choice, char *err)
{
	json_t *plan = plan_of(s, choice);
	int rc;

	ccl_boot_broadcast(s->boot, plan);
	rc = join_own(s, json_object_get(plan, "plan"), err);
	json_decref(plan);
	return rc;
}

/* Everybody makes queue pairs for a choice, rank 0 makes the groups. */
static int attempt(struct ccl_setup *s, const struct ccl_choice *choice, json_t **all, char *err)
{
	const unsigned n = s->group->n_ranks, mtu = s->in.mtu;
	json_t *plan = plan_of(s, choice);
	int rc = plan ? ccl_install_init(&s->in, s->group, choice->kind, choice->collectives, err)
		      : -ENOMEM;

	s->in.mtu = mtu;
	if (rc == 0) {
		ccl_boot_broadcast(s->boot, plan);
		rc = join_own(s, json_object_get(plan, "plan"), err);
	}
	if (rc == 0) {
		all[0] = own_qpns(s->comm);
		rc = ccl_boot_gather(s->boot, all, err);
		if (rc == 0)
			rc = take_qpns(s, all, err);
		if (rc == 0)
			rc = ccl_install(&s->in, err);
		forget(all, n);
	}
	if (rc) {
		ccl_install_fini(&s->in);
		s->in.mtu = mtu;
	}
	json_decref(plan);
	return rc;
}

/* After an error of the former choice: a switch does not offer it, or has no room for it now. */
static bool may_follow(int rc, const struct ccl_choice *choice)
{
	if (rc == -EOPNOTSUPP)
		return true;
	return choice->fallback &&
	       (rc == -ENOSPC || rc == -EAGAIN || rc == -EBUSY || rc == -ENOMEM || rc == -EMFILE);
}

/* all: hellos by rank; becomes the answers, but for a ring. */
static int serve(struct ccl_setup *s, json_t **all, char *err)
{
	const struct ccl_group *g = s->group;
	struct ccl_choice choice[CCL_MAX_CHOICES];
	int rc = 0, n = 0;

	for (unsigned r = 0; r < g->n_ranks && !rc; r++)
		rc = check_hello(s, r, all[r], err);
	forget(all, g->n_ranks);
	if (g->mtu)
		s->in.mtu = g->mtu;
	if (rc == 0)
		n = rc = ccl_choose(g, s->ranks, choice, err);
	if (n > 0)
		rc = choose_stall(s, choice, n);
	if (rc < 0)
		n = 0;
	for (int i = 0; i < n; i++) {
		if (i > 0 && !may_follow(rc, &choice[i]))
			continue;
		if (choice[i].fallback)
			snprintf(choice[i].why, sizeof(choice[i].why),
				"a ring of the hosts, without the switches: %.400s", err);
		rc = choice[i].kind == CCL_RING ? attempt_ring(s, &choice[i], err)
						: attempt(s, &choice[i], all, err);
		if (rc == 0)
			break;
	}
	for (unsigned r = 0; r < g->n_ranks && rc == 0 && !s->comm->ring; r++)
		all[r] = answer(s, r);
	return rc;
}

/* Collects, installs, answers. Errors have been told to the others. opened: rank 0's own part is
 * there, else err says why not and the others wait to hear it. */
static int lead(struct ccl_setup *s, json_t *mine, bool opened, json_t **own, char *err)
{
	const unsigned n = s->group->n_ranks;
	json_t **all = calloc(n, sizeof(json_t *));
	char gather_err[CCL_ERR_LEN];
	int rc;

	if (!all)
		return -ENOMEM;
	all[0] = json_incref(mine);
	rc = ccl_boot_gather(s->boot, all, gather_err);
	if (opened && rc)
		memcpy(err, gather_err, sizeof(gather_err));
	else if (opened)
		rc = serve(s, all, err);
	else
		rc = -ENODEV;
	if (rc) {
		ccl_boot_abort(s->boot, err);
	} else if (!s->comm->ring) {
		ccl_boot_scatter(s->boot, all);
		*own = json_incref(all[0]);
	}
	forget(all, n);
	free(all);
	return rc;
}

/* ---- all ranks ---- */

static int tell_qpns(struct ccl_setup *s, char *err)
{
	json_t *qpns = own_qpns(s->comm);
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
	while (rc == 0 && !s->comm->ring && (rc = ccl_boot_hear(s->boot, own, err)) == 0) {
		const json_t *plan = json_object_get(*own, "plan");

		if (!plan)
			return 0;
		rc = join_own(s, plan, err);
		if (rc)
			ccl_boot_abort(s->boot, err);
		else if (!s->comm->ring)
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
	ccl_install_fini(&s->in);
	json_decref(s->own.flags);
	free(s->ranks);
	free(s->ring_at);
	free(s);
}

/* Rank 0: what is on the switches. */
static int take_away(struct ccl_setup *s, bool force, char *err)
{
	const int rc = s->rank ? 0 : ccl_uninstall(&s->in, force, err);
	const int rc2 = s->ring_at ? ccl_ring_uninstall(s->group, s->ring_at, err) : 0;

	return rc ? rc : rc2;
}

static int set_up(struct ccl_setup *s, char *err)
{
	const bool opened = open_own(s, err) == 0;
	json_t *mine = opened ? ccl_hello(s->group, s->comm) : NULL, *own = NULL;
	char ignored[CCL_ERR_LEN];
	int rc;

	rc = s->rank ? follow(s, mine, opened, &own, err) : lead(s, mine, opened, &own, err);
	if (rc == 0 && !s->comm->ring) {
		rc = connect_own(s->comm, own, err);
		rc = finish(s, rc, err);
		if (rc == 0 && s->group->lease[0])
			rc = ccl_lease_open(s->comm, s->group, s->boot, err);
	}
	json_decref(mine);
	json_decref(own);
	if (rc) {
		ccl_comm_free(s->comm);
		take_away(s, true, ignored);
	}
	return rc;
}

/* A secret, of which rank 0's counts. */
static void make_owner(char owner[CCL_OWNER_LEN])
{
	uint8_t random[(CCL_OWNER_LEN - 1) / 2];

	while (getrandom(random, sizeof(random), 0) != sizeof(random))
		;
	for (unsigned i = 0; i < sizeof(random); i++)
		snprintf(owner + 2 * i, 3, "%02x", random[i]);
}

int ccl_comm_create(
	const struct ccl_group *g, unsigned rank, struct ccl_comm **comm, char err[CCL_ERR_LEN])
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
	if (s && rank == 0 && g->mode_id == CCL_MODE_NETREDUCE)
		s->ring_at = calloc(g->n_switches, sizeof(*s->ring_at));
	if (!s || !s->ranks || (rank == 0 && g->mode_id == CCL_MODE_NETREDUCE && !s->ring_at)) {
		if (s)
			free(s->ranks);
		free(s);
		snprintf(err, CCL_ERR_LEN, "out of memory");
		return -ENOMEM;
	}
	s->own = *g;
	s->own.flags = json_deep_copy(g->flags);
	make_owner(s->own.owner);
	s->group = &s->own;
	s->rank = rank;
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
	err[0] = '\0';
	return 0;
}

/* Rank 0: the switches are to know that it lives. */
static void renew(struct ccl_setup *s)
{
	const int64_t now = s->group->io->now_ms(s->group->io->arg);

	if (s->rank || now - s->renewed_ms < RENEW_MS)
		return;
	s->renewed_ms = now;
	ccl_install_renew(&s->in);
	if (s->ring_at)
		ccl_ring_renew(s->group, s->ring_at);
}

int ccl_setup_watch(struct ccl_setup *s, char why[CCL_ERR_LEN])
{
	renew(s);
	return ccl_boot_watch(s->boot, why);
}

void ccl_setup_tell(struct ccl_setup *s, const char *why)
{
	ccl_boot_abort(s->boot, why);
}

void ccl_setup_diagnose(
	struct ccl_setup *s, enum ccl_prim prim, unsigned root, char *text, size_t cap)
{
	char gone[128], name[CCL_NAME_LEN];
	size_t n;

	text[0] = '\0';
	if (s->group->mode_id == CCL_MODE_NETREDUCE)
		ccl_ring_missing(s->group, text, cap);
	else if (!s->fallback && s->group->mode_id != CCL_MODE_RING &&
		 ccl_sub_name(s->group, prim, root, name) == 0)
		ccl_install_missing(s->group, name, text, cap);
	ccl_boot_gone(s->boot, gone, sizeof(gone));
	n = strlen(text);
	if (gone[0])
		snprintf(text + n, cap - n, "; gone: rank %s", gone);
}

/* Everybody is done before anybody's queue pair goes, and every queue pair is idle before the group
 * goes. A communicator that has failed does not wait: the others hear why. */
int ccl_comm_destroy(struct ccl_comm *c)
{
	struct ccl_setup *s = c ? c->setup : NULL;
	char err[CCL_ERR_LEN];
	int rc = 0, rc2 = 0;

	if (s && c->failed) {
		rc = c->failed;
		ccl_boot_abort(s->boot, c->err);
	} else if (s) {
		rc = ccl_boot_barrier(s->boot, err);
	}
	ccl_comm_free(c);
	if (s)
		rc2 = take_away(s, rc == 0, err);
	setup_free(s);
	return rc ? rc : rc2;
}
