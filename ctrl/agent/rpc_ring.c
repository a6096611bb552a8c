/* SPDX-License-Identifier: BSD-3-Clause */
/* NetReduce rings: from JSON to what the dataplane installs, life cycle, looking. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/agent/group_json.h"

static const char *state_name(const struct nr_ring *r)
{
	return nr_state_name(r ? r->state : NR_FREE);
}

static void set(json_t *object, const char *name, json_int_t value)
{
	json_object_set_new(object, name, json_integer(value));
}

static void set_text(json_t *object, const char *name, const char *text)
{
	json_object_set_new(object, name, rpc_text(text));
}

/* ---- ring.create: JSON to spec ---- */

/* Everything the spec points to. */
struct reading {
	struct nr_spec spec;
	struct nr_in_spec in[2 * NR_MAX_IN];
	uint16_t *ranks; /* of all inputs, one after another */
	size_t n_ranks, cap;
};

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

static int read_flow(struct reading *rd, const json_t *json, const char *at, struct rpc_error *e)
{
	struct nr_in_spec *in = &rd->in[rd->spec.n_in++];
	int rc = read_ip(json, "src", at, &in->key.src, e);

	in->host = true;
	in->key.qpn = (uint32_t)rpc_int(json, "qpn", 0);
	in->reply_qpn = (uint32_t)rpc_int(json, "reply_qpn", 0);
	in->psn_known = json_object_get(json, "psn") != NULL;
	in->psn = (uint32_t)rpc_int(json, "psn", 0);
	in->n_ranks = 1;
	in->ranks = &rd->ranks[rd->n_ranks];
	rd->ranks[rd->n_ranks++] = (uint16_t)rpc_int(json, "rank", 0);
	return rc ? rc : read_ip(json, "dst", at, &in->key.dst, e);
}

static int read_leaf(struct reading *rd, const json_t *json, const char *at, struct rpc_error *e)
{
	struct nr_in_spec *in = &rd->in[rd->spec.n_in++];
	int rc = read_ip(json, "ip", at, &in->remote_ip, e);
	const json_t *rank;
	size_t i;

	in->remote_qpn = (uint32_t)rpc_int(json, "qpn", 0);
	in->ranks = &rd->ranks[rd->n_ranks];
	json_array_foreach(json_object_get(json, "ranks"), i, rank)
	{
		const json_int_t n = json_integer_value(rank);
		char path[CTL_PATH_LEN];

		snprintf(path, sizeof(path), "%s.ranks[%zu]", at, i);
		if (n < 0 || n >= rd->spec.n_ranks)
			return rpc_fail(e, -EINVAL, path,
				"%" JSON_INTEGER_FORMAT " is not in 0..%u", n,
				rd->spec.n_ranks - 1u);
		rd->ranks[rd->n_ranks++] = (uint16_t)n;
		in->n_ranks++;
	}
	return rc ? rc : read_ip(json, "local_ip", at, &in->local_ip, e);
}

static int read_inputs(struct reading *rd, const json_t *params, struct rpc_error *e)
{
	const json_t *flows = json_object_get(params, "flows"), *item;
	const json_t *leaves = json_object_get(params, "leaves");
	char at[32];
	size_t i, room = json_array_size(flows);
	int rc = 0;

	json_array_foreach(leaves, i, item) room += json_array_size(json_object_get(item, "ranks"));
	rd->ranks = calloc(room + 1, sizeof(*rd->ranks));
	if (!rd->ranks)
		return rpc_fail(e, -ENOMEM, "", "out of memory");
	for (i = 0; i < json_array_size(flows) && !rc; i++) {
		snprintf(at, sizeof(at), "flows[%zu]", i);
		rc = read_flow(rd, json_array_get(flows, i), at, e);
	}
	for (i = 0; i < json_array_size(leaves) && !rc; i++) {
		snprintf(at, sizeof(at), "leaves[%zu]", i);
		rc = read_leaf(rd, json_array_get(leaves, i), at, e);
	}
	return rc;
}

