/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/iwarp only: what is kept behind a queue pair. */
#ifndef IWARP_PRIV_H
#define IWARP_PRIV_H

#include "lib/iwarp/iwarp.h"
#include "lib/rnic/cq.h"
#include "lib/rnic/transport.h"

enum { NO_TERMINATE = 15 };

/* A READ of the peer's that is not answered in full. */
struct answer {
	struct rdmap_read read;
	uint32_t sent;
};

struct iwarp {
	struct iwarp_attach set;
	bool attached, dead; /* dead: nothing is taken any more */
	bool rtr_due;

	/* Requests. Those from the ring's tail to snd have left, and wait for READs before them. */
	uint32_t snd, sent; /* the one that leaves, and its bytes that have */
	bool imm_due;       /* of its WRITE all have */
	uint32_t next_msn[DDP_N_QUEUES];
	bool middle, answers_first; /* inside a message; whose turn is next */
	/* READs that are not answered. Their sinks have numbers for keys: a peer learns no key of
	 * the program's memory by them. */
	uint32_t reads, read_stag, read_got;

	struct answer answer[RNIC_MAX_RD_ATOMIC];
	uint32_t answer_head, answer_tail;

	uint32_t msn[DDP_N_QUEUES]; /* expected */
	bool in_send;
	uint8_t send_opcode;
	uint64_t got; /* bytes of the SEND under way */
	bool in_write;
	uint64_t wrote; /* bytes of the WRITE under way, or of the one just before */

	enum iwarp_fault fault;
	struct rdmap_terminate terminated;
	bool terminate_due;
	uint16_t terminate_len;
	uint8_t terminate[RDMAP_MAX_TERMINATE];

	uint64_t fpdu_tx, fpdu_rx, terminate_tx, terminate_rx, ignored;
	uint64_t faults[IWARP_N_FAULTS];

	uint32_t have; /* bytes of part; last, for it is not cleared */
	uint8_t part[MPA_MAX_FPDU];
};

static inline struct iwarp *iwarp_of(const struct rnic_qp *qp)
{
	return transport_state(qp);
}

static inline bool iwarp_rx_open(const struct rnic_qp *qp)
{
	return iwarp_of(qp)->attached && !iwarp_of(qp)->dead && qp_state(qp) == IBV_QPS_RTS;
}

static inline void iwarp_wake(const struct rnic_qp *qp)
{
	if (iwarp_of(qp)->attached)
		iwarp_of(qp)->set.ready(iwarp_of(qp)->set.arg);
}

/* Behind completions, where nothing is in the middle of anything: queue pairs fail whose queue has
 * overrun. The device does it in its own calls, of which there may be none for long. */
static inline void iwarp_settle_queues(const struct rnic_qp *qp)
{
	if (cq_unsettled(qp->rnic))
		cq_settle(qp->rnic);
}

/* Ends the queue pair for something that is wrong; ulpdu: with which the peer caused it, or NULL.
 */
void iwarp_fail(struct rnic_qp *qp, enum iwarp_fault fault, const uint8_t *ulpdu, size_t ulpdu_len);
/* Completes what has left and waits for no READ. */
void iwarp_settle(struct rnic_qp *qp);
/* A READ of the peer's: may it, all of it? */
enum iwarp_fault iwarp_check_source(const struct rnic_qp *qp, const struct rdmap_read *read);

#endif
