/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA ports as NCCL's devices. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/gid.h"
#include "lib/nccl/im.h"

static struct np_port ports[NP_MAX_PORTS];
static int n_ports;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ibv_port_attr's codes, as the InfiniBand specification numbers them. */
static int speed_of(const struct ibv_port_attr *a)
{
	static const struct {
		int code, mbps;
	} speed[] = {{1, 2500}, {2, 5000}, {4, 10000}, {8, 10000}, {16, 14000}, {32, 25000},
		{64, 50000}, {128, 100000}};
	static const struct {
		int code, lanes;
	} width[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
	int lane = 10000, lanes = 1;

	for (unsigned i = 0; i < sizeof(speed) / sizeof(speed[0]); i++)
		if (speed[i].code == a->active_speed)
			lane = speed[i].mbps;
	for (unsigned i = 0; i < sizeof(width) / sizeof(width[0]); i++)
		if (width[i].code == a->active_width)
			lanes = width[i].lanes;
	return lane * lanes;
}

static void find_addresses(struct np_port *p, struct ibv_context *ctx, int n_gids)
{
	for (int i = 0; i < n_gids && i < 256 && p->n_addresses < NP_MAX_ADDRESSES; i++) {
		struct wire_ip ip;

		if (!ccl_gid_address(ctx, p->port, i, &ip) || ccl_is_link_local(&ip))
			continue;
		if (p->n_addresses == 0)
			p->gid_index = (uint8_t)i;
		wire_ip_format(&ip, p->ip[p->n_addresses++], CCL_IP_LEN);
	}
}

static void add_port(struct ibv_context *ctx, const struct ibv_device_attr *dev, uint8_t number)
{
	struct np_port *p = &ports[n_ports];
	char path[sizeof(ctx->device->ibdev_path) + 16], real[PATH_MAX];
	struct ibv_port_attr attr;

	if (n_ports == NP_MAX_PORTS || ibv_query_port(ctx, number, &attr) ||
		attr.state != IBV_PORT_ACTIVE)
		return;
	*p = (struct np_port){.port = number,
		.guid = dev->sys_image_guid ? dev->sys_image_guid : (uint64_t)n_ports,
		.speed = speed_of(&attr),
		.max_qp = dev->max_qp,
		.mtu = 128u << attr.active_mtu};
	snprintf(p->device, sizeof(p->device), "%s", ibv_get_device_name(ctx->device));
	snprintf(p->name, sizeof(p->name), number > 1 ? "%.55s:%u" : "%.55s", p->device, number);
	snprintf(path, sizeof(path), "%s/device", ctx->device->ibdev_path);
	if (ctx->device->ibdev_path[0] && realpath(path, real))
		snprintf(p->pci_path, sizeof(p->pci_path), "%.255s", real);
	find_addresses(p, ctx, attr.gid_tbl_len);
	if (p->n_addresses)
		n_ports++;
}

static void find_ports(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	const char *only = getenv("INCLINE_DEVICE");

	for (int i = 0; list && list[i]; i++) {
		struct ibv_device_attr attr;
		struct ibv_context *ctx;

		if (only && strcmp(only, ibv_get_device_name(list[i])) != 0)
			continue;
		ctx = ibv_open_device(list[i]);
		if (!ctx)
			continue;
		if (ibv_query_device(ctx, &attr) == 0)
			for (uint8_t p = 1; p <= attr.phys_port_cnt; p++)
				add_port(ctx, &attr, p);
		ibv_close_device(ctx);
	}
	if (list)
		ibv_free_device_list(list);
}

int np_ports(void)
{
	pthread_once(&once, find_ports);
	return n_ports;
}

const struct np_port *np_port(int dev)
{
	if (dev >= 0 && dev < np_ports())
		return &ports[dev];
	np_warn(0, "device %d: there are %d", dev, np_ports());
	return NULL;
}

nccl_rc np_devices(int *n)
{
	*n = np_ports();
	return NCCL_OK;
}

nccl_rc np_properties(int dev, struct nccl_properties *p)
{
	const struct np_port *port = np_port(dev);

	if (!port)
		return NCCL_INTERNAL_ERROR;
	*p = (struct nccl_properties){.name = ports[dev].name,
		.pci_path = port->pci_path[0] ? ports[dev].pci_path : NULL,
		.guid = port->guid,
		.memory = NCCL_MEMORY_HOST,
		.speed = port->speed,
		.port = port->port,
		.max_comms = port->max_qp,
		.max_receives = 1};
	return NCCL_OK;
}

static struct ibv_context *open_by_name(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (int i = 0; list && list[i] && !ctx; i++)
		if (!strcmp(name, ibv_get_device_name(list[i])))
			ctx = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return ctx;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	struct ibv_context *context;
	unsigned users;
} opened[NP_MAX_PORTS];

struct ibv_context *np_open(const struct np_port *port)
{
	const size_t i = (size_t)(port - ports);
	struct ibv_context *ctx;

	pthread_mutex_lock(&lock);
	if (opened[i].users == 0)
		opened[i].context = open_by_name(port->device);
	ctx = opened[i].context;
	opened[i].users += ctx != NULL;
	pthread_mutex_unlock(&lock);
	return ctx;
}

void np_let_go(const struct np_port *port)
{
	const size_t i = (size_t)(port - ports);

	pthread_mutex_lock(&lock);
	if (--opened[i].users == 0)
		ibv_close_device(opened[i].context);
	pthread_mutex_unlock(&lock);
}
