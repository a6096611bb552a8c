/* SPDX-License-Identifier: BSD-3-Clause */
/* Any sequence of packets at a live Mode-I group: a star, or a switch below another. Bytes choose
 * the endpoint, the opcode, the PSN around the one that its queue pair expects, what acknowledges
 * what, what is wrong with the frame, time, and when the manager ends the group and makes another.
 * Frames that leave are right; no buffer is lost or in two places; who acts on the rules' terms
 * gets exact sums (payloads follow from PSN and endpoint alone). */
#include <endian.h>
#include <string.h>

#include "dataplane/inc/mode1_state.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/rc.h"
#include "lib/rnic/ring.h"
#include "lib/rnic/wqe.h"
#include "lib/wire/psn.h"
#include "tests/fuzz/fuzz.h"

enum { N = 3, MTU = 256, W = 3, ARENA = 1 << 16, STEP = 6, START = 0xfffffa, MAX_STEPS = 400 };

struct world {
	struct mode1_device *dev;
	struct mode1 *m;
	struct inc_group *g;
	struct inc_arena arena;
	uint64_t now;
	bool parent; /* the last endpoint is */
};

static struct wire_ip ip_of(unsigned i)
{
	return wire_ip_from4(0x0a000000 + i);
}

static void open_group(struct world *w)
{
	static struct inc_ep_spec ep[N];
	struct inc_group_spec spec = {.name = "fuzz",
		.mode = INC_MODE_1,
		.kind = INC_MIXED,
		.mtu = MTU,
		.m = 1,
		.w = W,
		.start_psn = START,
		.n_ranks = N,
		.n_ep = N,
		.ep = ep};
	char err[INC_ERR_LEN];

	memset(ep, 0, sizeof(ep));
	for (unsigned i = 0; i < N; i++) {
		ep[i].remote_ip = ip_of(10 + i);
		ep[i].local_ip = ip_of(1);
		ep[i].remote_qpn = 0x100 + i;
		memcpy(ep[i].dmac, (uint8_t[]){2, 0, 0, 0, 1, (uint8_t)i}, 6);
		ep[i].parent = w->parent && i + 1 == N;
		ep[i].host = !ep[i].parent;
		ep[i].n_ranks = 1;
		ep[i].ranks[0] = (uint16_t)i;
	}
	fuzz_check(inc_group_check(&spec, err) == 0, "a group");
	fuzz_check(inc_group_payload_bytes(&spec) <= ARENA, "its memory");
	w->g = calloc(1, inc_group_bytes(&spec));
	inc_group_init(w->g, &spec, 3, 1, 0);
	fuzz_check(mode1_create(w->dev, w->g, &w->m, err) == 0, "queue pairs");
	fuzz_check(inc_group_activate(w->g, err) == 0, "an active group");
	fuzz_check(mode1_connect(w->m, w->now, err) == 0, "connections");
}

static void close_group(struct world *w)
{
	mode1_destroy(w->m);
	free(w->g);
	fuzz_check(mode1_n_groups(w->dev) == 0, "no group is left");
}

static void open_world(struct world *w, bool parent)
{
	struct mode1_device_config config = {
		.mac = {2, 0, 0, 0, 0, 1}, .ip = {ip_of(1)}, .n_ip = 1, .seed = 1};

	*w = (struct world){.now = 1000000000, .parent = parent};
	w->arena = config.arena = (struct inc_arena){calloc(1, ARENA), ARENA};
	fuzz_check(mode1_device_create(&config, &w->dev) == 0, "a device");
	open_group(w);
}

static void close_world(struct world *w)
{
	close_group(w);
	mode1_device_destroy(w->dev);
	free(w->arena.base);
}

/* ---- what is sent: an even message is a control, the odd one behind it its data ---- */

static uint32_t message_of(uint32_t psn)
{
	return (psn - START) & PSN_MASK;
}

static void control(uint32_t number, uint8_t *out, uint32_t *imm)
{
	const uint32_t word[8] = {htole32(0x31434e49), htole32(1), htole32(MTU), 0, 0, htole32(1)};

	memcpy(out, word, INC_CTRL_LEN);
	*imm = 1u << 29 | (uint32_t)INC_AR << 26 | (uint32_t)REDUCE_SUM << 23 |
	       (uint32_t)REDUCE_INT32 << 19 | (number / 2 & 0xff);
}

static uint32_t word_of(unsigned ep, uint32_t number)
{
	return ep * 1000003u + number * 101u;
}

static void fill(uint32_t word, uint8_t *out)
{
	for (unsigned k = 0; k < MTU / 4; k++) {
		const uint32_t v = htole32(word + k);

		memcpy(out + 4 * k, &v, 4);
	}
}

/* ---- what leaves ---- */

