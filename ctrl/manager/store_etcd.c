/* SPDX-License-Identifier: BSD-3-Clause */
/* By etcd's JSON gateway (v3). Keys, below the name of the fabric:
 *
 *	leader	whose lease this is, writes; its revision fences every transaction
 *	version	of what is kept
 *	kept/KEY
 *
 * A transaction whose answer is lost is sent again,
 * and the first copy may yet come, at any time: each writes the leader's key as well and asks how
 * often that was written before, so that of all copies one is done, before what comes after it. */
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctrl/manager/etcd_members.h"
#include "ctrl/manager/store.h"
#include "lib/ctl/base64.h"

enum {
	PAGE = 256,          /* keys read at a time */
	MAX_PUTS = 100,      /* of a transaction; etcd's default limit is 128 */
	MAX_BYTES = 1 << 20, /* likewise 1.5 MB */
};

struct etcd {
	struct etcd_members m;
	unsigned ttl_s;
	uint64_t (*now_ns)(void);
	char *name, *lease, *revision; /* as etcd writes numbers */
	unsigned writes;               /* of the leader's key, since it was made */
	uint64_t until, next; /* the lease, by our clock; when it is to be kept again, ns */
	json_t *pending;      /* key: value or null, in the order of their first puts */
	int broken;           /* the first error, -errno; for good if it was a commit's */
};

/* It goes on while the machine sleeps, as the lease does. */
static uint64_t boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- keys and values ---- */

static json_t *encoded(const char *bytes, size_t len)
{
	return ctl_bytes((const uint8_t *)bytes, len);
}

/* As a string with a NUL behind it; NULL: it is not base64, or has a NUL inside. */
static char *decoded(const json_t *value)
{
	uint8_t *bytes;
	size_t len;
	char *out = NULL;

	if (ctl_get_bytes(value, &bytes, &len))
		return NULL;
	if (!memchr(bytes, '\0', len))
		out = strndup((const char *)bytes, len);
	free(bytes);
	return out;
}

static json_t *key_of(const struct etcd *s, const char *kind, const char *key)
{
	char text[256];
	const int n = snprintf(text, sizeof(text), "%s/%s%s", s->m.fabric, kind, key);

	return n < (int)sizeof(text) ? encoded(text, (size_t)n) : NULL;
}

/* Number `name` of an object, as text. */
static char *number_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text && text[0] && strspn(text, "0123456789") == strlen(text) ? strdup(text) : NULL;
}

/* ---- leading ---- */

/* What a transaction asks: our key is there, and was written as often as we know of. */
static json_t *leads(const struct etcd *s)
{
	return json_pack("[{s:o,s:s,s:s,s:s},{s:o,s:s,s:s,s:o}]", "key", key_of(s, "leader", ""),
		"target", "CREATE", "result", "EQUAL", "create_revision", s->revision, "key",
		key_of(s, "leader", ""), "target", "VERSION", "result", "EQUAL", "version",
		json_sprintf("%u", s->writes));
}

static json_t *put_leader(const struct etcd *s)
{
	return json_pack("{s:{s:o,s:o,s:s}}", "request_put", "key", key_of(s, "leader", ""),
		"value", encoded(s->name, strlen(s->name)), "lease", s->lease);
}

/* What a transaction answers that did not find what it asked for. */
static json_t *get_leader(const struct etcd *s)
{
	return json_pack("[{s:{s:o}}]", "request_range", "key", key_of(s, "leader", ""));
}

static const json_t *got_leader(const json_t *answer)
{
	const json_t *first = json_array_get(json_object_get(answer, "responses"), 0);

	return json_array_get(json_object_get(json_object_get(first, "response_range"), "kvs"), 0);
}

static bool is_number(const json_t *kv, const char *name, const char *number)
{
	const char *text = json_string_value(json_object_get(kv, name));

	return text && number && !strcmp(text, number);
}

static bool is_over(const struct etcd *s)
{
	return s->now_ns() >= s->until;
}

