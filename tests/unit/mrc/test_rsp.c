/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder: messages in any order of arrival, and what ends a connection. */
#include <errno.h>
#include <stdlib.h>

#include "tests/unit/mrc/rsp_test.h"

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
		cmocka_unit_test(at_random),
	};

	return cmocka_run_group_tests_name("rsp", tests, NULL, NULL);
}
