/* SPDX-License-Identifier: BSD-3-Clause */
#include "harness.h"

#include <rte_ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/wire/bytes.h"

enum { HOST_FIRST = 10, PATIENCE_MS = 60000 };

json_t *h_json(const char *text)
{
	char *copy = strdup(text);
	json_error_t where;
	json_t *json;

	for (char *p = copy; *p; p++)
		if (*p == '\'')
			*p = '"';
	json = json_loads(copy, 0, &where);
	if (json == NULL)
		fail_msg("%s: %s", copy, where.text);
	free(copy);
	return json;
}

struct wire_ip h_ip(const char *text)
{
	struct wire_ip ip;

	assert_int_equal(wire_ip_parse(text, &ip), 0);
	return ip;
}

struct wire_ip h_host4(unsigned i)
{
	return wire_ip_from4(0x0a000000 + HOST_FIRST + i);
}

struct wire_ip h_host6(unsigned i)
{
	struct wire_ip ip = h_ip("fd00::");

	ip.b[15] = (uint8_t)(HOST_FIRST + i);
	return ip;
}

void h_host_mac(unsigned i, uint8_t mac[6])
{
	memcpy(mac, (uint8_t[]){2, 0, 0, 0, 0, (uint8_t)(HOST_FIRST + i)}, 6);
}

const uint8_t *h_port_mac(struct sw *sw, unsigned port)
{
	return sw->ports[port].mac;
}

int h_write(struct sw *sw, enum table_verb verb, unsigned table, const struct table_entry *entry,
	struct table_error *e)
{
	struct table_update update = {.verb = verb, .table = table, .entry = *entry};

	return table_write(sw_tables(sw), &update, 1, e);
}

static void neighbours(struct sw *sw, unsigned n)
{
	struct table_error e = {0};

	for (unsigned i = 0; i < 2 * n; i++) {
		struct table_entry entry = {0};

		entry.key[0].ip = i & 1 ? h_host6(i / 2) : h_host4(i / 2);
		entry.param[0].u = sw->ports[i / 2].id;
		h_host_mac(i / 2, entry.param[1].mac);
		if (h_write(sw, TABLE_INSERT, FWD_NEIGH, &entry, &e) != 0)
			fail_msg("%s", e.msg);
	}
}

struct sw *h_start(unsigned n, const char *more, const char *port_more)
{
	json_t *config = h_json("{'addresses':['10.0.0.1','fd00::1'],'slot_rest_ms':0,"
				"'icmp_errors':false}");
	json_t *ports = json_array();
	char err[SW_ERR_LEN] = "";
	struct sw *sw = NULL;

	for (unsigned i = 0; i < n; i++) {
		json_t *port = h_json("{'type':'ring','neigh_learn':false}"),
		       *extra = h_json(port_more ?: "{}");
		char name[16];

		snprintf(name, sizeof(name), "p%u", i);
		json_object_set_new(port, "name", json_string(name));
		json_object_update_new(port, extra);
		json_array_append_new(ports, port);
	}
	json_object_set_new(config, "ports", ports);
	if (getenv("INCLINE_TEST_WORKERS"))
		json_object_set_new(
			config, "workers", json_integer(atoi(getenv("INCLINE_TEST_WORKERS"))));
	json_object_update_new(config, h_json(more ?: "{}"));
	if (switch_create(config, true, &sw, err) != 0)
		fail_msg("%s", err);
	json_decref(config);
	neighbours(sw, n);
	return sw;
}

void h_stop(struct sw *sw)
{
	struct frame f;

	for (unsigned i = 0; i < sw_n_ports(sw); i++)
		while (h_take(sw, i, &f))
			;
	sw_destroy(sw);
}

void h_stop_whole(struct sw *sw)
{
	h_check_balance(sw);
	assert_int_equal(h_value(sw, "mbufs_free"), h_value(sw, "mbufs"));
	assert_int_equal(h_value(sw, "head_mbufs_free"), sw->head_pool->size);
	h_stop(sw);
}

static struct rte_ring *ring(struct sw *sw, unsigned port, const char *end)
{
	char name[RTE_RING_NAMESIZE];
	struct rte_ring *r;

	snprintf(name, sizeof(name), "%.8s.%s", sw->ports[port].config.name, end);
	r = rte_ring_lookup(name);
	assert_non_null(r);
	return r;
}

void h_inject(struct sw *sw, unsigned port, const void *frame, unsigned len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(sw->pool);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	/* Where the switch has a thread of its own, that may not have had the CPU for a while. */
	for (unsigned i = 0; rte_ring_enqueue(ring(sw, port, "rx"), m) != 0; i++) {
		assert_true(i < PATIENCE_MS);
		usleep(1000);
	}
}

bool h_take(struct sw *sw, unsigned port, struct frame *f)
{
	struct rte_mbuf *m;

	if (rte_ring_dequeue(ring(sw, port, "tx"), (void **)&m) != 0)
		return false;
	assert_in_range(m->pkt_len, 1, H_FRAME_MAX);
	f->len = m->pkt_len;
	f->segs = m->nb_segs;
	const void *whole = rte_pktmbuf_read(m, 0, m->pkt_len, f->b);
	if (whole != f->b)
		memcpy(f->b, whole, f->len);
	rte_pktmbuf_free(m);
	return true;
}

void h_run(struct sw *sw)
{
	unsigned work;

	do {
		work = 0;
		for (unsigned i = 0; i < sw->n_workers; i++) {
			sw_turn(sw, i, port_now_ns());
			work += sw->worker[i]->work;
		}
	} while (work > 0);
}

void h_exchange(struct sw *sw, unsigned in, const void *frame, unsigned len, unsigned out,
	struct frame *result)
{
	struct frame other;

