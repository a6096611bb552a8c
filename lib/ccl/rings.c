/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/rings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct ccl_rings {
	unsigned n;
	const struct ccl_group *job;
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

static int plan_one(struct ccl_rings *r, unsigned i)
{
	const int rc = r->n > 1 ? ccl_group_ring(r->job, i, &r->ring[i].group) : 0;

	if (rc)
		return rc;
	r->ring[i].at = calloc(group_of(r, i)->n_switches, sizeof(*r->ring[i].at));
	return r->ring[i].at ? 0 : -ENOMEM;
}

int ccl_rings_plan(const struct ccl_group *g, struct ccl_rings **rings, char err[CCL_ERR_LEN])
{
	struct ccl_rings *r = calloc(1, sizeof(*r) + g->rings * sizeof(r->ring[0]));
	int rc = r ? 0 : -ENOMEM;

	if (r) {
		r->n = g->rings;
		r->job = g;
	}
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
	free(r);
}

int ccl_rings_install(struct ccl_rings *r, const struct ccl_ring_address *all, unsigned mtu,
	char err[CCL_ERR_LEN])
{
	const unsigned n = r->job->n_ranks / r->n;
	struct ccl_ring_address *of = calloc(n, sizeof(*of));
	char ignored[CCL_ERR_LEN];
	int rc = of ? 0 : -ENOMEM;

	if (rc)
		snprintf(err, CCL_ERR_LEN, "out of memory");
	for (unsigned i = 0; rc == 0 && i < r->n; i++) {
		for (unsigned k = 0; k < n; k++)
			of[k] = all[i + k * r->n];
		rc = ccl_ring_install(group_of(r, i), of, mtu, r->ring[i].at, err);
	}
	free(of);
	if (rc)
		ccl_rings_uninstall(r, ignored);
	return rc;
}

int ccl_rings_uninstall(struct ccl_rings *r, char err[CCL_ERR_LEN])
{
	int last = 0;

	for (unsigned i = 0; r && i < r->n; i++) {
		const int rc = ccl_ring_uninstall(group_of(r, i), r->ring[i].at, err);

		last = rc ? rc : last;
	}
	return last;
}

void ccl_rings_renew(struct ccl_rings *r)
{
	for (unsigned i = 0; r && i < r->n; i++)
		ccl_ring_renew(group_of(r, i), r->ring[i].at);
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
