/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/nccl/job.h"

#include <dlfcn.h>
#include <jansson.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct nccl_net *net;
const struct nccl_collnet *coll;

static void *library;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char warnings[16384];
static unsigned copies;

static void logger(enum nccl_level level, unsigned long subsystems, const char *where, int line,
	const char *fmt, ...)
{
	char text[1024];
	size_t at;
	va_list ap;

	(void)where;
	(void)line;
	if (!(subsystems & NCCL_OF_NET))
		return;
	pthread_mutex_lock(&lock);
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	at = strlen(warnings);
	if (level == NCCL_LEVEL_WARN)
		snprintf(warnings + at, sizeof(warnings) - at, "%s", text);
	else if (strstr(text, "are not registered"))
		copies++;
	pthread_mutex_unlock(&lock);
}

bool has_warned(const char *text)
{
	bool has;

	pthread_mutex_lock(&lock);
	has = strstr(warnings, text);
	pthread_mutex_unlock(&lock);
	return has;
}

bool warned(const char *text)
{
	const bool has = has_warned(text);

	if (!has)
		print_error("no \"%s\" in \"%s\"\n", text, warnings);
	return has;
}

unsigned copied(void)
{
	unsigned n;

	pthread_mutex_lock(&lock);
	n = copies;
	pthread_mutex_unlock(&lock);
	return n;
}

void forget_warnings(void)
{
	pthread_mutex_lock(&lock);
	warnings[0] = '\0';
	copies = 0;
	pthread_mutex_unlock(&lock);
}

int load(void **state)
{
	char name[64];

	(void)state;
	snprintf(name, sizeof(name), "libnccl-net-%s.so", "incline"); /* NCCL_NET_PLUGIN=incline */
	library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		print_error("%s\n", dlerror());
	assert_non_null(library);
	net = dlsym(library, "ncclNetPlugin_v8");
	coll = dlsym(library, "ncclCollNetPlugin_v8");
	assert_non_null(net);
	assert_non_null(coll);
	setenv("INCLINE_NCCL_HOST", "127.0.0.1", 1);
	return 0;
}

int unload(void **state)
{
	(void)state;
	return dlclose(library);
}

static void write_group(struct job *j, unsigned id)
{
	json_t *ranks = json_array(), *children = json_array(), *doc;

	for (int i = 0; i < N; i++) {
		char ip[32], port[16];

		snprintf(ip, sizeof(ip), "10.77.0.%d", 10 + i);
		snprintf(port, sizeof(port), "h%d", i);
		json_array_append_new(ranks, json_pack("{s:s}", "ip", ip));
		json_array_append_new(children, json_pack("{s:i, s:s}", "rank", i, "port", port));
	}
	doc = json_pack("{s:s, s:s, s:i, s:i, s:i, s:b, s:o, s:[{s:s, s:s, s:s, s:o}]}", "name",
		"job", "bootstrap", "unix:/nowhere", "mtu", 256, "timeout_ms", 20000, "W", 8,
		"resume", 0, "ranks", ranks, "switches", "name", "s0", "socket", j->sw.path, "ip",
		"10.77.255.1", "children", children);
	snprintf(j->path, sizeof(j->path), "/tmp/nccl-test-%d-%u.json", getpid(), id);
	assert_non_null(doc);
	assert_int_equal(json_dump_file(doc, j->path, 0), 0);
	json_decref(doc);
	setenv("INCLINE_GROUP", j->path, 1);
}

void prepare(struct job *j, unsigned n, void (*work)(struct rank *me))
{
	static unsigned serial;
	const unsigned id = serial++;

	memset(j, 0, sizeof(*j));
	forget_warnings();
	j->n = n;
	j->work = work;
	for (unsigned i = 0; i < N; i++)
		j->order[i] = i;
	fake_init(n, 1024, id);
	fake_window(8);
	fake_auto(true);
	j->sw.missing_rank = -1;
	snprintf(j->sw.path, sizeof(j->sw.path), "/tmp/nccl-test-%d-%u", getpid(), id);
	write_group(j, id);
	pthread_barrier_init(&j->all, NULL, n);
	assert_int_equal(net->init(logger), NCCL_OK);
	assert_int_equal(coll->init(logger), NCCL_OK);
}

static void *rank_main(void *arg)
{
	struct rank *me = arg;
	struct job *j = me->job;
	void *handles[N];

	me->connected = coll->listen((int)me->dev, j->handle[me->rank], &me->listener);
	pthread_barrier_wait(&j->all);
	for (unsigned r = 0; r < j->n; r++)
		handles[r] = j->handle[r];
	if (!me->connected)
		me->connected =
			coll->connect(handles, (int)j->n, (int)me->rank, me->listener, &me->comm);
	if (me->connected) /* NCCL forgets the listener */
		return NULL;
	coll->close_listen(me->listener);
	j->work(me);
	return NULL;
}

void run(struct job *j)
{
	fake_switch_start(&j->sw);
	for (unsigned i = 0; i < j->n; i++) {
		j->rank[i] = (struct rank){.job = j, .rank = i, .dev = j->order[i]};
		assert_int_equal(
			pthread_create(&j->rank[i].thread, NULL, rank_main, &j->rank[i]), 0);
	}
	for (unsigned i = 0; i < j->n; i++)
		pthread_join(j->rank[i].thread, NULL);
	fake_switch_stop(&j->sw);
	assert_string_equal(j->sw.breach, "");
}

void all_right(const struct job *j)
{
	for (unsigned i = 0; i < j->n; i++) {
		assert_int_equal(j->rank[i].connected, NCCL_OK);
		assert_int_equal(j->rank[i].wrong, 0);
	}
}

void finish(struct job *j)
{
	json_decref(j->sw.created);
	json_decref(j->sw.activated);
	pthread_barrier_destroy(&j->all);
	unlink(j->path);
	fake_fini();
}

int complete(void *request)
{
	int done = 0, len = -1;

	while (!done) {
		if (coll->test(request, &done, &len))
			return -1;
		if (!done)
			sched_yield();
	}
	return len;
}