/* To a host the sum of all, or what the parent sent; to the parent the sum of the hosts. */
static void check_data(
	const struct world *w, unsigned ep, const struct wire_pkt *pkt, const uint8_t *payload)
{
	const uint32_t number = message_of(pkt->psn);
	const unsigned hosts = w->parent ? N - 1 : N;
	uint8_t due[MTU];
	uint32_t word = 0;

	fuzz_check(number % 2 == 1 && pkt->pay_len == MTU, "data where data belongs");
	for (unsigned i = 0; i < hosts; i++)
		word += word_of(i, number);
	if (w->parent && ep != N - 1)
		word = word_of(N - 1, number);
	for (unsigned k = 0; k < MTU / 4; k++) {
		const uint32_t v = htole32(w->parent && ep != N - 1 ? word + k : word + hosts * k);

		memcpy(due + 4 * k, &v, 4);
	}
	fuzz_check(memcmp(payload, due, MTU) == 0, "a result is exact");
}

static void check_frames(struct world *w)
{
	struct rnic *rnic = mode1_rnic(w->dev);
	struct rnic_frame frame;
	uint8_t bytes[2000];
	struct wire_pkt pkt;
	unsigned ep, n = 0;

	do {
		mode1_run(w->dev, w->now);
		while (rnic_tx(rnic, RNIC_ALL_PORTS, &frame, w->now)) {
			const int len = rnic_frame_flatten(&frame, bytes, sizeof(bytes));

			fuzz_check(++n < 10000, "what is sent has an end");
			fuzz_check(len > 0 && wire_parse(bytes, (size_t)len, &pkt) == WIRE_OK,
				"a frame parses");
			if (pkt.kind != WIRE_ROCE)
				continue;
			fuzz_check(wire_icrc_ok(bytes, &pkt), "an ICRC is right");
			fuzz_check(mode1_owner(w->dev, frame.qpn, &ep) == w->g, "it has an owner");
			if (pkt.opcode == ROCE_SEND_ONLY)
				check_data(w, ep, &pkt, bytes + pkt.pay_off);
		}
		mode1_run(w->dev, w->now);
	} while (rnic_has_work(rnic));
}

/* Every buffer is free, or read by sends, or waits as a receive or as a message. */
static void check_buffers(const struct world *w)
{
	const struct mode1 *m = w->m;
	const unsigned all = N * m->credits + 2 * W;
	uint8_t seen[N * (W + 2) + 2 * W] = {0};
	unsigned waiting = 0, sending = 0;

	fuzz_check(w->g->state != INC_FAILED || m->stopped, "a group that failed has stopped");
	if (m->stopped)
		return;
	for (unsigned pool = 0; pool < MODE1_N_POOLS; pool++)
		for (unsigned k = 0; k < m->n_free[pool]; k++) {
			fuzz_check(m->free[pool][k] < all, "a free buffer exists");
			fuzz_check(seen[m->free[pool][k]]++ == 0, "a buffer is free once");
		}
	for (unsigned i = 0; i < N; i++) {
		const struct rnic_qp *qp = m->ep[i].qp;

		for (unsigned k = 0; k < m->ep[i].n; k++)
			fuzz_check(
				seen[m->ep[i].queue[(m->ep[i].head + k) % m->credits].buf]++ == 0,
				"a message's buffer is its own");
		waiting += m->ep[i].n;
		for (uint32_t k = ring_tail(&qp->rq); k != ring_head(&qp->rq); k++, waiting++)
			fuzz_check(
				seen[WR_BUF(((struct recv_wqe *)ring_at(&qp->rq, k))->wr_id)]++ ==
					0,
				"a posted buffer is nobody else's");
	}
	for (unsigned k = 0; k < all; k++)
		if (m->buf[k].sends)
			sending += seen[k]++ == 0;
	fuzz_check(waiting == N * m->credits, "as many receives as credits");
	fuzz_check(sending + m->n_free[MODE1_UP] + m->n_free[MODE1_DOWN] == 2 * W,
		"no buffer is lost");
}

/* ---- steps ---- */

static void receive(struct world *w, unsigned ep, const struct wire_hdr *hdr,
	const uint8_t *payload, size_t len, uint8_t how, uint8_t with)
{
	struct wire_flow flow = {.dmac = {2, 0, 0, 0, 0, 1},
		.smac = {2, 0, 0, 0, 1, (uint8_t)ep},
		.src = ip_of(10 + ep),
		.dst = ip_of(1),
		.ttl = 64,
		.tos = how & 2 ? IP_ECN_CE : IP_ECN_ECT0};
	uint8_t frame[MTU * 4 + 200];
	int n = wire_build_frame(frame, sizeof(frame), &flow, hdr, payload, len);

	if (n <= 0)
		return;
	if ((how & 0xf0) == 0xf0) /* behind the ICRC's back */
		frame[with % (unsigned)n] ^= (uint8_t)(how << 4 | 1);
	rnic_rx(mode1_rnic(w->dev), 0, frame, (size_t)((how & 0xf0) == 0xe0 ? with % n : n),
		w->now);
}

