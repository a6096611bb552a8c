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

#include "lib/ctl/lock.h"
#include "lib/journal/journal.h"

/* As many as the kernel lets wait: after a restart all come at once. */
enum { BACKLOG = SOMAXCONN };

/* ---- the socket ---- */

/* Makes room for the socket: what nobody listens at is removed. Whoever is asked by a connection
 * has no lock, so he is none of ours. */
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

/* For who has the lock: nobody else removes or makes the socket in the meantime. */
static int make_socket(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

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

/* -EADDRINUSE: *who has it, if that can be told. */
static int listen_at(const char *path, struct ctl_place *place, pid_t *who)
{
	char file[CTL_LOCK_STRLEN];
	int fd;

	*place = (struct ctl_place){.held = false};
	*who = 0;
	if (!path[0] || strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return -ENAMETOOLONG;
	ctl_lock_name(file, path);
	place->lock = ctl_lock_take(file);
	if (place->lock < 0) {
		/* Another user's file cannot be opened, be he there or not. */
		*who = ctl_lock_owner(file);
		return *who || place->lock == -EWOULDBLOCK ? -EADDRINUSE : place->lock;
	}
	fd = make_socket(path);
	if (fd < 0) {
		ctl_lock_leave(file, place->lock);
		return fd;
	}
	place->held = true;
	(void)!lstat(path, &place->socket);
	return fd;
}

static const char *listen_hint(int rc)
{
	switch (rc) {
	case -EADDRINUSE:
		return "another program listens there: stop it, or choose another path";
	case -EEXIST:
		return "a file that is not a socket is in the way";
	case -ENOENT:
		return "its directory does not exist: create it, or choose another path";
	case -ENAMETOOLONG:
		return "path must have 1..107 bytes";
	}
	return strerror(-rc);
}

/* What is wrong with the lock, which the configuration does not name. */
static void say_lock(const char *what, const char *path, int rc)
{
	char file[CTL_LOCK_STRLEN], whose[64] = "";
	struct stat st;

	ctl_lock_name(file, path);
	if (!lstat(file, &st) && st.st_uid != geteuid())
		snprintf(whose, sizeof(whose), ", it is user %u's", (unsigned)st.st_uid);
	journal(JOURNAL_ERR, "error: %s: its lock %s: %s%s: remove it, or choose another path",
		what, file, strerror(-rc), whose);
}

/* The same with a line on stderr; what: how the configuration calls it, and where. */
static int listen_or_say(const char *what, const char *path, struct ctl_place *place)
{
	char pid[32] = "";
	pid_t who;
	const int fd = listen_at(path, place, &who);

	if (who)
		snprintf(pid, sizeof(pid), " (PID %d)", (int)who);
	if (fd < 0 && place->lock < 0 && (fd == -EACCES || fd == -EPERM || fd == -ELOOP))
		say_lock(what, path, fd);
	else if (fd < 0)
		journal(JOURNAL_ERR, "error: %s: %s%s", what, listen_hint(fd), pid);
	return fd;
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

void ctl_unlisten(const char *path, struct ctl_place *place)
{
	const struct stat *ours = &place->socket;
	char file[CTL_LOCK_STRLEN];
	struct stat st;

	if (!place->held)
		return;
	ctl_lock_name(file, path);
	if (ctl_lock_stays(file, place->lock) && !lstat(path, &st) && st.st_dev == ours->st_dev &&
		st.st_ino == ours->st_ino)
		unlink(path);
	ctl_lock_leave(file, place->lock);
	place->held = false;
}

int ctl_look(const char *path, struct ctl_lock_holder *holder)
{
	char file[CTL_LOCK_STRLEN];

	ctl_lock_name(file, path);
	return ctl_lock_look(file, holder);
}

/* The socket goes first: nobody makes another while the lock's file is there. */
int ctl_push_aside(const char *path, const struct ctl_lock_holder *holder)
{
	char file[CTL_LOCK_STRLEN];

	ctl_lock_name(file, path);
	if (holder->fd < 0) {
		const int lock = ctl_lock_take(file);

		if (lock < 0)
			return lock;
		(void)!unlink(path);
		ctl_lock_leave(file, lock);
		return 0;
	}
	if (!ctl_lock_unchanged(file, holder))
		return -EWOULDBLOCK;
	(void)!unlink(path);
	return unlink(file) ? -errno : 0;
}

int ctl_listen(const char *path, const char *tcp, int fd[CTL_MAX_LISTENERS],
	char name[CTL_ADDRESS_STRLEN], struct ctl_place *place)
{
	char what[CTL_LISTEN_STRLEN + 16];

	snprintf(what, sizeof(what), "control socket %.107s", path);
	fd[0] = listen_or_say(what, path, place);
	if (fd[0] < 0)
		return fd[0];
	if (!tcp)
		return 1;
	fd[1] = listen_tcp(tcp, name);
	if (fd[1] >= 0)
		return 2;
	journal(JOURNAL_ERR, "error: control_tcp %s: %s", tcp, tcp_hint(fd[1]));
	close(fd[0]);
	ctl_unlisten(path, place);
	return fd[1];
}

static const char UNIX[] = "unix:";

static bool is_unix(const char *where)
{
	return !strncmp(where, UNIX, sizeof(UNIX) - 1);
}

int ctl_listen_pages(const char *where, struct ctl_place *place)
{
	char name[CTL_LISTEN_STRLEN], what[CTL_LISTEN_STRLEN + 16];
	int fd;

	*place = (struct ctl_place){.held = false};
	snprintf(name, sizeof(name), "%s", where);
	snprintf(what, sizeof(what), "metrics %s", name);
	if (is_unix(where))
		fd = listen_or_say(what, where + sizeof(UNIX) - 1, place);
	else if ((fd = listen_tcp(where, name)) < 0)
		journal(JOURNAL_ERR, "error: %s: %s", what, tcp_hint(fd));
	if (fd >= 0)
		journal(JOURNAL_INFO, "metrics at %s", name);
	return fd;
}

void ctl_unlisten_one(const char *where, struct ctl_place *place)
{
	if (where && is_unix(where))
		ctl_unlisten(where + sizeof(UNIX) - 1, place);
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
