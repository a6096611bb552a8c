/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of lib/mgr/book.c and windows.c. */
#ifndef MGR_BOOK_PRIV_H
#define MGR_BOOK_PRIV_H

#include "lib/mgr/book.h"
#include "lib/mgr/heap.h"

static const uint64_t MGR_MOST = (uint64_t)1 << 50; /* of anything: sums stay far from overflow */

struct mgr_holder {
	mgr_promise promise;
	uint64_t amount;
	unsigned duty;
};

/* Memory of a switch, or rate of a link: what there is, and what was promised of it. */
struct mgr_account {
	uint64_t total, alone;
	uint64_t weighted; /* sum of shared amounts times duty */
	uint64_t largest;  /* shared amount */
	uint64_t blocks;   /* of windows, all together */
	uint64_t block;    /* the largest of them */
	unsigned limit;    /* holders; 0: the switch or link is gone */
	unsigned n, room;
	struct mgr_holder *holder; /* by ascending promise */
	uint64_t seen;             /* mark of the last demand that named it */
	bool whole;
};

/* Of a switch, by number less one; 0: nobody's. */
struct mgr_blocks {
	uint64_t size[MGR_MAX_BLOCKS];
};

struct mgr_promised {
	mgr_promise number; /* 0: free */
	enum mgr_promise_state state;
	unsigned n, *account;
	int next_free;
	struct mgr_window window;
	bool leaves; /* what it had before this book was made says nothing of blocks */
};

struct mgr_book {
	unsigned n_nodes, n_links;
	struct mgr_account *account; /* of switches, then of links */
	struct mgr_blocks *blocks;   /* of switches */
	struct mgr_promised *promise;
	unsigned n_promises, room;
	int free;                 /* -1: none */
	struct mgr_heap reserved; /* promises that are not committed, by deadline */
	uint64_t age, mark;
};

/* NULL: no such promise (any more). */
struct mgr_promised *mgr_book_find(const struct mgr_book *b, mgr_promise p);
/* After a window was given there, or a holder has gone (windows.c). */
void mgr_book_count_blocks(struct mgr_book *b, struct mgr_account *a);

#endif
