/* SPDX-License-Identifier: BSD-3-Clause */
/* A control socket over TLS: who is let in, as what, and what becomes of those who are not, who
 * never finish a handshake, who send nonsense. Certificates are tools/certs's. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/ctl/address.h"
#include "lib/ctl/client.h"
#include "lib/ctl/tls.h"
#include "tests/unit/ctl/tls_helper.h"

static int setup_tls(void **state)
{
	setup_dir(state);
	((struct fixture *)*state)->limits =
		(struct agent_options){.line_ms = 10 * LONG_MS, .stall_ms = 10 * LONG_MS};
	start_as(*state, "leaf");
	return 0;
}

static int setup_tls_impatient(void **state)
{
	setup_dir(state);
	((struct fixture *)*state)->limits = (struct agent_options){.line_ms = 300};
	start_as(*state, "leaf");
	return 0;
}

static void test_roles(void **state)
{
	(void)state;
	assert_int_equal(call_as("boss", "table.list"), 0);
	assert_int_equal(call_as("boss", "stats.get"), 0);
	assert_int_equal(call_as("alice", "status"), 0);
	assert_int_equal(call_as("alice", "table.list"), CTL_NOT_ALLOWED);
	assert_int_equal(call_as("alice", "table.write"), CTL_NOT_ALLOWED);
	assert_int_equal(call_as("leaf", "ping"), 0);
	assert_int_equal(call_as("leaf", "status"), CTL_NOT_ALLOWED);
	/* Not what it says: ours does not trust the server, the server not ours. */
	assert_int_equal(call_as("other/eve", "ping"), -EACCES);
	assert_int_equal(call_as("old", "ping"), -EACCES);
	assert_int_equal(call_as("nobody", "ping"), -EACCES);
	expect_alive(*state);
}

/* A tenant's certificate does not make a server, nor does an end of another CA. */
static void test_false_server(void **state)
{
	struct fixture *f = *state;

	start_as(f, "alice");
	assert_int_equal(call_as("boss", "ping"), -EACCES);
	stop(f);
	json_decref(f->config);
	start_as(f, "other/eve");
	assert_int_equal(call_as("boss", "ping"), -EACCES);
	assert_int_equal(call_as("other/eve", "ping"), 0);
}

static void test_bad_directory(void **state)
{
	static const struct {
		const char *change, *says;
	} bad[] = {
		{"rm %s/bad%.0s/ca.pem%s", "ca.pem: no CA's certificate there"},
		{"rm %s/bad%.0s/cert.pem%s", "cert.pem: no certificate there"},
		{"cp %s/bob/key.pem %s/bad/key.pem%s", "key.pem: no key there, or not the"},
		{"echo junk > %s/bad%.0s/key.pem%s", "key.pem: no key there"},
		{"echo junk > %s/bad%.0s/crl.pem%s", "crl.pem: no list of revoked certificates"},
		{"cp %s/other/eve/crl.pem %s/bad%s", "crl.pem: is not of the CA that has signed"},
		{"cp %s/other/mallory/* %s/bad%s", "cert.pem: is revoked"},
		{"cp %s/late/leaf/* %s/bad%s", "crl.pem: CRL has expired"},
	};
	char path[128], err[300];
	json_t *config;

	(void)state;
	snprintf(path, sizeof(path), "%s/bad", dir);
	config = json_pack("{s:s}", "control_tls", path);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		shell("rm -rf %s/bad && cp -r %s/leaf %s/bad", dir);
		assert_int_equal(agent_check_config(config, err, sizeof(err)), 0);
		shell(bad[i].change, "");
		assert_int_equal(agent_check_config(config, err, sizeof(err)), -EINVAL);
		if (!strstr(err, "control_tls: ") || !strstr(err, bad[i].says))
			fail_msg("\"%s\" lacks \"%s\"", err, bad[i].says);
	}
	json_decref(config);
}

/* The server's certificates become another CA's while it runs: who comes then has to have one of
 * that, who is there stays. A directory that is not right changes nothing. */
