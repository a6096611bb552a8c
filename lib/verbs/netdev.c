/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/verbs/netdev.h"

enum { LOOK_EVERY_NS = 20000 };

int iv_netdev_init(struct iv_netdev *netdev, int fd, unsigned mtu)
{
	*netdev = (struct iv_netdev){.fd = fd, .cap = mtu + ETH_HDR_LEN + VLAN_HDR_LEN};
	/* A byte more, by which a frame that is too long is known. */
	atomic_init(&netdev->wake_fd, 0);
	netdev->frame = malloc(netdev->cap + 1);
	return netdev->frame ? 0 : -ENOMEM;
}

void iv_netdev_fini(struct iv_netdev *netdev)
{
	free(netdev->frame);
	netdev->frame = NULL;
}

void iv_netdev_write(struct iv_netdev *netdev, const uint8_t *frame, size_t len)
{
	enum iv_netdev_counter what = IV_NETDEV_RX;

	if (write(netdev->fd, frame, len) < 0)
		what = errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM ? IV_NETDEV_RX_FULL
									      : IV_NETDEV_RX_DOWN;
	netdev->count[what]++;
}

bool iv_netdev_read(struct iv_netdev *netdev, struct rnic_frame *frame, uint64_t now)
{
	ssize_t len;

	while ((len = read(netdev->fd, netdev->frame, netdev->cap + 1)) > 0) {
		if ((size_t)len > netdev->cap) {
			netdev->count[IV_NETDEV_TX_TOO_LONG]++;
			continue;
		}
		netdev->count[IV_NETDEV_TX]++;
		frame->head_len = frame->tail_len = 0;
		frame->n_iov = 1;
		frame->iov[0].base = netdev->frame;
		frame->iov[0].len = (size_t)len;
		frame->len = (uint32_t)len;
		frame->qpn = 0;
		frame->stays = false; /* the next one takes its place */
		frame->unsealed = false;
		atomic_store_explicit(&netdev->wake_fd, 0, memory_order_relaxed);
		return true;
	}
	netdev->looked_ns = now;
	/* One that is gone would be readable for ever. */
	atomic_store_explicit(&netdev->wake_fd, len < 0 && errno == EAGAIN ? netdev->fd : 0,
		memory_order_relaxed);
	return false;
}

bool iv_netdev_due(const struct iv_netdev *netdev, uint64_t now)
{
	return now - netdev->looked_ns >= LOOK_EVERY_NS;
}

unsigned iv_netdev_stats(const struct iv_netdev *netdev, struct inc_dv_stat *stats, unsigned n)
{
	static const char *const names[] = {
#define X(sym, name, text) [IV_NETDEV_##sym] = (name),
		IV_NETDEV_COUNTERS(X)
#undef X
	};

	for (unsigned i = 0; i < IV_NETDEV_N_COUNTERS && i < n; i++)
		stats[i] = (struct inc_dv_stat){names[i], netdev->count[i]};
	return IV_NETDEV_N_COUNTERS;
}
