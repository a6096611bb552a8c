/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <rte_pause.h>
#include <rte_ring.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/verbs/bell.h"
#include "lib/verbs/split.h"

enum {
	RX_SLOTS = VERBS_RX_HELD,
	TX_SLOTS = 128,
	TX_TURN = 64, /* frames of a turn of the control path */
	TX_STEP = 16, /* frames that are handed over together */
	/* Bytes of a frame whose payload is not worth a reference: all that is inline is such. */
	COPY_BELOW = WIRE_MAX_HEADERS + RNIC_MAX_INLINE + WIRE_MAX_TRAILER,
	SETTLE_SPINS = 200,
	RECONNECT_NS = 500 * 1000 * 1000,
};

enum counter {
#define X(sym, name, text) C_##sym,
	IV_SPLIT_COUNTERS(X)
#undef X
		N_COUNTERS
};

struct rx_slot {
	struct rnic_rx_frame frame;
	struct rnic_checked checked;
};

struct tx_slot {
	struct rnic_frame frame;
	uint8_t bytes[]; /* of a payload that is copied */
};

/* Free slots, of the half that fills them. */
struct stack {
	void **slot;
	unsigned n;
};

struct iv_split {
	struct iv_dev *dev;
	struct rte_ring *rx, *rx_back, *tx, *tx_back;
	struct rx_slot *rx_slots;
	uint8_t *tx_slots;
	size_t tx_stride, cap; /* cap: bytes of a tx slot's payload */
	struct {
		_Alignas(64) _Atomic uint64_t n; /* the halves write beside one another */
	} count[N_COUNTERS];

	/* The data path's. */
	_Alignas(64) struct stack rx_free;
	struct tx_slot *pending[TX_SLOTS]; /* copied, but the port has no room */
	unsigned n_pending;
	unsigned left; /* frames that the port did not send */
	uint64_t taken;
	uint64_t checked_ns; /* last attempt to reconnect */
	struct iv_bell data_bell;
	pthread_t thread;
	/* Read by whoever owns the device and waits for the data path, also while another thread
	 * of a process that exits stops this one. */
	atomic_bool threaded;
	atomic_bool stop;

	/* The control path's. */
	_Alignas(64) struct stack tx_free;
	uint64_t given;            /* slots handed over */
	_Atomic uint64_t last_ref; /* the last of them with a reference */
	atomic_bool starved;       /* frames were left for want of a slot */
	struct iv_bell control_bell;

	/* Slots of which the data path needs nothing in the program's memory any more. */
	_Alignas(64) _Atomic uint64_t done;
};

/* Each counter has one writer. */
static void count(struct iv_split *s, enum counter what, unsigned n)
{
	const uint64_t old = atomic_load_explicit(&s->count[what].n, memory_order_relaxed);

	atomic_store_explicit(&s->count[what].n, old + n, memory_order_relaxed);
}

/* ---- the data path ---- */

static void take_back(struct iv_split *s)
{
	struct rx_slot *slots[VERBS_BURST];
	struct rnic_rx_frame frames[VERBS_BURST];
	unsigned n;

	while ((n = rte_ring_sc_dequeue_burst(s->rx_back, (void **)slots, VERBS_BURST, NULL)) > 0) {
		for (unsigned i = 0; i < n; i++) {
			frames[i] = slots[i]->frame;
			s->rx_free.slot[s->rx_free.n++] = slots[i];
		}
		s->dev->ops->rx_free(s->dev->port, frames, n);
	}
}

static unsigned data_receive(struct iv_split *s)
{
	struct rnic_rx_frame frames[VERBS_BURST];
	void *slots[VERBS_BURST];
	unsigned n, room;

	take_back(s);
	room = s->rx_free.n < VERBS_BURST ? s->rx_free.n : VERBS_BURST;
	if (room == 0) {
		count(s, C_RX_HELD, 1);
		return 0;
	}
	n = s->dev->ops->rx_burst(s->dev->port, frames, room);
	for (unsigned i = 0; i < n; i++) {
		struct rx_slot *slot = s->rx_free.slot[--s->rx_free.n];

		slot->frame = frames[i];
		rnic_check(s->dev->rnic, 0, frames[i].data, frames[i].len, &slot->checked);
		slots[i] = slot;
	}
	if (n > 0) {
		rte_ring_sp_enqueue_bulk(s->rx, slots, n, NULL);
		count(s, C_RX, n);
		iv_bell_ring(&s->control_bell);
	}
	return n;
}

