/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports opened for real, in one process, without hugepages or root. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <fcntl.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_ring.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/port/config.h"

enum { MTU = 4200, TRIES = 2000 };

static char dir[] = "/tmp/port-test-XXXXXX";
static struct rte_mempool *pool;

static int open_json(json_t *json, struct port *port, char err[PORT_ERR_LEN])
{
	struct port_config config;

	assert_non_null(json);
	assert_int_equal(port_config_parse(json, &config, err), 0);
	json_decref(json);
	return port_open(&config, pool, 2000, port, err);
}

static void open_ok(json_t *json, struct port *port)
{
	char err[PORT_ERR_LEN] = "";

	if (open_json(json, port, err) != 0)
		fail_msg("%s", err);
}

static struct rte_mbuf *frame(unsigned len, uint8_t fill)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

	assert_non_null(m);
	memset(rte_pktmbuf_append(m, (uint16_t)len), fill, len);
	return m;
}

/* Sends one frame and waits for it at the other end. */
static void pass(const struct port *from, const struct port *to, unsigned len, uint8_t fill)
{
	struct rte_mbuf *m = frame(len, fill);

	assert_int_equal(port_tx_burst(from, &m, 1), 1);
	for (unsigned i = 0; i < TRIES; i++) {
		if (port_rx_burst(to, &m, 1) == 1)
			break;
		usleep(1000);
		assert_int_not_equal(i, TRIES - 1);
	}
	assert_int_equal(m->pkt_len, len);
	assert_int_equal(m->nb_segs, 1);
	assert_int_equal(rte_pktmbuf_mtod(m, uint8_t *)[0], fill);
	assert_int_equal(rte_pktmbuf_mtod(m, uint8_t *)[len - 1], fill);
	rte_pktmbuf_free(m);
}

static void null_port(void **state)
{
	struct rte_mbuf *m[4];
	struct port port;

	(void)state;
	open_ok(json_pack("{ssssss}", "name", "n0", "type", "null", "mac", "02:00:00:00:00:07"),
		&port);
	assert_int_equal(port.mac[5], 7);
	assert_true(port_link_up(&port));
	m[0] = frame(64, 1);
	assert_int_equal(port_tx_burst(&port, m, 1), 1);
	assert_int_equal(port_rx_burst(&port, m, 4), 0);
	port_close(&port);
}

static void ring_port(void **state)
{
	unsigned before = rte_mempool_avail_count(pool);
	struct rte_ring *rx, *tx;
	struct rte_mbuf *m;
	struct port port;

	(void)state;
	open_ok(json_pack("{ssss}", "name", "r0", "type", "ring"), &port);
	rx = rte_ring_lookup("r0.rx");
	tx = rte_ring_lookup("r0.tx");
	assert_non_null(rx);
	assert_non_null(tx);
	m = frame(100, 3);
	assert_int_equal(rte_ring_enqueue(rx, m), 0);
	m = NULL;
	assert_int_equal(port_rx_burst(&port, &m, 1), 1);
	assert_int_equal(port_tx_burst(&port, &m, 1), 1);
	assert_int_equal(rte_ring_count(tx), 1);
	port_close(&port); /* frees what is left in the rings */
	assert_null(rte_ring_lookup("r0.rx"));
	assert_int_equal(rte_mempool_avail_count(pool), before);
}

static void ring_peer(void **state)
{
	char err[PORT_ERR_LEN] = "";
	struct port a, b, c;

	(void)state;
	assert_int_equal(
		open_json(json_pack("{ssssss}", "name", "rc", "type", "ring", "peer", "nobody"), &c,
			err),
		-ENOENT);
	assert_non_null(strstr(err, "peer"));
	open_ok(json_pack("{ssss}", "name", "ra", "type", "ring"), &a);
	open_ok(json_pack("{ssssss}", "name", "rb", "type", "ring", "peer", "ra"), &b);
	pass(&a, &b, 200, 9);
	pass(&b, &a, 300, 8);
	port_close(&b);
	port_close(&a);
}

static json_t *memif(const char *name, const char *role)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/memif.sock", dir);
	return json_pack("{ss ss ss ss sb}", "name", name, "type", "memif", "socket", path, "role",
		role, "zero_copy", strcmp(role, "client") == 0);
}

/* The linker puts this in the place of libc's. */
static const char *machine; /* NULL: this one */

int __real_gethostname(char *name, size_t len);
int __wrap_gethostname(char *name, size_t len);

int __wrap_gethostname(char *name, size_t len)
{
	if (machine == NULL)
		return __real_gethostname(name, len);
	snprintf(name, len, "%s", machine);
	return 0;
}

/* A host that has it in its ARP cache finds the switch also when that has been started anew. That
 * of another machine, or container, with the same file has another. */
