/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder: messages in any order of arrival, what ends a connection, and when which word goes
 * to the peer. */
#include <errno.h>
#include <stdlib.h>

#include "lib/mrc/rsp.h"
#include "lib/wire/psn.h"
#include "tests/unit/mrc/mrc_test.h"

enum { FIRST_PSN = 0xfffffd, PMTU = 1024, EV = 7, NAK_REQUEST = 0x61, NAK_ACCESS = 0x62 };
enum { NAK_OPERATION = 0x63, BASE_RTT = 1000 };

static const struct mrc_rsp_config plain = {.first_psn = FIRST_PSN,
	.dqpn = 0x123456,
	.qpn_low = 0x99,
	.mpr_units = 1,
	.max_wimm = 4,
	.pmtu = PMTU,
	.guard_ns = BASE_RTT,
	.oor_ns = BASE_RTT};

static struct mrc_rsp responder(const struct mrc_rsp_config *config)
{
	struct mrc_rsp r;

	assert_int_equal(mrc_rsp_init(&r, config, test_malloc(mrc_rsp_bytes(config))), 0);
	return r;
}

static void end(struct mrc_rsp *r)
{
	test_free(r->rcv.bits);
}

/* PSNs of tests count from 0. */
static uint32_t psn(int n)
{
	return psn_add(FIRST_PSN, n);
}

static struct mrc_data packet(int n, enum mrc_place place)
{
	return (struct mrc_data){.place = (uint8_t)place, .psn = psn(n), .pay_len = PMTU};
}

static struct mrc_data with_imm(int n, enum mrc_place place, uint32_t imm, uint16_t len)
{
	struct mrc_data d = packet(n, place);

	d.has_imm = true;
	d.imm = imm;
	d.pay_len = len;
	return d;
}

static enum mrc_arrival comes_met(struct mrc_rsp *r, struct mrc_data d, struct mrc_met met)
{
	const enum mrc_arrival looked = mrc_rsp_look(r, &d);

	met.bytes = met.bytes ? met.bytes : d.pay_len + 60u;
	assert_int_equal(mrc_rsp_data(r, &d, &met, met.at), looked);
	return looked;
}

static enum mrc_arrival comes(struct mrc_rsp *r, struct mrc_data d)
{
	return comes_met(r, d, (struct mrc_met){.ev = EV});
}

/* Takes steps; the immediates' values, as decimal digits in order. */
static unsigned steps(struct mrc_rsp *r, enum mrc_step ends)
{
	struct mrc_wimm wimm;
	unsigned digits = 0;
	enum mrc_step step;

	while ((step = mrc_rsp_step(r, &wimm)) == MRC_STEP_WIMM)
		digits = digits * 10 + wimm.imm;
	assert_int_equal(step, ends);
	return digits;
}

static struct mrc_pkt said(struct mrc_rsp *r, enum mrc_kind kind)
{
	uint8_t out[MRC_MAX_HEADERS];
	struct mrc_pkt pkt;

	assert_true(mrc_rsp_pending(r));
	assert_true(mrc_rsp_tx(r, 0, &pkt));
	assert_int_equal(pkt.kind, kind);
	assert_true(mrc_codec_ocp_r1.encode(&pkt, out, sizeof(out)) > 0);
	return pkt;
}

static void silent(struct mrc_rsp *r)
{
	struct mrc_pkt pkt;

	assert_false(mrc_rsp_pending(r));
	assert_false(mrc_rsp_tx(r, 0, &pkt));
}

static void acked(struct mrc_rsp *r, int upto, uint32_t msn)
{
	const struct mrc_pkt pkt = said(r, MRC_KIND_ACK);

	assert_int_equal(pkt.ack.psn, psn(upto));
	assert_int_equal(pkt.ack.msn, msn);
	assert_int_equal(pkt.ack.syndrome, MRC_SYNDROME_ACK);
	assert_int_equal(pkt.ack.dqpn, 0x123456);
}

