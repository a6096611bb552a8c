/* SPDX-License-Identifier: BSD-3-Clause */
/* CommLib on a real host (real_host.h): a communicator that issues all operations of the program as
 * collectives, and decides itself when a message is posted. What the model's controls leave out
 * (the tag, flags) is CommLib's own, the same at all ranks. */
#ifndef MODEL_REAL_COMM_H
#define MODEL_REAL_COMM_H

#include "lib/ccl/ccl.h"
#include "lib/ccl/msg.h"
#include "tests/model/real_host.h"

/* The controls of a schedule, as the first rank sent each. */
struct real_controls {
	bool known[MC_MAX_OPS];
	uint8_t payload[MC_MAX_OPS][CCL_CTRL_LEN];
};

/* Opens the device, with a communicator in mind: h->s and h->rank are set; then h->rnic is. */
void real_comm_open(
	struct real_host *h, const struct rnic_config *config, struct real_controls *controls);
/* A communicator, with all collectives under way; then h->qp is its queue pair. */
void real_comm_reset(struct real_host *h);
/* CommLib looks at what has come. */
void real_comm_poll(struct real_host *h, struct real_out *out);
/* A frame that goes out or comes in: what the model's controls do not have leaves it, or is put in.
 * NULL, or what is wrong. */
const char *real_comm_out(struct real_host *h, const struct wire_pkt *pkt, uint8_t *bytes);
const char *real_comm_in(struct real_host *h, const struct wire_pkt *pkt, uint8_t *bytes);
/* All collectives are over, with the right results. */
bool real_comm_done(const struct real_host *h);

#endif
