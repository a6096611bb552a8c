/* SPDX-License-Identifier: BSD-3-Clause */
/* What a port does not take waits for it: ports are rings of 64 that nobody empties. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/egress/fifo.h"
#include "harness.h"
#include "lib/wire/bytes.h"

enum { RING = 64, PAYLOAD = 400, LEN = ETH_HDR_LEN + 20 + PAYLOAD };

#define PORTS "'rxd':1024,'txd':64,'queue':"

/* Packets with numbers, from host 0 to host 1; the switch has handled them. */
static void send_numbered(struct sw *sw, uint32_t first, uint32_t n)
{
	struct wire_ip a = h_host4(0), c = h_host4(1);
	uint8_t b[LEN], payload[PAYLOAD] = {0};

	for (uint32_t i = first; i < first + n; i++) {
		put_be32(payload, i);
		h_ip4(b, h_port_mac(sw, 0), &a, &c, 99, 9, payload, PAYLOAD);
		h_inject(sw, 0, b, LEN);
	}
	h_run(sw);
	h_check_balance(sw);
}

/* Takes what port 1 has sent; numbers go on from next. */
static unsigned take_numbered(struct sw *sw, uint32_t next)
{
	struct frame f;
	unsigned n = 0;

	for (; h_take(sw, 1, &f); n++) {
		assert_int_equal(f.len, LEN);
		assert_int_equal(get_be32(f.b + ETH_HDR_LEN + 20), next + n);
	}
	h_run(sw);
	h_check_balance(sw);
	return n;
}

static struct sw_queue queue(struct sw *sw, unsigned which)
{
	struct sw_queue q;

	assert_int_equal(sw_queue_get(sw, 1, which, &q), 0);
	assert_string_equal(q.port, "p1");
	return q;
}

static void listed(void **state)
{
	struct sw *sw = h_start(2, NULL, "{'queue':{'control_kb':3,'data_kb':5}}");
	struct sw_queue q;

	(void)state;
	q = queue(sw, 0);
	assert_string_equal(q.name, "control");
	assert_int_equal(q.limit_bytes, 3 << 10);
	q = queue(sw, 1);
	assert_string_equal(q.name, "data");
	assert_int_equal(q.limit_bytes, 5 << 10);
	assert_int_equal(sw_queue_get(sw, 1, 2, &q), -ENOENT);
	assert_int_equal(sw_queue_get(sw, 2, 0, &q), -ENOENT);
	h_stop(sw);
}

/* However long the port stands still: nothing is lost, everything comes in its order. */
static void stalled(void **state)
{
	struct sw *sw = h_start(2, NULL, "{" PORTS "{'data_kb':128,'hold_ms':3600000}}");
	unsigned n;

	(void)state;
	send_numbered(sw, 0, 200);
	assert_int_equal(queue(sw, 1).packets, 200 - RING);
	assert_int_equal(queue(sw, 1).bytes, (200 - RING) * LEN);
	usleep(10000);
	sw_turn(sw, 0, port_now_ns());
	n = take_numbered(sw, 0);
	assert_int_equal(n, RING);
	send_numbered(sw, 200, 50); /* behind those that wait */
	for (unsigned k = RING; n < 250; n += k) {
		k = take_numbered(sw, n);
		assert_int_equal(k, n < 192 ? RING : 250 - 192);
	}
	assert_int_equal(h_losses(sw), 0);
	assert_int_equal(queue(sw, 1).packets, 0);
	assert_int_equal(queue(sw, 1).count.queued, 250 - RING);
	send_numbered(sw, 250, RING); /* as if nothing had been */
	assert_int_equal(take_numbered(sw, 250), RING);
	assert_int_equal(queue(sw, 1).count.queued, 250 - RING);
	h_stop(sw);
}

static void full(void **state)
{
	struct sw *sw = h_start(2, NULL, "{" PORTS "{'data_kb':1,'hold_ms':3600000}}");
	struct sw_port port;

	(void)state;
	send_numbered(sw, 0, 100);
	assert_int_equal(h_drop(sw, "tx_full"), 100 - RING - 2);
	assert_int_equal(queue(sw, 1).count.full, 100 - RING - 2);
	assert_int_equal(sw_port_get(sw, 1, &port), 0);
	assert_int_equal(port.tx_drops, 100 - RING - 2);
	assert_int_equal(port.tx_packets, RING);
	assert_int_equal(port.tx_bytes, RING * LEN);
	assert_int_equal(take_numbered(sw, 0), RING);
	assert_int_equal(take_numbered(sw, RING), 2);
	h_stop(sw);
}

