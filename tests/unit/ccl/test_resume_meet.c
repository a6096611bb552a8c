/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that meet to go on by a ring, when one of them says nonsense, says it late, or says that it
 * is another: whoever is honest comes back with a reason, at once, and nothing of the ring has
 * begun. One thread is all ranks: what is said waits in the sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/ccl/resume.h"
#include "lib/ccl/setup_priv.h"
#include "tests/unit/ccl/fake_verbs.h"

enum { N = 4, DONE = 5, ISSUED = 7, LONG_MS = 600000 };

static char address[100];
static struct ccl_boot *boot[N];
static struct ccl_setup setup[N];
static struct ccl_comm comm[N];

/* What CommLib says where nothing is wrong. */
static const char good[] = "{\"kept\":5,\"done\":5,\"issued\":7,\"digests\":[%u,%u]%s}";

/* A communicator that has failed, with two collectives on their way. */
static void fail_rank(unsigned r)
{
	struct ccl_comm *c = &comm[r];

	*c = (struct ccl_comm){.rank = r, .n_ranks = N, .kind = CCL_MIXED, .n_memb = 1, .w = 4};
	setup[r] = (struct ccl_setup){.own.n_ranks = N, .rank = r, .boot = boot[r]};
	setup[r].group = &setup[r].own;
	assert_int_equal(ccl_resume_enable(c), 0);
	c->setup = &setup[r];
	c->collectives = CCL_ALL_COLLECTIVES;
	for (unsigned i = 0; i < ISSUED; i++) {
		const struct ccl_coll coll = {.kind = CCL_BARRIER};

		assert_int_equal(ccl_resume_keep(c, &coll), 0);
		c->coll_issued++;
	}
	c->coll_done = DONE;
	c->failed = -ECONNABORTED;
	snprintf(c->err, sizeof(c->err), "a switch is gone");
}

static void open_all(unsigned timeout_ms)
{
	static unsigned serial;
	char err[CCL_ERR_LEN];

	snprintf(address, sizeof(address), "unix:/tmp/ccl-resume-%d-%u", getpid(), serial++);
	for (unsigned r = 0; r < N; r++)
		assert_int_equal(
			ccl_boot_open(address, r, N, r ? LONG_MS : timeout_ms, &boot[r], err), 0);
}

static void say(unsigned r, const char *text)
{
	json_t *object = json_loads(text, 0, NULL);
	char err[CCL_ERR_LEN];

	assert_non_null(object);
	assert_int_equal(ccl_boot_tell(boot[r], object, err), 0);
	json_decref(object);
}

/* As the barrier that ends a set-up. */
static void met(void)
{
	char err[CCL_ERR_LEN];
	json_t *answer;

	for (unsigned r = 1; r < N; r++)
		say(r, "{}");
	assert_int_equal(ccl_boot_barrier(boot[0], err), 0);
	for (unsigned r = 1; r < N; r++) {
		assert_int_equal(ccl_boot_hear(boot[r], &answer, err), 0);
		json_decref(answer);
	}
}

static void start(unsigned timeout_ms)
{
	open_all(timeout_ms);
	met();
	for (unsigned r = 0; r < N; r++)
		fail_rank(r);
}

static void end(void)
{
	for (unsigned r = 0; r < N; r++) {
		ccl_resume_close(&comm[r]);
		ccl_boot_close(boot[r]);
		boot[r] = NULL;
	}
}

/* A standing of this rank as it should be. */
static void say_good(unsigned r)
{
	static struct ccl_standing s;
	char text[300];

	ccl_resume_standing(&comm[0], &s);
	snprintf(text, sizeof(text),
		"{\"kept\":0,\"done\":5,\"issued\":7,\"call\":\"x\",\"digests\":[%u,%u,%u,%u,%u,%u,"
		"%u]}",
		s.digest[0], s.digest[1], s.digest[2], s.digest[3], s.digest[4], s.digest[5],
		s.digest[6]);
	say(r, text);
}

static void stays_failed(unsigned r, const char *why)
{
	assert_false(ccl_resume_meet(&comm[r]));
	assert_int_equal(comm[r].failed, -ECONNABORTED);
	assert_non_null(strstr(comm[r].err, "a switch is gone; no ring instead: "));
	if (!strstr(comm[r].err, why))
		fail_msg("\"%s\" lacks \"%s\"", comm[r].err, why);
	assert_null(comm[r].ring);
	assert_false(ccl_resume_may(&comm[r])); /* nor later */
}

/* The others hear what rank 0 has said. */
static void others_hear(unsigned first, const char *why)
{
	for (unsigned r = first; r < N; r++)
		if (boot[r])
			stays_failed(r, why);
}

