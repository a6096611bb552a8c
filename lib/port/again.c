/* SPDX-License-Identifier: BSD-3-Clause */
/* A memif client whose server has gone is connected again. The driver (DPDK 22.11, and still in
 * 2025) does not do that: it connects when the device is started, and at no other time. So the
 * device is stopped and started, with care:
 * - on the EAL's interrupt thread, where the driver has its conversations and takes them down;
 * - while nobody is in a burst, for a start and a stop change what a burst calls;
 * - without waiting for a server that takes no connections, for the interrupt thread is every
 *   port's.
 *
 * A zero-copy client cannot be started again: the driver has closed the file descriptor of the
 * EAL's memory, which a new server would have to be sent, and each time it loses the buffers of
 * both rings. Its device is made anew under the same number, as one that copies. */
#include <errno.h>
#include <fcntl.h>
#include <rte_alarm.h>
#include <rte_ethdev.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "lib/port/internal.h"

static const uint64_t RETRY_NS = 250000000;
static const uint64_t PATIENCE_NS = 5000000000; /* a handshake takes some milliseconds */

/* ---- the driver's connect() ---- */

static __thread struct port *trying;

uint64_t port_inode(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? st.st_ino : 0;
}

static int connect_now(int fd, const struct sockaddr *to, socklen_t len)
{
	const int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || connect(fd, to, len) < 0)
		return -1;
	if (!memif_hear_begin(fd)) {
		errno = ENOMEM;
		return -1;
	}
	if (trying != NULL) {
		trying->again.fd = fd;
		trying->again.inode = port_inode(fd);
	}
	return 0;
}

int port_again_hook(char err[PORT_ERR_LEN])
{
	const int ret = port_hook("librte_net_memif", "connect", (void *)connect_now);

	return ret < 0 ? port_fail(err, -ret,
				 "the memif driver would wait for who serves \"socket\": %s",
				 strerror(-ret))
		       : memif_hear_hook(err);
}

/* ---- an attempt ---- */

static int start(struct port *port)
{
	struct rte_eth_link link;
	int rc = 0;

	if (!port->again.gone && rte_eth_link_get_nowait(port->id, &link) == 0 && link.link_status)
		return 0; /* it has come meanwhile */
	port->again.inode = 0;
	if (port->config.zero_copy || port->again.gone)
		rc = port_copy_instead(port);
	else
		rte_eth_dev_stop(port->id);
	return rc < 0 ? rc : rte_eth_dev_start(port->id);
}

static int attempt(struct port *port)
{
	int rc = -EBUSY;

	port_log_quote(true); /* that there is no server yet is what rc says */
	trying = port;
	if (port_bursts_wait())
		rc = start(port);
	trying = NULL;
	port_log_quote(false);
	atomic_store(&port->away, port->again.gone ? PORT_GONE : PORT_HERE);
	return rc;
}

static void attempt_alone(void *port)
{
	attempt(port);
}

/* The conversation that the last attempt has begun may yet come to its end: an attempt more would
 * end it, and on a crowded machine so would the one after that. */
static bool is_talking(const struct port *port, uint64_t now)
{
	return port->again.inode != 0 && now < port->again.patience_ns &&
	       port_inode(port->again.fd) == port->again.inode;
}

int port_first_start(struct port *port)
{
	int rc;

	port->again.inode = 0;
	port->again.patience_ns = port_now_ns() + PATIENCE_NS;
	trying = port;
	rc = rte_eth_dev_start(port->id);
	trying = NULL;
	return rc;
}

/* ---- by itself ---- */

static bool is_due(struct port *port, uint64_t now)
{
	if (port_link_up(port)) {
		port->again.times += port->again.tried;
		port->again.tried = false;
		port->again.next_ns = 0;
		return false;
	}
	/* So that whoever looks as often as this is called sees that the link was down. */
	if (port->again.next_ns == 0)
		port->again.next_ns = now + RETRY_NS;
	return now >= port->again.next_ns && !is_talking(port, now);
}

void port_tick(struct port *port, uint64_t now)
{
	const unsigned char away = atomic_load(&port->away);

	if (!port->shared_rings || !port->config.client || away == PORT_AWAY || !is_due(port, now))
		return;
	port->again.next_ns = now + RETRY_NS;
	port->again.patience_ns = now + PATIENCE_NS;
	port->again.tried = true;
	atomic_store(&port->away, PORT_AWAY);
	if (rte_eal_alarm_set(1, attempt_alone, port) != 0)
		atomic_store(&port->away, away);
}

void port_tick_end(struct port *port)
{
	rte_eal_alarm_cancel(attempt_alone, port);
}

/* ---- when it is told to ---- */

struct call {
	void (*fn)(void *arg);
	void *arg;
	sem_t done;
};

static void answer(void *arg)
{
	struct call *call = arg;

	call->fn(call->arg);
	sem_post(&call->done);
}

void port_on_interrupt_thread(void (*fn)(void *arg), void *arg)
{
	struct call call = {.fn = fn, .arg = arg};

	sem_init(&call.done, 0, 0);
	if (rte_eal_alarm_set(1, answer, &call) != 0)
		answer(&call);
	while (sem_wait(&call.done) != 0)
		;
	sem_destroy(&call.done);
}

struct one {
	struct port *port;
	int rc;
};

static void attempt_one(void *arg)
{
	struct one *one = arg;

	one->rc = attempt(one->port);
}

int port_reconnect(struct port *port)
{
	const uint64_t now = port_now_ns();
	struct one one = {.port = port};

	if (!port->config.client || port_link_up(port))
		return 0;
	if (port->config.zero_copy)
		return -EOPNOTSUPP;
	if (atomic_load(&port->away) == PORT_AWAY || is_talking(port, now))
		return -EINPROGRESS;
	port->again.patience_ns = now + PATIENCE_NS;
	if (port->shared_rings) {
		atomic_store(&port->away, PORT_AWAY);
		port_on_interrupt_thread(attempt_one, &one);
		return one.rc;
	}
	rte_eth_dev_stop(port->id);
	return rte_eth_dev_start(port->id);
}
