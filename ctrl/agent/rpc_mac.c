/* SPDX-License-Identifier: BSD-3-Clause */
/* mac.list. */
#include "ctrl/agent/agent.h"
#include "ctrl/agent/rpc.h"
#include "lib/ctl/mac_schema.h"
#include "lib/wire/ip.h"

static json_t *mac_json(const struct sw_mac_info *m)
{
	char mac[WIRE_MAC_STRLEN];
	json_t *out = json_pack("{s:s,s:s,s:s}", "mac", wire_mac_format(m->mac, mac, sizeof(mac)),
		"port", m->port, "kind", m->is_static ? "static" : "learnt");

	if (m->vlan != 0)
		json_object_set_new(out, "vlan", json_integer(m->vlan));
	if (!m->is_static)
		json_object_set_new(out, "idle", ctl_u64(m->idle_ns / 1000000000));
	return out;
}

int rpc_mac_list(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	json_t *list = json_array();
	struct mac_counters count;
	struct sw_mac_info m;
	uint64_t held;
	unsigned at = 0;
	const unsigned total = sw_macs(a->sw, &count, &held);

	(void)params, (void)e;
	for (unsigned i = 0; i < CTL_MAC_LIST_MAX && sw_mac_get(a->sw, &at, &m) == 0; i++)
		json_array_append_new(list, mac_json(&m));
	*result = json_pack(
		"{s:o,s:i,s:o}", "macs", list, "total", (int)total, "held", ctl_u64(held));
#define X(field, text) json_object_set_new(*result, #field, ctl_u64(count.field));
	MAC_COUNTERS(X)
#undef X
	return 0;
}
