/* SPDX-License-Identifier: BSD-3-Clause */
/* What captures see of the packets of a port, and what they leave alone. */
#include <errno.h>
#include <pcap/pcap.h>
#include <string.h>

#include "collective.h"
#include "lib/wire/bytes.h"

enum { MANY = 2000, RING_KB = 128, HEAD = 20 + ETH_HDR_LEN };

struct seen {
	unsigned n;
	struct sw_captured p[MANY];
	uint8_t data[MANY][2200];
};

static struct seen seen;

static void keep(void *arg, const struct sw_captured *p)
{
	struct seen *s = arg;

	assert_true(s->n < MANY && p->cap <= sizeof(s->data[0]) && p->cap <= p->len);
	s->p[s->n] = *p;
	memcpy(s->data[s->n++], p->data, p->cap);
}

/* Everything that is there. */
static void read_all(uint32_t id)
{
	seen.n = 0;
	assert_true(sw_capture_read(sw, id, MANY, SIZE_MAX, keep, &seen) >= 0);
}

static uint32_t begin(unsigned port, bool in, bool out, uint32_t snaplen, const char *filter)
{
	struct sw_capture_spec s = {.port = port,
		.in = in,
		.out = out,
		.snaplen = snaplen,
		.ring_bytes = RING_KB << 10};
	struct bpf_program program = {0};
	pcap_t *dead = pcap_open_dead(DLT_EN10MB, 65535);
	uint32_t id = 0;

	if (filter) {
		assert_int_equal(pcap_compile(dead, &program, filter, 1, PCAP_NETMASK_UNKNOWN), 0);
		s.filter = program.bf_insns;
		s.n_filter = program.bf_len;
	}
	if (sw_capture_start(sw, &s, &id, err) != 0)
		fail_msg("%s", err);
	pcap_freecode(&program);
	pcap_close(dead);
	return id;
}

static struct sw_capture_info info_of(uint32_t id)
{
	struct sw_capture_info info;

	for (unsigned i = 0; sw_capture_get(sw, i, &info) == 0; i++)
		if (info.id == id)
			return info;
	fail_msg("no capture %u", id);
	return info;
}

static void expect_packet(unsigned i, bool out, const void *data, unsigned len, const char *end)
{
	assert_true(i < seen.n);
	assert_int_equal(seen.p[i].out, out);
	assert_int_equal(seen.p[i].len, len);
	assert_int_equal(seen.p[i].cap, len);
	assert_memory_equal(seen.data[i], data, len);
	if (end)
		assert_string_equal(seen.p[i].end, end);
	else
		assert_null(seen.p[i].end);
}

static unsigned from_host(uint8_t *b, unsigned i, unsigned to, const void *payload, unsigned len)
{
	const struct wire_ip src = h_host4(i), dst = h_host4(to);

	return h_ip4(b, h_port_mac(sw, i), &src, &dst, 99, 9, payload, len);
}

/* As received, before the switch writes into it; as sent, after that. */
static void in_and_out(void **state)
{
	const uint32_t both = begin(0, true, true, 65535, NULL);
	const uint32_t in = begin(0, true, false, 65535, NULL);
	const uint32_t out = begin(1, false, true, 65535, NULL);
	uint8_t there[128], back[128];
	unsigned n = from_host(there, 0, 1, "there", 5), k = from_host(back, 1, 0, "back", 4);
	struct frame f, g;

	(void)state;
	h_exchange(sw, 0, there, n, 1, &f);
	h_exchange(sw, 1, back, k, 0, &g);
	read_all(both);
	assert_int_equal(seen.n, 2);
	expect_packet(0, false, there, n, NULL);
	expect_packet(1, true, g.b, g.len, NULL);
	assert_true(seen.p[0].ns > 0 && seen.p[0].ns <= seen.p[1].ns);
	read_all(both); /* once */
	assert_int_equal(seen.n, 0);
	read_all(in);
	assert_int_equal(seen.n, 1);
	expect_packet(0, false, there, n, NULL);
	read_all(out);
	assert_int_equal(seen.n, 1);
	expect_packet(0, true, f.b, f.len, NULL);
	assert_int_equal(info_of(both).count.captured, 2);
	assert_string_equal(info_of(out).port, "p1");
	assert_int_equal(h_value(sw, "captures"), 3);
	assert_int_equal(h_value(sw, "capture_packets"), 4);
	assert_int_equal(sw_capture_stop(sw, both), 0);
	assert_int_equal(sw_capture_stop(sw, both), -ENOENT);
	assert_int_equal(sw_capture_read(sw, both, 1, 1, keep, &seen), -ENOENT);
	/* Of what has ended the numbers stay, the rest goes on. */
	h_exchange(sw, 0, there, n, 1, &f);
	read_all(in);
	assert_int_equal(seen.n, 1);
	assert_int_equal(h_value(sw, "captures"), 2);
	assert_int_equal(h_value(sw, "capture_packets"), 6);
	assert_int_equal(sw_capture_stop(sw, in), 0);
	assert_int_equal(sw_capture_stop(sw, out), 0);
}

