/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/cm/pair.h"

#include <stdlib.h>
#include <string.h>

enum { LATENCY = 1 * MS };

uint64_t pair_random(struct pair *pair)
{
	pair->rng ^= pair->rng >> 12;
	pair->rng ^= pair->rng << 25;
	pair->rng ^= pair->rng >> 27;
	return pair->rng * UINT64_C(0x2545f4914f6cdd1d) >> 16;
}

static bool chance(struct pair *pair, unsigned per_mille)
{
	return pair_random(pair) % 1000 < per_mille;
}

static struct user *new_user(struct end *end, bool passive)
{
	struct user *user = &end->user[end->n_user++];

	assert_true(end->n_user <= MAX_USERS);
	*user = (struct user){.passive = passive};
	return user;
}

static unsigned on_request(void *arg, struct cm_conn *conn, const struct cm_path *path,
	const struct cm_msg *msg, void **out)
{
	struct end *end = arg;
	struct user *user;

	assert_true(wire_ip_eq(&path->local, &end->ip));
	if (end->answer)
		return end->answer;
	user = new_user(end, true);
	user->conn = conn;
	user->requested = true;
	user->was_sidr = msg->attr == CM_SIDR_REQ;
	user->msg = *msg;
	*out = user;
	return 0;
}

static void on_event(void *arg, struct cm_conn *conn, void *ctx, const struct cm_event *event)
{
	struct user *user = ctx;

	(void)arg;
	assert_ptr_equal(user->conn, conn); /* nothing after release */
	user->events++;
	user->status = event->status;
	if (event->msg != NULL)
		user->msg = *event->msg;
	switch (event->type) {
	case CM_EV_REP:
		assert_false(user->rep || user->passive);
		user->rep = true;
		break;
	case CM_EV_ESTABLISHED:
		assert_true(user->passive && !user->established && !user->disconnected);
		user->established = true;
		break;
	case CM_EV_REJECTED:
		assert_false(user->rejected || user->unreachable || user->disconnected);
		user->rejected = true;
		break;
	case CM_EV_UNREACHABLE:
		assert_false(user->rejected || user->unreachable || user->disconnected);
		user->unreachable = true;
		break;
	case CM_EV_DISCONNECTED:
		assert_false(user->rejected || user->unreachable || user->disconnected);
		user->disconnected = true;
		break;
	case CM_EV_TIMEWAIT_EXIT:
		assert_true(user->disconnected && !user->out);
		user->out = true;
		break;
	case CM_EV_SIDR_REP:
		assert_false(user->sidr);
		user->sidr = true;
		break;
	}
}

struct pair *pair_create(uint64_t seed)
{
	struct pair *pair = calloc(1, sizeof(*pair));

	pair->rng = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	pair->now = 5 * MS;
	for (unsigned i = 0; i < 2; i++) {
		struct end *end = &pair->end[i];
		const struct cm_config config = {.seed = seed * 2 + i,
			.max_conn = 2 * MAX_USERS,
			.ca_guid = {0xff, (uint8_t)i},
			.events = {end, on_request, on_event}};

		end->pair = pair;
		end->ip = wire_ip_from4(0x0a4d0001 + i);
		assert_int_equal(cm_create(&config, &end->cm), 0);
	}
	return pair;
}

void pair_destroy(struct pair *pair)
{
	for (unsigned i = 0; i < 2; i++) {
		struct cm *cm = pair->end[i].cm;
		uint64_t drops = 0;

		for (unsigned d = 1; d < CM_N_DROPS; d++)
			drops += cm_drop_count(cm, d);
		assert_true(cm_count(cm, CM_C_RX) == cm_count(cm, CM_C_ACCEPTED) + drops);
		cm_destroy(cm);
	}
	free(pair);
}

struct cm_path pair_path(const struct pair *pair, unsigned from)
{
	return (struct cm_path){pair->end[from].ip, pair->end[!from].ip, 0};
}

static void launch(struct pair *pair, unsigned to, const uint8_t *mad)
{
	for (unsigned i = 0; i < MAX_FLIGHT; i++) {
		struct flight *flight = &pair->flight[i];

		if (flight->used)
			continue;
		flight->used = true;
		flight->to = to;
		flight->at = pair->now + LATENCY;
		if (chance(pair, pair->late))
			flight->at += pair_random(pair) % (3000 * (uint64_t)MS);
		memcpy(flight->mad, mad, CM_MAD_LEN);
		if (chance(pair, pair->corrupt)) /* of what the ICRC would let through: nothing
						    should break */
			flight->mad[pair_random(pair) % CM_MAD_LEN] ^=
				(uint8_t)(1 << pair_random(pair) % 8);
		return;
	}
	fail_msg("more than %d datagrams under way", MAX_FLIGHT);
}

