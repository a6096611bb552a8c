/* SPDX-License-Identifier: BSD-3-Clause */
/* The page of two devices, one with an interface, and of one whose port a program has. How such a
 * page is written at all is tested in tests/integration/metrics.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/verbs/internal.h"
#include "lib/verbs/metrics.h"
#include "lib/verbs/netdev.h"
#include "tests/unit/verbs/fabric.h"

/* There, once, as a line. */
static void expect_line(const char *page, const char *line)
{
	char text[256];
	const char *at;

	snprintf(text, sizeof(text), "\n%s\n", line);
	at = strstr(page, text);
	if (!at)
		fail_msg("no line %s in\n%s", line, page);
	assert_null(strstr(at + 1, text));
}

static void a_page(void **state)
{
	static const uint8_t other[60] = {2, 0, 0, 0, 0, 9};
	struct fabric *f = fabric_create();
	struct iv_netdev netdev;
	struct iv_metrics_of of[3];
	int fd[2];
	size_t len;
	char *page;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fd), 0);
	assert_int_equal(iv_netdev_init(&netdev, fd[1], f->mtu), 0);
	f->netdev[0] = &netdev;
	fabric_open(f, false);
	/* To nobody at the other end, who has no interface. */
	assert_int_equal(send(fd[0], other, sizeof(other), 0), sizeof(other));
	for (int i = 0; i < 100; i++)
		fabric_step(f);
	of[0] = (struct iv_metrics_of){"a", iv_dev(f->end[0].context)};
	of[1] = (struct iv_metrics_of){"b \"1\"", iv_dev(f->end[1].context)};
	of[2] = (struct iv_metrics_of){"c", NULL};
	page = iv_metrics(of, 3, &len);
	assert_non_null(page);
	assert_int_equal(strlen(page), len);
	expect_line(page, "incline_rnic_kept{rnic=\"a\"} 1");
	expect_line(page, "incline_rnic_kept{rnic=\"c\"} 0");
	expect_line(page, "incline_rnic_tap_tx_total{rnic=\"a\"} 1");
	expect_line(page, "# UNIT incline_rnic_port_rx_bytes bytes");
	expect_line(page, "incline_rnic_port_rx_bytes_total{rnic=\"b \\\"1\\\"\",port=\"1\"} 60");
	expect_line(page, "incline_rnic_port_rx_frames_total{rnic=\"b \\\"1\\\"\",port=\"1\"} 1");
	expect_line(page, "incline_rnic_port_up{rnic=\"a\",port=\"1\"} 1");
	expect_line(page, "incline_rnic_rx_frames_total{rnic=\"b \\\"1\\\"\"} 1");
	expect_line(
		page, "incline_rnic_drops_total{rnic=\"b \\\"1\\\"\",reason=\"rnic_not_mine\"} 1");
	expect_line(page, "# TYPE incline_rnic_retransmits counter");
	/* What is not here has no counters; what has no interface none of one. */
	assert_null(strstr(page, "total{rnic=\"c\""));
	assert_null(strstr(page, "tap_tx_total{rnic=\"b"));
	assert_string_equal(page + len - 6, "# EOF\n");
	free(page);
	fabric_destroy(f);
	iv_netdev_fini(&netdev);
	close(fd[0]);
	close(fd[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_page)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
