/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of the doors: the directory that the driver listens in, the public socket, who is
 * admitted there. */
#include "lib/port/memif_door.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/port/claim.h"
#include "lib/port/memif_door_priv.h"

enum {
	MAX_IDS = 64,  /* of one socket */
	REST_MS = 100, /* after accept() failed: no file descriptors, say */
	SHUT_MS = 1000,
	BACKLOG = 64,
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

static struct memif_door *doors;

/* ---- for the conversations and the thread ---- */

void memif_door_inner(const struct memif_door *d, char inner[MEMIF_INNER_LEN])
{
	/* Short whatever the length of PATH, and of use to this process alone. */
	snprintf(inner, MEMIF_INNER_LEN, "/proc/self/fd/%d/driver", d->dir);
}

bool memif_door_has_admitted(const struct memif_door *d, uint32_t id)
{
	for (unsigned i = 0; i < d->n_ids; i++)
		if (d->ids[i].id == id)
			return d->ids[i].admitted;
	return false;
}

static void answer(struct memif_door *d)
{
	int fd = accept4(d->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0) {
		memif_talk_begin(d, fd);
		return;
	}
	if (errno == EAGAIN || errno == ECONNABORTED || errno == EINTR)
		return;
	memif_talk_count(MEMIF_NO_MEMORY);
	memif_unwatch(d->listener);
	d->rest_until = memif_in_ms(REST_MS);
}

bool memif_door_hear(const void *who)
{
	struct memif_door *d = doors;

	while (d != NULL && d != who)
		d = d->next;
	if (d != NULL)
		answer(d);
	return d != NULL;
}

uint64_t memif_door_pass_time(uint64_t now)
{
	uint64_t next = UINT64_MAX;

	for (struct memif_door *d = doors; d != NULL; d = d->next) {
		if (d->rest_until != 0 && d->rest_until <= now) {
			d->rest_until = 0;
			memif_watch(d->listener, d);
		}
		if (d->rest_until != 0 && d->rest_until < next)
			next = d->rest_until;
	}
	return next;
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

	memif_talk_end_all(d);
	while (*at != d)
		at = &(*at)->next;
	*at = d->next;
	if (d->listener >= 0)
		unlink(d->path);
	memif_unwatch_and_close(&d->listener);
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
	memif_serve_lock();
	rc = memif_serve_start(err);
	d = find(path);
	if (rc == 0 && d == NULL)
		rc = make_door(path, &d, err);
	if (rc == 0)
		rc = add_id(d, id, err);
	if (rc == 0)
		memif_door_inner(d, inner);
	memif_serve_unlock();
	if (rc < 0)
		port_socket_release(path);
	return rc;
}

static int listen_at(struct memif_door *d)
{
	struct sockaddr_un at;
	int error;

	d->listener = memif_address(&at, d->path);
	if (d->listener >= 0 && bind(d->listener, (const struct sockaddr *)&at, sizeof(at)) == 0 &&
		listen(d->listener, BACKLOG) == 0 && memif_watch(d->listener, d) == 0)
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

	memif_serve_lock();
	d = find(path);
	for (unsigned i = 0; i < d->n_ids; i++)
		d->ids[i].admitted |= d->ids[i].id == id;
	if (d->listener < 0)
		rc = listen_at(d);
	memif_serve_unlock();
	if (rc < 0)
		snprintf(err, PORT_ERR_LEN, "socket: cannot listen at %s: %s", path, strerror(-rc));
	return rc;
}

void memif_door_shut(const char *path, uint16_t id)
{
	uint64_t until = memif_in_ms(SHUT_MS);
	struct memif_door *d;

	memif_serve_lock();
	d = find(path);
	for (unsigned i = 0; i < d->n_ids; i++)
		d->ids[i].admitted &= d->ids[i].id != id;
	while (memif_talk_on_the_way(d, id) && port_now_ns() < until)
		memif_serve_wait();
	memif_serve_unlock();
}

void memif_door_close(const char *path, uint16_t id)
{
	struct memif_door *d;

	memif_serve_lock();
	d = find(path);
	for (unsigned i = 0; i < d->n_ids; i++)
		if (d->ids[i].id == id)
			d->ids[i--] = d->ids[--d->n_ids];
	memif_talk_end_port(d, id);
	if (d->n_ids == 0)
		destroy_door(d);
	memif_serve_unlock();
	port_socket_release(path);
}
