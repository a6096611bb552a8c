/* SPDX-License-Identifier: BSD-3-Clause */
/* One frame: what is outside of it, what it carries, whether its ICRC is right. */
#include <stdlib.h>
#include <string.h>

#include "apps/dissect.h"
#include "lib/ccl/msg.h"
#include "lib/reduce/reduce.h"
#include "lib/srv6/usid.h"
#include "lib/wire/bytes.h"
#include "lib/wire/frame.h"
#include "lib/wire/ip6_ext.h"
#include "lib/wire/mrc.h"
#include "lib/wire/netreduce.h"

enum { FRAME_MAX = 65535, TUNNELS_MAX = 4 };

/* A frame that was cut off is as long as it was, with zeros, so that its headers can be read. */
struct frame {
	uint8_t *b;
	size_t len;
	bool cut;
	size_t cap;
};

static void set(json_t *o, const char *name, json_t *value)
{
	json_object_set_new(o, name, value);
}

static void set_int(json_t *o, const char *name, uint64_t n)
{
	set(o, name, json_integer((json_int_t)n));
}

static void set_hex(json_t *o, const char *name, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)n);
	set(o, name, json_string(text));
}

static void set_ip(json_t *o, const char *name, const struct wire_ip *ip)
{
	char text[WIRE_IP_STRLEN];

	set(o, name, json_string(wire_ip_format(ip, text, sizeof(text))));
}

/* Texts of a file hold any bytes; what is no printable ASCII is shown as '?'. */
static void set_text(json_t *o, const char *name, const struct pcap_text *t)
{
	char text[256];
	size_t n = 0;

	for (; n < t->len && n + 1 < sizeof(text); n++)
		text[n] = t->text[n] >= ' ' && t->text[n] <= '~' ? t->text[n] : '?';
	text[n] = '\0';
	if (n)
		set(o, name, json_string(text));
}

/* ---- around it: segments, tunnels ---- */

static void add_usids(json_t *list, const struct wire_ip *ip, uint32_t block)
{
	uint16_t usid[SRV6_USIDS];
	unsigned n;
	char text[8];
	json_t *path;

	if (get_be32(ip->b) != block)
		return;
	path = json_array();
	n = srv6_path(ip, usid);
	for (unsigned i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "%x", usid[i]);
		json_array_append_new(path, json_string(text));
	}
	json_array_append_new(list, path);
}

/* The active segment of a routing header is the address; those that follow it, in their order. */
static void add_segments(json_t *o, const uint8_t *srh_at)
{
	struct srh_hdr srh;
	json_t *list = json_array();
	char text[WIRE_IP_STRLEN];
	struct wire_ip ip;

	memcpy(&srh, srh_at, sizeof(srh));
	set_int(o, "segments_left", srh.left);
	for (unsigned i = srh.left; i-- > 0 && i <= srh.last;) {
		memcpy(ip.b, srh_at + sizeof(srh) + 16 * i, 16);
		json_array_append_new(list, json_string(wire_ip_format(&ip, text, sizeof(text))));
	}
	set(o, "segments", list);
}

/* Goes into an IP packet as far as segments and tunnels go: true, and *l3_off is of the packet
 * inside. */
static bool enter(const struct frame *f, const struct wire_pkt *pkt, size_t *l3_off, json_t *o)
{
	const uint8_t *ip6 = f->b + *l3_off;
	struct wire_ip6_ext ext;
	uint8_t proto;
	size_t off;

	if (pkt->ip_ver == 4) {
		*l3_off = pkt->l4_off;
		return pkt->ip_proto == IP_PROTO_IP4 || pkt->ip_proto == IP_PROTO_IP6;
	}
	if (pkt->ip_ver != 6 || ip6_ext_walk(ip6, f->len - *l3_off, &ext))
		return false;
	proto = ext.proto;
	off = ext.off;
	if (ext.srh_len) {
		add_segments(o, ip6 + ext.off);
		proto = ip6[ext.off];
		off += ext.srh_len;
	}
	*l3_off += off;
	return off < ext.end && (proto == IP_PROTO_IP4 || proto == IP_PROTO_IP6);
}

