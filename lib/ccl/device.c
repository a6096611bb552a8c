/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA devices: found by address, asked what they can do. */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/gid.h"

struct finder {
	const struct wire_ip *ip;
	int gid_index;
	uint8_t port, gid;
	char seen[300]; /* "incline0: 10.77.0.10, fe80::1" */
};

static void __attribute__((format(printf, 2, 3))) note(struct finder *f, const char *fmt, ...)
{
	const size_t n = strlen(f->seen);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(f->seen + n, sizeof(f->seen) - n, fmt, ap);
	va_end(ap);
}

static bool search_port(struct finder *f, struct ibv_context *ctx, uint8_t port)
{
	struct ibv_port_attr attr;

	if (ibv_query_port(ctx, port, &attr))
		return false;
	for (int i = 0; i < attr.gid_tbl_len && i < 256; i++) {
		char text[WIRE_IP_STRLEN];
		struct wire_ip ip;

		if ((f->gid_index >= 0 && i != f->gid_index) || !ccl_gid_address(ctx, port, i, &ip))
			continue;
		note(f, " %s", wire_ip_format(&ip, text, sizeof(text)));
		if (!wire_ip_eq(&ip, f->ip))
			continue;
		f->port = port;
		f->gid = (uint8_t)i;
		return true;
	}
	return false;
}

static struct ibv_context *search_device(struct finder *f, struct ibv_device *dev)
{
	struct ibv_context *ctx = ibv_open_device(dev);
	struct ibv_device_attr attr;

	note(f, "%s%s:", f->seen[0] ? "; " : "", ibv_get_device_name(dev));
	if (!ctx) {
		note(f, " cannot be opened (%s)", strerror(errno));
		return NULL;
	}
	if (ibv_query_device(ctx, &attr) == 0)
		for (uint8_t port = 1; port <= attr.phys_port_cnt; port++)
			if (search_port(f, ctx, port))
				return ctx;
	ibv_close_device(ctx);
	return NULL;
}

int ccl_device_open(const char *device, const struct wire_ip *ip, int gid_index,
	struct ibv_context **context, uint8_t *port, uint8_t *gid, char err[CCL_ERR_LEN])
{
	struct finder f = {.ip = ip, .gid_index = gid_index};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;
	char text[WIRE_IP_STRLEN];

	for (int i = 0; list && list[i] && !ctx; i++)
		if (!device[0] || strcmp(device, ibv_get_device_name(list[i])) == 0)
			ctx = search_device(&f, list[i]);
	if (list)
		ibv_free_device_list(list);
	if (ctx) {
		*context = ctx;
		*port = f.port;
		*gid = f.gid;
		return 0;
	}
	wire_ip_format(ip, text, sizeof(text));
	if (f.seen[0])
		snprintf(err, CCL_ERR_LEN,
			"no RDMA device has this rank's address %s%s (found: %s)", text,
			gid_index >= 0 ? " at the given gid_index" : "", f.seen);
	else
		snprintf(err, CCL_ERR_LEN,
			"no RDMA device%s%s on this machine; a software one is "
			"loaded with LD_PRELOAD=libincline_verbs.so and INCLINE_RNIC",
			device[0] ? " named " : "", device);
	return -ENODEV;
}

static bool first_address(struct ibv_context *ctx, uint8_t port, char ip[CCL_IP_LEN])
{
	struct ibv_port_attr attr;

	if (ibv_query_port(ctx, port, &attr))
		return false;
	for (int i = 0; i < attr.gid_tbl_len && i < 256; i++) {
		struct wire_ip a;

		if (!ccl_gid_address(ctx, port, i, &a) || ccl_is_link_local(&a))
			continue;
		wire_ip_format(&a, ip, CCL_IP_LEN);
		return true;
	}
	return false;
}

int ccl_own_address(const char *device, char ip[CCL_IP_LEN], char err[CCL_ERR_LEN])
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct finder f = {.ip = NULL};
	bool found = false;

	for (int i = 0; list && list[i] && !found; i++) {
		struct ibv_context *ctx;
		struct ibv_device_attr attr;

		if (device && strcmp(device, ibv_get_device_name(list[i])) != 0)
			continue;
		ctx = ibv_open_device(list[i]);
		note(&f, " %s%s", ibv_get_device_name(list[i]), ctx ? "" : " (cannot be opened)");
		if (!ctx)
			continue;
		if (ibv_query_device(ctx, &attr) == 0)
			for (uint8_t p = 1; p <= attr.phys_port_cnt && !found; p++)
				found = first_address(ctx, p, ip);
		ibv_close_device(ctx);
	}
	if (list)
		ibv_free_device_list(list);
	if (found)
		return 0;
	snprintf(err, CCL_ERR_LEN, "no RDMA device%s%s with an address on this machine (found:%s)",
		device ? " named " : "", device ? device : "", f.seen[0] ? f.seen : " none");
	return -ENODEV;
}

static int mtu_bytes(enum ibv_mtu mtu)
{
	return 128 << mtu;
}

int ccl_port_mtu(struct ibv_context *context, uint8_t port)
{
	struct ibv_port_attr attr;
	const int rc = ibv_query_port(context, port, &attr);

	return rc ? -rc : mtu_bytes(attr.active_mtu);
}

/* By name, so that a program runs with any libibverbs and finds ours when it is there. */
static void *direct_verb(struct ibv_context *context, const char *name)
{
	bool (*is_supported)(const struct ibv_context *);

	*(void **)&is_supported = dlsym(RTLD_DEFAULT, "inc_dv_is_supported");
	return is_supported && is_supported(context) ? dlsym(RTLD_DEFAULT, name) : NULL;
}

ccl_skip_fn ccl_device_skip(struct ibv_context *context)
{
	ccl_skip_fn fn;

	*(void **)&fn = direct_verb(context, "inc_dv_qp_skip");
	return fn;
}

ccl_create_fn ccl_device_create(struct ibv_context *context)
{
	ccl_create_fn fn;

	*(void **)&fn = direct_verb(context, "inc_dv_create_qp");
	return fn;
}

ccl_window_fn ccl_device_window(struct ibv_context *context)
{
	ccl_window_fn fn;

	*(void **)&fn = direct_verb(context, "inc_dv_qp_mcast_window");
	return fn;
}

unsigned ccl_device_workers(struct ibv_context *context)
{
	unsigned (*fn)(struct ibv_context *);

	*(void **)&fn = direct_verb(context, "inc_dv_receive_workers");
	return fn ? fn(context) : 0;
}

bool ccl_device_rnr(struct ibv_context *context)
{
	enum { RXE_VENDOR_ID = 0xffffff };
	struct ibv_device_attr attr;

	if (ibv_query_device(context, &attr))
		return true;
	return attr.vendor_id != RXE_VENDOR_ID;
}

bool ccl_device_mcast(struct ibv_context *context)
{
	struct ibv_device_attr attr;

	return ibv_query_device(context, &attr) == 0 && attr.max_mcast_grp > 0 &&
	       attr.max_mcast_qp_attach > 0;
}
