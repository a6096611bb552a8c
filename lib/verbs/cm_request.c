/* SPDX-License-Identifier: BSD-3-Clause */
/* Who listens, and what peers ask of him. */
#include <arpa/inet.h>
#include <errno.h>

#include "lib/verbs/cm_exports.h"
#include "lib/verbs/cm_internal.h"

static const uint64_t CLOSED_NS = 5000000000;

uint16_t iv_cm_ip_port(const struct sockaddr_storage *addr)
{
	return ntohs(((const struct sockaddr_in *)addr)->sin_port);
}

uint8_t iv_cm_depth(unsigned wanted)
{
	return (uint8_t)(wanted < IV_CM_MAX_DEPTH ? wanted : IV_CM_MAX_DEPTH);
}

static uint64_t service_of(const struct iv_id *id)
{
	return ipcm_service_id(
		(unsigned)id->base.ps, iv_cm_ip_port(&id->base.route.addr.src_storage));
}

bool iv_cm_at(const struct iv_id *id, const struct wire_ip *ip)
{
	if (!id->bound_any)
		return wire_ip_eq(&id->local, ip);
	if (wire_ip_is4(&id->local))
		return wire_ip_is4(ip);
	return !id->afonly || !wire_ip_is4(ip);
}

static bool listens(
	const struct iv_id *id, const struct cm_path *path, uint64_t service_id, bool ud)
{
	return id->state == ID_LISTEN && iv_id_ud(id) == ud && service_id == service_of(id) &&
	       iv_cm_at(id, &path->local);
}

void iv_cm_unlisten(struct iv_id *id)
{
	pthread_mutex_lock(&iv_cm.lock);
	if (id->state == ID_LISTEN && iv_cm.n_dev > 0)
		iv_cm.closed[iv_cm.n_closed++ % IV_CM_CLOSED] =
			(struct iv_cm_closed){service_of(id), iv_cm_now(iv_cm.dev[0])};
	id->state = ID_DONE;
	pthread_mutex_unlock(&iv_cm.lock);
}

static bool just_closed(uint64_t service_id, uint64_t now)
{
	for (unsigned i = 0; i < IV_CM_CLOSED && i < iv_cm.n_closed; i++)
		if (iv_cm.closed[i].service_id == service_id &&
			now - iv_cm.closed[i].at < CLOSED_NS)
			return true;
	return false;
}

struct iv_id *iv_cm_find_listener(
	const struct cm_path *path, uint64_t service_id, bool ud, uint64_t now, unsigned *reason)
{
	struct iv_id *id, *found = NULL;

	pthread_mutex_lock(&iv_cm.lock);
	*reason = just_closed(service_id, now) ? CM_IGNORE : CM_LATER;
	LIST_FOREACH(id, &iv_cm.ids, link)
	if (listens(id, path, service_id, ud))
		found = id;
	if (found && found->pending >= found->backlog) {
		found = NULL;
		*reason = CM_IGNORE;
	}
	if (found)
		found->pending++;
	pthread_mutex_unlock(&iv_cm.lock);
	return found;
}

void iv_cm_answered(struct iv_id *id)
{
	pthread_mutex_lock(&iv_cm.lock);
	if (id->listener)
		id->listener->pending--;
	id->listener = NULL;
	pthread_mutex_unlock(&iv_cm.lock);
}

static void learn_req(struct iv_id *id, const struct cm_req *req)
{
	id->remote_qpn = req->qpn;
	id->remote_psn = req->psn;
	id->responder_resources = iv_cm_depth(req->initiator_depth);
	id->initiator_depth = iv_cm_depth(req->responder_resources);
	id->retry_count = req->retry_count;
	id->rnr_retry = req->rnr_retry;
	id->mtu = req->mtu;
	id->ack_timeout = req->ack_timeout;
	id->flow_label = req->flow_label;
	id->tos = req->traffic_class;
	id->base.qp_type = req->transport == CM_UC ? IBV_QPT_UC : IBV_QPT_RC;
}

static void fill_request(struct iv_cm_event *event, const struct cm_msg *msg)
{
	const unsigned len = cm_private_len(msg->attr) - IPCM_HDR_LEN;
	struct rdma_conn_param *conn = &event->base.param.conn;

	if (msg->attr == CM_REQ) {
		conn->responder_resources = msg->req.initiator_depth;
		conn->initiator_depth = msg->req.responder_resources;
		conn->flow_control = msg->req.flow_control;
		conn->retry_count = msg->req.retry_count;
		conn->rnr_retry_count = msg->req.rnr_retry;
		conn->srq = msg->req.srq;
		conn->qp_num = msg->req.qpn;
	}
	iv_cm_event_data(event, msg->private_data + IPCM_HDR_LEN, len);
}

struct iv_id *iv_cm_requested_id(struct iv_id *listener, struct cm_conn *conn,
	struct iv_cm_dev *cdev, const struct cm_path *path, uint16_t sport)
{
	struct iv_id *id = iv_id_new(listener->base.channel, listener->base.context,
		listener->base.ps, listener->base.qp_type);
	struct iv_gid gid = {0, 0};
	struct iv_cm_dev *found = id ? iv_cm_find(&path->local, &gid) : NULL;

	if (!id)
		return NULL;
	if (found)
		iv_cm_put(found);
	iv_id_use(id, cdev, gid);
	id->state = ID_REQUESTED;
	id->bound_any = false;
	id->local = path->local;
	id->remote = path->remote;
	id->conn = conn;
	id->listener = listener;
	iv_from_ip(&path->local, iv_cm_ip_port(&listener->base.route.addr.src_storage),
		&id->base.route.addr.src_storage);
	iv_from_ip(&path->remote, sport, &id->base.route.addr.dst_storage);
	iv_id_route(id, cdev);
	return id;
}

void iv_cm_forget_request(struct iv_id *listener)
{
	pthread_mutex_lock(&iv_cm.lock);
	listener->pending--;
	pthread_mutex_unlock(&iv_cm.lock);
}

/* As the owner, which is also what keeps the listener: iv_destroy_id waits for each. */
unsigned iv_cm_on_request(void *arg, struct cm_conn *conn, const struct cm_path *path,
	const struct cm_msg *msg, void **user)
{
	struct iv_cm_dev *cdev = arg;
	const bool ud = msg->attr == CM_SIDR_REQ;
	struct iv_cm_event *event;
	struct iv_id *listener, *id;
	struct ipcm ipcm;
	unsigned reason;
	enum ibv_mtu mtu;

	if (ipcm_parse(msg->private_data, cm_private_len(msg->attr), &ipcm))
		return CM_REJ_CONSUMER;
	mtu = rnic_active_mtu(cdev->dev->rnic, iv_cm_port(cdev->dev->rnic, &path->local));
	if (!ud && (msg->req.mtu < IBV_MTU_256 || msg->req.mtu > mtu))
		return CM_REJ_INVALID_MTU;
	listener = iv_cm_find_listener(path, ud ? msg->sidr_req.service_id : msg->req.service_id,
		ud, iv_cm_now(cdev), &reason);
	if (!listener)
		return reason;
	id = iv_cm_requested_id(listener, conn, cdev, path, ipcm.sport);
	event = id ? iv_cm_event_new(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0) : NULL;
	if (!event) {
		iv_cm_forget_request(listener);
		if (id)
			iv_id_free(id);
		return CM_IGNORE;
	}
	if (ud)
		id->service_id = msg->sidr_req.service_id;
	else
		learn_req(id, &msg->req);
	event->base.listen_id = &listener->base;
	fill_request(event, msg);
	*user = id;
	iv_cm_raise(event);
	return 0;
}
