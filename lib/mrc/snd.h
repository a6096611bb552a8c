/* SPDX-License-Identifier: BSD-3-Clause */
/* What a requestor has sent and not yet heard of: which packets are on their way, which are lost
 * and go again, how long to wait (MRC 1.0, sections 5.1 and 5.5 of the rules in docs/mrc.md). A
 * packet is lost when
 *   - the responder names it (NACK);
 *   - a packet or a probe that followed it on the same path has arrived, and a SACK says that it is
 *     missing: a path keeps the order;
 *   - it left longer ago than late_ns, and a SACK still says that it is missing;
 *   - enough packets that were sent later have arrived, whatever their paths;
 *   - it is the oldest and its time is over.
 * Of the last packets nothing that follows tells. If they are few they go again when nothing has
 * been heard of them for as long as a round trip takes; what became of their first transmissions is
 * found out behind that (doubt.h). If they are many, a probe asks.
 * A SACK costs the packets that it tells news of, a loss a constant: nothing walks the window.
 *
 * A transmission is judged by news of itself only: of a packet that was sent again, a SACK proves
 * something about paths only if it says that the repetition came (Karn's rule).
 *
 * No clock (times are nanoseconds, passed in, not decreasing), no heap, no I/O. One owner. */
#ifndef MRC_SND_H
#define MRC_SND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/mrc/doubt.h"
#include "lib/mrc/evset.h"
#include "lib/mrc/rtt.h"
#include "lib/mrc/settings.h"
#include "lib/wire/mrc.h"

enum {
	/* 1.024 us << 24: the longest interval, after doublings too */
	MRC_TIMEOUT_MAX = MRC_MOST_timeout,
	MRC_TIMEOUT_DEFAULT = MRC_DFLT_timeout,
	MRC_LINEAR_MAX = MRC_MOST_linear_cnt,
	MRC_EXP_ENDLESS = MRC_MOST_exp_cnt
};

struct mrc_snd_config {
	uint32_t first_psn;
	unsigned mpr_units; /* the peer's window in 128 packets, 1 to 255 */
	uint8_t timeout;    /* 1.024 us << timeout, 1 to 24; 0: 12 */
	uint8_t linear_cnt; /* so many tries at that interval, at most 7, */
	uint8_t exp_cnt;    /* then so many doublings, at most 25, which is for ever */
	uint64_t later_ns;  /* how long a packet waits that the responder had no room for */
	/* Of a packet that nothing new is to follow (mrc_snd.dry): after so long it goes again,
	 * after twice that without a word of it once more, and so on up to late_ns; or, when more
	 * than tail_again packets are on their way, a probe asks about the oldest, at the same
	 * times. 0: neither, no earlier than of others. */
	uint64_t tail_ns;
	/* Once a round trip has been measured (mrc_snd_rtt), tail_ns is so many of that. 0: it
	 * stays what it is. */
	uint32_t tail_rtts;
	uint8_t tail_again; /* 0: probes ask in any case */
	/* For so long after the last arrival the peer puts off its word of packets that did not ask
	 * for one: they go again so much later, unless a SACK that one behind them has drawn says
	 * that they are missing. */
	uint64_t guard_ns;
	/* After so long what a SACK says is missing is lost, whatever came on its path, and after a
	 * silence of it a probe asks, each time. 0: neither. */
	uint64_t late_ns;
	/* 0 of these: the default (settings.h). */
	uint8_t tail_probes; /* in a row that nobody answers, or repetitions of a packet, and there
				are no more */
	uint32_t loss_least; /* packets sent later that have to arrive, at least */
};

enum mrc_sent_state {
	MRC_ARRIVED, /* or never sent */
	MRC_FLIGHT,
	MRC_LOST,  /* goes again at once */
	MRC_LATER, /* after later_ns */
	MRC_HELD,  /* once the window has moved */
	MRC_N_SENT_STATES
};

/* One packet by PSN modulo capacity. Links are places in the ring. */
struct mrc_sent {
	uint64_t at;         /* when it was sent last, or became MRC_LATER */
	uint64_t user;       /* the caller's: what the packet is made of */
	uint32_t mark;       /* see mrc_snd.heard */
	uint16_t next, prev; /* in the list of its state */
	uint32_t on_path;    /* which transmission on its EV it was, from 1 on */
	uint16_t ev, bytes;
	int16_t lost_on; /* the EV of the last transmission that was taken as lost; MRC_NO_EV */
	uint8_t state;   /* enum mrc_sent_state */
	bool again;      /* was sent more than once */
	bool asked;      /* the last time with the wish for a SACK */
	bool missed;     /* a SACK that one sent behind it has drawn misses it */
	uint8_t hurried; /* how often it went again on its age alone, or to ask for an ACK */
};

struct mrc_list {
	uint16_t head, tail;
	uint32_t n;
};

