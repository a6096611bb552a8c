/* SPDX-License-Identifier: BSD-3-Clause */
/* Two devices that speak MRC, and between them paths that lose, repeat, delay, cut, mark and spoil
 * packets, or are dead. A path keeps the order. A packet's path is what its EV, or the address of
 * its outer header, says. Writes go both ways; what a completion says is checked against memory at
 * the moment of the completion. */
#ifndef TEST_MRC_FABRIC_H
#define TEST_MRC_FABRIC_H

#include "tests/unit/rnic/net.h"

#include "lib/mrc/transport.h"
#include "lib/srv6/template.h"

enum {
	FABRIC_PORTS = 4,
	FABRIC_PATHS = 32,
	FABRIC_RTT = 20000,
	FABRIC_HOP = 8000, /* ns of a way */
	FABRIC_MTU = 1024,
	FABRIC_OUT = 512,          /* messages of one direction on their way at most */
	FABRIC_LONGEST = 8 * 1024, /* bytes */
	FABRIC_HALF = 1 << 23,     /* of a buffer: the source of what is written, then its target */
};

struct fabric_plan {
	uint32_t offset, length, imm;
	bool has_imm;
	uint8_t seed;
};

/* What one end writes to the other. */
struct fabric_stream {
	struct fabric_plan plan[FABRIC_OUT];
	uint32_t posted, done, wimms, next_imm, offset, messages;
	uint32_t seen; /* no immediate before it is missing */
};

struct fabric {
	struct net net;
	enum rnic_mrc_format format;
	bool ip6, ports;
	unsigned loss, twice, trim, lasthop, mark, corrupt; /* in 1/1000 */
	uint64_t jitter;
	/* Of a plane's link in each direction; 0: it takes no time. What waits longer than mark_ns
	 * is marked, than 4 times that is lost. */
	uint64_t mbps, mark_ns, busy[2][FABRIC_PORTS];
	unsigned out;   /* messages of a direction on their way */
	uint32_t fixed; /* bytes of every message; 0: they differ */
	bool dead[FABRIC_PATHS];
	unsigned path_loss[FABRIC_PATHS]; /* in 1/1000 */
	uint64_t last[2][FABRIC_PATHS];
	uint64_t sent[2][FABRIC_PATHS], data[2][FABRIC_PATHS], lost, cut, spoilt, full;
	/* Overtaken: that arrive later than one that left later. */
	uint64_t doubled, overtaken, latest[2];
	uint64_t arrived_on_dead;
	struct fabric_stream stream[2];
	uint8_t *mem[2]; /* of streams, two halves */
	struct rnic_mr *mr[2];
	struct rnic_mrc_paths paths;
	struct srv6_template template;
	struct wire_ip sid[2];
	struct ibv_wc bad[2]; /* the first completion with another status than success, */
	unsigned n_bad[2];    /* how many there were: allowed if */
	bool may_fail;
	/* Sees a frame before all else; false: it is gone. */
	bool (*hook)(struct fabric *f, int from, uint8_t *frame, size_t *len);
	unsigned ev_changes;
	uint64_t answered_cookie, answered_rtt;
	bool answered_adjusted;
	unsigned n_answered;
};

struct fabric_options {
	enum rnic_mrc_format format;
	enum mrc_ev_order order;
	bool ip6;                            /* for UDP, too */
	const struct mrc_settings *settings; /* NULL: the defaults; order, RTT and rate are the
						fabric's in any case */
	bool no_trim_nack;
	bool other_codec;           /* whose headers behind the BTH are nothing like MRC's */
	unsigned n_paths, n_active; /* 0: FABRIC_PATHS, three in four of them */
	bool ports; /* of the devices, one for each plane; else one port carries all */
	struct rnic_mrc_attr attr;
	unsigned mask; /* of attr, beside the paths */
	uint32_t psn[2];
	unsigned out; /* messages of a direction on their way, at most FABRIC_OUT; 0: 48 */
};

/* Devices, paths and a connected pair. */
struct fabric *fabric_make(const struct fabric_options *options);
void fabric_free(struct fabric *f);

/* Posts and runs until both streams are done, or the time has passed: false. */
bool fabric_run(struct fabric *f, uint64_t longest);
/* The same without new messages until ns later. */
void fabric_wait(struct fabric *f, uint64_t ns);
void fabric_messages(struct fabric *f, unsigned there, unsigned back);

/* Counter of end i's queue pair, or of its device. */
uint64_t fabric_count(const struct fabric *f, int i, const char *name);
uint64_t fabric_dev_count(const struct fabric *f, int i, const char *name);

/* A packet as `from` would send it, to QP dqpn of the other end if pkt has one, on a path; len of
 * the frame. */
size_t fabric_frame(struct fabric *f, int from, const struct mrc_pkt *pkt, const void *payload,
	unsigned path, uint8_t dscp, const struct wire_ip *src, uint8_t *out, size_t cap);
/* The same, and it arrives: the drop reason. */
unsigned fabric_inject(struct fabric *f, int from, const struct mrc_pkt *pkt, const void *payload,
	unsigned path, uint8_t dscp, const struct wire_ip *src);

#endif