static void naked(struct mrc_rsp *r, int at, uint32_t msn, uint8_t syndrome)
{
	const struct mrc_pkt pkt = said(r, MRC_KIND_ACK);

	assert_int_equal(pkt.ack.psn, psn(at));
	assert_int_equal(pkt.ack.msn, msn);
	assert_int_equal(pkt.ack.syndrome, syndrome);
	silent(r);
	/* It is over: nothing is taken or said any more. */
	comes(r, packet(at, MRC_ONLY));
	mrc_rsp_trimmed(r, psn(at), false, &(struct mrc_met){.ev = EV}, 0);
	mrc_rsp_probe(r, &(struct mrc_probe){.id = 1}, &(struct mrc_met){.ev = EV});
	steps(r, MRC_STEP_FAILED);
	silent(r);
	assert_int_equal(mrc_rsp_deadline(r), UINT64_MAX);
}

static void refused(void **state)
{
	struct mrc_rsp_config bad[9];
	struct mrc_rsp r;
	uint64_t mem[1];

	(void)state;
	for (unsigned i = 0; i < 9; i++)
		bad[i] = plain;
	bad[0].mpr_units = 0;
	bad[1].mpr_units = 256;
	bad[2].max_wimm = 0;
	bad[3].max_wimm = MRC_MAX_WIMM + 1;
	bad[4].pmtu = 255;
	bad[5].pmtu = 65536;
	bad[6].first_psn = 1 << 24;
	bad[7].dqpn = 1 << 24;
	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(mrc_rsp_bytes(&bad[i]), 0);
		assert_int_equal(mrc_rsp_init(&r, &bad[i], mem), -EINVAL);
	}
	bad[8].max_wimm = MRC_MAX_WIMM;
	assert_true(mrc_rsp_bytes(&bad[8]) > 0);
}

/* Of three packets, one, and two with an immediate: each is done when all before it is there. */
static void messages(void **state)
{
	struct mrc_rsp r = responder(&plain);
	struct mrc_wimm wimm;

	(void)state;
	comes(&r, packet(0, MRC_FIRST));
	comes(&r, packet(1, MRC_MIDDLE));
	assert_int_equal(steps(&r, MRC_STEP_NONE), 0);
	silent(&r);
	comes(&r, packet(2, MRC_LAST));
	steps(&r, MRC_STEP_NONE);
	acked(&r, 2, 1);
	comes(&r, with_imm(5, MRC_LAST, 3, 77));
	comes(&r, packet(4, MRC_FIRST));
	assert_int_equal(steps(&r, MRC_STEP_NONE), 0);
	silent(&r);
	comes(&r, packet(3, MRC_ONLY));
	assert_int_equal(mrc_rsp_step(&r, &wimm), MRC_STEP_WIMM);
	assert_int_equal(wimm.imm, 3);
	assert_int_equal(wimm.psn, psn(5));
	assert_int_equal(wimm.bytes, PMTU + 77);
	assert_false(wimm.se);
	acked(&r, 3, 2); /* not the immediate's, before its completion is there */
	steps(&r, MRC_STEP_NONE);
	acked(&r, 5, 3);
	silent(&r);
	end(&r);
}

/* All orders of seven packets of four messages, three of them with immediates. */
static void any_order(void **state)
{
	const struct mrc_data d[] = {packet(0, MRC_FIRST), with_imm(1, MRC_LAST, 1, PMTU),
		with_imm(2, MRC_ONLY, 2, 0), packet(3, MRC_FIRST), packet(4, MRC_MIDDLE),
		packet(5, MRC_LAST), with_imm(6, MRC_ONLY, 3, 9)};
	enum { N = sizeof(d) / sizeof(d[0]), ORDERS = 5040 };
	static const unsigned due[N + 1] = {0, 0, 1, 12, 12, 12, 12, 123};

	(void)state;
	for (unsigned order = 0; order < ORDERS; order++) {
		struct mrc_rsp r = responder(&plain);
		unsigned left[N] = {0, 1, 2, 3, 4, 5, 6}, rest = order, got = 0, seen = 0, low = 0;

		for (unsigned n = N; n > 0; n--) {
			const unsigned at = rest % n, which = left[at];
			unsigned digits;

			rest /= n;
			left[at] = left[n - 1];
			comes(&r, d[which]);
			seen |= 1u << which;
			while (seen >> low & 1)
				low++;
			digits = steps(&r, MRC_STEP_NONE);
			got = digits > 99  ? digits
			      : digits > 9 ? got * 100 + digits
			      : digits     ? got * 10 + digits
					   : got;
			assert_int_equal(got, due[low]);
		}
		assert_int_equal(r.msn, 4);
		assert_int_equal(r.done_psn, psn(6));
		end(&r);
	}
}

