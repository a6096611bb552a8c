/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/manager/fake_etcd.h"

#include <assert.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/thread.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { MAX_KEYS = 1024, KEY = 128, VALUE = 4096 };

static struct key {
	char key[KEY], value[VALUE];
	long created, lease; /* created 0: free */
	long writes;         /* since it was created */
} keys[MAX_KEYS];
static long revision = 1, lease = 100, dead_until, revoked[MAX_KEYS];
static int status; /* of the answer */
static unsigned txns, mischief_left, ttl;
static enum fake_mischief mischief;
static char mischief_path[64], late_path[64];
static json_t *late;
static struct event_base *base;
static struct evhttp *http;
static pthread_t thread;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void decode(const json_t *text, char *out, size_t cap)
{
	const char *in = json_string_value(text);
	const int len = in ? (int)strlen(in) : 0;
	int n = in && len < (int)cap
			? EVP_DecodeBlock((unsigned char *)out, (const unsigned char *)in, len)
			: 0;

	if (n > 0)
		n -= (in[len - 1] == '=') + (in[len - 2] == '=');
	out[n > 0 ? n : 0] = '\0';
}

static json_t *encode(const char *text)
{
	static char out[2 * VALUE];

	EVP_EncodeBlock((unsigned char *)out, (const unsigned char *)text, (int)strlen(text));
	return json_string(out);
}

static struct key *find(const char *name)
{
	for (unsigned i = 0; i < MAX_KEYS; i++)
		if (keys[i].created && !strcmp(keys[i].key, name))
			return &keys[i];
	return NULL;
}

static void set(const char *name, const char *value, long on)
{
	struct key *k = find(name);

	for (unsigned i = 0; !k && i < MAX_KEYS; i++)
		if (!keys[i].created)
			k = &keys[i];
	assert(k && strlen(name) < KEY && strlen(value) < VALUE);
	k->writes = k->created ? k->writes + 1 : 1;
	if (!k->created)
		k->created = revision;
	strcpy(k->key, name);
	strcpy(k->value, value);
	k->lease = on;
}

static bool lives(long id)
{
	return id > dead_until && id <= lease && revoked[id % MAX_KEYS] != id;
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(struct key *const *)a)->key, (*(struct key *const *)b)->key);
}

static json_t *range(const json_t *body)
{
	char from[KEY], to[KEY] = "";
	struct key *hit[MAX_KEYS];
	const size_t limit = (size_t)json_integer_value(json_object_get(body, "limit"));
	json_t *kvs = json_array();
	size_t n = 0;

	decode(json_object_get(body, "key"), from, sizeof(from));
	if (json_object_get(body, "range_end"))
		decode(json_object_get(body, "range_end"), to, sizeof(to));
	/* A NUL at the end of `from` means: behind that key. */
	const char *text = json_string_value(json_object_get(body, "key"));
	char raw[KEY];
	int len = EVP_DecodeBlock(
		(unsigned char *)raw, (const unsigned char *)text, (int)strlen(text));
	len -= (text[strlen(text) - 1] == '=') + (text[strlen(text) - 2] == '=');
	const bool behind = len > 0 && raw[len - 1] == '\0';

	for (unsigned i = 0; i < MAX_KEYS; i++) {
		const int c = keys[i].created ? strcmp(keys[i].key, from) : -1;

		if (to[0] ? c >= (behind ? 1 : 0) && strcmp(keys[i].key, to) < 0 : c == 0)
			hit[n++] = &keys[i];
	}
	qsort(hit, n, sizeof(hit[0]), by_name);
	for (size_t i = 0; i < n && (!limit || i < limit); i++)
		json_array_append_new(
			kvs, json_pack("{s:o,s:o,s:o,s:o,s:o}", "key", encode(hit[i]->key), "value",
				     encode(hit[i]->value), "create_revision",
				     json_sprintf("%ld", hit[i]->created), "version",
				     json_sprintf("%ld", hit[i]->writes), "lease",
				     json_sprintf("%ld", hit[i]->lease)));
	return json_pack("{s:{s:o},s:o,s:b}", "header", "revision", json_sprintf("%ld", revision),
		"kvs", kvs, "more", limit && n > limit);
}

static bool holds(const json_t *cmp)
{
	const json_t *created = json_object_get(cmp, "create_revision");
	const char *is = json_string_value(created ? created : json_object_get(cmp, "version"));
	char name[KEY];
	const struct key *k;

	decode(json_object_get(cmp, "key"), name, sizeof(name));
	k = find(name);
	return (!k ? 0 : created ? k->created : k->writes) == atol(is);
}

