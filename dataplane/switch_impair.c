/* SPDX-License-Identifier: BSD-3-Clause */
/* Bad weather on ports: as configured, and changed while the switch runs. */
#include <errno.h>

#include "dataplane/sw.h"

struct change {
	struct impair *weather; /* of this worker and port */
	const struct sw_config_port *to;
	uint16_t id;
};

/* A worker's own luck, of its own seed. What it holds stays with it, and goes its way: then the
 * port is without impair again (port/port_rx.c). */
static void apply(struct worker *w, void *arg)
{
	const struct change *c = arg;
	struct lport *lp = &w->port[c->id];

	impair_change(c->weather, c->to->impaired ? &c->to->impair : NULL);
	c->weather->rng += w->index;
	lp->impair = c->to->impaired || c->weather->n_held > 0 ? c->weather : NULL;
}

void sw_impair_attach(struct sw *sw, struct worker *w, unsigned port)
{
	apply(w, &(struct change){
			 &sw->impair[w->index][port], &sw->config.ports[port], sw->ports[port].id});
}

int sw_port_impair(struct sw *sw, unsigned port, const struct impair *impair, char err[SW_ERR_LEN])
{
	if (port >= sw->n_ports)
		return sw_fail(err, -ENOENT, "port: there is no port %u", port);
	sw->config.ports[port].impaired = impair != NULL;
	sw->config.ports[port].impair = impair != NULL ? *impair : (struct impair){0};
	for (unsigned i = 0; i < sw->n_workers; i++) {
		struct change c = {
			&sw->impair[i][port], &sw->config.ports[port], sw->ports[port].id};

		if (sw_worker_call(sw, i, apply, &c) < 0)
			return sw_fail(
				err, -ETIMEDOUT, "worker %u has not answered within a second", i);
	}
	return 0;
}
