/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the network interfaces of software RNICs alive while no program has their ports: the RNIC
 * lives in the program's process, and ping, or a job's TCP connections, should not depend on it. A
 * program that opens the device gets the port, with the interface, within a moment (a tap keeps its
 * addresses and connections), and when it has ended the port is kept here again. See
 * lib/verbs/README.md, "The network interface". */
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <unistd.h>

#include "lib/ctl/config.h"
#include "lib/ctl/http.h"
#include "lib/ctl/listen.h"
#include "lib/ctl/metrics.h"
#include "lib/verbs/claim.h"
#include "lib/verbs/dpdk_port.h"
#include "lib/verbs/metrics.h"
#include "lib/verbs/netdev.h"

enum {
	RETRY_NS = 20000000,  /* between looks whether a port is free, or its switch is there */
	YIELD_NS = 100000000, /* a port that somebody asked for is left to him for so long */
	MAX_SLEEP_US = 500,
	CONNECT_MS = 200,
	PAGES_NS = 20000000, /* between looks whether somebody asks for counters */
};

struct kept {
	char *path;
	int netns; /* -1: ours */
	struct iv_config config;
	uint64_t next_ns; /* not tried again before */
	bool complained;
	/* While it is kept: */
	int claim; /* -1: it is not */
	int asked; /* readable when somebody wants the port */
	struct iv_dpdk *port;
	struct iv_netdev netdev;
	struct iv_dev *dev;
};

static struct kept kept[IV_MAX_PORTS];
static unsigned n_kept;
static int wake_fd = -1;
static volatile sig_atomic_t stopped;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

/* ---- keeping a port ---- */

static void wake_on(int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	epoll_ctl(wake_fd, EPOLL_CTL_ADD, fd, &event);
}

static void let_go(struct kept *k)
{
	if (k->dev)
		iv_dev_destroy(k->dev);
	if (k->netdev.frame) {
		close(k->netdev.fd);
		iv_netdev_fini(&k->netdev);
	}
	if (k->port)
		iv_dpdk_close(k->port, false);
	if (k->asked >= 0)
		iv_claim_keeper_close(k->asked, k->path);
	if (k->claim >= 0)
		close(k->claim);
	k->dev = NULL;
	k->port = NULL;
	k->asked = k->claim = -1;
}

static int open_tap(struct kept *k, char err[PORT_ERR_LEN])
{
	int fd, ret;

	if (k->netns >= 0 && setns(k->netns, CLONE_NEWNET) != 0) {
		snprintf(err, PORT_ERR_LEN, "network namespace: %s", strerror(errno));
		return -errno;
	}
	fd = iv_tap_open(&k->config, err);
	if (fd < 0)
		return fd;
	ret = iv_netdev_init(&k->netdev, fd, k->config.ports[0].mtu);
	if (ret)
		close(fd);
	else
		wake_on(fd);
	return ret;
}

static int open_device(struct kept *k, char err[PORT_ERR_LEN])
{
	struct verbs_open_attr attr = {.name = k->config.name, .netdev = &k->netdev};

	attr.rnic.port[0] = iv_config_port(&k->config.ports[0]);
	iv_config_lldp(&k->config, &attr.rnic);
	k->dev = iv_dev_create(&iv_dpdk_ops, k->port, &attr, NULL);
	if (k->dev)
		return 0;
	snprintf(err, PORT_ERR_LEN, "%s", strerror(errno));
	return -errno;
}

static void complain(struct kept *k, const char *err)
{
	if (!k->complained)
		fprintf(stderr, "incline-netd: %s: %s\n", k->path, err);
	k->complained = true;
}

/* Takes the port if it is free. */
static void keep(struct kept *k, uint64_t now)
{
	char err[PORT_ERR_LEN] = "out of memory";
	int ret;

	k->next_ns = now + RETRY_NS;
	k->claim = open(k->path, O_RDONLY | O_CLOEXEC);
	if (k->claim < 0 || flock(k->claim, LOCK_EX | LOCK_NB) != 0) {
		let_go(k);
		return;
	}
	k->asked = iv_claim_keeper(k->path);
	if (k->asked < 0) {
		snprintf(err, sizeof(err), "its socket: %s", strerror(-k->asked));
		ret = k->asked;
	} else {
		wake_on(k->asked);
		(void)((ret = iv_dpdk_open(&k->config, 0, n_kept, &k->port, err)) ||
			(ret = open_tap(k, err)) || (ret = open_device(k, err)));
	}
	if (ret) {
		complain(k, err);
		let_go(k);
		k->next_ns = now + YIELD_NS;
		return;
	}
	k->complained = false;
}

static bool somebody_asks(const struct kept *k)
{
	char byte;

	return recv(k->asked, &byte, 1, MSG_DONTWAIT) >= 0;
}

static unsigned serve(struct kept *k, uint64_t now)
{
	unsigned work;

	if (!k->dev) {
		if (now >= k->next_ns)
			keep(k, now);
		return 0;
	}
	work = iv_progress(k->dev);
	/* A switch that went away is connected to anew. */
	if (somebody_asks(k) || !k->dev->ports[0].link) {
		let_go(k);
		k->next_ns = port_now_ns() + YIELD_NS;
	}
	return work;
}

/* ---- counters for monitoring ---- */

static struct {
	const char *where; /* ADDRESS:PORT or unix:PATH; NULL: nowhere */
	struct ctl_place place;
	struct event_base *base;
	struct ctl_http *http;
	uint64_t next_ns;
} pages;

static char *make_page(void *arg, size_t *len)
{
	struct iv_metrics_of of[IV_MAX_PORTS];

	(void)arg;
	for (unsigned i = 0; i < n_kept; i++)
		of[i] = (struct iv_metrics_of){kept[i].config.name, kept[i].dev};
	return iv_metrics(of, n_kept, len);
}