/* ---- standings, at rank 0 ---- */

static void nonsense(void **state)
{
	static const char *const lines[] = {"{}", "{\"kept\":[],\"done\":5,\"issued\":7}",
		"{\"kept\":-1,\"done\":5,\"issued\":7,\"digests\":[1,2]}",
		"{\"kept\":6,\"done\":5,\"issued\":7,\"digests\":[1]}",
		"{\"kept\":5,\"done\":8,\"issued\":7,\"digests\":[1,2]}",
		"{\"kept\":5,\"done\":5,\"issued\":7,\"digests\":[1]}",
		"{\"kept\":5,\"done\":5,\"issued\":7,\"digests\":[1,2,3]}",
		"{\"kept\":5,\"done\":5,\"issued\":7,\"digests\":{}}",
		"{\"kept\":5,\"done\":5,\"issued\":7,\"digests\":[\"1\",2]}",
		"{\"kept\":5,\"done\":5,\"issued\":7,\"digests\":[-1,2]}",
		"{\"kept\":5,\"done\":5,\"issued\":7,\"digests\":[4294967296,2]}",
		"{\"kept\":5,\"done\":5,\"issued\":9223372036854775807,\"digests\":[1,2]}"};

	(void)state;
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		start(LONG_MS);
		say_good(1);
		say(2, lines[i]);
		say_good(3);
		stays_failed(0, "rank 2 does not say where it stands");
		end();
	}
}

/* More than any rank can keep. */
static void too_many(void **state)
{
	json_t *digests = json_array(), *line;
	char *text;

	(void)state;
	for (unsigned i = 0; i <= CCL_RESUME_MAX_KEPT; i++)
		json_array_append_new(digests, json_integer(i));
	line = json_pack("{s:i, s:i, s:i, s:o}", "kept", 0, "done", 0, "issued",
		CCL_RESUME_MAX_KEPT + 1, "digests", digests);
	text = json_dumps(line, 0);
	start(LONG_MS);
	say_good(1);
	say_good(2);
	say(3, text);
	stays_failed(0, "rank 3 does not say where it stands");
	end();
	free(text);
	json_decref(line);
}

/* Of another time of this communicator: it has finished what others have forgotten, or waits for
 * what they have forgotten. */
static void another_time(void **state)
{
	char text[200];

	(void)state;
	start(LONG_MS);
	for (unsigned r = 0; r < N; r++) /* everybody is done with all before */
		comm[r].coll_done = ISSUED;
	say(1, "{\"kept\":0,\"done\":0,\"issued\":1,\"digests\":[1]}");
	say_good(2);
	snprintf(text, sizeof(text), good, 1, 2, "");
	say(3, text);
	stays_failed(0, "rank 3 has nothing any more of collective 0, which another waits for");
	end();
	start(LONG_MS);
	say_good(1);
	snprintf(text, sizeof(text), good, 1, 2, "");
	say(2, text);
	say_good(3);
	stays_failed(0, "the ranks disagree: collective 5 of rank 2 is not that of rank 0");
	end();
}

/* It comes when rank 0 has given up. */
static void late(void **state)
{
	(void)state;
	start(2000); /* so long also for those who do come */
	say_good(1);
	say_good(2);
	stays_failed(0, "waited 2000 ms at");
	assert_non_null(strstr(comm[0].err, "for rank 3"));
	stays_failed(3, "waited 2000 ms at");
	end();
}

/* Somebody who has connected while the ranks met, and waits for one of them to go. */
static void another_one_instead(void **state)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const char line[] = "{\"rank\":3,\"kept\":5,\"done\":5,\"issued\":7,\"digests\":[1,2]}\n";
	char byte;
	int fd;

	(void)state;
	open_all(LONG_MS);
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", address + 5);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	met();
	for (unsigned r = 0; r < N; r++)
		fail_rank(r);
	ccl_boot_close(boot[3]);
	boot[3] = NULL;
	say_good(1);
	say_good(2);
	/* Closed already: it hears nothing of the job, and nobody hears it. */
	send(fd, line, sizeof(line) - 1, MSG_NOSIGNAL);
	stays_failed(0, "rank 3 has gone away");
	assert_true(recv(fd, &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET);
	close(fd);
	end();
}

/* One that was a rank already, once more. */
static void twice(void **state)
{
	(void)state;
	start(LONG_MS);
	say_good(1);
	say_good(2);
	say(2, "{\"rank\":3,\"kept\":0,\"done\":0,\"issued\":0,\"digests\":[]}");
	ccl_boot_close(boot[3]);
	boot[3] = NULL;
	stays_failed(0, "rank 3 has gone away"); /* a line of rank 2's is no word of rank 3 */
	end();
}

