/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management datagrams: what two Linux hosts said, and every message there and back. */
#include <errno.h>
#include <stdio.h>

#include "lib/wire/cm.h"
#include "tests/unit/wire/pcap_file.h"
#include "tests/unit/wire/wire_test.h"

static const struct wire_ip host_a = {{[10] = 0xff, 0xff, 10, 77, 0, 1}};
static const struct wire_ip host_b = {{[10] = 0xff, 0xff, 10, 77, 0, 2}};

/* The message in the nth frame of cm-rping, which must come out again as it was. */
static struct cm_msg golden(size_t n)
{
	struct pcap_file file;
	uint8_t mad[CM_MAD_LEN];
	struct wire_pkt pkt;
	struct cm_msg msg;
	char path[1024];

	snprintf(path, sizeof(path), "%s/cm-rping.pcap", pcap_dir);
	assert_int_equal(pcap_file_read(path, &file), 0);
	assert_int_equal(parse_exact(file.packets[n].data, file.packets[n].len, &pkt), WIRE_OK);
	assert_int_equal(pkt.dqpn, CM_QPN);
	assert_int_equal(pkt.sqpn, CM_QPN);
	assert_true(pkt.qkey == CM_QKEY);
	assert_int_equal(pkt.pay_len, CM_MAD_LEN);
	assert_int_equal(cm_parse(file.packets[n].data + pkt.pay_off, pkt.pay_len, &msg), 0);
	assert_int_equal(cm_build(&msg, mad), 0);
	assert_memory_equal(mad, file.packets[n].data + pkt.pay_off, CM_MAD_LEN);
	pcap_file_free(&file);
	return msg;
}

static void linux_req(void **state)
{
	struct cm_msg msg = golden(0);
	struct ipcm ipcm;

	(void)state;
	assert_int_equal(msg.attr, CM_REQ);
	assert_true(msg.tid == 0x25da27ff2 && msg.local_id == 0xf27fa25d && msg.remote_id == 0);
	assert_true(msg.req.service_id == ipcm_service_id(IPCM_TCP, 7174));
	assert_int_equal(msg.req.qpn, 0x23);
	assert_int_equal(msg.req.psn, 0x7bac4d);
	assert_int_equal(msg.req.responder_resources, 1);
	assert_int_equal(msg.req.initiator_depth, 1);
	assert_int_equal(msg.req.remote_timeout, 20);
	assert_int_equal(msg.req.local_timeout, 20);
	assert_int_equal(msg.req.transport, CM_RC);
	assert_int_equal(msg.req.retry_count, 7);
	assert_int_equal(msg.req.rnr_retry, 7);
	assert_int_equal(msg.req.max_retries, 15);
	assert_int_equal(msg.req.mtu, 5);
	assert_int_equal(msg.req.pkey, 0xffff);
	assert_int_equal(msg.req.flow_label, 0x73ca9);
	assert_int_equal(msg.req.rate, 0);
	assert_int_equal(msg.req.hop_limit, 64);
	assert_int_equal(msg.req.ack_timeout, 19);
	assert_false(msg.req.srq || msg.req.alternate || msg.req.subnet_local);
	assert_true(wire_ip_eq(&msg.req.sgid, &host_a) && wire_ip_eq(&msg.req.dgid, &host_b));
	assert_int_equal(ipcm_parse(msg.private_data, CM_REQ_PRIVATE, &ipcm), 0);
	assert_true(wire_ip_eq(&ipcm.src, &host_a) && wire_ip_eq(&ipcm.dst, &host_b));
	assert_int_equal(ipcm.sport, 0xbefd);
}

static void linux_answers(void **state)
{
	struct cm_msg rep = golden(1), rtu = golden(2), dreq = golden(27), drep = golden(28);

	(void)state;
	assert_int_equal(rep.attr, CM_REP);
	assert_true(rep.tid == 0x25da27ff2 && rep.local_id == 0x19435623 &&
		    rep.remote_id == 0xf27fa25d);
	assert_int_equal(rep.rep.qpn, 0x23);
	assert_int_equal(rep.rep.psn, 0x5b4c9e);
	assert_int_equal(rep.rep.responder_resources, 1);
	assert_int_equal(rep.rep.target_ack_delay, 15);
	assert_int_equal(rep.rep.rnr_retry, 7);
	assert_int_equal(rtu.attr, CM_RTU);
	assert_true(
		rtu.tid == rep.tid && rtu.local_id == 0xf27fa25d && rtu.remote_id == 0x19435623);
	assert_int_equal(dreq.attr, CM_DREQ);
	assert_true(dreq.local_id == 0xf27fa25d && dreq.remote_id == 0x19435623);
	assert_int_equal(dreq.dreq_qpn, 0x23);
	assert_int_equal(drep.attr, CM_DREP);
	assert_true(drep.local_id == 0x19435623 && drep.remote_id == 0xf27fa25d);
}

