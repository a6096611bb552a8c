/* SPDX-License-Identifier: BSD-3-Clause */
/* A device: the rnic, its ports, who owns them at a time, and whose turn it is. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "lib/verbs/iwarp_dev.h"
#include "lib/verbs/netdev.h"
#include "lib/verbs/workers.h"

enum {
	SLEEP_FIRST_US = 50,    /* of the thread, while the application polls, at first */
	SLEEP_ASIDE_US = 400,   /* and at last */
	SLEEP_UNUSED_US = 1000, /* no queue pair */
	POLL_GAP_NS = 20000,    /* who polls polls again by then, or is at something else */
	STAY_NS = 10000000,     /* of the thread, after it was missed */
	ABSENT_NS = 1000000,    /* without a turn, and who polls has no processor */
	EMPTY_YIELD = 64,       /* polls in vain before yielding */
	DRAIN_TURNS = 16,       /* at the end, for the last acknowledgements */
	TURNS = 16,             /* of a caller, one after another, while doorbells ring */
};

int iv_errno(int err)
{
	errno = err < 0 ? -err : err;
	return errno;
}

void iv_debug(const char *format, ...)
{
	va_list ap;

	if (!getenv("INCLINE_VERBS_DEBUG"))
		return;
	flockfile(stderr);
	fputs("incline: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	funlockfile(stderr);
}

/* ---- ownership ---- */

void iv_own(struct iv_dev *dev)
{
	/* A mutex is not fair: without this hint a caller that polls in a loop could take it again
	 * and again before the one that was woken gets to run. */
	atomic_fetch_add(&dev->control, 1);
	pthread_mutex_lock(&dev->owner);
	atomic_fetch_sub(&dev->control, 1);
}

bool iv_own_timed(struct iv_dev *dev)
{
	struct timespec until;
	bool ok;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 100 * 1000 * 1000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	atomic_fetch_add(&dev->control, 1);
	ok = pthread_mutex_timedlock(&dev->owner, &until) == 0;
	atomic_fetch_sub(&dev->control, 1);
	return ok;
}

static void let_go(struct iv_dev *dev)
{
	pthread_mutex_unlock(&dev->owner);
}

static bool try_own(struct iv_dev *dev)
{
	return atomic_load_explicit(&dev->control, memory_order_relaxed) == 0 &&
	       pthread_mutex_trylock(&dev->owner) == 0;
}

/* ---- the turn ---- */

static uint64_t deadline(const struct iv_dev *dev)
{
	uint64_t rnic = rnic_deadline(dev->rnic), cm = dev->cm ? iv_cm_deadline(dev) : UINT64_MAX;
	const uint64_t iwarp = dev->iwarp ? iv_iwarp_deadline(dev->iwarp) : UINT64_MAX;

	if (cm < rnic)
		rnic = cm;
	return iwarp < rnic ? iwarp : rnic;
}

/* All but sending. */
static unsigned take_in(struct iv_dev *dev, uint64_t now)
{
	unsigned work = iv_receive(dev, now);

	if (dev->workers && !dev->threaded)
		work += iv_workers_turn(dev->workers, now);
	if (rnic_deadline(dev->rnic) <= now) {
		rnic_timer(dev->rnic, now);
		work++;
	}
	if (dev->iwarp)
		work += iv_iwarp_turn(dev->iwarp, now);
	if (dev->cm)
		work += iv_cm_turn(dev, now);
	return work;
}

unsigned iv_turn(struct iv_dev *dev)
{
	const uint64_t now = dev->ops->now(dev->port);
	unsigned work = take_in(dev, now);

	atomic_store_explicit(&dev->turn_ns, now, memory_order_relaxed);
	if (work || iv_tx_left(dev) || rnic_has_work(dev->rnic) || dev->iwarp)
		work += iv_transmit(dev, now);
	if (dev->netdev)
		work += iv_transmit_shared(dev, now);
	if (dev->ops->link_up)
		iv_check_links(dev, now);
	atomic_store_explicit(&dev->deadline, deadline(dev), memory_order_relaxed);
	return work;
}

/* A doorbell that rings while somebody owns the device is left to the owner: he looks once more
 * after he has let go, and takes a turn for each that he finds. Either he sees the doorbell, or the
 * ringer sees the device free; the fence (and the atomic instruction in trylock) orders the two.
 * Who has taken so many turns for others leaves what still rings to the device's thread. */
static bool look_again(struct iv_dev *dev, unsigned turns)
{
	atomic_thread_fence(memory_order_seq_cst);
	return turns < 2 ? rnic_has_work(dev->rnic) : turns < TURNS && rnic_rang(dev->rnic);
}

static unsigned turn_if_free(struct iv_dev *dev)
{
	unsigned work = 0, turns = 0;

	do {
		if (!try_own(dev))
			break;
		if (!dev->dead)
			work += iv_turn(dev);
		let_go(dev);
	} while (look_again(dev, ++turns));
	return work;
}

unsigned iv_progress(struct iv_dev *dev)
{
	return turn_if_free(dev);
}

void iv_kick(struct iv_dev *dev)
{
	unsigned turns = 0;

	do {
		if (!try_own(dev))
			break;
		if (!dev->dead)
			iv_transmit(dev, dev->ops->now(dev->port));
		let_go(dev);
	} while (look_again(dev, ++turns));
}

void iv_disown(struct iv_dev *dev)
{
	let_go(dev);
	atomic_thread_fence(memory_order_seq_cst);
	if (rnic_rang(dev->rnic))
		iv_kick(dev);
}

static void nap(unsigned us)
{
	const struct timespec t = {.tv_nsec = (long)us * 1000};

	nanosleep(&t, NULL);
}

void iv_idle(struct iv_dev *dev, unsigned n)
{
	if (dev->ops->idle) {
		dev->ops->idle(dev->port);
		return;
	}
	switch (dev->idle) {
	case PORT_IDLE_SPIN:
		break;
	case PORT_IDLE_PAUSE:
		__builtin_ia32_pause();
		break;
	case PORT_IDLE_SLEEP:
		/* Yielding costs little where the core is free, and gives it to the peer (or the
		 * switch) that we wait for where it is not. Sleeping would cost a timer slack. */
		if (n >= EMPTY_YIELD)
			sched_yield();
		else
			__builtin_ia32_pause();
		break;
	}
}

/* ---- the thread ---- */

unsigned iv_max_sleep_us(const struct iv_dev *dev)
{
	if (!dev->netdev && atomic_load_explicit(&dev->n_qp, memory_order_relaxed) == 0)
		return SLEEP_UNUSED_US;
	return 0;
}

/* Somebody else does the thread's work: by the hands of a program that polls a CQ. One that polls
 * memory, perhaps between two polls, is not there; nor is one that has yielded its processor and
 * does not get it back. */
static bool others_poll(const struct iv_dev *dev, uint64_t now)
{
	const uint64_t polled = atomic_load_explicit(&dev->polled_ns, memory_order_relaxed),
		       turned = atomic_load_explicit(&dev->turn_ns, memory_order_relaxed);

	return dev->idle == PORT_IDLE_SLEEP &&
	       ((atomic_load_explicit(&dev->polling, memory_order_relaxed) > 0 &&
			turned + ABSENT_NS > now) ||
		       polled + POLL_GAP_NS > now);
}

static void *thread_main(void *arg)
{
	struct iv_dev *dev = arg;
	struct port_backoff backoff = {.idle = dev->idle};
	unsigned aside_us = SLEEP_FIRST_US;
	uint64_t stays_until = 0;
	bool aside = false;

	/* The default slack of 50 us would double the naps. */
	prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
	prctl(PR_SET_NAME, (unsigned long)"incline-rnic", 0ul, 0ul, 0ul);
	while (!atomic_load_explicit(&dev->stop, memory_order_relaxed)) {
		uint64_t now = dev->ops->now(dev->port), until;
		unsigned work;

		if (now >= stays_until && others_poll(dev, now)) {
			/* Look again, ever more rarely, whether they still do. */
			aside = true;
			aside_us = aside_us < SLEEP_ASIDE_US ? 2 * aside_us : SLEEP_ASIDE_US;
			nap(aside_us);
			continue;
		}
		work = turn_if_free(dev);
		/* What lay there while it stood aside may be waited for in memory: then the program
		 * does without it no more for some time, though it polls now and then. */
		if (aside && work > 0)
			stays_until = now + STAY_NS;
		if (aside)
			backoff.worked_ns = now;
		aside = false;
		aside_us = SLEEP_FIRST_US;
		now = dev->ops->now(dev->port);
		backoff.max_sleep_us = iv_max_sleep_us(dev);
		if (dev->netdev)
			backoff.wake_fd =
				atomic_load_explicit(&dev->netdev->wake_fd, memory_order_relaxed);
		until = atomic_load_explicit(&dev->deadline, memory_order_relaxed);
		port_backoff(&backoff, work, now, until);
	}
	return NULL;
}

static int start_threads(struct iv_dev *dev)
{
	sigset_t all, old;
	int ret = 0;

	/* The application's signals are for the application's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	dev->threaded = true;
	if (dev->workers)
		ret = iv_workers_start(dev->workers);
	if (ret == 0)
		ret = -pthread_create(&dev->thread, NULL, thread_main, dev);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret) {
		dev->threaded = false;
		if (dev->workers)
			iv_workers_stop(dev->workers);
	}
	return ret;
}

/* ---- life ---- */

/* Marks an ibv_device as ours; the field is unused by libibverbs ("obsolete"). */
static void device_marker(struct ibv_context *context)
{
	(void)context;
}

bool iv_device_mine(const struct ibv_device *device)
{
	return device->_ops._dummy2 == device_marker;
}

void iv_device_init(struct iv_device *device, const char *name, const uint8_t mac[6], bool iwarp)
{
	struct ibv_device *base = &device->base;

	memset(device, 0, sizeof(*device));
	memcpy(device->mac, mac, sizeof(device->mac));
	base->_ops._dummy2 = device_marker;
	base->node_type = iwarp ? IBV_NODE_RNIC : IBV_NODE_CA;
	base->transport_type = iwarp ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	snprintf(base->name, sizeof(base->name), "%s", name);
	snprintf(base->dev_name, sizeof(base->dev_name), "%s", name);
	/* There is no kernel device; these are the names under which programs would look. */
	snprintf(base->dev_path, sizeof(base->dev_path), "/sys/class/infiniband_verbs/%.*s",
		IV_NAME_LEN, name);
	snprintf(base->ibdev_path, sizeof(base->ibdev_path), "/sys/class/infiniband/%.*s",
		IV_NAME_LEN, name);
}

/* The link as it is found needs no event. */
static void init_ports(struct iv_dev *dev, void *first, void *const more[])
{
	const uint64_t now = dev->ops->now(first);

	dev->port = first;
	dev->n_ports = rnic_n_ports(dev->rnic);
	dev->link_ns = now;
	dev->all_up = true;
	for (unsigned i = 0; i < dev->n_ports; i++) {
		struct iv_port *port = &dev->ports[i];

		port->handle = i == 0 ? first : more[i - 1];
		port->link = !dev->ops->link_up || dev->ops->link_up(port->handle);
		rnic_port_set(dev->rnic, i, port->link, now);
		dev->all_up = dev->all_up && port->link;
	}
}

static void init_locks(struct iv_dev *dev)
{
	pthread_mutex_init(&dev->owner, NULL);
	pthread_mutex_init(&dev->list_lock, NULL);
	LIST_INIT(&dev->contexts);
}

/* The port has its buffers back. */
static void destroy_rings(struct iv_dev *dev)
{
	if (dev->workers)
		iv_workers_destroy(dev->workers);
	dev->workers = NULL;
}

static void free_dev(struct iv_dev *dev)
{
	dev->device->dev = NULL;
	destroy_rings(dev);
	iv_iwarp_destroy(dev->iwarp);
	if (dev->rnic)
		rnic_destroy(dev->rnic);
	pthread_mutex_destroy(&dev->owner);
	pthread_mutex_destroy(&dev->list_lock);
	free(dev);
}

/* Planes of MRC are the device's ports. */
static int open_mrc(struct iv_dev *dev, const struct rnic_mrc_config *from)
{
	struct rnic_mrc_config config = *from;

	config.events = (struct rnic_mrc_events){
		.arg = dev, .ev_changed = iv_on_mrc_ev, .answered = iv_on_mrc_answer};
	dev->mrc_ports = rnic_n_ports(dev->rnic);
	atomic_init(&dev->mrc_up, (1u << dev->mrc_ports) - 1);
	return rnic_mrc_open(dev->rnic, &config);
}

static bool possible(const struct verbs_open_attr *attr)
{
	if (attr->iwarp && (attr->netdev || attr->rnic.n_workers > 0))
		return false;
	return attr->rnic.n_ports <= 1 || !(attr->netdev || attr->iwarp);
}

struct iv_dev *iv_dev_create(const struct verbs_port_ops *ops, void *port,
	const struct verbs_open_attr *attr, struct iv_device *device)
{
	struct iv_dev *dev = calloc(1, sizeof(*dev));
	struct rnic_config config = attr->rnic;
	int ret;

	if (!dev)
		return NULL;
	if (!device) {
		device = &dev->self;
		iv_device_init(device, attr->name ? attr->name : "incline0", config.port[0].mac,
			attr->iwarp);
	}
	dev->device = device;
	device->dev = dev;
	init_locks(dev);
	dev->ops = ops;
	dev->idle = attr->idle;
	dev->netdev = attr->netdev;
	atomic_init(&dev->deadline, UINT64_MAX);
	config.events = (struct rnic_events){.arg = dev,
		.cq_event = iv_on_cq_event,
		.qp_event = iv_on_qp_event,
		.srq_event = iv_on_srq_event,
		.mad = iv_on_mad,
		.cq_error = iv_on_cq_error,
		.port_event = iv_on_port_event};
	ret = possible(attr) ? rnic_create(&config, &dev->rnic) : -EINVAL;
	if (ret == 0)
		init_ports(dev, port, attr->more);
	if (ret == 0)
		ret = open_mrc(dev, &attr->mrc);
	if (ret == 0 && attr->iwarp)
		ret = iv_iwarp_create(dev, &config.port[0], &dev->iwarp);
	if (ret == 0 && config.n_workers > 0) {
		dev->workers = iv_workers_create(dev);
		ret = dev->workers ? 0 : -errno;
	}
	if (ret == 0 && attr->thread)
		ret = start_threads(dev);
	if (ret) {
		free_dev(dev);
		errno = -ret;
		return NULL;
	}
	return dev;
}

void iv_dev_stop(struct iv_dev *dev)
{
	if (!dev->threaded)
		return;
	atomic_store(&dev->stop, true);
	pthread_join(dev->thread, NULL);
	if (dev->workers)
		iv_workers_stop(dev->workers);
	dev->threaded = false;
}

void iv_drain(struct iv_dev *dev)
{
	for (int i = 0; i < DRAIN_TURNS && iv_turn(dev) > 0; i++)
		;
}

void iv_dev_destroy(struct iv_dev *dev)
{
	iv_dev_stop(dev);
	iv_own(dev);
	iv_cm_stop(dev);
	rnic_lldp_stop(dev->rnic);
	if (!dev->dead)
		iv_drain(dev);
	iv_disown(dev);
	iv_cm_destroy(dev);
	destroy_rings(dev);
	for (unsigned i = 0; dev->ops->close && i < dev->n_ports; i++)
		dev->ops->close(dev->ports[i].handle);
	free_dev(dev);
}

unsigned incline_verbs_progress(struct ibv_context *context)
{
	return iv_progress(iv_dev(context));
}

uint64_t incline_verbs_deadline(struct ibv_context *context)
{
	return atomic_load(&iv_dev(context)->deadline);
}

struct rnic *incline_verbs_rnic(struct ibv_context *context)
{
	return iv_dev(context)->rnic;
}
