/* SPDX-License-Identifier: BSD-3-Clause */
/* Life of a communicator. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/lease.h"
#include "lib/ccl/resume.h"
#include "lib/ccl/resync.h"

static const uint64_t DEFAULT_TIMEOUT_NS = 10000000000ull;
enum { MIN_SLOT = 64 };

static int make_objects(struct ccl_comm *c, const char **what)
{
	int flags;

	*what = "protection domain";
	c->pd = ibv_alloc_pd(c->context);
	if (!c->pd)
		return -errno;
	*what = "completion channel";
	c->channel = ibv_create_comp_channel(c->context);
	if (!c->channel)
		return -errno;
	flags = fcntl(c->channel->fd, F_GETFL);
	return flags < 0 || fcntl(c->channel->fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

/* In Mode-II every rank hears of what it has sent by its own acknowledgements: AllReduce alone. */
static bool can_be_selective(const struct ccl_conn *conn)
{
	const enum ccl_mode mode = conn->mode ?: CCL_MODE_2;

	if (conn->kind != CCL_SINGLE)
		return false;
	return mode == CCL_MODE_3 ||
	       (mode == CCL_MODE_2 &&
		       ccl_count_groups(conn->kind, conn->collectives, conn->n_ranks) == 1);
}

static int check_conn(const struct ccl_conn *conn, char *err)
{
	const char *wrong = NULL;

	if (conn->n_ranks < 1 || conn->n_ranks > CCL_MAX_RANKS || conn->rank >= conn->n_ranks)
		wrong = "rank or n_ranks";
	else if (conn->m < 1 || conn->m > 1024 || conn->w < 1 || conn->w > 1024 ||
		 conn->m * conn->w < 2)
		wrong = "m or w";
	else if (conn->mode > CCL_MODE_RING || conn->kind > CCL_MIXED)
		wrong = "mode or kind";
	else if (conn->kind == CCL_SINGLE && conn->n_ranks > CCL_MAX_SUBGROUP_RANKS &&
		 ccl_count_groups(conn->kind, conn->collectives, conn->n_ranks) > 1)
		wrong = "n_ranks with groups per root";
	else if (conn->write && conn->mode == CCL_MODE_1)
		wrong = "write in mode I";
	else if (conn->selective && !can_be_selective(conn))
		wrong = "selective but neither single in mode III nor allreduce in mode II";
	else if (conn->max_packets > CCL_MAX_PACKETS ||
		 (conn->max_packets && conn->max_packets < conn->m))
		wrong = "max_packets";
	if (!wrong)
		return 0;
	snprintf(err, CCL_ERR_LEN, "%s out of range", wrong);
	return -EINVAL;
}

int ccl_comm_new(const struct ccl_conn *conn, struct ccl_comm **comm, char err[CCL_ERR_LEN])
{
	struct ccl_comm *c;
	const char *what;
	union ibv_gid gid;
	int rc = check_conn(conn, err);

	if (rc)
		return rc;
	c = conn->place ? conn->place : calloc(1, sizeof(*c));
	if (!c) {
		snprintf(err, CCL_ERR_LEN, "out of memory");
		return -ENOMEM;
	}
	c->placed = conn->place != NULL;
	c->context = conn->context;
	c->port = conn->port ? conn->port : 1;
	c->gid_index = conn->gid_index;
	c->rank = conn->rank;
	c->n_ranks = conn->n_ranks;
	c->m = conn->m;
	c->w = conn->w;
	c->timeout_ns = conn->timeout_ns ? conn->timeout_ns : DEFAULT_TIMEOUT_NS;
	c->max_packets = conn->max_packets ? conn->max_packets : CCL_MAX_PACKETS;
	c->mode = conn->mode ? conn->mode : CCL_MODE_2;
	c->stall_rnr = true;
	c->skip = conn->skip ? conn->skip : ccl_device_skip(conn->context);
	c->selective = conn->selective;
	c->create = conn->create ? conn->create : ccl_device_create(conn->context);
	rc = make_objects(c, &what);
	if (rc) {
		snprintf(err, CCL_ERR_LEN, "rank %u: making a %s on %s: %s", c->rank, what,
			ibv_get_device_name(c->context->device), strerror(-rc));
		ccl_comm_free(c);
		return rc;
	}
	if (ibv_query_gid(c->context, c->port, c->gid_index, &gid) == 0)
		memcpy(c->local_ip.b, gid.raw, sizeof(c->local_ip.b));
	*comm = c;
	return 0;
}

static bool mtu_valid(unsigned mtu)
{
	return mtu >= 256 && mtu <= 4096 && !(mtu & (mtu - 1));
}

