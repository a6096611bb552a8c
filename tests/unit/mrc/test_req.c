/* SPDX-License-Identifier: BSD-3-Clause */
/* The requestor: what its packets say, what each word of the peer does, and what it does not. */
#include <errno.h>
#include <stdlib.h>

#include "lib/mrc/req.h"
#include "lib/wire/psn.h"
#include "tests/unit/mrc/mrc_test.h"

enum { FIRST_PSN = 0xfffffe, PMTU = 256, PORTS = 2, EVS = 8, RTT = 1000, ALL = 3 };
enum { EV_BASE = 0x10002, NAK_REQUEST = 0x61, NAK_ACCESS = 0x62, NAK_OPERATION = 0x63 };

static const struct mrc_req_config plain = {.snd = {.first_psn = FIRST_PSN,
						    .mpr_units = 1,
						    .timeout = 10,
						    .linear_cnt = 2,
						    .exp_cnt = 2,
						    .later_ns = RTT,
						    .tail_ns = 4 * RTT},
	.dqpn = 0x123456,
	.qpn_low = 0x99,
	.pmtu = PMTU,
	.messages = 8,
	.max_wimm = 2,
	.peer_nacks_trimmed = true};

static uint32_t ev_of(int i)
{
	return EV_BASE + 0x30000u * (unsigned)i;
}

static struct mrc_req *requestor(const struct mrc_req_config *config)
{
	const struct mrc_evset_config evs = {
		.n_ports = PORTS, .max_active = EVS / 2, .min_active = 1, .base_rtt_ns = RTT};
	struct mrc_evset *set = test_malloc(sizeof(*set));
	struct mrc_req *q = test_malloc(sizeof(*q));
	uint32_t ev[EVS];
	uint8_t port[EVS];

	for (int i = 0; i < EVS; i++) {
		ev[i] = ev_of(i);
		port[i] = (uint8_t)(i % PORTS);
	}
	assert_int_equal(mrc_evset_init(set, &evs, ev, port, EVS), 0);
	assert_int_equal(mrc_req_init(q, config, set, NULL, test_malloc(mrc_req_bytes(config))), 0);
	return q;
}

static void end(struct mrc_req *q)
{
	test_free(q->snd.sent);
	test_free(q->evs);
	test_free(q);
}

static uint32_t psn(int n)
{
	return psn_add(FIRST_PSN, n);
}

static void post(struct mrc_req *q, uint64_t cookie, uint32_t length, bool imm)
{
	const struct mrc_msg msg = {.cookie = cookie,
		.va = 0x7f0000001000,
		.rkey = 0x11223344,
		.length = length,
		.has_imm = imm,
		.imm = 0xcafe0000 | (uint32_t)cookie,
		.se = imm};

	assert_int_equal(mrc_req_post(q, &msg), 0);
}

static struct mrc_out sends(struct mrc_req *q, uint64_t now)
{
	struct mrc_out out;
	uint8_t bytes[MRC_MAX_HEADERS];

	assert_true(mrc_req_tx(q, ALL, now, &out));
	assert_true(mrc_codec_ocp_r1.encode(&out.pkt, bytes, sizeof(bytes)) > 0);
	return out;
}

static void silent(struct mrc_req *q, uint64_t now)
{
	struct mrc_out out;

	assert_false(mrc_req_tx(q, ALL, now, &out));
}

static void done(struct mrc_req *q, uint64_t cookie, enum mrc_status status)
{
	struct mrc_done d;

	assert_true(mrc_req_done(q, &d));
	assert_int_equal(d.cookie, cookie);
	assert_int_equal(d.status, status);
}

static void none_done(struct mrc_req *q)
{
	struct mrc_done d;

	assert_false(mrc_req_done(q, &d));
}

static void says(struct mrc_req *q, int upto, uint8_t syndrome, int expected)
{
	const struct mrc_ack ack = {.psn = psn(upto), .syndrome = syndrome};

	assert_int_equal(mrc_req_ack(q, &ack, 100), expected);
}

