/* SPDX-License-Identifier: BSD-3-Clause */
/* What workers read of the tables. One pointer to it is swapped, so that a batch over several
 * tables is there for a turn of a worker's loop as a whole, or not at all. */
#ifndef DATAPLANE_PUBLISHED_H
#define DATAPLANE_PUBLISHED_H

#include "dataplane/acl/acl.h"
#include "dataplane/fwd.h"
#include "dataplane/mcast/mcast_fwd.h"

/* Parts that a batch leaves alone are in the next one as well. */
struct published {
	struct fwd *fwd;
	struct mcast_fwd *mcast; /* NULL: no groups */
	struct acl *acl;         /* NULL: no rows */
	unsigned ends; /* control's: the parts that end with it, for the next has others */
};

#endif
