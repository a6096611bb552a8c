/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator that has failed is made anew in place: by the file's tree, and by another one that
 * a manager (this file, --wrap) finds the second time. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/ccl/comm.h"
#include "lib/ccl/managed.h"
#include "tests/unit/ccl/setup_job.h"

enum { COUNT = 3000, STAGED = (COUNT * 4 + 1023) / 1024, EPOCH = 100 };

/* What each rank found: checked by the one thread that may. */
static struct found {
	int32_t buf[COUNT], plain[COUNT];
	int early, done, lost, of_before, renewed, again, wrong, deregistered, registered;
	int dropped, dropped_again, dropped_unknown;
	int refuse; /* so many times to register buf */
	uint64_t staged;
	unsigned joined;
	char err[CCL_ERR_LEN], renew_err[CCL_ERR_LEN];
} found[N];

static int add_up(struct ccl_comm *comm, int32_t *buf, unsigned rank, int round)
{
	int rc, wrong = 0;

	for (int i = 0; i < COUNT; i++)
		buf[i] = i + round + (int)rank;
	rc = ccl_allreduce(comm, buf, buf, COUNT, REDUCE_INT32, REDUCE_SUM);
	for (int i = 0; i < COUNT; i++)
		wrong += buf[i] != N * (i + round) + 6;
	return rc ? rc : wrong;
}

/* A collective that is done, one that is not, and the groups fail. */
static void fail_and_renew(unsigned rank, struct ccl_comm *comm)
{
	struct found *f = &found[rank];
	struct ccl_req done, lost;
	struct ccl_info info;

	f->early = ccl_comm_renew(comm, f->err);
	f->registered = ccl_register(comm, f->buf, sizeof(f->buf));
	f->done = ccl_ibarrier(comm, &done);
	if (!f->done)
		f->done = ccl_wait(comm, done, UINT64_MAX);
	f->lost = rank ? 0 : ccl_ibarrier(comm, &lost);
	ccl_fail(comm, -EREMOTEIO, "the group has failed");
	f->renewed = ccl_comm_renew(comm, f->err);
	if (f->renewed)
		return;
	f->of_before = ccl_test(comm, done);
	f->lost = rank ? -ECANCELED : ccl_test(comm, lost);
	f->wrong = add_up(comm, f->buf, rank, 7) + add_up(comm, f->plain, rank, 8);
	ccl_query(comm, &info);
	f->staged = info.staged_receives;
	f->again = ccl_register(comm, f->buf, 4);
	f->deregistered = ccl_deregister(comm, f->buf);
}

static void all_renewed(const struct job *j)
{
	all_worked(j);
	for (unsigned i = 0; i < N; i++) {
		const struct found *f = &found[i];

		if (f->renewed)
			fail_msg("rank %u: %s", i, f->err);
		assert_int_equal(f->early, -EINVAL);
		assert_int_equal(f->done, 0);
		assert_int_equal(f->of_before, -ECANCELED);
		assert_int_equal(f->lost, -ECANCELED);
		assert_int_equal(f->wrong, 0);
		assert_int_equal(f->registered, 0);
		assert_int_equal(f->again, -EEXIST);
		assert_int_equal(f->deregistered, 0);
		assert_string_equal(j->rank[i].failure, "");
	}
}

static void by_the_file(void **state)
{
	struct job j;

	(void)state;
	memset(found, 0, sizeof(found));
	prepare(&j, true, 20000);
	j.after = fail_and_renew;
	run(&j);
	all_renewed(&j);
	for (unsigned s = 0; s < 3; s++) {
		assert_int_equal(j.sw[s].creates, 2);
		assert_int_equal(j.sw[s].deletes, 2);
	}
	/* What the program has registered it need not register again: of two buffers of as many
	 * messages the one is staged. */
	for (unsigned i = 0; i < N; i++)
		assert_int_equal(found[i].staged, STAGED);
	finish(&j);
}

/* ---- by a manager ---- */

static struct job *managed;
static unsigned refuse; /* so many joins of rank 0 */

int __real_ccl_managed_join(struct ccl_group *own, unsigned rank, unsigned mtu,
	const struct ccl_ability *able, struct ccl_managed **out, char why[CCL_ERR_LEN],
	char err[CCL_ERR_LEN]);
int __wrap_ccl_managed_join(struct ccl_group *own, unsigned rank, unsigned mtu,
	const struct ccl_ability *able, struct ccl_managed **out, char why[CCL_ERR_LEN],
	char err[CCL_ERR_LEN]);