/* The value of one key; NULL: there is none. */
static int get(struct etcd *s, const char *kind, char **value)
{
	const json_t *first;
	json_t *out;
	int rc = etcd_ask(
		&s->m, "/v3/kv/range", json_pack("{s:o}", "key", key_of(s, kind, "")), &out);

	*value = NULL;
	if (rc)
		return rc;
	first = json_array_get(json_object_get(out, "kvs"), 0);
	if (first && !(*value = decoded(json_object_get(first, "value"))))
		rc = etcd_wrong(&s->m, -EBADMSG, "key %s/%s makes no sense", s->m.fabric, kind);
	json_decref(out);
	return rc;
}

static int grant(struct etcd *s)
{
	const uint64_t now = s->now_ns();
	json_t *out;
	int rc = etcd_ask(&s->m, "/v3/lease/grant", json_pack("{s:i}", "TTL", (int)s->ttl_s), &out);

	if (rc)
		return rc;
	s->lease = number_of(out, "ID");
	json_decref(out);
	s->until = now + s->ttl_s * 1000000000ull;
	s->next = now + s->ttl_s * 1000000000ull / 3;
	return s->lease ? 0 : etcd_wrong(&s->m, -EIO, "etcd grants a lease without a number");
}

static void revoke(struct etcd *s)
{
	json_t *out = NULL;

	if (s->lease)
		etcd_ask(&s->m, "/v3/lease/revoke", json_pack("{s:s}", "ID", s->lease), &out);
	json_decref(out);
	free(s->lease);
	s->lease = NULL;
}

/* The key is made, with our lease, if there is none. -EBUSY: another was faster. */
static int claim(struct etcd *s)
{
	json_t *out, *compare = json_pack("[{s:o,s:s,s:s,s:s}]", "key", key_of(s, "leader", ""),
			     "target", "CREATE", "result", "EQUAL", "create_revision", "0");
	int rc = etcd_ask(&s->m, "/v3/kv/txn",
		json_pack("{s:o,s:[o],s:o}", "compare", compare, "success", put_leader(s),
			"failure", get_leader(s)),
		&out);

	if (rc)
		return rc;
	if (json_is_true(json_object_get(out, "succeeded")))
		s->revision = number_of(json_object_get(out, "header"), "revision");
	else if (is_number(got_leader(out), "lease", s->lease)) /* a copy was */
		s->revision = number_of(got_leader(out), "create_revision");
	else
		rc = etcd_wrong(&s->m, -EBUSY, "another manager was faster");
	if (!rc && !s->revision)
		rc = etcd_wrong(&s->m, -EIO, "etcd writes without a revision");
	s->writes = 1;
	json_decref(out);
	return rc;
}

static int campaign(struct etcd *s)
{
	char *leader;
	int rc = get(s, "leader", &leader);

	if (!rc && leader)
		rc = etcd_wrong(&s->m, -EBUSY, "manager %.120s leads", leader);
	if (!rc)
		rc = grant(s);
	if (!rc)
		rc = claim(s);
	free(leader);
	return rc;
}

/* 0: the lease runs, and the key is ours: nobody has deleted it. -ESTALE; -EIO: who knows. */
static int keep_alive(struct etcd *s)
{
	const json_t *result;
	json_t *out;
	char *ttl;
	int rc = etcd_ask(&s->m, "/v3/lease/keepalive", json_pack("{s:s}", "ID", s->lease), &out);

	if (rc)
		return rc;
	result = json_object_get(out, "result");
	ttl = number_of(result, "TTL");
	if (!ttl || !strcmp(ttl, "0"))
		rc = result ? -ESTALE : -EIO; /* it has run out */
	free(ttl);
	json_decref(out);
	if (rc)
		return rc;
	rc = etcd_ask(
		&s->m, "/v3/kv/range", json_pack("{s:o}", "key", key_of(s, "leader", "")), &out);
	if (!rc && !is_number(json_array_get(json_object_get(out, "kvs"), 0), "create_revision",
			   s->revision))
		rc = json_object_get(out, "header") ? -ESTALE : -EIO;
	json_decref(out);
	return rc;
}

