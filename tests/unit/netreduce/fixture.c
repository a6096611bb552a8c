/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/netreduce/fixture.h"

#include <stdlib.h>
#include <string.h>

enum { QPN = 0x11, REPLY = 0x222, SLOT = 4040, GEN = 3, PEER_QPN = 0xfc1234 };

static struct wire_ip host_ip(unsigned rank)
{
	return wire_ip_from4(0x0a000010 + rank);
}

static struct wire_ip switch_ip(unsigned i)
{
	return wire_ip_from4(0x0a00ff01 + i);
}

/* ---- rings ---- */

static void add_host(struct nf *f, unsigned rank)
{
	const unsigned i = f->spec.n_in++;

	f->ranks[i][0] = (uint16_t)rank;
	f->in[i] = (struct nr_in_spec){
		.host = true,
		.key = {host_ip(rank), host_ip(rank + 1), QPN + rank},
		.reply_qpn = REPLY + rank,
		.psn = nf_psn(f, rank, f->spec.first_msg, 0),
		.n_ranks = 1,
		.ranks = f->ranks[i],
	};
}

void nf_star(struct nf *f, unsigned n)
{
	memset(f, 0, sizeof(*f));
	f->spec = (struct nr_spec){
		.name = "ring",
		.id = NF_ID,
		.mtu = NF_MTU,
		.m = NF_M,
		.w = 2,
		.n_ranks = (uint16_t)n,
		.flags = NR_F_STALL_RNR,
		.in = f->in,
	};
	f->now = 1000;
	for (unsigned r = 0; r < n; r++)
		add_host(f, r);
}

void nf_leaf(struct nf *f, unsigned n)
{
	nf_star(f, n);
	f->spec.n_ranks = (uint16_t)(n + 2);
	f->spec.has_parent = true;
	f->spec.parent_ip = switch_ip(0);
	f->spec.parent_local_ip = switch_ip(1);
	f->spec.parent_qpn = PEER_QPN;
}

void nf_root(struct nf *f, unsigned n)
{
	const unsigned i = n;

	nf_star(f, n);
	f->spec.n_ranks = (uint16_t)(n + 2);
	f->spec.n_in++;
	f->ranks[i][0] = (uint16_t)(n + 1);
	f->ranks[i][1] = (uint16_t)n;
	f->in[i] = (struct nr_in_spec){.remote_ip = switch_ip(1),
		.local_ip = switch_ip(0),
		.remote_qpn = PEER_QPN,
		.n_ranks = 2,
		.ranks = f->ranks[i]};
}

void nf_start(struct nf *f)
{
	char err[NR_ERR_LEN];

	if (nr_check(&f->spec, err))
		fail_msg("%s", err);
	f->ring = calloc(1, nr_ring_bytes(&f->spec));
	f->arena.size = nr_payload_bytes(&f->spec);
	f->arena.base = malloc(f->arena.size); /* nothing may rely on zeros */
	memset(f->arena.base, 0xa5, f->arena.size);
	nr_init(f->ring, &f->spec, SLOT, GEN, 0);
	assert_int_equal(nr_activate(f->ring, err), 0);
	f->n_rows = nr_rows(f->ring, f->key, f->look);
}

void nf_stop(struct nf *f)
{
	free(f->ring);
	free(f->arena.base);
}

/* ---- packets ---- */

uint32_t nf_psn(const struct nf *f, unsigned rank, uint32_t msg, unsigned o)
{
	return (0xfffff8 + 1000 * rank + (msg - f->spec.first_msg) * f->spec.m + o) & PSN_MASK;
}

static void fill(struct nf_pkt *p, int32_t value)
{
	for (unsigned i = 0; i + 4 <= sizeof(p->data); i += 4)
		memcpy(p->data + i, &value, 4);
}

struct nf_pkt nf_host(const struct nf *f, unsigned rank, uint32_t msg, unsigned o, int32_t value)
{
	const bool first = o == 0, last = o == f->spec.m - 1u;
	struct nf_pkt p = {
		.flow = {.src = host_ip(rank),
			.dst = host_ip(rank + 1),
			.tos = IP_ECN_ECT0,
			.ttl = 64,
			.sport = (uint16_t)(0xc000 + rank)},
		.hdr = {.opcode = first && last ? ROCE_WRITE_ONLY_IMM
				  : first       ? ROCE_WRITE_FIRST
				  : last        ? ROCE_WRITE_LAST_IMM
						: ROCE_WRITE_MIDDLE,
			.mig = true,
			.ackreq = last,
			.dqpn = QPN + rank,
			.psn = nf_psn(f, rank, msg, o),
			.va = 0x10000 * rank + 8 * msg,
			.rkey = 0x77 + rank,
			.imm = msg},
		.ina = {.ring = NF_ID,
			.rank = (uint16_t)rank,
			.msg = msg,
			.packets = f->spec.m,
			.dtype = REDUCE_INT32},
		.has_ina = first,
		.len = NF_MTU - (first ? INA_LEN : 0),
	};

	fill(&p, value);
	return p;
}