struct mrc_snd {
	uint32_t next;  /* PSN of the next new packet */
	uint32_t cack;  /* it and all before it have arrived */
	uint32_t acked; /* it and all before it are acknowledged by the transport: done with */
	uint32_t window, mask;
	uint32_t flight_bytes;
	/* How many packets sent after the oldest in flight have arrived: heard counts arrivals and
	 * losses of the oldest; a packet's mark is that count as it will be when all that was on
	 * its way before it is settled. Others' losses are not counted, which errs to patience. */
	uint32_t heard;
	uint64_t heard_at, acked_at; /* last word of the peer; when cack or acked moved last */
	uint64_t try_at; /* what times out before that is of the silence of the last try */
	uint64_t interval, later_ns, tail_ns, late_ns, guard_ns;
	struct mrc_rtt rtt; /* of packets whose SACKs were not put off */
	uint32_t loss_least, tail_rtts;
	bool dry; /* nothing new is to follow what was sent: the owner's to set */
	uint8_t linear_cnt, exp_cnt, tail_probes, tail_again;
	uint8_t tries;  /* in a row without news; above linear_cnt + exp_cnt the peer is gone */
	uint8_t probed; /* probes since the last word, and when the last of them was due */
	uint64_t probed_at;
	struct mrc_list list[MRC_N_SENT_STATES];
	uint32_t told_units; /* rcvd_units of the newest SACK */
	struct mrc_doubts doubts;
	struct {
		uint32_t sent, arrived; /* transmissions, probes too, and the last known to have
					   come */
	} path[MRC_MAX_EVS];
	struct mrc_sent *sent;
};

/* Bytes of the ring for a window of mpr units. */
size_t mrc_snd_bytes(unsigned mpr_units);

/* sent: mrc_snd_bytes(mpr_units) bytes, the caller's, as long as *s lives. -EINVAL: a field is out
 * of range. */
int mrc_snd_init(struct mrc_snd *s, const struct mrc_snd_config *config, struct mrc_sent *sent);

/* What news did. */
struct mrc_news {
	uint32_t arrived;                  /* packets that are newly known to have arrived */
	uint32_t lost, lost_bytes;         /* newly taken as lost, trimmed ones not counted */
	uint64_t bad_ev[MRC_MAX_EVS / 64]; /* EVs that lost them, a bit each */
	bool acked;                        /* s->acked has moved: requests may be complete */
	bool gone;                         /* tries are used up: the connection is over */
	bool not_lost; /* a NACK: what was taken as lost on its EV had been trimmed */
};

/* Another timeout and other numbers of tries, in range as in the configuration, from the next wait
 * on. */
void mrc_snd_patience(struct mrc_snd *s, uint8_t timeout, uint8_t linear_cnt, uint8_t exp_cnt);

/* Whether a new packet may have a PSN now: the peer's window, and room in the ring. */
bool mrc_snd_may_send(const struct mrc_snd *s);
/* A new packet leaves on an EV (an index); its PSN. bytes count as nscc.h's do. Only if
 * mrc_snd_may_send. */
uint32_t mrc_snd_new(struct mrc_snd *s, unsigned ev, uint16_t bytes, uint64_t user, uint64_t now);

/* The packet that has to go again first, NULL: none; *psn. It stays the first until
 * mrc_snd_again. Those for which mrc_sent.again is to be said in the packet are these. */
const struct mrc_sent *mrc_snd_lost(const struct mrc_snd *s, uint32_t *psn);
/* That packet leaves on another EV. */
void mrc_snd_again(struct mrc_snd *s, unsigned ev, uint64_t now);

/* The packet that has just left wishes for a SACK, or does not. */
void mrc_snd_asked(struct mrc_snd *s, uint32_t psn, bool asked);
/* A round trip of a packet whose SACK was not put off. */
void mrc_snd_rtt(struct mrc_snd *s, uint64_t ns);

/* The path on which a probe that is due has to go to tell what became of the oldest packet that is
 * on its way. MRC_NO_EV: any will do; something has followed it there, which tells the same or has
 * had no answer, and late_ns decides. */
int mrc_snd_asks_about(const struct mrc_snd *s);
/* A probe leaves on an EV: its turn among the transmissions there. */
uint32_t mrc_snd_probe(struct mrc_snd *s, unsigned ev);

/* A SACK; ev: the index of its entropy, MRC_NO_EV; turn: of the probe that it answers, else it is
 * not looked at. loss_window: packets sent later that make an older one lost, 1.5 congestion
 * windows (less than loss_least counts as that). One that others have overtaken tells what it
 * tells. -EINVAL: it speaks of packets that were never sent; nothing has changed. A changed window
 * is taken over; what was sent beyond it stays out. */
int mrc_snd_sack(struct mrc_snd *s, const struct mrc_sack *sack, int ev, uint32_t turn,
	uint32_t loss_window, uint64_t now, struct mrc_news *news);

/* A transport ACK of all up to psn, which have arrived then; an older one does nothing. -EINVAL as
 * above. When it is missing although all has arrived, the last packet goes again after the
 * interval, or, of a tail, as one that the peer's word was put off of (tail_again): the responder
 * answers a duplicate with its ACK. */
int mrc_snd_ack(struct mrc_snd *s, uint32_t psn, uint64_t now, struct mrc_news *news);

/* A NACK; ev as above. SACKs may overtake one, so that its packet has been taken as lost: of a
 * trimmed one news.not_lost says so, once. -EINVAL: of no packet that is on its way on this EV nor
 * was taken as lost there, nothing has changed. -EPROTO: the connection is over (unexpected event,
 * or a reason that is not defined). */
int mrc_snd_nack(struct mrc_snd *s, const struct mrc_nack *nack, int ev, uint64_t now,
	struct mrc_news *news);

/* When mrc_snd_timer has to be called; UINT64_MAX: never. */
uint64_t mrc_snd_deadline(const struct mrc_snd *s);
/* What is over is lost, what waited goes again. *probe: a reliability probe is due now. */
void mrc_snd_timer(struct mrc_snd *s, uint64_t now, bool *probe, struct mrc_news *news);

#endif