int __wrap_ccl_managed_join(struct ccl_group *own, unsigned rank, unsigned mtu,
	const struct ccl_ability *able, struct ccl_managed **out, char why[CCL_ERR_LEN],
	char err[CCL_ERR_LEN])
{
	const unsigned at = found[rank].joined ? 2 : 0;
	json_t *tree;
	int rc;

	(void)mtu, (void)able;
	if (found[rank].joined && rank == 0 && refuse) {
		refuse--;
		snprintf(err, CCL_ERR_LEN, "the manager is away");
		return -ENOENT;
	}
	tree = json_pack("[{s:s,s:s,s:s,s:[{s:i,s:s},{s:i,s:s},{s:i,s:s},{s:i,s:s}]}]", "name",
		at ? "s2" : "s0", "socket", managed->sw[at].path, "ip",
		at ? "10.77.255.3" : "10.77.255.1", "children", "rank", 0, "port", "h0", "rank", 1,
		"port", "h1", "rank", 2, "port", "h2", "rank", 3, "port", "h3");
	rc = ccl_group_take_plan(own, "II", 4, 8, tree, err);
	json_decref(tree);
	own->epoch = EPOCH + found[rank].joined++;
	snprintf(why, CCL_ERR_LEN, "epoch %llu", (unsigned long long)own->epoch);
	*out = (struct ccl_managed *)&found[rank];
	return rc;
}

int __wrap_ccl_managed_ready(struct ccl_managed *m, char err[CCL_ERR_LEN]);
int __wrap_ccl_managed_ready(struct ccl_managed *m, char err[CCL_ERR_LEN])
{
	(void)m, (void)err;
	return 0;
}

int __wrap_ccl_managed_watch(struct ccl_managed *m, char why[CCL_ERR_LEN]);
int __wrap_ccl_managed_watch(struct ccl_managed *m, char why[CCL_ERR_LEN])
{
	(void)m, (void)why;
	return 0;
}

void __wrap_ccl_managed_leave(struct ccl_managed *m, bool done);
void __wrap_ccl_managed_leave(struct ccl_managed *m, bool done)
{
	(void)m, (void)done;
}

static void prepare_managed(struct job *j, unsigned timeout_ms)
{
	memset(found, 0, sizeof(found));
	prepare(j, true, timeout_ms);
	managed = j;
	for (unsigned i = 0; i < N; i++) {
		ccl_group_drop_tree(j->group[i]);
		snprintf(j->group[i]->manager, sizeof(j->group[i]->manager), "/nobody");
	}
}

static uint64_t epoch_of(const json_t *created)
{
	const json_t *e = json_object_get(created, "epoch");
	const char *text = json_string_value(e);

	return text ? strtoull(text, NULL, 10) : (uint64_t)json_integer_value(e);
}

static void by_another_tree(void **state)
{
	struct job j;

	(void)state;
	prepare_managed(&j, 20000);
	j.after = fail_and_renew;
	run(&j);
	all_renewed(&j);
	assert_int_equal(j.sw[0].creates, 1);
	assert_int_equal(j.sw[0].deletes, 1);
	assert_int_equal(epoch_of(j.sw[0].created), EPOCH);
	assert_int_equal(j.sw[1].creates, 0);
	assert_int_equal(j.sw[2].creates, 1);
	assert_int_equal(j.sw[2].deletes, 1);
	assert_int_equal(epoch_of(j.sw[2].created), EPOCH + 1);
	for (unsigned i = 0; i < N; i++) {
		assert_int_equal(j.rank[i].info.remote_qpn & ~0xfffu, 0x1000);
		assert_int_equal(j.rank[i].ended.remote_qpn & ~0xfffu, 0x3000);
		assert_non_null(strstr(j.rank[i].ended.selection, "epoch 101"));
	}
	finish(&j);
}

/* The first time it does not come to be: whoever tries has the reason, and may try again. What is
 * deregistered meanwhile is not touched any more. */
static void renew_until(unsigned rank, struct ccl_comm *comm)
{
	struct found *f = &found[rank];
	struct ccl_info info;
	struct ccl_req req;

	f->registered = ccl_register(comm, f->buf, sizeof(f->buf));
	if (!f->registered)
		f->registered = ccl_register(comm, f->plain, sizeof(f->plain));
	ccl_fail(comm, -EREMOTEIO, "the group has failed");
	f->renewed = ccl_comm_renew(comm, f->err);
	f->early = f->renewed;
	f->dropped = ccl_deregister(comm, f->plain);
	f->dropped_again = ccl_deregister(comm, f->plain);
	f->dropped_unknown = ccl_deregister(comm, NULL);
	f->lost = ccl_ibarrier(comm, &req);
	f->again = ccl_register(comm, f->plain, 4);
	ccl_query(comm, &info);
	for (unsigned i = 0; i < 50 && f->renewed; i++)
		f->renewed = ccl_comm_renew(comm, f->err);
	if (!f->renewed)
		f->wrong = add_up(comm, f->buf, rank, 3) + add_up(comm, f->plain, rank, 4);
	ccl_query(comm, &info);
	f->staged = info.staged_receives;
	f->deregistered = ccl_deregister(comm, f->buf);
}

