/* SPDX-License-Identifier: BSD-3-Clause */
/* The entropy values of one connection: which path each packet takes, which paths are passed over,
 * swapped out, probed and taken back (MRC paper, 2.1 and 3; the states and their causes are those
 * of the controller API). A plane is a port of the device; planes are used in turn, and an EV that
 * goes is replaced by one of its own plane, so that planes stay balanced whatever fails inside
 * them.
 *
 * An EV is named by its index in the set, 0 to n - 1. No clock: times are nanoseconds, passed in.
 * Randomness comes from the seed. One owner. */
#ifndef MRC_EVSET_H
#define MRC_EVSET_H

#include <stdbool.h>
#include <stdint.h>

enum { MRC_MAX_EVS = 256, MRC_MAX_PORTS = 8, MRC_NO_EV = -1, MRC_EV_BUCKETS = 512 };

enum mrc_ev_state {
	MRC_EV_GOOD,
	MRC_EV_SKIP, /* passed over once; the API says GOOD */
	MRC_EV_BAD,  /* assumed bad: lost a packet that no switch trimmed */
	MRC_EV_DENIED
};

struct mrc_evset_config {
	unsigned n_ports; /* 1 to 8; EVs name them from 0 */
	unsigned
		max_active; /* rounded down to the same number for every port; the rest is backup */
	unsigned min_active; /* never fewer because of bad ones */
	uint64_t base_rtt_ns;
	uint64_t probe_cap_ns;     /* longest time between probes of a bad EV; 0: 100 ms */
	unsigned probes_to_return; /* successes in a row; 0: 3 */
	uint64_t seed;
};

struct mrc_ev {
	uint32_t ev;
	uint8_t port;
	uint8_t state; /* enum mrc_ev_state */
	bool active;   /* in its port's ring, else backup or out */
	bool probing;  /* a probe is on its way */
	uint8_t successes;
	uint8_t marked_rtts; /* how many in a row had a mark */
	uint16_t moved_in;   /* the attempt by which it is in use; 0: no other one was marked */
	uint32_t marked_at;  /* the last of them, counted from 1; 0: none yet */
	uint64_t skip_until; /* SKIP ends then by itself */
	uint64_t bad_since;
	uint64_t probe_at; /* next probe, or when the one on its way counts as lost */
	uint64_t probe_wait;
};

struct mrc_evset {
	unsigned n, n_ports, min_active, n_active, n_bad;
	unsigned per_port;                              /* EVs that each ring should have */
	unsigned turn;                                  /* of ports, see mrc_evset_next */
	uint64_t base_rtt_ns, probe_cap_ns, next_probe; /* at most one probe per base RTT */
	unsigned probes_to_return;
	uint32_t rest_rtts; /* without a mark, before a backup is gone to because of marks */
	uint16_t attempt;   /* another one whenever that becomes more; never 0 */
	uint8_t up;         /* ports that may be used, a bit each */
	uint64_t random;
	uint64_t changed[MRC_MAX_EVS / 64]; /* state as the API shows it has changed since taken */
	struct mrc_ev ev[MRC_MAX_EVS];
	uint16_t bucket[MRC_EV_BUCKETS]; /* index + 1 by hash of the EV, open addressing; 0: none */
	struct {
		uint16_t n, at; /* up to MRC_MAX_EVS */
		uint8_t index[MRC_MAX_EVS];
	} ring[MRC_MAX_PORTS];
};

/* n EVs with the port of each. -EINVAL, *s is of no use: n is 0 or above MRC_MAX_EVS, a port that
 * the device lacks, one EV twice, min_active above n, or a port count or time out of range. */
int mrc_evset_init(struct mrc_evset *s, const struct mrc_evset_config *config, const uint32_t *ev,
	const uint8_t *port, unsigned n);

/* The EV of the next packet, of a port in room (a bit each) that is up; MRC_NO_EV if there is none.
 * While all ports have room each gets one packet in n_ports. */
int mrc_evset_next(struct mrc_evset *s, uint8_t room, uint64_t now);

/* What became of packets. An index out of range does nothing. skip: ECN seen, or trimmed on the
 * way; with that in eight base RTTs on end it changes places with a backup of its plane that had
 * none for 64, if there is one, and for twice as long after each attempt, of however many paths
 * together, that did not help (figure 14 of the paper; CHOSEN, docs/mrc.md 6.5). bad: lost
 * untrimmed, timed out, or the peer said never again; false: it stays as it is because too few
 * would be left, and none has been bad for some time that could take its place. */
void mrc_evset_skip(struct mrc_evset *s, int index, uint64_t now);
bool mrc_evset_bad(struct mrc_evset *s, int index, uint64_t now);

/* The loss for which it was taken to be bad was none: a switch had trimmed the packet, and its
 * headers came by this path. A bad one is passed over once and good, without probes. */
void mrc_evset_reprieve(struct mrc_evset *s, int index, uint64_t now);

/* The controller's word. */
void mrc_evset_deny(struct mrc_evset *s, int index);
void mrc_evset_allow(struct mrc_evset *s, int index);

/* A port went down or came up. Its EVs keep their states. */
void mrc_evset_port(struct mrc_evset *s, unsigned port, bool up);

/* Probes of bad EVs. due: the EV to probe now, MRC_NO_EV if none is due; deadline: when to ask
 * again, UINT64_MAX for never. A probe that is not answered in time has failed by itself. answered:
 * with the peer's mark; an answer to no probe is ignored. */
int mrc_evset_probe_due(struct mrc_evset *s, uint64_t now);
uint64_t mrc_evset_probe_deadline(const struct mrc_evset *s);
void mrc_evset_probe_answered(struct mrc_evset *s, int index, bool marked, uint64_t now);

/* The index of an EV, MRC_NO_EV if it is not of the set. */
int mrc_evset_find(const struct mrc_evset *s, uint32_t ev);
/* The same of one that the peer echoes: which half goes where is not settled, so one with its
 * halves exchanged is ours, too. */
int mrc_evset_echoed(const struct mrc_evset *s, uint32_t ev);

/* The next EV whose state has changed, and forgets that it has; MRC_NO_EV. */
int mrc_evset_take_changed(struct mrc_evset *s);

#endif
