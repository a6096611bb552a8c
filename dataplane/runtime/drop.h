/* SPDX-License-Identifier: BSD-3-Clause */
/* How a packet ends its walk inside the switch, in one list: the parser's reasons, the IncEngine's
 * and the graph's own. Counters, trace, statistics and documentation come from it. Of two kinds:
 * losses, that an operator may put an alarm on, and outcomes, that a healthy switch is full of
 * (inc_consumed, inc_done ...). Both are counted, so that
 *
 *	received + emitted by the engine + duplicated on purpose =
 *		sent + waiting for a port + held back on purpose + losses + outcomes */
#ifndef DATAPLANE_DROP_H
#define DATAPLANE_DROP_H

#include <assert.h>
#include <stdbool.h>

#include "dataplane/inc/drops.h"
#include "dataplane/netreduce/drops.h"
#include "lib/rnic/rnic.h"
#include "lib/srv6/drops.h"
#include "lib/wire/frame.h"
#include "lib/wire/lldp.h"

/* X(symbol, name, meaning) */
#define SW_LOSSES(X)                                                                              \
	X(IMPAIR_LOSS, "impair_loss", "lost on purpose by the port's \"impair\"")                 \
	X(RX_OVERSIZE, "rx_oversize",                                                             \
		"received frame is larger than a buffer, or than the MTU and cut off")            \
	X(L2_UNKNOWN, "l2_unknown", "neither ARP nor IP")                                         \
	X(L2_NOT_OURS, "l2_not_ours", "sent to another MAC address than the port's")              \
	X(L2_VLAN, "l2_vlan", "to be routed, from a VLAN that no neighbour of the port is in")    \
	X(L2_GROUP, "l2_group",                                                                   \
		"sent to one IP address, but to a multicast or broadcast MAC address")            \
	X(L2_SOURCE, "l2_source", "sent from a multicast or broadcast MAC address")               \
	X(IP_SOURCE, "ip_source", "asks from an address that no host has: not answered")          \
	X(ICMP_CHECKSUM, "icmp_checksum", "echo request with a wrong checksum")                   \
	X(NEIGH_UNKNOWN, "neigh_unknown",                                                         \
		"ARP or ND for an address that is neither ours nor routed")                       \
	X(LOCAL_PROTO, "local_proto", "addressed to the switch, but nothing takes it")            \
	X(IP_NOT_ROUTABLE, "ip_not_routable",                                                     \
		"link-local multicast, broadcast, link-local or loopback address")                \
	X(MCAST_UNKNOWN, "mcast_unknown", "to a multicast group that has no members")             \
	X(MCAST_MAC, "mcast_mac", "to a multicast group, but not to its MAC address")             \
	X(MCAST_REPORTS, "mcast_reports", "IGMP or MLD, but too many wait for the control plane") \
	X(MCAST_SENDER, "mcast_sender",                                                           \
		"to a multicast group that names its senders, from another or at another port")   \
	X(BRIDGE_FLOOD, "bridge_flood",                                                           \
		"in a bridge, to be sent to all of its ports, but too many are from this one")    \
	X(BRIDGE_OWN_MAC, "bridge_own_mac",                                                       \
		"in a bridge, from one of the switch's own MAC addresses: a loop, or a lie")      \
	WIRE_LLDP_ERRORS(X)                                                                       \
	X(LLDP_FULL, "lldp_full", "LLDP, but too much of it from this port, or waits already")    \
	X(ACL_DENIED, "acl_denied", "a row of acl says deny")                                     \
	X(IP_FORGED, "ip_forged", "claims to come from one of the switch's own addresses")        \
	X(IP_NO_ROUTE, "ip_no_route", "no route to the destination")                              \
	X(IP_BLACKHOLE, "ip_blackhole", "the route says blackhole")                               \
	X(IP_NO_NEIGH, "ip_no_neigh",                                                             \
		"next hop, or destination on a port, has no neighbour entry, or does not answer") \
	X(NEIGH_FULL, "neigh_full",                                                               \
		"next hop is being asked for, but too many packets or neighbours are waited for") \
	X(IP_TTL, "ip_ttl", "TTL or hop limit has run out")                                       \
	X(IP_MTU, "ip_mtu", "larger than the MTU of the port it would leave by")                  \
	X(HANDOFF_FULL, "handoff_full", "the ring to the worker that owns its group is full")     \
	X(NO_MBUF, "no_mbuf", "no packet buffer left for a copy")                                 \
	X(TX_FULL, "tx_full", "the port took no more, and its queue has reached its limit")       \
	X(TX_STALE, "tx_stale",                                                                   \
		"waited for a port that took nothing for too long: its peer is gone or stuck")    \
	X(TX_LINK_DOWN, "tx_link_down", "the interface is down, gone or without carrier")         \
	X(TX_MTU, "tx_mtu", "larger than the MTU that the interface has been given")

