/* SPDX-License-Identifier: BSD-3-Clause */
/* What is promised, in an etcd: one leader, whose writes are fenced; answers that are slow, lost,
 * or make no sense. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ctrl/manager/store.h"
#include "tests/unit/manager/fake_etcd.h"

static char url[128];
static struct store store;
static char err[STORE_ERR_LEN];

/* Stands, but that it may leap at one of the next times it is looked at. */
static uint64_t clock_at;
static unsigned leap_at;

static uint64_t looked(void)
{
	if (leap_at && --leap_at == 0)
		clock_at += 3600000000000;
	return clock_at;
}

/* So long for an answer: one that does not come takes so long unless it is broken off. */
enum { LONG_MS = 60000, SHORT_MS = 100 };

static int opened(struct store *out, const char *name, unsigned ttl_s)
{
	const struct store_etcd_conf conf = {name, ttl_s, LONG_MS, looked, NULL};

	return store_etcd_open(url, &conf, out, err);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/fab", fake_etcd_start());
	assert_int_equal(opened(&store, "one", 3600), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	store.close(store.arg);
	fake_etcd_stop();
	return 0;
}

static int put(const char *key, const char *value)
{
	return store.put(store.arg, key, value);
}

static int commit(void)
{
	return store.commit(store.arg);
}

struct seen {
	unsigned n, stop_at;
	char last[64];
};

static int see(void *to, const char *key, const char *value)
{
	struct seen *s = to;

	assert_string_equal(value, "v");
	assert_true(strcmp(s->last, key) < 0); /* once each */
	snprintf(s->last, sizeof(s->last), "%s", key);
	return ++s->n == s->stop_at ? -ERANGE : 0;
}

static void kept(void **state)
{
	struct seen s = {0};
	char key[32];

	(void)state;
	assert_string_equal(fake_etcd_value("fab/leader"), "one");
	assert_string_equal(fake_etcd_value("fab/version"), "1");
	assert_int_equal(commit(), 0); /* nothing to do */
	put("gone", "v");
	for (unsigned i = 0; i < 600; i++) { /* several pages, several transactions */
		snprintf(key, sizeof(key), "run/%04u", i);
		put(key, "v");
	}
	assert_string_equal(fake_etcd_value("fab/kept/gone"), "");
	assert_int_equal(commit(), 0);
	put("gone", NULL);
	assert_int_equal(commit(), 0);
	fake_etcd_put("fab2/kept/x", "another fabric's");
	assert_int_equal(store.each(store.arg, see, &s), 0);
	assert_int_equal(s.n, 600);
	s = (struct seen){.stop_at = 300};
	assert_int_equal(store.each(store.arg, see, &s), -ERANGE);
	assert_int_equal(s.n, 300);
}

/* A key that is put twice is written once. */
static void put_twice(void **state)
{
	(void)state;
	put("epoch", "1");
	put("a", "v");
	put("epoch", "2");
	put("a", NULL);
	assert_int_equal(commit(), 0);
	assert_string_equal(fake_etcd_value("fab/kept/epoch"), "2");
	assert_string_equal(fake_etcd_value("fab/kept/a"), "");
}

static void put_pairs(void)
{
	char key[32];

	for (unsigned i = 0; i < 50; i++) {
		snprintf(key, sizeof(key), "run/%u", i);
		put(key, "v");
		snprintf(key, sizeof(key), "state/%u", i);
		put(key, "v");
	}
}

/* What belongs together is in one transaction. */
static void not_parted(void **state)
{
	const unsigned before = fake_etcd_count();

	(void)state;
	put_pairs();
	assert_int_equal(commit(), 0);
	assert_int_equal(fake_etcd_count(), before + 1);
	put("x", "v"); /* the last pair goes beyond the limit rather than be parted */
	put_pairs();
	assert_int_equal(commit(), 0);
	assert_int_equal(fake_etcd_count(), before + 2);
}

static void one_leads(void **state)
{
	struct store two;

	(void)state;
	assert_int_equal(opened(&two, "two", 3600), -EBUSY);
	assert_string_equal(err, "store: etcd: manager one leads");
	assert_int_equal(store.alive(store.arg), 0);
	put("a", "v");
	assert_int_equal(commit(), 0);
	/* One is cut off, its lease runs out, two takes over: one writes nothing more. */
	fake_etcd_expire();
	assert_int_equal(opened(&two, "two", 3600), 0);
	put("a", "w");
	assert_int_equal(commit(), -ESTALE);
	assert_string_equal(fake_etcd_value("fab/kept/a"), "v");
	two.put(two.arg, "a", "x");
	assert_int_equal(two.commit(two.arg), 0);
	assert_string_equal(fake_etcd_value("fab/kept/a"), "x");
	two.close(two.arg);
	assert_string_equal(fake_etcd_value("fab/leader"), ""); /* at once */
}

/* By our own clock, too: who has not been heard of for the lease's time is not the owner. */
static void lease_runs_out(void **state)
{
	struct store two;

	(void)state;
	store.close(store.arg);
	assert_int_equal(opened(&two, "two", 0), 0);
	assert_int_equal(two.alive(two.arg), -ESTALE);
	two.close(two.arg);
	assert_int_equal(opened(&store, "one", 3600), 0);
}

/* What the leader may have been stopped in: a look, a commit. He comes back, and does nothing. */
static void stopped(void **state)
{
	(void)state;
	clock_at += 3600000000000 / 2; /* it is time to keep it alive */
	leap_at = 2;
	assert_int_equal(store.alive(store.arg), -ESTALE);
	store.close(store.arg);
	assert_int_equal(opened(&store, "one", 3600), 0);
	put("a", "v");
	leap_at = 1;
	assert_int_equal(commit(), -ESTALE);
}

/* An operator deletes the key: somebody else may lead now. */
static void key_deleted(void **state)
{
	(void)state;
	clock_at += 3600000000000 / 2;
	assert_int_equal(store.alive(store.arg), 0);
	fake_etcd_remove("fab/leader");
	assert_int_equal(store.alive(store.arg), 0); /* it was looked at just now */
	clock_at += 3600000000000 / 2;
	assert_int_equal(store.alive(store.arg), -ESTALE);
}

/* A copy that was on its way for long changes nothing, whether or not another was done. */
static void late(void **state)
{
	(void)state;
	put("a", "old");
	put("b", "old");
	fake_etcd_do(FAKE_LATE, "/txn", 1);
	assert_int_equal(commit(), 0); /* the second copy */
	put("a", "new");
	put("b", NULL);
	assert_int_equal(commit(), 0);
	fake_etcd_late();
	assert_string_equal(fake_etcd_value("fab/kept/a"), "new");
	assert_string_equal(fake_etcd_value("fab/kept/b"), "");
	put("c", "v");
	assert_int_equal(commit(), 0);
}

/* Of the transaction by which it leads, too. */
static void claims_twice(void **state)
{
	(void)state;
	store.close(store.arg);
	fake_etcd_do(FAKE_LOST, "/txn", 1);
	assert_int_equal(opened(&store, "one", 3600), 0);
	put("a", "v");
	assert_int_equal(commit(), 0);
}

static void lost_and_slow(void **state)
{
	static const enum fake_mischief once[] = {
		FAKE_CUT, FAKE_LOST, FAKE_NONSENSE, FAKE_LIST, FAKE_ERROR, FAKE_REFUSES};

	(void)state;
	for (unsigned i = 0; i < sizeof(once) / sizeof(once[0]); i++) {
		char value[8];

		snprintf(value, sizeof(value), "%u", i);
		put("a", value);
		if (once[i] != FAKE_REFUSES)
			fake_etcd_do(once[i], "/txn", 1); /* it is asked again */
		assert_int_equal(commit(), 0);
		assert_string_equal(fake_etcd_value("fab/kept/a"), value);
		fake_etcd_do(once[i], "/txn", 2); /* and then no more */
		put("b", value);
		assert_int_equal(commit(), -EIO);
		fake_etcd_do(FAKE_GOOD, "", 0);
		put("b", value); /* nobody knows what is there */
		assert_int_equal(commit(), -EIO);
		store.close(store.arg);
		assert_int_equal(opened(&store, "one", 3600), 0);
	}
	fake_etcd_do(FAKE_EMPTY, "/txn", 1);
	put("a", "no");
	assert_int_equal(commit(), -ESTALE); /* it does not say that it was done */
	assert_string_equal(fake_etcd_value("fab/kept/a"), "5");
}

static int take_any(void *to, const char *key, const char *value)
{
	(void)to, (void)key, (void)value;
	return 0;
}

static void opening(void **state)
{
	static const struct {
		enum fake_mischief what;
		const char *path;
		int rc;
		const char *says;
	} t[] = {
		{FAKE_NONSENSE, "/range", -EIO, "/v3/kv/range: its answer makes no sense"},
		{FAKE_ERROR, "/range", -EIO, "/v3/kv/range: HTTP 503"},
		{FAKE_REFUSES, "/grant", -EIO, "/v3/lease/grant: HTTP 400"},
		{FAKE_EMPTY, "/grant", -EIO, "a lease without a number"},
		{FAKE_EMPTY, "/txn", -EBUSY, "another manager was faster"},
	};
	struct store two;

	(void)state;
	store.close(store.arg);
	for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		fake_etcd_do(t[i].what, t[i].path, 2);
		assert_int_equal(opened(&two, "two", 3600), t[i].rc);
		if (!strstr(err, t[i].says))
			fail_msg("\"%s\" lacks \"%s\"", err, t[i].says);
		fake_etcd_do(FAKE_GOOD, "", 0);
	}
	fake_etcd_put("fab/version", "2");
	assert_int_equal(opened(&two, "two", 3600), -EPROTONOSUPPORT);
	assert_non_null(strstr(err, "has version 2, this program reads and writes 1"));
	fake_etcd_put("fab/version", "1");
	assert_int_equal(opened(&store, "one", 3600), 0);
	fake_etcd_put("fab/kept/", "v");
	assert_int_equal(store.each(store.arg, take_any, NULL), -EBADMSG);
}