static int alive(void *arg)
{
	struct etcd *s = arg;
	const uint64_t now = s->now_ns(), ttl = s->ttl_s * 1000000000ull;
	int rc;

	if (now >= s->until)
		return -ESTALE;
	if (now < s->next)
		return 0;
	s->next = now + ttl / 6; /* if it fails */
	rc = keep_alive(s);
	if (!rc) {
		s->until = now + ttl;
		s->next = now + ttl / 3;
	}
	/* Who knows how long that took: we may have been stopped meanwhile. */
	return rc == -ESTALE || is_over(s) ? -ESTALE : 0;
}

/* ---- what is kept ---- */

static int take_page(struct etcd *s, const json_t *kvs, char **last,
	int (*to)(void *to, const char *key, const char *value), void *arg)
{
	const size_t skip = strlen(s->m.fabric) + strlen("/kept/");
	json_t *kv;
	size_t i;
	int rc = 0;

	json_array_foreach(kvs, i, kv)
	{
		char *key = decoded(json_object_get(kv, "key"));
		char *value = decoded(json_object_get(kv, "value"));

		if (!key || !value || strlen(key) <= skip)
			rc = etcd_wrong(
				&s->m, -EBADMSG, "a key below %s/kept makes no sense", s->m.fabric);
		else
			rc = to(arg, key + skip, value);
		free(value);
		free(*last);
		*last = key;
		if (rc)
			break;
	}
	return rc;
}

static int each(void *arg, int (*to)(void *to, const char *key, const char *value), void *to_arg)
{
	struct etcd *s = arg;
	char *last = NULL;
	bool more = true;
	int rc = 0;

	while (!rc && more && !(rc = alive(s))) {
		json_t *out,
			*from = last ? encoded(last, strlen(last) + 1) : key_of(s, "kept/", "");
		const json_t *kvs;

		rc = etcd_ask(&s->m, "/v3/kv/range",
			json_pack("{s:o,s:o,s:i}", "key", from, "range_end", key_of(s, "kept0", ""),
				"limit", PAGE),
			&out);
		if (rc)
			break;
		kvs = json_object_get(out, "kvs");
		more = json_is_true(json_object_get(out, "more"));
		rc = take_page(s, kvs, &last, to, to_arg);
		if (!rc && more && !json_array_size(kvs))
			rc = etcd_wrong(&s->m, -EIO, "etcd promises more and gives nothing");
		json_decref(out);
	}
	free(last);
	return rc;
}

/* etcd takes a key once in a transaction: the last value of it counts. */
static int put(void *arg, const char *key, const char *value)
{
	struct etcd *s = arg;

	if (!s->broken &&
		json_object_set_new(s->pending, key, value ? json_string(value) : json_null()))
		s->broken = -ENOMEM;
	return s->broken;
}

static json_t *operation(const struct etcd *s, void *row)
{
	json_t *key = key_of(s, "kept/", json_object_iter_key(row));
	const char *value = json_string_value(json_object_iter_value(row));

	if (!value)
		return json_pack("{s:{s:o}}", "request_delete_range", "key", key);
	return json_pack(
		"{s:{s:o,s:o}}", "request_put", "key", key, "value", encoded(value, strlen(value)));
}

/* A beginning of what is pending, from *row on, as far as a transaction of etcd goes. What
 * belongs together (a run, its state) is written one behind the other and not parted. */
static json_t *batch(const struct etcd *s, void **row)
{
	json_t *list = json_array();
	size_t bytes = 0;

	for (; *row; *row = json_object_iter_next(s->pending, *row)) {
		const bool second = !strncmp(json_object_iter_key(*row), "state/", 6);

		if (!second && (json_array_size(list) >= MAX_PUTS || bytes >= MAX_BYTES / 2))
			break;
		bytes += json_string_length(json_object_iter_value(*row)) + 64;
		if (json_array_append_new(list, operation(s, *row))) {
			json_decref(list);
			return NULL;
		}
		if (json_array_size(list) >= MAX_PUTS + 20) { /* states alone: apart they may be */
			*row = json_object_iter_next(s->pending, *row);
			break;
		}
	}
	return list;
}

