/* SPDX-License-Identifier: BSD-3-Clause */
/* A host that is a queue pair of lib/rnic, which does what the model's host (host.c) is told to do:
 * posts a message when that one begins to send it, has a receive posted or not, lets a timer fire.
 * Modes I to III, RC. Or CommLib has the queue pair, and what is posted when is its decision. */
#ifndef MODEL_REAL_HOST_H
#define MODEL_REAL_HOST_H

#include "lib/rnic/rnic.h"
#include "tests/model/model.h"

struct real_comm;
struct real_controls;

struct real_host {
	const struct mc_sys *s;
	struct real_comm *comm; /* NULL: no CommLib */
	unsigned rank;
	struct rnic *rnic;
	struct rnic_pd *pd;
	struct rnic_cq *scq, *rcq;
	struct rnic_qp *qp;
	struct rnic_mr *mr;
	uint8_t *buf;
	uint64_t now;
	unsigned posted;  /* index of the first PSN that is not posted */
	unsigned sent;    /* messages whose completions came */
	unsigned taken;   /* messages received */
	uint32_t next_in; /* index from which the next message to receive is looked for */
};

/* What came out in answer to one event. */
struct real_out {
	unsigned n;
	struct real_frame {
		struct wire_pkt pkt;
		uint8_t bytes[MC_FRAME];
	} frame[MC_MAX_EMIT];
	const char *why; /* or NULL: what was wrong beside frames */
};

/* Makes the device of a rank; real_reset then, before each schedule. Both abort where the set-up
 * itself fails. controls: with CommLib (modes II and III), those of all ranks; else NULL. */
void real_open(
	struct real_host *h, const struct mc_sys *s, unsigned rank, struct real_controls *controls);
void real_reset(struct real_host *h);
/* One event (MC_EV_PACKET, _HOLD, _SEND or _TIMEOUT), as mc_host_step; frame for the first two.
 * post: the packet is the first of a message that will be taken, so a receive must be posted, or a
 * message begins. CommLib posts when it wants to, and is never without a receive. */
void real_step(
	struct real_host *h, enum mc_event ev, uint32_t frame, bool post, struct real_out *out);
/* May its timer fire now, which runs once something has left that asks for an answer, and once more
 * before it gives up? The model may let it fire earlier. */
bool real_may_time_out(const struct real_host *h);
/* Does it send anything by itself now? What comes out is gone. */
bool real_sends(struct real_host *h);
/* All messages were sent and acknowledged, all that are for it came, with the right contents. */
bool real_done(const struct real_host *h);

#endif
