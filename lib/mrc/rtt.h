/* SPDX-License-Identifier: BSD-3-Clause */
/* How long round trips take, as TCP has it (RFC 6298). No clock: samples are nanoseconds. */
#ifndef MRC_RTT_H
#define MRC_RTT_H

#include <stdint.h>

enum { MRC_RTT_SPAN = 64 };

struct mrc_rtt {
	uint64_t ns;       /* smoothed; 0: there was no sample */
	uint64_t off_ns;   /* how far samples are from it, smoothed */
	uint64_t least_ns; /* the shortest of the last MRC_RTT_SPAN or more, at most twice that */
	uint64_t young_ns; /* of the youngest of these */
	uint32_t young;    /* how many are the youngest */
};

/* The shortest is forgotten after a while: paths become longer, too. */
static inline void mrc_rtt_shortest(struct mrc_rtt *r, uint64_t ns)
{
	r->young_ns = r->young == 0 || ns < r->young_ns ? ns : r->young_ns;
	r->least_ns = ns < r->least_ns ? ns : r->least_ns;
	if (++r->young == MRC_RTT_SPAN) {
		r->least_ns = r->young_ns;
		r->young = 0;
	}
}

static inline void mrc_rtt_sample(struct mrc_rtt *r, uint64_t ns)
{
	const uint64_t off = ns > r->ns ? ns - r->ns : r->ns - ns;

	if (r->ns == 0) {
		*r = (struct mrc_rtt){ns, ns / 2, ns, ns, 1};
		return;
	}
	mrc_rtt_shortest(r, ns);
	r->off_ns = (3 * r->off_ns + off) / 4;
	r->ns = (7 * r->ns + ns) / 8;
}

/* Almost none takes longer: however regular they seem, an eighth is allowed for. */
static inline uint64_t mrc_rtt_most(const struct mrc_rtt *r)
{
	return r->ns + (4 * r->off_ns > r->ns / 8 ? 4 * r->off_ns : r->ns / 8);
}

#endif
