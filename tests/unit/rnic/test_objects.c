/* SPDX-License-Identifier: BSD-3-Clause */
/* Device, domains, regions, queue pair numbers, timers, threads. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rnic/ah.h"
#include "lib/rnic/mr.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/srq.h"
#include "lib/rnic/timer.h"
#include "tests/unit/rnic/net.h"

static struct rnic_config good_config(void)
{
	struct rnic_config config = {.port[0].mac = {2, 0, 0, 0, 0, 1},
		.port[0].n_ip = 1,
		.port[0].mtu = 1500,
		.seed = 7};

	config.port[0].ip[0] = wire_ip_from4(0x0a000001);
	return config;
}

static void refuse_config(const struct rnic_config *config)
{
	struct rnic *rnic = NULL;

	assert_int_equal(-EINVAL, rnic_create(config, &rnic));
	assert_null(rnic);
}

static void test_config(void **state)
{
	struct rnic_config config = good_config();
	struct rnic *rnic;

	(void)state;
	config.port[0].mac[0] = 3;
	refuse_config(&config);
	memset(config.port[0].mac, 0, 6);
	refuse_config(&config);
	config = good_config();
	config.port[0].n_ip = RNIC_MAX_GID;
	refuse_config(&config);
	config.port[0].n_ip = 2; /* the second is zero */
	refuse_config(&config);
	config.port[0].ip[1] = config.port[0].ip[0];
	refuse_config(&config);
	config = good_config();
	config.port[0].mtu = 339;
	refuse_config(&config);
	config.port[0].mtu = 1 << 20;
	refuse_config(&config);
	config = good_config();
	config.max_qp = (1 << 16) + 1;
	refuse_config(&config);
	config = good_config();
	config.max_mr = (1 << 20) + 1;
	refuse_config(&config);
	config = good_config();
	config.window = (1 << 16) + 1;
	refuse_config(&config);
	config = good_config();
	config.quantum = 256;
	refuse_config(&config);
	config = good_config();
	config.qpn_limit = 1024; /* for 1024 QPs and the numbers that are not given */
	refuse_config(&config);
	config.qpn_limit = (1 << 24) + 1;
	refuse_config(&config);
	config.qpn_limit = 0x1000;
	assert_int_equal(0, rnic_create(&config, &rnic));
	rnic_destroy(rnic);
}

/* One of each kind, all of them in use by others. */
static void fill(struct rnic *rnic)
{
	struct ibv_srq_attr srq_attr = {.max_wr = 4, .max_sge = 1};
	struct ibv_ah_attr ah_attr = {.is_global = 1};
	struct wire_ip all = wire_ip_from4(0xe0000001);
	static uint8_t memory[64];
	struct rnic_qp_init init = {.type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1}};
	struct rnic_srq *srq;
	struct rnic_mr *mr;
	struct rnic_qp *qp;
	struct rnic_ah *ah;

	assert_int_equal(0, rnic_pd_alloc(rnic, &init.pd));
	assert_int_equal(0, rnic_cq_create(rnic, 4, NULL, &init.send_cq));
	init.recv_cq = init.send_cq;
	assert_int_equal(0, rnic_srq_create(init.pd, &srq_attr, NULL, &srq));
	assert_int_equal(0, rnic_qp_create(rnic, &init, &qp));
	init.srq = srq;
	assert_int_equal(0, rnic_qp_create(rnic, &init, &qp));
	assert_int_equal(
		0, rnic_mr_reg(init.pd, memory, sizeof(memory), 0, IBV_ACCESS_LOCAL_WRITE, &mr));
	assert_int_equal(0, rnic_mw_alloc(init.pd, IBV_MW_TYPE_2, &mr));
	memcpy(ah_attr.grh.dgid.raw, all.b, sizeof(all.b));
	ah_attr.grh.sgid_index = 1; /* the IPv4 address */
	ah_attr.port_num = 1;
	assert_int_equal(0, rnic_ah_create(init.pd, &ah_attr, 0, &ah));
	assert_int_equal(-EBUSY, rnic_pd_free(init.pd));
}