/* Before ports are opened: that may change the network namespace. */
static int open_pages(void)
{
	static const struct ctl_http_page page = {METRICS_CONTENT_TYPE, make_page, NULL};
	int fd, rc;

	if (!pages.where)
		return 0;
	fd = ctl_listen_pages(pages.where, &pages.place);
	if (fd < 0)
		return -1;
	pages.base = event_base_new();
	if (!pages.base)
		close(fd);
	rc = pages.base ? ctl_http_open(pages.base, fd, &page, 0, &pages.http) : -ENOMEM;
	if (rc)
		fprintf(stderr, "incline-netd: --metrics: %s\n", strerror(-rc));
	return rc;
}

static void close_pages(void)
{
	ctl_http_close(pages.http);
	if (pages.base)
		event_base_free(pages.base);
	if (pages.where)
		ctl_unlisten_one(pages.where, &pages.place);
}

static void serve_pages(uint64_t now)
{
	if (!pages.base || now < pages.next_ns)
		return;
	event_base_loop(pages.base, EVLOOP_NONBLOCK);
	pages.next_ns = now + PAGES_NS;
}

/* ---- the program ---- */

static int add(char *arg)
{
	struct kept *k = &kept[n_kept++];
	char err[IV_CONFIG_ERR], *at = strchr(arg, '@');

	*k = (struct kept){.path = arg, .netns = -1, .claim = -1, .asked = -1};
	if (at) {
		*at++ = '\0';
		k->netns = open(at, O_RDONLY | O_CLOEXEC);
		if (k->netns < 0) {
			fprintf(stderr, "incline-netd: %s: %s\n", at, strerror(errno));
			return -1;
		}
	}
	if (iv_config_read(k->path, &k->config, err)) {
		fprintf(stderr, "incline-netd: %s\n", err);
		return -1;
	}
	if (!k->config.netdev.name[0]) {
		fprintf(stderr, "incline-netd: %s: netdev: required here\n", k->path);
		return -1;
	}
	k->config.ports[0].wait_ms = CONNECT_MS;
	if (!k->config.name[0])
		snprintf(k->config.name, sizeof(k->config.name), "netd%u", n_kept - 1);
	return 0;
}

static void run(void)
{
	struct port_backoff backoff = {
		.idle = PORT_IDLE_SLEEP, .max_sleep_us = MAX_SLEEP_US, .wake_fd = wake_fd};
	bool ready = false;

	while (!stopped) {
		const uint64_t now = port_now_ns();
		unsigned work = 0, open = 0;

		for (unsigned i = 0; i < n_kept; i++) {
			work += serve(&kept[i], now);
			open += kept[i].dev != NULL;
		}
		serve_pages(now);
		if (!ready && open == n_kept) {
			printf("incline-netd: ready\n");
			fflush(stdout);
			ready = true;
		}
		port_backoff(&backoff, work, now, UINT64_MAX);
	}
}

/* What docs/mrc.md has of lib/mrc/settings.h. */
static void print_mrc(void)
{
	static const char head[] = "| %s | unit | default | limits | how sure | rule | meaning |\n"
				   "|---|---|---|---|---|---|---|\n";

	printf(head, "in `mrc`");
#define X(name, unit, dflt, least, most, mark, section, help)                                  \
	printf("| `%s` | %s | %u | %u..%u | %s | %s | %s |\n", #name, unit, dflt, least, most, \
		#mark, section, help);
	MRC_SETTINGS(X)
	printf("\n");
	printf(head, "of a queue pair, by the API");
	MRC_QP_SETTINGS(X)
#undef X
}

static const char usage[] =
	"usage: incline-netd [--metrics ADDRESS:PORT|unix:PATH] FILE[@NETNS]...\n"
	"Keeps the network interfaces of software RNICs until SIGINT or SIGTERM.\n"
	"  FILE   of an RNIC, with \"netdev\"\n"
	"  NETNS  path of the network namespace of its interface\n"
	"  --metrics  serve counters there, over HTTP as /metrics (docs/metrics.md)\n"
	"  --help-config[=markdown|schema]  print what can be in FILE (docs/rnic-config.md has "
	"it,\n"
	"             too)\n"
	"  --help-mrc  print what of the transport MRC can be set, as docs/mrc.md has it\n"
	"  --version  print the version\n"
	"  --help     print this\n";

int main(int argc, char **argv)
{
	const struct sigaction action = {.sa_handler = on_signal};

	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		puts("incline-netd " INCLINE_VERSION);
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(usage, stdout);
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "--help-mrc") == 0) {
		print_mrc();
		return 0;
	}
	if (argc == 2 && strcmp(argv[1], "--help-config") == 0)
		return ctl_config_help("incline-netd", &ctl_rnic_config, NULL);
	if (argc == 2 && strncmp(argv[1], "--help-config=", 14) == 0)
		return ctl_config_help("incline-netd", &ctl_rnic_config, argv[1] + 14);
	int first = 1;
	if (argc > 3 && strcmp(argv[1], "--metrics") == 0) {
		pages.where = argv[2];
		first = 3;
	}
	if (argc <= first || argc - first > IV_MAX_PORTS || argv[first][0] == '-') {
		fputs(usage, stderr);
		return 2;
	}
	wake_fd = epoll_create1(EPOLL_CLOEXEC);
	for (int i = first; i < argc; i++) {
		if (add(argv[i]))
			return 1;
	}
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (open_pages()) {
		close_pages();
		return 1;
	}
	run();
	close_pages();
	for (unsigned i = 0; i < n_kept; i++)
		let_go(&kept[i]);
	iv_dpdk_exit();
	return 0;
}