/* The payload becomes the slot's own. */
static void own_payload(const struct iv_split *s, struct tx_slot *slot)
{
	struct rnic_frame *frame = &slot->frame;
	size_t len = 0;

	for (unsigned i = 0; i < frame->n_iov; i++) {
		if (len + frame->iov[i].len > s->cap)
			return; /* never: cap is what the rnic may send */
		memcpy(slot->bytes + len, frame->iov[i].base, frame->iov[i].len);
		len += frame->iov[i].len;
	}
	frame->stays = false;
	if (frame->n_iov == 0)
		return;
	frame->iov[0].base = slot->bytes;
	frame->iov[0].len = len;
	frame->n_iov = 1;
}

/* A full port must not keep the control path waiting: all that is out is taken. */
static void set_aside(struct iv_split *s)
{
	unsigned n = rte_ring_sc_dequeue_burst(
		s->tx, (void **)s->pending + s->n_pending, TX_SLOTS - s->n_pending, NULL);

	for (unsigned i = 0; i < n; i++, s->n_pending++) {
		if (!s->pending[s->n_pending]->frame.stays)
			continue;
		own_payload(s, s->pending[s->n_pending]);
		count(s, C_COPIED, 1);
	}
	s->taken += n;
}

static void to_port(struct iv_split *s, struct tx_slot *const slots[], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		s->dev->ops->tx(s->dev->port, &slots[i]->frame);
}

static unsigned data_transmit(struct iv_split *s)
{
	struct tx_slot *slots[VERBS_BURST];
	const uint64_t taken = s->taken;
	unsigned room = 0, n = 0;

	if (s->n_pending > 0 || !rte_ring_empty(s->tx))
		room = s->dev->ops->tx_room(s->dev->port);
	if (room > VERBS_BURST)
		room = VERBS_BURST;
	if (s->n_pending > 0) {
		n = room < s->n_pending ? room : s->n_pending;
		memcpy(slots, s->pending, n * sizeof(slots[0]));
		s->n_pending -= n;
		memmove(s->pending, s->pending + n, s->n_pending * sizeof(s->pending[0]));
	} else if (room > 0) {
		n = rte_ring_sc_dequeue_burst(s->tx, (void **)slots, room, NULL);
		s->taken += n;
	}
	to_port(s, slots, n);
	if (n > 0 || s->left > 0)
		s->left = s->dev->ops->tx_flush(s->dev->port);
	if (room == 0)
		set_aside(s);
	if (s->taken != taken)
		atomic_store_explicit(&s->done, s->taken, memory_order_release);
	if (n > 0) {
		rte_ring_sp_enqueue_bulk(s->tx_back, (void **)slots, n, NULL);
		count(s, C_TX, n);
	}
	if (n > 0 || s->taken != taken)
		iv_bell_ring(&s->control_bell);
	return n;
}

static void reconnect(struct iv_split *s)
{
	const struct verbs_port_ops *ops = s->dev->ops;
	uint64_t now;

	if (ops->reconnect == NULL || ops->link_up == NULL)
		return;
	now = ops->now(s->dev->port);
	if (now - s->checked_ns < RECONNECT_NS)
		return;
	s->checked_ns = now;
	if (!ops->link_up(s->dev->port))
		ops->reconnect(s->dev->port);
}

unsigned iv_split_turn(struct iv_split *s)
{
	const unsigned received = data_receive(s), sent = data_transmit(s);

	reconnect(s);
	return received + sent;
}

static bool data_ready(void *arg)
{
	struct iv_split *s = arg;

	return !rte_ring_empty(s->tx);
}

static void *data_main(void *arg)
{
	struct iv_split *s = arg;
	struct iv_dev *dev = s->dev;
	struct port_backoff backoff = {.idle = dev->idle};

	prctl(PR_SET_NAME, (unsigned long)"incline-data", 0ul, 0ul, 0ul);
	while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
		const unsigned work = iv_split_turn(s);
		const uint64_t now = dev->ops->now(dev->port);

		backoff.max_sleep_us = iv_max_sleep_us(dev);
		iv_bell_back_off(&s->data_bell, data_ready, s, &backoff, work, now, UINT64_MAX);
	}
	return NULL;
}

/* ---- the control path ---- */

static bool settled(struct iv_split *s)
{
	return atomic_load_explicit(&s->done, memory_order_acquire) >=
	       atomic_load_explicit(&s->last_ref, memory_order_relaxed);
}

