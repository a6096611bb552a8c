/* SPDX-License-Identifier: BSD-3-Clause */
/* The last packets, behind which nothing is sent that would tell of them (snd.h: dry): when they go
 * again, or are asked about, on their age alone, and what is made of those that did (doubt.h).
 * snd.c's own. */
#ifndef MRC_TAIL_H
#define MRC_TAIL_H

#include "lib/mrc/snd.h"

/* Whether there are such. */
bool snd_is_tail(const struct mrc_snd *s);
/* They are few: they go again, and no probe asks. */
bool snd_tail_again(const struct mrc_snd *s);
/* How long after a packet or a probe, of which so many were before it. */
uint64_t snd_tail_wait(const struct mrc_snd *s, unsigned before);

/* When the first goes again, or a doubt is over. */
uint64_t snd_tail_deadline(const struct mrc_snd *s);
/* All has come, and the transport ACK is missing: when the last packet is to go again to ask for it
 * earlier than its timeout; UINT64_MAX: not. */
uint64_t snd_tail_ask_at(const struct mrc_snd *s);
/* Those whose time has come are among the lost. */
void snd_tail_hurry(struct mrc_snd *s, uint64_t now);
/* What suspects lost is lost. */
void snd_tail_judge(struct mrc_snd *s, uint64_t now, struct mrc_news *news);

#endif
