/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections made and closed. Nothing here waits: NCCL calls again until a connection is open. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/ccl/rc.h"
#include "lib/nccl/net.h"

/* From the first word to the last: partners that are both called meet in a moment. */
static const uint64_t SET_UP_NS = 30000000000ull;
/* A partner has said that it is one after so long, if others want its place. */
static const uint64_t SPEAK_NS = 2000000000;

uint64_t np_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- verbs objects ---- */

static int no_qp(const struct np_conn *c, int err)
{
	np_warn(0, "a queue pair on %s: %s", c->port->name, strerror(err));
	return err;
}

/* 0, or an errno, and it is logged. */
static int make_qp(struct np_conn *c)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = NP_ROOM,
			.max_recv_wr = NP_ROOM,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	int rc;

	errno = 0;
	c->context = np_open(c->port);
	c->pd = c->context ? ibv_alloc_pd(c->context) : NULL;
	c->cq = c->pd ? ibv_create_cq(c->context, 2 * NP_ROOM, NULL, NULL, 0) : NULL;
	init.send_cq = init.recv_cq = c->cq;
	c->qp = c->cq ? ibv_create_qp(c->pd, &init) : NULL;
	if (!c->qp)
		return no_qp(c, errno ? errno : ENODEV);
	c->own.qpn = c->qp->qp_num;
	rc = ccl_rc_init(c->qp, c->port->port);
	for (unsigned i = 0; c->sends && i < NP_ROOM && !rc; i++)
		rc = np_await(c);
	return rc ? no_qp(c, rc) : 0;
}

static int no_way(const struct np_conn *c, int err)
{
	struct wire_ip ip;
	char text[WIRE_IP_STRLEN];

	memcpy(ip.b, c->peer.ip, sizeof(ip.b));
	wire_ip_format(&ip, text, sizeof(text));
	np_warn(0, "%s: a queue pair to %s: %s", c->port->name, text, strerror(err));
	return err;
}

/* Likewise. */
static int bring_up(struct np_conn *c)
{
	struct ccl_rc_peer peer = {.qpn = c->peer.qpn,
		.port = c->port->port,
		.gid_index = c->port->gid_index,
		.mtu = c->peer.mtu < c->own.mtu ? c->peer.mtu : c->own.mtu};
	int rc;

	memcpy(peer.ip.b, c->peer.ip, sizeof(peer.ip.b));
	rc = ccl_rc_connect(c->qp, &peer);
	return rc ? no_way(c, rc) : 0;
}

