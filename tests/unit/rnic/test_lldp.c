/* SPDX-License-Identifier: BSD-3-Clause */
/* LLDP of a device: its frames byte by byte, when they come, whom it hears and for how long, and
 * that nothing else makes it speak or remember. */
#include <errno.h>
#include <string.h>

#include "lib/lldp/table.h"
#include "tests/unit/rnic/net.h"

static struct net net;
static const struct net_options on = {.n_ports = 2, .lldp = true}, off = {.n_ports = 2};

static void open_with(const struct net_options *options)
{
	memset(&net, 0, sizeof(net));
	net_open(&net, options);
}

static struct rnic *a_device(const struct net_options *options)
{
	open_with(options);
	return net.end[0].rnic;
}

static unsigned neighbours(int end, unsigned port)
{
	unsigned at = 0, n = 0;

	while (rnic_lldp_neighbour(net.end[end].rnic, port, &at) != NULL)
		n++;
	return n;
}

static uint64_t count(int end, enum rnic_counter c)
{
	return rnic_count(net.end[end].rnic, c);
}

/* The next frame that the device sends, at least ETH_MIN_LEN of it; 0: none. */
static size_t take(struct rnic *rnic, uint64_t now, uint8_t *out, size_t cap, unsigned *port)
{
	struct rnic_frame frame;

	if (rnic_deadline(rnic) <= now)
		rnic_timer(rnic, now);
	if (!rnic_tx(rnic, RNIC_ALL_PORTS, &frame, now))
		return 0;
	*port = frame.port;
	return (size_t)rnic_frame_flatten(&frame, out, cap);
}

/* How many of them there are. */
static unsigned sent(struct rnic *rnic, uint64_t now)
{
	uint8_t bytes[NET_FRAME];
	unsigned port, n = 0;

	for (; take(rnic, now, bytes, sizeof(bytes), &port) > 0; n++)
		assert_true(wire_is_lldp(bytes, ETH_MIN_LEN));
	return n;
}

/* Neighbour i speaks to the device's port; why that was dropped. */
static unsigned say(unsigned port, unsigned i, uint16_t ttl)
{
	const uint8_t mac[6] = {2, 0, 9, 0, (uint8_t)(i >> 8), (uint8_t)i};
	struct wire_lldp says = lldp_introduce(mac, "p0", "leaf0");
	uint8_t bytes[LLDP_MAX_LEN];
	int len;

	says.ttl = ttl;
	len = wire_build_lldp(bytes, sizeof(bytes), mac, &says);
	assert_true(len > 0);
	return rnic_rx(net.end[0].rnic, port, bytes, (size_t)len, net.now);
}

/* ---- what is said ---- */

/* The first device's second port: its own address as source, the first one's as chassis. */
static const uint8_t nic1[ETH_MIN_LEN] = {0x01, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 1, 10, /* */
	0x88, 0xcc,                                                                        /* */
	0x02, 7, 4, 2, 0, 0, 0, 0, 10,                                                     /* */
	0x04, 5, 5, 'n', 'i', 'c', '1',                                                    /* */
	0x06, 2, 0, 121,                                                                   /* */
	0x0a, 2, 'h', '0'};

/* And its last word. */
static const uint8_t bye1[ETH_MIN_LEN] = {0x01, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 1, 10, /* */
	0x88, 0xcc,                                                                        /* */
	0x02, 7, 4, 2, 0, 0, 0, 0, 10,                                                     /* */
	0x04, 5, 5, 'n', 'i', 'c', '1',                                                    /* */
	0x06, 2, 0, 0};

static void golden(void **state)
{
	struct rnic *rnic = a_device(&on);
	uint8_t bytes[NET_FRAME];
	unsigned port;

	(void)state;
	for (unsigned p = 0; p < 2; p++) {
		assert_int_equal(take(rnic, 0, bytes, sizeof(bytes), &port), ETH_MIN_LEN);
		assert_int_equal(port, p);
	}
	assert_memory_equal(bytes, nic1, sizeof(nic1));
	assert_int_equal(count(0, RNIC_C_LLDP_SENT), 2);
	assert_int_equal(count(0, RNIC_C_TX_FRAMES), 2);
	assert_int_equal(rnic_port_count(rnic, 1, RNIC_PORT_C_TX_BYTES), ETH_MIN_LEN);
	rnic_lldp_stop(rnic);
	for (unsigned p = 0; p < 2; p++)
		assert_int_equal(take(rnic, 0, bytes, sizeof(bytes), &port), ETH_MIN_LEN);
	assert_memory_equal(bytes, bye1, sizeof(bye1));
	net_close(&net);
}

