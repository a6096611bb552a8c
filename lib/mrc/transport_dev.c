/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device keeps for all its queue pairs of MRC: peers and their ports, endpoint requests. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mrc/transport_priv.h"
#include "lib/rnic/device.h"
#include "lib/wire/roce.h"

enum { NS_PER_US = 1000 };
static const uint64_t HOP_ASKED_NS = 10000000, HOP_LATER_NS = 1000000000;

/* ---- open and close ---- */

static void set_classes(struct mrc_dev *dev)
{
	const struct mrc_settings *s = &dev->set;
	const uint32_t dscp[MRC_N_CLASSES] = {
		[MRC_CLASS_NO_TRIM] = s->dscp_no_trim,
		[MRC_CLASS_TRIMMABLE] = s->dscp_trimmable,
		[MRC_CLASS_TRIMMABLE_RETX] = s->dscp_trimmable_retx,
		[MRC_CLASS_TRIMMED] = s->dscp_trimmed,
		[MRC_CLASS_TRIMMED_LAST] = s->dscp_trimmed_lasthop,
		[MRC_CLASS_CONTROL] = s->dscp_control,
	};

	for (unsigned i = 0; i < MRC_N_CLASSES; i++)
		dev->tos[i] = (uint8_t)(dscp[i] << 2);
}

static int set_config(struct mrc_dev *dev, const struct rnic_mrc_config *c)
{
	const unsigned own = dev->rnic->n_ports;

	dev->set = c->settings ? *c->settings : mrc_settings_default();
	if (c->n_ports > MRC_MAX_PORTS || (own > 1 && c->n_ports && c->n_ports != own) ||
		mrc_settings_check(&dev->set, NULL, NULL) < 0)
		return -EINVAL;
	dev->c = *c;
	dev->c.settings = &dev->set;
	dev->c.n_ports = c->n_ports ? c->n_ports : own;
	dev->c.codec = c->codec ? c->codec : &mrc_codec_ocp_r1;
	dev->base_rtt_ns = dev->set.base_rtt_us * (uint64_t)NS_PER_US;
	dev->wanted = (uint8_t)((1u << dev->c.n_ports) - 1);
	dev->up = mrc_planes_of(dev, dev->rnic->up);
	set_classes(dev);
	return 0;
}

static int make_auto(struct mrc_dev *dev)
{
	const unsigned n = dev->set.auto_evs / dev->c.n_ports * dev->c.n_ports;

	dev->auto4 = malloc(sizeof(*dev->auto4));
	dev->auto6 = malloc(sizeof(*dev->auto6));
	if (dev->auto4 == NULL || dev->auto6 == NULL)
		return -ENOMEM;
	rnic_mrc_paths_auto(dev->auto4, RNIC_MRC_UDP, dev->c.n_ports, n, rnic_random(dev->rnic));
	return rnic_mrc_paths_auto(
		dev->auto6, RNIC_MRC_STEV, dev->c.n_ports, n, rnic_random(dev->rnic));
}

static void free_dev(struct mrc_dev *dev)
{
	free(dev->auto4);
	free(dev->auto6);
	free(dev);
}

int rnic_mrc_open(struct rnic *rnic, const struct rnic_mrc_config *config)
{
	struct mrc_dev *dev = calloc(1, sizeof(*dev));
	int err;

	if (dev == NULL)
		return -ENOMEM;
	dev->rnic = rnic;
	err = set_config(dev, config);
	if (err == 0)
		err = make_auto(dev);
	if (err == 0)
		err = transport_own(rnic, &rnic_mrc, dev);
	if (err < 0)
		free_dev(dev);
	return err;
}

void mrc_close(struct rnic *rnic)
{
	free_dev(dev_of(rnic));
}

static const struct transport_counter counters[] = {
#define X(name, help) {#name, offsetof(struct mrc_dev, n.name)},
	MRC_DEV_COUNTERS(X)
#undef X
};

const char *rnic_mrc_counter(const struct rnic *rnic, unsigned index, uint64_t *value)
{
	const struct mrc_dev *dev = dev_of(rnic);

	if (dev == NULL || index >= sizeof(counters) / sizeof(counters[0]))
		return NULL;
	memcpy(value, (const uint8_t *)dev + counters[index].offset, sizeof(*value));
	return counters[index].name;
}

/* ---- peers ---- */

static unsigned bucket_of(const struct wire_ip *src, const struct wire_ip *dst)
{
	uint32_t h = 2166136261u;

	for (unsigned i = 0; i < sizeof(src->b); i++)
		h = (h ^ src->b[i] ^ (uint32_t)dst->b[i] << 8) * 16777619u;
	return (h ^ h >> 16) % MRC_PEER_BUCKETS;
}

