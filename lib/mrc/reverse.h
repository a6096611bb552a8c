/* SPDX-License-Identifier: BSD-3-Clause */
/* The paths that a connection's control packets take: one for each plane, in turn over the planes
 * that are up at both ends (MRC paper, 2.4). A path is kept as long as there is word that it works:
 * with data flowing out, unmarked SACKs of that data are the word; an end that only receives probes
 * one path, drawn at random, in each round trip in which something came. A plane of which nothing
 * is good, or whose probes nobody answers, is passed over as long as there is another one: words
 * that take a dead plane are lost, and with them the time that their loss costs.
 *
 * No clock (times are nanoseconds, passed in, not decreasing), no heap, no I/O. One owner. */
#ifndef MRC_REVERSE_H
#define MRC_REVERSE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/mrc/evset.h"
#include "lib/mrc/settings.h"

enum { MRC_REVERSE_OUT = 8 };

struct mrc_reverse {
	unsigned n_ports, turn;
	unsigned doubted;          /* the port whose path is drawn anew next */
	int16_t ev[MRC_MAX_PORTS]; /* indices of the set; MRC_NO_EV: the port has none */
	unsigned silent_most;      /* unanswered probes after which a port is not trusted */
	uint64_t base_rtt_ns, round;
	uint64_t random;
	uint64_t repeated; /* a bit for each of the 64 PSNs up to repeated_psn: it was */
	uint32_t repeated_psn;
	bool received, sent;           /* in this round */
	uint16_t probe_id;             /* of the last probe */
	int16_t out[MRC_REVERSE_OUT];  /* EVs of the last ones, by id; MRC_NO_EV: none, or answered
					*/
	uint8_t silent[MRC_MAX_PORTS]; /* probes of the port in a row that nobody answered */
};

/* The first active EV of each port until more is known. silent: unanswered probes in a row after
 * which a port is passed over (settings.h: reverse_silent), at most 255. */
void mrc_reverse_init(
	struct mrc_reverse *r, const struct mrc_evset *evs, unsigned silent, uint64_t seed);

/* The ports that are up at both ends and seem to work, a bit each; if none does, all that are up. A
 * port that leads nowhere always has room: who asks for a path among those that have some just now
 * does not get it by that. */
uint8_t mrc_reverse_ports(const struct mrc_reverse *r, const struct mrc_evset *evs);

/* The EV (an index) of the next control packet, of a port in usable (a bit each: up at both ends,
 * with room); MRC_NO_EV. One that the set has come to think bad is used until another is known: the
 * packet may still get through. */
int mrc_reverse_next(struct mrc_reverse *r, const struct mrc_evset *evs, uint8_t usable);

/* A data packet came, or left. */
static inline void mrc_reverse_received(struct mrc_reverse *r)
{
	r->received = true;
}
static inline void mrc_reverse_sent(struct mrc_reverse *r)
{
	r->sent = true;
}

/* A path has worked: an unmarked SACK of a packet that took it has come. */
void mrc_reverse_worked(struct mrc_reverse *r, const struct mrc_evset *evs, int ev);

/* The peer repeats what it has been told of. Once says nothing: it may be in a hurry (snd.h:
 * tail_again), and the word of it on its way. The same again says that words do not get through: a
 * doubt. */
void mrc_reverse_repeated(struct mrc_reverse *r, const struct mrc_evset *evs, uint32_t psn);
/* Words do not get through. The paths of the ports are drawn anew, one at a time. Without this two
 * ends whose control packets all take dead paths would never learn of others: answers to probes are
 * control packets. */
void mrc_reverse_doubt(struct mrc_reverse *r, const struct mrc_evset *evs);

/* Once per round trip; true: an EV probe is to be sent now on *ev with *id. */
bool mrc_reverse_probe(struct mrc_reverse *r, const struct mrc_evset *evs, uint8_t usable,
	uint64_t now, int *ev, uint16_t *id);
/* Its answer. One of another probe than the last few does nothing. */
void mrc_reverse_answered(struct mrc_reverse *r, const struct mrc_evset *evs, uint16_t id);
/* When mrc_reverse_probe may give one; UINT64_MAX: not before something comes. */
uint64_t mrc_reverse_deadline(const struct mrc_reverse *r);

#endif
