/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: what a transport is to the device. */
#ifndef RNIC_TRANSPORT_H
#define RNIC_TRANSPORT_H

#include "lib/rnic/rnic.h"

/* A transport. Called with the QP found and in a state of the table in io.c. */
struct transport {
	enum ibv_qp_type type;
	bool connected;  /* one peer, whose address the QP has */
	uint8_t opcodes; /* enum roce_transport */
	/* A packet with right ICRC from the QP's peer. 0 if it took effect, else the drop reason.
	 */
	unsigned (*rx)(
		struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now);
	/* The next request packet; false if there is none or none may be sent: the QP then leaves
	 * the scheduler until qp_ready. */
	bool (*tx)(struct rnic_qp *qp, struct rnic_frame *frame, uint64_t now);
	/* The answer that qp_answer announced; false: there is none any more. */
	bool (*tx_answer)(struct rnic_qp *qp, struct rnic_frame *frame);
	void (*timer)(struct rnic_qp *qp);
	/* State changes: to RTR and RTS (attributes are in place), to SQD and back, to RESET. */
	void (*start_recv)(struct rnic_qp *qp);
	void (*start_send)(struct rnic_qp *qp);
	void (*drain)(struct rnic_qp *qp, bool on);
	void (*reset)(struct rnic_qp *qp);
	int (*skip)(struct rnic_qp *qp, enum rnic_dir dir, uint32_t from, uint32_t count);
};

extern const struct transport rc_transport, selective_transport, uc_transport, ud_transport;

#endif
