/* SPDX-License-Identifier: BSD-3-Clause */
/* The members of an etcd, asked over HTTP (libcurl) by its JSON gateway: one after the other, until
 * one answers. Of one thread; calls wait. */
#ifndef CTRL_MANAGER_ETCD_MEMBERS_H
#define CTRL_MANAGER_ETCD_MEMBERS_H

#include <jansson.h>

#include "ctrl/manager/store.h"

enum { ETCD_MAX_MEMBERS = 8, ETCD_URL_LEN = 256 };

struct etcd_members {
	void *curl;
	struct curl_slist *headers;
	char member[ETCD_MAX_MEMBERS][ETCD_URL_LEN], fabric[64];
	unsigned n, at;           /* the member that has answered last */
	const char *certificates; /* a directory as lib/ctl/tls.h has it; NULL: none */
	char said[256];           /* by libcurl, of the last request */
	char why[STORE_ERR_LEN];  /* the last error */
};

/* URL[,URL...][/FABRIC] into m, which is zero. 0, or -EINVAL with m->why. */
int etcd_members_parse(struct etcd_members *m, const char *text);
/* Then, where to find what to show to members and to believe of them: the directory is read anew
 * for each connection, and has to be right now; all members are https. NULL: nothing is shown, and
 * the machine's CAs count. The string is kept. -EINVAL, -ENOMEM with m->why. */
int etcd_members_certify(struct etcd_members *m, const char *certificates);
/* Connects to nobody yet. Each member has so long for an answer. 0 or -ENOMEM, with m->why;
 * etcd_members_close in any case. */
int etcd_members_open(struct etcd_members *m, unsigned timeout_ms);
void etcd_members_close(struct etcd_members *m);

/* Each member once, and the first once more; body is taken over. 0 with an object in *out, to be
 * given back; -EIO nobody answers, or it is an error, -ENOMEM, with m->why. What was asked may have
 * been done all the same, and may yet be. */
int etcd_ask(struct etcd_members *m, const char *path, json_t *body, json_t **out);

/* Notes in m->why; rc. */
int etcd_wrong(struct etcd_members *m, int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
