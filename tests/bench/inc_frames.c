/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets of an operation, made beforehand, and the state before it. A group's block is flat,
 * so restoring a copy of it makes the next repetition see the same PSNs as new. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dataplane/inc/modules.h"
#include "tests/bench/inc_path.h"

uint64_t path_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_RAW, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* Whole bursts, and of each group as many. */
uint32_t path_n_psn(const struct path_spec *spec)
{
	const uint32_t whole = (spec->groups > 1 ? spec->groups : 1) * PATH_BURST;
	const uint32_t least = 2 * spec->groups;
	uint32_t n = (uint32_t)(spec->pool / (spec->mtu + PATH_HEAD_ROOM) / PATH_FAN_IN);

	n = n / whole * whole;
	return n > least ? n : spec->groups > 1 ? least : PATH_BURST;
}

struct inc_group *path_group(const struct path *p, uint32_t frame)
{
	return p->g[frame / PATH_FAN_IN % p->spec.groups];
}

uint32_t path_psn(const struct path *p, uint32_t frame)
{
	return PATH_START_PSN + 1 + frame / PATH_FAN_IN / p->spec.groups;
}

/* As host ep's NIC would address it. */
static int build(struct inc_group *g, unsigned ep, const struct wire_hdr *hdr, const void *payload,
	size_t len, uint8_t *out)
{
	struct fx fx = {.g = g};
	const struct wire_flow *flow = &inc_ep_at(g, ep)->flow;
	int n = fx_build(&fx, ep, hdr, payload, len, out);

	memcpy(out, flow->smac, 6);
	memcpy(out + 6, flow->dmac, 6);
	return n;
}

int path_control_frame(struct path *p, unsigned group, unsigned ep, uint8_t *out)
{
	const struct fx fx = {.g = p->g[group]};
	const struct wire_hdr hdr = {.opcode = ROCE_SEND_ONLY_IMM,
		.psn = PATH_START_PSN,
		.imm = fx_imm(0, REDUCE_SUM, REDUCE_FP32)};
	uint8_t payload[INC_CTRL_LEN];

	fx_ctrl_payload(&fx, (uint64_t)(p->n_psn / p->spec.groups) * p->spec.mtu, payload);
	return build(fx.g, ep, &hdr, payload, sizeof(payload), out);
}

int path_ack_frame(struct path *p, unsigned ep, uint32_t next, uint8_t *out)
{
	const struct wire_hdr hdr = {.opcode = ROCE_ACK,
		.syndrome = ROCE_AETH_ACK | ROCE_AETH_NO_CREDITS,
		.psn = next - 1,
		.msn = 1 + (next - PATH_START_PSN - 1) / PATH_M};

	return build(p->g[0], ep, &hdr, NULL, 0, out);
}

void path_make_frames(struct path *p)
{
	float *payload = malloc(p->spec.mtu);

	for (uint32_t i = 0; i < p->n_psn * PATH_FAN_IN; i++) {
		struct inc_group *g = path_group(p, i);
		struct wire_hdr hdr = {.mig = true, .psn = path_psn(p, i)};

		hdr.opcode = inc_position_of(g, inc_desc_find(g, PATH_START_PSN), hdr.psn).opcode;
		for (uint32_t k = 0; k < p->spec.mtu / 4; k++)
			payload[k] = (float)(i % 1000 + k);
		p->frame_len =
			(size_t)build(g, i % PATH_FAN_IN, &hdr, payload, p->spec.mtu, p->frame[i]);
	}
	free(payload);
	for (unsigned i = 0; i < p->spec.groups; i++)
		path_keep(p, p->g[i], p->g[i]->bytes);
}

void path_keep(struct path *p, void *block, size_t bytes)
{
	p->block = realloc(p->block, (p->n_blocks + 1) * sizeof(*p->block));
	p->block[p->n_blocks] =
		(struct path_block){.at = block, .copy = malloc(bytes), .bytes = bytes};
	memcpy(p->block[p->n_blocks++].copy, block, bytes);
}

void path_restore(struct path *p)
{
	for (unsigned i = 0; i < p->n_blocks; i++)
		memcpy(p->block[i].at, p->block[i].copy, p->block[i].bytes);
}
