/* SPDX-License-Identifier: BSD-3-Clause */
/* How often the manager dials a switch, and what it says of it: real sockets and TLS in one thread,
 * and a clock that only the test moves. */
#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/bufferevent_ssl.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "ctrl/manager/dial.h"
#include "lib/ctl/tls.h"

enum { TICK_MS = 100 };

static char dir[64], control[64];
static struct event_base *base;
static SSL_CTX *ours, *theirs;
static struct manager_dial *dial;
static uint64_t now_ms;

/* The switch. */
static struct sockaddr_in place;
static struct evconnlistener *listener;
static struct bufferevent *peer;
static bool hangs_up, is_full;

/* What was heard of it. */
static unsigned ups, downs, deads, answers, lines;
static char said[512];

/* ---- the switch ---- */

static void drop_peer(void)
{
	if (peer)
		bufferevent_free(peer);
	peer = NULL;
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	(void)arg;
	if (!(what & BEV_EVENT_CONNECTED) || hangs_up)
		drop_peer();
	else
		evbuffer_add(bufferevent_get_output(bev), "{}\n", 3);
}

static void on_accept(
	struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *from, int len, void *arg)
{
	(void)l, (void)from, (void)len, (void)arg;
	drop_peer();
	if (is_full) {
		assert_int_equal(write(fd, "{\"error\":1}\n", 12), 12);
		close(fd);
		return;
	}
	peer = bufferevent_openssl_socket_new(
		base, fd, SSL_new(theirs), BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
	bufferevent_setcb(peer, NULL, NULL, on_event, NULL);
	bufferevent_enable(peer, EV_READ | EV_WRITE);
}

static void listen_there(void)
{
	listener = evconnlistener_new_bind(base, on_accept, NULL,
		LEV_OPT_CLOSE_ON_FREE | LEV_OPT_REUSEABLE, 8, (struct sockaddr *)&place,
		sizeof(place));
	assert_non_null(listener);
}

static void listen_no_more(void)
{
	drop_peer();
	evconnlistener_free(listener);
	listener = NULL;
}

/* The switch shows who's certificate from now on, and believes the CA there. */
static void show(const char *who)
{
	char path[128], err[CTL_TLS_ERR_LEN];

	SSL_CTX_free(theirs);
	snprintf(path, sizeof(path), "%s/certs/%s", dir, who);
	if (ctl_tls_open(path, CTL_TLS_SERVES, &theirs, err))
		fail_msg("%s", err);
}

/* ---- the manager ---- */

static const char *control_of(void *arg, unsigned i)
{
	(void)arg, (void)i;
	return control;
}

static void up(void *arg, unsigned i)
{
	(void)arg, (void)i;
	ups++;
}

static void down(void *arg, unsigned i, bool dead)
{
	(void)arg, (void)i;
	downs++;
	deads += dead;
}

static bool heard(void *arg, unsigned i, const char *line, size_t len)
{
	(void)arg, (void)i, (void)line, (void)len;
	answers++;
	return true;
}

static void say(void *arg, enum journal_level level, const char *line)
{
	(void)arg, (void)level;
	lines++;
	snprintf(said, sizeof(said), "%s", line);
}

/* ---- time ---- */

/* What connections have come to. */
static unsigned ends(void)
{
	return downs + answers;
}

static void await_end(unsigned before)
{
	while (ends() == before)
		assert_int_equal(event_base_loop(base, EVLOOP_ONCE), 0);
}

/* How often it is dialled meanwhile. */
static unsigned pass(unsigned ms)
{
	unsigned dialled = 0;

	for (const uint64_t end = now_ms + ms; now_ms < end;) {
		const unsigned before = ends();

		now_ms += TICK_MS;
		if (!manager_dial_tick(dial, now_ms * 1000000))
			continue;
		dialled++;
		await_end(before);
	}
	return dialled;
}

/* The switch hangs up, and the manager knows. */
static void lose(void)
{
	const unsigned before = ends();

	drop_peer();
	await_end(before);
}

/* ---- tests ---- */

static void run(const char *words)
{
	char text[256];

	snprintf(text, sizeof(text), CERTS " %s/certs%s", dir, words);
	assert_int_equal(system(text), 0);
}

static void open_all(void)
{
	const struct manager_dial_io io = {NULL, control_of, up, down, heard, say};
	char err[MANAGER_ERR_LEN], path[128];
	socklen_t len = sizeof(place);

	place = (struct sockaddr_in){
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	listen_there();
	assert_int_equal(
		getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&place, &len), 0);
	snprintf(control, sizeof(control), "tcp:127.0.0.1:%u", ntohs(place.sin_port));
	snprintf(path, sizeof(path), "%s/certs/boss", dir);
	assert_int_equal(ctl_tls_open(path, CTL_TLS_ASKS, &ours, err), 0);
	assert_int_equal(manager_dial_open(base, &ours, 1, &io, &dial, err), 0);
}

static int setup(void **state)
{
	char text[256];

	(void)state;
	snprintf(dir, sizeof(dir), "%s/incline-test-XXXXXX", getenv("TMPDIR") ?: "/tmp");
	assert_non_null(mkdtemp(dir));
	run("");
	run(" agent leaf");
	run(" operator boss");
	run("/other");
	run("/other agent leaf");
	/* Of ours, and believes another CA. */
	snprintf(text, sizeof(text), "cd %s/certs && cp -r leaf deaf && cp other/leaf/ca.pem deaf",
		dir);
	assert_int_equal(system(text), 0);
	base = event_base_new();
	now_ms = 1000;
	open_all();
	return 0;
}

static int teardown(void **state)
{
	char text[128];

	(void)state;
	manager_dial_close(dial);
	if (listener)
		listen_no_more();
	event_base_free(base);
	SSL_CTX_free(ours);
	SSL_CTX_free(theirs);
	snprintf(text, sizeof(text), "rm -r %s", dir);
	return system(text);
}

static void expect_said(unsigned n, const char *what)
{
	assert_int_equal(lines, n);
	assert_int_equal(strncmp(said, control, strlen(control)), 0);
	assert_non_null(strstr(said, what));
}

/* Whom TLS keeps away is dialled less and less often, down to every 5 s, and why is said once. */
static void kept_away(void)
{
	show("boss");
	assert_int_equal(pass(3100), 5); /* 200, 400, 800 and 1600 ms apart */
	assert_int_equal(pass(60000), 1 + 11);
	expect_said(1, ": has the certificate of operator \"boss\", not a switch's");
	show("other/leaf");
	assert_int_equal(pass(20000), 4);
	expect_said(2, ": its certificate: ");
	show("deaf");
	assert_int_equal(pass(20000), 4);
	expect_said(3, ": TLS: ");
	assert_int_equal(answers, 0);
	assert_int_equal(deads, 0);
}

/* Where nobody listens it is dialled five times a second, and that is told, whatever was before. */
static void nobody_there(void)
{
	unsigned before;

	listen_no_more();
	pass(5000);
	before = deads;
	assert_true(before > 0);
	assert_int_equal(pass(10000), 50);
	assert_int_equal(deads, before + 50);
	assert_int_equal(lines, 3);
}

/* Nor is who has no room for clients, and says so before TLS, somebody who says no. */
static void no_room(void)
{
	listen_there();
	is_full = true;
	pass(5000);
	assert_int_equal(pass(10000), 50);
	assert_int_equal(lines, 3);
	is_full = false;
	listen_no_more();
}

/* As soon as it is a switch, all that was before is forgotten. */
static void well(void)
{
	listen_there();
	show("boss");
	pass(10000);
	expect_said(4, ": has the certificate of operator ");
	show("leaf");
	assert_int_equal(pass(5000), 1);
	assert_int_equal(answers, 1);
	lose();
	assert_int_equal(pass(200), 1);
	assert_int_equal(answers, 2);
	assert_int_equal(lines, 4);
}

/* With other certificates at this end it may be otherwise: nobody waits for 5 s then. */
static void renewed(void)
{
	show("boss");
	lose();
	pass(30000);
	expect_said(5, ": has the certificate of operator ");
	show("leaf");
	manager_dial_renewed(dial);
	pass(200);
	assert_int_equal(answers, 3);
}

/* Who takes the handshake and hangs up says no as well; one that has answered does not. */
static void after_the_handshake(void)
{
	hangs_up = true;
	lose();
	assert_true(pass(60000) < 20);
	expect_said(6, ": hangs up after the handshake");
}

static void test_redial(void **state)
{
	(void)state;
	kept_away();
	nobody_there();
	no_room();
	well();
	renewed();
	after_the_handshake();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_redial, setup, teardown)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
