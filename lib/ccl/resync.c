/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps between an operation that not all have sent and received, and the next (resync.h):
 * meet, ask, tell, begin anew. */
#include "lib/ccl/resync.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum step {
	IDLE,
	MEETING, /* this rank is done, perhaps not all are */
	ASKED,   /* rank 0 waits for the desk */
	TELLING, /* what came of it goes round */
};

/* What rank 0 tells. */
struct word {
	uint8_t psn[4]; /* little-endian */
	uint8_t refused;
	char why[CCL_DESK_WHY];
};

struct ccl_resync {
	struct ccl_meeting meeting;
	enum step step;
	struct word word;
	uint64_t times;
};

int ccl_resync_attach(struct ccl_comm *c, struct ccl_ring *ring, const struct ccl_desk *desk)
{
	c->resync = calloc(1, sizeof(*c->resync));
	if (!c->resync)
		return -ENOMEM;
	ccl_meeting_attach(c, &c->resync->meeting, ring, desk);
	return 0;
}

void ccl_resync_close(struct ccl_comm *c)
{
	if (!c->resync)
		return;
	ccl_meeting_close(c);
	free(c->resync);
	c->resync = NULL;
}

bool ccl_resync_active(const struct ccl_comm *c)
{
	return c->resync->step != IDLE;
}

/* The operation that waits for it, if this rank is done with all before. */
static struct ccl_op *waiting(struct ccl_comm *c)
{
	struct ccl_memb *mb = &c->memb[0];
	struct ccl_op *op = ccl_op_at(mb, mb->op_done);

	return mb->op_done != mb->op_made && op->resync ? op : NULL;
}

static int meet(struct ccl_comm *c)
{
	c->resync->step = MEETING;
	return ccl_meeting_gather(c);
}

static int tell(struct ccl_comm *c)
{
	struct ccl_resync *r = c->resync;

	r->step = TELLING;
	return ccl_meeting_tell(c, &r->word, sizeof(r->word));
}

static int all_are_done(struct ccl_comm *c)
{
	struct ccl_resync *r = c->resync;

	memset(&r->word, 0, sizeof(r->word));
	if (c->rank != 0)
		return tell(c);
	ccl_meeting_ask(c, waiting(c)->psn, true);
	r->step = ASKED;
	return 0;
}

static int decide(struct ccl_comm *c, bool refused)
{
	struct word *w = &c->resync->word;

	for (unsigned i = 0; i < sizeof(w->psn); i++)
		w->psn[i] = (uint8_t)(waiting(c)->psn >> 8 * i);
	w->refused = refused;
	return tell(c);
}

static uint32_t psn_of(const struct word *w)
{
	return w->psn[0] | (uint32_t)w->psn[1] << 8 | (uint32_t)w->psn[2] << 16 |
	       (uint32_t)w->psn[3] << 24;
}

static int begin_anew(struct ccl_comm *c)
{
	struct ccl_resync *r = c->resync;
	struct ccl_op *op = waiting(c);
	char err[CCL_ERR_LEN];
	int rc;

	r->word.why[sizeof(r->word.why) - 1] = '\0';
	if (r->word.refused)
		return ccl_fail(c, -ECONNABORTED, "the group cannot begin anew: %s", r->word.why);
	if (psn_of(&r->word) != op->psn)
		return ccl_fail(c, -EPROTO, "rank 0 begins anew at PSN 0x%06x, this rank at 0x%06x",
			psn_of(&r->word), op->psn);
	rc = ccl_memb_anew(&c->memb[0], op->psn, err);
	if (rc)
		return ccl_fail(c, rc, "%s", err);
	op->resync = false;
	r->times++;
	r->step = IDLE;
	c->fresh = true; /* the wait for the switches begins now */
	return ccl_pump(&c->memb[0]);
}

/* One step, if it can be made: 1; 0 if something is to be waited for. */
static int step(struct ccl_comm *c)
{
	struct ccl_resync *r = c->resync;
	int rc = 0;

	switch (r->step) {
	case IDLE:
		if (!waiting(c))
			return 0;
		meet(c);
		return 1;
	case MEETING:
		if (!ccl_meeting_over(c))
			return 0;
		all_are_done(c);
		return 1;
	case ASKED:
		if (!ccl_meeting_answered(c, &rc, r->word.why))
			return 0;
		decide(c, rc != 0);
		return 1;
	default:
		if (!ccl_meeting_over(c))
			return 0;
		begin_anew(c);
		return 1;
	}
}

int ccl_resync_progress(struct ccl_comm *c, uint64_t now)
{
	const int moved = ccl_meeting_progress(c, now);
	int n = 0;

	if (moved < 0)
		return moved;
	while (!c->failed && step(c))
		n++;
	return c->failed ? c->failed : n + moved;
}

void ccl_resync_describe(const struct ccl_comm *c, struct ccl_info *info)
{
	const size_t len = strlen(info->selection);

	snprintf(info->selection + len, sizeof(info->selection) - len,
		"; queue pairs begun anew %llu times", (unsigned long long)c->resync->times);
}
