/* SPDX-License-Identifier: BSD-3-Clause */
/* INC groups: from JSON to what the dataplane installs, and life cycle. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "ctrl/agent/group_json.h"
#include "ctrl/agent/table_json.h"

/* ---- group.create: JSON to spec ---- */

static int index_of(const char *const *names, const char *name)
{
	for (int i = 0; names[i]; i++)
		if (!strcmp(names[i], name))
			return i;
	return -ENOENT;
}

static int read_flags(const json_t *flags)
{
	return (rpc_bool(flags, "reproducible", false) ? INC_F_REPRODUCIBLE : 0) |
	       (rpc_bool(flags, "dup_all", false) ? INC_F_DUP_ALL : 0) |
	       (rpc_bool(flags, "late_flush", true) ? INC_F_LATE_FLUSH : 0) |
	       (rpc_bool(flags, "stall_rnr", true) ? INC_F_STALL_RNR : 0) |
	       (rpc_bool(flags, "strict_port", true) ? INC_F_STRICT_PORT : 0) |
	       (rpc_bool(flags, "sr", false) ? INC_F_SR : 0) |
	       (rpc_bool(flags, "half", true) ? INC_F_HALF : 0);
}

static uint32_t random_psn(void)
{
	uint32_t psn = 0;

	while (getrandom(&psn, sizeof(psn), 0) != sizeof(psn))
		;
	return psn & PSN_MASK;
}

static int read_header(const json_t *params, struct inc_group_spec *s, struct rpc_error *e)
{
	const char *prim = rpc_string(params, "primitive"), *lease, *verb;
	int rc = rpc_read_name(rpc_string(params, "name"), s->name, sizeof(s->name), e);

	if (rc)
		return rc;
	s->mode = (uint8_t)(index_of(group_modes, rpc_string(params, "mode")) + INC_MODE_1);
	s->kind = (uint8_t)index_of(group_kinds, rpc_string(params, "kind"));
	if (s->kind == INC_SINGLE && !prim)
		return rpc_fail(e, -EINVAL, "primitive", "is missing: a single group has one");
	if (s->kind == INC_MIXED && prim)
		return rpc_fail(e, -EINVAL, "primitive", "is for single groups");
	s->prim = prim ? (uint8_t)index_of(group_primitives, prim) : INC_AR;
	s->root = (uint16_t)rpc_int(params, "root", 0);
	s->unbound = !rpc_bool(params, "bound", true);
	if ((lease = rpc_string(params, "lease")) &&
		(rc = rpc_read_letters("lease", lease, s->lease, sizeof(s->lease), e)))
		return rc;
	if ((lease = rpc_string(params, "tenant")) &&
		(rc = rpc_read_letters("tenant", lease, s->tenant, sizeof(s->tenant), e)))
		return rc;
	s->lease_ms = (uint32_t)rpc_int(params, "lease_ms", 0);
	s->activate_ms = (uint32_t)rpc_int(params, "activate_ms", 0);
	s->mtu = (uint16_t)rpc_int(params, "mtu", 0);
	s->m = (uint16_t)rpc_int(params, "M", 0);
	s->w = (uint16_t)rpc_int(params, "W", 0);
	s->slots = (uint32_t)rpc_int(params, "slots", 0);
	s->rto_us = (uint32_t)rpc_int(params, "rto_us", 0);
	s->n_ranks = (uint16_t)rpc_int(params, "ranks", 0);
	s->flags = (uint16_t)read_flags(json_object_get(params, "flags"));
	if ((verb = rpc_string(params, "verb")) && !strcmp(verb, "write"))
		s->flags |= INC_F_WRITE;
	s->start_psn = json_object_get(params, "start_psn")
			       ? (uint32_t)rpc_int(params, "start_psn", 0)
			       : random_psn();
	return 0;
}

static int read_ip(const json_t *json, const char *field, const char *at, struct wire_ip *ip,
	struct rpc_error *e)
{
	const char *text = rpc_string(json, field);
	char path[CTL_PATH_LEN];

	if (!text || !wire_ip_parse(text, ip))
		return 0;
	snprintf(path, sizeof(path), "%s.%s", at, field);
	return rpc_fail(e, -EINVAL, path, "\"%.64s\" is not an IP address", text);
}

static int read_ranks(const json_t *list, unsigned n_ranks, const char *at, struct inc_ep_spec *ep,
	struct rpc_error *e)
{
	char path[CTL_PATH_LEN];
	json_t *value;
	size_t i;

	json_array_foreach(list, i, value)
	{
		json_int_t rank = json_integer_value(value);

		snprintf(path, sizeof(path), "%s.ranks[%zu]", at, i);
		if (rank < 0 || rank >= (json_int_t)n_ranks)
			return rpc_fail(e, -EINVAL, path,
				"%" JSON_INTEGER_FORMAT " is not in 0..%u", rank, n_ranks - 1);
		ep->ranks[ep->n_ranks++] = (uint16_t)rank;
	}
	return 0;
}

