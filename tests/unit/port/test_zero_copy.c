/* SPDX-License-Identifier: BSD-3-Clause */
/* A zero-copy memif whose peer is slow: packets in several buffers meet a ring that is almost full.
 * Every packet that was taken arrives once, in order, as it was; every buffer comes back once. */
#include <rte_mbuf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "lib/port/config.h"

enum { MTU = 1500, BURST = 32, ROUNDS = 3000, TRIES = 2000, HEAD = 60, TAIL = 4, LEN_MAX = 1000 };

static char dir[] = "/tmp/port-test-XXXXXX";
static struct rte_mempool *pool;
static struct port server, client;

static void open_role(const char *role, struct port *port)
{
	struct port_config config;
	char path[64], err[PORT_ERR_LEN] = "";
	json_t *json;

	snprintf(path, sizeof(path), "%s/memif.sock", dir);
	json = json_pack(
		"{ss ss ss ss}", "name", role, "type", "memif", "socket", path, "role", role);
	assert_non_null(json);
	assert_int_equal(port_config_parse(json, &config, err), 0);
	json_decref(json);
	if (port_open(&config, pool, 2000, port, err) != 0)
		fail_msg("%s", err);
}

static struct rte_mbuf *piece(unsigned len, uint32_t number)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	uint8_t *data;

	assert_non_null(m);
	data = (uint8_t *)rte_pktmbuf_append(m, (uint16_t)len);
	memset(data, (int)(number & 0xff), len);
	return m;
}

static unsigned middle_len(uint32_t number)
{
	return 1 + number * 7919 % LEN_MAX;
}

/* One in four lies in one buffer, as an acknowledgement does, the others in three. */
static bool in_one(uint32_t number)
{
	return number * 2654435761u >> 30 == 0;
}

static struct rte_mbuf *packet(uint32_t number)
{
	struct rte_mbuf *m = piece(HEAD, number);

	memcpy(rte_pktmbuf_mtod(m, void *), &number, sizeof(number));
	if (in_one(number))
		return m;
	assert_int_equal(rte_pktmbuf_chain(m, piece(middle_len(number), number)), 0);
	assert_int_equal(rte_pktmbuf_chain(m, piece(TAIL, number)), 0);
	return m;
}

static void check(struct rte_mbuf *m, uint32_t number)
{
	const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);
	const unsigned len = HEAD + (in_one(number) ? 0 : middle_len(number) + TAIL);
	uint32_t got;

	memcpy(&got, data, sizeof(got));
	assert_int_equal(got, number);
	assert_int_equal(m->pkt_len, len);
	assert_int_equal(m->nb_segs, 1);
	for (unsigned i = sizeof(got); i < len; i++)
		if (data[i] != (number & 0xff))
			fail_msg("packet %u, byte %u: %u", number, i, data[i]);
	rte_pktmbuf_free(m);
}

/* Up to max. */
static unsigned receive(unsigned max, uint32_t *next)
{
	struct rte_mbuf *m[BURST];
	unsigned n = port_rx_burst(&server, m, RTE_MIN(max, (unsigned)BURST));

	for (unsigned i = 0; i < n; i++)
		check(m[i], (*next)++);
	return n;
}

static unsigned in_use(void)
{
	port_tx_reap(&client);
	return rte_mempool_in_use_count(pool);
}

static void a_full_ring(void **state)
{
	struct rte_mbuf *m[BURST];
	unsigned n = 0, sent, full = 0, before = in_use();
	uint32_t made = 0, got = 0, draw = 1;

	(void)state;
	assert_true(client.multi_seg && client.config.zero_copy);
	for (unsigned round = 0; round < ROUNDS; round++) {
		while (n < BURST)
			m[n++] = packet(made++);
		sent = port_tx_burst(&client, m, n);
		full += sent < n;
		memmove(m, m + sent, (n - sent) * sizeof(*m));
		n -= sent;
		draw = draw * 1103515245 + 12345;
		receive((draw >> 16) % (BURST / 2), &got);
	}
	assert_true(full > ROUNDS / 2);
	for (unsigned i = 0; i < n; i++)
		rte_pktmbuf_free(m[i]);
	while (receive(BURST, &got) > 0)
		continue;
	assert_int_equal(got, made - n);
	assert_int_equal(in_use(), before);
}

