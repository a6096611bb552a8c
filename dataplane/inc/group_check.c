/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of what a group is to be made from: all limits, by name. */
#include "dataplane/inc/modules.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int inc_refuse(char *err, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err, INC_ERR_LEN, format, args);
	va_end(args);
	return -code;
}

int inc_check_window(
	struct inc_group_spec *s, uint32_t least, uint32_t least_slots, const char *why, char *err)
{
	const uint32_t window = (uint32_t)s->m * s->w;

	if (s->m == 0 || s->w == 0 || window < least || window > INC_MAX_SLOTS / 2)
		return inc_refuse(err, EINVAL, "m, w: %u x %u, the product must be %u..%u", s->m,
			s->w, least, INC_MAX_SLOTS / 2);
	if (s->slots == 0)
		for (s->slots = 2; s->slots < 2 * window;)
			s->slots *= 2;
	if ((s->slots & (s->slots - 1)) != 0 || s->slots < least_slots || s->slots > INC_MAX_SLOTS)
		return inc_refuse(err, EINVAL, "slots: %u, must be a power of two, %u..%u%s",
			s->slots, least_slots, INC_MAX_SLOTS, why);
	return 0;
}

static int check_shape(struct inc_group_spec *s, char *err)
{
	int rc;

	if (inc_ops(s->mode) == NULL)
		return inc_refuse(err, EOPNOTSUPP, "mode: netreduce has rings: see ring.create");
	if (s->kind > INC_MIXED)
		return inc_refuse(err, EINVAL, "kind: %u, must be single or mixed", s->kind);
	if (s->prim > INC_BC || (s->kind == INC_MIXED && s->prim != INC_AR))
		return inc_refuse(
			err, EINVAL, "primitive: %u, only a single group has one", s->prim);
	if (s->prim == INC_AR && s->root != 0)
		return inc_refuse(err, EINVAL,
			"root: %u, must be 0: only single groups of reduce or broadcast have one",
			s->root);
	if (!roce_mtu_code(s->mtu))
		return inc_refuse(
			err, EINVAL, "mtu: %u, must be 256, 512, 1024, 2048 or 4096", s->mtu);
	rc = inc_ops(s->mode)->check(s, err);
	if (rc < 0)
		return rc;
	if (s->start_psn > PSN_MASK)
		return inc_refuse(err, EINVAL, "start_psn: 0x%x, must fit 24 bits", s->start_psn);
	if (s->n_ranks < 1 || s->n_ranks > INC_MAX_RANKS)
		return inc_refuse(
			err, EINVAL, "ranks: %u, must be 1..%u", s->n_ranks, INC_MAX_RANKS);
	if (s->rto_us && (s->rto_us < INC_MIN_RTO_US || s->rto_us > INC_MAX_RTO_US))
		return inc_refuse(err, EINVAL, "rto_us: %u, must be %u..%u", s->rto_us,
			INC_MIN_RTO_US, INC_MAX_RTO_US);
	if ((s->flags & INC_F_SR) && s->kind == INC_MIXED)
		return inc_refuse(err, EOPNOTSUPP,
			"flags.sr: a mixed group leaves out PSNs, selective queue pairs cannot");
	if (s->root >= s->n_ranks)
		return inc_refuse(err, EINVAL, "root: %u, must be below %u", s->root, s->n_ranks);
	if (s->n_ep < 1 || s->n_ep > INC_MAX_EP)
		return inc_refuse(err, EINVAL, "endpoints: %u, must be 1..%u", s->n_ep, INC_MAX_EP);
	if (s->name[0] == '\0' || memchr(s->name, '\0', sizeof(s->name)) == NULL)
		return inc_refuse(err, EINVAL, "name: must have 1..%u bytes", INC_NAME_LEN - 1);
	return 0;
}

static int check_ep(const struct inc_group_spec *s, unsigned i, char *err)
{
	const struct inc_ep_spec *e = &s->ep[i];

	if (wire_ip_is_zero(&e->remote_ip) || wire_ip_is_zero(&e->local_ip))
		return inc_refuse(err, EINVAL, "endpoints[%u].ip: missing", i);
	if (wire_ip_is4(&e->remote_ip) != wire_ip_is4(&e->local_ip))
		return inc_refuse(
			err, EINVAL, "endpoints[%u].local_ip: not of the peer's family", i);
	if (e->remote_qpn > 0xffffff)
		return inc_refuse(
			err, EINVAL, "endpoints[%u].qpn: 0x%x, must fit 24 bits", i, e->remote_qpn);
	if (e->vlan > 4095)
		return inc_refuse(
			err, EINVAL, "endpoints[%u].vlan: %u, must be 0..4095", i, e->vlan);
	if (e->dscp > 63)
		return inc_refuse(err, EINVAL, "endpoints[%u].dscp: %u, must be 0..63", i, e->dscp);
	if (e->parent && i != s->n_ep - 1u)
		return inc_refuse(
			err, EINVAL, "endpoints[%u].parent: only the last endpoint may be it", i);
	if (e->parent && e->host)
		return inc_refuse(
			err, EINVAL, "endpoints[%u].parent: a host cannot be a parent", i);
	if (e->n_ranks == 0 && !e->parent)
		return inc_refuse(err, EINVAL, "endpoints[%u].ranks: empty", i);
	if (e->host && e->n_ranks != 1)
		return inc_refuse(err, EINVAL, "endpoints[%u].ranks: a host is one rank, not %u", i,
			e->n_ranks);
	for (unsigned j = 0; j < i; j++)
		if (e->remote_qpn && s->ep[j].remote_qpn == e->remote_qpn &&
			wire_ip_eq(&s->ep[j].remote_ip, &e->remote_ip))
			return inc_refuse(err, EINVAL,
				"endpoints[%u]: same ip and qpn as endpoints[%u]", i, j);
	return 0;
}