static int read_endpoint(const json_t *json, unsigned n_ranks, const char *at,
	const struct port_names *ports, struct inc_ep_spec *ep, struct rpc_error *e)
{
	const char *mac = rpc_string(json, "mac"), *port = rpc_string(json, "port");
	char path[CTL_PATH_LEN];
	int id = port_names_id(ports, port);
	int rc = read_ip(json, "ip", at, &ep->remote_ip, e);

	if (!rc)
		rc = read_ip(json, "local_ip", at, &ep->local_ip, e);
	if (rc)
		return rc;
	snprintf(path, sizeof(path), "%s.port", at);
	if (id < 0)
		return rpc_fail(e, -ENOENT, path, "no port is named \"%.48s\"", port);
	ep->port = (uint16_t)id;
	snprintf(path, sizeof(path), "%s.mac", at);
	if (mac && wire_mac_parse(mac, ep->dmac))
		return rpc_fail(e, -EINVAL, path, "\"%.48s\" is not a MAC address", mac);
	ep->remote_qpn = (uint32_t)rpc_int(json, "qpn", 0);
	ep->vlan = (uint16_t)rpc_int(json, "vlan", 0);
	ep->dscp = (uint8_t)rpc_int(json, "dscp", 0);
	ep->parent = rpc_bool(json, "parent", false);
	ep->host = rpc_bool(json, "host", !ep->parent);
	ep->mr_len = (uint32_t)rpc_int(json, "mr_len", 0);
	ep->rkey = (uint32_t)rpc_int(json, "rkey", 0);
	if (json_object_get(json, "mr_addr"))
		ctl_get_u64(json_object_get(json, "mr_addr"), &ep->mr_addr);
	snprintf(path, sizeof(path), "%s.ranks", at);
	if (!json_object_get(json, "ranks") && !ep->parent)
		return rpc_fail(e, -EINVAL, path, "is missing");
	return read_ranks(json_object_get(json, "ranks"), n_ranks, at, ep, e);
}

/* A parent without ranks leads to all ranks that are not behind another endpoint. */
static void complete_parent(struct inc_group_spec *s)
{
	bool seen[INC_MAX_RANKS] = {false};
	struct inc_ep_spec *parent = &s->ep[s->n_ep - 1];

	if (!parent->parent || parent->n_ranks)
		return;
	for (unsigned i = 0; i + 1u < s->n_ep; i++)
		for (unsigned k = 0; k < s->ep[i].n_ranks; k++)
			seen[s->ep[i].ranks[k]] = true;
	for (unsigned r = 0; r < s->n_ranks; r++)
		if (!seen[r])
			parent->ranks[parent->n_ranks++] = (uint16_t)r;
}

/* Fills in *s; s->ep is the caller's to free, whatever is returned. */
static int read_spec(
	struct sw *sw, const json_t *params, struct inc_group_spec *s, struct rpc_error *e)
{
	const json_t *list = json_object_get(params, "endpoints");
	struct port_names ports;
	char at[32];
	int rc = read_header(params, s, e);

	if (rc)
		return rc;
	s->n_ep = (uint8_t)json_array_size(list);
	s->ep = calloc(s->n_ep, sizeof(*s->ep));
	if (!s->ep)
		return rpc_fail(e, -ENOMEM, "", "out of memory");
	port_names_read(sw, &ports);
	for (unsigned i = 0; i < s->n_ep; i++) {
		snprintf(at, sizeof(at), "endpoints[%u]", i);
		rc = read_endpoint(json_array_get(list, i), s->n_ranks, at, &ports, &s->ep[i], e);
		if (rc)
			return rc;
	}
	complete_parent(s);
	return 0;
}

static bool all_qpns_known(const struct inc_group_spec *s)
{
	for (unsigned i = 0; i < s->n_ep; i++)
		if (!s->ep[i].remote_qpn)
			return false;
	return true;
}

int rpc_group_create(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	struct inc_group_spec spec = {.ep = NULL};
	char text[SW_ERR_LEN] = "";
	unsigned slot = 0;
	int rc = rpc_epoch_check(a, params, e);

	if (!rc)
		rc = read_spec(a->sw, params, &spec, e);
	if (!rc) {
		rc = sw_group_create(a->sw, &spec,
			rpc_bool(params, "activate", all_qpns_known(&spec)), &slot, text);
		if (rc) {
			rc = rpc_fail_text(e, rc, text);
		} else {
			rpc_own_group(a, slot);
			rpc_epoch_note(a, params, slot);
			*result = group_created_json(a->sw, slot);
		}
	}
	free(spec.ep);
	return rc;
}

/* ---- life cycle ---- */

