/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that the program writes while the device sends it: what leaves is what was there at some
 * moment, and its ICRC is of what leaves. And memory that it reads while the device writes it: the
 * last word comes last. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/rnic/net.h"

/* The program writes to all of what is sent. */
static void write_all(struct net *net)
{
	for (int i = 0; i < 2; i++) {
		uint64_t *word = (uint64_t *)net->end[i].buf;

		for (unsigned k = 0; k < 4096 / sizeof(*word); k++)
			word[k] += 0x0101010101010101;
	}
}

static void start(struct net *net, const struct net_options *options)
{
	memset(net, 0, sizeof(*net));
	net_connect(net, options);
	net->before_port = write_all;
}

/* Nothing was refused, nothing came twice. */
static void check_and_stop(struct net *net)
{
	struct rnic_qp_stats stats;

	for (int i = 0; i < 2; i++) {
		rnic_qp_stats(net->end[i].qp, &stats);
		assert_int_equal(0, stats.retransmits);
		assert_int_equal(0, stats.timeouts);
		assert_int_equal(0, net_drops(net->end[i].rnic));
	}
	net_close(net);
}

static void test_requests(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND};
	static const uint32_t lens[] = {1, 6, 8, 1024, 1027, 4000};
	static struct net net;

	(void)state;
	start(&net, &(struct net_options){0});
	for (unsigned k = 0; k < 3; k++) {
		for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
			struct end *b = &net.end[1];

			assert_int_equal(0, end_recv(b, i, 8192, 4096));
			assert_int_equal(0, end_send(&net.end[0], opcodes[k], i, 0, lens[i],
						    (uintptr_t)b->buf, rnic_mr_rkey(b->mr)));
			net_run(&net, FOREVER);
			assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
		}
	}
	check_and_stop(&net);
}

static void test_unreliable(void **state)
{
	static struct net net;

	(void)state;
	start(&net, &(struct net_options){.type = IBV_QPT_UC});
	assert_int_equal(0, end_recv(&net.end[1], 1, 8192, 4096));
	assert_int_equal(0, end_send(&net.end[0], IBV_WR_SEND, 1, 0, 2000, 0, 0));
	net_run(&net, FOREVER);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
	assert_int_equal(2000, end_wc(net.end[1].rcq).byte_len);
	check_and_stop(&net);
}

static void test_selective(void **state)
{
	static struct net net;
	struct end *b = &net.end[1];

	(void)state;
	start(&net, &(struct net_options){.selective = true});
	assert_int_equal(0, end_send(&net.end[0], IBV_WR_RDMA_WRITE, 1, 0, 4000, (uintptr_t)b->buf,
				    rnic_mr_rkey(b->mr)));
	net_run(&net, FOREVER);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(net.end[0].scq).status);
	check_and_stop(&net);
}

/* ---- a counter that another thread keeps counting ---- */

static atomic_bool stop;

static void *counting(void *arg)
{
	_Atomic uint64_t *word = arg;

	while (!atomic_load_explicit(&stop, memory_order_relaxed))
		atomic_fetch_add_explicit(word, 1, memory_order_relaxed);
	return NULL;
}

/* It has gone on since the frame was made. */
static void until_it_counts(struct net *net)
{
	const _Atomic uint64_t *word = (_Atomic uint64_t *)net->end[1].buf;
	const uint64_t was = atomic_load_explicit(word, memory_order_relaxed);

	while (atomic_load_explicit(word, memory_order_relaxed) == was)
		sched_yield();
}