static void test_renewed(void **state)
{
	static volatile sig_atomic_t load;
	struct fixture *f = *state;
	struct ctl_client *before;
	struct ctl_error e;

	shell("rm -rf %s/turn && cp -r %s/leaf %s/turn", dir);
	f->limits.load = &load;
	start_as(f, "turn");
	be("boss");
	assert_int_equal(ctl_connect(tcp_name, LONG_MS, &before, &e), 0);
	for (unsigned i = 0; i < 2; i++) {
		shell(i ? "cp %s/other/leaf/* %s/turn%s" : "rm %s/turn/key.pem%.0s%s", "");
		load = 1;
		for (unsigned tries = 0; tries < LONG_MS / 10 && load; tries++)
			usleep(10000);
		assert_false(load);
		assert_int_equal(call_as("boss", "ping"), i ? -EACCES : 0);
		assert_int_equal(call_as("other/eve", "ping"), i ? 0 : -EACCES);
		assert_int_equal(ctl_call(before, "ping", NULL, LONG_MS, NULL, &e), 0);
	}
	ctl_close(before);
}

/* ---- a listener that is no server ---- */

static int listening;
static const char *says; /* NULL: it hangs up at once, "": when it was spoken to; else says that */

static void *answer_one(void *arg)
{
	const struct linger reset = {.l_onoff = 1};
	const int fd = accept(listening, NULL, NULL);
	char byte;

	if (says && read(fd, &byte, 1) == 1)
		put_text(fd, says);
	if (arg)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	return NULL;
}

static void start_listening(char name[40])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(at);

	listening = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listening, (struct sockaddr *)&at, len), 0);
	assert_int_equal(listen(listening, 1), 0);
	assert_int_equal(getsockname(listening, (struct sockaddr *)&at, &len), 0);
	snprintf(name, 40, "tcp:127.0.0.1:%u", ntohs(at.sin_port));
}

static int connect_to_listener(bool resets)
{
	struct ctl_client *c;
	struct ctl_error e;
	pthread_t thread;
	char name[40];

	start_listening(name);
	assert_int_equal(pthread_create(&thread, NULL, answer_one, resets ? name : NULL), 0);
	const int rc = ctl_connect(name, LONG_MS, &c, &e);

	pthread_join(thread, NULL);
	close(listening);
	return rc;
}

/* Who hangs up in a handshake may be a manager that has just ended, or a proxy with nobody behind:
 * that is no word on TLS, and the next of several is asked. */
static void test_hangs_up(void **state)
{
	static const char *const words[] = {NULL, "", "\x16\x03\x03\x01"};

	(void)state;
	be("boss");
	for (unsigned i = 0; i < 3; i++) {
		says = words[i];
		assert_int_equal(connect_to_listener(false), -ECONNRESET);
		assert_int_equal(connect_to_listener(true), -ECONNRESET);
	}
	says = "SSH-2.0-OpenSSH_9.2\r\n";
	assert_int_equal(connect_to_listener(false), -EPROTO);
}

/* A handshake that nobody waits for: with our server, one that we do not trust, one that is silent.
 */
static void test_in_steps(void **state)
{
	struct ctl_client *c;
	struct ctl_error e;
	char name[40];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		int rc;

		be(i ? "other/eve" : "boss");
		assert_int_equal(ctl_connect_begin(&ctl_sockets, tcp_name, &c, &e), 0);
		for (unsigned tries = 0;
			(rc = ctl_connected(c, &e)) == -EINPROGRESS && tries < LONG_MS; tries++)
			usleep(1000);
		assert_int_equal(rc, i ? -EACCES : 0);
		if (!i)
			assert_int_equal(ctl_call(c, "ping", NULL, LONG_MS, NULL, &e), 0);
		ctl_close(c);
	}
	be("boss");
	start_listening(name);
	assert_int_equal(ctl_connect_begin(&ctl_sockets, name, &c, &e), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(ctl_connected(c, &e), -EINPROGRESS);
	ctl_close(c);
	close(listening);
}

/* ---- others ---- */

