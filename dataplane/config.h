/* SPDX-License-Identifier: BSD-3-Clause */
/* What a switch is made from, checked. ctrl/config reads it from the start-up file. */
#ifndef DATAPLANE_CONFIG_H
#define DATAPLANE_CONFIG_H

#include "dataplane/fwd.h"
#include "dataplane/port/impair.h"
#include "dataplane/switch.h"

struct sw_config {
	char name[PORT_NAME_LEN];
	unsigned n_addresses;
	struct wire_ip *addresses;
	unsigned n_ports;
	struct sw_config_port {
		struct port_config port;
		bool proxy_arp, impaired, mcast_learn, neigh_learn;
		struct fwd_vlans *bridge; /* of whose bridges it is a port; NULL: none */
		unsigned flood_pps;
		struct impair impair;
		struct egress_config queue;
	} ports[SW_MAX_PORTS];
	struct egress_classes classes;
	size_t arena_bytes;
	enum port_idle idle;
	char lcores[PORT_LCORES_LEN]; /* "" : default */
	unsigned workers;             /* 0: to be found, sw_workers_find */
	bool hugepages, pci, telemetry;
	bool icmp_errors, lldp;
	unsigned memory_mb, mcast_max, neigh_max, mac_max;
	uint64_t mac_age_ns;
	uint64_t slot_rest_ns, drain_ns, stall_ns;
	/* What whoever made it wants to be kept with the switch: sw_given. */
	void *given;
	void (*free_given)(void *given);
};

/* Frees what it holds. */
void sw_config_free(struct sw_config *config);

#endif
