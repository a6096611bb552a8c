/* SPDX-License-Identifier: BSD-3-Clause */
/* IncEngine: what the switch does to a packet of a collective. Sans-I/O: parsed packets and the
 * time go in, emissions come out through a sink; the graph's nodes, the tests and the simulators
 * all call this same code. Module names are EPIC's (section 4, appendix B); the rules are
 * docs/inc-protocol.md, sections 1 to 3. */
#ifndef INC_ENGINE_H
#define INC_ENGINE_H

#include "dataplane/inc/drops.h"
#include "dataplane/inc/group.h"
#include "lib/wire/icrc.h"

/* Aggregation memory of one worker ("switch SRAM"). Ranges are handed out by arena.h. */
struct inc_arena {
	uint8_t *base;
	size_t size;
};

/* LookupTable: group slot -> block. The array is read by the worker and published by the control
 * plane with inc_table_set (release); a block taken out may be freed once the worker has quiesced.
 */
struct inc_table {
	struct inc_group *group[INC_GROUP_SLOTS];
	uint8_t gen[INC_GROUP_SLOTS]; /* generation the next group or ring of a slot gets */
	/* Worker that works with the slot's group, or its NetReduce ring. Set before the group is
	 * published; after that by that worker alone, between two turns. */
	uint8_t owner[INC_GROUP_SLOTS];
};

static inline unsigned inc_owner(const struct inc_table *t, unsigned slot)
{
	return __atomic_load_n(&t->owner[slot], __ATOMIC_ACQUIRE);
}

static inline void inc_set_owner(struct inc_table *t, unsigned slot, unsigned worker)
{
	__atomic_store_n(&t->owner[slot], (uint8_t)worker, __ATOMIC_RELEASE);
}

enum inc_class {
	INC_CLASS_CTRL,
	INC_CLASS_DATA, /* aggregated or replicated, as the route of its PSN says */
	INC_CLASS_ACK,
	INC_CLASS_NAK,
	INC_CLASS_RNR,
	INC_CLASS_FATAL,
	INC_CLASS_CNP,
};

struct inc_look {
	struct inc_group *group;
	uint8_t ep;
	uint8_t cls; /* enum inc_class */
};

/* LookupTable (1.5, checks 3 to 10, for a packet that passed 1): which group, endpoint and class.
 * INC_OK or the reason to drop it; nothing has changed. in_port: where it arrived. A packet for a
 * FAILED group passes: inc_packet answers it. */
enum inc_drop inc_lookup(const struct inc_table *table, const struct wire_pkt *pkt,
	uint16_t in_port, struct inc_look *look);

/* One packet to send, on each endpoint of out_mask. Payload of an acknowledgement or CNP is the
 * caller's, and to be copied; of others it is referenced, either in the packet
 * being processed or in the arena. There it stays as it is until every receiver has it: in Mode-II
 * by the window argument, in Mode-III because a slot is released when all its receivers have
 * acknowledged its PSN. What can still be queued then is a copy of a packet that was sent again
 * and turned out not to be needed: it goes to a receiver that has acknowledged this PSN, its ICRC
 * is that of the old payload, so it is discarded for the one or the other. */
struct inc_emit {
	uint64_t out_mask;
	const uint8_t *payload;
	uint32_t pay_crc; /* icrc_append(0, payload, pay_len) */
	uint16_t pay_len;
	uint8_t opcode;
	uint8_t syndrome;
	bool ackreq, mig, ce;
	bool again;       /* its endpoint was sent this before: Mode-III, SR in Mode-II */
	bool from_packet; /* payload points into the packet being processed, not into the arena */
	uint32_t psn, msn, imm;
	/* RDMA WRITE: the message's number in all operations, which says where a host gets it, and
	 * its bytes. */
	uint64_t msg;
	uint32_t msg_len;
	uint32_t pos_offset, pos_recv; /* SR: the packet's place */
};

struct inc_sink {
	void *arg;
	void (*emit)(void *arg, struct inc_group *group, const struct inc_emit *emit);
};

/* One packet that passed inc_lookup and the ICRC check, through the modules of its group's mode.
 * payload: pkt->pay_len bytes; pay_crc their CRC. Returns INC_DROP_DONE when the packet led to
 * emissions (or a completed nothing), CONSUMED, DUP_WAIT, or an error reason; the caller counts it.
 */
enum inc_drop inc_packet(struct inc_group *g, const struct inc_arena *arena,
	const struct inc_look *look, const struct wire_pkt *pkt, const uint8_t *payload,
	uint32_t pay_crc, uint64_t now, const struct inc_sink *sink);

/* Mode-III's timers: what is due is done; returns when to call again, UINT64_MAX if no timer runs.
 * A packet may have made that earlier: g->timer_ns says after inc_packet. */
uint64_t inc_tick(struct inc_group *g, const struct inc_arena *arena, uint64_t now,
	const struct inc_sink *sink);

/* TranslateHeader (1.6): writes the headers of one emission for endpoint ep of g into out (room for
 * WIRE_TEMPLATE_LEN bytes) and pad + ICRC into tail (room for WIRE_MAX_TRAILER). The payload goes
 * between them, untouched. Returns the header's length (always > 0); *tail_len the trailer's. */
int inc_translate_header(struct inc_group *g, unsigned ep, const struct inc_emit *emit,
	uint16_t ip_id, uint8_t *out, uint8_t *tail, unsigned *tail_len);

/* The same in two steps, for all endpoints of an emission: what does not depend on the endpoint is
 * worked out once. */
struct inc_translation {
	const struct inc_emit *emit;
	bool full; /* data of a whole MTU, by the endpoints' templates */
	uint16_t ip_id;
	struct wire_common common; /* full */
};
struct inc_translation inc_translate_emit(
	struct inc_group *g, const struct inc_emit *emit, uint16_t ip_id);
int inc_translate_to(struct inc_group *g, unsigned ep, const struct inc_translation *t,
	uint8_t *out, uint8_t *tail, unsigned *tail_len);

/* ICRC check of a packet that was looked up. Unless it is to be aggregated,
 * *pay_crc becomes the payload's own CRC, to be shared by every copy that leaves. To be called
 * right before inc_packet: what becomes of a packet depends on the operations known by then. */
bool inc_check_icrc(const struct inc_look *look, const uint8_t *frame, const struct wire_pkt *pkt,
	uint32_t *pay_crc);

/* A packet of this PSN comes soon: fetches its slot, and the start of what it is added to. */
void inc_prefetch(struct inc_group *g, const struct inc_arena *arena, uint32_t psn);

static inline void inc_table_set(struct inc_table *t, unsigned slot, struct inc_group *g)
{
	__atomic_store_n(&t->group[slot], g, __ATOMIC_RELEASE);
}

#endif