static struct mrc_sack sack(int cack, const struct mrc_out *trigger)
{
	return (struct mrc_sack){.cack_psn = psn(cack),
		.base_psn = psn(cack + 1),
		.trigger_psn = trigger->pkt.data.psn,
		.rtx = trigger->pkt.kind == MRC_KIND_DATA && trigger->pkt.data.rtx,
		.entropy = trigger->ev,
		.ts = trigger->pkt.data.ts};
}

static uint8_t state_of(const struct mrc_req *q, uint32_t ev)
{
	return q->evs->ev[mrc_evset_find(q->evs, ev)].state;
}

static void refused(void **state)
{
	struct mrc_req_config bad[10];
	struct mrc_req q;
	uint64_t mem[1];

	(void)state;
	for (unsigned i = 0; i < 10; i++)
		bad[i] = plain;
	bad[0].pmtu = 255;
	bad[1].pmtu = MRC_PMTU_MAX + 1;
	bad[2].messages = 0;
	bad[3].messages = 6;
	bad[4].messages = 2 * MRC_MAX_MESSAGES;
	bad[5].max_wimm = 0;
	bad[6].dqpn = 1 << 24;
	bad[7].snd.mpr_units = 0;
	bad[8].snd.mpr_units = 256;
	for (unsigned i = 0; i < 9; i++) {
		assert_int_equal(mrc_req_bytes(&bad[i]), 0);
		assert_int_equal(mrc_req_init(&q, &bad[i], NULL, NULL, mem), -EINVAL);
	}
	bad[9].cc = true; /* and no window */
	assert_int_equal(mrc_req_init(&q, &bad[9], NULL, NULL, mem), -EINVAL);
}

static void posting(void **state)
{
	struct mrc_req *q = requestor(&plain);
	const struct mrc_msg large = {.length = (UINT32_C(1) << 31) + 1};

	(void)state;
	assert_int_equal(mrc_req_post(q, &large), -EINVAL);
	for (unsigned i = 0; i < 8; i++)
		post(q, i, 1, false);
	assert_int_equal(mrc_req_post(q, &(struct mrc_msg){0}), -ENOSPC);
	mrc_req_fail(q, MRC_STATUS_ACCESS);
	assert_int_equal(mrc_req_post(q, &(struct mrc_msg){0}), -ENOTCONN);
	silent(q, 0);
	done(q, 0, MRC_STATUS_ACCESS);
	for (unsigned i = 1; i < 8; i++)
		done(q, i, MRC_STATUS_FLUSHED);
	none_done(q);
	end(q);
}

/* Three packets with an immediate, then an empty message. */
static void packets(void **state)
{
	static const uint8_t places[] = {MRC_FIRST, MRC_MIDDLE, MRC_LAST};
	struct mrc_req *q = requestor(&plain);
	struct mrc_out out;

	(void)state;
	post(q, 5, 2 * PMTU + 9, true);
	post(q, 6, 0, false);
	for (unsigned i = 0; i < 3; i++) {
		const bool last = i == 2;

		out = sends(q, 128 * 77);
		assert_int_equal(out.pkt.kind, MRC_KIND_DATA);
		assert_int_equal(out.pkt.data.place, places[i]);
		assert_int_equal(out.pkt.data.psn, psn((int)i));
		assert_int_equal(out.pkt.data.has_imm, last);
		assert_int_equal(out.pkt.data.se, last);
		assert_int_equal(out.pkt.data.imm, last ? 0xcafe0005 : 0);
		assert_int_equal(out.pkt.data.va, 0x7f0000001000 + i * PMTU);
		assert_int_equal(out.pkt.data.pay_len, last ? 9 : PMTU);
		assert_int_equal(out.pkt.data.dmalen, 2 * PMTU + 9);
		assert_int_equal(out.pkt.data.rkey, 0x11223344);
		assert_int_equal(out.pkt.data.dqpn, 0x123456);
		assert_int_equal(out.pkt.data.msn + out.pkt.data.rqmsn, 0);
		assert_true(out.pkt.data.has_ts);
		assert_int_equal(out.pkt.data.ts, 77);
		assert_false(out.pkt.data.ackreq || out.pkt.data.rtx);
		assert_int_equal(out.class, MRC_CLASS_TRIMMABLE);
		assert_int_equal(out.cookie, 5);
		assert_int_equal(out.offset, i * PMTU);
	}
	out = sends(q, 0);
	assert_int_equal(out.pkt.data.place, MRC_ONLY);
	assert_int_equal(out.pkt.data.pay_len, 0);
	assert_int_equal(out.pkt.data.msn, 1);
	assert_true(out.pkt.data.ackreq); /* nothing follows */
	silent(q, 0);
	end(q);
}

