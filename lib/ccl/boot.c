/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/ccl/boot_peer.h"

enum { RETRY_MS = 20, EXTRA_PEERS = 8 };

static int64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* ---- opening ---- */

static int start_listening(struct ccl_boot *b, char *err)
{
	struct stat st;
	int fd, rc;

	if (strncmp(b->address, "unix:", 5) == 0) {
		snprintf(b->path, sizeof(b->path), "%s", b->address + 5);
		/* What a killed process has left behind is removed, a living one is not. */
		if (lstat(b->path, &st) == 0 && S_ISSOCK(st.st_mode)) {
			if (boot_address(b->address, connect, &fd) == 0) {
				close(fd);
				b->path[0] = '\0';
				return boot_fail(err, -EADDRINUSE,
					"another rank 0 listens at %s already", b->address);
			}
			unlink(b->path);
		}
	}
	rc = boot_address(b->address, boot_bind, &b->listener);
	if (rc) {
		b->listener = -1;
		b->path[0] = '\0';
		return boot_fail(
			err, rc, "rank 0 cannot listen at %s: %s", b->address, strerror(-rc));
	}
	fcntl(b->listener, F_SETFL, O_NONBLOCK);
	return 0;
}

static void stop_listening(struct ccl_boot *b)
{
	if (b->listener >= 0)
		close(b->listener);
	b->listener = -1;
	if (b->path[0])
		unlink(b->path);
	b->path[0] = '\0';
}

static int connect_to_root(struct ccl_boot *b, char *err)
{
	const int64_t until = now_ms() + b->timeout_ms;
	int rc;

	for (;;) {
		rc = boot_address(b->address, connect, &b->peer[0].fd);
		if (rc == 0)
			break;
		b->peer[0].fd = -1;
		if ((rc != -ENOENT && rc != -ECONNREFUSED && rc != -EAGAIN) || now_ms() >= until)
			return boot_fail(err, rc,
				"rank %u cannot reach rank 0 at %s within %u ms: %s", b->rank,
				b->address, b->timeout_ms, strerror(-rc));
		poll(NULL, 0, RETRY_MS);
	}
	boot_socket(b->peer[0].fd);
	b->peer[0].rank = 0;
	return 0;
}

int ccl_boot_open(const char *address, unsigned rank, unsigned n_ranks, unsigned timeout_ms,
	struct ccl_boot **boot, char err[CCL_BOOT_ERR_LEN])
{
	struct ccl_boot *b = calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return boot_fail(err, -ENOMEM, "out of memory");
	b->listener = -1;
	b->rank = rank;
	b->n_ranks = n_ranks;
	b->timeout_ms = timeout_ms;
	b->n_peers = rank ? 1 : n_ranks - 1 + EXTRA_PEERS;
	b->peer = calloc(b->n_peers, sizeof(*b->peer));
	for (unsigned i = 0; b->peer && i < b->n_peers; i++)
		b->peer[i].fd = b->peer[i].rank = -1;
	if (!b->peer || strlen(address) >= sizeof(b->address)) {
		ccl_boot_close(b);
		return boot_fail(err, -EINVAL, "bootstrap address \"%.100s\" is too long", address);
	}
	snprintf(b->address, sizeof(b->address), "%s", address);
	rc = rank ? connect_to_root(b, err) : start_listening(b, err);
	if (rc) {
		ccl_boot_close(b);
		return rc;
	}
	*boot = b;
	return 0;
}

void ccl_boot_close(struct ccl_boot *b)
{
	if (!b)
		return;
	stop_listening(b);
	for (unsigned i = 0; b->peer && i < b->n_peers; i++)
		boot_peer_close(&b->peer[i]);
	free(b->peer);
	free(b);
}

/* ---- rank 0: gathering ---- */

static void accept_peers(struct ccl_boot *b)
{
	for (;;) {
		const int fd = accept4(b->listener, NULL, NULL, SOCK_CLOEXEC);
		unsigned i = 0;

		if (fd < 0)
			return;
		while (i < b->n_peers && b->peer[i].fd >= 0)
			i++;
		if (i == b->n_peers) {
			close(fd); /* strangers fill the table; a rank will try again */
			continue;
		}
		boot_socket(fd);
		b->peer[i].fd = fd;
	}
}

static void refuse(struct boot_peer *p, const char *why)
{
	json_t *object = json_pack("{s:s}", "error", why);

	if (object)
		boot_send(p, object);
	json_decref(object);
	boot_peer_close(p);
}

