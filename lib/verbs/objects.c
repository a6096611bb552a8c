/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and memory regions. */
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
		    IBV_ACCESS_REMOTE_ATOMIC,
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
