/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/bench/ends.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/rc_steps.h"

enum { TX_BURST = 8 };

uint8_t bench_frames[SLOTS][SLOT] __attribute__((aligned(64)));

void check(bool ok, const char *what)
{
	if (!ok) {
		fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
		exit(1);
	}
}

static uint64_t read_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t work_ns(void)
{
	return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t clock_ns(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

/* ---- two ends ---- */

void end_create(struct end *e, unsigned index)
{
	enum {
		ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			 IBV_ACCESS_REMOTE_ATOMIC
	};
	struct rnic_config config = {.port[0].mac = {2, 0, 0, 0, 0, (uint8_t)(1 + index)},
		.port[0].n_ip = 1,
		.port[0].mtu = 4200,
		.seed = index + 1};

	config.port[0].ip[0] = wire_ip_from4(0x0a000001u + index);
	e->memory = aligned_alloc(4096, 2 * MEMORY);
	check(e->memory != NULL && rnic_create(&config, &e->rnic) == 0, "rnic_create");
	for (uint32_t i = 0; i < 2 * MEMORY; i++)
		e->memory[i] = (uint8_t)(i * 7 + i / 251 + index);
	check(rnic_mrc_open(e->rnic, &(struct rnic_mrc_config){0}) == 0, "rnic_mrc_open");
	check(rnic_pd_alloc(e->rnic, &e->pd) == 0, "rnic_pd_alloc");
	check(rnic_mr_reg(e->pd, e->memory, 2 * MEMORY, (uintptr_t)e->memory, ACCESS, &e->mr) == 0,
		"rnic_mr_reg");
	check(rnic_cq_create(e->rnic, 4 * DEPTH * MAX_QP, NULL, &e->cq) == 0, "rnic_cq_create");
}

static void create_qp(struct end *e, unsigned i, const struct load *load)
{
	const struct rnic_mrc_attr attr = {.paths = load->paths, .cc.none = load->no_cc};
	struct rnic_qp_init init = {.type = IBV_QPT_RC,
		.transport = load->mrc         ? &rnic_mrc
			     : load->selective ? &rnic_sr
					       : NULL,
		.pd = e->pd,
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1}};
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC};

	check(rnic_qp_create(e->rnic, &init, &e->qp[i]) == 0 &&
			rnic_qp_modify(e->qp[i], &a, RC_TO_INIT, 0) == 0,
		"a queue pair");
	if (load->mrc)
		check(rnic_mrc_set(e->qp[i], &attr,
			      (load->paths ? RNIC_MRC_PATHS : 0) |
				      (load->no_cc ? RNIC_MRC_CC : 0)) == 0,
			"rnic_mrc_set");
}

void end_destroy(struct end *e)
{
	rnic_destroy(e->rnic);
	free(e->memory);
}

static void connect_qp(struct end *e, struct end *peer, unsigned i, enum ibv_mtu mtu)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = rnic_qp_num(peer->qp[i]),
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1, .port_num = 1, .grh = {.sgid_index = 1, .hop_limit = 64}}};
	uint8_t mac[6];
	struct wire_ip ip;

	check(rnic_gid(peer->rnic, 0, 1, &ip) == 0, "rnic_gid");
	memcpy(a.ah_attr.grh.dgid.raw, &ip, 16);
	rnic_mac(peer->rnic, 0, mac);
	check(rnic_neigh_add(e->rnic, 0, &ip, mac) == 0, "rnic_neigh_add");
	check(rnic_qp_modify(e->qp[i], &a, RC_TO_RTR, 0) == 0, "RTR");
	a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 16};
	check(rnic_qp_modify(e->qp[i], &a, RC_TO_RTS, 0) == 0, "RTS");
}

void connect_all(struct end ends[2], const struct load *load)
{
	const enum ibv_mtu mtu = load->mtu == 4096  ? IBV_MTU_4096
				 : load->mtu == 256 ? IBV_MTU_256
						    : IBV_MTU_1024;

	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < load->qps; i++)
			create_qp(&ends[k], i, load);
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < load->qps; i++)
			connect_qp(&ends[k], &ends[!k], i, mtu);
}

void disconnect_all(struct end ends[2], const struct load *load)
{
	for (unsigned k = 0; k < 2; k++)
		for (unsigned i = 0; i < load->qps; i++)
			check(rnic_qp_destroy(ends[k].qp[i]) == 0, "rnic_qp_destroy");
}

