/* SPDX-License-Identifier: BSD-3-Clause */
/* A scenario's "control": what becomes of control messages, struct sim_control_conf in JSON.
 *
 *	"delay_us", "jitter_us"      one way; more, at most
 *	"loss", "break", "silent"    probabilities per message: it is sent again, after 200 ms
 *	                             or more; its connection breaks; its connection delivers
 *	                             nothing any more
 *	"break_nth", "silent_nth"    that happens to this message, counted from 1
 *	"late_nth", "late_us"        so much later comes this message
 *	"down_us"                    [[from, until], ..]: no agent listens, connections break
 *	"timeout_ms"                 of CommLib's requests; default 10 000 */
#ifndef APPS_SIM_CONTROL_H
#define APPS_SIM_CONTROL_H

#include <jansson.h>

#include "lib/ccl/ccl.h"
#include "lib/sim/control.h"

#define SIM_CONTROL_MAX_US INT64_C(600000000)

/* doc may be NULL: no delay, no faults. -EINVAL with "control.field: limit" in err. */
int sim_control_parse(const json_t *doc, struct sim_control_conf *conf, char err[CCL_ERR_LEN]);

#endif
