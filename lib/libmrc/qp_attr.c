/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes and states of queue pairs. The device checks those of libibverbs; those of MRC are
 * checked here, and all of them before anything changes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/libmrc/internal.h"

enum {
	ALL = MRC_QP_MAX_WIMM | MRC_QP_MAX_WIMM_DEST | MRC_QP_MPR | MRC_QP_MPR_DEST |
	      MRC_QP_TIMEOUT | MRC_QP_EV_PROFILE_ID | MRC_QP_CC_PROFILE_ID | MRC_QP_HINT |
	      MRC_QP_RETRY_CNT | MRC_QP_CAP | MRC_QP_VENDOR_CFG,
	/* Settled at RTR: later they may be said again, but not changed. */
	FIXED = MRC_QP_EV_PROFILE_ID | MRC_QP_MPR_DEST | MRC_QP_MAX_WIMM_DEST | MRC_QP_CAP,
	IN_RTS = MRC_QP_TIMEOUT | MRC_QP_RETRY_CNT | MRC_QP_HINT | MRC_QP_VENDOR_CFG,
	CAPS = MRC_QP_CAP_TRIM_NACK_DEST_UNSUPPORTED | MRC_QP_CAP_DYNAMIC_MPR |
	       MRC_QP_CAP_SVC_TIME_DEST_UNSUPPORTED,
	/* Of libibverbs: what programs pass in vain, and what they may pass. */
	IGNORED = IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY,
	VERBS = IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_SQ_PSN,
};

struct mrc_qp_attr mrc_qp_defaults(void)
{
	const struct rnic_mrc_attr d = rnic_mrc_defaults();

	return (struct mrc_qp_attr){
		.mpr = {d.mpr, d.mpr_dest},
		.wimm = {d.max_wimm, d.max_wimm_dest},
		.timeout = d.timeout,
		.retry = {d.linear_cnt, d.exp_cnt},
	};
}

int mrc_qp_state(const struct mrc_qp *qp, enum ibv_qp_state *state)
{
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	int ret = ibv_query_qp(qp->qp, &attr, IBV_QP_STATE, &init);

	*state = attr.qp_state;
	return ret;
}

/* ---- checks ---- */

static bool chain(enum ibv_qp_state from, enum ibv_qp_state to)
{
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return true;
	if (from == to)
		return from == IBV_QPS_INIT || from == IBV_QPS_RTS;
	return (from == IBV_QPS_RESET && to == IBV_QPS_INIT) ||
	       (from == IBV_QPS_INIT && to == IBV_QPS_RTR) ||
	       (from == IBV_QPS_RTR && to == IBV_QPS_RTS);
}

/* The numbers among them, as the transport has them. */
static struct rnic_mrc_attr numbers(const struct mrc_qp_attr *a)
{
	return (struct rnic_mrc_attr){
		.mpr = a->mpr.mpr,
		.mpr_dest = a->mpr.mpr_dest,
		.max_wimm = a->wimm.max_wimm,
		.max_wimm_dest = a->wimm.max_wimm_dest,
		.timeout = a->timeout,
		.linear_cnt = a->retry.linear_cnt,
		.exp_cnt = a->retry.exp_cnt,
	};
}

