/* SPDX-License-Identifier: BSD-3-Clause */
/* What a controller says, and what connections make of it: EVs on the wire, denials, events, probes
 * of endpoints. */
#include "tests/unit/libmrc_api/pair.h"

#include <errno.h>

#include "lib/libmrc/mrc_incline.h"
#include "lib/wire/bytes.h"

enum {
	FMT = 7,
	PROFILE = 9,
	N = 8,
	EV_BASE = 0x00128000,
	IP6 = 14,
	UDP = IP6 + 40,
	IS_IP6 = 0x86dd
};

static struct mrc_ctl_ev an_ev(uint32_t value)
{
	struct mrc_ctl_ev ev = {.port = 1};

	put_be32(ev.val, value);
	return ev;
}

/* N EVs one by one, in STEV, ONLINE at once. */
static void configure(struct side *s, uint32_t min_active, int events)
{
	struct mrc_ctl_ev_fmt_field field = {32};
	struct mrc_ctl_ev_fmt_profile_attr f = {.profile_state = MRC_CTL_PROFILE_OFFLINE,
		.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV,
		.ev_fmt_op = {.fmt_fields = &field, .fmt_field_count = 1}};
	struct mrc_ctl_ev_op_entry entry[N];
	struct mrc_ctl_ev_profile_attr e = {.profile_state = MRC_CTL_PROFILE_OFFLINE,
		.ev_mode = MRC_CTL_EV_MODE_EXP,
		.ev_fmt_profile_id = FMT,
		.ev_count = N,
		.ev_min_active = min_active,
		.ev_event_mask = events,
		.ev_op = {.op = MRC_CTL_EV_OP_REPLACE_EV, .entries = entry, .entry_count = N}};

	for (uint32_t i = 0; i < N; i++)
		entry[i] = (struct mrc_ctl_ev_op_entry){.ev = MRC_CTL_EV_UNPOPULATED,
			.ev_new = an_ev(EV_BASE + i),
			.state = MRC_CTL_EV_GOOD};
	assert_int_equal(mrc_ctl_modify_ev_fmt_profile(s->ctx, FMT, &f,
				 MRC_CTL_EV_FMT_PROFILE_STATE | MRC_CTL_EV_FMT_PROFILE_MODE |
					 MRC_CTL_EV_FMT_PROFILE_OP),
		0);
	f.profile_state = MRC_CTL_PROFILE_ONLINE;
	assert_int_equal(
		mrc_ctl_modify_ev_fmt_profile(s->ctx, FMT, &f, MRC_CTL_EV_FMT_PROFILE_STATE), 0);
	assert_int_equal(mrc_ctl_modify_ev_profile(s->ctx, PROFILE, &e,
				 MRC_CTL_EV_PROFILE_STATE | MRC_CTL_EV_PROFILE_MODE |
					 MRC_CTL_EV_PROFILE_FMT_ID | MRC_CTL_EV_PROFILE_COUNT |
					 MRC_CTL_EV_PROFILE_MIN_ACTIVE |
					 MRC_CTL_EV_PROFILE_EVENT_MASK | MRC_CTL_EV_PROFILE_EV_OP),
		0);
	e.profile_state = MRC_CTL_PROFILE_ONLINE;
	assert_int_equal(
		mrc_ctl_modify_ev_profile(s->ctx, PROFILE, &e, MRC_CTL_EV_PROFILE_STATE), 0);
}

static void connect_with_profile(struct pair *p)
{
	struct mrc_qp_attr a = {.profile = {.ev_profile_id = PROFILE}};

	assert_int_equal(to_init(&p->a, &a, MRC_QP_EV_PROFILE_ID), 0);
	assert_int_equal(to_init(&p->b, NULL, 0), 0);
	assert_int_equal(to_rtr(&p->a, &p->b, 2, NULL, 0), 0);
	assert_int_equal(to_rtr(&p->b, &p->a, 2, NULL, 0), 0);
	assert_int_equal(to_rts(&p->a, NULL, 0), 0);
	assert_int_equal(to_rts(&p->b, NULL, 0), 0);
}

