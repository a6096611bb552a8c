/* SPDX-License-Identifier: BSD-3-Clause */
/* Between packets and registered memory: where payload comes from and goes to. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/rnic/mr.h"
#include "lib/rnic/placement.h"
#include "lib/rnic/wqe.h"

/* One contiguous part of a scatter/gather list. */
struct piece {
	uint8_t *base;
	size_t len;
};

/* Resolves bytes offset .. offset+len of a list into pieces. Returns their number (at most n_sge),
 * or -EFAULT if a key forbids it or the list is shorter than that. */
static int resolve(const struct rnic_pd *pd, const struct ibv_sge *sge, unsigned n_sge,
	uint64_t offset, size_t len, int access, struct piece piece[RNIC_MAX_SGE])
{
	int n = 0;

	for (unsigned i = 0; i < n_sge && len > 0; i++) {
		size_t part;

		if (offset >= sge[i].length) {
			offset -= sge[i].length;
			continue;
		}
		part = sge[i].length - offset;
		if (part > len)
			part = len;
		piece[n].base = mr_translate(pd, sge[i].lkey, sge[i].addr + offset, part, access);
		if (piece[n].base == NULL)
			return -EFAULT;
		piece[n++].len = part;
		len -= part;
		offset = 0;
	}
	return len > 0 ? -EFAULT : n;
}

static int find_pieces(const struct rnic_pd *pd, const struct placement *place, size_t len,
	struct piece piece[RNIC_MAX_SGE])
{
	switch (place->kind) {
	case PLACE_LIST:
		return resolve(pd, place->sge, place->n_sge, place->offset, len,
			IBV_ACCESS_LOCAL_WRITE, piece);
	case PLACE_REMOTE:
		piece[0].base = mr_translate_remote(
			place->qp, place->rkey, place->va, len, IBV_ACCESS_REMOTE_WRITE);
		piece[0].len = len;
		return piece[0].base == NULL ? -EFAULT : 1;
	default:
		return 0;
	}
}

int place_check(const struct rnic_pd *pd, const struct placement *place, size_t len)
{
	struct piece piece[RNIC_MAX_SGE];
	int n = len == 0 ? 0 : find_pieces(pd, place, len, piece);

	return n < 0 ? n : 0;
}

uint8_t *place_piece(const struct rnic_pd *pd, const struct placement *place, size_t len)
{
	struct piece piece[RNIC_MAX_SGE];

	return len > 0 && find_pieces(pd, place, len, piece) == 1 ? piece[0].base : NULL;
}

/* As NICs write: the last word after all before it. memcpy stores in an order of its own, and
 * programs that wait for a message's last byte in memory (perftest, eager protocols of MPI) read
 * the rest. */
static void last_word_last(uint8_t *to, const uint8_t *from, size_t len)
{
	size_t word = ((uintptr_t)to + len - 1) % sizeof(uint64_t) + 1;
	size_t before = len > word ? len - word : 0;

	memcpy(to, from, before);
	atomic_thread_fence(memory_order_release);
	if (len - before == sizeof(uint64_t)) {
		memcpy(to + before, from + before, sizeof(uint64_t)); /* one store */
		return;
	}
	memcpy(to + before, from + before, len - before - 1);
	atomic_thread_fence(memory_order_release);
	to[len - 1] = from[len - 1];
}

int place_payload(
	const struct rnic_pd *pd, const struct placement *place, const uint8_t *payload, size_t len)
{
	struct piece piece[RNIC_MAX_SGE];
	int n = len == 0 ? 0 : find_pieces(pd, place, len, piece);

	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		last_word_last(piece[i].base, payload, piece[i].len);
		payload += piece[i].len;
	}
	return 0;
}

int gather_payload(const struct rnic_pd *pd, const struct send_wqe *wqe, uint64_t offset,
	size_t len, struct rnic_frame *frame)
{
	struct piece piece[RNIC_MAX_SGE];
	int n;

	frame->n_iov = 0;
	if (len == 0)
		return 0;
	if (wqe->inlined) {
		frame->iov[0].base = (const uint8_t *)wqe->sge + offset;
		frame->iov[0].len = len;
		frame->n_iov = 1;
		return 0;
	}
	n = resolve(pd, wqe->sge, wqe->n_sge, offset, len, 0, piece);
	if (n < 0)
		return n;
	for (int i = 0; i < n; i++) {
		frame->iov[i].base = piece[i].base;
		frame->iov[i].len = piece[i].len;
	}
	frame->n_iov = (uint16_t)n;
	return 0;
}
