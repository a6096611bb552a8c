/* SPDX-License-Identifier: BSD-3-Clause */
/* The lock is held by whoever touches doors or connections. The thread waits without it and asks
 * for events with it, so that no event outlives what it is about. */
#include "lib/port/memif_door.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/port/claim.h"
#include "lib/port/memif_conn.h"

enum {
	MAX_CONNS = 32, /* that are not connected */
	MAX_IDS = 64,   /* of one socket */
	SHAKE_MS = 2000,
	STEP_MS = 2,   /* until the driver is asked again */
	REST_MS = 100, /* after accept() failed: no file descriptors, say */
	SHUT_MS = 1000,
	BACKLOG = 64,
	TURN = 64, /* events until others get the lock */
	DIR_LEN = 112,
};

struct memif_door {
	struct memif_door *next;
	char path[108];
	int dir, listener;   /* listener -1: nobody is admitted yet */
	uint64_t rest_until; /* of a listener that is not listened to; 0: it is */
	unsigned n_ids;
	struct {
		uint16_t id;
		bool admitted;
	} ids[MAX_IDS];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static struct memif_door *doors;
static struct memif_conn *conns; /* newest first */
static unsigned n_unfinished;    /* conns without a driver's side */
static int events = -1, no_interrupt = -1;
static atomic_uint_fast64_t refused[MEMIF_N_REFUSALS];

uint64_t port_memif_refused(unsigned i, const char **name, const char **text)
{
	if (i + 1 >= MEMIF_N_REFUSALS) {
		*name = NULL;
		return 0;
	}
	*name = memif_refusal_name((enum memif_refusal)(i + 1));
	*text = memif_refusal_text((enum memif_refusal)(i + 1));
	return atomic_load_explicit(&refused[i + 1], memory_order_relaxed);
}

/* ---- sockets and events ---- */

static uint64_t in_ms(unsigned ms)
{
	return port_now_ns() + (uint64_t)ms * 1000000;
}

static int watch(int fd, void *who)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = who};

	return epoll_ctl(events, EPOLL_CTL_ADD, fd, &e);
}

/* Not by close() alone: a child of this process may have the socket too. */
static void unwatch_and_close(int *fd)
{
	if (*fd < 0)
		return;
	epoll_ctl(events, EPOLL_CTL_DEL, *fd, NULL);
	close(*fd);
	*fd = -1;
}