/* Packets that end here say how. */
static void ends(void **state)
{
	const struct wire_ip a = h_host4(0), nowhere = h_ip("99.0.0.1");
	const uint32_t id = begin(0, true, true, 65535, NULL);
	uint8_t lost[128], there[128];
	unsigned n = h_ip4(lost, h_port_mac(sw, 0), &a, &nowhere, 99, 9, "x", 1);
	unsigned k = from_host(there, 0, 1, "y", 1);
	struct frame f;

	(void)state;
	h_inject(sw, 0, there, k); /* of one turn */
	h_inject(sw, 0, lost, n);
	h_inject(sw, 0, there, k);
	h_run(sw);
	read_all(id);
	assert_int_equal(seen.n, 3);
	expect_packet(0, false, there, k, NULL);
	expect_packet(1, false, lost, n, "ip_no_route");
	assert_true(seen.p[1].lost);
	expect_packet(2, false, there, k, NULL);
	assert_true(h_take(sw, 1, &f) && h_take(sw, 1, &f));
	assert_int_equal(sw_capture_stop(sw, id), 0);
}

/* What the engine makes: a buffer for headers, one for payload, one for the ICRC. */
static void results(void **state)
{
	enum { HOSTS = 3, BYTES = 1024 };
	uint8_t b[H_FRAME_MAX], ctrl[CTRL_LEN], data[BYTES] = {1};
	uint32_t id[HOSTS], imm = c_control(ctrl, BYTES, BYTES, 0);
	const char *want[HOSTS] = {"inc_consumed", "inc_consumed", "inc_done"};
	struct frame f;
	unsigned slot, n;

	(void)state;
	c_spec(HOSTS, BYTES, false, false);
	slot = c_create();
	for (unsigned i = 0; i < HOSTS; i++)
		id[i] = begin(i, true, true, 65535, "udp dst port 4791");
	for (unsigned psn = 0; psn < 2; psn++) {
		for (unsigned i = 0; i < HOSTS; i++) {
			n = psn ? c_host_frame(b, slot, i, ROCE_SEND_ONLY, psn_add(START_PSN, 1), 0,
					  data, BYTES)
				: c_host_frame(b, slot, i, ROCE_SEND_ONLY_IMM, START_PSN, imm, ctrl,
					  CTRL_LEN);
			h_inject(sw, i, b, n);
			h_run(sw);
		}
		for (unsigned i = 0; i < HOSTS; i++) {
			read_all(id[i]);
			assert_int_equal(seen.n, 2);
			assert_false(seen.p[0].out);
			/* Another worker's group: what becomes of it is seen there. */
			if (sw_n_workers(sw) == 1)
				assert_string_equal(seen.p[0].end, want[i]);
			assert_false(seen.p[0].lost);
			assert_true(h_take(sw, i, &f));
			assert_int_equal(f.segs, psn ? 3 : 1);
			expect_packet(1, true, f.b, f.len, NULL);
		}
	}
	for (unsigned i = 0; i < HOSTS; i++) {
		assert_int_equal(info_of(id[i]).count.filtered, 0);
		assert_int_equal(sw_capture_stop(sw, id[i]), 0);
	}
	assert_int_equal(sw_group_delete(sw, slot, true, err), 0);
}

