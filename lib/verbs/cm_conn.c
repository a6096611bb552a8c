/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections: what programs ask for, and what the communication manager tells them. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>

#include "lib/verbs/cm_exports.h"
#include "lib/verbs/cm_internal.h"

enum { RETRIES = 7, FLOW_LABEL_MASK = 0xfffff };

static uint32_t random_psn(void)
{
	uint32_t psn = 0;

	(void)!getrandom(&psn, sizeof(psn), 0);
	return psn & 0xffffff;
}

int iv_cm_begin(struct iv_id *id, struct iv_cm_dev **cdev)
{
	int ret = iv_cm_get(id, cdev);

	if (ret == 0)
		iv_own((*cdev)->dev);
	return ret;
}

int iv_cm_done(struct iv_cm_dev *cdev, int ret)
{
	iv_cm_flush(cdev);
	iv_disown(cdev->dev);
	iv_kick(cdev->dev);
	iv_cm_put(cdev);
	return ret;
}

uint64_t iv_cm_now(const struct iv_cm_dev *cdev)
{
	return cdev->dev->ops->now(cdev->dev->port);
}

/* ---- answers of peers ---- */

static void learn_rep(struct iv_id *id, struct iv_cm_event *event, const struct cm_rep *rep)
{
	struct rdma_conn_param *conn = &event->base.param.conn;

	id->remote_qpn = rep->qpn;
	id->remote_psn = rep->psn;
	id->responder_resources = iv_cm_depth(rep->initiator_depth);
	id->initiator_depth = iv_cm_depth(rep->responder_resources);
	id->rnr_retry = rep->rnr_retry;
	conn->responder_resources = rep->initiator_depth;
	conn->initiator_depth = rep->responder_resources;
	conn->flow_control = rep->flow_control;
	conn->rnr_retry_count = rep->rnr_retry;
	conn->srq = rep->srq;
	conn->qp_num = rep->qpn;
}

static void learn_sidr(struct iv_id *id, struct iv_cm_event *event, const struct cm_sidr_rep *rep)
{
	struct rdma_ud_param *ud = &event->base.param.ud;

	if (rep->status != CM_SIDR_VALID) {
		event->base.event = RDMA_CM_EVENT_UNREACHABLE;
		event->base.status = rep->status;
		return;
	}
	ud->qp_num = id->remote_qpn = rep->qpn;
	ud->qkey = id->qkey = rep->qkey;
	iv_id_ah(id, &ud->ah_attr);
}

static void fill_event(struct iv_id *id, struct iv_cm_event *event, const struct cm_msg *msg)
{
	iv_cm_event_data(event, msg->private_data, cm_private_len(msg->attr));
	switch (msg->attr) {
	case CM_REP:
		learn_rep(id, event, &msg->rep);
		break;
	case CM_REJ:
		event->base.status = msg->rej.reason;
		break;
	case CM_SIDR_REP:
		learn_sidr(id, event, &msg->sidr_rep);
		break;
	default:
		break;
	}
}

void iv_cm_on_event(void *arg, struct cm_conn *conn, void *user, const struct cm_event *event)
{
	static const enum rdma_cm_event_type types[] = {
		[CM_EV_REP] = RDMA_CM_EVENT_CONNECT_RESPONSE,
		[CM_EV_ESTABLISHED] = RDMA_CM_EVENT_ESTABLISHED,
		[CM_EV_REJECTED] = RDMA_CM_EVENT_REJECTED,
		[CM_EV_UNREACHABLE] = RDMA_CM_EVENT_UNREACHABLE,
		[CM_EV_DISCONNECTED] = RDMA_CM_EVENT_DISCONNECTED,
		[CM_EV_TIMEWAIT_EXIT] = RDMA_CM_EVENT_TIMEWAIT_EXIT,
		[CM_EV_SIDR_REP] = RDMA_CM_EVENT_ESTABLISHED,
	};
	struct iv_id *id = user;
	struct iv_cm_event *out = iv_cm_event_new(id, types[event->type], event->status);

	(void)arg, (void)conn;
	if (!out)
		return;
	if (event->msg)
		fill_event(id, out, event->msg);
	iv_cm_raise(out);
}

