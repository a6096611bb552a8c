/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a manager keeps what its successor has to know: texts by key, written in transactions. Back
 * ends: memory, of one process; SQLite, one file; etcd, whose leader owns it. One owner. */
#ifndef MANAGER_STORE_H
#define MANAGER_STORE_H

#include <stdint.h>

enum { STORE_ERR_LEN = 256, STORE_VERSION = 1 };

struct store {
	void *arg;
	/* All that is there, in any order; stops at the first result that is not 0, and returns it;
	 * -EIO. */
	int (*each)(void *arg, int (*take)(void *to, const char *key, const char *value), void *to);
	/* In the transaction that is under way, or begins one. value NULL: not any more. -errno. */
	int (*put)(void *arg, const char *key, const char *value);
	/* All of the transaction or, with -errno, nothing of it (memory: or a part, if there is
	 * none left; etcd: nobody knows, and it takes nothing more). Without one: nothing to do. */
	int (*commit)(void *arg);
	/* What is not committed is lost. */
	void (*close)(void *arg);
	/* To be called about every 100 ms, and before anything that only its owner may do: 0;
	 * -ESTALE: it is not ours any more, and its owner has to end. NULL: it always is. Asks
	 * others now and then, else looks at the clock. */
	int (*alive)(void *arg);
};

/* -ENOMEM. */
int store_memory_open(struct store *out);

/* What is written from now on is thrown away: for who only looks. Any store, none too. */
void store_read_only(struct store *s);

/* The file is made if there is none (mode 0600) and ours alone until it is closed. It may be shared
 * with nobody: -EBUSY if another process has it. What is committed outlives the process, and the
 * machine's. Refused with a reason in err: what is not an SQLite file, or is damaged (-EBADMSG),
 * another program's (-EEXIST), of another version (-EPROTONOSUPPORT); -EACCES and the like. */
int store_sqlite_open(const char *path, struct store *out, char err[STORE_ERR_LEN]);

/* Members of one etcd, http://HOST:PORT[,http://HOST:PORT...][/FABRIC]. One manager owns what is
 * there, as long as it keeps a lease, which ttl_s bounds from its last sign of life on: it writes
 * only while it does, for each transaction asks whether its key is still there. A commit of more
 * than a hundred writes goes in several transactions, one after the other, which part no record.
 * Blocks, for (members + 1) * timeout_ms at most per request. Refused with a reason in err: -EBUSY,
 * another manager leads, named; -EIO, no member answers sense; -EBADMSG, -EPROTONOSUPPORT what is
 * there; -EINVAL urls, certificates. */
struct store_etcd_conf {
	const char *name; /* ours, for others to read */
	unsigned ttl_s, timeout_ms;
	uint64_t (*now_ns)(void); /* NULL: of the machine, asleep or awake */
	/* A directory as lib/ctl/tls.h has it, for members at https://; NULL: none. Kept. */
	const char *certificates;
};
int store_etcd_open(const char *urls, const struct store_etcd_conf *conf, struct store *out,
	char err[STORE_ERR_LEN]);
/* Asks nobody. urls NULL: another kind of store, which has no certificates. err is written when
 * something is wrong only. */
int store_etcd_check(const char *urls, const char *certificates, char err[STORE_ERR_LEN]);

#endif