static struct mrc_peer *find_peer(
	struct mrc_dev *dev, const struct wire_ip *src, const struct wire_ip *dst)
{
	struct mrc_peer *peer;

	LIST_FOREACH(peer, &dev->peers[bucket_of(src, dst)], link)
	{
		if (wire_ip_eq(&peer->src, src) && wire_ip_eq(&peer->dst, dst))
			return peer;
	}
	return NULL;
}

void mrc_take_ports(struct mrc_conn *c)
{
	const uint8_t usable = mrc_ports_usable(&c->peer->ports) & c->hops;

	for (unsigned p = 0; p < c->dev->c.n_ports; p++)
		mrc_evset_port(&c->evs, p, usable >> p & 1);
}

/* What one of the peer's ends has said goes to all its connections. */
static void ports_changed(struct mrc_peer *peer)
{
	struct mrc_conn *c;

	LIST_FOREACH(c, &peer->conns, of_peer)
	{
		mrc_take_ports(c);
		qp_ready(c->qp);
		mrc_schedule(c);
	}
}

void mrc_join(struct mrc_conn *c)
{
	const struct wire_flow *flow = &c->qp->path.flow;
	struct mrc_dev *dev = c->dev;
	struct mrc_peer *peer = find_peer(dev, &flow->src, &flow->dst);

	/* Without peers nobody has told of ports. */
	dev->up = dev->wanted & mrc_planes_of(dev, dev->rnic->up);
	if (peer == NULL) {
		peer = c->spare;
		c->spare = NULL;
		*peer = (struct mrc_peer){.src = flow->src, .dst = flow->dst};
		mrc_ports_init(&peer->ports, dev->c.n_ports, &dev->set);
		LIST_INSERT_HEAD(&dev->peers[bucket_of(&peer->src, &peer->dst)], peer, link);
		mrc_ports_local(&peer->ports, dev->up, 0);
	}
	c->peer = peer;
	LIST_INSERT_HEAD(&peer->conns, c, of_peer);
	mrc_take_ports(c);
}

void mrc_leave(struct mrc_conn *c)
{
	struct mrc_peer *peer = c->peer;

	if (peer == NULL)
		return;
	mrc_window_leave(c);
	LIST_REMOVE(c, of_peer);
	c->peer = NULL;
	if (!LIST_EMPTY(&peer->conns)) {
		mrc_schedule(LIST_FIRST(&peer->conns));
		return;
	}
	LIST_REMOVE(peer, link);
	free(peer);
}

static void own_ports(struct mrc_dev *dev, uint64_t now)
{
	const uint8_t up = dev->wanted & mrc_planes_of(dev, dev->rnic->up);
	struct mrc_peer *peer;

	if (up == dev->up)
		return;
	dev->up = up;
	for (unsigned i = 0; i < MRC_PEER_BUCKETS; i++) {
		LIST_FOREACH(peer, &dev->peers[i], link)
		{
			mrc_ports_local(&peer->ports, up, now);
			peer->status_left &= up;
			ports_changed(peer);
		}
	}
}

void rnic_mrc_ports(struct rnic *rnic, uint8_t up, uint64_t now)
{
	struct mrc_dev *dev = dev_of(rnic);

	dev->wanted = up & (uint8_t)((1u << dev->c.n_ports) - 1);
	own_ports(dev, now);
}

void mrc_port(struct rnic_qp *qp, unsigned port, bool up, uint64_t now)
{
	(void)port;
	own_ports(conn_of(qp)->dev, now);
	if (up)
		mrc_find_hops(conn_of(qp), now);
}

/* ---- next hops ---- */

/* Of the planes whose port is up: 0 if all are known, else the last error. */
static int find_hops(struct mrc_conn *c, const struct rnic_path *path, uint64_t now)
{
	const struct mrc_dev *dev = c->dev;
	const uint8_t up = mrc_planes_of(dev, dev->rnic->up);
	int err = 0;

	for (unsigned p = 0; p < dev->c.n_ports; p++) {
		struct wire_flow *flow = &c->plane[p].flow;
		int rc;

		if (c->hops >> p & 1)
			continue;
		c->plane[p] = path_by_port(path, dev->rnic, mrc_port_of(dev, p));
		if (!(up >> p & 1))
			continue;
		rc = rnic_next_hop(dev->rnic, c->plane[p].port, &flow->dst, flow->dmac, now);
		c->hops |= (uint8_t)((rc == 0) << p);
		/* While one is being asked for, the answer may be waited for. */
		err = rc == -EAGAIN || err == 0 ? rc : err;
	}
	return err;
}

