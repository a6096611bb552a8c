/* SPDX-License-Identifier: BSD-3-Clause */
/* The communication manager of each device: opened when a program first needs one, run by the turns
 * of the device. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/random.h>

#include "lib/verbs/cm_exports.h"
#include "lib/verbs/cm_internal.h"
#include "lib/verbs/exports.h"
#include "lib/verbs/iwarp_dev.h"

enum { GOODBYE_NS = 1000000000, GOODBYE_STEP_NS = 1000000 };
/* What has been sent on a connection of TCP is still to arrive. */
static const uint64_t GOODBYE_TCP_NS = 5000000000;

struct iv_cm iv_cm = {.lock = PTHREAD_MUTEX_INITIALIZER, .unused = PTHREAD_COND_INITIALIZER};

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER; /* before all others */
static bool opened;

int iv_cm_ret(int err)
{
	if (err == 0)
		return 0;
	errno = err < 0 ? -err : err;
	return -1;
}

bool iv_cm_on(void)
{
	return atomic_load(&iv_cm.added) || iv_env_set();
}

/* ---- datagrams ---- */

unsigned iv_on_mad(void *arg, const struct rnic_mad *mad, const uint8_t *data)
{
	struct iv_dev *dev = arg;
	const struct cm_path path = {mad->dst, mad->src, (uint8_t)(mad->tos & ~IP_ECN_MASK)};

	if (!dev->cm || dev->iwarp)
		return RNIC_DROP_NO_QP;
	cm_rx(dev->cm->cm, &path, data, CM_MAD_LEN, dev->ops->now(dev->port));
	return 0;
}

/* False: it has to wait. */
static bool send_out(struct iv_cm_dev *cdev, const struct cm_out *out, uint64_t now)
{
	struct rnic *rnic = cdev->dev->rnic;
	const struct rnic_mad mad = {out->path.local, out->path.remote, out->path.tos,
		(uint8_t)iv_cm_port(rnic, &out->path.local)};
	uint8_t dmac[6];
	int ret = rnic_resolve(rnic, mad.port, &mad.dst, dmac, now);

	if (ret == 0)
		ret = rnic_mad_send(rnic, &mad, dmac, out->mad);
	if (ret == -EAGAIN || ret == -ENOSPC)
		return false;
	if (ret)
		cm_unreachable(cdev->cm);
	return true;
}

static unsigned send_all(struct iv_cm_dev *cdev, uint64_t now)
{
	unsigned sent = 0, kept = 0;
	struct cm_out out;

	for (unsigned i = 0; i < cdev->n_waiting; i++) {
		if (send_out(cdev, &cdev->waiting[i], now))
			sent++;
		else
			cdev->waiting[kept++] = cdev->waiting[i];
	}
	cdev->n_waiting = kept;
	while (cdev->n_waiting < IV_CM_WAITING && cm_tx(cdev->cm, &out)) {
		if (send_out(cdev, &out, now))
			sent++;
		else
			cdev->waiting[cdev->n_waiting++] = out;
	}
	return sent;
}

/* ---- rdma_resolve_addr ---- */

static void resolve_one(struct iv_cm_dev *cdev, struct iv_id *id, uint64_t now)
{
	uint8_t dmac[6];
	struct iv_dev *dev = cdev->dev;
	int ret = dev->iwarp ? rnic_next_hop(dev->rnic, id->gid.port, &id->remote, dmac, now)
			     : rnic_resolve(dev->rnic, id->gid.port, &id->remote, dmac, now);

	if ((ret == -EAGAIN || ret == -EHOSTUNREACH || ret == -ENOMEM) && now < id->resolve_until)
		return;
	LIST_REMOVE(id, resolving);
	id->is_resolving = false;
	if (ret == -EAGAIN || ret == -EHOSTUNREACH)
		ret = -ETIMEDOUT;
	if (ret == 0)
		memcpy(id->next_hop, dmac, sizeof(dmac));
	pthread_mutex_lock(&iv_cm.lock);
	id->state = ret ? ID_BOUND : ID_ADDR_RESOLVED;
	pthread_mutex_unlock(&iv_cm.lock);
	iv_cm_raise_plain(id, ret ? RDMA_CM_EVENT_ADDR_ERROR : RDMA_CM_EVENT_ADDR_RESOLVED, ret);
}

