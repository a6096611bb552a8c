/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of the switch, as the control plane sees them. A neighbour is reachable at its own
 * address without a route, as if there were a host route to it; a route for exactly that address
 * takes precedence. */
#include "dataplane/acl/acl.h"
#include "dataplane/fwd.h"
#include "dataplane/l2/mac_table.h"

static const struct table_desc local_addr = {
	.name = "local_addr",
	.node = "parse",
	.miss = "ip_forward",
	.help = "addresses of the switch itself, also for collectives",
	.n_keys = 1,
	.keys = {{.name = "ip", .help = "IPv4 or IPv6 address", .type = TABLE_IP}},
	.n_actions = 1,
	.actions = {{.name = "local", .help = "packets to it are for the switch"}},
	.size = 256,
};

static const struct table_desc neigh = {
	.name = "neigh",
	.node = "ip_forward",
	.miss = "ip_no_route",
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

#define MORE(nexthop, ip_type)                                                                  \
	{                                                                                       \
		.name = nexthop, .help = "another neighbour", .type = ip_type, .optional = true \
	}
#define SEGMENT(sid, meaning)                                                     \
	{                                                                         \
		.name = sid, .help = meaning, .type = TABLE_IP6, .optional = true \
	}

/* What routes of a family do; nexthop is the type of its addresses. */
#define ROUTE_ACTIONS(nexthop_type)                                                                \
	.n_actions = 5,                                                                            \
	.actions = {{.name = "via",                                                                \
			    .help = "send to a neighbour",                                         \
			    .n_params = 1,                                                         \
			    .params = {{.name = "nexthop",                                         \
				    .help = "neighbour's address",                                 \
				    .type = nexthop_type}}},                                       \
		{.name = "direct",                                                                 \
			.help = "destinations are neighbours at this port: those in neigh, and "   \
				"others that answer if it has neigh_learn",                        \
			.n_params = 2,                                                             \
			.params = {{.name = "port", .help = "port name", .type = TABLE_PORT},      \
				{.name = "vlan",                                                   \
					.help = "VLAN they are in; default: untagged",             \
					.type = TABLE_UINT,                                        \
					.min = 1,                                                  \
					.max = 4094,                                               \
					.optional = true}}},                                       \
		{.name = "blackhole", .help = "drop"},                                             \
		{.name = "encap",                                                                  \
			.help = "into a tunnel along segments (SRv6, H.Encaps.Red), by the route " \
				"to the first",                                                    \
			.n_params = 5,                                                             \
			.params = {{.name = "src", .help = "outer source", .type = TABLE_IP6},     \
				{.name = "sid1", .help = "first segment", .type = TABLE_IP6},      \
				SEGMENT("sid2", "second, in a SRH"), SEGMENT("sid3", "third"),     \
				SEGMENT("sid4", "fourth")}},                                       \
		{.name = "ecmp",                                                                   \
			.help = "send to one of several neighbours, by a hash of addresses, "      \
				"ports and flow label; those not in neigh are left out",           \
			.n_params = FWD_MAX_NEXTHOPS,                                              \
			.params = {{.name = "nexthop1",                                            \
					   .help = "neighbour's address",                          \
					   .type = nexthop_type},                                  \
				MORE("nexthop2", nexthop_type), MORE("nexthop3", nexthop_type),    \
				MORE("nexthop4", nexthop_type), MORE("nexthop5", nexthop_type),    \
				MORE("nexthop6", nexthop_type), MORE("nexthop7", nexthop_type),    \
				MORE("nexthop8", nexthop_type)}}}

static const struct table_desc route4 = {
	.name = "route4",
	.node = "ip_forward",
	.miss = "ip_no_route",
	.help = "IPv4 routes, the longest prefix wins",
	.n_keys = 1,
	.keys = {{.name = "dst", .help = "prefix", .type = TABLE_IP4, .match = TABLE_LPM}},
	ROUTE_ACTIONS(TABLE_IP4),
	.size = 131072,
};

static const struct table_desc route6 = {
	.name = "route6",
	.node = "ip_forward",
	.miss = "ip_no_route",
	.help = "IPv6 routes, the longest prefix wins",
	.n_keys = 1,
	.keys = {{.name = "dst", .help = "prefix", .type = TABLE_IP6, .match = TABLE_LPM}},
	ROUTE_ACTIONS(TABLE_IP6),
	.size = 131072,
};

#define PSP                                                                         \
	{                                                                           \
		.name = "psp", .help = "take a SRH off whose last segment is next", \
		.type = TABLE_BOOL, .optional = true                                \
	}

/* In the order of enum srv6_behaviour. */
static const struct table_desc local_sid = {
	.name = "local_sid",
	.node = "ip_forward",
	.miss = "ip_no_route",
	.help = "the switch's own SRv6 SIDs, the longest prefix wins; also over routes",
	.n_keys = 1,
	.keys = {{.name = "sid", .help = "prefix", .type = TABLE_IP6, .match = TABLE_LPM}},
	.n_actions = 4,
	.actions = {{
			    .name = "un",
			    .help = "the next uSID becomes the first, routes say where to; /48 or "
				    "/64",
			    .n_params = 1,
			    .params = {PSP},
		    },
		{
			.name = "ua",
			.help = "the next uSID becomes the first, to this neighbour; /48 or /64",
			.n_params = 2,
			.params = {{.name = "nexthop",
					   .help = "neighbour's address",
					   .type = TABLE_IP6},
				PSP},
		},
		{
			.name = "end",
			.help = "the SRH's next segment becomes the destination",
			.n_params = 1,
			.params = {PSP},
		},
		{
			.name = "dt46",
			.help = "end of a tunnel: the packet inside is routed",
			.n_params = 1,
			.params = {{.name = "outer_dscp",
				.help = "the packet inside gets the outer one's DSCP",
				.type = TABLE_BOOL,
				.optional = true}},
		}},
	.size = 4096,
};

#define GROUP                                                                               \
	{                                                                                   \
		.name = "group", .help = "IPv4 or IPv6 multicast address", .type = TABLE_IP \
	}

static const struct table_desc mcast_group = {
	.name = "mcast_group",
	.node = "mcast",
	.miss = "mcast_unknown",
	.help = "multicast groups: the ports that their packets leave by, but for the one that "
		"they came by",
	.n_keys = 2,
	.keys = {GROUP, {.name = "port", .help = "port name", .type = TABLE_PORT}},
	.n_actions = 1,
	.actions = {{
		.name = "member",
		.help = "a member, or the next switch of the tree, is at this port",
		.n_params = 1,
		.params = {{.name = "vlan",
			.help = "VLAN it is in; default: untagged",
			.type = TABLE_UINT,
			.min = 1,
			.max = 4094,
			.optional = true}},
	}},
	.size = 16384,
};

static const struct table_desc mcast_sender = {
	.name = "mcast_sender",
	.node = "mcast",
	.miss = "mcast_sender",
	.help = "who may send to a multicast group; without a row of it, everybody",
	.n_keys = 2,
	.keys = {GROUP, {.name = "src", .help = "the sender's address", .type = TABLE_IP}},
	.n_actions = 1,
	.actions = {{
		.name = "from",
		.help = "if its packets come from this port",
		.n_params = 1,
		.params = {{.name = "port", .help = "port name", .type = TABLE_PORT}},
	}},
	.size = 16384,
};

static const struct table_desc mac = {
	.name = "mac",
	.node = "bridge",
	.miss = "bridge_flooded",
	.help = "where hosts of bridges are, whatever they say; others are learnt",
	.n_keys = 2,
	.keys = {{.name = "mac", .help = "MAC address", .type = TABLE_MAC},
		{.name = "vlan",
			.help = "VLAN of the bridge; 0: untagged",
			.type = TABLE_UINT,
			.max = 4094}},
	.n_actions = 1,
	.actions = {{
		.name = "forward",
		.help = "send by this port",
		.n_params = 1,
		.params = {{.name = "port", .help = "port name", .type = TABLE_PORT}},
	}},
	.size = MAC_MAX_STATIC,
};

const struct table_desc *const fwd_tables[FWD_N_TABLES] = {
	[FWD_LOCAL_ADDR] = &local_addr,
	[FWD_NEIGH] = &neigh,
	[FWD_ROUTE4] = &route4,
	[FWD_ROUTE6] = &route6,
	[FWD_LOCAL_SID] = &local_sid,
	[FWD_MCAST_GROUP] = &mcast_group,
	[FWD_MCAST_SENDER] = &mcast_sender,
	[FWD_MAC] = &mac,
	[FWD_ACL] = &acl_table,
};
