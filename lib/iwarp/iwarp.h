/* SPDX-License-Identifier: BSD-3-Clause */
/* iWARP (RFC 5040, 5041, 5044) as a transport of the software RNIC: requests of a queue pair become
 * the bytes of a TCP connection, and the reverse. No TCP here: whoever has a byte stream gives and
 * takes its bytes in order (link.h does that for lib/stream). No I/O, clock or heap; time plays no
 * part. All of it belongs to the owner thread of the device.
 *
 * Of a queue pair (IBV_QPT_RC, rnic_qp_init.transport = &iwarp_transport): RESET, INIT, then a
 * stream whose ends have agreed by MPA (mpa.h) is attached, then RTS; there is no RTR, and no
 * address. Taken are SEND (solicited, with Invalidate), WRITE (with Immediate: RFC 7306), READ into
 * lists, binding and local invalidation. SENDs and WRITEs complete when their bytes are in the
 * stream's memory: the program's may be used again; that they arrived is for a message of the peer
 * to say. A READ completes when it is answered. A completion queue that overruns ends its queue
 * pairs before the call returns in which it does, and their peers are told. */
#ifndef IWARP_IWARP_H
#define IWARP_IWARP_H

#include "lib/rnic/rnic.h"
#include "lib/wire/iwarp.h"

extern const struct transport_ops iwarp_transport;

enum { IWARP_MIN_MULPDU = 128 };

struct iwarp_attach {
	uint16_t mulpdu;   /* largest ULPDU that is sent; IWARP_MIN_MULPDU at least */
	uint16_t ird, ord; /* READs of the peer, own ones outstanding; at most RNIC_MAX_RD_ATOMIC */
	bool waits;        /* sends nothing before the peer's first frame (MPA's responder) */
	bool rtr;          /* sends a WRITE of no bytes first (MPA's initiator, if agreed) */
	/* The ends have not agreed yet: the queue pair is nobody else's, and does not go to RTS
	 * until it is attached again, with the same arg. */
	bool pending;
	/* There may be bytes, or the stream is to end: iwarp_tx, iwarp_over. Called from inside the
	 * device; must not call back. */
	void (*ready)(void *arg);
	/* The queue pair is reset or destroyed: no more calls with it. */
	void (*gone)(void *arg);
	void *arg;
};

/* In INIT. -EINVAL: state, transport, ranges; -EBUSY: it has a stream. */
int iwarp_attach(struct rnic_qp *qp, const struct iwarp_attach *attach);
/* It has none any more; requests are flushed if it is in RTS. */
void iwarp_detach(struct rnic_qp *qp);

/* Bytes of the stream, in order, however cut; all are taken. In RTS or later. What is wrong puts
 * the queue pair into ERR, is counted, and a Terminate message says it to the peer; what comes
 * after is ignored. */
void iwarp_rx(struct rnic_qp *qp, const uint8_t *bytes, size_t len);
/* Whole frames, as many as fit; their bytes, 0: there is nothing to be sent now, or cap is less
 * than the next frame has (MPA_MAX_FPDU always does). */
size_t iwarp_tx(struct rnic_qp *qp, uint8_t *out, size_t cap);
/* Nothing more comes from iwarp_tx, and nothing more is wanted: the stream is to be closed. */
bool iwarp_over(const struct rnic_qp *qp);
/* It is in ERR: at most a Terminate message is to be sent. */
bool iwarp_failed(const struct rnic_qp *qp);
/* It is silent until the peer's first frame has come (iwarp_attach.waits). */
bool iwarp_waits(const struct rnic_qp *qp);
/* The stream has ended. err: 0, the peer closed it in order; negative errno. */
void iwarp_lost(struct rnic_qp *qp, int err);

/* The frame of a Terminate message for a stream whose ends have not agreed (IWARP_FAULT_IRD, _RTR);
 * its length, 0: cap is too small. */
size_t iwarp_refusal(uint8_t *out, size_t cap, enum iwarp_fault fault);

/* Why it ended, as far as a Terminate message is concerned: of our own, IWARP_OK: none; of the
 * peer's, layer 15: none. */
enum iwarp_fault iwarp_fault(const struct rnic_qp *qp);
struct rdmap_terminate iwarp_terminated(const struct rnic_qp *qp);

#endif
