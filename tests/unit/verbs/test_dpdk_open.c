/* SPDX-License-Identifier: BSD-3-Clause */
/* The opening of a port whose server sends its first callers away, as a switch does with a client
 * that gets too little of the CPU to say all in time. The server is another process. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/verbs/dpdk_port.h"

enum { MTU = 1500, SENT_AWAY = 3, CONNECT_MS = 5000 };

static char dir[] = "/tmp/open-test-XXXXXX";
static struct sockaddr_un path = {.sun_family = AF_UNIX};

static int listening(void)
{
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	if (fd < 0 || bind(fd, (const struct sockaddr *)&path, sizeof(path)) || listen(fd, 64))
		_exit(1);
	return fd;
}

static void read_config(const char *role, struct iv_config *config)
{
	char file[96], err[IV_CONFIG_ERR] = "";
	FILE *f;

	snprintf(file, sizeof(file), "%s/%s.json", dir, role);
	f = fopen(file, "w");
	assert_non_null(f);
	fprintf(f,
		"{\"mac\":\"02:00:00:00:00:01\",\"ip\":[\"10.0.0.1\"],\"mtu\":%d,"
		"\"memory_mb\":64,\"port\":{\"name\":\"%s\",\"type\":\"memif\","
		"\"socket\":\"%s\",\"role\":\"%s\"}}",
		MTU, role, path.sun_path, role);
	fclose(f);
	if (iv_config_read(file, config, err))
		fail_msg("%s", err);
	unlink(file);
}

/* Until the other end of the pipe is closed. */
static void serve(const struct iv_config *config, int pipe)
{
	const struct port_eal eal = {.program = "open", .memory_mb = 64};
	char err[PORT_ERR_LEN] = "", byte;
	struct rte_mempool *pool;
	struct port port;

	if (port_eal_init(&eal, err))
		_exit(2);
	pool = port_pool_create("server", 4096, MTU, SOCKET_ID_ANY, err);
	if (pool == NULL || port_open(&config->ports[0].port, pool, CONNECT_MS, &port, err))
		_exit(3);
	while (read(pipe, &byte, 1) > 0)
		continue;
	port_close(&port);
	port_eal_fini();
	_exit(0);
}

static void send_away(void)
{
	const int fd = listening();

	for (unsigned i = 0; i < SENT_AWAY; i++)
		close(accept(fd, NULL, NULL));
	close(fd);
	unlink(path.sun_path);
}

static void is_called_again(void **state)
{
	struct iv_config client, server;
	char err[PORT_ERR_LEN] = "";
	struct iv_dpdk *port;
	int pipes[2], status;
	pid_t child;

	(void)state;
	read_config("client", &client);
	read_config("server", &server);
	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pipes[1]);
		send_away();
		serve(&server, pipes[0]);
	}
	assert_true(child > 0);
	if (iv_dpdk_open(&client, 0, 1, &port, err))
		fail_msg("%s", err);
	assert_true(iv_dpdk_ops.link_up(port));
	iv_dpdk_close(port, false);
	close(pipes[0]);
	close(pipes[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	iv_dpdk_exit();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(is_called_again)};
	int failed;

	if (mkdtemp(dir) == NULL)
		return 1;
	snprintf(path.sun_path, sizeof(path.sun_path), "%s/s.sock", dir);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir);
	return failed;
}
