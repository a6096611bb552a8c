/* SPDX-License-Identifier: BSD-3-Clause */
/* The placement engine of ZeroNIC (OSDI '24), 3.2 and 3.5: a table of registered memory, a table of
 * flows, and for each flow lists of memory segments (MS), one for what it receives and one for what
 * it sends. The data path finds an arriving packet's flow, decides, and writes its payload to where
 * the program wants it; the control path, which runs the transport, sees the header and the
 * verdict.
 *
 * Two threads at most: one control path, which calls what changes the engine, and one data path,
 * which calls place_find, place_packet, place_write, place_read, place_sent and
 * place_quiesce. Nothing waits
 * and nothing is allocated: all state is one block that the caller brings. What the control path
 * takes away, the data path may still be using, until it has been quiet once: this is a grace
 * period.
 *
 * What a transport has to know: a place may be written again and again until the cursor is past it.
 * So a program may be told of its bytes only when (1) the cursor is past them and (2) a grace
 * period that began after place_cursor has passed. Errors are negative errno. */
#ifndef PLACE_PLACE_H
#define PLACE_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/place/decide.h"
#include "lib/place/drops.h"
#include "lib/wire/ip.h"

struct place;

enum {
	PLACE_MAX_FLOWS = 65535,
	PLACE_MAX_MRS = 16383,
	PLACE_CHUNK_MS = 31,   /* segments in a chunk, of 256 bytes */
	PLACE_MS_MAX = 131072, /* bytes of one segment; longer buffers take several */
};

struct place_config {
	uint32_t max_flows, max_mrs;
	uint32_t chunks;    /* in the store that all lists draw from */
	uint16_t committed; /* chunks that a flow is sure to get, for both lists together */
	uint16_t peak;      /* chunks that it may have if the store has them */
	uint64_t seed;      /* of the flow table's hash: random, kept from peers */
};

/* Bytes of the block, 0 if the configuration is impossible. */
size_t place_size(const struct place_config *config);
/* In a block of that size, aligned to 64 bytes; the caller frees the block, and nothing else. 0,
 * -EINVAL. */
int place_init(const struct place_config *config, void *block, struct place **place);

/* The parts of it, for those who count. */
struct place_bytes {
	size_t ms_store, flow_table, mr_table, other;
};
void place_bytes(const struct place_config *config, struct place_bytes *bytes);

/* ---- grace periods ---- */

/* Data path: between two bursts; it holds nothing that the engine gave it before. */
void place_quiesce(struct place *p);
/* Control path: a ticket, and whether the data path has been quiet since. */
uint64_t place_grace(struct place *p);
bool place_passed(const struct place *p, uint64_t ticket);
/* Control path: makes what has had its grace available again. Also done when something runs out. */
void place_reclaim(struct place *p);

/* ---- memory regions (control path) ---- */

/* len: 1 .. 2^32 bytes. *mr is a handle with a generation: one of a region that is gone is refused,
 * until the generation (2^18) has come round. -ENOSPC: table is full. -EINVAL. */
int place_mr_add(struct place *p, void *addr, uint64_t len, bool writable, uint32_t *mr);
/* Nothing more is placed there once a grace period has passed: the caller may then give the memory
 * back. Segments that still name it make packets end as PLACE_DROP_MEMORY. -EINVAL: no such. */
int place_mr_remove(struct place *p, uint32_t mr);

/* ---- flows (control path) ---- */

struct place_tuple {
	struct wire_ip local, remote;
	uint16_t local_port, remote_port; /* host order */
	uint8_t proto;
	uint8_t zero[3];
};

/* Positions are sequence numbers that do not wrap: the low 32 bits are those on the wire. */
struct place_flow_init {
	struct place_tuple tuple;
	uint64_t rx, tx;  /* positions of the first bytes */
	uint64_t limit;   /* nothing is taken from here on: the window's right edge */
	bool messages;    /* a posted buffer holds a message, however short; else a stream */
	uint32_t message; /* number of the first one */
};

/* *flow is a handle, never 0. -EEXIST: the tuple has one. -ENOSPC: the table is full, or the store
 * cannot commit what a flow is to be sure of: such a flow goes without (place_find returns 0). */
