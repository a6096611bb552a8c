/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of discover.c (links) and discover_hosts.c (addresses). */
#ifndef MANAGER_DISCOVER_H
#define MANAGER_DISCOVER_H

#include "ctrl/manager/keep.h"

enum {
	MG_MAX_NAMES = 512, /* of hosts, and addresses, that are learnt from one switch */
	MG_MAX_AT_PORT = 64 /* names of hosts and their ports from one port; addresses likewise */
};

/* How many a port has taught, by what `taught` counts: any number, one after the other, would use
 * up all that its switch has. */
unsigned mg_taught(const json_t *taught, const char *port);
/* One more. False: no memory. */
bool mg_teach(json_t **taught, const char *port);

/* What is heard at a port is not learnt, and why: the first reason of a hello. */
void __attribute__((format(printf, 3, 4)))
mg_refuse(struct mg_switch *s, const char *port, const char *fmt, ...);

/* Whom it hears is not known: it has not said hello yet, or its connection is lost. That ends when
 * nobody has listened there for long: what was at a dead switch may be elsewhere. */
bool mg_is_deaf(const struct manager *m, const struct mg_switch *s);

/* By port an object of addresses: neighbours of a hello that are no switches. */
json_t *mg_addresses_read(const struct manager *m, const json_t *list);
/* Those at a port become the host's that is there. */
void mg_addresses_take(struct manager *m, struct mg_switch *s, const char *port, unsigned node);
/* Addresses and chassis go with the last of a host's links. */
void mg_addresses_forget(struct manager *m, unsigned node);
/* False: the file leaves no place for it. */
bool mg_addresses_restore(struct manager *m, const char *ip, const json_t *row);

#endif
