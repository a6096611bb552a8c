/* SPDX-License-Identifier: BSD-3-Clause */
/* What this library has beside the API of the OCP. */
#ifndef MRC_INCLINE_H
#define MRC_INCLINE_H

#include <stddef.h>

#include "mrc_ctl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As mrc_ctl_poll_ev_event, for elements of stride bytes: 48 or 56, else -EINVAL. */
int mrc_incline_poll_ev_event(struct mrc_cq *ev_cq, int num_entries, void *events, size_t stride);

/* An event is longer from version 1.0.1 on, and the library knows a program's version only if
 * mrc_create_context was told. This is right in any case. */
static inline int mrc_incline_poll_events(
	struct mrc_cq *ev_cq, int num_entries, struct mrc_ctl_ev_event *events)
{
	return mrc_incline_poll_ev_event(ev_cq, num_entries, events, sizeof(*events));
}

#ifdef __cplusplus
}
#endif

#endif