/* The first line of a connection says which rank it is. */
static bool introduce(struct ccl_boot *b, struct boot_peer *p, const json_t *object)
{
	const json_t *rank = json_object_get(object, "rank");
	const json_int_t r = json_integer_value(rank);
	char why[160];

	if (!json_is_integer(rank) || r < 1 || r >= (json_int_t)b->n_ranks)
		snprintf(why, sizeof(why), "rank 0 expects ranks 1 to %u here", b->n_ranks - 1);
	else if (boot_peer_of(b, (unsigned)r))
		snprintf(why, sizeof(why), "rank %u has come already: was it started twice?",
			(unsigned)r);
	else {
		p->rank = (int)r;
		return true;
	}
	refuse(p, why);
	return false;
}

/* One gathering. Errors do not end it: whoever still comes shall hear of them too. */
struct round {
	json_t **all; /* by rank: what it said, null if it can say nothing any more */
	unsigned missing;
	int rc; /* of the first error, with its text in err */
	char *err;
	struct ccl_boot *calls; /* the others, when one calls; NULL: nobody */
};

static const char *call_of(const json_t *object)
{
	return json_string_value(json_object_get(object, "call"));
}

static void call_all(struct ccl_boot *b, const char *why)
{
	json_t *object = json_pack("{s:s}", "call", why);
	char ignored[CCL_BOOT_ERR_LEN];

	ccl_boot_broadcast(b, object, ignored);
	json_decref(object);
}

static void spoken(struct round *g, unsigned rank, json_t *object)
{
	g->all[rank] = object;
	g->missing--;
	if (boot_error(object) && !g->rc)
		g->rc = boot_fail(g->err, -ECONNABORTED, "%s", boot_error(object));
	if (g->calls && call_of(object)) {
		call_all(g->calls, call_of(object));
		g->calls = NULL;
	}
}

/* why: an errno of boot_read. */
static void gone(struct round *g, unsigned rank, int why)
{
	g->all[rank] = json_null();
	g->missing--;
	if (!g->rc && why == -EMSGSIZE)
		g->rc = boot_fail(g->err, why, "rank %u sends a line of more than %d bytes", rank,
			CCL_BOOT_MAX_LINE);
	else if (!g->rc)
		g->rc = boot_fail(g->err, -ECONNABORTED, "rank %u has gone away", rank);
}

/* One connection that may have something to say. */
static void hear_peer(struct ccl_boot *b, struct boot_peer *p, struct round *g)
{
	json_t *object = NULL;
	int rc;

	if (p->fd < 0 || (p->rank >= 0 && g->all[p->rank]))
		return; /* what it says after it has spoken belongs to the next gathering */
	rc = boot_read(p, &object);
	if (rc < 0) {
		const int rank = p->rank;

		boot_peer_close(p);
		if (rank >= 0)
			gone(g, (unsigned)rank, rc);
	} else if (rc > 0 && (p->rank >= 0 || introduce(b, p, object))) {
		spoken(g, (unsigned)p->rank, object);
	} else if (rc > 0) {
		json_decref(object);
	}
}

static void name_missing(const struct ccl_boot *b, json_t *const *all, char *buf, size_t cap)
{
	size_t n = 0;

	for (unsigned r = 1; r < b->n_ranks && n + 16 < cap; r++)
		if (!all[r])
			n += (size_t)snprintf(buf + n, cap - n, "%s%u", n ? "," : "", r);
}

/* Everybody has come: who has connected and never said who it is, is none of them, and shall not be
 * one of them later. */
static void close_strangers(struct ccl_boot *b)
{
	for (unsigned i = 0; i < b->n_peers; i++)
		if (b->peer[i].rank < 0)
			boot_peer_close(&b->peer[i]);
}

/* Waits for something to read; a negative descriptor is ignored by poll. */
static void wait_peers(struct ccl_boot *b, struct pollfd *fds, json_t *const *all, int64_t ms)
{
	for (unsigned i = 0; i < b->n_peers; i++) {
		const struct boot_peer *p = &b->peer[i];
		const bool quiet = p->rank >= 0 && all[p->rank];

		fds[i] = (struct pollfd){.fd = quiet ? -1 : p->fd, .events = POLLIN};
	}
	fds[b->n_peers] = (struct pollfd){.fd = b->listener, .events = POLLIN};
	poll(fds, b->n_peers + 1, (int)ms);
	if (fds[b->n_peers].revents)
		accept_peers(b);
}

