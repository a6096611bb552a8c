/* SPDX-License-Identifier: BSD-3-Clause */
/* The conversations of the communication manager, message by message. */
#include <errno.h>
#include <string.h>

#include "lib/cm/core.h"
#include "tests/unit/cm/pair.h"

int run_hold_tests(void);
int run_weather_tests(void);

static void connect_and_disconnect(void **state)
{
	struct pair *pair = pair_create(1);
	struct user *a, *b;

	(void)state;
	a = pair_connect(pair, 0, 0x77);
	pair_run(pair, pair->now + 10 * MS);
	b = pair_last(pair, 1);
	assert_int_equal(b->msg.req.qpn, 0x77);
	assert_int_equal(b->msg.req.psn, 0x1234);
	assert_string_equal(b->msg.private_data, "hello");
	assert_int_equal(cm_establish(a->conn, NULL, 0, pair->now), -EINVAL); /* too early */
	assert_int_equal(cm_disconnect(a->conn, pair->now), -EINVAL);
	assert_int_equal(pair_accept(pair, b, 0x88), 0);
	assert_int_equal(pair_accept(pair, b, 0x88), -EINVAL); /* once */
	pair_run(pair, pair->now + 10 * MS);
	assert_true(a->rep && !b->established);
	assert_int_equal(a->msg.rep.qpn, 0x88);
	assert_string_equal(a->msg.private_data, "yes");
	assert_int_equal(cm_establish(a->conn, "rtu", 4, pair->now), 0);
	pair_run(pair, pair->now + 10 * MS);
	assert_true(b->established);
	assert_string_equal(b->msg.private_data, "rtu");

	assert_int_equal(cm_disconnect(a->conn, pair->now), 0);
	pair_run(pair, pair->now + 10 * MS);
	assert_true(b->disconnected && !a->disconnected);
	assert_int_equal(b->msg.dreq_qpn, 0x88);
	assert_int_equal(cm_disconnect(b->conn, pair->now), 0);
	pair_run(pair, pair->now + 10 * MS);
	assert_true(a->disconnected && !a->out);
	pair_settle(pair);
	assert_true(a->out && b->out);
	assert_int_equal(a->events, 3);
	for (unsigned attr = CM_REQ; attr <= CM_SIDR_REP; attr++)
		assert_int_equal(pair->end[0].sent[attr] + pair->end[1].sent[attr],
			attr == CM_REQ || attr == CM_REP || attr == CM_RTU || attr == CM_DREQ ||
				attr == CM_DREP);
	pair_finish(pair);
}

/* Every message of the exchange lost once, or twice. */
static void every_message_lost(void **state)
{
	static const unsigned attrs[] = {CM_REQ, CM_REP, CM_RTU, CM_DREQ, CM_DREP};

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		for (unsigned n = 1; n <= 2; n++) {
			struct pair *pair = pair_create(i + 10);
			struct user *a, *b;

			pair->lose_attr = attrs[i];
			pair->lose_n = n;
			a = pair_connect(pair, 0, 0x77);
			pair_run(pair, pair->now + 5000 * (uint64_t)MS);
			b = pair_last(pair, 1);
			assert_int_equal(pair->end[1].n_user, 1);
			assert_int_equal(pair_accept(pair, b, 0x88), 0);
			while (!a->rep && pair_step(pair))
				;
			assert_int_equal(cm_establish(a->conn, NULL, 0, pair->now), 0);
			pair_run(pair, pair->now + 5000 * (uint64_t)MS);
			assert_true(b->established);
			assert_int_equal(cm_disconnect(b->conn, pair->now), 0);
			pair_run(pair, pair->now + 5000 * (uint64_t)MS);
			assert_true(a->disconnected);
			assert_int_equal(cm_disconnect(a->conn, pair->now), 0);
			pair_settle(pair);
			assert_true(b->disconnected && b->status == 0 && b->out && a->out);
			assert_int_equal(pair->lose_n, 0);
			assert_true(cm_count(pair->end[0].cm, CM_C_RESENT) +
					    cm_count(pair->end[1].cm, CM_C_RESENT) >=
				    n);
			pair_finish(pair);
		}
	}
}

/* A user that takes long: the duplicate REQ draws an MRA, and no REQ comes for as long as it says.
 */
