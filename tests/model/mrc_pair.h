/* SPDX-License-Identifier: BSD-3-Clause */
/* Two queue pairs of MRC for the checker: requestor, responder and paths of each end as lib/mrc has
 * them, the packets between them, and what must hold. All of it is one structure without anything
 * outside, so that a state is a copy of it. */
#ifndef MODEL_MRC_PAIR_H
#define MODEL_MRC_PAIR_H

#include "lib/mrc/req.h"
#include "lib/mrc/rsp.h"

enum {
	MRC_M_EVS = 3, /* two of plane 0, of which one is its backup, one of plane 1 */
	MRC_M_PLANES = 2,
	MRC_M_MESSAGES = 4, /* of an end */
	MRC_M_PACKETS = 4,  /* of a message */
	MRC_M_QUEUE = 12,   /* on a path at a time */
	MRC_M_WORDS = 24,
	MRC_M_PMTU = 256,
	MRC_M_SENT = 128, /* packets of a window of one unit */
	MRC_M_FIRST_PSN = 0xfffffe
};

/* What an end writes: messages of so many packets; 0: of no bytes. */
struct mrc_m_message {
	uint8_t packets;
	bool imm;
};

struct mrc_m_config {
	unsigned n[2];
	struct mrc_m_message message[2][MRC_M_MESSAGES];
	unsigned losses, trims, twice, early; /* budgets; early: timers while packets are about */
	unsigned min_active, tail_again;
};

struct mrc_m_queue {
	unsigned n;
	struct mrc_out p[MRC_M_QUEUE];
};

struct mrc_m_words {
	unsigned n;
	struct mrc_pkt p[MRC_M_WORDS];
};

struct mrc_m_end {
	struct mrc_evset evs;
	struct mrc_req req;
	struct mrc_rsp rsp;
	uint64_t req_mem[MRC_M_SENT * sizeof(struct mrc_sent) / 8 +
			 MRC_M_MESSAGES * sizeof(struct mrc_request) / 8];
	uint64_t rsp_mem[64];
	/* From this end to the other. */
	struct mrc_m_queue data[MRC_M_EVS], cut; /* cut: headers, ahead of everything */
	struct mrc_m_words word[MRC_M_PLANES];
	unsigned turn;               /* of planes, for words */
	unsigned lost_on[MRC_M_EVS]; /* data packets and probes, by the network */
	/* What the other end has written here: how often each packet was placed. */
	uint8_t placed[MRC_M_MESSAGES][MRC_M_PACKETS];
	unsigned imms; /* immediates that have completed here */
	unsigned done; /* own messages that are complete */
};

struct mrc_m_pair {
	struct mrc_m_config c;
	struct mrc_m_end end[2];
	uint64_t now;
	unsigned losses, trims, twice, early; /* that may still come */
	bool word_lost, was_early;
};

enum mrc_m_kind {
	MRC_M_DELIVER, /* the oldest packet of a path */
	MRC_M_DELIVER_CUT,
	MRC_M_DELIVER_WORD,
	MRC_M_SAY, /* a word leaves */
	MRC_M_TIMER,
	MRC_M_LOSE,
	MRC_M_LOSE_CUT,
	MRC_M_LOSE_WORD,
	MRC_M_TRIM,
	MRC_M_TWICE, /* delivered, and it comes once more */
};

struct mrc_m_step {
	uint8_t kind, from, at; /* from: end; at: EV or plane */
};
enum { MRC_M_STEPS = 64 };

/* The one pair that there is: pointers in it point into it. */
extern struct mrc_m_pair mrc_m;

/* Nothing has kept the ends from knowing what was lost and what was not. */
static inline bool mrc_m_knows(void)
{
	return !mrc_m.word_lost && !mrc_m.was_early;
}

/* All messages posted, all that may leave has left. */
void mrc_m_begin(const struct mrc_m_config *c);
/* What can happen now. */
unsigned mrc_m_steps(struct mrc_m_step step[MRC_M_STEPS]);
/* NULL, or what is wrong after it. */
const char *mrc_m_do(const struct mrc_m_step *step);
/* All is done, nothing on its way, and no path bad any more. */
bool mrc_m_ended(void);
/* Of all that decides what can happen, and of nothing else (mrc_hash.c). */
uint64_t mrc_m_hash(void);
void mrc_m_print(const struct mrc_m_step *step);

#endif
