/* SPDX-License-Identifier: BSD-3-Clause */
/* iWARP. The first byte of an input chooses: MPA's first frame, in pieces; or a queue pair, and
 * steps that bytes choose: segments near what is expected in frames whose CRC is right, the same
 * with a wrong bit, any bytes, posts, the stream's end. Whatever comes: frames that leave are
 * right, requests complete once and in order, nothing is written but where the peer may or
 * something was posted (memory is an allocation of its own: build with sanitizers), and there is
 * one fault at most, behind which nothing is taken. */
#include <string.h>

#include "lib/iwarp/iwarp.h"
#include "lib/iwarp/mpa.h"
#include "lib/rnic/transport.h"
#include "tests/fuzz/device.h"

enum {
	MEM = 4096,
	OPEN_AT = 1024,
	OPEN_LEN = 1024,
	POST_AT = 2048,
	STEP = 8,
	MAX_STEPS = 200,
	WR = 16
};

#define VA UINT64_C(0x10000)

struct world {
	struct rnic *rnic;
	struct rnic_pd *pd;
	struct rnic_cq *cq[2];
	struct rnic_qp *qp;
	struct rnic_mr *mr,
		*open; /* of all, for the program; of what the peer may write and read */
	uint8_t *mem;
	uint64_t posted[2], done[2];
};

static void nobody(void *arg)
{
	(void)arg;
}

static void open_world(struct world *w, uint8_t how)
{
	const struct rnic_config config = {.port[0] = {.mac = {2, 0, 0, 0, 0, 1}, .mtu = 1500},
		.n_ports = 1,
		.max_qp = 4,
		.seed = 5};
	const struct iwarp_attach attach = {.mulpdu = IWARP_MIN_MULPDU,
		.ird = how & 3,
		.ord = how >> 2 & 3,
		.waits = how & 16,
		.rtr = how & 32,
		.ready = nobody,
		.gone = nobody};
	struct rnic_qp_init init = {.type = IBV_QPT_RC,
		.cap = {.max_send_wr = WR, .max_recv_wr = WR, .max_send_sge = 2, .max_recv_sge = 2},
		.sq_sig_all = true,
		.transport = &iwarp_transport};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};

	memset(w, 0, sizeof(*w));
	fuzz_check(rnic_create(&config, &w->rnic) == 0, "a device");
	fuzz_device_open(
		w->rnic, VA, MEM, IBV_ACCESS_LOCAL_WRITE, 64, &w->pd, w->cq, &w->mem, &w->mr);
	fuzz_check(
		rnic_mr_reg(w->pd, w->mem + OPEN_AT, OPEN_LEN, VA + OPEN_AT,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
			&w->open) == 0,
		"a region");
	init.pd = w->pd;
	init.send_cq = w->cq[0];
	init.recv_cq = w->cq[1];
	fuzz_check(rnic_qp_create(w->rnic, &init, &w->qp) == 0, "a queue pair");
	fuzz_check(rnic_qp_modify(w->qp, &attr,
			   IBV_QP_STATE | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
			   0) == 0,
		"INIT");
	fuzz_check(iwarp_attach(w->qp, &attach) == 0, "a stream");
	attr.qp_state = IBV_QPS_RTS;
	fuzz_check(rnic_qp_modify(w->qp, &attr, IBV_QP_STATE, 0) == 0, "RTS");
}

static void post(struct world *w, const uint8_t *b)
{
	static const enum ibv_wr_opcode opcodes[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE,
		IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WR_SEND_WITH_INV};
	struct ibv_sge sge = {.addr = VA + POST_AT + b[2] * 4u,
		.length = b[3] * 4u,
		.lkey = rnic_mr_lkey(b[4] == 7 ? w->open : w->mr)};
	struct ibv_send_wr wr = {.wr_id = w->posted[0],
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcodes[b[1] % 5],
		.send_flags = b[5] & 1 ? IBV_SEND_FENCE : 0};
	const struct ibv_recv_wr rr = {.wr_id = w->posted[1], .sg_list = &sge, .num_sge = 1};

	if (b[1] & 0x80)
		w->posted[1] += rnic_post_recv(w->qp, &rr) == 0;
	else
		w->posted[0] += rnic_post_send(w->qp, &wr) == 0;
}