static int address(struct sockaddr_un *at, const char *path)
{
	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(at->sun_path, sizeof(at->sun_path), "%s", path);
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static void inner_path(const struct memif_door *d, char inner[MEMIF_INNER_LEN])
{
	/* Short whatever the length of PATH, and of use to this process alone. */
	snprintf(inner, MEMIF_INNER_LEN, "/proc/self/fd/%d/driver", d->dir);
}

/* ---- the end of a connection ---- */

static bool is_unfinished(const struct memif_conn *c)
{
	return c->state == CONN_SHAKE || c->state == CONN_WAIT;
}

static void enter(struct memif_conn *c, enum memif_conn_state state)
{
	n_unfinished -= is_unfinished(c);
	c->state = state;
	n_unfinished += is_unfinished(c);
}

static void conn_free(struct memif_conn *c)
{
	struct memif_conn **at = &conns;

	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	n_unfinished -= is_unfinished(c);
	unwatch_and_close(&c->outer);
	unwatch_and_close(&c->inner);
	memif_conn_drop_regions(c);
	free(c);
}

/* The client is done with. What the driver has of it is taken from the driver: by the end of file,
 * after which it closes too. But not in the middle of what it is told: before its HELLO it panics,
 * and before CONNECT it keeps the regions' file descriptors. */
static void leave(struct memif_conn *c)
{
	unwatch_and_close(&c->outer);
	if (c->inner < 0) {
		conn_free(c);
	} else if (c->state == CONN_OPEN) {
		shutdown(c->inner, SHUT_WR);
		enter(c, CONN_LEAVE);
	}
}

static void refuse(struct memif_conn *c, enum memif_refusal why)
{
	struct memif_msg bye;

	if (c->outer >= 0) {
		atomic_fetch_add_explicit(&refused[why], 1, memory_order_relaxed);
		memif_goodbye(&bye, memif_refusal_text(why));
		memif_msg_send(c->outer, &bye, -1);
	}
	leave(c);
}

/* ---- from the last word of the client to that of the driver ---- */

static bool is_admitted(const struct memif_door *d, uint32_t id)
{
	for (unsigned i = 0; i < d->n_ids; i++)
		if (d->ids[i].id == id)
			return d->ids[i].admitted;
	return false;
}

/* The one that has this client's port, or is about to. */
static struct memif_conn *holder(const struct memif_conn *of)
{
	struct memif_conn *c = conns;

	while (c != NULL && (c == of || c->door != of->door || c->state < CONN_HELLO ||
				    c->shake.init.init.id != of->shake.init.init.id))
		c = c->next;
	return c;
}

/* Is the port somebody else's who is still there? One whose end has not been noticed is sent off.
 */
static bool is_busy(const struct memif_conn *c)
{
	struct memif_conn *other = holder(c);
	char peek;

	if (other == NULL || other->outer < 0)
		return false;
	if (recv(other->outer, &peek, 1, MSG_PEEK | MSG_DONTWAIT) != 0)
		return true;
	leave(other);
	return false;
}

static void go_in(struct memif_conn *c)
{
	char inner[MEMIF_INNER_LEN];
	struct sockaddr_un at;

	if (!is_admitted(c->door, c->shake.init.init.id)) {
		refuse(c, MEMIF_NO_ID);
		return;
	}
	if (is_busy(c)) {
		refuse(c, MEMIF_NO_BUSY);
		return;
	}
	if (holder(c) != NULL)
		return;
	inner_path(c->door, inner);
	c->inner = address(&at, inner);
	if (c->inner < 0) {
		refuse(c, MEMIF_NO_MEMORY);
		return;
	}
	if (watch(c->inner, c) == 0 &&
		connect(c->inner, (const struct sockaddr *)&at, sizeof(at)) == 0) {
		enter(c, CONN_HELLO);
		return;
	}
	if (errno == EAGAIN) { /* its backlog is full */
		unwatch_and_close(&c->inner);
		return;
	}
	unwatch_and_close(&c->inner);
	refuse(c, MEMIF_NO_DRIVER);
}

static void repeat_next(struct memif_conn *c)
{
	const struct memif_msg *msg;
	int fd;

	/* If it takes it no more, its end follows. */
	if (memif_conn_next(c, no_interrupt, &msg, &fd))
		memif_msg_send(c->inner, msg, fd);
}

static void hear_driver(struct memif_conn *c)
{
	struct memif_files files;
	struct memif_msg msg;
	int fd, len = memif_msg_recv(c->inner, &msg, &fd, &files);

	if (len == -EAGAIN)
		return;
	if (fd >= 0)
		close(fd);
	if (len <= 0) {
		unwatch_and_close(&c->inner);
		if (c->state == CONN_HELLO || c->state == CONN_REPLAY)
			refuse(c, MEMIF_NO_DRIVER);
		else
			conn_free(c);
		return;
	}
	if (msg.type == MEMIF_HELLO && c->state == CONN_HELLO) {
		enter(c, CONN_REPLAY);
		repeat_next(c);
	} else if (msg.type == MEMIF_ACK && c->state == CONN_REPLAY) {
		repeat_next(c);
	} else if (msg.type == MEMIF_CONNECTED && c->state == CONN_REPLAY) {
		enter(c, CONN_OPEN);
		memif_conn_drop_regions(c);
		if (c->outer < 0)
			leave(c);
		else
			memif_msg_send(c->outer, &msg, -1);
	} else if (c->outer >= 0) { /* DISCONNECT; the end follows */
		memif_msg_send(c->outer, &msg, -1);
	}
}

/* ---- the client ---- */

static void hear_shake(struct memif_conn *c, const struct memif_msg *msg, int len, int fd,
	const struct memif_files *files)
{
	const struct memif_msg ack = {.type = MEMIF_ACK};
	enum memif_refusal why = memif_shake_take(&c->shake, msg, (size_t)len, files);

	if (fd >= 0 && why == MEMIF_FINE && msg->type == MEMIF_ADD_REGION)
		c->region_fd[c->shake.n_regions - 1] = fd;
	else if (fd >= 0)
		close(fd);
	if (why == MEMIF_FINE && !is_admitted(c->door, c->shake.init.init.id))
		why = MEMIF_NO_ID;
	if (why == MEMIF_FINE && msg->type == MEMIF_INIT && is_busy(c))
		why = MEMIF_NO_BUSY;
	if (why != MEMIF_FINE) {
		refuse(c, why);
	} else if (c->shake.complete) {
		enter(c, CONN_WAIT);
		go_in(c);
	} else if (memif_msg_send(c->outer, &ack, -1) < 0) {
		refuse(c, MEMIF_NO_GONE);
	}
}

static void hear_client(struct memif_conn *c)
{
	struct memif_files files;
	struct memif_msg msg;
	int fd, len = memif_msg_recv(c->outer, &msg, &fd, &files);
	bool over;

	if (len == -EAGAIN)
		return;
	over = len <= 0 || (len == (int)sizeof(msg) && msg.type == MEMIF_DISCONNECT);
	if (!over && c->state == CONN_SHAKE) {
		hear_shake(c, &msg, len, fd, &files);
		return;
	}
	if (fd >= 0)
		close(fd);
	if (!over)
		refuse(c, MEMIF_NO_TYPE);
	else if (c->state != CONN_OPEN)
		refuse(c, MEMIF_NO_GONE);
	else
		leave(c);
}

static void shed_oldest(void)
{
	struct memif_conn *oldest = NULL;

	for (struct memif_conn *c = conns; c != NULL; c = c->next)
		if (is_unfinished(c))
			oldest = c;
	if (oldest != NULL)
		refuse(oldest, MEMIF_NO_CROWD);
}

static void answer_door(struct memif_door *d)
{
	int fd = accept4(d->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct memif_conn *c;
	struct memif_msg hello;

	if (fd < 0) {
		if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)
			return;
		atomic_fetch_add_explicit(&refused[MEMIF_NO_MEMORY], 1, memory_order_relaxed);
		epoll_ctl(events, EPOLL_CTL_DEL, d->listener, NULL);
		d->rest_until = in_ms(REST_MS);
		return;
	}
	if (n_unfinished == MAX_CONNS)
		shed_oldest();
	c = calloc(1, sizeof(*c));
	if (c == NULL || watch(fd, c) < 0) {
		atomic_fetch_add_explicit(&refused[MEMIF_NO_MEMORY], 1, memory_order_relaxed);
		free(c);
		close(fd);
		return;
	}
	c->door = d;
	c->outer = fd;
	c->inner = -1;
	c->until = in_ms(SHAKE_MS);
	for (unsigned i = 0; i < MEMIF_REGIONS; i++)
		c->region_fd[i] = -1;
	c->next = conns;
	conns = c;
	n_unfinished++;
	memif_hello(&hello);
	if (memif_msg_send(fd, &hello, -1) < 0)
		refuse(c, MEMIF_NO_GONE);
}

/* ---- the thread ---- */

static void hear(void *who)
{
	struct memif_conn *c = conns;
	struct memif_door *d = doors;

	while (d != NULL && d != who)
		d = d->next;
	while (c != NULL && c != who)
		c = c->next;
	if (d != NULL)
		answer_door(d);
	else if (c == NULL)
		return;
	else if (c->outer >= 0 &&
		 poll(&(struct pollfd){.fd = c->outer, .events = POLLIN}, 1, 0) > 0)
		hear_client(c);
	else if (c->inner >= 0)
		hear_driver(c);
}

/* What time brings. Returns the milliseconds until the next, -1 for none. */
static int pass_time(uint64_t now)
{
	uint64_t next = UINT64_MAX, soon = now + STEP_MS * 1000000ULL;

	for (struct memif_conn *c = conns, *after; c != NULL; c = after) {
		after = c->next;
		if (c->outer >= 0 && c->state < CONN_OPEN && c->until <= now)
			refuse(c, MEMIF_NO_LATE);
		else if (c->outer >= 0 && c->state < CONN_OPEN && c->until < next)
			next = c->until;
	}
	for (struct memif_conn *c = conns, *after; c != NULL; c = after) {
		after = c->next;
		if (c->state != CONN_WAIT)
			continue;
		next = soon < next ? soon : next;
		go_in(c); /* frees nothing but c */
	}
	for (struct memif_door *d = doors; d != NULL; d = d->next) {
		if (d->rest_until != 0 && d->rest_until <= now) {
			d->rest_until = 0;
			watch(d->listener, d);
		}
		if (d->rest_until != 0 && d->rest_until < next)
			next = d->rest_until;
	}
	return next == UINT64_MAX ? -1 : (int)((next - now) / 1000000) + 1;
}

static void *serve(void *arg)
{
	struct pollfd p = {.fd = events, .events = POLLIN};
	struct epoll_event e;
	int timeout = -1;

	(void)arg;
	for (;;) {
		poll(&p, 1, timeout);
		pthread_mutex_lock(&lock);
		for (unsigned i = 0; i < TURN && epoll_wait(events, &e, 1, 0) == 1; i++)
			hear(e.data.ptr);
		timeout = pass_time(port_now_ns());
		pthread_cond_broadcast(&moved);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

/* Once per process; it waits, and costs nothing, when the last door is gone. */
static int start_thread(char err[PORT_ERR_LEN])
{
	sigset_t all, old;
	pthread_t thread;
	int rc;

	if (events >= 0)
		return 0;
	events = epoll_create1(EPOLL_CLOEXEC);
	no_interrupt = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = events < 0 || no_interrupt < 0 ? errno : pthread_create(&thread, NULL, serve, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc == 0) {
		pthread_setname_np(thread, "memif-door");
		pthread_detach(thread);
		return 0;
	}
	close(events);
	close(no_interrupt);
	events = -1;
	snprintf(err, PORT_ERR_LEN, "socket: no thread to serve it: %s", strerror(rc));
	return -rc;
}

/* ---- doors ---- */

static struct memif_door *find(const char *path)
{
	struct memif_door *d = doors;

	while (d != NULL && strcmp(d->path, path) != 0)
		d = d->next;
	return d;
}

static void dir_name(char name[DIR_LEN], const char *path)
{
	snprintf(name, DIR_LEN, "%.107s.d", path);
}

/* Nobody else's, whoever made it: what a killed process left is used again. */
static int open_dir(const char *path, char err[PORT_ERR_LEN])
{
	char name[DIR_LEN];
	struct stat st;
	int fd, error;

	dir_name(name, path);
	mkdir(name, 0700);
	fd = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	error = fd < 0 ? errno : 0;
	if (fd >= 0 && (fstat(fd, &st) != 0 || st.st_uid != geteuid() || fchmod(fd, 0700) != 0))
		error = EPERM;
	if (error == 0) {
		unlinkat(fd, "driver", 0);
		return fd;
	}
	if (fd >= 0)
		close(fd);
	snprintf(err, PORT_ERR_LEN, "socket: cannot have the directory %s: %s", name,
		strerror(error));
	return -error;
}

static int make_door(const char *path, struct memif_door **made, char err[PORT_ERR_LEN])
{
	struct memif_door *d = calloc(1, sizeof(*d));

	*made = d;
	if (d == NULL) {
		snprintf(err, PORT_ERR_LEN, "socket: no memory");
		return -ENOMEM;
	}
	d->listener = -1;
	snprintf(d->path, sizeof(d->path), "%s", path);
	d->dir = open_dir(path, err);
	if (d->dir < 0) {
		int rc = d->dir;

		free(d);
		return rc;
	}
	d->next = doors;
	doors = d;
	return 0;
}

static void destroy_door(struct memif_door *d)
{
	struct memif_door **at = &doors;
	char name[DIR_LEN];

	for (struct memif_conn *c = conns, *after; c != NULL; c = after) {
		after = c->next;
		if (c->door == d)
			conn_free(c);
	}
	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	if (d->listener >= 0)
		unlink(d->path);
	unwatch_and_close(&d->listener);
	unlinkat(d->dir, "driver", 0);
	close(d->dir);
	dir_name(name, d->path);
	rmdir(name);
	free(d);
}

static int add_id(struct memif_door *d, uint16_t id, char err[PORT_ERR_LEN])
{
	for (unsigned i = 0; i < d->n_ids; i++)
		if (d->ids[i].id == id) {
			snprintf(err, PORT_ERR_LEN,
				"id: %u is that of another port of %s: give each its own", id,
				d->path);
			return -EEXIST;
		}
	if (d->n_ids == MAX_IDS) {
		snprintf(err, PORT_ERR_LEN, "id: %s has %d ports already", d->path, MAX_IDS);
		return -ENOSPC;
	}
	d->ids[d->n_ids].id = id;
	d->ids[d->n_ids++].admitted = false;
	return 0;
}

int memif_door_open(
	const char *path, uint16_t id, char inner[MEMIF_INNER_LEN], char err[PORT_ERR_LEN])
{
	struct memif_door *d;
	int rc = port_socket_claim(path, err);

	if (rc < 0)
		return rc;
	pthread_mutex_lock(&lock);
	rc = start_thread(err);
	d = find(path);
	if (rc == 0 && d == NULL)
		rc = make_door(path, &d, err);
	if (rc == 0)
		rc = add_id(d, id, err);
	if (rc == 0)
		inner_path(d, inner);
	pthread_mutex_unlock(&lock);
	if (rc < 0)
		port_socket_release(path);
	return rc;
}

static int listen_at(struct memif_door *d)
{
	struct sockaddr_un at;
	int error;

	d->listener = address(&at, d->path);
	if (d->listener >= 0 && bind(d->listener, (const struct sockaddr *)&at, sizeof(at)) == 0 &&
		listen(d->listener, BACKLOG) == 0 && watch(d->listener, d) == 0)
		return 0;
	error = errno;
	if (d->listener >= 0)
		close(d->listener);
	d->listener = -1;
	return -error;
}

int memif_door_admit(const char *path, uint16_t id, char err[PORT_ERR_LEN])
{
	struct memif_door *d;
	int rc = 0;

	pthread_mutex_lock(&lock);
	d = find(path);
	for (unsigned i = 0; i < d->n_ids; i++)
		d->ids[i].admitted |= d->ids[i].id == id;
	if (d->listener < 0)
		rc = listen_at(d);
	pthread_mutex_unlock(&lock);
	if (rc < 0)
		snprintf(err, PORT_ERR_LEN, "socket: cannot listen at %s: %s", path, strerror(-rc));
	return rc;
}

static bool has_on_the_way(const struct memif_door *d, uint16_t id)
{
	for (const struct memif_conn *c = conns; c != NULL; c = c->next)
		if (c->door == d && c->shake.init.init.id == id &&
			(c->state == CONN_HELLO || c->state == CONN_REPLAY))
			return true;
	return false;
}

void memif_door_shut(const char *path, uint16_t id)
{
	uint64_t until = in_ms(SHUT_MS);
	struct memif_door *d;

	pthread_mutex_lock(&lock);
	d = find(path);
	for (unsigned i = 0; i < d->n_ids; i++)
		d->ids[i].admitted &= d->ids[i].id != id;
	while (has_on_the_way(d, id) && port_now_ns() < until) {
		struct timespec t;

		clock_gettime(CLOCK_REALTIME, &t);
		t.tv_sec++;
		pthread_cond_timedwait(&moved, &lock, &t);
	}
	pthread_mutex_unlock(&lock);
}

void memif_door_close(const char *path, uint16_t id)
{
	struct memif_door *d;

	pthread_mutex_lock(&lock);
	d = find(path);
	for (unsigned i = 0; i < d->n_ids; i++)
		if (d->ids[i].id == id)
			d->ids[i--] = d->ids[--d->n_ids];
	for (struct memif_conn *c = conns, *after; c != NULL; c = after) {
		after = c->next;
		if (c->door == d && c->state >= CONN_HELLO && c->shake.init.init.id == id)
			conn_free(c);
	}
	if (d->n_ids == 0)
		destroy_door(d);
	pthread_mutex_unlock(&lock);
	port_socket_release(path);
}