static int gather(struct ccl_boot *b, struct pollfd *fds, struct round *g)
{
	const int64_t until = now_ms() + b->timeout_ms;
	char who[200];

	for (unsigned r = 1; b->listener < 0 && r < b->n_ranks; r++)
		if (!boot_peer_of(b, r))
			gone(g, r, -ECONNABORTED);
	for (unsigned i = 0; i < b->n_peers; i++)
		hear_peer(b, &b->peer[i], g); /* a line may have been read already */
	while (g->missing) {
		const int64_t left = until - now_ms();

		if (left <= 0 && g->rc)
			return g->rc;
		if (left <= 0) {
			name_missing(b, g->all, who, sizeof(who));
			return boot_fail(g->err, -ETIMEDOUT, "waited %u ms at %s for rank%s %s",
				b->timeout_ms, b->address, g->missing > 1 ? "s" : "", who);
		}
		wait_peers(b, fds, g->all, left);
		for (unsigned i = 0; i < b->n_peers; i++)
			if (fds[i].revents)
				hear_peer(b, &b->peer[i], g);
	}
	stop_listening(b);
	close_strangers(b);
	return g->rc;
}

static int gather_all(
	struct ccl_boot *b, struct ccl_boot *calls, json_t **all, char err[CCL_BOOT_ERR_LEN])
{
	struct pollfd *fds = calloc(b->n_peers + 1, sizeof(*fds));
	struct round g;
	int rc;

	for (unsigned r = 1; r < b->n_ranks; r++)
		all[r] = NULL;
	if (!fds)
		return boot_fail(err, -ENOMEM, "out of memory");
	g = (struct round){.all = all, .missing = b->n_ranks - 1, .err = err, .calls = calls};
	rc = gather(b, fds, &g);
	free(fds);
	for (unsigned r = 1; rc && r < b->n_ranks; r++) {
		json_decref(all[r]);
		all[r] = NULL;
	}
	return rc;
}

int ccl_boot_gather(struct ccl_boot *b, json_t **all, char err[CCL_BOOT_ERR_LEN])
{
	return gather_all(b, NULL, all, err);
}

int ccl_boot_gather_called(
	struct ccl_boot *b, const char *why, json_t **all, char err[CCL_BOOT_ERR_LEN])
{
	if (why)
		call_all(b, why);
	return gather_all(b, why ? NULL : b, all, err);
}

/* ---- the other ranks ---- */

int ccl_boot_tell(struct ccl_boot *b, const json_t *object, char err[CCL_BOOT_ERR_LEN])
{
	json_t *said = json_copy((json_t *)object), *last;
	size_t len = 0;
	char *line = NULL, who[32];
	int rc = -ENOMEM;

	if (said && json_object_set_new(said, "rank", json_integer((json_int_t)b->rank)) == 0)
		line = boot_line(said, &len);
	if (line)
		rc = boot_send_line(&b->peer[0], line, len);
	free(line);
	json_decref(said);
	if (rc == 0)
		return 0;
	snprintf(who, sizeof(who), "rank %u's", b->rank);
	if (rc == -EMSGSIZE)
		return boot_too_long(err, who, len);
	/* Rank 0 may have said why before it left. */
	if (rc == -ECONNABORTED && ccl_boot_hear(b, &last, err))
		return rc;
	json_decref(rc == -ECONNABORTED ? last : NULL);
	return boot_fail(err, rc, "rank %u cannot talk to rank 0 at %s", b->rank, b->address);
}

int ccl_boot_hear(struct ccl_boot *b, json_t **object, char err[CCL_BOOT_ERR_LEN])
{
	/* Rank 0 may have begun to wait for the others just now, and then has the switches to ask.
	 */
	const int64_t until = now_ms() + 2 * (int64_t)b->timeout_ms + 1000;
	struct boot_peer *p = &b->peer[0];

	for (;;) {
		struct pollfd fd = {.fd = p->fd, .events = POLLIN};
		const int64_t left = until - now_ms();
		const int rc = p->fd < 0 ? -ECONNABORTED : boot_read(p, object);

		if (rc == -EMSGSIZE)
			return boot_fail(err, rc, "rank 0 sends a line of more than %d bytes at %s",
				CCL_BOOT_MAX_LINE, b->address);
		if (rc < 0)
			return boot_fail(
				err, rc, "rank 0 has closed the connection at %s", b->address);
		if (rc > 0 && boot_error(*object)) {
			boot_fail(err, 0, "%s", boot_error(*object));
			json_decref(*object);
			*object = NULL;
			return -ECONNABORTED;
		}
		if (rc > 0)
			return 0;
		if (left <= 0)
			return boot_fail(err, -ETIMEDOUT,
				"rank 0 did not answer within %u ms at %s",
				2 * b->timeout_ms + 1000, b->address);
		poll(&fd, 1, (int)left);
	}
}

