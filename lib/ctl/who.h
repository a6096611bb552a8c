/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is at the other end of a control connection. */
#ifndef CTL_WHO_H
#define CTL_WHO_H

enum ctl_role {
	CTL_LOCAL,    /* of this machine, as the UNIX socket's mode lets him: as an operator */
	CTL_STRANGER, /* has come over TCP without TLS: nobody has asked him */
	CTL_OPERATOR, /* as the certificate says, from here on */
	CTL_AGENT,    /* a switch */
	CTL_TENANT,
	CTL_ROLES
};

enum { CTL_WHO_LEN = 32 };

struct ctl_who {
	enum ctl_role role;
	char name[CTL_WHO_LEN]; /* of the certificate, else "" */
	unsigned uid;           /* CTL_LOCAL: SO_PEERCRED's */
};

/* "local", "stranger", "operator", "agent", "tenant" */
const char *ctl_role_name(enum ctl_role role);

#endif