static void set_mtu(struct ccl_comm *c, unsigned mtu)
{
	c->mtu = mtu;
	c->slot_len = (size_t)c->m * mtu < MIN_SLOT ? MIN_SLOT : (size_t)c->m * mtu;
}

int ccl_use_write(struct ccl_comm *c, unsigned mtu)
{
	if (!mtu_valid(mtu))
		return -EINVAL;
	c->write = true;
	set_mtu(c, mtu);
	return 0;
}

int ccl_comm_open(const struct ccl_conn *conn, struct ccl_comm **comm, char err[CCL_ERR_LEN])
{
	unsigned collectives = conn->collectives;
	int rc = ccl_comm_new(conn, comm, err);

	if (rc)
		return rc;
	if (!collectives)
		collectives = conn->kind == CCL_MIXED ? CCL_ALL_COLLECTIVES
						      : 1u << CCL_ALLREDUCE | 1u << CCL_BARRIER;
	if (conn->write && ccl_use_write(*comm, conn->mtu)) {
		snprintf(err, CCL_ERR_LEN, "mtu %u is not 256, 512, 1024, 2048 or 4096", conn->mtu);
		rc = -EINVAL;
	} else if ((*comm)->mode >= CCL_MODE_NETREDUCE) {
		snprintf(err, CCL_ERR_LEN, "NetReduce has no groups");
		rc = -EOPNOTSUPP;
	} else if (conn->kind == CCL_MIXED && (*comm)->mode != CCL_MODE_1 && !(*comm)->skip &&
		   !conn->resync) {
		snprintf(err, CCL_ERR_LEN, "rank %u: %s cannot leave out PSNs", conn->rank,
			ibv_get_device_name(conn->context->device));
		rc = -EOPNOTSUPP;
	} else if (conn->selective && !(*comm)->create) {
		snprintf(err, CCL_ERR_LEN, "flags.sr: rank %u's %s has no selective queue pairs",
			conn->rank, ibv_get_device_name(conn->context->device));
		rc = -EOPNOTSUPP;
	} else {
		rc = ccl_join(*comm, conn->kind, collectives, err);
	}
	if (rc) {
		ccl_comm_free(*comm);
		*comm = NULL;
	}
	return rc;
}

int ccl_comm_connect(struct ccl_comm *c, const struct ccl_conn *conn, char err[CCL_ERR_LEN])
{
	const struct ccl_remote only = {conn->remote_qpn, conn->start_psn};
	const int port_mtu = ccl_port_mtu(c->context, c->port);
	int rc;

	if (c->connected)
		return -EISCONN;
	if (c->n_memb > 1 && !conn->remote)
		return -EINVAL;
	if (!mtu_valid(conn->mtu) || (c->write && conn->mtu != c->mtu)) {
		snprintf(err, CCL_ERR_LEN, "mtu %u is not 256, 512, 1024, 2048 or 4096", conn->mtu);
		return -EINVAL;
	}
	if (port_mtu < 0 || (unsigned)port_mtu < conn->mtu) {
		snprintf(err, CCL_ERR_LEN, "rank %u: the port of %s has MTU %d, the group needs %u",
			c->rank, ibv_get_device_name(c->context->device), port_mtu, conn->mtu);
		return -EMSGSIZE;
	}
	set_mtu(c, conn->mtu);
	c->remote_ip = conn->remote_ip;
	for (unsigned i = 0; i < c->n_memb; i++) {
		rc = ccl_connect_memb(&c->memb[i], conn->remote ? &conn->remote[i] : &only, err);
		if (rc)
			return rc;
	}
	c->connected = true;
	return 0;
}

int ccl_comm_create_connected(
	const struct ccl_conn *conn, struct ccl_comm **comm, char err[CCL_ERR_LEN])
{
	int rc = ccl_comm_open(conn, comm, err);

	if (rc)
		return rc;
	rc = ccl_comm_connect(*comm, conn, err);
	if (rc) {
		ccl_comm_free(*comm);
		*comm = NULL;
	}
	return rc;
}

void ccl_comm_free(struct ccl_comm *c)
{
	if (!c)
		return;
	ccl_lease_close(c);
	ccl_resync_close(c);
	ccl_leave(c);
	ccl_hosts_close(c);
	ccl_resume_close(c);
	if (c->channel)
		ibv_destroy_comp_channel(c->channel);
	for (unsigned i = 0; i < CCL_MAX_REGIONS; i++)
		if (c->region[i].mr)
			ibv_dereg_mr(c->region[i].mr);
	if (c->pd)
		ibv_dealloc_pd(c->pd);
	if (c->own_context)
		ibv_close_device(c->context);
	if (!c->placed)
		free(c);
}
