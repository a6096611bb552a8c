/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of the EAL's words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <rte_debug.h>
#include <rte_log.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/port/internal.h"

static char said[65536];

static void begin(FILE **out, int *saved)
{
	*out = tmpfile();
	assert_non_null(*out);
	fflush(stderr);
	*saved = dup(2);
	dup2(fileno(*out), 2);
}

/* What came on stderr since. */
static const char *end(FILE *out, int saved)
{
	size_t n;

	fflush(stderr);
	dup2(saved, 2);
	close(saved);
	rewind(out);
	n = fread(said, 1, sizeof(said) - 1, out);
	said[n] = '\0';
	fclose(out);
	return said;
}

static const char *log_one(uint32_t level, const char *text)
{
	FILE *out;
	int saved;

	port_log_clear();
	begin(&out, &saved);
	rte_log(level, RTE_LOGTYPE_EAL, "%s\n", text);
	return end(out, saved);
}

static void errors(void **state)
{
	(void)state;
	assert_string_equal(log_one(RTE_LOG_ERR, "an error"), "incline: DPDK: an error\n");
	assert_string_equal(port_log_error(), "an error");
	assert_string_equal(log_one(RTE_LOG_WARNING, "a warning"), "");
	assert_string_equal(port_log_error(), "");
	port_log_quote(true);
	assert_string_equal(log_one(RTE_LOG_ERR, "quoted"), "");
	assert_string_equal(port_log_error(), "quoted");
	assert_string_equal(log_one(RTE_LOG_CRIT, "grave"), "incline: DPDK: grave\n");
	port_log_quote(false);
}

static void flood(void **state)
{
	unsigned lines = 0;
	FILE *out;
	int saved;

	(void)state;
	begin(&out, &saved);
	for (unsigned i = 0; i < 1000; i++)
		port_log_line("again\n", 6, RTE_LOG_ERR);
	for (const char *p = end(out, saved); (p = strchr(p, '\n')) != NULL; p++)
		lines++;
	assert_in_range(lines, 1, 40); /* of one window, or of two */
	assert_string_equal(log_one(RTE_LOG_EMERG, "the end"), "incline: DPDK: the end\n");
}

static void panic(void **state)
{
	FILE *out;
	int saved, status = 0;
	pid_t child;

	(void)state;
	begin(&out, &saved);
	child = fork();
	if (child == 0) {
		signal(SIGABRT, SIG_DFL);
		rte_panic("Error adding fd %d\n", 21);
	}
	waitpid(child, &status, 0);
	end(out, saved);
	assert_true(WIFSIGNALED(status));
	assert_non_null(strstr(said, "incline: DPDK: PANIC in panic():"));
	assert_non_null(strstr(said, "incline: DPDK: Error adding fd 21\n"));
}

static int setup(void **state)
{
	const struct port_eal eal = {.program = "test", .memory_mb = 64};
	char err[PORT_ERR_LEN] = "";

	(void)state;
	return port_eal_init(&eal, err);
}

static int teardown(void **state)
{
	(void)state;
	port_eal_fini();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors),
		cmocka_unit_test(flood),
		cmocka_unit_test(panic),
	};

	unsetenv("INCLINE_EAL_LOG");
	return cmocka_run_group_tests(tests, setup, teardown);
}
