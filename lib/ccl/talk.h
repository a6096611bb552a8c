/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0's conversation with one switch: requests one after the other. When the connection breaks,
 * or nothing comes back, a request is made again over another one: three times within the group's
 * timeout. Over every connection the job says first who it is (owner.hold): what it makes is ended
 * by the switch when none of its connections is there any more. */
#ifndef CCL_TALK_H
#define CCL_TALK_H

#include "lib/ccl/group.h"
#include "lib/ctl/client.h"

enum {
	CCL_TALK_TRIES = 3,
	CCL_TALK_ASK_MS = 500,   /* of a switch that is asked only for its opinion */
	CCL_TALK_UNDO_MS = 3000, /* that is to be rid of groups: a lost SYN is repeated within */
	/* What rank 0 made ends on the switches so long after they have heard of its end. */
	CCL_OWNER_MS = 5000,
	/* How long, at most, a name is waited for whose former job is about to be ended. */
	CCL_FORMER_MS = 15000,
	CCL_FORMER_EVERY_MS = 100,
};

struct ccl_talk {
	const struct ccl_group *group;
	unsigned sw;         /* index in the group */
	unsigned connect_ms; /* how long to wait for somebody who listens, at the start */
	struct ctl_client *client;
	bool held; /* the switch knows whose connection this is */
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
/* Tells a switch over a new connection whose it is. Nothing to do for a job without a secret. */
int ccl_talk_hold(const struct ccl_group *group, struct ctl_client *client, unsigned timeout_ms,
	struct ctl_error *e);
/* For waiting until a former job's end: until when, at most; a pause, false: it is over. */
int64_t ccl_talk_patience(const struct ccl_talk *talk);
bool ccl_talk_wait(const struct ccl_talk *talk, int64_t patience);
/* If the connection has been lost: one try to have another. */
void ccl_talk_renew(struct ccl_talk *talk);

/* Appends to a text of cap bytes, cut where it is full. */
void __attribute__((format(printf, 3, 4)))
ccl_talk_add(char *text, size_t cap, const char *fmt, ...);

#endif
