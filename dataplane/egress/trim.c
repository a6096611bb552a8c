/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/egress/trim.h"

#include "lib/wire/frame.h"
#include "lib/wire/ip.h"

bool egress_writable(const struct rte_mbuf *m)
{
	if (rte_mbuf_refcnt_read(m) != 1 || RTE_MBUF_CLONED(m))
		return false;
	return !RTE_MBUF_HAS_EXTBUF(m) || rte_mbuf_ext_refcnt_read(m->shinfo) == 1;
}

unsigned egress_trimmed_len(const struct rte_mbuf *m, const struct wire_outer *outer, unsigned keep)
{
	unsigned len = keep + outer->l3_off - ETH_HDR_LEN;

	if (outer->ver == 0 || len >= m->pkt_len || !egress_writable(m))
		return 0;
	return len < (unsigned)outer->l3_off + outer->l3_len ? 0 : len;
}

/* The segments hold len bytes and no more. */
static void cut(struct rte_mbuf *m, unsigned len)
{
	struct rte_mbuf *last = m;
	uint16_t segs = 1;

	m->pkt_len = len;
	while (len > last->data_len) {
		len -= last->data_len;
		last = last->next;
		segs++;
	}
	last->data_len = (uint16_t)len;
	rte_pktmbuf_free(last->next);
	last->next = NULL;
	m->nb_segs = segs;
}

void egress_trim(struct rte_mbuf *m, struct wire_outer *outer, unsigned len, uint8_t dscp)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	cut(m, len);
	wire_outer_cut(frame, outer, len);
	wire_outer_set_tos(frame, outer, (uint8_t)(dscp << 2 | (outer->tos & IP_ECN_MASK)));
}
