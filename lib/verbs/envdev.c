/* SPDX-License-Identifier: BSD-3-Clause */
/* The device list, opening and closing: the devices that INCLINE_RNIC describes, and devices
 * that were opened on ports of the caller's (incline_verbs_open_port). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/verbs/behind.h"
#include "lib/verbs/claim.h"
#include "lib/verbs/dpdk_port.h"
#include "lib/verbs/exports.h"
#include "lib/verbs/netdev.h"

/* Programs register many small pieces; a key's slot costs 8 bytes. */
enum { MAX_MR = 1 << 14, MIN_OBJECTS = 1024 };

/* Open, close and exit, one at a time; before all locks of internal.h. */
static pthread_mutex_t iv_env_lock = PTHREAD_MUTEX_INITIALIZER;

struct env_dev {
	struct iv_device device;
	struct iv_config config;
	char *path;
	int claim; /* the lock on path, until the process ends; -1: not had */
	struct iv_dpdk *port[RNIC_MAX_PORTS]; /* from the first open to exit */
	struct iv_netdev netdev;
	bool has_netdev; /* likewise */
};

static struct {
	struct env_dev *dev[IV_MAX_PORTS]; /* what the device list shows */
	unsigned n;                        /* 0: not known yet */
	bool complained;
	pid_t pid; /* of the process that opened a port: not a child's to close */
} env;

static __thread bool opening_port;

bool iv_env_set(void)
{
	const char *path = getenv("INCLINE_RNIC");

	return path && *path && !opening_port;
}

bool iv_env_lists(void)
{
	const bool set = iv_env_set();

	if (!set && !opening_port)
		iv_debug("INCLINE_RNIC is not set: the devices are those of the kernel, if it has "
			 "any");
	return set;
}

static struct env_dev *env_dev(const struct iv_device *device)
{
	for (unsigned i = 0; i < env.n; i++) {
		if (&env.dev[i]->device == device)
			return env.dev[i];
	}
	return NULL;
}

bool iv_env_has(const char *name)
{
	bool found = false;

	if (!iv_env_set())
		return false;
	pthread_mutex_lock(&iv_env_lock);
	for (unsigned i = 0; i < env.n && !found; i++)
		found = strcmp(env.dev[i]->config.name, name) == 0;
	pthread_mutex_unlock(&iv_env_lock);
	return found;
}

/* ---- which ports are this process's ---- */

/* A mistake is told once, and not again for every attempt. */
static int complain(int error, const char *text)
{
	if (!env.complained)
		fprintf(stderr, "incline: %s\n", text);
	env.complained = true;
	return error;
}

static void free_dev(struct env_dev *d)
{
	if (!d)
		return;
	if (d->claim >= 0)
		close(d->claim);
	free(d->path);
	free(d);
}

/* index: the place of its file among those that INCLINE_RNIC names. */
static int read_dev(const char *path, unsigned index, struct env_dev **out)
{
	struct env_dev *d = calloc(1, sizeof(*d));
	char err[IV_CONFIG_ERR] = "out of memory";
	int ret;

	if (!d)
		return complain(-ENOMEM, err);
	d->claim = -1;
	d->path = strdup(path);
	ret = d->path ? iv_config_read(path, &d->config, err) : -ENOMEM;
	if (ret) {
		free_dev(d);
		return complain(ret, err);
	}
	if (!d->config.name[0])
		snprintf(d->config.name, sizeof(d->config.name), "incline%u", index);
	iv_device_init(&d->device, d->config.name, d->config.ports[0].mac, d->config.iwarp);
	*out = d;
	return 0;
}

/* How many of several ports a process takes. */
static unsigned wanted(void)
{
	const char *text = getenv("INCLINE_DEVICES");
	const unsigned long n = text && *text ? strtoul(text, NULL, 10) : 1;

	return n < 1 ? 1 : n > IV_MAX_PORTS ? IV_MAX_PORTS : (unsigned)n;
}

