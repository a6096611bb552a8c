/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/select.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/talk.h"

enum { BASIC = 1 << CCL_ALLREDUCE | 1 << CCL_BARRIER };

/* The first rank whose device cannot leave out PSNs; n_ranks: all can. */
static unsigned unable(const struct ccl_group *g, const struct ccl_ability *rank)
{
	unsigned r = 0;

	while (r < g->n_ranks && rank[r].skip)
		r++;
	return r;
}

unsigned ccl_cannot_stall(const struct ccl_group *g, const struct ccl_ability *rank)
{
	const bool stalls = g->mode_id != CCL_MODE_1 && g->mode_id != CCL_MODE_RING;
	unsigned r = !stalls || json_object_get(g->flags, "stall_rnr") ? g->n_ranks : 0;

	while (r < g->n_ranks && rank[r].rnr)
		r++;
	return r;
}

static void say_mixed(const struct ccl_group *g, struct ccl_choice *c)
{
	*c = (struct ccl_choice){.kind = CCL_MIXED, .collectives = g->collectives};
	snprintf(c->why, sizeof(c->why), "one mixed group: %s%s",
		g->mode_id == CCL_MODE_1 ? "mode I needs no PSN skip"
					 : "every rank's device can leave out PSNs",
		g->kind == CCL_WISH_MIXED ? ", and the group file asks for it" : "");
}

static void say_resync(
	const struct ccl_group *g, const struct ccl_ability *rank, struct ccl_choice *c)
{
	const unsigned r = unable(g, rank);

	*c = (struct ccl_choice){.kind = CCL_MIXED, .collectives = g->collectives, .resync = true};
	snprintf(c->why, sizeof(c->why),
		"one mixed group, as the group file asks; rank %u's device (%s) cannot leave out "
		"PSNs: queue pairs begin anew behind each Reduce and Broadcast",
		r, rank[r].device);
}

/* What does not go with queue pairs that begin anew. NULL: nothing is asked for. */
static const char *against_resync(const struct ccl_group *g)
{
	return g->lease[0] ? " with a lease" : g->resume ? " that is to resume" : NULL;
}

static void say_single(const struct ccl_group *g, const struct ccl_ability *rank,
	unsigned collectives, struct ccl_choice *c)
{
	const unsigned n = ccl_count_groups(CCL_SINGLE, collectives, g->n_ranks);
	const unsigned r = unable(g, rank);
	int len;

	*c = (struct ccl_choice){.kind = CCL_SINGLE, .collectives = collectives};
	len = snprintf(c->why, sizeof(c->why), "%u single group%s, one per primitive and root: ", n,
		n > 1 ? "s" : "");
	if (g->kind == CCL_WISH_SINGLE)
		snprintf(
			c->why + len, sizeof(c->why) - (size_t)len, "the group file asks for them");
	else if (g->sr)
		snprintf(c->why + len, sizeof(c->why) - (size_t)len,
			"selective queue pairs (flags.sr) cannot leave out PSNs");
	else if (r < g->n_ranks)
		snprintf(c->why + len, sizeof(c->why) - (size_t)len,
			"rank %u's device (%s) cannot leave out PSNs", r, rank[r].device);
	else
		snprintf(c->why + len, sizeof(c->why) - (size_t)len,
			"the switches offer no mixed ones");
	if (g->resume && collectives != g->collectives)
		ccl_talk_add(c->why, sizeof(c->why),
			"; AllReduce and Barrier alone, which a ring could resume");
}

static void say_ring(const struct ccl_group *g, struct ccl_choice *c)
{
	if (g->mode_id == CCL_MODE_RING) {
		*c = (struct ccl_choice){.kind = CCL_RING, .collectives = g->collectives};
		snprintf(c->why, sizeof(c->why), "a ring of the hosts, without the switches: %s",
			g->manager[0]                 ? "the manager has no tree for it"
			: g->algorithm == CCL_BY_RING ? "algorithm ring is asked for"
						      : "the group file asks for it");
		return;
	}
	*c = (struct ccl_choice){.kind = CCL_RING, .collectives = g->collectives & BASIC};
	if (g->rings > 1) {
		snprintf(c->why, sizeof(c->why),
			"%u rings across %u nodes, into which the switches put sums, and one ring "
			"inside each node: parallel NetReduce",
			g->rings, g->n_ranks / g->rings);
		return;
	}
	snprintf(c->why, sizeof(c->why),
		"a ring of host-to-host connections into which the switches put sums: NetReduce");
}

/* The first rank whose device has no multicast; n_ranks: all have. */
static unsigned no_multicast(const struct ccl_group *g, const struct ccl_ability *rank)
{
	unsigned r = 0;

	while (r < g->n_ranks && rank[r].multicast)
		r++;
	return r;
}

