/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, memory regions, and the table that they share with windows. A key is an index
 * into it, with random bits above and below. */
#include <errno.h>
#include <stdlib.h>

#include "lib/rnic/device.h"
#include "lib/rnic/mr.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/window.h"
#include "lib/rnic/worker.h"

enum {
	ACCESS_KNOWN = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_HUGETLB |
		       IBV_ACCESS_OPTIONAL_RANGE,
};

int rnic_pd_alloc(struct rnic *rnic, struct rnic_pd **pd)
{
	struct rnic_pd *new;

	if (rnic->n_pd == rnic->max_pd)
		return -ENOMEM;
	new = calloc(1, sizeof(*new));
	if (new == NULL)
		return -ENOMEM;
	new->rnic = rnic;
	LIST_INSERT_HEAD(&rnic->pds, new, link);
	rnic->n_pd++;
	*pd = new;
	return 0;
}

int rnic_pd_free(struct rnic_pd *pd)
{
	if (pd->users > 0)
		return -EBUSY;
	LIST_REMOVE(pd, link);
	pd->rnic->n_pd--;
	free(pd);
	return 0;
}

static uint32_t key_index(const struct rnic *rnic, uint32_t key)
{
	return key >> KEY_FREE_BITS & ((1u << rnic->mr_bits) - 1);
}

static uint32_t new_key(struct rnic *rnic, uint32_t index)
{
	const uint32_t fixed = ((1u << rnic->mr_bits) - 1) << KEY_FREE_BITS;
	uint32_t key;

	do {
		key = ((uint32_t)rnic_random(rnic) & ~fixed) | index << KEY_FREE_BITS;
	} while (key == 0);
	return key;
}

static int check_range(const void *addr, uint64_t len, uint64_t iova, int access)
{
	if (access & ~ACCESS_KNOWN)
		return -EOPNOTSUPP;
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
		!(access & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (len > UINT64_MAX - (uintptr_t)addr || len > UINT64_MAX - iova)
		return -EINVAL;
	return 0;
}

/* Takes a place in the table. */
static int make(struct rnic_pd *pd, const struct rnic_mr *what, struct rnic_mr **mr)
{
	struct rnic *rnic = pd->rnic;
	struct rnic_mr *new;
	uint32_t index;

	if (rnic->n_mr == rnic->max_mr)
		return -ENOMEM;
	new = malloc(sizeof(*new));
	if (new == NULL)
		return -ENOMEM;
	index = rnic->mr_free[rnic->mr_free_head];
	rnic->mr_free_head = (rnic->mr_free_head + 1) % rnic->max_mr;
	rnic->n_mr++;
	*new = *what;
	new->pd = pd;
	new->key = new_key(rnic, index);
	workers_hold(rnic);
	rnic->mr[index] = new;
	workers_let_go(rnic);
	pd->users++;
	*mr = new;
	return 0;
}

int rnic_mr_reg(struct rnic_pd *pd, void *addr, uint64_t len, uint64_t iova, int access,
	struct rnic_mr **mr)
{
	const struct rnic_mr what = {.addr = addr, .len = len, .iova = iova, .access = access};
	int err = check_range(addr, len, iova, access);

	return err < 0 ? err : make(pd, &what, mr);
}

int rnic_mr_rereg(struct rnic_mr *mr, int flags, struct rnic_pd *pd, void *addr, uint64_t len,
	uint64_t iova, int access)
{
	const int known = IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD |
			  IBV_REREG_MR_CHANGE_ACCESS;
	struct rnic_mr new = *mr;
	int err;

	if ((flags & ~known) || ((flags & IBV_REREG_MR_CHANGE_PD) && pd->rnic != mr->pd->rnic))
		return -EINVAL;
	if (mr->windows > 0)
		return -EBUSY;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		new.addr = addr;
		new.len = len;
		new.iova = iova;
	}
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		new.access = access;
	err = check_range(new.addr, new.len, new.iova, new.access);
	if (err < 0)
		return err;
	if (flags & IBV_REREG_MR_CHANGE_PD) {
		mr->pd->users--;
		pd->users++;
		new.pd = pd;
	}
	workers_hold(mr->pd->rnic);
	*mr = new;
	mr->pd->rnic->mr_changes++;
	workers_let_go(mr->pd->rnic);
	return 0;
}

int rnic_mw_alloc(struct rnic_pd *pd, enum ibv_mw_type type, struct rnic_mr **mw)
{
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return -EINVAL;
	return make(pd, &(struct rnic_mr){.type = (uint8_t)type}, mw);
}

int rnic_mr_dereg(struct rnic_mr *mr)
{
	struct rnic *rnic = mr->pd->rnic;
	uint32_t index = key_index(rnic, mr->key);

	if (mr->windows > 0)
		return -EBUSY;
	workers_hold(rnic);
	window_unbind(mr);
	rnic->mr[index] = NULL;
	rnic->mr_changes++;
	workers_let_go(rnic);
	rnic->mr_free[(rnic->mr_free_head + rnic->max_mr - rnic->n_mr) % rnic->max_mr] = index;
	rnic->n_mr--;
	mr->pd->users--;
	free(mr);
	return 0;
}

uint32_t rnic_mr_lkey(const struct rnic_mr *mr)
{
	return mr->key;
}

uint32_t rnic_mr_rkey(const struct rnic_mr *mr)
{
	return mr->key;
}

struct rnic_mr *mr_find_any(const struct rnic *rnic, uint32_t key)
{
	struct rnic_mr *mr = rnic->mr[key_index(rnic, key)];

	return mr != NULL && (mr->key ^ key) >> KEY_FREE_BITS == 0 ? mr : NULL;
}

struct rnic_mr *mr_find(const struct rnic *rnic, uint32_t key)
{
	struct rnic_mr *mr = mr_find_any(rnic, key);

	return mr != NULL && mr->key == key ? mr : NULL;
}

static uint8_t *at(const struct rnic_mr *mr, uint64_t va, uint64_t len, int access)
{
	if ((mr->access & access) != access)
		return NULL;
	if (va < mr->iova || len > mr->len || va - mr->iova > mr->len - len)
		return NULL;
	return mr->addr + (va - mr->iova);
}

uint8_t *mr_translate(const struct rnic_pd *pd, uint32_t key, uint64_t va, uint64_t len, int access)
{
	const struct rnic_mr *mr = mr_find(pd->rnic, key);

	return mr != NULL && mr->pd == pd && mr->type == 0 ? at(mr, va, len, access) : NULL;
}

uint8_t *mr_translate_remote(
	const struct rnic_qp *qp, uint32_t key, uint64_t va, uint64_t len, int access)
{
	const struct rnic_mr *mr = mr_find(qp->rnic, key);

	if (mr == NULL || mr->pd != qp->init.pd || (mr->type != 0 && mr->region == NULL) ||
		(mr->type == IBV_MW_TYPE_2 && mr->qpn != qp->qpn))
		return NULL;
	return at(mr, va, len, access);
}