/* As fast as it can, under READs of it. */
static void test_counter(void **state)
{
	static struct net net;
	struct end *a = &net.end[0], *b = &net.end[1];
	uint64_t last = 0, now;
	pthread_t thread;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){0});
	net.before_port = until_it_counts;
	memset(b->buf, 0, 8);
	atomic_store(&stop, false);
	assert_int_equal(0, pthread_create(&thread, NULL, counting, b->buf));
	for (unsigned i = 0; i < 5000; i++) {
		assert_int_equal(0, end_send(a, IBV_WR_RDMA_READ, i, 64, 8, (uintptr_t)b->buf,
					    rnic_mr_rkey(b->mr)));
		net_run(&net, FOREVER);
		assert_int_equal(IBV_WC_SUCCESS, end_wc(a->scq).status);
		memcpy(&now, a->buf + 64, sizeof(now));
		assert_true(now > last);
		last = now;
	}
	atomic_store(&stop, true);
	assert_int_equal(0, pthread_join(thread, NULL));
	check_and_stop(&net);
}

/* ---- memory that the program reads while it is written ---- */

/* Somebody who polls the last word of a message: a page that must not be written to begins there,
 * and who writes to it stops until we have looked. */
static struct poller {
	uint8_t *map, *word, *from; /* the message lies from `from` up to behind `word` */
	size_t page;
	const uint8_t *sent;
	volatile sig_atomic_t looked, early;
} poller;

static void look(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	if ((uint8_t *)info->si_addr < poller.word || poller.looked)
		_exit(1);
	poller.looked = 1;
	poller.early = memcmp(poller.from, poller.sent, (size_t)(poller.word - poller.from)) != 0;
	mprotect(poller.word, poller.page, PROT_READ | PROT_WRITE);
}

/* Of `len` bytes the last one or the last eight come when all others are there. */
static void write_polled(struct net *net, struct rnic_mr *mr, uint32_t len, uint32_t last)
{
	poller.from = poller.word + last - len;
	poller.looked = poller.early = 0;
	memset(poller.map, 0xee, 5 * poller.page);
	assert_int_equal(0, mprotect(poller.word, poller.page, PROT_READ));
	assert_int_equal(0, end_send(&net->end[0], IBV_WR_RDMA_WRITE, 1, 0, len,
				    (uintptr_t)poller.from, rnic_mr_rkey(mr)));
	net_run(net, FOREVER);
	assert_int_equal(IBV_WC_SUCCESS, end_wc(net->end[0].scq).status);
	assert_true(poller.looked);
	if (poller.early)
		fail_msg("%u bytes: the last %u were written before others", len, last);
	assert_memory_equal(poller.from, net->end[0].buf, len);
}

static void test_last_word(void **state)
{
	static const uint32_t lens[] = {
		9, 16, 17, 31, 33, 64, 100, 255, 256, 300, 1024, 2047, 4000, 4096};
	static struct net net;
	const struct sigaction ours = {.sa_sigaction = look, .sa_flags = SA_SIGINFO};
	struct sigaction before;
	struct rnic_mr *mr;

	(void)state;
	memset(&net, 0, sizeof(net));
	net_connect(&net, &(struct net_options){.mtu = IBV_MTU_4096});
	poller.page = (size_t)sysconf(_SC_PAGESIZE);
	poller.map = mmap(
		NULL, 5 * poller.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(poller.map, MAP_FAILED);
	poller.word = poller.map + 4 * poller.page;
	poller.sent = net.end[0].buf;
	for (unsigned i = 0; i < 4096; i++)
		net.end[0].buf[i] = (uint8_t)(i % 199);
	assert_int_equal(0, rnic_mr_reg(net.end[1].pd, poller.map, 5 * poller.page,
				    (uintptr_t)poller.map, NET_ALL_ACCESS, &mr));
	assert_int_equal(0, sigaction(SIGSEGV, &ours, &before));
	for (unsigned i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		write_polled(&net, mr, lens[i], 1);
		write_polled(&net, mr, lens[i], 4);
		write_polled(&net, mr, lens[i], 8);
	}
	assert_int_equal(0, sigaction(SIGSEGV, &before, NULL));
	assert_int_equal(0, rnic_mr_dereg(mr));
	net_close(&net);
	munmap(poller.map, 5 * poller.page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests),
		cmocka_unit_test(test_unreliable),
		cmocka_unit_test(test_selective),
		cmocka_unit_test(test_counter),
		cmocka_unit_test(test_last_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