void iv_split_settle(struct iv_split *s)
{
	for (unsigned i = 0; !settled(s); i++) {
		if (!s->threaded)
			iv_split_turn(s);
		else if (i < SETTLE_SPINS)
			rte_pause();
		else
			sched_yield();
	}
}

bool iv_split_settled(struct iv_split *s)
{
	return settled(s);
}

bool iv_split_must_settle(struct iv_split *s, bool due)
{
	if (!due && rte_ring_empty(s->rx))
		return false;
	count(s, C_WAITS, 1);
	return true;
}

unsigned iv_split_receive(struct iv_split *s, uint64_t now)
{
	struct rx_slot *slots[VERBS_BURST];
	unsigned n;

	n = rte_ring_sc_dequeue_burst(s->rx, (void **)slots, VERBS_BURST, NULL);
	for (unsigned i = 0; i < n; i++)
		rnic_rx_checked(s->dev->rnic, 0, slots[i]->frame.data, slots[i]->frame.len,
			&slots[i]->checked, now);
	if (n > 0)
		rte_ring_sp_enqueue_bulk(s->rx_back, (void **)slots, n, NULL);
	return n;
}

static void hand_over(struct iv_split *s, void *const slots[], unsigned n)
{
	rte_ring_sp_enqueue_bulk(s->tx, slots, n, NULL);
	iv_bell_ring(&s->data_bell);
}

unsigned iv_split_transmit(struct iv_split *s, uint64_t now)
{
	void *step[TX_STEP];
	unsigned n = 0, sent = 0;

	s->tx_free.n += rte_ring_sc_dequeue_burst(
		s->tx_back, s->tx_free.slot + s->tx_free.n, TX_SLOTS - s->tx_free.n, NULL);
	if (s->tx_free.n == 0 && rnic_has_work(s->dev->rnic))
		count(s, C_TX_HELD, 1);
	while (sent < TX_TURN && s->tx_free.n > 0) {
		struct tx_slot *slot = s->tx_free.slot[s->tx_free.n - 1];

		if (!rnic_tx(s->dev->rnic, RNIC_ALL_PORTS, &slot->frame, now))
			break;
		s->tx_free.n--;
		s->given++;
		if (slot->frame.stays && slot->frame.len > COPY_BELOW) {
			atomic_store_explicit(&s->last_ref, s->given, memory_order_relaxed);
			count(s, C_REFERENCES, 1);
		} else {
			own_payload(s, slot);
		}
		step[n++] = slot;
		sent++;
		if (n == TX_STEP) {
			hand_over(s, step, n);
			n = 0;
		}
	}
	if (n > 0)
		hand_over(s, step, n);
	atomic_store_explicit(&s->starved, s->tx_free.n == 0, memory_order_relaxed);
	return sent;
}

/* Without ownership. */
static bool control_ready(void *arg)
{
	struct iv_split *s = arg;
	const bool starved = atomic_load_explicit(&s->starved, memory_order_relaxed);

	return (!rte_ring_empty(s->rx) && settled(s)) ||
	       (rnic_has_work(s->dev->rnic) && (!starved || !rte_ring_empty(s->tx_back)));
}

void iv_split_ring_control(struct iv_split *s)
{
	iv_bell_ring(&s->control_bell);
}

void iv_split_back_off(struct iv_split *s, struct port_backoff *backoff, unsigned work,
	uint64_t now, uint64_t deadline)
{
	iv_bell_back_off(&s->control_bell, control_ready, s, backoff, work, now, deadline);
}

/* ---- life ---- */

/* On memory of our own: a device in a test has no EAL. */
static struct rte_ring *make_ring(const char *name, unsigned slots)
{
	const ssize_t size = rte_ring_get_memsize(rte_align32pow2(slots + 1));
	struct rte_ring *ring = size > 0
					? aligned_alloc(RTE_CACHE_LINE_SIZE,
						  RTE_ALIGN_CEIL((size_t)size, RTE_CACHE_LINE_SIZE))
					: NULL;

	if (ring != NULL && rte_ring_init(ring, name, slots,
				    RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ) != 0) {
		free(ring);
		ring = NULL;
	}
	return ring;
}