static void slow_users(void **state)
{
	struct pair *pair = pair_create(2);
	struct user *a = pair_connect(pair, 0, 1), *b;

	(void)state;
	pair_run(pair, pair->now + 60000 * (uint64_t)MS);
	b = pair_last(pair, 1);
	assert_int_equal(pair->end[1].n_user, 1);
	assert_int_equal(pair->end[0].sent[CM_REQ], 6); /* five in the first second */
	assert_int_equal(pair->end[1].sent[CM_MRA], 1);
	assert_int_equal(pair_accept(pair, b, 2), 0);
	pair_run(pair, pair->now + 60000 * (uint64_t)MS); /* now the other one */
	assert_true(a->rep);
	assert_int_equal(pair->end[1].sent[CM_REP], 2);
	assert_int_equal(pair->end[0].sent[CM_MRA], 1);
	assert_int_equal(cm_establish(a->conn, NULL, 0, pair->now), 0);
	pair_run(pair, pair->now + 10 * MS);
	assert_true(b->established);
	pair_finish(pair);
}

static void nobody_there(void **state)
{
	struct pair *pair = pair_create(3);
	struct user *a;

	(void)state;
	pair->loss = 1000;
	a = pair_connect(pair, 0, 1);
	pair_settle(pair);
	assert_true(a->unreachable && a->status == -ETIMEDOUT);
	assert_int_equal(pair->end[0].sent[CM_REQ], 16);
	assert_int_equal(pair->end[0].sent[CM_REJ], 1);
	assert_int_equal(cm_count(pair->end[0].cm, CM_C_TIMEOUTS), 1);
	pair_finish(pair);
}

static void rejected_by(unsigned reason, bool keeps)
{
	struct pair *pair = pair_create(4);
	struct user *a;

	pair->end[1].answer = keeps ? 0 : reason;
	a = pair_connect(pair, 0, 1);
	pair_run(pair, pair->now + 10 * MS);
	if (keeps) {
		assert_int_equal(
			cm_reject(pair_last(pair, 1)->conn, reason, "no", 3, pair->now), 0);
		pair_run(pair, pair->now + 10 * MS);
		assert_string_equal(a->msg.private_data, "no");
	} else {
		assert_int_equal(cm_conns(pair->end[1].cm), 0);
		assert_int_equal(cm_drop_count(pair->end[1].cm, CM_DROP_REFUSED), 1);
	}
	assert_true(a->rejected);
	assert_int_equal(a->msg.rej.reason, reason);
	assert_int_equal(a->msg.rej.about, CM_ABOUT_REQ);
	pair_finish(pair);
}

static void rejected(void **state)
{
	(void)state;
	rejected_by(CM_REJ_INVALID_SERVICE_ID, false);
	rejected_by(CM_REJ_CONSUMER, true);
}

/* The REJ is lost, and the REQ comes again: the same answer, without asking the user again. */
static void rej_lost(void **state)
{
	struct pair *pair = pair_create(5);
	struct user *a = pair_connect(pair, 0, 1);

	(void)state;
	pair_run(pair, pair->now + 10 * MS);
	pair->lose_attr = CM_REJ;
	pair->lose_n = 1;
	cm_reject(pair_last(pair, 1)->conn, CM_REJ_CONSUMER, "no", 3, pair->now);
	pair_run(pair, pair->now + 1500 * (uint64_t)MS);
	assert_true(a->rejected);
	assert_string_equal(a->msg.private_data, "no");
	assert_int_equal(pair->end[1].n_user, 1);
	pair_finish(pair);
}

/* The active side does not like the REP. */
static void rep_rejected(void **state)
{
	struct pair *pair = pair_create(6);
	struct user *a = pair_connect(pair, 0, 1), *b;

	(void)state;
	pair_run(pair, pair->now + 10 * MS);
	b = pair_last(pair, 1);
	pair_accept(pair, b, 2);
	pair_run(pair, pair->now + 10 * MS);
	assert_int_equal(cm_reject(a->conn, CM_REJ_CONSUMER, NULL, 0, pair->now), 0);
	pair_run(pair, pair->now + 10 * MS);
	assert_true(b->rejected && b->msg.rej.about == CM_ABOUT_REP);
	pair_finish(pair);
}

