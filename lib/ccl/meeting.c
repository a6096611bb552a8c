/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/meeting.h"

#include <string.h>

void ccl_meeting_attach(struct ccl_comm *c, struct ccl_meeting *m, struct ccl_ring *ring,
	const struct ccl_desk *desk)
{
	*m = (struct ccl_meeting){.ring = ring, .desk = {.fd = -1}};
	if (desk)
		m->desk = *desk;
	c->meeting = m;
}

void ccl_meeting_close(struct ccl_comm *c)
{
	struct ccl_meeting *m = c->meeting;

	if (m->desk.close)
		m->desk.close(m->desk.arg);
	ccl_ring_close(m->ring);
	c->meeting = NULL;
}

int ccl_meeting_fail(struct ccl_comm *c, int rc)
{
	const char *why = ccl_ring_error(c->meeting->ring);

	return ccl_fail(c, rc, "%s", why[0] ? why : strerror(-rc));
}

int ccl_meeting_progress(struct ccl_comm *c, uint64_t now)
{
	const int moved = ccl_ring_progress(c->meeting->ring, now);

	return moved < 0 ? ccl_meeting_fail(c, moved) : moved;
}

int ccl_meeting_gather(struct ccl_comm *c)
{
	const int rc = ccl_ring_ibarrier(c->meeting->ring, &c->meeting->req);

	return rc ? ccl_meeting_fail(c, rc) : 0;
}

int ccl_meeting_tell(struct ccl_comm *c, void *word, size_t len)
{
	const int rc = ccl_ring_ibroadcast(c->meeting->ring, word, len, 0, &c->meeting->req);

	return rc ? ccl_meeting_fail(c, rc) : 0;
}

bool ccl_meeting_over(const struct ccl_comm *c)
{
	return ccl_ring_test(c->meeting->ring, c->meeting->req) == 1;
}

void ccl_meeting_ask(struct ccl_comm *c, uint32_t what, bool waits)
{
	c->meeting->desk.ask(c->meeting->desk.arg, what);
	c->meeting->waits |= waits;
}

bool ccl_meeting_answered(struct ccl_comm *c, int *rc, char why[CCL_DESK_WHY])
{
	struct ccl_meeting *m = c->meeting;

	if (!m->desk.answer(m->desk.arg, rc, why))
		return false;
	m->waits = false;
	return true;
}

int ccl_meeting_fd(const struct ccl_comm *c)
{
	return c->meeting->waits ? c->meeting->desk.fd : -1;
}
