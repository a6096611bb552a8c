/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that lie: frames made by hand. Each is refused by its name, counted once, told to the peer
 * with the codes of the RFCs; nothing is written but where it was allowed, and what comes after is
 * not looked at. */
#include "lib/rnic/transport.h"
#include "tests/unit/iwarp/end.h"

enum { ALLOWED = 256, ALLOWED_END = 512 }; /* what receives and the region of the test name */

static struct end end;
static struct rnic_mr *mr, *foreign, *read_only;
static uint8_t sent[MPA_MAX_FPDU];

static void open_end(int access)
{
	const struct iwarp_attach attach = {.mulpdu = 1000, .ird = 2, .ord = 2};
	uint8_t *at;

	end_open(&end, 0);
	at = end.buf + ALLOWED;
	assert_int_equal(
		rnic_mr_reg(end.pd, at, 256, (uintptr_t)at,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
			&mr),
		0);
	assert_int_equal(rnic_mr_reg(end.other, at, 256, (uintptr_t)at, END_ALL, &foreign), 0);
	assert_int_equal(
		rnic_mr_reg(end.pd, at, 256, (uintptr_t)at, IBV_ACCESS_LOCAL_WRITE, &read_only), 0);
	end_qp(&end, access);
	end_attach(&end, &attach);
}

static size_t frame(uint8_t *out, const struct ddp_segment *s, const void *payload, size_t len)
{
	size_t head = ddp_build(out + MPA_LEN_LEN, s);

	if (len > 0)
		memcpy(out + MPA_LEN_LEN + head, payload, len);
	return mpa_fpdu_seal(out, head + len);
}

static void put(const struct ddp_segment *s, const void *payload, size_t len)
{
	uint8_t out[2048];

	iwarp_rx(end.qp, out, frame(out, s, payload, len));
}

/* It has ended for this, once; the Terminate says so, and is the last word. */
static void check_fault(enum iwarp_fault fault)
{
	const uint8_t write[64] = {1};
	struct rdmap_terminate t;
	struct ddp_segment s;
	const uint8_t *ulpdu;
	const uint64_t ignored = end_count(&end, "ignored_bytes");
	size_t len, all;

	assert_int_equal(iwarp_fault(end.qp), fault);
	for (unsigned f = IWARP_OK + 1; f < IWARP_N_FAULTS; f++)
		assert_int_equal(
			end_count(&end, iwarp_fault_name((enum iwarp_fault)f)), f == fault);
	assert_int_equal(end.n_event, 1);
	all = iwarp_tx(end.qp, sent, sizeof(sent));
	assert_int_equal(mpa_fpdu_peek(sent, all), all);
	assert_true(mpa_fpdu_open(sent, &ulpdu, &len));
	assert_int_equal(ddp_parse(ulpdu, len, &s), IWARP_OK);
	assert_int_equal(s.opcode, RDMAP_TERMINATE);
	assert_int_equal(s.msn, 1);
	assert_int_equal(rdmap_terminate_parse(ulpdu + s.header_len, len - s.header_len, &t), 0);
	assert_int_equal(t.fault, fault);
	assert_int_equal(iwarp_tx(end.qp, sent, sizeof(sent)), 0);
	assert_true(iwarp_over(end.qp));
	/* Right in itself, and too late. */
	put(&(struct ddp_segment){.tagged = true,
		    .last = true,
		    .opcode = RDMAP_WRITE,
		    .stag = rnic_mr_rkey(mr),
		    .to = (uintptr_t)end.buf + ALLOWED},
		write, sizeof(write));
	assert_int_equal(
		end_count(&end, "ignored_bytes"), ignored + mpa_fpdu_len(DDP_TAGGED_LEN + 64));
	end_untouched(&end, 0, 0);
	end_close(&end);
}

