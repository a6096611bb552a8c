/* SPDX-License-Identifier: BSD-3-Clause */
/* The core over imaginary verbs: four ranks in one thread, time is a number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/comm.h"
#include "tests/unit/ccl/fake_verbs.h"

enum { N = 4, MTU = 256, M = 2, W = 4, MSG = MTU * M, MS = 1000000 };

static struct ccl_comm *comm[N];

static void open_all(uint64_t seed, uint32_t start_psn, uint32_t max_packets)
{
	char err[CCL_ERR_LEN];

	fake_init(N, 1024, seed);
	fake_window(W);
	for (unsigned r = 0; r < N; r++) {
		const struct ccl_conn conn = {
			.context = fake_context(r),
			.gid_index = 1,
			.rank = r,
			.n_ranks = N,
			.m = M,
			.w = W,
			.timeout_ns = 100 * MS,
			.max_packets = max_packets,
			.mtu = MTU,
			.remote_ip = wire_ip_from4(0x0a4dff01),
			.remote_qpn = 0x1040 + r,
			.start_psn = start_psn,
		};

		assert_int_equal(ccl_comm_create_connected(&conn, &comm[r], err), 0);
	}
}

static void close_all(void)
{
	for (unsigned r = 0; r < N; r++)
		ccl_comm_destroy(comm[r]);
	assert_int_equal(fake_rnr(), 0);
	fake_fini();
}

/* Runs ranks and network alternately until all have finished, at time 1. */
static void run(const struct ccl_req *req)
{
	for (unsigned turn = 0; turn < 1000000; turn++) {
		unsigned done = 0;

		fake_step();
		assert_true(ccl_progress(comm[turn % N], 1) >= 0);
		for (unsigned r = 0; r < N; r++)
			done += ccl_test(comm[r], req[r]) == 1;
		if (done == N)
			return;
	}
	fail_msg("no end");
}

static int32_t value(unsigned rank, size_t i, unsigned round)
{
	return (int32_t)(i * 7 + rank * 1000003 + round * 65537);
}

static int32_t sum(size_t i, unsigned round)
{
	uint32_t s = 0;

	for (unsigned r = 0; r < N; r++)
		s += (uint32_t)value(r, i, round);
	return (int32_t)s;
}

struct bufs {
	size_t count;
	int32_t *send[N], *recv[N];
};

static struct bufs make_bufs(size_t count, bool in_place, unsigned round)
{
	struct bufs b = {.count = count};

	for (unsigned r = 0; r < N; r++) {
		b.send[r] = malloc((count + 1) * sizeof(int32_t));
		b.recv[r] = in_place ? b.send[r] : malloc((count + 1) * sizeof(int32_t));
		for (size_t i = 0; i < count + 1; i++)
			b.recv[r][i] = -1;
		for (size_t i = 0; i < count; i++)
			b.send[r][i] = value(r, i, round);
		b.recv[r][count] = 0x5a5a5a5a; /* must stay */
	}
	return b;
}

static void check_bufs(struct bufs *b, unsigned round)
{
	for (unsigned r = 0; r < N; r++) {
		for (size_t i = 0; i < b->count; i++)
			if (b->recv[r][i] != sum(i, round))
				fail_msg("rank %u element %zu round %u", r, i, round);
		assert_int_equal(b->recv[r][b->count], 0x5a5a5a5a);
		if (b->send[r] != b->recv[r])
			free(b->send[r]);
		free(b->recv[r]);
	}
}

static void issue(struct bufs *b, struct ccl_req *req)
{
	for (unsigned r = 0; r < N; r++)
		assert_int_equal(ccl_iallreduce(comm[r], b->send[r], b->recv[r], b->count,
					 REDUCE_INT32, REDUCE_SUM, &req[r]),
			0);
}

static const size_t sizes[] = {0, 1, MTU / 4, MTU / 4 + 1, MSG / 4, MSG / 4 + 1, 3 * MSG / 4,
	(W + 3) * MSG / 4 - 1, 40 * MSG / 4 + 5};

static void sizes_staged(void **state)
{
	struct ccl_req req[N];

	(void)state;
	for (unsigned seed = 0; seed < 8; seed++) {
		open_all(seed, 0x123, 0);
		for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
			struct bufs b = make_bufs(sizes[i], seed & 1, (unsigned)i);

			issue(&b, req);
			run(req);
			check_bufs(&b, (unsigned)i);
		}
		close_all();
	}
}

