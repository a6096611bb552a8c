/* SPDX-License-Identifier: BSD-3-Clause */
/* Who made which groups and rings. What a connection makes after owner.hold belongs to the owner
 * that it named: a job, known by a secret that its ranks share. An owner is there as long as some
 * connection holds it. When none does for its time, and nothing of it has made progress for as
 * long, the switch ends what it owns: whoever made it has died without deleting it. */
#ifndef AGENT_OWNERS_H
#define AGENT_OWNERS_H

#include <sys/queue.h>

#include "dataplane/switch.h"
#include "lib/ctl/schema.h"
#include "lib/ctl/who.h"

enum { OWNER_TOKEN_LEN = 65, OWNER_MS = 5000, OWNER_MAX_HELD = 448 };

struct owner {
	LIST_ENTRY(owner) link;
	char token[OWNER_TOKEN_LEN];
	char tenant[CTL_WHO_LEN]; /* whose certificate it was made with; "": without */
	unsigned connections;     /* that hold it */
	uint64_t wait_ns;         /* to be ended so long after the last connection */
	uint64_t alone_ns;        /* since when there is none */
	uint64_t ending_ns;       /* its groups have failed; when they are deleted, 0: not yet */
};

struct owners {
	LIST_HEAD(, owner) list;
	unsigned n, held;                     /* owners, connections that hold them */
	uint64_t orphans;                     /* groups and rings that were ended */
	struct owner *group[INC_GROUP_SLOTS]; /* by slot, if there is a group; NULL: nobody's */
	struct owner *ring[NR_MAX_RINGS];
};

/* The owner of this secret, new if there is none, with one more connection. NULL: no memory,
 * or OWNER_MAX_HELD connections hold owners. Another tenant's secret leads to nothing of his: an
 * owner is known by both. */
struct owner *owner_hold(struct owners *o, const char *token, const char *tenant);
/* A connection less. */
void owner_let_go(struct owners *o, struct sw *sw, struct owner *owner);

/* How much it has now. */
unsigned owner_groups(const struct owners *o, struct sw *sw, const struct owner *owner);
unsigned owner_rings(const struct owners *o, struct sw *sw, const struct owner *owner);

/* "held", "alone" (nobody holds it) or "ending". */
const char *owner_state(const struct owner *owner);

/* Ends what is to be ended. The second one: when there may be something to do, or UINT64_MAX. */
void owners_tick(struct owners *o, struct sw *sw, uint64_t now);
uint64_t owners_due(const struct owners *o, struct sw *sw);
void owners_free(struct owners *o);

#endif
