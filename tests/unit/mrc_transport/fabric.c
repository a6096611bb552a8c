/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/mrc_transport/fabric.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/bytes.h"
#include "lib/wire/ip6_ext.h"
#include "lib/wire/outer.h"

enum { EV_BASE = 0xc000, TRIM_TO = 150, BLOCK = 0xfcbbbb00, HOST = 0x8001 };

/* ---- what a packet is ---- */

static size_t inner_of(const uint8_t *frame)
{
	const uint8_t *ip = frame + ETH_HDR_LEN;

	if (get_be16(frame + 12) != ETH_TYPE_IP6)
		return ETH_HDR_LEN;
	if (ip[6] == IP_PROTO_IP6)
		return ETH_HDR_LEN + 40;
	return ETH_HDR_LEN;
}

static const uint8_t *udp_of(const uint8_t *frame)
{
	const size_t l3 = inner_of(frame);

	return frame + l3 + (frame[l3] >> 4 == 4 ? 20 : 40);
}

static bool is_mrc(const uint8_t *frame, size_t len)
{
	const size_t l3 = inner_of(frame);
	const uint8_t *ip = frame + l3;
	const uint16_t type = get_be16(frame + 12);

	if ((type != ETH_TYPE_IP4 && type != ETH_TYPE_IP6) || len < l3 + 60)
		return false;
	return (ip[0] >> 4 == 4 ? ip[9] : ip[6]) == IP_PROTO_UDP;
}

static unsigned path_of(const struct fabric *f, const uint8_t *frame)
{
	struct wire_ip dst;
	uint32_t ev;

	if (f->format != RNIC_MRC_SRV6)
		return get_be16(udp_of(frame)) % FABRIC_PATHS;
	if (inner_of(frame) == ETH_HDR_LEN)
		return 0; /* an answer without a connection */
	memcpy(dst.b, frame + ETH_HDR_LEN + 24, 16);
	assert_int_equal(0, srv6_template_ev(&f->template, &dst, &ev));
	return ev % FABRIC_PATHS;
}

/* ---- the paths ---- */

static bool chance(struct fabric *f, unsigned of_1000)
{
	return of_1000 > 0 && net_random(&f->net) % 1000 < of_1000;
}

static void trim(struct fabric *f, uint8_t *frame, size_t *len)
{
	struct wire_outer outer = wire_outer(frame, *len);
	const uint8_t dscp = outer.tos >> 2;

	if ((dscp != 4 && dscp != 8) || *len <= TRIM_TO)
		return;
	wire_outer_set_tos(
		frame, &outer, (uint8_t)((chance(f, f->lasthop) ? 16 : 12) << 2 | (outer.tos & 3)));
	*len = TRIM_TO - net_random(&f->net) % 28;
	if (net_random(&f->net) % 2)
		wire_outer_cut(frame, &outer, *len);
	f->cut++;
}

/* All the uSIDs but the last one are used up. */
static void arrive(const struct fabric *f, int from, uint8_t *frame)
{
	if (f->format == RNIC_MRC_SRV6 && inner_of(frame) != ETH_HDR_LEN)
		memcpy(frame + ETH_HDR_LEN + 24, f->sid[!from].b, 16);
}

/* When the frame has left on the plane's link; UINT64_MAX: it had to wait too long. */
static uint64_t wait(struct fabric *f, int from, unsigned plane, uint8_t *frame, size_t len)
{
	uint64_t *busy = &f->busy[from][plane], now = f->net.now;
	struct wire_outer outer = wire_outer(frame, len);

	if (f->mbps == 0)
		return now;
	*busy = *busy > now ? *busy : now;
	if (*busy - now > 4 * f->mark_ns) {
		f->full++;
		return UINT64_MAX;
	}
	if (*busy - now > f->mark_ns)
		wire_outer_mark(frame, &outer);
	*busy += len * 8000 / f->mbps;
	return *busy;
}