static void test_writes(void **state)
{
	const uint8_t bytes[64] = {1, 2, 3};

	(void)state;
	for (unsigned i = 0;; i++) {
		struct ddp_segment s = {.tagged = true, .last = true, .opcode = RDMAP_WRITE};
		enum iwarp_fault fault;

		open_end(i == 8 ? IBV_ACCESS_REMOTE_READ : END_ALL);
		s.stag = rnic_mr_rkey(mr);
		s.to = (uintptr_t)end.buf + ALLOWED;
		switch (i) {
		case 0:
			s.stag ^= 0x01000000;
			fault = IWARP_FAULT_TAGGED_STAG;
			break;
		case 1:
			s.stag = 0;
			fault = IWARP_FAULT_TAGGED_STAG;
			break;
		case 2:
			s.stag = rnic_mr_rkey(foreign);
			fault = IWARP_FAULT_TAGGED_STREAM;
			break;
		case 3:
			s.to += 256 - 63;
			fault = IWARP_FAULT_TAGGED_BOUNDS;
			break;
		case 4:
			s.to -= 1;
			fault = IWARP_FAULT_TAGGED_BOUNDS;
			break;
		case 5:
			s.to = UINT64_MAX - 62;
			fault = IWARP_FAULT_TAGGED_WRAP;
			break;
		case 6:
			s.stag = rnic_mr_rkey(read_only);
			fault = IWARP_FAULT_ACCESS;
			break;
		case 7: /* an answer to a READ that nobody asked for */
			s.opcode = RDMAP_READ_RESPONSE;
			fault = IWARP_FAULT_TAGGED_STAG;
			break;
		case 8:
			fault = IWARP_FAULT_ACCESS;
			break;
		default:
			end_close(&end);
			return;
		}
		put(&s, bytes, sizeof(bytes));
		check_fault(fault);
	}
}

static void test_untagged(void **state)
{
	static const struct {
		struct ddp_segment s;
		size_t len;
		enum iwarp_fault fault;
	} cases[] = {
		{{.last = true, .opcode = RDMAP_SEND, .msn = 2}, 8, IWARP_FAULT_MSN},
		{{.last = true, .opcode = RDMAP_SEND, .msn = 0}, 8, IWARP_FAULT_MSN},
		{{.last = true, .opcode = RDMAP_SEND, .msn = 1, .mo = 1}, 8, IWARP_FAULT_MO},
		{{.last = true, .opcode = RDMAP_SEND, .msn = 1, .mo = UINT32_MAX}, 8,
			IWARP_FAULT_MO},
		{{.last = true, .opcode = RDMAP_SEND, .msn = 1}, 8, IWARP_FAULT_NO_BUFFER},
		{{.last = true, .opcode = RDMAP_SEND, .msn = 1, .qn = 7}, 8, IWARP_FAULT_QN},
		{{.last = true, .opcode = RDMAP_SEND, .msn = 1, .qn = 1}, 8, IWARP_FAULT_OPCODE},
		{{.last = true, .opcode = RDMAP_IMM, .msn = 1}, 8, IWARP_FAULT_NO_BUFFER},
		{{.last = true, .opcode = RDMAP_IMM, .msn = 1}, 9, IWARP_FAULT_TOO_LONG},
		{{.last = true, .opcode = RDMAP_IMM, .msn = 1}, 7, IWARP_FAULT_MALFORMED},
		{{.opcode = RDMAP_IMM, .msn = 1}, 8, IWARP_FAULT_MALFORMED},
		{{.last = true, .opcode = RDMAP_READ_REQUEST, .qn = 1, .msn = 1}, 27,
			IWARP_FAULT_MALFORMED},
		{{.last = true, .opcode = RDMAP_READ_REQUEST, .qn = 1, .msn = 1}, 29,
			IWARP_FAULT_TOO_LONG},
		{{.last = true, .opcode = RDMAP_READ_REQUEST, .qn = 1, .msn = 1, .mo = 4}, 28,
			IWARP_FAULT_MO},
		{{.last = true, .opcode = RDMAP_READ_REQUEST, .qn = 1, .msn = 3}, 28,
			IWARP_FAULT_MSN},
		{{.last = true, .opcode = RDMAP_TERMINATE, .qn = 2, .msn = 1}, 3,
			IWARP_FAULT_MALFORMED},
		{{.last = true, .opcode = RDMAP_TERMINATE, .qn = 2, .msn = 2}, 4, IWARP_FAULT_MSN},
		{{.last = true, .opcode = 10, .msn = 1}, 8, IWARP_FAULT_OPCODE},
	};
	const uint8_t bytes[64] = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		open_end(END_ALL);
		put(&cases[i].s, bytes, cases[i].len);
		check_fault(cases[i].fault);
	}
}

