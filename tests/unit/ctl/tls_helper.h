/* SPDX-License-Identifier: BSD-3-Clause */
/* Certificates by tools/certs, a server (server_helper.h) with some of them, and our client with
 * others. */
#ifndef TLS_HELPER_H
#define TLS_HELPER_H

#include "tests/unit/ctl/server_helper.h"

extern char dir[64]; /* of all certificates */
extern char tcp_name[96];

/* A command in which the directory stands twice, and then something else. */
void shell(const char *fmt, const char *more);
/* Of everybody, for a group of tests. "other" is a CA of its own that has revoked a certificate,
 * "late" one whose list is too old; "guest" has a role that there is not. */
int make_certificates(void **state);
int remove_certificates(void **state);

/* A server that has the certificates of one of them. */
void start_as(struct fixture *f, const char *who);
/* Connections from now on are this one's. */
void be(const char *who);
/* 0, an error's code, or -errno if there was none. */
int call_as(const char *who, const char *method);

void test_revoked(void **state);

#endif
