/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/wire/cm.h"

#include <assert.h>
#include <errno.h>

#include "lib/wire/bytes.h"

/* 13.4.3: the header of every management datagram. */
struct mad_hdr {
	uint8_t base_version, mgmt_class, class_version, method;
	uint8_t status[2], class_specific[2];
	uint8_t tid[8];
	uint8_t attr[2], reserved[2], modifier[4];
};
static_assert(sizeof(struct mad_hdr) == 24, "MAD header is 24 bytes");

enum { MAD_BASE_VERSION = 1, MAD_CLASS_CM = 7, CM_CLASS_VERSION = 2, MAD_SEND = 3 };

struct path {
	uint8_t local_lid[2], remote_lid[2];
	uint8_t local_gid[16], remote_gid[16];
	uint8_t flow_rate[4]; /* flow label 20, reserved 6, packet rate 6 */
	uint8_t traffic_class, hop_limit;
	uint8_t sl;          /* SL 4, subnet local 1, reserved 3 */
	uint8_t ack_timeout; /* 5, reserved 3 */
};
static_assert(sizeof(struct path) == 44, "a path is 44 bytes");

struct req {
	uint8_t local_id[4], reserved0[4];
	uint8_t service_id[8], ca_guid[8];
	uint8_t reserved1[4], qkey[4];
	uint8_t qpn[3], responder_resources;
	uint8_t local_eecn[3], initiator_depth;
	uint8_t remote_eecn[3], remote_timeout; /* 5, transport 2, flow control 1 */
	uint8_t psn[3], local_timeout;          /* 5, retry count 3 */
	uint8_t pkey[2], mtu;                   /* 4, RDC exists 1, RNR retry count 3 */
	uint8_t max_retries;                    /* 4, SRQ 1, extended transport type 3 */
	struct path primary, alternate;
	uint8_t private_data[CM_REQ_PRIVATE];
};

struct mra {
	uint8_t local_id[4], remote_id[4];
	uint8_t about;           /* 2, reserved 6 */
	uint8_t service_timeout; /* 5, reserved 3 */
	uint8_t private_data[CM_MRA_PRIVATE];
};

struct rej {
	uint8_t local_id[4], remote_id[4];
	uint8_t about;    /* 2, reserved 6 */
	uint8_t info_len; /* 7, reserved 1 */
	uint8_t reason[2], info[CM_REJ_INFO_MAX];
	uint8_t private_data[CM_REJ_PRIVATE];
};

struct rep {
	uint8_t local_id[4], remote_id[4], qkey[4];
	uint8_t qpn[3], reserved0;
	uint8_t local_eecn[3], reserved1;
	uint8_t psn[3], reserved2;
	uint8_t responder_resources, initiator_depth;
	uint8_t ack_delay; /* 5, failover 2, flow control 1 */
	uint8_t rnr_retry; /* 3, SRQ 1, reserved 4 */
	uint8_t ca_guid[8];
	uint8_t private_data[CM_REP_PRIVATE];
};

/* RTU and DREP. */
struct plain {
	uint8_t local_id[4], remote_id[4];
	uint8_t private_data[CM_RTU_PRIVATE];
};

struct dreq {
	uint8_t local_id[4], remote_id[4];
	uint8_t qpn[3], reserved;
	uint8_t private_data[CM_DREQ_PRIVATE];
};

struct sidr_req {
	uint8_t request_id[4], pkey[2], reserved[2];
	uint8_t service_id[8];
	uint8_t private_data[CM_SIDR_REQ_PRIVATE];
};

struct sidr_rep {
	uint8_t request_id[4];
	uint8_t status, info_len, reserved[2];
	uint8_t qpn[3], reserved1;
	uint8_t service_id[8], qkey[4], info[CM_REJ_INFO_MAX];
	uint8_t private_data[CM_SIDR_REP_PRIVATE];
};

enum { BODY_LEN = CM_MAD_LEN - sizeof(struct mad_hdr) };
static_assert(sizeof(struct req) == BODY_LEN && sizeof(struct mra) == BODY_LEN &&
		      sizeof(struct rej) == BODY_LEN && sizeof(struct rep) == BODY_LEN &&
		      sizeof(struct plain) == BODY_LEN && sizeof(struct dreq) == BODY_LEN &&
		      sizeof(struct sidr_req) == BODY_LEN && sizeof(struct sidr_rep) == BODY_LEN,
	"messages fill the datagram");

