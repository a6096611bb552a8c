/* SPDX-License-Identifier: BSD-3-Clause */
/* A port from its object in a file (ctl_port_config of lib/ctl/config.h, docs/config.md). Keys that
 * begin with '#' are comments. */
#ifndef PORT_CONFIG_H
#define PORT_CONFIG_H

#include <jansson.h>

#include "lib/port/port.h"

/* 0 or -EINVAL with "field: reason" in err. Nothing is opened. */
int port_config_parse(const json_t *json, struct port_config *config, char err[PORT_ERR_LEN]);

#endif
