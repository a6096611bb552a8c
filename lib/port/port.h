/* SPDX-License-Identifier: BSD-3-Clause */
/* One DPDK Ethernet port, for the switch and for the software RNIC alike, and the EAL start-up with
 * defaults that work without NIC, hugepages or root. config.h reads one from a file.
 *
 * What docs/config.md does not say: a tap port has, unless "mac" says otherwise, 06:64:74:61:70:3N
 * for the Nth tap, the kernel's end of it 02:64:74:61:70:3N. A ring port with a peer, which is
 * opened before, is one end of a cable, and closed first; without one the cable ends in two rings
 * of this process, NAME.rx (what is put in is received) and NAME.tx.
 */
#ifndef PORT_PORT_H
#define PORT_PORT_H

#include <rte_ether.h>
#include <rte_mbuf.h>
#include <stdbool.h>
#include <stdint.h>

enum { PORT_NAME_LEN = 32, PORT_ERR_LEN = 256 };

/* How a polling loop behaves when there is nothing to do. */
enum port_idle { PORT_IDLE_SPIN, PORT_IDLE_PAUSE, PORT_IDLE_SLEEP };
int port_idle_parse(const char *name); /* enum or -EINVAL */
const char *port_idle_name(enum port_idle idle);

/* Backing off, one per loop: call with work = items done by this turn. SPIN returns at once; PAUSE
 * executes pause instructions; SLEEP pauses until 2 us after the last turn with work, yields for
 * 200 us more, then sleeps 20 us growing to max_sleep_us (and never beyond deadline_ns - now_ns).
 * However many turns that takes. Begins as all zero but for idle. */
struct port_backoff {
	enum port_idle idle;
	uint32_t max_sleep_us; /* 0: 100, and 1000 when there was no work for a second */
	int wake_fd;           /* ends a sleep when it is readable; 0: none */
	uint64_t worked_ns;    /* when there was work; 0: since the first turn */
};
void port_backoff(struct port_backoff *b, unsigned work, uint64_t now_ns, uint64_t deadline_ns);
/* How long a call with work == 0 may sleep at most, in us. */
uint32_t port_backoff_longest(const struct port_backoff *b, uint64_t now_ns);
/* Would a call with work == 0 sleep now, rather than pause or yield? */
bool port_backoff_sleeps(const struct port_backoff *b, uint64_t now_ns);

/* CLOCK_MONOTONIC in nanoseconds: what the programs feed to the cores as "now". */
uint64_t port_now_ns(void);

struct port_eal {
	const char *program; /* argv[0] shown in messages */
	unsigned memory_mb;  /* default 256 when 0; without hugepages */
	bool hugepages;      /* false: --no-huge */
	bool pci;            /* false: --no-pci */
	const char *lcores;  /* EAL --lcores text; NULL: one floating over all allowed CPUs */
	const char *extra;   /* further EAL options, blank-separated; may be NULL */
	bool telemetry;
};

/* Starts the EAL quietly (its log goes nowhere unless INCLINE_EAL_LOG is set to a level), under a
 * file prefix of its own, with a run-time directory it can write. 0, or -errno with the reason and
 * the setting to change in err. Once per process. The calling thread's CPU affinity is kept. */
int port_eal_init(const struct port_eal *eal, char err[PORT_ERR_LEN]);
/* Has it been? A second port_eal_init returns 0 and changes nothing. */
bool port_eal_started(void);
/* At the end of the process, after all ports are closed: removes what the EAL left in the file
 * system. It cannot be started again. */
void port_eal_fini(void);

/* The longest such list of 1024 CPUs, some 3 KB, and a CPU for each of 100 lcores. */
enum { PORT_LCORES_LEN = 4096 };

/* EAL --lcores text for lcores 0..n-1 that float over all CPUs allowed to the calling thread. 0,
 * -ENOSPC (never of PORT_LCORES_LEN), -errno where the CPUs cannot be told. */
int port_lcores_floating(unsigned n, char *buf, size_t cap);

struct port_config {
	char name[PORT_NAME_LEN];
	char type[16];
	char vdev[512];           /* complete devargs; "" for ring */
	char pci[64];             /* address, else "" */
	char iface[16];           /* kernel interface of af_packet and tap, else "" */
	char socket[108];         /* of memif and vhost, else "" */
	char peer[PORT_NAME_LEN]; /* ring, else "" */
	bool client;              /* of memif or vhost */
	uint16_t id;              /* of memif */
	bool zero_copy;           /* of memif; a process has one, further ones copy after all */
	bool has_mac;
	uint8_t mac[6];
	uint16_t mtu;
	uint16_t rxd, txd;
	uint16_t queues;
};

/* What can be said of a port without opening it: directories, interfaces, devices. Touches nothing,
 * whoever uses them. 0, or -errno with "field: reason" in err. */
int port_check(const struct port_config *config, char err[PORT_ERR_LEN]);
/* Is there a directory for this path, and can it be written to? */
int port_check_directory(const char *field, const char *path, bool write, char err[PORT_ERR_LEN]);
/* Makes it a port of the same name, MAC and MTU that is connected to nothing. */
void port_config_unplug(struct port_config *config);

/* An mbuf pool whose buffers hold a whole frame of mtu in one segment. On a socket of the EAL's, or
 * where that has not the memory, on any. */
struct rte_mempool *port_pool_create(
	const char *name, unsigned n, unsigned mtu, int socket, char err[PORT_ERR_LEN]);