static void backlog(void **state)
{
	struct pair *pair = pair_create(7);

	(void)state;
	pair->end[1].answer = CM_IGNORE;
	pair_connect(pair, 0, 1);
	pair_run(pair, pair->now + 10 * MS);
	assert_int_equal(cm_conns(pair->end[1].cm), 0);
	assert_int_equal(pair->end[1].sent[CM_REJ], 0);
	assert_int_equal(cm_drop_count(pair->end[1].cm, CM_DROP_BACKLOG), 1);
	pair->end[1].answer = 0; /* the next time there is room */
	pair_run(pair, pair->now + 1500 * (uint64_t)MS);
	assert_int_equal(pair->end[1].n_user, 1);
	pair_finish(pair);
}

static void both_disconnect(void **state)
{
	struct pair *pair = pair_create(8);
	struct user *a, *b;

	(void)state;
	pair_establish(pair, &a, &b);
	assert_int_equal(cm_disconnect(a->conn, pair->now), 0);
	assert_int_equal(cm_disconnect(b->conn, pair->now), 0);
	pair_settle(pair);
	assert_true(a->disconnected && b->disconnected && a->out && b->out);
	assert_int_equal(a->status, 0);
	assert_int_equal(pair->end[0].sent[CM_DREQ], 1);
	assert_int_equal(pair->end[1].sent[CM_DREQ], 1);
	pair_finish(pair);
}

/* The RTU never comes, but the DREQ does, or data. */
static void without_rtu(void **state)
{
	struct pair *pair = pair_create(9);
	struct user *a = pair_connect(pair, 0, 1), *b;

	(void)state;
	pair_run(pair, pair->now + 10 * MS);
	b = pair_last(pair, 1);
	assert_int_equal(cm_established(b->conn, pair->now), -EINVAL);
	pair_accept(pair, b, 2);
	pair_run(pair, pair->now + 10 * MS);
	pair->lose_attr = CM_RTU;
	pair->lose_n = 1;
	cm_establish(a->conn, NULL, 0, pair->now);
	pair_run(pair, pair->now + 10 * MS);
	assert_false(b->established);
	assert_int_equal(cm_established(b->conn, pair->now), 0);
	assert_true(b->established);
	assert_int_equal(cm_established(b->conn, pair->now), 0);
	pair_run(pair, pair->now + 5000 * (uint64_t)MS);
	assert_int_equal(pair->end[1].sent[CM_REP], 1); /* not asked for again */
	cm_disconnect(a->conn, pair->now);
	pair_run(pair, pair->now + 10 * MS);
	assert_true(b->disconnected);
	pair_finish(pair);
}

/* The peer forgot everything, and connects anew from the same QP. */
static void stale_connection(void **state)
{
	struct pair *pair = pair_create(11);
	struct user *a, *b, *again;

	(void)state;
	pair_establish(pair, &a, &b);
	pair->loss = 1000; /* what it says when it goes is lost */
	pair_release(pair, a);
	pair_run(pair, pair->now + 60000 * (uint64_t)MS);
	pair->loss = 0;
	assert_true(b->established && !b->disconnected);
	again = pair_connect(pair, 0, 0x100);
	pair_run(pair, pair->now + 100 * MS);
	assert_true(again->rejected);
	assert_int_equal(again->msg.rej.reason, CM_REJ_STALE_CONN);
	assert_true(b->disconnected);
	assert_int_equal(cm_drop_count(pair->end[1].cm, CM_DROP_STALE), 1);
	again = pair_connect(pair, 0, 0x100);
	pair_run(pair, pair->now + 100 * MS);
	assert_true(pair_last(pair, 1) != b);
	pair_finish(pair);
}

