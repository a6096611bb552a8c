/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/rings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct ccl_rings {
	unsigned n;
	const struct ccl_group *job;
	struct ccl_talk *talk; /* one per switch of the job */
	struct {
		struct ccl_group *group;
		struct ccl_ring_installed *at; /* one per switch of the group */
	} ring[];
};

/* A job's only ring is its group. */
static const struct ccl_group *group_of(const struct ccl_rings *r, unsigned i)
{
	return r->n > 1 ? r->ring[i].group : r->job;
}

/* ---- making and forgetting ---- */

static struct ccl_talk *talk_with(struct ccl_rings *r, const struct ccl_switch *sw)
{
	unsigned i = 0;

	while (strcmp(r->job->sw[i].name, sw->name) != 0)
		i++; /* a ring's switches are some of the job's */
	return &r->talk[i];
}

static int plan_one(struct ccl_rings *r, unsigned i)
{
	const int rc = r->n > 1 ? ccl_group_ring(r->job, i, &r->ring[i].group) : 0;
	const struct ccl_group *g;

	if (rc)
		return rc;
	g = group_of(r, i);
	r->ring[i].at = calloc(g->n_switches, sizeof(*r->ring[i].at));
	for (unsigned k = 0; r->ring[i].at && k < g->n_switches; k++)
		r->ring[i].at[k].talk = talk_with(r, &g->sw[k]);
	return r->ring[i].at ? 0 : -ENOMEM;
}

int ccl_rings_plan(const struct ccl_group *g, struct ccl_rings **rings, char err[CCL_ERR_LEN])
{
	struct ccl_rings *r = calloc(1, sizeof(*r) + g->rings * sizeof(r->ring[0]));
	int rc = -ENOMEM;

	if (r) {
		r->n = g->rings;
		r->job = g;
		r->talk = calloc(g->n_switches, sizeof(*r->talk));
		rc = r->talk ? 0 : -ENOMEM;
	}
	for (unsigned i = 0; rc == 0 && i < g->n_switches; i++)
		r->talk[i] = (struct ccl_talk){
			.group = g, .sw = i, .connect_ms = ccl_talk_timeout_ms(g)};
	for (unsigned i = 0; rc == 0 && i < g->rings; i++)
		rc = plan_one(r, i);
	if (rc) {
		ccl_rings_free(r);
		snprintf(err, CCL_ERR_LEN, "out of memory");
		return rc;
	}
	*rings = r;
	return 0;
}

void ccl_rings_free(struct ccl_rings *r)
{
	for (unsigned i = 0; r && i < r->n; i++) {
		free(r->ring[i].at);
		ccl_group_free(r->ring[i].group);
	}
	for (unsigned i = 0; r && r->talk && i < r->job->n_switches; i++)
		ccl_talk_end(&r->talk[i]);
	free(r ? r->talk : NULL);
	free(r);
}

/* ---- on the switches ---- */

static int create(struct ccl_rings *r, unsigned i, const struct ccl_ring_address *all, unsigned mtu,
	char *err)
{
	const unsigned n = r->job->n_ranks / r->n;
	struct ccl_ring_address *of = calloc(n, sizeof(*of));
	int rc;

	if (!of) {
		snprintf(err, CCL_ERR_LEN, "out of memory");
		return -ENOMEM;
	}
	for (unsigned k = 0; k < n; k++)
		of[k] = all[i + k * r->n];
	rc = ccl_ring_create(group_of(r, i), of, mtu, r->ring[i].at, err);
	free(of);
	return rc;
}

/* Nothing sums before all rings are there: one that is refused is no reason to stop what runs. */
int ccl_rings_install(struct ccl_rings *r, const struct ccl_ring_address *all, unsigned mtu,
	char err[CCL_ERR_LEN])
{
	char why[CCL_ERR_LEN];
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < r->n; i++)
		rc = create(r, i, all, mtu, err);
	for (unsigned i = 0; rc == 0 && i < r->n; i++)
		rc = ccl_ring_activate(group_of(r, i), r->ring[i].at, err);
	if (rc && ccl_rings_uninstall(r, why))
		ccl_talk_add(err, CCL_ERR_LEN, "; what was made could not be deleted: %.200s", why);
	return rc;
}

int ccl_rings_uninstall(struct ccl_rings *r, char err[CCL_ERR_LEN])
{
	int last = 0;

	for (unsigned i = 0; r && i < r->job->n_switches; i++)
		r->talk[i].connect_ms = CCL_TALK_UNDO_MS;
	for (unsigned i = 0; r && i < r->n; i++) {
		const int rc = ccl_ring_delete(group_of(r, i), r->ring[i].at, err);

		last = rc ? rc : last;
	}
	for (unsigned i = 0; r && i < r->job->n_switches; i++)
		ccl_talk_end(&r->talk[i]);
	return last;
}

void ccl_rings_renew(struct ccl_rings *r)
{
	for (unsigned i = 0; r && i < r->n; i++)
		for (unsigned k = 0; k < group_of(r, i)->n_switches; k++)
			if (r->ring[i].at[k].present)
				ccl_talk_renew(r->ring[i].at[k].talk);
}

void ccl_rings_missing(const struct ccl_group *g, unsigned rank, char *text, size_t cap)
{
	struct ccl_group *ring = NULL;

	text[0] = '\0';
	if (g->rings > 1 && ccl_group_ring(g, rank % g->rings, &ring))
		return;
	ccl_ring_missing(ring ? ring : g, text, cap);
	ccl_group_free(ring);
}

uint16_t ccl_rings_id(const struct ccl_group *g, unsigned rank)
{
	char name[CCL_NAME_LEN];

	ccl_group_ring_name(g, rank % g->rings, name);
	return ccl_ring_id(name);
}