static bool values_ok(const struct mrc_qp_attr *a, int mask)
{
	static const struct {
		int ours;
		unsigned theirs;
	} bits[] = {{MRC_QP_MPR, RNIC_MRC_MPR}, {MRC_QP_MPR_DEST, RNIC_MRC_MPR_DEST},
		{MRC_QP_MAX_WIMM, RNIC_MRC_MAX_WIMM},
		{MRC_QP_MAX_WIMM_DEST, RNIC_MRC_MAX_WIMM_DEST}, {MRC_QP_TIMEOUT, RNIC_MRC_TIMEOUT},
		{MRC_QP_RETRY_CNT, RNIC_MRC_RETRY}};
	const struct rnic_mrc_attr n = numbers(a);
	unsigned theirs = 0;

	for (unsigned i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		theirs |= mask & bits[i].ours ? bits[i].theirs : 0;
	return rnic_mrc_within_limits(&n, theirs) &&
	       (!(mask & MRC_QP_CAP) || !(a->cap & ~(uint32_t)CAPS));
}

static void merge(struct mrc_qp_attr *to, const struct mrc_qp_attr *from, int mask)
{
	if (mask & MRC_QP_MPR)
		to->mpr.mpr = from->mpr.mpr;
	if (mask & MRC_QP_MPR_DEST)
		to->mpr.mpr_dest = from->mpr.mpr_dest;
	if (mask & MRC_QP_MAX_WIMM)
		to->wimm.max_wimm = from->wimm.max_wimm;
	if (mask & MRC_QP_MAX_WIMM_DEST)
		to->wimm.max_wimm_dest = from->wimm.max_wimm_dest;
	if (mask & MRC_QP_TIMEOUT)
		to->timeout = from->timeout ? from->timeout : MRC_TIMEOUT_DEFAULT;
	if (mask & MRC_QP_RETRY_CNT)
		to->retry = from->retry;
	if (mask & MRC_QP_CAP)
		to->cap = from->cap;
	if (mask & MRC_QP_EV_PROFILE_ID)
		to->profile.ev_profile_id = from->profile.ev_profile_id;
	if (mask & MRC_QP_CC_PROFILE_ID)
		to->profile.cc_profile_id = from->profile.cc_profile_id;
	if (mask & MRC_QP_HINT)
		to->qp_hint = from->qp_hint;
	if (mask & MRC_QP_VENDOR_CFG)
		memcpy(to->vendor_cfg, from->vendor_cfg, sizeof(to->vendor_cfg));
}

static bool fixed_stays(const struct mrc_qp_attr *old, const struct mrc_qp_attr *new)
{
	return old->mpr.mpr_dest == new->mpr.mpr_dest && old->cap == new->cap &&
	       old->wimm.max_wimm_dest == new->wimm.max_wimm_dest &&
	       old->profile.ev_profile_id == new->profile.ev_profile_id;
}

/* What strict programs have said by the time that they are in a state. */
static int required(enum ibv_qp_state to)
{
	int init = MRC_QP_HINT | MRC_QP_EV_PROFILE_ID | MRC_QP_CC_PROFILE_ID;
	int rtr = init | MRC_QP_MAX_WIMM_DEST | MRC_QP_MPR_DEST | MRC_QP_CAP;

	switch (to) {
	case IBV_QPS_INIT:
		return init;
	case IBV_QPS_RTR:
		return rtr;
	case IBV_QPS_RTS:
		return rtr | MRC_QP_MAX_WIMM | MRC_QP_MPR | MRC_QP_RETRY_CNT | MRC_QP_TIMEOUT;
	default:
		return 0;
	}
}

static int check(const struct mrc_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to,
	bool transition, const struct mrc_qp_attr *draft, const struct mrc_qp_attr *attr, int mask)
{
	if (mask & ~ALL || (mask && !values_ok(attr, mask)))
		return EINVAL;
	if (transition ? !chain(from, to) : mask && from == IBV_QPS_RESET)
		return EINVAL;
	if (mask && (to == IBV_QPS_RESET || to == IBV_QPS_ERR))
		return EINVAL;
	if (from == IBV_QPS_RTS && mask & ~IN_RTS)
		return EINVAL;
	if (from == IBV_QPS_RTR && mask & FIXED && !fixed_stays(&qp->attr, draft))
		return EINVAL;
	return transition && mrc_strict() && required(to) & ~(qp->have | mask) ? EINVAL : 0;
}

/* ---- profiles and paths ---- */

/* What a change takes hold of before it is certain; what it does not need is dropped. */
struct held {
	struct ev_profile *ev;
	struct cc_profile *cc;
	struct mrc_qp_hint *hint;
	struct rnic_mrc_paths *paths;
	struct ev_path map[PROFILES_EVS_QP];
	int n_map;
};

static void drop(struct mrc_dev *dev, struct held *h, int mask)
{
	pthread_mutex_lock(&dev->note);
	if (mask & MRC_QP_EV_PROFILE_ID)
		ev_put(h->ev);
	if (mask & MRC_QP_CC_PROFILE_ID)
		cc_put(h->cc);
	pthread_mutex_unlock(&dev->note);
	if (mask & MRC_QP_HINT)
		mrc_hint_drop(h->hint);
}

/* Takes hold of what mask names. */
static int hold(struct mrc_qp *qp, const struct mrc_qp_attr *attr, int mask, struct held *h)
{
	struct mrc_dev *dev = qp->ctx->dev;
	int got = 0, ret = 0;

	*h = (struct held){.ev = qp->ev, .cc = qp->cc, .hint = qp->attr.qp_hint};
	pthread_mutex_lock(&dev->note);
	if (mask & MRC_QP_EV_PROFILE_ID) {
		ret = ev_get(&dev->book, attr->profile.ev_profile_id, &h->ev);
		got |= ret ? 0 : MRC_QP_EV_PROFILE_ID;
	}
	if (!ret && mask & MRC_QP_CC_PROFILE_ID) {
		ret = cc_get(&dev->book, attr->profile.cc_profile_id, &h->cc);
		got |= ret ? 0 : MRC_QP_CC_PROFILE_ID;
	}
	pthread_mutex_unlock(&dev->note);
	if (!ret && mask & MRC_QP_HINT) {
		h->hint = attr->qp_hint;
		ret = mrc_hint_use(qp->ctx, h->hint);
		got |= ret ? 0 : MRC_QP_HINT;
	}
	if (ret)
		drop(dev, h, got);
	return ret ? EINVAL : 0;
}

static enum rnic_mrc_format format_of(enum mrc_ctl_ev_fmt_mode mode, bool ip4)
{
	switch (mode) {
	case MRC_CTL_EV_FMT_MODE_SRV6:
		return RNIC_MRC_SRV6;
	case MRC_CTL_EV_FMT_MODE_UDP:
		return RNIC_MRC_UDP;
	case MRC_CTL_EV_FMT_MODE_STEV:
		return RNIC_MRC_STEV;
	default:
		return ip4 ? RNIC_MRC_UDP : RNIC_MRC_STEV;
	}
}

/* The paths of a connection that is about to be; none for the built-in profile. */
static int choose(struct mrc_qp *qp, const struct ibv_qp_attr *v, struct held *h)
{
	struct mrc_dev *dev = qp->ctx->dev;
	struct wire_ip peer;
	bool ip4;

	if (!h->ev)
		return 0;
	memcpy(peer.b, v->ah_attr.grh.dgid.raw, sizeof(peer.b));
	ip4 = wire_ip_is4(&peer);
	h->paths = calloc(1, sizeof(*h->paths));
	if (!h->paths)
		return ENOMEM;
	pthread_mutex_lock(&dev->note);
	h->n_map = ev_paths(&dev->book, h->ev, ip4, h->map);
	h->paths->format = format_of(h->ev->fmt.mode, ip4);
	h->paths->min_active = h->ev->min_active;
	pthread_mutex_unlock(&dev->note);
	if (h->n_map < 0)
		return EINVAL;
	h->paths->n = (unsigned)h->n_map;
	if (h->paths->min_active > h->paths->n)
		h->paths->min_active = h->paths->n;
	for (int i = 0; i < h->n_map; i++) {
		struct rnic_mrc_path *to = &h->paths->path[i];
		const struct ev_path *from = &h->map[i];

		*to = (struct rnic_mrc_path){.ev = from->ev,
			.port = from->port,
			.denied = from->denied,
			.n_segments = from->n_segments};
		memcpy(to->segment, from->segment, sizeof(from->segment));
	}
	return 0;
}

static void note_paths(struct mrc_qp *qp, int used)
{
	for (unsigned i = 0; i < qp->n_map; i++) {
		ev_note(qp->ev, &qp->map[i], used, used < 0 && qp->bad[i] ? -1 : 0);
		qp->bad[i] = false;
	}
}

void mrc_qp_release(struct mrc_qp *qp)
{
	struct mrc_dev *dev = qp->ctx->dev;
	struct held h = {.ev = qp->ev, .cc = qp->cc, .hint = qp->attr.qp_hint};

	pthread_mutex_lock(&dev->note);
	note_paths(qp, -1);
	qp->n_map = 0;
	pthread_mutex_unlock(&dev->note);
	drop(dev, &h, MRC_QP_EV_PROFILE_ID | MRC_QP_CC_PROFILE_ID | MRC_QP_HINT);
	free(qp->paths);
	qp->paths = NULL;
	qp->ev = NULL;
	qp->cc = NULL;
	qp->attr = mrc_qp_defaults();
	qp->have = 0;
}

void mrc_qp_deny(struct mrc_dev *dev, const struct ev_profile *p)
{
	struct mrc_qp *qp;

	LIST_FOREACH(qp, &dev->qps, link)
	{
		pthread_mutex_lock(&qp->lock);
		for (unsigned i = 0; qp->ev == p && i < qp->n_map; i++) {
			struct ev_path *path = &qp->map[i];
			bool denied = path->denied;

			pthread_mutex_lock(&dev->note);
			if (path->entry < p->count &&
				p->entry[path->entry].generation == path->generation)
				denied = p->entry[path->entry].denied;
			pthread_mutex_unlock(&dev->note);
			if (denied != path->denied)
				dev->dv->ev_set(qp->qp, i, denied ? MRC_EV_DENIED : MRC_EV_GOOD);
			path->denied = denied;
		}
		pthread_mutex_unlock(&qp->lock);
	}
}

/* ---- changes ---- */

static struct rnic_mrc_attr transport_attr(const struct mrc_qp_attr *a, const struct held *h)
{
	struct rnic_mrc_attr out = numbers(a);

	out.paths = h->paths;
	if (a->cap & MRC_QP_CAP_TRIM_NACK_DEST_UNSUPPORTED)
		out.caps |= RNIC_MRC_PEER_NO_TRIM_NACK;
	if (a->cap & MRC_QP_CAP_DYNAMIC_MPR)
		out.caps |= RNIC_MRC_DYNAMIC_MPR;
	if (!(a->cap & MRC_QP_CAP_SVC_TIME_DEST_UNSUPPORTED))
		out.caps |= RNIC_MRC_SERVICE_TIME;
	if (h->cc) {
		out.cc.none = h->cc->none;
		out.cc.nscc = cc_nscc(&h->cc->config);
	}
	return out;
}

/* What the transport can still be told before it goes on from a state. */
static unsigned settable(enum ibv_qp_state from, enum ibv_qp_state to)
{
	const unsigned any = RNIC_MRC_TIMEOUT | RNIC_MRC_RETRY;
	const unsigned requestor = any | RNIC_MRC_CC | RNIC_MRC_MPR | RNIC_MRC_MAX_WIMM;

	if (from == IBV_QPS_INIT && to == IBV_QPS_RTR)
		return requestor | RNIC_MRC_PATHS | RNIC_MRC_MPR_DEST | RNIC_MRC_MAX_WIMM_DEST |
		       RNIC_MRC_CAPS;
	return from == IBV_QPS_RTR ? requestor : from == IBV_QPS_RTS ? any : 0;
}

static void say_ignored(void)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&said))
		fprintf(stderr,
			"libmrc: port, timeout, retry counts of libibverbs have no effect on "
			"MRC's queue pairs\n");
}