/* Messages about what is not known here. */
static void unknown(void **state)
{
	struct pair *pair = pair_create(12);
	const struct cm_path path = pair_path(pair, 0);
	static const struct {
		unsigned attr, answered;
	} cases[] = {{CM_DREQ, CM_DREP}, {CM_REP, CM_REJ}, {CM_RTU, 0}, {CM_DREP, 0}, {CM_REJ, 0},
		{CM_MRA, 0}, {CM_SIDR_REP, 0}};
	uint8_t mad[CM_MAD_LEN];
	struct cm_out out;

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct cm_msg msg = {
			.attr = (uint16_t)cases[i].attr, .tid = 5, .local_id = 6, .remote_id = 7};

		assert_int_equal(cm_build(&msg, mad), 0);
		assert_int_equal(cm_rx(pair->end[0].cm, &path, mad, sizeof(mad), pair->now),
			CM_DROP_UNKNOWN);
		assert_int_equal(cm_tx(pair->end[0].cm, &out), cases[i].answered != 0);
		if (cases[i].answered == 0)
			continue;
		assert_int_equal(cm_parse(out.mad, sizeof(out.mad), &msg), 0);
		assert_int_equal(msg.attr, cases[i].answered);
		assert_true(msg.tid == 5 && msg.local_id == 7 && msg.remote_id == 6);
	}
	for (unsigned i = 0; i < 40; i++) { /* no more answers than there is room for */
		struct cm_msg msg = {.attr = CM_DREQ, .local_id = i};

		cm_build(&msg, mad);
		cm_rx(pair->end[0].cm, &path, mad, sizeof(mad), pair->now);
	}
	assert_int_equal(cm_count(pair->end[0].cm, CM_C_TX_FULL), 24);
	mad[17] = CM_LAP;
	assert_int_equal(
		cm_rx(pair->end[0].cm, &path, mad, sizeof(mad), pair->now), CM_DROP_MIGRATION);
	assert_int_equal(cm_rx(pair->end[0].cm, &path, mad, 100, pair->now), CM_DROP_LENGTH);
	mad[1] = 3;
	assert_int_equal(
		cm_rx(pair->end[0].cm, &path, mad, sizeof(mad), pair->now), CM_DROP_HEADER);
	pair_finish(pair);
}

/* A third host that guessed the IDs. */
static void other_source(void **state)
{
	struct pair *pair = pair_create(13);
	struct cm_path path = pair_path(pair, 1);
	struct user *a, *b;
	uint8_t mad[CM_MAD_LEN];
	struct cm_msg msg;

	(void)state;
	pair_establish(pair, &a, &b);
	msg = b->msg; /* the RTU has both */
	msg.attr = CM_DREQ;
	assert_int_equal(cm_build(&msg, mad), 0);
	path.remote.b[15] ^= 8;
	assert_int_equal(
		cm_rx(pair->end[1].cm, &path, mad, sizeof(mad), pair->now), CM_DROP_SOURCE);
	path = pair_path(pair, 1);
	msg.local_id ^= 1;
	cm_build(&msg, mad);
	assert_int_equal(
		cm_rx(pair->end[1].cm, &path, mad, sizeof(mad), pair->now), CM_DROP_SOURCE);
	assert_false(b->disconnected);
	pair_finish(pair);
}

static void sidr(void **state)
{
	struct pair *pair = pair_create(14);
	const struct cm_path path = pair_path(pair, 0);
	struct cm_sidr_rep rep = {.qpn = 0x55, .qkey = 0x1234567};
	struct user *a = &pair->end[0].user[0], *b;

	(void)state;
	pair->end[0].n_user = 1;
	pair->lose_attr = CM_SIDR_REP;
	pair->lose_n = 1;
	assert_int_equal(cm_sidr_request(pair->end[0].cm, &path, 0x1110007, "who", 4, a, pair->now,
				 &a->conn),
		0);
	pair_run(pair, pair->now + 10 * MS);
	b = pair_last(pair, 1);
	assert_true(b->was_sidr);
	assert_string_equal(b->msg.private_data, "who");
	assert_true(b->msg.sidr_req.service_id == 0x1110007);
	assert_int_equal(cm_sidr_reply(b->conn, &rep, "me", 3, pair->now), 0);
	pair_settle(pair);
	assert_true(a->sidr);
	assert_int_equal(a->msg.sidr_rep.status, CM_SIDR_VALID);
	assert_int_equal(a->msg.sidr_rep.qpn, 0x55);
	assert_int_equal(a->msg.sidr_rep.qkey, 0x1234567);
	assert_string_equal(a->msg.private_data, "me");
	assert_int_equal(pair->end[1].n_user, 1);
	pair_release(pair, a);
	pair->end[1].answer = CM_REJ_INVALID_SERVICE_ID;
	assert_int_equal(
		cm_sidr_request(pair->end[0].cm, &path, 1, NULL, 0, a, pair->now, &a->conn), 0);
	*a = (struct user){.conn = a->conn};
	pair_settle(pair);
	assert_true(a->sidr && a->msg.sidr_rep.status == CM_SIDR_NO_SERVICE);
	pair_finish(pair);
}

