/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0's part of a set-up: it hears what all can do, chooses, has the groups made on the
 * switches, and tells everybody its switch's numbers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/hello.h"
#include "lib/ccl/setup_priv.h"
#include "lib/ctl/schema.h"

/* ---- hellos ---- */

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

/* ---- one round ---- */

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
	return json_pack("{s:{s:s, s:b, s:b, s:b, s:b, s:b, s:i, s:s, s:i, s:s}}", "plan", "kind",
		ccl_kind_name(choice->kind), "fallback", choice->fallback, "stall_rnr",
		s->own.stall_rnr, "multicast", choice->multicast, "resume", s->own.resume, "resync",
		choice->resync, "collectives", (int)choice->collectives, "why", choice->why, "mtu",
		(int)s->in.mtu, "owner", s->own.owner);
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

/* If there is no memory for it the others have heard so, and have left: no other choice follows. */
static int announce(struct ccl_setup *s, const json_t *plan, char *err)
{
	const int rc = ccl_boot_broadcast(s->boot, plan, err);

	return rc == -ENOMEM ? -ECONNABORTED : rc;
}

/* Hosts alone meet by themselves. */
static int attempt_hosts(struct ccl_setup *s, const struct ccl_choice *choice, char *err)
{
	json_t *plan = plan_of(s, choice);
	int rc;

	rc = announce(s, plan, err);
	if (rc == 0)
		rc = ccl_setup_join(s, json_object_get(plan, "plan"), err);
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
	if (rc == 0)
		rc = announce(s, plan, err);
	if (rc == 0)
		rc = ccl_setup_join(s, json_object_get(plan, "plan"), err);
	if (rc == 0) {
		all[0] = ccl_setup_qpns(s->comm);
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
		rc = choice[i].kind >= CCL_RING ? attempt_hosts(s, &choice[i], err)
						: attempt(s, &choice[i], all, err);
		if (rc == 0)
			break;
	}
	for (unsigned r = 0; r < g->n_ranks && rc == 0 && !ccl_by_hosts(s->comm); r++)
		all[r] = answer(s, r);
	return rc;
}

int ccl_setup_lead(struct ccl_setup *s, json_t *mine, bool opened, json_t **own, char *err)
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
	} else if (!ccl_by_hosts(s->comm)) {
		rc = ccl_boot_scatter(s->boot, all, err);
		*own = json_incref(all[0]);
	}
	forget(all, n);
	free(all);
	return rc;
}
