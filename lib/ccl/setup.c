/* SPDX-License-Identifier: BSD-3-Clause */
/* From a group file to a connected communicator and back. Rank 0 collects everybody's queue pair
 * number, makes the group on the switches and hands out the switches' numbers; then everybody
 * connects; a barrier ends it, so that no rank sends before all can receive. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/ccl/boot.h"
#include "lib/ccl/comm.h"
#include "lib/ccl/install.h"

_Static_assert((int)CCL_BOOT_ERR_LEN == (int)CCL_ERR_LEN, "errors are passed on");

enum { HELLO_VERSION = 1 };

struct ccl_setup {
	const struct ccl_group *group;
	unsigned rank;
	struct ccl_boot *boot;
	struct ccl_installed *inst; /* rank 0 */
};

static void prefix(unsigned rank, char err[CCL_ERR_LEN])
{
	char text[CCL_ERR_LEN];

	if (strncmp(err, "rank ", 5) == 0)
		return;
	snprintf(text, sizeof(text), "rank %u: %.480s", rank, err);
	memcpy(err, text, sizeof(text));
}

/* ---- own part ---- */

static int open_own(const struct ccl_group *g, unsigned rank, struct ccl_comm **comm, char *err)
{
	struct ccl_conn conn = {.rank = rank,
		.n_ranks = g->n_ranks,
		.m = g->m,
		.w = g->w,
		.timeout_ns = g->timeout_ns};
	int rc = ccl_device_open(g->device, &g->rank_ip[rank], g->gid_index, &conn.context,
		&conn.port, &conn.gid_index, err);

	if (rc == 0) {
		rc = ccl_comm_open(&conn, comm, err);
		if (rc)
			ibv_close_device(conn.context);
		else
			(*comm)->own_context = true;
	}
	if (rc)
		prefix(rank, err);
	return rc;
}

/* What every rank tells rank 0. Configuration is in it to notice files that differ. */
static json_t *hello(const struct ccl_group *g, const struct ccl_comm *c)
{
	char ip[WIRE_IP_STRLEN];

	return json_pack("{s:i, s:s, s:s, s:i, s:i, s:i, s:i, s:i}", "ccl", HELLO_VERSION, "group",
		g->name, "ip", wire_ip_format(&c->local_ip, ip, sizeof(ip)), "qpn",
		(int)c->qp->qp_num, "mtu", ccl_port_mtu(c->context, c->port), "ranks",
		(int)g->n_ranks, "M", (int)g->m, "W", (int)g->w);
}

/* ---- rank 0 ---- */

static int differ(unsigned rank, const char *field, char *err)
{
	snprintf(err, CCL_ERR_LEN, "rank %u: its group file has another \"%s\" than rank 0's", rank,
		field);
	return -EINVAL;
}

static int check_hello(const struct ccl_group *g, unsigned rank, const json_t *h, uint32_t *qpn,
	unsigned *mtu, char *err)
{
	const char *name = NULL, *text = NULL;
	int version = 0, n = 0, m = 0, w = 0, q = 0, u = 0;
	struct wire_ip ip;

	if (json_unpack((json_t *)h, "{s:i, s:s, s:s, s:i, s:i, s:i, s:i, s:i}", "ccl", &version,
		    "group", &name, "ip", &text, "qpn", &q, "mtu", &u, "ranks", &n, "M", &m, "W",
		    &w) ||
		version != HELLO_VERSION) {
		snprintf(
			err, CCL_ERR_LEN, "rank %u: speaks another version of the bootstrap", rank);
		return -EPROTO;
	}
	if (strcmp(name, g->name) != 0)
		return differ(rank, "name", err);
	if (n != (int)g->n_ranks || wire_ip_parse(text, &ip) || !wire_ip_eq(&ip, &g->rank_ip[rank]))
		return differ(rank, "ranks", err);
	if (m != (int)g->m)
		return differ(rank, "M", err);
	if (w != (int)g->w)
		return differ(rank, "W", err);
	if (u < 256 || u > 4096 || (unsigned)u < g->mtu) {
		snprintf(err, CCL_ERR_LEN, "rank %u: its port has MTU %d, the group needs %u", rank,
			u, g->mtu ? g->mtu : 256);
		return -EMSGSIZE;
	}
	*qpn = (uint32_t)q;
	if ((unsigned)u < *mtu)
		*mtu = (unsigned)u;
	return 0;
}

static json_t *answer(const struct ccl_setup *s, unsigned rank, const struct ccl_install_params *p)
{
	const struct ccl_group *g = s->group;
	char ip[WIRE_IP_STRLEN];

	wire_ip_format(&g->sw[ccl_group_first_hop(g, rank)].ip, ip, sizeof(ip));
	return json_pack("{s:s, s:i, s:i, s:i, s:i, s:i}", "ip", ip, "qpn",
		(int)ccl_installed_qpn(g, s->inst, rank), "start_psn", (int)p->start_psn, "mtu",
		(int)p->mtu, "M", (int)g->m, "W", (int)g->w);
}

