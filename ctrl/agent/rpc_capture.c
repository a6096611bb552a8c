/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures belong to the connection that has begun them, and end with it: nobody leaves one
 * running. Packets go over that connection, to be written by whoever asks, with his rights: the
 * switch opens no file that a client names. */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctrl/agent/rpc.h"
#include "lib/ctl/base64.h"

enum { READ_BYTES = 256 << 10, RING_KB = 4096, AT_ONCE = 256 };

/* ---- whose they are ---- */

static struct agent_capture *find(struct agent *a, uint32_t id)
{
	for (unsigned i = 0; i < SW_MAX_CAPTURES && id; i++)
		if (a->captures[i].id == id && a->peer && a->captures[i].peer == a->peer)
			return &a->captures[i];
	return NULL;
}

/* Nobody's: as soon as the workers let go of it. */
void captures_tick(struct agent *a)
{
	for (unsigned i = 0; i < SW_MAX_CAPTURES; i++) {
		struct agent_capture *c = &a->captures[i];

		if (c->id && !c->peer && sw_capture_stop(a->sw, c->id) != -ETIMEDOUT)
			c->id = 0;
	}
}

void captures_end(struct agent *a)
{
	for (unsigned i = 0; i < SW_MAX_CAPTURES; i++)
		a->captures[i].peer = NULL;
	captures_tick(a);
}

void captures_let_go(struct agent *a, const struct agent_peer *peer)
{
	for (unsigned i = 0; i < SW_MAX_CAPTURES; i++)
		if (a->captures[i].id && a->captures[i].peer == peer)
			a->captures[i].peer = NULL;
	captures_tick(a);
}

/* ---- methods ---- */

static struct bpf_insn *read_filter(const json_t *list, unsigned *n)
{
	struct bpf_insn *out = calloc(json_array_size(list) + 1, sizeof(*out));
	json_t *of;
	size_t i;

	*n = (unsigned)json_array_size(list);
	json_array_foreach(list, i, of)
	{
		if (!out)
			break;
		out[i] = (struct bpf_insn){.code = (u_short)rpc_int(of, "code", 0),
			.jt = (u_char)rpc_int(of, "jt", 0),
			.jf = (u_char)rpc_int(of, "jf", 0),
			.k = (bpf_u_int32)rpc_int(of, "k", 0)};
	}
	return out;
}

static uint64_t epoch_ns(struct sw *sw)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec - sw_now(sw);
}

int rpc_capture_start(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	const char *name = rpc_string(params, "port");
	const char *dir = rpc_string(params, "dir");
	struct agent_capture *place = a->captures;
	const int port = sw_port_find(a->sw, name);
	struct sw_capture_spec spec = {
		.port = (unsigned)port,
		.in = !dir || strcmp(dir, "out") != 0,
		.out = !dir || strcmp(dir, "in") != 0,
		.snaplen = (uint32_t)rpc_int(params, "snaplen", SW_CAPTURE_SNAPLEN),
		.ring_bytes = (uint32_t)rpc_int(params, "ring_kb", RING_KB) << 10,
	};
	char text[SW_ERR_LEN] = "";
	struct bpf_insn *filter;
	uint32_t id = 0;
	int rc;

	if (!a->peer)
		return rpc_fail(
			e, -EOPNOTSUPP, "", "there is no connection that it would end with");
	if (port < 0)
		return rpc_fail(e, -ENOENT, "port", "no port is named \"%.48s\"", name);
	while (place < a->captures + SW_MAX_CAPTURES && place->id)
		place++;
	if (place == a->captures + SW_MAX_CAPTURES)
		return rpc_fail(e, -EBUSY, "", "%d captures are running, the most there may be",
			SW_MAX_CAPTURES);
	filter = read_filter(json_object_get(params, "filter"), &spec.n_filter);
	if (!filter)
		return rpc_fail(e, -ENOMEM, "", "out of memory");
	spec.filter = filter;
	rc = sw_capture_start(a->sw, &spec, &id, text);
	free(filter);
	if (rc)
		return rpc_fail_text(e, rc, text);
	*place = (struct agent_capture){id, a->peer};
	*result = json_pack(
		"{s:I,s:o}", "capture", (json_int_t)id, "epoch_ns", ctl_u64(epoch_ns(a->sw)));
	return 0;
}

static void add_packet(void *arg, const struct sw_captured *p)
{
	json_t *out =
		json_pack("{s:o,s:s,s:I,s:o}", "ns", ctl_u64(p->ns), "dir", p->out ? "out" : "in",
			"len", (json_int_t)p->len, "data", ctl_bytes(p->data, p->cap));

	if (p->end)
		json_object_set_new(out, p->lost ? "drop" : "outcome", json_string(p->end));
	json_array_append_new(arg, out);
}

static void set_counts(json_t *out, const struct sw_capture_counts *n)
{
	json_object_set_new(out, "captured", ctl_u64(n->captured));
	json_object_set_new(out, "dropped", ctl_u64(n->dropped));
	json_object_set_new(out, "filtered", ctl_u64(n->filtered));
}

static void set_counts_of(json_t *out, struct sw *sw, uint32_t id)
{
	struct sw_capture_info info;

	for (unsigned i = 0; !sw_capture_get(sw, i, &info); i++)
		if (info.id == id)
			set_counts(out, &info.count);
}

static int not_yours(struct rpc_error *e, uint32_t id)
{
	return rpc_fail(e, -ENOENT, "capture", "this connection has no capture %u", id);
}

int rpc_capture_read(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	const uint32_t id = (uint32_t)rpc_int(params, "capture", 0);
	const unsigned limit = (unsigned)rpc_int(params, "limit", AT_ONCE);
	json_t *list;

	if (!find(a, id))
		return not_yours(e, id);
	list = json_array();
	sw_capture_read(a->sw, id, limit, READ_BYTES, add_packet, list);
	*result = json_pack("{s:o}", "packets", list);
	set_counts_of(*result, a->sw, id);
	return 0;
}

int rpc_capture_stop(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	const uint32_t id = (uint32_t)rpc_int(params, "capture", 0);
	struct agent_capture *c = find(a, id);

	if (!c)
		return not_yours(e, id);
	*result = json_object();
	set_counts_of(*result, a->sw, id);
	c->peer = NULL;
	captures_tick(a);
	return 0;
}

int rpc_capture_list(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	json_t *list = json_array(), *item;
	struct sw_capture_info info;

	(void)params, (void)e;
	for (unsigned i = 0; !sw_capture_get(a->sw, i, &info); i++) {
		if (!info.id)
			continue;
		item = json_pack("{s:I,s:o,s:s,s:I}", "capture", (json_int_t)info.id, "port",
			rpc_text(info.port), "dir",
			!info.out  ? "in"
			: !info.in ? "out"
				   : "both",
			"snaplen", (json_int_t)info.snaplen);
		set_counts(item, &info.count);
		json_array_append_new(list, item);
	}
	*result = json_pack("{s:o}", "captures", list);
	return 0;
}