/* A message that does not fit, one whose later part lies: the receive says so. */
static void test_sends(void **state)
{
	const uint8_t bytes[64] = {0};
	struct ddp_segment s = {.last = true, .opcode = RDMAP_SEND, .msn = 1};
	struct ibv_wc wc;

	(void)state;
	open_end(END_ALL);
	assert_int_equal(end_recv(&end, 1, ALLOWED, 63), 0);
	put(&s, bytes, 64);
	wc = end_wc(end.rcq);
	assert_int_equal(wc.status, IBV_WC_LOC_LEN_ERR);
	check_fault(IWARP_FAULT_TOO_LONG);

	open_end(END_ALL); /* the program's own mistake */
	assert_int_equal(rnic_post_recv(end.qp,
				 &(struct ibv_recv_wr){.wr_id = 1,
					 .num_sge = 1,
					 .sg_list = &(struct ibv_sge){(uintptr_t)end.buf, 64, 77}}),
		0);
	put(&s, bytes, 64);
	assert_int_equal(end_wc(end.rcq).status, IBV_WC_LOC_PROT_ERR);
	check_fault(IWARP_FAULT_BUFFER);

	/* Two segments: the second one from elsewhere, of another kind, of another message. */
	for (unsigned i = 0; i < 4; i++) {
		open_end(END_ALL);
		assert_int_equal(end_recv(&end, 1, ALLOWED, 128), 0);
		memset(end.buf + ALLOWED, 0, 64);
		s = (struct ddp_segment){.opcode = RDMAP_SEND, .msn = 1};
		put(&s, bytes, 64);
		memset(end.buf + ALLOWED, END_FILL, 64);
		s.mo = i == 0 ? 63 : 64;
		s.opcode = i == 1 ? RDMAP_SEND_SE : i == 3 ? RDMAP_IMM : RDMAP_SEND;
		s.msn = i == 2 ? 2 : 1;
		s.last = true;
		if (i == 3)
			s.mo = 0;
		put(&s, bytes, i == 3 ? 8 : 64);
		assert_int_equal(end_wc(end.rcq).status, IBV_WC_WR_FLUSH_ERR);
		check_fault(i == 0   ? IWARP_FAULT_MO
			    : i == 2 ? IWARP_FAULT_MSN
				     : IWARP_FAULT_OPCODE);
	}

	/* A key that the peer has no business to invalidate: a region's. */
	open_end(END_ALL);
	assert_int_equal(end_recv(&end, 1, ALLOWED, 128), 0);
	s = (struct ddp_segment){
		.last = true, .opcode = RDMAP_SEND_INV, .msn = 1, .stag = rnic_mr_rkey(mr)};
	put(&s, NULL, 0);
	assert_int_equal(end_wc(end.rcq).status, IBV_WC_WR_FLUSH_ERR);
	check_fault(IWARP_FAULT_INVALIDATE);
}

