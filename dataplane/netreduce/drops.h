/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of a packet in the NetReduce engine (docs/inc-protocol.md, section 6): X(symbol,
 * name, meaning), losses and outcomes as in inc/drops.h. */
#ifndef NR_DROPS_H
#define NR_DROPS_H

#define NR_LOSSES(X)                                                                               \
	X(PORT, "nr_port", "arrived on another port than the one that leads to its sender")        \
	X(HEADER, "nr_header", "INA header that does not fit the ring or the connection")          \
	X(MISMATCH, "nr_mismatch", "other type or operation than another rank's: the ring fails")  \
	X(NO_FIRST, "nr_no_first", "no first packet of a message has been seen on the connection") \
	X(RANGE, "nr_range", "PSN outside the window around the connection's latest message")      \
	X(OPCODE, "nr_opcode", "opcode does not fit the PSN's position in its message")            \
	X(LENGTH, "nr_length", "length that does not fit the position or the other ranks'")        \
	X(AHEAD, "nr_ahead", "message beyond the window: an older one is not complete")            \
	X(STALE, "nr_stale", "message older than the buffer's present one, from a switch")         \
	X(FAILED, "nr_failed", "the ring has failed: whoever sends is told")

#define NR_OUTCOMES(X)                                                                     \
	X(DUP_RESULT, "nr_dup_result", "result from the parent that was there already")    \
	X(CONSUMED, "nr_consumed", "stored in a buffer that still waits for others")       \
	X(DUP_WAIT, "nr_dup_wait", "stored again in a buffer that still waits for others") \
	X(DONE, "nr_done", "completed its buffer or was answered: what follows is emitted")

#define NR_DROPS(X)  \
	NR_LOSSES(X) \
	NR_OUTCOMES(X)

enum nr_drop {
	NR_FORWARD = 0, /* not dropped: goes on unchanged */
#define X(sym, name, text) NR_DROP_##sym,
	NR_DROPS(X)
#undef X
		NR_N_DROPS,
	NR_ICRC_BAD = NR_N_DROPS, /* counted as every other packet with a bad one */
};

const char *nr_drop_name(enum nr_drop drop);

#endif
