/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL's collective network: communicators made and closed. The group is what the ranks leave of
 * the group file's tree; all make the same of it from the handles, which NCCL gives to each. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/nccl/coll.h"

static nccl_rc init(nccl_logger log)
{
	np_set_log(log);
	if (getenv("INCLINE_GROUP") || getenv("INCLINE_MANAGER"))
		return NCCL_OK;
	np_info("no collectives in the network: neither INCLINE_GROUP nor INCLINE_MANAGER is set");
	return NCCL_INVALID_USAGE;
}

/* ---- listening ---- */

struct listener {
	int fd; /* keeps the port, which is CommLib's if this rank is the first */
};

/* Of several ranks of the file on one device. -1: nobody says. */
static int preferred(char why[CCL_ERR_LEN])
{
	unsigned rank = 0, size;

	if (!getenv("INCLINE_RANK"))
		return -1;
	return ccl_launched(NULL, &rank, &size, why) ? -EINVAL : (int)rank;
}

/* Which rank of the group file this device is. */
static nccl_rc find_part(const struct np_port *port, struct ccl_part *part)
{
	const char *path = getenv("INCLINE_GROUP");
	char why[CCL_ERR_LEN];
	int rank;

	snprintf(part->ip, sizeof(part->ip), "%s", port->ip[0]);
	if (!path)
		return NCCL_OK;
	rank = preferred(why);
	part->number = rank == -EINVAL
			       ? -EINVAL
			       : ccl_subgroup_find(path, (const char(*)[CCL_IP_LEN])port->ip,
					 (int)port->n_addresses, rank, why);
	return part->number >= 0 ? NCCL_OK : np_warn(NCCL_INVALID_USAGE, "%s: %s", port->name, why);
}

static nccl_rc coll_listen(int dev, void *handle, void **listener)
{
	const struct np_port *port = np_port(dev);
	struct listener *l;
	struct np_handle h;
	nccl_rc rc;
	int fd;

	*listener = NULL;
	if (!port)
		return NCCL_INTERNAL_ERROR;
	fd = np_bind(&h, NP_COLL);
	if (fd < 0)
		return NCCL_SYSTEM_ERROR;
	rc = find_part(port, &h.part);
	l = rc ? NULL : malloc(sizeof(*l));
	if (!l) {
		close(fd);
		return rc ? rc : np_warn(NCCL_SYSTEM_ERROR, "out of memory");
	}
	l->fd = fd;
	memcpy(handle, &h, sizeof(h));
	*listener = l;
	return NCCL_OK;
}

static void free_port(struct listener *l)
{
	if (!l || l->fd < 0)
		return;
	close(l->fd);
	l->fd = -1;
}

static nccl_rc close_listen(void *listener)
{
	free_port(listener);
	free(listener);
	return NCCL_OK;
}

/* ---- the group ---- */

static char *text_of(struct np_handle *const *handle, int n, char why[CCL_ERR_LEN])
{
	struct ccl_part *part = calloc((size_t)n, sizeof(*part));
	const bool v6 = strchr(handle[0]->host, ':');
	char at[96], suffix[16], alone[24], *text;

	if (!part) {
		snprintf(why, CCL_ERR_LEN, "out of memory");
		return NULL;
	}
	for (int i = 0; i < n; i++)
		part[i] = handle[i]->part;
	snprintf(
		at, sizeof(at), v6 ? "tcp:[%s]:%u" : "tcp:%s:%u", handle[0]->host, handle[0]->port);
	snprintf(suffix, sizeof(suffix), "%08x", (unsigned)handle[0]->random);
	snprintf(alone, sizeof(alone), "nccl-%s", suffix);
	text = ccl_subgroup(&(struct ccl_subgroup){.path = getenv("INCLINE_GROUP"),
				    .manager = getenv("INCLINE_MANAGER"),
				    .suffix = suffix,
				    .alone = alone,
				    .bootstrap = at,
				    .half = true},
		part, n, why);
	free(part);
	return text;
}

enum {
	NEEDED = 1 << CCL_ALLREDUCE | 1 << CCL_REDUCE | 1 << CCL_BROADCAST | 1 << CCL_ALLGATHER |
		 1 << CCL_REDUCE_SCATTER
};