static void completions(struct world *w)
{
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++)
		while (rnic_cq_poll(w->cq[i], 1, &wc) == 1)
			fuzz_check(wc.wr_id == w->done[i]++, "requests complete once, in order");
	fuzz_check(w->done[0] <= w->posted[0] && w->done[1] <= w->posted[1], "and were posted");
}

static void say(struct world *w)
{
	struct rnic_frame frame;
	uint8_t out[1024];
	const uint8_t *ulpdu;
	size_t all, len;

	fuzz_check(!rnic_tx(w->rnic, RNIC_ALL_PORTS, &frame, 0), "no frames of the device's own");
	while ((all = iwarp_tx(w->qp, out, sizeof(out))) > 0)
		for (size_t at = 0; at < all; at += mpa_fpdu_peek(out + at, all - at)) {
			struct ddp_segment s;

			fuzz_check(all - at >= MPA_LEN_LEN &&
					   mpa_fpdu_peek(out + at, all - at) <= all - at &&
					   mpa_fpdu_open(out + at, &ulpdu, &len) &&
					   len <= IWARP_MIN_MULPDU &&
					   ddp_parse(ulpdu, len, &s) == IWARP_OK,
				"a right frame leaves");
		}
}

/* Near what the receiver expects: fields from the state, changed by bytes. */
static size_t near(struct world *w, const uint8_t *b, uint8_t *out)
{
	const struct rdmap_read read = {.sink_stag = b[2],
		.len = b[3] * 8u,
		.source_stag = rnic_mr_rkey(w->open) + (b[4] == 1),
		.source_to = VA + OPEN_AT + b[5] * 4u};
	struct ddp_segment s = {.opcode = b[1] & 15,
		.last = !(b[1] & 0x10),
		.tagged = (b[1] & 15) == RDMAP_WRITE || (b[1] & 15) == RDMAP_READ_RESPONSE};
	uint8_t *at = out + MPA_LEN_LEN;
	size_t len = b[6];
	struct rnic_qp_stats stats;

	rnic_qp_stats(w->qp, &stats);
	s.stag = rnic_mr_rkey(w->open) + (b[4] == 1);
	if (s.opcode == RDMAP_READ_RESPONSE)
		s.stag = (rnic_qp_num(w->qp) << 8) + b[4] % 4;
	s.to = s.opcode == RDMAP_WRITE ? VA + OPEN_AT + b[5] * 4u : b[5] % 4 * 32u;
	s.qn = s.opcode == RDMAP_READ_REQUEST ? 1 : s.opcode == RDMAP_TERMINATE ? 2 : 0;
	s.msn = s.qn == 0 ? stats.epsn : 1 + b[2] % 4u;
	s.mo = b[3] % 4 * 16u;
	at += ddp_build(at, &s);
	memset(at, 0xcc, len);
	if (s.opcode == RDMAP_READ_REQUEST) {
		rdmap_read_build(at, &read);
		len = b[6] == 1 ? 27 : RDMAP_READ_LEN;
	} else if (s.opcode >= RDMAP_IMM) {
		len = RDMAP_IMM_LEN;
	}
	return mpa_fpdu_seal(out, (size_t)(at - out) - MPA_LEN_LEN + len);
}

static void step(struct world *w, const uint8_t *b)
{
	uint8_t out[512];
	size_t len, cut;

	switch (b[0] % 8) {
	case 0:
	case 1:
		post(w, b);
		break;
	case 2:
		say(w);
		break;
	case 3: /* any bytes */
		iwarp_rx(w->qp, b, STEP);
		break;
	case 4: /* the stream's end, rarely */
		if (b[1] == 0)
			iwarp_lost(w->qp, b[2] & 1 ? -104 : 0);
		break;
	default:
		len = near(w, b, out);
		if (b[7] == 0xff)
			out[b[2] % len] ^= 4;
		cut = b[7] % len;
		iwarp_rx(w->qp, out, cut);
		iwarp_rx(w->qp, out + cut, len - cut);
	}
	completions(w);
	fuzz_check(!iwarp_over(w->qp) || iwarp_tx(w->qp, out, sizeof(out)) == 0, "it is over");
	for (size_t i = 0; i < OPEN_AT; i++)
		fuzz_check(w->mem[i] == 0, "nothing is written where nothing was posted");
}

