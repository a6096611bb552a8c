/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ends of a connection over a fabric that loses, repeats, overtakes, trims, marks, and has
 * paths and planes that die and come back: every byte is there when the word says so, once, and
 * immediates come in order. All packets pass through a codec: the real one, or one that is quite
 * another. */
#include <errno.h>
#include <stdlib.h>

#include "lib/mrc/req.h"
#include "lib/mrc/rsp.h"
#include "lib/wire/psn.h"
#include "tests/unit/mrc/mrc_test.h"

/* Another wire: the structure itself, backwards. Nothing but the codec knows what is where. */
static int put_backwards(const struct mrc_pkt *pkt, uint8_t *out, size_t room)
{
	const uint8_t *in = (const uint8_t *)pkt;

	_Static_assert(sizeof(*pkt) <= MRC_MAX_HEADERS, "it is to fit");
	if (room < sizeof(*pkt))
		return -ENOSPC;
	for (size_t i = 0; i < sizeof(*pkt); i++)
		out[i] = (uint8_t)~in[sizeof(*pkt) - 1 - i];
	return sizeof(*pkt);
}

static enum mrc_drop take_backwards(
	const uint8_t *bth, size_t len, bool trimmed, struct mrc_pkt *pkt)
{
	uint8_t *out = (uint8_t *)pkt;

	if (len < sizeof(*pkt))
		return MRC_DROP_SHORT;
	for (size_t i = 0; i < sizeof(*pkt); i++)
		out[sizeof(*pkt) - 1 - i] = (uint8_t)~bth[i];
	pkt->depth = trimmed ? MRC_DEPTH_RETH : MRC_DEPTH_ALL;
	pkt->pay_off = sizeof(*pkt);
	return MRC_OK;
}

static const struct mrc_codec backwards = {
	.name = "backwards", .decode = take_backwards, .encode = put_backwards};

enum { PLANES = 4, PATHS = 32, PMTU = 256, MEMORY = 1 << 20, ON_PATH = 512, MESSAGES = 64 };
enum { BASE_RTT = 4000, LONGEST = 40 * PMTU, CLIENT = 0, SERVER = 1 };

struct flying {
	uint64_t at;
	uint16_t len;
	uint8_t to;
	bool trimmed, ecn;
	uint32_t ev;
	uint8_t bytes[MRC_MAX_HEADERS + PMTU + 8];
};

struct path {
	struct flying q[ON_PATH];
	unsigned head, n;
	bool dead;
};

struct plan { /* a message that is on its way */
	uint32_t offset, length, imm;
	bool has_imm;
	uint64_t seed;
};

struct pair {
	const struct mrc_codec *codec;
	struct mrc_req req;
	struct mrc_rsp rsp;
	struct mrc_evset evs;
	struct nscc nscc;
	struct path path[PATHS];
	uint64_t now, random;
	unsigned loss, twice, trim, mark; /* in 1/1000 */
	unsigned jitter;                  /* ns */
	unsigned sent, dropped, on_plane[PLANES];
	uint8_t *from, *to; /* memory of both ends */
	struct plan plan[MESSAGES];
	uint32_t posted, done, next_imm, imms, messages;
};

static unsigned chance(struct pair *p, unsigned of_1000)
{
	return test_random(&p->random) % 1000 < of_1000;
}

/* ---- the fabric ---- */

static void put(struct pair *p, unsigned path, struct flying f)
{
	struct path *q = &p->path[path];

	if (q->n == ON_PATH) {
		p->dropped++;
		return;
	}
	/* A path keeps the order, so what was delayed delays. */
	if (q->n && q->q[(q->head + q->n - 1) % ON_PATH].at > f.at)
		f.at = q->q[(q->head + q->n - 1) % ON_PATH].at;
	q->q[(q->head + q->n++) % ON_PATH] = f;
}

static void into(struct pair *p, unsigned path, uint8_t to, const struct mrc_pkt *pkt,
	const uint8_t *payload, uint32_t ev)
{
	struct flying f = {.to = to,
		.ev = ev,
		.at = p->now + BASE_RTT / 2 + test_random(&p->random) % p->jitter};
	int len = p->codec->encode(pkt, f.bytes, MRC_MAX_HEADERS);
	const bool data = pkt->kind == MRC_KIND_DATA;

	assert_true(len > 0);
	p->sent++;
	if (p->path[path].dead || chance(p, p->loss)) {
		p->dropped++;
		return;
	}
	f.trimmed = data && chance(p, p->trim);
	f.ecn = data && chance(p, p->mark);
	if (data && !f.trimmed) {
		memcpy(f.bytes + len, payload, pkt->data.pay_len);
		len += (pkt->data.pay_len + 3) / 4 * 4;
	}
	f.len = (uint16_t)(len + (f.trimmed ? 0 : 4)); /* an ICRC, which is not this test's */
	put(p, path, f);
	if (chance(p, p->twice))
		put(p, path, f);
}

