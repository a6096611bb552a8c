/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: SENDs and WRITEs as the responders of RC and UC take them (message.c). */
#ifndef RNIC_MESSAGE_H
#define RNIC_MESSAGE_H

#include "lib/rnic/rnic.h"
#include "lib/wire/frame.h"

enum message_kind { MESSAGE_NONE, MESSAGE_SEND, MESSAGE_WRITE };

/* The message whose LAST is still to come. */
struct message {
	enum message_kind kind;
	uint32_t msn;      /* messages completed, 24 bits */
	uint64_t received; /* its bytes so far */
	uint64_t va;       /* RETH */
	uint32_t rkey, dmalen;
	uint64_t room;   /* bytes that it may have before its last packet */
	uint8_t *memory; /* in one piece, as translated at mr_changes; 0: not */
	uint64_t mr_changes;
};

/* What is wrong with a request, and who is told what. */
struct message_fault {
	unsigned drop;
	uint8_t nak; /* enum roce_nak */
	enum ibv_wc_status
		status; /* of the receive request; SUCCESS: it is flushed with the rest */
	enum ibv_event_type event; /* IBV_EVENT_QP_REQ_ERR or _ACCESS_ERR if status is SUCCESS */
};

/* Length and remote memory of a packet whose opcode is in its place. */
const struct message_fault *message_check(
	const struct rnic_qp *qp, const struct message *message, const struct wire_pkt *pkt);
bool message_needs_recv(const struct wire_pkt *pkt);
/* Its payload, unless that is NULL; a receive request was taken if the message needs one. */
const struct message_fault *message_place(struct rnic_qp *qp, struct message *message,
	const uint8_t *payload, const struct wire_pkt *pkt);
/* Where the payload of a packet goes that is in the middle of the message, neither its first nor
 * its last, `ahead` bytes behind its next; NULL unless the memory is known, and has not changed
 * since. The next one needs none of the others, but it is to be told when it is there. */
uint8_t *message_middle(const struct rnic_qp *qp, const struct message *message,
	const struct wire_pkt *pkt, uint64_t ahead);
static inline void message_placed(struct message *message, const struct wire_pkt *pkt)
{
	message->received += pkt->pay_len;
}
/* It was taken: the message goes on, or is complete. */
void message_advance(struct rnic_qp *qp, struct message *message, const struct wire_pkt *pkt);

#endif
