/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator goes on: by its groups, its ring, its lease, within its time. */
#include <errno.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/lease.h"
#include "lib/ccl/resync.h"

int ccl_progress(struct ccl_comm *c, uint64_t now)
{
	char wait[160];
	int n = 0, beside = 0;

	if (c->failed)
		return c->failed;
	if (!c->connected)
		return -ENOTCONN;
	if (c->mcast || c->tree)
		beside = ccl_hosts_go_on(c, now);
	if (beside < 0)
		return beside;
	if (c->ring)
		n = c->across ? ccl_over_nodes_go_on(c, now) : ccl_ring_go_on(c, now);
	if (ccl_by_hosts(c))
		return n < 0 ? n : n + beside;
	n = ccl_reap(c);
	if (n >= 0)
		n += beside;
	if (n >= 0 && c->lease) {
		const int more = ccl_lease_progress(c, now);

		n = more < 0 ? more : n + more;
	}
	if (n >= 0 && c->resync) {
		const int more = ccl_resync_progress(c, now);

		n = more < 0 ? more : n + more;
	}
	if (n < 0)
		return n;
	/* Time in which nobody looked proves nothing. */
	if (n > 0 || c->fresh || now - c->looked_ns > c->timeout_ns / 2) {
		c->progress_ns = now;
		c->fresh = false;
	}
	c->looked_ns = now;
	if ((c->lease && !ccl_lease_in_network(c)) || (c->resync && ccl_resync_active(c)))
		return n; /* the ring has its own clock */
	if (ccl_busy(c) && now - c->progress_ns >= c->timeout_ns) {
		ccl_describe_wait(c, wait, sizeof(wait));
		return ccl_fail(c, -ETIMEDOUT, "nothing came for %llu ms; %s",
			(unsigned long long)(c->timeout_ns / 1000000), wait);
	}
	return n;
}
