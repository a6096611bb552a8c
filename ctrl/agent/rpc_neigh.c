/* SPDX-License-Identifier: BSD-3-Clause */
/* neigh.list. */
#include "ctrl/agent/agent.h"
#include "ctrl/agent/rpc.h"
#include "lib/ctl/neigh_schema.h"
#include "lib/wire/ip.h"

static json_t *neigh_json(const struct sw_neigh_info *n)
{
	char ip[WIRE_IP_STRLEN], mac[WIRE_MAC_STRLEN];
	json_t *out = json_pack("{s:s,s:s,s:s,s:o,s:i}", "ip",
		wire_ip_format(&n->ip, ip, sizeof(ip)), "port", n->port, "state", n->state, "age",
		ctl_u64(n->state_ns / 1000000000), "waiting", (int)n->waiting);

	if (n->known)
		json_object_set_new(
			out, "mac", json_string(wire_mac_format(n->mac, mac, sizeof(mac))));
	if (n->vlan != 0)
		json_object_set_new(out, "vlan", json_integer(n->vlan));
	return out;
}

int rpc_neigh_list(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	json_t *list = json_array();
	struct neigh_counters count;
	struct sw_neigh_info n;
	unsigned at = 0;
	const unsigned total = sw_neighs(a->sw, &count);

	(void)params, (void)e;
	for (unsigned i = 0; i < CTL_NEIGH_LIST_MAX && sw_neigh_get(a->sw, &at, &n) == 0; i++)
		json_array_append_new(list, neigh_json(&n));
	*result = json_pack("{s:o,s:i}", "neighbours", list, "total", (int)total);
#define X(field, text) json_object_set_new(*result, #field, ctl_u64(count.field));
	NEIGH_COUNTERS(X)
#undef X
	return 0;
}