/* ---- the active side ---- */

static int private_data_of(
	uint8_t *out, size_t cap, const struct iv_id *id, const void *data, size_t len)
{
	const struct ipcm ipcm = {
		id->local, id->remote, iv_cm_ip_port(&id->base.route.addr.src_storage)};

	if (len > cap - IPCM_HDR_LEN || (len && !data))
		return -EINVAL;
	if (len)
		memcpy(out + IPCM_HDR_LEN, data, len);
	return ipcm_build(&ipcm, out);
}

static void fill_req(struct iv_id *id, const struct iv_cm_dev *cdev,
	const struct rdma_conn_param *param, struct cm_req *req)
{
	const uint16_t sport = iv_cm_ip_port(&id->base.route.addr.src_storage);
	const uint16_t dport = iv_cm_ip_port(&id->base.route.addr.dst_storage);

	id->qpn = id->base.qp ? id->base.qp->qp_num : param->qp_num;
	id->srq = id->base.qp ? id->base.qp->srq != NULL : param->srq != 0;
	id->psn = random_psn();
	id->responder_resources = iv_cm_depth(param->responder_resources);
	id->initiator_depth = iv_cm_depth(param->initiator_depth);
	id->retry_count = param->retry_count & 7;
	id->mtu = (uint8_t)rnic_active_mtu(cdev->dev->rnic, id->gid.port);
	/* The same path for both directions of a connection, another for the next one. */
	id->flow_label = (uint32_t)sport * dport & FLOW_LABEL_MASK;
	*req = (struct cm_req){.service_id = id->service_id,
		.qpn = id->qpn,
		.psn = id->psn,
		.responder_resources = id->responder_resources,
		.initiator_depth = id->initiator_depth,
		.transport = id->base.qp_type == IBV_QPT_UC ? CM_UC : CM_RC,
		.flow_control = param->flow_control != 0,
		.srq = id->srq,
		.retry_count = id->retry_count,
		.rnr_retry = param->rnr_retry_count & 7,
		.mtu = id->mtu,
		.pkey = IV_PKEY,
		.sgid = id->local,
		.dgid = id->remote,
		.flow_label = id->flow_label,
		.traffic_class = id->tos,
		.hop_limit = 64,
		.ack_timeout = id->ack_timeout};
}

static int start_connect(struct iv_id *id, const struct rdma_conn_param *param)
{
	struct iv_cm_dev *cdev;
	const struct cm_path path = {id->local, id->remote, id->tos};
	const bool ud = iv_id_ud(id);
	const size_t cap = ud ? CM_SIDR_REQ_PRIVATE : CM_REQ_PRIVATE;
	uint8_t data[CM_SIDR_REQ_PRIVATE] = {0};
	struct cm_req req;
	int ret = private_data_of(data, cap, id, param->private_data, param->private_data_len);

	if (ret == 0)
		ret = iv_cm_begin(id, &cdev);
	if (ret)
		return ret;
	id->service_id = ipcm_service_id(
		(unsigned)id->base.ps, iv_cm_ip_port(&id->base.route.addr.dst_storage));
	if (!ud)
		fill_req(id, cdev, param, &req);
	ret = id->conn ? -EINVAL
	      : ud     ? cm_sidr_request(cdev->cm, &path, id->service_id, data, cap, id,
				 iv_cm_now(cdev), &id->conn)
		   : cm_connect(cdev->cm, &path, &req, data, cap, id, iv_cm_now(cdev), &id->conn);
	return iv_cm_done(cdev, ret);
}

int iv_connect(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
	const struct rdma_conn_param defaults = {.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
		.retry_count = RETRIES,
		.rnr_retry_count = RETRIES};
	struct iv_id *id = iv_id(base);
	struct iv_cm_dev *cdev;
	int ret = iv_cm_get(id, &cdev);

	if (ret)
		return iv_cm_ret(ret);
	ret = param || base->qp ? iv_id_set_state(id, ID_ROUTE_RESOLVED, ID_CONNECT) : -EINVAL;
	if (ret == 0) {
		ret = cdev->dev->iwarp ? iv_cm_iwarp_connect(id, param ? param : &defaults)
				       : start_connect(id, param ? param : &defaults);
		if (ret)
			iv_id_set_state(id, ID_CONNECT, ID_ROUTE_RESOLVED);
	}
	iv_cm_put(cdev);
	if (ret)
		return iv_cm_ret(ret);
	return iv_cm_complete(id);
}

