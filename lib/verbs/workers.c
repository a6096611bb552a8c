/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/verbs/workers.h"

#include <errno.h>
#include <rte_pause.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "lib/place/ring.h"
#include "lib/verbs/bell.h"

enum { HELD_SPINS = 200 };

enum counter {
#define X(sym, name, text) C_##sym,
	IV_WORKERS_COUNTERS(X)
#undef X
		N_COUNTERS
};

struct handed {
	struct rnic_rx_frame frame;
	uint8_t port;
};

struct worker {
	struct iv_dev *dev;
	unsigned number; /* of the rnic's */
	struct ring ring;
	uint32_t freed;  /* owner: entries before it are the port's again */
	unsigned unrung; /* owner: handed over since the bell was last rung */
	struct iv_bell bell;
	pthread_t thread;
	atomic_bool started; /* read by the owner, also while a process that exits stops it */
	atomic_bool stop;
	_Alignas(64) _Atomic uint64_t count[N_COUNTERS]; /* each has one writer */
};

struct iv_workers {
	struct iv_dev *dev;
	unsigned n;
	struct worker worker[];
};

static void count(struct worker *w, enum counter what, unsigned n)
{
	const uint64_t old = atomic_load_explicit(&w->count[what], memory_order_relaxed);

	atomic_store_explicit(&w->count[what], old + n, memory_order_relaxed);
}

/* ---- the owner ---- */

/* What the worker has let go of goes back to the port. */
static void take_back(struct worker *w)
{
	const uint32_t end = atomic_load_explicit(&w->ring.tail, memory_order_acquire);

	for (; w->freed != end; w->freed++) {
		const struct handed *h = ring_at(&w->ring, w->freed);

		w->dev->ops->rx_free(w->dev->ports[h->port].handle, &h->frame, 1);
	}
}

static void hand(struct worker *w, unsigned port, const struct rnic_rx_frame *frame)
{
	const uint32_t head = atomic_load_explicit(&w->ring.head, memory_order_relaxed);
	struct handed *h;

	if (head - w->freed > w->ring.mask) {
		count(w, C_FULL, 1);
		w->dev->ops->rx_free(w->dev->ports[port].handle, frame, 1);
		return;
	}
	h = ring_at(&w->ring, head);
	*h = (struct handed){.frame = *frame, .port = (uint8_t)port};
	ring_publish(&w->ring);
	w->unrung++;
	count(w, C_HANDED, 1);
}

unsigned iv_workers_hand(
	struct iv_workers *workers, unsigned port, struct rnic_rx_frame *frames, unsigned n)
{
	unsigned left = 0;

	for (unsigned i = 0; i < workers->n; i++)
		take_back(&workers->worker[i]);
	for (unsigned i = 0; i < n; i++) {
		const unsigned to =
			rnic_steer(workers->dev->rnic, port, frames[i].data, frames[i].len);

		if (to == 0)
			frames[left++] = frames[i];
		else
			hand(&workers->worker[to - 1], port, &frames[i]);
	}
	for (unsigned i = 0; i < workers->n; i++) {
		struct worker *w = &workers->worker[i];

		if (w->unrung > 0 && w->started)
			iv_bell_ring(&w->bell);
		w->unrung = 0;
	}
	return left;
}

/* ---- the workers ---- */

/* Frames of one port, the oldest first. */
static unsigned gather(struct worker *w, struct rnic_rx_frame frames[VERBS_BURST], unsigned *port)
{
	const uint32_t tail = ring_tail(&w->ring), waiting = ring_head(&w->ring) - tail;
	unsigned n = 0;

	for (; n < VERBS_BURST && n < waiting; n++) {
		const struct handed *h = ring_at(&w->ring, tail + n);

		if (n > 0 && h->port != *port)
			break;
		*port = h->port;
		frames[n] = h->frame;
	}
	return n;
}

static bool stops(struct worker *w)
{
	return atomic_load_explicit(&w->stop, memory_order_acquire);
}