static unsigned lent;

static void returned(void *addr, void *opaque)
{
	(void)addr;
	(void)opaque;
	lent--;
}

/* A packet whose middle lies in memory that is not the pool's, as a switch's results do. */
static struct rte_mbuf *lending(struct rte_mbuf_ext_shared_info *ref)
{
	static uint8_t memory[LEN_MAX];
	struct rte_mbuf *m = piece(HEAD, 0), *middle = rte_pktmbuf_alloc(pool);

	assert_non_null(middle);
	*ref = (struct rte_mbuf_ext_shared_info){.free_cb = returned};
	rte_mbuf_ext_refcnt_set(ref, 1);
	middle->port = RTE_MBUF_PORT_INVALID;
	rte_pktmbuf_attach_extbuf(middle, memory, RTE_BAD_IOVA, LEN_MAX, ref);
	rte_pktmbuf_append(middle, LEN_MAX);
	assert_int_equal(rte_pktmbuf_chain(m, middle), 0);
	lent++;
	return m;
}

/* The linker puts this in the place of DPDK's. */
static unsigned walks;

uint32_t __real_rte_mempool_obj_iter(struct rte_mempool *mp, rte_mempool_obj_cb_t *each, void *arg);
uint32_t __wrap_rte_mempool_obj_iter(struct rte_mempool *mp, rte_mempool_obj_cb_t *each, void *arg);

uint32_t __wrap_rte_mempool_obj_iter(struct rte_mempool *mp, rte_mempool_obj_cb_t *each, void *arg)
{
	walks++;
	return __real_rte_mempool_obj_iter(mp, each, arg);
}

/* The peer goes and has not read all: nobody will. What waits in a queue is not the driver's. The
 * whole pool is looked through for it, once. */
static void the_peer_goes(void **state)
{
	static struct rte_mbuf_ext_shared_info refs[BURST + 1];
	struct rte_mbuf *m[BURST], *waits = lending(&refs[BURST]);

	(void)state;
	for (unsigned i = 0; i < BURST; i++)
		m[i] = lending(&refs[i]);
	assert_int_equal(port_tx_burst(&client, m, BURST), BURST);
	walks = 0;
	port_tx_lost(&client, pool);
	assert_int_equal(lent, BURST + 1); /* it may yet read them */
	port_close(&server);
	for (unsigned i = 0; i < TRIES && port_link_up(&client); i++)
		usleep(1000);
	port_tx_reap(&client);
	assert_int_equal(lent, BURST + 1);
	port_tx_lost(&client, pool);
	assert_int_equal(lent, 1);
	port_tx_lost(&client, pool);
	assert_int_equal(walks, 1);
	assert_int_equal(port_tx_burst(&client, &waits, 1), 0);
	assert_int_equal(lent, 1);
	rte_pktmbuf_free(waits);
	assert_int_equal(lent, 0);
}

static int setup(void **state)
{
	const struct port_eal eal = {.program = "test_zero_copy", .memory_mb = 128};
	char err[PORT_ERR_LEN] = "";

	(void)state;
	if (mkdtemp(dir) == NULL || port_eal_init(&eal, err) != 0)
		return -1;
	pool = port_pool_create("packets", 16384, MTU, SOCKET_ID_ANY, err);
	if (pool == NULL)
		return -1;
	open_role("server", &server);
	open_role("client", &client);
	for (unsigned i = 0; i < TRIES && !port_link_up(&server); i++)
		usleep(1000);
	/* The client gives the server buffers to fill when it first receives. */
	port_rx_burst(&client, &(struct rte_mbuf *){NULL}, 1);
	return port_link_up(&server) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	port_close(&client);
	rte_mempool_free(pool);
	port_eal_fini();
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_ring),
		cmocka_unit_test(the_peer_goes),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