static void free_conn(struct np_conn *c)
{
	if (c->qp)
		ibv_destroy_qp(c->qp);
	if (c->cq)
		ibv_destroy_cq(c->cq);
	if (c->pd)
		ibv_dealloc_pd(c->pd);
	if (c->context)
		np_let_go(c->port);
	if (c->fd >= 0)
		close(c->fd);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* Takes the socket. NULL: it is logged. */
static struct np_conn *new_conn(const struct np_port *port, int fd, uint64_t random, bool sends)
{
	struct np_conn *c = calloc(1, sizeof(*c));
	struct wire_ip ip;

	if (!c) {
		close(fd);
		np_warn(0, "out of memory");
		return NULL;
	}
	pthread_mutex_init(&c->lock, NULL);
	c->port = port;
	c->fd = fd;
	c->sends = sends;
	c->since = np_clock();
	c->stage = sends ? NP_CONNECTING : NP_HELLO;
	wire_ip_parse(port->ip[0], &ip);
	c->own = (struct np_hello){.random = random, .mtu = port->mtu};
	memcpy(c->own.ip, ip.b, sizeof(ip.b));
	if (!sends || make_qp(c) == 0)
		return c;
	free_conn(c);
	return NULL;
}

/* ---- words ---- */

/* 1: all of it, 0: not yet, or -errno. */
static int tell(struct np_conn *c, const void *what, size_t len)
{
	ssize_t n;

	if (c->told == len)
		return 1;
	n = send(c->fd, (const char *)what + c->told, len - c->told, MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	c->told += (size_t)n;
	return c->told == len;
}

/* Likewise. */
static int hear(struct np_conn *c, void *what, size_t len)
{
	ssize_t n;

	if (c->heard == len)
		return 1;
	n = recv(c->fd, (char *)what + c->heard, len - c->heard, 0);
	if (n == 0)
		return -ECONNRESET;
	if (n < 0)
		return errno == EAGAIN ? 0 : -errno;
	c->heard += (size_t)n;
	return c->heard == len;
}

static int next_stage(struct np_conn *c)
{
	c->told = c->heard = 0;
	c->stage++;
	return 0;
}

static int connected(struct np_conn *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int err = 0;

	if (poll(&p, 1, 0) <= 0)
		return 0;
	getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len);
	return err ? -err : next_stage(c);
}

static bool is_partner(const struct np_conn *c)
{
	const uint32_t mtu = c->peer.mtu;

	return c->peer.random == c->own.random && mtu >= 256 && mtu <= 4096 && !(mtu & (mtu - 1));
}

/* It is the partner, and this end cannot: another caller is not to be waited for. */
static int own_fault(struct np_conn *c, int rc)
{
	c->failed = NCCL_SYSTEM_ERROR;
	return -rc;
}

/* Who calls knows the handle's number and speaks first; who is called has a queue pair and a word
 * for none that does not. */
static int greet(struct np_conn *c)
{
	int rc = c->sends ? tell(c, &c->own, sizeof(c->own)) : 1;

	if (rc > 0)
		rc = hear(c, &c->peer, sizeof(c->peer));
	if (rc <= 0)
		return rc;
	if (!is_partner(c))
		return -EPROTO;
	if (!c->qp && (rc = make_qp(c)))
		return own_fault(c, rc);
	rc = c->sends ? 1 : tell(c, &c->own, sizeof(c->own));
	if (rc <= 0)
		return rc;
	rc = bring_up(c);
	return rc ? own_fault(c, rc) : next_stage(c);
}

/* A partner that has gone without a word is noticed. */
static void keep_alive(int fd)
{
	const int on = 1, idle = 10, interval = 5, probes = 3;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

/* Both have brought up their ends. */
static int agree(struct np_conn *c)
{
	char ready = 1;
	int rc = tell(c, &ready, 1);

	if (rc > 0)
		rc = hear(c, &ready, 1);
	if (rc <= 0)
		return rc;
	keep_alive(c->fd);
	return next_stage(c);
}

/* 1: open, 0: not yet, or -errno. */
static int go_on(struct np_conn *c)
{
	int rc = 0;

	if (c->stage == NP_CONNECTING)
		rc = connected(c);
	if (rc == 0 && c->stage == NP_HELLO)
		rc = greet(c);
	if (rc == 0 && c->stage == NP_READY)
		rc = agree(c);
	if (rc == 0 && c->stage != NP_OPEN && np_clock() - c->since > SET_UP_NS)
		rc = -ETIMEDOUT;
	return rc ? rc : c->stage == NP_OPEN;
}

/* ---- NCCL's calls ---- */

/* Not every caller need be the partner: one that does not say that it is has its place until
 * another calls: fewer than CALLERS in SPEAK_NS do not keep the partner out. It costs a descriptor,
 * no queue pair. */
enum { CALLERS = 128 };

struct listener {
	const struct np_port *port;
	int fd;
	uint64_t random;
	struct np_conn *caller[CALLERS]; /* not yet open */
};

nccl_rc np_listen(int dev, void *handle, void **listener)
{
	const struct np_port *port = np_port(dev);
	struct listener *l;
	struct np_handle h;
	int fd;

	*listener = NULL;
	if (!port)
		return NCCL_INTERNAL_ERROR;
	fd = np_bind(&h, NP_NET);
	if (fd < 0)
		return NCCL_SYSTEM_ERROR;
	l = malloc(sizeof(*l));
	if (!l || listen(fd, SOMAXCONN)) {
		np_warn(0, "listening at %s: %s", h.host, strerror(errno));
		free(l);
		close(fd);
		return NCCL_SYSTEM_ERROR;
	}
	*l = (struct listener){.port = port, .fd = fd, .random = h.random};
	memcpy(handle, &h, sizeof(h));
	*listener = l;
	return NCCL_OK;
}

nccl_rc np_close_listen(void *listener)
{
	struct listener *l = listener;

	for (unsigned i = 0; i < CALLERS; i++)
		if (l->caller[i])
			free_conn(l->caller[i]);
	close(l->fd);
	free(l);
	return NCCL_OK;
}

static int call(const struct np_handle *h)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
	struct addrinfo *list;
	char port[8];
	int fd;

	snprintf(port, sizeof(port), "%u", h->port);
	if (getaddrinfo(h->host, port, &hints, &list))
		return -1;
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, list->ai_addr, list->ai_addrlen) && errno != EINPROGRESS) {
		close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	return fd;
}

