/* SPDX-License-Identifier: BSD-3-Clause */
/* An RNIC on an af_packet port whose interface is made smaller while it runs: what does not fit any
 * more is lost by the kernel without a word, so the device counts it. A veth in a network namespace
 * of this test's own; needs root, without it the test is skipped and says so. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/verbs/dpdk_port.h"

enum { MTU = 1500, SMALL = 1000, HDR = 14, TAG = 4, WAIT_MS = 10000, SKIPPED = 77 };

static void run(const char *command)
{
	assert_int_equal(system(command), 0);
}

static uint64_t counter(struct iv_dpdk *port, const char *name)
{
	struct inc_dv_stat stats[32];
	const unsigned n = iv_dpdk_ops.stats(port, stats, 32);

	for (unsigned i = 0; i < n; i++)
		if (!strcmp(stats[i].name, name))
			return stats[i].value;
	fail_msg("no counter %s", name);
	return 0;
}

/* A frame of that many bytes, also with a VLAN tag. True: the driver got it. */
static bool sends(struct iv_dpdk *port, unsigned len, bool tagged)
{
	static const uint8_t zeros[MTU + HDR + TAG];
	const uint64_t lost = counter(port, "port_tx_mtu");
	struct rnic_frame frame = {.head_len = HDR, .n_iov = 1, .len = len};

	memset(frame.head, 2, 12);
	frame.head[12] = tagged ? 0x81 : 0x08;
	frame.iov[0].base = zeros;
	frame.iov[0].len = len - HDR;
	assert_true(iv_dpdk_ops.tx_room(port) > 0);
	iv_dpdk_ops.tx(port, &frame);
	assert_int_equal(iv_dpdk_ops.tx_flush(port), 0);
	return counter(port, "port_tx_mtu") == lost;
}

static void await_mtu(struct iv_dpdk *port, const char *command, unsigned mtu)
{
	run(command);
	for (unsigned ms = 0; ms < WAIT_MS; ms++, usleep(1000))
		if (sends(port, mtu + HDR, false) && !sends(port, mtu + HDR + 1, false))
			return;
	fail_msg("%s: not noticed", command);
}

static void lowered_mtu(void **state)
{
	char err[PORT_ERR_LEN] = "", config_err[IV_CONFIG_ERR] = "", path[] = "/tmp/rnic-XXXXXX";
	static const char text[] = "{\"mac\":\"02:00:00:00:00:01\",\"ip\":[\"10.0.0.1\"],"
				   "\"mtu\":1500,\"memory_mb\":64,\"port\":"
				   "{\"name\":\"a\",\"type\":\"af_packet\",\"iface\":\"uxa\"}}";
	const int fd = mkstemp(path);
	struct iv_config config;
	struct iv_dpdk *port;

	(void)state;
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	close(fd);
	run("ip link add uxa type veth peer name uxb");
	run("ip link set uxb up");
	run("ip link set uxa up");
	if (iv_config_read(path, &config, config_err))
		fail_msg("%s", config_err);
	unlink(path);
	if (iv_dpdk_open(&config, 0, 1, &port, err))
		fail_msg("%s", err);
	assert_true(sends(port, MTU + HDR, false));
	assert_true(sends(port, MTU + HDR + TAG, true));
	assert_false(sends(port, MTU + HDR + 1, false));
	await_mtu(port, "ip link set uxa mtu 1000", SMALL);
	assert_true(sends(port, SMALL + HDR + TAG, true));
	assert_false(sends(port, SMALL + HDR + TAG + 1, true));
	await_mtu(port, "ip link set uxa mtu 9000", MTU); /* what it was configured for */
	iv_dpdk_close(port, false);
	iv_dpdk_exit();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(lowered_mtu)};

	if (unshare(CLONE_NEWNET) != 0) {
		print_error("SKIPPED: a network namespace of its own needs root\n");
		return SKIPPED;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
