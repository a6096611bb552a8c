/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, memory regions and windows. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/verbs/exports.h"
#include "lib/verbs/internal.h"

/* ---- protection domains ---- */

struct ibv_pd *iv_alloc_pd(struct ibv_context *context)
{
	struct iv_ctx *ctx = iv_ctx(context);
	struct iv_pd *pd = calloc(1, sizeof(*pd));
	int ret;

	if (!pd)
		return NULL;
	iv_own(ctx->dev);
	ret = rnic_pd_alloc(ctx->dev->rnic, &pd->pd);
	iv_disown(ctx->dev);
	if (ret) {
		free(pd);
		iv_errno(ret);
		return NULL;
	}
	pd->base.context = context;
	pd->base.handle = iv_handle(ctx);
	pthread_mutex_lock(&ctx->lock);
	LIST_INSERT_HEAD(&ctx->pds, pd, link);
	pthread_mutex_unlock(&ctx->lock);
	return &pd->base;
}

/* force: the context goes; what the rnic will not free now, it frees when it is destroyed. */
static int pd_free(struct iv_pd *pd, bool force)
{
	struct iv_ctx *ctx = iv_ctx(pd->base.context);
	int ret;

	iv_own(ctx->dev);
	ret = rnic_pd_free(pd->pd);
	iv_disown(ctx->dev);
	if (ret && !force)
		return ret;
	pthread_mutex_lock(&ctx->lock);
	LIST_REMOVE(pd, link);
	pthread_mutex_unlock(&ctx->lock);
	free(pd);
	return 0;
}

int iv_dealloc_pd(struct ibv_pd *pd)
{
	int ret = pd_free((struct iv_pd *)pd, false);

	return ret ? iv_errno(ret) : 0;
}

void iv_pd_free(struct iv_pd *pd)
{
	pd_free(pd, true);
}

/* ---- memory regions ---- */

enum {
	MR_ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		    IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND,
};

/* A kernel device pins the pages, and thereby refuses addresses where there is no memory. Here they
 * would be noticed by a crash, later and elsewhere. */
static bool is_mapped(void *addr, size_t length)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t at = (uintptr_t)addr & ~(page - 1), end = (uintptr_t)addr + length;
	unsigned char resident[4096];

	if (end < (uintptr_t)addr)
		return false;
	while (at < end) {
		size_t len = end - at;

		if (len > sizeof(resident) * page)
			len = sizeof(resident) * page;
		if (mincore((void *)at, len, resident) != 0)
			return false;
		at += len;
	}
	return true;
}

struct ibv_mr *iv_reg_mr_iova2(
	struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct iv_ctx *ctx = iv_ctx(pd->context);
	struct iv_mr *mr;
	int ret;

	access &= ~IBV_ACCESS_OPTIONAL_RANGE; /* hints such as relaxed ordering */
	if (access & ~MR_ACCESS) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!is_mapped(addr, length)) {
		errno = EFAULT;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return NULL;
	iv_own(ctx->dev);
	ret = rnic_mr_reg(((struct iv_pd *)pd)->pd, addr, length, iova, (int)access, &mr->mr);
	iv_disown(ctx->dev);
	if (ret) {
		free(mr);
		iv_errno(ret);
		return NULL;
	}
	mr->base = (struct ibv_mr){.context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = length,
		.handle = iv_handle(ctx),
		.lkey = rnic_mr_lkey(mr->mr),
		.rkey = rnic_mr_rkey(mr->mr)};
	pthread_mutex_lock(&ctx->lock);
	LIST_INSERT_HEAD(&ctx->mrs, mr, link);
	pthread_mutex_unlock(&ctx->lock);
	return &mr->base;
}

/* A code of enum ibv_rereg_mr_err_code: whatever is wrong, the region stays as it was. */
int iv_rereg_mr(
	struct ibv_mr *base, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct iv_mr *mr = (struct iv_mr *)base;
	struct iv_dev *dev = iv_dev(base->context);
	int ret = 0;

	access &= ~(int)IBV_ACCESS_OPTIONAL_RANGE;
	if ((flags & IBV_REREG_MR_CHANGE_ACCESS) && (access & ~MR_ACCESS))
		ret = -EOPNOTSUPP;
	else if (flags == 0 ||
		 ((flags & IBV_REREG_MR_CHANGE_PD) && (!pd || pd->context != base->context)))
		ret = -EINVAL;
	else if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) && !is_mapped(addr, length))
		ret = -EFAULT;
	if (ret == 0) {
		iv_own(dev);
		ret = rnic_mr_rereg(mr->mr, flags, pd ? ((struct iv_pd *)pd)->pd : NULL, addr,
			length, (uintptr_t)addr, access);
		iv_disown(dev);
	}
	if (ret) {
		iv_errno(ret);
		return IBV_REREG_MR_ERR_INPUT;
	}
	if (flags & IBV_REREG_MR_CHANGE_PD)
		base->pd = pd;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		base->addr = addr;
		base->length = length;
	}
	return 0;
}

struct ibv_mr *iv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return iv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

struct ibv_mr *iv_reg_mr_iova(
	struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return iv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

/* force: the context goes; what the rnic will not free now, it frees when it is destroyed. */
static int mr_free(struct iv_mr *mr, bool force)
{
	struct iv_ctx *ctx = iv_ctx(mr->base.context);
	int ret;

	iv_own(ctx->dev);
	ret = rnic_mr_dereg(mr->mr);
	iv_disown(ctx->dev);
	if (ret && !force)
		return ret;
	pthread_mutex_lock(&ctx->lock);
	LIST_REMOVE(mr, link);
	pthread_mutex_unlock(&ctx->lock);
	free(mr);
	return 0;
}

int iv_dereg_mr(struct ibv_mr *mr)
{
	int ret = mr_free((struct iv_mr *)mr, false);

	return ret ? iv_errno(ret) : 0;
}

void iv_mr_free(struct iv_mr *mr)
{
	mr_free(mr, true);
}

/* ---- memory windows ---- */

struct ibv_mw *iv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct iv_ctx *ctx = iv_ctx(pd->context);
	struct iv_mw *mw = calloc(1, sizeof(*mw));
	int ret;

	if (!mw)
		return NULL;
	iv_own(ctx->dev);
	ret = rnic_mw_alloc(((struct iv_pd *)pd)->pd, type, &mw->mw);
	iv_disown(ctx->dev);
	if (ret) {
		free(mw);
		iv_errno(ret);
		return NULL;
	}
	mw->base.context = pd->context;
	mw->base.pd = pd;
	mw->base.rkey = rnic_mr_rkey(mw->mw);
	mw->base.handle = iv_handle(ctx);
	mw->base.type = type;
	pthread_mutex_lock(&ctx->lock);
	LIST_INSERT_HEAD(&ctx->mws, mw, link);
	pthread_mutex_unlock(&ctx->lock);
	return &mw->base;
}

void iv_mw_free(struct iv_mw *mw)
{
	struct iv_ctx *ctx = iv_ctx(mw->base.context);

	iv_own(ctx->dev);
	rnic_mr_dereg(mw->mw);
	iv_disown(ctx->dev);
	pthread_mutex_lock(&ctx->lock);
	LIST_REMOVE(mw, link);
	pthread_mutex_unlock(&ctx->lock);
	free(mw);
}

int iv_dealloc_mw(struct ibv_mw *mw)
{
	iv_mw_free((struct iv_mw *)mw);
	return 0;
}
