/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/verbs/bell.h"

#include <sys/eventfd.h>
#include <unistd.h>

bool iv_bell_init(struct iv_bell *bell)
{
	atomic_init(&bell->asleep, false);
	bell->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return bell->fd >= 0;
}

void iv_bell_fini(struct iv_bell *bell)
{
	if (bell->fd >= 0)
		close(bell->fd);
	bell->fd = -1;
}

/* Either the sleeper sees what was put into the ring, or the ringer sees it asleep. */
void iv_bell_ring(struct iv_bell *bell)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&bell->asleep, memory_order_relaxed) &&
		atomic_exchange(&bell->asleep, false))
		(void)!eventfd_write(bell->fd, 1);
}

void iv_bell_back_off(struct iv_bell *bell, bool (*ready)(void *arg), void *arg,
	struct port_backoff *backoff, unsigned work, uint64_t now, uint64_t deadline)
{
	eventfd_t rings;

	if (work > 0 || !port_backoff_sleeps(backoff, now)) {
		port_backoff(backoff, work, now, deadline);
		return;
	}
	backoff->wake_fd = bell->fd;
	atomic_store_explicit(&bell->asleep, true, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (!ready(arg))
		port_backoff(backoff, 0, now, deadline);
	/* Who was faster has written, or will: then the next sleep is short. It is not waited for,
	 * since that thread may have ended. */
	atomic_store_explicit(&bell->asleep, false, memory_order_relaxed);
	(void)!eventfd_read(bell->fd, &rings);
}
