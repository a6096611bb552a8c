/* SPDX-License-Identifier: BSD-3-Clause */
/* The window of RFC 5681, halved by a loss; and what all ways have in common. */
#include <string.h>

#include "lib/stream/congestion.h"

static const struct cc_ops *const ways[STREAM_N_CCS] = {
	[STREAM_CUBIC] = &cc_cubic,
	[STREAM_NEWRENO] = &cc_newreno,
	[STREAM_DELAY] = &cc_delay,
	[STREAM_BBR] = &cc_bbr,
};

int stream_cc_by_name(const char *name)
{
	for (int i = 0; i < STREAM_N_CCS; i++)
		if (strcmp(name, ways[i]->name) == 0)
			return i;
	return -1;
}

const char *stream_cc_name(enum stream_cc cc)
{
	return cc < STREAM_N_CCS ? ways[cc]->name : "unknown";
}

void cc_init(struct congestion *cc, const struct stream_config *config, uint32_t mss)
{
	const uint64_t least = 2 * (uint64_t)mss, most = least > 14600 ? least : 14600;

	*cc = (struct congestion){.ops = ways[config->cc],
		.mss = mss,
		.tolerance = config->loss_tolerance,
		.delay_target = config->delay_target,
		.ssthresh = UINT64_MAX};
	/* RFC 6928 */
	cc->cwnd = 10 * (uint64_t)mss < most ? 10 * (uint64_t)mss : most;
}

uint64_t cc_slow_start(struct congestion *cc, uint64_t delivered)
{
	uint64_t room;

	if (cc->cwnd >= cc->ssthresh)
		return delivered;
	room = cc->ssthresh - cc->cwnd;
	if (delivered < room)
		room = delivered;
	cc->cwnd += room;
	return delivered - room;
}

static void acked(struct congestion *cc, const struct cc_ack *ack)
{
	const uint64_t left = ack->limited ? cc_slow_start(cc, ack->delivered) : 0;

	if (left > 0) {
		const uint64_t step = cc->mss * (left < cc->cwnd ? left : cc->cwnd) / cc->cwnd;

		cc->cwnd += step > 0 ? step : 1;
	}
}

static void lost(struct congestion *cc, uint64_t flight, bool timeout, uint64_t now)
{
	(void)timeout;
	(void)now;
	cc->ssthresh = flight / 2 > cc_least(cc) ? flight / 2 : cc_least(cc);
}

static void undo(struct congestion *cc)
{
	(void)cc;
}

const struct cc_ops cc_newreno = {"newreno", false, acked, lost, undo};
