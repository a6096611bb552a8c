/* SPDX-License-Identifier: BSD-3-Clause */
/* A network interface that shares the port: what reaches the kernel, what the rnic, and what both.
 * Packet sockets stand for the taps. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/verbs/claim.h"
#include "lib/verbs/netdev.h"
#include "lib/wire/frame.h"
#include "tests/unit/verbs/fabric.h"

enum { CAP = 8192, TURNS = 100 };

struct net {
	struct fabric *fabric;
	struct iv_netdev netdev[2];
	int kernel[2]; /* its end of the tap */
	uint8_t got[CAP];
};

static const uint8_t mac_a[6] = {2, 0, 0, 0, 0, 1}, mac_b[6] = {2, 0, 0, 0, 0, 2};

static int setup(void **state)
{
	struct net *net = calloc(1, sizeof(*net));

	assert_non_null(net);
	net->fabric = fabric_create();
	for (int i = 0; i < 2; i++) {
		int fd[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fd), 0);
		net->kernel[i] = fd[0];
		assert_int_equal(iv_netdev_init(&net->netdev[i], fd[1], net->fabric->mtu), 0);
		net->fabric->netdev[i] = &net->netdev[i];
	}
	fabric_open(net->fabric, false);
	*state = net;
	return 0;
}

static int teardown(void **state)
{
	struct net *net = *state;

	fabric_destroy(net->fabric);
	for (int i = 0; i < 2; i++) {
		close(net->netdev[i].fd);
		close(net->kernel[i]);
		iv_netdev_fini(&net->netdev[i]);
	}
	free(net);
	return 0;
}

static void turns(struct net *net)
{
	for (int i = 0; i < TURNS; i++)
		fabric_step(net->fabric);
}

static void kernel_sends(struct net *net, int i, const uint8_t *frame, size_t len)
{
	assert_int_equal(send(net->kernel[i], frame, len, MSG_NOSIGNAL), (ssize_t)len);
	turns(net);
}

/* Length of the next frame at the kernel's end, in net->got; 0: none. */
static size_t kernel_got(struct net *net, int i)
{
	ssize_t len = recv(net->kernel[i], net->got, sizeof(net->got), MSG_DONTWAIT);

	return len > 0 ? (size_t)len : 0;
}

static uint64_t drops(struct net *net, int i, const char *name)
{
	struct inc_dv_stat stats[256];
	unsigned n;

	assert_int_equal(inc_dv_query_stats(net->fabric->end[i].context, stats, 256, &n), 0);
	assert_true(n <= 256);
	for (unsigned k = 0; k < n; k++) {
		if (strcmp(stats[k].name, name) == 0)
			return stats[k].value;
	}
	fail_msg("no counter %s", name);
	return 0;
}

/* Ethernet with a type that nobody knows. */
static size_t plain_frame(uint8_t *frame, const uint8_t dmac[6], size_t len)
{
	for (size_t i = 0; i < len; i++)
		frame[i] = (uint8_t)i;
	memcpy(frame, dmac, 6);
	memcpy(frame + 6, mac_a, 6);
	frame[12] = 0x88;
	frame[13] = 0xb5;
	return len;
}

static void other_frames_are_the_kernels(void **state)
{
	static const uint8_t broadcast[6] = {255, 255, 255, 255, 255, 255};
	static const size_t sizes[] = {60, 1514, 4218};
	const uint8_t *const to[] = {mac_b, broadcast};
	struct net *net = *state;
	uint8_t frame[CAP];

	for (unsigned s = 0; s < 3; s++) {
		for (unsigned k = 0; k < 2; k++) {
			plain_frame(frame, to[k], sizes[s]);
			kernel_sends(net, 0, frame, sizes[s]);
			assert_int_equal(kernel_got(net, 1), sizes[s]);
			assert_memory_equal(net->got, frame, sizes[s]);
			assert_int_equal(kernel_got(net, 0), 0);
		}
	}
	assert_int_equal(drops(net, 0, "tap_tx"), 6);
	assert_int_equal(drops(net, 1, "tap_rx"), 6);
	assert_int_equal(drops(net, 1, "rx_frames"), 0);
}

static void frames_of_others_are_dropped(void **state)
{
	static const uint8_t other[6] = {2, 0, 0, 0, 0, 9};
	struct net *net = *state;
	uint8_t frame[CAP];

	kernel_sends(net, 0, frame, plain_frame(frame, other, 100));
	assert_int_equal(kernel_got(net, 1), 0);
	assert_int_equal(drops(net, 1, "rnic_not_mine"), 1);
}