static bool through(struct net *net, int from, uint8_t *frame, size_t *len)
{
	struct fabric *f = net->hook_arg;
	struct wire_outer outer;
	unsigned path;
	uint64_t at;

	if (!is_mrc(frame, *len))
		return true;
	if (f->hook != NULL && !f->hook(f, from, frame, len))
		return false;
	path = path_of(f, frame);
	assert_int_equal(f->ports ? path % FABRIC_PORTS : 0, net->hook_port);
	f->sent[from][path]++;
	f->data[from][path] += (udp_of(frame)[8] & 0x1f) < 0x10;
	if (f->dead[path] || chance(f, f->loss) || chance(f, f->path_loss[path])) {
		f->lost++;
		return false;
	}
	outer = wire_outer(frame, *len);
	if (chance(f, f->mark))
		wire_outer_mark(frame, &outer);
	if (chance(f, f->trim))
		trim(f, frame, len);
	if (chance(f, f->corrupt)) {
		frame[net_random(net) % *len] ^= (uint8_t)(1 << net_random(net) % 8);
		f->spoilt++;
	} else {
		arrive(f, from, frame);
	}
	at = wait(f, from, path % FABRIC_PORTS, frame, *len);
	if (at == UINT64_MAX)
		return false;
	at += FABRIC_HOP + (f->jitter ? net_random(net) % f->jitter : 0);
	if (at < f->last[from][path])
		at = f->last[from][path];
	f->last[from][path] = at;
	f->overtaken += at < f->latest[from];
	f->latest[from] = at > f->latest[from] ? at : f->latest[from];
	net_put_at(net, !from, net->hook_port, frame, *len, at - net->now);
	if (chance(f, f->twice)) {
		net_put_at(net, !from, net->hook_port, frame, *len, at - net->now);
		f->doubled++;
	}
	return false;
}

/* ---- devices and paths ---- */

static void set_template(struct fabric *f)
{
	static const uint16_t hop[4] = {0x1012, 0x1400, 0x1155, HOST};
	char err[SRV6_ERR_LEN];

	f->template = (struct srv6_template){.n_hops = 4, .n_copies = 1};
	assert_int_equal(0, srv6_address(BLOCK, hop, 4, &f->template.address));
	f->template.copy[0] = (struct srv6_copy){.from = 0, .width = 5, .usid = 1, .shift = 0};
	assert_int_equal(0, srv6_template_check(&f->template, err));
	for (int i = 0; i < 2; i++)
		assert_int_equal(0, srv6_address(BLOCK, &hop[3], 1, &f->sid[i]));
}

static void set_paths(struct fabric *f, const struct fabric_options *o)
{
	const unsigned n = o->n_paths ? o->n_paths : FABRIC_PATHS;
	uint32_t ev[FABRIC_PATHS];
	uint8_t port[FABRIC_PATHS];

	set_template(f);
	for (unsigned i = 0; i < n; i++) {
		ev[i] = f->format == RNIC_MRC_SRV6   ? i
			: f->format == RNIC_MRC_STEV ? (uint32_t)((i + 7) << 16 | (EV_BASE + i))
						     : EV_BASE + i;
		port[i] = (uint8_t)(i % FABRIC_PORTS);
	}
	f->paths.format = f->format;
	if (f->format == RNIC_MRC_SRV6)
		assert_int_equal(0, rnic_mrc_paths_srv6(&f->paths, &f->template, ev, port, n));
	for (unsigned i = 0; i < n && f->format != RNIC_MRC_SRV6; i++)
		f->paths.path[i] = (struct rnic_mrc_path){.ev = ev[i], .port = port[i]};
	f->paths.n = n;
	f->paths.max_active = o->n_active ? o->n_active : n * 3 / 4;
	f->paths.min_active = FABRIC_PORTS;
}

static void ev_changed(void *arg, struct rnic_qp *qp, unsigned index, enum mrc_ev_state state)
{
	struct fabric *f = arg;

	(void)qp;
	assert_true(index < FABRIC_PATHS);
	assert_int_not_equal(state, MRC_EV_SKIP);
	f->ev_changes++;
}