static void packet(struct world *w, unsigned ep, const uint8_t *in)
{
	const struct rnic_qp *qp = w->m->ep[ep].qp;
	uint8_t payload[4 * MTU] = {0};
	struct wire_hdr hdr = {.ackreq = !(in[4] & 1),
		.dqpn = qp->qpn,
		.psn = psn_add(rc_of(qp)->resp.epsn, in[2] & 0x80 ? (int8_t)in[3] % 8 : 0)};
	const uint32_t number = message_of(hdr.psn);
	size_t len = number % 2 ? MTU : INC_CTRL_LEN;

	hdr.opcode = number % 2 ? ROCE_SEND_ONLY : ROCE_SEND_ONLY_IMM;
	if (number % 2)
		fill(word_of(ep, number), payload);
	else
		control(number, payload, &hdr.imm);
	switch (in[2] & 0x7f) { /* otherwise it is right */
	case 1:
		hdr.opcode = in[3] % 32;
		hdr.rkey = in[4];
		hdr.dmalen = in[5];
		len = roce_opcode_flags(hdr.opcode) & ROCE_F_PAYLOAD ? len : 0;
		break;
	case 2:
		hdr.opcode ^= ROCE_SEND_ONLY ^ ROCE_SEND_ONLY_IMM;
		break;
	case 3:
		hdr.imm ^= 1u << in[3] % 32;
		break;
	case 4:
		if (number % 2 == 0)
			payload[in[3] % INC_CTRL_LEN] ^= in[5];
		break;
	case 5:
		len = in[3] * 4u;
		break;
	case 6:
		hdr.psn = psn_add(hdr.psn, (int32_t)in[3] << 16);
		break;
	case 7:
		hdr.dqpn ^= in[3];
		break;
	default:
		break;
	}
	receive(w, ep, &hdr, payload, len, in[4], in[5]);
}

static void acknowledge(struct world *w, unsigned ep, const uint8_t *in)
{
	const struct rnic_qp *qp = w->m->ep[ep].qp;
	const uint32_t newest = (uint32_t)rc_of(qp)->req.high - 1,
		       oldest = (uint32_t)rc_of(qp)->req.una;
	struct wire_hdr hdr = {.opcode = in[2] == 1 ? ROCE_CNP : ROCE_ACK,
		.dqpn = qp->qpn,
		.psn = in[2] & 0x80 ? psn_add(oldest & PSN_MASK, (int8_t)in[3] % 16)
				    : newest & PSN_MASK,
		.syndrome = in[2] & 0x40 ? in[3] : 0x1f};

	receive(w, ep, &hdr, (const uint8_t[ROCE_CNP_LEN]){0}, in[2] == 1 ? ROCE_CNP_LEN : 0, in[4],
		in[5]);
}

static void manage(struct world *w, const uint8_t *in)
{
	if (in[2] == 0xff) {
		close_group(w);
		open_group(w);
	} else if (in[2] == 0xfe) {
		inc_group_fail(w->g, INC_FAIL_MANAGER, 0xff);
		mode1_stop(w->m, w->now);
	} else {
		w->now += (uint64_t)in[2] * 1000000 + in[3];
		rnic_timer(mode1_rnic(w->dev), w->now);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w;

	if (size < 1)
		return 0;
	open_world(&w, data[0] & 1);
	for (size_t at = 1; at + STEP <= size && at < MAX_STEPS * STEP; at += STEP) {
		const uint8_t *in = data + at;

		if (in[0] % 16 < 9)
			packet(&w, in[1] % N, in);
		else if (in[0] % 16 < 14)
			acknowledge(&w, in[1] % N, in);
		else
			manage(&w, in);
		check_frames(&w);
		check_buffers(&w);
	}
	close_world(&w);
	return 0;
}

/* Operations that work: messages in turn, each acknowledged; variants with one rank late, and
 * acknowledgements late. */
size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	size_t n = 0;

	if (i >= 8 || cap < 1 + 12 * 2 * N * STEP)
		return 0;
	out[n++] = (uint8_t)i;
	for (unsigned k = 0; k < 12; k++)
		for (unsigned what = 0; what < 2; what++)
			for (unsigned ep = 0; ep < N; ep++, n += STEP) {
				const uint8_t late = i & 2 && ep == 0 && k % 3 ? 7 : 0;
				const uint8_t step[STEP] = {what ? 9 : 0, (uint8_t)ep,
					what ? (uint8_t)(i & 4 && k % 2 ? 0x80 : 0) : late};

				memcpy(out + n, step, STEP);
			}
	return n;
}