/* The smallest MTU that there is has room for the longest names. */
static void long_names(void **state)
{
	struct rnic_config config = {
		.port[0] = {.mac = {2, 0, 0, 0, 0, 1}, .mtu = 256 + RNIC_MTU_ROOM}, .lldp = true};
	struct wire_lldp says;
	uint8_t bytes[NET_FRAME];
	struct rnic *rnic;
	unsigned port;
	size_t len;

	(void)state;
	memset(config.host, 'h', sizeof(config.host) - 1);
	memset(config.port[0].name, 'p', sizeof(config.port[0].name) - 1);
	assert_int_equal(rnic_create(&config, &rnic), 0);
	len = take(rnic, 0, bytes, sizeof(bytes), &port);
	assert_int_equal(wire_lldp_parse(bytes, len, &says), WIRE_LLDP_OK);
	assert_int_equal(says.name_len, RNIC_HOST_LEN - 1);
	assert_int_equal(says.port.len, RNIC_NAME_LEN - 1);
	rnic_destroy(rnic);
	/* Whoever speaks has a name, and it ends. */
	config.host[RNIC_HOST_LEN - 1] = 'h';
	assert_int_equal(rnic_create(&config, &rnic), -EINVAL);
	config.host[0] = '\0';
	assert_int_equal(rnic_create(&config, &rnic), -EINVAL);
	strcpy(config.host, "h0");
	config.port[0].name[RNIC_NAME_LEN - 1] = 'p';
	assert_int_equal(rnic_create(&config, &rnic), -EINVAL);
	config.port[0].name[0] = '\0';
	assert_int_equal(rnic_create(&config, &rnic), -EINVAL);
	config.lldp = false;
	assert_int_equal(rnic_create(&config, &rnic), 0);
	rnic_destroy(rnic);
}

/* ---- when ---- */

/* Four times in the first seconds, then every half minute, and in between nothing, however often
 * the device is asked. */
static void rhythm(void **state)
{
	struct rnic *rnic = a_device(&on);
	const uint64_t begin = 100 * SEC;
	unsigned n = 0;

	(void)state;
	for (uint64_t at = begin; at < begin + 123 * SEC; at += SEC / 4) {
		const uint64_t since = at - begin, fast = (LLDP_FAST - 1) * LLDP_FAST_NS;
		const bool due = since <= fast ? since % LLDP_FAST_NS == 0
					       : (since - fast) % LLDP_EVERY_NS == 0;

		assert_int_equal(sent(rnic, at), due ? 2 : 0);
		n += due;
		assert_true(rnic_deadline(rnic) > at && rnic_deadline(rnic) <= at + LLDP_EVERY_NS);
	}
	assert_int_equal(n, LLDP_FAST + 3);
	assert_int_equal(count(0, RNIC_C_LLDP_SENT), 2 * n);
	net_close(&net);
}

static void link_comes_and_goes(void **state)
{
	struct rnic *rnic = a_device(&on);

	(void)state;
	for (net.now = 0; net.now < 10 * SEC; net.now += SEC)
		sent(rnic, net.now);
	assert_int_equal(say(0, 1, 120), 0);
	assert_int_equal(say(1, 2, 120), 0);
	net.now = 20 * SEC;
	sent(rnic, net.now);
	net_port_set(&net, 0, 1, false);
	assert_true(neighbours(0, 0) == 1 && neighbours(0, 1) == 0);
	net.now = 60 * SEC;
	assert_int_equal(sent(rnic, net.now), 1);
	assert_int_equal(count(0, RNIC_C_LLDP_EXPIRED), 0);
	net_port_set(&net, 0, 1, true);
	assert_int_equal(sent(rnic, net.now), 1); /* at once */
	assert_int_equal(sent(rnic, net.now + SEC), 2);
	assert_int_equal(rnic_port_count(rnic, 1, RNIC_PORT_C_TX_LOST), 0);
	net_close(&net);
}

