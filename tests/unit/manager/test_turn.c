/* SPDX-License-Identifier: BSD-3-Clause */
/* A manager that waits for its turn, and takes it: what it tells the service manager, and what is
 * in its way on the same machine. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "ctrl/manager/serve.h"
#include "lib/ctl/lock.h"
#include "lib/ctl/manager_schema.h"
#include "tests/unit/manager/fake_etcd.h"

struct run {
	json_t *config;
	volatile sig_atomic_t stop;
	pthread_t thread;
	int rc;
};

/* Nothing takes so long unless it is broken; but of who hangs nothing can be waited for. */
#define TIMES(hung)                                                                      \
	{                                                                                \
		.lease_s = 3600, .etcd_ms = 60000, .campaign_ms = 10, .hung_ms = (hung), \
		.idle_ms = 60000                                                         \
	}
static const struct manager_times patient = TIMES(60000), impatient = TIMES(200);
static const struct manager_times *times;

static char dir[] = "/tmp/incline-turn-XXXXXX", path[108];
static unsigned port;
static int told = -1,
	   listens[2]; /* the service manager's socket; 'l' when one listens, 'e' at its end */

static void address(struct sockaddr_un *at, const char *name)
{
	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(at->sun_path, sizeof(at->sun_path), "%s/%s", dir, name);
}

static int bound(int type, const char *name)
{
	const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
	struct sockaddr_un at;

	address(&at, name);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static int set_up(void **state)
{
	const struct timeval patience = {.tv_sec = 60};
	struct sockaddr_un at;

	(void)state;
	times = &patient;
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	port = fake_etcd_start();
	told = bound(SOCK_DGRAM, "notify");
	assert_int_equal(setsockopt(told, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)), 0);
	address(&at, "notify");
	setenv("NOTIFY_SOCKET", at.sun_path, 1);
	setenv("WATCHDOG_USEC", "2", 1);
	unsetenv("WATCHDOG_PID");
	address(&at, "m");
	snprintf(path, sizeof(path), "%s", at.sun_path);
	assert_int_equal(pipe(listens), 0);
	return 0;
}

static int tear_down(void **state)
{
	struct sockaddr_un at;

	(void)state;
	fake_etcd_stop();
	address(&at, "notify");
	unlink(at.sun_path);
	unlink(path);
	close(told);
	close(listens[0]);
	close(listens[1]);
	return rmdir(dir);
}

static void note_ready(const char *where, const char *tcp)
{
	(void)where, (void)tcp;
	assert_int_equal(write(listens[1], "l", 1), 1);
}

static void await_listening(void)
{
	char byte;

	assert_int_equal(read(listens[0], &byte, 1), 1);
	assert_int_equal(byte, 'l');
}

static void *manage(void *arg)
{
	struct run *r = arg;

	r->rc = manager_run(r->config, &r->stop, NULL, note_ready, times);
	assert_int_equal(write(listens[1], "e", 1), 1);
	return NULL;
}

static void begin(struct run *r, const char *store)
{
	struct ctl_problem p;

	*r = (struct run){
		.config = json_pack("{s:s,s:s,s:[{s:s,s:s+,s:s}],s:[{s:s,s:s}],s:[{s:s,s:s,s:s}]}",
			"listen", path, "store", store, "switches", "name", "s", "control", dir,
			"/nobody", "ip", "10.2.0.1", "hosts", "name", "h", "ip", "10.1.0.1",
			"links", "a", "s", "a_port", "p0", "b", "h")};
	assert_int_equal(ctl_check_value(&ctl_manager_config, r->config, "", &p), 0);
	assert_int_equal(pthread_create(&r->thread, NULL, manage, r), 0);
}

static void begin_elected(struct run *r)
{
	char store[64];

	snprintf(store, sizeof(store), "etcd:http://127.0.0.1:%u/fab", port);
	begin(r, store);
}

static int ended(struct run *r)
{
	pthread_join(r->thread, NULL);
	json_decref(r->config);
	return r->rc;
}