unsigned cm_private_len(unsigned attr)
{
	switch (attr) {
#define X(sym, id, len) \
	case CM_##sym:  \
		return len;
		CM_MESSAGES(X)
#undef X
	default:
		return 0;
	}
}

const char *cm_attr_name(unsigned attr)
{
	switch (attr) {
#define X(sym, id, len) \
	case CM_##sym:  \
		return #sym;
		CM_MESSAGES(X)
#undef X
	default:
		return "unknown";
	}
}

/* ---- parsing ---- */

static void parse_path(const struct path *p, struct cm_req *req)
{
	uint32_t flow = get_be32(p->flow_rate);

	memcpy(req->sgid.b, p->local_gid, sizeof(req->sgid.b));
	memcpy(req->dgid.b, p->remote_gid, sizeof(req->dgid.b));
	req->flow_label = flow >> 12;
	req->rate = flow & 0x3f;
	req->traffic_class = p->traffic_class;
	req->hop_limit = p->hop_limit;
	req->sl = p->sl >> 4;
	req->subnet_local = p->sl >> 3 & 1;
	req->ack_timeout = p->ack_timeout >> 3;
}

static int parse_req(const struct req *w, struct cm_msg *msg)
{
	static const uint8_t none[16];
	struct cm_req *req = &msg->req;

	req->service_id = get_be64(w->service_id);
	memcpy(req->ca_guid, w->ca_guid, sizeof(req->ca_guid));
	req->qkey = get_be32(w->qkey);
	req->qpn = get_be24(w->qpn);
	req->psn = get_be24(w->psn);
	req->responder_resources = w->responder_resources;
	req->initiator_depth = w->initiator_depth;
	req->remote_timeout = w->remote_timeout >> 3;
	req->transport = w->remote_timeout >> 1 & 3;
	req->flow_control = w->remote_timeout & 1;
	req->local_timeout = w->local_timeout >> 3;
	req->retry_count = w->local_timeout & 7;
	req->pkey = get_be16(w->pkey);
	req->mtu = w->mtu >> 4;
	req->rnr_retry = w->mtu & 7;
	req->max_retries = w->max_retries >> 4;
	req->srq = w->max_retries >> 3 & 1;
	parse_path(&w->primary, req);
	req->alternate = get_be16(w->alternate.local_lid) != 0 ||
			 memcmp(w->alternate.local_gid, none, sizeof(none)) != 0;
	memcpy(msg->private_data, w->private_data, sizeof(w->private_data));
	return 0;
}

static int parse_rep(const struct rep *w, struct cm_msg *msg)
{
	struct cm_rep *rep = &msg->rep;

	rep->qkey = get_be32(w->qkey);
	rep->qpn = get_be24(w->qpn);
	rep->psn = get_be24(w->psn);
	rep->responder_resources = w->responder_resources;
	rep->initiator_depth = w->initiator_depth;
	rep->target_ack_delay = w->ack_delay >> 3;
	rep->failover = w->ack_delay >> 1 & 3;
	rep->flow_control = w->ack_delay & 1;
	rep->rnr_retry = w->rnr_retry >> 5;
	rep->srq = w->rnr_retry >> 4 & 1;
	memcpy(rep->ca_guid, w->ca_guid, sizeof(rep->ca_guid));
	memcpy(msg->private_data, w->private_data, sizeof(w->private_data));
	return 0;
}

static int parse_rej(const struct rej *w, struct cm_msg *msg)
{
	struct cm_rej *rej = &msg->rej;

	rej->about = w->about >> 6;
	rej->reason = get_be16(w->reason);
	rej->info_len = w->info_len >> 1;
	if (rej->info_len > CM_REJ_INFO_MAX)
		return -EINVAL;
	memcpy(rej->info, w->info, rej->info_len);
	memcpy(msg->private_data, w->private_data, sizeof(w->private_data));
	return 0;
}

static int parse_mra(const struct mra *w, struct cm_msg *msg)
{
	msg->mra.about = w->about >> 6;
	msg->mra.service_timeout = w->service_timeout >> 3;
	memcpy(msg->private_data, w->private_data, sizeof(w->private_data));
	return 0;
}

