/* SPDX-License-Identifier: BSD-3-Clause */
/* Every operation of libibverbs between two hosts, either of which may be the one that asks, or
 * both at once; all bytes, immediates, keys and completions are checked on both sides.
 *
 *	verbs_ops -l PORT | -c HOST:PORT [options] OPERATION...
 *
 * Both sides are given the same options and operations. OPERATION is one of
 *	send:N sendimm:N sendinv:N write:N writeimm:N read:N cas fadd
 * or, as the last, one that has to fail as it should:
 *	badwrite:N badread:N badcas (a wrong key)  farwrite:N (beyond the region)
 *	oddfadd (not aligned)  longsend:N (the receive is too short)  norecv:N (none is posted)
 * Options:
 *	-t rc|uc|ud  transport (rc)      -g N   index of the GID (1)
 *	-m MTU       path MTU (1024)     -p N   PSN of the listener, the connector's is 256 behind
 *	-a listener|connector|both       who asks (connector)
 *	-n N         rounds (1)          -1     one operation at a time
 *	-d MS        receives are posted that late: RNR NAKs
 * Exit status 0 when all was as it should be. */
#include <errno.h>
#include <getopt.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/interop/verbs_ops.h"

static const struct verb verbs[] = {
	{"send", IBV_WR_SEND, true, IBV_WC_SUCCESS},
	{"sendimm", IBV_WR_SEND_WITH_IMM, true, IBV_WC_SUCCESS},
	{"sendinv", IBV_WR_SEND_WITH_INV, true, IBV_WC_SUCCESS},
	{"write", IBV_WR_RDMA_WRITE, false, IBV_WC_SUCCESS},
	{"writeimm", IBV_WR_RDMA_WRITE_WITH_IMM, true, IBV_WC_SUCCESS},
	{"read", IBV_WR_RDMA_READ, false, IBV_WC_SUCCESS},
	{"cas", IBV_WR_ATOMIC_CMP_AND_SWP, false, IBV_WC_SUCCESS},
	{"fadd", IBV_WR_ATOMIC_FETCH_AND_ADD, false, IBV_WC_SUCCESS},
	{"badwrite", IBV_WR_RDMA_WRITE, false, IBV_WC_REM_ACCESS_ERR},
	{"badread", IBV_WR_RDMA_READ, false, IBV_WC_REM_ACCESS_ERR},
	{"badcas", IBV_WR_ATOMIC_CMP_AND_SWP, false, IBV_WC_REM_ACCESS_ERR},
	{"farwrite", IBV_WR_RDMA_WRITE, false, IBV_WC_REM_ACCESS_ERR},
	{"oddfadd", IBV_WR_ATOMIC_FETCH_AND_ADD, false, IBV_WC_REM_INV_REQ_ERR},
	{"longsend", IBV_WR_SEND, true, IBV_WC_REM_INV_REQ_ERR},
	{"norecv", IBV_WR_SEND, false, IBV_WC_RNR_RETRY_EXC_ERR},
};

struct conf conf = {
	.type = IBV_QPT_RC, .gid = 1, .mtu = 1024, .active = CONNECTOR, .rounds = 1, .psn = 0x100};

struct state state;

void fail(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fprintf(stderr,
		"verbs_ops, %s, round %d: ", conf.side == LISTENER ? "listener" : "connector",
		state.round);
	vfprintf(stderr, format, ap);
	fprintf(stderr, "\n");
	va_end(ap);
	exit(1);
}

void check(bool ok, const char *what)
{
	if (!ok)
		fail("%s: %s", what, strerror(errno));
}

bool asks(int side)
{
	return conf.active & side;
}

int other(void)
{
	return LISTENER + CONNECTOR - conf.side;
}

/* ---- completions ---- */

