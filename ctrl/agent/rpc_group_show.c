/* SPDX-License-Identifier: BSD-3-Clause */
/* INC groups: by what they are named, what they are and what they wait for. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/agent/group_json.h"
#include "ctrl/agent/table_json.h"

enum { SHOW_SLOTS = 64 };

const char *const group_modes[] = {"I", "II", "III", "netreduce", NULL};
const char *const group_kinds[] = {"single", "mixed", NULL};
const char *const group_primitives[] = {"allreduce", "reduce", "broadcast", NULL};

/* ---- names ---- */

int rpc_read_letters(
	const char *field, const char *text, char *out, size_t cap, struct rpc_error *e)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_.-";

	if (text[strspn(text, letters)])
		return rpc_fail(
			e, -EINVAL, field, "must consist of letters, digits, '_', '.' and '-'");
	snprintf(out, cap, "%s", text);
	return 0;
}

int rpc_read_name(const char *name, char *out, size_t cap, struct rpc_error *e)
{
	static const char digits[] = "0123456789";
	const int rc = rpc_read_letters("name", name, out, cap, e);

	if (rc)
		return rc;
	if (!name[strspn(name, digits)])
		return rpc_fail(e, -EINVAL, "name", "must not be digits alone: that is a number");
	return 0;
}

int group_resolve(struct agent *a, const json_t *params, struct rpc_error *e)
{
	const json_t *ref = json_object_get(params, "group");
	const char *name = json_string_value(ref);

	if (name) {
		int slot = sw_group_find(a->sw, name);

		return slot >= 0
			       ? slot
			       : rpc_fail(e, -ENOENT, "group", "no group is named \"%.48s\"", name);
	}
	int slot = (int)json_integer_value(ref);
	if (!sw_group_get(a->sw, (unsigned)slot))
		return rpc_fail(e, -ENOENT, "group", "slot %d holds no group", slot);
	return slot;
}

/* ---- parts ---- */

static void set(json_t *object, const char *name, json_int_t value)
{
	json_object_set_new(object, name, json_integer(value));
}

static void set_text(json_t *object, const char *name, const char *text)
{
	json_object_set_new(object, name, rpc_text(text));
}

static json_t *bits_json(uint64_t bits)
{
	json_t *out = json_array();

	for (unsigned i = 0; i < 64; i++)
		if (bits >> i & 1)
			json_array_append_new(out, json_integer(i));
	return out;
}

static json_t *ranks_json(struct inc_group *g, uint64_t eps)
{
	json_t *out = json_array();

	for (unsigned r = 0; r < g->n_ranks; r++)
		if (eps >> (inc_rank_ep(g)[r] & 63) & 1)
			json_array_append_new(out, json_integer(r));
	return out;
}

static json_t *flags_json(unsigned flags)
{
	static const struct {
		unsigned flag;
		const char *name;
	} known[] = {{INC_F_REPRODUCIBLE, "reproducible"}, {INC_F_DUP_ALL, "dup_all"},
		{INC_F_LATE_FLUSH, "late_flush"}, {INC_F_STALL_RNR, "stall_rnr"},
		{INC_F_STRICT_PORT, "strict_port"}, {INC_F_HALF, "half"}, {INC_F_SR, "sr"}};
	json_t *out = json_array();

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (flags & known[i].flag)
			json_array_append_new(out, json_string(known[i].name));
	return out;
}

json_t *rpc_group_counters(const struct inc_group *g)
{
	json_t *out = json_object();

	for (unsigned i = 0; i < INC_N_COUNTERS; i++)
		json_object_set_new(
			out, inc_counter_name((enum inc_counter)i), ctl_u64(g->count[i]));
	return out;
}

/* Mode-III: the connection to the peer, and the pipes. */
static json_t *connection_json(const struct inc_ep *ep)
{
	json_t *out = json_object();

	set(out, "expects", ep->rx_epsn);
	set(out, "acknowledged", ep->rx_acked);
	set(out, "unacknowledged", ep->tx_una);
	set(out, "next", ep->tx_next);
	set(out, "highest", ep->tx_high);
	set(out, "retries", ep->retries);
	set(out, "round_trip_us", ep->rtt_ns / 1000);
	json_object_set_new(out, "rnr_wait", json_boolean(ep->rnr_wait));
	return out;
}

