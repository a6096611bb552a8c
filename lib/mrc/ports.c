/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mrc/ports.h"

#include <errno.h>

#include "lib/mrc/evset.h"

enum { FIRST_RTTS = 8, NS_PER_S = 1000000000, LONGEST_NS = 100000000 };

int mrc_ports_init(struct mrc_ports *p, unsigned n_ports, uint64_t base_rtt_ns)
{
	if (n_ports < 1 || n_ports > MRC_MAX_PORTS || base_rtt_ns == 0)
		return -EINVAL;
	*p = (struct mrc_ports){.all = (uint8_t)((1u << n_ports) - 1),
		.peer_up = 0xff,
		.base_rtt_ns = base_rtt_ns,
		.due = UINT64_MAX};
	p->up = p->all;
	return 0;
}

void mrc_ports_local(struct mrc_ports *p, uint8_t up, uint64_t now)
{
	up &= p->all;
	if (up == p->up)
		return;
	p->up = up;
	p->id++;
	p->unanswered = true;
	p->wait = FIRST_RTTS * p->base_rtt_ns;
	p->due = now;
}

bool mrc_ports_tx(struct mrc_ports *p, uint64_t now, struct mrc_endpoint *request)
{
	if (now < p->due)
		return false;
	if (p->unanswered) {
		p->due = now + p->wait;
		p->wait = 2 * p->wait < LONGEST_NS ? 2 * p->wait : LONGEST_NS;
	} else {
		p->id++;
		p->due = now + NS_PER_S;
	}
	/* Ports count from 1 in the packet; bit 0 is not used. */
	*request = (struct mrc_endpoint){.id = p->id,
		.op = MRC_PORT_STATUS,
		.port_mask = (uint32_t)p->up << 1,
		.ts = mrc_ts(now)};
	return true;
}

uint64_t mrc_ports_deadline(const struct mrc_ports *p)
{
	return p->due;
}

void mrc_ports_answered(struct mrc_ports *p, uint16_t id, uint64_t now)
{
	if (!p->unanswered || id != p->id)
		return;
	p->unanswered = false;
	p->due = p->up == p->all ? UINT64_MAX : now + NS_PER_S;
}

bool mrc_ports_update(struct mrc_ports *p, const struct mrc_endpoint *request)
{
	if (p->heard && (int16_t)(uint16_t)(request->id - p->heard_id) < 0) {
		p->stale++;
		return false;
	}
	p->heard = true;
	p->heard_id = request->id;
	p->peer_up = (uint8_t)(request->port_mask >> 1);
	return true;
}

struct mrc_endpoint mrc_endpoint_answer(const struct mrc_endpoint *request)
{
	return (struct mrc_endpoint){.id = request->id, .op = request->op, .ts = request->ts};
}

bool mrc_answers_take(struct mrc_answers *a, uint64_t now)
{
	const uint64_t each = NS_PER_S / MRC_ANSWERS_PER_S;
	const uint64_t from = a->full_at > now ? a->full_at : now;

	if (from - now > (MRC_ANSWERS_BURST - 1) * each)
		return false;
	a->full_at = from + each;
	return true;
}
