/* SPDX-License-Identifier: BSD-3-Clause */
/* The conversations at the doors, step by step: with a client until it has said all, then with the
 * driver in its place, then between the two. */
#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/port/memif_door_priv.h"

enum {
	MAX_CONNS = 32, /* that are not connected */
	SHAKE_MS = 2000,
	STEP_MS = 2, /* until the driver is asked again */
};

static struct memif_conn *conns; /* newest first */
static unsigned n_unfinished;    /* conns without a driver's side */
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

void memif_talk_count(enum memif_refusal why)
{
	atomic_fetch_add_explicit(&refused[why], 1, memory_order_relaxed);
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
	memif_unwatch_and_close(&c->outer);
	memif_unwatch_and_close(&c->inner);
	memif_conn_drop_regions(c);
	free(c);
}

/* The client is done with. What the driver has of it is taken from the driver: by the end of file,
 * after which it closes too. But not in the middle of what it is told: before its HELLO it panics,
 * and before CONNECT it keeps the regions' file descriptors. */
static void leave(struct memif_conn *c)
{
	memif_unwatch_and_close(&c->outer);
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
		memif_talk_count(why);
		memif_goodbye(&bye, memif_refusal_text(why));
		memif_msg_send(c->outer, &bye, -1);
	}
	leave(c);
}

/* ---- from the last word of the client to that of the driver ---- */

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

	if (!memif_door_has_admitted(c->door, c->shake.init.init.id)) {
		refuse(c, MEMIF_NO_ID);
		return;
	}
	if (is_busy(c)) {
		refuse(c, MEMIF_NO_BUSY);
		return;
	}
	if (holder(c) != NULL)
		return;
	memif_door_inner(c->door, inner);
	c->inner = memif_address(&at, inner);
	if (c->inner < 0) {
		refuse(c, MEMIF_NO_MEMORY);
		return;
	}
	if (memif_watch(c->inner, c) == 0 &&
		connect(c->inner, (const struct sockaddr *)&at, sizeof(at)) == 0) {
		enter(c, CONN_HELLO);
		return;
	}
	if (errno == EAGAIN) { /* its backlog is full */
		memif_unwatch_and_close(&c->inner);
		return;
	}
	memif_unwatch_and_close(&c->inner);
	refuse(c, MEMIF_NO_DRIVER);
}

static void repeat_next(struct memif_conn *c)
{
	const struct memif_msg *msg;
	int fd;

	/* If it takes it no more, its end follows. */
	if (memif_conn_next(c, memif_no_interrupt(), &msg, &fd))
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
		memif_unwatch_and_close(&c->inner);
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
	if (why == MEMIF_FINE && !memif_door_has_admitted(c->door, c->shake.init.init.id))
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

void memif_talk_begin(struct memif_door *d, int fd)
{
	struct memif_conn *c;
	struct memif_msg hello;

	if (n_unfinished == MAX_CONNS)
		shed_oldest();
	c = calloc(1, sizeof(*c));
	if (c == NULL || memif_watch(fd, c) < 0) {
		memif_talk_count(MEMIF_NO_MEMORY);
		free(c);
		close(fd);
		return;
	}
	c->door = d;
	c->outer = fd;
	c->inner = -1;
	c->until = memif_in_ms(SHAKE_MS);
	for (unsigned i = 0; i < MEMIF_REGIONS; i++)
		c->region_fd[i] = -1;
	c->next = conns;
	conns = c;
	n_unfinished++;
	memif_hello(&hello);
	if (memif_msg_send(fd, &hello, -1) < 0)
		refuse(c, MEMIF_NO_GONE);
}

/* ---- what the thread brings ---- */

bool memif_talk_hear(const void *who)
{
	struct memif_conn *c = conns;

	while (c != NULL && c != who)
		c = c->next;
	if (c == NULL)
		return false;
	if (c->outer >= 0 && poll(&(struct pollfd){.fd = c->outer, .events = POLLIN}, 1, 0) > 0)
		hear_client(c);
	else if (c->inner >= 0)
		hear_driver(c);
	return true;
}

uint64_t memif_talk_pass_time(uint64_t now)
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
	return next;
}

/* ---- what becomes of a door ---- */

bool memif_talk_on_the_way(const struct memif_door *d, uint16_t id)
{
	for (const struct memif_conn *c = conns; c != NULL; c = c->next)
		if (c->door == d && c->shake.init.init.id == id &&
			(c->state == CONN_HELLO || c->state == CONN_REPLAY))
			return true;
	return false;
}

void memif_talk_end_port(const struct memif_door *d, uint16_t id)
{
	for (struct memif_conn *c = conns, *after; c != NULL; c = after) {
		after = c->next;
		if (c->door == d && c->state >= CONN_HELLO && c->shake.init.init.id == id)
			conn_free(c);
	}
}

void memif_talk_end_all(const struct memif_door *d)
{
	for (struct memif_conn *c = conns, *after; c != NULL; c = after) {
		after = c->next;
		if (c->door == d)
			conn_free(c);
	}
}
