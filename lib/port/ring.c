/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring port is an Ethernet port whose cable ends in two rings of this process: what is put into
 * NAME.rx is received, what is sent comes out of NAME.tx. With "peer" the cable ends in another
 * ring port instead. Tests, simulations and benchmarks hold the other end. */
#include <errno.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>
#include <stdio.h>

#include "lib/port/internal.h"

static struct rte_ring *find(const char *port, const char *end)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "%.25s.%s", port, end);
	return rte_ring_lookup(name);
}

static struct rte_ring *make(const char *port, const char *end, unsigned size)
{
	char name[RTE_RING_NAMESIZE];

	snprintf(name, sizeof(name), "%.25s.%s", port, end);
	return rte_ring_create(
		name, size, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);
}

int port_ring_create(const struct port_config *config, uint16_t *port_id, char err[PORT_ERR_LEN])
{
	struct rte_ring *rx, *tx;
	int id;

	if (config->peer[0] != '\0') {
		rx = find(config->peer, "tx");
		tx = find(config->peer, "rx");
		if (rx == NULL || tx == NULL)
			return port_fail(err, ENOENT,
				"peer: no ring port \"%s\" has been opened before", config->peer);
	} else {
		rx = make(config->name, "rx", config->rxd);
		tx = make(config->name, "tx", config->txd);
		if (rx == NULL || tx == NULL) {
			int error = rte_errno;

			port_ring_destroy(config);
			return port_fail(err, error, "cannot make rings of %u and %u: %s",
				config->rxd, config->txd, rte_strerror(error));
		}
	}
	id = rte_eth_from_rings(config->name, &rx, 1, &tx, 1, SOCKET_ID_ANY);
	if (id < 0) {
		port_ring_destroy(config);
		return port_fail(err, rte_errno ? rte_errno : ENOMEM, "cannot make the device");
	}
	*port_id = (uint16_t)id;
	return 0;
}

static void drain(struct rte_ring *r)
{
	struct rte_mbuf *m;

	while (r != NULL && rte_ring_dequeue(r, (void **)&m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(r);
}

void port_ring_destroy(const struct port_config *config)
{
	if (config->peer[0] != '\0')
		return;
	drain(find(config->name, "rx"));
	drain(find(config->name, "tx"));
}