static void take_receive(const struct ibv_wc *wc)
{
	unsigned n = state.received++, i;
	uint32_t grh = conf.type == IBV_QPT_UD ? GRH : 0;
	const struct op *op;
	bool imm;

	if (n >= state.n_recv)
		fail("one receive too many");
	i = state.recv_op[n];
	op = &conf.op[i];
	if (op->verb->status != IBV_WC_SUCCESS) {
		if (wc->status != (state.soft_roce ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_LEN_ERR))
			fail("receive of %s: %s", op->verb->name, ibv_wc_status_str(wc->status));
		return;
	}
	if (wc->status != IBV_WC_SUCCESS)
		fail("receive of %s:%u: %s", op->verb->name, op->len,
			ibv_wc_status_str(wc->status));
	if (wc->wr_id != n || wc->byte_len != op->len + grh)
		fail("receive of %s:%u: id %lu, %u bytes", op->verb->name, op->len,
			(unsigned long)wc->wr_id, wc->byte_len);
	imm = op->verb->opcode == IBV_WR_SEND_WITH_IMM ||
	      op->verb->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	if (imm != !!(wc->wc_flags & IBV_WC_WITH_IMM) ||
		(imm && ntohl(wc->imm_data) != ((uint32_t)state.round << 8 | i)))
		fail("%s: immediate 0x%x", op->verb->name, ntohl(wc->imm_data));
	if (op->verb->opcode == IBV_WR_SEND_WITH_INV &&
		(!(wc->wc_flags & (state.soft_roce ? IBV_WC_IP_CSUM_OK : IBV_WC_WITH_INV)) ||
			wc->invalidated_rkey != state.here.window[i]))
		fail("sendinv: flags %x, key 0x%x, not 0x%x", wc->wc_flags, wc->invalidated_rkey,
			state.here.window[i]);
	if (conf.type == IBV_QPT_UD && wc->src_qp != state.there.qpn)
		fail("from QP 0x%x", wc->src_qp);
	if (op->verb->opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
		expect(RECV, i, grh, op->len, other(), OUT);
}

/* Soft-RoCE refuses what is longer than its receive with another NAK. */
static enum ibv_wc_status outcome(const struct op *op)
{
	return state.there.soft_roce && strcmp(op->verb->name, "longsend") == 0 ? IBV_WC_REM_OP_ERR
										: op->verb->status;
}

enum { WINDOW_ID = 1000, SEND_ID = 2000 };

/* Ends when so many requests of ours and receives have completed. */
static void await(unsigned sent, unsigned received)
{
	struct timespec start, now;
	struct ibv_wc wc;
	int n;

	clock_gettime(CLOCK_MONOTONIC, &start);
	while (state.sent < sent || state.received < received) {
		n = ibv_poll_cq(state.cq, 1, &wc);
		check(n >= 0, "ibv_poll_cq");
		if (n == 0) {
			clock_gettime(CLOCK_MONOTONIC, &now);
			if (now.tv_sec - start.tv_sec > WAIT_S)
				fail("%u of %u requests and %u of %u receives are done after %d s",
					state.sent, sent, state.received, received, WAIT_S);
			usleep(200); /* the processor belongs to the kernel's RoCE */
			continue;
		}
		if (wc.wr_id < OPS_MAX) {
			take_receive(&wc);
			continue;
		}
		if (wc.wr_id < SEND_ID) { /* a window */
			if (wc.status != IBV_WC_SUCCESS)
				fail("binding a window: %s", ibv_wc_status_str(wc.status));
		} else if (wc.status != outcome(&conf.op[wc.wr_id - SEND_ID])) {
			fail("%s:%u: %s", conf.op[wc.wr_id - SEND_ID].verb->name,
				conf.op[wc.wr_id - SEND_ID].len, ibv_wc_status_str(wc.status));
		}
		state.sent++;
	}
}

/* ---- a round ---- */

static void post_receives(void)
{
	for (unsigned n = 0; n < state.n_recv; n++) {
		const struct op *op = &conf.op[state.recv_op[n]];
		struct ibv_sge sge = {(uintptr_t)area(RECV, state.recv_op[n]),
			op->verb->status ? op->len / 2 : AREA, state.mr->lkey};
		struct ibv_recv_wr wr = {.wr_id = n, .sg_list = &sge, .num_sge = 1}, *bad;

		check(ibv_post_recv(state.qp, &wr, &bad) == 0, "ibv_post_recv");
	}
}

/* A window for every operation that is to invalidate one. Its key goes with the next meeting. */
static void bind_windows(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < conf.n_ops && asks(other()); i++) {
		struct ibv_send_wr wr = {.wr_id = WINDOW_ID + i,
					   .opcode = IBV_WR_BIND_MW,
					   .send_flags = IBV_SEND_SIGNALED},
				   *bad;

		if (state.mw[i] == NULL)
			continue;
		wr.bind_mw.mw = state.mw[i];
		wr.bind_mw.rkey = ibv_inc_rkey(state.mw[i]->rkey);
		wr.bind_mw.bind_info = (struct ibv_mw_bind_info){.mr = state.mr,
			.addr = (uintptr_t)area(IN, i),
			.length = AREA,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
		check(ibv_post_send(state.qp, &wr, &bad) == 0, "ibv_post_send of a window");
		state.mw[i]->rkey = state.here.window[i] = wr.bind_mw.rkey;
		n++;
	}
	await(n, 0);
	state.sent = 0;
}

static void address(const struct op *op, unsigned i, struct ibv_send_wr *wr)
{
	bool wrong_key = strncmp(op->verb->name, "bad", 3) == 0;
	uint32_t rkey = state.there.rkey ^ (wrong_key ? 0x5500 : 0);

	switch (op->verb->opcode) {
	case IBV_WR_ATOMIC_CMP_AND_SWP: /* in every second round it is not equal */
		wr->wr.atomic.compare_add = number(other(), i) + (uint64_t)(state.round & 1);
		wr->wr.atomic.swap = number(conf.side, i);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr->wr.atomic.compare_add = number(conf.side, i);
		break;
	default:
		wr->wr.rdma.remote_addr =
			op->verb->opcode == IBV_WR_RDMA_READ ? remote(SHARED, i) : remote(IN, i);
		if (strcmp(op->verb->name, "farwrite") == 0)
			wr->wr.rdma.remote_addr = remote(N_REGIONS, 0) - op->len + 1;
		wr->wr.rdma.rkey = rkey;
		return;
	}
	wr->wr.atomic.remote_addr =
		remote(SHARED, i) + (strcmp(op->verb->name, "oddfadd") == 0 ? 4 : 0);
	wr->wr.atomic.rkey = rkey;
}

static void post(unsigned i)
{
	const struct op *op = &conf.op[i];
	struct ibv_sge sge = {(uintptr_t)area(OUT, i), op->len, state.mr->lkey};
	struct ibv_send_wr wr = {.wr_id = SEND_ID + i,
				   .sg_list = &sge,
				   .num_sge = op->len ? 1 : 0,
				   .opcode = op->verb->opcode,
				   .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	if (wr.opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = state.there.window[i];
	else
		wr.imm_data = htonl((uint32_t)state.round << 8 | i);
	if (conf.type == IBV_QPT_UD) {
		wr.wr.ud.ah = state.ah;
		wr.wr.ud.remote_qpn = state.there.qpn;
		wr.wr.ud.remote_qkey = QKEY;
	} else {
		address(op, i, &wr);
	}
	check(ibv_post_send(state.qp, &wr, &bad) == 0, "ibv_post_send");
	state.done++;
}

static void one_round(void)
{
	fill(OUT);
	fill(SHARED);
	memset(area(IN, 0), 0, (size_t)OPS_MAX * AREA);
	memset(area(RECV, 0), 0, (size_t)OPS_MAX * AREA);
	state.sent = state.received = state.n_recv = 0;
	for (unsigned i = 0; i < conf.n_ops && asks(other()); i++)
		if (conf.op[i].verb->uses_recv)
			state.recv_op[state.n_recv++] = i;
	bind_windows();
	if (!conf.late_ms)
		post_receives();
	meet();
	if (conf.late_ms) {
		usleep((useconds_t)conf.late_ms * 1000);
		post_receives();
	}
	for (unsigned i = 0; i < conf.n_ops && asks(conf.side); i++) {
		post(i);
		if (conf.one)
			await(i + 1, 0);
	}
	await(asks(conf.side) ? conf.n_ops : 0, state.n_recv);
	meet();
	for (unsigned i = 0; i < conf.n_ops; i++)
		verify(i);
	meet();
}

/* ---- the command line ---- */

static void parse_op(const char *word)
{
	struct op *op = &conf.op[conf.n_ops];
	const char *colon = strchr(word, ':');
	size_t n = colon ? (size_t)(colon - word) : strlen(word);

	if (conf.n_ops == OPS_MAX)
		fail("more than %d operations", OPS_MAX);
	for (unsigned i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (strncmp(verbs[i].name, word, n) == 0 && verbs[i].name[n] == 0)
			op->verb = &verbs[i];
	op->len = colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 8;
	if (op->verb == NULL || op->len > AREA - GRH)
		fail("%s: no such operation, or more than %d bytes", word, AREA - GRH);
	if (conf.n_ops > 0 && op[-1].verb->status != IBV_WC_SUCCESS)
		fail("%s: only the last operation may be one that fails", op[-1].verb->name);
	conf.n_ops++;
}

static void parse(int argc, char **argv)
{
	int o;

	while ((o = getopt(argc, argv, "l:c:t:g:m:p:a:n:d:1")) != -1)
		switch (o) {
		case 'l':
		case 'c':
			conf.side = o == 'l' ? LISTENER : CONNECTOR, conf.at = optarg;
			break;
		case 't':
			conf.type = optarg[1] == 'd'   ? IBV_QPT_UD
				    : optarg[0] == 'u' ? IBV_QPT_UC
						       : IBV_QPT_RC;
			break;
		case 'g':
			conf.gid = atoi(optarg);
			break;
		case 'm':
			conf.mtu = atoi(optarg);
			break;
		case 'p':
			conf.psn = (uint32_t)strtoul(optarg, NULL, 0) & 0xffffff;
			break;
		case 'a':
			conf.active = *optarg == 'l'   ? LISTENER
				      : *optarg == 'c' ? CONNECTOR
						       : LISTENER | CONNECTOR;
			break;
		case 'n':
			conf.rounds = atoi(optarg);
			break;
		case 'd':
			conf.late_ms = atoi(optarg);
			break;
		case '1':
			conf.one = true;
			break;
		default:
			exit(2);
		}
	for (; optind < argc; optind++)
		parse_op(argv[optind]);
	if (conf.at == NULL || conf.n_ops == 0)
		fail("usage: verbs_ops -l PORT | -c HOST:PORT [options] OPERATION...");
}

int main(int argc, char **argv)
{
	struct ibv_device **list;
	struct ibv_context *c;

	parse(argc, argv);
	list = ibv_get_device_list(NULL);
	c = list && *list ? ibv_open_device(*list) : NULL;
	check(c, "ibv_open_device");
	state.soft_roce = strncmp(ibv_get_device_name(*list), "rxe", 3) == 0;
	create(c);
	state.control = dial(conf.at);
	meet();
	bring_up();
	meet();
	for (state.round = 0; state.round < conf.rounds; state.round++)
		one_round();
	printf("verbs_ops: %llu requests of ours, %llu bytes of both checked\n", state.done,
		state.bytes);
	ibv_close_device(c);
	ibv_free_device_list(list);
	return 0;
}
