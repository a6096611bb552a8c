/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/ccl/task.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 0x5a };

static bool has_send(const struct task *t, unsigned r)
{
	return t->kind != CCL_BROADCAST || r == t->root;
}

static bool has_recv(const struct task *t, unsigned r)
{
	return t->kind != CCL_REDUCE || r == t->root;
}

static uint64_t draw(uint64_t *rng)
{
	uint64_t z = *rng += 0x9e3779b97f4a7c15; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

unsigned task_random(uint64_t *rng, unsigned n)
{
	return (unsigned)(draw(rng) % n);
}

/* Sizes around those of packets and messages, small ones, and any. */
static size_t some_bytes(uint64_t *rng, size_t max)
{
	static const size_t near[] = {0, 1, 8, 256, 512, 1024, 2048, 4096};
	const unsigned dice = task_random(rng, 4);
	size_t n;

	if (dice == 0)
		return task_random(rng, (unsigned)max + 1);
	n = near[task_random(rng, sizeof(near) / sizeof(near[0]))];
	if (dice == 1)
		n *= 1 + task_random(rng, 8);
	if (dice == 2)
		n += task_random(rng, 17);
	return n < max ? n : max;
}

static void choose(struct task *t, uint64_t *rng, int kind, size_t max)
{
	static const enum reduce_dtype types[] = {
		REDUCE_INT32, REDUCE_INT8, REDUCE_INT64, REDUCE_BYTES};
	static const enum reduce_op ops[] = {REDUCE_SUM, REDUCE_MIN, REDUCE_MAX};
	const bool moves = kind == CCL_BROADCAST || kind == CCL_ALLGATHER;

	t->kind = (enum ccl_collective)kind;
	t->root = task_random(rng, t->n_ranks);
	t->in_place = task_random(rng, 2);
	t->registered = task_random(rng, 2);
	do {
		t->dtype = types[task_random(rng, 4)];
		t->op = ops[task_random(rng, 3)];
	} while (!moves && !reduce_kernel(t->op, t->dtype));
	t->count = kind == CCL_BARRIER ? 0 : some_bytes(rng, max) / reduce_size(t->dtype);
}

static void set_sizes(struct task *t)
{
	t->size = t->count * reduce_size(t->dtype);
	t->send_len = t->size * (t->kind == CCL_REDUCE_SCATTER ? t->n_ranks : 1);
	t->recv_len = t->size * (t->kind == CCL_ALLGATHER ? t->n_ranks : 1);
}

static uint8_t *filled(uint64_t *rng, size_t len)
{
	uint8_t *p = malloc(len + 1);

	for (size_t i = 0; i < len; i += 8) {
		const uint64_t some = draw(rng);

		memcpy(p + i, &some, len - i < 8 ? len - i : 8);
	}
	p[len] = GUARD;
	return p;
}

static void make_buffers(struct task *t, uint64_t *rng)
{
	for (unsigned r = 0; r < t->n_ranks; r++) {
		uint8_t *big;

		t->input[r] = filled(rng, t->send_len);
		if (!t->in_place || (t->kind == CCL_REDUCE && r != t->root)) {
			t->send[r] = filled(rng, t->send_len);
			t->recv[r] = filled(rng, t->recv_len);
		} else if (t->send_len >= t->recv_len) {
			big = t->send[r] = filled(rng, t->send_len);
			t->recv[r] = t->kind == CCL_REDUCE_SCATTER ? big + r * t->size : big;
		} else {
			big = t->recv[r] = filled(rng, t->recv_len);
			t->send[r] = big + r * t->size;
		}
		if (has_send(t, r))
			memcpy(t->send[r], t->input[r], t->send_len);
	}
}

static bool apart(const struct task *t, unsigned r)
{
	return t->send[r] + t->send_len <= t->recv[r] || t->recv[r] + t->recv_len <= t->send[r];
}

void task_free(struct task *t)
{
	for (unsigned r = 0; r < t->n_ranks; r++) {
		uint8_t *low = t->send[r] < t->recv[r] ? t->send[r] : t->recv[r];
		const bool two = !t->in_place || (t->kind == CCL_REDUCE && r != t->root);

		free(two ? t->send[r] : low);
		if (two)
			free(t->recv[r]);
		free(t->input[r]);
	}
}

int task_register(const struct task *t, struct ccl_comm *const *comm, bool on)
{
	int rc = 0;

	for (unsigned r = 0; t->registered && r < t->n_ranks; r++) {
		uint8_t *buf[2] = {t->send[r], t->recv[r]};
		const size_t len[2] = {t->send_len, t->recv_len};

		for (unsigned i = 0; i < 2 && rc == 0; i++) {
			if (len[i] == 0 || (!apart(t, r) && len[i] < len[!i]) ||
				(i && buf[0] == buf[1] && len[0] == len[1]))
				continue;
			rc = on ? ccl_register(comm[r], buf[i], len[i])
				: ccl_deregister(comm[r], buf[i]);
		}
	}
	return rc;
}

int task_start(struct task *t, struct ccl_comm *const *comm, unsigned r)
{
	const void *send = has_send(t, r) ? t->send[r] : NULL;
	void *recv = has_recv(t, r) ? t->recv[r] : NULL;

	switch (t->kind) {
	case CCL_ALLREDUCE:
		return ccl_iallreduce(comm[r], send, recv, t->count, t->dtype, t->op, &t->req[r]);
	case CCL_REDUCE:
		return ccl_ireduce(
			comm[r], send, recv, t->count, t->dtype, t->op, t->root, &t->req[r]);
	case CCL_BROADCAST:
		return ccl_ibroadcast(comm[r], send, recv, t->count, t->dtype, t->root, &t->req[r]);
	case CCL_REDUCE_SCATTER:
		return ccl_ireduce_scatter(
			comm[r], send, recv, t->count, t->dtype, t->op, &t->req[r]);
	case CCL_ALLGATHER:
		return ccl_iallgather(comm[r], send, recv, t->count, t->dtype, &t->req[r]);
	default:
		return ccl_ibarrier(comm[r], &t->req[r]);
	}
}

/* op over all ranks of their inputs at an offset. */
static void reduced(const struct task *t, size_t at, uint8_t *out)
{
	memcpy(out, t->input[0] + at, t->size);
	for (unsigned r = 1; r < t->n_ranks; r++)
		reduce_kernel(t->op, t->dtype)(out, t->input[r] + at, t->size);
}

/* What rank r must have received. */
static void expected(const struct task *t, unsigned r, uint8_t *want)
{
	if (t->kind == CCL_BROADCAST)
		memcpy(want, t->input[t->root], t->size);
	else if (t->kind == CCL_ALLGATHER)
		for (unsigned i = 0; i < t->n_ranks; i++)
			memcpy(want + i * t->size, t->input[i], t->size);
	else
		reduced(t, t->kind == CCL_REDUCE_SCATTER ? r * t->size : 0, want);
}

static const char *wrong_at(const struct task *t, unsigned r, uint8_t *want)
{
	if (!has_recv(t, r) || t->size == 0)
		return NULL;
	expected(t, r, want);
	if (memcmp(want, t->recv[r], t->recv_len) != 0)
		return "result";
	if (!apart(t, r))
		return NULL;
	if (t->recv[r][t->recv_len] != GUARD)
		return "byte behind the result";
	return has_send(t, r) && memcmp(t->send[r], t->input[r], t->send_len) ? "send buffer"
									      : NULL;
}

bool task_right_at(const struct task *t, unsigned r, char *why, size_t cap)
{
	uint8_t *want = malloc(t->recv_len + 1);
	const char *what = wrong_at(t, r, want);

	if (what)
		snprintf(why, cap, "%s: wrong %s at rank %u: %s %s of %zu bytes, root %u%s%s",
			ccl_collective_name(t->kind), what, r, reduce_op_name(t->op),
			reduce_dtype_name(t->dtype), t->size, t->root,
			t->in_place ? ", in place" : "", t->registered ? ", registered" : "");
	free(want);
	return !what;
}

bool task_right(const struct task *t, char *why, size_t cap)
{
	unsigned r = 0;

	while (r < t->n_ranks && task_right_at(t, r, why, cap))
		r++;
	return r == t->n_ranks;
}

bool task_done(const struct task *t, struct ccl_comm *const *comm)
{
	unsigned done = 0;

	for (unsigned r = 0; r < t->n_ranks; r++)
		done += ccl_test(comm[r], t->req[r]) == 1;
	return done == t->n_ranks;
}

void task_make(struct task *t, uint64_t *rng, unsigned n_ranks, int kind, size_t max_bytes)
{
	*t = (struct task){.n_ranks = n_ranks};
	choose(t, rng, kind < 0 ? (int)task_random(rng, CCL_N_COLLECTIVES) : kind, max_bytes);
	set_sizes(t);
	make_buffers(t, rng);
}

void task_make_exact(struct task *t, uint64_t *rng, unsigned n_ranks, enum ccl_collective kind,
	enum reduce_op op, uint64_t count, unsigned root, bool in_place)
{
	*t = (struct task){.n_ranks = n_ranks,
		.kind = kind,
		.dtype = REDUCE_INT32,
		.op = op,
		.root = root,
		.count = kind == CCL_BARRIER ? 0 : count,
		.in_place = in_place};
	set_sizes(t);
	make_buffers(t, rng);
}