/* A SACK of everything completes nothing; the transport ACK does, in order. */
static void completion(void **state)
{
	struct mrc_req *q = requestor(&plain);
	struct mrc_out out = {0};
	struct mrc_sack s;

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		post(q, i, PMTU + 1, false);
	for (unsigned i = 0; i < 6; i++)
		out = sends(q, 0);
	s = sack(5, &out);
	assert_int_equal(mrc_req_sack(q, &s, 50), 0);
	none_done(q);
	says(q, 2, MRC_SYNDROME_ACK, 0); /* one and a half */
	done(q, 0, MRC_STATUS_OK);
	none_done(q);
	says(q, 6, MRC_SYNDROME_ACK, -EINVAL); /* never sent */
	none_done(q);
	says(q, 5, MRC_SYNDROME_ACK, 0);
	done(q, 1, MRC_STATUS_OK);
	done(q, 2, MRC_STATUS_OK);
	none_done(q);
	assert_int_equal(mrc_req_deadline(q), UINT64_MAX);
	end(q);
}

static void refusals(void **state)
{
	static const struct {
		uint8_t syndrome;
		enum mrc_status status;
	} naks[] = {{NAK_REQUEST, MRC_STATUS_INV_REQ}, {MRC_SYNDROME_WIMM, MRC_STATUS_INV_REQ},
		{NAK_ACCESS, MRC_STATUS_ACCESS}, {NAK_OPERATION, MRC_STATUS_OPERATION}};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct mrc_req *q = requestor(&plain);

		for (unsigned n = 0; n < 4; n++)
			post(q, n, 1, false);
		for (unsigned n = 0; n < 3; n++)
			sends(q, 0);
		says(q, 0, MRC_SYNDROME_ACK, 0);
		done(q, 0, MRC_STATUS_OK);
		says(q, 0, naks[i].syndrome, -EINVAL); /* of what is done */
		says(q, 3, naks[i].syndrome, -EINVAL); /* of what was never sent */
		says(q, 1, 0x60, -EINVAL);             /* MRC has no sequence error, */
		says(q, 1, 0x20, -EINVAL);             /* no RNR, */
		says(q, 1, 0x7f, -EINVAL);             /* and not this */
		assert_int_equal(q->ignored, 5);
		assert_int_equal(q->status, MRC_STATUS_OK);
		says(q, 2, naks[i].syndrome, 0);
		says(q, 2, naks[i].syndrome, -EINVAL); /* it is over */
		done(q, 1, MRC_STATUS_OK);
		done(q, 2, naks[i].status);
		done(q, 3, MRC_STATUS_FLUSHED);
		none_done(q);
		silent(q, 0);
		end(q);
	}
}

