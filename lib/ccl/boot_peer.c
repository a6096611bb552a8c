/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/boot_peer.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/ccl/boot.h"

enum { SEND_TIMEOUT_S = 2, FIRST_ROOM = 4096 };

void boot_socket(int fd)
{
	const struct timeval tv = {.tv_sec = SEND_TIMEOUT_S};

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

typedef int (*address_fn)(int fd, const struct sockaddr *sa, socklen_t len);

static int try_one(int family, const void *sa, socklen_t len, address_fn fn, int *fd)
{
	int rc;

	*fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd < 0)
		return -errno;
	rc = fn(*fd, sa, len) ? -errno : 0;
	if (rc)
		close(*fd);
	return rc;
}

static int unix_address(const char *path, address_fn fn, int *fd)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(sun.sun_path))
		return -ENAMETOOLONG;
	strcpy(sun.sun_path, path);
	return try_one(AF_UNIX, &sun, sizeof(sun), fn, fd);
}

/* HOST:PORT, [V6]:PORT */
static int tcp_address(const char *text, address_fn fn, int *fd)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *list;
	char host[128], *colon;
	int rc = -EADDRNOTAVAIL;

	if (strlen(text) >= sizeof(host))
		return -ENAMETOOLONG;
	strcpy(host, text);
	colon = strrchr(host, ':');
	if (!colon || colon == host)
		return -EINVAL;
	*colon = '\0';
	if (host[0] == '[' && colon[-1] == ']')
		colon[-1] = '\0';
	if (getaddrinfo(host[0] == '[' ? host + 1 : host, colon + 1, &hints, &list))
		return rc;
	for (const struct addrinfo *ai = list; ai && rc; ai = ai->ai_next)
		rc = try_one(ai->ai_family, ai->ai_addr, ai->ai_addrlen, fn, fd);
	freeaddrinfo(list);
	return rc;
}

int boot_address(const char *address, address_fn fn, int *fd)
{
	if (strncmp(address, "unix:", 5) == 0)
		return unix_address(address + 5, fn, fd);
	if (strncmp(address, "tcp:", 4) == 0)
		return tcp_address(address + 4, fn, fd);
	return -EINVAL;
}

int boot_bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	const int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	return bind(fd, sa, len) || listen(fd, 128);
}

void boot_peer_close(struct boot_peer *p)
{
	if (p->fd >= 0)
		close(p->fd);
	free(p->line);
	*p = (struct boot_peer){.fd = -1, .rank = -1};
}

/* ---- lines ---- */

char *boot_line(const json_t *object, size_t *len)
{
	char *text = json_dumps(object, JSON_COMPACT);

	if (text) {
		*len = strlen(text);
		text[(*len)++] = '\n'; /* in place of the final NUL */
	}
	return text;
}

int boot_send_line(struct boot_peer *p, const char *line, size_t len)
{
	size_t done = 0;

	if (len > CCL_BOOT_MAX_LINE)
		return -EMSGSIZE;
	while (done < len && p->fd >= 0) {
		const ssize_t n = send(p->fd, line + done, len - done, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done == len ? 0 : -ECONNABORTED;
}

int boot_send(struct boot_peer *p, const json_t *object)
{
	size_t len;
	char *line = boot_line(object, &len);
	const int rc = line ? boot_send_line(p, line, len) : -ENOMEM;

	free(line);
	return rc;
}

static bool has_line(struct boot_peer *p)
{
	const char *from = p->line + p->seen, *end = memchr(from, '\n', p->len - p->seen);

	p->seen = end ? (size_t)(end - p->line) : p->len;
	return end != NULL;
}

/* Room for more: what nobody has introduced takes little memory. */
static int make_room(struct boot_peer *p)
{
	const size_t most = p->rank < 0 ? BOOT_STRANGERS_LINE : CCL_BOOT_MAX_LINE;
	size_t cap = p->cap ? 2 * p->cap : FIRST_ROOM;
	char *line;

	if (p->len < p->cap)
		return 0;
	if (p->len >= most)
		return -EMSGSIZE;
	cap = cap < most ? cap : most;
	line = realloc(p->line, cap);
	if (!line)
		return -ENOMEM;
	p->line = line;
	p->cap = cap;
	return 0;
}

/* Takes what the socket has: 1 if a whole line is there, 0 if more is needed, -errno if the peer is
 * gone or talks nonsense. */
static int fill_line(struct boot_peer *p)
{
	ssize_t n;
	int rc;

	if (p->len && has_line(p))
		return 1;
	rc = make_room(p);
	if (rc)
		return rc;
	n = recv(p->fd, p->line + p->len, p->cap - p->len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -ECONNABORTED;
	p->len += (size_t)n;
	return has_line(p);
}

/* As fill_line; 1: *object is the line, which stays in the buffer until drop_line. */
int boot_peek(struct boot_peer *p, json_t **object)
{
	const int rc = fill_line(p);

	if (rc != 1)
		return rc;
	*object = json_loadb(p->line, p->seen, 0, NULL);
	if (json_is_object(*object))
		return 1;
	json_decref(*object);
	return -EPROTO;
}

static void drop_line(struct boot_peer *p)
{
	const char *next = p->line + p->seen + 1;

	p->len -= p->seen + 1;
	p->seen = 0;
	memmove(p->line, next, p->len);
}

int boot_read(struct boot_peer *p, json_t **object)
{
	const int rc = boot_peek(p, object);

	if (rc == 1)
		drop_line(p);
	return rc;
}

const char *boot_error(const json_t *object)
{
	return json_string_value(json_object_get(object, "error"));
}