static int choose_hosts(const struct ccl_group *g, const struct ccl_ability *rank,
	struct ccl_choice *c, char err[CCL_ERR_LEN])
{
	const bool multicast = g->algorithm == CCL_BY_MULTICAST;
	const unsigned r = no_multicast(g, rank);

	if (multicast && r < g->n_ranks) {
		snprintf(err, CCL_ERR_LEN, "%s, but rank %u's device (%s) has none",
			g->mcast.uc ? "multicast.transport: uc, multicast of RDMA WRITEs"
				    : "algorithm: multicast",
			r, rank[r].device);
		return -EOPNOTSUPP;
	}
	*c = (struct ccl_choice){
		.kind = multicast ? CCL_MULTICAST : CCL_TREE, .collectives = g->collectives};
	if (multicast)
		snprintf(c->why, sizeof(c->why), "multicast: algorithm multicast is asked for");
	else
		snprintf(c->why, sizeof(c->why),
			"a %s tree of radix %u: algorithm tree is asked for",
			g->tree.binary ? "binary" : "k-nomial", g->tree.binary ? 2 : g->tree.radix);
	return 1;
}

/* Algorithm auto, and a multicast group is named: beside all choices, if all devices can. */
static void choose_beside(
	const struct ccl_group *g, const struct ccl_ability *rank, struct ccl_choice *c)
{
	const unsigned r = no_multicast(g, rank);
	const size_t len = strlen(c->why);

	if (g->algorithm != CCL_BY_AUTO || !g->mcast.given)
		return;
	c->multicast = r == g->n_ranks;
	if (c->multicast)
		snprintf(c->why + len, sizeof(c->why) - len,
			"; Broadcast and AllGather of %llu bytes and more by multicast",
			(unsigned long long)g->mcast.min_bytes);
	else
		snprintf(c->why + len, sizeof(c->why) - len,
			"; no multicast%s, which rank %u's device (%s) has not",
			g->mcast.uc ? " of RDMA WRITEs" : "", r, rank[r].device);
}

static int choose_groups(const struct ccl_group *g, const struct ccl_ability *rank,
	struct ccl_choice choice[CCL_MAX_CHOICES], char err[CCL_ERR_LEN]);

int ccl_choose(const struct ccl_group *g, const struct ccl_ability *rank,
	struct ccl_choice choice[CCL_MAX_CHOICES], char err[CCL_ERR_LEN])
{
	const bool ring = g->mode_id == CCL_MODE_NETREDUCE || g->mode_id == CCL_MODE_RING;
	int n = 1;

	if (g->algorithm == CCL_BY_MULTICAST || g->algorithm == CCL_BY_TREE)
		return choose_hosts(g, rank, choice, err);
	if (ring)
		say_ring(g, choice);
	else
		n = choose_groups(g, rank, choice, err);
	if (n > 0 && g->fallback && !ring)
		choice[n++] = (struct ccl_choice){
			.kind = CCL_RING, .collectives = g->collectives, .fallback = true};
	for (int i = 0; i < n; i++)
		choose_beside(g, rank, &choice[i]);
	return n;
}

static int choose_groups(const struct ccl_group *g, const struct ccl_ability *rank,
	struct ccl_choice choice[CCL_MAX_CHOICES], char err[CCL_ERR_LEN])
{
	const bool can_mix = !g->sr && (g->mode_id == CCL_MODE_1 || unable(g, rank) == g->n_ranks);
	int n = 0;

	for (unsigned r = 0; g->sr && r < g->n_ranks; r++)
		if (!rank[r].selective) {
			snprintf(err, CCL_ERR_LEN,
				"flags.sr: rank %u's device (%s) has no selective queue pairs", r,
				rank[r].device);
			return -EOPNOTSUPP;
		}
	if (g->kind == CCL_WISH_MIXED && !can_mix && against_resync(g)) {
		const unsigned r = unable(g, rank);

		snprintf(err, CCL_ERR_LEN,
			"kind: a mixed group in mode %s%s needs devices that can leave out PSNs, "
			"and rank %u's (%s) cannot",
			g->mode, against_resync(g), r, rank[r].device);
		return -EOPNOTSUPP;
	}
	if (g->kind == CCL_WISH_MIXED && !can_mix)
		say_resync(g, rank, &choice[n++]);
	if (can_mix && g->kind != CCL_WISH_SINGLE)
		say_mixed(g, &choice[n++]);
	if (g->kind == CCL_WISH_MIXED)
		return n;
	/* What others may need is known only where every rank sends into one group. */
	if ((!g->resume && g->n_ranks <= CCL_MAX_SUBGROUP_RANKS) ||
		ccl_count_groups(CCL_SINGLE, g->collectives, g->n_ranks) == 1)
		say_single(g, rank, g->collectives, &choice[n++]);
	if (g->collectives & ~(unsigned)BASIC)
		say_single(g, rank, g->collectives & BASIC, &choice[n++]);
	return n;
}
