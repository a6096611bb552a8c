/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that another process offers to one of DPDK's drivers, which maps it and reads and writes
 * there. What its file does not have, or has no more, or cannot have because memory is out, is a
 * SIGBUS when it is touched, and would be this process's end. No look at the file beforehand
 * excludes that; seals, which would exclude a part, not every peer sets, nor can. So it is known
 * which memory came by which connection: at a SIGBUS there, empty memory of this process takes its
 * place, whoever was reading goes on, and the connection is shut down, which the driver sees as the
 * peer's end. */
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

/* A vhost client has eight regions and two more for other ends, a memif's sixteen. */
enum { MAX_MAPPED = 2048 };

static struct mapped {
	uintptr_t at; /* 0: free */
	size_t len;
	int conn; /* a descriptor of ours, -1: none */
	enum port_guarded of;
	bool lost;
} mapped[MAX_MAPPED];
/* Who holds it touches no peer's memory, so that the handler never waits for its own thread. */
static rte_spinlock_t lock = RTE_SPINLOCK_INITIALIZER;
static atomic_uint_fast64_t lost[PORT_N_GUARDED];
static struct sigaction before;
static __thread int heard_from = -1; /* the connection of which this thread has read last */

uint64_t port_guard_lost(enum port_guarded of)
{
	return atomic_load_explicit(&lost[of], memory_order_relaxed);
}

void port_guard_heard(int s)
{
	heard_from = s;
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

static bool note(enum port_guarded of, void *at, size_t len)
{
	const int conn = fcntl(heard_from, F_DUPFD_CLOEXEC, 0);
	struct mapped *m;

	rte_spinlock_lock(&lock);
	m = find_free();
	if (m != NULL)
		*m = (struct mapped){(uintptr_t)at, len, conn, of, false};
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

void *port_guard_map(
	enum port_guarded of, void *addr, size_t len, int prot, int flags, int fd, off64_t off)
{
	const bool offered = fd >= 0 && heard_from >= 0;
	void *at;

	if (offered)
		len = whole(len, fd);
	at = mmap64(addr, len, prot, flags, fd, off);
	if (at != MAP_FAILED && offered && !note(of, at, len)) {
		munmap(at, len);
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return at;
}

int port_guard_unmap(void *addr, size_t len)
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

/* In the signal handler. False: the address is of no peer's memory. */
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
		atomic_fetch_add_explicit(&lost[m->of], 1, memory_order_relaxed);
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

int port_guard_start(char err[PORT_ERR_LEN])
{
	const int ret = handle_sigbus();

	return ret < 0 ? port_fail(
				 err, -ret, "a peer's memory cannot be guarded: %s", strerror(-ret))
		       : 0;
}