static void test_destroy_frees_all(void **state)
{
	struct rnic_config config = good_config();
	struct rnic *rnic;
	size_t before;

	(void)state;
	/* Some times for what the C library keeps at hand. Sanitizers' allocator counts nothing
	 * here, and tells of what is left by itself. */
	for (unsigned i = 0; i < 20; i++) {
		before = mallinfo2().uordblks;
		assert_int_equal(0, rnic_create(&config, &rnic));
		fill(rnic);
		rnic_destroy(rnic);
	}
	assert_int_equal(before, mallinfo2().uordblks);
}

static void test_device(void **state)
{
	static const struct {
		unsigned mtu;
		enum ibv_mtu active;
	} mtus[] = {{340, IBV_MTU_256}, {595, IBV_MTU_256}, {596, IBV_MTU_512}, {1107, IBV_MTU_512},
		{1108, IBV_MTU_1024}, {1500, IBV_MTU_1024}, {2132, IBV_MTU_2048},
		{4179, IBV_MTU_2048}, {4180, IBV_MTU_4096}, {9000, IBV_MTU_4096}};
	struct rnic_config config = good_config();
	struct ibv_device_attr attr;
	struct rnic *rnic;
	struct wire_ip ip;
	char text[WIRE_IP_STRLEN];

	(void)state;
	for (unsigned i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		config.port[0].mtu = mtus[i].mtu;
		assert_int_equal(0, rnic_create(&config, &rnic));
		assert_int_equal(mtus[i].active, rnic_active_mtu(rnic, 0));
		/* The largest packet there is: an IPv6 WRITE ONLY with Immediate. */
		assert_true(
			roce_mtu_bytes(mtus[i].active) + 40 + 8 + 12 + 16 + 4 + 4 <= mtus[i].mtu);
		rnic_destroy(rnic);
	}
	assert_int_equal(0, rnic_create(&config, &rnic));
	assert_int_equal(2, rnic_gid_count(rnic, 0));
	assert_int_equal(0, rnic_gid(rnic, 0, 0, &ip));
	assert_string_equal("fe80::ff:fe00:1", wire_ip_format(&ip, text, sizeof(text)));
	assert_int_equal(0, rnic_gid(rnic, 0, 1, &ip));
	assert_true(wire_ip_eq(&ip, &config.port[0].ip[0]));
	assert_int_equal(-EINVAL, rnic_gid(rnic, 0, 2, &ip));
	rnic_query_device(rnic, &attr);
	assert_int_equal(1024, attr.max_qp);
	assert_int_equal(RNIC_MAX_RD_ATOMIC, attr.max_qp_rd_atom);
	assert_int_equal(IBV_ATOMIC_HCA, attr.atomic_cap);
	assert_memory_equal("\0\0\0\xff\xfe\0\0\1", &attr.node_guid, 8);
	assert_int_equal(UINT64_MAX, rnic_deadline(rnic));
	assert_false(rnic_has_work(rnic));
	rnic_destroy(rnic);
}

/* ---- regions ---- */

