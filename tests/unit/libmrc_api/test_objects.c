/* SPDX-License-Identifier: BSD-3-Clause */
/* Contexts, queues, channels, hints; versions; what needs a privilege. */
#include "tests/unit/libmrc_api/pair.h"

#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/libmrc/mrc_incline.h"

static void versions(void **state)
{
	uint32_t v[4] = {0};

	(void)state;
	mrc_query_version(&v[0], &v[1], &v[2], &v[3]);
	assert_int_equal(v[0], 0x01000001);
	assert_int_equal(v[1], 0);
	assert_int_equal(v[2], 0x01000000);
	assert_int_equal(v[3], 0);
	mrc_ctl_query_version(&v[3], NULL, NULL, &v[0]);
	assert_int_equal(v[3], 0x01000001);
	assert_int_equal(v[0], 0);
}

static void contexts(void **state)
{
	struct pair *p = *state;
	struct mrc_context_attr attr = {.mrc_api_version_used = 0x01000002};
	struct mrc_context *ctx;

	assert_null(mrc_create_context(NULL, NULL));
	assert_int_equal(errno, EINVAL);
	assert_null(mrc_create_context(p->a.verbs, &attr));
	assert_int_equal(errno, EINVAL);
	attr = (struct mrc_context_attr){.mrc_vendor_api_version_used = 0x01000001};
	assert_null(mrc_create_context(p->a.verbs, &attr));
	/* What the public benchmark passes is a wire version, that is API 0.0.1. */
	attr = (struct mrc_context_attr){.mrc_api_version_used = MRC_PROTOCOL_VERSION_1};
	ctx = mrc_create_context(p->a.verbs, &attr);
	assert_non_null(ctx);
	assert_int_equal(mrc_destroy_context(ctx), 0);
	assert_int_equal(mrc_destroy_context(p->a.ctx), -1); /* has children */
	assert_int_equal(errno, EBUSY);
	assert_int_equal(mrc_destroy_context(NULL), -1);
}

/* A context of another library's device. */
static void no_device(void **state)
{
	struct ibv_context other = {0};
	struct mrc_device_attr d;
	struct mrc_ctl_device_attr c;
	int supported = 7;

	(void)state;
	assert_int_equal(mrc_query_device(&other, &d, &supported), 0);
	assert_int_equal(supported, 0);
	supported = 7;
	assert_int_equal(mrc_ctl_query_device_ex(&other, NULL, &c, &supported), 0);
	assert_int_equal(supported, 0);
	assert_int_equal(mrc_ctl_query_device(&other, &c), -1);
	assert_int_equal(errno, ENODEV);
	assert_null(mrc_create_context(&other, NULL));
	assert_int_equal(errno, ENODEV);
}

