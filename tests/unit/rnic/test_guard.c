/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that lies about lengths, keys and addresses, with right checksums and sequence numbers,
 * against memory that ends where its region ends: whoever touches a byte more is killed. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/rnic/net.h"

enum { ROUNDS = 20000, PAGES = 2, MTU = 1024 };

static const struct net_options base = {.psn = {0xfffff0, 0x200}, .mtu = IBV_MTU_1024};

struct guarded {
	struct net net;
	uint8_t *map, *mem; /* mem: the region, between two pages that are not to be touched */
	size_t page, len;
	struct rnic_mr *mr;
	unsigned refused; /* times that the QP had to be brought back */
};

static struct guarded g;

static void open_guarded(void)
{
	memset(&g, 0, sizeof(g));
	net_connect(&g.net, &base);
	g.page = (size_t)sysconf(_SC_PAGESIZE);
	g.len = PAGES * g.page;
	g.map = mmap(NULL, g.len + 2 * g.page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(g.map, MAP_FAILED);
	g.mem = g.map + g.page;
	assert_int_equal(0, mprotect(g.mem, g.len, PROT_READ | PROT_WRITE));
	assert_int_equal(0, rnic_mr_reg(g.net.end[1].pd, g.mem, g.len, (uintptr_t)g.mem,
				    NET_ALL_ACCESS, &g.mr));
}

static void close_guarded(void)
{
	assert_int_equal(0, rnic_mr_dereg(g.mr));
	net_close(&g.net);
	munmap(g.map, g.len + 2 * g.page);
}

static uint32_t pick(uint32_t n)
{
	return (uint32_t)(net_random(&g.net) % n);
}

static void drain(struct rnic_cq *cq)
{
	struct ibv_wc wc[16];

	while (rnic_cq_poll(cq, 16, wc) > 0)
		;
}

/* Brings the attacked QP back if the last lie was refused. */
static void bring_back(void)
{
	struct end *end = &g.net.end[1];
	struct ibv_qp_attr attr, reset = {.qp_state = IBV_QPS_RESET};
	struct ibv_qp_init_attr init;

	drain(end->scq);
	drain(end->rcq);
	rnic_qp_query(end->qp, &attr, &init);
	if (attr.qp_state == IBV_QPS_RTS)
		return;
	g.refused++;
	end->n_event = 0;
	assert_int_equal(0, rnic_qp_modify(end->qp, &reset, IBV_QP_STATE, g.net.now));
	net_to_rts(&g.net, 1, end->qp, rnic_qp_num(g.net.end[0].qp), &base);
}

/* An address at, before or behind an edge of the region, or far off. */
static uint64_t some_address(void)
{
	const uint64_t start = (uintptr_t)g.mem, end = start + g.len;

	switch (pick(8)) {
	case 0:
		return start - 1 - pick(2 * MTU);
	case 1:
		return start + pick(16);
	case 2:
		return UINT64_MAX - pick(2 * MTU);
	case 3:
		return end + pick(16);
	case 4:
		return net_random(&g.net);
	case 5:
		return (end - 8 * pick(300)) & ~UINT64_C(7);
	default:
		return end - pick(2 * MTU);
	}
}

static uint32_t some_length(uint32_t payload)
{
	static const uint32_t odd[] = {
		0, 1, MTU, 2 * MTU, 1u << 30, (1u << 30) + 1, 0x7fffffff, 0x80000000, UINT32_MAX};

	switch (pick(3)) {
	case 0:
		return odd[pick(sizeof(odd) / sizeof(odd[0]))];
	case 1:
		return pick(3 * MTU);
	default:
		return payload + (pick(4) == 0);
	}
}

static uint32_t some_payload(void)
{
	return pick(3) == 0 ? MTU : pick(MTU + 20);
}

/* A receive whose list ends where the region does. */
static void post_at_the_edge(void)
{
	const uint32_t len = pick(2 * MTU);
	struct ibv_sge sge[2] = {{(uintptr_t)g.mem, len / 3, rnic_mr_lkey(g.mr)},
		{(uintptr_t)g.mem + g.len - (len - len / 3), len - len / 3, rnic_mr_lkey(g.mr)}};
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = 2};

	rnic_post_recv(g.net.end[1].qp, &wr); /* or there are enough */
}