/* ---- verdicts, at another rank ---- */

static void verdicts(void **state)
{
	static const char *const lines[] = {"{}", "{\"first\":5,\"known\":5}",
		"{\"first\":5,\"known\":5,\"source\":4}", "{\"first\":5,\"known\":5,\"source\":-1}",
		"{\"first\":5,\"known\":5,\"source\":4294967296}",
		"{\"first\":-1,\"known\":5,\"source\":0}", "{\"first\":6,\"known\":6,\"source\":0}",
		"{\"first\":5,\"known\":4,\"source\":0}", "{\"first\":5,\"known\":-5,\"source\":0}",
		"{\"first\":\"5\",\"known\":5,\"source\":0}"};
	json_t *verdict, *all[N] = {0};
	char err[CCL_ERR_LEN];

	(void)state;
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		start(LONG_MS);
		say_good(2);
		say_good(3);
		verdict = json_loads(lines[i], 0, NULL);
		assert_int_equal(ccl_boot_broadcast(boot[0], verdict, err), 0);
		json_decref(verdict);
		stays_failed(1, "rank 1: rank 0's verdict makes no sense");
		/* It has said where it stands, and then why it does not come. */
		assert_int_equal(ccl_boot_gather(boot[0], all, err), 0);
		for (unsigned r = 1; r < N; r++)
			json_decref(all[r]);
		say_good(2);
		say_good(3);
		assert_int_equal(ccl_boot_gather(boot[0], all, err), -ECONNABORTED);
		assert_string_equal(err, "rank 1: rank 0's verdict makes no sense");
		end();
	}
}

/* What rank 0 finds out everybody hears, those that come after it, too. */
static void all_hear_it(void **state)
{
	(void)state;
	start(LONG_MS);
	say(1, "{\"kept\":5,\"done\":8,\"issued\":7,\"digests\":[1,2]}");
	say_good(2);
	say_good(3);
	stays_failed(0, "rank 1 does not say where it stands: no resume there?");
	others_hear(2, "rank 1 does not say where it stands: no resume there?");
	end();
}

/* ---- who has others to see to ---- */

static int64_t no_time(void *arg)
{
	(void)arg;
	return 0;
}

static struct ccl_comm *open_rank(unsigned r)
{
	static const struct ctl_io io = {.now_ms = no_time};
	const struct ccl_conn conn = {.context = fake_context(r),
		.gid_index = 1,
		.rank = r,
		.n_ranks = N,
		.m = 2,
		.w = 4,
		.mtu = 256,
		.remote_ip = wire_ip_from4(0x0a4dff01),
		.remote_qpn = 0x1040};
	struct ccl_comm *c;
	char err[CCL_ERR_LEN];

	assert_int_equal(ccl_comm_create_connected(&conn, &c, err), 0);
	assert_int_equal(ccl_resume_enable(c), 0);
	setup[r].own.io = &io;
	c->setup = &setup[r];
	return c;
}

/* It hears that it is called, though it has nothing to wait for, and does not go there: nothing of
 * it is said before somebody waits. */
static void called_while_it_attends(void **state)
{
	const struct ccl_req none = {UINT64_MAX};
	json_t *call = json_pack("{s:s}", "call", "a switch is gone");
	struct ccl_comm *c;
	char err[CCL_ERR_LEN];

	(void)state;
	fake_init(N, 1024, 1);
	fake_window(4);
	start(LONG_MS);
	c = open_rank(2);
	assert_int_equal(ccl_attend(c, none, 0), -EINVAL);
	assert_string_equal(ccl_error(c), "");
	assert_int_equal(ccl_boot_broadcast(boot[0], call, err), 0);
	c->watched_ns = 0; /* that was long ago */
	assert_int_equal(ccl_attend(c, none, 0), -ECONNABORTED);
	assert_non_null(strstr(ccl_error(c), "a switch is gone"));
	assert_int_equal(ccl_attend(c, none, UINT64_MAX), -ECONNABORTED);
	assert_true(ccl_resume_may(c));
	assert_int_equal(ccl_boot_watch(boot[0], err), 0);
	c->setup = NULL;
	ccl_comm_destroy(c);
	json_decref(call);
	end();
	fake_fini();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nonsense),
		cmocka_unit_test(too_many),
		cmocka_unit_test(another_time),
		cmocka_unit_test(late),
		cmocka_unit_test(another_one_instead),
		cmocka_unit_test(twice),
		cmocka_unit_test(verdicts),
		cmocka_unit_test(all_hear_it),
		cmocka_unit_test(called_while_it_attends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