static int write_batch(struct etcd *s, json_t *list)
{
	char written[16];
	json_t *out;
	int rc = json_array_insert_new(list, 0, put_leader(s))
			 ? etcd_wrong(&s->m, -ENOMEM, "out of memory")
			 : 0;

	if (rc) {
		json_decref(list);
		return rc;
	}
	rc = etcd_ask(&s->m, "/v3/kv/txn",
		json_pack("{s:o,s:o,s:o}", "compare", leads(s), "success", list, "failure",
			get_leader(s)),
		&out);
	snprintf(written, sizeof(written), "%u", ++s->writes);
	if (!rc && !json_is_true(json_object_get(out, "succeeded")) &&
		!(is_number(got_leader(out), "create_revision", s->revision) &&
			is_number(got_leader(out), "version", written))) /* a copy of it was done */
		rc = etcd_wrong(&s->m, -ESTALE, "another manager leads");
	json_decref(out);
	return rc;
}

/* After one that has failed nobody knows what is there, or will be. */
static int commit(void *arg)
{
	struct etcd *s = arg;

	for (void *row = json_object_iter(s->pending); !s->broken && row;) {
		json_t *list = batch(s, &row);

		s->broken = list ? write_batch(s, list) : -ENOMEM;
		if (!s->broken)
			s->broken = alive(s); /* we may have been stopped meanwhile */
	}
	json_object_clear(s->pending);
	return s->broken;
}

/* ---- life ---- */

static void shut(void *arg)
{
	struct etcd *s = arg;

	if (s->m.curl)
		revoke(s);
	etcd_members_close(&s->m);
	json_decref(s->pending);
	free(s->revision);
	free(s->name);
	free(s);
}

/* What is there is of this version; what is new becomes it. */
static int check_version(struct etcd *s)
{
	char *version, ours[16];
	int rc = get(s, "version", &version);

	snprintf(ours, sizeof(ours), "%d", STORE_VERSION);
	if (!rc && version && strcmp(version, ours))
		rc = etcd_wrong(&s->m, -EPROTONOSUPPORT,
			"has version %.20s, this program reads and writes %s", version, ours);
	else if (!rc && !version)
		rc = write_batch(
			s, json_pack("[{s:{s:o,s:o}}]", "request_put", "key",
				   key_of(s, "version", ""), "value", encoded(ours, strlen(ours))));
	free(version);
	return rc;
}

int store_etcd_check(const char *urls, const char *certificates, char err[STORE_ERR_LEN])
{
	struct etcd *s = calloc(1, sizeof(*s));
	int rc = s ? 0 : -ENOMEM;

	if (s && urls)
		rc = etcd_members_parse(&s->m, urls);
	if (rc)
		snprintf(err, STORE_ERR_LEN, "store: etcd: %.240s", s ? s->m.why : "out of memory");
	if (!rc && (rc = etcd_members_certify(&s->m, certificates)))
		snprintf(err, STORE_ERR_LEN, "store_tls: %.240s", s->m.why);
	free(s);
	return rc;
}

int store_etcd_open(const char *urls, const struct store_etcd_conf *conf, struct store *out,
	char err[STORE_ERR_LEN])
{
	struct etcd *s = calloc(1, sizeof(*s));
	int rc;

	if (!s) {
		snprintf(err, STORE_ERR_LEN, "store: out of memory");
		return -ENOMEM;
	}
	s->name = strdup(conf->name);
	s->now_ns = conf->now_ns ?: boot_ns;
	s->ttl_s = conf->ttl_s;
	s->pending = json_object();
	rc = etcd_members_parse(&s->m, urls);
	if (!rc)
		rc = etcd_members_certify(&s->m, conf->certificates);
	if (!rc && (!s->name || !s->pending))
		rc = etcd_wrong(&s->m, -ENOMEM, "out of memory");
	if (!rc)
		rc = etcd_members_open(&s->m, conf->timeout_ms);
	if (!rc)
		rc = campaign(s);
	if (!rc)
		rc = check_version(s);
	if (rc) {
		snprintf(err, STORE_ERR_LEN, "store: etcd: %.240s", s->m.why);
		shut(s);
		return rc;
	}
	*out = (struct store){s, each, put, commit, shut, alive};
	return 0;
}
