/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mrc/ports.h"

#include <errno.h>

#include "lib/mrc/evset.h"

enum { NS_PER_S = 1000000000, NS_PER_MS = 1000000, NS_PER_US = 1000 };

int mrc_ports_init(struct mrc_ports *p, unsigned n_ports, const struct mrc_settings *s)
{
	if (n_ports < 1 || n_ports > MRC_MAX_PORTS || s->base_rtt_us == 0)
		return -EINVAL;
	*p = (struct mrc_ports){.all = (uint8_t)((1u << n_ports) - 1),
		.peer_up = 0xff,
		.first_ns = (uint64_t)s->status_rtts * s->base_rtt_us * NS_PER_US,
		.cap_ns = (uint64_t)s->status_cap_ms * NS_PER_MS,
		.again_ns = (uint64_t)s->status_again_ms * NS_PER_MS,
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
	p->wait = p->first_ns < p->cap_ns ? p->first_ns : p->cap_ns;
	p->due = now;
}

bool mrc_ports_tx(struct mrc_ports *p, uint64_t now, struct mrc_endpoint *request)
{
	if (now < p->due)
		return false;
	if (p->unanswered) {
		p->due = now + p->wait;
		p->wait = 2 * p->wait < p->cap_ns ? 2 * p->wait : p->cap_ns;
	} else {
		p->id++;
		p->due = now + p->again_ns;
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
	p->due = p->up == p->all ? UINT64_MAX : now + p->again_ns;
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

bool mrc_answers_take(struct mrc_answers *a, const struct mrc_settings *s, uint64_t now)
{
	const uint64_t each = NS_PER_S / s->answers_per_s;
	const uint64_t from = a->full_at > now ? a->full_at : now;

	if (from - now > (s->answers_burst - 1) * each)
		return false;
	a->full_at = from + each;
	return true;
}
