/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/egress/class.h"

#include <string.h>

#include "lib/wire/mrc.h"

void egress_classes_default(struct egress_classes *c)
{
	memset(c->of, EGRESS_DATA, sizeof(c->of));
	c->of[MRC_DSCP_TRIMMABLE] = c->of[MRC_DSCP_TRIMMABLE_RETX] = EGRESS_TRIMMABLE;
	c->of[MRC_DSCP_TRIMMED] = c->of[MRC_DSCP_TRIMMED_LAST] = EGRESS_CONTROL;
	c->of[MRC_DSCP_CONTROL] = EGRESS_CONTROL;
	c->trimmed = MRC_DSCP_TRIMMED;
	c->trimmed_last_hop = MRC_DSCP_TRIMMED_LAST;
}