/* The innermost packet. */
static enum wire_drop parse(
	const struct frame *f, uint32_t block, struct wire_pkt *pkt, size_t *l3_off, json_t *o)
{
	enum wire_drop drop = wire_parse(f->b, f->len, pkt);
	json_t *usids = json_array(), *tunnels = json_array();

	*l3_off = pkt->l3_off;
	for (unsigned i = 0; i < TUNNELS_MAX; i++) {
		struct wire_pkt outer = *pkt;
		size_t inner = *l3_off;
		char text[2 * WIRE_IP_STRLEN + 4], a[WIRE_IP_STRLEN], b[WIRE_IP_STRLEN];

		if (pkt->ip_ver == 6)
			add_usids(usids, &pkt->dst, block);
		if (drop != WIRE_OK || pkt->kind != WIRE_IP || !enter(f, &outer, &inner, o))
			break;
		snprintf(text, sizeof(text), "%s > %s", wire_ip_format(&outer.src, a, sizeof(a)),
			wire_ip_format(&outer.dst, b, sizeof(b)));
		json_array_append_new(tunnels, json_string(text));
		*l3_off = inner;
		drop = wire_parse_ip(f->b, f->len, inner, pkt);
	}
	if (json_array_size(tunnels))
		set(o, "tunnels", json_incref(tunnels));
	if (json_array_size(usids))
		set(o, "usids", json_incref(usids));
	json_decref(tunnels);
	json_decref(usids);
	return drop;
}

/* ---- RoCE ---- */

static void set_syndrome(json_t *o, uint8_t syndrome, uint32_t msn, struct dissect_packet *p)
{
	char text[DISSECT_NAME];

	p->nak = (syndrome & ROCE_AETH_CLASS) == ROCE_AETH_RNR ||
		 (syndrome & ROCE_AETH_CLASS) == ROCE_AETH_NAK;
	set(o, "syndrome", json_string(dissect_syndrome(syndrome, text)));
	set_int(o, "msn", msn);
}

static void set_control(json_t *o, const struct wire_pkt *pkt, const uint8_t *payload)
{
	struct ccl_ctrl c;
	json_t *inc;

	if (pkt->pay_len != CCL_CTRL_LEN || ccl_ctrl_decode(pkt->imm, payload, &c))
		return;
	inc = json_object();
	set(inc, "primitive", json_string(dissect_primitive(c.prim)));
	set(inc, "op", json_string(reduce_op_name(c.op)));
	set(inc, "dtype", json_string(reduce_dtype_name(c.dtype)));
	set_int(inc, "op_seq", c.op_seq);
	set_int(inc, "root", c.root);
	set_int(inc, "packets", c.n);
	set_int(inc, "bytes", c.bytes);
	set(inc, "write", json_boolean(c.flags & CCL_F_WRITE));
	set(inc, "last", json_boolean(c.flags & CCL_F_LAST));
	set_int(inc, "m", c.m);
	set_hex(inc, "tag", c.tag);
	set(o, "inc", inc);
}

static void set_ina(json_t *o, const struct wire_pkt *pkt, const uint8_t *payload)
{
	struct ina_hdr h;
	json_t *ina;

	if (pkt->pay_len < INA_LEN || !ina_decode(payload, &h))
		return;
	ina = json_object();
	set_int(ina, "ring", h.ring);
	set_int(ina, "rank", h.rank);
	set_int(ina, "message", h.msg);
	set_int(ina, "packets", h.packets);
	set(ina, "dtype", json_string(reduce_dtype_name(h.dtype)));
	set(ina, "op", json_string(reduce_op_name(h.op)));
	set(o, "netreduce", ina);
}

static void roce_packet(
	const struct frame *f, const struct wire_pkt *pkt, json_t *o, struct dissect_packet *p)
{
	const uint8_t *payload = f->b + pkt->pay_off;

	set(o, "op", json_string(roce_opcode_name(pkt->opcode)));
	set_hex(o, "qp", pkt->dqpn);
	set_int(o, "psn", pkt->psn);
	set_int(o, "payload", pkt->pay_len);
	if (pkt->ackreq)
		set(o, "ackreq", json_true());
	if (pkt->flags & ROCE_F_IMM)
		set_hex(o, "imm", pkt->imm);
	if (pkt->flags & (ROCE_F_RETH | ROCE_F_ATOMIC))
		set_hex(o, "va", pkt->va);
	if (pkt->flags & (ROCE_F_RETH | ROCE_F_ATOMIC | ROCE_F_IETH))
		set_hex(o, "rkey", pkt->rkey);
	if (pkt->flags & ROCE_F_RETH)
		set_int(o, "dmalen", pkt->dmalen);
	if (pkt->flags & ROCE_F_POS)
		set_int(o, "offset", pkt->pos_offset);
	if (pkt->flags & ROCE_F_DETH)
		set_hex(o, "from_qp", pkt->sqpn);
	if (pkt->flags & ROCE_F_AETH)
		set_syndrome(o, pkt->syndrome, pkt->msn, p);
	if (pkt->flags & ROCE_F_IMM && !f->cut)
		set_control(o, pkt, payload);
	if (pkt->flags & ROCE_F_FIRST && pkt->flags & ROCE_F_REQUEST && !f->cut)
		set_ina(o, pkt, payload);
	p->has_psn = pkt->opcode != ROCE_CNP;
	p->key.sqpn = pkt->flags & ROCE_F_DETH ? pkt->sqpn : 0;
	p->request = pkt->flags & ROCE_F_REQUEST;
	p->response = !p->request;
	p->whole_mtu = pkt->flags & ROCE_F_PAYLOAD && !(pkt->flags & ROCE_F_LAST);
	if ((pkt->opcode & ROCE_OP_MASK) == ROCE_READ_REQUEST)
		p->read = pkt->dmalen;
}

