/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/verbs/dpdk_port.h"

enum {
	TX_PENDING = 64,        /* frames that wait for room in the port's ring */
	TX_STUCK_NS = 20000000, /* a ring that took nothing for so long is not read */
	LINGER_NS = 10000000,   /* what has been sent may be read by the peer for so long */
	LINK_STEP_US = 2000,
	/* Under way here; and free ones that the cache of the one lcore keeps from other threads.
	 */
	SLACK_MBUFS = TX_PENDING + 1 + 2 * VERBS_BURST + 2 * PORT_POOL_CACHE,
};

/* Longer than a crowded machine keeps a switch from its CPU (docs/lab.md). */
static const uint64_t LINGER_MAX_NS = UINT64_C(5000000000);

struct iv_dpdk {
	struct port port;
	int control;  /* socket to the memif's server; -1: none */
	bool stopped; /* between a failed attempt to reconnect and the next */
	struct rte_mbuf *tx[TX_PENDING];
	unsigned n_tx;
	struct rte_mbuf *fresh[VERBS_BURST]; /* allocated, empty */
	unsigned n_fresh;
	/* Where the peer reads them in place: the last frame that it has been given, by a reference
	 * more. */
	struct rte_mbuf *last;
	uint64_t sent_ns; /* last time the port took a frame, or had nothing to take */
	/* Frames dropped, but for the last two; names in port_stats. */
	uint64_t rx_segments; /* longer than the MTU */
	uint64_t tx_link_down;
	uint64_t tx_stuck; /* the peer does not read its ring */
	uint64_t tx_too_long;
	uint64_t tx_mtu;      /* longer than the interface of an af_packet port has been made */
	uint64_t tx_no_mbuf;  /* turns without a free buffer, frames lost for want of one */
	uint64_t tx_deferred; /* kept for the next turn, the ring was full */
	uint64_t reconnects;
};

/* ---- receiving ---- */

static void drop(struct rte_mbuf *m, uint64_t *counter)
{
	rte_pktmbuf_free(m);
	++*counter;
}

static unsigned port_rx(void *arg, struct rnic_rx_frame *frames, unsigned n)
{
	struct iv_dpdk *p = arg;
	struct rte_mbuf *mbufs[VERBS_BURST];
	unsigned got = p->stopped ? 0 : port_rx_burst(&p->port, mbufs, n), out = 0;

	for (unsigned i = 0; i < got; i++) {
		struct rte_mbuf *m = mbufs[i];

		/* Buffers hold a whole frame of the MTU; only a longer one is split. */
		if (m->nb_segs > 1) {
			drop(m, &p->rx_segments);
			continue;
		}
		frames[out++] = (struct rnic_rx_frame){
			.data = rte_pktmbuf_mtod(m, uint8_t *), .len = m->data_len, .priv = m};
	}
	return out;
}

static void port_rx_free(void *arg, const struct rnic_rx_frame *frames, unsigned n)
{
	struct rte_mbuf *mbufs[VERBS_BURST];

	(void)arg;
	for (unsigned i = 0; i < n; i++)
		mbufs[i] = frames[i].priv;
	rte_pktmbuf_free_bulk(mbufs, n);
}

/* ---- sending ---- */

static unsigned port_tx_room(void *arg)
{
	struct iv_dpdk *p = arg;
	unsigned room = TX_PENDING - p->n_tx;

	if (p->n_fresh == 0 && room > 0) {
		if (rte_pktmbuf_alloc_bulk(p->port.pool, p->fresh, VERBS_BURST) == 0)
			p->n_fresh = VERBS_BURST;
		else
			p->tx_no_mbuf++;
	}
	return room < p->n_fresh ? room : p->n_fresh;
}

/* The kernel would lose it without a word. */
static bool over_mtu(const struct iv_dpdk *p, const struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const bool tagged = eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN);

	return m->pkt_len > RTE_ETHER_HDR_LEN + (tagged ? RTE_VLAN_HLEN : 0) + port_mtu(&p->port);
}

uint8_t *iv_dpdk_tx_begin(struct iv_dpdk *p, size_t *cap)
{
	struct rte_mbuf *m = p->fresh[p->n_fresh - 1];

	*cap = rte_pktmbuf_tailroom(m);
	return rte_pktmbuf_mtod(m, uint8_t *);
}

void iv_dpdk_tx_end(struct iv_dpdk *p, int len)
{
	struct rte_mbuf *m;

	if (len == 0)
		return;
	m = p->fresh[--p->n_fresh];
	if (len < 0) {
		drop(m, &p->tx_too_long);
		return;
	}
	m->data_len = (uint16_t)len;
	m->pkt_len = (uint32_t)len;
	if (over_mtu(p, m)) {
		drop(m, &p->tx_mtu);
		return;
	}
	p->tx[p->n_tx++] = m;
}

static void port_tx(void *arg, const struct rnic_frame *frame)
{
	size_t cap;
	uint8_t *at = iv_dpdk_tx_begin(arg, &cap);

	iv_dpdk_tx_end(arg, rnic_frame_flatten(frame, at, cap));
}

