/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects that change while they are in use: completion queues that are resized. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/unit/verbs/fabric.h"

enum { BUF = 1 << 14, LEN = 3000 };

struct pair {
	struct fabric *f;
	struct endpoint a, b;
};

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));

	p->f = fabric_create();
	fabric_open(p->f, false);
	endpoint_create(&p->a, p->f->end[0].context, BUF, false);
	endpoint_create(&p->b, p->f->end[1].context, BUF, false);
	endpoints_connect(&p->a, &p->b, 1);
	for (unsigned i = 0; i < BUF; i++)
		p->a.buf[i] = (uint8_t)(i * 5 + i / 253);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct pair *p = *state;

	endpoint_destroy(&p->a);
	endpoint_destroy(&p->b);
	fabric_destroy(p->f);
	free(p);
	return 0;
}

static void run(struct pair *p)
{
	for (unsigned i = 0; i < 200; i++)
		fabric_step(p->f);
}

static void resize_keeps_completions(void **state)
{
	enum { N = 5 };
	struct pair *p = *state;
	struct ibv_wc wc;

	for (unsigned round = 0; round < 40; round++) { /* the ring's indices go round */
		for (uint64_t i = 0; i < N; i++) {
			assert_int_equal(post_recv(&p->b, i, 0, LEN), 0);
			assert_int_equal(post_send(&p->a, 100 + i, IBV_WR_SEND, 0, LEN), 0);
		}
		run(p);
		assert_int_equal(ibv_resize_cq(p->b.cq, N - 1), EINVAL);
		assert_int_equal(ibv_resize_cq(p->b.cq, N), 0);
		assert_in_range(p->b.cq->cqe, N, 16);
		assert_int_equal(ibv_resize_cq(p->b.cq, 1000), 0);
		assert_in_range(p->b.cq->cqe, 1000, 1 << 11);
		for (uint64_t i = 0; i < N; i++) {
			wait_wc(&p->b, &wc);
			assert_int_equal(wc.wr_id, i);
			assert_int_equal(wc.byte_len, LEN);
			wait_wc(&p->a, &wc);
			assert_int_equal(wc.wr_id, 100 + i);
		}
		assert_int_equal(ibv_poll_cq(p->b.cq, 1, &wc), 0);
		assert_int_equal(ibv_resize_cq(p->b.cq, 8), 0);
	}
	assert_int_equal(ibv_resize_cq(p->b.cq, 0), EINVAL);
	assert_int_equal(ibv_resize_cq(p->b.cq, 1 << 20), EINVAL);
}

/* Programs duplicate it, and close the copy. */
static void cmd_fd_is_a_descriptor(void **state)
{
	struct pair *p = *state;
	int fd = dup(p->a.context->cmd_fd);

	assert_in_range(fd, 3, 1 << 20);
	assert_int_equal(close(fd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(resize_keeps_completions, setup, teardown),
		cmocka_unit_test_setup_teardown(cmd_fd_is_a_descriptor, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
