/* SPDX-License-Identifier: BSD-3-Clause */
/* Which packets of a connection have arrived: a window of PSNs behind the cumulative one, as a
 * bitmap, and the SACK that says so (MRC 1.0; docs/mrc.md has the rules). Payload is placed by
 * whoever asks: here is decided whether it may be. One owner. */
#ifndef MRC_RCV_H
#define MRC_RCV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/mrc.h"

/* A window is stated in units of 128 packets, 1 to 255 (MPR). */
enum { MRC_MPR_UNIT = 128, MRC_MPR_MAX = 255 };

struct mrc_rcv {
	uint32_t cack;                  /* it and all before it have arrived */
	uint32_t high;                  /* the highest that has; cack if none beyond */
	uint32_t mpr;                   /* packets */
	uint32_t ooo;                   /* packets held beyond cack */
	uint32_t rcvd_units, rcvd_rest; /* bytes received, in units of 256 and what is left */
	uint32_t sacks;
	uint64_t *bits; /* by PSN modulo capacity, a power of two >= mpr */
	uint32_t mask;
};

/* Bytes of bitmap that a window of mpr units needs, a multiple of 8. */
size_t mrc_rcv_bytes(unsigned mpr_units);

/* first_psn is the first that the peer will send; bits are mrc_rcv_bytes(mpr_units) bytes, the
 * caller's, as long as the window lives. -EINVAL: mpr_units out of range. */
int mrc_rcv_init(struct mrc_rcv *r, uint32_t first_psn, unsigned mpr_units, void *bits);

enum mrc_arrival {
	MRC_NEW,       /* to be placed */
	MRC_DUPLICATE, /* of what is cumulatively there: not placed, SACK and ACK again */
	MRC_REPEATED,  /* of what is there beyond a gap: not placed, SACK again */
	MRC_BEYOND,    /* outside the window: not placed */
	MRC_MISFIT     /* not one that its message can have: only mrc_rsp_look says so */
};

/* A packet of psn whose UDP length + 40 is bytes; MRC_NEW marks it, and moves cack on where it
 * closed the gap. MRC_BEYOND counts no bytes. */
enum mrc_arrival mrc_rcv_packet(struct mrc_rcv *r, uint32_t psn, uint32_t bytes);

/* As mrc_rcv_packet would say, changing nothing. */
enum mrc_arrival mrc_rcv_look(const struct mrc_rcv *r, uint32_t psn);

/* Fills cack, bitmap and its base, counters and the trigger of a SACK for the packet of psn; other
 * fields are the caller's. The bitmap begins behind cack if all that has arrived fits; else it
 * holds psn, and every fourth time the lowest gap, so that the peer learns both ends. */
void mrc_rcv_sack(struct mrc_rcv *r, uint32_t psn, struct mrc_sack *sack);

#endif
