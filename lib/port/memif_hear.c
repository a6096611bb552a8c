/* SPDX-License-Identifier: BSD-3-Clause */
/* A memif client hears its server by this: what is no answer to what it has said is the server's
 * end for the driver, which believes it all (memif_shake.h). The server is told why. So the
 * driver's calls of recvmsg and sendmsg are led here (hook.c). What it says as a server goes to the
 * door and passes. */
#include <errno.h>
#include <pthread.h>
#include <rte_config.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/port/internal.h"
#include "lib/port/memif_conn.h"
#include "lib/port/memif_door_priv.h"

/* A client's conversation; over: the driver is told that the server has gone. A descriptor that has
 * another inode is that of something else. */
static struct talk {
	uint64_t inode;
	int fd;
	bool over;
	struct memif_reply reply;
} talks[RTE_MAX_ETHPORTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_there(const struct talk *t)
{
	return t->inode != 0 && port_inode(t->fd) == t->inode;
}

bool memif_hear_begin(int fd)
{
	struct talk *t = talks;

	pthread_mutex_lock(&lock);
	while (t < talks + RTE_MAX_ETHPORTS && is_there(t))
		t++;
	if (t < talks + RTE_MAX_ETHPORTS)
		*t = (struct talk){.fd = fd, .inode = port_inode(fd)};
	pthread_mutex_unlock(&lock);
	return t < talks + RTE_MAX_ETHPORTS;
}

/* NULL: it is no client's. */
static struct talk *find(int fd)
{
	struct talk *t = talks;

	while (t < talks + RTE_MAX_ETHPORTS && (t->fd != fd || !is_there(t)))
		t++;
	return t < talks + RTE_MAX_ETHPORTS ? t : NULL;
}

static void refuse(struct talk *t, enum memif_refusal why)
{
	struct memif_msg bye;

	t->over = true;
	memif_talk_count(why);
	memif_goodbye(&bye, memif_refusal_text(why));
	memif_msg_send(t->fd, &bye, -1);
}

/* As recvmsg, but for file descriptors, of which a server has none to give. */
static ssize_t hear_server(struct talk *t, struct msghdr *mh)
{
	struct memif_files files;
	struct memif_msg msg;
	enum memif_refusal why;
	int fd, len;

	if (t->over || mh->msg_iov[0].iov_len < sizeof(msg))
		return 0;
	len = memif_msg_recv(t->fd, &msg, &fd, &files);
	if (fd >= 0)
		close(fd);
	if (len < 0) {
		errno = -len;
		return -1;
	}
	why = len == 0 ? MEMIF_FINE : memif_reply_take(&t->reply, &msg, (size_t)len, &files);
	if (why != MEMIF_FINE) {
		refuse(t, why);
		return 0;
	}
	memcpy(mh->msg_iov[0].iov_base, &msg, sizeof(msg));
	mh->msg_controllen = 0;
	mh->msg_flags = 0;
	return len;
}

static ssize_t hear(int s, struct msghdr *mh, int flags)
{
	struct talk *t;
	ssize_t n = 0;

	pthread_mutex_lock(&lock);
	t = find(s);
	if (t != NULL)
		n = hear_server(t, mh);
	pthread_mutex_unlock(&lock);
	port_guard_heard(t != NULL ? -1 : s); /* what is mapped next is our own, or offered here */
	return t != NULL ? n : recvmsg(s, mh, flags);
}

static ssize_t say(int s, const struct msghdr *mh, int flags)
{
	struct talk *t;

	pthread_mutex_lock(&lock);
	t = find(s);
	if (t != NULL)
		memif_reply_ask(
			&t->reply, ((const struct memif_msg *)mh->msg_iov[0].iov_base)->type);
	pthread_mutex_unlock(&lock);
	return sendmsg(s, mh, flags);
}

int memif_hear_hook(char err[PORT_ERR_LEN])
{
	int ret = port_hook("librte_net_memif", "recvmsg", (void *)hear);

	if (ret >= 0)
		ret = port_hook("librte_net_memif", "sendmsg", (void *)say);
	return ret < 0 ? port_fail(err, -ret, "what a memif's server says cannot be checked: %s",
				 strerror(-ret))
		       : 0;
}