static int all_taken(char *const paths[], unsigned n)
{
	char text[IV_CONFIG_ERR];
	int len = snprintf(text, sizeof(text), "INCLINE_RNIC: all %u ports are taken:", n);

	for (unsigned i = 0; i < n && len < (int)sizeof(text) - 1; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, " %s by process %d%s",
			paths[i], (int)iv_claim_owner(paths[i]), i + 1 < n ? "," : "");
	return complain(-EBUSY, text);
}

/* The first free ones of several, as many as are wanted. */
static int take_free(char *const paths[], unsigned n)
{
	struct env_dev *d;

	for (unsigned i = 0; i < n && env.n < wanted(); i++) {
		int ret = read_dev(paths[i], i, &d);

		if (ret)
			return ret;
		d->claim = iv_claim(paths[i]);
		if (d->claim == -EBUSY) {
			free_dev(d);
			continue;
		}
		if (d->claim < 0) {
			char err[IV_CONFIG_ERR];

			snprintf(err, sizeof(err), "%.200s: %s", paths[i], strerror(-d->claim));
			ret = complain(d->claim, err);
			free_dev(d);
			return ret;
		}
		iv_debug("%s: this process has port %s", d->config.name, d->path);
		env.dev[env.n++] = d;
	}
	return env.n ? 0 : all_taken(paths, n);
}

/* One file: the device is listed, whoever has it, and claimed when it is opened. */
static int read_env(void)
{
	char *paths[IV_MAX_PORTS], err[IV_CONFIG_ERR];
	int n, ret;

	if (env.n)
		return 0;
	n = iv_claim_paths(getenv("INCLINE_RNIC"), paths, err);
	if (n < 0)
		return complain(n, err);
	if (n == 1) {
		ret = read_dev(paths[0], 0, &env.dev[0]);
		env.n = ret == 0;
	} else {
		ret = take_free(paths, (unsigned)n);
	}
	for (int i = 0; i < n; i++)
		free(paths[i]);
	return ret;
}

/* Those of the library behind a drop-in one, or NULL. */
static struct ibv_device **list_behind(int *n)
{
	struct ibv_device **(*real)(int *) = NULL;

	*n = 0;
	if (!iv_alone())
		*(void **)&real = iv_behind(BEHIND_VERBS, "ibv_get_device_list");
	return real ? real(n) : NULL;
}

static void free_behind(struct ibv_device **list)
{
	void (*real)(struct ibv_device **);

	*(void **)&real = iv_behind(BEHIND_VERBS, "ibv_free_device_list");
	if (real)
		real(list);
}

/* Ours, those behind, and NULL; before the first, where nobody looks, the list of those behind. */
static struct ibv_device **make_list(int *n)
{
	int n_behind;
	struct ibv_device **other = list_behind(&n_behind);
	struct ibv_device **list = calloc(env.n + (unsigned)n_behind + 2, sizeof(*list));

	if (!list) {
		if (other)
			free_behind(other);
		return NULL;
	}
	*list++ = (struct ibv_device *)other;
	for (unsigned i = 0; i < env.n; i++)
		list[i] = &env.dev[i]->device.base;
	for (int i = 0; i < n_behind; i++)
		list[env.n + (unsigned)i] = other[i];
	*n = (int)env.n + n_behind;
	return list;
}

struct ibv_device **iv_get_device_list(int *n)
{
	struct ibv_device **list = NULL;
	int ret, count;

	if (n)
		*n = 0;
	pthread_mutex_lock(&iv_env_lock);
	ret = read_env();
	pthread_mutex_unlock(&iv_env_lock);
	if (ret == 0) {
		list = make_list(&count);
		ret = list ? 0 : -ENOMEM;
	}
	if (ret) {
		iv_errno(ret);
		return NULL;
	}
	if (n)
		*n = count;
	return list;
}

