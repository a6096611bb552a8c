/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/stream/rate.h"

void rate_sent(struct rate *r, struct seg *seg, bool idle, uint64_t now)
{
	if (idle) {
		r->first_sent = r->delivered_at = now;
		r->began = true;
	}
	seg->rate = (struct seg_rate){.delivered = r->delivered,
		.delivered_at = r->delivered_at,
		.first_sent = r->first_sent,
		.limited = r->limited_to != 0};
}

void rate_delivered(struct rate *r, struct rate_sample *sample, const struct seg *seg, uint64_t now)
{
	r->delivered += seg->to - seg->from;
	r->delivered_at = now;
	if (sample->any && seg->at < sample->at)
		return;
	*sample = (struct rate_sample){.any = true,
		.at = seg->at,
		.delivered = seg->rate.delivered,
		.delivered_at = seg->rate.delivered_at,
		.sending = seg->at - seg->rate.first_sent,
		.limited = seg->rate.limited};
	r->first_sent = seg->at;
}

void rate_finish(struct rate *r, struct rate_sample *sample, uint64_t min_rtt)
{
	uint64_t took;

	if (r->limited_to != 0 && r->delivered > r->limited_to)
		r->limited_to = 0;
	if (!sample->any)
		return;
	sample->began = r->began;
	r->began = false;
	took = r->delivered_at - sample->delivered_at;
	if (took < sample->sending)
		took = sample->sending;
	if (took > 0 && took >= min_rtt)
		sample->bytes_per_s =
			(uint64_t)((double)(r->delivered - sample->delivered) * 1e9 / (double)took);
}

void rate_limited(struct rate *r, uint64_t in_flight)
{
	r->limited_to = r->delivered + in_flight;
	if (r->limited_to == 0)
		r->limited_to = 1;
}