static int read_spec(struct reading *rd, const json_t *params, struct rpc_error *e)
{
	const json_t *parent = json_object_get(params, "parent");
	struct nr_spec *s = &rd->spec;
	uint64_t first = 0;
	int rc = rpc_read_name(rpc_string(params, "name"), s->name, sizeof(s->name), e);

	if (!rc && json_object_get(params, "first_message") &&
		(ctl_get_u64(json_object_get(params, "first_message"), &first) ||
			first > UINT32_MAX))
		rc = rpc_fail(e, -EINVAL, "first_message", "must be 0..4294967295");
	if (rc)
		return rc;
	s->in = rd->in;
	s->id = (uint16_t)rpc_int(params, "id", 0);
	s->activate_ms = (uint32_t)rpc_int(params, "activate_ms", 0);
	s->mtu = (uint16_t)rpc_int(params, "mtu", 0);
	s->m = (uint16_t)rpc_int(params, "M", 0);
	s->w = (uint16_t)rpc_int(params, "W", 0);
	s->n_ranks = (uint16_t)rpc_int(params, "ranks", 0);
	s->first_msg = (uint32_t)first;
	s->flags = (rpc_bool(params, "stall_rnr", true) ? NR_F_STALL_RNR : 0u) |
		   (rpc_bool(params, "strict_port", true) ? NR_F_STRICT_PORT : 0u) |
		   (rpc_bool(params, "mark_sums", false) ? NR_F_MARK_SUMS : 0u);
	s->has_parent = parent != NULL;
	s->parent_qpn = (uint32_t)rpc_int(parent, "qpn", 0);
	rc = read_ip(parent, "ip", "parent", &s->parent_ip, e);
	if (!rc)
		rc = read_ip(parent, "local_ip", "parent", &s->parent_local_ip, e);
	return rc ? rc : read_inputs(rd, params, e);
}

static bool all_qpns_known(const struct nr_spec *s)
{
	for (unsigned i = 0; i < s->n_in; i++)
		if (!s->in[i].host && !s->in[i].remote_qpn)
			return false;
	return !s->has_parent || s->parent_qpn;
}

/* ---- ring to JSON ---- */

static json_t *ranks_json(struct nr_ring *r, uint64_t inputs)
{
	json_t *out = json_array();

	for (unsigned k = 0; k < r->n_ranks; k++) {
		const uint8_t in = nr_rank_in(r)[k];

		if (inputs >> (in == 0xff ? NR_PARENT_EP : in) & 1)
			json_array_append_new(out, json_integer(k));
	}
	return out;
}

static uint64_t buffer_bytes(const struct nr_ring *r)
{
	return (uint64_t)r->n_msgs * r->m * r->n_in * r->buf_stride;
}

static json_t *created_json(struct nr_ring *r, unsigned number)
{
	json_t *leaves = json_array(), *out;

	for (unsigned i = 0; i < r->n_in; i++)
		if (!nr_in_at(r, i)->host)
			json_array_append_new(leaves, json_pack("{s:i,s:i,s:o}", "input", (int)i,
							      "qpn", (int)nr_in_at(r, i)->local_qpn,
							      "ranks", ranks_json(r, 1ULL << i)));
	out = json_pack("{s:i,s:s,s:s,s:o,s:o}", "ring", (int)number, "name", r->name, "state",
		state_name(r), "leaves", leaves, "buffer_bytes", ctl_u64(buffer_bytes(r)));
	if (r->has_parent)
		set(out, "parent_qpn", r->parent_local_qpn);
	return out;
}

int rpc_ring_create(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	struct reading *rd = calloc(1, sizeof(*rd));
	char text[SW_ERR_LEN] = "";
	unsigned ring = 0;
	int rc = rd ? read_spec(rd, params, e) : rpc_fail(e, -ENOMEM, "", "out of memory");

	if (!rc) {
		rc = sw_ring_create(a->sw, &rd->spec,
			rpc_bool(params, "activate", all_qpns_known(&rd->spec)), &ring, text);
		if (rc) {
			rpc_fail_text(e, rc, text);
		} else {
			rpc_own_ring(a, ring);
			*result = created_json(sw_ring_get(a->sw, ring), ring);
		}
	}
	if (rd)
		free(rd->ranks);
	free(rd);
	return rc;
}

/* ---- life cycle ---- */