static void fp32(void **state)
{
	float send[N][300], recv[N][300];
	struct ccl_req req[N];

	(void)state;
	open_all(1, 0, 0);
	for (unsigned r = 0; r < N; r++) {
		for (unsigned i = 0; i < 300; i++)
			send[r][i] = (float)(i * (r + 1)) / 4;
		assert_int_equal(ccl_iallreduce(comm[r], send[r], recv[r], 300, REDUCE_FP32,
					 REDUCE_SUM, &req[r]),
			0);
	}
	run(req);
	for (unsigned i = 0; i < 300; i++)
		assert_true(recv[3][i] == (float)(i * 10) / 4);
	close_all();
}

/* Registered buffers: nothing is copied, but for what an in-place operation sends. */
static void registered(void **state)
{
	const size_t count = 30 * MSG / 4;
	int32_t other[100];

	(void)state;
	for (unsigned in_place = 0; in_place < 2; in_place++) {
		struct bufs b = make_bufs(count, in_place, 9);
		struct ccl_info info;
		struct ccl_req req[N];

		open_all(5, 0, 0);
		for (unsigned r = 0; r < N; r++) {
			assert_int_equal(ccl_register(comm[r], b.send[r], count * 4), 0);
			if (!in_place)
				assert_int_equal(ccl_register(comm[r], b.recv[r], count * 4), 0);
		}
		assert_int_equal(ccl_register(comm[0], b.send[0] + 1, 8), -EEXIST);
		assert_int_equal(ccl_register(comm[0], other, sizeof(other)), 0);
		issue(&b, req);
		assert_int_equal(ccl_deregister(comm[0], b.send[0]), -EBUSY);
		assert_int_equal(ccl_deregister(comm[0], b.recv[0]), -EBUSY);
		assert_int_equal(ccl_deregister(comm[0], other), 0); /* not in use */
		run(req);
		ccl_query(comm[2], &info);
		assert_int_equal(info.staged_sends, in_place ? 30 : 0);
		assert_int_equal(info.staged_receives, 0);
		assert_int_equal(info.messages, 31);
		assert_int_equal(info.operations, 1);
		assert_int_equal(ccl_deregister(comm[0], b.send[0]), 0);
		assert_int_equal(ccl_deregister(comm[0], b.send[0]), -ENOENT);
		check_bufs(&b, 9);
		close_all();
	}
}

/* A buffer that is only partly inside a region is staged. */
static void partly_registered(void **state)
{
	struct bufs b = make_bufs(MSG, false, 2);
	struct ccl_info info;
	struct ccl_req req[N];

	(void)state;
	open_all(5, 0, 0);
	assert_int_equal(ccl_register(comm[1], b.send[1], MSG * 4 - 4), 0);
	issue(&b, req);
	run(req);
	ccl_query(comm[1], &info);
	assert_int_equal(info.staged_sends, 4);
	check_bufs(&b, 2);
	close_all();
}

/* Many collectives issued at once: pipelined, at most CCL_MAX_OPS on the wire, results in order. */
static void pipelining(void **state)
{
	enum { ROUNDS = CCL_MAX_QUEUED };

	(void)state;
	for (unsigned seed = 0; seed < 4; seed++) {
		struct ccl_req req[ROUNDS][N], extra;
		struct bufs b[ROUNDS];

		open_all(seed, 0xfffff0, 0); /* over the wrap */
		for (unsigned i = 0; i < ROUNDS; i++) {
			b[i] = make_bufs((i * 37) % 300, i % 3 == 0, i);
			issue(&b[i], req[i]);
		}
		assert_int_equal(ccl_ibarrier(comm[0], &extra), -EAGAIN);
		for (unsigned r = 0; r < N; r++) {
			assert_true(
				comm[r]->memb[0].op_made - comm[r]->memb[0].op_done == CCL_MAX_OPS);
			/* Eager: W messages, so more than one operation, went out at once. */
			assert_int_equal(fake_sends(r), W);
			assert_int_equal(ccl_test(comm[r], req[0][r]), 0);
		}
		run(req[ROUNDS - 1]);
		for (unsigned i = 0; i < ROUNDS; i++)
			check_bufs(&b[i], i);
		close_all();
	}
}

static void psn_wraps(void **state)
{
	struct bufs b = make_bufs(10 * MTU / 4, false, 0);
	struct ccl_req req[N];

	(void)state;
	open_all(3, 0xfffffa, 0);
	assert_int_equal(fake_attr(1)->rq_psn, 0xfffffa);
	assert_int_equal(fake_attr(1)->sq_psn, 0xfffffa);
	issue(&b, req);
	assert_int_equal(comm[0]->memb[0].next_psn, 0x000005);
	run(req);
	check_bufs(&b, 0);
	close_all();
}

