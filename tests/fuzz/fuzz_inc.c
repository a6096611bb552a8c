/* SPDX-License-Identifier: BSD-3-Clause */
/* Any sequence of well-formed packets, from members, at a live Mode-II or Mode-III group of any
 * kind: bytes choose endpoint, opcode, PSN, length and control fields. Nothing may leave that does
 * not parse (the fixture checks that), no slot may hold what does not belong to it, and results are
 * sums of what was sent. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/inc/fixture.h"

enum { HOSTS = 3, HEAD = 2, STEP = 6 };

/* A connection's PSNs are in order; a pipe holds what lies in its range, and nothing else. */
static void check_mode3(struct inc_group *g)
{
	for (unsigned i = 0; i < g->n_ep; i++) {
		const struct inc_ep *ep = inc_ep_at(g, i);

		fuzz_check(psn_le(ep->tx_una, ep->tx_next), "what is acknowledged is not sent");
		fuzz_check(psn_le(ep->tx_next, psn_max(ep->tx_high, ep->tx_next)),
			"the highest is the highest");
		fuzz_check(ep->rnr_wait || ep->timer_ns || !psn_lt(ep->tx_una, ep->tx_high) ||
				   g->state == INC_FAILED,
			"what is not acknowledged has a timer");
		fuzz_check(!ep->timer_ns || g->timer_ns <= ep->timer_ns || g->state == INC_FAILED,
			"no timer is forgotten");
	}
	for (unsigned pipe = 0; pipe < 2; pipe++)
		for (uint32_t i = 0; i < 1u << g->log2n; i++) {
			const struct inc_slot *slot = inc_pipe_slot(g, (enum inc_pipe)pipe, i);

			fuzz_check(slot->arrived == 0 || (psn_le(g->psn_start[pipe], slot->tag) &&
								 inc_idx(g, slot->tag) == i),
				"a slot is in its pipe");
		}
}

static void check_group(struct inc_group *g)
{
	if (g->mode == INC_MODE_3)
		check_mode3(g);
	for (uint32_t i = 0; i < 1u << g->log2n; i++) {
		const struct inc_slot *slot = inc_slot_at(g, i);

		fuzz_check(inc_idx(g, slot->tag) == i, "a slot's owner maps to it");
		fuzz_check((slot->arrived & ~inc_slot_fan_in(g, slot)) == 0,
			"only children contribute");
		fuzz_check(slot->len <= g->mtu, "a result fits its slot");
		fuzz_check(slot->desc < INC_N_DESC, "a slot's descriptor exists");
		fuzz_check(!slot->complete || slot->arrived == inc_slot_fan_in(g, slot),
			"complete means all");
	}
	for (unsigned i = 0; i < INC_N_DESC; i++) {
		const struct inc_desc *d = inc_desc_at(g, i);

		fuzz_check(!d->valid || (d->m > 0 && d->m <= g->m), "M stays within the group's");
		fuzz_check(!d->valid || psn_diff(d->last, d->ctrl_psn) == (int32_t)d->n,
			"an operation covers n PSNs");
	}
}

/* Immediate of a control: in a mixed group the step's first byte names primitive and root. */
static uint32_t immediate(const struct fx *fx, uint8_t in, uint8_t seq)
{
	const struct inc_group *g = fx->g;
	unsigned prim = g->kind == INC_MIXED ? in >> 4 & 3 : g->prim;
	unsigned root = g->kind == INC_MIXED ? (prim ? in >> 6 : 0) : g->root;

	return fx_imm(seq, prim == INC_BC ? REDUCE_NONE : REDUCE_SUM, REDUCE_INT32) | prim << 26 |
	       root << 8;
}