static unsigned turn(struct worker *w, uint64_t now)
{
	struct rnic_rx_frame frames[VERBS_BURST];
	unsigned port = 0, n = gather(w, frames, &port);

	if (n == 0)
		return 0;
	for (unsigned i = 0; !rnic_worker_rx(w->dev->rnic, w->number, port, frames, n, now); i++) {
		if (stops(w))
			return 0;
		count(w, C_HELD, i == 0);
		if (i < HELD_SPINS)
			rte_pause();
		else
			sched_yield();
	}
	ring_release(&w->ring, ring_tail(&w->ring) + n);
	return n;
}

unsigned iv_workers_turn(struct iv_workers *workers, uint64_t now)
{
	unsigned n = 0;

	for (unsigned i = 0; i < workers->n; i++)
		n += turn(&workers->worker[i], now);
	return n;
}

static bool ready(void *arg)
{
	struct worker *w = arg;

	return ring_peek(&w->ring) != NULL;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct iv_dev *dev = w->dev;
	struct port_backoff backoff = {.idle = dev->idle};

	prctl(PR_SET_NAME, (unsigned long)"incline-rx", 0ul, 0ul, 0ul);
	while (!stops(w)) {
		const uint64_t now = dev->ops->now(dev->port);
		const unsigned work = turn(w, now);

		backoff.max_sleep_us = iv_max_sleep_us(dev);
		iv_bell_back_off(&w->bell, ready, w, &backoff, work, now, UINT64_MAX);
	}
	return NULL;
}

/* ---- life ---- */

int iv_workers_start(struct iv_workers *workers)
{
	for (unsigned i = 0; i < workers->n; i++) {
		struct worker *w = &workers->worker[i];
		int ret;

		atomic_store(&w->stop, false);
		ret = pthread_create(&w->thread, NULL, worker_main, w);
		if (ret) {
			iv_workers_stop(workers);
			return -ret;
		}
		w->started = true;
	}
	return 0;
}

void iv_workers_stop(struct iv_workers *workers)
{
	for (unsigned i = 0; i < workers->n; i++) {
		struct worker *w = &workers->worker[i];

		if (!w->started)
			continue;
		atomic_store(&w->stop, true);
		iv_bell_ring(&w->bell);
		pthread_join(w->thread, NULL);
		w->started = false;
	}
}

static bool init(struct worker *w, struct iv_dev *dev, unsigned number)
{
	void *memory = calloc(VERBS_WORKER_HELD, sizeof(struct handed));

	w->dev = dev;
	w->number = number;
	ring_init(&w->ring, memory, VERBS_WORKER_HELD, sizeof(struct handed));
	return iv_bell_init(&w->bell) && memory;
}

struct iv_workers *iv_workers_create(struct iv_dev *dev)
{
	const unsigned n = rnic_n_workers(dev->rnic);
	const size_t size = sizeof(struct iv_workers) + n * sizeof(struct worker);
	struct iv_workers *workers = aligned_alloc(64, (size + 63) / 64 * 64);
	bool ok = true;

	if (!workers) {
		errno = ENOMEM;
		return NULL;
	}
	memset(workers, 0, size);
	workers->dev = dev;
	workers->n = n;
	for (unsigned i = 0; i < n; i++)
		ok = init(&workers->worker[i], dev, i + 1) && ok;
	if (ok)
		return workers;
	iv_workers_destroy(workers);
	errno = ENOMEM;
	return NULL;
}

void iv_workers_destroy(struct iv_workers *workers)
{
	for (unsigned i = 0; i < workers->n; i++) {
		struct worker *w = &workers->worker[i];

		ring_release(&w->ring, ring_head(&w->ring));
		take_back(w);
		free(w->ring.mem);
		iv_bell_fini(&w->bell);
	}
	free(workers);
}

unsigned iv_workers_stats(const struct iv_workers *workers, struct inc_dv_stat *stats, unsigned n)
{
	static const char *const names[] = {
#define X(sym, name, text) [C_##sym] = (name),
		IV_WORKERS_COUNTERS(X)
#undef X
	};

	for (unsigned i = 0; i < N_COUNTERS && i < n; i++) {
		stats[i] = (struct inc_dv_stat){names[i], 0};
		for (unsigned k = 0; k < workers->n; k++)
			stats[i].value += atomic_load_explicit(
				&workers->worker[k].count[i], memory_order_relaxed);
	}
	return N_COUNTERS;
}
