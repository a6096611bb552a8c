/* SPDX-License-Identifier: BSD-3-Clause */
/* The start-up file of incline-switch, declared once: the switch and lib/port check their objects
 * with it and take defaults from it, `incline-switch --help-config` prints it, and the tables of
 * docs/config.md are made of it. What one field alone cannot tell (a name that is there twice, a
 * size that is no power of two) is left to those who read it. */
#ifndef CTL_CONFIG_H
#define CTL_CONFIG_H

#include "lib/ctl/schema.h"

/* Objects, to be checked with ctl_check_value after ctl_strip_comments. */
extern const struct ctl_field ctl_switch_config;      /* the file */
extern const struct ctl_field ctl_port_config;        /* a port, also an RNIC's */
extern const struct ctl_field ctl_switch_port_config; /* a port, with the switch's own fields */
extern const struct ctl_field ctl_impair_config;      /* "impair" of a port */
extern const struct ctl_field ctl_queue_config;       /* "queue" of a port */
extern const struct ctl_field ctl_dscp_config;        /* "dscp" of the switch */

enum {
	CTL_MAX_ADDRESSES = 256,
	CTL_MAX_PORTS = 64,
	CTL_MAX_WORKERS = 16,
	CTL_MAX_LOSE = 16,
	CTL_MIN_DESC = 64
};

/* The fields as text for a terminal, and as the tables of docs/config.md. */
void ctl_config_text(const struct ctl_field *object, FILE *out);
void ctl_config_markdown(const struct ctl_field *object, FILE *out);

#endif