/* ---- MRC ---- */

static void mrc_data(json_t *o, const struct mrc_data *d, uint8_t depth)
{
	set_int(o, "psn", d->psn);
	if (d->rtx)
		set(o, "rtx", json_true());
	if (depth == MRC_DEPTH_ALL) {
		set_int(o, "payload", d->pay_len);
		set_int(o, "msn", d->msn);
		set_int(o, "rqmsn", d->rqmsn);
	}
	if (depth >= MRC_DEPTH_RETH) {
		set_hex(o, "va", d->va);
		set_hex(o, "rkey", d->rkey);
		set_int(o, "dmalen", d->dmalen);
	}
	if (depth == MRC_DEPTH_ALL && d->has_imm)
		set_hex(o, "imm", d->imm);
	if (d->has_ts && depth >= MRC_DEPTH_TS)
		set_int(o, "ts", d->ts);
	if (depth != MRC_DEPTH_ALL)
		set(o, "trimmed", json_true());
}

static void mrc_sack(json_t *o, const struct mrc_sack *s)
{
	set_int(o, "psn", s->cack_psn);
	set(o, "mark", json_string(dissect_mark(s->mark)));
	set_int(o, s->probe ? "probe" : "trigger", s->probe ? s->probe_id : s->trigger_psn);
	set_int(o, "base", s->base_psn);
	set_hex(o, "bitmap", s->bitmap);
	set_hex(o, "ev", s->entropy);
	set_int(o, "mpr", s->mpr);
	set_int(o, "ooo", s->ooo_count);
	set_int(o, "received", (uint64_t)s->rcvd_units * MRC_RCVD_UNIT);
}

static void mrc_nack(json_t *o, const struct mrc_nack *n)
{
	set_int(o, "psn", n->psn);
	set(o, "reason", json_string(dissect_nack(n->reason)));
	set_hex(o, "ev", n->entropy);
}

static void mrc_other(json_t *o, const struct mrc_pkt *m)
{
	switch ((enum mrc_kind)m->kind) {
	case MRC_KIND_ACK:
		set_int(o, "psn", m->ack.psn);
		set_hex(o, "syndrome", m->ack.syndrome);
		set_int(o, "msn", m->ack.msn);
		break;
	case MRC_KIND_PROBE:
		set_int(o, "id", m->probe.id);
		break;
	default:
		set_int(o, "id", m->endpoint.id);
		if (m->kind == MRC_KIND_ENDPOINT_REQUEST) {
			set(o, "asks", json_string(dissect_endpoint_op(m->endpoint.op)));
			set_hex(o, "ports", m->endpoint.port_mask);
		}
	}
}

static void mrc_packet(const struct frame *f, const struct wire_pkt *pkt, size_t l3_off, json_t *o,
	struct dissect_packet *p)
{
	const size_t bth = pkt->l4_off + sizeof(struct udp_hdr);
	const bool trimmed = dissect_is_trimmed(pkt->tos);
	struct mrc_pkt m;
	enum mrc_drop drop = mrc_codec_ocp_r1.decode(f->b + bth, pkt->end - bth, trimmed, &m);

	if (drop != MRC_OK) {
		set(o, "refused", json_string(mrc_drop_name(drop)));
		return;
	}
	set_hex(o, "qp", pkt->dqpn);
	set(o, "op", json_string(dissect_mrc_op(&m)));
	if (m.kind == MRC_KIND_DATA)
		mrc_data(o, &m.data, m.depth);
	else if (m.kind == MRC_KIND_SACK)
		mrc_sack(o, &m.sack);
	else if (m.kind == MRC_KIND_NACK)
		mrc_nack(o, &m.nack);
	else
		mrc_other(o, &m);
	set_hex(o, "own_ev", mrc_ev_get(f->b + l3_off, MRC_EV_FLOW_HIGH));
	p->has_psn = m.kind == MRC_KIND_DATA || m.kind == MRC_KIND_ACK || m.kind == MRC_KIND_SACK ||
		     m.kind == MRC_KIND_NACK;
	p->request = m.kind == MRC_KIND_DATA;
	p->response = !p->request;
	p->nak = m.kind == MRC_KIND_NACK;
	p->psn = m.kind == MRC_KIND_DATA   ? m.data.psn
		 : m.kind == MRC_KIND_ACK  ? m.ack.psn
		 : m.kind == MRC_KIND_SACK ? m.sack.cack_psn
					   : m.nack.psn;
}

