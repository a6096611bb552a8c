/* SPDX-License-Identifier: BSD-3-Clause */
/* The start-up file of incline-switch and the file of a software RNIC (INCLINE_RNIC), declared
 * once: the switch, lib/verbs and lib/port check their objects with it and take defaults from it,
 * --help-config of incline-switch and incline-netd prints it, and the tables of docs/config.md and
 * docs/rnic-config.md are made of it. What one field alone cannot tell (a name that is there twice,
 * a size that is no power of two) is left to those who read it. */
#ifndef CTL_CONFIG_H
#define CTL_CONFIG_H

#include "lib/ctl/schema.h"

/* Objects, to be checked with ctl_check_value after ctl_strip_comments. */
extern const struct ctl_field ctl_switch_config;      /* the switch's file */
extern const struct ctl_field ctl_rnic_config;        /* an RNIC's file */
extern const struct ctl_field ctl_port_config;        /* a port, also an RNIC's */
extern const struct ctl_field ctl_switch_port_config; /* a port, with the switch's own fields */
extern const struct ctl_field ctl_impair_fields[];    /* its fields */
extern const struct ctl_field ctl_impair_config;      /* "impair" of a port */
extern const struct ctl_field ctl_queue_config;       /* "queue" of a port */
extern const struct ctl_field ctl_dscp_config;        /* "dscp" of the switch */

/* What any port has, and by its type: the parts of ctl_port_config. */
extern const struct ctl_field ctl_port_fields[];
extern const struct ctl_variant ctl_port_types[];

enum {
	CTL_MAX_ADDRESSES = 256,
	CTL_MAX_PORTS = 64,
	CTL_MAX_WORKERS = 16,
	CTL_MAX_LOSE = 16,
	CTL_MIN_DESC = 64,
	CTL_MTU_MIN = 576,
	CTL_MTU_MAX = 9600,
	CTL_MAX_RNIC_ADDRESSES = 7, /* of a port */
	CTL_MAX_RNIC_PORTS = 8,
	CTL_MAX_RNIC_HOST = 64, /* bytes of its name */
	CTL_MAX_NEIGHBORS = 256
};

/* The fields as text for a terminal, and as the tables of docs/config.md. */
void ctl_config_text(const struct ctl_field *object, FILE *out);
void ctl_config_markdown(const struct ctl_field *object, FILE *out);
/* --help-config of a program, on stdout; form: NULL, "markdown", or "schema"
 * (JSON Schema). The program's exit status. */
int ctl_config_help(const char *program, const struct ctl_field *object, const char *form);

#endif