static void trimmed(void **state)
{
	struct mrc_req *q = requestor(&plain);
	struct mrc_out first, second, again;
	struct mrc_nack nack;

	(void)state;
	post(q, 0, 2 * PMTU, true);
	first = sends(q, 0);
	second = sends(q, 0);
	nack = (struct mrc_nack){.psn = psn(0), .reason = MRC_NACK_TRIMMED, .entropy = second.ev};
	assert_int_equal(mrc_req_nack(q, &nack, 10), -EINVAL); /* not that one's path */
	nack.entropy = first.ev;
	nack.psn = psn(2);
	assert_int_equal(mrc_req_nack(q, &nack, 10), -EINVAL);
	silent(q, 10);
	nack.psn = psn(0);
	assert_int_equal(mrc_req_nack(q, &nack, 10), 0);
	assert_int_equal(state_of(q, first.ev), MRC_EV_SKIP);
	again = sends(q, 20);
	assert_true(again.pkt.data.rtx);
	assert_true(again.ev != first.ev);
	assert_int_equal(again.class, MRC_CLASS_TRIMMABLE_RETX);
	again.pkt.data.rtx = first.pkt.data.rtx;
	again.pkt.data.ts = first.pkt.data.ts;
	again.pkt.data.ackreq = first.pkt.data.ackreq;
	assert_memory_equal(&again.pkt, &first.pkt, sizeof(again.pkt));
	nack = (struct mrc_nack){
		.psn = psn(1), .reason = MRC_NACK_TRIMMED_LASTHOP, .entropy = second.ev};
	assert_int_equal(mrc_req_nack(q, &nack, 20), 0);
	assert_int_equal(state_of(q, second.ev), MRC_EV_GOOD);
	assert_int_equal(sends(q, 20).pkt.data.imm, 0xcafe0000);
	assert_int_equal(q->trimmed, 2);
	assert_int_equal(q->again, 2);
	/* What has no meaning ends it. */
	nack.entropy = again.ev;
	nack.psn = psn(0);
	nack.reason = MRC_NACK_UNEXP_EVENT;
	assert_int_equal(mrc_req_nack(q, &nack, 30), 0);
	done(q, 0, MRC_STATUS_OPERATION);
	end(q);
}

/* SACKs have overtaken a NACK: its packet was taken as lost, and its path as bad. Not for long. */
static void overtaken(void **state)
{
	struct mrc_req *q = requestor(&plain);
	struct mrc_out out[8];
	struct mrc_nack nack;
	struct mrc_sack s;
	int same = 0;

	(void)state;
	post(q, 0, 8 * PMTU, false);
	for (int i = 0; i < 8; i++) {
		out[i] = sends(q, 0);
		if (i > 0 && out[i].ev == out[0].ev)
			same = i;
	}
	assert_int_not_equal(same, 0);
	s = sack(-1, &out[same]);
	s.bitmap = UINT64_C(1) << same;
	assert_int_equal(mrc_req_sack(q, &s, 10), 0);
	assert_int_equal(state_of(q, out[0].ev), MRC_EV_BAD);
	nack = (struct mrc_nack){
		.psn = psn(0), .reason = MRC_NACK_NO_RESOURCE, .entropy = out[0].ev};
	assert_int_equal(mrc_req_nack(q, &nack, 11), -EINVAL);
	nack.reason = MRC_NACK_TRIMMED;
	nack.entropy = out[1].ev;
	assert_int_equal(mrc_req_nack(q, &nack, 11), -EINVAL);
	nack.entropy = out[0].ev;
	assert_int_equal(sends(q, 11).pkt.data.psn, psn(0)); /* it goes again all the same */
	assert_int_equal(mrc_req_nack(q, &nack, 12), 0);
	assert_int_equal(state_of(q, out[0].ev), MRC_EV_SKIP);
	assert_int_equal(q->trimmed, 1);
	/* Once: the path may be lost in earnest. */
	assert_true(mrc_evset_bad(q->evs, mrc_evset_find(q->evs, out[0].ev), 13));
	assert_int_equal(mrc_req_nack(q, &nack, 14), -EINVAL);
	assert_int_equal(state_of(q, out[0].ev), MRC_EV_BAD);
	end(q);
}

static void marks(void **state)
{
	struct mrc_req *q = requestor(&plain);
	struct mrc_out out[2];
	struct mrc_sack s;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		post(q, i, 1, false);
		out[i] = sends(q, 0);
	}
	s = sack(0, &out[0]);
	s.mark = MRC_SKIP_ONCE;
	assert_int_equal(mrc_req_sack(q, &s, 10), 0);
	assert_int_equal(state_of(q, out[0].ev), MRC_EV_SKIP);
	s = sack(1, &out[1]);
	s.mark = MRC_ALWAYS_SKIP;
	s.entropy = s.entropy << 16 | s.entropy >> 16; /* a peer that counts halves otherwise */
	assert_int_equal(mrc_req_sack(q, &s, 10), 0);
	assert_int_equal(state_of(q, out[1].ev), MRC_EV_BAD);
	s.cack_psn = psn(5);
	assert_int_equal(mrc_req_sack(q, &s, 10), -EINVAL);
	assert_int_equal(q->ignored, 1);
	end(q);
}