static int change(struct mrc_qp *qp, struct ibv_qp_attr *v, int vmask, enum ibv_qp_state from,
	enum ibv_qp_state to, const struct mrc_qp_attr *draft, struct held *h)
{
	const struct inc_dv_mrc *dv = qp->ctx->dev->dv;
	struct held before = {.cc = qp->cc, .paths = qp->paths};
	struct rnic_mrc_attr old = transport_attr(&qp->attr, &before);
	unsigned mask = settable(from, to);
	struct rnic_mrc_attr new;
	int ret = 0;

	if (from == IBV_QPS_INIT && to == IBV_QPS_RTR)
		ret = choose(qp, v, h);
	new = transport_attr(draft, h);
	if (!ret && mask)
		ret = -dv->set(qp->qp, &new, mask);
	if (!ret && vmask) {
		ret = ibv_modify_qp(qp->qp, v, vmask);
		if (ret && mask)
			dv->set(qp->qp, &old, mask);
	}
	if (ret) {
		free(h->paths);
		h->paths = NULL;
	}
	return ret;
}

/* The change has been made. */
static void settle(struct mrc_qp *qp, const struct mrc_qp_attr *draft, struct held *h, int mask)
{
	struct mrc_dev *dev = qp->ctx->dev;
	struct held old = {.ev = qp->ev, .cc = qp->cc, .hint = qp->attr.qp_hint};

	pthread_mutex_lock(&dev->note);
	qp->ev = h->ev;
	qp->cc = h->cc;
	if (h->paths) {
		qp->paths = h->paths;
		qp->n_map = (unsigned)h->n_map;
		memcpy(qp->map, h->map, sizeof(qp->map));
		note_paths(qp, 1);
	}
	pthread_mutex_unlock(&dev->note);
	drop(dev, &old, mask);
	qp->attr = *draft;
	qp->have |= mask;
}