static json_t *pipes_json(const struct inc_group *g)
{
	json_t *out = json_object();

	set(out, "aggregate_psn", g->psn_start[INC_AGG]);
	set(out, "broadcast_psn", g->psn_start[INC_BCAST]);
	return out;
}

static json_t *endpoint_json(struct inc_group *g, unsigned i, const struct port_names *ports)
{
	const struct inc_ep *ep = inc_ep_at(g, i);
	const char *port = port_names_of(ports, ep->port);
	char ip[WIRE_IP_STRLEN], mac[WIRE_MAC_STRLEN];
	json_t *out = json_object();

	set(out, "index", i);
	set_text(out, "port", port ? port : "?");
	set_text(out, "ip", wire_ip_format(&ep->flow.src, ip, sizeof(ip)));
	set(out, "qpn", ep->local_qpn);
	set_text(out, "mac", wire_mac_format(ep->flow.smac, mac, sizeof(mac)));
	set_text(out, "remote_ip", wire_ip_format(&ep->flow.dst, ip, sizeof(ip)));
	set(out, "remote_qpn", ep->remote_qpn);
	set_text(out, "remote_mac", wire_mac_format(ep->flow.dmac, mac, sizeof(mac)));
	set_text(out, "role", i == g->parent_ep ? "parent" : ep->host ? "host" : "switch");
	set(out, "vlan", ep->flow.vlan);
	set(out, "dscp", ep->flow.tos >> 2);
	json_object_set_new(out, "ranks", ranks_json(g, 1ULL << i));
	if (g->mode == INC_MODE_3)
		json_object_set_new(out, "connection", connection_json(ep));
	return out;
}

static json_t *endpoints_json(struct sw *sw, struct inc_group *g)
{
	json_t *out = json_array();
	struct port_names ports;

	port_names_read(sw, &ports);
	for (unsigned i = 0; i < g->n_ep; i++)
		json_array_append_new(out, endpoint_json(g, i, &ports));
	return out;
}

static void identity_json(json_t *out, const struct inc_group *g)
{
	set(out, "group", g->slot);
	set_text(out, "name", g->name);
	set_text(out, "state", inc_state_name(g->state));
	if (g->state == INC_FAILED)
		set_text(out, "fail_reason", inc_fail_name(g->fail_reason));
	set(out, "generation", g->gen);
}

static void kind_json(json_t *out, const struct inc_group *g)
{
	set_text(out, "mode", group_modes[(g->mode - INC_MODE_1) & 3]);
	set_text(out, "kind", group_kinds[g->kind & 1]);
	if (g->kind == INC_SINGLE && g->prim <= INC_BC)
		set_text(out, "primitive", group_primitives[g->prim]);
}

static void window_json(json_t *out, const struct inc_group *g)
{
	set(out, "mtu", g->mtu);
	set(out, "M", g->m);
	set(out, "W", g->w);
	set(out, "slots", 1 << g->log2n);
	set(out, "start_psn", g->start_psn);
}

json_t *group_created_json(struct sw *sw, unsigned slot)
{
	struct inc_group *g = sw_group_get(sw, slot);
	json_t *out = json_object();

	identity_json(out, g);
	window_json(out, g);
	json_object_set_new(out, "endpoints", endpoints_json(sw, g));
	return out;
}

/* ---- waiting slots ---- */

struct waiting {
	uint32_t psn;
	uint64_t arrived, missing;
};

static json_t *waiting_json(struct inc_group *g, const struct waiting *w)
{
	return json_pack("{s:I,s:o,s:o,s:o}", "psn", (json_int_t)(w->psn & PSN_MASK), "arrived",
		bits_json(w->arrived), "missing", bits_json(w->missing), "missing_ranks",
		ranks_json(g, w->missing));
}

static int older_first(const void *a, const void *b)
{
	const struct waiting *x = a, *y = b;

	if (x->psn == y->psn)
		return 0;
	return psn_lt(x->psn, y->psn) ? -1 : 1;
}

/* All partly filled slots, the oldest first; to be freed. All lie within one ring, so that their
 * PSNs are comparable. */
static struct waiting *waiting_slots(struct inc_group *g, unsigned *n)
{
	uint32_t slots = 1u << g->log2n;
	struct waiting *w = calloc(slots, sizeof(*w));

