/* SPDX-License-Identifier: BSD-3-Clause */
/* Which kind of groups a communicator gets: decided by rank 0 from what the group file wishes, what
 * the mode needs and what the devices can do. Pure. */
#ifndef CCL_SELECT_H
#define CCL_SELECT_H

#include "lib/ccl/group.h"

/* What a rank says of itself. */
struct ccl_ability {
	bool skip;      /* its device can leave out PSNs (docs/inc-protocol.md, 3.7) */
	bool selective; /* it has queue pairs with selective acknowledgement */
	bool multicast; /* its queue pairs of the group's transport can be members of multicast
			   groups */
	bool rnr;       /* its device can be held with RNR NAKs (docs/interop.md) */
	char device[64];
};

struct ccl_choice {
	enum ccl_kind kind;
	bool fallback; /* the ranks do it: for want of resources, too */
	bool resync;   /* mixed: a device cannot leave out PSNs, queue pairs begin anew */
	unsigned collectives;
	bool multicast;        /* beside it, for those of a certain size */
	char why[CCL_ERR_LEN]; /* one sentence */
};

enum { CCL_MAX_CHOICES = 4 };

/* What to try, best first: the next one if a switch says that it does not offer it; the fallback
 * also if it lacks room. Its reason is why the one before failed, to be filled in. Returns how
 * many, or -EOPNOTSUPP with a reason in err: the file asks for what is impossible. */
int ccl_choose(const struct ccl_group *group, const struct ccl_ability *rank,
	struct ccl_choice choice[CCL_MAX_CHOICES], char err[CCL_ERR_LEN]);

/* The first rank whose device cannot be held with RNR NAKs, if the group file leaves it open
 * whether switches send any (flags.stall_rnr); else n_ranks. */
unsigned ccl_cannot_stall(const struct ccl_group *group, const struct ccl_ability *rank);

#endif