/* ---- the ends ---- */

static uint8_t byte_of(const struct plan *plan, uint32_t i)
{
	return (uint8_t)(plan->seed + i * 167 + (i >> 8));
}

static void transmit(struct pair *p)
{
	struct mrc_out out;
	struct mrc_pkt word;
	const uint8_t up = p->evs.up;

	while (mrc_rsp_tx(&p->rsp, p->now, &word)) {
		const unsigned path = test_random(&p->random) % PATHS;

		into(p, path, CLIENT, &word, NULL, path);
	}
	for (unsigned n = 0; n < 8 && mrc_req_tx(&p->req, up, p->now, &out); n++) {
		const struct plan *plan = &p->plan[out.cookie % MESSAGES];

		assert_int_equal(out.port, out.ev % PLANES);
		assert_true(up >> out.port & 1);
		p->on_plane[out.port]++;
		into(p, out.ev, SERVER, &out.pkt, p->from + plan->offset + out.offset, out.ev);
	}
}

static void to_server(struct pair *p, const struct flying *f, struct mrc_pkt *pkt)
{
	const struct mrc_met met = {
		.ev = f->ev, .ecn = f->ecn, .ts = 0, .bytes = f->len + 48u, .at = p->now};
	struct mrc_wimm wimm;
	enum mrc_step step;

	if (pkt->kind == MRC_KIND_PROBE) {
		mrc_rsp_probe(&p->rsp, &pkt->probe, &met);
		return;
	}
	assert_int_equal(pkt->kind, MRC_KIND_DATA);
	if (f->trimmed) {
		mrc_rsp_trimmed(&p->rsp, pkt->data.psn, f->ev % 3 == 0, &met, p->now);
		return;
	}
	if (mrc_rsp_look(&p->rsp, &pkt->data) == MRC_NEW) {
		assert_true(pkt->data.va + pkt->data.pay_len <= MEMORY);
		memcpy(p->to + pkt->data.va, f->bytes + pkt->pay_off, pkt->data.pay_len);
	}
	mrc_rsp_data(&p->rsp, &pkt->data, &met, p->now);
	while ((step = mrc_rsp_step(&p->rsp, &wimm)) == MRC_STEP_WIMM) {
		const struct plan *plan;
		uint32_t i = p->done;

		assert_int_equal(wimm.imm, p->next_imm++);
		while (!p->plan[i % MESSAGES].has_imm || p->plan[i % MESSAGES].imm != wimm.imm)
			assert_true(++i < p->posted);
		plan = &p->plan[i % MESSAGES];
		assert_int_equal(wimm.bytes, plan->length);
		for (uint32_t b = 0; b < plan->length; b++)
			assert_int_equal(p->to[plan->offset + b], byte_of(plan, b));
	}
	assert_int_equal(step, MRC_STEP_NONE);
}

static void to_client(struct pair *p, const struct mrc_pkt *pkt)
{
	if (pkt->kind == MRC_KIND_SACK)
		mrc_req_sack(&p->req, &pkt->sack, p->now);
	else if (pkt->kind == MRC_KIND_NACK)
		mrc_req_nack(&p->req, &pkt->nack, p->now);
	else
		mrc_req_ack(&p->req, &pkt->ack, p->now);
}

static void arrivals(struct pair *p)
{
	for (unsigned i = 0; i < PATHS; i++) {
		struct path *q = &p->path[i];

		while (q->n && q->q[q->head].at <= p->now) {
			const struct flying *f = &q->q[q->head];
			struct mrc_pkt pkt;

			assert_int_equal(
				p->codec->decode(f->bytes, f->len, f->trimmed, &pkt), MRC_OK);
			if (f->to == SERVER)
				to_server(p, f, &pkt);
			else
				to_client(p, &pkt);
			q->head = (q->head + 1) % ON_PATH;
			q->n--;
		}
	}
}

/* Messages lie one after the other in a ring of memory that is larger than what may be on its way.
 */