/* A port whose peer is gone holds no buffers. */
static void dead(void **state)
{
	struct sw *sw = h_start(2, NULL, "{" PORTS "{'hold_ms':1}}");

	(void)state;
	send_numbered(sw, 0, RING + 10);
	usleep(2000);
	sw_turn(sw, 0, port_now_ns());
	assert_int_equal(h_drop(sw, "tx_stale"), 10);
	assert_int_equal(queue(sw, 1).count.stale, 10);
	assert_int_equal(queue(sw, 1).packets, 0);
	send_numbered(sw, 100, 1);
	assert_int_equal(h_drop(sw, "tx_stale"), 11);
	assert_int_equal(take_numbered(sw, 0), RING);
	send_numbered(sw, 200, 1);
	assert_int_equal(take_numbered(sw, 200), 1);
	h_stop(sw);
}

/* What the switch forwards is trimmed where the configuration says so. */
static void trimmed(void **state)
{
	struct sw *sw = h_start(2, "{'dscp':{'trimmable':[26],'trimmed_last_hop':20}}",
		"{" PORTS "{'data_kb':1,'hold_ms':3600000,'trim_bytes':128,'last_hop':true}}");
	struct frame f;

	(void)state;
	send_numbered(sw, 0, RING + 3);
	assert_int_equal(queue(sw, 1).count.trimmed, 1);
	assert_int_equal(queue(sw, 0).packets, 1);
	assert_int_equal(take_numbered(sw, 0), RING);
	assert_true(h_take(sw, 1, &f));
	assert_int_equal(f.len, 128);
	assert_int_equal(f.b[ETH_HDR_LEN + 1], 20 << 2);
	assert_int_equal(get_be16(f.b + ETH_HDR_LEN + 2), 128 - ETH_HDR_LEN);
	assert_int_equal(get_be32(f.b + ETH_HDR_LEN + 20), RING + 2);
	assert_int_equal(take_numbered(sw, RING), 2);
	assert_int_equal(h_losses(sw), 0);
	h_stop(sw);
}

/* With a rate every packet comes by the queues. */
static void rate(void **state)
{
	struct sw *sw = h_start(2, NULL, "{" PORTS "{'rate_mbps':1000000}}");

	(void)state;
	send_numbered(sw, 0, 10);
	assert_int_equal(take_numbered(sw, 0), 10);
	assert_int_equal(queue(sw, 1).count.queued, 10);
	h_stop(sw);
}

/* What still waits when the switch ends is freed. */
static void end(void **state)
{
	struct sw *sw = h_start(2, NULL, "{" PORTS "{'hold_ms':3600000}}");

	(void)state;
	send_numbered(sw, 0, 100);
	sw_destroy(sw);
}

/* Only memory of no certain node is left (the linker puts this in the place of the function). */
static bool nodes_full;
static unsigned refused;
void *__real_rte_zmalloc_socket(const char *type, size_t size, unsigned align, int socket);
void *__wrap_rte_zmalloc_socket(const char *type, size_t size, unsigned align, int socket);

void *__wrap_rte_zmalloc_socket(const char *type, size_t size, unsigned align, int socket)
{
	if (!nodes_full || socket == SOCKET_ID_ANY)
		return __real_rte_zmalloc_socket(type, size, align, socket);
	refused++;
	return NULL;
}

/* The queue lies there, then. */
static void elsewhere(void **state)
{
	struct sw *sw = h_start(2, NULL, NULL); /* and so the EAL */
	struct egress_fifo f;

	(void)state;
	nodes_full = true;
	assert_int_equal(egress_fifo_init(&f, 4 * EGRESS_LEAST, 0), 0);
	nodes_full = false;
	assert_int_equal(refused, 1);
	assert_non_null(f.slot);
	assert_int_equal(f.places, 4);
	egress_fifo_free(&f);
	h_stop(sw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listed),
		cmocka_unit_test(stalled),
		cmocka_unit_test(full),
		cmocka_unit_test(dead),
		cmocka_unit_test(trimmed),
		cmocka_unit_test(rate),
		cmocka_unit_test(end),
		cmocka_unit_test(elsewhere),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed;
}