static void test_mr(void **state)
{
	struct rnic_config config = good_config();
	static uint8_t mem[4096];
	const uint64_t va = 0x7fffffff0000, top = UINT64_MAX;
	struct rnic *rnic;
	struct rnic_pd *pd, *other;
	struct rnic_mr *mr, *edge;
	uint32_t key;

	(void)state;
	assert_int_equal(0, rnic_create(&config, &rnic));
	assert_int_equal(0, rnic_pd_alloc(rnic, &pd));
	assert_int_equal(0, rnic_pd_alloc(rnic, &other));
	assert_int_equal(-EINVAL, rnic_mr_reg(pd, mem, 4096, 0, IBV_ACCESS_REMOTE_WRITE, &mr));
	assert_int_equal(-EINVAL, rnic_mr_reg(pd, mem, 4096, 0, IBV_ACCESS_REMOTE_ATOMIC, &mr));
	assert_int_equal(-EINVAL, rnic_mr_reg(pd, mem, 4096, top - 4095, 0, &mr));
	assert_int_equal(-EINVAL, rnic_mr_reg(pd, mem, top, 0, 0, &mr));
	assert_int_equal(-EOPNOTSUPP, rnic_mr_reg(pd, mem, 4096, 0, IBV_ACCESS_ON_DEMAND, &mr));
	assert_int_equal(0, rnic_mr_reg(pd, mem, 4096, va, IBV_ACCESS_LOCAL_WRITE, &mr));
	assert_int_equal(0, rnic_mr_reg(pd, mem, 4096, top - 4096, 0, &edge));
	key = rnic_mr_lkey(mr);
	assert_int_equal(key, rnic_mr_rkey(mr));

	assert_ptr_equal(mem, mr_translate(pd, key, va, 4096, 0));
	assert_ptr_equal(mem + 4095, mr_translate(pd, key, va + 4095, 1, 0));
	assert_null(mr_translate(pd, key, va + 4095, 2, 0));
	assert_null(mr_translate(pd, key, va + 4096, 1, 0));
	assert_null(mr_translate(pd, key, va - 1, 1, 0));
	assert_null(mr_translate(pd, key, va - 1, 2, 0));
	assert_null(mr_translate(pd, key, va, 4097, 0));
	assert_null(mr_translate(pd, key, va + 1, top, 0));
	assert_null(mr_translate(pd, key, va + 2, top - 1, 0));
	assert_null(mr_translate(pd, key, 0, top, 0));
	assert_null(mr_translate(other, key, va, 1, 0));
	assert_null(mr_translate(pd, key ^ 0x80000000, va, 1, 0));
	assert_null(mr_translate(pd, key ^ 1, va, 1, 0));
	assert_non_null(mr_translate(pd, key, va, 1, IBV_ACCESS_LOCAL_WRITE));
	assert_null(mr_translate(pd, key, va, 1, IBV_ACCESS_REMOTE_WRITE));
	assert_ptr_equal(mem + 4095, mr_translate(pd, rnic_mr_lkey(edge), top - 1, 1, 0));
	assert_null(mr_translate(pd, rnic_mr_lkey(edge), top - 1, 2, 0));

	assert_int_equal(-EBUSY, rnic_pd_free(pd));
	assert_int_equal(0, rnic_mr_dereg(mr));
	assert_null(mr_translate(pd, key, va, 1, 0));
	assert_int_equal(-EBUSY, rnic_pd_free(pd));
	assert_int_equal(0, rnic_mr_dereg(edge));
	assert_int_equal(0, rnic_pd_free(pd));
	assert_int_equal(0, rnic_pd_free(other));
	rnic_destroy(rnic);
}

/* Any order of registering and giving back up to the limit: keys of living regions are distinct. */
static void test_mr_limit(void **state)
{
	struct rnic_config config = good_config();
	struct rnic_mr *mr[37] = {0}, *one;
	struct rnic *rnic;
	struct rnic_pd *pd;
	unsigned n = 0, seed = 1;

	(void)state;
	config.max_mr = 37;
	config.max_pd = 1;
	assert_int_equal(0, rnic_create(&config, &rnic));
	assert_int_equal(0, rnic_pd_alloc(rnic, &pd));
	assert_int_equal(-ENOMEM, rnic_pd_alloc(rnic, &pd));
	for (unsigned step = 0; step < 20000; step++) {
		unsigned i = (seed = seed * 1103515245 + 12345) / 65536 % 37;

		if (mr[i] != NULL) {
			assert_int_equal(0, rnic_mr_dereg(mr[i]));
			mr[i] = NULL;
			n--;
		} else {
			assert_int_equal(0, rnic_mr_reg(pd, &config, 8, i * 100, 0, &mr[i]));
			n++;
		}
		if (n == 37)
			assert_int_equal(-ENOMEM, rnic_mr_reg(pd, &config, 8, 0, 0, &one));
		for (unsigned j = 0; j < 37; j++) {
			if (mr[j] != NULL)
				assert_ptr_equal((uint8_t *)&config + 1,
					mr_translate(pd, rnic_mr_lkey(mr[j]), j * 100 + 1, 1, 0));
		}
	}
	for (unsigned i = 0; i < 37; i++) {
		if (mr[i] != NULL)
			assert_int_equal(0, rnic_mr_dereg(mr[i]));
	}
	assert_int_equal(0, rnic_pd_free(pd));
	rnic_destroy(rnic);
}

/* ---- queue pairs ---- */

static struct rnic_qp_init small_qp(const struct end *end)
{
	return (struct rnic_qp_init){.type = IBV_QPT_RC,
		.pd = end->pd,
		.send_cq = end->scq,
		.recv_cq = end->rcq,
		.cap = {3, 5, 1, 2, 0}};
}

