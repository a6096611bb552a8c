/* SPDX-License-Identifier: BSD-3-Clause */
/* A server's UNIX socket and its lock: who has it, and what others left behind. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/ctl/listen.h"
#include "lib/ctl/lock.h"

static char dir[] = "/tmp/incline-listen-XXXXXX", path[64], lock[CTL_LOCK_STRLEN];

static int set_up(void **state)
{
	(void)state;
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/s", dir);
	ctl_lock_name(lock, path);
	return 0;
}

/* Nothing is left there. */
static int tear_down(void **state)
{
	(void)state;
	return rmdir(dir);
}

static struct sockaddr_un address(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};

	memcpy(at.sun_path, path, sizeof(path));
	return at;
}

static void leave_stale_socket(void)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct sockaddr_un at = address();

	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	close(fd);
}

static int begin(struct ctl_place *place)
{
	char name[CTL_ADDRESS_STRLEN];
	int fd[CTL_MAX_LISTENERS];
	const int n = ctl_listen(path, NULL, fd, name, place);

	return n < 0 ? n : fd[0];
}

/* A connection to the path comes out of this descriptor. */
static void expect_served_by(int fd)
{
	const int mine = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct sockaddr_un at = address();

	assert_int_equal(connect(mine, (const struct sockaddr *)&at, sizeof(at)), 0);
	const int his = accept(fd, NULL, NULL);
	assert_true(his >= 0);
	close(his);
	close(mine);
}

