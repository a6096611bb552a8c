/* SPDX-License-Identifier: BSD-3-Clause */
/* What an algorithm asks of a group, and makes of it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/ccl/group.h"
#include "lib/ccl/mcast.h"
#include "lib/ccl/tree.h"

static int refuse(char *err, const char *field, const char *why)
{
	snprintf(err, CCL_ERR_LEN, "%s: %s", field, why);
	return -EINVAL;
}

static bool by_hosts(enum ccl_algorithm a)
{
	return a == CCL_BY_MULTICAST || a == CCL_BY_RING || a == CCL_BY_TREE;
}

static int check_multicast(const struct ccl_group *g, char *err)
{
	if (!g->mcast.given)
		return g->algorithm == CCL_BY_MULTICAST
			       ? refuse(err, "multicast.group",
					 "is missing, algorithm multicast needs it")
			       : 0;
	if (g->n_ranks < MCAST_MIN_RANKS || g->n_ranks > CCL_MCAST_MAX_RANKS)
		return refuse(err, "multicast", "is for 2 to 2048 ranks");
	if (g->n_ranks % g->mcast.chains != 0)
		return refuse(err, "multicast.chains", "does not divide the number of ranks");
	if (wire_ip_is4(&g->mcast.group) != wire_ip_is4(&g->rank_ip[0]))
		return refuse(err, "multicast.group", "is of another family than the ranks");
	if (!ccl_mcast_has_groups(&g->mcast.group, g->mcast.trees))
		return refuse(err, "multicast.trees", "go beyond the multicast addresses");
	if (g->lease[0])
		return refuse(err, "multicast", "is not for groups with a lease");
	return 0;
}

int ccl_group_check_algorithm(const struct ccl_group *g, char err[CCL_ERR_LEN])
{
	const unsigned more = g->collectives & ~ccl_algorithm_does(g->algorithm);
	int rc = check_multicast(g, err);

	if (rc)
		return rc;
	if (g->collectives_given && more) {
		snprintf(err, CCL_ERR_LEN, "collectives: algorithm %s does no %s",
			ccl_algorithm_name(g->algorithm),
			ccl_collective_name((enum ccl_collective)__builtin_ctz(more)));
		return -EINVAL;
	}
	if (g->algorithm == CCL_BY_INC && g->mode_id == CCL_MODE_RING)
		return refuse(err, "algorithm", "inc, but mode ring asks nothing of the switches");
	if (g->algorithm == CCL_BY_INC && g->resume)
		return refuse(err, "resume", "is not for algorithm inc, which has no fallback");
	if (g->algorithm != CCL_BY_AUTO && g->lease[0])
		return refuse(err, "lease",
			"is for algorithm auto: it needs a way in the switches and one beside");
	if (by_hosts(g->algorithm) && g->mode_id == CCL_MODE_NETREDUCE)
		return refuse(
			err, "algorithm", "mode netreduce is one of the switches: auto or inc");
	if (g->algorithm == CCL_BY_TREE && g->tree.binary && g->n_ranks > CCL_TREE_MAX_BINARY)
		return refuse(err, "tree",
			"a binary one is for at most 256 ranks, every pair is connected");
	return 0;
}

int ccl_group_set_algorithm(
	struct ccl_group *g, enum ccl_algorithm algorithm, char err[CCL_ERR_LEN])
{
	const enum ccl_algorithm before = g->algorithm;
	int rc;

	g->algorithm = algorithm;
	rc = ccl_group_check_algorithm(g, err);
	if (rc)
		g->algorithm = before;
	return rc;
}

void ccl_group_apply_algorithm(struct ccl_group *own)
{
	if (own->algorithm == CCL_BY_INC)
		own->fallback = false;
	if (!by_hosts(own->algorithm))
		return;
	own->mode_id = CCL_MODE_RING;
	snprintf(own->mode, sizeof(own->mode), "ring");
	own->manager[0] = '\0';
	own->collectives &= ccl_algorithm_does(own->algorithm);
	own->write = own->sr = false;
}

const char *ccl_group_how(const struct ccl_group *g, char how[CCL_HOW_LEN])
{
	char ip[WIRE_IP_STRLEN] = "-";

	if (g->mcast.given)
		wire_ip_format(&g->mcast.group, ip, sizeof(ip));
	snprintf(how, CCL_HOW_LEN, "%s %s%s %u %u %llu %d %u", ccl_algorithm_name(g->algorithm), ip,
		g->mcast.uc ? " uc" : "", g->mcast.chains, g->mcast.trees,
		(unsigned long long)g->mcast.min_bytes, g->tree.binary, g->tree.radix);
	return how;
}
