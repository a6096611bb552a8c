/* SPDX-License-Identifier: BSD-3-Clause */
/* A NetReduce ring of four hosts at four ports: each sends to the next one, through the switch. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/psn.h"
#include "tests/bench/inc_path.h"
#include "tests/unit/dataplane/harness.h"

enum { ID = 7, QPN = 0x100, REPLY = 0x200 };

unsigned path_ring_open(struct path *p, struct sw *sw)
{
	struct nr_in_spec in[PATH_FAN_IN];
	uint16_t rank[PATH_FAN_IN];
	struct nr_spec spec = {.name = "bench",
		.id = ID,
		.mtu = (uint16_t)p->spec.mtu,
		.m = PATH_M,
		.w = PATH_W,
		.n_ranks = PATH_FAN_IN,
		.n_in = PATH_FAN_IN,
		.in = in};
	char err[SW_ERR_LEN];
	struct nr_ring *r;
	unsigned ring;

	for (unsigned i = 0; i < PATH_FAN_IN; i++) {
		rank[i] = (uint16_t)i;
		in[i] = (struct nr_in_spec){.host = true,
			.key = {h_host4(i), h_host4((i + 1) % PATH_FAN_IN), QPN + i},
			.reply_qpn = REPLY + i,
			.n_ranks = 1,
			.ranks = &rank[i]};
	}
	if (sw_ring_create(sw, &spec, true, &ring, err) != 0) {
		fprintf(stderr, "bench-inc: %s\n", err);
		exit(1);
	}
	r = sw_ring_get(sw, ring);
	path_keep(p, r, r->bytes);
	return ring;
}

static size_t frame(struct path *p, struct sw *sw, uint32_t i, float *payload)
{
	static const uint8_t opcode[PATH_M] = {
		ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_MIDDLE, ROCE_SEND_LAST};
	const unsigned rank = i % PATH_FAN_IN;
	const uint32_t psn = i / PATH_FAN_IN, o = psn % PATH_M;
	const struct ina_hdr ina = {
		.ring = ID, .rank = (uint16_t)rank, .msg = psn / PATH_M, .packets = PATH_M};
	const struct wire_hdr hdr = {
		.opcode = opcode[o], .mig = true, .dqpn = QPN + rank, .psn = psn & PSN_MASK};
	struct wire_flow flow = {.src = h_host4(rank),
		.dst = h_host4((rank + 1) % PATH_FAN_IN),
		.ttl = 64,
		.sport = 0xc000};

	h_host_mac(rank, flow.smac);
	memcpy(flow.dmac, h_port_mac(sw, rank), 6);
	for (uint32_t k = 0; k < p->spec.mtu / 4; k++)
		payload[k] = (float)(i % 1000 + k);
	if (o == 0)
		ina_encode(&ina, (uint8_t *)payload);
	return (size_t)wire_build_frame(
		p->frame[i], p->spec.mtu + PATH_HEAD_ROOM, &flow, &hdr, payload, p->spec.mtu);
}

void path_ring_frames(struct path *p, struct sw *sw)
{
	float *payload = malloc(p->spec.mtu);

	for (uint32_t i = 0; i < p->n_psn * PATH_FAN_IN; i++)
		p->frame_len = frame(p, sw, i, payload);
	free(payload);
}

void path_ring_close(struct sw *sw, unsigned ring)
{
	char err[SW_ERR_LEN];

	if (sw_ring_delete(sw, ring, err) != 0)
		fprintf(stderr, "bench-inc: %s\n", err);
}