/* A path loses a packet: out at once, probed, and back after three answers. Only answers to our own
 * questions count. */
static void bad_path(void **state)
{
	struct mrc_req *q = requestor(&plain);
	struct mrc_out out = {0}, lost, probe;
	uint64_t now = 10;
	struct mrc_sack s;

	(void)state;
	post(q, 0, 16 * PMTU, false);
	lost = sends(q, 0);
	do
		out = sends(q, 0);
	while (out.ev != lost.ev);
	s = sack(-1, &out);
	s.base_psn = psn(0);
	s.bitmap = UINT64_C(1) << psn_diff(out.pkt.data.psn, psn(0));
	assert_int_equal(mrc_req_sack(q, &s, now), 0);
	assert_int_equal(state_of(q, lost.ev), MRC_EV_BAD);
	out = sends(q, now);
	assert_true(out.pkt.data.rtx);
	assert_int_equal(out.pkt.data.psn, psn(0));
	while (mrc_req_tx(q, ALL, now, &out))
		;
	s = sack(15, &out);
	s.rtx = true;
	s.trigger_psn = psn(0);
	assert_int_equal(mrc_req_sack(q, &s, now), 0);
	says(q, 15, MRC_SYNDROME_ACK, 0);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(state_of(q, lost.ev), MRC_EV_BAD);
		now = mrc_req_deadline(q);
		mrc_req_timer(q, now);
		probe = sends(q, now);
		assert_int_equal(probe.pkt.kind, MRC_KIND_PROBE);
		assert_int_equal(probe.ev, lost.ev);
		assert_int_equal(probe.class, MRC_CLASS_NO_TRIM);
		silent(q, now);
		s = (struct mrc_sack){.probe = true,
			.probe_id = (uint16_t)(probe.pkt.probe.id + 1),
			.entropy = probe.ev,
			.cack_psn = psn(15),
			.base_psn = psn(16)};
		assert_int_equal(mrc_req_sack(q, &s, now), -EINVAL);
		s.probe_id--;
		s.entropy = out.ev;
		assert_int_equal(mrc_req_sack(q, &s, now), -EINVAL);
		s.entropy = probe.ev;
		s.mark = MRC_ALWAYS_SKIP; /* arrived, and still not to be used */
		if (i == 0) {
			assert_int_equal(mrc_req_sack(q, &s, now), 0);
			now = mrc_req_deadline(q); /* counts as lost */
			mrc_req_timer(q, now);
			now = mrc_req_deadline(q);
			mrc_req_timer(q, now);
			probe = sends(q, now);
			s.probe_id = probe.pkt.probe.id;
		}
		s.mark = MRC_MARK_NONE;
		assert_int_equal(mrc_req_sack(q, &s, now), 0);
		assert_int_equal(mrc_req_sack(q, &s, now), -EINVAL); /* a second time */
	}
	assert_int_equal(state_of(q, lost.ev), MRC_EV_GOOD);
	end(q);
}

static void immediates(void **state)
{
	struct mrc_req *q = requestor(&plain);

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		post(q, i, PMTU + 1, true);
	post(q, 3, 1, false);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(sends(q, 0).pkt.data.rqmsn, i / 2);
	silent(q, 0); /* two are all that the peer holds, and nothing overtakes the third */
	says(q, 1, MRC_SYNDROME_ACK, 0);
	done(q, 0, MRC_STATUS_OK);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(sends(q, 0).pkt.data.rqmsn, 2);
	assert_int_equal(sends(q, 0).pkt.data.msn, 3);
	silent(q, 0);
	end(q);
}

static struct mrc_out asks(struct mrc_req *q, uint64_t now)
{
	struct mrc_out out;