static int say_rtu(struct iv_id *id)
{
	struct iv_cm_dev *cdev;
	int ret = iv_cm_begin(id, &cdev);

	if (ret)
		return ret;
	ret = id->conn ? cm_establish(id->conn, NULL, 0, iv_cm_now(cdev)) : -EINVAL;
	return iv_cm_done(cdev, ret);
}

static bool on_iwarp(struct iv_id *id)
{
	struct iv_cm_dev *cdev;
	bool iwarp = false;

	if (iv_cm_get(id, &cdev) == 0) {
		iwarp = cdev->dev->iwarp;
		iv_cm_put(cdev);
	}
	return iwarp;
}

static int say_no(struct iv_id *id, unsigned reason, const void *data, size_t len)
{
	struct iv_cm_dev *cdev;
	int ret;

	if (on_iwarp(id))
		return iv_cm_iwarp_reject(id, data, len);
	ret = iv_cm_begin(id, &cdev);

	if (ret)
		return ret;
	ret = id->conn ? cm_reject(id->conn, reason, data, len, iv_cm_now(cdev)) : -EINVAL;
	return iv_cm_done(cdev, ret);
}

int iv_cm_respond(struct iv_id *id)
{
	int ret = iv_id_to_rts(id);

	if (ret == 0)
		ret = say_rtu(id);
	if (ret) {
		iv_id_to_err(id);
		say_no(id, CM_REJ_CONSUMER, NULL, 0);
	}
	return ret;
}

int iv_establish(struct rdma_cm_id *id)
{
	return iv_cm_ret(id->qp ? -EINVAL : say_rtu(iv_id(id)));
}

/* ---- the passive side ---- */

/* What the program offers, within what the device can and what the peer asked for. */
static uint8_t offer(unsigned wanted, unsigned of_peer, unsigned no_limit)
{
	return wanted == no_limit || wanted > of_peer ? (uint8_t)of_peer : (uint8_t)wanted;
}

static int say_rep(struct iv_id *id, const struct rdma_conn_param *param)
{
	struct iv_cm_dev *cdev;
	const struct cm_rep rep = {.qpn = id->qpn,
		.psn = id->psn,
		.responder_resources = id->responder_resources,
		.initiator_depth = id->initiator_depth,
		.target_ack_delay = 15,
		.flow_control = param && param->flow_control,
		.srq = id->srq,
		.rnr_retry = param ? param->rnr_retry_count & 7 : RETRIES};
	int ret = iv_cm_begin(id, &cdev);

	if (ret)
		return ret;
	ret = id->conn ? cm_accept(id->conn, &rep, param ? param->private_data : NULL,
				 param ? param->private_data_len : 0, iv_cm_now(cdev))
		       : -EINVAL;
	return iv_cm_done(cdev, ret);
}

static int say_sidr_rep(struct iv_id *id, const struct rdma_conn_param *param)
{
	struct iv_cm_dev *cdev;
	const struct cm_sidr_rep rep = {.status = CM_SIDR_VALID,
		.qpn = id->base.qp ? id->base.qp->qp_num : param->qp_num,
		.qkey = id->qkey,
		.service_id = id->service_id};
	int ret = iv_cm_begin(id, &cdev);

	if (ret)
		return ret;
	ret = id->conn ? cm_sidr_reply(id->conn, &rep, param ? param->private_data : NULL,
				 param ? param->private_data_len : 0, iv_cm_now(cdev))
		       : -EINVAL;
	return iv_cm_done(cdev, ret);
}

