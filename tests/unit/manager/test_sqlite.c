/* SPDX-License-Identifier: BSD-3-Clause */
/* What a manager keeps in a file of SQLite: what was committed is there again; files that are not
 * ours, or are damaged, are refused by name. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "ctrl/manager/store.h"

static char path[64];

static int file_setup(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/incline-store-%d.db", (int)getpid());
	unlink(path);
	return 0;
}

static int file_teardown(void **state)
{
	char more[80];

	(void)state;
	unlink(path);
	snprintf(more, sizeof(more), "%s-wal", path);
	unlink(more);
	snprintf(more, sizeof(more), "%s-shm", path);
	unlink(more);
	return 0;
}

static int note(void *to, const char *key, const char *value)
{
	return json_object_set_new(to, key, json_string(value));
}

static struct store open_file(void)
{
	char err[STORE_ERR_LEN] = "";
	struct store s;

	if (store_sqlite_open(path, &s, err))
		fail_msg("%s", err);
	return s;
}

static void refused(int rc, const char *says)
{
	char err[STORE_ERR_LEN] = "";
	struct store s;

	assert_int_equal(store_sqlite_open(path, &s, err), rc);
	if (!strstr(err, says) || !strstr(err, path))
		fail_msg("\"%s\" lacks \"%s\" or the path", err, says);
}

static void test_file(void **state)
{
	json_t *rows = json_object();
	struct store s = open_file();
	struct stat st;

	(void)state;
	assert_int_equal(s.put(s.arg, "a", "1"), 0);
	assert_int_equal(s.put(s.arg, "b", "2"), 0);
	assert_int_equal(s.commit(s.arg), 0);
	assert_int_equal(s.put(s.arg, "a", NULL), 0);
	assert_int_equal(s.put(s.arg, "b", "3"), 0);
	assert_int_equal(s.commit(s.arg), 0);
	assert_int_equal(s.put(s.arg, "b", "lost"), 0);
	refused(-EBUSY, "another process has it");
	s.close(s.arg);
	s = open_file();
	assert_int_equal(s.each(s.arg, note, rows), 0);
	assert_int_equal(json_object_size(rows), 1);
	assert_string_equal(json_string_value(json_object_get(rows, "b")), "3");
	s.close(s.arg);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	json_decref(rows);
}

static void sql(const char *text)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

static void test_not_ours(void **state)
{
	char text[4096];
	int fd;

	(void)state;
	memset(text, 'x', sizeof(text));
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
	close(fd);
	refused(-EBADMSG, "is not an SQLite file");
	unlink(path);
	sql("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (7)");
	refused(-EEXIST, "is another program's SQLite file");
}

static void test_other_version(void **state)
{
	struct store s = open_file();

	(void)state;
	s.close(s.arg);
	sql("PRAGMA user_version = 7");
	refused(-EPROTONOSUPPORT, "has version 7, this program reads and writes 1");
	sql("PRAGMA user_version = 0");
	refused(-EPROTONOSUPPORT, "has version 0");
}

/* Every page of it overwritten, one after the other. */
static void test_damaged_file(void **state)
{
	enum { PAGE = 4096 };
	struct store s = open_file();
	char key[16], value[512], junk[PAGE];
	struct stat st;
	int fd;

	(void)state;
	memset(value, 'v', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	for (unsigned i = 0; i < 200; i++) {
		snprintf(key, sizeof(key), "k%u", i);
		assert_int_equal(s.put(s.arg, key, value), 0);
	}
	assert_int_equal(s.commit(s.arg), 0);
	s.close(s.arg);
	memset(junk, 0xa5, sizeof(junk));
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 8 * PAGE);
	for (off_t at = PAGE; at < st.st_size; at += PAGE) {
		char was[PAGE], err[STORE_ERR_LEN];

		fd = open(path, O_RDWR);
		assert_int_equal(pread(fd, was, PAGE, at), PAGE);
		assert_int_equal(pwrite(fd, junk, PAGE, at), PAGE);
		close(fd);
		if (store_sqlite_open(path, &s, err) != -EBADMSG || !strstr(err, "is damaged"))
			fail_msg("page at %lld: %s", (long long)at, err);
		fd = open(path, O_RDWR);
		assert_int_equal(pwrite(fd, was, PAGE, at), PAGE);
		close(fd);
	}
	s = open_file();
	s.close(s.arg);
	assert_int_equal(truncate(path, PAGE), 0);
	refused(-EBADMSG, "is damaged");
}

static void test_no_directory(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/nonexistent/manager.db");
	refused(-ENOENT, "No such file");
}

#define F(name) cmocka_unit_test_setup_teardown(name, file_setup, file_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		F(test_file),
		F(test_not_ours),
		F(test_other_version),
		F(test_damaged_file),
		F(test_no_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