int mrc_resolve(struct rnic_qp *qp, struct rnic_path *path, uint64_t now)
{
	struct mrc_conn *c = conn_of(qp);
	int err;

	c->hops = 0;
	err = find_hops(c, path, now);
	/* One plane is enough to begin with. */
	if (err < 0 && (err == -EAGAIN || c->hops == 0))
		return err;
	memcpy(path->flow.dmac, c->plane[__builtin_ctz(c->hops | 1u << 7)].flow.dmac,
		sizeof(path->flow.dmac));
	return 0;
}

void mrc_find_hops(struct mrc_conn *c, uint64_t now)
{
	const uint8_t before = c->hops;
	const int err = find_hops(c, &c->qp->path, now);

	c->hops_at = err == -EAGAIN ? now + HOP_ASKED_NS
		     : err < 0      ? now + HOP_LATER_NS
				    : UINT64_MAX;
	if (c->hops == before)
		return;
	mrc_take_ports(c);
	qp_ready(c->qp);
}

/* ---- port status ---- */

void mrc_status_due(struct mrc_conn *c, uint64_t now)
{
	struct mrc_peer *peer = c->peer;

	if (peer == NULL || LIST_FIRST(&peer->conns) != c || peer->status_left ||
		!mrc_ports_tx(&peer->ports, now, &peer->status))
		return;
	peer->own_id = peer->status.id;
	peer->wire_id = c->dev->next_status += 2;
	peer->status.id = peer->wire_id;
	peer->status_left = peer->ports.up;
}

/* Any path of the port: the update says more than the path's own state. */
static int path_of_port(const struct mrc_conn *c, unsigned port)
{
	if (c->reverse.ev[port] != MRC_NO_EV)
		return c->reverse.ev[port];
	for (unsigned i = 0; i < c->evs.n; i++) {
		if (c->evs.ev[i].port == port && c->evs.ev[i].state != MRC_EV_DENIED)
			return (int)i;
	}
	return MRC_NO_EV;
}

bool mrc_status_next(struct mrc_conn *c, uint8_t room, struct mrc_pkt *pkt, int *ev)
{
	struct mrc_peer *peer = c->peer;

	if (peer == NULL || LIST_FIRST(&peer->conns) != c)
		return false;
	while (peer->status_left & room) {
		const unsigned port = (unsigned)__builtin_ctz(peer->status_left & room);

		peer->status_left &= (uint8_t) ~(1u << port);
		*ev = path_of_port(c, port);
		if (*ev == MRC_NO_EV)
			continue;
		*pkt = (struct mrc_pkt){.kind = MRC_KIND_ENDPOINT_REQUEST,
			.depth = MRC_DEPTH_ALL,
			.endpoint = peer->status};
		c->dev->n.asked++;
		return true;
	}
	return false;
}

/* ---- endpoint requests: asking ---- */

static struct mrc_asked *place_of(struct mrc_dev *dev, uint16_t id)
{
	const unsigned half = RNIC_MRC_ASKED / 2;

	return &dev->asked[(id & 1) * half + (id >> 1) % half];
}

uint16_t mrc_asks(struct mrc_conn *c, uint16_t probe_id, uint64_t now)
{
	struct mrc_dev *dev = c->dev;
	const uint16_t id = (uint16_t)((dev->next_probe += 2) | 1);
	struct mrc_asked *a = place_of(dev, id);

	if (a->used && !a->reverse)
		return 0; /* a caller waits for that one */
	*a = (struct mrc_asked){.id = id,
		.used = true,
		.reverse = true,
		.qpn = c->qp->qpn,
		.probe_id = probe_id,
		.at = now,
		.src = c->qp->path.flow.src,
		.dst = c->qp->path.flow.dst};
	dev->n.asked++;
	return id;
}

static int check_request(const struct mrc_dev *dev, const struct rnic_mrc_request *r)
{
	const struct rnic_mrc_paths one = {.format = r->format, .n = 1, .path = {r->path}};
	const bool v4 = wire_ip_is4(&r->src);

	if (r->path.port >= dev->c.n_ports ||
		rnic_own_ip(dev->rnic, mrc_port_of(dev, r->path.port), &r->src) < 0 ||
		v4 != wire_ip_is4(&r->dst) || r->dscp > 63 ||
		(r->op != MRC_PORT_STATUS && r->op != MRC_EV_PROBE))
		return -EINVAL;
	return mrc_paths_check(&one, dev->c.n_ports, v4);
}

