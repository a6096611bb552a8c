/* SPDX-License-Identifier: BSD-3-Clause */
/* The JSON file that INCLINE_RNIC names: one RNIC on one port or several. Its fields are those of
 * ctl_rnic_config (lib/ctl/config.h, docs/rnic-config.md); keys that begin with '#' are comments,
 * any other is refused by name. */
#ifndef VERBS_CONFIG_H
#define VERBS_CONFIG_H

#include <net/if.h>

#include "lib/verbs/internal.h"

enum { IV_MAX_NEIGH = 256, IV_CONFIG_ERR = PORT_ERR_LEN + 256 };

struct iv_neigh {
	struct wire_ip ip;
	uint8_t mac[6];
};

struct iv_netdev_config {
	char name[IF_NAMESIZE]; /* "": none */
	unsigned prefix4, prefix6;
};

struct iv_port_config {
	uint8_t mac[6];
	struct wire_ip ip[RNIC_MAX_GID - 1];
	unsigned n_ip;
	unsigned mtu;
	struct wire_ip via, sid; /* zero: none */
	struct iv_neigh neigh[IV_MAX_NEIGH];
	unsigned n_neigh;
	struct port_config port;
	unsigned wait_ms;
};

struct iv_config {
	char name[IV_NAME_LEN]; /* "": the default */
	struct iv_port_config ports[RNIC_MAX_PORTS];
	unsigned n_ports;
	bool iwarp; /* queue pairs over TCP */
	enum port_idle idle;
	unsigned memory_mb;
	bool hugepages;
	unsigned max_qp;
	struct rnic_congestion congestion;
	struct mrc_settings mrc;
	struct iv_netdev_config netdev;
	unsigned rx_workers;
	bool lldp;
	char host[RNIC_HOST_LEN]; /* "" if lldp is off */
};

/* What lib/rnic is to know of the port. */
struct rnic_port_config iv_config_port(const struct iv_port_config *config);
/* And of LLDP. */
void iv_config_lldp(const struct iv_config *config, struct rnic_config *rnic);

/* 0, or -errno with "file: field: reason" in err and nothing in config to be used. */
int iv_config_read(const char *path, struct iv_config *config, char err[IV_CONFIG_ERR]);

#endif
