/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA-CM on a device of iWARP: connections are TCP's, and MPA's request and reply say what the
 * connection manager's datagrams say elsewhere. Queue pairs go from INIT to RTS as they are
 * connected. */
#include <errno.h>

#include "lib/verbs/cm_internal.h"
#include "lib/verbs/iwarp_dev.h"

/* A port stays open for so long after nobody listens any more, and a peer is kept waiting: programs
 * listen for one connection after another (iv_cm_closed). */
static const uint64_t CLOSED_NS = 5000000000;

/* ---- which connection ---- */

/* As the owner, which is what keeps the ID. NULL: of none, or of one that is gone. */
static struct iv_id *id_of(const struct iwarp_link *link, uint32_t conn)
{
	struct iv_id *id;

	pthread_mutex_lock(&iv_cm.lock);
	LIST_FOREACH(id, &iv_cm.ids, link)
	if (id->iwarp_link == link && id->iwarp_conn == conn)
		break;
	pthread_mutex_unlock(&iv_cm.lock);
	return id;
}

static void let_go(struct iv_id *id)
{
	id->iwarp_link = NULL;
	id->iwarp_up = false;
}

/* ---- who listens ---- */

static struct iv_cm_tcp_port *find_port(
	struct iv_cm_dev *cdev, const struct iwarp_link *link, uint16_t port)
{
	for (unsigned i = 0; i < cdev->n_tcp_ports; i++)
		if (cdev->tcp_ports[i].link == link && cdev->tcp_ports[i].port == port)
			return &cdev->tcp_ports[i];
	return NULL;
}

static int open_port(
	struct iv_cm_dev *cdev, struct iwarp_link *link, const struct wire_ip *ip, uint16_t port)
{
	struct iv_cm_tcp_port *p = find_port(cdev, link, port);
	int ret = 0;

	if (!p) {
		ret = cdev->n_tcp_ports < IV_CM_TCP_PORTS ? iwarp_listen(link, port, port)
							  : -ENOSPC;
		if (ret)
			return ret;
		p = &cdev->tcp_ports[cdev->n_tcp_ports++];
	}
	*p = (struct iv_cm_tcp_port){link, *ip, port, UINT64_MAX};
	return 0;
}

static int open_ports(struct iv_cm_dev *cdev, const struct iv_id *id)
{
	const uint16_t port = iv_cm_ip_port(&id->base.route.addr.src_storage);
	struct iwarp_link *link;
	struct wire_ip ip;
	int ret = 0;

	for (unsigned i = 0; ret == 0 && (link = iv_iwarp_link(cdev->dev->iwarp, i, &ip)); i++)
		if (iv_cm_at(id, &ip))
			ret = open_port(cdev, link, &ip, port);
	return ret;
}

int iv_cm_iwarp_listen(const struct iv_id *id)
{
	struct iv_cm_dev *cdevs[IV_CM_DEVICES];
	const unsigned n = iv_cm_get_all(cdevs);
	int ret = 0;

	for (unsigned i = 0; i < n && ret == 0; i++) {
		struct iv_dev *dev = cdevs[i]->dev;

		if (!dev->iwarp || id->base.ps != RDMA_PS_TCP)
			continue;
		iv_own(dev);
		ret = open_ports(cdevs[i], id);
		iv_cm_flush(cdevs[i]); /* a peer may have come before */
		iv_disown(dev);
	}
	iv_cm_put_all(cdevs, n);
	return ret;
}

static bool is_listened_at(const struct iv_cm_tcp_port *p)
{
	struct iv_id *id;

	pthread_mutex_lock(&iv_cm.lock);
	LIST_FOREACH(id, &iv_cm.ids, link)
	if (id->state == ID_LISTEN && id->base.ps == RDMA_PS_TCP && iv_cm_at(id, &p->ip) &&
		iv_cm_ip_port(&id->base.route.addr.src_storage) == p->port)
		break;
	pthread_mutex_unlock(&iv_cm.lock);
	return id != NULL;
}