	*n = 0;
	for (uint32_t i = 0; w && i < slots; i++) {
		const struct inc_slot *s = inc_slot_at(g, i);
		uint64_t in = inc_slot_fan_in(g, s), arrived = s->arrived & in;

		if (arrived && arrived != in)
			w[(*n)++] = (struct waiting){s->tag & PSN_MASK, arrived, in & ~arrived};
	}
	if (w)
		qsort(w, *n, sizeof(*w), older_first);
	return w;
}

static void show_waiting(json_t *out, struct inc_group *g, bool all)
{
	unsigned n;
	struct waiting *w = waiting_slots(g, &n), first = {0};
	json_t *list = json_array();

	/* What passes without being stored has no slots. */
	first.missing = n ? 0 : inc_group_missing(g, &first.psn);
	if (n || first.missing)
		json_object_set_new(out, "waiting", waiting_json(g, n ? &w[0] : &first));
	for (unsigned i = 0; i < n && i < SHOW_SLOTS; i++)
		json_array_append_new(list, waiting_json(g, &w[i]));
	if (all)
		json_object_set(out, "waiting_slots", list);
	json_decref(list);
	free(w);
}

/* ---- methods ---- */

json_t *group_arena_json(const struct inc_group *g)
{
	bool bound = g->pay_off != INC_NO_ARENA;
	json_t *out = json_pack("{s:b,s:o}", "bound", bound, "bytes", ctl_u64(g->pay_bytes));

	if (bound)
		json_object_set_new(out, "offset", ctl_u64(g->pay_off));
	return out;
}

static void show_lease(json_t *out, struct sw *sw, unsigned slot)
{
	const char *tenant, *name = sw_group_lease(sw, slot, &tenant);

	if (name[0])
		json_object_set_new(
			out, "lease", json_pack("{s:s,s:s}", "name", name, "tenant", tenant));
}

static void show_owner(json_t *out, const struct agent *a, unsigned slot)
{
	if (a->owners.group[slot])
		set_text(out, "owner", owner_state(a->owners.group[slot]));
	json_object_set_new(out, "worker", json_integer(sw_group_worker(a->sw, (unsigned)slot)));
}

int rpc_group_show(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	int slot = group_resolve(a, params, e);

	if (slot < 0)
		return slot;
	struct inc_group *g = sw_group_get(a->sw, (unsigned)slot);
	json_t *out = json_object();
	identity_json(out, g);
	if (g->state == INC_FAILED && g->fail_ep != 0xff)
		set(out, "fail_endpoint", g->fail_ep);
	if (g->state == INC_FAILED && g->fail_reason == INC_FAIL_MODE1_QP)
		set_text(out, "fail_status", inc_fail_status_name(g->fail_status));
	kind_json(out, g);
	if (g->kind == INC_SINGLE && g->prim != INC_AR)
		set(out, "root", g->root);
	if (g->flags & INC_F_WRITE)
		set_text(out, "verb", "write");
	json_object_set_new(out, "flags", flags_json(g->flags));
	window_json(out, g);
	json_object_set_new(out, "arena", group_arena_json(g));
	show_lease(out, a->sw, (unsigned)slot);
	show_owner(out, a, (unsigned)slot);
	if (g->mode == INC_MODE_3)
		json_object_set_new(out, "pipes", pipes_json(g));
	set(out, "next_psn", g->next_ctrl & PSN_MASK);
	set(out, "ranks", g->n_ranks);
	show_waiting(out, g, rpc_bool(params, "slots", false));
	json_object_set_new(out, "counters", rpc_group_counters(g));
	json_object_set_new(out, "endpoints", endpoints_json(a->sw, g));
	*result = out;
	return 0;
}

int rpc_group_list(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	json_t *list = json_array();

	(void)params, (void)e;
	for (unsigned slot = 1; slot < INC_GROUP_SLOTS; slot++) {
		const struct inc_group *g = sw_group_get(a->sw, slot);

		if (!g)
			continue;
		json_t *out = json_object();
		identity_json(out, g);
		kind_json(out, g);
		set(out, "ranks", g->n_ranks);
		set(out, "endpoints", g->n_ep);
		json_object_set_new(out, "operations", ctl_u64(g->count[INC_C_CONTROLS]));
		show_owner(out, a, slot);
		json_array_append_new(list, out);
	}
	*result = json_pack("{s:o}", "groups", list);
	return 0;
}