static void losses_are_counted(void **state)
{
	struct net *net = *state;
	uint8_t frame[CAP];

	kernel_sends(net, 0, frame, plain_frame(frame, mac_b, 4219));
	assert_int_equal(kernel_got(net, 1), 0);
	assert_int_equal(drops(net, 0, "tap_tx_too_long"), 1);
	for (int i = 0; i < 1000 && drops(net, 1, "tap_rx_full") == 0; i++)
		kernel_sends(net, 0, frame, plain_frame(frame, mac_b, 4000));
	assert_int_equal(drops(net, 1, "tap_rx_full"), 1);
	close(net->kernel[1]);
	net->kernel[1] = -1;
	kernel_sends(net, 0, frame, plain_frame(frame, mac_b, 100));
	assert_int_equal(drops(net, 1, "tap_rx_down"), 1);
	assert_int_equal(atomic_load(&net->netdev[1].wake_fd), 0); /* nothing to wait for */
	assert_int_equal(atomic_load(&net->netdev[0].wake_fd), net->netdev[0].fd);
}

static void frames_wait_for_room(void **state)
{
	struct net *net = *state;
	uint8_t frame[CAP];

	net->fabric->room = 1;
	for (int i = 0; i < 10; i++) {
		plain_frame(frame, mac_b, 100 + (size_t)i);
		assert_true(send(net->kernel[0], frame, 100 + (size_t)i, 0) > 0);
	}
	turns(net);
	for (int i = 0; i < 10; i++)
		assert_int_equal(kernel_got(net, 1), 100 + i);
}

static size_t arp_request(uint8_t *frame, uint32_t target)
{
	static const uint8_t broadcast[6] = {255, 255, 255, 255, 255, 255};
	const struct wire_ip src = wire_ip_from4(0x0a4d0001), dst = wire_ip_from4(target);

	return (size_t)wire_build_arp(frame, CAP, ARP_REQUEST, mac_a, &src, broadcast, &dst, 0);
}

static void resolution_serves_both(void **state)
{
	const struct wire_ip a6 = {{0xfd, 0x77, [15] = 1}}, b6 = {{0xfd, 0x77, [15] = 2}};
	struct net *net = *state;
	struct wire_pkt pkt;
	uint8_t frame[CAP];

	/* The rnic answers for its own address, once, and the kernel that asked hears it. */
	kernel_sends(net, 0, frame, arp_request(frame, 0x0a4d0002));
	assert_int_equal(kernel_got(net, 1), 0);
	assert_int_equal(wire_parse(net->got, kernel_got(net, 0), &pkt), WIRE_OK);
	assert_int_equal(pkt.kind, WIRE_ARP);
	assert_int_equal(pkt.arp_op, ARP_REPLY);
	assert_memory_equal(pkt.arp_sha, mac_b, 6);
	assert_int_equal(kernel_got(net, 0), 0);
	/* An address that the kernel may have besides is the kernel's to answer. */
	kernel_sends(net, 0, frame, arp_request(frame, 0x0a4d0063));
	assert_int_equal(wire_parse(net->got, kernel_got(net, 1), &pkt), WIRE_OK);
	assert_int_equal(pkt.arp_op, ARP_REQUEST);
	/* The same with neighbour discovery. */
	kernel_sends(net, 0, frame, (size_t)wire_build_ns(frame, CAP, mac_a, &a6, &b6, 0));
	assert_int_equal(kernel_got(net, 1), 0);
	assert_int_equal(wire_parse(net->got, kernel_got(net, 0), &pkt), WIRE_OK);
	assert_int_equal(pkt.kind, WIRE_ND_NA);
	assert_memory_equal(pkt.nd_lladdr, mac_b, 6);
}

static void tagged_frames_are_the_kernels(void **state)
{
	const struct wire_ip src = wire_ip_from4(0x0a4d0001), dst = wire_ip_from4(0x0a4d0002);
	static const uint8_t broadcast[6] = {255, 255, 255, 255, 255, 255};
	struct net *net = *state;
	uint8_t frame[CAP];
	size_t len =
		(size_t)wire_build_arp(frame, CAP, ARP_REQUEST, mac_a, &src, broadcast, &dst, 5);

	kernel_sends(net, 0, frame, len);
	assert_int_equal(kernel_got(net, 1), len);
	assert_int_equal(kernel_got(net, 0), 0);
}