/* What begin says on stderr, where that is the journal's. */
static int begin_and_hear(struct ctl_place *place, char *said, size_t cap)
{
	FILE *file = tmpfile();
	const int was = dup(STDERR_FILENO);
	char stream[64];
	struct stat st;

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	assert_true(was >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
	const int fd = begin(place);
	unsetenv("JOURNAL_STREAM");
	assert_true(dup2(was, STDERR_FILENO) >= 0);
	close(was);
	rewind(file);
	said[fread(said, 1, cap - 1, file)] = '\0';
	fclose(file);
	return fd;
}

static void second_server(void **state)
{
	char said[512], expected[256];
	struct ctl_place first, second;
	struct stat st;
	int fd;

	(void)state;
	fd = begin(&first);
	assert_true(fd >= 0);
	assert_int_equal(lstat(lock, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(begin_and_hear(&second, said, sizeof(said)), -EADDRINUSE);
	snprintf(expected, sizeof(expected),
		"<3>error: control socket %s: another program listens there: stop it, or choose "
		"another path (PID %d)\n",
		path, (int)getpid());
	assert_string_equal(said, expected);
	ctl_unlisten(path, &second); /* was never his */
	expect_served_by(fd);
	assert_int_equal(accept(fd, NULL, NULL), -1); /* nobody has asked who it is */
	assert_int_equal(errno, EAGAIN);
	close(fd);
	ctl_unlisten(path, &first);
}

/* Somebody has the lock and is about to remove what is there, and to bind. */
static void about_to_listen(void **state)
{
	struct stat before, after;
	struct ctl_place place;
	int fd;

	(void)state;
	leave_stale_socket();
	assert_int_equal(lstat(path, &before), 0);
	const int his = ctl_lock_take(lock);
	assert_true(his >= 0);
	assert_int_equal(begin(&place), -EADDRINUSE);
	assert_int_equal(lstat(path, &after), 0);
	assert_int_equal(after.st_ino, before.st_ino);
	ctl_lock_leave(lock, his);
	fd = begin(&place);
	assert_true(fd >= 0);
	expect_served_by(fd);
	close(fd);
	ctl_unlisten(path, &place);
}

/* A process that is killed while it serves leaves both files. */
static void left_by_the_killed(void **state)
{
	struct ctl_place place;
	int told[2], fd;
	char byte;

	(void)state;
	assert_int_equal(pipe(told), 0);
	const pid_t child = fork();
	if (child == 0) {
		if (begin(&place) < 0 || write(told[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(told[1]);
	assert_int_equal(read(told[0], &byte, 1), 1);
	close(told[0]);
	assert_int_equal(begin(&place), -EADDRINUSE);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(access(lock, F_OK), 0);
	fd = begin(&place);
	assert_true(fd >= 0);
	expect_served_by(fd);
	close(fd);
	ctl_unlisten(path, &place);
}

/* Who listens without a lock keeps his socket, and the lock's file does not stay. */
static void without_lock(void **state)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct sockaddr_un at = address();
	struct ctl_place place;

	(void)state;
	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(begin(&place), -EADDRINUSE);
	assert_int_equal(access(lock, F_OK), -1);
	close(accept(fd, NULL, NULL));
	expect_served_by(fd);
	close(fd);
	unlink(path);
}

/* ---- at once ---- */

enum { STARTERS = 4, ROUNDS = 40 };

static pthread_barrier_t all;

static struct starter {
	pthread_t thread;
	struct ctl_place place;
	int fd;
} starters[STARTERS];

static void *start(void *arg)
{
	struct starter *s = arg;

	pthread_barrier_wait(&all);
	s->fd = begin(&s->place);
	return NULL;
}

static void expect_one_winner(void)
{
	struct starter *winner = NULL;

	for (struct starter *s = starters; s < starters + STARTERS; s++) {
		pthread_join(s->thread, NULL);
		if (s->fd < 0) {
			assert_int_equal(s->fd, -EADDRINUSE);
			continue;
		}
		assert_null(winner);
		winner = s;
	}
	assert_non_null(winner);
	expect_served_by(winner->fd);
	close(winner->fd);
	ctl_unlisten(path, &winner->place);
	assert_int_equal(access(lock, F_OK), -1);
}

/* Of those that start at once over a stale socket one listens, where it can be reached. */
static void at_once(void **state)
{
	(void)state;
	pthread_barrier_init(&all, NULL, STARTERS);
	for (unsigned round = 0; round < ROUNDS; round++) {
		leave_stale_socket();
		for (struct starter *s = starters; s < starters + STARTERS; s++)
			assert_int_equal(pthread_create(&s->thread, NULL, start, s), 0);
		expect_one_winner();
	}
	pthread_barrier_destroy(&all);
}

/* ---- aside ---- */

static void look(struct ctl_lock_holder *holder)
{
	assert_int_equal(ctl_look(path, holder), 0);
}

static int push(struct ctl_lock_holder *holder)
{
	const int rc = ctl_push_aside(path, holder);

	ctl_lock_forget(holder);
	return rc;
}

/* Who was pushed aside takes nothing of his successor's with him. */
static void pushed_aside(void **state)
{
	struct ctl_lock_holder holder;
	struct ctl_place his, mine;
	int hung, fd;

	(void)state;
	hung = begin(&his);
	assert_true(hung >= 0);
	look(&holder);
	assert_int_equal(push(&holder), 0);
	fd = begin(&mine);
	assert_true(fd >= 0);
	ctl_unlisten(path, &his);
	close(hung);
	expect_served_by(fd);
	assert_int_equal(access(lock, F_OK), 0);
	close(fd);
	ctl_unlisten(path, &mine);
}

/* Two have found that he hangs: the second does not push the first aside. */
static void pushed_aside_by_two(void **state)
{
	struct ctl_lock_holder first, second;
	struct ctl_place his, mine;
	int hung, fd;

	(void)state;
	hung = begin(&his);
	assert_true(hung >= 0);
	look(&first);
	look(&second);
	assert_int_equal(push(&first), 0);
	fd = begin(&mine);
	assert_true(fd >= 0);
	assert_int_equal(push(&second), -EWOULDBLOCK);
	expect_served_by(fd);
	assert_int_equal(ctl_lock_take(lock), -EWOULDBLOCK);
	close(hung);
	ctl_unlisten(path, &his);
	close(fd);
	ctl_unlisten(path, &mine);
}

/* Who hung was killed, and somebody else has the lock of the very file that he left. */
static void killed_and_followed(void **state)
{
	struct ctl_lock_holder holder;
	struct ctl_place his, mine;
	int hung, fd;

	(void)state;
	hung = begin(&his);
	assert_true(hung >= 0);
	look(&holder);
	close(hung);
	close(his.lock);
	fd = begin(&mine);
	assert_true(fd >= 0);
	assert_int_equal(push(&holder), -EWOULDBLOCK);
	expect_served_by(fd);
	assert_int_equal(ctl_lock_take(lock), -EWOULDBLOCK);
	close(fd);
	ctl_unlisten(path, &mine);
}

/* He has no lock, and another who has one is about to listen. */
static void pushed_aside_without_lock(void **state)
{
	const int hung = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct sockaddr_un at = address();
	struct ctl_lock_holder holder;

	(void)state;
	assert_int_equal(bind(hung, (const struct sockaddr *)&at, sizeof(at)), 0);
	look(&holder);
	const int his = ctl_lock_take(lock);
	assert_true(his >= 0);
	assert_int_equal(ctl_push_aside(path, &holder), -EWOULDBLOCK);
	assert_int_equal(access(path, F_OK), 0);
	ctl_lock_leave(lock, his);
	assert_int_equal(push(&holder), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access(lock, F_OK), -1);
	close(hung);
}

static void *push_and_start(void *arg)
{
	struct starter *s = arg;
	struct ctl_lock_holder holder;

	look(&holder);
	pthread_barrier_wait(&all);
	push(&holder);
	s->fd = begin(&s->place);
	return NULL;
}

/* All at once, beside him who wakes up and ends: one of them listens. */
static void pushed_aside_at_once(void **state)
{
	(void)state;
	pthread_barrier_init(&all, NULL, STARTERS + 1);
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct ctl_place his;
		const int hung = begin(&his);

		assert_true(hung >= 0);
		for (struct starter *s = starters; s < starters + STARTERS; s++)
			assert_int_equal(pthread_create(&s->thread, NULL, push_and_start, s), 0);
		pthread_barrier_wait(&all);
		ctl_unlisten(path, &his);
		close(hung);
		expect_one_winner();
	}
	pthread_barrier_destroy(&all);
}

static struct follower {
	pthread_t thread;
	int lock;
} follower;

static void *follow(void *arg)
{
	(void)arg;
	follower.lock = ctl_lock_take(lock);
	return NULL;
}

int __real_unlink(const char *name);
int __wrap_unlink(const char *name);

/* Who is pushed aside has just ended, and another takes his lock, when its file is about to go. */
static bool followed;

int __wrap_unlink(const char *name)
{
	if (followed && strcmp(name, lock) == 0) {
		followed = false;
		assert_int_equal(pthread_create(&follower.thread, NULL, follow, NULL), 0);
		while (!ctl_lock_owner(lock))
			sched_yield();
	}
	return __real_unlink(name);
}

static void followed_meanwhile(void **state)
{
	struct ctl_lock_holder holder;
	struct ctl_place his;
	int hung;

	(void)state;
	hung = begin(&his);
	assert_true(hung >= 0);
	look(&holder);
	close(hung);
	close(his.lock);
	followed = true;
	assert_int_equal(push(&holder), 0);
	pthread_join(follower.thread, NULL);
	assert_true(follower.lock >= 0);
	assert_int_equal(ctl_lock_take(lock), -EWOULDBLOCK);
	ctl_lock_leave(lock, follower.lock);
}

/* ---- other users ---- */

enum { NOBODY = 65534 };

/* Its owner may have it closed to himself; root may have all open: he does as somebody else. */
static void of_another_user(void **state)
{
	char said[512], expected[512];
	const bool root = geteuid() == 0;
	struct ctl_place place;

	(void)state;
	close(open(lock, O_CREAT | O_WRONLY, 0));
	assert_int_equal(chmod(dir, 0777), 0);
	assert_false(root && seteuid(NOBODY));
	assert_int_equal(begin_and_hear(&place, said, sizeof(said)), -EACCES);
	assert_false(root && seteuid(0));
	snprintf(expected, sizeof(expected),
		"<3>error: control socket %s: its lock %s: Permission denied%s: remove it, or "
		"choose "
		"another path\n",
		path, lock, root ? ", it is user 0's" : "");
	assert_string_equal(said, expected);
	unlink(lock);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(second_server),
		T(about_to_listen),
		T(left_by_the_killed),
		T(without_lock),
		T(at_once),
		T(pushed_aside),
		T(pushed_aside_by_two),
		T(killed_and_followed),
		T(pushed_aside_without_lock),
		T(pushed_aside_at_once),
		T(followed_meanwhile),
		T(of_another_user),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
