/* SPDX-License-Identifier: BSD-3-Clause */
/* The start-up file of a switch, as the object of ctl_switch_config (lib/ctl/config.h,
 * docs/config.md): keys that begin with '#' are comments; "tables" is read by ctrl/agent, as for
 * table.write. */
#ifndef CTRL_SWITCH_CONFIG_H
#define CTRL_SWITCH_CONFIG_H

#include <jansson.h>

#include "dataplane/config.h"

/* Checks everything, opens nothing: 0 or -EINVAL with "path.field: reason" in err. */
int sw_config_parse(const json_t *json, struct sw_config *config, char err[SW_ERR_LEN]);

/* sw_create, or sw_create_unplugged, of it. */
int switch_create(const json_t *config, bool plugged, struct sw **sw, char err[SW_ERR_LEN]);

/* The configuration as given, without "tables", and with what switch_impair has changed (new
 * reference). */
json_t *sw_config_json(const struct sw *sw);

/* Bad weather on a port from now on, as "impair" of its configuration says (NULL: none): as
 * sw_port_impair; -EINVAL with "impair.field: reason". */
int switch_impair(struct sw *sw, unsigned port, const json_t *json, char err[SW_ERR_LEN]);

#endif