/* ---- the turn ---- */

unsigned iv_cm_turn(struct iv_dev *dev, uint64_t now)
{
	struct iv_cm_dev *cdev = dev->cm;
	struct iv_id *id, *next;
	unsigned work = 0;

	if (dev->iwarp)
		work = iv_cm_iwarp_turn(cdev, now);
	if (cm_deadline(cdev->cm) <= now)
		cm_timer(cdev->cm, now);
	for (id = LIST_FIRST(&cdev->resolving); id; id = next) {
		next = LIST_NEXT(id, resolving);
		resolve_one(cdev, id, now);
	}
	if (cdev->n_waiting || cm_has_work(cdev->cm))
		work += send_all(cdev, now);
	return work;
}

uint64_t iv_cm_deadline(const struct iv_dev *dev)
{
	const uint64_t iwarp = dev->iwarp ? iv_cm_iwarp_deadline(dev->cm) : UINT64_MAX;
	uint64_t deadline = cm_deadline(dev->cm->cm);
	struct iv_id *id;

	if (iwarp < deadline)
		deadline = iwarp;

	LIST_FOREACH(id, &dev->cm->resolving, resolving)
	if (id->resolve_until < deadline)
		deadline = id->resolve_until;
	return deadline;
}

void iv_cm_flush(struct iv_cm_dev *cdev)
{
	struct iv_dev *dev = cdev->dev;

	if (!dev->dead)
		iv_cm_turn(dev, dev->ops->now(dev->port));
}

/* DREQs that are not answered, and what waits for a neighbour's address; streams that have not
 * ended. */
static bool goodbye_left(const struct iv_cm_dev *cdev)
{
	const struct iv_dev *dev = cdev->dev;

	return (dev->iwarp && iv_iwarp_open(dev->iwarp) > 0) || cm_unheard(cdev->cm) > 0 ||
	       cdev->n_waiting > 0 || cm_has_work(cdev->cm);
}

static bool any_link(const struct iv_dev *dev)
{
	bool up = false;

	for (unsigned i = 0; i < dev->n_ports; i++)
		up |= dev->ports[i].link;
	return up;
}

/* A DREQ may be lost, and when the process is gone nobody says it again: the peer would wait for
 * what does not come any more. */
void iv_cm_stop(struct iv_dev *dev)
{
	const struct verbs_port_ops *ops = dev->ops;
	uint64_t now = ops->now(dev->port);
	const uint64_t until = now + (dev->iwarp ? GOODBYE_TCP_NS : GOODBYE_NS);

	if (!dev->cm)
		return;
	cm_shutdown(dev->cm->cm, now);
	if (dev->iwarp)
		iv_cm_iwarp_shutdown(dev->cm);
	iv_cm_flush(dev->cm);
	while (!dev->dead && goodbye_left(dev->cm) && now < until && any_link(dev)) {
		iv_turn(dev);
		ops->wait(dev->port, now + GOODBYE_STEP_NS);
		now = ops->now(dev->port);
	}
}

void iv_cm_destroy(struct iv_dev *dev)
{
	struct iv_cm_dev *cdev = dev->cm;

	if (!cdev)
		return;
	dev->cm = NULL;
	cm_destroy(cdev->cm);
	free(cdev);
}

/* ---- opening ---- */

/* In the place of one whose context has been closed while the device stayed open. 0 or -errno. */
static int install(struct iv_cm_dev *cdev)
{
	struct iv_dev *dev = cdev->dev;
	struct iv_cm_dev *old = NULL;
	int ret = 0;

	iv_own(dev);
	pthread_mutex_lock(&iv_cm.lock);
	if (iv_cm.n_dev == IV_CM_DEVICES) {
		ret = -ENOSPC;
	} else {
		old = dev->cm;
		dev->cm = cdev;
		iv_cm.dev[iv_cm.n_dev++] = cdev;
		atomic_store(&iv_cm.added, true);
	}
	pthread_mutex_unlock(&iv_cm.lock);
	iv_disown(dev);
	if (old)
		cm_destroy(old->cm);
	free(old);
	return ret;
}

