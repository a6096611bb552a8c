/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory. A registration outlives the call, so it must not outlive the memory: a NIC
 * would go on with pages that are no longer the program's. MPI says so of memory from MPI_Alloc_mem
 * only, which is therefore what is registered; of all other buffers CommLib sends copies. Who knows
 * that a program keeps its buffers says INCLINE_MPI_REGISTER=all. */
#include <stdlib.h>
#include <string.h>

#include "lib/mpi/im.h"

struct area {
	struct area *next;
	char *base;
	size_t len;
	bool given_back; /* but a communicator could not let go of it yet */
};
static struct area *areas; /* im.lock */

static const struct area *find_area(const char *p, size_t len)
{
	for (const struct area *a = areas; a; a = a->next)
		if (p >= a->base && len <= a->len && (size_t)(p - a->base) <= a->len - len)
			return a;
	return NULL;
}

static bool register_all(void)
{
	const char *how = getenv("INCLINE_MPI_REGISTER");

	return how && !strcmp(how, "all");
}

static bool overlaps(const struct im_region *r, const char *p, size_t len)
{
	return r->len && p < r->base + r->len && r->base < p + len;
}

/* True if it is gone. */
static bool drop(struct im_comm *c, struct im_region *r)
{
	if (c->meeting || ccl_deregister(c->ccl, r->base))
		return false;
	r->len = 0;
	return true;
}

void im_use_memory(struct im_comm *c, const void *buf, size_t len)
{
	static unsigned long clock;
	const struct area *a = len ? find_area(buf, len) : NULL;
	char *base = a ? a->base : (char *)(uintptr_t)buf;
	struct im_region *into = NULL;

	if (!len || (!a && !register_all()))
		return;
	len = a ? a->len : len;
	for (unsigned i = 0; i < CCL_MAX_REGIONS; i++) {
		struct im_region *r = &c->region[i];

		if (r->len && base >= r->base && base + len <= r->base + r->len) {
			r->used = ++clock;
			return;
		}
		if (overlaps(r, base, len) && !drop(c, r))
			return; /* in use: this time with copies */
		if (!into || !r->len || (into->len && r->used < into->used))
			into = r;
	}
	if (into->len && !drop(c, into))
		return;
	if (!c->meeting && ccl_register(c->ccl, base, len) == 0)
		*into = (struct im_region){.base = base, .len = len, .used = ++clock};
}

/* Every communicator lets go of it. */
static bool let_go(const struct area *a)
{
	bool gone = true;

	for (struct im_comm *c = im.comms; c; c = c->next)
		for (unsigned i = 0; i < CCL_MAX_REGIONS; i++)
			if (overlaps(&c->region[i], a->base, a->len) && !drop(c, &c->region[i]))
				gone = false;
	return gone;
}

/* Memory that was given back and can go now. */
static void sweep(void)
{
	for (struct area **at = &areas; *at;) {
		struct area *a = *at;

		if (a->given_back && let_go(a)) {
			*at = a->next;
			PMPI_Free_mem(a->base);
			free(a);
		} else {
			at = &a->next;
		}
	}
}

int MPI_Alloc_mem(MPI_Aint size, MPI_Info info, void *baseptr)
{
	const int rc = PMPI_Alloc_mem(size, info, baseptr);
	struct area *a = rc || size <= 0 ? NULL : malloc(sizeof(*a));

	if (!a)
		return rc;
	pthread_mutex_lock(&im.lock);
	*a = (struct area){.next = areas, .base = *(char **)baseptr, .len = (size_t)size};
	areas = a;
	pthread_mutex_unlock(&im.lock);
	return rc;
}

int MPI_Free_mem(void *base)
{
	bool ours = false;

	pthread_mutex_lock(&im.lock);
	for (struct area *a = areas; a; a = a->next)
		if (a->base == base && !a->given_back)
			a->given_back = ours = true;
	sweep();
	pthread_mutex_unlock(&im.lock);
	return ours ? MPI_SUCCESS : PMPI_Free_mem(base);
}