	assert_int_equal(mrc_req_deadline(q), now);
	mrc_req_timer(q, now);
	out = sends(q, now);
	assert_int_equal(out.pkt.kind, MRC_KIND_PROBE);
	silent(q, now);
	return out;
}

/* Nothing follows the last packet: the first probe takes its path, and the answer tells that it is
 * lost. One that has no answer is followed by one elsewhere, whose answer tells nothing yet. */
static void tail(void **state)
{
	for (unsigned elsewhere = 0; elsewhere < 2; elsewhere++) {
		struct mrc_req *q = requestor(&plain);
		struct mrc_out data, out;
		uint64_t now = 4 * RTT;
		struct mrc_sack s;

		(void)state;
		post(q, 0, 1, false);
		data = sends(q, 0);
		out = asks(q, now);
		assert_int_equal(out.ev, data.ev);
		if (elsewhere) {
			now += 8 * RTT;
			out = asks(q, now);
			assert_int_not_equal(out.ev, data.ev);
		}
		s = sack(-1, &out);
		s.probe = true;
		s.probe_id = out.pkt.probe.id;
		assert_int_equal(mrc_req_sack(q, &s, now + RTT), 0);
		assert_int_equal(q->lost, !elsewhere);
		if (!elsewhere) {
			out = sends(q, now + RTT);
			assert_true(out.pkt.data.rtx && out.ev != data.ev);
		}
		end(q);
	}
}

/* A path that is out of use is not asked on, nor is a port that is down. */
static void tail_elsewhere(void **state)
{
	for (unsigned denied = 0; denied < 2; denied++) {
		struct mrc_req *q = requestor(&plain);
		struct mrc_out data;

		(void)state;
		post(q, 0, 1, false);
		data = sends(q, 0);
		if (denied)
			mrc_evset_deny(q->evs, mrc_evset_find(q->evs, data.ev));
		else
			mrc_evset_port(q->evs, data.port, false);
		assert_int_not_equal(asks(q, 4 * RTT).ev, data.ev);
		end(q);
	}
}

/* What is still to be sent will tell: only silence is asked about. */
static void not_the_tail(void **state)
{
	struct mrc_req_config config = plain;
	struct mrc_req *q;

	(void)state;
	config.snd.tail_ns = RTT;
	config.snd.late_ns = 4 * RTT;
	q = requestor(&config);
	post(q, 0, 200 * PMTU, false);
	for (unsigned i = 0; i < 128; i++)
		sends(q, 0);
	asks(q, 4 * RTT);
	end(q);
}

static void rooms(void **state)
{
	struct mrc_req_config config = plain;
	struct mrc_req *q;
	struct mrc_out out;

	(void)state;
	config.peer_nacks_trimmed = false;
	q = requestor(&config);
	post(q, 0, 200 * PMTU, false);
	assert_false(mrc_req_tx(q, 0, 0, &out));
	assert_false(mrc_req_tx(q, 4, 0, &out)); /* a port that no path has */
	for (unsigned i = 0; i < 128; i++) {
		assert_true(mrc_req_tx(q, 1 << i % 2, 0, &out));
		assert_int_equal(out.port, i % 2);
		assert_int_equal(out.class, MRC_CLASS_NO_TRIM);
		assert_int_equal(out.pkt.data.ackreq, i == 127);
	}
	silent(q, 0); /* the peer's window */
	end(q);
}

int run_req_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused),
		cmocka_unit_test(posting),
		cmocka_unit_test(packets),
		cmocka_unit_test(completion),
		cmocka_unit_test(refusals),
		cmocka_unit_test(trimmed),
		cmocka_unit_test(overtaken),
		cmocka_unit_test(marks),
		cmocka_unit_test(bad_path),
		cmocka_unit_test(immediates),
		cmocka_unit_test(tail),
		cmocka_unit_test(tail_elsewhere),
		cmocka_unit_test(not_the_tail),
		cmocka_unit_test(rooms),
	};

	return cmocka_run_group_tests_name("req", tests, NULL, NULL);
}