/* Immediate Data that no WRITE is right in front of counts no bytes of an older one. */
static void test_lone_immediate(void **state)
{
	static const uint32_t want[] = {64, 0, 0};
	uint8_t bytes[64] = {0}, imm[RDMAP_IMM_LEN];
	struct ddp_segment write = {.tagged = true, .last = true, .opcode = RDMAP_WRITE};
	struct ddp_segment s = {.last = true, .msn = 1};
	struct ibv_wc wc;

	(void)state;
	open_end(END_ALL);
	write.stag = rnic_mr_rkey(mr);
	write.to = (uintptr_t)end.buf + ALLOWED;
	rdmap_imm_build(imm, 5);
	for (unsigned k = 0; k < 4; k++)
		assert_int_equal(end_recv(&end, k, ALLOWED, 8), 0);
	for (unsigned k = 0; k < 3; k++) {
		if (k != 1)
			put(&write, bytes, sizeof(bytes));
		if (k == 2) {
			s.opcode = RDMAP_SEND;
			put(&s, bytes, 8);
			s.msn++;
			end_wc(end.rcq);
		}
		s.opcode = RDMAP_IMM;
		put(&s, imm, sizeof(imm));
		s.msn++;
		wc = end_wc(end.rcq);
		assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
		assert_int_equal(wc.byte_len, want[k]);
	}
	assert_int_equal(iwarp_fault(end.qp), IWARP_OK);
	end_close(&end);
}

/* A WRITE of as many bytes as a length of 32 bits can say is told as long as it is; one that has a
 * byte more ends there. Each of its segments goes to the same memory, which has those bytes. */
static void test_long_write(void **state)
{
	enum { PIECE = MPA_MAX_ULPDU - DDP_TAGGED_LEN };
	static uint8_t bytes[PIECE], middle[MPA_MAX_FPDU], last[MPA_MAX_FPDU];
	uint8_t imm[RDMAP_IMM_LEN];

	(void)state;
	memset(bytes, END_FILL, sizeof(bytes));
	rdmap_imm_build(imm, 5);
	for (unsigned more = 0; more < 2; more++) {
		struct ddp_segment s = {.tagged = true, .opcode = RDMAP_WRITE};
		size_t len;

		open_end(END_ALL);
		assert_int_equal(end_recv(&end, 1, ALLOWED, 8), 0);
		s.stag = rnic_mr_rkey(end.mr);
		s.to = (uintptr_t)end.buf;
		len = frame(middle, &s, bytes, PIECE);
		for (uint32_t k = 0; k < UINT32_MAX / PIECE; k++)
			iwarp_rx(end.qp, middle, len);
		assert_int_equal(iwarp_fault(end.qp), IWARP_OK);
		s.last = true;
		len = frame(last, &s, bytes, UINT32_MAX % PIECE + more);
		iwarp_rx(end.qp, last, len);
		if (more) {
			assert_int_equal(end_wc(end.rcq).status, IBV_WC_WR_FLUSH_ERR);
			check_fault(IWARP_FAULT_MALFORMED);
			continue;
		}
		put(&(struct ddp_segment){.last = true, .opcode = RDMAP_IMM, .msn = 1}, imm,
			sizeof(imm));
		assert_int_equal(end_wc(end.rcq).byte_len, UINT32_MAX);
		assert_int_equal(iwarp_fault(end.qp), IWARP_OK);
		end_close(&end);
	}
}

static void ask(uint32_t msn, uint32_t stag, uint64_t to, uint32_t len)
{
	const struct rdmap_read read = {
		.sink_stag = 5, .source_stag = stag, .source_to = to, .len = len};
	uint8_t body[RDMAP_READ_LEN];

	rdmap_read_build(body, &read);
	put(
		&(struct ddp_segment){
			.last = true, .opcode = RDMAP_READ_REQUEST, .qn = DDP_QN_READ, .msn = msn},
		body, sizeof(body));
}