static int modify(
	struct mrc_qp *qp, struct ibv_qp_attr *v, int vmask, struct mrc_qp_attr *attr, int mask)
{
	struct mrc_qp_attr draft = qp->attr;
	enum ibv_qp_state from, to;
	struct held h;
	int ret = mrc_qp_state(qp, &from);

	if (ret)
		return ret;
	to = vmask & IBV_QP_STATE ? v->qp_state : from;
	if (vmask & ~(VERBS | IGNORED) || (vmask & IBV_QP_CUR_STATE && v->cur_qp_state != from))
		return EINVAL;
	if (mask)
		merge(&draft, attr, mask);
	ret = check(qp, from, to, vmask & IBV_QP_STATE, &draft, attr, mask);
	if (ret)
		return ret;
	if (vmask & IGNORED)
		say_ignored();
	vmask &= ~(IGNORED | IBV_QP_CUR_STATE);
	if (to == IBV_QPS_RESET && vmask & IBV_QP_STATE) {
		ret = ibv_modify_qp(qp->qp, v, vmask);
		if (!ret)
			mrc_qp_release(qp);
		return ret;
	}
	ret = hold(qp, attr, mask, &h);
	if (ret)
		return ret;
	ret = change(qp, v, vmask, from, to, &draft, &h);
	if (ret)
		drop(qp->ctx->dev, &h, mask);
	else
		settle(qp, &draft, &h, mask);
	return ret;
}