static void test_qp_create(void **state)
{
	static struct net net;
	struct rnic_qp_init init;
	struct rnic_qp *qp;
	struct rnic *rnic;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_open(&net, &(struct net_options){0});
	rnic = net.end[0].rnic;
	init = small_qp(&net.end[0]);
	init.type = IBV_QPT_RAW_PACKET;
	assert_int_equal(-EOPNOTSUPP, rnic_qp_create(rnic, &init, &qp));
	init = small_qp(&net.end[0]);
	init.pd = NULL;
	assert_int_equal(-EINVAL, rnic_qp_create(rnic, &init, &qp));
	init = small_qp(&net.end[0]);
	init.send_cq = net.end[1].scq; /* of another device */
	assert_int_equal(-EINVAL, rnic_qp_create(rnic, &init, &qp));
	init = small_qp(&net.end[0]);
	init.cap.max_send_wr = 20000;
	assert_int_equal(-EINVAL, rnic_qp_create(rnic, &init, &qp));
	init = small_qp(&net.end[0]);
	init.cap.max_recv_sge = RNIC_MAX_SGE + 1;
	assert_int_equal(-EINVAL, rnic_qp_create(rnic, &init, &qp));
	init = small_qp(&net.end[0]);
	init.cap.max_inline_data = RNIC_MAX_INLINE + 1;
	assert_int_equal(-EINVAL, rnic_qp_create(rnic, &init, &qp));
	init = small_qp(&net.end[0]);
	assert_int_equal(0, rnic_qp_create(rnic, &init, &qp));
	assert_int_equal(4, init.cap.max_send_wr);
	assert_int_equal(8, init.cap.max_recv_wr);
	assert_int_equal(-EBUSY, rnic_cq_destroy(net.end[0].scq));
	assert_int_equal(-EBUSY, rnic_cq_destroy(net.end[0].rcq));
	assert_int_equal(0, rnic_qp_destroy(qp));
	net_close(&net);
}

/* A number rests for as long as there are others, and is found only while it is valid. */
static void test_qp_numbers(void **state)
{
	enum { MAX = 20, N = 500 };
	struct rnic_config config = good_config();
	struct rnic_qp *qp[MAX], *more;
	struct rnic_qp_init init;
	struct end end = {0};
	uint32_t qpn[N];

	(void)state;
	config.max_qp = MAX;
	config.qpn_limit = 0x1000;
	assert_int_equal(0, rnic_create(&config, &end.rnic));
	assert_int_equal(0, rnic_pd_alloc(end.rnic, &end.pd));
	assert_int_equal(0, rnic_cq_create(end.rnic, 16, &end, &end.scq));
	end.rcq = end.scq;
	init = small_qp(&end);
	for (unsigned i = 0; i < MAX; i++)
		assert_int_equal(0, rnic_qp_create(end.rnic, &init, &qp[i]));
	assert_int_equal(-ENOMEM, rnic_qp_create(end.rnic, &init, &more));
	for (unsigned i = 0; i < N; i++) {
		unsigned k = i % MAX;

		qpn[i] = rnic_qp_num(qp[k]);
		assert_true(qpn[i] > 1 && qpn[i] < 0x1000);
		assert_ptr_equal(qp[k], rnic_qp_find(end.rnic, qpn[i]));
		assert_int_equal(0, rnic_qp_destroy(qp[k]));
		assert_null(rnic_qp_find(end.rnic, qpn[i]));
		assert_int_equal(0, rnic_qp_create(end.rnic, &init, &qp[k]));
		assert_null(rnic_qp_find(end.rnic, qpn[i]));
		for (unsigned j = i > 100 ? i - 100 : 0; j < i; j++)
			assert_int_not_equal(qpn[j], qpn[i]);
	}
	assert_null(rnic_qp_find(end.rnic, 0));
	assert_null(rnic_qp_find(end.rnic, 1));
	assert_null(rnic_qp_find(end.rnic, 0xffffff));
	for (unsigned i = 0; i < MAX; i++)
		assert_int_equal(0, rnic_qp_destroy(qp[i]));
	assert_int_equal(0, rnic_cq_destroy(end.scq));
	assert_int_equal(0, rnic_pd_free(end.pd));
	rnic_destroy(end.rnic);
}

/* ---- timers ---- */