/* Number of the ring that the parameters name. */
static int resolve(struct agent *a, const json_t *params, struct rpc_error *e)
{
	const json_t *ref = json_object_get(params, "ring");
	const char *name = json_string_value(ref);
	int ring = name ? sw_ring_find(a->sw, name) : (int)json_integer_value(ref);

	if (name && ring < 0)
		return rpc_fail(e, -ENOENT, "ring", "no ring is named \"%.48s\"", name);
	if (!sw_ring_get(a->sw, (unsigned)ring))
		return rpc_fail(e, -ENOENT, "ring", "there is no ring %d", ring);
	return ring;
}

static json_t *state_json(struct sw *sw, int ring, const char *name)
{
	return json_pack("{s:i,s:s,s:s}", "ring", ring, "name", name, "state",
		state_name(sw_ring_get(sw, (unsigned)ring)));
}

int rpc_ring_activate(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	uint32_t qpn[NR_MAX_IN] = {0};
	char text[SW_ERR_LEN] = "", path[CTL_PATH_LEN];
	int ring = resolve(a, params, e), rc;
	const json_t *item;
	size_t i;

	if (ring < 0)
		return ring;
	json_array_foreach(json_object_get(params, "leaves"), i, item)
	{
		const unsigned in = (unsigned)rpc_int(item, "input", 0);

		snprintf(path, sizeof(path), "leaves[%zu].input", i);
		if (qpn[in])
			return rpc_fail(e, -EINVAL, path, "%u is given twice", in);
		qpn[in] = (uint32_t)rpc_int(item, "qpn", 0);
	}
	rc = sw_ring_activate(
		a->sw, (unsigned)ring, qpn, (uint32_t)rpc_int(params, "parent_qpn", 0), text);
	if (rc)
		return rpc_fail_text(e, rc, text);
	*result = state_json(a->sw, ring, sw_ring_get(a->sw, (unsigned)ring)->name);
	return 0;
}

int rpc_ring_delete(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	char text[SW_ERR_LEN] = "", name[NR_NAME_LEN];
	int ring = resolve(a, params, e), rc;

	if (ring < 0)
		return ring;
	memcpy(name, sw_ring_get(a->sw, (unsigned)ring)->name, sizeof(name));
	rc = sw_ring_delete(a->sw, (unsigned)ring, text);
	if (rc)
		return rpc_fail_text(e, rc, text);
	*result = state_json(a->sw, ring, name);
	return 0;
}

/* The ring fails, so that its ranks are told. */
int rpc_ring_fail(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	char text[SW_ERR_LEN] = "";
	int ring = resolve(a, params, e), rc;

	if (ring < 0)
		return ring;
	rc = sw_ring_fail(a->sw, (unsigned)ring, text);
	if (rc)
		return rpc_fail_text(e, rc, text);
	*result = state_json(a->sw, ring, sw_ring_get(a->sw, (unsigned)ring)->name);
	return 0;
}

/* ---- looking ---- */

void rpc_ring_failure(struct nr_ring *r, json_t *out)
{
	char text[SW_ERR_LEN];

	if (__atomic_load_n(&r->state, __ATOMIC_ACQUIRE) != NR_FAILED)
		return;
	nr_fail_text(r, text, sizeof(text));
	set_text(out, "fail_reason", nr_fail_name(r->fail.reason));
	set_text(out, "failure", text);
}

static void show_disagreement(struct nr_ring *r, json_t *out)
{
	const struct nr_fail *f = &r->fail;
	char value[32], other[32];
	json_t *d;

	if (__atomic_load_n(&r->state, __ATOMIC_ACQUIRE) != NR_FAILED ||
		f->reason == NR_FAIL_MANAGER || f->reason == NR_FAIL_SWITCH)
		return;
	nr_fail_value(f, f->value, value, sizeof(value));
	nr_fail_value(f, f->other_value, other, sizeof(other));
	d = json_pack("{s:o,s:i,s:o,s:s,s:s}", "message", ctl_u64(f->msg), "packet", (int)f->o,
		"ranks", ranks_json(r, 1ULL << f->in), "value", value, "other_value", other);
	if (f->other != NR_NOBODY)
		json_object_set_new(d, "other_ranks", ranks_json(r, 1ULL << f->other));
	json_object_set_new(out, "disagreement", d);
}