static void devices(void **state)
{
	struct pair *p = *state;
	struct mrc_device_attr d;
	struct mrc_ctl_device_attr c;
	int supported = 7;

	assert_int_equal(mrc_query_device(p->a.verbs, &d, &supported), 0);
	assert_int_equal(supported, 1);
	assert_int_equal(d.mrc_protocol_version, MRC_PROTOCOL_VERSION_1);
	assert_int_equal(d.wimm_attr.max_wimm, 1024);
	assert_int_equal(d.mpr_attr.max_mpr, 255);
	assert_int_equal(d.mpr_attr.mpr_resolution, 1);
	assert_int_equal(d.cap, 7);
	assert_int_equal(mrc_query_device_ex(p->a.verbs, NULL, &d, &supported), 0);
	assert_int_equal(mrc_query_device_ex(p->a.verbs, p->a.ctx, &d, &supported), 0);
	assert_int_equal(mrc_query_device_ex(p->a.verbs, p->b.ctx, &d, &supported), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(mrc_ctl_query_device(p->a.verbs, &c), 0);
	assert_int_equal(c.ev.ev_max_fmt_profiles, 64);
	assert_int_equal(c.ev.ev_max_profiles, 256);
	assert_int_equal(c.ev.ev_max_count, 65536);
	assert_int_equal(c.ev.ev_free_count, 65536);
	assert_int_equal(c.ev.ev_max_count_profile, 4096);
	assert_int_equal(c.ev.ev_max_width, 256);
	assert_int_equal(c.ev.ev_fmt_mode_mask, 7);
	assert_int_equal(c.ev.ev_mode_mask, 7);
	assert_int_equal(c.ev.ev_count_align, 1);
	assert_int_equal(c.ev.ev_op_max_entries, 0);
	assert_int_equal(c.phy_port_mask, 1 << 1);
	assert_int_equal(c.opt_attr, 0x3f & ~MRC_CTL_OPT_CAP_EV_EXPLICIT_RANGE);
	assert_string_equal(c.cc.algorithms[0], "uet-1.0-nscc");
	assert_null(c.cc.algorithms[1]);
	assert_int_equal(mrc_ctl_query_device_ex(p->a.verbs, p->b.ctx, &c, &supported), -1);
}

static void queues(void **state)
{
	struct pair *p = *state;
	struct mrc_cq *cq, *ev;
	struct mrc_ctl_ev_event event;
	struct ibv_wc wc;
	int fd;

	assert_int_equal(mrc_get_comp_channel_fd(p->a.channel, &fd), 0);
	assert_true(fd >= 0);
	assert_int_equal(mrc_destroy_comp_channel(p->a.channel), EBUSY);
	assert_int_equal(mrc_destroy_cq(p->a.cq), EBUSY);
	assert_null(mrc_create_cq(p->a.ctx, 0, NULL, NULL, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(mrc_create_cq(p->a.ctx, 4, NULL, p->b.channel, 0));
	assert_int_equal(errno, EINVAL);
	assert_null(mrc_create_cq(p->a.ctx, 4, NULL, NULL, 99));
	cq = mrc_create_cq(p->a.ctx, 4, NULL, NULL, 0);
	assert_non_null(cq);
	assert_null(mrc_ctl_create_ev_event_cq(p->a.ctx, 0, NULL, NULL, 0));
	ev = mrc_ctl_create_ev_event_cq(p->a.ctx, 4, NULL, p->a.channel, 0);
	assert_non_null(ev);
	/* One kind is not the other. */
	assert_int_equal(mrc_poll_cq(ev, 1, &wc), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(mrc_ctl_poll_ev_event(cq, 1, &event), -EINVAL);
	assert_int_equal(mrc_poll_cq(cq, 1, &wc), 0);
	assert_int_equal(mrc_ctl_poll_ev_event(ev, 1, &event), 0);
	assert_int_equal(mrc_incline_poll_events(ev, 1, &event), 0);
	assert_int_equal(mrc_incline_poll_ev_event(ev, 1, &event, 48), 0);
	assert_int_equal(mrc_incline_poll_ev_event(ev, 1, &event, 52), -EINVAL);
	assert_int_equal(mrc_destroy_cq(cq), 0);
	assert_int_equal(mrc_destroy_cq(ev), 0);
}

static void hints(void **state)
{
	struct pair *p = *state;
	struct mrc_qp_hint_init_attr init = {.attr = {.num_qps_per_peer = -1}};
	struct mrc_qp_hint_attr attr = {0};
	struct mrc_qp_attr q = {0};
	struct mrc_qp_hint *hint, *other;

	assert_null(mrc_create_qp_hint(p->a.ctx, &init));
	assert_int_equal(errno, EINVAL);
	init.attr = (struct mrc_qp_hint_attr){.num_qps_per_peer = 3, .num_send_peers = 4};
	hint = mrc_create_qp_hint(p->a.ctx, &init);
	other = mrc_create_qp_hint(p->b.ctx, &init);
	assert_int_equal(mrc_query_qp_hint(hint, &attr, MRC_QP_HINT_NUM_SEND_PEERS), 0);
	assert_int_equal(attr.num_send_peers, 4);
	assert_int_equal(attr.num_qps_per_peer, 0); /* not asked for */
	assert_int_equal(mrc_query_qp_hint(hint, &attr, 1 << 5), -1);
	assert_int_equal(errno, EINVAL);
	attr.num_remote_recv_peers = 9;
	assert_int_equal(mrc_modify_qp_hint(hint, &attr, MRC_QP_HINT_NUM_REMOTE_RECV_PEERS), 0);
	assert_int_equal(mrc_query_qp_hint(hint, &attr, 7), 0);
	assert_int_equal(attr.num_qps_per_peer, 3);
	assert_int_equal(attr.num_remote_recv_peers, 9);
	q.qp_hint = other;
	assert_int_equal(to_init(&p->a, &q, MRC_QP_HINT), EINVAL); /* of another context */
	q.qp_hint = hint;
	assert_int_equal(to_init(&p->a, &q, MRC_QP_HINT), 0);
	assert_int_equal(mrc_destroy_qp_hint(hint), -1);
	assert_int_equal(errno, EBUSY);
	q.qp_hint = NULL;
	assert_int_equal(mrc_query_qp(p->a.qp, NULL, 0, &q, MRC_QP_HINT, NULL), 0);
	assert_ptr_equal(q.qp_hint, hint);
	assert_int_equal(to_state(&p->a, IBV_QPS_RESET), 0);
	assert_int_equal(mrc_destroy_qp_hint(hint), 0);
	assert_int_equal(mrc_destroy_qp_hint(other), 0);
	assert_int_equal(mrc_destroy_qp_hint(NULL), -1);
}

/* ---- privilege ---- */

static void drop_net_admin(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &header, data))
		return;
	data[CAP_TO_INDEX(CAP_NET_ADMIN)].effective &= ~CAP_TO_MASK(CAP_NET_ADMIN);
	(void)!syscall(SYS_capset, &header, data);
}

/* Each call of the controller, as a number: what it says. */
static int forbidden(struct pair *p, int call, struct mrc_cq *ev)
{
	struct mrc_context *c = p->a.ctx;
	struct mrc_ctl_ev_fmt_profile_attr f = {0};
	struct mrc_ctl_ev_profile_attr e = {0};
	struct mrc_ctl_cc_profile_attr n = {0};
	struct mrc_ctl_port_attr port = {0};
	struct mrc_ctl_ep_req req = {0};
	struct mrc_ctl_ep_rsp rsp;
	struct mrc_ctl_ev_event event;
	int n_rsp;

	errno = 0;
	switch (call) {
	case 0:
		return mrc_ctl_modify_ev_fmt_profile(c, 1, &f, 1);
	case 1:
		return mrc_ctl_query_ev_fmt_profile(c, 1, &f, 1);
	case 2:
		return mrc_ctl_modify_ev_profile(c, 1, &e, 1);
	case 3:
		return mrc_ctl_query_ev_profile(c, 1, &e, 1);
	case 4:
		return mrc_ctl_modify_cc_profile(c, 1, &n, 1);
	case 5:
		return mrc_ctl_query_cc_profile(c, 1, &n, 1);
	case 6:
		return mrc_ctl_modify_port(c, 1, &port, 1);
	case 7:
		return mrc_ctl_query_port(c, 1, &port, 1);
	case 8:
		return mrc_ctl_ep_batch_send_wait(
			c, 0, MRC_CTL_EP_OP_EV_PROBE, &req, 1, 1, &rsp, &n_rsp);
	case 9:
		return mrc_ctl_create_ev_event_cq(c, 1, NULL, NULL, 0) ? 0 : -1;
	case 10:
		return mrc_ctl_poll_ev_event(ev, 1, &event) == -EPERM ? -1 : 0;
	default:
		return 0;
	}
}

struct asked {
	struct pair *p;
	struct mrc_cq *ev;
	int allowed, without;
};

static void *without_privilege(void *arg)
{
	struct asked *a = arg;
	struct mrc_ctl_device_attr d;

	drop_net_admin(); /* of this thread alone */
	for (int i = 0; i <= 10; i++) {
		if (forbidden(a->p, i, a->ev) != -1 || errno != EPERM)
			a->allowed |= 1 << i;
	}
	/* Tools of applications ask what there is. */
	a->without = mrc_ctl_query_device(a->p->a.verbs, &d);
	return NULL;
}

static void privilege(void **state)
{
	struct pair *p = *state;
	struct asked a = {.p = p};
	pthread_t t;

	a.ev = mrc_ctl_create_ev_event_cq(p->a.ctx, 1, NULL, NULL, 0);
	assert_non_null(a.ev);
	assert_int_equal(pthread_create(&t, NULL, without_privilege, &a), 0);
	pthread_join(t, NULL);
	assert_int_equal(a.allowed, 0);
	assert_int_equal(a.without, 0);
	assert_int_equal(mrc_destroy_cq(a.ev), 0);
}

static void ports(void **state)
{
	struct pair *p = *state;
	struct mrc_ctl_port_attr attr = {.port_admin_state = MRC_CTL_PORT_ADMIN_DISABLED};
	struct ibv_port_attr v;

	assert_int_equal(mrc_ctl_modify_port(p->a.ctx, 0, &attr, 1), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(mrc_ctl_modify_port(p->a.ctx, 2, &attr, 1), -1);
	assert_int_equal(mrc_ctl_modify_port(p->a.ctx, 1, &attr, 2), -1);
	assert_int_equal(mrc_ctl_modify_port(p->a.ctx, 1, &attr, 1), 0);
	attr.port_admin_state = MRC_CTL_PORT_ADMIN_ENABLED;
	assert_int_equal(mrc_ctl_query_port(p->a.ctx, 1, &attr, 1), 0);
	assert_int_equal(attr.port_admin_state, MRC_CTL_PORT_ADMIN_DISABLED);
	assert_int_equal(ibv_query_port(p->a.verbs, 1, &v), 0);
	assert_int_equal(v.state, IBV_PORT_DOWN);
	attr.port_admin_state = (enum mrc_ctl_port_admin_state)2;
	assert_int_equal(mrc_ctl_modify_port(p->a.ctx, 1, &attr, 1), -1);
	attr.port_admin_state = MRC_CTL_PORT_ADMIN_ENABLED;
	assert_int_equal(mrc_ctl_modify_port(p->a.ctx, 1, &attr, 1), 0);
	assert_int_equal(ibv_query_port(p->a.verbs, 1, &v), 0);
	assert_int_equal(v.state, IBV_PORT_ACTIVE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions),
		cmocka_unit_test(no_device),
		PAIR_TEST(contexts),
		PAIR_TEST(devices),
		PAIR_TEST(queues),
		PAIR_TEST(hints),
		PAIR_TEST(privilege),
		PAIR_TEST(ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
