/* SPDX-License-Identifier: BSD-3-Clause */
/* What a packet's DSCP says: which queue it waits in, and whether it may be trimmed. */
#ifndef DATAPLANE_EGRESS_CLASS_H
#define DATAPLANE_EGRESS_CLASS_H

#include <stdint.h>

enum egress_class {
	EGRESS_DATA,
	EGRESS_TRIMMABLE, /* data, of which the headers are worth more than nothing */
	EGRESS_CONTROL,
};

enum { EGRESS_N_DSCP = 64 };

struct egress_classes {
	uint8_t of[EGRESS_N_DSCP]; /* enum egress_class */
	uint8_t trimmed, trimmed_last_hop;
};

/* As MRC's implementations have it: CONTROL 46; TRIMMED 12 and TRIMMED_LASTHOP 16, which are
 * control as well; TRIMMABLE 4 and TRIMMABLE_RETX 8; data all others. */
void egress_classes_default(struct egress_classes *c);

/* What is not IP (ARP) is control. ver and tos as in struct wire_outer. */
static inline enum egress_class egress_class_of(
	const struct egress_classes *c, uint8_t ver, uint8_t tos)
{
	return ver == 0 ? EGRESS_CONTROL : (enum egress_class)c->of[tos >> 2];
}

#endif
