/* SPDX-License-Identifier: BSD-3-Clause */
/* The modules of EPIC (section 4, appendix B) that modes are composed of, and the context of one
 * packet that they share. Internal to the engine. */
#ifndef INC_MODULES_H
#define INC_MODULES_H

#include "dataplane/inc/engine.h"

/* One packet on its way through the modules. */
struct inc_ctx {
	struct inc_group *g;
	const struct inc_arena *arena;
	const struct wire_pkt *pkt;
	const uint8_t *payload;
	const struct inc_sink *sink;
	uint64_t now;
	struct inc_desc *desc; /* operation of the packet's PSN, once found */
	uint32_t pay_crc;
	uint8_t ep, cls;
	bool ctrl;
};

static inline void inc_count(struct inc_group *g, enum inc_counter c)
{
	g->count[c]++;
}

/* ---- control.c: operations ---- */

/* The descriptor whose control or data PSNs cover psn, or NULL. */
struct inc_desc *inc_desc_find(struct inc_group *g, uint32_t psn);

/* Takes a control packet: compares it with a known descriptor or installs a new one, and notes that
 * this endpoint has sent it. INC_OK with c->desc set; INC_DROP_PSN_STALE if the operation is past;
 * else the reason to drop it. A disagreement fails the group (2.2, rule 2). */
enum inc_drop inc_control(struct inc_ctx *c);

/* What 2.4 says of the packet at psn of an operation: opcode and payload length. */
struct inc_position {
	uint8_t opcode;
	bool ackreq;
	uint16_t len;
};
struct inc_position inc_position_of(
	const struct inc_group *g, const struct inc_desc *d, uint32_t psn);

/* ---- aggregate_data.c: slots ---- */

enum inc_dup { INC_FRESH, INC_DUP, INC_STALE };

/* CheckDuplicate (3.1): whose slot is this? A newer PSN claims it (RecycleBuffer). */
enum inc_dup inc_check_duplicate(
	struct inc_group *g, struct inc_slot *slot, uint32_t psn, unsigned ep);

/* AggregateData: adds this endpoint's contribution. */
void inc_aggregate_data(struct inc_ctx *c, struct inc_slot *slot);

/* The slot's last contribution is in: makes the result and its CRC. */
void inc_complete(struct inc_ctx *c, struct inc_slot *slot);

uint8_t *inc_payload_at(const struct inc_group *g, const struct inc_arena *arena, uint32_t psn);

/* ---- receive_ack.c ---- */

/* ReceiveAck of an AllReduce: acknowledgements of hosts are reflected (3.5). */
enum inc_drop inc_reflect_ack(struct inc_ctx *c);
enum inc_drop inc_reflect_cnp(struct inc_ctx *c);

/* SendAck: an acknowledgement of the switch's own to endpoint ep. */
void inc_send_ack(struct inc_ctx *c, unsigned ep, uint8_t syndrome, uint32_t psn);

#endif