static void give_up(struct iv_dpdk *p, uint64_t *counter)
{
	rte_pktmbuf_free_bulk(p->tx, p->n_tx);
	*counter += p->n_tx;
	p->n_tx = 0;
}

/* The port takes frames in order. */
static void keep_last(struct iv_dpdk *p, struct rte_mbuf *last)
{
	rte_pktmbuf_free(p->last);
	p->last = last;
}

static unsigned give(struct iv_dpdk *p)
{
	struct rte_mbuf *last = NULL;
	unsigned sent;

	if (p->stopped)
		return 0;
	if (p->port.config.zero_copy && p->n_tx > 0) {
		last = p->tx[p->n_tx - 1];
		rte_mbuf_refcnt_update(last, 1);
	}
	sent = port_tx_burst(&p->port, p->tx, p->n_tx);
	if (last != NULL && sent == p->n_tx)
		keep_last(p, last);
	else if (last != NULL)
		rte_mbuf_refcnt_update(last, -1);
	return sent;
}

static unsigned port_tx_flush(void *arg)
{
	struct iv_dpdk *p = arg;
	const unsigned sent = give(p);
	uint64_t now;

	if (sent == p->n_tx) {
		p->n_tx = 0;
		p->sent_ns = 0;
		return 0;
	}
	p->tx_deferred += p->n_tx - sent;
	memmove(p->tx, p->tx + sent, (p->n_tx - sent) * sizeof(p->tx[0]));
	p->n_tx -= sent;
	now = port_now_ns();
	if (sent || !p->sent_ns) {
		p->sent_ns = now;
		return p->n_tx;
	}
	/* Nothing went. Keeping the frames would keep the transport's timers from noticing. */
	if (p->stopped || !port_link_up(&p->port))
		give_up(p, &p->tx_link_down);
	else if (now - p->sent_ns > TX_STUCK_NS)
		give_up(p, &p->tx_stuck);
	return p->n_tx;
}

/* ---- time and the rest ---- */

static uint64_t port_now(void *arg)
{
	(void)arg;
	return port_now_ns();
}

static void port_wait(void *arg, uint64_t until)
{
	const struct timespec t = {
		.tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000)};

	(void)arg;
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static bool port_link(void *arg)
{
	const struct iv_dpdk *p = arg;

	return port_link_up(&p->port);
}

/* The peer learns from the end of this connection that the process is gone. DPDK leaves it open for
 * every program that the process runs; and a child that goes on without one keeps it (see
 * iv_dpdk_forked). */
static void find_control(struct iv_dpdk *p)
{
	DIR *dir = p->port.config.socket[0] ? opendir("/proc/self/fd") : NULL;
	const struct dirent *entry;

	p->control = -1;
	while (dir && (entry = readdir(dir)) != NULL) {
		const int fd = (int)strtol(entry->d_name, NULL, 10);
		struct sockaddr_un peer = {0};
		socklen_t len = sizeof(peer);

		if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
			peer.sun_family == AF_UNIX &&
			strncmp(peer.sun_path, p->port.config.socket, sizeof(peer.sun_path)) == 0) {
			fcntl(fd, F_SETFD, FD_CLOEXEC);
			p->control = fd;
		}
	}
	if (dir)
		closedir(dir);
}

void iv_dpdk_forked(const struct iv_dpdk *p)
{
	if (p->control >= 0)
		close(p->control);
}

static void port_again(void *arg)
{
	struct iv_dpdk *p = arg;

	const int ret = port_reconnect(&p->port);

	keep_last(p, NULL); /* of rings that are gone */
	p->reconnects += ret == 0;
	if (ret == 0)
		find_control(p);
	p->stopped = ret != 0 && ret != -EOPNOTSUPP && ret != -EINPROGRESS;
}

static unsigned port_stats(void *arg, struct inc_dv_stat *stats, unsigned n)
{
	const struct iv_dpdk *p = arg;
	const struct inc_dv_stat all[] = {
		{"port_rx_segments", p->rx_segments},
		{"port_tx_no_mbuf", p->tx_no_mbuf},
		{"port_tx_too_long", p->tx_too_long},
		{"port_tx_mtu", p->tx_mtu},
		{"port_tx_link_down", p->tx_link_down},
		{"port_tx_stuck", p->tx_stuck},
		{"port_tx_deferred", p->tx_deferred},
		{"port_reconnects", p->reconnects},
	};
	const unsigned have = sizeof(all) / sizeof(all[0]);

	memcpy(stats, all, (n < have ? n : have) * sizeof(all[0]));
	return have;
}

const struct verbs_port_ops iv_dpdk_ops = {
	.rx_burst = port_rx,
	.rx_free = port_rx_free,
	.tx_room = port_tx_room,
	.tx = port_tx,
	.tx_flush = port_tx_flush,
	.now = port_now,
	.wait = port_wait,
	.link_up = port_link,
	.reconnect = port_again,
	.stats = port_stats,
};

/* ---- life ---- */

