/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/stream/prr.h"

uint64_t prr_window(struct prr *p, uint64_t delivered, bool progress, uint64_t pipe,
	uint64_t ssthresh, uint32_t mss)
{
	uint64_t limit, send = 0;

	p->delivered += delivered;
	if (pipe > ssthresh) {
		limit = (p->delivered * ssthresh + p->flight - 1) / p->flight;
		send = limit > p->out ? limit - p->out : 0;
	} else {
		limit = p->delivered > p->out ? p->delivered - p->out : 0;
		if (progress)
			limit = (limit > delivered ? limit : delivered) + mss;
		send = ssthresh - pipe < limit ? ssthresh - pipe : limit;
	}
	/* The fast retransmit. */
	if (p->out == 0 && send < mss)
		send = mss;
	return pipe + send;
}
