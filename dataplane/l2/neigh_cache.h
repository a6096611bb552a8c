/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbours that are learnt: the neighbour cache of RFC 4861, 5.1 and 7.3, for ARP and ND alike.
 * What is wanted is asked for, what is known is looked after, what does not answer is forgotten.
 * Packets wait here for an answer, few and not for long. No I/O: time is an argument, and what is
 * to be done is said to `ops`.
 *
 * Built for a link on which somebody lies: who is not asked for is learnt only when he himself asks
 * for an address of ours; a known address changes its MAC only when the old one does not answer any
 * more; entries, of those unanswered ones, waiting packets and requests are bounded. */
#ifndef DATAPLANE_L2_NEIGH_CACHE_H
#define DATAPLANE_L2_NEIGH_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/wire/ip.h"

enum {
	NEIGH_MAX = 4096, /* entries */
	NEIGH_MAX_PORTS = 64,
	NEIGH_MAX_ASKED = 128, /* entries of a port that have never answered: INCOMPLETE, FAILED */
	NEIGH_MAX_WAITING = 4, /* packets for one neighbour; the oldest makes room */
	NEIGH_ALL_WAITING = 256,
	NEIGH_REQUESTS = 3, /* MAX_UNICAST_SOLICIT, MAX_MULTICAST_SOLICIT */
	/* Requests at a port: so many at once, and so many in a second. */
	NEIGH_BURST = 64,
	NEIGH_RATE = 256,
};

/* ns. RFC 4861, 10: RETRANS_TIMER, REACHABLE_TIME. */
static const uint64_t NEIGH_RETRANS = UINT64_C(1000000000);
static const uint64_t NEIGH_REACHABLE_TIME = UINT64_C(30000000000);
/* Between requests to an old MAC address when somebody claims another; between such checks. */
static const uint64_t NEIGH_CHECK = UINT64_C(200000000);
static const uint64_t NEIGH_CHECK_EVERY = UINT64_C(5000000000);
/* How long nobody is asked again who has not answered; how long who is not used is remembered. */
static const uint64_t NEIGH_FAILED_TIME = UINT64_C(3000000000);
static const uint64_t NEIGH_STALE_TIME = UINT64_C(600000000000);

/* X(symbol, name, meaning) */
#define NEIGH_STATES(X)                                                                    \
	X(FREE, "free", "no neighbour")                                                    \
	X(INCOMPLETE, "incomplete", "asked for, has not answered yet")                     \
	X(REACHABLE, "reachable", "has answered within 30 s")                              \
	X(STALE, "stale", "known, and asked for again as soon as something is sent to it") \
	X(PROBE, "probe", "known, and being asked for")                                    \
	X(FAILED, "failed", "has not answered")

enum neigh_state {
#define X(sym, name, text) NEIGH_##sym,
	NEIGH_STATES(X)
#undef X
};
const char *neigh_state_name(enum neigh_state state);

struct neigh_entry {
	struct wire_ip ip;
	uint8_t mac[6];
	uint8_t state;     /* enum neigh_state */
	uint8_t asked;     /* requests without an answer */
	bool claimed;      /* PROBE: somebody says that it has another MAC address */
	uint16_t port;     /* index */
	uint16_t vlan;     /* 0: untagged */
	uint16_t adj;      /* the caller's */
	uint64_t next;     /* when something is to be done */
	uint64_t since;    /* in this state */
	uint64_t heard;    /* last answer, or word of its own; 0: never */
	uint64_t check_at; /* not before: the next check of another's claim */
	unsigned n_waiting;
	void *waiting[NEIGH_MAX_WAITING];
	unsigned chain; /* next of its bucket + 1 */
};

/* What becomes of a packet that has waited. */
enum neigh_fate { NEIGH_SEND, NEIGH_UNREACHABLE, NEIGH_CROWDED };

struct neigh_ops {
	/* Ask for e: at its MAC address, or everybody. */
	void (*ask)(void *arg, const struct neigh_entry *e, bool unicast);
	void (*settle)(void *arg, const struct neigh_entry *e, void *packet, enum neigh_fate fate);
	/* Something needs e as it is, whether packets show it or not; it is never given up. */
	bool (*needed)(void *arg, const struct neigh_entry *e);
	/* Packets have been sent to e since this was last asked. */
	bool (*used)(void *arg, const struct neigh_entry *e);
};

#define NEIGH_COUNTERS(X)                                                               \
	X(learnt, "neighbours learnt")                                                  \
	X(forgotten, "neighbours forgotten: silent or not used")                        \
	X(unanswered, "neighbours asked for that did not answer")                       \
	X(requests, "requests sent")                                                    \
	X(requests_held, "requests not sent in time: too many at the port")             \
	X(claims, "claims of another MAC address for a known neighbour")                \
	X(moved, "neighbours whose MAC address has changed")                            \
	X(refused, "neighbours not learnt or asked for: the port or the table is full") \
	X(crowded, "packets that no more waited for a neighbour: too many did")

struct neigh_counters {
#define X(field, text) uint64_t field;
	NEIGH_COUNTERS(X)
#undef X
};

struct neigh_cache {
	const struct neigh_ops *ops;
	void *arg;
	unsigned max_per_port, n, n_waiting;
	struct {
		unsigned n, n_asked;
		unsigned tokens;
		uint64_t tokens_at;
	} port[NEIGH_MAX_PORTS];
	bool changed; /* who is known, and by which MAC address; the caller clears it */
	struct neigh_counters count;
	unsigned free; /* entry + 1 */
	unsigned bucket[NEIGH_MAX];
	struct neigh_entry entry[NEIGH_MAX];
};

void neigh_cache_init(
	struct neigh_cache *c, unsigned max_per_port, const struct neigh_ops *ops, void *arg);

static inline bool neigh_is_known(const struct neigh_entry *e)
{
	return e->state == NEIGH_REACHABLE || e->state == NEIGH_STALE || e->state == NEIGH_PROBE;
}

/* Packets that still wait are settled as unreachable. */
void neigh_cache_clear(struct neigh_cache *c);

/* A packet for ip, which is at this port and in this VLAN if anywhere, wants to be sent. It is
 * settled at once, or waits; NULL: none, but somebody will. Asks for who is not known. */
void neigh_cache_want(struct neigh_cache *c, uint16_t port, uint16_t vlan, const struct wire_ip *ip,
	void *packet, uint64_t now);

/* What somebody says of his own address. */
enum neigh_word {
	NEIGH_ANSWERS,   /* a reply to us, or a solicited advertisement */
	NEIGH_ASKS,      /* a request for an address of ours: he will want an answer */
	NEIGH_ANNOUNCES, /* gratuitous ARP, an unsolicited advertisement */
};
void neigh_cache_heard(struct neigh_cache *c, enum neigh_word word, uint16_t port, uint16_t vlan,
	const struct wire_ip *ip, const uint8_t mac[6], uint64_t now);

/* What is due. To be called every 100 ms or so. */
void neigh_cache_tick(struct neigh_cache *c, uint64_t now);

/* NULL: no such entry. */
struct neigh_entry *neigh_cache_find(struct neigh_cache *c, const struct wire_ip *ip);

#endif
