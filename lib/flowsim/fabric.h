/* SPDX-License-Identifier: BSD-3-Clause */
/* A fat tree of leaves, spines and cores (EPIC L.2) as the manager's graph, and the ways through
 * it. In each pod every leaf is linked to every spine; core c is linked to the spine c / cores of
 * each pod. Links are named as in the graph; each has two directions, which are links of their own
 * to the water: fs_directed. */
#ifndef FLOWSIM_FABRIC_H
#define FLOWSIM_FABRIC_H

#include "lib/flowsim/waterfill.h"
#include "lib/mgr/policy.h"

enum { FS_ERR_LEN = 160, FS_MAX_WAY = 6 };

struct fs_shape {
	unsigned pods, leaves, hosts, spines, cores; /* of a pod; of a leaf; of a pod; of a spine */
	uint64_t bps;                                /* of every link */
	unsigned slots;                              /* groups that a switch can have at a time */
	uint64_t sram;                               /* of a switch */
};

/* The paper's: 128 GPUs, 2048 GPUs, and the latter with half the cores. */
extern const struct fs_shape fs_shape_128, fs_shape_2048, fs_shape_2048_half;

struct fs_fabric {
	struct fs_shape shape;
	unsigned n_hosts, n_switches;
	unsigned *host; /* nodes, by leaf */
	struct mgr_graph *g;
	struct mgr_book *b;
	struct mgr_place *p;
	struct fs_water *water; /* capacities are bytes per nanosecond */
	/* Links: of hosts; of leaves, to spine after spine; of spines, to core after core. */
	unsigned *host_link, *leaf_link, *spine_link;
	unsigned *below; /* node at the lower end of a link */
};

/* 0; -EINVAL: a number of the shape, which err names; -ENOMEM. */
int fs_fabric_new(const struct fs_shape *shape, struct fs_fabric **out, char err[FS_ERR_LEN]);
void fs_fabric_free(struct fs_fabric *f);

static inline unsigned fs_directed(unsigned link, bool down)
{
	return 2 * link + down;
}

/* The way from one host to another one: up to FS_MAX_WAY directed links, their number is returned.
 * hash: picks spine and core; 0: the ones whose links have the fewest flows. */
unsigned fs_way(const struct fs_fabric *f, unsigned from, unsigned to, uint64_t hash,
	unsigned way[FS_MAX_WAY]);

#endif
