/* SPDX-License-Identifier: BSD-3-Clause */
/* mcast.members. */
#include "ctrl/agent/agent.h"
#include "ctrl/agent/rpc.h"
#include "lib/ctl/mcast_schema.h"
#include "lib/wire/ip.h"

static json_t *member_json(const struct sw_member *m)
{
	char text[WIRE_IP_STRLEN];
	json_t *out = json_pack("{s:s,s:s,s:b,s:o}", "group",
		wire_ip_format(&m->group, text, sizeof(text)), "port", m->port, "leaving",
		m->leaving, "seconds", ctl_u64(m->left_ns / 1000000000));

	if (m->vlan != 0)
		json_object_set_new(out, "vlan", json_integer(m->vlan));
	return out;
}

int rpc_mcast_members(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	json_t *list = json_array();
	struct sw_member_counters count;
	struct sw_member m;
	const unsigned total = sw_members(a->sw, &count);

	(void)params, (void)e;
	for (unsigned i = 0; i < CTL_MCAST_MEMBERS_MAX && sw_member_get(a->sw, i, &m) == 0; i++)
		json_array_append_new(list, member_json(&m));
	*result = json_pack("{s:o,s:i}", "members", list, "total", (int)total);
#define X(field) json_object_set_new(*result, #field, ctl_u64(count.field));
	SW_MEMBER_COUNTERS(X)
#undef X
	return 0;
}