static int add(struct ibv_context *context)
{
	struct iv_dev *dev = iv_dev(context);
	struct cm_config config = {.events = {NULL, iv_cm_on_request, iv_cm_on_event}};
	const __be64 guid = iv_get_device_guid(context->device);
	struct iv_cm_dev *cdev;
	int ret;

	if (dev->cm && !dev->cm->leaving)
		return 0;
	cdev = calloc(1, sizeof(*cdev));
	if (!cdev)
		return -ENOMEM;
	cdev->dev = dev;
	cdev->context = context;
	LIST_INIT(&cdev->resolving);
	cdev->pd = iv_alloc_pd(context);
	config.events.arg = cdev;
	memcpy(config.ca_guid, &guid, sizeof(config.ca_guid));
	if (getrandom(&config.seed, sizeof(config.seed), 0) != sizeof(config.seed))
		config.seed = dev->ops->now(dev->port);
	ret = cdev->pd ? cm_create(&config, &cdev->cm) : -ENOMEM;
	if (ret == 0) {
		ret = install(cdev);
		if (ret)
			cm_destroy(cdev->cm);
	}
	if (ret)
		free(cdev);
	return ret;
}

int incline_verbs_cm_add(struct ibv_context *context)
{
	int ret;

	pthread_mutex_lock(&open_lock);
	ret = add(context);
	pthread_mutex_unlock(&open_lock);
	return ret;
}

static int open_listed(void)
{
	struct ibv_device **list = iv_get_device_list(NULL);
	int ret = 0;

	if (!list)
		return -errno;
	for (unsigned i = 0; list[i] && ret == 0; i++) {
		struct ibv_context *context = iv_open_device(list[i]);

		ret = context ? add(context) : -errno;
	}
	iv_free_device_list(list);
	return ret;
}

int iv_cm_open(void)
{
	int ret = 0;

	pthread_mutex_lock(&open_lock);
	if (!opened && iv_env_set()) {
		ret = open_listed();
		opened = ret == 0;
	}
	pthread_mutex_unlock(&open_lock);
	pthread_mutex_lock(&iv_cm.lock);
	if (ret == 0 && iv_cm.n_dev == 0)
		ret = -ENODEV;
	pthread_mutex_unlock(&iv_cm.lock);
	return ret;
}

/* ---- which device ---- */

/* False: it has no such address. */
static bool has(const struct rnic *rnic, const struct wire_ip *ip, struct iv_gid *gid)
{
	struct wire_ip own;

	for (unsigned p = 0; p < rnic_n_ports(rnic); p++)
		for (unsigned i = 0; rnic_gid(rnic, p, i, &own) == 0; i++)
			if (wire_ip_eq(&own, ip)) {
				*gid = (struct iv_gid){(uint8_t)p, (uint8_t)i};
				return true;
			}
	return false;
}

unsigned iv_cm_port(const struct rnic *rnic, const struct wire_ip *ip)
{
	struct iv_gid gid;

	return has(rnic, ip, &gid) ? gid.port : 0;
}

/* iv_cm.lock is held. */
static struct iv_cm_dev *find(const struct wire_ip *ip, struct iv_gid *gid)
{
	for (unsigned d = 0; d < iv_cm.n_dev; d++)
		if (has(iv_cm.dev[d]->dev->rnic, ip, gid))
			return iv_cm.dev[d];
	return NULL;
}

static unsigned common_bits(const struct wire_ip *a, const struct wire_ip *b)
{
	unsigned n = 0;

	while (n < 128 && !((a->b[n / 8] ^ b->b[n / 8]) >> (7 - n % 8) & 1))
		n++;
	return n;
}

static bool link_local(const struct wire_ip *ip)
{
	return ip->b[0] == 0xfe && (ip->b[1] & 0xc0) == 0x80;
}

/* Has the port an address nearer than `most` bits say? */
static bool nearest_of(const struct rnic *rnic, unsigned port, const struct wire_ip *ip,
	unsigned *most, struct iv_gid *gid)
{
	struct wire_ip own;
	bool found = false;

	for (unsigned i = 0; rnic_gid(rnic, port, i, &own) == 0; i++) {
		unsigned bits = common_bits(&own, ip) + 1;

		if (wire_ip_is4(&own) != wire_ip_is4(ip) || bits <= *most ||
			(link_local(&own) && !link_local(ip) && ip->b[0] != 0xff))
			continue;
		*most = bits;
		*gid = (struct iv_gid){(uint8_t)port, (uint8_t)i};
		found = true;
	}
	return found;
}

