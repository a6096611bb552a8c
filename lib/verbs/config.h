/* SPDX-License-Identifier: BSD-3-Clause */
/* clang-format off */
/* The JSON file that INCLINE_RNIC names: one RNIC on one port.
 *
 *	"mac"		string   required, unicast, not zero
 *	"ip"		array    0..7 addresses, IPv4 or IPv6, each a GID from index 1 on
 *	"port"		object   required, see lib/port/port.h; takes "mac" and "mtu" from here
 *	"mtu"		integer  largest IP packet, 576..9600, not above the port's; default the port's
 *	"idle"		string   spin | pause | sleep (default), see lib/port/port.h
 *	"neighbors"	array    of {"ip", "mac"}: peers that need no address resolution; at most 256
 *	"device"	string   name, [A-Za-z0-9_-], at most 31 bytes; default "inclineN", N the place of
 *				 the file among those that INCLINE_RNIC names, from 0
 *	"wait_ms"	integer  0..600000, how long ibv_open_device waits for the server of a memif or
 *				 vhost and for the link; default 10000, and 0 where the port is itself
 *				 such a server, whose link comes with the first client
 *	"memory_mb"	integer  32..65536, for packet buffers; default: what rings and MTU need
 *	"hugepages"	boolean  default false
 *	"max_qp"	integer  1..65536, queue pairs of the device; default 16384. A queue pair that may
 *				 be costs 50 bytes, one that is some KB and its queues. As many CQs and
 *				 protection domains, but 1024 at least
 *	"netdev"	object   a network interface for what is not RoCE: "name" (required, 1..15 bytes)
 *				 of a tap device, made if there is none; "prefix4" (0..32, default 24),
 *				 "prefix6" (0..128, default 64) of the addresses above, which it is given
 *	"congestion"	object   DCQCN: "reaction", "notification" (booleans, default true), "ect"
 *				 (boolean, default false), and the numbers of struct rnic_congestion by
 *				 their names
 *	"control_lcore"	integer  CPU, 0 .. those of the machine - 1, of the control path's thread, which
 *				 then has the transports to itself, and a second thread the port and
 *				 every byte (split.h). Default: one thread, and callers of verbs, do
 *				 both. Not with "netdev"
 *
 * Keys that begin with '#' are comments; any other is refused by name. */
/* clang-format on */
#ifndef VERBS_CONFIG_H
#define VERBS_CONFIG_H

#include <net/if.h>

#include "lib/verbs/internal.h"

enum {
	IV_NO_LCORE = 0xffff,
	IV_MAX_NEIGH = 256,
	IV_MAX_QP_DEFAULT = 16384,
	IV_CONFIG_ERR = PORT_ERR_LEN + 256
};

struct iv_neigh {
	struct wire_ip ip;
	uint8_t mac[6];
};

struct iv_netdev_config {
	char name[IF_NAMESIZE]; /* "": none */
	unsigned prefix4, prefix6;
};

struct iv_config {
	char name[IV_NAME_LEN]; /* "": the default */
	uint8_t mac[6];
	struct wire_ip ip[RNIC_MAX_GID - 1];
	unsigned n_ip;
	unsigned mtu;
	enum port_idle idle;
	struct iv_neigh neigh[IV_MAX_NEIGH];
	unsigned n_neigh;
	struct port_config port;
	unsigned wait_ms;
	unsigned memory_mb;
	bool hugepages;
	unsigned max_qp;
	struct rnic_congestion congestion;
	struct iv_netdev_config netdev;
	unsigned control_lcore; /* IV_NO_LCORE: not apart */
};

/* 0, or -errno with "file: field: reason" in err and nothing in config to be used. */
int iv_config_read(const char *path, struct iv_config *config, char err[IV_CONFIG_ERR]);

#endif