static int end(struct run *r)
{
	r->stop = 1;
	return ended(r);
}

/* The next that the service manager is told; alive: its life as well. */
static const char *next(bool alive)
{
	static char text[512];
	ssize_t n;

	do {
		n = recv(told, text, sizeof(text) - 1, 0);
		assert_true(n > 0);
		text[n] = '\0';
	} while (!alive && !strcmp(text, "WATCHDOG=1"));
	return text;
}

/* Whoever waits is ready and lives; when it leads, it says that. */
static void waits(void **state)
{
	struct run r;

	(void)state;
	fake_etcd_put("fab/leader", "another");
	begin_elected(&r);
	assert_string_equal(
		next(false), "READY=1\nSTATUS=waiting: store: etcd: manager another leads");
	for (unsigned i = 0; i < 3; i++)
		assert_string_equal(next(true), "WATCHDOG=1");
	fake_etcd_remove("fab/leader");
	assert_string_equal(next(false), "STATUS=leading");
	await_listening();
	assert_int_equal(end(&r), 0);
}

/* Whose lease is gone before it has written anything waits for its next turn. */
static void overtaken_at_once(void **state)
{
	struct run r;

	(void)state;
	fake_etcd_do(FAKE_ROBBED, "/txn", 1);
	begin_elected(&r);
	assert_string_equal(
		next(false), "READY=1\nSTATUS=waiting: store: etcd: another manager leads");
	assert_string_equal(next(false), "STATUS=leading");
	await_listening();
	assert_int_equal(end(&r), 0);
}

/* Time passes by the pauses of who waits, and only so: then the lease of who led ends. */
static uint64_t paused_ns, lease_ends_ns; /* 0: pauses are the machine's */

/* The lock of who ends: he has it until the first pause. */
static char lock_file[CTL_LOCK_STRLEN];
static int lock = -1;

int __real_nanosleep(const struct timespec *pause, struct timespec *left);
int __wrap_nanosleep(const struct timespec *pause, struct timespec *left);

int __wrap_nanosleep(const struct timespec *pause, struct timespec *left)
{
	const uint64_t was = paused_ns;

	if (lock >= 0) {
		ctl_lock_leave(lock_file, lock);
		lock = -1;
	}
	if (!lease_ends_ns)
		return __real_nanosleep(pause, left);
	paused_ns += (uint64_t)pause->tv_sec * 1000000000 + (uint64_t)pause->tv_nsec;
	if (was < lease_ends_ns && paused_ns >= lease_ends_ns)
		fake_etcd_remove("fab/leader");
	return 0;
}

/* The bound of docs/manager.md: 6.5 s from the leader's last sign of life on, of which etcd may
 * take one to see that a lease is over. Whenever in a pause that is. */
static void takes_over_in_time(void **state)
{
	const uint64_t ms = 1000000, etcd_ms = 1000, lease_ms = manager_times.lease_s * 1000u;
	struct run r;

	(void)state;
	times = &manager_times;
	for (uint64_t later = 0; later < 1000; later += 249) {
		fake_etcd_put("fab/leader", "another");
		paused_ns = 0;
		lease_ends_ns = (lease_ms + later) * ms;
		begin_elected(&r);
		await_listening();
		assert_int_equal(fake_etcd_ttl(), manager_times.lease_s);
		assert_true(paused_ns >= lease_ends_ns);
		assert_true(paused_ns - later * ms <= (6500 - etcd_ms) * ms);
		assert_int_equal(end(&r), 0);
		assert_int_equal(read(listens[0], &(char){0}, 1), 1); /* that it has ended */
	}
	lease_ends_ns = 0;
}

static void stopped_while_it_waits(void **state)
{
	struct run r;

	(void)state;
	fake_etcd_put("fab/leader", "another");
	begin_elected(&r);
	next(false);
	assert_int_equal(end(&r), 0);
}