API int mrc_modify_qp(struct mrc_qp *qp, struct ibv_qp_attr *vattr, int vattr_mask,
	struct mrc_qp_attr *mrc_attr, int mrc_attr_mask)
{
	int ret;

	if (!qp || (vattr_mask && !vattr) || (mrc_attr_mask && !mrc_attr))
		return mrc_errno(EINVAL);
	pthread_mutex_lock(&qp->lock);
	ret = modify(qp, vattr, vattr_mask, mrc_attr, mrc_attr_mask);
	pthread_mutex_unlock(&qp->lock);
	return ret ? mrc_errno(ret) : 0;
}

API int mrc_query_qp(struct mrc_qp *qp, struct ibv_qp_attr *vattr, int vattr_mask,
	struct mrc_qp_attr *mrc_attr, int mrc_attr_mask, struct mrc_qp_init_attr *init_attr)
{
	struct ibv_qp_init_attr unused;
	int ret = 0;

	if (!qp || (vattr_mask && !vattr) || (mrc_attr_mask && !mrc_attr) || mrc_attr_mask & ~ALL)
		return mrc_errno(EINVAL);
	if (vattr_mask)
		ret = ibv_query_qp(qp->qp, vattr, vattr_mask, &unused);
	if (ret)
		return mrc_errno(ret);
	pthread_mutex_lock(&qp->lock);
	if (mrc_attr_mask)
		merge(mrc_attr, &qp->attr, mrc_attr_mask);
	if (init_attr)
		*init_attr = qp->init;
	pthread_mutex_unlock(&qp->lock);
	return 0;
}