/* Of an etcd's "failure": one range. */
static json_t *otherwise(const json_t *body)
{
	const json_t *op = json_array_get(json_object_get(body, "failure"), 0);

	return json_pack("[{s:o}]", "response_range", range(json_object_get(op, "request_range")));
}

/* What etcd refuses of a transaction: a key that is written twice, a lease that is not there. 0, or
 * the HTTP status. */
static int refused(const json_t *ops)
{
	json_t *seen = json_object();
	const json_t *op;
	int no = 0;
	size_t i;

	json_array_foreach(ops, i, op)
	{
		const json_t *p = json_object_get(op, "request_put");
		const json_t *any = p ? p : json_object_get(op, "request_delete_range");
		const char *key = json_string_value(json_object_get(any, "key"));
		const char *on = json_string_value(json_object_get(p, "lease"));

		if (json_object_get(seen, key) && (p || json_is_true(json_object_get(seen, key))))
			no = 400;
		else if (on && !lives(atol(on)) && no == 0)
			no = 404;
		json_object_set_new(seen, key, json_boolean(p != NULL));
	}
	json_decref(seen);
	return no;
}

static json_t *txn(const json_t *body)
{
	char name[KEY], value[VALUE];
	json_t *op;
	size_t i;
	bool ok = true;
	int no;

	json_array_foreach(json_object_get(body, "compare"), i, op) ok = ok && holds(op);
	if (!ok && json_object_get(body, "failure"))
		return json_pack("{s:o}", "responses", otherwise(body));
	no = ok ? refused(json_object_get(body, "success")) : 0;
	if (no) {
		status = no;
		return json_pack("{s:s}", "error",
			no == 400 ? "etcdserver: duplicate key given in txn request"
				  : "etcdserver: requested lease not found");
	}
	revision += ok;
	txns += ok;
	json_array_foreach(json_object_get(body, "success"), i, op)
	{
		const json_t *p = json_object_get(op, "request_put");
		const json_t *d = json_object_get(op, "request_delete_range");
		const char *on = json_string_value(json_object_get(p, "lease"));

		if (!ok)
			break;
		assert(i < 128); /* as etcd has it */
		decode(json_object_get(p ? p : d, "key"), name, sizeof(name));
		decode(json_object_get(p, "value"), value, sizeof(value));
		if (p)
			set(name, value, on ? atol(on) : 0);
		else if (find(name))
			find(name)->created = 0;
	}
	return json_pack("{s:{s:o},s:b}", "header", "revision", json_sprintf("%ld", revision),
		"succeeded", ok);
}

static json_t *serve(const char *path, const json_t *body)
{
	const char *id = json_string_value(json_object_get(body, "ID"));

	if (!strcmp(path, "/v3/kv/range"))
		return range(body);
	if (!strcmp(path, "/v3/kv/txn"))
		return txn(body);
	if (!strcmp(path, "/v3/lease/grant")) {
		ttl = (unsigned)json_integer_value(json_object_get(body, "TTL"));
		return json_pack("{s:o,s:s}", "ID", json_sprintf("%ld", ++lease), "TTL", "5");
	}
	if (!strcmp(path, "/v3/lease/keepalive"))
		return id && lives(atol(id))
			       ? json_pack("{s:{s:s,s:s}}", "result", "ID", id, "TTL", "5")
			       : json_pack("{s:{s:s}}", "result", "ID", id ? id : "");
	if (id) /* revoke */
		revoked[atol(id) % MAX_KEYS] = atol(id);
	for (unsigned i = 0; id && i < MAX_KEYS; i++)
		if (keys[i].created && keys[i].lease == atol(id))
			keys[i].created = 0;
	return json_object();
}

static bool ends(const char *path, const char *with)
{
	const size_t n = strlen(path), m = strlen(with);

	return n >= m && !strcmp(path + n - m, with);
}

/* The client knows at once that nothing more comes; it has had a beginning, and so asks again
 * itself rather than let libcurl do it. */
static void break_off(struct evhttp_request *r)
{
	static const char begin[] = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
	const int fd = bufferevent_getfd(
		evhttp_connection_get_bufferevent(evhttp_request_get_connection(r)));

	assert(send(fd, begin, sizeof(begin) - 1, MSG_NOSIGNAL) == sizeof(begin) - 1);
	shutdown(fd, SHUT_RDWR);
}