void iv_cm_iwarp_unlistened(void)
{
	struct iv_cm_dev *cdevs[IV_CM_DEVICES];
	const unsigned n = iv_cm_get_all(cdevs);

	for (unsigned i = 0; i < n; i++) {
		struct iv_cm_dev *cdev = cdevs[i];

		if (!cdev->dev->iwarp)
			continue;
		iv_own(cdev->dev);
		for (unsigned k = 0; k < cdev->n_tcp_ports; k++) {
			struct iv_cm_tcp_port *p = &cdev->tcp_ports[k];

			if (p->until == UINT64_MAX && !is_listened_at(p))
				p->until = iv_cm_now(cdev) + CLOSED_NS;
		}
		iv_disown(cdev->dev);
	}
	iv_cm_put_all(cdevs, n);
}

static void close_ports(struct iv_cm_dev *cdev, uint64_t now)
{
	for (unsigned i = 0; i < cdev->n_tcp_ports;) {
		struct iv_cm_tcp_port *p = &cdev->tcp_ports[i];

		if (now < p->until) {
			i++;
			continue;
		}
		iwarp_unlisten(p->link, p->port);
		*p = cdev->tcp_ports[--cdev->n_tcp_ports];
	}
}

/* ---- requests of peers ---- */

static void fill_private(struct iv_cm_event *event, const uint8_t *data, size_t len)
{
	/* As long as rdma_cm can say. */
	if (len > 0)
		iv_cm_event_data(event, data, len < IV_CM_PRIVATE ? len : IV_CM_PRIVATE);
}

/* What the peer says of READs; one of revision 1 says nothing. */
static void learn_start(struct iv_id *id, const struct mpa_start *start)
{
	id->responder_resources = iv_cm_depth(start->enhanced ? start->ord : IV_CM_MAX_DEPTH);
	id->initiator_depth = iv_cm_depth(start->enhanced ? start->ird : IV_CM_MAX_DEPTH);
}

static void fill_depths(const struct iv_id *id, struct iv_cm_event *event)
{
	event->base.param.conn.responder_resources = id->responder_resources;
	event->base.param.conn.initiator_depth = id->initiator_depth;
}

static bool raise_request(struct iv_cm_dev *cdev, struct iv_id *listener,
	const struct iv_cm_tcp_request *r, const struct cm_path *path, uint16_t sport,
	const struct mpa_start *start)
{
	struct iv_id *id = iv_cm_requested_id(listener, NULL, cdev, path, sport);
	struct iv_cm_event *event =
		id ? iv_cm_event_new(id, RDMA_CM_EVENT_CONNECT_REQUEST, 0) : NULL;

	if (!event) {
		if (id)
			iv_id_free(id);
		return false;
	}
	id->iwarp_link = r->link;
	id->iwarp_conn = r->conn;
	learn_start(id, start);
	fill_depths(id, event);
	fill_private(event, start->private_data, start->private_len);
	event->base.listen_id = &listener->base;
	iv_cm_raise(event);
	return true;
}

/* False: nobody listens now, or has room. */
static bool take_request(struct iv_cm_dev *cdev, const struct iv_cm_tcp_request *r)
{
	struct place_tuple ends;
	struct mpa_start start;
	struct iv_id *listener;
	struct cm_path path;
	unsigned reason;

	if (iwarp_request(r->link, r->conn, &start) || iwarp_ends(r->link, r->conn, &ends))
		return true; /* it is gone */
	path = (struct cm_path){ends.local, ends.remote, 0};
	listener = iv_cm_find_listener(&path, ipcm_service_id(RDMA_PS_TCP, ends.local_port), false,
		iv_cm_now(cdev), &reason);
	if (!listener)
		return false;
	if (!raise_request(cdev, listener, r, &path, ends.remote_port, &start)) {
		iv_cm_forget_request(listener);
		iwarp_close(r->link, r->conn);
	}
	return true;
}

static void take_waiting(struct iv_cm_dev *cdev, uint64_t now)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < cdev->n_requests; i++) {
		const struct iv_cm_tcp_request r = cdev->requests[i];

		if (take_request(cdev, &r))
			continue;
		if (now < r.until)
			cdev->requests[kept++] = r;
		else
			iwarp_close(r.link, r.conn);
	}
	cdev->n_requests = kept;
}

