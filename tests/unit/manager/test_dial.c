/* SPDX-License-Identifier: BSD-3-Clause */
/* The manager with its sockets dials a switch's agent over TLS, and serves a tenant over TLS. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctrl/manager/serve.h"
#include "lib/ctl/address.h"
#include "lib/ctl/client.h"
#include "lib/ctl/manager_schema.h"
#include "lib/ctl/rpc.h"
#include "lib/ctl/tls.h"
#include "tests/unit/ctl/server_helper.h"

static char switch_at[96], manager_at[96];
static atomic_bool switch_ready, manager_ready;
static volatile sig_atomic_t stop_manager, renew_certificates;

static void note_switch(struct sw *sw, const char *path, const char *tcp)
{
	(void)sw, (void)path;
	snprintf(switch_at, sizeof(switch_at), "%s", tcp);
	switch_ready = true;
}

static void note_manager(const char *path, const char *tcp)
{
	(void)path;
	snprintf(manager_at, sizeof(manager_at), "%s", tcp);
	manager_ready = true;
}

static void await(const atomic_bool *ready)
{
	for (unsigned tries = 0; tries < LONG_MS / 10 && !*ready; tries++)
		usleep(10000);
	assert_true(*ready);
}

static void *manage(void *config)
{
	return (void *)(intptr_t)manager_run(
		config, &stop_manager, &renew_certificates, note_manager, &manager_times);
}

static void certify(const char *dir, const char *words)
{
	char text[256];

	snprintf(text, sizeof(text), CERTS " %s/certs%s%s", dir, words[0] == '/' ? "" : " ", words);
	assert_int_equal(system(text), 0);
}

static json_t *manager_config(const char *dir)
{
	json_t *c = json_pack(
		"{s:s+,s:s,s:s+,s:s+,s:s+,s:[{s:s,s:s,s:s}],s:[{s:s,s:s}],s:[{s:s,s:s,s:s}]}",
		"listen", dir, "/m", "listen_tcp", "127.0.0.1:0", "tls", dir, "/certs/boss",
		"audit", dir, "/audit", "store", dir, "/store", "switches", "name", "leaf",
		"control", switch_at, "ip", "10.2.0.1", "hosts", "name", "h", "ip", "10.1.0.1",
		"links", "a", "leaf", "a_port", "p0", "b", "h");
	struct ctl_problem p;

	assert_non_null(c);
	if (ctl_check_value(&ctl_manager_config, c, "", &p))
		fail_msg("%s: %s", p.path, p.msg);
	return c;
}

/* As the one whose certificates are there. */
static struct ctl_client *connect_as(const char *dir, const char *who)
{
	struct ctl_client *c;
	struct ctl_error e;
	char path[160];

	snprintf(path, sizeof(path), "%s/certs/%s", dir, who);
	setenv(CTL_TLS_ENV, path, 1);
	if (ctl_connect(manager_at, LONG_MS, &c, &e))
		fail_msg("%s", e.msg);
	return c;
}

/* Likewise: the result (new reference), NULL and the error. */
static json_t *ask_as(
	const char *dir, const char *who, const char *method, json_t *params, struct ctl_error *e)
{
	struct ctl_client *c = connect_as(dir, who);
	json_t *result;

	ctl_call(c, method, params, LONG_MS, &result, e);
	ctl_close(c);
	json_decref(params);
	return result;
}

static bool leaf_is_up(const char *dir)
{
	struct ctl_error e;
	json_t *t = ask_as(dir, "boss", "topology.get", NULL, &e);
	const bool up =
		!strcmp("up", rpc_string(json_array_get(json_object_get(t, "nodes"), 0), "state"));

	json_decref(t);
	return up;
}

/* The server's end of a connection of ours: it is in this process as well. */
static int other_end(int fd)
{
	struct sockaddr_in ours, theirs;

	for (unsigned tries = 0; tries < LONG_MS / 10; tries++) {
		socklen_t len = sizeof(ours);

		assert_int_equal(getsockname(fd, (struct sockaddr *)&ours, &len), 0);
		for (int at = 3; at < 256; at++) {
			len = sizeof(theirs);
			if (!getpeername(at, (struct sockaddr *)&theirs, &len) &&
				theirs.sin_family == AF_INET && theirs.sin_port == ours.sin_port)
				return at;
		}
		usleep(10000);
	}
	fail_msg("nobody accepts");
	return -1;
}

