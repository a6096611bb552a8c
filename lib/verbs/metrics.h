/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of devices as a page of OpenMetrics (lib/ctl/metrics.h), named as in INCLINE_STATS. By
 * the owner of the devices. */
#ifndef VERBS_METRICS_H
#define VERBS_METRICS_H

#include <stddef.h>

struct iv_dev;

struct iv_metrics_of {
	const char *name;         /* of the device */
	const struct iv_dev *dev; /* NULL: its port is not here now */
};

/* To be freed, of *len bytes; NULL: no memory. */
char *iv_metrics(const struct iv_metrics_of *of, unsigned n, size_t *len);

#endif