/* Operations of at most 5 packets, so 4 in whole messages. */
static void splitting(void **state)
{
	const size_t count = 11 * MTU / 4 + 1; /* 12 packets: 4 + 4 + 4 */
	struct bufs b = make_bufs(count, false, 4);
	struct ccl_info info;
	struct ccl_req req[N];

	(void)state;
	open_all(3, 0, 5);
	issue(&b, req);
	assert_int_equal(ccl_op_at(comm[0]->memb, 0)->ctrl.flags, 0);
	assert_int_equal(ccl_op_at(comm[0]->memb, 1)->ctrl.n, 4);
	assert_int_equal(ccl_op_at(comm[0]->memb, 2)->ctrl.flags, CCL_F_LAST);
	assert_int_equal(ccl_op_at(comm[0]->memb, 2)->ctrl.bytes, 3 * MTU + 4);
	assert_int_equal(ccl_op_at(comm[0]->memb, 2)->ctrl.op_seq, 2);
	assert_int_equal(ccl_op_at(comm[0]->memb, 2)->psn, 10);
	run(req);
	check_bufs(&b, 4);
	ccl_query(comm[0], &info);
	assert_int_equal(info.operations, 3);
	close_all();
}

static void barrier(void **state)
{
	struct ccl_req req[N];

	(void)state;
	open_all(3, 0, 0);
	for (unsigned r = 0; r < N - 1; r++)
		assert_int_equal(ccl_ibarrier(comm[r], &req[r]), 0);
	for (unsigned i = 0; i < 100; i++) {
		fake_step();
		ccl_progress(comm[i % N], 1);
	}
	for (unsigned r = 0; r < N - 1; r++)
		assert_int_equal(ccl_test(comm[r], req[r]), 0); /* one is missing */
	assert_int_equal(ccl_ibarrier(comm[N - 1], &req[N - 1]), 0);
	run(req);
	close_all();
}

/* A result alone does not make an operation finished: its request might have to be sent again. */
static void acknowledgement_is_needed(void **state)
{
	struct ccl_req req[N];

	(void)state;
	open_all(3, 0, 0);
	fake_hold_acks(1, true);
	for (unsigned r = 0; r < N; r++)
		assert_int_equal(ccl_ibarrier(comm[r], &req[r]), 0);
	while (fake_step())
		;
	assert_int_equal(fake_delivered(1), 1);
	assert_int_equal(ccl_progress(comm[0], 1), 2);
	assert_int_equal(ccl_progress(comm[1], 1), 1);
	assert_int_equal(ccl_test(comm[0], req[0]), 1);
	assert_int_equal(ccl_test(comm[1], req[1]), 0);
	fake_hold_acks(1, false);
	run(req);
	close_all();
}

static void attributes(void **state)
{
	const struct ibv_qp_attr *a;

	(void)state;
	open_all(0, 0x777, 0);
	a = fake_attr(2);
	assert_int_equal(a->qp_state, IBV_QPS_RTS);
	assert_int_equal(a->path_mtu, IBV_MTU_256);
	assert_int_equal(a->dest_qp_num, 0x1042);
	assert_int_equal(a->min_rnr_timer, 12);
	assert_int_equal(a->timeout, 14);
	assert_int_equal(a->retry_cnt, 7);
	assert_int_equal(a->rnr_retry, 7);
	assert_int_equal(a->ah_attr.is_global, 1);
	assert_int_equal(a->ah_attr.grh.sgid_index, 1);
	assert_int_equal(a->ah_attr.grh.dgid.raw[14], 0xff);
	assert_int_equal(ccl_qpn(comm[2]), 0x102);
	close_all();
}

