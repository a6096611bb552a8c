/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/egress/class.h"

#include <string.h>

enum { TRIMMABLE = 4, TRIMMABLE_RETX = 8, TRIMMED = 12, TRIMMED_LASTHOP = 16, CONTROL = 46 };

void egress_classes_default(struct egress_classes *c)
{
	memset(c->of, EGRESS_DATA, sizeof(c->of));
	c->of[TRIMMABLE] = c->of[TRIMMABLE_RETX] = EGRESS_TRIMMABLE;
	c->of[TRIMMED] = c->of[TRIMMED_LASTHOP] = c->of[CONTROL] = EGRESS_CONTROL;
	c->trimmed = TRIMMED;
	c->trimmed_last_hop = TRIMMED_LASTHOP;
}
