/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/netreduce/ring.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/inc/group.h"
#include "dataplane/netreduce/drops.h"

static int refuse(char *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int refuse(char *err, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(err, NR_ERR_LEN, format, args);
	va_end(args);
	return -code;
}

/* ---- names ---- */

const char *nr_drop_name(enum nr_drop drop)
{
	static const char *const names[] = {"forward",
#define X(sym, name, text) name,
		NR_DROPS(X)
#undef X
			"icrc_bad"};

	return drop < sizeof(names) / sizeof(names[0]) ? names[drop] : "?";
}

const char *nr_state_name(unsigned state)
{
	static const char *const names[] = {"free", "installed", "active", "failed", "failed"};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

const char *nr_counter_name(enum nr_counter c)
{
	static const char *const names[] = {
#define X(sym, name, text) name,
		NR_COUNTERS(X)
#undef X
	};

	return c < NR_N_COUNTERS ? names[c] : "?";
}

/* ---- checking ---- */

/* 2N': room for two windows, so that idx() of message numbers is continuous over the wrap. */
static uint32_t message_slots(const struct nr_spec *s)
{
	uint32_t n = 2;

	while (n < 2u * s->w)
		n *= 2;
	return n;
}

static int check_shape(const struct nr_spec *s, char *err)
{
	if (s->name[0] == '\0' || memchr(s->name, '\0', sizeof(s->name)) == NULL)
		return refuse(err, EINVAL, "name: must have 1..%u bytes", NR_NAME_LEN - 1);
	if (!roce_mtu_code(s->mtu))
		return refuse(err, EINVAL, "mtu: %u, must be 256, 512, 1024, 2048 or 4096", s->mtu);
	if (s->m < 1 || s->m > NR_MAX_M)
		return refuse(err, EINVAL, "M: %u, must be 1..%u", s->m, NR_MAX_M);
	if (s->w < 1 || s->w > NR_MAX_W)
		return refuse(err, EINVAL, "W: %u, must be 1..%u", s->w, NR_MAX_W);
	if (message_slots(s) * s->m > NR_MAX_AGGREGATORS)
		return refuse(err, EINVAL,
			"M, W: %u x %u packets, twice the window must be at most %u", s->m,
			message_slots(s), NR_MAX_AGGREGATORS);
	if (s->n_ranks < 2 || s->n_ranks > NR_MAX_RANKS)
		return refuse(err, EINVAL, "ranks: %u, must be 2..%u", s->n_ranks, NR_MAX_RANKS);
	if (s->n_in < 1 || s->n_in > NR_MAX_IN)
		return refuse(err, EINVAL, "flows, leaves: %u together, must be 1..%u", s->n_in,
			NR_MAX_IN);
	return 0;
}

static bool bad_pair(const struct wire_ip *a, const struct wire_ip *b)
{
	return wire_ip_is_zero(a) || wire_ip_is_zero(b) || wire_ip_is4(a) != wire_ip_is4(b);
}

static int check_host(const struct nr_spec *s, unsigned i, char *err)
{
	const struct nr_in_spec *in = &s->in[i];
	unsigned rank = in->ranks[0];

	if (in->n_ranks != 1)
		return refuse(err, EINVAL, "flows: a host is one rank, not %u", in->n_ranks);
	if (bad_pair(&in->key.src, &in->key.dst))
		return refuse(err, EINVAL,
			"flows: rank %u: src and dst must be two addresses of one family", rank);
	if (wire_ip_eq(&in->key.src, &in->key.dst))
		return refuse(err, EINVAL, "flows: rank %u: src and dst are the same host", rank);
	if (in->key.qpn < 2 || in->key.qpn > PSN_MASK || in->reply_qpn > PSN_MASK)
		return refuse(
			err, EINVAL, "flows: rank %u: a QPN has 24 bits and is above 1", rank);
	if (in->psn_known && in->psn > PSN_MASK)
		return refuse(
			err, EINVAL, "flows: rank %u: psn: 0x%x, must fit 24 bits", rank, in->psn);
	for (unsigned j = 0; j < i; j++)
		if (s->in[j].host && memcmp(&s->in[j].key, &in->key, sizeof(in->key)) == 0)
			return refuse(err, EINVAL,
				"flows: ranks %u and %u have the same connection",
				s->in[j].ranks[0], rank);
	return 0;
}

static int check_switch(const struct nr_in_spec *in, char *err)
{
	if (in->n_ranks == 0)
		return refuse(err, EINVAL, "leaves: one without ranks");
	if (bad_pair(&in->remote_ip, &in->local_ip))
		return refuse(err, EINVAL,
			"leaves: rank %u: ip and local_ip must be two addresses of one family",
			in->ranks[0]);
	return in->remote_qpn > PSN_MASK ? refuse(err, EINVAL,
						   "leaves: rank %u: qpn: 0x%x, must "
						   "fit 24 bits",
						   in->ranks[0], in->remote_qpn)
					 : 0;
}

static unsigned min_rank(const struct nr_in_spec *in)
{
	unsigned min = NR_MAX_RANKS;

	for (unsigned k = 0; k < in->n_ranks; k++)
		min = in->ranks[k] < min ? in->ranks[k] : min;
	return min;
}

static int by_rank(const void *a, const void *b)
{
	const unsigned x = min_rank(a), y = min_rank(b);

	return (x > y) - (x < y);
}

/* No rank behind two inputs; without a parent every one behind one. */
static int check_ranks(const struct nr_spec *s, char *err)
{
	uint8_t seen[NR_MAX_RANKS] = {0};
	unsigned total = 0;

	for (unsigned i = 0; i < s->n_in; i++)
		for (unsigned k = 0; k < s->in[i].n_ranks; k++, total++) {
			unsigned rank = s->in[i].ranks[k];

			if (rank >= s->n_ranks)
				return refuse(err, EINVAL, "ranks: %u, must be below %u", rank,
					s->n_ranks);
			if (seen[rank]++)
				return refuse(err, EINVAL, "ranks: %u is named twice", rank);
		}
	if (!s->has_parent && total != s->n_ranks)
		return refuse(err, EINVAL,
			"flows, leaves: %u of %u ranks are missing, and there is "
			"no parent",
			s->n_ranks - total, s->n_ranks);
	if (s->has_parent && total == s->n_ranks)
		return refuse(err, EINVAL, "parent: all ranks are here, there is nobody above");
	return 0;
}

int nr_check(struct nr_spec *s, char err[NR_ERR_LEN])
{
	int rc = check_shape(s, err);

	for (unsigned i = 0; rc == 0 && i < s->n_in; i++)
		rc = s->in[i].n_ranks && s->in[i].host ? check_host(s, i, err)
						       : check_switch(&s->in[i], err);
	if (rc == 0 && s->has_parent && bad_pair(&s->parent_ip, &s->parent_local_ip))
		rc = refuse(
			err, EINVAL, "parent: ip and local_ip must be two addresses of one family");
	if (rc == 0 && s->parent_qpn > PSN_MASK)
		rc = refuse(err, EINVAL, "parent.qpn: 0x%x, must fit 24 bits", s->parent_qpn);
	if (rc == 0)
		rc = check_ranks(s, err);
	if (rc == 0)
		qsort(s->in, s->n_in, sizeof(*s->in), by_rank);
	return rc;
}

/* ---- making ---- */

static size_t align8(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

static size_t layout(const struct nr_spec *s, struct nr_ring *r)
{
	size_t at = align8(sizeof(*r));

	r->in_off = (uint32_t)at;
	at += s->n_in * sizeof(struct nr_in);
	r->rank_off = (uint32_t)at;
	at = align8(at + s->n_ranks);
	r->msg_off = (uint32_t)at;
	at = align8(at + message_slots(s) * sizeof(struct nr_msg));
	r->agg_off = (uint32_t)at;
	return at + (size_t)message_slots(s) * s->m * sizeof(struct nr_agg);
}

static size_t buf_stride(const struct nr_spec *s)
{
	return (sizeof(struct nr_buf) + s->mtu + 63) & ~(size_t)63;
}

size_t nr_ring_bytes(const struct nr_spec *spec)
{
	struct nr_ring r;

	return layout(spec, &r);
}

size_t nr_payload_bytes(const struct nr_spec *s)
{
	return (size_t)message_slots(s) * s->m * s->n_in * buf_stride(s);
}

/* Constant per connection, so that ECMP keeps it on one path. */
static uint16_t sport_of(uint32_t a, uint32_t b)
{
	uint32_t product = a * b;

	return (uint16_t)(0xc000 | ((product ^ product >> 14) & 0x3fff));
}

static struct wire_flow flow_to(const struct wire_ip *from, const struct wire_ip *to)
{
	return (struct wire_flow){.src = *from, .dst = *to, .tos = IP_ECN_ECT0, .ttl = 65};
}

static void init_in(struct nr_ring *r, unsigned i, const struct nr_in_spec *s)
{
	struct nr_in *in = nr_in_at(r, i);

	in->host = s->host;
	in->port = s->port;
	in->back_port = s->back_port;
	in->min_rank = (uint16_t)min_rank(s);
	for (unsigned k = 0; k < s->n_ranks; k++)
		nr_rank_in(r)[s->ranks[k]] = (uint8_t)i;
	if (!s->host) {
		in->local_qpn = inc_qpn(r->slot, i, r->gen);
		in->remote_qpn = s->remote_qpn;
		in->key = (struct nr_key){s->remote_ip, s->local_ip, in->local_qpn};
		in->flow = flow_to(&s->local_ip, &s->remote_ip);
		return;
	}
	in->key = s->key;
	in->reply_qpn = s->reply_qpn;
	in->known = in->acked_known = s->psn_known;
	in->psn0 = in->top_psn0 = in->acked = s->psn;
	in->msg = in->top_msg = r->first_msg;
	in->flow = flow_to(&s->key.dst, &s->key.src); /* of answers, in its receiver's name */
	in->flow.sport = sport_of(s->key.qpn, s->reply_qpn);
}

void nr_init(
	struct nr_ring *r, const struct nr_spec *s, unsigned slot, unsigned gen, uint64_t pay_off)
{
	r->bytes = (uint32_t)layout(s, r);
	r->slot = (uint16_t)slot;
	r->gen = (uint8_t)(gen & 0x3f);
	r->id = s->id;
	r->n_in = (uint8_t)s->n_in;
	r->has_parent = s->has_parent;
	r->flags = (uint16_t)s->flags;
	r->mtu = s->mtu;
	r->m = s->m;
	r->w = s->w;
	r->n_ranks = s->n_ranks;
	r->n_msgs = message_slots(s);
	r->first_msg = s->first_msg;
	r->inputs = (1ULL << s->n_in) - 1;
	r->pay_off = pay_off;
	r->buf_stride = (uint32_t)buf_stride(s);
	r->shift_first = icrc_shift_for(s->mtu - INA_LEN);
	r->shift_full = icrc_shift_for(s->mtu);
	memcpy(r->name, s->name, sizeof(r->name));
	memset(nr_rank_in(r), 0xff, s->n_ranks);
	for (unsigned i = 0; i < s->n_in; i++)
		init_in(r, i, &s->in[i]);
	if (s->has_parent) {
		r->parent_local_qpn = inc_qpn(slot, NR_PARENT_EP, r->gen);
		r->parent_qpn = s->parent_qpn;
		r->parent_port = s->parent_port;
		r->parent_key =
			(struct nr_key){s->parent_ip, s->parent_local_ip, r->parent_local_qpn};
		r->parent_flow = flow_to(&s->parent_local_ip, &s->parent_ip);
	}
	/* Everything belongs to messages of the window before the first one, which are complete. */
	for (uint32_t k = 1; k <= r->n_msgs; k++) {
		const uint32_t msg = s->first_msg - k;

		*nr_msg_at(r, msg) = (struct nr_msg){.msg = msg, .results = s->m};
		for (uint32_t o = 0; o < s->m; o++)
			*nr_agg_at(r, nr_index(r, msg, o)) =
				(struct nr_agg){.msg = msg, .sum = 1, .result = 1};
	}
	r->state = NR_INSTALLED;
}

int nr_activate(struct nr_ring *r, char err[NR_ERR_LEN])
{
	for (unsigned i = 0; i < r->n_in; i++) {
		struct nr_in *in = nr_in_at(r, i);

		if (in->host)
			continue;
		if (in->remote_qpn == 0)
			return refuse(err, EINVAL,
				"leaves: the QPN of the one with rank %u is not "
				"known yet",
				in->min_rank);
		in->flow.sport = sport_of(in->local_qpn, in->remote_qpn);
	}
	if (r->has_parent && r->parent_qpn == 0)
		return refuse(err, EINVAL, "parent.qpn: not known yet");
	r->parent_flow.sport = sport_of(r->parent_local_qpn, r->parent_qpn);
	__atomic_store_n(&r->state, NR_ACTIVE, __ATOMIC_RELEASE);
	return 0;
}

/* ---- looking ---- */

uint64_t nr_missing(struct nr_ring *r, uint32_t *msg, uint32_t *o)
{
	uint64_t missing = 0;

	for (uint32_t i = 0; i < r->n_msgs * r->m; i++) {
		const struct nr_agg *a = nr_agg_at(r, i);
		const uint64_t arrived = a->arrived;
		uint64_t here = r->inputs & ~arrived;

		if (arrived == 0 || a->result)
			continue;
		if (here == 0)
			here = 1ULL << NR_PARENT_EP;
		if (missing && (int32_t)(a->msg - *msg) > 0)
			continue;
		if (missing && a->msg == *msg && i % r->m > *o)
			continue;
		*msg = a->msg;
		*o = i % r->m;
		missing = here;
	}
	return missing;
}