static int dial_tcp(void)
{
	struct ctl_address at;
	int fd;

	assert_int_equal(ctl_address_parse(tcp_name, &at), 0);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at.sa, at.len), 0);
	return fd;
}

struct other {
	SSL_CTX *ctx;
	SSL *ssl;
	int fd;
};

/* Trusts everybody; with a certificate of this directory (NULL: with none), up to this version.
 * Whether the handshake came to an end here. */
static bool other_open(struct other *o, const char *who, int version)
{
	char path[160];

	o->ctx = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_max_proto_version(o->ctx, version);
	if (who) {
		snprintf(path, sizeof(path), "%s/%s/cert.pem", dir, who);
		assert_int_equal(SSL_CTX_use_certificate_chain_file(o->ctx, path), 1);
		snprintf(path, sizeof(path), "%s/%s/key.pem", dir, who);
		assert_int_equal(SSL_CTX_use_PrivateKey_file(o->ctx, path, SSL_FILETYPE_PEM), 1);
	}
	o->ssl = SSL_new(o->ctx);
	o->fd = dial_tcp();
	SSL_set_fd(o->ssl, o->fd);
	return SSL_connect(o->ssl) == 1;
}

static void other_close(struct other *o)
{
	SSL_free(o->ssl);
	SSL_CTX_free(o->ctx);
	close(o->fd);
}

/* The first bytes that come, "" if it is closed. */
static const char *say(struct other *o, const char *text)
{
	static char answer[4096];
	int n = SSL_write(o->ssl, text, (int)strlen(text));

	n = n > 0 ? SSL_read(o->ssl, answer, sizeof(answer) - 1) : 0;
	answer[n > 0 ? n : 0] = '\0';
	return answer;
}

static const char ping[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";

static void test_strangers(void **state)
{
	static const struct {
		const char *who;
		int version;
	} refused[] = {{NULL, TLS1_3_VERSION}, {"other/eve", TLS1_3_VERSION},
		{"old", TLS1_3_VERSION}, {"boss", TLS1_2_VERSION}, {"boss", TLS1_1_VERSION}};
	char byte;
	struct other o;
	int fd;

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		if (other_open(&o, refused[i].who, refused[i].version) && say(&o, ping)[0])
			fail_msg("%s was served", refused[i].who ? refused[i].who : "nobody");
		other_close(&o);
	}
	assert_true(other_open(&o, "boss", TLS1_3_VERSION));
	assert_non_null(strstr(say(&o, ping), "\"result\""));
	other_close(&o);
	/* A certificate of our CA whose subject says nothing to us. */
	assert_true(other_open(&o, "guest", TLS1_3_VERSION));
	assert_null(strstr(say(&o, ping), "\"result\""));
	other_close(&o);
	/* No TLS at all. */
	fd = dial_tcp();
	put_text(fd, ping);
	while (read(fd, &byte, 1) > 0)
		assert_true(byte != '{');
	close(fd);
	expect_alive(*state);
}

/* None of a handshake, the beginning of one, a finished one and half a line: all end. */
static void test_half_way(void **state)
{
	enum { N = 24 };
	static const unsigned char hello[] = {0x16, 3, 1, 1, 0, 1, 0, 0, 0xfc, 3, 3};
	struct other o;
	char byte;
	int fd[N];

	for (unsigned i = 0; i < N; i++) {
		fd[i] = dial_tcp();
		if (i % 2)
			put(fd[i], (const char *)hello, 1 + i % sizeof(hello));
	}
	assert_true(other_open(&o, "alice", TLS1_3_VERSION));
	assert_non_null(strstr(say(&o, "{\"jsonrpc\":"), "line was not finished in time"));
	assert_true(SSL_read(o.ssl, &byte, 1) <= 0);
	other_close(&o);
	for (unsigned i = 0; i < N; i++) {
		while (read(fd[i], &byte, 1) > 0)
			;
		close(fd[i]);
	}
	expect_alive(*state);
}

/* All places of the network with handshakes that nobody goes on with: the next one is served, and
 * the operator on this machine. */
