/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that is not linked with libibverbs: it loads it with dlopen, looks its functions up by
 * name and version in that handle, and writes from one device to another, both ways; "ok" if every
 * byte was right. What takes no object comes through to the library behind. */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>

#undef ibv_reg_mr

/* X(version, name) */
#define LOADED(X)                              \
	X("IBVERBS_1.1", ibv_get_device_list)  \
	X("IBVERBS_1.1", ibv_free_device_list) \
	X("IBVERBS_1.1", ibv_open_device)      \
	X("IBVERBS_1.1", ibv_close_device)     \
	X("IBVERBS_1.1", ibv_alloc_pd)         \
	X("IBVERBS_1.1", ibv_create_cq)        \
	X("IBVERBS_1.1", ibv_reg_mr)           \
	X("IBVERBS_1.8", ibv_reg_mr_iova2)     \
	X("IBVERBS_1.1", ibv_create_qp)        \
	X("IBVERBS_1.1", ibv_query_gid)        \
	X("IBVERBS_1.1", ibv_modify_qp)        \
	X("IBVERBS_1.1", ibv_wc_status_str)    \
	X("IBVERBS_1.0", ibv_rate_to_mult)

#define X(version, name) static __typeof__(name) *loaded_##name;
LOADED(X)
#undef X

#define ibv_get_device_list loaded_ibv_get_device_list
#define ibv_free_device_list loaded_ibv_free_device_list
#define ibv_open_device loaded_ibv_open_device
#define ibv_close_device loaded_ibv_close_device
#define ibv_alloc_pd loaded_ibv_alloc_pd
#define ibv_create_cq loaded_ibv_create_cq
#define ibv_reg_mr loaded_ibv_reg_mr
#define ibv_create_qp loaded_ibv_create_qp
#define ibv_query_gid loaded_ibv_query_gid
#define ibv_modify_qp loaded_ibv_modify_qp
#include "pair.h"

static void *look_up(void *handle, const char *name, const char *version)
{
	void *function = dlvsym(handle, name, version);

	if (!function) {
		fprintf(stderr, "%s, version %s: %s\n", name, version, dlerror());
		exit(1);
	}
	return function;
}

static void load(void)
{
	void *handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
#define X(version, name) *(void **)&loaded_##name = look_up(handle, #name, version);
	LOADED(X)
#undef X
}

int main(void)
{
	struct ibv_device **list;
	struct end end[2];
	int n;

	load();
	assert(strcmp(loaded_ibv_wc_status_str(IBV_WC_SUCCESS), "success") == 0);
	assert(loaded_ibv_rate_to_mult(IBV_RATE_10_GBPS) == 4);
	list = ibv_get_device_list(&n);
	assert(list && n >= 2); /* ours first, then those of the library behind */
	open_pair(end, list);
	for (int i = 0; i < 100; i++)
		write_once(&end[i & 1], &end[!(i & 1)], (uint8_t)i);
	for (int i = 0; i < 2; i++)
		assert(ibv_close_device(end[i].context) == 0);
	ibv_free_device_list(list);
	printf("ok\n");
	return 0;
}