/* Who says a PSN receives from it on: the client's first SEND has the server's, and the other way
 * round. */
static void linux_starting_psn(void **state)
{
	const uint32_t client = golden(0).req.psn, server = golden(1).rep.psn;
	struct pcap_file file;
	struct wire_pkt pkt;
	char path[1024];

	(void)state;
	snprintf(path, sizeof(path), "%s/cm-rping.pcap", pcap_dir);
	assert_int_equal(pcap_file_read(path, &file), 0);
	assert_int_equal(parse_exact(file.packets[3].data, file.packets[3].len, &pkt), WIRE_OK);
	assert_int_equal(pkt.psn, server);
	assert_int_equal(parse_exact(file.packets[5].data, file.packets[5].len, &pkt), WIRE_OK);
	assert_int_equal(pkt.psn, client);
	pcap_file_free(&file);
}

static struct cm_msg some_message(unsigned attr, uint64_t *rng)
{
	struct cm_msg msg = {.attr = (uint16_t)attr, .tid = test_random(rng)};

	msg.local_id = (uint32_t)test_random(rng);
	test_fill(rng, msg.private_data, cm_private_len(attr));
	if (attr != CM_REQ && attr != CM_SIDR_REQ && attr != CM_SIDR_REP)
		msg.remote_id = (uint32_t)test_random(rng);
	switch (attr) {
	case CM_REQ:
		msg.req = (struct cm_req){0x123456789abcdef0, {1, 2, 3, 4, 5, 6, 7, 8}, 0xdeadbeef,
			0xabcdef, 0xfedcba, 3, 4, 21, 22, CM_UC, true, false, 5, 6, 14, 3, 0x8001,
			host_a, host_b, 0xfffff, 0x3f, 0xb8, 9, 0xf, true, 31, false};
		break;
	case CM_REP:
		msg.rep = (struct cm_rep){0x1234567, 0xffffff, 1, 16, 15, 31, 2, false, true, 7,
			{8, 7, 6, 5, 4, 3, 2, 1}};
		break;
	case CM_REJ:
		msg.rej =
			(struct cm_rej){CM_ABOUT_REP, CM_REJ_CONSUMER, CM_REJ_INFO_MAX, {9, 8, 7}};
		break;
	case CM_MRA:
		msg.mra = (struct cm_mra){CM_ABOUT_OTHER, 24};
		break;
	case CM_DREQ:
		msg.dreq_qpn = 0x800001;
		break;
	case CM_SIDR_REQ:
		msg.sidr_req = (struct cm_sidr_req){0xffff, 0x0000000001110101};
		break;
	case CM_SIDR_REP:
		msg.sidr_rep = (struct cm_sidr_rep){CM_SIDR_REJECTED, 0x654321, 0x1234567, 77};
		break;
	}
	return msg;
}

static void there_and_back(void **state)
{
	static const unsigned attrs[] = {
#define X(sym, id, len) CM_##sym,
		CM_MESSAGES(X)
#undef X
	};
	uint64_t rng = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(attrs) / sizeof(*attrs); i++) {
		struct cm_msg msg = some_message(attrs[i], &rng), back;
		uint8_t mad[CM_MAD_LEN], again[CM_MAD_LEN];

		assert_int_equal(cm_build(&msg, mad), 0);
		assert_int_equal(cm_parse(mad, sizeof(mad), &back), 0);
		assert_int_equal(cm_build(&back, again), 0);
		assert_memory_equal(mad, again, sizeof(mad));
		assert_int_equal(back.attr, msg.attr);
		assert_true(back.tid == msg.tid && back.local_id == msg.local_id);
		assert_int_equal(back.remote_id, msg.remote_id);
		assert_memory_equal(back.private_data, msg.private_data, sizeof(msg.private_data));
		if (attrs[i] == CM_REQ) {
			assert_true(back.req.service_id == msg.req.service_id);
			assert_int_equal(back.req.qkey, msg.req.qkey);
			assert_int_equal(back.req.transport, CM_UC);
			assert_true(
				back.req.flow_control && !back.req.srq && back.req.subnet_local);
			assert_int_equal(back.req.sl, 0xf);
			assert_int_equal(back.req.flow_label, 0xfffff);
			assert_int_equal(back.req.rate, 0x3f);
		}
		if (attrs[i] == CM_REP)
			assert_true(back.rep.srq && back.rep.failover == 2);
		if (attrs[i] == CM_REJ)
			assert_memory_equal(&back.rej, &msg.rej, sizeof(msg.rej));
		if (attrs[i] == CM_SIDR_REP)
			assert_int_equal(back.sidr_rep.qkey, 0x1234567);
	}
}

