/* SPDX-License-Identifier: BSD-3-Clause */
/* What the fabric consists of: switches, hosts, their ports, and which port is cabled to which
 * (EPIC 6.1: the manager's global view from device capabilities, port states, SRAM and link-state
 * reports). Any fabric, Clos or not; parallel links and several ports per host are fine.
 *
 * Nodes and ports are said by those that have them. A cable is claimed port by port. A link exists
 * where both ends agree, or where one end says nothing and a single port names it; every other case
 * is a conflict: reported, and no link. What a port hears by LLDP is no claim: whoever knows of it
 * says with a port's state whether the link is to be used.
 *
 * A node is named by an index, which stays until the node is removed and may then be another's; a
 * link by the lower one of its two ports' indices, for which the same holds. Whoever holds either
 * lets go before it is removed. Names, speeds and the like are not secret and not trusted: all is
 * bounded. Heap is used, by the functions that say so. One owner, no clock, no I/O. */
#ifndef MGR_GRAPH_H
#define MGR_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

enum {
	MGR_NAME_LEN = 32, /* with the NUL */
	MGR_MAX_NODES = 16384,
	MGR_MAX_PORTS = 262144, /* of all nodes */
	MGR_MAX_NODE_PORTS = 1024,
	MGR_NO_TIER = 255, /* no way to any host, and none given */
	MGR_LINE_LEN = 256,
};

enum mgr_kind { MGR_HOST = 1, MGR_SWITCH };

/* INC modes that a switch offers, a bit each. */
enum { MGR_MODE_I = 1 << 1, MGR_MODE_II = 1 << 2, MGR_MODE_III = 1 << 3, MGR_MODES = 7 << 1 };

struct mgr_node {
	char name[MGR_NAME_LEN];
	enum mgr_kind kind;
	bool up;         /* its agent, or CommLib, is there and well */
	unsigned tier;   /* of a switch, from 1 (next to hosts); 0: from the links. Hosts: 0 */
	unsigned modes;  /* 0: forwards only */
	uint64_t sram;   /* bytes of aggregation memory */
	unsigned groups; /* that it can have at a time */
	uint64_t boot;   /* another number after each start */
};

struct mgr_port {
	char name[MGR_NAME_LEN];
	uint64_t bps; /* bits per second, each way */
	bool up;
};

/* A link as seen from one of its ends. */
struct mgr_edge {
	unsigned peer, link;
	uint64_t bps; /* the slower end's */
	bool up;      /* both ports and both nodes are */
};

struct mgr_link {
	unsigned node[2], port[2]; /* port[0] is the link's name */
	uint64_t bps;
	bool up;
};

enum mgr_conflict_kind {
	MGR_C_ENDS,    /* the peer says that it is cabled to another port */
	MGR_C_CLAIMED, /* the peer says nothing, and several ports name it */
	MGR_C_UNKNOWN, /* nobody has said that the peer exists */
	MGR_C_SPEED,   /* the ends' speeds differ: used at the lower one */
};

struct mgr_conflict {
	enum mgr_conflict_kind kind;
	unsigned node, port;
	char line[MGR_LINE_LEN]; /* a sentence with all names */
};

struct mgr_graph;

/* NULL without memory. */
struct mgr_graph *mgr_graph_new(void);
void mgr_graph_free(struct mgr_graph *g);

/* A node is there, or is not as it was. 1: something changed; 0: nothing did. -EINVAL: a name that
 * is empty or not ended, a host with a tier or modes, tier of MGR_NO_TIER or above, unknown modes;
 * -EEXIST: the name is a node's of the other kind; -ENOSPC: MGR_MAX_NODES; -ENOMEM. */
int mgr_graph_set_node(struct mgr_graph *g, const struct mgr_node *node);

/* The same for a port of a known node (-ENOENT), up to MGR_MAX_NODE_PORTS of it (-ENOSPC). */
int mgr_graph_set_port(struct mgr_graph *g, unsigned node, const struct mgr_port *port);

/* Which port is at the other end; both names NULL: nothing is said any more. 1 or 0 as above.
 * -ENOENT: no such node or port here; -EINVAL: a name as above, or the port itself. The peer need
 * not be known yet. */
int mgr_graph_claim(struct mgr_graph *g, unsigned node, const char *port, const char *peer_node,
	const char *peer_port);

/* With all its ports; what others say of it stays. -ENOENT. */
int mgr_graph_remove(struct mgr_graph *g, unsigned node);

/* Index by name, or -ENOENT. */
int mgr_graph_find(const struct mgr_graph *g, const char *name);

/* Whether a node has that port, cabled or not. */
bool mgr_graph_has_port(const struct mgr_graph *g, unsigned node, const char *port);

/* Indices are below this; some may be nobody's. */
unsigned mgr_graph_bound(const struct mgr_graph *g);
/* The same for links and ports. */
unsigned mgr_graph_link_bound(const struct mgr_graph *g);

/* NULL: nobody's index. Until the next change. */
const struct mgr_node *mgr_graph_node(const struct mgr_graph *g, unsigned node);
const struct mgr_port *mgr_graph_port(const struct mgr_graph *g, unsigned port);

/* Another number after each change. */
uint64_t mgr_graph_version(const struct mgr_graph *g);

/* Ports and nodes that were looked at so far to work out what follows: for tests of how it grows.
 */
uint64_t mgr_graph_work(const struct mgr_graph *g);

/* Tiers, edges and conflicts are worked out again after a change: it takes time then, as much as
 * there are ports. Which link is where takes none after a claim or a new port, unless a claim names
 * what is not there. No heap. */

/* Tier as given, else least number of links to a host, down ones too: a failure moves no tier. */
unsigned mgr_graph_tier(struct mgr_graph *g, unsigned node);

/* Links of a node, by ascending port; *edge until the next change. 0 for nobody's index. */
unsigned mgr_graph_edges(struct mgr_graph *g, unsigned node, const struct mgr_edge **edge);

/* The link at a port of a node, -ENOENT: none. */
int mgr_graph_link_at(struct mgr_graph *g, unsigned node, const char *port);

/* -ENOENT: no link has this name. */
int mgr_graph_link(struct mgr_graph *g, unsigned link, struct mgr_link *out);

/* The first conflict at port *at or above it, *at then says where to go on; false: no more. */
bool mgr_graph_conflict(struct mgr_graph *g, unsigned *at, struct mgr_conflict *out);

#endif
