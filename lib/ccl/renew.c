/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator that has failed is made anew where it is (EPIC 3.4): what it had goes, on the
 * switches too, and a set-up like the first one follows, in the same memory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/ccl/setup_priv.h"

/* What outlives it. */
struct kept {
	const struct ccl_group *group;
	unsigned rank;
	uint64_t first;
	struct ccl_buffer buffer[CCL_MAX_REGIONS];
};

static void keep(const struct ccl_comm *c, struct kept *k)
{
	*k = (struct kept){.group = c->given, .rank = c->rank, .first = c->first + c->coll_issued};
	memcpy(k->buffer, c->buffer, sizeof(k->buffer));
}

/* Nothing but the kept is there, and it says why. */
static void lie_fallow(struct ccl_comm *c, const struct kept *k, int failed, const char *err)
{
	memset(c, 0, sizeof(*c));
	c->given = k->group;
	c->rank = k->rank;
	c->n_ranks = k->group->n_ranks;
	c->first = k->first;
	memcpy(c->buffer, k->buffer, sizeof(c->buffer));
	c->failed = failed;
	snprintf(c->err, sizeof(c->err), "%s", err);
	c->diagnosed = c->placed = true;
}

static void clear(struct ccl_comm *c)
{
	struct ccl_setup *s = c->setup;
	char why[CCL_ERR_LEN];

	memcpy(why, c->err, sizeof(why));
	c->placed = true;
	ccl_comm_free(c);
	ccl_setup_end(s, why);
}

static int register_again(struct ccl_comm *c, const struct kept *k, char err[CCL_ERR_LEN])
{
	for (unsigned i = 0; i < CCL_MAX_REGIONS; i++) {
		const struct ccl_buffer *b = &k->buffer[i];
		const int rc = b->len ? ccl_register(c, b->base, b->len) : 0;

		if (rc) {
			snprintf(err, CCL_ERR_LEN, "rank %u: a registered buffer of %zu bytes: %s",
				k->rank, b->len, strerror(-rc));
			return ccl_fail(c, rc, "%s", err);
		}
	}
	return 0;
}

int ccl_comm_renew(struct ccl_comm *c, char err[CCL_ERR_LEN])
{
	struct ccl_comm *made;
	struct kept k;
	int rc;

	if (!c->given || !c->failed) {
		snprintf(err, CCL_ERR_LEN, "%s",
			c->given ? "the communicator has not failed"
				 : "it was not made with a group file");
		return -EINVAL;
	}
	keep(c, &k);
	clear(c);
	memset(c, 0, sizeof(*c));
	rc = ccl_setup_make(k.group, k.rank, c, &made, err);
	if (rc) {
		lie_fallow(c, &k, rc, err);
		return rc;
	}
	c->first = k.first;
	rc = register_again(c, &k, err);
	if (rc) { /* the others are done, and hear it */
		clear(c);
		lie_fallow(c, &k, rc, err);
	}
	return rc;
}
