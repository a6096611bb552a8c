/* SPDX-License-Identifier: BSD-3-Clause */
/* A group file, read and checked: ranks, switches, the tree they form. Immutable once loaded. */
#ifndef CCL_GROUP_H
#define CCL_GROUP_H

#include <jansson.h>

#include "lib/ccl/ccl.h"
#include "lib/ccl/msg.h"
#include "lib/ccl/tree_plan.h"
#include "lib/ccl/turn.h"
#include "lib/ctl/client_io.h"
#include "lib/ctl/schema.h"

enum {
	CCL_NAME_LEN = 32,
	CCL_PATH_LEN = 108,                 /* of a UNIX socket: sun_path */
	CCL_ADDRESS_LEN = CCL_PATH_LEN + 8, /* with unix: before it */
	CCL_MAX_MANAGERS = 8,
	CCL_OWNER_LEN = 33,
	CCL_MAX_DEPTH = 4, /* switches from the tree root down to a leaf */
	CCL_MAX_CHILDREN = 63,
	CCL_MAX_MW = 32768, /* packets in the window: the switch keeps twice as many slots */
};

/* What the file says about the kind of groups. */
enum ccl_wish { CCL_WISH_AUTO, CCL_WISH_SINGLE, CCL_WISH_MIXED };

/* What hangs below a switch, on which of its ports. */
struct ccl_child {
	bool host;
	unsigned index;    /* rank, or index into ccl_group.sw */
	unsigned min_rank; /* lowest rank behind it */
	char port[CCL_NAME_LEN];
};

struct ccl_switch {
	char name[CCL_NAME_LEN];
	char socket[CCL_PATH_LEN];
	struct wire_ip ip;
	int parent; /* index into ccl_group.sw; -1: the tree root */
	char parent_port[CCL_NAME_LEN];
	unsigned n_children;
	struct ccl_child *child; /* in ascending min_rank: the order in which the switch adds */
	unsigned min_rank;
};

struct ccl_group {
	char name[CCL_NAME_LEN];
	char mode[CCL_NAME_LEN]; /* "II", as group.create has it */
	enum ccl_mode mode_id;
	enum ccl_wish kind;
	unsigned collectives;   /* bit per collective */
	bool collectives_given; /* in the file */
	enum ccl_algorithm algorithm;
	struct {
		bool given;
		struct wire_ip group;
		bool uc; /* transport: WRITEs of unreliable connections, not datagrams */
		unsigned chains, trees;
		uint64_t min_bytes;
	} mcast;
	struct ccl_tree_shape tree;
	bool fallback;            /* to a ring of hosts */
	bool resume;              /* likewise when the groups fail later */
	bool write;               /* data by RDMA WRITE */
	char lease[CCL_NAME_LEN]; /* "": the groups have memory of their own */
	unsigned lease_ms, lease_wait_ms;
	unsigned duty; /* of a managed job, per thousand: below, it may share memory by a lease */
	char bootstrap[CCL_ADDRESS_LEN];
	/* Who finds the tree, addresses with commas between them; "": the file names it. */
	char manager[CCL_MAX_MANAGERS * CCL_ADDRESS_LEN];
	bool mode_given, m_given; /* in the file: the manager may not choose another */
	char device[64];          /* "": any that has the rank's address */
	int gid_index;            /* -1: found by address */
	unsigned mtu;             /* 0: the smallest of all ranks' ports */
	unsigned m, w;
	uint64_t timeout_ns;
	json_t *flags; /* object of booleans, as given */
	bool reproducible, half, sr;
	bool stall_rnr; /* not in flags: true, unless a device cannot bear it */
	unsigned n_ranks;
	struct wire_ip *rank_ip;
	unsigned rings; /* NetReduce: in parallel, one for each rank of a node */
	unsigned n_switches;
	struct ccl_switch *sw;
	unsigned root;
	/* Not in the file: of the run of a managed job, 0: it is none. The secret by which the
	 * switches know this job (owner.hold), "": none yet. How control sockets are reached,
	 * ctl_sockets; a group's slots on the switches, 0: what its window needs. For simulations.
	 */
	uint64_t epoch;
	struct ccl_turn turn; /* of the lease that a manager has given it */
	char owner[CCL_OWNER_LEN];
	const struct ctl_io *io;
	unsigned slots;
	/* Of one of several rings: rank i is the job's rank first + i * step. step 0: the job's
	 * own.
	 */
	struct {
		unsigned first, step;
	} of;
};

/* The file's fields (group_fields.c). */
extern const struct ctl_field ccl_group_file;

/* As ccl_group_load, from a parsed document. */
int ccl_group_parse(const json_t *doc, struct ccl_group **group, char err[CCL_ERR_LEN]);

/* A manager's plan for a copy of a group without switches, whose tree is then its own:
 * ccl_group_drop_tree. Or none: a ring of the hosts. -EINVAL with a reason in err. */
int ccl_group_take_plan(struct ccl_group *own, const char *mode, unsigned m, unsigned w,
	const json_t *switches, char err[CCL_ERR_LEN]);
void ccl_group_take_ring(struct ccl_group *own);
void ccl_group_drop_tree(struct ccl_group *own);

/* Children of a switch and of those below it in ascending order of the lowest rank; which is that
 * of all. Depth is bounded in a group that was read. */
unsigned ccl_group_order(struct ccl_group *group, unsigned sw);

/* ---- group_ring.c ---- */

/* Has the group what its number of rings needs? -EINVAL with a reason. */
int ccl_group_check_rings(const struct ccl_group *group, char err[CCL_ERR_LEN]);
/* The name of ring i on the switches. */
void ccl_group_ring_name(const struct ccl_group *group, unsigned i, char name[CCL_NAME_LEN]);
/* Ring i of a group as a group of its own, to be freed: every node's i-th rank, and the switches at
 * which ranks of it meet: one with a single way down only passes on. -ENOMEM. */
int ccl_group_ring(const struct ccl_group *group, unsigned i, struct ccl_group **ring);

/* ---- algorithm.c ---- */

/* Has the group what its algorithm needs? -EINVAL with a reason. */
int ccl_group_check_algorithm(const struct ccl_group *group, char err[CCL_ERR_LEN]);
/* What follows from the algorithm for mode, manager and fallback. */
void ccl_group_apply_algorithm(struct ccl_group *own);
enum { CCL_HOW_LEN = 160 };
/* What all ranks must say alike of algorithm, multicast and tree, as text. */
const char *ccl_group_how(const struct ccl_group *group, char how[CCL_HOW_LEN]);

/* The group as a communicator has it: with the tree that a manager has found. */
const struct ccl_group *ccl_comm_group(const struct ccl_comm *comm);

/* "auto", "single", "mixed" */
const char *ccl_wish_name(enum ccl_wish wish);

/* Index of the switch a rank is connected to. */
unsigned ccl_group_first_hop(const struct ccl_group *group, unsigned rank);

/* All ranks below a child, ascending, as a new JSON array of integers; NULL without memory. */
json_t *ccl_group_ranks_below(const struct ccl_group *group, const struct ccl_child *child);

#endif
