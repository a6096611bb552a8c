/* SPDX-License-Identifier: BSD-3-Clause */
/* Who has a lock: on what file systems it is told, and when it is not. */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/ctl/lock.h"

static char dir[] = "/tmp/incline-lock-XXXXXX", file[CTL_LOCK_STRLEN];

static int set_up(void **state)
{
	(void)state;
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/f", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return rmdir(dir);
}

static void owner(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(ctl_lock_owner(file), 0);
	fd = ctl_lock_take(file);
	assert_true(fd >= 0);
	assert_int_equal(ctl_lock_owner(file), getpid());
	close(fd);
	assert_int_equal(access(file, F_OK), 0);
	assert_int_equal(ctl_lock_owner(file), 0);
	unlink(file);
}

/* Who took it has ended, and a child of his has it: the list still has a number that may by now be
 * anybody's. */
static void left_to_a_child(void **state)
{
	int told[2], hold[2], status;
	pid_t heir = 0;
	char byte;

	(void)state;
	assert_int_equal(pipe(told), 0);
	assert_int_equal(pipe(hold), 0);
	const pid_t child = fork();
	if (child == 0) {
		if (ctl_lock_take(file) < 0)
			_exit(1);
		heir = fork();
		if (heir == 0) {
			close(hold[1]);
			(void)!read(hold[0], &byte, 1);
			_exit(0);
		}
		_exit(write(told[1], &heir, sizeof(heir)) == sizeof(heir) ? 0 : 1);
	}
	close(hold[0]);
	assert_int_equal(read(told[0], &heir, sizeof(heir)), sizeof(heir));
	/* He has ended, but his number is still his. */
	assert_int_equal(waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	assert_int_equal(ctl_lock_take(file), -EWOULDBLOCK);
	assert_int_equal(ctl_lock_owner(file), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(ctl_lock_owner(file), 0);
	close(hold[1]);
	close(told[0]);
	close(told[1]);
	unlink(file);
}

/* ---- file systems ---- */

enum { TOLD, NOT_TOLD, NO_MOUNTS };

/* Its layers are of two file systems: then the kernel's list and stat differ in the device. */
static int mount_overlay(void)
{
	static const char *const parts[] = {"up", "work", "over", "low"};
	char options[256], name[128];

	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		mount("incline-test", dir, "tmpfs", 0, NULL))
		return NO_MOUNTS;
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(name, sizeof(name), "%s/%s", dir, parts[i]);
		if (mkdir(name, 0700))
			return NO_MOUNTS;
	}
	if (mount("incline-test", name, "tmpfs", 0, NULL))
		return NO_MOUNTS;
	snprintf(options, sizeof(options), "lowerdir=%s/low,upperdir=%s/up,workdir=%s/work", dir,
		dir, dir);
	snprintf(name, sizeof(name), "%s/over", dir);
	return mount("overlay", name, "overlay", 0, options) ? NO_MOUNTS : TOLD;
}

/* In a mount namespace of its own, which goes with it. */
static int owner_in_overlay(void)
{
	int rc;

	if (unshare(CLONE_NEWNS))
		return NO_MOUNTS;
	rc = mount_overlay();
	if (rc != TOLD)
		return rc;
	snprintf(file, sizeof(file), "%s/over/f", dir);
	if (ctl_lock_take(file) < 0)
		return NOT_TOLD;
	return ctl_lock_owner(file) == getpid() ? TOLD : NOT_TOLD;
}

static void overlay(void **state)
{
	int status;

	(void)state;
	const pid_t child = fork();
	if (child == 0)
		exit(owner_in_overlay());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_MOUNTS)
		skip();
	assert_int_equal(WEXITSTATUS(status), TOLD);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(owner),
		T(left_to_a_child),
		T(overlay),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
