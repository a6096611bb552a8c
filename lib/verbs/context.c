/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts: what ibv_open_device returns, its tables of operations, and the queries about device,
 * port, GIDs and P_Keys. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/verbs/exports.h"
#include "lib/verbs/internal.h"
#include "lib/verbs/iwarp_dev.h"

/* What programs know devices by. No OUI is ours, so it is a locally administered one (bit 1 of the
 * first byte), which the IEEE gives to nobody: 02, "IN". Not 0xffffff, "no IEEE identifier": that
 * is Soft-RoCE's, whose limits programs know. */
enum { VENDOR_ID = 0x02494e, VENDOR_PART_ID = 1 };

bool iv_mine(const struct ibv_context *context)
{
	return context->ops.post_send == iv_post_send;
}

uint32_t iv_handle(struct iv_ctx *ctx)
{
	uint32_t handle;

	pthread_mutex_lock(&ctx->lock);
	handle = ++ctx->next_handle;
	pthread_mutex_unlock(&ctx->lock);
	return handle;
}

/* ---- operations that are not offered ---- */

static int no_close_xrcd(struct ibv_xrcd *xrcd)
{
	(void)xrcd;
	return iv_errno(EOPNOTSUPP);
}

/* ---- queries ---- */

/* EUI-64 of a MAC as RoCE devices make it: ff:fe in the middle, universal bit inverted. */
static __be64 guid_of(const uint8_t mac[6])
{
	const uint8_t guid[8] = {mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
	__be64 out;

	memcpy(&out, guid, sizeof(out));
	return out;
}

int iv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	struct iv_dev *dev = iv_dev(context);

	memset(attr, 0, sizeof(*attr));
	rnic_query_device(dev->rnic, attr);
	snprintf(attr->fw_ver, sizeof(attr->fw_ver), "incline-%s", INCLINE_VERSION);
	attr->node_guid = guid_of(dev->device->mac);
	attr->sys_image_guid = attr->node_guid;
	attr->vendor_id = VENDOR_ID;
	attr->vendor_part_id = VENDOR_PART_ID;
	if (dev->iwarp)
		iv_iwarp_query_device(attr);
	return 0;
}

static int query_device_ex(struct ibv_context *context,
	const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *attr, size_t size)
{
	struct ibv_device_attr_ex full = {.phys_port_cnt_ex = iv_dev(context)->n_ports};

	if (size < sizeof(full.orig_attr) + sizeof(full.comp_mask) || (input && input->comp_mask))
		return iv_errno(EINVAL);
	iv_query_device(context, &full.orig_attr);
	full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
	if (size > sizeof(full)) {
		memset((char *)attr + sizeof(full), 0, size - sizeof(full));
		size = sizeof(full);
	}
	memcpy(attr, &full, size);
	return 0;
}

/* An iWARP device is known by its MAC (iv_query_gid), and its peers by their IP addresses, which
 * rdma_cm takes. */
static unsigned gid_count(const struct iv_dev *dev, unsigned port)
{
	return dev->iwarp ? 1 : rnic_gid_count(dev->rnic, port);
}

static void fill_port(struct iv_dev *dev, unsigned port, struct ibv_port_attr *attr)
{
	/* A port that the controller of MRC has disabled is down for everybody who asks. */
	bool up = (!dev->ops->link_up || dev->ops->link_up(dev->ports[port].handle)) &&
		  (atomic_load(&dev->mrc_up) >> port & 1);

	*attr = (struct ibv_port_attr){
		.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = rnic_active_mtu(dev->rnic, port),
		.gid_tbl_len = (int)gid_count(dev, port),
		.port_cap_flags = dev->iwarp ? 0 : IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = RNIC_MAX_MSG,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.active_width = 1,        /* 1X */
		.active_speed = 32,       /* 25 Gb/s: software has no line rate to tell */
		.phys_state = up ? 5 : 2, /* LinkUp, Polling */
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.flags = dev->iwarp ? 0 : IBV_QPF_GRH_REQUIRED,
	};
}