static int send_request(struct mrc_dev *dev, const struct rnic_mrc_request *r,
	const struct rnic_path *plane, uint16_t id, uint64_t now)
{
	const struct mrc_pkt pkt = {.kind = MRC_KIND_ENDPOINT_REQUEST,
		.depth = MRC_DEPTH_ALL,
		.endpoint = {.id = id, .op = r->op, .port_mask = r->port_mask, .ts = mrc_ts(now)}};
	const struct mrc_way way = {.plane = plane, .format = r->format, .ev = &r->path};
	uint8_t *out = rnic_reply(dev->rnic, plane->port);
	int len;

	if (out == NULL)
		return -ENOSPC;
	len = mrc_put_packet(dev, &way, &pkt, (uint8_t)(r->dscp << 2), out,
		dev->rnic->port[plane->port].reply_cap);
	if (len < 0)
		return len;
	rnic_reply_send(dev->rnic, plane->port, len);
	return 0;
}

int rnic_mrc_ask(struct rnic *rnic, const struct rnic_mrc_request *r, uint64_t now)
{
	struct mrc_dev *dev = dev_of(rnic);
	struct mrc_asked *a;
	struct rnic_path plane;
	uint16_t id;
	int err = dev == NULL ? -EINVAL : check_request(dev, r);

	if (err < 0)
		return err;
	plane = mrc_path_between(dev, mrc_port_of(dev, r->path.port), &r->src, &r->dst);
	err = rnic_next_hop(rnic, plane.port, &r->dst, plane.flow.dmac, now);
	if (err < 0)
		return err;
	if (r->op == MRC_PORT_STATUS)
		id = dev->next_status += 2;
	else
		id = (uint16_t)((dev->next_probe += 2) | 1);
	a = place_of(dev, id);
	if (a->used && !a->reverse)
		return -ENOSPC;
	err = send_request(dev, r, &plane, id, now);
	if (err < 0)
		return err;
	*a = (struct mrc_asked){.id = id,
		.used = true,
		.cookie = r->cookie,
		.at = now,
		.ts = mrc_ts(now),
		.src = r->src,
		.dst = r->dst};
	dev->n.asked++;
	return 0;
}

void rnic_mrc_forget(struct rnic *rnic, uint64_t cookie)
{
	struct mrc_dev *dev = dev_of(rnic);

	for (unsigned i = 0; dev != NULL && i < RNIC_MRC_ASKED; i++) {
		if (!dev->asked[i].reverse && dev->asked[i].cookie == cookie)
			dev->asked[i].used = false;
	}
}

/* ---- endpoint requests: answering ---- */

/* By the reverse path of a connection if there is one, else back the way it came. */
static int answer(struct mrc_dev *dev, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, const struct mrc_endpoint *request)
{
	const struct mrc_pkt m = {.kind = MRC_KIND_ENDPOINT_RESPONSE,
		.depth = MRC_DEPTH_ALL,
		.endpoint = mrc_endpoint_answer(request)};
	const struct rnic_mrc_path back = {
		.ev = mrc_ev_get(frame + pkt->l3_off, dev->set.ev_order) &
		      (pkt->ip_ver == 4 ? UINT16_MAX : UINT32_MAX)};
	struct rnic_path plane = mrc_path_between(dev, port, &pkt->dst, &pkt->src);
	struct mrc_way way = {.plane = &plane,
		.format = pkt->ip_ver == 4 ? RNIC_MRC_UDP : RNIC_MRC_STEV,
		.ev = &back};
	struct mrc_peer *peer = find_peer(dev, &pkt->dst, &pkt->src);
	uint8_t *out;
	int len, ev;

	memcpy(plane.flow.dmac, frame + 6, sizeof(plane.flow.dmac));
	if (peer != NULL) {
		struct mrc_conn *c = LIST_FIRST(&peer->conns);

		ev = mrc_reverse_next(&c->reverse, &c->evs, c->evs.up);
		if (ev != MRC_NO_EV)
			way = mrc_way_of(c, (unsigned)ev);
	}
	out = rnic_reply(dev->rnic, way.plane->port);
	if (out == NULL)
		return -ENOSPC;
	len = mrc_put_packet(dev, &way, &m, dev->tos[MRC_CLASS_CONTROL], out,
		dev->rnic->port[way.plane->port].reply_cap);
	rnic_reply_send(dev->rnic, way.plane->port, len);
	dev->n.answers++;
	return 0;
}

static void rx_status(struct mrc_dev *dev, struct mrc_peer *peer, const struct mrc_endpoint *status)
{
	const uint8_t before = peer->ports.peer_up;

	dev->n.statuses++;
	if (!mrc_ports_update(&peer->ports, status))
		dev->n.stale++;
	else if (peer->ports.peer_up != before)
		ports_changed(peer);
}

