/* SPDX-License-Identifier: BSD-3-Clause */
/* Invariant CRC of RoCEv2 (IBTA vol. 1, 7.8.1; annex A17.3.1): CRC-32 (reflected 0x04c11db7) over
 * eight bytes of ones, the IP, UDP and BTH headers with the fields that a router may change set to
 * ones, the extended headers, the payload and its pad. On the wire it is stored little-endian.
 *
 * A "crc" below is a finished CRC-32 (as zlib and ISA-L give it), so that pieces computed apart can
 * be appended and combined: the payload's CRC is computed once and joined to every header it
 * travels behind. */
#ifndef WIRE_ICRC_H
#define WIRE_ICRC_H

#include <stddef.h>
#include <stdint.h>

/* CRC of what is before the payload: l3 points at the IPv4 (no options) or IPv6 header; len counts
 * from there to the end of the last extended header (IP 20 or 40, UDP 8, BTH 12, extended). The
 * caller has checked the lengths; len is at most ICRC_MAX_HEADERS. The headers are not changed. */
enum { ICRC_MAX_HEADERS = 128 };
uint32_t icrc_headers(const uint8_t *l3, size_t len);

/* The whole ICRC of a packet that lies in one piece: len bytes from l3 to the end of payload and
 * pad, at least 40. Same as icrc_append(icrc_headers(l3, n), l3 + n, len - n), in one pass. */
uint32_t icrc_packet(const uint8_t *l3, size_t len);

/* CRC of (what crc covers) followed by data. icrc_append(0, data, n) is the CRC of data alone. */
uint32_t icrc_append(uint32_t crc, const void *data, size_t len);

/* The same, and data is copied from src to dst, which do not overlap, in one pass: src is read
 * once, so that the CRC is of the bytes at dst even if others write to src meanwhile. */
uint32_t icrc_copy(uint32_t crc, void *dst, const void *src, size_t len);

/* The same for a packet that arrives: others may write to dst meanwhile, and the CRC is of the
 * bytes at src. In one pass where the kernels fold, in two where they are ISA-L's or scalar. */
uint32_t icrc_place(uint32_t crc, void *dst, const void *src, size_t len);

/* Which kernels do all this: "scalar", "isal", "avx2" or "avx512", the best of this CPU. Chosen
 * before main(). The environment variable INCLINE_ICRC names others, for tests and comparisons; a
 * name that is none, or whose instructions this CPU lacks, is answered with a line on stderr, and
 * the best are used. */
const char *icrc_kernel_name(void);

/* CRC of A followed by B, from crc(A), crc(B) and the length of B in bytes. */
uint32_t icrc_combine(uint32_t a, uint32_t b, size_t len_b);

/* The same for many joins with one len_b: make the operator once (about 50 ns), then each join is
 * one carry-less multiplication where the CPU has it. */
struct icrc_shift {
	uint32_t factor; /* x^(8 len_b) mod P, reflected */
};
struct icrc_shift icrc_shift_for(size_t len_b);
uint32_t icrc_combine_shift(uint32_t a, uint32_t b, struct icrc_shift shift);

/* Stores and loads as on the wire. */
static inline void icrc_store(uint8_t out[4], uint32_t crc)
{
	out[0] = (uint8_t)crc;
	out[1] = (uint8_t)(crc >> 8);
	out[2] = (uint8_t)(crc >> 16);
	out[3] = (uint8_t)(crc >> 24);
}

static inline uint32_t icrc_load(const uint8_t in[4])
{
	return in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

#endif