int ccl_boot_hear_called(struct ccl_boot *b, json_t **object, char err[CCL_BOOT_ERR_LEN])
{
	int rc;

	while ((rc = ccl_boot_hear(b, object, err)) == 0 && call_of(*object)) {
		json_decref(*object);
		*object = NULL;
	}
	return rc;
}

int ccl_boot_barrier(struct ccl_boot *b, char err[CCL_BOOT_ERR_LEN])
{
	json_t *empty = json_object(), *answer = NULL, **all;
	int rc;

	if (b->rank) {
		rc = ccl_boot_tell(b, empty, err);
		if (rc == 0)
			rc = ccl_boot_hear(b, &answer, err);
		json_decref(answer);
		json_decref(empty);
		return rc;
	}
	all = calloc(b->n_ranks, sizeof(json_t *));
	rc = all ? ccl_boot_gather(b, all, err) : boot_fail(err, -ENOMEM, "out of memory");
	if (rc)
		ccl_boot_abort(b, err);
	else
		rc = ccl_boot_broadcast(b, empty, err);
	for (unsigned r = 1; all && r < b->n_ranks; r++)
		json_decref(all[r]);
	free(all);
	json_decref(empty);
	return rc;
}

/* Rank 0's list of all to everybody. */
static int exchange_all(struct ccl_boot *b, json_t *own, json_t **list, char *err)
{
	json_t **all = calloc(b->n_ranks, sizeof(json_t *)), *answer;
	int rc = all ? ccl_boot_gather(b, all, err) : boot_fail(err, -ENOMEM, "out of memory");

	*list = json_array();
	json_array_append(*list, own);
	for (unsigned r = 1; all && r < b->n_ranks; r++)
		if (all[r])
			json_array_append_new(*list, all[r]);
	free(all);
	if (rc)
		return rc;
	answer = json_pack("{s:O}", "all", *list);
	rc = ccl_boot_broadcast(b, answer, err);
	json_decref(answer);
	return rc;
}

int ccl_boot_exchange(struct ccl_boot *b, json_t *own, json_t **all, char err[CCL_BOOT_ERR_LEN])
{
	json_t *answer = NULL;
	int rc;

	*all = NULL;
	if (b->rank == 0) {
		rc = exchange_all(b, own, all, err);
	} else {
		rc = ccl_boot_tell(b, own, err);
		if (rc == 0)
			rc = ccl_boot_hear(b, &answer, err);
		*all = json_incref(json_object_get(answer, "all"));
		json_decref(answer);
	}
	json_decref(own);
	return rc;
}

static int watch_peer(struct boot_peer *p, char *err)
{
	json_t *object;
	int rc;

	if (p->fd < 0 || p->rank < 0)
		return 0;
	rc = boot_peek(p, &object);
	if (rc < 0)
		return boot_fail(err, -ECONNABORTED, "rank %d has gone away", p->rank);
	if (rc == 0)
		return 0;
	rc = boot_error(object) ? boot_fail(err, -ECONNABORTED, "%s", boot_error(object))
	     : call_of(object)  ? boot_fail(err, -ESTALE, "%s", call_of(object))
				: 0;
	json_decref(object);
	return rc;
}

int ccl_boot_watch(struct ccl_boot *b, char err[CCL_BOOT_ERR_LEN])
{
	for (unsigned i = 0; i < b->n_peers; i++) {
		const int rc = watch_peer(&b->peer[i], err);

		if (rc)
			return rc;
	}
	return 0;
}

void ccl_boot_gone(struct ccl_boot *b, char *ranks, size_t cap)
{
	const unsigned first = b->rank ? 0 : 1, end = b->rank ? 1 : b->n_ranks;
	size_t n = 0;

	ranks[0] = '\0';
	for (unsigned r = first; r < end && n + 16 < cap; r++) {
		const struct boot_peer *p = boot_peer_of(b, r);
		char byte;

		if (p && recv(p->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0)
			continue; /* there, with or without something to say */
		n += (size_t)snprintf(ranks + n, cap - n, "%s%u", n ? "," : "", r);
	}
}
