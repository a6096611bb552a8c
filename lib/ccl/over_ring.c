/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator whose ranks are joined in a ring: collectives are handed on. Its own queue of
 * collectives stays, so that requests mean the same. */
#include "lib/ccl/comm.h"
#include "lib/ccl/resume.h"
#include "lib/ccl/ring.h"

enum { NETREDUCE = 1 << CCL_ALLREDUCE | 1 << CCL_BARRIER };

int ccl_over_ring(struct ccl_comm *c, const struct ccl_ring_conf *conf, unsigned collectives,
	char err[CCL_ERR_LEN])
{
	int rc;

	ccl_leave(c);
	rc = ccl_ring_open(conf, &c->ring, err);
	if (rc)
		return rc;
	c->kind = CCL_RING;
	c->collectives = collectives & (conf->netreduce ? NETREDUCE : CCL_ALL_COLLECTIVES);
	return 0;
}

int ccl_ring_go_on(struct ccl_comm *c, uint64_t now)
{
	const int n = ccl_ring_progress(c->ring, now);
	int rc = 0;

	if (n >= 0 && c->resume)
		rc = ccl_resume_go_on(c);
	if (rc)
		return ccl_fail(c, rc, "%s", ccl_ring_error(c->ring));
	for (uint64_t i = c->coll_done; i != c->coll_issued; i++) {
		const struct ccl_coll *coll = ccl_coll_at(c, i);

		if (coll->parts_left && coll->by == CCL_BY_RING && !ccl_resume_holds(c, i) &&
			ccl_ring_test(c->ring, coll->handed_req) == 1)
			ccl_part_done(c, i);
	}
	return n < 0 ? ccl_fail(c, n, "%s", ccl_ring_error(c->ring)) : n;
}

void ccl_ring_describe(const struct ccl_comm *c, struct ccl_info *info)
{
	struct ccl_ring_info ring;

	ccl_ring_query(c->ring, &ring);
	wire_ip_format(&ring.next_ip, info->remote_ip, sizeof(info->remote_ip));
	info->local_qpn = ring.next_qpn;
	info->mtu = ring.mtu;
	info->operations = ring.collectives;
	info->messages = ring.messages_sent;
	info->staged_sends = ring.staged_sends;
}
