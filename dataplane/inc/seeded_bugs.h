/* SPDX-License-Identifier: BSD-3-Clause */
/* The traps of docs/inc-protocol.md, section 11, as bugs that the model checker must find:
 * X(symbol, what is wrong). They exist only in the checker's own build of the engine, with
 * INC_SEEDED_BUG defined; elsewhere INC_BUG is 0 and the compiler drops what it guards. Those that
 * are a host's are in the checker's host. */
#ifndef INC_SEEDED_BUGS_H
#define INC_SEEDED_BUGS_H

#define INC_SEEDED_BUGS(X)                                                              \
	X(T1, "arrived is not cleared with the slot")                                   \
	X(T2, "no PSN tag: the slot a window ahead is cleared at completion")           \
	X(T2B, "the first contribution is added to what the slot held")                 \
	X(T4, "a broadcast's NAK goes to the sender with the receiver's PSN")           \
	X(T5, "what all receivers have acknowledged is replicated again, not answered") \
	X(T6, "a host's ACK of broadcast or reduce data is not reflected")              \
	X(T7, "host: skips received PSNs at once, and acknowledges them")               \
	X(T8, "what is stale is dropped, not answered")                                 \
	X(T9, "RNR NAK for any duplicate, not only for the oldest unacknowledged PSN")  \
	X(T10, "host: no fence around operations that are no allreduce")                \
	X(T11, "host: no rendezvous after a fence")                                     \
	X(T12, "Mode-III: what has left the pipe is not acknowledged again")            \
	X(T13, "Mode-III: a NAK acknowledges its own PSN")                              \
	X(T13B, "Mode-III: a slot is released when it was sent")                        \
	X(T14, "Mode-III: PSNs that a pipe has released are waited for")                \
	X(T15, "Mode-III: the local loop writes ahead of the second pipe's range")      \
	X(T16, "Mode-III: packets leave in the order of pipes, not of PSNs")            \
	X(T17, "Mode-III: acknowledgements are asked for at the end of messages only")  \
	X(T18, "a broadcast's merged ACK reaches past its operation")                   \
	X(T19, "Mode-III: no timers at the switch's endpoints")                         \
	X(T20, "Mode-III: every packet behind a gap draws a NAK")                       \
	X(T20B, "Mode-III: an endpoint draws one NAK ever")                             \
	X(T20C, "Mode-III: a NAK is sent again that names the same PSN")                \
	X(T21, "a duplicate is added again")                                            \
	X(T22, "data is taken from an endpoint whose own control was not")              \
	X(T23, "data is taken only once all ranks have agreed to the operation")        \
	X(T24, "PSNs are compared without regard to the wrap")                          \
	X(M1_TURN, "Mode-I: messages leave before it is their turn")                    \
	X(M1_MUTE, "Mode-I: a failed group answers, but ends nobody who only waits")    \
	X(M1_FREE, "Mode-I: a buffer is free when its first send is acknowledged")      \
	X(T25, "NetReduce: packets before the row's first PSN are dropped")             \
	X(NR_CLAIM, "NetReduce: a claimed slot keeps what the older message left")      \
	X(NR_AHEAD, "NetReduce: a newer message claims a slot that is not complete")    \
	X(NR_DUP, "NetReduce: a duplicate of a complete packet is not answered")        \
	X(NR_UP, "NetReduce: a leaf does not send its sum again")                       \
	X(NR_NAK, "NetReduce: a failed ring's NAK names the packet at hand")            \
	X(NR_MUTE, "NetReduce: a failed ring tells no host")                            \
	X(NR_ALONE, "NetReduce: a failed ring tells no switch")                         \
	X(NR_PASS, "NetReduce: what hosts send to a failed ring is forwarded")          \
	X(II_AHEAD, "Mode-II: a newer PSN claims a slot whose owner is not complete")   \
	X(T26, "host: an RNR wait keeps all other timers from firing")                  \
	X(GEN, "a queue pair's generation is not looked at")                            \
	X(DRAIN, "what a group has begun is dropped once it drains")                    \
	X(ANEW_MSN, "resync: counts of messages go on")                                 \
	X(ANEW_ALONE, "ranks: the switches begin anew when rank 0 is through")          \
	X(FIG6, "EPIC figure 6: Mode-III clears a slot a window ahead, hosts wait for ACKs only")

enum inc_seeded_bug {
	INC_BUG_NONE,
#define X(sym, text) INC_BUG_##sym,
	INC_SEEDED_BUGS(X)
#undef X
		INC_N_BUGS
};

#ifdef INC_SEEDED_BUG
extern enum inc_seeded_bug inc_seeded_bug; /* the checker's */
#define INC_BUG(sym) (inc_seeded_bug == INC_BUG_##sym)
#else
#define INC_BUG(sym) 0
#endif

#endif
