/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets at the tail of what was sent go again before anything says that they are lost (snd.h:
 * tail_again; docs/mrc.md, 5.5). What became of the first transmission is then not known: it may be
 * slow, or its path may have lost it. Here it is found out, so that a path that loses is still
 * taken out of use. A path is innocent if the peer names the transmission, or tells of the packet
 * before the repetition can have made it. It is guilty if the packet is told of after that, and
 * then either something that followed on the path has come, or it is silent_ns old: late_ns, or as
 * long as round trips take where that is longer. Only what the peer names at once when it comes is
 * in doubt: of another no word would follow.
 *
 * No clock, no heap, no I/O. */
#ifndef MRC_DOUBT_H
#define MRC_DOUBT_H

#include <stdbool.h>
#include <stdint.h>

enum { MRC_DOUBTS = 8 };

struct mrc_doubt {
	uint64_t at; /* when it was sent */
	uint32_t psn;
	uint32_t on_path; /* which transmission on its EV it was */
	uint16_t ev, bytes;
	bool again;   /* was a repetition itself */
	bool suspect; /* a later one seems to have come, and nothing was heard of this one */
};

struct mrc_doubts {
	struct mrc_doubt d[MRC_DOUBTS]; /* the oldest first; behind n all is 0 */
	uint32_t n;
};

/* One more; the oldest is forgotten if there is no room. */
void mrc_doubts_add(struct mrc_doubts *ds, const struct mrc_doubt *d);
/* The peer names this transmission, or refuses it: nothing is wrong with its path. *at: when it was
 * sent. False: it is in no doubt. */
bool mrc_doubts_named(struct mrc_doubts *ds, uint32_t psn, int ev, bool again, uint64_t *at);
/* The packet has come. by_last: it may be by its last repetition; else by one that is in doubt. */
void mrc_doubts_came(struct mrc_doubts *ds, uint32_t psn, bool by_last);
/* Takes suspect i out. */
struct mrc_doubt mrc_doubts_take(struct mrc_doubts *ds, unsigned i);
/* When the first suspect has been silent for so long; UINT64_MAX: there is none. */
uint64_t mrc_doubts_deadline(const struct mrc_doubts *ds, uint64_t silent_ns);

#endif