static void filters(void **state)
{
	const uint32_t some = begin(0, true, false, 65535, "ip proto 99 and len > 100");
	const uint32_t none = begin(0, true, true, 65535, "arp");
	uint8_t b[512], payload[300] = {0};
	struct frame f;
	unsigned n;

	(void)state;
	h_exchange(sw, 0, b, from_host(b, 0, 1, payload, 10), 1, &f);
	n = from_host(b, 0, 1, payload, 300);
	h_exchange(sw, 0, b, n, 1, &f);
	read_all(some);
	assert_int_equal(seen.n, 1);
	expect_packet(0, false, b, n, NULL);
	assert_int_equal(info_of(some).count.captured, 1);
	assert_int_equal(info_of(some).count.filtered, 1);
	read_all(none);
	assert_int_equal(seen.n, 0);
	assert_int_equal(info_of(none).count.filtered, 2);
	assert_int_equal(sw_capture_stop(sw, some), 0);
	assert_int_equal(sw_capture_stop(sw, none), 0);
}

/* The length stays the packet's; a filter sees more than is kept. */
static void snaplen(void **state)
{
	const uint32_t id = begin(0, true, false, HEAD + 7, "ip[100] = 0x7b");
	uint8_t b[512], payload[300];
	struct frame f;
	unsigned n;

	(void)state;
	memset(payload, 0x7b, sizeof(payload));
	n = from_host(b, 0, 1, payload, 300);
	h_exchange(sw, 0, b, n, 1, &f);
	read_all(id);
	assert_int_equal(seen.n, 1);
	assert_int_equal(seen.p[0].len, n);
	assert_int_equal(seen.p[0].cap, HEAD + 7);
	assert_memory_equal(seen.data[0], b, HEAD + 7);
	assert_int_equal(sw_capture_stop(sw, id), 0);
}

static void send_numbered(unsigned first, unsigned n, unsigned payload_len)
{
	uint8_t b[2200], payload[2048] = {0};
	struct frame f;

	for (unsigned i = first; i < first + n; i++) {
		put_be32(payload, i);
		h_exchange(sw, 0, b, from_host(b, 0, 1, payload, payload_len), 1, &f);
	}
}

static void expect_numbered(unsigned first, unsigned n, unsigned payload_len)
{
	assert_int_equal(seen.n, n);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(seen.p[i].len, HEAD + payload_len);
		assert_int_equal(get_be32(seen.data[i] + HEAD), first + i);
	}
}

/* What nobody reads is counted, and goes its way; who reads gets everything again, over many laps
 * of the ring and whatever the sizes. */
static void full(void **state)
{
	enum { LEN = 1000, FIT = (RING_KB << 10) / (24 + ((HEAD + LEN + 7) & ~7)) };
	const uint32_t id = begin(0, true, false, 65535, NULL);
	unsigned next = FIT + 30;

	(void)state;
	send_numbered(0, FIT + 30, LEN);
	assert_int_equal(info_of(id).count.captured, FIT);
	assert_int_equal(info_of(id).count.dropped, 30);
	assert_int_equal(h_value(sw, "capture_dropped"), 30);
	assert_int_equal(h_losses(sw), 0);
	read_all(id);
	expect_numbered(0, FIT, LEN);
	for (unsigned lap = 0; lap < 40; lap++) {
		const unsigned len = 4 + 53 * lap % 2000, n = 20 + lap;

		send_numbered(next, n, len);
		read_all(id);
		expect_numbered(next, n, len);
		next += n;
	}
	assert_int_equal(info_of(id).count.dropped, 30);
	/* By portions: so many packets; so many bytes, but always one. */
	send_numbered(next, 10, LEN);
	seen.n = 0;
	assert_int_equal(sw_capture_read(sw, id, 3, SIZE_MAX, keep, &seen), 3);
	assert_int_equal(sw_capture_read(sw, id, 10, 3 * (HEAD + LEN), keep, &seen), 3);
	assert_int_equal(sw_capture_read(sw, id, 10, 1, keep, &seen), 1);
	assert_int_equal(sw_capture_read(sw, id, 10, SIZE_MAX, keep, &seen), 3);
	expect_numbered(next, 10, LEN);
	assert_int_equal(sw_capture_stop(sw, id), 0);
	assert_int_equal(h_value(sw, "capture_dropped"), 30);
}