struct nf_pkt nf_switch(const struct nf *f, uint32_t msg, unsigned o, int32_t value)
{
	const bool down = f->spec.has_parent;
	const struct nr_in *leaf = nr_in_at(f->ring, f->spec.n_in - 1);
	struct nf_pkt p = {
		.flow = {.src = switch_ip(down ? 0 : 1), .dst = switch_ip(down ? 1 : 0), .ttl = 60},
		.hdr = {.opcode = ROCE_SEND_ONLY,
			.mig = true,
			.dqpn = down ? f->ring->parent_local_qpn : leaf->local_qpn,
			.psn = (msg * f->spec.m + o) & PSN_MASK},
		.ina = {.ring = NF_ID,
			.rank = down ? nr_in_at(f->ring, 0)->min_rank : leaf->min_rank,
			.msg = msg,
			.packets = f->spec.m,
			.dtype = REDUCE_INT32},
		.has_ina = true,
		.len = NF_MTU - (o == 0 ? INA_LEN : 0),
	};

	fill(&p, value);
	return p;
}

struct nf_pkt nf_reply(
	const struct nf *f, unsigned rank, uint8_t opcode, uint8_t syndrome, uint32_t psn)
{
	(void)f;
	return (struct nf_pkt){
		.flow = {.src = host_ip(rank + 1), .dst = host_ip(rank), .ttl = 64},
		.hdr = {.opcode = opcode,
			.dqpn = REPLY + rank,
			.psn = psn & PSN_MASK,
			.syndrome = syndrome,
			.msn = 5},
		.len = opcode == ROCE_CNP ? ROCE_CNP_LEN : 0,
	};
}

static void emit(void *arg, struct nr_ring *r, const struct nr_emit *e)
{
	struct nf *f = arg;
	struct nf_frame *o = &f->out[f->n_out++];

	assert_ptr_equal(r, f->ring);
	assert_true(f->n_out <= NF_OUT);
	o->len = nr_frame(e, o->b);
	assert_int_equal(wire_parse(o->b, o->len, &o->pkt), WIRE_OK);
	assert_int_equal(o->pkt.kind, WIRE_ROCE);
	assert_true(wire_icrc_ok(o->b, &o->pkt));
	assert_int_equal(o->pkt.end, o->len);
	assert_int_equal(o->pkt.l3_off, e->l3_off);
	assert_int_equal(o->pkt.ip_ver, e->ip_ver);
	assert_int_equal(o->pkt.ttl, e->ttl);
	assert_true(wire_ip_eq(&o->pkt.dst, &e->dst));
	o->payload = o->b + o->pkt.pay_off;
}

enum nr_drop nf_send_frame(struct nf *f, const uint8_t *frame, size_t len)
{
	const struct nr_sink sink = {f, emit};
	struct wire_pkt pkt;
	struct nr_key key;

	assert_int_equal(wire_parse(frame, len, &pkt), WIRE_OK);
	key = nr_key_of(&pkt);
	f->n_out = 0;
	for (unsigned i = 0; i < f->n_rows; i++)
		if (memcmp(&f->key[i], &key, sizeof(key)) == 0)
			return nr_rx(&f->look[i], &f->arena, frame, &pkt, f->now++, &sink);
	fail_msg("no row for this packet");
	return NR_FORWARD;
}

enum nr_drop nf_send(struct nf *f, const struct nf_pkt *p)
{
	uint8_t payload[NF_MTU + INA_LEN], frame[NF_FRAME];
	unsigned len = 0;
	int n;

	if (p->has_ina) {
		ina_encode(&p->ina, payload);
		len = INA_LEN;
	}
	memcpy(payload + len, p->data, p->len);
	n = wire_build_frame(frame, sizeof(frame), &p->flow, &p->hdr, payload, len + p->len);
	assert_true(n > 0);
	return nf_send_frame(f, frame, (size_t)n);
}

enum nr_drop nf_put(struct nf *f, unsigned rank, uint32_t msg, unsigned o, int32_t value)
{
	const struct nf_pkt p = nf_host(f, rank, msg, o, value);

	return nf_send(f, &p);
}

void nf_complete(struct nf *f, uint32_t msg, unsigned o, int32_t value)
{
	const unsigned n = f->spec.n_in;

	for (unsigned r = 0; r < n; r++)
		assert_int_equal(nf_put(f, r, msg, o, value + (int32_t)r),
			r == n - 1 ? NR_DROP_DONE : NR_DROP_CONSUMED);
}

void nf_expect(const struct nf *f, unsigned i, unsigned rank, uint32_t msg, unsigned o, int32_t sum)
{
	const struct nf_pkt want = nf_host(f, rank, msg, o, sum);
	const struct nf_frame *out = &f->out[i];
	const unsigned skip = want.has_ina ? INA_LEN : 0;
	uint8_t ina[INA_LEN];

	assert_true(i < f->n_out);
	assert_true(wire_ip_eq(&out->pkt.src, &want.flow.src));
	assert_int_equal(out->pkt.sport, want.flow.sport);
	assert_int_equal(out->pkt.opcode, want.hdr.opcode);
	assert_int_equal(out->pkt.ackreq, want.hdr.ackreq);
	assert_int_equal(out->pkt.dqpn, want.hdr.dqpn);
	assert_int_equal(out->pkt.psn, want.hdr.psn);
	if (out->pkt.flags & ROCE_F_RETH) {
		assert_int_equal(out->pkt.rkey, want.hdr.rkey);
		assert_int_equal(out->pkt.va, want.hdr.va);
	}
	if (out->pkt.flags & ROCE_F_IMM)
		assert_int_equal(out->pkt.imm,
			want.hdr.imm | (f->spec.flags & NR_F_MARK_SUMS ? INA_IMM_SUM : 0));
	assert_int_equal(out->pkt.pay_len, want.len + skip);
	ina_encode(&want.ina, ina);
	assert_memory_equal(out->payload, ina, skip);
	assert_memory_equal(out->payload + skip, want.data, want.len);
}