static void roce_passes_by_the_kernel(void **state)
{
	struct net *net = *state;
	struct endpoint a, b;
	struct ibv_wc wc;
	uint8_t frame[CAP];

	endpoint_create(&a, net->fabric->end[0].context, 65536, false);
	endpoint_create(&b, net->fabric->end[1].context, 65536, false);
	endpoints_connect(&a, &b, 1);
	turns(net);
	for (int i = 0; i < 2; i++) /* answers that the rnics asked for */
		while (kernel_got(net, i) > 0)
			;
	for (int round = 0; round < 10; round++) {
		memset(a.buf, round + 1, a.len);
		assert_int_equal(post_recv(&b, 1, 0, 65536), 0);
		assert_int_equal(post_send(&a, 2, IBV_WR_SEND, 0, 65536), 0);
		plain_frame(frame, mac_b, 200);
		assert_int_equal(send(net->kernel[0], frame, 200, 0), 200);
		wait_wc(&b, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_memory_equal(a.buf, b.buf, a.len);
		wait_wc(&a, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	turns(net);
	for (int round = 0; round < 10; round++)
		assert_int_equal(kernel_got(net, 1), 200);
	assert_int_equal(kernel_got(net, 1), 0);
	assert_int_equal(kernel_got(net, 0), 0);
	endpoint_destroy(&a);
	endpoint_destroy(&b);
}

/* ---- which ports there are, and who has them ---- */

static char dir[] = "/tmp/incline-claim-XXXXXX";

static void touch(const char *name)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
}

static void expect_paths(const char *text, const char *wanted)
{
	char err[IV_CONFIG_ERR], all[512] = "", pattern[256];
	char *paths[IV_MAX_PORTS];
	int n;

	snprintf(pattern, sizeof(pattern), text, dir, dir);
	n = iv_claim_paths(pattern, paths, err);
	if (n < 0) {
		assert_null(wanted);
		assert_non_null(strstr(err, "INCLINE_RNIC"));
		return;
	}
	for (int i = 0; i < n; i++) {
		strcat(all, strrchr(paths[i], '/') + 1);
		strcat(all, i + 1 < n ? " " : "");
		free(paths[i]);
	}
	assert_string_equal(all, wanted);
}

static void files_are_listed(void **state)
{
	(void)state;
	touch("b.json");
	touch("a.json");
	touch("c.txt");
	expect_paths("%s/b.json", "b.json");
	expect_paths("%s/b.json:%s/a.json", "b.json a.json");
	expect_paths("%s", "a.json b.json");
	expect_paths("%s/[a-z].*", "a.json b.json c.txt");
	expect_paths("%s/c.txt:%s", "c.txt a.json b.json");
	expect_paths("%s/none.json", "none.json"); /* whoever reads it says so */
	expect_paths("%s/*.xml", NULL);
	expect_paths(":", NULL);
	touch("[x].json"); /* a name before a pattern */
	expect_paths("%s/[x].json", "[x].json");
}

static void one_process_at_a_time(void **state)
{
	char path[64];
	int fd, again, status, pipefd[2];
	pid_t child;

	(void)state;
	snprintf(path, sizeof(path), "%s/a.json", dir);
	assert_int_equal(iv_claim_owner(path), 0);
	fd = iv_claim(path);
	assert_true(fd >= 0);
	assert_int_equal(iv_claim(path), -EBUSY);
	assert_int_equal(iv_claim_owner(path), getpid());
	close(fd);
	/* Killed, a process gives it back. */
	assert_int_equal(pipe(pipefd), 0);
	child = fork();
	if (child == 0) {
		(void)!write(pipefd[1], iv_claim(path) >= 0 ? "y" : "n", 1);
		pause();
	}
	assert_int_equal(read(pipefd[0], &status, 1), 1);
	assert_int_equal(iv_claim(path), -EBUSY);
	assert_int_equal(iv_claim_owner(path), child);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	again = iv_claim(path);
	assert_true(again >= 0);
	close(again);
	assert_int_equal(iv_claim("/nonexistent"), -ENOENT);
}

static void a_keeper_lets_go(void **state)
{
	char path[64], byte;
	int lock, asked, status;
	pid_t child;

	(void)state;
	snprintf(path, sizeof(path), "%s/b.json", dir);
	lock = open(path, O_RDONLY);
	assert_int_equal(flock(lock, LOCK_EX), 0);
	asked = iv_claim_keeper(path);
	assert_true(asked >= 0);
	child = fork();
	if (child == 0) {
		close(lock);
		_exit(iv_claim(path) >= 0 ? 0 : 1);
	}
	fcntl(asked, F_SETFL, 0);
	assert_int_equal(recv(asked, &byte, 1, 0), 1);
	iv_claim_keeper_close(asked, path);
	close(lock);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	char pattern[64];
	glob_t found;

	(void)state;
	snprintf(pattern, sizeof(pattern), "%s/*", dir);
	if (glob(pattern, 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			unlink(found.gl_pathv[i]);
		globfree(&found);
	}
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest netdev[] = {
		cmocka_unit_test_setup_teardown(other_frames_are_the_kernels, setup, teardown),
		cmocka_unit_test_setup_teardown(frames_of_others_are_dropped, setup, teardown),
		cmocka_unit_test_setup_teardown(losses_are_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(frames_wait_for_room, setup, teardown),
		cmocka_unit_test_setup_teardown(resolution_serves_both, setup, teardown),
		cmocka_unit_test_setup_teardown(tagged_frames_are_the_kernels, setup, teardown),
		cmocka_unit_test_setup_teardown(roce_passes_by_the_kernel, setup, teardown),
	};
	const struct CMUnitTest claim[] = {
		cmocka_unit_test(files_are_listed),
		cmocka_unit_test(one_process_at_a_time),
		cmocka_unit_test(a_keeper_lets_go),
	};

	return cmocka_run_group_tests(netdev, NULL, NULL) |
	       cmocka_run_group_tests(claim, make_dir, remove_dir);
}