static int check_lease(const struct inc_group_spec *s, char *err)
{
	if (s->lease[0] == '\0')
		return s->tenant[0] == '\0' && s->lease_ms == 0
			       ? 0
			       : inc_refuse(err, EINVAL,
					 "%s: is for groups with a lease: name that too",
					 s->tenant[0] ? "tenant" : "lease_ms");
	if (memchr(s->lease, '\0', sizeof(s->lease)) == NULL)
		return inc_refuse(err, EINVAL, "lease: must have 1..%u bytes", INC_NAME_LEN - 1);
	if (memchr(s->tenant, '\0', sizeof(s->tenant)) == NULL)
		return inc_refuse(err, EINVAL, "tenant: must have 1..%u bytes", INC_NAME_LEN - 1);
	if (s->unbound)
		return inc_refuse(err, EINVAL,
			"bound: a group with a lease has memory when it holds "
			"the lease");
	if (s->lease_ms != 0 && (s->lease_ms < INC_MIN_LEASE_MS || s->lease_ms > INC_MAX_LEASE_MS))
		return inc_refuse(err, EINVAL, "lease_ms: %u, must be %u..%u", s->lease_ms,
			INC_MIN_LEASE_MS, INC_MAX_LEASE_MS);
	return 0;
}

/* Is this host to get data, ever? */
static bool gets_data(const struct inc_group_spec *s, const struct inc_ep_spec *e)
{
	if (!e->host)
		return false;
	if (s->kind == INC_MIXED || s->prim == INC_AR)
		return true;
	return (e->ranks[0] == s->root) == (s->prim == INC_RED);
}

static int check_verb(const struct inc_group_spec *s, char *err)
{
	const bool write = s->flags & INC_F_WRITE;
	const uint32_t message = (uint32_t)s->m * s->mtu;

	for (unsigned i = 0; i < s->n_ep; i++) {
		const struct inc_ep_spec *e = &s->ep[i];

		if (e->mr_len && !write)
			return inc_refuse(
				err, EINVAL, "endpoints[%u].mr_len: is for verb write", i);
		if (!write || (!e->mr_len && !gets_data(s, e)))
			continue;
		if (e->mr_len == 0 || e->mr_len % message)
			return inc_refuse(err, EINVAL,
				"endpoints[%u].mr_len: %u, must be a multiple of M x mtu, %u, and "
				"not 0",
				i, e->mr_len, message);
		if (e->mr_addr > UINT64_MAX - e->mr_len)
			return inc_refuse(err, EINVAL, "endpoints[%u].mr_addr: the range wraps", i);
	}
	return 0;
}

/* Each rank behind exactly one endpoint. */
static int check_ranks(const struct inc_group_spec *s, char *err)
{
	uint8_t seen[INC_MAX_RANKS] = {0};
	unsigned lowest = 0, total = 0;

	for (unsigned i = 0; i < s->n_ep; i++) {
		const struct inc_ep_spec *e = &s->ep[i];
		unsigned min = INC_MAX_RANKS;

		for (unsigned k = 0; k < e->n_ranks; k++) {
			unsigned rank = e->ranks[k];

			if (rank >= s->n_ranks)
				return inc_refuse(err, EINVAL,
					"endpoints[%u].ranks: %u, must be below %u", i, rank,
					s->n_ranks);
			if (seen[rank]++)
				return inc_refuse(err, EINVAL,
					"endpoints[%u].ranks: %u is named twice", i, rank);
			min = rank < min ? rank : min;
			total++;
		}
		if ((s->flags & INC_F_REPRODUCIBLE) && !e->parent && i > 0 && min < lowest)
			return inc_refuse(err, EINVAL,
				"endpoints[%u].ranks: a reproducible group lists endpoints by "
				"lowest rank",
				i);
		lowest = min;
	}
	if (total != s->n_ranks)
		return inc_refuse(err, EINVAL, "endpoints: %u of %u ranks are behind none",
			s->n_ranks - total, s->n_ranks);
	return 0;
}

int inc_group_check(struct inc_group_spec *spec, char err[INC_ERR_LEN])
{
	int rc = check_shape(spec, err);

	for (unsigned i = 0; rc == 0 && i < spec->n_ep; i++)
		rc = check_ep(spec, i, err);
	if (rc == 0 && spec->n_ep == 1 && spec->ep[0].parent)
		rc = inc_refuse(err, EINVAL, "endpoints: a parent alone, no children");
	if (rc == 0)
		rc = check_lease(spec, err);
	if (rc == 0)
		rc = check_verb(spec, err);
	return rc ? rc : check_ranks(spec, err);
}