static void broken_sequence(void **state)
{
	static const struct {
		enum mrc_place place[3];
		int nak;
		uint32_t msn;
	} cases[] = {
		{{MRC_MIDDLE, MRC_LAST, MRC_ONLY}, 0, 0},
		{{MRC_LAST, MRC_ONLY, MRC_ONLY}, 0, 0},
		{{MRC_FIRST, MRC_FIRST, MRC_LAST}, 1, 0},
		{{MRC_FIRST, MRC_ONLY, MRC_LAST}, 1, 0},
		{{MRC_ONLY, MRC_MIDDLE, MRC_LAST}, 1, 1},
		{{MRC_FIRST, MRC_LAST, MRC_LAST}, 2, 1},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mrc_rsp r = responder(&plain);

		for (int n = 2; n > 0; n--) {
			comes(&r, packet(n, cases[i].place[n]));
			steps(&r, MRC_STEP_NONE); /* not before it is contiguous */
		}
		comes(&r, packet(0, cases[i].place[0]));
		steps(&r, MRC_STEP_FAILED);
		naked(&r, cases[i].nak, cases[i].msn, NAK_REQUEST);
		end(&r);
	}
}

static void lengths(void **state)
{
	static const struct {
		enum mrc_place place;
		uint16_t len;
		bool ok;
	} cases[] = {
		{MRC_FIRST, PMTU, true},
		{MRC_FIRST, PMTU - 1, false},
		{MRC_FIRST, 0, false},
		{MRC_MIDDLE, PMTU - 4, false},
		{MRC_MIDDLE, PMTU + 4, false},
		{MRC_LAST, 1, true},
		{MRC_LAST, PMTU, true},
		{MRC_LAST, 0, false},
		{MRC_LAST, PMTU + 1, false},
		{MRC_ONLY, 0, true},
		{MRC_ONLY, PMTU, true},
		{MRC_ONLY, PMTU + 1, false},
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mrc_rsp r = responder(&plain);
		struct mrc_data d = packet(1, cases[i].place);

		d.pay_len = cases[i].len;
		assert_int_equal(comes(&r, d), cases[i].ok ? MRC_NEW : MRC_MISFIT);
		assert_int_equal(r.refused, !cases[i].ok);
		steps(&r, MRC_STEP_NONE);
		if (!cases[i].ok) {
			comes(&r, packet(0, MRC_ONLY));
			steps(&r, MRC_STEP_FAILED);
			naked(&r, 1, 1, NAK_REQUEST);
		}
		end(&r);
	}
}

/* Memory that may not be written: said when all before is there, the lowest first; not if the
 * packet comes again and may. */
static void refusals(void **state)
{
	struct mrc_rsp r = responder(&plain);

	(void)state;
	mrc_rsp_refuse(&r, psn(3), NAK_REQUEST);
	mrc_rsp_refuse(&r, psn(2), NAK_ACCESS);
	mrc_rsp_refuse(&r, psn(4), NAK_REQUEST);
	comes(&r, packet(1, MRC_ONLY));
	steps(&r, MRC_STEP_NONE);
	silent(&r);
	comes(&r, packet(0, MRC_ONLY));
	steps(&r, MRC_STEP_FAILED);
	naked(&r, 2, 2, NAK_ACCESS);
	end(&r);

	r = responder(&plain);
	mrc_rsp_refuse(&r, psn(1), NAK_ACCESS);
	comes(&r, packet(1, MRC_ONLY));
	comes(&r, packet(0, MRC_ONLY));
	steps(&r, MRC_STEP_NONE);
	acked(&r, 1, 2);
	/* That is forgotten: another one counts. */
	mrc_rsp_refuse(&r, psn(3), NAK_ACCESS);
	comes(&r, packet(2, MRC_ONLY));
	steps(&r, MRC_STEP_FAILED);
	naked(&r, 3, 3, NAK_ACCESS);
	end(&r);
}

