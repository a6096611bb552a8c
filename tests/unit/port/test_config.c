/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <string.h>

#include "lib/port/config.h"

static json_t *parse(const char *text)
{
	json_t *json = json_loads(text, 0, NULL);

	assert_non_null(json);
	return json;
}

static void good(void **state)
{
	static const struct {
		const char *json, *vdev;
	} cases[] = {
		{"{'name':'a','type':'memif','socket':'/run/x','role':'server','id':7,'mtu':1500}",
			"net_memif_a,role=server,id=7,socket=/run/x,socket-abstract=no,rsize=10,"
			"bsize=1536"},
		{"{'name':'a','type':'memif','socket':'/run/x','rxd':256,'txd':512}",
			"net_memif_a,role=client,id=0,socket=/run/x,socket-abstract=no,rsize=9,"
			"bsize=4224,zero-copy=yes"},
		{"{'name':'a','type':'memif','socket':'/run/x','zero_copy':false}",
			"net_memif_a,role=client,id=0,socket=/run/x,socket-abstract=no,rsize=10,"
			"bsize=4224"},
		{"{'name':'a','type':'af_packet','iface':'veth0','mtu':1500}",
			"net_af_packet_a,iface=veth0,qpairs=1,framesz=1600,blocksz=102400,"
			"framecnt=1024,qdisc_bypass=1"},
		{"{'name':'a','type':'af_packet','iface':'veth0','mtu':9600}",
			"net_af_packet_a,iface=veth0,qpairs=1,framesz=9728,blocksz=622592,"
			"framecnt=1024,qdisc_bypass=1"},
		{"{'name':'a.b-c','type':'tap','iface':'t0'}", "net_tap_a.b-c,iface=t0,mac=fixed"},
		{"{'name':'a','type':'vhost','socket':'/run/v','client':true}",
			"net_vhost_a,iface=/run/v,queues=1,client=1"},
		{"{'name':'a','type':'pcap','rx':'in.pcap','tx':'out.pcap'}",
			"net_pcap_a,rx_pcap=in.pcap,tx_pcap=out.pcap"},
		{"{'name':'a','type':'pcap','tx':'out.pcap'}", "net_pcap_a,tx_pcap=out.pcap"},
		{"{'name':'a','type':'null','# note':[1]}", "net_null_a,no-rx=1"},
		{"{'name':'a','type':'ring','peer':'b'}", ""},
		{"{'name':'a','type':'pci','address':'0000:3b:00.0','args':'x=1,y=2'}",
			"0000:3b:00.0,x=1,y=2"},
		{"{'name':'a','type':'vdev','args':'net_ring9,z=[0]'}", "net_ring9,z=[0]"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char err[PORT_ERR_LEN] = "", text[512];
		struct port_config c;
		json_t *json;

		snprintf(text, sizeof(text), "%s", cases[i].json);
		for (char *p = text; *p; p++)
			if (*p == '\'')
				*p = '"';
		json = parse(text);
		if (port_config_parse(json, &c, err) != 0)
			fail_msg("%s: %s", text, err);
		assert_string_equal(c.vdev, cases[i].vdev);
		assert_int_equal(c.name[0], 'a');
		json_decref(json);
	}
}

static void bad(void **state)
{
	static const struct {
		const char *json, *err;
	} cases[] = {
		{"[]", "must be object, not a list"},
		{"{'type':'null'}", "name: is missing"},
		{"{'name':'','type':'null'}", "name: must have 1..31 bytes, has 0"},
		{"{'name':'a b','type':'null'}", "name: must be at most 31"},
		{"{'name':'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa','type':'null'}",
			"name: must have 1..31 bytes, has 32"},
		{"{'name':'a'}", "type: is missing: memif, af_packet, tap, vhost, ring, null, "
				 "pcap, pci or vdev"},
		{"{'name':'a','type':'nul'}", "type: \"nul\" must be memif, af_packet"},
		{"{'name':'a','type':5}", "type: must be a string: memif"},
		{"{'name':'a','type':'null','iface':'x'}",
			"iface: is not a known field for type null"},
		{"{'name':'a','type':'null','mtu':575}", "mtu: 575 is not in 576..9600"},
		{"{'name':'a','type':'null','mtu':9601}", "mtu: 9601 is not in 576..9600"},
		{"{'name':'a','type':'null','mtu':1e3}",
			"mtu: must be integer 576..9600, not a fraction"},
		{"{'name':'a','type':'null','rxd':1000}", "rxd: 1000 is not a power of two"},
		{"{'name':'a','type':'null','txd':32768}", "txd: 32768 is not in 64..16384"},
		{"{'name':'a','type':'null','mac':'02:00'}", "mac: must look like"},
		{"{'name':'a','type':'null','mac':'03:00:00:00:00:01'}", "mac: must not be a mult"},
		{"{'name':'a','type':'memif'}", "socket: is missing, type memif needs it"},
		{"{'name':'a','type':'memif','socket':'/x','role':'master'}",
			"role: \"master\" must be server or client"},
		{"{'name':'a','type':'memif','socket':'/x','id':65536}",
			"id: 65536 is not in 0..65535"},
		{"{'name':'a','type':'memif','socket':'/x','role':'server','zero_copy':true}",
			"zero_copy: only the client"},
		{"{'name':'a','type':'memif','socket':'/x','zero_copy':1}",
			"zero_copy: must be boolean, not an integer"},
		{"{'name':'a','type':'memif','socket':'/x,id=3'}", "socket: must not contain"},
		{"{'name':'a','type':'af_packet'}", "iface: is missing, type af_packet needs it"},
		{"{'name':'a','type':'tap','iface':'t','mtu':1501}",
			"mtu: 1501 is not in 576..1500"},
		{"{'name':'a','type':'af_packet','iface':'abcdefghijklmnop'}",
			"iface: must have 1..15 bytes, has 16"},
		{"{'name':'a','type':'pcap'}", "rx: a pcap port needs"},
		{"{'name':'a','type':'pci'}", "address: is missing"},
		{"{'name':'a','type':'pci','address':'3b:00.0'}", "address: \"3b:00.0\" does not"},
		{"{'name':'a','type':'pci','address':'0000:3b:00.0x'}", "address: "},
		{"{'name':'a','type':'vdev'}", "args: is missing"},
		{"{'name':'a','type':'ring','peer':'a'}", "peer: a port cannot"},
		{"{'name':'aaaaaaaaaaaaaaaaaaaaaaaaaa','type':'ring'}", "name: a ring port's"},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char err[PORT_ERR_LEN] = "", text[512];
		struct port_config c, before;
		json_t *json;

		snprintf(text, sizeof(text), "%s", cases[i].json);
		for (char *p = text; *p; p++)
			if (*p == '\'')
				*p = '"';
		memset(&c, 0x5a, sizeof(c));
		before = c;
		json = parse(text);
		assert_int_equal(port_config_parse(json, &c, err), -EINVAL);
		if (strncmp(err, cases[i].err, strlen(cases[i].err)) != 0)
			fail_msg("%s: \"%s\", not \"%s\"", text, err, cases[i].err);
		assert_memory_equal(&c, &before, sizeof(c));
		json_decref(json);
	}
}

/* A quote, which the table above cannot spell. */
static void quote(void **state)
{
	json_t *json = json_pack("{ssssss}", "name", "a", "type", "tap", "iface", "x'y");
	char err[PORT_ERR_LEN];
	struct port_config c;

	(void)state;
	assert_int_equal(port_config_parse(json, &c, err), -EINVAL);
	json_decref(json);
}

static void defaults(void **state)
{
	json_t *json = parse("{\"name\":\"n\",\"type\":\"null\"}");
	char err[PORT_ERR_LEN];
	struct port_config c;

	(void)state;
	assert_int_equal(port_config_parse(json, &c, err), 0);
	assert_int_equal(c.mtu, 4200);
	assert_int_equal(c.rxd, 1024);
	assert_int_equal(c.txd, 1024);
	assert_false(c.has_mac);
	json_decref(json);
}

static void idle_names(void **state)
{
	(void)state;
	for (int i = PORT_IDLE_SPIN; i <= PORT_IDLE_SLEEP; i++)
		assert_int_equal(port_idle_parse(port_idle_name((enum port_idle)i)), i);
	assert_int_equal(port_idle_parse("doze"), -EINVAL);
}

/* The time since there was work says what is done, not how many turns found none; work starts over;
 * a deadline that has passed does not sleep at all. */
static void backoff(void **state)
{
	static const uint64_t begin = 1000000, yields = begin + 2000 + 200000;
	struct port_backoff b = {.idle = PORT_IDLE_SLEEP, .max_sleep_us = 1};

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		port_backoff(&b, 0, begin, UINT64_MAX);
	assert_int_equal(b.worked_ns, begin);
	assert_false(port_backoff_sleeps(&b, yields - 1));
	assert_true(port_backoff_sleeps(&b, yields));
	port_backoff(&b, 0, yields, UINT64_MAX);
	assert_true(port_backoff_sleeps(&b, yields));
	port_backoff(&b, 1, yields, 0);
	assert_false(port_backoff_sleeps(&b, yields + 1));
	assert_false(port_backoff_sleeps(&b, begin));
	b.max_sleep_us = UINT32_MAX; /* it would be felt */
	port_backoff(&b, 0, yields + 5000000000000, yields);
	b.idle = PORT_IDLE_SPIN;
	assert_false(port_backoff_sleeps(&b, UINT64_MAX));
	port_backoff(&b, 0, yields + 5000000000000, UINT64_MAX);
}

/* Who had nothing to do for a second sleeps longer, whatever the clock began with. */
static void quiet(void **state)
{
	static const uint64_t second = 1000000000, begin = 5 * second;
	struct port_backoff b = {.idle = PORT_IDLE_SLEEP};

	(void)state;
	port_backoff(&b, 0, begin, begin + 1);
	assert_int_equal(port_backoff_longest(&b, begin), 100);
	assert_int_equal(port_backoff_longest(&b, begin + second - 1), 100);
	assert_int_equal(port_backoff_longest(&b, begin + second), 1000);
	port_backoff(&b, 1, begin + second, begin);
	assert_int_equal(port_backoff_longest(&b, begin + second), 100);
	port_backoff(&b, 0, begin + 2 * second, begin);
	assert_int_equal(port_backoff_longest(&b, begin + 2 * second), 1000);
	b.max_sleep_us = 7;
	assert_int_equal(port_backoff_longest(&b, begin + 2 * second), 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),
		cmocka_unit_test(bad),
		cmocka_unit_test(quote),
		cmocka_unit_test(defaults),
		cmocka_unit_test(idle_names),
		cmocka_unit_test(backoff),
		cmocka_unit_test(quiet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