static unsigned mbufs_of(const struct iv_config *config, unsigned index)
{
	return port_pool_rings(&config->ports[index].port, 1) + SLACK_MBUFS +
	       config->rx_workers * VERBS_WORKER_HELD;
}

/* Packet size that the buffers are made for. af_packet wants one of its slots to fit into each: a
 * power of two that holds a packet and the kernel's header. */
static unsigned buffer_mtu(const struct port_config *c)
{
	unsigned slot = 2048;

	if (strcmp(c->type, "af_packet") != 0)
		return c->mtu;
	while (slot < c->mtu + 256u)
		slot *= 2;
	return slot;
}

/* MB for the packets of all ports: mbuf, headroom and pool overhead besides the frame. */
static unsigned memory_of(const struct iv_config *config)
{
	unsigned mb = 0;

	for (unsigned i = 0; i < config->n_ports; i++) {
		const size_t bytes =
			mbufs_of(config, i) * ((size_t)buffer_mtu(&config->ports[i].port) + 640);

		mb += (unsigned)(bytes >> 20) + 2;
	}
	return mb;
}

static int start_eal(const struct iv_config *config, unsigned n_devices, char err[PORT_ERR_LEN])
{
	struct port_eal eal = {
		.program = config->name,
		.hugepages = config->hugepages,
		.memory_mb = config->memory_mb,
	};
	sigset_t all, old;
	int ret;

	if (port_eal_started())
		return 0;
	for (unsigned i = 0; i < config->n_ports; i++)
		eal.pci = eal.pci || config->ports[i].port.pci[0];
	if (!eal.memory_mb) /* then rings and the EAL */
		eal.memory_mb = n_devices * memory_of(config) + 46;
	/* The EAL's helper threads must not take the application's signals. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = port_eal_init(&eal, err);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return ret;
}

int iv_dpdk_open(const struct iv_config *config, unsigned index, unsigned n_devices,
	struct iv_dpdk **out, char err[PORT_ERR_LEN])
{
	const struct iv_port_config *own = &config->ports[index];
	static unsigned opened;
	char pool_name[24];
	struct iv_dpdk *p;
	const uint64_t until = port_now_ns() + own->wait_ms * 1000000ull;
	struct rte_mempool *pool;
	sigset_t all, old;
	int ret = start_eal(config, n_devices, err);

	if (ret)
		return ret;
	p = calloc(1, sizeof(*p));
	if (!p) {
		snprintf(err, PORT_ERR_LEN, "out of memory");
		return -ENOMEM;
	}
	snprintf(pool_name, sizeof(pool_name), "rnic%u", opened++);
	pool = port_pool_create(
		pool_name, mbufs_of(config, index), buffer_mtu(&own->port), SOCKET_ID_ANY, err);
	if (!pool) {
		free(p);
		return -ENOMEM;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = port_open(&own->port, pool, own->wait_ms, &p->port, err);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret) {
		rte_mempool_free(pool);
		free(p);
		return ret;
	}
	p->port.pool = pool;
	/* Programs look at the port's state once and give up if it is down. A server may have sent
	 * this client away meanwhile, for one: it has two seconds to say all, and may have got less
	 * of the CPU. */
	while (!port_link_up(&p->port) && port_now_ns() < until) {
		port_tick(&p->port, port_now_ns());
		usleep(LINK_STEP_US);
	}
	find_control(p);
	*out = p;
	return 0;
}

/* Not yet read by the peer, for all that is known. */
static bool is_unread(struct iv_dpdk *p, uint64_t waited)
{
	if (p->n_tx > 0)
		port_tx_flush(p);
	if (!p->port.config.zero_copy)
		return waited < LINGER_NS;
	port_tx_reap(&p->port);
	return waited < LINGER_MAX_NS &&
	       (p->n_tx > 0 || (p->last != NULL && rte_mbuf_refcnt_read(p->last) > 1));
}

/* An acknowledgement may be among what the peer has not read, and who waits for that would take
 * this end for broken. */
static void linger(struct iv_dpdk *p)
{
	const struct timespec step = {.tv_nsec = 500000};
	const uint64_t start = port_now_ns();

	while (port_link_up(&p->port) && is_unread(p, port_now_ns() - start))
		nanosleep(&step, NULL);
}

void iv_dpdk_close(struct iv_dpdk *p, bool last)
{
	struct rte_mempool *pool;

	linger(p);
	keep_last(p, NULL);
	rte_pktmbuf_free_bulk(p->tx, p->n_tx);
	rte_pktmbuf_free_bulk(p->fresh, p->n_fresh);
	pool = p->port.pool;
	port_close(&p->port);
	/* DPDK would zero all of it, page by page. */
	if (!last)
		rte_mempool_free(pool);
	free(p);
}

void iv_dpdk_exit(void)
{
	/* The EAL itself stays: its threads still run, and rte_eal_cleanup would take the memory
	 * from under them. Only the directory must not be left behind. */
	if (port_eal_started())
		rmdir(rte_eal_get_runtime_dir());
}
