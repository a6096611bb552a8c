/* SPDX-License-Identifier: BSD-3-Clause */
/* Ways to make the model's host differ from lib/rnic, or from CommLib on it, to see that the
 * comparison (conform.c) notices. Only its program has MC_MUTANTS defined; elsewhere MUT is 0 and
 * the compiler drops what it guards. */
#ifndef MODEL_MUTANTS_H
#define MODEL_MUTANTS_H

#define MC_MUTANT_LIST(X)                                                           \
	X(NAK_EACH, "a NAK for every packet behind a gap")                          \
	X(NAK_STICKS, "what arrives in order does not end the gap")                 \
	X(NAK_PSN, "a NAK names the PSN that came")                                 \
	X(NAK_NEVER, "a gap is passed over in silence")                             \
	X(DUP_SILENT, "a duplicate is not acknowledged")                            \
	X(DUP_OWN_PSN, "a duplicate's ACK names the duplicate")                     \
	X(DUP_GAP, "a duplicate ends the gap")                                      \
	X(ACK_EACH, "every packet is acknowledged")                                 \
	X(ACK_NEVER, "no packet is acknowledged")                                   \
	X(ACK_BEFORE, "an ACK names the PSN before")                                \
	X(MSN_PACKETS, "MSNs count packets")                                        \
	X(MSN_LATE, "the MSN is of the message before")                             \
	X(UNA_SHORT, "an ACK leaves its own PSN outstanding")                       \
	X(NAK_NO_PROGRESS, "a NAK acknowledges nothing")                            \
	X(NAK_IGNORED, "a NAK sends nothing again")                                 \
	X(NAK_COPY, "a copy of a NAK sends all again once more")                    \
	X(RNR_NAKS, "behind a packet that found no receive a gap is asked for")     \
	X(NAK_ONE, "a NAK sends one packet again")                                  \
	X(TIMER_ONE, "the timer sends one packet again")                            \
	X(TIMER_LATE, "the timer leaves out the oldest packet")                     \
	X(RESEND_ACKED, "what an ACK covered meanwhile is sent again all the same") \
	X(RNR_IGNORED, "an RNR NAK holds nobody")                                   \
	X(RNR_STICKS, "progress does not end the wait for a receive")               \
	X(RNR_CODE, "another RNR timer code")                                       \
	X(ACKREQ_FIRST, "AckReq is in a message's first packet")                    \
	X(IMM_RESENT, "a packet sent again has another immediate")                  \
	X(SR_SILENT, "SR: what is sent again asks for nothing")                     \
	X(SR_SELDOM, "SR: a map for each five packets kept, not four")              \
	X(SR_BELOW, "SR: what was sent again is lost as what was sent once is")     \
	X(SR_NO_MAP, "SR: every NAK without a map sends all again")                 \
	X(SR_NO_TALE, "SR: an ACK stays one while something is missing")            \
	X(SR_FILLED, "SR: what closes a gap is acknowledged unasked")               \
	X(CO_STAYS, "answers that wait: an ACK stays what it was")                  \
	X(CO_FORGETS, "answers that wait: a NAK goes with what comes next")         \
	X(CO_DUP, "answers that wait: a duplicate takes an RNR NAK's place")        \
	X(WINDOW_MORE, "CommLib: a window of one message more")                     \
	X(WINDOW_LESS, "CommLib: of one message less")                              \
	X(WINDOW_ACKS, "CommLib: what is received does not count")                  \
	X(WINDOW_RESULTS, "CommLib: what is acknowledged does not count")           \
	X(WINDOW_AR, "CommLib: what is only received does not count")               \
	X(OPS_MORE, "CommLib: five operations at a time")                           \
	X(OPS_LESS, "CommLib: three operations at a time")                          \
	X(FENCE_NONE, "CommLib: no fence")                                          \
	X(FENCE_AR, "CommLib: a fence for each AllReduce")                          \
	X(FENCE_BEHIND, "CommLib: none for the AllReduce behind another operation") \
	X(FENCE_3, "CommLib: fences in Mode-III, too")                              \
	X(RENDEZVOUS_NONE, "CommLib: no rendezvous")                                \
	X(RENDEZVOUS_RESULT, "CommLib: data waits for the control's result only")

enum mc_mutant {
	MUT_NONE,
#define X(sym, text) MUT_##sym,
	MC_MUTANT_LIST(X)
#undef X
		MC_N_MUTANTS
};

#ifdef MC_MUTANTS
extern enum mc_mutant mc_mutant;
#define MUT(sym) (mc_mutant == MUT_##sym)
#else
#define MUT(sym) 0
#endif

#endif
