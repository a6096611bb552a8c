/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/egress/queue.h"

#include <errno.h>

#include "dataplane/egress/trim.h"

int egress_init(struct egress *e, const struct egress_config *config,
	const struct egress_classes *classes, int socket, uint64_t now)
{
	*e = (struct egress){.config = *config, .classes = classes, .straight = config->rate == 0};
	egress_bucket_init(&e->bucket, config->rate, config->burst, now);
	for (unsigned i = 0; i < EGRESS_N_QUEUES; i++)
		if (egress_fifo_init(&e->queue[i], config->limit[i], socket) < 0)
			return -ENOMEM;
	return 0;
}

void egress_free(struct egress *e)
{
	for (unsigned i = 0; i < EGRESS_N_QUEUES; i++)
		egress_fifo_free(&e->queue[i]);
}

static void keep(struct egress *e, enum egress_which which, struct rte_mbuf *m)
{
	struct egress_fifo *f = &e->queue[which];
	struct egress_count *c = &e->count[which];

	egress_fifo_put(f, m);
	c->queued++;
	if (f->bytes > c->peak_bytes)
		c->peak_bytes = f->bytes;
	e->straight = false;
}

/* There is no room among the data; there may be for its headers among control. */
static bool keep_trimmed(struct egress *e, struct rte_mbuf *m, struct wire_outer *outer)
{
	const struct egress_classes *c = e->classes;
	unsigned len = e->config.trim != 0 ? egress_trimmed_len(m, outer, e->config.trim) : 0;

	if (len == 0 || !egress_fifo_has_room(&e->queue[EGRESS_Q_CONTROL], len))
		return false;
	egress_trim(m, outer, len, e->config.last_hop ? c->trimmed_last_hop : c->trimmed);
	e->count[EGRESS_Q_DATA].trimmed++;
	keep(e, EGRESS_Q_CONTROL, m);
	return true;
}

bool egress_put(struct egress *e, struct rte_mbuf *m, uint32_t random)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	struct wire_outer outer = wire_outer(frame, rte_pktmbuf_data_len(m));
	const enum egress_class class = egress_class_of(e->classes, outer.ver, outer.tos);
	const enum egress_which which = class == EGRESS_CONTROL ? EGRESS_Q_CONTROL : EGRESS_Q_DATA;
	struct egress_fifo *f = &e->queue[which];

	if (!egress_fifo_has_room(f, m->pkt_len)) {
		if (class == EGRESS_TRIMMABLE && keep_trimmed(e, m, &outer))
			return true;
		e->count[which].full++;
		return false;
	}
	if (which == EGRESS_Q_DATA && egress_red_marks(&e->config.red, f->bytes, random) &&
		egress_writable(m) && wire_outer_mark(frame, &outer))
		e->count[which].marked++;
	keep(e, which, m);
	return true;
}

unsigned egress_next(struct egress *e, struct rte_mbuf **out, unsigned max, uint64_t now)
{
	int64_t left = egress_bucket_left(&e->bucket, now);
	unsigned n = 0;

	for (unsigned q = 0; q < EGRESS_N_QUEUES; q++)
		for (uint32_t i = 0; i < egress_fifo_count(&e->queue[q]); i++) {
			if (n == max || left <= 0)
				return n;
			out[n] = egress_fifo_at(&e->queue[q], i);
			left -= out[n++]->pkt_len;
		}
	return n;
}

/* The oldest is gone: of control as long as there is any, as egress_next gave them. */
static void take(struct egress *e, uint64_t bytes)
{
	egress_fifo_take(
		&e->queue[egress_fifo_count(&e->queue[EGRESS_Q_CONTROL]) > 0 ? EGRESS_Q_CONTROL
									     : EGRESS_Q_DATA],
		bytes);
}

void egress_sent(struct egress *e, const uint32_t *bytes, unsigned n, uint64_t now)
{
	if (n == 0) {
		if (!e->stuck)
			e->stuck_at = now;
		e->stuck = true;
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		egress_bucket_take(&e->bucket, bytes[i]);
		take(e, bytes[i]);
	}
	e->stuck = false;
	e->straight = e->config.rate == 0 && egress_waiting(e) == 0;
}

unsigned egress_expired(struct egress *e, struct rte_mbuf **out, unsigned max, uint64_t now)
{
	unsigned n = 0;

	if (!e->stuck || now - e->stuck_at < e->config.hold_ns)
		return 0;
	for (unsigned q = 0; q < EGRESS_N_QUEUES; q++)
		for (; n < max && egress_fifo_count(&e->queue[q]) > 0; n++) {
			out[n] = egress_fifo_at(&e->queue[q], 0);
			egress_fifo_take(&e->queue[q], out[n]->pkt_len);
			e->count[q].stale++;
		}
	return n;
}

uint64_t egress_when(const struct egress *e)
{
	return egress_waiting(e) == 0 ? UINT64_MAX : egress_bucket_when(&e->bucket);
}