static void come(struct iv_cm_dev *cdev, struct iwarp_link *link, uint32_t conn, uint64_t now)
{
	const struct iv_cm_tcp_request r = {link, conn, now + CLOSED_NS};

	if (take_request(cdev, &r))
		return;
	if (cdev->n_requests < IV_CM_TCP_REQUESTS)
		cdev->requests[cdev->n_requests++] = r;
	else
		iwarp_close(link, conn);
}

/* ---- what becomes of connections ---- */

static void established(struct iv_id *id, const struct iwarp_event *e)
{
	struct iv_cm_event *event = iv_cm_event_new(id, RDMA_CM_EVENT_ESTABLISHED, 0);

	id->iwarp_up = true;
	if (!event)
		return;
	fill_depths(id, event);
	fill_private(event, e->private_data, e->private_len);
	iv_cm_raise(event);
}

/* As Linux names it. */
static enum rdma_cm_event_type failure(int result)
{
	switch (result) {
	case -ECONNREFUSED:
	case -ECONNRESET:
		return RDMA_CM_EVENT_REJECTED;
	case -ETIMEDOUT:
		return RDMA_CM_EVENT_UNREACHABLE;
	default:
		return RDMA_CM_EVENT_CONNECT_ERROR;
	}
}

static void closed(struct iv_id *id, const struct iwarp_event *e)
{
	const bool up = id->iwarp_up, asked = id->iwarp_asks;
	struct iv_cm_event *event;

	let_go(id);
	if (!up && !asked) /* of a peer that had no answer: to accept it fails */
		return;
	event = iv_cm_event_new(
		id, up ? RDMA_CM_EVENT_DISCONNECTED : failure(e->result), up ? 0 : e->result);
	if (!event)
		return;
	fill_private(event, e->private_data, e->private_len);
	iv_cm_raise(event);
}

static void on_event(
	struct iv_cm_dev *cdev, struct iwarp_link *link, const struct iwarp_event *e, uint64_t now)
{
	struct iv_id *id = id_of(link, e->conn);

	if (e->type == IWARP_REQUEST)
		come(cdev, link, e->conn, now);
	else if (id && e->type == IWARP_ESTABLISHED)
		established(id, e);
	else if (id)
		closed(id, e);
}

unsigned iv_cm_iwarp_turn(struct iv_cm_dev *cdev, uint64_t now)
{
	struct iwarp_event event;
	struct iwarp_link *link;
	unsigned n = 0;

	for (; iv_iwarp_poll(cdev->dev->iwarp, &link, &event); n++)
		on_event(cdev, link, &event, now);
	take_waiting(cdev, now);
	close_ports(cdev, now);
	return n;
}

uint64_t iv_cm_iwarp_deadline(const struct iv_cm_dev *cdev)
{
	uint64_t due = UINT64_MAX;

	for (unsigned i = 0; i < cdev->n_tcp_ports; i++)
		due = cdev->tcp_ports[i].until < due ? cdev->tcp_ports[i].until : due;
	for (unsigned i = 0; i < cdev->n_requests; i++)
		due = cdev->requests[i].until < due ? cdev->requests[i].until : due;
	return due;
}

/* ---- what the program asks for ---- */

/* The ID's own queue pair; whose number alone is known is not connected here. */
static int offer_of(
	const struct iv_id *id, const struct rdma_conn_param *param, struct mpa_offer *offer)
{
	if (!id->base.qp) {
		iv_debug("rdma_cm on iWARP connects queue pairs of rdma_create_qp only");
		return -EOPNOTSUPP;
	}
	*offer = (struct mpa_offer){.ird = id->responder_resources, .ord = id->initiator_depth};
	if (!param)
		return 0;
	if (param->private_data_len && !param->private_data)
		return -EINVAL;
	offer->private_len = param->private_data_len;
	offer->private_data = param->private_data;
	return 0;
}

static int connect_link(
	struct iv_id *id, struct iv_cm_dev *cdev, const struct mpa_offer *offer, uint64_t now)
{
	const struct sockaddr_storage *dst = &id->base.route.addr.dst_storage;
	struct iwarp_link *link = iv_iwarp_find(cdev->dev->iwarp, &id->local);
	struct place_tuple ends;
	uint32_t conn;
	int ret;