/* The last bytes of a step say what is wrong with it, mostly nothing. */
static void packet(struct fx *fx, const uint8_t *in)
{
	static const uint8_t opcodes[] = {ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_LAST,
		ROCE_SEND_ONLY, ROCE_SEND_ONLY_IMM, ROCE_ACK, ROCE_CNP, ROCE_SEND_ONLY_IMM};
	static const uint16_t lens[] = {256, 256, 256, 4, 8, 252, 0, 255};
	uint8_t payload[256 + INC_CTRL_LEN];
	struct wire_hdr hdr = {
		.opcode = opcodes[in[1] & 7],
		.psn = psn_add(in[1] & 8 ? fx->g->next_ctrl : fx->g->start_psn, (int8_t)in[2]),
		.syndrome = in[3],
		.mig = in[1] >> 7,
		.imm = immediate(fx, in[0], fx->g->next_seq),
	};
	size_t len = lens[in[4] & 7];

	memset(payload, in[5], sizeof(payload));
	if (hdr.opcode == ROCE_SEND_ONLY_IMM) {
		fx_ctrl_payload(fx, in[3] * 36u / 4 * 4, payload);
		len = in[4] == 0xff ? 28 : INC_CTRL_LEN;
		if (in[5] & 0x80)
			payload[in[5] & 31] ^= in[4];
		if (in[1] & 0x40) /* a later sender repeats the operation's number */
			hdr.imm = immediate(fx, in[0], (uint8_t)(fx->g->next_seq - 1));
	} else if (hdr.opcode == ROCE_ACK) {
		len = 0;
	} else if (hdr.opcode == ROCE_CNP) {
		memset(payload, 0, len = ROCE_CNP_LEN);
	}
	fx->now += (uint64_t)in[5] * (in[4] & 0x40 ? 100000 : 1000);
	fx_tick(fx);
	fx_packet(fx, (in[0] & 15) % fx->g->n_ep, &hdr, payload, len);
	check_group(fx->g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fx_opts opts = {.n_hosts = HOSTS, .mtu = 256, .m = 2, .w = 2, .start_psn = 0xfffffa};
	struct fx fx;

	if (size < HEAD)
		return 0;
	opts.flags = data[0] & 0xf;
	opts.parent = data[0] >> 4 & 1;
	opts.ip6 = data[0] >> 5 & 1;
	opts.mode = data[0] >> 6 & 1 ? INC_MODE_3 : INC_MODE_2;
	opts.kind = (data[1] & 3) == 3 ? INC_MIXED : INC_SINGLE;
	opts.prim = opts.kind == INC_SINGLE ? data[1] & 3 : INC_AR;
	opts.root = opts.prim == INC_AR ? 0 : (data[1] >> 2) % HOSTS;
	fx_open(&fx, &opts);
	for (size_t at = HEAD; at + STEP <= size && at < 400 * STEP; at += STEP)
		packet(&fx, data + at);
	fx_close(&fx);
	return 0;
}

/* One operation of nine packets, in order, from every host; then one of one packet. */
size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	static const uint8_t kinds[9] = {0, 2, 0, 2, 0, 2, 0, 2, 3}; /* FIRST LAST ... ONLY */
	const uint8_t prim = (uint8_t)(i % 3 << 4);
	size_t n = 0;

	if (i >= 64 || cap < HEAD + 40 * STEP)
		return 0;
	out[n++] =
		(uint8_t)((i & 31) << 1 | (i & 1) | (i & 32) << 1); /* flags, parent, IPv6, mode */
	out[n++] = (uint8_t)(i & 1 ? i >> 1 : 0);                   /* kind, primitive, root */
	for (uint8_t ep = 0; ep < HOSTS; ep++, n += STEP) {
		const uint8_t first[STEP] = {ep | prim, 4 | 8, 0, 64, 0, 1},
			      again[STEP] = {ep | prim, 4 | 0x40, 0, 64, 0, 1};

		memcpy(out + n, ep == 0 ? first : again, STEP);
	}
	for (uint8_t k = 0; k < 9; k++)
		for (uint8_t ep = 0; ep < HOSTS; ep++, n += STEP) {
			const uint8_t data[STEP] = {ep, kinds[k], (uint8_t)(1 + k), 0, 0, k};

			memcpy(out + n, data, STEP);
		}
	return n;
}
