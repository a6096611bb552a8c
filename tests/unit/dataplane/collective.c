/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective.h"

#include <string.h>

struct sw *sw;
struct inc_ep_spec eps[MAX_HOSTS + 1];
struct inc_group_spec spec;
char err[SW_ERR_LEN];

int c_start(void **state)
{
	(void)state;
	sw = h_start(4, NULL, NULL);
	err[0] = '\0';
	return 0;
}

int c_stop(void **state)
{
	struct frame f;

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		while (h_take(sw, i, &f))
			;
	h_stop_whole(sw);
	return 0;
}

/* n hosts at ports 0..n-1; parent: the last of them is a switch above. */
void c_spec(unsigned n, unsigned mtu, bool v6, bool parent)
{
	memset(eps, 0, sizeof(eps));
	spec = (struct inc_group_spec){
		.name = "g",
		.mode = INC_MODE_2,
		.kind = INC_SINGLE,
		.prim = INC_AR,
		.mtu = (uint16_t)mtu,
		.m = M,
		.w = W,
		.start_psn = START_PSN,
		.flags = INC_F_LATE_FLUSH,
		.n_ranks = (uint16_t)n,
		.n_ep = (uint8_t)n,
		.ep = eps,
	};
	for (unsigned i = 0; i < n; i++) {
		eps[i].remote_ip = v6 ? h_host6(i) : h_host4(i);
		eps[i].remote_qpn = HOST_QPN + i;
		eps[i].port = sw->ports[i].id;
		eps[i].host = true;
		eps[i].n_ranks = 1;
		eps[i].ranks[0] = (uint16_t)i;
	}
	if (parent) {
		eps[n - 1].parent = true;
		eps[n - 1].host = false;
	}
}

unsigned c_create(void)
{
	unsigned slot = 0;

	if (sw_group_create(sw, &spec, true, &slot, err) != 0)
		fail_msg("%s", err);
	return slot;
}

static unsigned from_host(uint8_t *out, const struct inc_ep *ep, unsigned i,
	const struct wire_hdr *hdr, const void *payload, unsigned len)
{
	struct wire_flow flow = {
		.src = ep->flow.dst,
		.dst = ep->flow.src,
		.ttl = 63,
		.tos = IP_ECN_ECT0,
		.sport = 0xc123,
	};
	int n;

	h_host_mac(i, flow.smac);
	memcpy(flow.dmac, h_port_mac(sw, i), 6);
	n = wire_build_frame(out, H_FRAME_MAX, &flow, hdr, payload, len);
	assert_true(n > 0);
	return (unsigned)n;
}

/* What host i of the group in slot sends. */
unsigned c_host_frame(uint8_t *out, unsigned slot, unsigned i, uint8_t opcode, uint32_t psn,
	uint32_t imm, const void *payload, unsigned len)
{
	const struct inc_ep *ep = inc_ep_at(sw_group_get(sw, slot), i);
	const struct wire_hdr hdr = {
		.opcode = opcode,
		.ackreq = opcode != ROCE_SEND_FIRST && opcode != ROCE_SEND_MIDDLE,
		.mig = true,
		.dqpn = ep->local_qpn,
		.psn = psn,
		.imm = imm,
		.ip_id = 99,
	};

	return from_host(out, ep, i, &hdr, payload, len);
}

unsigned c_nak_frame(uint8_t *out, unsigned slot, unsigned i, uint32_t psn)
{
	const struct inc_ep *ep = inc_ep_at(sw_group_get(sw, slot), i);
	const struct wire_hdr hdr = {
		.opcode = ROCE_ACK,
		.mig = true,
		.dqpn = ep->local_qpn,
		.psn = psn,
		.syndrome = ROCE_AETH_NAK,
		.ip_id = 99,
	};

	return from_host(out, ep, i, &hdr, NULL, 0);
}

/* What the switch must send to endpoint i. */
unsigned c_result_frame(uint8_t *out, unsigned slot, unsigned i, uint8_t opcode, uint32_t psn,
	uint32_t imm, const void *payload, unsigned len, uint16_t ip_id)
{
	const struct inc_ep *ep = inc_ep_at(sw_group_get(sw, slot), i);
	struct wire_flow flow = ep->flow;
	const struct wire_hdr hdr = {
		.opcode = opcode,
		.ackreq = opcode != ROCE_SEND_FIRST && opcode != ROCE_SEND_MIDDLE,
		.mig = true,
		.dqpn = ep->remote_qpn,
		.psn = psn,
		.imm = imm,
		.ip_id = ip_id,
	};
	int n;

	flow.tos |= IP_ECN_ECT0;
	n = wire_build_frame(out, H_FRAME_MAX, &flow, &hdr, payload, len);
	assert_true(n > 0);
	return (unsigned)n;
}

uint32_t c_control(uint8_t payload[CTRL_LEN], unsigned bytes, unsigned mtu, unsigned seq)
{
	uint32_t n = (bytes + mtu - 1) / mtu;

	memset(payload, 0, CTRL_LEN);
	memcpy(payload, "INC1", 4);
	memcpy(payload + 4, &n, 4); /* little-endian, as this machine */
	memcpy(payload + 8, &bytes, 4);
	payload[20] = M;
	return 1u << 29 | 3u << 19 | (seq & 0xff); /* version 1, AllReduce, sum, int32 */
}
