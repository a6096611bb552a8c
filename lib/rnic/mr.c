/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and memory regions. A key is an index into the table of regions in its low
 * bits, with random bits above it. */
#include <errno.h>
#include <stdlib.h>

#include "lib/rnic/core.h"

enum {
	ACCESS_KNOWN = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE,
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
	rnic->n_pd++;
	*pd = new;
	return 0;
}

int rnic_pd_free(struct rnic_pd *pd)
{
	if (pd->users > 0)
		return -EBUSY;
	pd->rnic->n_pd--;
	free(pd);
	return 0;
}

static uint32_t new_key(struct rnic *rnic, uint32_t index)
{
	uint32_t key;

	do {
		key = (uint32_t)rnic_random(rnic) << rnic->mr_bits | index;
	} while (key == 0);
	return key;
}

int rnic_mr_reg(struct rnic_pd *pd, void *addr, uint64_t len, uint64_t iova, int access,
	struct rnic_mr **mr)
{
	struct rnic *rnic = pd->rnic;
	struct rnic_mr *new;
	uint32_t index;

	if (access & ~ACCESS_KNOWN)
		return -EOPNOTSUPP;
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
		!(access & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (len > UINT64_MAX - (uintptr_t)addr || len > UINT64_MAX - iova)
		return -EINVAL;
	if (rnic->n_mr == rnic->max_mr)
		return -ENOMEM;
	new = malloc(sizeof(*new));
	if (new == NULL)
		return -ENOMEM;
	index = rnic->mr_free[rnic->mr_free_head];
	rnic->mr_free_head = (rnic->mr_free_head + 1) % rnic->max_mr;
	rnic->n_mr++;
	*new = (struct rnic_mr){.pd = pd,
		.addr = addr,
		.len = len,
		.iova = iova,
		.access = access,
		.key = new_key(rnic, index)};
	rnic->mr[index] = new;
	pd->users++;
	*mr = new;
	return 0;
}

int rnic_mr_dereg(struct rnic_mr *mr)
{
	struct rnic *rnic = mr->pd->rnic;
	uint32_t index = mr->key & ((1u << rnic->mr_bits) - 1);

	rnic->mr[index] = NULL;
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

uint8_t *mr_translate(const struct rnic_pd *pd, uint32_t key, uint64_t va, uint64_t len, int access)
{
	const struct rnic *rnic = pd->rnic;
	const struct rnic_mr *mr = rnic->mr[key & ((1u << rnic->mr_bits) - 1)];

	if (mr == NULL || mr->key != key || mr->pd != pd || (mr->access & access) != access)
		return NULL;
	if (va < mr->iova || len > mr->len || va - mr->iova > mr->len - len)
		return NULL;
	return mr->addr + (va - mr->iova);
}
