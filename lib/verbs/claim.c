/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/ctl/lock.h"
#include "lib/verbs/claim.h"

enum { LET_GO_MS = 10000, STEP_MS = 5 };

/* ---- the files ---- */

static int complain(char err[IV_CONFIG_ERR], int error, const char *what, const char *reason)
{
	snprintf(err, IV_CONFIG_ERR, "INCLINE_RNIC: %.200s: %s", what, reason);
	return -error;
}

static int add_matches(const char *item, char *paths[IV_MAX_PORTS], int n, char err[IV_CONFIG_ERR])
{
	char pattern[4096];
	struct stat st;
	glob_t found;
	size_t i;

	/* A name that exists is not a pattern; one that is neither is reported when it is read. */
	if (stat(item, &st) == 0 && S_ISDIR(st.st_mode))
		snprintf(pattern, sizeof(pattern), "%s/*.json", item);
	else
		snprintf(pattern, sizeof(pattern), "%s", item);
	if (glob(pattern,
		    stat(item, &st) == 0 && !S_ISDIR(st.st_mode) ? GLOB_NOCHECK | GLOB_NOESCAPE
								 : GLOB_NOMAGIC,
		    NULL, &found))
		return complain(err, EINVAL, item, "no file has such a name");
	for (i = 0; i < found.gl_pathc && n < IV_MAX_PORTS; i++, n++) {
		paths[n] = strdup(found.gl_pathv[i]);
		if (!paths[n])
			break;
	}
	if (i < found.gl_pathc)
		n = n < IV_MAX_PORTS ? complain(err, ENOMEM, item, "out of memory")
				     : complain(err, EINVAL, item, "more than 64 files");
	globfree(&found);
	return n;
}

int iv_claim_paths(const char *text, char *paths[IV_MAX_PORTS], char err[IV_CONFIG_ERR])
{
	char *copy = strdup(text), *save = NULL;
	int n = 0, ret = 0;

	if (!copy)
		return complain(err, ENOMEM, text, "out of memory");
	memset(paths, 0, IV_MAX_PORTS * sizeof(paths[0]));
	for (char *item = strtok_r(copy, ":", &save); item && ret >= 0;
		item = strtok_r(NULL, ":", &save)) {
		ret = add_matches(item, paths, n, err);
		n = ret;
	}
	free(copy);
	if (ret > 0)
		return ret;
	for (int i = 0; i < IV_MAX_PORTS; i++)
		free(paths[i]);
	return ret < 0 ? ret : complain(err, EINVAL, text, "names no file");
}

/* ---- the lock ---- */

static bool keeper_address(const char *path, struct sockaddr_un *addr)
{
	*addr = (struct sockaddr_un){.sun_family = AF_UNIX};
	return (size_t)snprintf(addr->sun_path, sizeof(addr->sun_path), "%s.keeper", path) <
	       sizeof(addr->sun_path);
}

/* True if there is a keeper, which now knows. */
static bool ask_keeper(const char *path)
{
	struct sockaddr_un addr;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool asked = fd >= 0 && keeper_address(path, &addr) &&
		     (sendto(fd, "", 1, 0, (const struct sockaddr *)&addr, sizeof(addr)) == 1 ||
			     errno == EAGAIN);

	if (fd >= 0)
		close(fd);
	return asked;
}

int iv_claim(const char *path)
{
	const struct timespec step = {.tv_nsec = STEP_MS * 1000000};
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	int error;

	if (fd < 0)
		return -errno;
	for (unsigned ms = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; ms += STEP_MS) {
		error = errno == EWOULDBLOCK ? EBUSY : errno;
		/* Asked again and again: the keeper may have begun to keep it in between. */
		if (error != EBUSY || ms >= LET_GO_MS || (ms % 100 == 0 && !ask_keeper(path))) {
			close(fd);
			return -error;
		}
		nanosleep(&step, NULL);
	}
	return fd;
}

pid_t iv_claim_owner(const char *path)
{
	return ctl_lock_owner(path);
}

int iv_claim_keeper(const char *path)
{
	const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr;
	int error;

	if (fd < 0)
		return -errno;
	error = keeper_address(path, &addr) ? 0 : ENAMETOOLONG;
	if (error == 0) {
		unlink(addr.sun_path); /* of one that was killed: this one has the lock */
		error = bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) ? errno : 0;
	}
	if (error) {
		close(fd);
		return -error;
	}
	return fd;
}

void iv_claim_keeper_close(int fd, const char *path)
{
	struct sockaddr_un addr;

	if (keeper_address(path, &addr))
		unlink(addr.sun_path);
	close(fd);
}
