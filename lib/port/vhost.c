/* SPDX-License-Identifier: BSD-3-Clause */
/* The vhost library maps the memory that a client offers, and reads and writes there. What the
 * client's file does not have, or has no more, or cannot have because memory is out, is a SIGBUS
 * when it is touched, and would be the process's end. No look at the file beforehand excludes that,
 * and seals, which would exclude a part, not all front ends set. So the library's calls of mmap,
 * munmap and recvmsg, and nobody else's, are led here (hook.c), and it is known which memory came
 * by which connection: at a SIGBUS there, empty memory of this process takes its place, whoever was
 * reading goes on, and the connection is shut down, which the library sees as the client's end. */
#include <errno.h>
#include <fcntl.h>
#include <rte_spinlock.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/port/internal.h"

/* A client has eight regions and two more for other ends. */
enum { MAX_MAPPED = 1024 };

static struct mapped {
	uintptr_t at; /* 0: free */
	size_t len;
	int conn; /* a descriptor of ours, -1: none */
	bool lost;
} mapped[MAX_MAPPED];
/* Who holds it touches no client's memory, so that the handler never waits for its own thread. */
static rte_spinlock_t lock = RTE_SPINLOCK_INITIALIZER;
static atomic_uint_fast64_t lost;
static struct sigaction before;
static __thread int heard_from = -1; /* the connection of which this thread has read last */

uint64_t port_vhost_lost(void)
{
	return atomic_load_explicit(&lost, memory_order_relaxed);
}

static ssize_t hear(int s, struct msghdr *mh, int flags)
{
	heard_from = s;
	return recvmsg(s, mh, flags);
}

/* Which mapping has this address, NULL: none. */
static struct mapped *find(uintptr_t at)
{
	for (struct mapped *m = mapped; m < mapped + MAX_MAPPED; m++) {
		if (m->at != 0 && at >= m->at && at - m->at < m->len)
			return m;
	}
	return NULL;
}

static struct mapped *find_free(void)
{
	struct mapped *m = mapped;

	while (m < mapped + MAX_MAPPED && m->at != 0)
		m++;
	return m < mapped + MAX_MAPPED ? m : NULL;
}

static bool note(void *at, size_t len)
{
	const int conn = heard_from < 0 ? -1 : fcntl(heard_from, F_DUPFD_CLOEXEC, 0);
	struct mapped *m;

	rte_spinlock_lock(&lock);
	m = find_free();
	if (m != NULL)
		*m = (struct mapped){(uintptr_t)at, len, conn, false};
	rte_spinlock_unlock(&lock);
	if (m == NULL && conn >= 0)
		close(conn);
	return m != NULL;
}

/* Whole blocks of the file: where these are huge pages, the kernel maps no less. */
static size_t whole(size_t len, int fd)
{
	struct stat st;
	size_t block;

	if (fstat(fd, &st) < 0 || st.st_blksize <= 0)
		return len;
	block = (size_t)st.st_blksize;
	return len > SIZE_MAX - block ? SIZE_MAX : (len + block - 1) / block * block;
}

static void *map(void *addr, size_t len, int prot, int flags, int fd, off64_t off)
{
	void *at;

	if (fd >= 0)
		len = whole(len, fd);
	at = mmap64(addr, len, prot, flags, fd, off);
	if (at != MAP_FAILED && fd >= 0 && !note(at, len)) {
		munmap(at, len);
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return at;
}

static int unmap(void *addr, size_t len)
{
	struct mapped *m, was = {0};

	rte_spinlock_lock(&lock);
	m = find((uintptr_t)addr);
	if (m != NULL && m->at == (uintptr_t)addr) {
		was = *m;
		m->at = 0;
	}
	rte_spinlock_unlock(&lock);
	if (was.at == 0)
		return munmap(addr, len);
	if (was.conn >= 0)
		close(was.conn);
	return munmap(addr, was.len);
}

/* In the signal handler. False: the address is of no client's memory. */
static bool replace(uintptr_t at)
{
	const int flags = MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	struct mapped *m;
	bool ok;

	rte_spinlock_lock(&lock);
	m = find(at);
	ok = m != NULL && (m->lost || mmap((void *)m->at, m->len, PROT_READ | PROT_WRITE, flags, -1,
					      0) != MAP_FAILED);
	if (ok && !m->lost) {
		m->lost = true;
		atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
		shutdown(m->conn, SHUT_RDWR); /* who hears of it may look at the count */
	}
	rte_spinlock_unlock(&lock);
	return ok;
}

static void on_sigbus(int number, siginfo_t *info, void *context)
{
	const int saved = errno;

	/* Not one that was sent, which may come at any time: also while this thread has the lock.
	 */
	if ((info->si_code == BUS_ADRERR || info->si_code == BUS_MCEERR_AR) &&
		replace((uintptr_t)info->si_addr)) {
		errno = saved;
		return;
	}
	errno = saved;
	if (before.sa_flags & SA_SIGINFO) {
		before.sa_sigaction(number, info, context);
	} else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
		before.sa_handler(number);
	} else if (before.sa_handler == SIG_DFL || info->si_code > 0) {
		signal(number, SIG_DFL);
		raise(number);
	}
}

/* Once: whoever takes the signal later may call us after itself. */
static int handle_sigbus(void)
{
	const struct sigaction ours = {
		.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART};
	static bool done;

	if (!done && (sigaction(SIGBUS, NULL, &before) < 0 || sigaction(SIGBUS, &ours, NULL) < 0))
		return -errno;
	done = true;
	return 0;
}

int port_vhost_guard(char err[PORT_ERR_LEN])
{
	int ret = port_hook("librte_vhost", "mmap64", (void *)map);

	if (ret == -ENOENT)
		ret = port_hook("librte_vhost", "mmap", (void *)map);
	if (ret >= 0)
		ret = port_hook("librte_vhost", "munmap", (void *)unmap);
	if (ret >= 0)
		ret = port_hook("librte_vhost", "recvmsg", (void *)hear);
	if (ret >= 0)
		ret = handle_sigbus();
	return ret < 0 ? port_fail(
				 err, -ret, "what vhost maps cannot be guarded: %s", strerror(-ret))
		       : 0;
}