	if (!link || iv_is_group(&id->remote))
		return -EADDRNOTAVAIL;
	if (iv_iwarp_find(cdev->dev->iwarp, &id->remote)) {
		iv_debug("a device of iWARP does not connect to itself");
		return -EOPNOTSUPP;
	}
	ret = iwarp_connect(link, now, id->next_hop, &id->remote, iv_cm_ip_port(dst),
		iv_qp(id->base.qp)->qp, offer, 0, &conn);
	if (ret)
		return ret;
	id->iwarp_link = link;
	id->iwarp_conn = conn;
	id->iwarp_asks = true;
	/* The port that the peer sees. */
	if (iwarp_ends(link, conn, &ends) == 0)
		iv_from_ip(&id->local, ends.local_port, &id->base.route.addr.src_storage);
	return 0;
}

int iv_cm_iwarp_connect(struct iv_id *id, const struct rdma_conn_param *param)
{
	struct mpa_offer offer;
	struct iv_cm_dev *cdev;
	int ret;

	id->responder_resources = iv_cm_depth(param->responder_resources);
	id->initiator_depth = iv_cm_depth(param->initiator_depth);
	ret = offer_of(id, param, &offer);
	if (ret == 0)
		ret = iv_cm_begin(id, &cdev);
	if (ret)
		return ret;
	ret = id->iwarp_link ? -EINVAL : connect_link(id, cdev, &offer, iv_cm_now(cdev));
	return iv_cm_done(cdev, ret);
}

/* Depths as iv_accept has set them. */
int iv_cm_iwarp_accept(struct iv_id *id, const struct rdma_conn_param *param)
{
	struct mpa_offer offer;
	struct iv_cm_dev *cdev;
	int ret = offer_of(id, param, &offer);

	if (ret == 0)
		ret = iv_cm_begin(id, &cdev);
	if (ret)
		return ret;
	ret = -EBADF;
	if (id->iwarp_link)
		ret = iwarp_accept(id->iwarp_link, iv_cm_now(cdev), id->iwarp_conn,
			iv_qp(id->base.qp)->qp, &offer, 0);
	return iv_cm_done(cdev, ret == -EBADF ? -ECONNRESET : ret);
}

int iv_cm_iwarp_reject(struct iv_id *id, const void *data, size_t len)
{
	struct iv_cm_dev *cdev;
	int ret = iv_cm_begin(id, &cdev);

	if (ret)
		return ret;
	ret = -EINVAL;
	if (id->iwarp_link && !id->iwarp_asks && !id->iwarp_up)
		ret = iwarp_reject(
			id->iwarp_link, iv_cm_now(cdev), id->iwarp_conn, data, (uint16_t)len);
	if (ret == 0)
		let_go(id);
	return iv_cm_done(cdev, ret);
}

int iv_cm_iwarp_disconnect(struct iv_id *id)
{
	struct iv_cm_dev *cdev;
	int ret = iv_cm_begin(id, &cdev);

	if (ret)
		return ret;
	/* One that is over by itself has told so. */
	if (id->iwarp_link)
		iwarp_close(id->iwarp_link, id->iwarp_conn);
	else if (!id->base.qp)
		ret = -EINVAL;
	return iv_cm_done(cdev, ret);
}

void iv_cm_iwarp_drop(struct iv_id *id)
{
	if (id->iwarp_link)
		iwarp_close(id->iwarp_link, id->iwarp_conn);
	let_go(id);
}

static struct iv_id *connected_id(const struct iv_cm_dev *cdev)
{
	struct iv_id *id;

	pthread_mutex_lock(&iv_cm.lock);
	LIST_FOREACH(id, &iv_cm.ids, link)
	if (id->cdev == cdev && id->iwarp_link)
		break;
	pthread_mutex_unlock(&iv_cm.lock);
	return id;
}

void iv_cm_iwarp_shutdown(struct iv_cm_dev *cdev)
{
	struct iv_id *id;

	while ((id = connected_id(cdev)))
		iv_cm_iwarp_drop(id);
	for (unsigned i = 0; i < cdev->n_requests; i++)
		iwarp_close(cdev->requests[i].link, cdev->requests[i].conn);
	cdev->n_requests = 0;
	close_ports(cdev, UINT64_MAX);
}
