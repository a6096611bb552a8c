/* SPDX-License-Identifier: BSD-3-Clause */
/* The methods of incline-manager and its configuration (docs/manager.md). */
#ifndef CTL_MANAGER_SCHEMA_H
#define CTL_MANAGER_SCHEMA_H

#include "lib/ctl/schema.h"

extern const struct ctl_schema ctl_manager_schema;
extern const struct ctl_field ctl_manager_config; /* an object */

/* Both as tables. */
void ctl_manager_markdown(FILE *out);

#define CTL_DEFAULT_MANAGER "/run/incline/manager.sock"
#define CTL_DEFAULT_STORE "/var/lib/incline/manager.db"

#endif