static void at_the_second_try(void **state)
{
	struct job j;

	(void)state;
	prepare_managed(&j, 3000);
	refuse = 1;
	j.after = renew_until;
	run(&j);
	all_worked(&j);
	for (unsigned i = 0; i < N; i++) {
		const struct found *f = &found[i];

		if (f->renewed)
			fail_msg("rank %u: %s", i, f->err);
		assert_true(f->early < 0);
		assert_int_equal(f->lost, f->early);
		assert_int_equal(f->again, f->early);
		assert_int_equal(f->registered, 0);
		assert_int_equal(f->dropped, 0);
		assert_int_equal(f->dropped_again, -ENOENT);
		assert_int_equal(f->dropped_unknown, -ENOENT);
		assert_int_equal(f->wrong, 0);
		assert_int_equal(f->staged, STAGED); /* the one that is registered is not */
		assert_int_equal(f->deregistered, 0);
	}
	finish(&j);
}

/* ---- a buffer cannot be registered again ---- */

int __real_ccl_register(struct ccl_comm *comm, void *buf, size_t len);
int __wrap_ccl_register(struct ccl_comm *comm, void *buf, size_t len);
int __wrap_ccl_register(struct ccl_comm *comm, void *buf, size_t len)
{
	struct found *f = &found[comm->rank];

	if (f->refuse && buf == f->buf) {
		f->refuse--;
		return -ENOMEM;
	}
	return __real_ccl_register(comm, buf, len);
}

static pthread_barrier_t noticed;

/* At rank 1. The others, who are renewed, hear of it in their next collective, before it tries
 * again. */
static void renew_with_buffers(unsigned rank, struct ccl_comm *comm)
{
	struct found *f = &found[rank];
	struct ccl_info info;

	f->registered = ccl_register(comm, f->buf, sizeof(f->buf));
	if (!f->registered)
		f->registered = ccl_register(comm, f->plain, sizeof(f->plain));
	ccl_fail(comm, -EREMOTEIO, "the group has failed");
	f->refuse = rank == 1;
	f->early = ccl_comm_renew(comm, f->err);
	f->lost = f->early ? f->early : add_up(comm, f->buf, rank, 2);
	snprintf(f->err, sizeof(f->err), "%s", ccl_error(comm));
	pthread_barrier_wait(&noticed);
	f->renewed = ccl_comm_renew(comm, f->renew_err);
	if (f->renewed)
		return;
	f->wrong = add_up(comm, f->buf, rank, 3) + add_up(comm, f->plain, rank, 4);
	ccl_query(comm, &info);
	f->staged = info.staged_receives;
	f->again = ccl_register(comm, f->buf, 4);
	f->deregistered = ccl_deregister(comm, f->buf);
}

static void without_a_buffer(void **state)
{
	struct job j;

	(void)state;
	memset(found, 0, sizeof(found));
	prepare(&j, true, 20000);
	pthread_barrier_init(&noticed, NULL, N);
	j.after = renew_with_buffers;
	run(&j);
	pthread_barrier_destroy(&noticed);
	all_worked(&j);
	for (unsigned i = 0; i < N; i++) {
		const struct found *f = &found[i];

		assert_int_equal(f->registered, 0);
		assert_int_equal(f->early, i == 1 ? -ENOMEM : 0);
		assert_int_equal(f->lost, i == 1 ? -ENOMEM : -ECONNABORTED);
		if (!strstr(f->err, "rank 1: a registered buffer of 12000 bytes: "))
			fail_msg("rank %u: %s", i, f->err);
		if (f->renewed)
			fail_msg("rank %u: %s", i, f->renew_err);
		assert_int_equal(f->wrong, 0);
		assert_int_equal(f->staged, 0);
		assert_int_equal(f->again, -EEXIST);
		assert_int_equal(f->deregistered, 0);
	}
	finish(&j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(by_the_file),
		cmocka_unit_test(by_another_tree), cmocka_unit_test(at_the_second_try),
		cmocka_unit_test(without_a_buffer)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
