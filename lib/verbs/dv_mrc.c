/* SPDX-License-Identifier: BSD-3-Clause */
/* What libmrc has of a device (dv_mrc.h). */
#include "lib/verbs/dv_mrc.h"

#include <errno.h>

#include "lib/verbs/internal.h"

#define EXPORT __attribute__((visibility("default")))

void iv_on_mrc_ev(void *arg, struct rnic_qp *rqp, unsigned index, enum mrc_ev_state state)
{
	const struct inc_dv_mrc_listener *listener = &((struct iv_dev *)arg)->mrc;
	struct iv_qp *qp = rnic_qp_user(rqp);

	if (listener->ev_changed)
		listener->ev_changed(listener->arg, &qp->base, index, state);
}

void iv_on_mrc_answer(void *arg, uint64_t cookie, unsigned port, uint64_t rtt_ns, bool adjusted)
{
	const struct inc_dv_mrc_listener *listener = &((struct iv_dev *)arg)->mrc;

	if (listener->answered)
		listener->answered(listener->arg, cookie, port, rtt_ns, adjusted);
}

static unsigned ports(const struct ibv_context *context)
{
	return iv_mine(context) ? iv_dev(context)->mrc_ports : 0;
}

static int listen(struct ibv_context *context, const struct inc_dv_mrc_listener *listener)
{
	struct iv_dev *dev;

	if (!iv_mine(context))
		return -EOPNOTSUPP;
	dev = iv_dev(context);
	iv_own(dev);
	dev->mrc = listener ? *listener : (struct inc_dv_mrc_listener){0};
	iv_disown(dev);
	return 0;
}

static struct ibv_qp *create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (!ports(pd->context)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return iv_create_qp_as(pd, attr, &rnic_mrc, 0);
}

static int set(struct ibv_qp *qp, const struct rnic_mrc_attr *attr, unsigned mask)
{
	struct iv_dev *dev = iv_dev(qp->context);
	int ret;

	iv_own(dev);
	ret = rnic_mrc_set(iv_qp(qp)->qp, attr, mask);
	iv_disown(dev);
	return ret;
}

static int ev_set(struct ibv_qp *qp, unsigned index, enum mrc_ev_state state)
{
	struct iv_dev *dev = iv_dev(qp->context);
	int ret;

	iv_own(dev);
	ret = rnic_mrc_ev_set(iv_qp(qp)->qp, index, state);
	iv_disown(dev);
	return ret;
}

static int set_ports(struct ibv_context *context, uint8_t up)
{
	struct iv_dev *dev = iv_dev(context);

	if (!ports(context))
		return -EOPNOTSUPP;
	iv_own(dev);
	rnic_mrc_ports(dev->rnic, up, dev->ops->now(dev->port));
	atomic_store(&dev->mrc_up, up);
	iv_disown(dev);
	iv_kick(dev);
	return 0;
}

static int ask(struct ibv_context *context, const struct rnic_mrc_request *request)
{
	struct iv_dev *dev = iv_dev(context);
	int ret;

	if (!ports(context))
		return -EOPNOTSUPP;
	iv_own(dev);
	ret = rnic_mrc_ask(dev->rnic, request, dev->ops->now(dev->port));
	iv_disown(dev);
	iv_kick(dev);
	return ret;
}

static void forget(struct ibv_context *context, uint64_t cookie)
{
	struct iv_dev *dev = iv_dev(context);

	iv_own(dev);
	rnic_mrc_forget(dev->rnic, cookie);
	iv_disown(dev);
}

static void raise_event(struct ibv_cq *cq)
{
	iv_on_cq_event(NULL, iv_cq(cq)->cq);
}

static unsigned progress(struct ibv_context *context)
{
	return iv_progress(iv_dev(context));
}

EXPORT const struct inc_dv_mrc *inc_dv_mrc(void)
{
	static const struct inc_dv_mrc face = {
		.size = sizeof(face),
		.ports = ports,
		.listen = listen,
		.create_qp = create_qp,
		.set = set,
		.ev_set = ev_set,
		.set_ports = set_ports,
		.ask = ask,
		.forget = forget,
		.raise = raise_event,
		.progress = progress,
	};

	return &face;
}