/* Somebody listens at the socket, and takes no connection. */
static void led_and_hangs(void **state)
{
	const int hung = bound(SOCK_STREAM, "m");
	struct run r;

	(void)state;
	times = &impatient;
	assert_int_equal(listen(hung, 1), 0);
	begin_elected(&r);
	await_listening();
	assert_int_equal(end(&r), 0);
	close(hung);
}

/* A bound socket at which nobody listens, and its lock. */
static void lock_socket(void)
{
	close(bound(SOCK_STREAM, "m"));
	ctl_lock_name(lock_file, path);
	lock = ctl_lock_take(lock_file);
	assert_true(lock >= 0);
}

/* Who led does not listen any more, and still has the socket's lock: he is waited for. */
static void led_and_ends(void **state)
{
	struct run r;

	(void)state;
	lock_socket();
	begin_elected(&r);
	await_listening();
	assert_int_equal(lock, -1);
	assert_int_equal(end(&r), 0);
}

/* The same, but he does not end; when he does later, the lock is another's. */
static void led_and_hangs_at_the_end(void **state)
{
	char name[CTL_LOCK_STRLEN];
	struct run r;
	int his;

	(void)state;
	lock_socket();
	his = lock;
	lock = -1;
	times = &impatient;
	begin_elected(&r);
	await_listening();
	ctl_lock_name(name, path);
	ctl_lock_leave(name, his);
	assert_int_equal(ctl_lock_take(name), -EWOULDBLOCK);
	assert_int_equal(end(&r), 0);
	assert_int_equal(access(name, F_OK), -1);
}

/* Somebody listens there, and has as many connections as may wait: as soon as one more has been
 * turned away, it takes all of them and answers. */
static int busy = -1;
static pthread_t answers;

static void *answer_all(void *arg)
{
	static const char line[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
	char text[256];

	for (;;) {
		const int fd = accept(busy, NULL, NULL);

		if (fd < 0)
			return arg;
		if (read(fd, text, sizeof(text)) > 0)
			(void)!write(fd, line, sizeof(line) - 1);
		close(fd);
	}
}

int __real_connect(int fd, const struct sockaddr *to, socklen_t len);
int __wrap_connect(int fd, const struct sockaddr *to, socklen_t len);

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	const int rc = __real_connect(fd, to, len), err = errno;

	if (rc && err == EAGAIN && busy >= 0 && !answers)
		assert_int_equal(pthread_create(&answers, NULL, answer_all, NULL), 0);
	errno = err;
	return rc;
}

static void led_and_is_busy(void **state)
{
	struct sockaddr_un at;
	struct run r;
	char byte;

	(void)state;
	busy = bound(SOCK_STREAM, "m");
	address(&at, "m");
	assert_int_equal(listen(busy, 0), 0);
	const int waits = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(__real_connect(waits, (struct sockaddr *)&at, sizeof(at)), 0);
	shutdown(waits, SHUT_WR);
	begin_elected(&r);
	assert_int_equal(read(listens[0], &byte, 1), 1);
	r.stop = 1;
	assert_int_equal(ended(&r), -EADDRINUSE);
	assert_int_equal(byte, 'e'); /* it has not listened */
	assert_true(answers != 0);   /* it was turned away once */
	assert_int_equal(access(path, F_OK), 0);
	shutdown(busy, SHUT_RDWR);
	pthread_join(answers, NULL);
	close(busy);
	close(waits);
	busy = -1;
}

/* Who answers there is not pushed aside. */
static void lives(void **state)
{
	struct run other, r;

	(void)state;
	begin(&other, "memory");
	await_listening();
	begin_elected(&r);
	assert_int_equal(ended(&r), -EADDRINUSE);
	assert_string_equal(fake_etcd_value("fab/leader"), ""); /* others may try */
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(end(&other), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(waits),
		T(overtaken_at_once),
		T(takes_over_in_time),
		T(stopped_while_it_waits),
		T(led_and_hangs),
		T(led_and_ends),
		T(led_and_hangs_at_the_end),
		T(led_and_is_busy),
		T(lives),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