static void expire(void)
{
	dead_until = lease;
	for (unsigned i = 0; i < MAX_KEYS; i++)
		if (keys[i].lease)
			keys[i].created = keys[i].lease = 0;
}

static void answer(struct evhttp_request *r, void *arg)
{
	const char *path = evhttp_request_get_uri(r);
	struct evbuffer *in = evhttp_request_get_input_buffer(r), *out = evbuffer_new();
	const size_t len = evbuffer_get_length(in);
	json_t *body = json_loadb((const char *)evbuffer_pullup(in, -1), len, 0, NULL),
	       *said = NULL;
	enum fake_mischief now = FAKE_GOOD;
	char *text;
	int code;

	(void)arg;
	pthread_mutex_lock(&lock);
	status = 200;
	if (mischief_left && ends(path, mischief_path)) {
		mischief_left--;
		now = mischief;
	}
	if (now == FAKE_GOOD || now == FAKE_LOST || now == FAKE_ROBBED)
		said = serve(path, body);
	if (now == FAKE_ROBBED)
		expire();
	if (now == FAKE_LATE) {
		json_decref(late);
		late = json_incref(body);
		snprintf(late_path, sizeof(late_path), "%s", path);
	}
	code = status;
	pthread_mutex_unlock(&lock);
	text = said ? json_dumps(said, 0) : NULL;
	evbuffer_add_printf(out, "%s",
		text                   ? text
		: now == FAKE_NONSENSE ? "{\"kvs\":[{\"key\":"
		: now == FAKE_LIST     ? "[1,2]"
				       : "{}");
	if (now == FAKE_CUT || now == FAKE_LOST || now == FAKE_LATE)
		break_off(r);
	else if (now != FAKE_SILENT)
		evhttp_send_reply(r,
			now == FAKE_ERROR     ? 503
			: now == FAKE_REFUSES ? 400
					      : code,
			"x", out);
	free(text);
	json_decref(said);
	json_decref(body);
	evbuffer_free(out);
}

static void *run(void *arg)
{
	event_base_loop(base, EVLOOP_NO_EXIT_ON_EMPTY);
	return arg;
}

unsigned fake_etcd_start(void)
{
	struct evhttp_bound_socket *bound;
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);

	evthread_use_pthreads();
	memset(keys, 0, sizeof(keys));
	revision = 1;
	txns = mischief_left = 0;
	dead_until = 0;
	base = event_base_new();
	http = evhttp_new(base);
	evhttp_set_gencb(http, answer, NULL);
	bound = evhttp_bind_socket_with_handle(http, "127.0.0.1", 0);
	assert(bound &&
		!getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&sa, &len));
	assert(!pthread_create(&thread, NULL, run, NULL));
	return ntohs(((struct sockaddr_in *)&sa)->sin_port);
}

void fake_etcd_stop(void)
{
	event_base_loopbreak(base);
	pthread_join(thread, NULL);
	evhttp_free(http);
	event_base_free(base);
	json_decref(late);
	late = NULL;
}

void fake_etcd_do(enum fake_mischief what, const char *path, unsigned n)
{
	pthread_mutex_lock(&lock);
	mischief = what;
	mischief_left = n;
	snprintf(mischief_path, sizeof(mischief_path), "%s", path);
	pthread_mutex_unlock(&lock);
}

void fake_etcd_late(void)
{
	pthread_mutex_lock(&lock);
	assert(late);
	json_decref(serve(late_path, late));
	pthread_mutex_unlock(&lock);
}

void fake_etcd_expire(void)
{
	pthread_mutex_lock(&lock);
	expire();
	pthread_mutex_unlock(&lock);
}

const char *fake_etcd_value(const char *name)
{
	static char value[VALUE];
	const struct key *k;

	pthread_mutex_lock(&lock);
	k = find(name);
	snprintf(value, sizeof(value), "%s", k ? k->value : "");
	pthread_mutex_unlock(&lock);
	return value;
}

void fake_etcd_put(const char *name, const char *value)
{
	pthread_mutex_lock(&lock);
	revision++;
	set(name, value, 0);
	pthread_mutex_unlock(&lock);
}

void fake_etcd_remove(const char *name)
{
	struct key *k;

	pthread_mutex_lock(&lock);
	k = find(name);
	if (k)
		k->created = 0;
	pthread_mutex_unlock(&lock);
}

unsigned fake_etcd_count(void)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	n = txns;
	pthread_mutex_unlock(&lock);
	return n;
}

unsigned fake_etcd_ttl(void)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	n = ttl;
	pthread_mutex_unlock(&lock);
	return n;
}
