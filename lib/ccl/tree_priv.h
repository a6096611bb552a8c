/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of a tree: tree_qp.c owns verbs objects and meets the others, tree.c moves messages.
 *
 * Messages of each connection are numbered from 0 through all collectives. */
#ifndef CCL_TREE_PRIV_H
#define CCL_TREE_PRIV_H

#include "lib/ccl/tree.h"

/* A rank that data goes to, or comes from, for some root. */
struct tree_link {
	unsigned rank;
	struct ibv_qp *qp;
	uint32_t sent, acked;     /* to a child: messages */
	uint32_t allowed;         /* that it has posted receives for */
	uint32_t posted, arrived; /* from a parent: receives, messages */
	uint32_t told;            /* receives that it knows of */
	bool telling;
};

struct tree_coll {
	uint8_t *buf;
	uint64_t bytes;
	unsigned root;
};

struct ccl_tree {
	struct ccl_tree_conf conf;
	unsigned mtu;
	struct wire_ip ip;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	unsigned n_out, n_in; /* children and parents of all roots */
	struct tree_link *out, *in;
	bool ready;
	struct tree_coll coll[CCL_MAX_QUEUED];
	uint64_t issued, done;
	/* the collective */
	bool begun;
	struct ibv_mr *mr, *own_mr;
	uint64_t n_messages;
	struct tree_link *parent; /* NULL: the own rank is the root */
	uint32_t parent_first;    /* number of its first message there */
	unsigned n_children;
	struct tree_link *child[CCL_TREE_MAX_CHILDREN];
	uint32_t child_first[CCL_TREE_MAX_CHILDREN];
	uint64_t progress_ns, looked_ns;
	bool fresh;
	int failed;
	char err[CCL_ERR_LEN];
};

/* wr_id: the kind above, index of the link below. */
enum tree_kind { TREE_DATA_SENT, TREE_CREDIT, TREE_TOLD, TREE_DATA };

enum { TREE_CREDIT_RECVS = 8 };

/* A child's connection: receives for what it tells. 0 or a positive errno. */
int tree_post_credit(struct ccl_tree *t, unsigned out);

static inline unsigned tree_place(const struct ccl_tree *t, unsigned root)
{
	return (t->conf.rank + t->conf.n_ranks - root) % t->conf.n_ranks;
}

#endif