/* NCCL asks for these without asking whether there are such. */
static int offers_all(const struct ccl_comm *comm, char why[CCL_ERR_LEN])
{
	struct ccl_info info;

	ccl_query(comm, &info);
	if ((info.collectives & NEEDED) == NEEDED)
		return 0;
	snprintf(why, CCL_ERR_LEN, "the group does not offer all collectives: %.400s",
		info.selection);
	return -EOPNOTSUPP;
}

static int make(struct np_coll *c, struct np_handle *const *handle, char why[CCL_ERR_LEN])
{
	char *text = text_of(handle, (int)c->n_ranks, why);
	int rc = text ? ccl_group_load_text(text, &c->group, why) : -EINVAL;

	free(text);
	if (!rc)
		rc = ccl_comm_create(c->group, c->rank, &c->ccl, why);
	return rc ? rc : offers_all(c->ccl, why);
}

/* ---- communicators ---- */

static void free_coll(struct np_coll *c)
{
	ccl_comm_destroy(c->ccl);
	ccl_group_free(c->group);
	np_coll_forget(c);
	free(c->request[0].issue);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static struct np_coll *new_coll(int n_ranks, int rank)
{
	struct np_coll *c = calloc(1, sizeof(*c));
	struct ccl_req *issue = calloc((size_t)n_ranks * NP_COLL_REQUESTS, sizeof(*issue));

	if (!c || !issue) {
		free(c);
		free(issue);
		return NULL;
	}
	pthread_mutex_init(&c->lock, NULL);
	c->rank = (unsigned)rank;
	c->n_ranks = (unsigned)n_ranks;
	c->end = &c->first;
	for (unsigned i = 0; i < NP_COLL_REQUESTS; i++)
		c->request[i].issue = issue + i * c->n_ranks;
	return c;
}

/* Under the port that the listener keeps. */
static nccl_rc join(struct np_handle *const *handle, int n_ranks, int rank, void **coll)
{
	char why[CCL_ERR_LEN] = "";
	struct np_coll *c;
	int rc;

	if (n_ranks < 1 || rank < 0 || rank >= n_ranks)
		return np_warn(NCCL_INTERNAL_ERROR, "rank %d of %d", rank, n_ranks);
	for (int i = 0; i < n_ranks; i++)
		if (!np_is_handle(handle[i], NP_COLL))
			return NCCL_INVALID_USAGE;
	c = new_coll(n_ranks, rank);
	if (!c)
		return np_warn(NCCL_SYSTEM_ERROR, "out of memory");
	rc = make(c, handle, why);
	if (rc) {
		if (c->ccl)
			ccl_abort(c->ccl, why);
		free_coll(c);
		return np_warn(
			rc == -EINVAL || rc == -EOPNOTSUPP ? NCCL_INVALID_USAGE : NCCL_SYSTEM_ERROR,
			"rank %d of %d is not in the network: %s", rank, n_ranks, why);
	}
	*coll = c;
	return NCCL_OK;
}

static nccl_rc coll_connect(void *handles[], int n_ranks, int rank, void *listener, void **coll)
{
	nccl_rc rc;

	*coll = NULL;
	rc = join((struct np_handle *const *)handles, n_ranks, rank, coll);
	free_port(listener);
	if (rc)
		free(listener); /* NCCL forgets it, and closes it after a success only */
	return rc;
}

static nccl_rc coll_close(void *coll)
{
	struct np_coll *c = coll;
	struct ccl_info info;

	ccl_query(c->ccl, &info);
	np_info("rank %u of %u: %llu operations in the network", c->rank, c->n_ranks,
		(unsigned long long)info.operations);
	if (np_is_busy(c))
		ccl_abort(c->ccl, "NCCL has closed a communicator with collectives unfinished");
	free_coll(c);
	return NCCL_OK;
}

const struct nccl_collnet ncclCollNetPlugin_v8 = {
	.name = "Incline",
	.init = init,
	.devices = np_devices,
	.properties = np_properties,
	.listen = coll_listen,
	.connect = coll_connect,
	.supports = np_supports,
	.reg = np_coll_reg,
	.dereg = np_coll_dereg,
	.allreduce = np_allreduce,
	.allgather = np_allgather,
	.reduce_scatter = np_reduce_scatter,
	.flush = np_coll_flush,
	.test = np_coll_test,
	.close = coll_close,
	.close_listen = close_listen,
};