static int option_of(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

/* A rank whose machine is gone says nothing: three heartbeats, and its connection ends. */
static void expect_watched(void)
{
	struct ctl_address at;
	int fd, end;

	assert_int_equal(ctl_address_parse(manager_at, &at), 0);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at.sa, at.len), 0);
	end = other_end(fd);
	/* The last thing that is set once it is accepted. */
	for (unsigned tries = 0; tries < LONG_MS / 10; tries++) {
		if (option_of(end, IPPROTO_TCP, TCP_USER_TIMEOUT) == 3000)
			break;
		usleep(10000);
	}
	assert_int_equal(option_of(end, IPPROTO_TCP, TCP_USER_TIMEOUT), 3000);
	assert_int_equal(option_of(end, SOL_SOCKET, SO_KEEPALIVE), 1);
	assert_int_equal(option_of(end, IPPROTO_TCP, TCP_KEEPIDLE), 1);
	assert_int_equal(option_of(end, IPPROTO_TCP, TCP_KEEPINTVL), 1);
	close(fd);
}

static void renew(void)
{
	renew_certificates = 1;
	for (unsigned tries = 0; tries < LONG_MS / 10 && renew_certificates; tries++)
		usleep(10000);
	assert_false(renew_certificates);
}

/* A switch whose certificate is revoked while it is connected is let go of, and not come back to.
 */
static void expect_revoked(const char *dir)
{
	char text[256];

	certify(dir, "revoke bob");
	snprintf(text, sizeof(text), "cp -r %s/certs %s/before", dir, dir);
	assert_int_equal(system(text), 0);
	renew();
	assert_true(leaf_is_up(dir));
	certify(dir, "revoke leaf");
	renew();
	assert_false(leaf_is_up(dir));
	usleep(500000); /* it dials five times a second */
	assert_false(leaf_is_up(dir));
	snprintf(text, sizeof(text), "rm -r %s/certs && mv %s/before %s/certs", dir, dir, dir);
	assert_int_equal(system(text), 0);
	renew();
	for (unsigned tries = 0; tries < LONG_MS / 10 && !leaf_is_up(dir); tries++)
		usleep(10000);
	assert_true(leaf_is_up(dir));
}

/* Certificates of another CA take the place of those that the manager has: who comes then has to
 * have one of that. What cannot be read changes nothing. */
static void expect_renewed(const char *dir)
{
	struct ctl_client *c, *before;
	struct ctl_error e;
	char text[512];

	snprintf(text, sizeof(text), "%s/certs/alice", dir);
	setenv(CTL_TLS_ENV, text, 1);
	assert_int_equal(ctl_connect(manager_at, LONG_MS, &before, &e), 0);
	snprintf(text, sizeof(text), "mv %s/certs/boss/key.pem %s/certs/kept", dir, dir);
	assert_int_equal(system(text), 0);
	renew();
	assert_int_equal(ctl_connect(manager_at, LONG_MS, &c, &e), 0);
	assert_int_equal(ctl_call(c, "ping", NULL, LONG_MS, NULL, &e), 0);
	ctl_close(c);
	certify(dir, "/other");
	certify(dir, "/other operator eve");
	certify(dir, "/other tenant bob");
	certify(dir, "/other revoke bob"); /* a directory that had a list has to have one */
	snprintf(text, sizeof(text), "cp %s/certs/other/eve/* %s/certs/boss", dir, dir);
	assert_int_equal(system(text), 0);
	renew();
	assert_int_equal(ctl_connect(manager_at, LONG_MS, &c, &e), -EACCES);
	assert_int_equal(ctl_call(before, "ping", NULL, LONG_MS, NULL, &e), 0);
	ctl_close(before);
	json_decref(ask_as(dir, "other/eve", "ping", NULL, &e));
}

/* What operators see of jobs and switches. */
static char *everything(const char *dir)
{
	struct ctl_error e;
	json_t *all = json_pack("{s:o,s:o,s:o}", "jobs", ask_as(dir, "boss", "job.list", NULL, &e),
		"fabric", ask_as(dir, "boss", "topology.get", NULL, &e), "version",
		ask_as(dir, "boss", "version", NULL, &e));
	char *text = json_dumps(all, JSON_SORT_KEYS);

	json_decref(all);
	return text;
}