static void refusals(void **state)
{
	struct cm_config config = {0};
	struct pair *pair = pair_create(15);
	const struct cm_path path = pair_path(pair, 0);
	struct cm_req req = {.qpn = 1 << 24};
	struct cm_conn *conn = NULL;
	struct cm *cm;

	(void)state;
	assert_int_equal(cm_create(&config, &cm), -EINVAL); /* no events */
	assert_int_equal(
		cm_connect(pair->end[0].cm, &path, &req, NULL, 0, NULL, 0, &conn), -EINVAL);
	req.qpn = 1;
	assert_int_equal(
		cm_connect(pair->end[0].cm, &path, &req, "x", CM_REQ_PRIVATE + 1, NULL, 0, &conn),
		-EINVAL);
	assert_null(conn);
	assert_int_equal(cm_conns(pair->end[0].cm), 0);
	for (unsigned i = 0; i < 2 * MAX_USERS; i++)
		assert_int_equal(
			cm_connect(pair->end[0].cm, &path, &req, NULL, 0, NULL, 0, &conn), 0);
	assert_int_equal(
		cm_connect(pair->end[0].cm, &path, &req, NULL, 0, NULL, 0, &conn), -ENOSPC);
	cm_shutdown(pair->end[0].cm, pair->now);
	pair->loss = 1000;
	pair_finish(pair);
}

/* A connection whose request could not be said has been given back, and is not written to: it is
 * as conn_new left it. */
static void given_back(void **state)
{
	struct pair *pair = pair_create(16);
	struct cm *cm = pair->end[0].cm;
	const struct cm_path path = pair_path(pair, 0);
	const struct cm_req bad = {.qpn = 1 << 24};
	struct cm_conn *conn = NULL;

	(void)state;
	for (unsigned sidr = 0; sidr < 2; sidr++) {
		const struct cm_conn *slot = TAILQ_FIRST(&cm->free);

		assert_int_equal(sidr ? cm_sidr_request(cm, &path, 1, NULL, 1, NULL, 0, &conn)
				      : cm_connect(cm, &path, &bad, NULL, 0, NULL, 0, &conn),
			-EINVAL);
		assert_null(conn);
		assert_int_equal(slot->state, ST_FREE);
		assert_int_equal(slot->timeout_ns, 0);
		assert_int_equal(slot->tries, 0);
	}
	pair_finish(pair);
}

/* At the end of a process: everybody is told, nobody is let in. */
static void shutdown(void **state)
{
	struct pair *pair = pair_create(16);
	struct user *a, *b, *late;

	(void)state;
	pair_establish(pair, &a, &b);
	b->conn = NULL;
	cm_shutdown(pair->end[1].cm, pair->now);
	pair_run(pair, pair->now + 10 * MS);
	assert_true(a->disconnected);
	late = pair_connect(pair, 0, 0x999);
	pair_run(pair, pair->now + 10 * MS);
	assert_true(late->rejected);
	pair_finish(pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connect_and_disconnect),
		cmocka_unit_test(every_message_lost),
		cmocka_unit_test(slow_users),
		cmocka_unit_test(nobody_there),
		cmocka_unit_test(rejected),
		cmocka_unit_test(rej_lost),
		cmocka_unit_test(rep_rejected),
		cmocka_unit_test(backlog),
		cmocka_unit_test(both_disconnect),
		cmocka_unit_test(without_rtu),
		cmocka_unit_test(stale_connection),
		cmocka_unit_test(unknown),
		cmocka_unit_test(other_source),
		cmocka_unit_test(sidr),
		cmocka_unit_test(refusals),
		cmocka_unit_test(given_back),
		cmocka_unit_test(shutdown),
	};

	return cmocka_run_group_tests_name("cm", tests, NULL, NULL) + run_hold_tests() +
		       run_weather_tests() !=
	       0;
}
