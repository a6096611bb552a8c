/* SPDX-License-Identifier: BSD-3-Clause */
/* What has been promised to whom of the fabric's switches and links (EPIC 6.1, 6.2): bytes of
 * aggregation memory and one group on each switch of a tree, and a rate on each of its links.
 * Reserve, commit or release: all of a promise or nothing of it, and never more than there is.
 *
 * Memory is promised in two ways. To one holder alone, for as long as the promise lasts (spatial
 * multiplexing, and EDT); or shared (temporal multiplexing): a holder needs it only while it
 * communicates, a share of the time that is its duty. All that share on a switch use one pool,
 * which is as large as the largest of them needs, and as the sum of what they need, each weighted
 * by its duty:
 *
 *	alone + max(largest shared, sum of shared * duty / 1000) <= memory
 *
 * On links the same holds for rates. A link may be promised whole: to this tree and to no other
 * (edge-disjoint trees).
 *
 * Switches and links are named by the graph's indices (lib/mgr/graph.h); the book knows of each
 * what it was told. When capacity shrinks below what was promised, nothing is taken from anybody:
 * the call says so, holders can be listed, and nothing new is promised there until enough has been
 * released.
 *
 * A reservation that is not committed by its deadline may be swept: who reserved it is gone. Heap
 * within the limits given. One owner, no clock, no I/O. */
#ifndef MGR_BOOK_H
#define MGR_BOOK_H

#include <stdbool.h>
#include <stdint.h>

enum {
	MGR_MAX_PROMISES = 65536,
	MGR_MAX_DEMANDS = 8192, /* switches or links of one promise */
	MGR_DUTY = 1000,        /* all of the time */
};

struct mgr_demand_sw {
	unsigned node;
	uint64_t bytes;
};

/* What a tree needs. Duty: 1 to MGR_DUTY; below it memory and rates are shared. */
struct mgr_demand {
	unsigned n_sw, n_link;
	const struct mgr_demand_sw *sw; /* no switch twice */
	const unsigned *link;           /* no link twice */
	uint64_t bps;                   /* on each; 0: whatever is left over */
	unsigned duty;
	bool whole; /* no other tree on these links */
};

enum mgr_promise_state { MGR_NO_PROMISE, MGR_RESERVED, MGR_COMMITTED };

/* 0 is no promise; a number is not used again for another one. */
typedef uint64_t mgr_promise;

struct mgr_book;

/* For switches and links with indices below these. NULL without memory. */
struct mgr_book *mgr_book_new(unsigned n_nodes, unsigned n_links);
void mgr_book_free(struct mgr_book *b);

/* What a switch has (0 and 0: it is gone), what a link has. Returns how many promises must go
 * before new ones are made: 0 if all fits, else all that hold there. -ERANGE: no such index. */
int mgr_book_set_switch(struct mgr_book *b, unsigned node, uint64_t sram, unsigned groups);
int mgr_book_set_link(struct mgr_book *b, unsigned link, uint64_t bps);

/* Promises all of it. -ENOSPC: *node or *link, the other being -1, says where it does not fit, and
 * nothing was promised; -EINVAL: something twice, a duty out of range, nothing asked for; -ERANGE:
 * an index; -EMFILE: MGR_MAX_PROMISES; -ENOMEM. The demand is copied. deadline: for mgr_book_sweep.
 */
int mgr_book_reserve(struct mgr_book *b, const struct mgr_demand *demand, uint64_t deadline,
	mgr_promise *out, int *node, int *link);

/* What was promised before this book was made is promised again, and committed, whether there is
 * enough of it now or not. Errors as above, but for -ENOSPC. */
int mgr_book_restore(struct mgr_book *b, const struct mgr_demand *demand, mgr_promise *out);

/* -ENOENT: not reserved (any more). Committing twice is fine. */
int mgr_book_commit(struct mgr_book *b, mgr_promise p);

/* Reserved or committed. -ENOENT: neither, e.g. released before. */
int mgr_book_release(struct mgr_book *b, mgr_promise p);

/* A part of it: one switch's; all links'. What is left of it holds; with nothing left it is
 * released. -ENOENT as above, or it does not hold that (any more). */
int mgr_book_release_switch(struct mgr_book *b, mgr_promise p, unsigned node);
int mgr_book_release_links(struct mgr_book *b, mgr_promise p);

/* Releases a reservation whose deadline is not after now; 0: there is none. */
mgr_promise mgr_book_sweep(struct mgr_book *b, uint64_t now);

enum mgr_promise_state mgr_book_state(const struct mgr_book *b, mgr_promise p);

/* What one more holder with this duty could get there, at most: bytes, 0 if no group is free
 * either; bits per second, 0 if the link is promised whole or, for one that wants it whole, to
 * anybody. */
uint64_t mgr_book_free_bytes(const struct mgr_book *b, unsigned node, unsigned duty);
uint64_t mgr_book_free_bps(const struct mgr_book *b, unsigned link, unsigned duty, bool whole);

/* Trees over a link; groups on a switch. */
unsigned mgr_book_link_holders(const struct mgr_book *b, unsigned link);
unsigned mgr_book_switch_holders(const struct mgr_book *b, unsigned node);

/* When who shares memory uses it (EPIC 6.2, scheduled coordination). Time goes round in a cycle of
 * MGR_DUTY parts, the same for all. Shared memory of a switch consists of blocks, by number; a
 * promise has one block, with the same number on all its switches, as large as the largest needs
 * that has it there, or had it since the block was nobody's there: what is enlarged stays so until
 * then. All of them together count as used, if the pool is not larger. And it has a
 * window of the cycle, as long as its duty, which no other that has the block on any of its
 * switches has a part of; or none: it contends. */
struct mgr_window {
	unsigned block;         /* from 1; 0: memory is not shared */
	unsigned start, length; /* length 0: it contends for the block */
};

enum { MGR_MAX_BLOCKS = 32 };

/* Gives a promise that shares memory the first window that there is, else a block to contend for:
 * what others have stays. -ENOSPC: no block can be as large as it needs, and nothing has changed.
 * -ENOENT: no such promise, or it shares nothing. */
int mgr_book_give_window(struct mgr_book *b, mgr_promise p, struct mgr_window *out);
/* What it was given before this book was made; it may contradict others, who then contend with it.
 * leaves: it will be released, or was already, and its blocks are no larger for it then.
 * -EINVAL: makes no sense. */
int mgr_book_restore_window(
	struct mgr_book *b, mgr_promise p, const struct mgr_window *w, bool leaves);

/* How large a block is at a switch; 0: it is nobody's there, or makes no sense. */
uint64_t mgr_book_block_bytes(const struct mgr_book *b, unsigned node, unsigned block);
/* It was as large before this book was made, for somebody who may have gone; that counts if it is
 * anybody's there now: for after mgr_book_restore_window. -EINVAL: makes no sense. */
int mgr_book_restore_block(struct mgr_book *b, unsigned node, unsigned block, uint64_t bytes);

/* Of memory, as counted against what there is. */
uint64_t mgr_book_used_bytes(const struct mgr_book *b, unsigned node);

/* The first promise after p (0: the first of all) that holds the switch or link; 0: no more. Not
 * changed by releases of others in between. */
mgr_promise mgr_book_next_on_switch(const struct mgr_book *b, unsigned node, mgr_promise p);
mgr_promise mgr_book_next_on_link(const struct mgr_book *b, unsigned link, mgr_promise p);

#endif