static void immediates(void **state)
{
	struct mrc_rsp r = responder(&plain);
	struct mrc_wimm wimm;

	(void)state;
	for (int n = 4; n > 0; n--)
		assert_int_equal(comes(&r, with_imm(n, MRC_ONLY, (uint32_t)n, 0)), MRC_NEW);
	/* The fifth that waits is one too many, a duplicate of a fourth is not. */
	assert_int_equal(comes(&r, with_imm(4, MRC_ONLY, 4, 0)), MRC_REPEATED);
	assert_int_equal(comes(&r, with_imm(5, MRC_ONLY, 5, 0)), MRC_MISFIT);
	steps(&r, MRC_STEP_FAILED);
	naked(&r, 0, 0, MRC_SYNDROME_WIMM);
	end(&r);

	/* No receive request: the message is not done. */
	r = responder(&plain);
	comes(&r, packet(0, MRC_ONLY));
	comes(&r, with_imm(1, MRC_ONLY, 1, 0));
	assert_int_equal(mrc_rsp_step(&r, &wimm), MRC_STEP_WIMM);
	mrc_rsp_fail(&r, wimm.psn, NAK_OPERATION);
	mrc_rsp_fail(&r, psn(0), NAK_REQUEST); /* the first counts */
	steps(&r, MRC_STEP_FAILED);
	naked(&r, 1, 1, NAK_OPERATION);
	end(&r);

	/* The ring of them goes round. */
	r = responder(&plain);
	for (int n = 0; n < 40; n += 4) {
		for (int i = 3; i >= 0; i--)
			comes(&r, with_imm(n + i, MRC_ONLY, (uint32_t)i + 1, 0));
		assert_int_equal(steps(&r, MRC_STEP_NONE), 1234);
	}
	end(&r);
}

static struct mrc_sack sacked(struct mrc_rsp *r, int trigger, uint32_t ev)
{
	const struct mrc_pkt pkt = said(r, MRC_KIND_SACK);

	assert_int_equal(pkt.sack.dqpn, 0x123456);
	assert_int_equal(pkt.sack.spdcid, 0x99);
	assert_int_equal(pkt.sack.dpdcid, 0x3456);
	assert_int_equal(pkt.sack.trigger_psn, psn(trigger));
	assert_int_equal(pkt.sack.entropy, ev);
	return pkt.sack;
}

/* What makes a SACK go out, each by itself. */
static void triggers(void **state)
{
	struct mrc_rsp r = responder(&plain);
	struct mrc_data d = packet(1, MRC_MIDDLE);
	struct mrc_sack sack;

	(void)state;
	comes(&r, d); /* by itself, none */
	silent(&r);
	d.psn = psn(2);
	d.ackreq = true;
	comes_met(&r, d, (struct mrc_met){.ev = 50, .ts = 0x1234});
	sack = sacked(&r, 2, 50);
	assert_int_equal(sack.mark, MRC_MARK_NONE);
	assert_int_equal(sack.ts, 0x1234);
	assert_int_equal(sack.bitmap, 0x6);
	assert_int_equal(sack.cack_psn, psn(-1));
	assert_int_equal(sack.mpr, 0);
	assert_false(sack.rtx);
	d = packet(3, MRC_MIDDLE);
	d.rtx = true;
	comes(&r, d);
	assert_true(sacked(&r, 3, EV).rtx);
	comes_met(&r, packet(4, MRC_MIDDLE), (struct mrc_met){.ev = 51, .ecn = true});
	assert_int_equal(sacked(&r, 4, 51).mark, MRC_SKIP_ONCE);
	comes_met(&r, packet(5, MRC_MIDDLE),
		(struct mrc_met){.ev = 52, .ecn = true, .path_bad = true});
	assert_int_equal(sacked(&r, 5, 52).mark, MRC_ALWAYS_SKIP);
	assert_int_equal(comes(&r, packet(5, MRC_MIDDLE)), MRC_REPEATED);
	sacked(&r, 5, EV);
	/* 16 KiB, of which a small packet counts for 1 KiB. */
	for (int n = 6; n < 6 + 15; n++)
		comes(&r, packet(n, MRC_MIDDLE));
	silent(&r);
	d = packet(21, MRC_LAST);
	d.pay_len = 1;
	comes(&r, d);
	sacked(&r, 21, EV);
	silent(&r);
	assert_int_equal(r.duplicates, 1);
	end(&r);
}