void iv_free_device_list(struct ibv_device **list)
{
	struct ibv_device **other = (struct ibv_device **)list[-1];

	if (other)
		free_behind(other);
	free(list - 1);
}

/* ---- the device over DPDK ---- */

static void write_stats(struct iv_dev *dev)
{
	const char *path = getenv("INCLINE_STATS");

	if (path && *path)
		iv_stats_write(dev, path);
}

/* The process exits with the device open. False if the port must be left alone. */
static bool exit_device(struct iv_dev *dev)
{
	iv_dev_stop(dev);
	/* A thread that sits in the middle of a turn for ever keeps the port from being closed; the
	 * peers notice the end of the process anyway. */
	if (!iv_own_timed(dev))
		return false;
	iv_cm_stop(dev);
	rnic_lldp_stop(dev->rnic);
	iv_drain(dev);
	dev->dead = true;
	iv_disown(dev);
	write_stats(dev);
	return true;
}

static void at_exit(void)
{
	if (env.pid != getpid())
		return; /* a child's exit: the device is the parent's */
	for (unsigned i = 0; i < env.n; i++) {
		struct env_dev *d = env.dev[i];

		if (d->device.dev && !exit_device(d->device.dev))
			return;
		for (unsigned p = 0; p < d->config.n_ports && d->port[p]; p++) {
			iv_dpdk_close(d->port[p], true);
			d->port[p] = NULL;
		}
	}
	iv_dpdk_exit();
}

/* The child has copies of the locks, the taps and the connections to the switch, with which it
 * would keep ports that are not its own when the parent is gone. */
static void after_fork(void)
{
	for (unsigned i = 0; i < env.n; i++) {
		struct env_dev *d = env.dev[i];

		if (d->claim >= 0)
			close(d->claim);
		if (d->has_netdev)
			close(d->netdev.fd);
		for (unsigned p = 0; p < d->config.n_ports && d->port[p]; p++) {
			iv_dpdk_forked(d->port[p]);
			d->port[p] = NULL;
		}
		d->claim = -1;
		d->has_netdev = false;
	}
}

static int claim_port(struct env_dev *d)
{
	if (d->claim >= 0)
		return 0;
	d->claim = iv_claim(d->path);
	if (d->claim == -EBUSY)
		fprintf(stderr, "incline: %s: process %d uses this port already\n", d->path,
			(int)iv_claim_owner(d->path));
	else if (d->claim < 0)
		fprintf(stderr, "incline: %s: %s\n", d->path, strerror(-d->claim));
	return d->claim < 0 ? d->claim : 0;
}

static int open_netdev(struct env_dev *d, char err[PORT_ERR_LEN])
{
	int fd, ret;

	if (!d->config.netdev.name[0] || d->has_netdev)
		return 0;
	fd = iv_tap_open(&d->config, err);
	if (fd < 0)
		return fd;
	ret = iv_netdev_init(&d->netdev, fd, d->config.ports[0].mtu);
	if (ret)
		close(fd);
	d->has_netdev = ret == 0;
	return ret;
}

static bool all_open(const struct env_dev *d)
{
	return d->port[d->config.n_ports - 1] && (d->has_netdev || !d->config.netdev.name[0]);
}

/* Those that were opened before an error stay for the next attempt. */
static int open_ports(struct env_dev *d)
{
	char err[PORT_ERR_LEN] = "out of memory";
	int ret;

	if (env.pid && env.pid != getpid()) {
		fprintf(stderr, "incline: %s: opened by the parent process before fork\n",
			d->config.name);
		return -ENODEV;
	}
	if (all_open(d))
		return 0;
	if (!env.pid) {
		atexit(at_exit);
		pthread_atfork(NULL, NULL, after_fork);
	}
	env.pid = getpid();
	ret = claim_port(d);
	if (ret)
		return ret;
	opening_port = true;
	for (unsigned p = 0; p < d->config.n_ports && !ret; p++)
		if (!d->port[p])
			ret = iv_dpdk_open(&d->config, p, env.n, &d->port[p], err);
	opening_port = false;
	if (ret == 0)
		ret = open_netdev(d, err);
	if (ret)
		fprintf(stderr, "incline: %s: %s\n", d->config.name, err);
	return ret;
}