static void answered(void *arg, uint64_t cookie, unsigned port, uint64_t rtt_ns, bool adjusted)
{
	struct fabric *f = arg;

	(void)port;
	f->answered_cookie = cookie;
	f->answered_rtt = rtt_ns;
	f->answered_adjusted = adjusted;
	f->n_answered++;
}

/* Another wire: nothing but the BTH, which is the device's to find queue pairs by, is where the
 * real codec has it. */
static void veil(uint8_t *bth, size_t len)
{
	for (size_t i = sizeof(struct roce_bth); i < len; i++)
		bth[i] ^= (uint8_t)(0xa5 + i);
}

static int put_veiled(const struct mrc_pkt *pkt, uint8_t *out, size_t room)
{
	const int n = mrc_codec_ocp_r1.encode(pkt, out, room);

	if (n > 0)
		veil(out, (size_t)n);
	return n;
}

static enum mrc_drop take_veiled(const uint8_t *bth, size_t len, bool trimmed, struct mrc_pkt *pkt)
{
	uint8_t bytes[NET_FRAME];

	assert_true(len <= sizeof(bytes));
	memcpy(bytes, bth, len);
	veil(bytes, len);
	return mrc_codec_ocp_r1.decode(bytes, len, trimmed, pkt);
}

static const struct mrc_codec veiled = {
	.name = "veiled", .decode = take_veiled, .encode = put_veiled};

static void open_device(struct fabric *f, int i, const struct fabric_options *o)
{
	struct mrc_settings set = o->settings ? *o->settings : mrc_settings_default();
	struct rnic_mrc_config config = {.n_ports = FABRIC_PORTS,
		.codec = o->other_codec ? &veiled : NULL,
		.settings = &set,
		.sid = {f->sid[i], f->sid[i], f->sid[i], f->sid[i]},
		.no_trim_nack = o->no_trim_nack,
		.events = {f, ev_changed, answered}};

	set.ev_order = o->order;
	set.base_rtt_us = FABRIC_RTT / 1000;
	set.mbps = 50000;
	assert_int_equal(0, rnic_mrc_open(f->net.end[i].rnic, &config));
	assert_int_equal(-EEXIST, rnic_mrc_open(f->net.end[i].rnic, &config));
}

struct fabric *fabric_make(const struct fabric_options *o)
{
	const struct net_options no = {.ip6 = o->ip6 || o->format != RNIC_MRC_UDP,
		.transport = &rnic_mrc,
		.psn = {o->psn[0], o->psn[1]},
		.wr = o->out,
		.mtu = IBV_MTU_1024,
		.n_ports = o->ports ? FABRIC_PORTS : 1,
		.planes = true};
	struct fabric *f = calloc(1, sizeof(*f));
	struct rnic_mrc_attr attr = o->attr;

	assert_non_null(f);
	f->format = o->format;
	f->ip6 = no.ip6;
	f->out = o->out ? o->out : 48;
	f->ports = o->ports;
	f->jitter = FABRIC_HOP / 4;
	set_paths(f, o);
	attr.paths = &f->paths;
	net_open(&f->net, &no);
	f->net.hook = through;
	f->net.hook_arg = f;
	for (int i = 0; i < 2; i++) {
		struct end *end = &f->net.end[i];

		open_device(f, i, o);
		f->mem[i] = calloc(2, FABRIC_HALF);
		assert_non_null(f->mem[i]);
		assert_int_equal(0, rnic_mr_reg(end->pd, f->mem[i], 2 * FABRIC_HALF,
					    (uintptr_t)f->mem[i], NET_ALL_ACCESS, &f->mr[i]));
		end->qp = net_make_qp(end, &no);
		assert_int_equal(0, rnic_mrc_set(end->qp, &attr, o->mask | RNIC_MRC_PATHS));
	}
	for (int i = 0; i < 2; i++)
		net_to_rts(&f->net, i, f->net.end[i].qp, rnic_qp_num(f->net.end[!i].qp), &no);
	return f;
}

void fabric_free(struct fabric *f)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(0, rnic_mr_dereg(f->mr[i]));
		free(f->mem[i]);
	}
	net_close(&f->net);
	free(f);
}

