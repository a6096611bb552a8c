/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/egress/fifo.h"

#include <errno.h>
#include <rte_common.h>
#include <rte_malloc.h>

int egress_fifo_init(struct egress_fifo *f, uint64_t limit, int socket)
{
	const uint32_t places = egress_fifo_places(limit), size = rte_align32pow2(places);

	*f = (struct egress_fifo){.places = places, .size = size, .limit = limit};
	f->slot = rte_zmalloc_socket(
		"egress", size * sizeof(struct rte_mbuf *), RTE_CACHE_LINE_SIZE, socket);
	if (f->slot == NULL) /* that socket has no memory left */
		f->slot = rte_zmalloc(
			"egress", size * sizeof(struct rte_mbuf *), RTE_CACHE_LINE_SIZE);
	return f->slot == NULL ? -ENOMEM : 0;
}

void egress_fifo_free(struct egress_fifo *f)
{
	for (; f->head != f->tail; f->head++)
		rte_pktmbuf_free(egress_fifo_at(f, 0));
	rte_free(f->slot);
	*f = (struct egress_fifo){0};
}