static void test_crowd(void **state)
{
	enum { N = 384 };
	int fd[N];

	for (unsigned i = 0; i < N; i++)
		fd[i] = dial_tcp();
	assert_int_equal(call_as("alice", "ping"), 0);
	expect_alive(*state);
	for (unsigned i = 0; i < N; i++)
		close(fd[i]);
}

/* Answers pile up far beyond what is held for a client that does not read: none is lost. */
static void test_slow_reader(void **state)
{
	enum { N = 300 };
	char buf[16384];
	unsigned lines = 0;
	struct other o;

	(void)state;
	assert_true(other_open(&o, "alice", TLS1_3_VERSION));
	for (unsigned i = 0; i < N; i++) {
		const int n = snprintf(buf, sizeof(buf),
			"{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"schema.get\"}\n", i);

		assert_int_equal(SSL_write(o.ssl, buf, n), n);
	}
	while (lines < N) {
		const int n = SSL_read(o.ssl, buf, sizeof(buf));

		assert_true(n > 0);
		for (int k = 0; k < n; k++)
			lines += buf[k] == '\n';
	}
	assert_non_null(strstr(say(&o, ping), "\"result\""));
	other_close(&o);
}

static uint32_t roll(uint32_t *r)
{
	*r = *r * 1664525u + 1013904223u;
	return *r >> 8;
}

/* What is wrong is said; too long a line ends the connection. */
static void nonsense(struct other *o, uint32_t *r)
{
	static const char *const text[] = {"{", "[]", "null", "\"x\"", "{\"jsonrpc\":\"2.0\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.create\",\"params\":[]}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"owner.hold\",\"params\":{\"owner\":7}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.delete\",\"params\":{\"group\":-"
		"1}}",
		"{\"a\":1,\"a\":2}", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\\u0000\"}"};
	char line[600];
	size_t n = roll(r) % 500 + 1;

	if (roll(r) % 2) {
		snprintf(
			line, sizeof(line), "%s\n", text[roll(r) % (sizeof(text) / sizeof(*text))]);
	} else {
		line[0] = '!';
		for (size_t i = 1; i < n; i++)
			line[i] = (char)(roll(r) % 255 + 1);
		for (size_t i = 1; i < n; i++)
			if (line[i] == '\n')
				line[i] = ' ';
		memcpy(line + n, "\n", 2);
	}
	if (!strstr(say(o, line), "\"error\""))
		fail_msg("%s", line);
}

static void oversized(void)
{
	char *big = malloc(CTL_MAX_LINE + 5000);
	struct other o;

	memset(big, 'x', CTL_MAX_LINE + 4999);
	big[CTL_MAX_LINE + 4999] = '\0';
	assert_true(other_open(&o, "alice", TLS1_3_VERSION));
	assert_non_null(strstr(say(&o, big), "request is longer than 1048576 bytes"));
	other_close(&o);
	free(big);
}

static void test_nonsense(void **state)
{
	enum { N = 10000, OVERSIZED = 20 };
	uint32_t r = 20261124;
	struct other o;

	assert_true(other_open(&o, "alice", TLS1_3_VERSION));
	for (unsigned i = 0; i < N - OVERSIZED; i++)
		nonsense(&o, &r);
	for (unsigned i = 0; i < OVERSIZED; i++)
		oversized();
	assert_non_null(strstr(say(&o, ping), "\"result\""));
	other_close(&o);
	expect_alive(*state);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup_tls, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_roles),
		cmocka_unit_test_setup_teardown(test_false_server, setup_dir, teardown),
		cmocka_unit_test(test_bad_directory),
		cmocka_unit_test_setup_teardown(test_renewed, setup_dir, teardown),
		cmocka_unit_test_setup_teardown(test_revoked, setup_dir, teardown),
		cmocka_unit_test(test_hangs_up),
		T(test_in_steps),
		T(test_strangers),
		cmocka_unit_test_setup_teardown(test_half_way, setup_tls_impatient, teardown),
		T(test_crowd),
		T(test_slow_reader),
		T(test_nonsense),
	};

	signal(SIGPIPE, SIG_IGN); /* of what is OpenSSL's own here */
	return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
