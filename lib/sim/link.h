/* SPDX-License-Identifier: BSD-3-Clause */
/* One direction of a link: what becomes of a frame that enters it, and when. No frames and no
 * events in here, only the arithmetic, so that it can be tested alone. The queue is not a list: a
 * link that is busy until some time has a backlog of rate times what is left of it. */
#ifndef SIM_LINK_H
#define SIM_LINK_H

#include <stdbool.h>
#include <stdint.h>

enum {
	SIM_MAX_DOWN = 8,
	/* What a frame takes on the wire beyond its bytes: preamble, FCS, inter-frame gap. */
	SIM_WIRE_OVERHEAD = 24,
	SIM_TRIMMED = 94,      /* all headers of a packet: Ethernet to RETH */
	SIM_TRIMMED_MRC = 142, /* the same in IPv6 in IPv6, to ImmDt (docs/mrc.md, section 4) */
};

struct sim_link_conf {
	uint64_t mbps;     /* 0: infinitely fast, no queue */
	uint64_t delay_ns; /* propagation */
	/* A frame that would wait behind so many bytes is dropped; 0: no limit. trim: of a longer
	 * one the first SIM_TRIMMED bytes go on, ahead of what is queued, as long as twice the
	 * queue is not full. A receiver that knows nothing of trimming finds the length wrong. */
	uint64_t queue_bytes;
	bool trim;
	uint16_t trim_to;  /* instead of SIM_TRIMMED; 0: that */
	uint8_t trim_dscp; /* written into the outermost header of what is trimmed; 0: nothing is */
	/* Acknowledgements, CNPs, MRC's control and trimmed packets (by DSCP), and what a switch
	 * sends again go ahead of all other frames. Those that are queued already still arrive at
	 * the time that was worked out for them: what has overtaken them is paid for by the ones
	 * that come later. */
	bool priority;
	uint64_t ecn_bytes; /* frames behind more than that are marked CE; 0: never */
	/* More than ecn_bytes: a frame behind less than that is marked with a probability that
	 * grows linearly from 0 to 1. Else all are. */
	uint64_t ecn_max_bytes;
	/* Priority flow control (IEEE 802.1Q, 36) of the class of frames that do not go ahead: when
	 * more than pfc_xoff bytes of what came over this link wait in the switch behind it, that
	 * asks for a pause, and from pfc_xon on for more. Beyond pfc_room it drops; 0: no limit.
	 * With pfc_xoff the frames wait in a list (queue.c) and queue_bytes is not looked at. All
	 * links of a fabric have it, or none: what leaves by another link counts nowhere. */
	uint64_t pfc_xoff, pfc_xon, pfc_room;
	double loss, dup, reorder, corrupt; /* probabilities per frame */
	uint64_t reorder_ns;                /* how much later, at most; 0: 20 000 */
	/* Gilbert: good -> bad, bad -> good, and the loss while bad. */
	double burst_enter, burst_leave, burst_loss;
	uint64_t lose_nth; /* that frame alone, counted from 1 */
	unsigned n_down;
	struct {
		uint64_t from, until;
	} down[SIM_MAX_DOWN]; /* nothing gets in */
};

/* X(symbol, name): what is counted per link and direction. Frames: all that were to go over it,
 * also those that were dropped for want of room or because it was down, which have counters of
 * their own. Bytes: those that it took, trimmed ones as they are then, with SIM_WIRE_OVERHEAD each.
 */
#define SIM_LINK_COUNTERS(X)        \
	X(FRAMES, "frames")         \
	X(BYTES, "bytes")           \
	X(DELIVERED, "delivered")   \
	X(LOST, "lost")             \
	X(QUEUE_DROP, "queue_drop") \
	X(TRIMMED, "trimmed")       \
	X(DOWN_DROP, "down_drop")   \
	X(HOST_DROP, "host_drop")   \
	X(DUPLICATED, "duplicated") \
	X(REORDERED, "reordered")   \
	X(CORRUPTED, "corrupted")   \
	X(MARKED, "marked")         \
	X(PAUSES, "pauses")         \
	X(PEAK_QUEUE, "peak_queue_bytes")

enum sim_link_counter {
#define X(sym, name) SIM_L_##sym,
	SIM_LINK_COUNTERS(X)
#undef X
		SIM_N_LINK_COUNTERS
};
const char *sim_link_counter_name(unsigned c);

struct sim_frame;

/* With pfc_xoff, what waits for a link. */
struct sim_queue {
	struct {
		struct sim_frame *first, *last;
	} of[2];         /* classes: those that do not go ahead, those that do */
	uint64_t bytes;  /* of both, on the wire */
	unsigned source; /* of the frame that is half out: its link + 1, 0: it counts nowhere */
	uint64_t leaving;
	bool sending; /* a frame is half out */
	bool paused;  /* by the other end: the first class */
};

struct sim_link {
	struct sim_link_conf conf;
	struct sim_queue queue;
	uint64_t held;  /* bytes that came over it and wait in the switch behind it */
	bool pausing;   /* that has asked for a pause */
	uint64_t busy;  /* the last frame taken has left by then */
	uint64_t first; /* likewise, of those that go ahead */
	uint64_t rng;
	bool bad; /* Gilbert's state */
	uint64_t count[SIM_N_LINK_COUNTERS];
	unsigned from, to; /* nodes */
	unsigned from_port, to_port;
};

struct sim_verdict {
	unsigned copies; /* 0: lost, 1, 2 */
	uint64_t at[2];  /* arrival of the last byte */
	bool mark;
	bool trim; /* to SIM_TRIMMED bytes */
	bool corrupt;
	uint64_t bit; /* corrupt: this bit, modulo the frame's bits */
};

void sim_link_init(struct sim_link *link, const struct sim_link_conf *conf, uint64_t seed);

/* A frame of len bytes enters at now; first: it is one of those that may go ahead. */
struct sim_verdict sim_link_send(struct sim_link *link, uint64_t now, unsigned len, bool first);

/* Bytes that have entered and not left yet, with SIM_WIRE_OVERHEAD for each frame; those in the
 * list of pfc_xoff too. */
uint64_t sim_link_backlog(const struct sim_link *link, uint64_t now);
/* Bytes that have left by now, likewise: no more in any time than the link's rate, but for the
 * nanosecond by which each frame's time is rounded. */
uint64_t sim_link_left(const struct sim_link *link, uint64_t now);

static inline unsigned sim_link_trims_to(const struct sim_link_conf *conf)
{
	return conf->trim_to ? conf->trim_to : SIM_TRIMMED;
}

/* wire_random, and a coin. */
uint64_t sim_random(uint64_t *state);
bool sim_chance(uint64_t *state, double p);

#endif