/* A duplicate of what is done is answered with the ACK as well, so that a lost one comes again. */
static void duplicates(void **state)
{
	struct mrc_rsp r = responder(&plain);

	(void)state;
	comes(&r, packet(0, MRC_FIRST));
	steps(&r, MRC_STEP_NONE);
	assert_int_equal(comes(&r, packet(0, MRC_FIRST)), MRC_DUPLICATE);
	sacked(&r, 0, EV);
	silent(&r); /* nothing is done yet */
	comes(&r, packet(1, MRC_LAST));
	steps(&r, MRC_STEP_NONE);
	acked(&r, 1, 1);
	assert_int_equal(comes(&r, packet(0, MRC_FIRST)), MRC_DUPLICATE);
	sacked(&r, 0, EV);
	acked(&r, 1, 1);
	silent(&r);
	end(&r);
}

static void guard(void **state)
{
	struct mrc_rsp r = responder(&plain);
	struct mrc_data d = packet(1, MRC_ONLY);

	(void)state;
	assert_int_equal(mrc_rsp_deadline(&r), UINT64_MAX);
	comes_met(&r, d, (struct mrc_met){.ev = 60, .at = 500});
	assert_int_equal(mrc_rsp_deadline(&r), 500 + BASE_RTT);
	mrc_rsp_timer(&r, 499 + BASE_RTT);
	silent(&r);
	mrc_rsp_timer(&r, 500 + BASE_RTT);
	sacked(&r, 1, 60);
	assert_int_equal(mrc_rsp_deadline(&r), UINT64_MAX);
	/* A SACK of another packet says it too. */
	comes_met(&r, packet(2, MRC_ONLY), (struct mrc_met){.ev = 60, .at = 3000});
	d = packet(3, MRC_ONLY);
	d.ackreq = true;
	comes(&r, d);
	assert_int_equal(mrc_rsp_deadline(&r), UINT64_MAX);
	end(&r);
}

/* One SACK for a burst, but one for each marked path, and one for each repetition. */
static void merged(void **state)
{
	struct mrc_rsp r = responder(&plain);
	const struct mrc_met marked[] = {{.ev = 70, .ecn = true}, {.ev = 71, .ecn = true}};

	(void)state;
	for (int n = 1; n < 9; n++) {
		struct mrc_data d = packet(n, MRC_MIDDLE);

		d.ackreq = n % 2 == 0;
		comes_met(&r, d, n % 2 ? marked[n / 2 % 2] : (struct mrc_met){.ev = EV});
	}
	assert_int_equal(sacked(&r, 5, 70).mark, MRC_SKIP_ONCE);
	assert_int_equal(sacked(&r, 8, EV).mark, MRC_MARK_NONE);
	assert_int_equal(sacked(&r, 7, 71).mark, MRC_SKIP_ONCE);
	silent(&r);
	for (int n = 9; n < 12; n++) {
		struct mrc_data d = packet(n, MRC_MIDDLE);

		d.rtx = true;
		comes(&r, d);
	}
	for (int n = 9; n < 12; n++)
		assert_true(sacked(&r, n, EV).rtx);
	silent(&r);
	/* There is no end of trimmed packets, but of what is remembered. */
	for (int n = 0; n < MRC_SAYINGS + 3; n++)
		mrc_rsp_trimmed(&r, psn(20 + n), false, &(struct mrc_met){.ev = EV}, 0);
	assert_int_equal(r.lost_sayings, 3);
	for (int n = 0; n < MRC_SAYINGS; n++)
		assert_int_equal(said(&r, MRC_KIND_NACK).nack.psn, psn(20 + n));
	silent(&r);
	end(&r);
}

