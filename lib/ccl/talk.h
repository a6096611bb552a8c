/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0's conversation with one switch: requests one after the other. When the connection breaks,
 * or nothing comes back, a request is made again over another one: three times within the group's
 * timeout. */
#ifndef CCL_TALK_H
#define CCL_TALK_H

#include "lib/ccl/group.h"
#include "lib/ctl/client.h"

enum {
	CCL_TALK_TRIES = 3,
	CCL_TALK_ASK_MS = 500,   /* of a switch that is asked only for its opinion */
	CCL_TALK_UNDO_MS = 3000, /* that is to be rid of groups: a lost SYN is repeated within */
};

struct ccl_talk {
	const struct ccl_group *group;
	unsigned sw;         /* index in the group */
	unsigned connect_ms; /* how long to wait for somebody who listens, at the start */
	struct ctl_client *client;
	/* Of the last request: it was sent more than once, so the switch may have done already what
	 * it asks for; it may have been done although the call failed. */
	bool again, unsure;
};

/* Of the group's steps: in milliseconds, up to a minute. */
unsigned ccl_talk_timeout_ms(const struct ccl_group *group);
/* How long a group may wait on a switch for its activation: longer than everything before takes. */
unsigned ccl_talk_activate_ms(const struct ccl_group *group, unsigned n_groups);

/* A request and its answer, within the group's timeout. params is taken over; NULL: -ENOMEM. As
 * ctl_call, with the error in *e, and in err as it is to be shown. */
int ccl_talk(struct ccl_talk *talk, const char *method, json_t *params, json_t **result,
	struct ctl_error *e, char err[CCL_ERR_LEN]);
void ccl_talk_end(struct ccl_talk *talk);

/* Appends to a text of cap bytes, cut where it is full. */
void __attribute__((format(printf, 3, 4)))
ccl_talk_add(char *text, size_t cap, const char *fmt, ...);

#endif