/* The same of buffers with so many bytes of room, headroom included. ops: DPDK's name of a kind of
 * free list, NULL for the usual one. NULL with rte_errno. */
struct rte_mempool *port_pool_of(
	const char *name, unsigned n, unsigned room, int socket, const char *ops);

/* Each lcore of the process keeps up to one and a half as many free buffers of a pool to itself. */
enum { PORT_POOL_CACHE = 256 };

/* The number of buffers that these ports can hold at most. */
unsigned port_pool_rings(const struct port_config *configs, unsigned n);
/* For sizing a switch's pool: that, and some to spare for what is under way in the program. */
unsigned port_pool_need(const struct port_config *configs, unsigned n);

/* Nobody may use the device of a port that is away: it is being connected again; nor of one that is
 * gone: it could not be made again, and will be tried again. Who asks sees a link that is down. */
enum port_place { PORT_HERE, PORT_AWAY, PORT_GONE };

/* Creates and starts the device; *port_id is DPDK's. A memif or vhost client whose server is not up
 * yet is retried until deadline_ms from now (0: one try). -errno with the reason. Checks what the
 * driver can do (MTU, descriptors, multi-segment) instead of failing late. */
struct port {
	struct port_config config;
	uint16_t id;
	_Atomic(unsigned char) away; /* enum port_place */
	bool multi_seg;              /* tx takes chained mbufs */
	bool shared_rings;           /* with another process, which may go away */
	uint8_t mac[6];
	struct rte_mempool *pool;
	struct port_iface *iface; /* iface.h: of af_packet, else NULL */
	struct port_again {
		uint64_t times;              /* that the link has come again */
		uint64_t next_ns;            /* attempt; 0: the link was up */
		bool tried;                  /* since it was up */
		uint64_t patience_ns, inode; /* of the conversation that the last one began */
		int fd;
		bool gone;  /* there is no device */
		bool lossy; /* was a zero-copy one, which has lost buffers */
	} again;            /* of a memif client; again.c */
};
int port_open(const struct port_config *config, struct rte_mempool *pool, unsigned deadline_ms,
	struct port *port, char err[PORT_ERR_LEN]);
void port_close(struct port *port);
bool port_link_up(const struct port *port);
/* Megabits per second of a NIC's link. 0: it is down, or does not say, or the port is no NIC: what
 * drivers of others say is made up. */
unsigned port_mbps(const struct port *port);
struct rte_eth_stats; /* rte_ethdev.h */
/* rte_eth_stats_get; -EAGAIN, and all zero, while the port is connected again. */
int port_driver_stats(const struct port *port, struct rte_eth_stats *stats);
/* The largest IP packet that it carries now: less than configured if an af_packet's interface has
 * been given a smaller MTU. */
unsigned port_mtu(const struct port *port);

/* rte_eth_rx_burst and rte_eth_tx_burst on queue 0, by one thread at a time. To be used instead of
 * them: safe when the peer of a memif goes away in the middle. Nothing is sent while the link of a
 * memif or an af_packet port is down. */
unsigned port_rx_burst(const struct port *port, struct rte_mbuf **mbufs, unsigned n);
unsigned port_tx_burst(const struct port *port, struct rte_mbuf **mbufs, unsigned n);

/* Drivers give back the buffers that have been sent when there is something to send, and not
 * otherwise: this asks for them now. What a peer may still read stays where it is. By the thread
 * that sends; whatever a port of shared rings frees, it frees as a burst would, so that the rings
 * are there meanwhile. While its link is down this does nothing. */
void port_tx_reap(const struct port *port);

/* The driver never gives back what was in the ring of a zero-copy memif whose peer has gone; nobody
 * reads it any more. If that is or was so (else nothing is done; nor again, the whole pool being
 * looked through) buffers of this pool that were sent there, in packets of several, and lend memory
 * (rte_pktmbuf_attach_extbuf) are freed, so that it is its owner's again; the others stay lost, as
 * many as the ring has. By the thread that sends. Who lends says first that `port` is none. */
void port_tx_lost(const struct port *port, struct rte_mempool *pool);

/* A memif client whose server went away finds it, or its successor, by this: to be called some ten
 * times a second (now: port_now_ns), by one thread; others may be in bursts meanwhile, or ask for
 * the link. An attempt is made four times a second at most, on another thread: nothing waits. The
 * link was seen down by this function 250 ms before. A zero-copy client copies from then on, and
 * the buffers in its rings are lost, but for what port_tx_lost frees. Does nothing for other ports.
 */
void port_tick(struct port *port, uint64_t now);

/* The same in one attempt that is waited for, for a program without such a thread. 0 (also if the
 * link is up), -errno as long as there is no server, -EINPROGRESS while a memif's server may still
 * answer what was said to it before (five seconds at most; nothing is done), -EOPNOTSUPP for a
 * zero-copy memif. Of a vhost client not while another thread sends or receives on the port. */
int port_reconnect(struct port *port);

/* Clients that the memif servers of this process sent away, and servers that its memif clients left
 * for what they said, by reason: i counts from 0; *name is
 * NULL after the last. Any thread. */
uint64_t port_memif_refused(unsigned i, const char **name, const char **text);
/* Pieces of vhost clients' memory, and of memif clients', that could not be touched; each such
 * client was hung up on. Any thread. */
uint64_t port_vhost_lost(void);
uint64_t port_memif_lost(void);

#endif
