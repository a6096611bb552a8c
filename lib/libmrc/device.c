/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices and contexts: where MRC is, what it offers, versions. */
#include <dlfcn.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/libmrc/internal.h"

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, mrc_dev) registry = LIST_HEAD_INITIALIZER(registry);

int mrc_errno(int err)
{
	errno = err < 0 ? -err : err;
	return errno;
}

int mrc_fail(int err)
{
	mrc_errno(err);
	return -1;
}

bool mrc_strict(void)
{
	const char *strict = getenv("INCLINE_MRC_STRICT");

	return strict && *strict && strcmp(strict, "0") != 0;
}

bool mrc_admin(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &header, data) == 0 &&
	       data[CAP_TO_INDEX(CAP_NET_ADMIN)].effective & CAP_TO_MASK(CAP_NET_ADMIN);
}

int mrc_may_control(const struct mrc_context *ctx, const void *attr)
{
	if (!ctx || !attr)
		return EINVAL;
	return mrc_admin() ? 0 : EPERM;
}

const struct inc_dv_mrc *mrc_dv(const struct ibv_context *context)
{
	const struct inc_dv_mrc *(*find)(void);
	const struct inc_dv_mrc *dv;

	*(void **)&find = dlsym(RTLD_DEFAULT, "inc_dv_mrc");
	dv = context && find ? find() : NULL;
	return dv && dv->size == sizeof(*dv) && dv->ports(context) ? dv : NULL;
}

/* ---- devices ---- */

static struct mrc_dev *dev_create(struct ibv_context *context, const struct inc_dv_mrc *dv)
{
	struct inc_dv_mrc_listener listener = {.ev_changed = mrc_on_ev, .answered = mrc_on_answer};
	struct mrc_dev *dev = calloc(1, sizeof(*dev));
	uint64_t seed = (uintptr_t)dev;

	if (!dev)
		return NULL;
	(void)!getrandom(&seed, sizeof(seed), GRND_NONBLOCK);
	dev->device = context->device;
	dev->dv = dv;
	dev->admin = (uint8_t)((1u << dv->ports(context)) - 1);
	pthread_mutex_init(&dev->lock, NULL);
	pthread_mutex_init(&dev->note, NULL);
	profiles_init(&dev->book, dv->ports(context), seed);
	listener.arg = dev;
	dv->listen(context, &listener);
	LIST_INSERT_HEAD(&registry, dev, link);
	return dev;
}

static struct mrc_dev *dev_get(struct ibv_context *context, const struct inc_dv_mrc *dv)
{
	struct mrc_dev *dev;

	pthread_mutex_lock(&registry_lock);
	LIST_FOREACH(dev, &registry, link)
	{
		if (dev->device == context->device)
			break;
	}
	if (!dev)
		dev = dev_create(context, dv);
	if (dev)
		dev->n_contexts++;
	pthread_mutex_unlock(&registry_lock);
	return dev;
}

static void dev_put(struct ibv_context *context, struct mrc_dev *dev)
{
	bool last;

	pthread_mutex_lock(&registry_lock);
	last = --dev->n_contexts == 0;
	if (last) {
		LIST_REMOVE(dev, link);
		dev->dv->listen(context, NULL);
		dev->dv->set_ports(context, (uint8_t)((1u << dev->book.n_ports) - 1));
	}
	pthread_mutex_unlock(&registry_lock);
	if (!last)
		return;
	profiles_fini(&dev->book);
	pthread_mutex_destroy(&dev->lock);
	pthread_mutex_destroy(&dev->note);
	free(dev);
}

/* ---- contexts ---- */

API struct mrc_context *mrc_create_context(
	struct ibv_context *vcontext, struct mrc_context_attr *attr)
{
	const struct inc_dv_mrc *dv = mrc_dv(vcontext);
	uint32_t version = attr ? attr->mrc_api_version_used : 0;
	uint32_t vendor = attr ? attr->mrc_vendor_api_version_used : 0;
	struct mrc_context *ctx;

	if (!vcontext || version > MRC_API_CURRENT_VERSION ||
		vendor > MRC_VENDOR_API_CURRENT_VERSION) {
		errno = EINVAL;
		return NULL;
	}
	if (!dv) {
		errno = ENODEV;
		return NULL;
	}
	ctx = calloc(1, sizeof(*ctx));
	if (ctx) {
		ctx->verbs = vcontext;
		ctx->stride = event_stride(version);
		ctx->dev = dev_get(vcontext, dv);
	}
	if (!ctx || !ctx->dev) {
		free(ctx);
		errno = ENOMEM;
		return NULL;
	}
	return ctx;
}

API int mrc_destroy_context(struct mrc_context *ctx)
{
	if (!ctx)
		return mrc_fail(EINVAL);
	if (atomic_load(&ctx->children))
		return mrc_fail(EBUSY);
	dev_put(ctx->verbs, ctx->dev);
	free(ctx);
	return 0;
}

/* ---- what there is ---- */