unsigned carry(struct end *from, struct end *to)
{
	struct rnic_rx_frame rx[BURST];
	struct rnic_frame tx[TX_BURST];
	unsigned n = 0, made;
	static unsigned slot;
	uint64_t now = clock_ns();

	do {
		const unsigned most = BURST - n < TX_BURST ? BURST - n : TX_BURST;

		made = rnic_tx_burst(from->rnic, RNIC_ALL_PORTS, tx, most, now);
		for (unsigned i = 0; i < made; i++, n++) {
			uint8_t *out = bench_frames[slot++ % SLOTS];

			rx[n].data = out;
			rx[n].len = (uint32_t)rnic_frame_flatten(&tx[i], out, SLOT);
		}
	} while (made && n < BURST);
	rnic_rx_burst(to->rnic, 0, rx, n, now);
	check(rnic_count(to->rnic, RNIC_C_RX_ACCEPTED) +
				rnic_drop_count(to->rnic, RNIC_DROP_DUPLICATE) ==
			rnic_count(to->rnic, RNIC_C_RX_FRAMES),
		"a frame was dropped");
	return n;
}

/* ---- loads ---- */

void post(struct end *e, struct end *peer, const struct load *load, unsigned qp, uint32_t at)
{
	struct ibv_sge sge = {(uintptr_t)e->memory + at, load->size, rnic_mr_lkey(e->mr)};
	struct ibv_send_wr wr = {.wr_id = qp,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = load->opcode,
		.send_flags = IBV_SEND_SIGNALED};

	if (load->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)peer->memory + MEMORY;
		wr.wr.atomic.rkey = rnic_mr_rkey(peer->mr);
		wr.wr.atomic.compare_add = 1;
	} else if (load->opcode != IBV_WR_SEND) {
		wr.wr.rdma.remote_addr = (uintptr_t)peer->memory + at;
		wr.wr.rdma.rkey = rnic_mr_rkey(peer->mr);
	}
	check(rnic_post_send(e->qp[qp], &wr) == 0, "rnic_post_send");
}

void post_recv(struct end *e, const struct load *load, unsigned qp, uint32_t at)
{
	struct ibv_sge sge = {(uintptr_t)e->memory + at, load->size, rnic_mr_lkey(e->mr)};
	struct ibv_recv_wr wr = {.wr_id = qp, .sg_list = &sge, .num_sge = 1};

	check(rnic_post_recv(e->qp[qp], &wr) == 0, "rnic_post_recv");
}

static uint32_t place(const struct load *load, uint64_t i)
{
	return (uint32_t)(i * load->size % MEMORY);
}

/* Polls what has completed, and asks for as much again. Returns messages done. */
static unsigned turn(struct end ends[2], const struct load *load, uint64_t *posted, uint64_t want)
{
	struct ibv_wc wc[BURST];
	unsigned done = 0;
	int n = rnic_cq_poll(ends[0].cq, BURST, wc);

	for (int i = 0; i < n; i++) {
		check(wc[i].status == IBV_WC_SUCCESS, ibv_wc_status_str(wc[i].status));
		done++;
		if (*posted < want)
			post(&ends[0], &ends[1], load, (unsigned)wc[i].wr_id,
				place(load, (*posted)++));
	}
	n = load->opcode == IBV_WR_SEND ? rnic_cq_poll(ends[1].cq, BURST, wc) : 0;
	for (int i = 0; i < n; i++)
		post_recv(&ends[1], load, (unsigned)wc[i].wr_id, place(load, (uint64_t)i));
	return done;
}

double run(struct end ends[2], const struct load *load, uint64_t messages)
{
	const unsigned depth = load->size > 4096 ? 4 : DEPTH;
	uint64_t posted = 0, done = 0, start;

	for (unsigned q = 0; q < load->qps && load->opcode == IBV_WR_SEND; q++)
		for (unsigned i = 0; i < DEPTH; i++)
			post_recv(&ends[1], load, q, place(load, i));
	start = work_ns();
	for (unsigned i = 0; i < depth; i++)
		for (unsigned q = 0; q < load->qps && posted < messages; q++)
			post(&ends[0], &ends[1], load, q, place(load, posted++));
	while (done < messages) {
		carry(&ends[0], &ends[1]);
		carry(&ends[1], &ends[0]);
		done += turn(ends, load, &posted, messages);
	}
	return (double)messages * 1e9 / (double)(work_ns() - start);
}