static void trimmed(void **state)
{
	struct mrc_rsp r = responder(&plain);
	const struct mrc_met met = {.ev = 80, .ts = 0x4321};
	struct mrc_nack nack;

	(void)state;
	comes(&r, packet(0, MRC_MIDDLE));
	comes(&r, packet(2, MRC_MIDDLE));
	mrc_rsp_trimmed(&r, psn(1), false, &met, 0);
	nack = said(&r, MRC_KIND_NACK).nack;
	assert_int_equal(nack.reason, MRC_NACK_TRIMMED);
	assert_int_equal(nack.psn, psn(1));
	assert_int_equal(nack.entropy, 80);
	assert_int_equal(nack.ts, 0x4321);
	mrc_rsp_trimmed(&r, psn(3), true, &met, 0);
	assert_int_equal(said(&r, MRC_KIND_NACK).nack.reason, MRC_NACK_TRIMMED_LASTHOP);
	/* Copies of what is there: no NACK. */
	mrc_rsp_trimmed(&r, psn(0), false, &met, 0);
	sacked(&r, 0, 80);
	mrc_rsp_trimmed(&r, psn(2), false, &met, 0);
	sacked(&r, 2, 80);
	silent(&r);
	assert_int_equal(r.trimmed, 4);
	assert_int_equal(r.rcv.ooo, 1); /* none counts as arrived */
	end(&r);
}

static void out_of_window(void **state)
{
	struct mrc_rsp r = responder(&plain);
	struct mrc_met met = {.ev = EV};

	(void)state;
	for (met.at = 0; met.at < 2 * BASE_RTT; met.at += BASE_RTT / 4) {
		assert_int_equal(comes_met(&r, packet(MRC_MPR_UNIT, MRC_ONLY), met), MRC_BEYOND);
		mrc_rsp_trimmed(&r, psn(MRC_MPR_UNIT), false, &met, met.at);
	}
	for (int n = 0; n < 2; n++)
		assert_int_equal(said(&r, MRC_KIND_NACK).nack.reason, MRC_NACK_PSN_OOR);
	silent(&r);
	assert_int_equal(r.beyond, 16);
	assert_int_equal(comes(&r, packet(MRC_MPR_UNIT - 1, MRC_ONLY)), MRC_NEW);
	end(&r);
}

static void probes_and_agreements(void **state)
{
	struct mrc_rsp_config config = plain;
	struct mrc_rsp r = responder(&plain);
	struct mrc_met met = {.ev = 90, .ecn = true, .ts = 100, .at = 1000};
	struct mrc_pkt pkt;

	(void)state;
	assert_int_equal(mrc_rsp_set_mpr(&r, 1), -EINVAL); /* not agreed */
	mrc_rsp_probe(&r, &(struct mrc_probe){.id = 0x4242, .dqpn = 1}, &met);
	pkt = said(&r, MRC_KIND_SACK);
	assert_true(pkt.sack.probe);
	assert_int_equal(pkt.sack.probe_id, 0x4242);
	assert_int_equal(pkt.sack.entropy, 90);
	assert_int_equal(pkt.sack.mark, MRC_SKIP_ONCE);
	assert_int_equal(pkt.sack.ts, 100);
	end(&r);

	config.service_time = config.dynamic_mpr = true;
	config.mpr_units = 4;
	r = responder(&config);
	assert_int_equal(mrc_rsp_set_mpr(&r, 0), -EINVAL);
	assert_int_equal(mrc_rsp_set_mpr(&r, 5), -EINVAL);
	assert_int_equal(mrc_rsp_set_mpr(&r, 2), 0);
	mrc_rsp_probe(&r, &(struct mrc_probe){.id = 1}, &met);
	assert_true(mrc_rsp_tx(&r, 1000 + 10 * MRC_TS_NS, &pkt));
	assert_int_equal(pkt.sack.ts, 110);
	assert_int_equal(pkt.sack.mpr, 2);
	/* What was sent under the larger window is taken. */
	assert_int_equal(comes(&r, packet(4 * MRC_MPR_UNIT - 1, MRC_ONLY)), MRC_NEW);
	mrc_rsp_trimmed(&r, psn(0), false, &met, 0);
	assert_true(mrc_rsp_tx(&r, 1000 + 3 * MRC_TS_NS, &pkt));
	assert_int_equal(pkt.nack.ts, 103);
	end(&r);
}

