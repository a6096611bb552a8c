/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric of planes (tools/fabrics) in one process, a switch at a time: from every host to every
 * other one by every entropy value. Each packet takes exactly the path that lib/srv6 makes of its
 * EV, by what the switches' SIDs and ports have counted. */
#include <stdlib.h>
#include <string.h>

#include "ctrl/agent/agent.h"
#include "harness.h"
#include "lib/srv6/paths.h"
#include "lib/wire/bytes.h"

enum { L3 = ETH_HDR_LEN, IP6 = 40, HOPS = 3, MAX_PACKETS = 4096, NO_NEXT = 59, PORTS = 32 };

struct packet {
	struct frame f;
	const char *at, *port; /* where it is received next: a switch and its port */
	const char *to;        /* the port of a host that it is for */
	uint16_t usid[SRV6_USIDS];
	unsigned n_usids, hops;
	bool plain; /* not packed by the host */
};

static json_t *fabric;
static struct packet packet[MAX_PACKETS];
static unsigned n_packets, n_delivered;

static const char *text(const json_t *obj, const char *key)
{
	const char *s = json_string_value(json_object_get(obj, key));

	assert_non_null(s);
	return s;
}

static json_t *by_name(const char *list, const char *name)
{
	json_t *found = NULL, *each;
	size_t i;

	json_array_foreach(json_object_get(fabric, list), i, each)
	{
		if (strcmp(text(each, "name"), name) == 0)
			found = each;
	}
	return found;
}

/* What is at the other end of a switch's port. */
static const char *far_of(const char *sw, const char *port)
{
	return text(json_object_get(json_object_get(fabric, "far"), sw), port);
}

/* The port of a switch at whose other end a node is. */
static const char *port_to(const char *sw, const char *node)
{
	const char *port, *found = NULL;
	json_t *name;

	json_object_foreach(json_object_get(json_object_get(fabric, "far"), sw), port, name)
	{
		if (strcmp(json_string_value(name), node) == 0)
			found = port;
	}
	assert_non_null(found);
	return found;
}

static struct packet *start(const json_t *from, const json_t *to, const char *dst)
{
	struct packet *p = &packet[n_packets];
	uint8_t id[4], mac[6] = {0};
	struct wire_ip src = h_ip(text(from, "ip")), ip = h_ip(dst);

	assert_true(n_packets < MAX_PACKETS);
	*p = (struct packet){.at = text(from, "switch"), .to = text(to, "name")};
	p->port = port_to(p->at, text(from, "name"));
	put_be32(id, n_packets++);
	p->f.len = h_ip6(p->f.b, mac, &src, &ip, NO_NEXT, 64, id, sizeof(id));
	return p;
}

/* The port of a host in the plane of an EV. */
static const char *port_of(const struct srv6_paths *paths, uint32_t ev)
{
	for (unsigned i = 0; i < paths->n_planes; i++)
		if (paths->plane[i].number == ev >> paths->plane_shift)
			return paths->plane[i].port;
	fail_msg("EV 0x%x is of no plane", ev);
	return NULL;
}

/* By every EV of the way to a host that leaves by this port, to the one of the same plane. */
static void spray(const json_t *from, const struct srv6_paths *paths, const json_t *to)
{
	struct wire_ip nic = h_ip(text(to, "nic")), dst;
	char name[WIRE_IP_STRLEN];
	struct srv6_template t;
	uint32_t ev, again;

	assert_int_equal(srv6_paths_find(paths, &nic, &t), 0);
	for (unsigned i = 0; srv6_paths_ev(paths, &t, i, &ev) == 0; i++) {
		struct packet *p;

		assert_int_equal(srv6_template_expand(&t, ev, &dst), 0);
		assert_int_equal(srv6_template_ev(&t, &dst, &again), 0);
		assert_int_equal(ev, again);
		if (strcmp(port_of(paths, ev), text(from, "name")) != 0)
			continue;
		p = start(from, to, wire_ip_format(&dst, name, sizeof(name)));
		p->n_usids = srv6_path(&dst, p->usid);
	}
}

/* ---- one switch ---- */

struct seen {
	unsigned in[PORTS], out[PORTS], own;
};