static void memif_server_mac(void **state)
{
	struct port server, client;
	uint8_t mac[6];

	(void)state;
	open_ok(memif("ms", "server"), &server);
	open_ok(memif("mc", "client"), &client);
	memcpy(mac, server.mac, sizeof(mac));
	assert_memory_not_equal(client.mac, mac, sizeof(mac));
	port_close(&client);
	port_close(&server);
	open_ok(memif("mt", "server"), &server);
	assert_memory_equal(server.mac, mac, sizeof(mac));
	assert_int_equal(mac[0], 2);
	port_close(&server);
	machine = "elsewhere";
	open_ok(memif("mu", "server"), &server);
	machine = NULL;
	assert_memory_not_equal(server.mac, mac, sizeof(mac));
	port_close(&server);
}

static void memif_pair(void **state)
{
	struct port server, client;

	(void)state;
	open_ok(memif("ms", "server"), &server);
	assert_false(port_link_up(&server));
	open_ok(memif("mc", "client"), &client);
	for (unsigned i = 0; i < TRIES && !(port_link_up(&client) && port_link_up(&server)); i++)
		usleep(1000);
	assert_true(port_link_up(&client)); /* of a busy machine's it may come after the opening */
	pass(&client, &server, MTU + 14, 5);
	/* The client gives the server buffers to fill when it first receives. */
	assert_int_equal(port_rx_burst(&client, &(struct rte_mbuf *){NULL}, 1), 0);
	pass(&server, &client, MTU + 14, 6);
	port_close(&client);
	for (unsigned i = 0; i < TRIES && port_link_up(&server); i++)
		usleep(1000);
	assert_false(port_link_up(&server));
	port_close(&server);
}

static int in_dir(struct sockaddr_un *at, int type)
{
	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(at->sun_path, sizeof(at->sun_path), "%s/memif.sock", dir);
	return socket(AF_UNIX, type, 0);
}

static void refused(int error, const char *says)
{
	char err[PORT_ERR_LEN] = "", whole[PORT_ERR_LEN];
	struct port_config config;
	json_t *json = memif("mx", "client");
	struct port port;

	assert_int_equal(port_config_parse(json, &config, err), 0);
	json_decref(json);
	assert_int_equal(port_open(&config, pool, 0, &port, err), error);
	snprintf(whole, sizeof(whole), says, config.socket);
	if (strncmp(err, whole, strlen(whole)) != 0)
		fail_msg("%s", err);
}

/* The field, the socket and what is the matter with it. */
static void memif_no_server(void **state)
{
	struct sockaddr_un at;
	int fd = in_dir(&at, SOCK_SEQPACKET);

	(void)state;
	refused(-ENOENT, "socket: cannot connect to %s (No such file or directory): is the server "
			 "up?");
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	close(fd);
	refused(-ECONNREFUSED, "socket: cannot connect to %s (Connection refused): is the server "
			       "up?");
	unlink(at.sun_path);
	fd = in_dir(&at, SOCK_STREAM);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 1), 0);
	refused(-EPROTO, "socket: who serves %s takes no memif client now");
	close(fd);
	unlink(at.sun_path);
}

/* What a killed server leaves behind. */
static void memif_stale_socket(void **state)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct stat st;
	struct port server;

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/memif.sock", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	assert_int_equal(stat(addr.sun_path, &st), 0);
	open_ok(memif("ms", "server"), &server);
	port_close(&server);
}

static void memif_busy_socket(void **state)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	char err[PORT_ERR_LEN] = "";
	struct port server;

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/memif.sock", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_true(open_json(memif("ms", "server"), &server, err) < 0);
	if (strstr(err, "socket: another process serves") == NULL)
		fail_msg("%s", err);
	close(fd);
	unlink(addr.sun_path);
}