int rpc_ring_list(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	json_t *list = json_array();

	(void)params, (void)e;
	for (unsigned i = 0; i < NR_MAX_RINGS; i++) {
		struct nr_ring *r = sw_ring_get(a->sw, i);
		unsigned hosts = 0;

		if (!r)
			continue;
		for (unsigned k = 0; k < r->n_in; k++)
			hosts += nr_in_at(r, k)->host;
		json_t *out = json_pack("{s:i,s:s,s:s,s:i,s:i,s:i,s:b,s:o}", "ring", (int)i, "name",
			r->name, "state", state_name(r), "ranks", (int)r->n_ranks, "flows",
			(int)hosts, "leaves", (int)(r->n_in - hosts), "root", !r->has_parent,
			"completed", ctl_u64(r->count[NR_C_COMPLETED]));
		if (a->owners.ring[i])
			set_text(out, "owner", owner_state(a->owners.ring[i]));
		rpc_ring_failure(r, out);
		json_array_append_new(list, out);
	}
	*result = json_pack("{s:o}", "rings", list);
	return 0;
}

static json_t *input_json(struct nr_ring *r, unsigned i)
{
	const struct nr_in *in = nr_in_at(r, i);
	char ip[WIRE_IP_STRLEN];
	json_t *out = json_object();

	set(out, "input", i);
	set_text(out, "kind", in->host ? "host" : "switch");
	set_text(out, "src", wire_ip_format(&in->key.src, ip, sizeof(ip)));
	set_text(out, "dst", wire_ip_format(&in->key.dst, ip, sizeof(ip)));
	set(out, "qpn", in->key.qpn);
	set(out, "reply_qpn", in->host ? in->reply_qpn : in->remote_qpn);
	if (in->known) {
		json_object_set_new(out, "message", ctl_u64(in->msg));
		set(out, "psn", in->psn0);
	}
	json_object_set_new(out, "ranks", ranks_json(r, 1ULL << i));
	return out;
}

static void show_waiting(json_t *out, struct nr_ring *r)
{
	uint32_t msg = 0, o = 0;
	const uint64_t inputs = nr_missing(r, &msg, &o);

	if (inputs)
		json_object_set_new(out, "waiting",
			json_pack("{s:o,s:i,s:o}", "message", ctl_u64(msg), "packet", (int)o,
				"missing_ranks", ranks_json(r, inputs)));
}

static void show_parent(json_t *out, const struct nr_ring *r)
{
	char ip[WIRE_IP_STRLEN];

	if (r->has_parent)
		json_object_set_new(out, "parent",
			json_pack("{s:s,s:i,s:i}", "ip",
				wire_ip_format(&r->parent_flow.dst, ip, sizeof(ip)), "qpn",
				(int)r->parent_qpn, "local_qpn", (int)r->parent_local_qpn));
}

int rpc_ring_show(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	int ring = resolve(a, params, e);
	json_t *out, *counters, *inputs;
	struct nr_ring *r;

	if (ring < 0)
		return ring;
	r = sw_ring_get(a->sw, (unsigned)ring);
	out = json_pack("{s:i,s:s,s:s,s:i,s:i,s:i,s:i,s:i,s:o}", "ring", ring, "name", r->name,
		"state", state_name(r), "id", (int)r->id, "mtu", (int)r->mtu, "M", (int)r->m, "W",
		(int)r->w, "ranks", (int)r->n_ranks, "buffer_bytes", ctl_u64(buffer_bytes(r)));
	if (a->owners.ring[ring])
		set_text(out, "owner", owner_state(a->owners.ring[ring]));
	rpc_ring_failure(r, out);
	show_disagreement(r, out);
	show_waiting(out, r);
	show_parent(out, r);
	counters = json_object();
	for (unsigned i = 0; i < NR_N_COUNTERS; i++)
		json_object_set_new(
			counters, nr_counter_name((enum nr_counter)i), ctl_u64(r->count[i]));
	json_object_set_new(out, "counters", counters);
	inputs = json_array();
	for (unsigned i = 0; i < r->n_in; i++)
		json_array_append_new(inputs, input_json(r, i));
	json_object_set_new(out, "inputs", inputs);
	*result = out;
	return 0;
}
