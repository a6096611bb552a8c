/* SPDX-License-Identifier: BSD-3-Clause */
/* How many workers, on which CPUs: "workers": "auto". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/sw.h"
#include "lib/port/cpus.h"

/* Where the CPUs cannot be told, and need not be found, the nodes of the NICs still can. */
static int read_machine(const struct sw_config *c, struct port_machine *m, char err[SW_ERR_LEN])
{
	const struct port_config *ports[SW_MAX_PORTS];
	int rc;

	for (unsigned i = 0; i < c->n_ports; i++)
		ports[i] = &c->ports[i].port;
	rc = port_machine_read("", ports, c->n_ports, m);
	return rc < 0 && c->workers == 0
		       ? sw_fail(err, rc, "workers: cannot tell the CPUs: %s", strerror(-rc))
		       : 0;
}

const char *sw_lcores(const struct sw *sw)
{
	return sw->config.lcores;
}

int sw_workers_find(struct sw_config *c, int *node, char err[SW_ERR_LEN])
{
	struct port_machine *m = malloc(sizeof(*m));
	struct port_cpus cpus;
	int rc = m != NULL ? read_machine(c, m, err) : sw_fail(err, -ENOMEM, "workers: no memory");

	if (rc == 0) {
		port_cpus_choose(m, c->n_ports, WORKER_MAX, &cpus);
		*node = cpus.node;
	}
	free(m);
	if (rc < 0 || c->workers > 0)
		return rc;
	c->workers = cpus.n;
	if (cpus.n_cpus > 0)
		rc = port_lcores_bound(&cpus, c->lcores, sizeof(c->lcores));
	return rc < 0 ? sw_fail(err, rc, "workers: cannot name the CPUs: %s", strerror(-rc)) : 0;
}
