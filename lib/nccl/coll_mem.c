/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory of a communicator. NCCL registers one buffer for sending and for receiving, so
 * a registration counts its users; what CommLib cannot register is sent and received by copies. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/nccl/coll.h"

static struct np_memory *find(struct np_coll *c, const char *base, size_t len)
{
	for (struct np_memory *m = c->memory; m; m = m->next)
		if (m->base == base && m->len == len)
			return m;
	return NULL;
}

static struct np_memory *add(struct np_coll *c, char *base, size_t len)
{
	struct np_memory *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return NULL;
	rc = ccl_register(c->ccl, base, len);
	if (rc)
		np_info("%zu bytes at %p are not registered (%s): copies are sent", len,
			(void *)base, strerror(-rc));
	*m = (struct np_memory){.next = c->memory, .base = base, .len = len, .registered = rc == 0};
	c->memory = m;
	return m;
}

nccl_rc np_coll_reg(void *coll, void *data, size_t len, int memory, void **mem)
{
	struct np_coll *c = coll;
	struct np_memory *m;

	*mem = NULL;
	if (memory != NCCL_MEMORY_HOST)
		return np_warn(NCCL_INTERNAL_ERROR,
			"memory of kind %d: the properties say host memory alone", memory);
	pthread_mutex_lock(&c->lock);
	m = find(c, data, len);
	if (!m)
		m = add(c, data, len);
	if (m)
		m->refs++;
	pthread_mutex_unlock(&c->lock);
	*mem = m;
	return m ? NCCL_OK : np_warn(NCCL_SYSTEM_ERROR, "out of memory");
}

static void drop(struct np_coll *c, const struct np_memory *m)
{
	struct np_memory **at = &c->memory;

	/* A device is not to know memory that is given back; that a collective still uses it, or
	 * will, means that NCCL aborts. */
	if (np_wants(c, m) || (m->registered && ccl_deregister(c->ccl, m->base) == -EBUSY)) {
		np_abort(c, "NCCL has given back memory of an unfinished collective");
		if (m->registered)
			ccl_deregister(c->ccl, m->base);
	}
	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
}

nccl_rc np_coll_dereg(void *coll, void *mem)
{
	struct np_coll *c = coll;
	struct np_memory *m = mem;

	if (!m)
		return NCCL_OK;
	pthread_mutex_lock(&c->lock);
	if (--m->refs == 0) {
		drop(c, m);
		free(m);
	}
	pthread_mutex_unlock(&c->lock);
	return NCCL_OK;
}

void np_coll_forget(struct np_coll *c)
{
	for (struct np_memory *m = c->memory, *next; m; m = next) {
		next = m->next;
		free(m);
	}
	c->memory = NULL;
}