static int parse_sidr_req(const struct sidr_req *w, struct cm_msg *msg)
{
	msg->remote_id = 0;
	msg->sidr_req.pkey = get_be16(w->pkey);
	msg->sidr_req.service_id = get_be64(w->service_id);
	memcpy(msg->private_data, w->private_data, sizeof(w->private_data));
	return 0;
}

static int parse_sidr_rep(const struct sidr_rep *w, struct cm_msg *msg)
{
	msg->remote_id = 0;
	msg->sidr_rep.status = w->status;
	msg->sidr_rep.qpn = get_be24(w->qpn);
	msg->sidr_rep.qkey = get_be32(w->qkey);
	msg->sidr_rep.service_id = get_be64(w->service_id);
	memcpy(msg->private_data, w->private_data, sizeof(w->private_data));
	return w->info_len > CM_REJ_INFO_MAX ? -EINVAL : 0;
}

/* All members of struct req and its like are bytes: any address will do. */
static int parse_body(const uint8_t *body, struct cm_msg *msg)
{
	const struct plain *plain = (const struct plain *)body;

	msg->local_id = get_be32(plain->local_id);
	msg->remote_id = get_be32(plain->remote_id);
	switch (msg->attr) {
	case CM_REQ:
		msg->remote_id = 0;
		return parse_req((const struct req *)body, msg);
	case CM_MRA:
		return parse_mra((const struct mra *)body, msg);
	case CM_REJ:
		return parse_rej((const struct rej *)body, msg);
	case CM_REP:
		return parse_rep((const struct rep *)body, msg);
	case CM_RTU:
	case CM_DREP:
		memcpy(msg->private_data, plain->private_data, sizeof(plain->private_data));
		return 0;
	case CM_DREQ:
		msg->dreq_qpn = get_be24(((const struct dreq *)body)->qpn);
		memcpy(msg->private_data, ((const struct dreq *)body)->private_data,
			CM_DREQ_PRIVATE);
		return 0;
	case CM_SIDR_REQ:
		return parse_sidr_req((const struct sidr_req *)body, msg);
	case CM_SIDR_REP:
		return parse_sidr_rep((const struct sidr_rep *)body, msg);
	case CM_LAP:
	case CM_APR:
		return -EOPNOTSUPP;
	default:
		return -EINVAL;
	}
}

int cm_parse(const uint8_t *mad, size_t len, struct cm_msg *msg)
{
	const struct mad_hdr *hdr = (const struct mad_hdr *)mad;

	if (len != CM_MAD_LEN)
		return -EMSGSIZE;
	if (hdr->base_version != MAD_BASE_VERSION || hdr->mgmt_class != MAD_CLASS_CM ||
		hdr->class_version != CM_CLASS_VERSION || hdr->method != MAD_SEND ||
		get_be16(hdr->status) != 0)
		return -EPROTO;
	memset(msg, 0, sizeof(*msg));
	msg->tid = get_be64(hdr->tid);
	msg->attr = get_be16(hdr->attr);
	return parse_body(mad + sizeof(*hdr), msg);
}

/* ---- building ---- */

static bool fits(uint64_t value, unsigned bits)
{
	return value >> bits == 0;
}

static void build_path(const struct cm_req *req, struct path *p)
{
	put_be16(p->local_lid, CM_LID_PERMISSIVE);
	put_be16(p->remote_lid, CM_LID_PERMISSIVE);
	memcpy(p->local_gid, req->sgid.b, sizeof(p->local_gid));
	memcpy(p->remote_gid, req->dgid.b, sizeof(p->remote_gid));
	put_be32(p->flow_rate, req->flow_label << 12 | req->rate);
	p->traffic_class = req->traffic_class;
	p->hop_limit = req->hop_limit;
	p->sl = (uint8_t)(req->sl << 4 | req->subnet_local << 3);
	p->ack_timeout = (uint8_t)(req->ack_timeout << 3);
}