/* Without ICMP errors: what is dropped here is to leave no port. */
static struct sw *make(const json_t *config)
{
	json_t *quiet = json_copy((json_t *)config);
	char err[256] = "";
	struct sw *sw;

	json_object_set_new(quiet, "icmp_errors", json_false());
	if (switch_create(quiet, true, &sw, err) < 0 ||
		agent_apply_tables(sw, json_object_get(config, "tables"), err, sizeof(err)) < 0)
		fail_msg("%s", err);
	json_decref(quiet);
	return sw;
}

/* The switch's uSID and what its row has counted; rows of links and tunnels are not counted here.
 */
static uint16_t usid_of(struct sw *sw, uint64_t *hits)
{
	struct table_rows rows;

	table_rows(sw_tables(sw), FWD_LOCAL_SID, &rows);
	assert_int_equal(rows.entry[0].key[0].prefix, 48);
	assert_int_equal(rows.entry[0].action, SRV6_UN);
	assert_true(sw_table_hits(sw, FWD_LOCAL_SID, 0, hits));
	return srv6_usid(&rows.entry[0].key[0].ip, 0);
}

static void receive(struct sw *sw, struct packet *p, uint16_t usid, struct seen *seen)
{
	const int port = sw_port_find(sw, p->port);

	assert_true(port >= 0 && p->hops < HOPS);
	if (!p->plain) /* the next uSID of its path is this switch's */
		assert_int_equal(p->usid[p->hops], usid);
	memcpy(p->f.b, h_port_mac(sw, (unsigned)port), 6);
	h_inject(sw, (unsigned)port, p->f.b, p->f.len);
	seen->in[port]++;
	seen->own += !p->plain || p->hops == 1; /* a tunnel names the T1, too, and its own end */
}

/* What has come out of a port: on to the next switch, or to the host at its end. */
static void sent(struct sw *sw, unsigned port, const struct frame *f)
{
	struct packet *p = &packet[get_be32(f->b + f->len - 4)];
	struct sw_port info;
	const char *next;

	assert_true(p < packet + n_packets);
	assert_int_equal(sw_port_get(sw, port, &info), 0);
	p->f = *f;
	p->hops++;
	next = far_of(p->at, info.name);
	if (by_name("hosts", next) == NULL) {
		p->port = port_to(next, p->at);
		p->at = next;
		return;
	}
	assert_string_equal(next, p->to);
	p->at = NULL;
	n_delivered++;
}

static void no_drop(void *arg, const char *name, const char *what, uint64_t count)
{
	(void)arg;
	(void)what;
	if (count > 0)
		fail_msg("%s: %u", name, (unsigned)count);
}

static unsigned turn(const json_t *config)
{
	static struct packet *here[MAX_PACKETS];
	struct seen seen = {0};
	uint64_t hits = 0, before;
	struct frame f;
	struct sw *sw;
	uint16_t usid;
	unsigned n = 0;

	for (unsigned i = 0; i < n_packets; i++)
		if (packet[i].at != NULL && strcmp(packet[i].at, text(config, "name")) == 0)
			here[n++] = &packet[i];
	if (n == 0)
		return 0;
	sw = make(config);
	usid = usid_of(sw, &before);
	for (unsigned i = 0; i < n; i++) {
		receive(sw, here[i], usid, &seen);
		h_run(sw);
		for (unsigned port = 0; port < sw_n_ports(sw); port++)
			while (h_take(sw, port, &f)) {
				seen.out[port]++;
				sent(sw, port, &f);
			}
	}
	h_check_balance(sw);
	sw_drops(sw, no_drop, NULL);
	usid_of(sw, &hits);
	assert_int_equal(hits - before, seen.own);
	for (unsigned i = 0; i < sw_n_ports(sw); i++) {
		struct sw_port info;

		assert_int_equal(sw_port_get(sw, i, &info), 0);
		assert_int_equal(info.rx_packets, seen.in[i]);
		assert_int_equal(info.tx_packets, seen.out[i]);
	}
	h_stop(sw);
	return n;
}

static void deliver_all(void)
{
	unsigned work, rounds = 0;

	do {
		json_t *config;
		size_t i;

		work = 0;
		assert_true(rounds++ <= HOPS);
		json_array_foreach(json_object_get(fabric, "switches"), i, config) work +=
			turn(config);
	} while (work > 0);
	assert_int_equal(n_delivered, n_packets);
}

