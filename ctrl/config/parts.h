/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of the start-up file, checked by its schema: what one field alone cannot tell. -EINVAL with
 * "field: reason". */
#ifndef CTRL_CONFIG_PARTS_H
#define CTRL_CONFIG_PARTS_H

#include <jansson.h>

#include "dataplane/egress/queue.h"
#include "dataplane/port/impair.h"

int impair_parse(const json_t *json, struct impair *im, char *err, size_t cap);
int queue_parse(const json_t *json, struct egress_config *config, char *err, size_t cap);
int classes_parse(const json_t *json, struct egress_classes *classes, char *err, size_t cap);

#endif
