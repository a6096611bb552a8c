/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/port/memif_conn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FDS = 8 }; /* that one message can bring; the kernel closes the rest */

int memif_address(struct sockaddr_un *at, const char *path)
{
	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(at->sun_path, sizeof(at->sun_path), "%s", path);
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static void look_at(int fd, struct memif_files *files)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
		files->bytes = (uint64_t)st.st_size;
	files->sealed = seals >= 0 && (seals & F_SEAL_SHRINK);
}

static void take_fds(struct msghdr *mh, int *fd, struct memif_files *files)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c != NULL; c = CMSG_NXTHDR(mh, c)) {
		unsigned n = 0;

		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
			n = (unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		for (unsigned i = 0; i < n; i++) {
			int one;

			memcpy(&one, CMSG_DATA(c) + i * sizeof(int), sizeof(one));
			if (files->n++ == 0)
				*fd = one;
			else
				close(one);
		}
	}
	if (mh->msg_flags & MSG_CTRUNC)
		files->n++;
	if (*fd >= 0)
		look_at(*fd, files);
}

int memif_msg_recv(int socket, struct memif_msg *msg, int *fd, struct memif_files *files)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(MAX_FDS * sizeof(int))];
	struct iovec iov = {.iov_base = msg, .iov_len = sizeof(*msg)};
	struct msghdr mh = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	ssize_t n;

	*fd = -1;
	memset(files, 0, sizeof(*files));
	memset(msg, 0, sizeof(*msg));
	n = recvmsg(socket, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	take_fds(&mh, fd, files);
	return mh.msg_flags & MSG_TRUNC ? (int)sizeof(*msg) + 1 : (int)n;
}

int memif_msg_send(int socket, const struct memif_msg *msg, int fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {.iov_base = (void *)msg, .iov_len = sizeof(*msg)};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	if (fd >= 0) {
		struct cmsghdr *c = (struct cmsghdr *)control;

		mh.msg_control = control;
		mh.msg_controllen = sizeof(control);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(socket, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

bool memif_conn_next(struct memif_conn *c, int event, const struct memif_msg **msg, int *fd)
{
	const struct memif_shake *s = &c->shake;
	unsigned i = c->step++;

	*fd = -1;
	if (i == 0) {
		*msg = &s->init;
	} else if (i <= s->n_regions) {
		*msg = &s->region[i - 1];
		*fd = c->region_fd[i - 1];
	} else if (i <= s->n_regions + 2) {
		*msg = &s->ring[i - s->n_regions - 1];
		*fd = event;
	} else {
		*msg = &s->connect;
	}
	return i <= s->n_regions + 3;
}

void memif_conn_drop_regions(struct memif_conn *c)
{
	for (unsigned i = 0; i < c->shake.n_regions; i++)
		if (c->region_fd[i] >= 0) {
			close(c->region_fd[i]);
			c->region_fd[i] = -1;
		}
}
