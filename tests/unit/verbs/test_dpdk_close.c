/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a port that a switch is slow to read: what was sent before arrives. The last
 * acknowledgement of a program that ends is among it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/verbs/dpdk_port.h"

enum { MTU = 1500, FRAME = 200, N_FRAMES = 40, CONNECT_MS = 5000, LATE_US = 100000 };

static char dir[] = "/tmp/close-test-XXXXXX", path[64];

struct reader {
	struct port *port;
	unsigned want, got;
};

/* A switch that does not run for a while. */
static void *read_frames(void *arg)
{
	struct reader *r = arg;
	struct rte_mbuf *m[N_FRAMES];

	usleep(LATE_US);
	for (unsigned ms = 0; r->got < r->want && ms < CONNECT_MS; ms++, usleep(1000)) {
		const unsigned n = port_rx_burst(r->port, m, N_FRAMES);

		rte_pktmbuf_free_bulk(m, n);
		r->got += n;
	}
	return NULL;
}

static void send_frames(struct iv_dpdk *port, unsigned n)
{
	static const uint8_t zeros[FRAME];
	struct rnic_frame frame = {.head_len = 14, .n_iov = 1, .len = FRAME};

	frame.iov[0].base = zeros;
	frame.iov[0].len = FRAME - 14;
	for (unsigned i = 0; i < n; i++) {
		assert_true(iv_dpdk_ops.tx_room(port) > 0);
		iv_dpdk_ops.tx(port, &frame);
	}
	assert_int_equal(iv_dpdk_ops.tx_flush(port), 0);
}

static void read_config(const char *name, const char *port, struct iv_config *config)
{
	char file[96], err[IV_CONFIG_ERR] = "";
	FILE *f;

	snprintf(file, sizeof(file), "%s/%s.json", dir, name);
	f = fopen(file, "w");
	assert_non_null(f);
	fprintf(f,
		"{\"mac\":\"02:00:00:00:00:01\",\"ip\":[\"10.0.0.1\"],\"mtu\":%d,"
		"\"memory_mb\":64,\"port\":{\"name\":\"%s\",\"type\":\"memif\",\"socket\":\"%s\",%"
		"s}}",
		MTU, name, path, port);
	fclose(f);
	if (iv_config_read(file, config, err))
		fail_msg("%s", err);
	unlink(file);
}

static void arrives(struct port *server, const struct iv_config *config, unsigned n)
{
	struct reader reader = {.port = server, .want = n};
	char err[PORT_ERR_LEN] = "";
	struct iv_dpdk *client;
	pthread_t thread;

	if (iv_dpdk_open(config, 0, 1, &client, err))
		fail_msg("%s", err);
	for (unsigned ms = 0; ms < CONNECT_MS && !port_link_up(server); ms++)
		usleep(1000);
	assert_true(port_link_up(server));
	send_frames(client, n);
	assert_int_equal(pthread_create(&thread, NULL, read_frames, &reader), 0);
	iv_dpdk_close(client, false);
	pthread_join(thread, NULL);
	assert_int_equal(reader.got, n);
	for (unsigned ms = 0; ms < CONNECT_MS && port_link_up(server); ms++)
		usleep(1000);
}

static void what_was_sent_arrives(void **state)
{
	struct iv_config client, own;
	char err[PORT_ERR_LEN] = "";
	struct rte_mempool *pool;
	struct port server;

	(void)state;
	read_config("client", "\"role\":\"client\",\"zero_copy\":true", &client);
	read_config("server", "\"role\":\"server\"", &own);
	if (port_eal_init(&(struct port_eal){.program = "close", .memory_mb = 64}, err))
		fail_msg("%s", err);
	pool = port_pool_create("server", 4096, MTU, SOCKET_ID_ANY, err);
	assert_non_null(pool);
	if (port_open(&own.ports[0].port, pool, CONNECT_MS, &server, err))
		fail_msg("%s", err);
	arrives(&server, &client, N_FRAMES);
	port_close(&server);
	rte_mempool_free(pool);
	iv_dpdk_exit();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_sent_arrives)};
	int failed;

	if (mkdtemp(dir) == NULL)
		return 1;
	snprintf(path, sizeof(path), "%s/s.sock", dir);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return failed;
}
