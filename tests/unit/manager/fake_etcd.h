/* SPDX-License-Identifier: BSD-3-Clause */
/* An etcd of the test's own: the JSON gateway over HTTP in a thread, with keys, leases and
 * transactions as far as a store uses them, and mischief. */
#ifndef FAKE_ETCD_H
#define FAKE_ETCD_H

enum fake_mischief {
	FAKE_GOOD,
	FAKE_SILENT, /* does nothing, and does not answer: only a time limit ends that */
	FAKE_CUT,    /* does nothing, and breaks off its answer */
	FAKE_LOST,   /* does it, and breaks off */
	FAKE_LATE,   /* breaks off, and does it when fake_etcd_late is called */
	FAKE_ROBBED, /* does it, and then all leases run out */
	FAKE_NONSENSE,
	FAKE_LIST,    /* JSON, but no object */
	FAKE_EMPTY,   /* an object without anything in it */
	FAKE_ERROR,   /* HTTP 500, nothing done */
	FAKE_REFUSES, /* HTTP 400, nothing done */
};

/* Listens at 127.0.0.1 and returns the port. */
unsigned fake_etcd_start(void);
void fake_etcd_stop(void);
/* For the next n requests whose path ends so ("" for any). */
void fake_etcd_do(enum fake_mischief mischief, const char *path, unsigned n);
void fake_etcd_late(void); /* the last one */
/* All leases run out, and the keys that hang on them go. */
void fake_etcd_expire(void);
/* A key, base64 aside, as it is there; "": it is not. Static. */
const char *fake_etcd_value(const char *key);
void fake_etcd_put(const char *key, const char *value);
void fake_etcd_remove(const char *key);
unsigned fake_etcd_count(void); /* transactions that were done */
unsigned fake_etcd_ttl(void);   /* seconds that the last lease was asked for */

#endif