/* All places for answers are taken: what was not said is not counted, and comes with the next. */
static void no_room(void **state)
{
	struct rnic *rnic = a_device(&on);
	struct wire_ip ip;
	uint8_t mac[6];

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		ip = wire_ip_from4(0x0a4d0064 + i);
		assert_int_equal(-EAGAIN, rnic_resolve(rnic, 0, &ip, mac, 0));
	}
	rnic_timer(rnic, 0);
	assert_int_equal(count(0, RNIC_C_LLDP_SENT), 1); /* port 1 */
	net_run(&net, SEC + SEC / 2);
	assert_int_equal(count(0, RNIC_C_LLDP_SENT), 3);
	net_close(&net);
}

/* ---- who is heard ---- */

static void expect_peer(int end, unsigned port)
{
	const struct lldp_neighbour *n;
	unsigned at = 0;
	char text[32];

	n = rnic_lldp_neighbour(net.end[end].rnic, port, &at);
	assert_non_null(n);
	assert_string_equal(wire_lldp_chassis_text(&n->says.chassis, text, sizeof(text)),
		end ? "02:00:00:00:00:0a" : "02:00:00:00:00:0b");
	assert_string_equal(
		wire_lldp_port_text(&n->says.port, text, sizeof(text)), port ? "nic1" : "nic0");
	assert_string_equal(wire_lldp_name_text(&n->says, text, sizeof(text)), end ? "h0" : "h1");
	assert_null(rnic_lldp_neighbour(net.end[end].rnic, port, &at));
}

static void each_other(void **state)
{
	(void)state;
	open_with(&on);
	net_run(&net, 100 * SEC);
	for (int end = 0; end < 2; end++) {
		for (unsigned port = 0; port < 2; port++)
			expect_peer(end, port);
		assert_true(count(end, RNIC_C_LLDP_HEARD) >= 2 * (LLDP_FAST + 3));
		assert_int_equal(net_drops(net.end[end].rnic), 0);
	}
	/* A cable is out, and nobody tells of it: forgotten after the time that he gave. */
	net.cut = 2;
	net_run(&net, net.now + (LLDP_TTL_S - 31) * SEC);
	expect_peer(0, 1);
	net_run(&net, net.now + 31 * SEC);
	assert_int_equal(neighbours(0, 1), 0);
	assert_int_equal(count(0, RNIC_C_LLDP_EXPIRED), 1);
	expect_peer(0, 0);
	net.cut = 0;
	net_run(&net, net.now + 31 * SEC);
	expect_peer(0, 1);
	net_close(&net);
}

/* Who goes says so, once, and is forgotten at once; he neither speaks nor hears any more. */
static void goodbye(void **state)
{
	struct rnic *rnic = a_device(&on);
	uint64_t heard, said;

	(void)state;
	net_run(&net, 10 * SEC);
	expect_peer(1, 0);
	heard = count(0, RNIC_C_LLDP_HEARD);
	said = count(0, RNIC_C_LLDP_SENT);
	rnic_lldp_stop(rnic);
	rnic_lldp_stop(rnic);
	net_run(&net, net.now + SEC);
	assert_int_equal(count(1, RNIC_C_LLDP_EXPIRED), 0);
	assert_true(neighbours(1, 0) == 0 && neighbours(1, 1) == 0);
	expect_peer(0, 0); /* for who asks at the end */
	net_port_set(&net, 0, 1, false);
	net_port_set(&net, 0, 1, true);
	net_run(&net, net.now + 100 * SEC);
	assert_int_equal(count(0, RNIC_C_LLDP_SENT), said);
	assert_int_equal(count(0, RNIC_C_LLDP_HEARD), heard);
	assert_true(rnic_drop_count(rnic, RNIC_DROP_NOT_ROCE) > 0);
	assert_true(rnic_deadline(rnic) == UINT64_MAX);
	net_close(&net);
}

/* Whatever comes, few are kept, and nobody makes a port speak more than once a second. */
static void flood(void **state)
{
	struct rnic *rnic = a_device(&on);
	unsigned n = 0;

	(void)state;
	for (net.now = 0; net.now < 10 * SEC; net.now += SEC / 100) {
		const unsigned i = (unsigned)(net.now / (SEC / 100));

		assert_int_equal(say(0, 5 + i, 1), 0);
		assert_int_equal(say(0, 5 + i, 0), 0);
		n += sent(rnic, net.now);
	}
	assert_true(n <= 10 + LLDP_FAST);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(say(0, 5000 + i, UINT16_MAX), 0);
	assert_int_equal(neighbours(0, 0), LLDP_PER_PORT);
	assert_int_equal(count(0, RNIC_C_LLDP_REFUSED), 1000 - LLDP_PER_PORT);
	assert_int_equal(neighbours(0, 1), 0);
	net_run(&net, net.now + LLDP_KEPT_S * SEC);
	assert_int_equal(count(0, RNIC_C_LLDP_EXPIRED), LLDP_PER_PORT);
	net_close(&net);
}

