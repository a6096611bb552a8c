/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/srv6/expand.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static uint64_t limit(unsigned width)
{
	return (uint64_t)1 << width;
}

static bool field_ok(const struct srv6_ev_field *f, unsigned room)
{
	return f->width <= 32 && f->width <= room && f->init < limit(f->width) &&
	       f->mask < limit(f->width) && f->min <= f->max &&
	       f->max < limit((unsigned)__builtin_popcount(f->mask));
}

int srv6_ev_check(const struct srv6_ev_format *f)
{
	unsigned bits = 0;

	if (f->n_fields > SRV6_EV_FIELDS || f->n_widths > SRV6_EV_FIELDS)
		return -E2BIG;
	if (f->n_fields > f->n_widths)
		return -EINVAL;
	for (unsigned i = 0; i < f->n_widths; i++)
		bits += f->width[i];
	if (bits > 8 * SRV6_EV_BYTES)
		return -EINVAL;
	for (unsigned i = 0; i < f->n_fields; i++) {
		if (!field_ok(&f->field[i], f->width[i]))
			return -EINVAL;
	}
	return 0;
}

unsigned srv6_ev_bits(const struct srv6_ev_format *f)
{
	unsigned bits = 0;

	for (unsigned i = 0; i < f->n_fields; i++)
		bits += (unsigned)__builtin_popcount(f->field[i].mask);
	return bits;
}

/* Bit i of a string of bits, most significant first. */
static unsigned bit_at(const uint8_t *bytes, size_t i)
{
	return bytes[i / 8] >> (7 - i % 8) & 1;
}

static void set_bit(uint8_t *bytes, size_t i)
{
	bytes[i / 8] |= (uint8_t)(0x80 >> i % 8);
}

/* The field's value with the next bits of the EV on the mask's bits, highest first; -1 if they are
 * out of bounds. */
static int64_t fill(const struct srv6_ev_field *f, const uint8_t *ev, size_t *at)
{
	uint32_t value = f->init & ~f->mask, taken = 0;

	for (uint32_t left = f->mask; left;) {
		uint32_t top = 1u << (31 - __builtin_clz(left));
		unsigned bit = bit_at(ev, (*at)++);

		taken = taken << 1 | bit;
		if (bit)
			value |= top;
		left &= ~top;
	}
	return taken < f->min || taken > f->max ? -1 : (int64_t)value;
}

int srv6_ev_expand(
	const struct srv6_ev_format *f, const uint8_t *ev, size_t len, uint8_t out[SRV6_EV_BYTES])
{
	size_t at = 0, end = 0;

	if (srv6_ev_bits(f) > 8 * len)
		return -EINVAL;
	memset(out, 0, SRV6_EV_BYTES);
	for (unsigned i = 0; i < f->n_widths; i++) {
		int64_t value = i < f->n_fields ? fill(&f->field[i], ev, &at) : 0;

		if (value < 0)
			return -EINVAL;
		end += f->width[i];
		for (unsigned b = 0; value >> b; b++) {
			if (value >> b & 1)
				set_bit(out, end - 1 - b);
		}
	}
	for (; at < 8 * len; at++) {
		if (bit_at(ev, at))
			return -EINVAL;
	}
	return (int)((end + 7) / 8);
}