static void refused(void **state)
{
	float x[4];
	struct ccl_req req;

	(void)state;
	open_all(0, 0, 0);
	assert_int_equal(
		ccl_iallreduce(comm[0], x, x, 4, REDUCE_BYTES, REDUCE_SUM, &req), -EOPNOTSUPP);
	assert_int_equal(
		ccl_iallreduce(comm[0], x, x, 4, REDUCE_FP32, REDUCE_NONE, &req), -EOPNOTSUPP);
	assert_int_equal(ccl_iallgather(comm[0], x, x + 3, 1, REDUCE_FP32, &req), -EOPNOTSUPP);
	assert_int_equal(
		ccl_iallreduce(comm[0], x, x + 1, 3, REDUCE_FP32, REDUCE_SUM, &req), -EINVAL);
	assert_int_equal(
		ccl_iallreduce(comm[0], NULL, x, 3, REDUCE_FP32, REDUCE_SUM, &req), -EINVAL);
	assert_int_equal(
		ccl_iallreduce(comm[0], x, x, UINT64_MAX / 2, REDUCE_FP32, REDUCE_SUM, &req),
		-EINVAL);
	assert_int_equal(ccl_test(comm[0], (struct ccl_req){0}), -EINVAL);
	assert_string_equal(ccl_error(comm[0]), "");
	assert_int_equal(fake_sends(0), 0);
	close_all();
}

static void bad_parameters(void **state)
{
	struct ccl_conn conn = {.rank = 0, .n_ranks = 1, .m = 1, .w = 1, .mtu = 1024};
	struct ccl_comm *c;
	char err[CCL_ERR_LEN];

	(void)state;
	fake_init(1, 1024, 0);
	conn.context = fake_context(0);
	assert_int_equal(ccl_comm_create_connected(&conn, &c, err), -EINVAL); /* m * w */
	conn.w = 2;
	conn.mtu = 1000;
	assert_int_equal(ccl_comm_create_connected(&conn, &c, err), -EINVAL);
	assert_non_null(strstr(err, "mtu 1000"));
	conn.mtu = 2048;
	assert_int_equal(ccl_comm_create_connected(&conn, &c, err), -EMSGSIZE);
	assert_non_null(strstr(err, "MTU 1024, the group needs 2048"));
	conn.mtu = 1024;
	fake_fail_rtr(0, ETIMEDOUT);
	assert_int_equal(ccl_comm_create_connected(&conn, &c, err), -ETIMEDOUT);
	assert_non_null(strstr(err, "ARP"));
	fake_fail_rtr_times(0, ETIMEDOUT, 3); /* an ARP packet may be lost */
	assert_int_equal(ccl_comm_create_connected(&conn, &c, err), 0);
	ccl_comm_free(c);
	fake_fini();
}

/* ---- failures ---- */

static void stays_failed(struct ccl_comm *c, struct ccl_req req, int error, const char *says)
{
	char first[CCL_ERR_LEN];
	float x[1] = {0};

	if (!strstr(ccl_error(c), says))
		fail_msg("\"%s\" lacks \"%s\"", ccl_error(c), says);
	strcpy(first, ccl_error(c));
	assert_int_equal(ccl_test(c, req), error);
	assert_int_equal(ccl_progress(c, 1), error);
	assert_int_equal(ccl_ibarrier(c, &req), error);
	assert_int_equal(ccl_allreduce(c, x, x, 1, REDUCE_FP32, REDUCE_SUM), error);
	assert_string_equal(ccl_error(c), first);
	assert_int_equal(fake_state(c->rank), IBV_QPS_ERR);
}

static void missing_rank_times_out(void **state)
{
	struct bufs b = make_bufs(10 * MSG / 4, false, 0);
	struct ccl_req req[N];

	(void)state;
	open_all(0, 0x100, 0);
	issue(&b, req);
	fake_hold(2, true);
	while (fake_step())
		;
	assert_int_equal(ccl_progress(comm[0], 5 * MS), W); /* acknowledgements */
	assert_int_equal(ccl_progress(comm[0], 50 * MS), 0);
	assert_int_equal(ccl_progress(comm[0], 100 * MS), 0);
	assert_int_equal(ccl_progress(comm[0], 105 * MS), -ETIMEDOUT);
	stays_failed(comm[0], req[0], -ETIMEDOUT,
		"rank 0, switch 10.77.255.1 (QPN 0x1040): nothing came for 100 ms; waiting for the "
		"result of PSN 0x000100 (operation 0, control, message 0 of 10)");
	/* Who did not look for long has seen nothing: the wait begins anew. */
	assert_true(ccl_progress(comm[1], 5 * MS) >= 0);
	assert_int_equal(ccl_progress(comm[1], 1000 * MS), 0);
	assert_int_equal(ccl_progress(comm[1], 1049 * MS), 0);
	assert_int_equal(ccl_progress(comm[1], 1098 * MS), 0);
	assert_int_equal(ccl_progress(comm[1], 1100 * MS), -ETIMEDOUT);
	close_all();
	for (unsigned r = 0; r < N; r++) {
		free(b.send[r]);
		free(b.recv[r]);
	}
}