/* ---- streams ---- */

static uint8_t byte_of(const struct fabric_plan *plan, uint32_t i)
{
	return (uint8_t)(plan->seed + i * 167 + (i >> 8));
}

static bool is_there(const struct fabric *f, int from, const struct fabric_plan *plan)
{
	const uint8_t *to = f->mem[!from] + FABRIC_HALF + plan->offset;

	for (uint32_t i = 0; i < plan->length; i++) {
		if (to[i] != byte_of(plan, i))
			return false;
	}
	return true;
}

static void send(struct fabric *f, int from, uint64_t id, const struct fabric_plan *plan)
{
	struct ibv_sge sge = {
		(uintptr_t)f->mem[from] + plan->offset, plan->length, rnic_mr_lkey(f->mr[from])};
	struct ibv_send_wr wr = {.wr_id = id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = plan->has_imm ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
		.imm_data = htobe32(plan->imm),
		.wr.rdma = {(uintptr_t)f->mem[!from] + FABRIC_HALF + plan->offset,
			rnic_mr_rkey(f->mr[!from])}};

	assert_int_equal(0, rnic_post_send(f->net.end[from].qp, &wr));
}

static void post(struct fabric *f, int from)
{
	struct fabric_stream *s = &f->stream[from];
	struct fabric_plan *plan = &s->plan[s->posted % FABRIC_OUT];
	const uint32_t length = f->fixed                  ? f->fixed
				: net_random(&f->net) % 8 ? net_random(&f->net) % FABRIC_LONGEST
							  : 0;

	if (s->offset + length > FABRIC_HALF)
		s->offset = 0;
	*plan = (struct fabric_plan){.offset = s->offset,
		.length = length,
		.has_imm = net_random(&f->net) % 4 == 0,
		.imm = 0xabcd0000 + s->posted,
		.seed = (uint8_t)net_random(&f->net)};
	for (uint32_t i = 0; i < length; i++)
		f->mem[from][plan->offset + i] = byte_of(plan, i);
	s->offset += length;
	if (plan->has_imm)
		assert_int_equal(0, end_recv(&f->net.end[!from], s->wimms++, 0, 0));
	send(f, from, s->posted++, plan);
}

static void failed(struct fabric *f, int i, const struct ibv_wc *wc)
{
	if (!f->may_fail)
		fail_msg("end %d, request %lu: %d", i, (unsigned long)wc->wr_id, wc->status);
	if (f->n_bad[i]++ == 0)
		f->bad[i] = *wc;
}

static void sent(struct fabric *f, int i)
{
	struct fabric_stream *s = &f->stream[i];
	struct ibv_wc wc;

	while (rnic_cq_poll(f->net.end[i].scq, 1, &wc) == 1) {
		assert_int_equal(s->done, wc.wr_id);
		if (wc.status != IBV_WC_SUCCESS)
			failed(f, i, &wc);
		else
			assert_true(is_there(f, i, &s->plan[s->done % FABRIC_OUT]));
		s->done++;
	}
}

/* An immediate says that all before it is there. */
static void received(struct fabric *f, int i)
{
	struct fabric_stream *s = &f->stream[!i];
	struct ibv_wc wc;

	while (rnic_cq_poll(f->net.end[i].rcq, 1, &wc) == 1) {
		const struct fabric_plan *plan;

		if (wc.status != IBV_WC_SUCCESS) {
			failed(f, i, &wc);
			continue;
		}
		assert_int_equal(s->next_imm++, wc.wr_id);
		assert_int_equal(IBV_WC_RECV_RDMA_WITH_IMM, wc.opcode);
		while (!s->plan[s->seen % FABRIC_OUT].has_imm)
			s->seen++;
		plan = &s->plan[s->seen % FABRIC_OUT];
		assert_int_equal(plan->imm, be32toh(wc.imm_data));
		assert_int_equal(plan->length, wc.byte_len);
		for (uint32_t m = s->done; m <= s->seen; m++)
			assert_true(is_there(f, !i, &s->plan[m % FABRIC_OUT]));
		s->seen++;
	}
}

