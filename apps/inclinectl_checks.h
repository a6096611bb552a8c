/* SPDX-License-Identifier: BSD-3-Clause */
/* What "inclinectl doctor" looks at: whether a machine is made ready for a configuration. Reads
 * /sys, /proc and /dev below a root, and nothing else. */
#ifndef APPS_INCLINECTL_CHECKS_H
#define APPS_INCLINECTL_CHECKS_H

#include "lib/ctl/schema.h"

enum { CHECKS_MAX_PORTS = 64, CHECKS_MAX_CPUS = 64 };

/* Of an object. */
extern const struct ctl_field checks_result[];

struct checks_about {
	const char *root;      /* "": this machine; else a folder with sys, proc and dev */
	const json_t *config;  /* a switch's or an RNIC's; NULL: what every machine needs */
	const json_t *workers; /* of worker.list; NULL: the switch does not run */
};

/* New reference to an object as checks_result says. Whatever the files hold, each check comes to a
 * verdict: what cannot be read is "warn" where it matters, and says so. */
json_t *checks_run(const struct checks_about *about);

/* ---- inside: inclinectl_checks.c and inclinectl_nic_checks.c ---- */

enum checks_verdict { CHECKS_OK, CHECKS_WARN, CHECKS_FAIL };

struct checks_port {
	const char *name, *type, *iface, *address; /* of a configuration that was checked, or "" */
	json_int_t mtu;
};

struct checks {
	const char *root;
	const json_t *config;
	bool running;
	struct checks_port port[CHECKS_MAX_PORTS];
	unsigned n_ports;
	int cpu[CHECKS_MAX_CPUS]; /* of workers */
	unsigned n_cpus;
	json_t *list;
};

/* Adds a check's outcome. mend: the command that mends it, or NULL. reason: as printf's. */
void checks_add(struct checks *c, const char *check, const char *about, enum checks_verdict verdict,
	const char *mend, const char *reason, ...) __attribute__((format(printf, 6, 7)));

/* Links, drivers, NUMA nodes and MTUs of all ports. */
void checks_ports(struct checks *c);
/* Is a port's device on vfio? */
bool checks_port_is_vfio(const struct checks *c, const struct checks_port *p);

#endif