static int query_device(struct ibv_context *context, struct mrc_device_attr *attr, int *supported)
{
	if (!context || !attr || !supported)
		return mrc_fail(EINVAL);
	*supported = mrc_dv(context) != NULL;
	if (*supported)
		*attr = (struct mrc_device_attr){
			.mrc_protocol_version = MRC_PROTOCOL_VERSION_1,
			.wimm_attr = {RNIC_MRC_WIMM_LIMIT, RNIC_MRC_WIMM_LIMIT},
			.mpr_attr = {RNIC_MRC_MPR_LIMIT, 1},
			.qp_attr = {MAX_HINTS},
			.cap = MRC_DEVICE_CAP_TRIM_NACK | MRC_DEVICE_CAP_DYNAMIC_MPR |
			       MRC_DEVICE_CAP_SVC_TIME,
		};
	return 0;
}

API int mrc_query_device_ex(struct ibv_context *context, struct mrc_context *mcontext,
	struct mrc_device_attr *attr, int *supported)
{
	if (mcontext && mcontext->verbs != context)
		return mrc_fail(EINVAL);
	return query_device(context, attr, supported);
}

API int mrc_query_device(struct ibv_context *context, struct mrc_device_attr *attr, int *supported)
{
	return query_device(context, attr, supported);
}

static int ctl_query_device(
	struct ibv_context *context, struct mrc_ctl_device_attr *attr, int *supported)
{
	static const char *algorithms[] = {NSCC_NAME, NULL};
	const struct inc_dv_mrc *dv = mrc_dv(context);
	uint32_t used = 0;
	struct mrc_dev *dev;

	if (!context || !attr || !supported)
		return mrc_fail(EINVAL);
	*supported = dv != NULL;
	if (!dv)
		return 0;
	pthread_mutex_lock(&registry_lock);
	LIST_FOREACH(dev, &registry, link)
	{
		if (dev->device != context->device)
			continue;
		pthread_mutex_lock(&dev->note);
		used = dev->book.n_evs;
		pthread_mutex_unlock(&dev->note);
	}
	pthread_mutex_unlock(&registry_lock);
	*attr = (struct mrc_ctl_device_attr){
		.mrc_ctl_protocol_version = MRC_CTL_PROTOCOL_VERSION_1,
		.ev = {.ev_max_fmt_profiles = PROFILES_FMT,
			.ev_max_profiles = PROFILES_EV,
			.ev_max_count = PROFILES_EVS,
			.ev_free_count = PROFILES_EVS - used,
			.ev_max_count_profile = PROFILES_EVS_PROFILE,
			.ev_count_align = 1,
			.ev_max_width = 8 * MRC_CTL_EV_MAX_BYTES,
			.ev_fmt_mode_mask = MRC_CTL_EV_FMT_MODE_STEV | MRC_CTL_EV_FMT_MODE_SRV6 |
					    MRC_CTL_EV_FMT_MODE_UDP,
			.ev_mode_mask =
				MRC_CTL_EV_MODE_AUTO | MRC_CTL_EV_MODE_EXP | MRC_CTL_EV_MODE_GEN},
		.cc = {.cc_max_profiles = PROFILES_CC, .algorithms = algorithms},
		.phy_port_mask = ((1u << dv->ports(context)) - 1) << 1,
		.opt_attr = MRC_CTL_OPT_CAP_EV_PROFILE_MODIFY_ONLINE |
			    MRC_CTL_OPT_CAP_CC_PROFILE_MODIFY_ONLINE | MRC_CTL_OPT_CAP_EV_EVENT |
			    MRC_CTL_OPT_CAP_EV_EVENT_PRECISE_DROP_CNT |
			    MRC_CTL_OPT_CAP_EP_OP_EV_PROBE,
	};
	return 0;
}

API int mrc_ctl_query_device_ex(struct ibv_context *context, struct mrc_context *mcontext,
	struct mrc_ctl_device_attr *attr, int *supported)
{
	if (mcontext && mcontext->verbs != context)
		return mrc_fail(EINVAL);
	return ctl_query_device(context, attr, supported);
}

/* It has no other way to say that there is none. */
API int mrc_ctl_query_device(struct ibv_context *context, struct mrc_ctl_device_attr *attr)
{
	int supported = 0, ret = ctl_query_device(context, attr, &supported);

	return ret || supported ? ret : mrc_fail(ENODEV);
}

static void versions(uint32_t *current, uint32_t *last, uint32_t *vendor, uint32_t *last_vendor,
	const uint32_t v[4])
{
	uint32_t *const out[4] = {current, last, vendor, last_vendor};

	for (unsigned i = 0; i < 4; i++) {
		if (out[i])
			*out[i] = v[i];
	}
}

API void mrc_query_version(
	uint32_t *current, uint32_t *last, uint32_t *vendor, uint32_t *last_vendor)
{
	const uint32_t v[] = {MRC_API_CURRENT_VERSION, MRC_API_LAST_SUPPORTED_VERSION,
		MRC_VENDOR_API_CURRENT_VERSION, MRC_VENDOR_API_LAST_SUPPORTED_VERSION};

	versions(current, last, vendor, last_vendor, v);
}

API void mrc_ctl_query_version(
	uint32_t *current, uint32_t *last, uint32_t *vendor, uint32_t *last_vendor)
{
	const uint32_t v[] = {MRC_CTL_API_CURRENT_VERSION, MRC_CTL_API_LAST_SUPPORTED_VERSION,
		MRC_CTL_VENDOR_API_CURRENT_VERSION, MRC_CTL_VENDOR_API_LAST_SUPPORTED_VERSION};

	versions(current, last, vendor, last_vendor, v);
}