static int build_req(const struct cm_msg *msg, struct req *w)
{
	const struct cm_req *req = &msg->req;

	if (!fits(req->qpn, 24) || !fits(req->psn, 24) || !fits(req->remote_timeout, 5) ||
		!fits(req->local_timeout, 5) || !fits(req->transport, 2) ||
		!fits(req->retry_count, 3) || !fits(req->rnr_retry, 3) ||
		!fits(req->max_retries, 4) || !fits(req->mtu, 4) || !fits(req->flow_label, 20) ||
		!fits(req->rate, 6) || !fits(req->sl, 4) || !fits(req->ack_timeout, 5) ||
		req->alternate)
		return -EINVAL;
	put_be32(w->local_id, msg->local_id);
	put_be64(w->service_id, req->service_id);
	memcpy(w->ca_guid, req->ca_guid, sizeof(w->ca_guid));
	put_be32(w->qkey, req->qkey);
	put_be24(w->qpn, req->qpn);
	put_be24(w->psn, req->psn);
	w->responder_resources = req->responder_resources;
	w->initiator_depth = req->initiator_depth;
	w->remote_timeout =
		(uint8_t)(req->remote_timeout << 3 | req->transport << 1 | req->flow_control);
	w->local_timeout = (uint8_t)(req->local_timeout << 3 | req->retry_count);
	put_be16(w->pkey, req->pkey);
	w->mtu = (uint8_t)(req->mtu << 4 | req->rnr_retry);
	w->max_retries = (uint8_t)(req->max_retries << 4 | req->srq << 3);
	build_path(req, &w->primary);
	memcpy(w->private_data, msg->private_data, sizeof(w->private_data));
	return 0;
}

static int build_rep(const struct cm_msg *msg, struct rep *w)
{
	const struct cm_rep *rep = &msg->rep;

	if (!fits(rep->qpn, 24) || !fits(rep->psn, 24) || !fits(rep->target_ack_delay, 5) ||
		!fits(rep->failover, 2) || !fits(rep->rnr_retry, 3))
		return -EINVAL;
	put_be32(w->qkey, rep->qkey);
	put_be24(w->qpn, rep->qpn);
	put_be24(w->psn, rep->psn);
	w->responder_resources = rep->responder_resources;
	w->initiator_depth = rep->initiator_depth;
	w->ack_delay =
		(uint8_t)(rep->target_ack_delay << 3 | rep->failover << 1 | rep->flow_control);
	w->rnr_retry = (uint8_t)(rep->rnr_retry << 5 | rep->srq << 4);
	memcpy(w->ca_guid, rep->ca_guid, sizeof(w->ca_guid));
	memcpy(w->private_data, msg->private_data, sizeof(w->private_data));
	return 0;
}

static int build_rej(const struct cm_msg *msg, struct rej *w)
{
	const struct cm_rej *rej = &msg->rej;

	if (!fits(rej->about, 2) || rej->info_len > CM_REJ_INFO_MAX)
		return -EINVAL;
	w->about = (uint8_t)(rej->about << 6);
	w->info_len = (uint8_t)(rej->info_len << 1);
	put_be16(w->reason, rej->reason);
	memcpy(w->info, rej->info, rej->info_len);
	memcpy(w->private_data, msg->private_data, sizeof(w->private_data));
	return 0;
}

static int build_mra(const struct cm_msg *msg, struct mra *w)
{
	if (!fits(msg->mra.about, 2) || !fits(msg->mra.service_timeout, 5))
		return -EINVAL;
	w->about = (uint8_t)(msg->mra.about << 6);
	w->service_timeout = (uint8_t)(msg->mra.service_timeout << 3);
	memcpy(w->private_data, msg->private_data, sizeof(w->private_data));
	return 0;
}

static int build_dreq(const struct cm_msg *msg, struct dreq *w)
{
	if (!fits(msg->dreq_qpn, 24))
		return -EINVAL;
	put_be24(w->qpn, msg->dreq_qpn);
	memcpy(w->private_data, msg->private_data, sizeof(w->private_data));
	return 0;
}

static int build_sidr_req(const struct cm_msg *msg, struct sidr_req *w)
{
	put_be32(w->request_id, msg->local_id);
	put_be16(w->pkey, msg->sidr_req.pkey);
	put_be64(w->service_id, msg->sidr_req.service_id);
	memcpy(w->private_data, msg->private_data, sizeof(w->private_data));
	return 0;
}

static int build_sidr_rep(const struct cm_msg *msg, struct sidr_rep *w)
{
	if (!fits(msg->sidr_rep.qpn, 24))
		return -EINVAL;
	put_be32(w->request_id, msg->local_id);
	w->status = msg->sidr_rep.status;
	put_be24(w->qpn, msg->sidr_rep.qpn);
	put_be64(w->service_id, msg->sidr_rep.service_id);
	put_be32(w->qkey, msg->sidr_rep.qkey);
	memcpy(w->private_data, msg->private_data, sizeof(w->private_data));
	return 0;
}

