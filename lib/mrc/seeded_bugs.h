/* SPDX-License-Identifier: BSD-3-Clause */
/* Bugs that the model checker must find (tests/model/mrc_explore.c): X(symbol, what is wrong). They
 * exist only in the checker's own build, with MRC_SEEDED_BUG defined; elsewhere MRC_BUG is 0 and
 * the compiler drops what it guards. */
#ifndef MRC_SEEDED_BUGS_H
#define MRC_SEEDED_BUGS_H

#define MRC_SEEDED_BUGS(X)                                                     \
	X(LAST_ONLY, "a message is complete when its last packet has arrived") \
	X(WALK_HIGH, "messages behind a hole are acknowledged")                \
	X(PLACE_TWICE, "what is there beyond a gap is placed again")           \
	X(WIMM_ORDER, "immediates are held in the order of arrival")           \
	X(BITMAP_OFF, "a bitmap is read one PSN too high")                     \
	X(NO_DUP_ACK, "a duplicate draws no transport ACK")                    \
	X(NO_ASK, "nobody asks for a missing transport ACK")                   \
	X(FORGET_CUT, "a packet that was trimmed does not go again")           \
	X(MIN_ACTIVE, "paths go though too few are left")                      \
	X(OTHER_PLANE, "a path's backup is of any plane")                      \
	X(PROBE_STUCK, "a probe that is not answered is waited for")

enum mrc_seeded_bug {
	MRC_BUG_NONE,
#define X(sym, text) MRC_BUG_##sym,
	MRC_SEEDED_BUGS(X)
#undef X
};

#ifdef MRC_SEEDED_BUG
extern enum mrc_seeded_bug mrc_seeded_bug; /* the checker's */
#define MRC_BUG(sym) (mrc_seeded_bug == MRC_BUG_##sym)
#else
#define MRC_BUG(sym) 0
#endif

#endif
