/* SPDX-License-Identifier: BSD-3-Clause */
/* What went wrong, for people. */
#include <stdio.h>
#include <string.h>

#include "lib/ccl/mcast_priv.h"

int mc_say(const struct ccl_mcast *c, char *err, const char *what, int error)
{
	snprintf(err, CCL_ERR_LEN, "rank %u: multicast: %s: %s", c->conf.rank, what,
		strerror(error));
	return -error;
}
