/* SPDX-License-Identifier: BSD-3-Clause */
/* A responder under test, and what comes to it and from it. */
#ifndef TESTS_RSP_TEST_H
#define TESTS_RSP_TEST_H

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

static inline struct mrc_rsp responder(const struct mrc_rsp_config *config)
{
	struct mrc_rsp r;

	assert_int_equal(mrc_rsp_init(&r, config, test_malloc(mrc_rsp_bytes(config))), 0);
	return r;
}

static inline void end(struct mrc_rsp *r)
{
	test_free(r->rcv.bits);
}

/* PSNs of tests count from 0. */
static inline uint32_t psn(int n)
{
	return psn_add(FIRST_PSN, n);
}

static inline struct mrc_data packet(int n, enum mrc_place place)
{
	return (struct mrc_data){.place = (uint8_t)place, .psn = psn(n), .pay_len = PMTU};
}

static inline struct mrc_data with_imm(int n, enum mrc_place place, uint32_t imm, uint16_t len)
{
	struct mrc_data d = packet(n, place);

	d.has_imm = true;
	d.imm = imm;
	d.pay_len = len;
	return d;
}

static inline enum mrc_arrival comes_met(struct mrc_rsp *r, struct mrc_data d, struct mrc_met met)
{
	const enum mrc_arrival looked = mrc_rsp_look(r, &d);

	met.bytes = met.bytes ? met.bytes : d.pay_len + 60u;
	assert_int_equal(mrc_rsp_data(r, &d, &met, met.at), looked);
	return looked;
}

static inline enum mrc_arrival comes(struct mrc_rsp *r, struct mrc_data d)
{
	return comes_met(r, d, (struct mrc_met){.ev = EV});
}

/* Takes steps; the immediates' values, as decimal digits in order. */
static inline unsigned steps(struct mrc_rsp *r, enum mrc_step ends)
{
	struct mrc_wimm wimm;
	unsigned digits = 0;
	enum mrc_step step;

	while ((step = mrc_rsp_step(r, &wimm)) == MRC_STEP_WIMM)
		digits = digits * 10 + wimm.imm;
	assert_int_equal(step, ends);
	return digits;
}

static inline struct mrc_pkt said(struct mrc_rsp *r, enum mrc_kind kind)
{
	uint8_t out[MRC_MAX_HEADERS];
	struct mrc_pkt pkt;

	assert_true(mrc_rsp_pending(r));
	assert_true(mrc_rsp_tx(r, 0, &pkt));
	assert_int_equal(pkt.kind, kind);
	assert_true(mrc_codec_ocp_r1.encode(&pkt, out, sizeof(out)) > 0);
	return pkt;
}

static inline void silent(struct mrc_rsp *r)
{
	struct mrc_pkt pkt;

	assert_false(mrc_rsp_pending(r));
	assert_false(mrc_rsp_tx(r, 0, &pkt));
}

static inline void acked(struct mrc_rsp *r, int upto, uint32_t msn)
{
	const struct mrc_pkt pkt = said(r, MRC_KIND_ACK);

	assert_int_equal(pkt.ack.psn, psn(upto));
	assert_int_equal(pkt.ack.msn, msn);
	assert_int_equal(pkt.ack.syndrome, MRC_SYNDROME_ACK);
	assert_int_equal(pkt.ack.dqpn, 0x123456);
}

static inline void naked(struct mrc_rsp *r, int at, uint32_t msn, uint8_t syndrome)
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

#endif