static void close_world(struct world *w)
{
	uint64_t value, faults = 0;
	const char *name;

	for (unsigned i = 0; (name = rnic_qp_counter(w->qp, i, &value)) != NULL; i++)
		if (strncmp(name, "mpa_", 4) == 0 || strncmp(name, "ddp_", 4) == 0 ||
			strncmp(name, "rdmap_", 6) == 0)
			faults += value;
	fuzz_check(faults == (iwarp_fault(w->qp) != IWARP_OK), "one fault, or none");
	fuzz_check(rnic_qp_destroy(w->qp) == 0, "it goes");
	rnic_destroy(w->rnic);
	free(w->mem);
}

static void first_frame(const uint8_t *data, size_t size, bool initiator)
{
	const struct mpa_offer offer = {.ird = 4, .ord = 4};
	uint8_t out[MPA_MAX_START];
	enum iwarp_fault fault;
	struct mpa mpa;
	size_t used;
	int got = 0;

	if (initiator)
		fuzz_check(mpa_connect(&mpa, &offer, out, sizeof(out)) > 0, "a request");
	else
		mpa_listen(&mpa);
	for (size_t at = 0; at < size && got == 0; at += used) {
		const size_t piece = 1 + data[at] % 40u;

		got = mpa_rx(&mpa, data + at, piece < size - at ? piece : size - at, &used, &fault);
		fuzz_check(used <= size - at && (got != 0 || used > 0), "bytes are taken");
	}
	if (got != 1)
		return;
	fuzz_check(mpa.peer.private_data + mpa.peer.private_len <= mpa.bytes + mpa.have,
		"private data lies inside");
	fuzz_check(initiator || mpa_accept(&mpa, &offer, out, sizeof(out)) > 0, "an answer");
	fuzz_check(mpa_agree(&mpa).ord <= 4 && mpa_agree(&mpa).ird <= 4, "depths of ours");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w;

	if (size == 0)
		return 0;
	if (data[0] >= 0xc0) {
		first_frame(data + 1, size - 1, data[0] & 1);
		return 0;
	}
	open_world(&w, data[0]);
	for (size_t i = 0; i < MAX_STEPS && 1 + (i + 1) * STEP <= size; i++)
		step(&w, data + 1 + i * STEP);
	close_world(&w);
	return 0;
}

/* Both of MPA's frames; then a run of steps of each kind. */
size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	const struct mpa_start start = {.reply = i & 1,
		.crc = true,
		.revision = i < 2 ? 1 : 2,
		.enhanced = i >= 2,
		.peer_to_peer = true,
		.rtr = MPA_RTR_WRITE,
		.ird = 2,
		.ord = 2,
		.private_len = 3,
		.private_data = (const uint8_t *)"hey"};

	if (cap < 1024 || i >= 16)
		return 0;
	if (i < 4) {
		out[0] = (uint8_t)(0xc0 + (i & 1));
		return 1 + (size_t)mpa_start_build(out + 1, cap - 1, &start);
	}
	out[0] = (uint8_t)(i * 5 + 10) % 64;
	for (unsigned k = 0; k < 40; k++) {
		uint8_t *b = out + 1 + k * STEP;

		for (unsigned n = 0; n < STEP; n++)
			b[n] = (uint8_t)(k * 37 + n * 11 + i * 101);
		b[0] = (uint8_t)(k * i);
		b[7] &= 63;
		b[4] = (uint8_t)(k % 3 == 0 ? 0 : 2);
	}
	return 1 + 40 * STEP;
}
