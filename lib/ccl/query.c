/* SPDX-License-Identifier: BSD-3-Clause */
/* What a communicator has and is: registered memory, members, counts. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/lease.h"
#include "lib/ccl/resume.h"
#include "lib/ccl/resync.h"
#include "lib/ccl/ring.h"

/* ---- registered memory ---- */

struct ibv_cq *ccl_cq(const struct ccl_comm *c)
{
	return c->ring ? ccl_ring_cq(c->ring) : c->cq;
}

struct ibv_comp_channel *ccl_channel(const struct ccl_comm *c)
{
	return c->ring ? ccl_ring_channel(c->ring) : c->channel;
}

/* Collectives go one way or the other. */
static int register_twice(struct ccl_comm *c, struct ccl_region *r)
{
	const int rc = ccl_ring_register(c->meeting->ring, r->base, r->len);

	if (rc == 0)
		return 0;
	ibv_dereg_mr(r->mr);
	r->mr = NULL;
	return rc;
}

static int attach(struct ccl_comm *c, void *buf, size_t len)
{
	uint8_t *base = buf;
	struct ccl_region *free_entry = NULL;

	if (!c->pd)
		return c->failed; /* it could not be renewed */
	if (c->across)
		return ccl_over_nodes_register(c, buf, len);
	if (c->ring)
		return ccl_ring_register(c->ring, buf, len);
	if (!buf || len == 0)
		return -EINVAL;
	for (unsigned i = 0; i < CCL_MAX_REGIONS; i++) {
		struct ccl_region *r = &c->region[i];

		if (!r->mr)
			free_entry = free_entry ? free_entry : r;
		else if (base < r->base + r->len && r->base < base + len)
			return -EEXIST;
	}
	if (!free_entry)
		return -ENOSPC;
	*free_entry = (struct ccl_region){.base = base,
		.len = len,
		.mr = ibv_reg_mr(c->pd, buf, len,
			IBV_ACCESS_LOCAL_WRITE | (c->mcast ? IBV_ACCESS_REMOTE_READ : 0))};
	if (!free_entry->mr)
		return -errno;
	return c->lease ? register_twice(c, free_entry) : 0;
}

int ccl_register(struct ccl_comm *c, void *buf, size_t len)
{
	const int rc = attach(c, buf, len);

	for (unsigned i = 0; rc == 0 && i < CCL_MAX_REGIONS; i++) {
		if (c->buffer[i].len)
			continue;
		c->buffer[i] = (struct ccl_buffer){buf, len};
		break;
	}
	return rc;
}

static int detach(struct ccl_comm *c, void *buf)
{
	if (c->across)
		return ccl_over_nodes_deregister(c, buf);
	if (c->ring)
		return ccl_ring_deregister(c->ring, buf);
	for (unsigned i = 0; i < CCL_MAX_REGIONS; i++) {
		struct ccl_region *r = &c->region[i];
		int rc;

		if (!r->mr || r->base != buf)
			continue;
		if (!c->failed && ccl_uses(c, r->base, r->len))
			return -EBUSY;
		rc = ibv_dereg_mr(r->mr);
		if (rc == 0)
			r->mr = NULL;
		return c->lease && rc == 0 ? ccl_ring_deregister(c->meeting->ring, buf) : -rc;
	}
	return -ENOENT;
}

static bool forget(struct ccl_comm *c, const void *buf)
{
	for (unsigned i = 0; i < CCL_MAX_REGIONS; i++) {
		if (!c->buffer[i].len || c->buffer[i].base != buf)
			continue;
		c->buffer[i] = (struct ccl_buffer){0};
		return true;
	}
	return false;
}

/* One that could not be renewed has the list alone, of what it is to register then. */
int ccl_deregister(struct ccl_comm *c, void *buf)
{
	const int rc = c->pd ? detach(c, buf) : 0;

	if (rc)
		return rc;
	return forget(c, buf) || c->pd ? 0 : -ENOENT;
}

/* ---- looking ---- */

int ccl_member(const struct ccl_comm *c, unsigned i, struct ccl_member *member)
{
	if (i >= c->n_memb)
		return -ENOENT;
	*member = (struct ccl_member){.kind = c->kind,
		.prim = c->memb[i].prim,
		.root = c->memb[i].root,
		.qpn = c->memb[i].qp->qp_num};
	if (c->memb[i].inbox_mr) {
		member->mr_addr = (uintptr_t)c->memb[i].inbox;
		member->mr_len = (uint32_t)(c->memb[i].n_inbox * c->slot_len);
		member->rkey = c->memb[i].inbox_mr->rkey;
	}
	return 0;
}

uint32_t ccl_qpn(const struct ccl_comm *c)
{
	struct ccl_info info;

	ccl_query(c, &info);
	return info.local_qpn;
}

unsigned ccl_rank(const struct ccl_comm *c)
{
	return c->rank;
}

unsigned ccl_size(const struct ccl_comm *c)
{
	return c->n_ranks;
}

const char *ccl_error(const struct ccl_comm *c)
{
	return c->err;
}

void ccl_query(const struct ccl_comm *c, struct ccl_info *info)
{
	*info = (struct ccl_info){
		.mtu = c->mtu,
		.m = c->m,
		.w = c->w,
		.gid_index = c->gid_index,
		.mode = c->mode,
		.kind = c->kind,
		.n_groups = c->n_memb,
		.collectives = c->collectives,
		.fallback = c->fallback,
		.staged_sends = c->staged_sends,
		.staged_receives = c->staged_receives,
	};
	wire_ip_format(&c->local_ip, info->local_ip, sizeof(info->local_ip));
	wire_ip_format(&c->remote_ip, info->remote_ip, sizeof(info->remote_ip));
	if (c->n_memb) {
		info->local_qpn = c->memb[0].qp->qp_num;
		info->remote_qpn = c->memb[0].remote_qpn;
		info->start_psn = c->memb[0].start_psn;
	}
	for (unsigned i = 0; i < c->n_memb; i++) {
		info->operations += c->memb[i].op_done;
		info->messages += ccl_memb_finished(&c->memb[i]);
	}
	if (c->across)
		ccl_over_nodes_describe(c, info);
	else if (c->ring)
		ccl_ring_describe(c, info);
	memcpy(info->selection, c->selection, sizeof(info->selection));
	if (c->lease)
		ccl_lease_describe(c, info);
	if (c->resync)
		ccl_resync_describe(c, info);
	if (c->resume)
		ccl_resume_describe(c, info);
	if (c->context)
		snprintf(info->device, sizeof(info->device), "%s",
			ibv_get_device_name(c->context->device));
}