/* What group.activate, delete and fail answer. The group may be gone by now. */
static json_t *state_json(struct sw *sw, int slot, const char *name)
{
	const struct inc_group *g = sw_group_get(sw, (unsigned)slot);

	return json_pack("{s:i,s:s,s:s}", "group", slot, "name", name, "state",
		inc_state_name(g ? g->state : INC_FREE));
}

static int change(struct agent *a, int slot, int rc, const char *text, const char *name,
	json_t **result, struct rpc_error *e)
{
	if (rc)
		return rpc_fail_text(e, rc, text);
	*result = state_json(a->sw, slot, name);
	return 0;
}

int rpc_group_activate(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	uint32_t qpn[INC_MAX_EP] = {0};
	char text[SW_ERR_LEN] = "", name[INC_NAME_LEN], path[CTL_PATH_LEN];
	int slot = group_resolve(a, params, e);
	const json_t *item;
	size_t i;

	if (slot < 0)
		return slot;
	/* What is made but does not work yet cannot fail: ended meanwhile, it only goes. */
	if (rpc_epoch_check_group(a, (unsigned)slot, e))
		return -ESTALE;
	struct inc_group *g = sw_group_get(a->sw, (unsigned)slot);
	memcpy(name, g->name, sizeof(name));
	json_array_foreach(json_object_get(params, "endpoints"), i, item)
	{
		unsigned index = (unsigned)rpc_int(item, "index", 0);

		snprintf(path, sizeof(path), "endpoints[%zu].index", i);
		if (index >= g->n_ep)
			return rpc_fail(
				e, -EINVAL, path, "%u is not in 0..%u", index, g->n_ep - 1u);
		if (qpn[index])
			return rpc_fail(e, -EINVAL, path, "%u is given twice", index);
		qpn[index] = (uint32_t)rpc_int(item, "qpn", 0);
	}
	for (unsigned k = 0; k < g->n_ep; k++)
		if (!qpn[k] && !inc_ep_at(g, k)->remote_qpn)
			return rpc_fail(e, -EINVAL, "endpoints",
				"the QPN of endpoint %u is not known yet: give it here", k);
	int rc = sw_group_activate(a->sw, (unsigned)slot, qpn, g->n_ep, text);
	return change(a, slot, rc, text, name, result, e);
}

int rpc_group_rebind(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	char text[SW_ERR_LEN] = "";
	int slot = group_resolve(a, params, e);

	if (slot < 0)
		return slot;
	int rc = sw_group_rebind(a->sw, (unsigned)slot, rpc_bool(params, "bound", true), text);
	if (rc)
		return rpc_fail_text(e, rc, text);
	const struct inc_group *g = sw_group_get(a->sw, (unsigned)slot);
	*result = json_pack("{s:i,s:s,s:s,s:o}", "group", slot, "name", g->name, "state",
		inc_state_name(g->state), "arena", group_arena_json(g));
	return 0;
}

int rpc_group_resync(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	const uint32_t psn = (uint32_t)json_integer_value(json_object_get(params, "psn"));
	char text[SW_ERR_LEN] = "";
	int slot = group_resolve(a, params, e);
	bool done;

	if (slot < 0)
		return slot;
	int rc = sw_group_resync(a->sw, (unsigned)slot, psn, &done, text);
	if (rc)
		return rpc_fail_text(e, rc, text);
	*result = json_pack("{s:i,s:s,s:b}", "group", slot, "name",
		sw_group_get(a->sw, (unsigned)slot)->name, "done", done);
	return 0;
}

int rpc_group_move(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	const unsigned worker = (unsigned)json_integer_value(json_object_get(params, "worker"));
	char text[SW_ERR_LEN] = "";
	int slot = group_resolve(a, params, e);

	if (slot < 0)
		return slot;
	int rc = sw_group_move(a->sw, (unsigned)slot, worker, text);
	if (rc)
		return rpc_fail_text(e, rc, text);
	*result = json_pack("{s:i,s:s,s:i}", "group", slot, "name",
		sw_group_get(a->sw, (unsigned)slot)->name, "worker",
		sw_group_worker(a->sw, (unsigned)slot));
	return 0;
}

int rpc_group_delete(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	char text[SW_ERR_LEN] = "", name[INC_NAME_LEN];
	int slot = group_resolve(a, params, e);

	if (slot < 0)
		return slot;
	memcpy(name, sw_group_get(a->sw, (unsigned)slot)->name, sizeof(name));
	int rc = sw_group_delete(a->sw, (unsigned)slot, rpc_bool(params, "force", false), text);
	return change(a, slot, rc, text, name, result, e);
}

int rpc_group_fail(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	char text[SW_ERR_LEN] = "", name[INC_NAME_LEN];
	int slot = group_resolve(a, params, e);

	if (slot < 0)
		return slot;
	memcpy(name, sw_group_get(a->sw, (unsigned)slot)->name, sizeof(name));
	int rc = sw_group_fail(a->sw, (unsigned)slot, text);
	return change(a, slot, rc, text, name, result, e);
}
