/* SPDX-License-Identifier: BSD-3-Clause */
#include "packets.h"

#include <string.h>

#include "lib/port/port.h"

static struct rte_mempool *pool;

static unsigned build(
	uint8_t *out, int family, uint16_t vlan, uint8_t tos, unsigned pay_len, uint32_t psn)
{
	const struct wire_hdr hdr = {
		.opcode = ROCE_SEND_ONLY, .mig = true, .ip_id = 7, .dqpn = 5, .psn = psn};
	struct wire_flow flow = {.dmac = {2, 0, 0, 0, 0, 2},
		.smac = {2, 0, 0, 0, 0, 1},
		.vlan = vlan,
		.tos = tos,
		.ttl = 64,
		.sport = 0xc000};
	uint8_t payload[FRAME_MAX];
	int len;

	assert_int_equal(wire_ip_parse(family == 4 ? "10.0.0.1" : "fd00::1", &flow.src), 0);
	assert_int_equal(wire_ip_parse(family == 4 ? "10.0.0.2" : "fd00::2", &flow.dst), 0);
	for (unsigned i = 0; i < pay_len; i++)
		payload[i] = (uint8_t)(i * 7);
	len = wire_build_frame(out, FRAME_MAX, &flow, &hdr, payload, pay_len);
	assert_true(len > 0);
	return (unsigned)len;
}

unsigned frame_of(uint8_t *out, int family, uint16_t vlan, uint8_t tos, unsigned pay_len)
{
	return build(out, family, vlan, tos, pay_len, 0);
}

static struct rte_mbuf *segment(const uint8_t *data, unsigned len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), data, len);
	return m;
}

static struct rte_mbuf *chain(const uint8_t *frame, unsigned len, unsigned head, unsigned tail)
{
	struct rte_mbuf *m = segment(frame, head);

	assert_int_equal(rte_pktmbuf_chain(m, segment(frame + head, len - head - tail)), 0);
	assert_int_equal(rte_pktmbuf_chain(m, segment(frame + len - tail, tail)), 0);
	return m;
}

struct rte_mbuf *packet(int family, uint16_t vlan, uint8_t tos, unsigned pay_len, bool chained)
{
	uint8_t frame[FRAME_MAX];
	unsigned len = frame_of(frame, family, vlan, tos, pay_len);
	unsigned head = (unsigned)wire_l3_off(vlan) + (family == 4 ? 20 : 40) + 8 + 12;

	return chained ? chain(frame, len, head, 4 + wire_pad(pay_len)) : segment(frame, len);
}

struct rte_mbuf *numbered(uint32_t number, uint8_t tos, unsigned pay_len)
{
	uint8_t frame[FRAME_MAX];

	return segment(frame, build(frame, 4, 0, tos, pay_len, number));
}

uint32_t number_of(const struct rte_mbuf *m)
{
	const uint8_t *bth = rte_pktmbuf_mtod_offset(m, const uint8_t *, ETH_HDR_LEN + 20 + 8);

	return (uint32_t)bth[9] << 16 | (uint32_t)bth[10] << 8 | bth[11];
}

unsigned bytes_of(const struct rte_mbuf *m, uint8_t *out)
{
	unsigned n = 0, segs = 0;

	for (const struct rte_mbuf *s = m; s != NULL; s = s->next, segs++) {
		memcpy(out + n, rte_pktmbuf_mtod(s, const uint8_t *), s->data_len);
		n += s->data_len;
	}
	assert_int_equal(n, m->pkt_len);
	assert_int_equal(segs, m->nb_segs);
	return n;
}

unsigned packets_in_use(void)
{
	return rte_mempool_in_use_count(pool);
}

int packets_setup(void **state)
{
	const struct port_eal eal = {.program = "test", .memory_mb = 64};
	char err[PORT_ERR_LEN] = "";

	(void)state;
	if (port_eal_init(&eal, err) == 0)
		pool = port_pool_create("test", 4095, FRAME_MAX, SOCKET_ID_ANY, err);
	if (pool == NULL)
		print_error("%s\n", err);
	return pool == NULL ? -1 : 0;
}

int packets_teardown(void **state)
{
	(void)state;
	rte_mempool_free(pool);
	port_eal_fini();
	return 0;
}
