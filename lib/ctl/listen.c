/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/listen.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* As many as the kernel lets wait: after a restart all come at once. */
enum { BACKLOG = SOMAXCONN };

/* ---- the socket ---- */

/* Makes room for the socket: what nobody listens at is removed. */
static int clear_path(const struct sockaddr_un *at)
{
	struct stat st;

	if (lstat(at->sun_path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int rc = connect(fd, (const struct sockaddr *)at, sizeof(*at)) ? -errno : -EADDRINUSE;
	close(fd);
	if (rc == -EAGAIN)
		return -EADDRINUSE; /* its queue is full */
	if (rc != -ECONNREFUSED)
		return rc;
	return unlink(at->sun_path) ? -errno : 0;
}

static int listen_at(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	if (!path[0] || strlen(path) >= sizeof(at.sun_path))
		return -ENAMETOOLONG;
	strcpy(at.sun_path, path);
	int rc = clear_path(&at);
	if (rc)
		return rc;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	/* The mode before bind, so that the socket is never open to everybody; and after it,
	 * because the umask has taken bits away. */
	if (fchmod(fd, 0660) || bind(fd, (struct sockaddr *)&at, sizeof(at)))
		rc = -errno;
	else if (chmod(path, 0660) || listen(fd, BACKLOG)) {
		rc = -errno;
		unlink(path);
	}
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

static const char *listen_hint(int rc)
{
	switch (rc) {
	case -EADDRINUSE:
		return "another program listens there: stop it, or choose another \"control\"";
	case -EEXIST:
		return "a file that is not a socket is in the way";
	case -ENOENT:
		return "its directory does not exist: create it, or choose another \"control\"";
	case -ENAMETOOLONG:
		return "path must have 1..107 bytes";
	}
	return strerror(-rc);
}

/* ---- TCP ---- */

static const char *tcp_hint(int rc)
{
	switch (rc) {
	case -EADDRNOTAVAIL:
		return "must be an address of this machine, and not 0.0.0.0 or ::: there is no "
		       "authentication, so name the address in the management network";
	case -EINVAL:
		return "must be ADDRESS:PORT or [V6ADDRESS]:PORT";
	case -EADDRINUSE:
		return "the port is in use";
	}
	return strerror(-rc);
}

int ctl_listen_check(const char *field, const char *tcp, char *err, size_t cap)
{
	struct ctl_address at;
	int rc = tcp ? ctl_listen_parse(tcp, &at) : 0;

	if (rc)
		snprintf(err, cap, "%s: %s", field, tcp_hint(rc));
	return rc ? -EINVAL : 0;
}

/* A listening descriptor, and in name where that really is; -errno. */
static int listen_tcp(const char *where, char name[CTL_ADDRESS_STRLEN])
{
	struct ctl_address at;
	const int on = 1;
	int rc = ctl_listen_parse(where, &at);

	if (rc)
		return rc;
	int fd = socket(at.sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&at.sa, at.len) || listen(fd, BACKLOG) ||
		getsockname(fd, (struct sockaddr *)&at.sa, &at.len)) {
		rc = -errno;
		close(fd);
		return rc;
	}
	ctl_tcp_format(&at, name, CTL_ADDRESS_STRLEN);
	return fd;
}

/* ---- both ---- */

int ctl_descriptors(const char *field, unsigned n, bool look, char *err, size_t cap)
{
	struct rlimit may;

	if (getrlimit(RLIMIT_NOFILE, &may) || may.rlim_cur >= n)
		return 0;
	if (may.rlim_max < n) {
		snprintf(err, cap,
			"%s: with all else that makes %u descriptors, the limit is %llu (ulimit "
			"-n, LimitNOFILE)",
			field, n, (unsigned long long)may.rlim_max);
		return -EMFILE;
	}
	may.rlim_cur = n;
	return look || !setrlimit(RLIMIT_NOFILE, &may) ? 0 : -errno;
}

void ctl_unlisten(const char *path, const struct stat *ours)
{
	struct stat st;

	if (!lstat(path, &st) && st.st_dev == ours->st_dev && st.st_ino == ours->st_ino)
		unlink(path);
}

int ctl_listen(
	const char *path, const char *tcp, int fd[CTL_MAX_LISTENERS], char name[CTL_ADDRESS_STRLEN])
{
	fd[0] = listen_at(path);
	if (fd[0] < 0) {
		fprintf(stderr, "error: control socket %s: %s\n", path, listen_hint(fd[0]));
		return fd[0];
	}
	if (!tcp)
		return 1;
	fd[1] = listen_tcp(tcp, name);
	if (fd[1] >= 0)
		return 2;
	fprintf(stderr, "error: control_tcp %s: %s\n", tcp, tcp_hint(fd[1]));
	close(fd[0]);
	unlink(path);
	return fd[1];
}

static const char UNIX[] = "unix:";

static bool is_unix(const char *where)
{
	return !strncmp(where, UNIX, sizeof(UNIX) - 1);
}

int ctl_listen_one(const char *field, const char *where, char name[CTL_LISTEN_STRLEN])
{
	const bool path = is_unix(where);
	int fd;

	snprintf(name, CTL_LISTEN_STRLEN, "%s", where);
	fd = path ? listen_at(where + sizeof(UNIX) - 1) : listen_tcp(where, name);
	if (fd < 0)
		fprintf(stderr, "error: %s %s: %s\n", field, where,
			path ? listen_hint(fd) : tcp_hint(fd));
	return fd;
}

int ctl_listen_pages(const char *where, struct stat *ours)
{
	char name[CTL_LISTEN_STRLEN];
	const int fd = ctl_listen_one("metrics", where, name);

	if (fd < 0)
		return fd;
	if (is_unix(where))
		(void)!lstat(where + sizeof(UNIX) - 1, ours);
	fprintf(stderr, "metrics at %s\n", name);
	return fd;
}

void ctl_unlisten_one(const char *where, const struct stat *ours)
{
	if (where && is_unix(where))
		ctl_unlisten(where + sizeof(UNIX) - 1, ours);
}

int ctl_listen_check_one(const char *field, const char *where, char *err, size_t cap)
{
	const size_t len = where && is_unix(where) ? strlen(where) - (sizeof(UNIX) - 1) : 1;

	if (where && !is_unix(where))
		return ctl_listen_check(field, where, err, cap);
	if (len >= 1 && len < sizeof(((struct sockaddr_un *)0)->sun_path))
		return 0;
	snprintf(err, cap, "%s: %s", field, listen_hint(-ENAMETOOLONG));
	return -EINVAL;
}