static int build_body(const struct cm_msg *msg, uint8_t *body)
{
	struct plain *plain = (struct plain *)body;

	switch (msg->attr) {
	case CM_REQ:
		return build_req(msg, (struct req *)body);
	case CM_SIDR_REQ:
		return build_sidr_req(msg, (struct sidr_req *)body);
	case CM_SIDR_REP:
		return build_sidr_rep(msg, (struct sidr_rep *)body);
	default:
		break;
	}
	put_be32(plain->local_id, msg->local_id);
	put_be32(plain->remote_id, msg->remote_id);
	switch (msg->attr) {
	case CM_MRA:
		return build_mra(msg, (struct mra *)body);
	case CM_REJ:
		return build_rej(msg, (struct rej *)body);
	case CM_REP:
		return build_rep(msg, (struct rep *)body);
	case CM_RTU:
	case CM_DREP:
		memcpy(plain->private_data, msg->private_data, sizeof(plain->private_data));
		return 0;
	case CM_DREQ:
		return build_dreq(msg, (struct dreq *)body);
	default:
		return -EINVAL;
	}
}

int cm_build(const struct cm_msg *msg, uint8_t mad[CM_MAD_LEN])
{
	uint8_t out[CM_MAD_LEN] = {0};
	struct mad_hdr *hdr = (struct mad_hdr *)out;
	int ret = build_body(msg, out + sizeof(*hdr));

	if (ret)
		return ret;
	hdr->base_version = MAD_BASE_VERSION;
	hdr->mgmt_class = MAD_CLASS_CM;
	hdr->class_version = CM_CLASS_VERSION;
	hdr->method = MAD_SEND;
	put_be64(hdr->tid, msg->tid);
	put_be16(hdr->attr, msg->attr);
	memcpy(mad, out, sizeof(out));
	return 0;
}

/* ---- annex A11 ---- */

struct ipcm_hdr {
	uint8_t version;    /* major 4, minor 4 */
	uint8_t ip_version; /* 4, reserved 4 */
	uint8_t sport[2];
	uint8_t src[16], dst[16]; /* IPv4: in the last 4 bytes */
};
static_assert(sizeof(struct ipcm_hdr) == IPCM_HDR_LEN, "the IP CM header is 36 bytes");

static void get_address(const uint8_t *p, bool is4, struct wire_ip *ip)
{
	if (is4)
		*ip = wire_ip_from4(get_be32(p + 12));
	else
		memcpy(ip->b, p, sizeof(ip->b));
}

static void put_address(uint8_t *p, const struct wire_ip *ip)
{
	memset(p, 0, sizeof(ip->b));
	if (wire_ip_is4(ip))
		put_be32(p + 12, wire_ip_to4(ip));
	else
		memcpy(p, ip->b, sizeof(ip->b));
}

int ipcm_parse(const uint8_t *p, size_t len, struct ipcm *ipcm)
{
	const struct ipcm_hdr *hdr = (const struct ipcm_hdr *)p;
	struct ipcm out;
	unsigned version;

	if (len < IPCM_HDR_LEN)
		return -EMSGSIZE;
	version = hdr->ip_version >> 4;
	if (hdr->version >> 4 != 0 || (version != 4 && version != 6))
		return -EPROTO;
	get_address(hdr->src, version == 4, &out.src);
	get_address(hdr->dst, version == 4, &out.dst);
	if (wire_ip_is4(&out.src) != (version == 4) || wire_ip_is4(&out.dst) != (version == 4))
		return -EPROTO;
	out.sport = get_be16(hdr->sport);
	*ipcm = out;
	return 0;
}

int ipcm_build(const struct ipcm *ipcm, uint8_t p[IPCM_HDR_LEN])
{
	struct ipcm_hdr *hdr = (struct ipcm_hdr *)p;
	bool is4 = wire_ip_is4(&ipcm->src);

	if (is4 != wire_ip_is4(&ipcm->dst))
		return -EINVAL;
	hdr->version = 0;
	hdr->ip_version = is4 ? 0x40 : 0x60;
	put_be16(hdr->sport, ipcm->sport);
	put_address(hdr->src, &ipcm->src);
	put_address(hdr->dst, &ipcm->dst);
	return 0;
}