static void post(struct pair *p, uint32_t *offset)
{
	const uint32_t length = test_random(&p->random) % 8 ? test_random(&p->random) % LONGEST : 0;
	const bool has_imm = test_random(&p->random) % 4 == 0;
	struct plan plan;
	struct mrc_msg msg;

	if (p->posted == p->messages || p->posted - p->done == MESSAGES)
		return;
	if (*offset + length > MEMORY)
		*offset = 0;
	plan = (struct plan){.offset = *offset,
		.length = length,
		.has_imm = has_imm,
		.imm = has_imm ? p->imms++ : 0,
		.seed = test_random(&p->random)};
	for (uint32_t b = 0; b < length; b++)
		p->from[plan.offset + b] = byte_of(&plan, b);
	p->plan[p->posted % MESSAGES] = plan;
	msg = (struct mrc_msg){.cookie = p->posted++,
		.va = plan.offset,
		.rkey = 1,
		.length = length,
		.has_imm = has_imm,
		.imm = plan.imm};
	*offset += length;
	assert_int_equal(mrc_req_post(&p->req, &msg), 0);
}

static void completions(struct pair *p)
{
	struct mrc_done done;

	while (mrc_req_done(&p->req, &done)) {
		const struct plan *plan = &p->plan[p->done % MESSAGES];

		assert_int_equal(done.status, MRC_STATUS_OK);
		assert_int_equal(done.cookie, p->done);
		for (uint32_t b = 0; b < plan->length; b++)
			assert_int_equal(p->to[plan->offset + b], byte_of(plan, b));
		p->done++;
	}
}

static struct pair *make(uint64_t seed, unsigned messages)
{
	struct pair *p = test_calloc(1, sizeof(*p));
	const struct mrc_req_config req = {.snd = {.first_psn = 0xfffff0,
						   .mpr_units = 2,
						   .timeout = 5,
						   .linear_cnt = 7,
						   .exp_cnt = MRC_EXP_ENDLESS,
						   .later_ns = BASE_RTT,
						   .tail_ns = BASE_RTT,
						   .late_ns = 4 * BASE_RTT,
						   .guard_ns = BASE_RTT,
						   .tail_rtts = 1,
						   .tail_again = 8},
		.dqpn = 0x202,
		.qpn_low = 0x101,
		.pmtu = PMTU,
		.messages = MESSAGES,
		.max_wimm = 4,
		.cc = true,
		.peer_nacks_trimmed = true};
	const struct mrc_rsp_config rsp = {.first_psn = 0xfffff0,
		.dqpn = 0x101,
		.qpn_low = 0x202,
		.mpr_units = 2,
		.max_wimm = 4,
		.pmtu = PMTU,
		.guard_ns = BASE_RTT,
		.oor_ns = BASE_RTT};
	const struct mrc_evset_config evs = {.n_ports = PLANES,
		.max_active = PATHS * 3 / 4,
		.min_active = PLANES,
		.base_rtt_ns = BASE_RTT,
		.seed = seed};
	const struct nscc_config cc = {.base_rtt_ns = BASE_RTT, .max_cwnd = 100 * PMTU};
	const struct nscc_link link = {.bits_per_s = 50000000000, .mtu = PMTU + 100, .trims = true};
	uint32_t ev[PATHS];
	uint8_t port[PATHS];

	for (unsigned i = 0; i < PATHS; i++) {
		ev[i] = i;
		port[i] = (uint8_t)(i % PLANES);
	}
	p->codec = seed % 2 ? &mrc_codec_ocp_r1 : &backwards;
	p->random = seed;
	p->messages = messages;
	p->jitter = BASE_RTT;
	p->from = test_calloc(1, MEMORY);
	p->to = test_calloc(1, MEMORY);
	assert_int_equal(mrc_evset_init(&p->evs, &evs, ev, port, PATHS), 0);
	assert_int_equal(nscc_init(&p->nscc, &cc, &link), 0);
	assert_int_equal(
		mrc_req_init(&p->req, &req, &p->evs, &p->nscc, test_malloc(mrc_req_bytes(&req))),
		0);
	assert_int_equal(mrc_rsp_init(&p->rsp, &rsp, test_malloc(mrc_rsp_bytes(&rsp))), 0);
	return p;
}

static void end(struct pair *p)
{
	test_free(p->req.snd.sent);
	test_free(p->rsp.rcv.bits);
	test_free(p->from);
	test_free(p->to);
	test_free(p);
}

static void turn(struct pair *p, uint32_t *offset)
{
	p->now += test_random(&p->random) % 300;
	if (p->now >= mrc_req_deadline(&p->req))
		mrc_req_timer(&p->req, p->now);
	if (p->now >= mrc_rsp_deadline(&p->rsp))
		mrc_rsp_timer(&p->rsp, p->now);
	post(p, offset);
	transmit(p);
	arrivals(p);
	completions(p);
}

static void settled(struct pair *p)
{
	assert_int_equal(p->nscc.inflight, 0);
	assert_int_equal(p->next_imm, p->imms);
	assert_int_equal(p->rsp.msn, p->messages & PSN_MASK);
	assert_int_equal(p->rsp.n_wimm, 0);
	assert_int_equal(p->req.wimms, 0);
	assert_int_equal(p->req.snd.flight_bytes, 0);
	assert_int_equal(p->rsp.lost_sayings + p->rsp.refused, 0);
}