static int add_neighbors(const struct env_dev *d, struct iv_dev *dev)
{
	int ret = 0;

	iv_own(dev);
	for (unsigned p = 0; p < d->config.n_ports; p++) {
		const struct iv_port_config *c = &d->config.ports[p];

		for (unsigned i = 0; i < c->n_neigh && !ret; i++)
			ret = rnic_neigh_add(dev->rnic, p, &c->neigh[i].ip, c->neigh[i].mac);
	}
	iv_disown(dev);
	return ret;
}

static int open_env(struct env_dev *d)
{
	const struct iv_config *c = &d->config;
	struct verbs_open_attr attr = {.thread = true, .idle = c->idle};
	struct iv_dev *dev;
	int ret = open_ports(d);

	if (ret || d->device.dev)
		return ret;
	attr.netdev = d->has_netdev ? &d->netdev : NULL;
	for (unsigned p = 0; p < c->n_ports; p++) {
		attr.rnic.port[p] = iv_config_port(&c->ports[p]);
		attr.mrc.sid[p] = c->ports[p].sid;
		if (p > 0)
			attr.more[p - 1] = d->port[p];
	}
	attr.mrc.settings = &c->mrc;
	attr.rnic.n_ports = c->n_ports;
	attr.rnic.max_qp = c->max_qp;
	attr.rnic.max_cq = attr.rnic.max_pd = c->max_qp > MIN_OBJECTS ? c->max_qp : MIN_OBJECTS;
	attr.rnic.max_mr = MAX_MR;
	attr.rnic.congestion = c->congestion;
	attr.rnic.n_workers = c->rx_workers;
	iv_config_lldp(c, &attr.rnic);
	attr.iwarp = c->iwarp;
	if (getrandom(&attr.rnic.seed, sizeof(attr.rnic.seed), 0) != sizeof(attr.rnic.seed))
		attr.rnic.seed = port_now_ns();
	dev = iv_dev_create(&iv_dpdk_ops, d->port[0], &attr, &d->device);
	if (!dev) {
		ret = -errno;
		fprintf(stderr, "incline: %s: %s\n", c->name, strerror(-ret));
		return ret;
	}
	ret = add_neighbors(d, dev);
	if (ret) {
		fprintf(stderr, "incline: %s: neighbors: %s\n", c->name, strerror(-ret));
		iv_dev_destroy(dev);
	}
	return ret;
}

/* ---- open and close ---- */

struct ibv_context *iv_open_device(struct ibv_device *base)
{
	struct iv_device *device = (struct iv_device *)base;
	struct ibv_context *context = NULL;
	struct env_dev *d;
	int ret = 0;

	pthread_mutex_lock(&iv_env_lock);
	d = env_dev(device);
	if (!device->dev || d)
		ret = d ? open_env(d) : -ENODEV;
	if (ret == 0) {
		context = iv_ctx_open(device->dev);
		if (!context) {
			ret = -errno;
			if (LIST_EMPTY(&device->dev->contexts))
				iv_dev_destroy(device->dev);
		}
	}
	pthread_mutex_unlock(&iv_env_lock);
	if (ret)
		iv_errno(ret);
	return context;
}

int iv_close_device(struct ibv_context *context)
{
	struct iv_dev *dev = iv_dev(context);

	pthread_mutex_lock(&iv_env_lock);
	iv_cm_leave(context);
	if (iv_ctx_close(context)) {
		iv_dev_stop(dev);
		if (env_dev(dev->device))
			write_stats(dev);
		iv_dev_destroy(dev);
	}
	pthread_mutex_unlock(&iv_env_lock);
	return 0;
}