static int make_slots(struct iv_split *s, unsigned port_mtu)
{
	s->cap = port_mtu + 64u;
	s->tx_stride = RTE_ALIGN_CEIL(sizeof(struct tx_slot) + s->cap, RTE_CACHE_LINE_SIZE);
	s->rx_slots = calloc(RX_SLOTS, sizeof(s->rx_slots[0]));
	s->tx_slots = calloc(TX_SLOTS, s->tx_stride);
	s->rx_free.slot = calloc(RX_SLOTS, sizeof(void *));
	s->tx_free.slot = calloc(TX_SLOTS, sizeof(void *));
	if (!s->rx_slots || !s->tx_slots || !s->rx_free.slot || !s->tx_free.slot)
		return -ENOMEM;
	for (; s->rx_free.n < RX_SLOTS; s->rx_free.n++)
		s->rx_free.slot[s->rx_free.n] = &s->rx_slots[s->rx_free.n];
	for (; s->tx_free.n < TX_SLOTS; s->tx_free.n++)
		s->tx_free.slot[s->tx_free.n] = s->tx_slots + s->tx_free.n * s->tx_stride;
	return 0;
}

struct iv_split *iv_split_create(struct iv_dev *dev, unsigned port_mtu)
{
	struct iv_split *s = aligned_alloc(64, sizeof(*s));
	bool bells;

	if (s == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	memset(s, 0, sizeof(*s));
	s->dev = dev;
	s->rx = make_ring("rx", RX_SLOTS);
	s->rx_back = make_ring("rx_back", RX_SLOTS);
	s->tx = make_ring("tx", TX_SLOTS);
	s->tx_back = make_ring("tx_back", TX_SLOTS);
	bells = iv_bell_init(&s->data_bell);
	bells = iv_bell_init(&s->control_bell) && bells;
	if (make_slots(s, port_mtu) || !s->rx || !s->rx_back || !s->tx || !s->tx_back || !bells) {
		iv_split_destroy(s);
		errno = ENOMEM;
		return NULL;
	}
	return s;
}

void iv_split_destroy(struct iv_split *s)
{
	struct rx_slot *slot;

	if (s->rx && s->rx_back) {
		while (rte_ring_sc_dequeue(s->rx, (void **)&slot) == 0)
			rte_ring_sp_enqueue(s->rx_back, slot);
		take_back(s);
	}
	free(s->rx);
	free(s->rx_back);
	free(s->tx);
	free(s->tx_back);
	free(s->rx_slots);
	free(s->tx_slots);
	free(s->rx_free.slot);
	free(s->tx_free.slot);
	iv_bell_fini(&s->data_bell);
	iv_bell_fini(&s->control_bell);
	free(s);
}

int iv_split_pin(pthread_attr_t *attr, unsigned control_lcore)
{
	cpu_set_t cpus;

	if (control_lcore >= CPU_SETSIZE)
		return -EINVAL;
	CPU_ZERO(&cpus);
	CPU_SET(control_lcore, &cpus);
	return -pthread_attr_setaffinity_np(attr, sizeof(cpus), &cpus);
}

int iv_split_start(struct iv_split *s, unsigned control_lcore)
{
	pthread_attr_t attr;
	cpu_set_t cpus;
	int ret;

	pthread_attr_init(&attr);
	if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && control_lcore < CPU_SETSIZE) {
		CPU_CLR(control_lcore, &cpus);
		if (CPU_COUNT(&cpus) > 0)
			pthread_attr_setaffinity_np(&attr, sizeof(cpus), &cpus);
	}
	atomic_store(&s->stop, false);
	s->threaded = true;
	ret = pthread_create(&s->thread, &attr, data_main, s);
	pthread_attr_destroy(&attr);
	s->threaded = ret == 0;
	return -ret;
}

void iv_split_stop(struct iv_split *s)
{
	if (!s->threaded)
		return;
	atomic_store(&s->stop, true);
	iv_bell_ring(&s->data_bell);
	pthread_join(s->thread, NULL);
	s->threaded = false;
}

unsigned iv_split_stats(const struct iv_split *s, struct inc_dv_stat *stats, unsigned n)
{
	static const char *const names[] = {
#define X(sym, name, text) [C_##sym] = (name),
		IV_SPLIT_COUNTERS(X)
#undef X
	};

	for (unsigned i = 0; i < N_COUNTERS && i < n; i++)
		stats[i] = (struct inc_dv_stat){
			names[i], atomic_load_explicit(&s->count[i].n, memory_order_relaxed)};
	return N_COUNTERS;
}
