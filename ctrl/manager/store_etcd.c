/* SPDX-License-Identifier: BSD-3-Clause */
/* By etcd's JSON gateway (v3). Keys, below the name of the fabric:
 *
 *	leader	whose lease this is, writes; its revision fences every transaction
 *	version	of what is kept
 *	kept/KEY
 *
 * A request goes to one member after the other. A transaction whose answer is lost is sent again,
 * and the first copy may yet come, at any time: each writes the leader's key as well and asks how
 * often that was written before, so that of all copies one is done, before what comes after it. */
#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ctrl/manager/store.h"
#include "lib/ctl/base64.h"

enum {
	MAX_MEMBERS = 8,
	URL_LEN = 256,
	MAX_ANSWER = 64 << 20,
	PAGE = 256,          /* keys read at a time */
	MAX_PUTS = 100,      /* of a transaction; etcd's default limit is 128 */
	MAX_BYTES = 1 << 20, /* likewise 1.5 MB */
};

struct etcd {
	CURL *curl;
	struct curl_slist *headers;
	char member[MAX_MEMBERS][URL_LEN], fabric[64];
	unsigned n, at; /* the member that has answered last */
	unsigned ttl_s, timeout_ms;
	uint64_t (*now_ns)(void);
	char *name, *lease, *revision; /* as etcd writes numbers */
	unsigned writes;               /* of the leader's key, since it was made */
	uint64_t until, next; /* the lease, by our clock; when it is to be kept again, ns */
	json_t *pending;      /* [key, value or null] */
	int broken;           /* the first error, -errno; for good if it was a commit's */
	char why[STORE_ERR_LEN];
};

/* It goes on while the machine sleeps, as the lease does. */
static uint64_t boot_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int __attribute__((format(printf, 3, 4))) wrong(struct etcd *s, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->why, sizeof(s->why), fmt, ap);
	va_end(ap);
	return rc;
}

/* ---- requests ---- */

struct answer {
	char *text;
	size_t len;
};

static size_t take(char *data, size_t size, size_t n, void *to)
{
	struct answer *a = to;
	const size_t len = size * n;
	char *text = a->len + len < MAX_ANSWER ? realloc(a->text, a->len + len + 1) : NULL;

	if (!text)
		return 0;
	memcpy(text + a->len, data, len);
	a->text = text;
	a->len += len;
	a->text[a->len] = '\0';
	return len;
}

/* One member. -EAGAIN: another may answer. */
static int ask_one(struct etcd *s, const char *path, const char *body, json_t **out)
{
	char url[URL_LEN + 64];
	struct answer a = {0};
	json_error_t e;
	long status = 0;
	CURLcode code;
	int rc = 0;

	snprintf(url, sizeof(url), "%s%s", s->member[s->at], path);
	curl_easy_setopt(s->curl, CURLOPT_URL, url);
	curl_easy_setopt(s->curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(s->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
	curl_easy_setopt(s->curl, CURLOPT_WRITEDATA, &a);
	code = curl_easy_perform(s->curl);
	curl_easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &status);
	*out = code == CURLE_OK ? json_loadb(a.text ? a.text : "", a.len, 0, &e) : NULL;
	if (code != CURLE_OK)
		rc = wrong(s, -EAGAIN, "%.100s: %.80s", s->member[s->at], curl_easy_strerror(code));
	else if (status != 200)
		rc = wrong(s, status >= 500 ? -EAGAIN : -EIO, "%.100s: %s: HTTP %ld: %.80s",
			s->member[s->at], path, status,
			json_string_value(json_object_get(*out, "error")) ?: "");
	else if (!json_is_object(*out))
		rc = wrong(s, -EAGAIN, "%.100s: %s: its answer makes no sense", s->member[s->at],
			path);
	free(a.text);
	if (rc) {
		json_decref(*out);
		*out = NULL;
	}
	return rc;
}

/* Each member once, and the first once more; body is taken over. */
static int ask(struct etcd *s, const char *path, json_t *body, json_t **out)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	int rc = text ? -EAGAIN : wrong(s, -ENOMEM, "out of memory");

	*out = NULL;
	for (unsigned i = 0; i <= s->n && rc == -EAGAIN; i++) {
		rc = ask_one(s, path, text, out);
		if (rc == -EAGAIN)
			s->at = (s->at + 1) % s->n;
	}
	free(text);
	json_decref(body);
	return rc == -EAGAIN ? -EIO : rc;
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
	const int n = snprintf(text, sizeof(text), "%s/%s%s", s->fabric, kind, key);

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
	int rc = ask(s, "/v3/kv/range", json_pack("{s:o}", "key", key_of(s, kind, "")), &out);

	*value = NULL;
	if (rc)
		return rc;
	first = json_array_get(json_object_get(out, "kvs"), 0);
	if (first && !(*value = decoded(json_object_get(first, "value"))))
		rc = wrong(s, -EBADMSG, "key %s/%s makes no sense", s->fabric, kind);
	json_decref(out);
	return rc;
}

