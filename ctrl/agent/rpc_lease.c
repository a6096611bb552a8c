/* SPDX-License-Identifier: BSD-3-Clause */
/* Leases: memory that groups share, one tenant at a time. */
#include "ctrl/agent/rpc.h"

int rpc_lease_acquire(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	const char *lease = rpc_string(params, "lease"), *tenant = rpc_string(params, "tenant");
	char text[SW_ERR_LEN] = "";
	const int rc = sw_lease_acquire(a->sw, lease, tenant, text);

	if (rc)
		return rpc_fail_text(e, rc, text);
	*result = json_pack("{s:s,s:s}", "lease", lease, "holder", tenant);
	return 0;
}

int rpc_lease_release(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	const char *lease = rpc_string(params, "lease");
	char text[SW_ERR_LEN] = "";
	bool pending = false;
	const int rc = sw_lease_release(a->sw, lease, rpc_string(params, "tenant"), &pending, text);

	if (rc)
		return rpc_fail_text(e, rc, text);
	*result = json_pack("{s:s,s:b}", "lease", lease, "pending", pending);
	return 0;
}

static json_t *lease_json(const struct sw_lease_info *l)
{
	json_t *out = json_pack(
		"{s:s,s:o,s:i}", "name", l->name, "bytes", ctl_u64(l->bytes), "groups", l->members);

	if (l->offset != INC_NO_ARENA)
		json_object_set_new(out, "offset", ctl_u64(l->offset));
	if (l->holder[0]) {
		json_object_set_new(out, "holder", json_string(l->holder));
		json_object_set_new(out, "held_ms", ctl_u64(l->held_ns / 1000000));
		json_object_set_new(out, "releasing", json_boolean(l->releasing));
	}
#define X(field, text) json_object_set_new(out, #field, ctl_u64(l->count.field));
	SW_LEASE_COUNTERS(X)
#undef X
	return out;
}

int rpc_lease_list(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	json_t *list = json_array();
	struct sw_lease_info info;

	(void)params, (void)e;
	for (unsigned i = 0; sw_lease_get(a->sw, i, &info) == 0; i++)
		if (info.name[0])
			json_array_append_new(list, lease_json(&info));
	*result = json_pack("{s:o}", "leases", list);
	return 0;
}
