/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder's words: which goes to the peer when, which are merged, and how many there may be.
 */
#include <errno.h>
#include <stdlib.h>

#include "tests/unit/mrc/rsp_test.h"

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

int run_rsp_words_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(triggers),
		cmocka_unit_test(duplicates),
		cmocka_unit_test(guard),
		cmocka_unit_test(merged),
		cmocka_unit_test(trimmed),
		cmocka_unit_test(out_of_window),
		cmocka_unit_test(probes_and_agreements),
	};

	return cmocka_run_group_tests_name("rsp words", tests, NULL, NULL);
}
