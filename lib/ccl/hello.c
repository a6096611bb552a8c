/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/hello.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { HELLO_VERSION = 9 };

json_t *ccl_hello(const struct ccl_group *g, const struct ccl_comm *c)
{
	char ip[WIRE_IP_STRLEN], how[CCL_HOW_LEN];

	return json_pack(
		"{s:i, s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:i, s:i, s:i, s:i, s:s, s:s, s:b, s:i, "
		"s:s, s:b, s:i}",
		"ccl", HELLO_VERSION, "group", g->name, "ip",
		wire_ip_format(&c->local_ip, ip, sizeof(ip)), "device",
		ibv_get_device_name(c->context->device), "skip", c->skip != NULL, "selective",
		c->create != NULL, "sr", g->sr, "rnr", ccl_device_rnr(c->context), "mtu",
		ccl_port_mtu(c->context, c->port), "ranks", (int)g->n_ranks, "M", (int)g->m, "W",
		(int)g->w, "mode", g->mode, "lease", g->lease, "write", g->write, "collectives",
		(int)g->collectives, "algorithm", ccl_group_how(g, how), "multicast",
		ccl_device_mcast(c->context) && (!g->mcast.uc || ccl_device_window(c->context)),
		"rings", (int)g->rings);
}

static int differ(unsigned rank, const char *field, char *err)
{
	snprintf(err, CCL_ERR_LEN, "rank %u: its group file has another \"%s\" than rank 0's", rank,
		field);
	return -EINVAL;
}

int ccl_hello_check(const struct ccl_group *g, unsigned rank, const json_t *h,
	struct ccl_ability *ability, unsigned *mtu, char err[CCL_ERR_LEN])
{
	const char *name = NULL, *text = NULL, *device = NULL, *mode = NULL, *lease = NULL;
	const char *how = NULL;
	char own_how[CCL_HOW_LEN];
	int selective = 0, sr = 0, multicast = 0, rings = 0;
	int version = 0, skip = 0, rnr = 0, write = 0, n = 0, m = 0, w = 0, u = 0, collectives = 0;
	struct wire_ip ip;

	if (json_unpack((json_t *)h,
		    "{s:i, s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:i, s:i, s:i, s:i, s:s, s:s, s:b, "
		    "s:i, s:s, s:b, s:i}",
		    "ccl", &version, "group", &name, "ip", &text, "device", &device, "skip", &skip,
		    "selective", &selective, "sr", &sr, "rnr", &rnr, "mtu", &u, "ranks", &n, "M",
		    &m, "W", &w, "mode", &mode, "lease", &lease, "write", &write, "collectives",
		    &collectives, "algorithm", &how, "multicast", &multicast, "rings", &rings) ||
		version != HELLO_VERSION) {
		snprintf(
			err, CCL_ERR_LEN, "rank %u: speaks another version of the bootstrap", rank);
		return -EPROTO;
	}
	if (strcmp(name, g->name) != 0)
		return differ(rank, "name", err);
	if (n != (int)g->n_ranks || wire_ip_parse(text, &ip) || !wire_ip_eq(&ip, &g->rank_ip[rank]))
		return differ(rank, "ranks", err);
	if (m != (int)g->m)
		return differ(rank, "M", err);
	if (w != (int)g->w)
		return differ(rank, "W", err);
	if (strcmp(mode, g->mode) != 0)
		return differ(rank, "mode", err);
	if (rings != (int)g->rings)
		return differ(rank, "rings", err);
	if (strcmp(lease, g->lease) != 0)
		return differ(rank, "lease", err);
	if (write != g->write)
		return differ(rank, "verb", err);
	if (sr != g->sr)
		return differ(rank, "flags.sr", err);
	if (collectives != (int)g->collectives)
		return differ(rank, "collectives", err);
	if (strcmp(how, ccl_group_how(g, own_how)) != 0)
		return differ(rank, "algorithm, multicast or tree", err);
	if (u < 256 || u > 4096 || (unsigned)u < g->mtu) {
		snprintf(err, CCL_ERR_LEN, "rank %u: its port has MTU %d, the group needs %u", rank,
			u, g->mtu ? g->mtu : 256);
		return -EMSGSIZE;
	}
	ability->skip = skip;
	ability->selective = selective;
	ability->rnr = rnr;
	ability->multicast = multicast;
	snprintf(ability->device, sizeof(ability->device), "%s", device);
	*mtu = (unsigned)u;
	return 0;
}