static void test_reads(void **state)
{
	uint64_t at;

	(void)state;
	for (unsigned i = 0; i < 7; i++) {
		open_end(i == 6 ? IBV_ACCESS_REMOTE_WRITE : END_ALL);
		at = (uintptr_t)end.buf + ALLOWED;
		switch (i) {
		case 0:
			ask(1, rnic_mr_rkey(mr) ^ 0x01000000, at, 8);
			check_fault(IWARP_FAULT_STAG);
			break;
		case 1:
			ask(1, rnic_mr_rkey(mr), at + 249, 8);
			check_fault(IWARP_FAULT_BOUNDS);
			break;
		case 2:
			ask(1, rnic_mr_rkey(mr), at, UINT32_MAX);
			check_fault(IWARP_FAULT_BOUNDS);
			break;
		case 3:
			ask(1, rnic_mr_rkey(mr), UINT64_MAX - 6, 8);
			check_fault(IWARP_FAULT_WRAP);
			break;
		case 4:
			ask(1, rnic_mr_rkey(foreign), at, 8);
			check_fault(IWARP_FAULT_STREAM);
			break;
		case 5: /* more than agreed */
			for (uint32_t msn = 1; msn <= 3; msn++)
				ask(msn, rnic_mr_rkey(mr), at, 8);
			check_fault(IWARP_FAULT_NO_BUFFER);
			break;
		case 6:
			ask(1, rnic_mr_rkey(mr), at, 8);
			check_fault(IWARP_FAULT_ACCESS);
			break;
		}
	}
}

/* Memory that goes while it is read: the rest is not sent. */
static void test_read_gone(void **state)
{
	struct rnic_mr *going;

	(void)state;
	open_end(END_ALL);
	assert_int_equal(
		rnic_mr_reg(end.pd, end.buf, 4096, (uintptr_t)end.buf, END_ALL, &going), 0);
	ask(1, rnic_mr_rkey(going), (uintptr_t)end.buf, 4096);
	assert_int_equal(iwarp_tx(end.qp, sent, 1100), mpa_fpdu_len(1000));
	assert_int_equal(rnic_mr_dereg(going), 0);
	assert_int_equal(iwarp_fault(end.qp), IWARP_OK);
	assert_true(iwarp_tx(end.qp, sent, 1100) > 0); /* the Terminate */
	assert_int_equal(iwarp_fault(end.qp), IWARP_FAULT_STAG);
	assert_true(iwarp_over(end.qp));
	end_close(&end);
}

/* Answers to a READ of 64 bytes that are not what was asked for. */
static void test_responses(void **state)
{
	const uint8_t bytes[64] = {0};

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		struct ddp_segment s = {
			.tagged = true, .last = true, .opcode = RDMAP_READ_RESPONSE};
		enum iwarp_fault fault = IWARP_FAULT_TAGGED_BOUNDS;
		struct rdmap_read read;
		const uint8_t *ulpdu;
		size_t len = 64, at;

		open_end(END_ALL);
		assert_int_equal(end_post(&end, IBV_WR_RDMA_READ, 1, ALLOWED, 64, &end, 0, 0), 0);
		end_rnic_tx(&end, 0);
		assert_true(iwarp_tx(end.qp, sent, sizeof(sent)) > 0);
		assert_true(mpa_fpdu_open(sent, &ulpdu, &at));
		rdmap_read_parse(ulpdu + DDP_UNTAGGED_LEN, &read);
		s.stag = read.sink_stag;
		s.to = read.sink_to;
		switch (i) {
		case 0:
			s.stag++;
			fault = IWARP_FAULT_TAGGED_STAG;
			break;
		case 1: /* no key of the program's is good for that */
			s.stag = rnic_mr_rkey(mr);
			fault = IWARP_FAULT_TAGGED_STAG;
			break;
		case 2:
			s.to++;
			break;
		case 3:
			s.to = (uintptr_t)end.buf + ALLOWED;
			break;
		case 4: /* ends early */
			len = 63;
			fault = IWARP_FAULT_MALFORMED;
			break;
		case 5: /* does not end */
			s.last = false;
			fault = IWARP_FAULT_MALFORMED;
			break;
		}
		put(&s, bytes, len);
		assert_int_equal(end_wc(end.scq).status, IBV_WC_WR_FLUSH_ERR);
		check_fault(fault);
	}
	/* Longer than asked for. */
	open_end(END_ALL);
	assert_int_equal(end_post(&end, IBV_WR_RDMA_READ, 1, ALLOWED, 8, &end, 0, 0), 0);
	end_rnic_tx(&end, 0);
	assert_true(iwarp_tx(end.qp, sent, sizeof(sent)) > 0);
	put(&(struct ddp_segment){.tagged = true,
		    .last = true,
		    .opcode = RDMAP_READ_RESPONSE,
		    .stag = rnic_qp_num(end.qp) << 8},
		bytes, 9);
	check_fault(IWARP_FAULT_TAGGED_BOUNDS);
}

