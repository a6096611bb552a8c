/* SPDX-License-Identifier: BSD-3-Clause */
/* The ways that `parse` finds for packets. It leaves the way's number in a packet's metadata, and
 * acl or bridge goes it: so each of the three has these edges first, then its own. */
#ifndef DATAPLANE_PARSE_EDGES_H
#define DATAPLANE_PARSE_EDGES_H

/* X(symbol, node): where it sends packets, or has the bridge send them. */
#define PARSE_EDGES(X)              \
	X(INC_LOOKUP, "inc_lookup") \
	X(IP_FORWARD, "ip_forward") \
	X(NEIGH, "neigh")           \
	X(ICMP_ECHO, "icmp_echo")   \
	X(NETREDUCE, "netreduce")   \
	X(MCAST, "mcast")           \
	X(LLDP, "lldp")             \
	X(DROP, "end")

enum {
#define X(sym, node) EDGE_##sym,
	PARSE_EDGES(X)
#undef X
		N_PARSE_EDGES,
	EDGE_BRIDGE = N_PARSE_EDGES, /* of parse and acl */
};

#endif