static void refused(void **state)
{
	uint64_t rng = 2;
	struct cm_msg msg = some_message(CM_REJ, &rng), out;
	uint8_t mad[CM_MAD_LEN], bad[CM_MAD_LEN];

	(void)state;
	assert_int_equal(cm_build(&msg, mad), 0);
	for (size_t len = 0; len < CM_MAD_LEN; len++) {
		uint8_t *copy = malloc(len ? len : 1);

		memcpy(copy, mad, len);
		assert_int_equal(cm_parse(copy, len, &out), -EMSGSIZE);
		free(copy);
	}
	for (unsigned i = 0; i < 6; i++) { /* version, class, class version, method, status */
		memcpy(bad, mad, sizeof(bad));
		bad[i] ^= 0x10;
		assert_int_equal(cm_parse(bad, sizeof(bad), &out), -EPROTO);
	}
	memcpy(bad, mad, sizeof(bad));
	bad[17] = CM_LAP;
	assert_int_equal(cm_parse(bad, sizeof(bad), &out), -EOPNOTSUPP);
	bad[17] = 0x0f;
	assert_int_equal(cm_parse(bad, sizeof(bad), &out), -EINVAL);
	memcpy(bad, mad, sizeof(bad));
	bad[24 + 9] = (CM_REJ_INFO_MAX + 1) << 1;
	assert_int_equal(cm_parse(bad, sizeof(bad), &out), -EINVAL);
	msg.rej.info_len = CM_REJ_INFO_MAX + 1;
	assert_int_equal(cm_build(&msg, mad), -EINVAL);
	msg = some_message(CM_REQ, &rng);
	msg.req.flow_label = 0x100000;
	assert_int_equal(cm_build(&msg, mad), -EINVAL);
	msg = some_message(CM_DREQ, &rng);
	msg.dreq_qpn = 1 << 24;
	assert_int_equal(cm_build(&msg, mad), -EINVAL);
	msg.attr = CM_LAP;
	assert_int_equal(cm_build(&msg, mad), -EINVAL);
}

static void ip_header(void **state)
{
	const struct wire_ip six = wire_ip_link_local((const uint8_t[6]){2, 0, 0, 0, 0, 1});
	struct ipcm four = {host_a, host_b, 4711}, ip6 = {six, six, 1}, mixed = {six, host_a, 1},
		    out;
	uint8_t p[IPCM_HDR_LEN];

	(void)state;
	assert_int_equal(ipcm_build(&mixed, p), -EINVAL);
	assert_int_equal(ipcm_build(&ip6, p), 0);
	assert_int_equal(ipcm_parse(p, sizeof(p), &out), 0);
	assert_memory_equal(&out, &ip6, sizeof(out));
	p[1] = 0x40; /* only the last four bytes count then */
	assert_int_equal(ipcm_parse(p, sizeof(p), &out), 0);
	assert_true(wire_ip_is4(&out.src));
	assert_int_equal(ipcm_build(&four, p), 0);
	assert_int_equal(ipcm_parse(p, sizeof(p), &out), 0);
	assert_memory_equal(&out, &four, sizeof(out));
	assert_int_equal(ipcm_parse(p, sizeof(p) - 1, &out), -EMSGSIZE);
	p[1] = 0x50;
	assert_int_equal(ipcm_parse(p, sizeof(p), &out), -EPROTO);
	p[1] = 0x40;
	p[0] = 0x10;
	assert_int_equal(ipcm_parse(p, sizeof(p), &out), -EPROTO);
	p[0] = 0;
	p[1] = 0x60;
	memcpy(p + 4, host_a.b, 16);
	assert_int_equal(ipcm_parse(p, sizeof(p), &out), -EPROTO);
}

int run_cm_tests(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(linux_req),
		cmocka_unit_test(linux_answers),
		cmocka_unit_test(linux_starting_psn),
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(refused),
		cmocka_unit_test(ip_header),
	};

	return cmocka_run_group_tests_name("cm", tests, NULL, NULL);
}