	h_inject(sw, in, frame, len);
	h_run(sw);
	assert_true(h_take(sw, out, result));
	for (unsigned i = 0; i < sw_n_ports(sw); i++)
		assert_false(h_take(sw, i, &other));
	h_check_balance(sw);
}

void h_expect_drop(struct sw *sw, unsigned in, const void *frame, unsigned len, const char *reason)
{
	uint64_t before = h_drop(sw, reason);
	struct frame other;

	h_inject(sw, in, frame, len);
	h_run(sw);
	if (h_drop(sw, reason) != before + 1) {
		for (unsigned i = 1; i < N_DROPS; i++)
			for (unsigned k = 0; k < sw->n_workers; k++)
				if (sw->worker[k]->drops[i] != 0)
					print_message("%s: %lu\n", drop_name(i),
						(unsigned long)sw->worker[k]->drops[i]);
		fail_msg("not dropped as %s", reason);
	}
	for (unsigned i = 0; i < sw_n_ports(sw); i++)
		assert_false(h_take(sw, i, &other));
	h_check_balance(sw);
}

struct wanted {
	const char *name;
	uint64_t value;
	bool found;
};

static void match(void *arg, const char *name, const char *text, uint64_t value)
{
	struct wanted *w = arg;

	assert_non_null(text);
	if (strcmp(w->name, name) != 0)
		return;
	assert_false(w->found); /* names are unique */
	w->value = value;
	w->found = true;
}

uint64_t h_drop(struct sw *sw, const char *reason)
{
	struct wanted w = {.name = reason};

	sw_drops(sw, match, &w);
	sw_outcomes(sw, match, &w);
	assert_true(w.found);
	return w.value;
}

static void match_value(
	void *arg, enum sw_kind kind, const char *name, const char *text, uint64_t value)
{
	(void)kind;
	match(arg, name, text, value);
}

uint64_t h_value(struct sw *sw, const char *name)
{
	struct wanted w = {.name = name};

	sw_values(sw, match_value, &w);
	assert_true(w.found);
	return w.value;
}

static void add(void *arg, const char *name, const char *text, uint64_t count)
{
	(void)name;
	(void)text;
	*(uint64_t *)arg += count;
}

uint64_t h_losses(struct sw *sw)
{
	uint64_t n = 0;

	sw_drops(sw, add, &n);
	return n;
}

void h_check_balance(struct sw *sw)
{
	uint64_t in = h_value(sw, "emitted") + h_value(sw, "doubled"), out = 0;
	struct sw_queue queue;
	struct sw_port port;

	for (unsigned i = 0; i < sw_n_ports(sw); i++) {
		assert_int_equal(sw_port_get(sw, i, &port), 0);
		in += port.rx_packets;
		out += port.tx_packets;
		for (unsigned k = 0; sw_queue_get(sw, i, k, &queue) == 0; k++)
			out += queue.packets;
	}
	out += h_value(sw, "held_back");
	sw_drops(sw, add, &out);
	sw_outcomes(sw, add, &out);
	assert_int_equal(in, out);
}

unsigned h_arp(uint8_t *out, unsigned op, const struct wire_ip *sip, const struct wire_ip *tip,
	uint16_t vlan)
{
	static const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	uint8_t asker[6];

	h_host_mac(0, asker);
	return (unsigned)wire_build_arp(
		out, H_FRAME_MAX, op, asker, sip, op == ARP_REQUEST ? broadcast : asker, tip, vlan);
}

unsigned h_tag(uint8_t *frame, unsigned len, uint16_t vlan)
{
	memmove(frame + 16, frame + 12, len - 12);
	put_be16(frame + 12, ETH_TYPE_VLAN);
	put_be16(frame + 14, vlan);
	return len + VLAN_HDR_LEN;
}

unsigned h_ip4(uint8_t *out, const uint8_t dmac[6], const struct wire_ip *src,
	const struct wire_ip *dst, uint8_t proto, uint8_t ttl, const void *payload, unsigned len)
{
	struct ip4_hdr ip = {.ver_ihl = 0x45, .tos = 0x68, .ttl = ttl, .proto = proto};

	memcpy(out, dmac, 6);
	memset(out + 6, 0x0e, 6);
	put_be16(out + 12, ETH_TYPE_IP4);
	put_be16(ip.len, (uint16_t)(sizeof(ip) + len));
	put_be16(ip.id, 77);
	memcpy(ip.src, src->b + 12, 4);
	memcpy(ip.dst, dst->b + 12, 4);
	put_be16(ip.checksum, (uint16_t)~ip_sum(&ip, sizeof(ip), 0));
	memcpy(out + ETH_HDR_LEN, &ip, sizeof(ip));
	memcpy(out + ETH_HDR_LEN + sizeof(ip), payload, len);
	return ETH_HDR_LEN + (unsigned)sizeof(ip) + len;
}

unsigned h_ip6(uint8_t *out, const uint8_t dmac[6], const struct wire_ip *src,
	const struct wire_ip *dst, uint8_t next, uint8_t hop_limit, const void *payload,
	unsigned len)
{
	uint8_t *ip = out + ETH_HDR_LEN;

	memcpy(out, dmac, 6);
	memset(out + 6, 0x0e, 6);
	put_be16(out + 12, ETH_TYPE_IP6);
	put_be32(ip, 0x60000000);
	put_be16(ip + 4, (uint16_t)len);
	ip[6] = next;
	ip[7] = hop_limit;
	memcpy(ip + 8, src->b, 16);
	memcpy(ip + 24, dst->b, 16);
	memcpy(ip + 40, payload, len);
	return ETH_HDR_LEN + 40 + len;
}