/* Random messages in a window that slides over the wrap, in random order with duplicates, against
 * what was sent. */
static void at_random(void **state)
{
	enum { N = 40000, SPAN = MRC_MPR_UNIT };
	struct mrc_rsp r = responder(&plain);
	struct mrc_data *d = test_calloc(N + SPAN, sizeof(*d));
	uint8_t *came = test_calloc(N + SPAN, 1);
	uint32_t low = 0, next_imm = 0, imms = 0, messages = 0, done = 0;
	uint64_t random = 11;
	bool inside = false;

	(void)state;
	for (int n = 0; n < N; n++) {
		const bool last = n == N - 1 || test_random(&random) % 3 == 0;

		d[n] = packet(
			n, (enum mrc_place)((inside ? 0 : MRC_FIRST) | (last ? MRC_LAST : 0)));
		inside = !last;
		messages += last;
		/* At most four immediates in a window. */
		if (last && n % (SPAN / 3) == 0)
			d[n] = with_imm(n, d[n].place, imms++, 5);
	}
	while (low < N) {
		const uint32_t at =
			low + (test_random(&random) % 2 ? 0 : test_random(&random) % SPAN);
		struct mrc_wimm wimm;
		struct mrc_pkt pkt;
		enum mrc_step step;

		if (at >= N)
			continue;
		assert_int_equal(comes(&r, d[at]), came[at] ? MRC_REPEATED : MRC_NEW);
		came[at] = 1;
		while (low < N && came[low])
			done += d[low++].place & MRC_LAST ? 1 : 0;
		while ((step = mrc_rsp_step(&r, &wimm)) == MRC_STEP_WIMM)
			assert_int_equal(wimm.imm, next_imm++);
		assert_int_equal(step, MRC_STEP_NONE);
		assert_int_equal(r.walked, r.rcv.cack);
		assert_int_equal(r.msn, done);
		while (mrc_rsp_tx(&r, 0, &pkt)) {
			if (pkt.kind == MRC_KIND_ACK)
				assert_true(psn_le(pkt.ack.psn, psn((int)low - 1)));
		}
	}
	assert_int_equal(next_imm, imms);
	assert_int_equal(done, messages);
	assert_int_equal(r.n_wimm, 0);
	test_free(came);
	test_free(d);
	end(&r);
}

int run_rsp_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused),
		cmocka_unit_test(messages),
		cmocka_unit_test(any_order),
		cmocka_unit_test(broken_sequence),
		cmocka_unit_test(lengths),
		cmocka_unit_test(refusals),
		cmocka_unit_test(immediates),
		cmocka_unit_test(triggers),
		cmocka_unit_test(duplicates),
		cmocka_unit_test(guard),
		cmocka_unit_test(merged),
		cmocka_unit_test(trimmed),
		cmocka_unit_test(out_of_window),
		cmocka_unit_test(probes_and_agreements),
		cmocka_unit_test(at_random),
	};

	return cmocka_run_group_tests_name("rsp", tests, NULL, NULL);
}