static uint32_t random_psn(void)
{
	uint32_t psn = 0;

	while (getrandom(&psn, sizeof(psn), 0) != sizeof(psn))
		;
	return psn & 0xffffff;
}

/* all: hellos by rank; becomes the answers. */
static int serve(struct ccl_setup *s, json_t **all, char *err)
{
	const struct ccl_group *g = s->group;
	uint32_t *qpn = calloc(g->n_ranks, sizeof(*qpn));
	struct ccl_install_params p = {.rank_qpn = qpn, .mtu = 4096, .start_psn = random_psn()};
	int rc = qpn ? 0 : -ENOMEM;

	snprintf(err, CCL_ERR_LEN, "rank 0: out of memory");
	for (unsigned r = 0; r < g->n_ranks && !rc; r++)
		rc = check_hello(g, r, all[r], &qpn[r], &p.mtu, err);
	if (g->mtu)
		p.mtu = g->mtu;
	if (!rc)
		rc = ccl_install(g, &p, s->inst, err);
	for (unsigned r = 0; r < g->n_ranks; r++) {
		json_decref(all[r]);
		all[r] = rc ? NULL : answer(s, r, &p);
	}
	free(qpn);
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
	} else {
		ccl_boot_scatter(s->boot, all);
		*own = json_incref(all[0]);
	}
	for (unsigned r = 0; r < n; r++)
		json_decref(all[r]);
	free(all);
	return rc;
}

/* ---- all ranks ---- */

static int follow(struct ccl_setup *s, json_t *mine, bool opened, json_t **own, char *err)
{
	int rc;

	if (!opened) {
		ccl_boot_abort(s->boot, err);
		return -ENODEV;
	}
	rc = ccl_boot_tell(s->boot, mine, err);
	return rc ? rc : ccl_boot_hear(s->boot, own, err);
}

static int connect_own(struct ccl_comm *c, const json_t *own, char *err)
{
	struct ccl_conn conn = {.context = c->context};
	int qpn, psn, mtu, m, w;
	const char *ip;

	if (json_unpack((json_t *)own, "{s:s, s:i, s:i, s:i, s:i, s:i}", "ip", &ip, "qpn", &qpn,
		    "start_psn", &psn, "mtu", &mtu, "M", &m, "W", &w) ||
		wire_ip_parse(ip, &conn.remote_ip) || m != (int)c->m || w != (int)c->w) {
		snprintf(err, CCL_ERR_LEN, "rank %u: rank 0's answer makes no sense", c->rank);
		return -EPROTO;
	}
	conn.remote_qpn = (uint32_t)qpn;
	conn.start_psn = (uint32_t)psn;
	conn.mtu = (unsigned)mtu;
	return ccl_comm_connect(c, &conn, err);
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
	free(s->inst);
	free(s);
}

static int set_up(struct ccl_setup *s, struct ccl_comm **comm, char *err)
{
	const bool opened = open_own(s->group, s->rank, comm, err) == 0;
	json_t *mine = opened ? hello(s->group, *comm) : NULL, *own = NULL;
	char ignored[CCL_ERR_LEN];
	int rc;

	rc = s->rank ? follow(s, mine, opened, &own, err) : lead(s, mine, opened, &own, err);
	if (rc == 0) {
		rc = connect_own(*comm, own, err);
		rc = finish(s, rc, err);
	}
	json_decref(mine);
	json_decref(own);
	if (rc) {
		ccl_comm_free(*comm);
		*comm = NULL;
		if (s->rank == 0)
			ccl_uninstall(s->group, s->inst, true, ignored);
	}
	return rc;
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
		s->inst = calloc(g->n_switches, sizeof(*s->inst));
	if (!s || !s->inst) {
		free(s);
		snprintf(err, CCL_ERR_LEN, "out of memory");
		return -ENOMEM;
	}
	s->group = g;
	s->rank = rank;
	rc = ccl_boot_open(
		g->bootstrap, rank, g->n_ranks, (unsigned)(g->timeout_ns / 1000000), &s->boot, err);
	if (rc == 0)
		rc = set_up(s, comm, err);
	if (rc) {
		setup_free(s);
		return rc;
	}
	(*comm)->setup = s;
	err[0] = '\0';
	return 0;
}

int ccl_setup_watch(struct ccl_setup *s, char why[CCL_ERR_LEN])
{
	return ccl_boot_watch(s->boot, why);
}

void ccl_setup_tell(struct ccl_setup *s, const char *why)
{
	ccl_boot_abort(s->boot, why);
}

void ccl_setup_diagnose(struct ccl_setup *s, char *text, size_t cap)
{
	char gone[128];
	size_t n;

	ccl_install_missing(s->group, text, cap);
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
	if (s && s->rank == 0)
		rc2 = ccl_uninstall(s->group, s->inst, rc == 0, err);
	setup_free(s);
	return rc ? rc : rc2;
}
