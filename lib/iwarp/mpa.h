/* SPDX-License-Identifier: BSD-3-Clause */
/* How two ends of a TCP connection agree to speak iWARP: MPA's request and reply frames (RFC 5044,
 * 7.1), with the depths and the ready-to-receive message of RFC 6581. No I/O, clock or heap: bytes
 * in, bytes out; whoever calls bounds the wait. Errors are negative errno.
 *
 * We send revision 2, enhanced, peer to peer, with a WRITE of no bytes for ready-to-receive; take
 * revision 1 as well; ask for CRCs, and so have them; refuse peers that ask for markers. */
#ifndef IWARP_MPA_H
#define IWARP_MPA_H

#include "lib/wire/iwarp.h"

/* What the program says. */
struct mpa_offer {
	uint16_t ird, ord;    /* at most MPA_MAX_DEPTH */
	uint16_t private_len; /* at most MPA_MAX_PRIVATE - MPA_ENHANCED_LEN */
	const uint8_t *private_data;
};

struct mpa {
	bool initiator, done;
	struct mpa_offer offer;
	struct mpa_start peer; /* its frame, when mpa_rx has said so; refers to bytes */
	size_t have;
	uint8_t bytes[MPA_MAX_START];
};

/* What is agreed: for iwarp_attach. */
struct mpa_agreed {
	uint16_t ird, ord;
	bool rtr;   /* the initiator: send it; the responder: wait for it */
	bool waits; /* send nothing before the peer's first frame */
};

/* The initiator. Its request frame at out: bytes written, -ENOSPC, -EINVAL. offer->private_data is
 * not looked at later. */
int mpa_connect(struct mpa *mpa, const struct mpa_offer *offer, uint8_t *out, size_t cap);
/* The responder, before it has heard anything. */
void mpa_listen(struct mpa *mpa);
/* Bytes of the stream: *used of them belong to the frame. 0: more are needed. 1: the peer's frame
 * is in mpa->peer; the initiator may go on (mpa_agree), the responder has to answer. -ECONNREFUSED:
 * the peer rejects, its private data is in mpa->peer. -EPROTO: no such frame, or one that asks for
 * what there is not (*fault says how a Terminate names it, with which an initiator answers unless
 * it is START). After an error, and after 1, not to be
 * called again. */
int mpa_rx(
	struct mpa *mpa, const uint8_t *bytes, size_t len, size_t *used, enum iwarp_fault *fault);
/* The responder's answer, in the revision of the request. */
int mpa_accept(struct mpa *mpa, const struct mpa_offer *offer, uint8_t *out, size_t cap);
int mpa_reject(
	struct mpa *mpa, const void *private_data, uint16_t private_len, uint8_t *out, size_t cap);
/* After both frames. */
struct mpa_agreed mpa_agree(const struct mpa *mpa);

#endif