static int accept_conn(struct iv_id *id, const struct rdma_conn_param *param, bool iwarp)
{
	int ret;

	if (param) {
		id->responder_resources = offer(
			param->responder_resources, id->responder_resources, RDMA_MAX_RESP_RES);
		id->initiator_depth =
			offer(param->initiator_depth, id->initiator_depth, RDMA_MAX_INIT_DEPTH);
	}
	if (iwarp)
		return iv_cm_iwarp_accept(id, param);
	id->qpn = id->base.qp ? id->base.qp->qp_num : param->qp_num;
	id->srq = id->base.qp ? id->base.qp->srq != NULL : param->srq != 0;
	id->psn = random_psn();
	ret = iv_id_to_rts(id);
	if (ret == 0)
		ret = say_rep(id, param);
	if (ret)
		iv_id_to_err(id);
	return ret;
}

int iv_accept(struct rdma_cm_id *base, struct rdma_conn_param *param)
{
	struct iv_id *id = iv_id(base);
	struct iv_cm_dev *cdev;
	int ret = iv_cm_get(id, &cdev);

	if (ret)
		return iv_cm_ret(ret);
	ret = param || base->qp ? iv_id_set_state(id, ID_REQUESTED, ID_CONNECT) : -EINVAL;
	if (ret == 0) {
		ret = iv_id_ud(id) ? say_sidr_rep(id, param)
				   : accept_conn(id, param, cdev->dev->iwarp);
		iv_cm_answered(id);
	}
	iv_cm_put(cdev);
	if (ret)
		return iv_cm_ret(ret);
	return iv_id_ud(id) ? 0 : iv_cm_complete(id);
}

static int reject(struct iv_id *id, unsigned reason, const void *data, uint8_t len)
{
	int ret = say_no(id, reason, data, len);

	if (ret == 0) {
		iv_id_set_state(id, ID_REQUESTED, ID_DONE);
		iv_cm_answered(id);
	}
	return iv_cm_ret(ret);
}

int iv_reject(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	return reject(iv_id(id), CM_REJ_CONSUMER, data, len);
}

int iv_reject_ece(struct rdma_cm_id *id, const void *data, uint8_t len)
{
	return reject(iv_id(id), CM_REJ_VENDOR_OPTION, data, len);
}

int iv_notify(struct rdma_cm_id *base, enum ibv_event_type event)
{
	struct iv_id *id = iv_id(base);
	struct iv_cm_dev *cdev;
	int ret = event == IBV_EVENT_COMM_EST ? iv_cm_begin(id, &cdev) : -EINVAL;

	if (ret)
		return iv_cm_ret(ret);
	ret = id->conn ? cm_established(id->conn, iv_cm_now(cdev)) : -EINVAL;
	return iv_cm_ret(iv_cm_done(cdev, ret));
}

/* ---- the end ---- */

static bool has_event(const struct iv_id *id)
{
	struct pollfd p = {.fd = id->base.channel->fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* The peer's disconnection may be known already, and read: then there is nothing to wait for. */
static int disconnect_iwarp(struct iv_id *id)
{
	const bool over = !id->iwarp_link;
	int ret = iv_cm_iwarp_disconnect(id);

	if (ret)
		return iv_cm_ret(ret);
	return over && !has_event(id) ? 0 : iv_cm_complete(id);
}

int iv_disconnect(struct rdma_cm_id *base)
{
	struct iv_id *id = iv_id(base);
	struct iv_cm_dev *cdev;
	int ret;

	if (iv_id_ud(id))
		return iv_cm_ret(EINVAL);
	if (on_iwarp(id))
		return disconnect_iwarp(id);
	iv_id_to_err(id);
	ret = iv_cm_begin(id, &cdev);
	if (ret)
		return iv_cm_ret(ret);
	ret = id->conn ? cm_disconnect(id->conn, iv_cm_now(cdev)) : -EINVAL;
	ret = iv_cm_done(cdev, ret);
	return ret ? iv_cm_ret(ret) : iv_cm_complete(id);
}

void iv_cm_drop_conn(struct iv_id *id)
{
	struct iv_cm_dev *cdev;

	if (iv_cm_begin(id, &cdev) == 0) {
		if (cdev->dev->iwarp)
			iv_cm_iwarp_drop(id);
		if (id->conn)
			cm_release(id->conn, iv_cm_now(cdev));
		id->conn = NULL;
		iv_cm_done(cdev, 0);
	}
	iv_cm_answered(id);
}