/* There are no prefixes: of the addresses of its family, the one that it has most bits in common
 * with. iv_cm.lock is held. */
static struct iv_cm_dev *nearest(const struct wire_ip *ip, struct iv_gid *gid)
{
	struct iv_cm_dev *best = NULL;
	unsigned most = 0;

	for (unsigned d = 0; d < iv_cm.n_dev; d++) {
		const struct rnic *rnic = iv_cm.dev[d]->dev->rnic;

		for (unsigned p = 0; p < rnic_n_ports(rnic); p++)
			if (nearest_of(rnic, p, ip, &most, gid))
				best = iv_cm.dev[d];
	}
	return best;
}

struct iv_cm_dev *iv_cm_find(const struct wire_ip *ip, struct iv_gid *gid)
{
	struct iv_cm_dev *cdev;

	pthread_mutex_lock(&iv_cm.lock);
	cdev = find(ip, gid);
	if (cdev)
		cdev->users++;
	pthread_mutex_unlock(&iv_cm.lock);
	return cdev;
}

struct iv_cm_dev *iv_cm_nearest(const struct wire_ip *ip, struct iv_gid *gid)
{
	struct iv_cm_dev *cdev;

	pthread_mutex_lock(&iv_cm.lock);
	cdev = nearest(ip, gid);
	if (cdev)
		cdev->users++;
	pthread_mutex_unlock(&iv_cm.lock);
	return cdev;
}

struct ibv_context **iv_rdma_get_devices(int *n)
{
	struct ibv_context **list;
	int ret = iv_cm_open(), found;

	if (n)
		*n = 0;
	list = ret ? NULL : calloc(IV_CM_DEVICES + 1, sizeof(*list));
	if (!list) {
		errno = ret ? -ret : ENOMEM;
		return NULL;
	}
	pthread_mutex_lock(&iv_cm.lock);
	found = (int)iv_cm.n_dev;
	for (int i = 0; i < found; i++)
		list[i] = iv_cm.dev[i]->context;
	pthread_mutex_unlock(&iv_cm.lock);
	if (n)
		*n = found;
	return list;
}

void iv_rdma_free_devices(struct ibv_context **list)
{
	free(list);
}

/* ---- waiting ---- */

void iv_cm_barrier(void)
{
	struct iv_cm_dev *cdevs[IV_CM_DEVICES];
	const unsigned n = iv_cm_get_all(cdevs);

	for (unsigned i = 0; i < n; i++) {
		iv_own(cdevs[i]->dev);
		iv_disown(cdevs[i]->dev);
	}
	iv_cm_put_all(cdevs, n);
}

void iv_cm_progress(void)
{
	struct iv_cm_dev *cdevs[IV_CM_DEVICES];
	const unsigned n = iv_cm_get_all(cdevs);

	for (unsigned i = 0; i < n; i++)
		iv_progress(cdevs[i]->dev);
	iv_cm_put_all(cdevs, n);
}

int iv_cm_wait(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct iv_cm_dev *cdevs[IV_CM_DEVICES];
	const unsigned n = iv_cm_get_all(cdevs);
	bool waited = false;

	for (unsigned i = 0; i < n && !waited; i++) {
		struct iv_dev *dev = cdevs[i]->dev;

		/* Nobody else would run it. */
		waited = !dev->threaded;
		if (waited)
			dev->ops->wait(dev->port, atomic_load(&dev->deadline));
	}
	iv_cm_put_all(cdevs, n);
	if (waited)
		return 0;
	return poll(&p, 1, -1) < 0 ? -1 : 0;
}

/* ---- counters ---- */

unsigned iv_cm_stats(const struct iv_dev *dev, struct inc_dv_stat *stats, unsigned n)
{
	const struct cm *cm = dev->cm->cm;
	unsigned at = 0;

	for (unsigned i = 0; i < CM_N_COUNTERS; i++, at++)
		if (at < n)
			stats[at] = (struct inc_dv_stat){cm_counter_name((enum cm_counter)i),
				cm_count(cm, (enum cm_counter)i)};
	for (unsigned i = 1; i < CM_N_DROPS; i++, at++)
		if (at < n)
			stats[at] = (struct inc_dv_stat){cm_drop_name(i), cm_drop_count(cm, i)};
	return at;
}
