/* SPDX-License-Identifier: BSD-3-Clause */
/* EV expansion as the OCP controller API states it (EV format and EV profile: fields of bits with
 * masks), for addresses of which each varying bit has a bit of its own in the EV. */
#ifndef SRV6_EXPAND_H
#define SRV6_EXPAND_H

#include <stddef.h>
#include <stdint.h>

/* An expanded EV is the value of an API call: 32 bytes, which are two IPv6 addresses. */
enum { SRV6_EV_BYTES = 32, SRV6_EV_FIELDS = 32 };

struct srv6_ev_field {
	uint32_t width; /* bits, at most 32 */
	uint32_t init;
	uint32_t min, max; /* of the bits that the mask lets in */
	uint32_t mask;     /* bits of the field that come from the EV */
};

struct srv6_ev_format {
	unsigned n_fields; /* given */
	struct srv6_ev_field field[SRV6_EV_FIELDS];
	unsigned n_widths; /* of the expanded value */
	uint8_t width[SRV6_EV_FIELDS];
};

/* 0, or -EINVAL: more fields than format fields, a field wider than its format field or 32 bits,
 * more than 256 bits in all, init or mask wider than the field, min above max, max above what the
 * mask's bits can hold. -E2BIG: more fields than SRV6_EV_FIELDS. */
int srv6_ev_check(const struct srv6_ev_format *f);

/* Bits of a compressed EV. */
unsigned srv6_ev_bits(const struct srv6_ev_format *f);

/* Expands the first bits of ev (bit 0 is the most significant of byte 0), len bytes; the bits that
 * no field takes are 0, or it is -EINVAL, as is an EV that is too short and a field outside its
 * bounds. Returns the number of bytes written to out, the last one filled with zeros. */
int srv6_ev_expand(
	const struct srv6_ev_format *f, const uint8_t *ev, size_t len, uint8_t out[SRV6_EV_BYTES]);

#endif