static struct np_conn *begin(int dev, const struct np_handle *h)
{
	const struct np_port *port = np_port(dev);
	int fd;

	if (!port || !np_is_handle(h, NP_NET))
		return NULL;
	fd = call(h);
	if (fd >= 0)
		return new_conn(port, fd, h->random, true);
	np_warn(0, "a connection to %s:%u: %s", h->host, h->port, strerror(errno));
	return NULL;
}

nccl_rc np_connect(int dev, void *handle, void **conn, void **gpu)
{
	struct np_handle *h = handle;
	struct np_conn *c = h->partner ? h->partner : begin(dev, h);
	int rc;

	(void)gpu;
	*conn = NULL;
	h->partner = c;
	if (!c)
		return NCCL_SYSTEM_ERROR;
	rc = go_on(c);
	if (rc == 0)
		return NCCL_OK;
	h->partner = NULL;
	if (rc > 0) {
		*conn = c;
		return NCCL_OK;
	}
	free_conn(c);
	return np_warn(NCCL_SYSTEM_ERROR, "%s with %s:%u: %s", np_port(dev)->name, h->host, h->port,
		strerror(-rc));
}

static void dismiss(const struct listener *l, struct np_conn **place, const char *why)
{
	np_info("%s: a caller is not taken: %s", l->port->name, why);
	free_conn(*place);
	*place = NULL;
}

/* For the next caller: a free one, or that of one that owes its word. NULL: there is none yet. */
static struct np_conn **find_place(struct listener *l)
{
	struct np_conn **oldest = NULL;

	for (unsigned i = 0; i < CALLERS; i++) {
		struct np_conn **place = &l->caller[i];

		if (!*place)
			return place;
		if (!(*place)->qp && (!oldest || (*place)->since < (*oldest)->since))
			oldest = place;
	}
	return oldest && np_clock() - (*oldest)->since > SPEAK_NS ? oldest : NULL;
}

/* The next one, if any calls; false: it cannot be taken, and it is logged. */
static bool take_caller(struct listener *l)
{
	struct np_conn **place = find_place(l);
	const int fd = place ? accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;

	if (!place || (fd < 0 && (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)))
		return true;
	if (fd < 0) {
		np_warn(0, "%s: a caller: %s", l->port->name, strerror(errno));
		return false;
	}
	if (*place)
		dismiss(l, place, "it says nothing, and another calls");
	return (*place = new_conn(l->port, fd, l->random, false));
}

/* 1: it is open. 0: not yet, or it is none of ours, or has gone, and so is not the one that is
 * waited for. -1: the partner, but this end has no queue pair or no way for it. */
static int hear_caller(const struct listener *l, struct np_conn **place)
{
	const int rc = go_on(*place);

	if (rc >= 0)
		return rc;
	if ((*place)->failed) { /* and it is logged */
		free_conn(*place);
		*place = NULL;
		return -1;
	}
	dismiss(l, place, strerror(-rc));
	return 0;
}

nccl_rc np_accept(void *listener, void **conn, void **gpu)
{
	struct listener *l = listener;
	int rc = 0;

	(void)gpu;
	*conn = NULL;
	for (unsigned i = 0; i < CALLERS && rc == 0; i++) {
		struct np_conn **place = &l->caller[i];

		rc = *place ? hear_caller(l, place) : 0;
		if (rc > 0) {
			*conn = *place;
			*place = NULL;
		}
	}
	return rc < 0 || (rc == 0 && !take_caller(l)) ? NCCL_SYSTEM_ERROR : NCCL_OK;
}

nccl_rc np_close(void *conn)
{
	free_conn(conn);
	return NCCL_OK;
}