static void step(struct fabric *f, uint64_t ns)
{
	net_run(&f->net, f->net.now + ns);
	for (int i = 0; i < 2; i++) {
		received(f, i);
		sent(f, i);
		/* What is sent may be forgotten: then nothing more is to be looked for there. */
		if (f->stream[i].seen < f->stream[i].done)
			f->stream[i].seen = f->stream[i].done;
	}
}

/* In both directions; false: there is nothing left to wait for. */
static bool post_more(struct fabric *f)
{
	bool more = false;

	for (int i = 0; i < 2; i++) {
		struct fabric_stream *s = &f->stream[i];

		while (s->posted < s->messages && s->posted - s->done < f->out && f->n_bad[i] == 0)
			post(f, i);
		more |= s->done < s->messages && f->n_bad[i] == 0;
	}
	return more;
}

bool fabric_run(struct fabric *f, uint64_t longest)
{
	const uint64_t end = f->net.now + longest;
	bool more;

	while ((more = post_more(f)) && f->net.now < end)
		step(f, FABRIC_HOP / 8);
	return !more;
}

void fabric_wait(struct fabric *f, uint64_t ns)
{
	const uint64_t end = f->net.now + ns;

	while (f->net.now < end)
		step(f, FABRIC_HOP);
}

void fabric_messages(struct fabric *f, unsigned there, unsigned back)
{
	f->stream[0].messages += there;
	f->stream[1].messages += back;
}

/* ---- looking, and lying ---- */

uint64_t fabric_count(const struct fabric *f, int i, const char *name)
{
	const char *is;
	uint64_t value;

	for (unsigned n = 0; (is = rnic_qp_counter(f->net.end[i].qp, n, &value)) != NULL; n++) {
		if (strcmp(is, name) == 0)
			return value;
	}
	fail_msg("no counter %s", name);
	return 0;
}

uint64_t fabric_dev_count(const struct fabric *f, int i, const char *name)
{
	const char *is;
	uint64_t value;

	for (unsigned n = 0; (is = rnic_mrc_counter(f->net.end[i].rnic, n, &value)) != NULL; n++) {
		if (strcmp(is, name) == 0)
			return value;
	}
	fail_msg("no counter %s", name);
	return 0;
}

size_t fabric_frame(struct fabric *f, int from, const struct mrc_pkt *pkt, const void *payload,
	unsigned path, uint8_t dscp, const struct wire_ip *src, uint8_t *out, size_t cap)
{
	const unsigned gid = f->ip6 ? 2 : 1;
	struct mrc_flow flow = {.ttl = 64,
		.udp_port = 4791,
		.ev = f->paths.path[path].ev,
		.tos = (uint8_t)(dscp << 2)};
	int n;

	rnic_mac(f->net.end[!from].rnic, 0, out);
	rnic_mac(f->net.end[from].rnic, 0, out + 6);
	rnic_gid(f->net.end[from].rnic, 0, gid, &flow.src);
	rnic_gid(f->net.end[!from].rnic, 0, gid, &flow.dst);
	if (src != NULL)
		flow.src = *src;
	put_be16(out + 12, wire_ip_is4(&flow.dst) ? ETH_TYPE_IP4 : ETH_TYPE_IP6);
	n = mrc_build(out + ETH_HDR_LEN, cap - ETH_HDR_LEN, &mrc_codec_ocp_r1, &flow, pkt, payload);
	assert_true(n > 0);
	return ETH_HDR_LEN + (size_t)n;
}

unsigned fabric_inject(struct fabric *f, int from, const struct mrc_pkt *pkt, const void *payload,
	unsigned path, uint8_t dscp, const struct wire_ip *src)
{
	uint8_t frame[NET_FRAME];
	size_t len = fabric_frame(f, from, pkt, payload, path, dscp, src, frame, sizeof(frame));

	return rnic_rx(f->net.end[!from].rnic, 0, frame, len, f->net.now);
}