/* No weather at all: nothing is sent twice but the question for a last ACK, and a tail before it is
 * known how long a round trip takes; no path is thought bad, and planes carry the same. */
static void fair_weather(void **state)
{
	struct pair *p = make(1, 400);
	uint32_t offset = 0;

	(void)state;
	p->jitter = BASE_RTT / 8;
	while (p->done < p->messages)
		turn(p, &offset);
	settled(p);
	assert_in_range(p->req.again, 0, 3);
	assert_int_equal(p->evs.n_bad, 0);
	assert_int_equal(p->req.ignored, 0);
	for (unsigned i = 1; i < PLANES; i++)
		assert_in_range(p->on_plane[i], p->on_plane[0] - 2, p->on_plane[0] + 2);
	end(p);
}

static void weather(void **state)
{
	static const struct {
		unsigned loss, twice, trim, mark, dead;
	} w[] = {{10, 0, 0, 0, 0}, {0, 50, 0, 0, 0}, {0, 0, 50, 0, 0}, {0, 0, 0, 100, 0},
		{0, 0, 0, 0, 8}, {1, 10, 10, 50, 0}, {100, 100, 100, 100, 0}, {20, 5, 20, 20, 10},
		{0, 0, 300, 300, 0}, {200, 0, 0, 0, 16}};

	(void)state;
	for (unsigned i = 0; i < 2 * sizeof(w) / sizeof(w[0]); i++) {
		const unsigned which = i / 2; /* by either codec */
		struct pair *p = make(i + 2, 300);
		uint32_t offset = 0;

		p->loss = w[which].loss;
		p->twice = w[which].twice;
		p->trim = w[which].trim;
		p->mark = w[which].mark;
		for (unsigned n = 0; n < w[which].dead; n++)
			p->path[n * 5 % PATHS].dead = true;
		while (p->done < p->messages) {
			turn(p, &offset);
			assert_true(p->now < UINT64_C(10000000000));
		}
		settled(p);
		end(p);
	}
}

/* A plane goes and both ends know; another path dies and nobody says so; both come back. */
static void failures(void **state)
{
	struct pair *p = make(99, 3000);
	uint32_t offset = 0, bad = 0;

	(void)state;
	while (p->done < p->messages) {
		const bool plane = p->done > 500 && p->done < 1000;
		const bool path = p->done > 1200 && p->done < 2000;

		mrc_evset_port(&p->evs, 2, !plane);
		for (unsigned i = 2; i < PATHS; i += PLANES)
			p->path[i].dead = plane;
		p->path[5].dead = path;
		turn(p, &offset);
		bad = p->evs.n_bad > bad ? p->evs.n_bad : bad;
	}
	assert_true(bad > 0);
	settled(p);
	/* Probes go on by themselves until all are back. */
	for (unsigned i = 0; p->evs.n_bad && i < 4000000; i++)
		turn(p, &offset);
	assert_int_equal(p->evs.n_bad, 0);
	assert_true(p->req.probes > 0);
	end(p);
}

/* The peer is gone: it ends, in bounded time, all is told, and told in order. */
static void nobody_there(void **state)
{
	struct pair *p = make(5, 10);
	uint32_t offset = 0;
	struct mrc_done done;

	(void)state;
	p->req.snd.exp_cnt = 2;
	p->loss = 1000;
	for (unsigned i = 0; i < 10; i++)
		post(p, &offset);
	while (!p->req.status) {
		p->now += 1000;
		if (p->now >= mrc_req_deadline(&p->req))
			mrc_req_timer(&p->req, p->now);
		transmit(p);
		assert_true(p->now < 1000000000);
	}
	for (unsigned i = 0; i < 10; i++) {
		assert_true(mrc_req_done(&p->req, &done));
		assert_int_equal(done.cookie, i);
		assert_int_equal(done.status, i ? MRC_STATUS_FLUSHED : MRC_STATUS_RETRY);
	}
	assert_false(mrc_req_done(&p->req, &done));
	assert_int_equal(mrc_req_post(&p->req, &(struct mrc_msg){0}), -ENOTCONN);
	assert_int_equal(mrc_req_deadline(&p->req), UINT64_MAX);
	end(p);
}

int run_pair_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fair_weather),
		cmocka_unit_test(weather),
		cmocka_unit_test(failures),
		cmocka_unit_test(nobody_there),
	};

	return cmocka_run_group_tests_name("pair", tests, NULL, NULL);
}