static void transmit(struct pair *pair, unsigned from)
{
	struct cm_out out;

	while (cm_tx(pair->end[from].cm, &out)) {
		unsigned attr = out.mad[17];

		assert_true(wire_ip_eq(&out.path.local, &pair->end[from].ip));
		assert_true(wire_ip_eq(&out.path.remote, &pair->end[!from].ip));
		pair->end[from].sent[attr]++;
		if (pair->lose_n > 0 && pair->lose_attr == attr) {
			pair->lose_n--;
			continue;
		}
		if (chance(pair, pair->loss))
			continue;
		launch(pair, !from, out.mad);
		if (chance(pair, pair->dup))
			launch(pair, !from, out.mad);
	}
}

static struct flight *earliest(struct pair *pair)
{
	struct flight *best = NULL;

	for (unsigned i = 0; i < MAX_FLIGHT; i++) {
		struct flight *flight = &pair->flight[i];

		if (flight->used && (best == NULL || flight->at < best->at))
			best = flight;
	}
	return best;
}

static uint64_t next_time(struct pair *pair)
{
	const struct flight *flight = earliest(pair);
	uint64_t at = flight != NULL ? flight->at : UINT64_MAX;

	for (unsigned i = 0; i < 2; i++)
		if (cm_deadline(pair->end[i].cm) < at)
			at = cm_deadline(pair->end[i].cm);
	return at;
}

bool pair_step(struct pair *pair)
{
	struct flight *flight;

	for (unsigned i = 0; i < 2; i++)
		transmit(pair, i);
	if (next_time(pair) == UINT64_MAX)
		return false;
	if (next_time(pair) > pair->now)
		pair->now = next_time(pair);
	for (unsigned i = 0; i < 2; i++)
		cm_timer(pair->end[i].cm, pair->now);
	flight = earliest(pair);
	if (flight != NULL && flight->at <= pair->now) {
		const struct cm_path path = pair_path(pair, flight->to);

		flight->used = false;
		cm_rx(pair->end[flight->to].cm, &path, flight->mad, CM_MAD_LEN, pair->now);
	}
	return true;
}

void pair_run(struct pair *pair, uint64_t until)
{
	do {
		for (unsigned i = 0; i < 2; i++)
			transmit(pair, i);
	} while (next_time(pair) <= until && pair_step(pair));
	if (until > pair->now)
		pair->now = until;
}

void pair_settle(struct pair *pair)
{
	unsigned steps = 0;

	while (pair_step(pair))
		assert_true(++steps < 100000);
}

struct user *pair_connect(struct pair *pair, unsigned from, uint32_t qpn)
{
	struct end *end = &pair->end[from];
	struct cm_path path = pair_path(pair, from);
	struct user *user = new_user(end, false);
	const struct cm_req req = {.service_id = ipcm_service_id(IPCM_TCP, 7),
		.qpn = qpn,
		.psn = 0x1234,
		.mtu = 3,
		.pkey = 0xffff,
		.sgid = path.local,
		.dgid = path.remote,
		.ack_timeout = 14};

	assert_int_equal(
		cm_connect(end->cm, &path, &req, "hello", 6, user, pair->now, &user->conn), 0);
	return user;
}

struct user *pair_last(struct pair *pair, unsigned at)
{
	struct end *end = &pair->end[at];

	assert_true(end->n_user > 0);
	return &end->user[end->n_user - 1];
}

int pair_accept(struct pair *pair, struct user *user, uint32_t qpn)
{
	const struct cm_rep rep = {.qpn = qpn, .psn = 0x4321};

	return cm_accept(user->conn, &rep, "yes", 4, pair->now);
}

void pair_establish(struct pair *pair, struct user **active, struct user **passive)
{
	*active = pair_connect(pair, 0, 0x100 + pair->end[0].n_user);
	pair_run(pair, pair->now + 10 * MS);
	*passive = pair_last(pair, 1);
	assert_int_equal(pair_accept(pair, *passive, 0x200 + pair->end[1].n_user), 0);
	pair_run(pair, pair->now + 10 * MS);
	assert_true((*active)->rep);
	assert_int_equal(cm_establish((*active)->conn, NULL, 0, pair->now), 0);
	pair_run(pair, pair->now + 10 * MS);
	assert_true((*passive)->established);
}

void pair_release(struct pair *pair, struct user *user)
{
	struct cm_conn *conn = user->conn;

	user->conn = NULL;
	if (conn != NULL)
		cm_release(conn, pair->now);
}

void pair_finish(struct pair *pair)
{
	for (unsigned i = 0; i < 2; i++)
		for (unsigned u = 0; u < pair->end[i].n_user; u++)
			pair_release(pair, &pair->end[i].user[u]);
	pair_settle(pair);
	assert_int_equal(cm_conns(pair->end[0].cm), 0);
	assert_int_equal(cm_conns(pair->end[1].cm), 0);
	pair_destroy(pair);
}