/* Another tenant asks all there is about a job, and knows even its rank's secret. */
static void ask_all(const char *dir, const json_t *about)
{
	for (unsigned i = 0; i < ctl_manager_schema.n; i++) {
		const struct ctl_method *m = &ctl_manager_schema.methods[i];
		json_t *params = json_object(), *r;
		struct ctl_error e = {0};

		for (const struct ctl_field *f = m->params; f && f->name; f++)
			if (json_object_get(about, f->name))
				json_object_set(params, f->name, json_object_get(about, f->name));
		r = ask_as(dir, "bob", m->name, params, &e);
		if (!strcmp(m->name, "job.list"))
			assert_int_equal(json_array_size(json_object_get(r, "jobs")), 0);
		else if (!strcmp(m->name, "job.explain"))
			assert_non_null(strstr(e.msg, "no job is named \"hers\""));
		else if (!strcmp(m->name, "ping") || !strcmp(m->name, "version") ||
			 !strcmp(m->name, "manager.who"))
			assert_non_null(r);
		else if (r || e.code != CTL_NOT_ALLOWED)
			fail_msg("%s: %s", m->name, r ? "was done" : e.msg);
		json_decref(r);
	}
}

/* Alice's job is there, and stays as it is, whatever bob asks. */
static void expect_hers(const char *dir)
{
	struct ctl_client *alice = connect_as(dir, "alice");
	json_t *about = json_pack("{s:s,s:i,s:i,s:i,s:s,s:i}", "job", "hers", "ranks", 2, "rank", 0,
		       "who", 7, "ip", "10.1.0.1", "mtu", 1024),
	       *r;
	char *before, *after;
	struct ctl_error e;

	if (ctl_call(alice, "job.join", about, LONG_MS, &r, &e))
		fail_msg("%s", e.msg);
	json_object_set(about, "epoch", json_object_get(r, "epoch"));
	json_object_set_new(about, "policy", json_string("edt"));
	json_decref(r);
	before = everything(dir);
	assert_non_null(strstr(before, "\"hers\""));
	ask_all(dir, about);
	after = everything(dir);
	assert_string_equal(before, after);
	free(before);
	free(after);
	json_decref(about);
	ctl_close(alice);
}

static void test_over_tls(void **state)
{
	struct fixture *f = *state;
	struct ctl_error e;
	pthread_t thread;
	json_t *config, *r;
	char path[160], line[512] = "";
	void *rc;

	certify(f->dir, "");
	certify(f->dir, "agent leaf");
	certify(f->dir, "operator boss");
	certify(f->dir, "tenant alice");
	certify(f->dir, "tenant bob");
	snprintf(path, sizeof(path), "%s/certs/leaf", f->dir);
	f->config = json_pack("{s:s,s:s}", "control_tcp", "127.0.0.1:0", "control_tls", path);
	f->limits.ready = note_switch;
	start(f);
	await(&switch_ready);
	config = manager_config(f->dir);
	assert_int_equal(pthread_create(&thread, NULL, manage, config), 0);
	await(&manager_ready);
	for (unsigned tries = 0; tries < LONG_MS / 10 && !leaf_is_up(f->dir); tries++)
		usleep(10000);
	assert_true(leaf_is_up(f->dir));
	expect_watched();
	expect_hers(f->dir);
	r = ask_as(f->dir, "boss", "policy.set", json_pack("{s:s}", "policy", "temporal"), &e);
	assert_string_equal(rpc_string(r, "before"), "spatial");
	json_decref(r);
	expect_revoked(f->dir);
	expect_renewed(f->dir);
	stop_manager = 1;
	pthread_join(thread, &rc);
	assert_int_equal((intptr_t)rc, 0);
	json_decref(config);
	/* All changes, done or refused, and what may not be asked are written down, with the time.
	 */
	snprintf(path, sizeof(path), "%s/audit", f->dir);
	FILE *log = fopen(path, "r");
	assert_non_null(log);
	static const char *const written[][2] = {{"alice", "job.join"}, {"bob", "job.join"},
		{"bob", "job.heartbeat"}, {"bob", "job.ready"}, {"bob", "job.leave"},
		{"bob", "policy.set"}, {"bob", "topology.get"}, {"boss", "policy.set"}};
	for (unsigned i = 0; i < sizeof(written) / sizeof(*written); i++) {
		assert_non_null(fgets(line, sizeof(line), log));
		r = json_loads(line, 0, NULL);
		assert_string_equal(rpc_string(r, "name"), written[i][0]);
		assert_string_equal(rpc_string(r, "method"), written[i][1]);
		assert_int_equal(strlen(rpc_string(r, "time")), 24);
		json_decref(r);
	}
	assert_null(fgets(line, sizeof(line), log));
	fclose(log);
	snprintf(line, sizeof(line), "rm -r %s/certs %s/audit %s/store*", f->dir, f->dir, f->dir);
	assert_int_equal(system(line), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_over_tls, setup_dir, teardown)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
