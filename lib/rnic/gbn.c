/* SPDX-License-Identifier: BSD-3-Clause */
/* Loss recovery of RC as IBTA has it: go-back-N. What is behind a missing packet is not kept; a NAK
 * names the missing one, and all from there on is sent again (vol. 1, 9.7.5.2.8). */
#include "lib/rnic/rc.h"

/* A responder says NAK once for a gap, so another one is a copy of it, made by the network: were it
 * a try, copies would use up the tries within a round trip. Packets behind one that met RNR will be
 * sent again anyway. */
static unsigned on_nak(struct rnic_qp *qp, const uint8_t *sack, const struct wire_pkt *pkt,
	uint64_t missing, bool progress, uint64_t now)
{
	struct rc_requester *req = &rc_of(qp)->req;

	(void)sack, (void)pkt, (void)missing, (void)now;
	if (req->rnr_wait || req->nak_done)
		return 0;
	req->nak_done = true;
	if (progress)
		rc_go_back(qp);
	else
		rc_try_again(qp);
	return 0;
}

const struct rc_recovery gbn_recovery = {.reach = UINT64_MAX, .on_nak = on_nak};
