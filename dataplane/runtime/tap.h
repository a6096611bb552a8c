/* SPDX-License-Identifier: BSD-3-Clause */
/* The worker's half of a capture (switch.h): copies of packets of one port go into a ring of bytes
 * that the control thread empties. The worker never waits: what finds the ring full is counted and
 * not copied. While nothing is captured a burst costs one test, of worker.taps.
 *
 * Records that a turn of the loop writes are shown at its end: until then the end that a packet has
 * met is written into its record, and records of packets that a port did not take are taken back.
 */
#ifndef DATAPLANE_TAP_H
#define DATAPLANE_TAP_H

#include <assert.h>
#include <pcap/pcap.h>
#include <rte_mbuf.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	TAP_BURST = 32,    /* packets that are sent at once */
	TAP_PACKETS = 256, /* of one turn, as they are numbered in mbuf->hash.usr */
	TAP_LOOK = 512,    /* bytes that a filter sees of a packet that is not in one piece */
};

struct tap_record {
	uint64_t ns;
	uint32_t size;     /* of the record with its data, a multiple of 8 */
	uint32_t len, cap; /* of the packet; bytes that follow */
	uint8_t out, drop; /* sent, not received; enum drop, 0: went on */
	uint16_t unused;
};
static_assert(sizeof(struct tap_record) == 24, "a multiple of 8");

/* In place of a record's ns: the rest of the ring is empty, go on at its beginning. */
#define TAP_SKIP UINT64_MAX

enum tap_fate { TAP_CAPTURED, TAP_DROPPED, TAP_FILTERED };

struct tap {
	struct tap *next; /* of the worker's */
	uint16_t port;    /* DPDK port id */
	bool in, out;
	uint32_t snaplen;
	const struct bpf_insn *filter; /* checked by bpf_validate; NULL: everything */
	uint8_t *ring;
	uint64_t size;                        /* a power of two */
	uint64_t head;                        /* bytes written, by the worker */
	_Atomic uint64_t shown;               /* of these, to control */
	_Atomic uint64_t taken;               /* of these, that control has read */
	uint64_t captured, dropped, filtered; /* packets; by the worker, read as they are */
	/* This turn's: by number of the packet, 1 + place of its record in the ring, 0: none. */
	bool marked;
	uint32_t last; /* place of the record written last */
	uint32_t at[TAP_PACKETS];
	/* Of the burst that is being sent. */
	uint64_t burst_head;
	uint64_t end[TAP_BURST];
	uint8_t fate[TAP_BURST];
};

struct worker;

/* Received packets, which have their numbers. */
void taps_in(struct worker *w, uint16_t port, struct rte_mbuf *const *mbufs, unsigned n);
/* At most TAP_BURST packets that a port is being given; then how many of them it has taken. */
void taps_out(struct worker *w, uint16_t port, struct rte_mbuf *const *mbufs, unsigned n);
void taps_sent(struct worker *w, uint16_t port, unsigned sent);
/* Packets that end here, with a reason in their metadata. */
void taps_ended(struct worker *w, struct rte_mbuf *const *mbufs, unsigned n);
/* The end of a turn. */
void taps_show(struct worker *w);

/* Control: the oldest record that is there, NULL if none is; done with it. The ring has one reader.
 */
const struct tap_record *tap_peek(const struct tap *t);
void tap_take(struct tap *t);

#endif