/* However long it takes to be asked, it never answers. */
static void silent(void **state)
{
	const struct store_etcd_conf conf = {"two", 3600, SHORT_MS, looked, NULL};
	struct store two;

	(void)state;
	fake_etcd_do(FAKE_SILENT, "", UINT_MAX);
	assert_int_equal(store_etcd_open(url, &conf, &two, err), -EIO);
	assert_non_null(strstr(err, "Timeout was reached"));
	fake_etcd_do(FAKE_GOOD, "", 0);
}

static void urls(void **state)
{
	static const char *const bad[] = {"", "127.0.0.1:2379", "ftp://h:1",
		"http://h:1/a,http://h:2", "http://h:1/", "http://", "http:///fab",
		"http://h:1/a/b", "http://h:1/a?x",
		"http://a,http://a,http://a,http://a,http://a,http://a,http://a,http://a,http://a"};

	(void)state;
	snprintf(err, sizeof(err), "said before");
	assert_int_equal(store_etcd_check("http://h:2379", NULL, err), 0);
	assert_int_equal(store_etcd_check("https://a:2379,http://[::1]:2379/fab", NULL, err), 0);
	assert_int_equal(store_etcd_check(NULL, NULL, err), 0);
	assert_string_equal(err, "said before");
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(store_etcd_check(bad[i], NULL, err), -EINVAL);
	assert_int_equal(store_etcd_check("http://user:secret@h:1/fab", NULL, err), -EINVAL);
	assert_null(strstr(err, "secret"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(kept),
		T(put_twice),
		T(not_parted),
		T(one_leads),
		T(lease_runs_out),
		T(stopped),
		T(key_deleted),
		T(late),
		T(claims_twice),
		T(lost_and_slow),
		T(opening),
		T(silent),
#undef T
		cmocka_unit_test(urls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