static json_t *hosts(void)
{
	return json_object_get(fabric, "hosts");
}

static unsigned plane_of(const json_t *port)
{
	return get_be16(h_ip(text(port, "ip")).b + 6);
}

static bool same_group(const json_t *a, const json_t *b)
{
	return strcmp(text(a, "switch"), text(b, "switch")) == 0;
}

static int clear(void **state)
{
	(void)state;
	n_packets = n_delivered = 0;
	return 0;
}

static void every_path(void **state)
{
	unsigned near = 0, far = 0;
	json_t *from, *to;
	size_t i, k;

	(void)state;
	json_array_foreach(hosts(), i, from)
	{
		struct srv6_paths *paths;
		char err[SRV6_ERR_LEN] = "";

		if (srv6_paths_parse(json_object_get(from, "paths"), &paths, err) < 0)
			fail_msg("%s", err);
		json_array_foreach(hosts(), k, to)
		{
			unsigned before = n_packets;

			if (i == k || plane_of(from) != plane_of(to))
				continue;
			spray(from, paths, to);
			*(same_group(from, to) ? &near : &far) += n_packets - before;
		}
		free(paths);
	}
	/* 8 ports; each to 1 near host by its T0 alone, to 2 far ones by either T1. */
	assert_int_equal(near, 8 * 1);
	assert_int_equal(far, 8 * 2 * 2);
	deliver_all();
	for (unsigned n = 0; n < n_packets; n++) {
		assert_int_equal(packet[n].hops, packet[n].n_usids - 1);
		assert_int_equal(packet[n].f.b[L3 + 7], 64 - packet[n].hops);
		/* What is left of the path is the link to the host. */
		assert_int_equal(get_be16(packet[n].f.b + L3 + 24 + SRV6_BLOCK_LEN),
			packet[n].usid[packet[n].hops]);
	}
}

/* Hosts that do not pack: their T0 does, the other one unpacks. */
static void tunnels(void **state)
{
	json_t *from, *to;
	size_t i, k;

	(void)state;
	json_array_foreach(hosts(), i, from) json_array_foreach(hosts(), k, to)
	{
		if (i != k && plane_of(from) == plane_of(to))
			start(from, to, text(to, "ip"))->plain = true;
	}
	assert_int_equal(n_packets, 8 * 3);
	deliver_all();
	for (unsigned n = 0; n < n_packets; n++) {
		const struct packet *p = &packet[n];
		struct wire_ip dst = h_ip(text(by_name("hosts", p->to), "ip"));

		assert_int_equal(p->f.len, L3 + IP6 + 4);
		assert_memory_equal(p->f.b + L3 + 24, dst.b, 16);
		assert_true(p->hops == 1 || p->hops == HOPS);
	}
}

/* A T0 knows no switch of another plane, and no host's link but its own. */
static void planes_are_apart(void **state)
{
	static const char *const dst[] = {
		"fcbb:bb00:1000:2400:1001:1800::", "fcbb:bb00:2000:2800::", "fcbb:bb00:1000:1802::",
		"fcbb:bb00:1000:1402:1001:1800::"};
	struct sw *sw = make(json_array_get(json_object_get(fabric, "switches"), 0));
	struct wire_ip src = h_ip("fd77::1:0:0:1:0"), ip;
	uint8_t b[256];

	(void)state;
	for (unsigned i = 0; i < sizeof(dst) / sizeof(dst[0]); i++) {
		unsigned len;

		ip = h_ip(dst[i]);
		len = h_ip6(b, h_port_mac(sw, 0), &src, &ip, NO_NEXT, 64, "x", 1);
		h_expect_drop(sw, 0, b, len, "ip_no_route");
	}
	h_stop(sw);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(every_path, clear),
		cmocka_unit_test_setup(tunnels, clear),
		cmocka_unit_test_setup(planes_are_apart, clear),
	};
	json_error_t where;
	int rc;

	fabric = argc == 2 ? json_load_file(argv[1], 0, &where) : NULL;
	if (fabric == NULL)
		return 2;
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	json_decref(fabric);
	return rc;
}