/* Takes the lock and keeps it, as a process that has just begun, or serves something else. */
static pid_t lock_by_another(const char *file)
{
	int told[2];
	pid_t child;
	char byte;

	assert_int_equal(pipe(told), 0);
	child = fork();
	if (child == 0) {
		int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0 || write(told[1], "", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	close(told[1]);
	assert_int_equal(read(told[0], &byte, 1), 1);
	close(told[0]);
	return child;
}

/* The lock alone says who it is; with him gone, however, the socket is free. */
static void memif_locked_socket(void **state)
{
	char file[64], err[PORT_ERR_LEN] = "", text[80];
	struct stat before, after;
	struct port server;
	pid_t other;

	(void)state;
	snprintf(file, sizeof(file), "%s/memif.sock.lock", dir);
	other = lock_by_another(file);
	assert_int_equal(stat(file, &before), 0);
	snprintf(text, sizeof(text), "socket: another process (PID %d) serves %s/memif.sock",
		(int)other, dir);
	assert_int_equal(open_json(memif("ms", "server"), &server, err), -EADDRINUSE);
	assert_string_equal(err, text);
	assert_int_equal(stat(file, &after), 0);
	assert_int_equal(after.st_ino, before.st_ino);
	kill(other, SIGKILL);
	assert_int_equal(waitpid(other, NULL, 0), other);
	open_ok(memif("ms", "server"), &server);
	port_close(&server);
	assert_int_not_equal(stat(file, &after), 0);
}

static void no_such_thing(void **state)
{
	char err[PORT_ERR_LEN] = "";
	struct port port;

	(void)state;
	assert_true(open_json(json_pack("{ssssss}", "name", "x", "type", "vdev", "args", "net_xyz"),
			    &port, err) < 0);
	assert_non_null(strstr(err, "net_xyz"));
	assert_true(open_json(json_pack("{ssssss}", "name", "x", "type", "pci", "address",
				      "0000:00:1f.7"),
			    &port, err) < 0);
	assert_non_null(strstr(err, "\"pci\""));
	assert_true(open_json(json_pack("{ssssss}", "name", "x", "type", "af_packet", "iface",
				      "no-such-if"),
			    &port, err) < 0);
}

/* ---- a device's node without memory: the linker puts these in the place of DPDK's ---- */

static struct {
	bool on;       /* the device is on the first node, which has none */
	bool anywhere; /* nor has any other */
	unsigned n;
	int asked[4]; /* sockets, of which n are told */
} node;

int __real_rte_eth_rx_queue_setup(uint16_t port, uint16_t queue, uint16_t n, unsigned int socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *mbufs);
int __wrap_rte_eth_rx_queue_setup(uint16_t port, uint16_t queue, uint16_t n, unsigned int socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *mbufs);
int __real_rte_eth_dev_socket_id(uint16_t port);
int __wrap_rte_eth_dev_socket_id(uint16_t port);
int __real_rte_eal_has_hugepages(void);
int __wrap_rte_eal_has_hugepages(void);

int __wrap_rte_eth_rx_queue_setup(uint16_t port, uint16_t queue, uint16_t n, unsigned int socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *mbufs)
{
	if (node.on && node.n < RTE_DIM(node.asked))
		node.asked[node.n++] = (int)socket;
	if (node.on && (node.anywhere || (int)socket != SOCKET_ID_ANY))
		return -ENOMEM;
	return __real_rte_eth_rx_queue_setup(port, queue, n, socket, conf, mbufs);
}

int __wrap_rte_eth_dev_socket_id(uint16_t port)
{
	return node.on ? rte_socket_id_by_idx(0) : __real_rte_eth_dev_socket_id(port);
}

int __wrap_rte_eal_has_hugepages(void)
{
	return node.on || __real_rte_eal_has_hugepages();
}

static int open_without_memory(bool anywhere, struct port *port, char err[PORT_ERR_LEN])
{
	int rc;

	memset(&node, 0, sizeof(node));
	node.on = true;
	node.anywhere = anywhere;
	rc = open_json(json_pack("{ssss}", "name", "n1", "type", "null"), port, err);
	node.on = false;
	assert_int_equal(node.n, 2);
	assert_int_equal(node.asked[0], rte_socket_id_by_idx(0));
	assert_int_equal(node.asked[1], SOCKET_ID_ANY);
	return rc;
}

/* Queues lie in other memory, then; where there is none either, the port is refused. */
static void queues_elsewhere(void **state)
{
	char err[PORT_ERR_LEN] = "";
	struct rte_mbuf *m;
	struct port port;

	(void)state;
	assert_int_equal(open_without_memory(true, &port, err), -ENOMEM);
	assert_non_null(strstr(err, "descriptors"));
	if (open_without_memory(false, &port, err) != 0)
		fail_msg("%s", err);
	m = frame(64, 1);
	assert_int_equal(port_tx_burst(&port, &m, 1), 1);
	port_close(&port);
}

static int setup(void **state)
{
	const struct port_eal eal = {.program = "test", .memory_mb = 128};
	char err[PORT_ERR_LEN] = "";

	(void)state;
	if (port_eal_init(&eal, err) != 0) {
		print_error("%s\n", err);
		return -1;
	}
	if (port_eal_init(&eal, err) != 0 || mkdtemp(dir) == NULL)
		return -1;
	pool = port_pool_create("test", 8191, MTU, SOCKET_ID_ANY, err);
	return pool ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	rte_mempool_free(pool);
	port_eal_fini();
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(null_port),
		cmocka_unit_test(ring_port),
		cmocka_unit_test(ring_peer),
		cmocka_unit_test(memif_no_server),
		cmocka_unit_test(memif_pair),
		cmocka_unit_test(memif_server_mac),
		cmocka_unit_test(memif_stale_socket),
		cmocka_unit_test(memif_busy_socket),
		cmocka_unit_test(memif_locked_socket),
		cmocka_unit_test(no_such_thing),
		cmocka_unit_test(queues_elsewhere),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