static void idle_does_not_time_out(void **state)
{
	struct ccl_req req[N];

	(void)state;
	open_all(0, 0, 0);
	for (uint64_t t = 0; t < 1000; t += 40)
		assert_int_equal(ccl_progress(comm[0], t * MS), 0);
	for (unsigned r = 0; r < N; r++)
		assert_int_equal(ccl_ibarrier(comm[r], &req[r]), 0);
	assert_true(ccl_progress(comm[0], 1000 * MS) >= 0);
	assert_true(ccl_progress(comm[0], 1040 * MS) >= 0);
	run(req);
	close_all();
}

static void completion_errors(void **state)
{
	static const struct {
		enum ibv_wc_status status;
		int error;
		const char *says;
	} t[] = {
		{IBV_WC_RETRY_EXC_ERR, -ETIMEDOUT,
			"rank 1, switch 10.77.255.1 (QPN 0x1041): no answer: transport retry "
			"counter "
			"exceeded; waiting for the"},
		{IBV_WC_REM_OP_ERR, -EREMOTEIO, "the switch has failed the group"},
		{IBV_WC_WR_FLUSH_ERR, -ECONNABORTED, "left its working state"},
		{IBV_WC_LOC_PROT_ERR, -EIO, "vendor error"},
	};
	struct ccl_req req;

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		open_all(0, 0, 0);
		assert_int_equal(ccl_ibarrier(comm[1], &req), 0);
		fake_fail_send(1, t[i].status);
		assert_int_equal(ccl_progress(comm[1], 1), t[i].error);
		stays_failed(comm[1], req, t[i].error, t[i].says);
		close_all();
	}
}

static void wrong_results(void **state)
{
	static const struct {
		unsigned msg, byte; /* byte 0xff: shorten */
		const char *says;
	} t[] = {
		{0, 0, "the result of control message PSN 0x000000 is not one"}, /* magic */
		{0, 8, "the ranks disagree on operation 0: other size in bytes"},
		{0, 24, "the ranks disagree on operation 0: other tag"},
		{2, 0xff, "the result at PSN 0x000003 has 508 bytes instead of 512"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct bufs b = make_bufs(4 * MSG / 4, false, 0);
		struct ccl_req req[N];
		int rc = 0;

		open_all(0, 0, 0);
		if (t[i].byte == 0xff)
			fake_shorten(3, t[i].msg);
		else
			fake_flip(3, t[i].msg, t[i].byte);
		issue(&b, req);
		for (unsigned turn = 0; rc >= 0 && turn < 10000; turn++) {
			fake_step();
			for (unsigned r = 0; r < N - 1; r++)
				ccl_progress(comm[r], 1);
			rc = ccl_progress(comm[3], 1);
		}
		stays_failed(comm[3], req[3], -EPROTO, t[i].says);
		close_all();
		for (unsigned r = 0; r < N; r++) {
			free(b.send[r]);
			free(b.recv[r]);
		}
	}
}

static void done_before_the_failure_stays_done(void **state)
{
	struct ccl_req req[N], late;

	(void)state;
	open_all(0, 0, 0);
	for (unsigned r = 0; r < N; r++)
		assert_int_equal(ccl_ibarrier(comm[r], &req[r]), 0);
	run(req);
	assert_int_equal(ccl_ibarrier(comm[0], &late), 0);
	fake_fail_send(0, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(ccl_progress(comm[0], 1), -ETIMEDOUT);
	assert_int_equal(ccl_test(comm[0], req[0]), 1);
	assert_int_equal(ccl_test(comm[0], late), -ETIMEDOUT);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_staged),
		cmocka_unit_test(fp32),
		cmocka_unit_test(registered),
		cmocka_unit_test(partly_registered),
		cmocka_unit_test(pipelining),
		cmocka_unit_test(psn_wraps),
		cmocka_unit_test(splitting),
		cmocka_unit_test(barrier),
		cmocka_unit_test(acknowledgement_is_needed),
		cmocka_unit_test(attributes),
		cmocka_unit_test(refused),
		cmocka_unit_test(bad_parameters),
		cmocka_unit_test(missing_rank_times_out),
		cmocka_unit_test(idle_does_not_time_out),
		cmocka_unit_test(completion_errors),
		cmocka_unit_test(wrong_results),
		cmocka_unit_test(done_before_the_failure_stays_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
