/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pair 1: what gets there, what does not, and how it is sent. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/rnic.h"
#include "lib/wire/cm.h"
#include "tests/unit/rnic/net.h"

static const uint8_t macs[2][6] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}};

struct gsi {
	struct rnic *rnic[2];
	struct wire_ip ip[2];
	unsigned n, answer;
	struct rnic_mad mad;
	uint8_t data[CM_MAD_LEN];
};

static unsigned on_mad(void *arg, const struct rnic_mad *mad, const uint8_t *data)
{
	struct gsi *gsi = arg;

	gsi->n++;
	gsi->mad = *mad;
	memcpy(gsi->data, data, sizeof(gsi->data));
	return gsi->answer;
}

static void open_two(struct gsi *gsi, bool listening)
{
	memset(gsi, 0, sizeof(*gsi));
	for (unsigned i = 0; i < 2; i++) {
		struct rnic_config config = {.port[0].n_ip = 1, .port[0].mtu = 1500};

		memcpy(config.port[0].mac, macs[i], 6);
		config.port[0].ip[0] = gsi->ip[i] = wire_ip_from4(0x0a4d0001 + i);
		if (listening)
			config.events = (struct rnic_events){.arg = gsi, .mad = on_mad};
		assert_int_equal(rnic_create(&config, &gsi->rnic[i]), 0);
	}
}

static void close_two(struct gsi *gsi)
{
	rnic_destroy(gsi->rnic[0]);
	rnic_destroy(gsi->rnic[1]);
}

/* The next frame of the first device, as the second sees it. */
static size_t next_frame(struct gsi *gsi, uint8_t bytes[2048])
{
	struct rnic_frame frame;

	return rnic_tx(gsi->rnic[0], RNIC_ALL_PORTS, &frame, 0)
		       ? (size_t)rnic_frame_flatten(&frame, bytes, 2048)
		       : 0;
}

static void there(void **state)
{
	struct gsi gsi;
	uint8_t data[CM_MAD_LEN], bytes[2048];
	struct wire_pkt pkt;
	size_t len;

	(void)state;
	open_two(&gsi, true);
	for (unsigned i = 0; i < CM_MAD_LEN; i++)
		data[i] = (uint8_t)(7 * i + 1);
	const struct rnic_mad mad = {gsi.ip[0], gsi.ip[1], 0x20};
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(rnic_mad_send(gsi.rnic[0], &mad, macs[1], data), 0);
		assert_true(rnic_has_work(gsi.rnic[0]));
		len = next_frame(&gsi, bytes);
		assert_int_equal(wire_parse(bytes, len, &pkt), WIRE_OK);
		assert_int_equal(pkt.psn, i);
		assert_int_equal(pkt.sqpn, CM_QPN);
		assert_true(pkt.sport >= 0xc000);
		assert_int_equal(rnic_rx(gsi.rnic[1], 0, bytes, len, 0), 0);
		assert_int_equal(gsi.n, i + 1);
	}
	assert_memory_equal(gsi.data, data, sizeof(data));
	assert_memory_equal(&gsi.mad, &mad, sizeof(mad));
	gsi.answer = RNIC_DROP_NO_QP; /* nobody wants it now */
	assert_int_equal(rnic_rx(gsi.rnic[1], 0, bytes, len, 0), RNIC_DROP_NO_QP);
	gsi.answer = 0;

	/* To itself, and nothing comes out. */
	const struct rnic_mad self = {gsi.ip[0], gsi.ip[0], 0};
	gsi.n = 0;
	assert_int_equal(rnic_mad_send(gsi.rnic[0], &self, macs[0], data), 0);
	assert_int_equal(next_frame(&gsi, bytes), 0);
	assert_int_equal(gsi.n, 1);

	const struct rnic_mad not_own = {gsi.ip[1], gsi.ip[0], 0};
	assert_int_equal(rnic_mad_send(gsi.rnic[0], &not_own, macs[0], data), -EINVAL);
	while (rnic_mad_send(gsi.rnic[0], &mad, macs[1], data) == 0)
		assert_true(++gsi.n < 100);
	assert_int_equal(rnic_mad_send(gsi.rnic[0], &mad, macs[1], data), -ENOSPC);
	assert_true(next_frame(&gsi, bytes) > 0);
	assert_int_equal(rnic_mad_send(gsi.rnic[0], &mad, macs[1], data), 0);
	close_two(&gsi);
}

static unsigned give(struct gsi *gsi, struct wire_hdr hdr, size_t len)
{
	struct wire_flow flow = {.src = gsi->ip[0], .dst = gsi->ip[1], .ttl = 64, .sport = 0xd872};
	uint8_t data[300] = {0}, bytes[2048];
	int n;

	memcpy(flow.smac, macs[0], 6);
	memcpy(flow.dmac, macs[1], 6);
	n = wire_build_frame(bytes, sizeof(bytes), &flow, &hdr, data, len);
	assert_true(n > 0);
	return rnic_rx(gsi->rnic[1], 0, bytes, (size_t)n, 0);
}

static void not_there(void **state)
{
	const struct wire_hdr good = {.opcode = ROCE_UD | ROCE_SEND_ONLY,
		.sqpn = CM_QPN,
		.dqpn = CM_QPN,
		.qkey = CM_QKEY};
	struct wire_hdr bad;
	struct gsi gsi;

	(void)state;
	open_two(&gsi, true);
	assert_int_equal(give(&gsi, good, CM_MAD_LEN), 0);
	assert_int_equal(give(&gsi, good, CM_MAD_LEN - 4), RNIC_DROP_MAD);
	assert_int_equal(give(&gsi, good, CM_MAD_LEN + 1), RNIC_DROP_MAD);
	bad = good;
	bad.qkey = 0x11111111;
	assert_int_equal(give(&gsi, bad, CM_MAD_LEN), RNIC_DROP_QKEY);
	bad = good;
	bad.sqpn = 0x11;
	assert_int_equal(give(&gsi, bad, CM_MAD_LEN), RNIC_DROP_MAD);
	bad = good;
	bad.opcode = ROCE_UD | ROCE_SEND_ONLY_IMM;
	assert_int_equal(give(&gsi, bad, CM_MAD_LEN), RNIC_DROP_QP_TYPE);
	bad.opcode = ROCE_RC | ROCE_SEND_ONLY;
	assert_int_equal(give(&gsi, bad, CM_MAD_LEN), RNIC_DROP_QP_TYPE);
	bad = good;
	bad.dqpn = 0;
	assert_int_equal(give(&gsi, bad, CM_MAD_LEN), RNIC_DROP_NO_QP);
	assert_int_equal(gsi.n, 1);
	close_two(&gsi);
	open_two(&gsi, false);
	assert_int_equal(give(&gsi, good, CM_MAD_LEN), RNIC_DROP_NO_QP);
	close_two(&gsi);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there),
		cmocka_unit_test(not_there),
	};

	return cmocka_run_group_tests_name("gsi", tests, NULL, NULL);
}