/* A port that takes no more: a packet is captured when it goes, and once. */
static void not_taken(void **state)
{
	enum { ROOM = 64, ALL = 120 };
	uint8_t b[64], payload[8] = {0};
	unsigned got = 0;
	struct frame f;
	uint32_t id;

	(void)state;
	h_stop(sw);
	sw = h_start(4, NULL, "{'rxd':1024,'txd':64,'queue':{'data_kb':128,'hold_ms':3600000}}");
	id = begin(1, true, true, 65535, NULL);
	for (unsigned i = 0; i < ALL; i++) {
		put_be32(payload, i);
		h_inject(sw, 0, b, from_host(b, 0, 1, payload, sizeof(payload)));
	}
	h_run(sw);
	read_all(id);
	expect_numbered(0, ROOM, sizeof(payload));
	while (got < ALL) {
		const unsigned from = got;

		for (; h_take(sw, 1, &f); got++)
			assert_int_equal(get_be32(f.b + HEAD), got);
		assert_true(got > from);
		h_run(sw);
		read_all(id);
		expect_numbered(got, got + ROOM < ALL ? ROOM : ALL - got, sizeof(payload));
	}
	assert_int_equal(info_of(id).count.captured, ALL);
	assert_int_equal(info_of(id).count.dropped, 0);
	/* The switch ends with it running. */
}

static void expect_refused(const struct sw_capture_spec *s, int rc, const char *why)
{
	uint32_t id = 77;

	assert_int_equal(sw_capture_start(sw, s, &id, err), rc);
	assert_string_equal(err, why);
	assert_int_equal(id, 77);
}

static void refused(void **state)
{
	static struct bpf_insn endless[] = {{BPF_JMP | BPF_JA, 0, 0, UINT32_MAX}}, good[513];
	const struct sw_capture_spec ok = {
		.port = 0, .in = true, .snaplen = 64, .ring_bytes = RING_KB << 10};
	struct sw_capture_spec s = ok;
	uint32_t id[SW_MAX_CAPTURES];

	(void)state;
	s.port = 4;
	expect_refused(&s, -ENOENT, "port: there is no port 4");
	s = ok;
	s.in = false;
	expect_refused(&s, -EINVAL, "dir: neither what comes in nor what goes out");
	s = ok;
	s.snaplen = 0;
	expect_refused(&s, -EINVAL, "snaplen: 0 is not in 1..65535");
	s.snaplen = 65536;
	expect_refused(&s, -EINVAL, "snaplen: 65536 is not in 1..65535");
	s = ok;
	s.ring_bytes = 96 << 10;
	expect_refused(&s, -EINVAL, "ring_kb: 96 is no power of two in 128..16384");
	s.ring_bytes = 129 << 10;
	expect_refused(&s, -EINVAL, "ring_kb: 129 is no power of two in 128..16384");
	s = ok;
	s.filter = endless;
	s.n_filter = 1;
	expect_refused(&s, -EINVAL, "filter: is not a valid program");
	s.filter = good;
	s.n_filter = 513;
	expect_refused(&s, -EINVAL, "filter: has 513 instructions, the limit is 512");
	for (unsigned i = 0; i < SW_MAX_CAPTURES; i++)
		assert_int_equal(sw_capture_start(sw, &ok, &id[i], err), 0);
	expect_refused(&ok, -EBUSY, "8 captures are running, the most there may be");
	for (unsigned i = 0; i < SW_MAX_CAPTURES; i++)
		assert_int_equal(sw_capture_stop(sw, id[i]), 0);
	assert_int_equal(h_value(sw, "captures"), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, c_start, c_stop)

int main(void)
{
	const struct CMUnitTest tests[] = {T(in_and_out), T(ends), T(results), T(filters),
		T(snaplen), T(full), T(not_taken), T(refused)};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed;
}
