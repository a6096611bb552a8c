/* SPDX-License-Identifier: BSD-3-Clause */
/* A log of what was changed, or was not allowed, over control connections: one JSON object per
 * line, with who asked, what for, and the result. Secrets are not in it. */
#ifndef CTL_AUDIT_H
#define CTL_AUDIT_H

#include "lib/ctl/rpc.h"
#include "lib/ctl/who.h"

/* A line without the time, to be freed; NULL without memory. rc, e: of the call. */
char *ctl_audit_line(const struct ctl_who *who, const char *method, const json_t *params, int rc,
	const struct rpc_error *e);

/* The file, appended to (mode 0600 if it is made): a descriptor, or -errno with a reason in err
 * that names the field. */
int ctl_audit_open(const char *field, const char *path, char *err, size_t cap);
/* Writes a line of ctl_audit_line with the time of day (UTC) to it. -errno. */
int ctl_audit_write(int fd, const char *line);

#endif