/* ---- what makes no sense ---- */

static void nonsense(void **state)
{
	static const struct {
		unsigned at;
		uint8_t is;
		enum rnic_drop drop;
	} cases[] = {{14, 0x04, RNIC_DROP_LLDP_ORDER}, {15, 6, RNIC_DROP_LLDP_ID},
		{16, 9, RNIC_DROP_LLDP_ID}, {14, 0x03, RNIC_DROP_LLDP_TLV},
		{31, 1, RNIC_DROP_LLDP_TTL}, {35, 0xff, RNIC_DROP_LLDP_TLV},
		{5, 3, RNIC_DROP_NOT_ROCE}, {12, 0x89, RNIC_DROP_NOT_ROCE}};
	struct rnic *rnic = a_device(&on);
	uint8_t bytes[1200];

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		memcpy(bytes, nic1, sizeof(nic1));
		bytes[cases[i].at] = cases[i].is;
		assert_int_equal(rnic_rx(rnic, 0, bytes, sizeof(nic1), 0), cases[i].drop);
		assert_true(rnic_drop_count(rnic, cases[i].drop) > 0);
	}
	/* Cut anywhere before the end of its third TLV, and an id of 300 bytes. */
	for (size_t len = ETH_HDR_LEN; len < 34; len++)
		assert_int_not_equal(rnic_rx(rnic, 0, nic1, len, 0), 0);
	memset(bytes, 'x', sizeof(bytes));
	memcpy(bytes, nic1, ETH_HDR_LEN);
	bytes[14] = 0x03;
	bytes[15] = 44;
	assert_int_equal(rnic_rx(rnic, 0, bytes, sizeof(bytes), 0), RNIC_DROP_LLDP_ID);
	assert_int_equal(neighbours(0, 0), 0);
	assert_int_equal(count(0, RNIC_C_LLDP_HEARD), 0);
	/* A system's name of 300 is none; and one that never was here goes. */
	memcpy(bytes, nic1, 34);
	bytes[34] = 0x0b;
	bytes[35] = 44;
	assert_int_equal(rnic_rx(rnic, 0, bytes, sizeof(bytes), 0), RNIC_DROP_LLDP_TLV);
	bytes[36 + 300] = bytes[36 + 301] = 0;
	assert_int_equal(rnic_rx(rnic, 0, bytes, sizeof(bytes), 0), 0);
	assert_int_equal(rnic_rx(rnic, 1, bye1, sizeof(bye1), 0), 0);
	assert_true(neighbours(0, 0) == 1 && neighbours(0, 1) == 0);
	net_close(&net);
}

/* Beside a network stack. */
static void beside_a_stack(void **state)
{
	struct rnic *rnic = a_device(&on);

	(void)state;
	assert_int_equal(rnic_readers(rnic, 0, nic1, sizeof(nic1)), RNIC_READS | STACK_READS);
	net_close(&net);
}

static void is_off(void **state)
{
	struct rnic *rnic = a_device(&off);

	(void)state;
	assert_true(rnic_deadline(rnic) == UINT64_MAX);
	assert_int_equal(sent(rnic, 100 * SEC), 0);
	assert_int_equal(say(0, 1, 120), RNIC_DROP_NOT_ROCE);
	assert_int_equal(neighbours(0, 0), 0);
	assert_int_equal(rnic_readers(rnic, 0, nic1, sizeof(nic1)), STACK_READS);
	net_port_set(&net, 0, 0, false);
	net_port_set(&net, 0, 0, true);
	rnic_lldp_stop(rnic);
	assert_int_equal(sent(rnic, 100 * SEC), 0);
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(long_names),
		cmocka_unit_test(rhythm),
		cmocka_unit_test(link_comes_and_goes),
		cmocka_unit_test(no_room),
		cmocka_unit_test(each_other),
		cmocka_unit_test(goodbye),
		cmocka_unit_test(flood),
		cmocka_unit_test(nonsense),
		cmocka_unit_test(beside_a_stack),
		cmocka_unit_test(is_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
