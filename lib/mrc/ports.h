/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ports of both ends are up, for all connections between two addresses: the port status
 * updates of MRC 1.0 (section 7 of the rules in docs/mrc.md). An update is the whole mask, so order
 * counts: one whose id is older than the last is ignored. Sent when a port changes, again with
 * growing patience until it is answered, and once per second while any port is down.
 *
 * Also here: how many endpoint requests a port answers in a time.
 *
 * No clock (times are nanoseconds, passed in, not decreasing), no heap, no I/O. One owner. */
#ifndef MRC_PORTS_H
#define MRC_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/mrc/settings.h"
#include "lib/wire/mrc.h"

struct mrc_ports {
	uint8_t all, up; /* ours, bit p for port p from 0 on */
	uint8_t peer_up; /* theirs; all until they say otherwise */
	bool heard;      /* a status of theirs has come: */
	uint16_t heard_id;
	uint16_t id; /* of our last update */
	bool unanswered;
	uint64_t first_ns, cap_ns; /* until an update that nobody answers goes out again */
	uint64_t again_ns;         /* between those that are answered, while a port is down */
	uint64_t wait, due;        /* due: next update; UINT64_MAX: none */
	uint64_t stale;            /* updates of theirs that came too late */
};

/* n_ports 1 to 8, all up. -EINVAL. */
int mrc_ports_init(struct mrc_ports *p, unsigned n_ports, const struct mrc_settings *settings);

/* Our ports have changed; bits beyond n_ports are ignored. */
void mrc_ports_local(struct mrc_ports *p, uint8_t up, uint64_t now);

/* An update is due: fills the request, true. It goes out over each port that is up. */
bool mrc_ports_tx(struct mrc_ports *p, uint64_t now, struct mrc_endpoint *request);
uint64_t mrc_ports_deadline(const struct mrc_ports *p);
/* Their answer to ours, by id. */
void mrc_ports_answered(struct mrc_ports *p, uint16_t id, uint64_t now);
/* Their update; false: older than the last, nothing has changed. It is answered in any case. */
bool mrc_ports_update(struct mrc_ports *p, const struct mrc_endpoint *request);

/* Ports that both ends can use. */
static inline uint8_t mrc_ports_usable(const struct mrc_ports *p)
{
	return p->up & p->peer_up;
}

/* The answer to an endpoint request: the same id, operation and time stamp. */
struct mrc_endpoint mrc_endpoint_answer(const struct mrc_endpoint *request);

/* Answers of one port: zero is a fresh one. */
struct mrc_answers {
	uint64_t full_at; /* when the whole burst is there again */
};
/* Whether one more may be given now. */
bool mrc_answers_take(struct mrc_answers *a, const struct mrc_settings *settings, uint64_t now);

#endif
