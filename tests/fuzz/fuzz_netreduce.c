/* SPDX-License-Identifier: BSD-3-Clause */
/* Any sequence of packets of registered connections at a NetReduce ring: a star, a leaf, a root.
 * Bytes choose the connection, the message, the place and what is wrong with it. Every result that
 * leaves a star must be the sum of what its ranks send for that message and place, whatever else
 * was sent; frames must parse (the fixture checks that). */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/netreduce/fixture.h"

enum { HOSTS = 3, STEP = 6 };

static int32_t value_of(unsigned rank, uint32_t msg, unsigned o)
{
	return (int32_t)(rank * 1000003u + msg * 101u + o);
}

static void check_ring(struct nr_ring *r)
{
	for (uint32_t i = 0; i < r->n_msgs; i++) {
		const struct nr_msg *m = nr_msg_at(r, i);
		unsigned results = 0;

		fuzz_check((m->msg & (r->n_msgs - 1)) == i, "a slot's message maps to it");
		for (uint32_t o = 0; o < r->m; o++) {
			const struct nr_agg *a = nr_agg_at(r, nr_index(r, i, o));

			fuzz_check((int32_t)(a->msg - m->msg) <= 0, "packets follow their message");
			fuzz_check((a->arrived & ~r->inputs) == 0, "only inputs contribute");
			fuzz_check(!a->sum || !a->arrived || a->arrived == r->inputs,
				"a sum has everybody's part");
			fuzz_check(!a->result || a->sum, "a result follows the sum");
			fuzz_check(a->len <= r->mtu, "data fits its buffer");
			results += a->msg == m->msg && a->result;
		}
		fuzz_check(m->results == results, "results are counted");
	}
}

static void check_results(const struct nf *f, uint32_t msg, unsigned o)
{
	/* Messages without tag make room for a lie about the next one's number: its sender's loss.
	 */
	for (unsigned i = 0; i < f->spec.n_in; i++)
		if (nr_in_at(f->ring, i)->mixed)
			return;
	for (unsigned i = 0; i < f->n_out; i++) {
		const struct nf_frame *out = &f->out[i];
		const unsigned skip = o == 0 ? INA_LEN : 0;
		uint32_t sum = 0;

		if (out->pkt.opcode == ROCE_ACK)
			continue;
		for (unsigned r = 0; r < HOSTS; r++)
			sum += (uint32_t)value_of(r, msg, o);
		for (unsigned at = skip; at + 4 <= out->pkt.pay_len; at += 4)
			fuzz_check(memcmp(out->payload + at, &sum, 4) == 0, "the sum is exact");
	}
}

/* Where a packet of a rank belongs by its PSN alone. */
static void place_of(const struct nf *f, unsigned rank, uint32_t psn, uint32_t *msg, unsigned *o)
{
	const int32_t at = psn_diff(psn, nf_psn(f, rank, f->spec.first_msg, 0));
	const int32_t k = (at >= 0 ? at : at - NF_M + 1) / NF_M;

	*msg = f->spec.first_msg + (uint32_t)k;
	*o = (unsigned)(at - k * NF_M);
}

/* What is wrong with a packet: mostly nothing. */
static void spoil(struct nf_pkt *p, uint8_t how, uint8_t with)
{
	switch (how & 31) {
	case 0:
		p->hdr.psn = psn_add(p->hdr.psn, (int8_t)with);
		break;
	case 1:
		p->ina.msg += (uint32_t)(int8_t)with;
		break;
	case 2:
		((uint8_t *)&p->ina)[with % 10] ^=
			(uint8_t)(1 + with / 16); /* all but what to do */
		break;
	case 3:
		if (roce_opcode_flags(with & ROCE_OP_MASK)) /* others do not come this far */
			p->hdr.opcode = with & ROCE_OP_MASK;
		break;
	case 4:
		p->len = with < p->len ? p->len - with : 0;
		break;
	case 5: /* elsewhere a header would be data */
		p->has_ina = false;
		break;
	case 6:
		p->hdr.psn = psn_add(p->hdr.psn, (int32_t)with << 16);
		break;
	case 7:
		p->flow.tos = with & IP_ECN_MASK;
		break;
	default:
		break;
	}
	if (!(roce_opcode_flags(p->hdr.opcode) & ROCE_F_PAYLOAD) || p->hdr.opcode == ROCE_CNP)
		p->len = 0, p->has_ina = false;
}

static void packet(struct nf *f, const uint8_t *in, uint32_t *base)
{
	const bool star = f->spec.n_ranks == HOSTS;
	const unsigned hosts = star ? HOSTS : 2, o = in[2] % NF_M, rank = in[0] % hosts;
	const uint32_t msg = *base + in[1] % 8u - 3;
	struct nf_pkt p = nf_host(f, rank, msg, o, 0), right;
	uint32_t at;
	unsigned place;

	if (in[0] & 0x80) {
		p = nf_reply(f, rank, ROCE_ACK, in[3], nf_psn(f, rank, msg, o));
	} else if ((in[0] & 0x40) && !star) {
		p = nf_switch(f, msg, o, (int32_t)in[5]);
	} else {
		spoil(&p, in[3], in[4]);
		place_of(f, rank, p.hdr.psn, &at, &place);
		right = nf_host(f, rank, at, place, value_of(rank, at, place));
		memcpy(p.data, right.data, sizeof(p.data));
	}
	nf_send(f, &p);
	check_ring(f->ring);
	if (f->ring->state == NR_FAILED) {
		for (unsigned i = 0; i < f->n_out; i++)
			fuzz_check(f->out[i].pkt.opcode == ROCE_ACK, "a failed ring sends no data");
		if (!(in[5] & 2))
			f->ring->state = NR_ACTIVE; /* there is more to see */
	}
	if (star && f->n_out > 0) {
		place_of(f, f->n_out == 1 ? rank : 0, f->out[0].pkt.psn, &at, &place);
		check_results(f, at, place);
	}
	if (in[5] & 1 && nr_msg_at(f->ring, *base)->results == NF_M)
		++*base;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct nf f;
	uint32_t base;

	if (size < 1)
		return 0;
	if (data[0] % 3 == 0)
		nf_star(&f, HOSTS);
	else if (data[0] % 3 == 1)
		nf_leaf(&f, 2);
	else
		nf_root(&f, 2);
	for (unsigned i = 0; i < f.spec.n_in; i++)
		f.in[i].psn_known = f.in[i].host;
	nf_start(&f);
	base = f.spec.first_msg;
	for (size_t at = 1; at + STEP <= size && at < 400 * STEP; at += STEP)
		packet(&f, data + at, &base);
	nf_stop(&f);
	return 0;
}

/* Three messages, packet by packet, from every input; then half of them again. */
size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	size_t n = 0;

	if (i >= 6 || cap < 1 + 100 * STEP)
		return 0;
	out[n++] = (uint8_t)i;
	for (uint8_t msg = 0; msg < 3; msg++)
		for (uint8_t o = 0; o < NF_M; o++)
			for (uint8_t in = 0; in < HOSTS; in++, n += STEP) {
				const uint8_t row = in == 2 && i % 3 ? 0x40 : in;
				const uint8_t step[STEP] = {row, 3, o, 31, 0,
					(uint8_t)(o == NF_M - 1 && in == HOSTS - 1)};

				memcpy(out + n, step, STEP);
				if (i >= 3 && o % 2)
					out[n + 1] = 2;
			}
	return n;
}