int place_flow_add(struct place *p, const struct place_flow_init *init, uint32_t *flow);
/* Takes its lists along. -EINVAL: no such. */
int place_flow_remove(struct place *p, uint32_t flow);
unsigned place_flows(const struct place *p);

enum place_dir { PLACE_RX, PLACE_TX };

/* A buffer at the end of one of its lists, all of it or nothing. Receiving needs writable memory.
 * In a flow of messages it is the buffer of the next message, of less than 2^31 bytes. -EINVAL: no
 * such flow or region, bounds, length 0. -ENOBUFS: no segments left, try again when some have been
 * retired and had their grace. */
int place_post(struct place *p, uint32_t flow, enum place_dir dir, uint32_t mr, uint64_t offset,
	uint64_t len);
/* What is posted for receiving in a stream from position on is posted no more, not even a part of a
 * segment; other buffers can be posted for it. No packet may be under way meanwhile: whoever calls
 * it runs the data path as well. -EINVAL: a flow of messages; retired, or never posted. */
int place_cut(struct place *p, uint32_t flow, uint64_t position);
/* End of what has been posted (streams: a position). */
uint64_t place_posted(const struct place *p, uint32_t flow, enum place_dir dir);
/* Segments of a flow that are posted and not retired. */
unsigned place_segments(const struct place *p, uint32_t flow, enum place_dir dir);

/* Bytes before cursor have been taken in order; none from limit on is wanted. Both never go back.
 * Nothing is retired by it. -EINVAL. */
int place_cursor(struct place *p, uint32_t flow, uint64_t cursor, uint64_t limit);
/* Segments of a stream that end at or before this position are done with: of what is received, the
 * program has its bytes; of what is sent, the peer has. -EINVAL. */
int place_retire(struct place *p, uint32_t flow, enum place_dir dir, uint64_t position);
/* Of what is received in messages: those with lower numbers are done with, full or not. -EINVAL. */
int place_retire_messages(struct place *p, uint32_t flow, uint32_t message);

/* ---- packets (data path) ---- */

/* The flow's handle, or 0. */
uint32_t place_find(const struct place *p, const struct place_tuple *tuple);

/* Payload of a packet whose integrity has been verified. Nothing else about it need be true. */
struct place_segment {
	const uint8_t *payload;
	uint32_t len; /* > 0 */
	uint32_t seq;
	uint32_t message,
		message_start; /* flows of messages: its number, and seq of its first byte */
};

struct place_result {
	enum place_verdict verdict; /* PLACE_ACCEPT, PLACE_DROP or PLACE_DEFER */
	enum place_drop drop;       /* of PLACE_DROP, else PLACE_OK */
	uint32_t skip;              /* bytes at its start that were taken before */
	int64_t at;                 /* distance of seq from the cursor */
	uint64_t position;          /* of seq */
};

/* Figure 8: (a) next in order, (b) old, (c) partly old, (d) behind a hole, (e) nothing posted for
 * all of it (PLACE_DEFER, nothing written). */
struct place_result place_packet(struct place *p, uint32_t flow, const struct place_segment *seg);

/* The copying path, for what was deferred and has been posted since: wherever the cursor is.
 * -EINVAL no such flow; -ENOENT: not posted, or retired; -EFAULT: its memory is gone. Nothing
 * written then.
 */
int place_write(
	struct place *p, uint32_t flow, uint64_t position, const uint8_t *payload, uint32_t len);
/* What is to be sent, from the program's memory to a frame. -ESTALE: retired. Else as place_write.
 */
int place_read(struct place *p, uint32_t flow, uint64_t position, uint8_t *payload, uint32_t len);

/* What a peer may acknowledge: from what it has acknowledged to the end of what is posted, *tail. A
 * transport that carries acknowledgements in data packets can doubt one before it is placed. */
int place_sent(const struct place *p, uint32_t flow, uint64_t *acked, uint64_t *tail);

struct place_counters {
	uint64_t packets, bytes;  /* placed; bytes without those skipped */
	uint64_t ahead, overlaps; /* of the packets: cases (d) and (c) */
	uint64_t deferred;
	uint64_t copied; /* bytes by place_write */
	uint64_t drops[PLACE_N_DROPS];
};
/* As of about now; any thread. */
const struct place_counters *place_counters(const struct place *p);
const char *place_drop_name(enum place_drop drop);

#endif
