/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch in Mode-I: the real group and, for its connections, real queue pairs of lib/rnic. What
 * they allocate when they are made comes from the switch's image, so that their state is bytes of
 * it; pointers stay right because every state is put back to the same place. Nothing allocates
 * later. */
#include <stdlib.h>
#include <string.h>

#include "dataplane/inc/mode1_state.h"
#include "lib/rnic/cq.h"
#include "lib/rnic/device.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/rc.h"
#include "lib/rnic/ring.h"
#include "lib/rnic/timer.h"
#include "lib/rnic/wqe.h"
#include "tests/model/model.h"

enum { HEAP = 320 << 10, ALIGN = 64 };
static const uint64_t NOW = 1000000000;

/* ---- memory: the linker sends all calls here ---- */

static uint8_t *heap, *heap_end; /* NULL: the usual one */

void *__real_calloc(size_t n, size_t size);
void *__real_malloc(size_t size);
void *__real_aligned_alloc(size_t align, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_aligned_alloc(size_t align, size_t size);

static void *take(size_t size)
{
	uint8_t *p = heap;

	heap += (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (heap > heap_end)
		abort();
	return p;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return heap ? take(n * size) : __real_calloc(n, size);
}

void *__wrap_malloc(size_t size)
{
	return heap ? take(size) : __real_malloc(size);
}

void *__wrap_aligned_alloc(size_t align, size_t size)
{
	return heap ? take(size) : __real_aligned_alloc(align, size);
}

/* ---- the mask ---- */

/* Entries that nobody will read again. */
static void clear_ring(struct ring *r)
{
	const uint32_t head = ring_head(r), tail = ring_tail(r);

	for (uint32_t i = head; i - tail <= r->mask; i++)
		memset(ring_at(r, i), 0, r->stride);
}

/* In one order, and without those that were stopped. */
static void sort_timers(struct mode1 *m)
{
	struct timers *timers = &m->dev->rnic->timers;
	uint64_t at[MC_MAX_PORTS];

	for (unsigned i = 0; i < m->g->n_ep; i++) {
		at[i] = m->ep[i].qp->timer.at;
		timer_remove(timers, &m->ep[i].qp->timer);
	}
	for (unsigned i = 0; i < m->g->n_ep; i++)
		if (at[i] != UINT64_MAX)
			timer_set(timers, &m->ep[i].qp->timer, at[i]);
	for (unsigned i = timers->n; i < m->g->n_ep; i++)
		timers->slot[i] = (struct timer_slot){0};
	timers->moves = 0;
}

static void mask_qp(struct mode1 *m, struct rnic_qp *qp)
{
	clear_ring(&qp->sq);
	clear_ring(&qp->rq);
	rc_of(qp)->req.retries = qp->attr.retry_cnt;
	rc_of(qp)->req.rnr_retries = qp->attr.rnr_retry;
	rc_of(qp)->req.retransmits = rc_of(qp)->req.timeouts = 0;
	qp->quantum = 0;
	/* Receives into which nothing was written. */
	for (uint32_t i = ring_tail(&qp->rq) + (rc_of(qp)->resp.message.kind != MESSAGE_NONE);
		i != ring_head(&qp->rq); i++)
		memset(mode1_buf_at(m, WR_BUF(((struct recv_wqe *)ring_at(&qp->rq, i))->wr_id)), 0,
			m->buf_len);
}

static int ascending(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Which of the free buffers is taken next does not matter. */
static void mask_buffers(struct mode1 *m)
{
	for (unsigned pool = 0; pool < MODE1_N_POOLS; pool++) {
		qsort(m->free[pool], m->n_free[pool], sizeof(uint32_t), ascending);
		for (unsigned k = 0; k < m->n_free[pool]; k++) {
			memset(mode1_buf_at(m, m->free[pool][k]), 0, m->buf_len);
			m->buf[m->free[pool][k]] = (struct mode1_buf){0};
		}
		for (unsigned k = m->n_free[pool]; k < m->g->w; k++)
			m->free[pool][k] = 0;
	}
	for (unsigned i = 0; i < m->g->n_ep; i++)
		for (unsigned k = m->ep[i].n; k < m->credits; k++)
			m->ep[i].queue[(m->ep[i].head + k) % m->credits] =
				(struct mode1_message){0};
}

static void mask(const struct mc_sys *s, struct mc_switch *sw, bool age)
{
	struct mode1 *m = sw->mode1;
	struct rnic *rnic = m->dev->rnic;

	(void)s;
	(void)age;
	memset(m->g->count, 0, sizeof(m->g->count));
	m->g->last_progress_ns = 0;
	memset(rnic->count, 0, sizeof(rnic->count));
	memset(rnic->drop, 0, sizeof(rnic->drop));
	memset(rnic->scratch, 0, rnic->scratch_cap);
	memset(rnic->port[0].count, 0, sizeof(rnic->port[0].count));
	rnic->sched_steps = 0;
	rnic->turn = 0;
	rnic->ip_id = 0;
	rnic->random = 0;
	/* All completions have been taken. */
	atomic_store(&m->cq->ring.head, 0);
	atomic_store(&m->cq->ring.tail, 0);
	clear_ring(&m->cq->ring);
	for (unsigned i = 0; i < m->g->n_ep; i++)
		mask_qp(m, m->ep[i].qp);
	mask_buffers(m);
	sort_timers(m);
}

/* ---- steps ---- */

/* As dataplane/node_rnic.c does. */
static void turn(struct mc_sys *s, struct mc_switch *sw, struct mc_result *r)
{
	struct mode1_device *dev = sw->mode1->dev;
	struct rnic_frame frame;
	uint8_t bytes[MC_FRAME];

	do {
		mode1_run(dev, NOW);
		while (rnic_tx(dev->rnic, RNIC_ALL_PORTS, &frame, NOW)) {
			const int len = rnic_frame_flatten(&frame, bytes, sizeof(bytes));
			struct mc_out *out = mc_switch_out(r);
			unsigned ep;

			if (out == NULL || len < 0 || mode1_owner(dev, frame.qpn, &ep) != sw->g)
				return;
			out->port = (uint8_t)ep;
			out->frame = mc_frame_id(s, bytes, (size_t)len);
			dev->rnic->ip_id = 0; /* the same frame again has the same number */
		}
		mode1_run(dev, NOW);
	} while (rnic_has_work(dev->rnic));
}

static void receive(
	struct mc_sys *s, unsigned node, unsigned port, uint32_t frame, struct mc_result *r)
{
	struct mc_switch *sw = &s->sw[node];
	uint8_t bytes[MC_FRAME];
	const void *p;
	uint32_t len;
	unsigned drop;

	(void)port;
	p = intern_get(&s->frames, frame, &len);
	memcpy(bytes, p, len);
	rnic_mac(sw->mode1->dev->rnic, 0, bytes);
	drop = rnic_rx(sw->mode1->dev->rnic, 0, bytes, len, NOW);
	r->verdict = drop ? rnic_drop_name(drop) : "taken";
	turn(s, sw, r);
}

static void tick(struct mc_sys *s, unsigned node, unsigned port, struct mc_result *r)
{
	struct mc_switch *sw = &s->sw[node];
	struct rnic_qp *qp = sw->mode1->ep[port].qp;
	const uint64_t at = qp->timer.at;

	timer_remove(&qp->rnic->timers, &qp->timer);
	qp->ops->timer(qp, at);
	turn(s, sw, r);
}

static void fail(struct mc_sys *s, unsigned node, struct mc_result *r)
{
	struct mc_switch *sw = &s->sw[node];

	inc_group_fail(sw->g, INC_FAIL_MANAGER, 0xff);
	mode1_stop(sw->mode1, NOW);
	turn(s, sw, r);
}

static void check(struct mc_sys *s, struct mc_switch *sw, struct mc_result *r)
{
	if (sw->g->state == INC_FAILED && !mc_may_fail(&s->cfg))
		r->violation = "the group has failed";
}

/* Nothing is out, nobody waits, and all buffers are back. */
static bool is_clean(struct mode1 *m)
{
	for (unsigned i = 0; i < m->g->n_ep; i++)
		if (m->ep[i].n || m->ep[i].sends)
			return false;
	return m->n_free[MODE1_UP] == m->g->w && m->n_free[MODE1_DOWN] == m->g->w;
}

static unsigned flags(struct mc_switch *sw)
{
	struct mode1 *m = sw->mode1;
	unsigned flags = is_clean(m) ? MC_S_CLEAN : 0;

	flags |= sw->g->state == INC_FAILED ? MC_S_FAILED : 0;
	for (unsigned i = 0; i < m->g->n_ep; i++) {
		flags |= m->ep[i].qp->timer.at != UINT64_MAX ? 1u << i : 0;
		flags |= rc_of(m->ep[i].qp)->req.rnr_wait ? 1u << (MC_S_HELD_SHIFT + i) : 0;
	}
	return flags;
}

static const struct mc_engine engine = {
	.mask = mask,
	.receive = receive,
	.tick = tick,
	.fail = fail,
	.check = check,
	.flags = flags,
};

/* ---- making ---- */

void mc_mode1_open(struct mc_sys *s, unsigned node, struct inc_group_spec *spec)
{
	struct mc_switch *sw = &s->sw[node];
	const size_t block = (inc_group_bytes(spec) + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	struct mode1_device_config config = {
		.mac = {2, 0, 0, 0, 0, (uint8_t)node}, .ip = {mc_address(node)}, .n_ip = 1};
	struct mode1_device *dev;
	char err[INC_ERR_LEN];

	mc_switch_image(sw, &engine, block + HEAP, inc_group_payload_bytes(spec));
	sw->g = (struct inc_group *)sw->image;
	config.arena = sw->arena;
	inc_group_init(sw->g, spec, 1, 1, 0);
	heap = sw->image + block;
	heap_end = heap + HEAP;
	if (mode1_device_create(&config, &dev) != 0 ||
		mode1_create(dev, sw->g, &sw->mode1, err) != 0 ||
		inc_group_activate(sw->g, err) != 0)
		abort();
	heap = NULL;
}

void mc_mode1_connect(struct mc_sys *s, unsigned node, const uint32_t *remote_qpn)
{
	struct mc_switch *sw = &s->sw[node];
	char err[INC_ERR_LEN];

	for (unsigned i = 0; i < sw->g->n_ep; i++)
		inc_ep_at(sw->g, i)->remote_qpn = remote_qpn[i];
	if (mode1_connect(sw->mode1, NOW, err) != 0)
		abort();
	mc_switch_done(s, sw);
}
