/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters as text for monitoring systems: OpenMetrics 1.0 (openmetrics.io), which Prometheus
 * reads. Names, types, units and help of metrics follow from what declares the counters: the fields
 * of a method's result (enum ctl_metric), or a list of names and texts. One page is bounded in rows
 * and in bytes. No I/O; one thread. */
#ifndef CTL_METRICS_H
#define CTL_METRICS_H

#include <stddef.h>

#include "lib/ctl/schema.h"

enum { METRICS_MAX_ROWS = 512, METRICS_MAX_BYTES = 4 << 20 };

#define METRICS_CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

struct metrics;

/* NULL: no memory. */
struct metrics *metrics_begin(void);
/* The page, to be freed, of *len bytes; NULL: no memory, or it has more than METRICS_MAX_BYTES. m
 * is gone. Rows beyond METRICS_MAX_ROWS of a list are not in it: gauge
 * incline_metrics_rows_left_out says how many. */
char *metrics_end(struct metrics *m, size_t *len);

/* Begins a family of samples. name: as a counter is called in the program, "port_rx_bytes"; its end
 * may be a unit: _ns, _us, _ms, _s become seconds, _hz hertz; _bytes, _packets and _cycles stay. */
void metrics_family(struct metrics *m, const char *name, enum ctl_metric type, const char *help);
/* One sample of the family. labels: "" or "port=\"h0\"", from metrics_label. */
void metrics_sample(struct metrics *m, const char *labels, uint64_t value);

/* Appends a label to buf, which has `used` bytes of others; returns how many it has now. What has
 * no room is left out as a whole, and buf ends where it did. cap > used. */
size_t metrics_label(char *buf, size_t cap, size_t used, const char *name, const char *value);

/* Of so many rows of a list the page has so many; the others are counted as left out. */
size_t metrics_fit(struct metrics *m, size_t rows);

/* A family for each field that is a metric, with a sample for each row: fields that are labels tell
 * rows apart, "name" among them is called noun. Families are "<noun>_<field>", or <noun>s for a
 * field "count". Strings that are metrics become sets of states, one sample for each value that
 * they can have. */
void metrics_rows(
	struct metrics *m, const char *noun, const struct ctl_field *fields, const json_t *rows);
/* The same of one object, without labels; its families have "<prefix>" in front, which may be "";
 * "total" becomes
 * "<prefix>" without "_". */
void metrics_object(struct metrics *m, const char *prefix, const struct ctl_field *fields,
	const json_t *object);

#endif
