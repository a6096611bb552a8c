/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of the switch, as the control plane sees them. A neighbour is reachable at its own
 * address without a route, as if there were a host route to it; a route for exactly that address
 * takes precedence. */
#include "dataplane/fwd.h"

static const struct table_desc local_addr = {
	.name = "local_addr",
	.help = "addresses of the switch itself, also for collectives",
	.n_keys = 1,
	.keys = {{.name = "ip", .help = "IPv4 or IPv6 address", .type = TABLE_IP}},
	.n_actions = 1,
	.actions = {{.name = "local", .help = "packets to it are for the switch"}},
	.size = 256,
};

static const struct table_desc neigh = {
	.name = "neigh",
	.help = "neighbours: who is reached at which port and MAC address",
	.n_keys = 1,
	.keys = {{.name = "ip", .help = "IPv4 or IPv6 address", .type = TABLE_IP}},
	.n_actions = 1,
	.actions = {{
		.name = "rewrite",
		.help = "send to this MAC address at this port",
		.n_params = 3,
		.params = {{.name = "port", .help = "port name", .type = TABLE_PORT},
			{.name = "mac", .help = "MAC address", .type = TABLE_MAC},
			{.name = "vlan",
				.help = "VLAN it is in; default: untagged",
				.type = TABLE_UINT,
				.min = 1,
				.max = 4094,
				.optional = true}},
	}},
	.size = 16384,
};

static const struct table_desc route4 = {
	.name = "route4",
	.help = "IPv4 routes, the longest prefix wins",
	.n_keys = 1,
	.keys = {{.name = "dst", .help = "prefix", .type = TABLE_IP4, .match = TABLE_LPM}},
	.n_actions = 3,
	.actions = {{
			    .name = "via",
			    .help = "send to a neighbour",
			    .n_params = 1,
			    .params = {{.name = "nexthop",
				    .help = "neighbour's address",
				    .type = TABLE_IP4}},
		    },
		{
			.name = "direct",
			.help = "destinations are neighbours at this port: those in neigh",
			.n_params = 1,
			.params = {{.name = "port", .help = "port name", .type = TABLE_PORT}},
		},
		{.name = "blackhole", .help = "drop"}},
	.size = 131072,
};

static const struct table_desc route6 = {
	.name = "route6",
	.help = "IPv6 routes, the longest prefix wins",
	.n_keys = 1,
	.keys = {{.name = "dst", .help = "prefix", .type = TABLE_IP6, .match = TABLE_LPM}},
	.n_actions = 3,
	.actions = {{
			    .name = "via",
			    .help = "send to a neighbour",
			    .n_params = 1,
			    .params = {{.name = "nexthop",
				    .help = "neighbour's address",
				    .type = TABLE_IP6}},
		    },
		{
			.name = "direct",
			.help = "destinations are neighbours at this port: those in neigh",
			.n_params = 1,
			.params = {{.name = "port", .help = "port name", .type = TABLE_PORT}},
		},
		{.name = "blackhole", .help = "drop"}},
	.size = 131072,
};

const struct table_desc *const fwd_tables[FWD_N_TABLES] = {
	[FWD_LOCAL_ADDR] = &local_addr,
	[FWD_NEIGH] = &neigh,
	[FWD_ROUTE4] = &route4,
	[FWD_ROUTE6] = &route6,
};