#define SW_OUTCOMES(X)                                                                       \
	X(MCAST_REPORT, "mcast_report", "IGMP or MLD: given to the control plane")           \
	X(MCAST_DONE, "mcast_done", "to a multicast group: copied to its members' ports")    \
	X(BRIDGE_FLOODED, "bridge_flooded", "copied to the other ports of its bridge")       \
	X(BRIDGE_STAYS, "bridge_stays", "in a bridge, for who is at the port it came by")    \
	X(BRIDGE_RESERVED, "bridge_reserved",                                                \
		"to a group that bridges do not forward, 01:80:c2:00:00:00 to :0f")          \
	X(LLDP, "lldp", "LLDP: given to the control plane")                                  \
	X(RNIC_DONE, "rnic_done", "taken by the switch's own RNIC")                          \
	X(NEIGH_WAIT, "neigh_wait", "given to the control plane until its next hop answers") \
	X(NEIGH_IGNORED, "neigh_ignored", "ARP or ND that needs no answer")

#define SW_DROPS(X)  \
	SW_LOSSES(X) \
	SW_OUTCOMES(X)

enum drop {
	DROP_NONE,
#define X(sym, name, text) DROP_WIRE_##sym,
	WIRE_DROPS(X)
#undef X
#define X(sym, name, text) DROP_INC_##sym,
		INC_DROPS(X)
#undef X
#define X(sym, name, text) DROP_NR_##sym,
			NR_DROPS(X)
#undef X
#define X(sym, name, text) DROP_RNIC_##sym,
				RNIC_DROPS(X)
#undef X
#define X(sym, name, text) DROP_SRV6_##sym,
					SRV6_DROPS(X)
#undef X
#define X(sym, name, text) DROP_##sym,
						SW_DROPS(X)
#undef X
							N_DROPS
};

static_assert(DROP_WIRE_PARSE_SHORT == (int)WIRE_PARSE_SHORT, "wire reasons come first");

static inline enum drop drop_of_wire(enum wire_drop drop)
{
	return (enum drop)drop;
}

static inline enum drop drop_of_inc(enum inc_drop drop)
{
	return (enum drop)(WIRE_N_DROPS - 1 + drop);
}

static_assert(DROP_INC_DONE == (int)WIRE_N_DROPS - 1 + (int)INC_DROP_DONE, "then the engine's");

static inline enum drop drop_of_nr(enum nr_drop drop)
{
	return drop == NR_ICRC_BAD ? DROP_WIRE_ICRC_BAD : (enum drop)(DROP_INC_DONE + drop);
}

static_assert(DROP_NR_DONE == (int)DROP_INC_DONE + (int)NR_DROP_DONE, "then NetReduce's");

/* What rnic_rx returned. */
static inline enum drop drop_of_rnic(unsigned drop)
{
	if (drop == 0)
		return DROP_RNIC_DONE;
	return (enum drop)(drop < WIRE_N_DROPS ? drop : DROP_NR_DONE + drop - RNIC_DROP_BASE);
}

static_assert(DROP_RNIC_NOT_MINE == (int)DROP_NR_DONE + 1, "then the RNIC's");

static inline enum drop drop_of_srv6(enum srv6_drop drop)
{
	return (enum drop)(DROP_SRV6_HOP_LIMIT - SRV6_HOP_LIMIT + (int)drop);
}

static_assert(
	(int)DROP_SRV6_LOOP - (int)DROP_SRV6_HOP_LIMIT == (int)SRV6_LOOP - (int)SRV6_HOP_LIMIT,
	"all of SRv6's in a row");

/* error is not WIRE_LLDP_OK. */
static inline enum drop drop_of_lldp(enum wire_lldp_error error)
{
	return (enum drop)(DROP_LLDP_TLV - WIRE_LLDP_TLV + (int)error);
}

static_assert((int)DROP_LLDP_TTL - (int)DROP_LLDP_TLV == (int)WIRE_LLDP_TTL - (int)WIRE_LLDP_TLV,
	"all of LLDP's in a row");

/* "ip_ttl" and the meaning; drop < N_DROPS. */
const char *drop_name(enum drop drop);
const char *drop_text(enum drop drop);

/* Not a loss: the packet did what it was sent for. */
bool drop_is_outcome(enum drop drop);

#endif