static void test_timers(void **state)
{
	enum { N = 200 };
	struct timer timer[N] = {{0}};
	uint64_t want[N], now = 0;
	struct timers timers = {calloc(N, sizeof(struct timer_slot)), 0};
	unsigned seed = 5;

	(void)state;
	for (unsigned i = 0; i < N; i++)
		timer_stop(&timer[i]);
	for (unsigned i = 0; i < N; i++)
		want[i] = UINT64_MAX;
	for (unsigned step = 0; step < 50000; step++) {
		unsigned i = (seed = seed * 1103515245 + 12345) / 65536 % N;
		unsigned what = (seed = seed * 1103515245 + 12345) / 65536 % 8;
		struct timer *t;

		if (what < 5) {
			want[i] = now + 1 + (seed / 7919) % 500;
			timer_set(&timers, &timer[i], want[i]);
		} else if (what == 5) {
			want[i] = UINT64_MAX;
			timer_stop(&timer[i]);
		} else if (what == 6) {
			want[i] = UINT64_MAX;
			timer_remove(&timers, &timer[i]);
			assert_int_equal(0, timer[i].pos);
		} else {
			now += 3;
			while ((t = timer_expired(&timers, now)) != NULL) {
				assert_true(want[t - timer] <= now);
				want[t - timer] = UINT64_MAX;
			}
			for (unsigned j = 0; j < N; j++)
				assert_true(want[j] > now);
		}
		for (unsigned j = 0; j < timers.n; j++) {
			assert_ptr_equal(
				&timers.slot[j], &timers.slot[timers.slot[j].timer->pos - 1]);
			assert_true(
				timers.slot[j].key >= timers.slot[j == 0 ? 0 : (j - 1) / 2].key);
		}
	}
	free(timers.slot);
}

/* ---- several threads ---- */

enum { N_MESSAGES = 5000 };

struct poster {
	struct net *net;
	int i;
	const char *wrong;
	atomic_bool done;
};

static const char *post_all(struct end *end, bool send)
{
	unsigned posted = 0, completed = 0;
	struct ibv_wc wc[16];

	while (completed < N_MESSAGES) {
		int n;

		while (posted < N_MESSAGES && posted < completed + 64) {
			size_t at = posted % 64 * 64;
			int err = send ? end_send(end, IBV_WR_SEND, posted, at, 64, 0, 0)
				       : end_recv(end, posted, at, 64);

			if (err == -ENOMEM)
				break;
			if (err != 0)
				return "post";
			posted++;
		}
		n = rnic_cq_poll(send ? end->scq : end->rcq, 16, wc);
		if (n == 0)
			sched_yield();
		for (int j = 0; j < n; j++) {
			if (wc[j].status != IBV_WC_SUCCESS || wc[j].wr_id != completed++)
				return "completion";
		}
	}
	return NULL;
}

/* Posts and polls without being the owner. */
static void *poster_main(void *arg)
{
	struct poster *p = arg;

	p->wrong = post_all(&p->net->end[p->i], p->i == 0);
	atomic_store(&p->done, true);
	return NULL;
}

static void test_threads(void **state)
{
	static struct net net;
	pthread_t thread[2];
	struct poster poster[2] = {0};

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){0});
	for (int i = 0; i < 2; i++) {
		poster[i].net = &net;
		poster[i].i = i;
		assert_int_equal(0, pthread_create(&thread[i], NULL, poster_main, &poster[i]));
	}
	while (!atomic_load(&poster[0].done) || !atomic_load(&poster[1].done)) {
		struct rnic_frame frame;
		uint8_t bytes[NET_FRAME];

		for (int i = 0; i < 2; i++) {
			while (rnic_tx(net.end[i].rnic, RNIC_ALL_PORTS, &frame, net.now)) {
				int len = rnic_frame_flatten(&frame, bytes, sizeof(bytes));

				rnic_rx(net.end[!i].rnic, 0, bytes, (size_t)len, net.now);
			}
		}
		net.now += 1000;
		rnic_timer(net.end[0].rnic, net.now);
		rnic_timer(net.end[1].rnic, net.now);
	}
	for (int i = 0; i < 2; i++) {
		pthread_join(thread[i], NULL);
		assert_null(poster[i].wrong);
	}
	net_close(&net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_config),
		cmocka_unit_test(test_destroy_frees_all),
		cmocka_unit_test(test_device),
		cmocka_unit_test(test_mr),
		cmocka_unit_test(test_mr_limit),
		cmocka_unit_test(test_qp_create),
		cmocka_unit_test(test_qp_numbers),
		cmocka_unit_test(test_timers),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