static void requests_that_lie(void **state)
{
	static const uint8_t opcodes[] = {ROCE_SEND_FIRST, ROCE_SEND_MIDDLE, ROCE_SEND_LAST,
		ROCE_SEND_ONLY, ROCE_WRITE_FIRST, ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST,
		ROCE_WRITE_ONLY, ROCE_WRITE_ONLY, ROCE_READ_REQUEST, ROCE_READ_REQUEST,
		ROCE_CMP_SWAP, ROCE_FETCH_ADD, ROCE_SEND_ONLY_INV};
	static const uint8_t payload[2 * MTU];
	const struct rnic *victim;

	(void)state;
	open_guarded();
	victim = g.net.end[1].rnic;
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct rnic_qp_stats stats;
		struct wire_hdr hdr = {.opcode = opcodes[pick(sizeof(opcodes))], .mig = true};
		uint32_t len = some_payload();

		if (hdr.opcode == ROCE_READ_REQUEST || hdr.opcode == ROCE_CMP_SWAP ||
			hdr.opcode == ROCE_FETCH_ADD)
			len = 0;
		bring_back();
		post_at_the_edge();
		rnic_qp_stats(g.net.end[1].qp, &stats);
		hdr.psn = (stats.epsn + (pick(8) == 0 ? pick(8) - 4 : 0)) & 0xffffff;
		hdr.va = some_address();
		hdr.rkey = rnic_mr_rkey(g.mr) ^ (pick(16) == 0 ? 1u << pick(32) : 0);
		hdr.dmalen = some_length(len);
		net_packet(&g.net, 1, hdr, payload, len);
		net_run(&g.net, g.net.now + 20000);
	}
	/* The lies were mixed with truth. */
	assert_in_range(g.refused, ROUNDS / 100, ROUNDS);
	assert_true(rnic_drop_count(victim, RNIC_DROP_ACCESS) > ROUNDS / 100);
	assert_true(rnic_count(victim, RNIC_C_READ_TX) > ROUNDS / 100);
	assert_true(rnic_count(victim, RNIC_C_RX_ACCEPTED) > ROUNDS / 10);
	close_guarded();
}

static void post_read(void)
{
	const uint32_t len = pick(3 * MTU) + 1;
	struct ibv_sge sge = {(uintptr_t)g.mem + g.len - len, len, rnic_mr_lkey(g.mr)};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_READ};

	if (pick(3) == 0) {
		sge.addr = (uintptr_t)g.mem + g.len - 8;
		sge.length = 8;
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	}
	rnic_post_send(g.net.end[1].qp, &wr);
}

static void responses_that_lie(void **state)
{
	static const uint8_t opcodes[] = {ROCE_READ_RESP_FIRST, ROCE_READ_RESP_MIDDLE,
		ROCE_READ_RESP_LAST, ROCE_READ_RESP_ONLY, ROCE_ATOMIC_ACK, ROCE_ACK};
	static const uint8_t payload[2 * MTU];

	(void)state;
	open_guarded();
	g.net.mute[1] = true; /* who answers is the liar alone */
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct rnic_qp_stats stats;
		struct wire_hdr hdr = {.opcode = opcodes[pick(sizeof(opcodes))],
			.mig = true,
			.syndrome = ROCE_AETH_ACK | ROCE_AETH_NO_CREDITS};

		bring_back();
		post_read();
		net_run(&g.net, g.net.now + 20000);
		rnic_qp_stats(g.net.end[1].qp, &stats);
		hdr.psn = (stats.sq_una + (pick(4) == 0 ? pick(8) - 4 : 0)) & 0xffffff;
		net_packet(&g.net, 1, hdr, payload,
			hdr.opcode == ROCE_ATOMIC_ACK || hdr.opcode == ROCE_ACK ? 0
										: some_payload());
	}
	assert_in_range(g.refused, ROUNDS / 100, ROUNDS);
	assert_true(rnic_count(g.net.end[1].rnic, RNIC_C_READ_RX) > ROUNDS / 100);
	assert_true(rnic_drop_count(g.net.end[1].rnic, RNIC_DROP_LENGTH) > ROUNDS / 100);
	close_guarded();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_that_lie),
		cmocka_unit_test(responses_that_lie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
