/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/port only. */
#ifndef PORT_INTERNAL_H
#define PORT_INTERNAL_H

#include "lib/port/port.h"

/* Ethernet, VLAN and the few bytes some drivers add; af_packet takes more from a buffer. */
enum { PORT_FRAME_OVERHEAD = 14 + 4 + 4, PORT_AF_PACKET_EXTRA = 64 };

/* Bytes of a buffer for frames of this MTU, without headroom. */
static inline unsigned port_room(unsigned mtu)
{
	return (mtu + PORT_FRAME_OVERHEAD + PORT_AF_PACKET_EXTRA + 63) & ~63u;
}

/* The first error that the EAL or a driver logged since port_log_clear, "" if none. */
const char *port_log_error(void);
void port_log_clear(void);
/* Errors of this thread go into a message and need no line of their own. */
void port_log_quote(bool on);
/* What the EAL's log does with a line of this level. */
void port_log_line(const char *buf, size_t len, int level);

/* "message (what the driver said)" into err; returns -error. */
int port_fail(char err[PORT_ERR_LEN], int error, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* open.c: -EINVAL if the interface does not carry the port's MTU. */
int port_check_interface_mtu(const struct port_config *c, char err[PORT_ERR_LEN]);

/* burst.c: before the first memif; and once its driver is loaded, before the port is started: 0, or
 * -errno with the reason. */
void port_bursts_init(void);
int port_bursts_hold(char err[PORT_ERR_LEN]);
/* Those that have begun are over. false: not within a second. */
bool port_bursts_wait(void);
/* Around what must not lose its memory meanwhile. Any thread. */
void port_burst_begin(void);
void port_burst_end(void);
/* For tests: how many are in between, and how many threads have a slot of their own. */
unsigned port_bursts_under_way(void);
unsigned port_burst_slots(void);

/* again.c: as port_bursts_hold. */
int port_again_hook(char err[PORT_ERR_LEN]);
/* Of what a descriptor is, which closed and opened is another; 0: of nothing. */
uint64_t port_inode(int fd);
/* memif_hear.c: as port_bursts_hold; and a client's socket of now on. false: too many. */
int memif_hear_hook(char err[PORT_ERR_LEN]);
bool memif_hear_begin(int fd);
/* rte_eth_dev_start; what a memif client has begun by it is not taken for over before its time. */
int port_first_start(struct port *port);
/* No attempt is under way, and port_tick will not be called again. */
void port_tick_end(struct port *port);
/* Calls it there and waits for its end; not from there, nor in a burst. */
void port_on_interrupt_thread(void (*fn)(void *arg), void *arg);
/* open.c: makes a zero-copy memif a copying one of the same id, not started; nobody is in a burst.
 * -errno: the device is gone then (or still); call again. -EADDRNOTAVAIL: the id is another's. */
int port_copy_instead(struct port *port);

/* hook.c: the calls of symbol by loaded libraries whose file names have `library` in them go to
 * function from now on. The number of entries changed, or -ENOENT: there are none; -errno. */
int port_hook(const char *library, const char *symbol, void *function);

/* guard.c: memory of peers that cannot be touched ends that peer and nothing else. port_guard_start
 * takes SIGBUS, once, and hands on what is not of such memory: 0, or -errno with the reason. The
 * rest stands in place of a driver's mmap and munmap; what is mapped was offered on the connection
 * that the thread said last it has heard from (-1: by nobody, and is not guarded). */
enum port_guarded { PORT_GUARDED_VHOST, PORT_GUARDED_MEMIF, PORT_N_GUARDED };
int port_guard_start(char err[PORT_ERR_LEN]);
void port_guard_heard(int socket);
void *port_guard_map(
	enum port_guarded of, void *addr, size_t len, int prot, int flags, int fd, off_t off);
int port_guard_unmap(void *addr, size_t len);
uint64_t port_guard_lost(enum port_guarded of); /* pieces that could not be touched */

/* vhost.c: once the driver is loaded, before a port is started. 0, or -errno with the reason. */
int port_vhost_guard(char err[PORT_ERR_LEN]);

/* drivers.c: while this is on, the EAL's start loads no drivers, except those of pools, if DPDK is
 * linked dynamically. */
void port_drivers_hold_back(bool on);
/* Loads a driver ("net_memif") that was held back, or PORT_ANY_DRIVER, all of them: they stay.
 * NULL: none is needed. 0, or -ENODEV with the reason. One thread at a time. */
#define PORT_ANY_DRIVER "*"
int port_drivers_load(const char *name, char err[PORT_ERR_LEN]);
/* config.c: what port_drivers_load is to load for a port. */
const char *port_config_driver(const struct port_config *config);

/* ring.c: the device of a ring port, made without devargs. 0 and *port_id, or -errno. */
int port_ring_create(const struct port_config *config, uint16_t *port_id, char err[PORT_ERR_LEN]);
void port_ring_destroy(const struct port_config *config);

#endif