static unsigned rx_request(struct mrc_dev *dev, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, const struct mrc_endpoint *request, uint64_t now)
{
	dev->n.requests++;
	if (!mrc_answers_take(&dev->answered, &dev->set, now))
		return RNIC_DROP_BUSY;
	if (request->op == MRC_PORT_STATUS) {
		struct mrc_peer *peer = find_peer(dev, &pkt->dst, &pkt->src);

		if (peer == NULL) {
			dev->n.strange++;
			return RNIC_DROP_SOURCE;
		}
		rx_status(dev, peer, request);
	} else if (request->op != MRC_EV_PROBE) {
		return RNIC_DROP_UNSUPPORTED;
	}
	return answer(dev, port, frame, pkt, request) < 0 ? RNIC_DROP_REPLY_QUEUE : 0;
}

/* The time that the peer took, which it has added to the time stamp that it gives back; 0: it has
 * not, or that cannot be. */
static uint64_t peers_share(
	const struct mrc_dev *dev, const struct mrc_asked *a, uint16_t ts, uint64_t rtt_ns)
{
	const uint64_t share = (uint64_t)(uint16_t)(ts - a->ts) * MRC_TS_NS;

	return rtt_ns < dev->set.stamps_us * (uint64_t)NS_PER_US && share < rtt_ns ? share : 0;
}

static void answered(
	struct mrc_dev *dev, unsigned port, struct mrc_asked *a, uint16_t ts, uint64_t now)
{
	const struct rnic_mrc_events *events = &dev->c.events;
	const uint64_t rtt_ns = now - a->at, share = peers_share(dev, a, ts, rtt_ns);

	a->used = false;
	if (a->reverse) {
		struct rnic_qp *qp = rnic_qp_find(dev->rnic, a->qpn);

		if (qp != NULL && qp->ops == &rnic_mrc && conn_of(qp)->receives)
			mrc_reverse_answered(&conn_of(qp)->reverse, &conn_of(qp)->evs, a->probe_id);
	} else if (events->answered != NULL) {
		events->answered(events->arg, a->cookie, port, rtt_ns - share, share > 0);
	}
}

static unsigned rx_response(struct mrc_dev *dev, unsigned port, const struct wire_pkt *pkt,
	const struct mrc_endpoint *response, uint64_t now)
{
	const uint16_t id = response->id;
	struct mrc_asked *a = place_of(dev, id);
	struct mrc_peer *peer;

	if (a->used && a->id == id && wire_ip_eq(&a->src, &pkt->dst) &&
		wire_ip_eq(&a->dst, &pkt->src)) {
		answered(dev, port, a, response->ts, now);
		return 0;
	}
	peer = find_peer(dev, &pkt->dst, &pkt->src);
	if (peer != NULL && peer->ports.unanswered && peer->wire_id == id) {
		mrc_ports_answered(&peer->ports, peer->own_id, now);
		mrc_schedule(LIST_FIRST(&peer->conns));
		return 0;
	}
	dev->n.unasked++;
	return RNIC_DROP_UNASKED;
}

void mrc_count_way(struct mrc_dev *dev, const struct wire_pkt *pkt, bool cut)
{
	dev->n.cut += cut;
	dev->n.tunnelled += pkt->l3_off > ETH_HDR_LEN + VLAN_HDR_LEN;
}

bool mrc_rx_device(struct rnic *rnic, unsigned port, const uint8_t *frame,
	const struct wire_pkt *pkt, uint64_t now, unsigned *drop)
{
	const size_t bth = pkt->l4_off + sizeof(struct udp_hdr);
	struct mrc_dev *dev = dev_of(rnic);
	const bool cut = mrc_is_cut(dev, pkt->tos);
	enum mrc_drop bad;
	struct mrc_pkt m;

	mrc_count_way(dev, pkt, cut);
	if (pkt->dqpn != MRC_ENDPOINT_QPN)
		return false;
	bad = dev->c.codec->decode(frame + bth, pkt->end - bth, cut, &m);
	if (bad != MRC_OK)
		*drop = RNIC_DROP_MRC_SHORT - MRC_DROP_SHORT + bad;
	else if (m.kind == MRC_KIND_ENDPOINT_REQUEST)
		*drop = rx_request(dev, port, frame, pkt, &m.endpoint, now);
	else if (m.kind == MRC_KIND_ENDPOINT_RESPONSE)
		*drop = rx_response(dev, port, pkt, &m.endpoint, now);
	else
		return false; /* a queue pair may have this number, too */
	return true;
}