/* ---- all of it ---- */

static void set_icrc(const struct frame *f, const struct wire_pkt *pkt, bool trimmed, json_t *o,
	struct dissect_packet *p)
{
	const bool whole = !f->cut || pkt->end <= f->cap;

	p->icrc_bad = whole && !trimmed && !wire_icrc_ok(f->b, pkt);
	set(o, "icrc",
		json_string(trimmed       ? "trimmed"
			    : !whole      ? "cut"
			    : p->icrc_bad ? "bad"
					  : "ok"));
}

static void what_it_is(json_t *o, const struct wire_pkt *pkt)
{
	static const char *const kinds[] = {[WIRE_L2] = "Ethernet",
		[WIRE_ARP] = "ARP",
		[WIRE_IP] = "IP",
		[WIRE_ICMP_ECHO] = "ICMP echo request",
		[WIRE_ND_NS] = "neighbour solicitation",
		[WIRE_ND_NA] = "neighbour advertisement",
		[WIRE_ROCE] = "RoCE",
		[WIRE_UDP] = "UDP"};

	set(o, "kind", json_string(kinds[pkt->kind]));
	if (pkt->kind == WIRE_IP)
		set_int(o, "protocol", pkt->ip_proto);
}

static void dissect(const struct frame *f, uint32_t block, json_t *o, struct dissect_packet *p)
{
	struct wire_pkt pkt;
	size_t l3_off;
	enum wire_drop drop = parse(f, block, &pkt, &l3_off, o);
	bool mrc = false;

	if (pkt.vlan)
		set_int(o, "vlan", pkt.vlan & WIRE_VLAN_ID);
	if (pkt.ip_ver || pkt.kind == WIRE_ARP) {
		set_ip(o, "src", &pkt.src);
		set_ip(o, "dst", &pkt.dst);
	}
	if (drop == WIRE_BTH_OPCODE &&
		(f->b[pkt.l4_off + sizeof(struct udp_hdr)] & MRC_OPCODES_MASK) == MRC_OPCODES)
		mrc = (drop = wire_parse_bth(f->b, &pkt)) == WIRE_OK;
	if (drop != WIRE_OK) {
		set(o, "refused", json_string(wire_drop_name(drop)));
		return;
	}
	if (pkt.kind != WIRE_ROCE) {
		what_it_is(o, &pkt);
		return;
	}
	p->key = (struct dissect_key){.src = pkt.src, .dst = pkt.dst, .dqpn = pkt.dqpn};
	p->psn = pkt.psn;
	p->payload = pkt.pay_len;
	if ((pkt.tos & IP_ECN_MASK) == IP_ECN_CE)
		set(o, "ce", json_true());
	if (mrc)
		mrc_packet(f, &pkt, l3_off, o, p);
	else
		roce_packet(f, &pkt, o, p);
	set_icrc(f, &pkt, mrc && dissect_is_trimmed(pkt.tos), o, p);
}

void dissect_frame(const struct pcap_reader *r, const struct pcap_frame *pf, unsigned number,
	uint32_t block, struct dissect_packet *p)
{
	static const char *const directions[] = {NULL, "in", "out", NULL};
	/* Its own allocation, so that a sanitizer sees every overrun. */
	struct frame f = {.cap = pf->cap < FRAME_MAX ? pf->cap : FRAME_MAX,
		.len = pf->len < FRAME_MAX ? pf->len : FRAME_MAX,
		.cut = pf->cap < pf->len};
	json_t *o = json_object();

	*p = (struct dissect_packet){.json = o};
	set_int(o, "n", number);
	set(o, "ns", json_integer((json_int_t)(pf->ns & INT64_MAX)));
	set_text(o, "interface", &r->interface[pf->interface].name);
	if (directions[pf->direction & 3])
		set(o, "dir", json_string(directions[pf->direction & 3]));
	set_int(o, "len", pf->len);
	if (f.cut)
		set_int(o, "cap", pf->cap);
	f.b = calloc(1, f.len + 1);
	if (f.b) {
		memcpy(f.b, pf->data, f.cap);
		dissect(&f, block, o, p);
	}
	set_text(o, "comment", &pf->comment);
	free(f.b);
}