/* Any bit of a frame wrong, its length included: the CRC, or a frame that never comes to its end.
 */
static void test_flipped_bits(void **state)
{
	const uint8_t bytes[16] = {7};
	uint8_t out[64];
	size_t len = 64;

	(void)state;
	for (size_t bit = 0; bit < len * 8; bit++) {
		struct ddp_segment s = {.tagged = true, .last = true, .opcode = RDMAP_WRITE};

		open_end(END_ALL);
		s.stag = rnic_mr_rkey(mr);
		s.to = (uintptr_t)end.buf + ALLOWED;
		len = frame(out, &s, bytes, sizeof(bytes));
		out[bit / 8] ^= (uint8_t)(1 << bit % 8);
		iwarp_rx(end.qp, out, len);
		if (mpa_fpdu_peek(out, len) <= len) {
			check_fault(IWARP_FAULT_CRC);
			continue;
		}
		assert_int_equal(iwarp_fault(end.qp), IWARP_OK);
		iwarp_lost(end.qp, 0);
		assert_int_equal(iwarp_fault(end.qp), IWARP_FAULT_LOST);
		end_untouched(&end, 0, 0);
		end_close(&end);
	}
}

/* Bytes of the last Terminate message, without headers of its own. */
static size_t terminate_len(void)
{
	struct ddp_segment s;
	const uint8_t *ulpdu;
	size_t len;

	assert_true(mpa_fpdu_open(sent, &ulpdu, &len));
	assert_int_equal(ddp_parse(ulpdu, len, &s), IWARP_OK);
	return len - s.header_len;
}

/* Segments that end inside their headers, and versions of another time, in frames that are right.
 */
static void test_short(void **state)
{
	(void)state;
	for (size_t n = 0; n < DDP_UNTAGGED_LEN; n++) {
		uint8_t out[64] = {0};

		open_end(END_ALL);
		ddp_build(out + MPA_LEN_LEN,
			&(struct ddp_segment){.last = true, .opcode = RDMAP_SEND, .msn = 1});
		iwarp_rx(end.qp, out, mpa_fpdu_seal(out, n));
		check_fault(IWARP_FAULT_SHORT);
		assert_int_equal(terminate_len(), 4);
	}
	for (unsigned i = 0; i < 3; i++) {
		struct ddp_segment s = {.tagged = i == 1, .last = true, .opcode = RDMAP_SEND};
		uint8_t out[64] = {0};
		size_t len;

		open_end(END_ALL);
		len = ddp_build(out + MPA_LEN_LEN, &s);
		if (i < 2)
			out[MPA_LEN_LEN] ^= 2; /* DDP's */
		else
			out[MPA_LEN_LEN + 1] ^= 0xc0; /* RDMAP's */
		iwarp_rx(end.qp, out, mpa_fpdu_seal(out, len));
		check_fault(i == 0   ? IWARP_FAULT_UNTAGGED_VERSION
			    : i == 1 ? IWARP_FAULT_TAGGED_VERSION
				     : IWARP_FAULT_VERSION);
		/* How long a header of another DDP is nobody can say: none is told. RDMAP's version
		 * stands in one that is known: length of the segment, and the header. */
		assert_int_equal(terminate_len(), i < 2 ? 4 : 4 + 2 + DDP_UNTAGGED_LEN);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_writes),
		cmocka_unit_test(test_untagged),
		cmocka_unit_test(test_sends),
		cmocka_unit_test(test_lone_immediate),
		cmocka_unit_test(test_long_write),
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_read_gone),
		cmocka_unit_test(test_responses),
		cmocka_unit_test(test_flipped_bits),
		cmocka_unit_test(test_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