static void writes(struct pair *p, int n)
{
	struct ibv_wc wc;

	for (int i = 0; i < n; i++) {
		assert_int_equal(write_to(&p->a, &p->b, 1, 0, SIDE_BUF, 0), 0);
		wait_one(p, &p->a, &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
}

/* EVs of the frames that came to b since `from`, by bits; the flow label's are EV_BASE's. */
static unsigned evs_since(struct fabric *f, unsigned from)
{
	struct fabric_end *end = &f->end[1];
	unsigned seen = 0;

	assert_true(end->tail - from <= CABLE_FRAMES);
	for (unsigned i = from; i != end->tail; i++) {
		const uint8_t *frame = end->queue[i % CABLE_FRAMES].data;
		unsigned ev;

		if (get_be16(frame + 12) != IS_IP6 || end->queue[i % CABLE_FRAMES].len < 200)
			continue;
		assert_int_equal(get_be32(frame + IP6) & 0xfffff, EV_BASE >> 16);
		ev = get_be16(frame + UDP) - (EV_BASE & 0xffffu);
		assert_true(ev < N);
		seen |= 1u << ev;
	}
	return seen;
}

static int set_state(struct side *s, uint32_t i, enum mrc_ctl_ev_state state)
{
	struct mrc_ctl_ev_op_entry e = {.ev = an_ev(EV_BASE + i), .state = state};
	struct mrc_ctl_ev_profile_attr a = {
		.ev_op = {.op = MRC_CTL_EV_OP_MODIFY_EV_STATE, .entries = &e, .entry_count = 1}};

	return mrc_ctl_modify_ev_profile(s->ctx, PROFILE, &a, MRC_CTL_EV_PROFILE_EV_OP);
}

static enum mrc_ctl_ev_state state_of(struct side *s, uint32_t i)
{
	struct mrc_ctl_ev_op_entry e = {.ev = an_ev(EV_BASE + i)};
	struct mrc_ctl_ev_profile_attr a = {
		.ev_op = {.op = MRC_CTL_EV_OP_QUERY_EV_STATE, .entries = &e, .entry_count = 1}};

	assert_int_equal(
		mrc_ctl_query_ev_profile(s->ctx, PROFILE, &a, MRC_CTL_EV_PROFILE_EV_OP), 0);
	return e.state;
}

/* Packets carry the profile's EVs, all of them, and none that has been denied. */
static void evs_on_the_wire(void **state)
{
	struct pair *p = *state;
	unsigned from;

	configure(&p->a, 1, 0);
	assert_int_equal(state_of(&p->a, 0), MRC_CTL_EV_UNKNOWN);
	connect_with_profile(p);
	from = p->f->end[1].tail;
	writes(p, 2);
	assert_int_equal(evs_since(p->f, from), (1u << N) - 1);
	assert_int_equal(state_of(&p->a, 0), MRC_CTL_EV_GOOD);
	for (uint32_t i = 0; i < N; i++) {
		if (i != 3)
			assert_int_equal(set_state(&p->a, i, MRC_CTL_EV_DENIED), 0);
	}
	from = p->f->end[1].tail;
	writes(p, 2);
	assert_int_equal(evs_since(p->f, from), 1u << 3);
	assert_int_equal(state_of(&p->a, 0), MRC_CTL_EV_DENIED);
	assert_int_equal(set_state(&p->a, 5, MRC_CTL_EV_GOOD), 0);
	from = p->f->end[1].tail;
	writes(p, 2);
	assert_int_equal(evs_since(p->f, from), 1u << 3 | 1u << 5);
}

static void used_profiles_stay(void **state)
{
	struct pair *p = *state;
	struct mrc_ctl_ev_profile_attr e = {.profile_state = MRC_CTL_PROFILE_OFFLINE};
	struct mrc_ctl_ev_fmt_profile_attr f = {.profile_state = MRC_CTL_PROFILE_OFFLINE};
	int state_bit = MRC_CTL_EV_PROFILE_STATE;

	configure(&p->a, 1, 0);
	connect_with_profile(p);
	assert_int_equal(mrc_ctl_modify_ev_profile(p->a.ctx, PROFILE, &e, state_bit), -1);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(to_state(&p->a, IBV_QPS_ERR), 0);
	assert_int_equal(mrc_ctl_modify_ev_profile(p->a.ctx, PROFILE, &e, state_bit), -1);
	assert_int_equal(to_state(&p->a, IBV_QPS_RESET), 0);
	assert_int_equal(state_of(&p->a, 0), MRC_CTL_EV_UNKNOWN);
	assert_int_equal(mrc_ctl_modify_ev_profile(p->a.ctx, PROFILE, &e, state_bit), 0);
	assert_int_equal(mrc_ctl_modify_ev_fmt_profile(p->a.ctx, FMT, &f, state_bit), 0);
	/* The other device has profiles of its own. */
	assert_int_equal(mrc_ctl_query_ev_profile(p->b.ctx, PROFILE, &e, state_bit), 0);
	assert_int_equal(e.profile_state, MRC_CTL_PROFILE_INIT);
}

/* The next event turns a bit of bad over, as a query confirms. */
static void one_event(struct pair *p, struct mrc_cq *ev, unsigned *bad)
{
	struct mrc_ctl_ev_event event;
	uint32_t i;

	/* By turns as a program of 1.0.0 has them, without a state. */
	size_t stride = *bad & 1 ? 48 : sizeof(event);

	event.state = MRC_CTL_EV_UNKNOWN;
	for (i = 0; mrc_incline_poll_ev_event(ev, 1, &event, stride) == 0; i++) {
		assert_true(i < 4000000);
		fabric_step(p->f);
	}
	i = get_be32(event.ev.val) - EV_BASE;
	assert_true(i < N && event.ev.port == 1 && event.profile_id == PROFILE);
	assert_int_equal(event.drop_count, 0);
	*bad ^= 1u << i;
	assert_int_equal(event.state, stride == 48    ? MRC_CTL_EV_UNKNOWN
				      : *bad >> i & 1 ? MRC_CTL_EV_ASSUMED_BAD
						      : MRC_CTL_EV_GOOD);
	assert_true(N - __builtin_popcount(*bad) >= 3); /* min_active */
}

/* A cable that loses everything for a while: EVs are told to be bad, and good again when probes
 * come back; never fewer than min_active. */
static void events_of_evs(void **state)
{
	struct pair *p = *state;
	struct mrc_cq *ev = mrc_ctl_create_ev_event_cq(p->a.ctx, 64, p, p->a.channel, 0), *told;
	struct mrc_qp_attr a = {.retry = {7, 25}};
	unsigned bad = 0;
	void *context;
	struct ibv_wc wc;

	configure(&p->a, 3, MRC_CTL_EV_GOOD | MRC_CTL_EV_ASSUMED_BAD);
	connect_with_profile(p);
	assert_int_equal(mrc_modify_qp(p->a.qp, NULL, 0, &a, MRC_QP_RETRY_CNT), 0);
	writes(p, 1);
	assert_int_equal(mrc_req_notify_cq(ev, 0), 0);
	p->f->cut = true;
	assert_int_equal(write_to(&p->a, &p->b, 1, 0, SIDE_BUF, 0), 0);
	assert_int_equal(mrc_get_cq_event(p->a.channel, &told, &context), 0);
	assert_ptr_equal(told, ev);
	assert_ptr_equal(context, p);
	mrc_ack_cq_events(ev, 1);
	while (__builtin_popcount(bad) < N - 3)
		one_event(p, ev, &bad);
	assert_int_equal(__builtin_popcount(bad), N - 3);
	p->f->cut = false;
	wait_one(p, &p->a, &wc);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	/* Those that were kept for want of others may still go, and come back. */
	while (bad)
		one_event(p, ev, &bad);
	assert_int_equal(mrc_destroy_cq(ev), 0);
}

/* ---- endpoints ---- */

static struct mrc_ctl_ep_req request(struct pair *p, uint16_t id, int gid)
{
	struct mrc_ctl_ep_req r = {.req_id = id,
		.ev_fmt_mode = MRC_CTL_EV_FMT_MODE_UDP,
		.req_ev = {{0xc0, (uint8_t)id}, 1}};

	assert_int_equal(ibv_query_gid(p->a.verbs, 1, gid, &r.sgid), 0);
	assert_int_equal(ibv_query_gid(p->b.verbs, 1, gid, &r.dgid), 0);
	return r;
}

static int batch(struct pair *p, struct mrc_ctl_ep_req *r, int n, uint32_t ns,
	struct mrc_ctl_ep_rsp *rsp, int *n_rsp)
{
	return mrc_ctl_ep_batch_send_wait(
		p->a.ctx, 46, MRC_CTL_EP_OP_EV_PROBE, r, n, ns, rsp, n_rsp);
}

static int status(struct pair *p, struct mrc_ctl_ep_req *r, uint32_t ns, int *n_rsp)
{
	struct mrc_ctl_ep_rsp rsp;

	return mrc_ctl_ep_batch_send_wait(
		p->a.ctx, 46, MRC_CTL_EP_OP_PORT_STATUS_UPDATE, r, 1, ns, &rsp, n_rsp);
}

static void endpoint_requests(void **state)
{
	enum { LOT = 12, SECOND = 1000000000 };
	struct pair *p = pair_create(true, 1);
	static struct mrc_ctl_ep_req r[LOT];
	static struct mrc_ctl_ep_rsp rsp[LOT];
	static bool seen[LOT];
	int n = -1;

	(void)state;
	for (int i = 0; i < LOT; i++)
		r[i] = request(p, (uint16_t)i, 1 + i % 2);
	/* No more than a peer has room for, were they all to come at once. */
	assert_int_equal(batch(p, r, LOT, 4 * (uint32_t)SECOND, rsp, &n), 0);
	assert_int_equal(n, LOT);
	for (int i = 0; i < LOT; i++) {
		assert_int_equal(rsp[i].port, 1);
		assert_true(rsp[i].rtt > 0);
		assert_false(seen[rsp[i].req_id]);
		seen[rsp[i].req_id] = true;
	}
	/* Ports are told to peers of connections: others do not answer. */
	r[0].op.port_status_update.port_status = 1 << 1;
	assert_int_equal(status(p, r, SECOND / 100, &n), -1);
	assert_int_equal(errno, ETIMEDOUT);
	pair_connect(p, 1);
	assert_int_equal(status(p, r, 4 * (uint32_t)SECOND, &n), 0);
	assert_int_equal(n, 1);
	/* Nobody answers; what is late is of no batch. */
	p->f->cut = true;
	assert_int_equal(batch(p, r, 2, SECOND / 100, rsp, &n), -1);
	assert_int_equal(errno, ETIMEDOUT);
	assert_int_equal(n, 0);
	p->f->cut = false;
	pair_destroy(p);
}

/* Some answer and one does not, since nobody has its address: what has come is there, though the
 * time is over; nor is EAGAIN, which means that it cannot leave yet, the caller's affair. */
static void some_answer(void **state)
{
	enum { LOT = 4, MILLI = 1000000 };
	struct pair *p = pair_create(true, 1);
	struct mrc_ctl_ep_req r[LOT];
	struct mrc_ctl_ep_rsp rsp[LOT] = {{0}};
	unsigned seen = 0;
	int n = -1;

	(void)state;
	for (int i = 0; i < LOT; i++)
		r[i] = request(p, (uint16_t)(10 + i), 1);
	r[LOT - 1].dgid.raw[15] = 77;
	assert_int_equal(batch(p, r, LOT, 2000 * (uint32_t)MILLI, rsp, &n), -1);
	assert_int_equal(errno, ETIMEDOUT);
	assert_int_equal(n, LOT - 1);
	for (int i = 0; i < n; i++) {
		assert_int_equal(rsp[i].port, 1);
		assert_true(rsp[i].rtt > 0);
		assert_int_equal(rsp[i].adj_svc_time, 0);
		seen |= 1u << rsp[i].req_id;
	}
	assert_int_equal(seen, (1u << 10 | 1u << 11 | 1u << 12));
	pair_destroy(p);
}

/* Memory that there is none of: nothing has left. */
static unsigned calloc_fails; /* the next but so many; 0: none does */
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);

void *__wrap_calloc(size_t n, size_t size)
{
	if (calloc_fails > 0 && --calloc_fails == 0) {
		errno = ENOMEM;
		return NULL;
	}
	return __real_calloc(n, size);
}

static void no_memory(void **state)
{
	struct pair *p = *state;
	struct mrc_ctl_ep_req r = request(p, 1, 1);
	struct mrc_ctl_ep_rsp rsp;

	for (unsigned i = 1; i <= 2; i++) {
		const uint64_t before = p->f->n_tx;
		int n = -1;

		calloc_fails = i;
		errno = 0;
		assert_int_equal(batch(p, &r, 1, 1000, &rsp, &n), -1);
		assert_int_equal(errno, ENOMEM);
		assert_int_equal(n, 0);
		assert_int_equal(calloc_fails, 0);
		assert_int_equal(p->f->n_tx, before);
	}
}

static void bad_endpoint_requests(void **state)
{
	struct pair *p = *state;
	struct mrc_ctl_ep_req r[2] = {request(p, 1, 1), request(p, 1, 1)};
	struct mrc_ctl_ep_rsp rsp[2];
	int n;

	assert_int_equal(batch(p, r, 2, 1000, rsp, &n), -1); /* one id twice */
	assert_int_equal(errno, EINVAL);
	assert_int_equal(batch(p, r, 0, 1000, rsp, &n), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(
		mrc_ctl_ep_batch_send_wait(p->a.ctx, 64, MRC_CTL_EP_OP_EV_PROBE, r, 1, 1, rsp, &n),
		-1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(mrc_ctl_ep_batch_send_wait(
				 p->a.ctx, 0, (enum mrc_ctl_ep_op_type)2, r, 1, 1, rsp, &n),
		-1);
	assert_int_equal(errno, ENOTSUP);
	for (int i = 0; i < 7; i++) {
		r[0] = request(p, 1, 1);
		switch (i) {
		case 0:
			memset(&r[0].sgid, 0, sizeof(r[0].sgid));
			break;
		case 1:
			memset(&r[0].dgid, 0, sizeof(r[0].dgid));
			break;
		case 2:
			r[0].dgid = request(p, 1, 2).dgid;
			break; /* another family */
		case 3:
			r[0].sgid = r[0].dgid;
			break; /* not ours */
		case 4:
			r[0].req_ev.port = 2;
			break;
		case 5:
			r[0].ev_fmt_mode = MRC_CTL_EV_FMT_MODE_STEV;
			break; /* over IPv4 */
		case 6:
			r[0].req_ev.val[2] = 1;
			break; /* more than 16 bits */
		}
		assert_int_equal(batch(p, r, 1, 1000, rsp, &n), -1);
		assert_int_equal(errno, EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR_TEST(evs_on_the_wire),
		PAIR_TEST(used_profiles_stay),
		PAIR_TEST(events_of_evs),
		cmocka_unit_test(endpoint_requests),
		cmocka_unit_test(some_answer),
		PAIR_TEST(no_memory),
		PAIR_TEST(bad_endpoint_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
