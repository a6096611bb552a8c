/* SPDX-License-Identifier: BSD-3-Clause */
/* incline-mrcperf --paths: as a controller does it, a profile with one EV in SRv6 for each path
 * that the node's file has to the peer, by the calls of mrc_ctl.h. */
#include "apps/mrcperf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/srv6/paths.h"

enum { FORMAT = 1, GIDS = 256, EVS = 256, HALF = 128 /* bits: address, segment */ };

static int trouble(const char *what)
{
	fprintf(stderr, "incline-mrcperf: --paths: %s: %s%s\n", what, strerror(errno),
		errno == EPERM ? " (profiles take CAP_NET_ADMIN)" : "");
	return -1;
}

static int is_wrong(const char *file, const char *what)
{
	fprintf(stderr, "incline-mrcperf: --paths: %s: %s\n", file, what);
	return -1;
}

/* The GID whose address the paths begin at. */
static int find_gid(struct mrcperf_end *e, const struct srv6_paths *p)
{
	union ibv_gid gid;

	for (int i = 0; i < GIDS && ibv_query_gid(e->verbs, 1, i, &gid) == 0; i++) {
		if (memcmp(gid.raw, p->address.b, sizeof(gid.raw)) == 0) {
			e->gid = i;
			return 0;
		}
	}
	return is_wrong(e->paths, "no port has its address");
}

int mrcperf_paths_read(struct mrcperf_end *e)
{
	char err[SRV6_ERR_LEN];

	if (srv6_paths_read(e->paths, &e->map, err) < 0)
		return is_wrong(e->paths, err);
	return find_gid(e, e->map);
}

void mrcperf_paths_free(struct mrcperf_end *e)
{
	free(e->map);
}

/* Number of the port, from 1 on, of an EV's plane. */
static uint8_t port_of(const struct srv6_paths *p, uint32_t ev)
{
	for (unsigned i = 0; i < p->n_planes; i++) {
		if (p->plane[i].number == ev >> p->plane_shift)
			return (uint8_t)(i + 1);
	}
	return 0;
}

struct mrc_ctl_ev mrcperf_ev(const struct srv6_paths *p, uint32_t ev, const uint8_t address[16])
{
	struct mrc_ctl_ev out = {.port = port_of(p, ev)};

	memcpy(out.val, address, 16);
	return out;
}

/* Entries that make an empty profile one of all paths to dst; how many. */
static int entries_to(
	const struct srv6_paths *p, const union ibv_gid *dst, struct mrc_ctl_ev_op_entry entry[EVS])
{
	struct srv6_template t;
	struct wire_ip ip;
	uint32_t ev;
	int n = 0;

	memcpy(ip.b, dst->raw, sizeof(ip.b));
	if (srv6_paths_find(p, &ip, &t) < 0)
		return 0;
	for (unsigned i = 0; n < EVS && srv6_paths_ev(p, &t, i, &ev) == 0; i++) {
		if (srv6_template_expand(&t, ev, &ip) < 0)
			continue;
		entry[n++] = (struct mrc_ctl_ev_op_entry){
			.ev_new = mrcperf_ev(p, ev, ip.b), .state = MRC_CTL_EV_GOOD};
	}
	return n;
}

static int make_format(struct mrcperf_end *e)
{
	struct mrc_ctl_ev_fmt_field field[2] = {{HALF}, {HALF}};
	struct mrc_ctl_ev_fmt_profile_attr attr = {.profile_state = MRC_CTL_PROFILE_OFFLINE,
		.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_SRV6,
		.ev_fmt_op = {MRC_CTL_EV_FMT_OP_MODIFY_FIELDS, field, 2}};

	if (mrc_ctl_modify_ev_fmt_profile(e->ctx, FORMAT, &attr,
		    MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_MODE |
			    MRC_CTL_EV_FMT_PROFILE_OP))
		return trouble("format");
	attr.profile_state = MRC_CTL_PROFILE_ONLINE;
	return mrc_ctl_modify_ev_fmt_profile(e->ctx, FORMAT, &attr, MRC_CTL_EV_FMT_PROFILE_STATE)
		       ? trouble("format ONLINE")
		       : 0;
}

static int make_profile(struct mrcperf_end *e, struct mrc_ctl_ev_op_entry *entry, int n)
{
	struct mrc_ctl_ev_profile_attr attr = {.profile_state = MRC_CTL_PROFILE_OFFLINE,
		.ev_mode = MRC_CTL_EV_MODE_EXP,
		.ev_fmt_profile_id = FORMAT,
		.ev_count = (uint32_t)n,
		.ev_min_active = e->map->n_planes < (unsigned)n ? e->map->n_planes : (unsigned)n,
		.ev_op = {MRC_CTL_EV_OP_REPLACE_EV, entry, n}};

	if (mrc_ctl_modify_ev_profile(e->ctx, MRCPERF_PROFILE, &attr,
		    MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE | MRC_CTL_EV_PROFILE_FMT_ID |
			    MRC_CTL_EV_PROFILE_COUNT | MRC_CTL_EV_PROFILE_MIN_ACTIVE |
			    MRC_CTL_EV_PROFILE_EVENT_MASK | MRC_CTL_EV_PROFILE_EV_OP))
		return trouble("profile");
	attr.profile_state = MRC_CTL_PROFILE_ONLINE;
	return mrc_ctl_modify_ev_profile(e->ctx, MRCPERF_PROFILE, &attr, MRC_CTL_EV_PROFILE_STATE)
		       ? trouble("profile ONLINE")
		       : 0;
}

int mrcperf_profile(struct mrcperf_end *e, const union ibv_gid *peer, uint64_t *id)
{
	static struct mrc_ctl_ev_op_entry entry[EVS];
	int n;

	*id = 0;
	if (!e->map)
		return 0;
	n = entries_to(e->map, peer, entry);
	if (n == 0)
		return is_wrong(e->paths, "no path to the peer");
	if (make_format(e) || make_profile(e, entry, n))
		return -1;
	e->n_paths = (unsigned)n;
	*id = MRCPERF_PROFILE;
	return 0;
}
