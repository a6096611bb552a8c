/* SPDX-License-Identifier: BSD-3-Clause */
/* The device list, opening and closing: the one device that INCLINE_RNIC describes, and devices
 * that were opened on ports of the caller's (incline_verbs_open_port). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/verbs/dpdk_port.h"
#include "lib/verbs/exports.h"

/* Programs register many small pieces; a key's slot costs 8 bytes. */
enum { MAX_MR = 1 << 14 };

/* Open, close and exit, one at a time; before all locks of internal.h. */
static pthread_mutex_t iv_env_lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
	struct iv_device device;
	struct iv_config config;
	struct iv_dpdk *port; /* from the first open to exit */
	bool read;            /* config and device are valid */
	bool complained;
	pid_t pid; /* of the process that opened the port: not a child's to close */
} env;

static __thread bool opening_port;

bool iv_env_set(void)
{
	const char *path = getenv("INCLINE_RNIC");

	return path && *path && !opening_port;
}

static int read_config(void)
{
	char err[IV_CONFIG_ERR];
	int ret;

	if (env.read)
		return 0;
	ret = iv_config_read(getenv("INCLINE_RNIC"), &env.config, err);
	if (ret) {
		if (!env.complained)
			fprintf(stderr, "incline: %s\n", err);
		env.complained = true;
		return ret;
	}
	iv_device_init(&env.device, env.config.name, env.config.mac);
	env.read = true;
	return 0;
}

struct ibv_device **iv_get_device_list(int *n)
{
	struct ibv_device **list = NULL;
	int ret;

	if (n)
		*n = 0;
	pthread_mutex_lock(&iv_env_lock);
	ret = read_config();
	pthread_mutex_unlock(&iv_env_lock);
	if (ret == 0) {
		list = calloc(2, sizeof(struct ibv_device *));
		ret = list ? 0 : -ENOMEM;
	}
	if (ret) {
		iv_errno(ret);
		return NULL;
	}
	list[0] = &env.device.base;
	if (n)
		*n = 1;
	return list;
}

void iv_free_device_list(struct ibv_device **list)
{
	free(list);
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
	if (env.device.dev && !exit_device(env.device.dev))
		return;
	if (env.port)
		iv_dpdk_close(env.port);
	env.port = NULL;
	iv_dpdk_exit();
}

static int open_port(void)
{
	char err[PORT_ERR_LEN];
	int ret;

	if (env.pid && env.pid != getpid()) {
		fprintf(stderr, "incline: %s: opened by the parent process before fork\n",
			env.config.name);
		return -ENODEV;
	}
	if (env.port)
		return 0;
	if (!env.pid)
		atexit(at_exit);
	env.pid = getpid();
	opening_port = true;
	ret = iv_dpdk_open(&env.config, &env.port, err);
	opening_port = false;
	if (ret)
		fprintf(stderr, "incline: %s: %s\n", env.config.name, err);
	return ret;
}

static int add_neighbors(struct iv_dev *dev)
{
	int ret = 0;

	iv_own(dev);
	for (unsigned i = 0; i < env.config.n_neigh && !ret; i++)
		ret = rnic_neigh_add(dev->rnic, &env.config.neigh[i].ip, env.config.neigh[i].mac);
	iv_disown(dev);
	return ret;
}

static int open_env(void)
{
	const struct iv_config *c = &env.config;
	struct verbs_open_attr attr = {.thread = true, .idle = c->idle};
	struct iv_dev *dev;
	int ret = open_port();

	if (ret || env.device.dev)
		return ret;
	memcpy(attr.rnic.mac, c->mac, sizeof(c->mac));
	memcpy(attr.rnic.ip, c->ip, sizeof(c->ip));
	attr.rnic.n_ip = c->n_ip;
	attr.rnic.port_mtu = c->mtu;
	attr.rnic.max_mr = MAX_MR;
	attr.rnic.congestion = c->congestion;
	if (getrandom(&attr.rnic.seed, sizeof(attr.rnic.seed), 0) != sizeof(attr.rnic.seed))
		attr.rnic.seed = port_now_ns();
	dev = iv_dev_create(&iv_dpdk_ops, env.port, &attr, &env.device);
	if (!dev) {
		ret = -errno;
		fprintf(stderr, "incline: %s: %s\n", c->name, strerror(-ret));
		return ret;
	}
	ret = add_neighbors(dev);
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
	int ret = 0;

	pthread_mutex_lock(&iv_env_lock);
	if (!device->dev || device == &env.device)
		ret = device == &env.device ? open_env() : -ENODEV;
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
	if (iv_ctx_close(context)) {
		iv_dev_stop(dev);
		if (dev->device == &env.device)
			write_stats(dev);
		iv_dev_destroy(dev);
	}
	pthread_mutex_unlock(&iv_env_lock);
	return 0;
}
