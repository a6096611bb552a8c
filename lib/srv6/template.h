/* SPDX-License-Identifier: BSD-3-Clause */
/* From an entropy value to the address of a path, and back (MRC paper, 2.3, figure 3). Paths from a
 * host to one row of destinations differ in a few bits: those are the EV. A template is the rest,
 * and says where in the uSIDs each bit of the EV goes; one bit may go to several, as the plane's
 * number, which is part of every switch's uSID, does. Longer paths (between clusters: source T0,
 * T1, T2, T1, destination T0, host) are templates with more copies.
 *
 * Pure functions of flat structures; any thread. */
#ifndef SRV6_TEMPLATE_H
#define SRV6_TEMPLATE_H

#include <stdint.h>

#include "lib/srv6/usid.h"

enum { SRV6_MAX_COPIES = 16, SRV6_ERR_LEN = 160 };

/* width bits of a number, from bit `from` up, into uSID `usid` (0 to 5) from bit `shift` up. Bit 0
 * is the least significant. */
struct srv6_copy {
	uint8_t from, width, usid, shift;
};

struct srv6_template {
	struct wire_ip address; /* bits that are copied in are 0 here */
	uint8_t n_hops;         /* uSIDs of a path; none of them is ever 0 */
	uint8_t n_copies;
	struct srv6_copy copy[SRV6_MAX_COPIES]; /* from the EV */
	struct srv6_copy downlink;              /* from the destination's number; width 0: none */
};

/* 0, or -EINVAL with a text that names the field and its limit: copies outside the EV's 32 bits, a
 * uSID's 16 or the path's hops, two copies to one bit, bits of the address under a copy or behind
 * the path, a hop that no copy can make other than 0. A template that passes maps EVs to addresses
 * one to one. */
int srv6_template_check(const struct srv6_template *t, char err[SRV6_ERR_LEN]);

/* Bits of an EV that the template uses. */
uint32_t srv6_template_ev_mask(const struct srv6_template *t);

/* The template of one destination of the row: its downlink's number goes in. -ERANGE if the number
 * has more bits than the template has places for. */
int srv6_template_specialise(
	const struct srv6_template *t, uint32_t downlink, struct srv6_template *out);

/* The address of the path that ev names. -ERANGE: ev has bits outside the mask; -EINVAL: a hop
 * would be 0, which ends a path. *ip is written only on success. */
int srv6_template_expand(const struct srv6_template *t, uint32_t ev, struct wire_ip *ip);

/* The EV whose path ip is: ip as it left the host. -ENOENT if the template makes no such address.
 */
int srv6_template_ev(const struct srv6_template *t, const struct wire_ip *ip, uint32_t *ev);

#endif