static int query_port(
	struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr, size_t size)
{
	struct ibv_port_attr full;

	if (!iv_has_port(context, port))
		return iv_errno(EINVAL);
	fill_port(iv_dev(context), port - 1u, &full);
	if (size > sizeof(full)) {
		memset((char *)attr + sizeof(full), 0, size - sizeof(full));
		size = sizeof(full);
	}
	memcpy(attr, &full, size);
	return 0;
}

/* The function behind the macro of the same name: programs from before port_cap_flags2. */
int iv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return query_port(context, port, (struct ibv_port_attr *)attr,
		offsetof(struct ibv_port_attr, port_cap_flags2));
}

int iv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
	const struct iv_dev *dev = iv_dev(context);
	struct wire_ip ip = {0};

	if (!iv_has_port(context, port) || index < 0 ||
		(unsigned)index >= gid_count(dev, port - 1u)) {
		errno = EINVAL;
		return -1;
	}
	if (dev->iwarp)
		memcpy(ip.b, dev->device->mac, sizeof(dev->device->mac));
	else
		rnic_gid(dev->rnic, port - 1u, (unsigned)index, &ip);
	memcpy(gid->raw, ip.b, sizeof(gid->raw));
	return 0;
}

/* Private to libibverbs and its tools (ibv_devinfo): 0 is "IB or RoCE v1", 1 is "RoCE v2". */
int iv_query_gid_type(struct ibv_context *context, uint8_t port, unsigned index, int *type)
{
	union ibv_gid gid;

	if (iv_query_gid(context, port, (int)index, &gid))
		return -1;
	*type = iv_dev(context)->iwarp ? 0 : 1;
	return 0;
}

static int gid_entry(
	struct ibv_context *context, uint8_t port, uint32_t index, void *out, size_t size)
{
	struct ibv_gid_entry entry = {.gid_index = index,
		.port_num = port,
		.gid_type = iv_dev(context)->iwarp ? IBV_GID_TYPE_IB : IBV_GID_TYPE_ROCE_V2};

	if (iv_query_gid(context, port, (int)index, &entry.gid))
		return iv_errno(ENODATA);
	memcpy(out, &entry, size < sizeof(entry) ? size : sizeof(entry));
	return 0;
}

int iv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
	struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
	if (!iv_has_port(context, port) || flags || size < sizeof(*entry))
		return iv_errno(EINVAL);
	return gid_entry(context, (uint8_t)port, index, entry, size);
}

ssize_t iv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max,
	uint32_t flags, size_t size)
{
	const struct iv_dev *dev = iv_dev(context);
	unsigned n = 0, at = 0;

	for (unsigned port = 0; port < dev->n_ports; port++)
		n += gid_count(dev, port);
	if (flags || size < sizeof(*entries) || max < n)
		return -EINVAL;
	for (unsigned port = 0; port < dev->n_ports; port++)
		for (unsigned i = 0; i < gid_count(dev, port); i++)
			gid_entry(context, (uint8_t)(port + 1), i, (char *)entries + at++ * size,
				size);
	return n;
}

int iv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
	if (!iv_has_port(context, port) || index != 0) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htobe16(IV_PKEY);
	return 0;
}

int iv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
	if (iv_has_port(context, port) && be16toh(pkey) == IV_PKEY)
		return 0;
	errno = EINVAL;
	return -1;
}

__be64 iv_get_device_guid(struct ibv_device *device)
{
	return guid_of(((struct iv_device *)device)->mac);
}

const char *iv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

int iv_get_device_index(struct ibv_device *device)
{
	(void)device;
	return -1; /* indices are the kernel's */
}

/* ---- life ---- */

