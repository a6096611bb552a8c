/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctrl/manager/store.h"

/* "INCM" in the file's header: ours. */
enum { APPLICATION = 0x494e434d };

struct sqlite {
	sqlite3 *db;
	sqlite3_stmt *put, *del;
	int begun;
	int broken; /* the first error of a transaction, -errno */
};

static int run(struct sqlite *s, const char *sql)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : -EIO;
}

static int each(void *arg, int (*take)(void *to, const char *key, const char *value), void *to)
{
	struct sqlite *s = arg;
	sqlite3_stmt *st = NULL;
	int rc = 0, step;

	if (sqlite3_prepare_v2(s->db, "SELECT key, value FROM kept", -1, &st, NULL) != SQLITE_OK)
		return -EIO;
	while (!rc && (step = sqlite3_step(st)) == SQLITE_ROW) {
		const char *key = (const char *)sqlite3_column_text(st, 0);
		const char *value = (const char *)sqlite3_column_text(st, 1);

		rc = key && value ? take(to, key, value) : -EIO;
	}
	if (!rc && step != SQLITE_DONE)
		rc = -EIO;
	sqlite3_finalize(st);
	return rc;
}

static int put(void *arg, const char *key, const char *value)
{
	struct sqlite *s = arg;
	sqlite3_stmt *st = value ? s->put : s->del;

	if (!s->begun && !s->broken)
		s->broken = run(s, "BEGIN IMMEDIATE");
	s->begun = 1;
	if (s->broken)
		return s->broken;
	if (sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC) != SQLITE_OK ||
		(value && sqlite3_bind_text(st, 2, value, -1, SQLITE_STATIC) != SQLITE_OK) ||
		sqlite3_step(st) != SQLITE_DONE)
		s->broken = -EIO;
	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
	return s->broken;
}

static int commit(void *arg)
{
	struct sqlite *s = arg;
	int rc = s->broken;

	if (!s->begun)
		return 0;
	if (!rc)
		rc = run(s, "COMMIT");
	if (rc)
		run(s, "ROLLBACK");
	s->begun = s->broken = 0;
	return rc;
}

static void shut(void *arg)
{
	struct sqlite *s = arg;

	sqlite3_finalize(s->put);
	sqlite3_finalize(s->del);
	sqlite3_close(s->db);
	free(s);
}

/* ---- whose file it is ---- */

/* The first column of the first row, as text. */
static int ask(struct sqlite *s, const char *sql, char *out, size_t cap)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);

	out[0] = '\0';
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		snprintf(out, cap, "%s", (const char *)sqlite3_column_text(st, 0) ?: "");
	sqlite3_finalize(st);
	return rc;
}

static int refuse(char *err, int rc, const char *path, const char *why)
{
	snprintf(err, STORE_ERR_LEN, "store %.120s: %.120s", path, why);
	return rc;
}

static int translate(int rc, const char *path, const char *why, char *err)
{
	switch (rc & 0xff) {
	case SQLITE_NOTADB:
		return refuse(err, -EBADMSG, path, "is not an SQLite file");
	case SQLITE_CORRUPT:
		return refuse(err, -EBADMSG, path, "is damaged");
	case SQLITE_BUSY:
		return refuse(err, -EBUSY, path, "another process has it: one manager per fabric");
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
	case SQLITE_READONLY:
		return refuse(err, -EACCES, path, "cannot be opened for writing");
	}
	return refuse(err, -EIO, path, why);
}

static int create(struct sqlite *s)
{
	char sql[256];

	snprintf(sql, sizeof(sql),
		"BEGIN IMMEDIATE; PRAGMA application_id = %d; PRAGMA user_version = %d;"
		"CREATE TABLE kept (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
		"COMMIT",
		APPLICATION, STORE_VERSION);
	return run(s, sql);
}

/* An empty file becomes ours; another must be, and be whole. */
static int claim(struct sqlite *s, const char *path, char *err)
{
	char id[32], version[32], tables[32], check[128], why[160];
	int rc = ask(s, "PRAGMA application_id", id, sizeof(id));

	if (rc == SQLITE_ROW)
		rc = ask(s, "SELECT count(*) FROM sqlite_schema", tables, sizeof(tables));
	if (rc != SQLITE_ROW)
		return translate(rc, path, sqlite3_errmsg(s->db), err);
	if (!atoi(id) && !atoi(tables))
		return create(s)
			       ? translate(sqlite3_errcode(s->db), path, sqlite3_errmsg(s->db), err)
			       : 0;
	if (atoi(id) != APPLICATION)
		return refuse(err, -EEXIST, path, "is another program's SQLite file");
	ask(s, "PRAGMA user_version", version, sizeof(version));
	if (atoi(version) != STORE_VERSION) {
		snprintf(why, sizeof(why), "has version %s, this program reads and writes %d",
			version, STORE_VERSION);
		return refuse(err, -EPROTONOSUPPORT, path, why);
	}
	if (ask(s, "PRAGMA quick_check(1)", check, sizeof(check)) == SQLITE_ROW &&
		!strcmp(check, "ok"))
		return 0;
	snprintf(why, sizeof(why), "is damaged: %s", check[0] ? check : sqlite3_errmsg(s->db));
	return refuse(err, -EBADMSG, path, why);
}

static int prepare(struct sqlite *s)
{
	return sqlite3_prepare_v2(s->db, "INSERT OR REPLACE INTO kept VALUES (?1, ?2)", -1, &s->put,
		       NULL) == SQLITE_OK &&
			       sqlite3_prepare_v2(s->db, "DELETE FROM kept WHERE key = ?1", -1,
				       &s->del, NULL) == SQLITE_OK
		       ? 0
		       : -EIO;
}

/* Ours alone: the lock is taken with the first write and kept. */
static int lock(struct sqlite *s, const char *path, char *err)
{
	if (run(s, "PRAGMA locking_mode = EXCLUSIVE") || run(s, "PRAGMA journal_mode = WAL") ||
		run(s, "PRAGMA synchronous = FULL") || run(s, "BEGIN EXCLUSIVE; COMMIT"))
		return translate(sqlite3_errcode(s->db), path, sqlite3_errmsg(s->db), err);
	return 0;
}

int store_sqlite_open(const char *path, struct store *out, char err[STORE_ERR_LEN])
{
	struct sqlite *s = calloc(1, sizeof(*s));
	const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int rc;

	if (fd < 0) {
		free(s);
		return refuse(err, -errno, path, strerror(errno));
	}
	close(fd);
	if (!s)
		return refuse(err, -ENOMEM, path, "out of memory");
	rc = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE, NULL);
	rc = rc == SQLITE_OK ? 0 : translate(rc, path, "cannot be opened", err);
	if (!rc)
		rc = claim(s, path, err);
	if (!rc)
		rc = lock(s, path, err);
	if (!rc && prepare(s))
		rc = translate(sqlite3_errcode(s->db), path, sqlite3_errmsg(s->db), err);
	if (rc) {
		shut(s);
		return rc;
	}
	*out = (struct store){s, each, put, commit, shut};
	return 0;
}