static int grant(struct etcd *s)
{
	const uint64_t now = s->now_ns();
	json_t *out;
	int rc = ask(s, "/v3/lease/grant", json_pack("{s:i}", "TTL", (int)s->ttl_s), &out);

	if (rc)
		return rc;
	s->lease = number_of(out, "ID");
	json_decref(out);
	s->until = now + s->ttl_s * 1000000000ull;
	s->next = now + s->ttl_s * 1000000000ull / 3;
	return s->lease ? 0 : wrong(s, -EIO, "etcd grants a lease without a number");
}

static void revoke(struct etcd *s)
{
	json_t *out = NULL;

	if (s->lease)
		ask(s, "/v3/lease/revoke", json_pack("{s:s}", "ID", s->lease), &out);
	json_decref(out);
	free(s->lease);
	s->lease = NULL;
}

/* The key is made, with our lease, if there is none. -EBUSY: another was faster. */
static int claim(struct etcd *s)
{
	json_t *out, *compare = json_pack("[{s:o,s:s,s:s,s:s}]", "key", key_of(s, "leader", ""),
			     "target", "CREATE", "result", "EQUAL", "create_revision", "0");
	int rc = ask(s, "/v3/kv/txn",
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
		rc = wrong(s, -EBUSY, "another manager was faster");
	if (!rc && !s->revision)
		rc = wrong(s, -EIO, "etcd writes without a revision");
	s->writes = 1;
	json_decref(out);
	return rc;
}

static int campaign(struct etcd *s)
{
	char *leader;
	int rc = get(s, "leader", &leader);

	if (!rc && leader)
		rc = wrong(s, -EBUSY, "manager %.120s leads", leader);
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
	int rc = ask(s, "/v3/lease/keepalive", json_pack("{s:s}", "ID", s->lease), &out);

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
	rc = ask(s, "/v3/kv/range", json_pack("{s:o}", "key", key_of(s, "leader", "")), &out);
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
	const size_t skip = strlen(s->fabric) + strlen("/kept/");
	json_t *kv;
	size_t i;
	int rc = 0;

	json_array_foreach(kvs, i, kv)
	{
		char *key = decoded(json_object_get(kv, "key"));
		char *value = decoded(json_object_get(kv, "value"));

		if (!key || !value || strlen(key) <= skip)
			rc = wrong(s, -EBADMSG, "a key below %s/kept makes no sense", s->fabric);
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

		rc = ask(s, "/v3/kv/range",
			json_pack("{s:o,s:o,s:i}", "key", from, "range_end", key_of(s, "kept0", ""),
				"limit", PAGE),
			&out);
		if (rc)
			break;
		kvs = json_object_get(out, "kvs");
		more = json_is_true(json_object_get(out, "more"));
		rc = take_page(s, kvs, &last, to, to_arg);
		if (!rc && more && !json_array_size(kvs))
			rc = wrong(s, -EIO, "etcd promises more and gives nothing");
		json_decref(out);
	}
	free(last);
	return rc;
}

static int put(void *arg, const char *key, const char *value)
{
	struct etcd *s = arg;

	if (!s->broken && json_array_append_new(s->pending, json_pack("[s,s?]", key, value)))
		s->broken = -ENOMEM;
	return s->broken;
}

static json_t *operation(const struct etcd *s, const json_t *row)
{
	json_t *key = key_of(s, "kept/", json_string_value(json_array_get(row, 0)));
	const char *value = json_string_value(json_array_get(row, 1));

	if (!value)
		return json_pack("{s:{s:o}}", "request_delete_range", "key", key);
	return json_pack(
		"{s:{s:o,s:o}}", "request_put", "key", key, "value", encoded(value, strlen(value)));
}

/* A beginning of what is pending, from row *i on, as far as a transaction of etcd goes. What
 * belongs together (a run, its state) is written one behind the other and not parted. */
static json_t *batch(const struct etcd *s, size_t *i)
{
	json_t *list = json_array();
	size_t bytes = 0;

	for (; *i < json_array_size(s->pending); (*i)++) {
		const json_t *row = json_array_get(s->pending, *i);
		const bool second =
			!strncmp(json_string_value(json_array_get(row, 0)), "state/", 6);

		if (!second && (json_array_size(list) >= MAX_PUTS || bytes >= MAX_BYTES / 2))
			break;
		bytes += json_string_length(json_array_get(row, 1)) + 64;
		if (json_array_append_new(list, operation(s, row))) {
			json_decref(list);
			return NULL;
		}
		if (json_array_size(list) >= MAX_PUTS + 20)
			return (*i)++, list; /* states alone: each stands for itself */
	}
	return list;
}

static int write_batch(struct etcd *s, json_t *list)
{
	char written[16];
	json_t *out;
	int rc = json_array_insert_new(list, 0, put_leader(s)) ? wrong(s, -ENOMEM, "out of memory")
							       : 0;

	if (rc) {
		json_decref(list);
		return rc;
	}
	rc = ask(s, "/v3/kv/txn",
		json_pack("{s:o,s:o,s:o}", "compare", leads(s), "success", list, "failure",
			get_leader(s)),
		&out);
	snprintf(written, sizeof(written), "%u", ++s->writes);
	if (!rc && !json_is_true(json_object_get(out, "succeeded")) &&
		!(is_number(got_leader(out), "create_revision", s->revision) &&
			is_number(got_leader(out), "version", written))) /* a copy of it was done */
		rc = wrong(s, -ESTALE, "another manager leads");
	json_decref(out);
	return rc;
}

/* After one that has failed nobody knows what is there, or will be. */
static int commit(void *arg)
{
	struct etcd *s = arg;

	for (size_t i = 0; !s->broken && i < json_array_size(s->pending);) {
		json_t *list = batch(s, &i);

		s->broken = list ? write_batch(s, list) : -ENOMEM;
		if (!s->broken)
			s->broken = alive(s); /* we may have been stopped meanwhile */
	}
	json_array_clear(s->pending);
	return s->broken;
}

/* ---- life ---- */

static void shut(void *arg)
{
	struct etcd *s = arg;

	if (s->curl)
		revoke(s);
	curl_slist_free_all(s->headers);
	if (s->curl)
		curl_easy_cleanup(s->curl);
	json_decref(s->pending);
	free(s->revision);
	free(s->name);
	free(s);
}

static int set_up(struct etcd *s)
{
	s->curl = curl_easy_init();
	s->headers = curl_slist_append(NULL, "Content-Type: application/json");
	s->pending = json_array();
	if (!s->curl || !s->headers || !s->pending || !s->name)
		return wrong(s, -ENOMEM, "out of memory");
	curl_easy_setopt(s->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(s->curl, CURLOPT_PROXY, "");
	curl_easy_setopt(s->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(s->curl, CURLOPT_TIMEOUT_MS, (long)s->timeout_ms);
	curl_easy_setopt(s->curl, CURLOPT_HTTPHEADER, s->headers);
	curl_easy_setopt(s->curl, CURLOPT_WRITEFUNCTION, take);
	return 0;
}

/* URL[,URL...][/FABRIC] */
static int parse(struct etcd *s, const char *text)
{
	snprintf(s->fabric, sizeof(s->fabric), "incline");
	while (*text) {
		const size_t len = strcspn(text, ",");
		const char *host = strstr(text, "://"), *slash;
		size_t end = len;

		if ((strncmp(text, "http://", 7) && strncmp(text, "https://", 8)) || !host[3] ||
			strchr(",/?#", host[3]) || s->n == MAX_MEMBERS || len >= URL_LEN)
			return wrong(s, -EINVAL,
				"must be etcd:http://HOST:PORT, up to %d of them with commas, and "
				"/NAME of the fabric",
				MAX_MEMBERS);
		if (memchr(text, '@', len)) /* it would be in the log */
			return wrong(s, -EINVAL, "names no user and no password: there are none");
		slash = memchr(host + 3, '/', len - (size_t)(host + 3 - text));
		if (slash) {
			end = (size_t)(slash - text);
			snprintf(s->fabric, sizeof(s->fabric), "%.*s", (int)(len - end - 1),
				slash + 1);
		}
		if (slash && (text[len] || !s->fabric[0] || len - end - 1 >= sizeof(s->fabric) ||
				     strpbrk(s->fabric, "/?#")))
			return wrong(s, -EINVAL, "the fabric's name stands at the end, once");
		snprintf(s->member[s->n++], URL_LEN, "%.*s", (int)end, text);
		text += len + (text[len] == ',');
	}
	return s->n ? 0 : wrong(s, -EINVAL, "no member of etcd is named");
}

/* What is there is of this version; what is new becomes it. */
static int check_version(struct etcd *s)
{
	char *version, ours[16];
	int rc = get(s, "version", &version);

	snprintf(ours, sizeof(ours), "%d", STORE_VERSION);
	if (!rc && version && strcmp(version, ours))
		rc = wrong(s, -EPROTONOSUPPORT,
			"has version %.20s, this program reads and writes %s", version, ours);
	else if (!rc && !version)
		rc = write_batch(
			s, json_pack("[{s:{s:o,s:o}}]", "request_put", "key",
				   key_of(s, "version", ""), "value", encoded(ours, strlen(ours))));
	free(version);
	return rc;
}

int store_etcd_check(const char *urls, char err[STORE_ERR_LEN])
{
	struct etcd *s = calloc(1, sizeof(*s));
	int rc = s ? parse(s, urls) : -ENOMEM;

	snprintf(err, STORE_ERR_LEN, "store: etcd: %.200s", s ? s->why : "out of memory");
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
	s->timeout_ms = conf->timeout_ms;
	rc = parse(s, urls);
	if (!rc)
		rc = set_up(s);
	if (!rc)
		rc = campaign(s);
	if (!rc)
		rc = check_version(s);
	if (rc) {
		snprintf(err, STORE_ERR_LEN, "store: etcd: %.240s", s->why);
		shut(s);
		return rc;
	}
	*out = (struct store){s, each, put, commit, shut, alive};
	return 0;
}
