/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures of the switch without packets. */
#include <errno.h>
#include <stdio.h>

#include "tests/unit/ctl/fake_switch.h"

int sw_capture_start(
	struct sw *sw, const struct sw_capture_spec *spec, uint32_t *id, char err[SW_ERR_LEN])
{
	if (spec->ring_bytes == 129 << 10) {
		snprintf(err, SW_ERR_LEN, "ring_kb: 129 is no power of two in 128..16384");
		return -EINVAL;
	}
	for (unsigned i = 0; i < SW_MAX_CAPTURES; i++) {
		if (sw->capture[i])
			continue;
		*id = sw->capture[i] = ++sw->last_capture;
		sw->capture_spec = *spec;
		sw->capture_spec.filter = NULL;
		return 0;
	}
	return -EBUSY;
}

/* 1, 2, 3 ... with a reason, with an outcome, sent. */
int sw_capture_read(
	struct sw *sw, uint32_t id, unsigned n, size_t bytes, sw_captured_fn fn, void *arg)
{
	unsigned got = 0;

	(void)id, (void)bytes;
	for (; got < n && sw->capture_given < sw->capture_packets; got++) {
		const unsigned k = sw->capture_given++;
		const uint8_t data[60] = {(uint8_t)k, 1, 2};

		fn(arg, &(struct sw_captured){.ns = 1000 + k,
				.len = 100,
				.cap = sizeof(data),
				.data = data,
				.out = k % 3 == 2,
				.end = k % 3 == 2 ? NULL
				       : k % 3    ? "inc_done"
						  : "ip_ttl",
				.lost = k % 3 == 0});
	}
	return (int)got;
}

int sw_capture_stop(struct sw *sw, uint32_t id)
{
	for (unsigned i = 0; i < SW_MAX_CAPTURES; i++)
		if (sw->capture[i] == id) {
			if (sw->capture_sticks)
				return -ETIMEDOUT;
			sw->capture[i] = 0;
			return 0;
		}
	return -ENOENT;
}

int sw_capture_get(struct sw *sw, unsigned i, struct sw_capture_info *info)
{
	if (i >= SW_MAX_CAPTURES)
		return -ENOENT;
	*info = (struct sw_capture_info){.id = sw->capture[i],
		.port = "p0",
		.in = sw->capture_spec.in,
		.out = sw->capture_spec.out,
		.snaplen = sw->capture_spec.snaplen,
		.count = {.captured = sw->capture_packets, .dropped = 7, .filtered = 9}};
	return 0;
}