static void fill_ops(struct iv_ctx *ctx)
{
	struct verbs_context *v = &ctx->vctx;

	/* What is NULL here is answered with EOPNOTSUPP by the inline functions of verbs.h, except
	 * for the few that jump without looking. */
	v->sz = sizeof(*v);
	v->query_port = query_port;
	v->query_device_ex = query_device_ex;
	v->create_cq_ex = iv_create_cq_ex;
	v->create_qp_ex = iv_create_qp_ex;
	v->create_srq_ex = iv_create_srq_ex;
	v->close_xrcd = no_close_xrcd;
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->context.ops.alloc_mw = iv_alloc_mw;
	v->context.ops.bind_mw = iv_bind_mw;
	v->context.ops.dealloc_mw = iv_dealloc_mw;
	v->context.ops.poll_cq = iv_poll_cq;
	v->context.ops.req_notify_cq = iv_req_notify_cq;
	v->context.ops.post_srq_recv = iv_post_srq_recv;
	v->context.ops.post_send = iv_post_send;
	v->context.ops.post_recv = iv_post_recv;
}

/* cmd_fd is the kernel's device file elsewhere. Nothing is to be had from ours, but programs may
 * duplicate and close it, and 0 or -1 would be somebody else's or an error. */
static int open_fds(struct ibv_context *context)
{
	context->cmd_fd = eventfd(0, EFD_CLOEXEC);
	if (context->cmd_fd < 0)
		return -1;
	context->async_fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (context->async_fd < 0) {
		close(context->cmd_fd);
		return -1;
	}
	return 0;
}

struct ibv_context *iv_ctx_open(struct iv_dev *dev)
{
	struct iv_ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	ctx->dev = dev;
	ctx->vctx.context.device = &dev->device->base;
	ctx->vctx.context.num_comp_vectors = 1;
	if (open_fds(&ctx->vctx.context)) {
		free(ctx);
		return NULL;
	}
	fill_ops(ctx);
	pthread_mutex_init(&ctx->vctx.context.mutex, NULL);
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_mutex_init(&ctx->async_lock, NULL);
	TAILQ_INIT(&ctx->async_ready);
	pthread_mutex_lock(&dev->list_lock);
	LIST_INSERT_HEAD(&dev->contexts, ctx, link);
	pthread_mutex_unlock(&dev->list_lock);
	return &ctx->vctx.context;
}

/* Objects that the application left behind, users before what they use. */
static void free_objects(struct iv_ctx *ctx)
{
	while (!LIST_EMPTY(&ctx->qps))
		iv_qp_free(LIST_FIRST(&ctx->qps));
	while (!LIST_EMPTY(&ctx->srqs))
		iv_srq_free(LIST_FIRST(&ctx->srqs));
	while (!LIST_EMPTY(&ctx->ahs))
		iv_ah_free(LIST_FIRST(&ctx->ahs));
	while (!LIST_EMPTY(&ctx->cqs))
		iv_cq_free(LIST_FIRST(&ctx->cqs));
	while (!LIST_EMPTY(&ctx->channels))
		iv_channel_free(LIST_FIRST(&ctx->channels));
	while (!LIST_EMPTY(&ctx->mws))
		iv_mw_free(LIST_FIRST(&ctx->mws));
	while (!LIST_EMPTY(&ctx->mrs))
		iv_mr_free(LIST_FIRST(&ctx->mrs));
	while (!LIST_EMPTY(&ctx->pds))
		iv_pd_free(LIST_FIRST(&ctx->pds));
}

bool iv_ctx_close(struct ibv_context *context)
{
	struct iv_ctx *ctx = iv_ctx(context);
	struct iv_dev *dev = ctx->dev;
	bool last;

	free_objects(ctx);
	pthread_mutex_lock(&dev->list_lock);
	LIST_REMOVE(ctx, link);
	last = LIST_EMPTY(&dev->contexts);
	pthread_mutex_unlock(&dev->list_lock);
	close(context->async_fd);
	close(context->cmd_fd);
	pthread_mutex_destroy(&context->mutex);
	pthread_mutex_destroy(&ctx->lock);
	pthread_mutex_destroy(&ctx->async_lock);
	free(ctx);
	return last;
}

struct ibv_context *incline_verbs_open_port(
	const struct verbs_port_ops *ops, void *port, const struct verbs_open_attr *attr)
{
	struct iv_dev *dev = iv_dev_create(ops, port, attr, NULL);
	struct ibv_context *context = dev ? iv_ctx_open(dev) : NULL;
	int err = errno;

	if (dev && !context) {
		iv_dev_destroy(dev);
		errno = err;
	}
	return context;
}
