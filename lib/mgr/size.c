/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mgr/size.h"

#include <errno.h>
#include <math.h>

#include "lib/mgr/graph.h"

enum { MIN_MTU = 256, MAX_MTU = 4096, MAX_HOP_NS = 1000000000, BITS = 8 };
static const uint64_t NS_PER_S = 1000000000, MAX_BPS = 100000000000000;

int mgr_shape_check(const struct mgr_shape *s)
{
	if (s->mtu < MIN_MTU || s->mtu > MAX_MTU || (s->mtu & (s->mtu - 1)) ||
		s->m > MGR_MAX_WINDOW || s->hop_ns == 0 || s->hop_ns > MAX_HOP_NS ||
		s->loss_ppm > MGR_PPM)
		return -EINVAL;
	return 0;
}

static unsigned packets_per_message(const struct mgr_shape *s)
{
	return s->m ? s->m : MGR_DEFAULT_M;
}

/* Wide enough for any product of what mgr_shape_check lets pass. */
typedef unsigned __int128 wide;

/* Packets that are on their way at this rate for so many hops, rounded up. */
static uint64_t in_flight(const struct mgr_shape *s, uint64_t bps, unsigned hops)
{
	wide packet = (wide)BITS * s->mtu * NS_PER_S;

	return (uint64_t)(((wide)bps * hops * s->hop_ns + packet - 1) / packet);
}

/* The highest rate at which no more than so many are. */
static uint64_t rate_of(const struct mgr_shape *s, uint64_t packets, unsigned hops)
{
	return (uint64_t)((wide)packets * s->mtu * BITS * NS_PER_S / ((wide)hops * s->hop_ns));
}

static uint64_t power_above(uint64_t n)
{
	uint64_t p = 2;

	while (p < n)
		p *= 2;
	return p;
}

/* Messages of a window: the path there and back; in Mode-I each hop stores one more. */
static uint64_t window(const struct mgr_shape *s, unsigned mode, unsigned height, uint64_t bps)
{
	unsigned m = packets_per_message(s);
	uint64_t w = (in_flight(s, bps, 2 * height) + m - 1) / m;

	if (mode == MGR_MODE_I)
		w += 2 * height;
	return w * m >= 2 ? w : 2; /* Mode-II needs two packets */
}

int mgr_size_for(const struct mgr_shape *s, unsigned mode, unsigned height, uint64_t bps,
	struct mgr_size *out)
{
	unsigned m = packets_per_message(s);
	uint64_t w, slots;

	if (bps > MAX_BPS)
		return -ERANGE;
	w = window(s, mode, height, bps);
	slots = power_above(mode == MGR_MODE_III ? 2 * in_flight(s, bps, 2) : 2 * w * m);
	if (w * m > MGR_MAX_WINDOW || slots > MGR_MAX_SLOTS)
		return -ERANGE;
	*out = (struct mgr_size){mode, m, (unsigned)w, mode == MGR_MODE_I ? 0 : (unsigned)slots};
	return 0;
}

/* Payloads of a slot, of one switch's rings together. */
static unsigned copies(const struct mgr_shape *s, unsigned mode, unsigned n_ep)
{
	return (s->reproducible ? n_ep : s->half ? 2 : 1) + (mode == MGR_MODE_III ? 1 : 0);
}

uint64_t mgr_size_bytes(const struct mgr_shape *s, const struct mgr_size *z, unsigned n_ep)
{
	if (z->mode == MGR_MODE_I)
		return ((uint64_t)(z->w + 2) * n_ep + 2 * z->w) * z->m * s->mtu;
	return (uint64_t)copies(s, z->mode, n_ep) * z->slots * s->mtu;
}

static uint64_t mode1_rate(
	const struct mgr_shape *s, unsigned height, uint64_t bytes, unsigned n_ep)
{
	unsigned m = packets_per_message(s);
	uint64_t messages = bytes / ((uint64_t)m * s->mtu), most = MGR_MAX_WINDOW / m, w;

	if (messages < 2 * n_ep)
		return 0;
	w = (messages - 2 * n_ep) / (n_ep + 2);
	w = w < most ? w : most;
	return w > 2 * height ? rate_of(s, (w - 2 * height) * m, 2 * height) : 0;
}

uint64_t mgr_size_rate(
	const struct mgr_shape *s, unsigned mode, unsigned height, uint64_t bytes, unsigned n_ep)
{
	uint64_t room = bytes / ((uint64_t)copies(s, mode, n_ep) * s->mtu), most, m;
	uint64_t slots = mode == MGR_MODE_II ? 4 : 2; /* at least */

	if (mode == MGR_MODE_I)
		return mode1_rate(s, height, bytes, n_ep);
	if (room < slots)
		return 0;
	while (2 * slots <= room && slots < MGR_MAX_SLOTS)
		slots *= 2;
	m = packets_per_message(s);
	most = rate_of(s, MGR_MAX_WINDOW / m * m, 2 * height);
	if (mode == MGR_MODE_III) {
		uint64_t hop = rate_of(s, slots / 2, 2);

		return hop < most ? hop : most;
	}
	return rate_of(s, slots / 2 / m * m, 2 * height);
}

uint64_t mgr_size_goodput(
	const struct mgr_shape *s, unsigned mode, unsigned height, unsigned children, uint64_t bps)
{
	double arrives = 1.0 - (double)s->loss_ppm / MGR_PPM;
	unsigned times = 2 * height * (mode == MGR_MODE_II ? children : 1);

	return (uint64_t)((double)bps * pow(arrives, times));
}

const char *mgr_mode_name(unsigned mode)
{
	return mode == MGR_MODE_I     ? "I"
	       : mode == MGR_MODE_II  ? "II"
	       : mode == MGR_MODE_III ? "III"
				      : "?";
}
