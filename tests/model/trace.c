/* SPDX-License-Identifier: BSD-3-Clause */
/* A counterexample, step by step: as text and as a capture of all frames that were sent. */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/model.h"

static const char *name_of(const struct mc_sys *s, unsigned node, char *buf)
{
	if (mc_is_host(s, node))
		sprintf(buf, "h%u", node - s->n_sw);
	else
		sprintf(buf, "S%u", node);
	return buf;
}

static uint32_t get_le32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* "{0+1}"; a share that is of another PSN than #i is marked with its own, one counted twice with
 * x2. */
static void print_shares(const uint8_t *payload, unsigned i)
{
	const char *sep = "";

	printf(" {");
	for (unsigned r = 0; r < MC_MAX_RANKS; r++) {
		unsigned count = get_le32(payload) >> 4 * r & 15;
		unsigned psn = (get_le32(payload + 4) >> 4 * r & 15) |
			       (get_le32(payload + 8) >> 4 * r & 15) << 4;

		if (count == 0)
			continue;
		printf("%s%u", sep, r);
		if (count > 1)
			printf("x%u", count);
		else if (psn != i)
			printf(" of #%u", psn);
		sep = "+";
	}
	putchar('}');
}

static void print_frame(struct mc_sys *s, uint32_t id)
{
	const uint8_t *frame;
	const struct wire_pkt *pkt = mc_frame_pkt(s, id, &frame);
	unsigned class = pkt->syndrome & ROCE_AETH_CLASS, i = mc_index(s, pkt->psn), skip = 0;
	bool up = mc_is_ring(s) && pkt->opcode == ROCE_SEND_ONLY; /* between switches */

	if (up) /* numbered from message 0 on */
		i = (pkt->psn - (uint32_t)MC_FIRST_MSG * s->cfg.m) & PSN_MASK;
	if (mc_is_ring(s) && (up || (pkt->flags & ROCE_F_FIRST)))
		skip = INA_LEN;

	if (pkt->opcode == ROCE_CNP) {
		printf("CNP");
		return;
	}
	if ((pkt->opcode & ROCE_OP_MASK) == ROCE_ACK)
		printf("%s", class == ROCE_AETH_ACK   ? "ACK"
			     : class == ROCE_AETH_RNR ? "RNR"
						      : "NAK");
	else
		printf("%s", up                                                   ? "SUM"
			     : (pkt->opcode & ROCE_OP_MASK) == ROCE_SEND_ONLY_IMM ? "CTRL"
										  : "DATA");
	printf(" #%u (0x%06x)", i, pkt->psn);
	if (class == ROCE_AETH_NAK && (pkt->syndrome & ROCE_AETH_VALUE))
		printf(" code %u", pkt->syndrome & ROCE_AETH_VALUE);
	if ((pkt->opcode & ROCE_OP_MASK) != ROCE_ACK &&
		(pkt->opcode & ROCE_OP_MASK) != ROCE_SEND_ONLY_IMM && pkt->pay_len >= 12 + skip)
		print_shares(frame + pkt->pay_off + skip, i);
}

static uint32_t head_of(const struct mc_sys *s, const uint32_t *v, unsigned link)
{
	uint32_t len;

	return *(const uint32_t *)intern_get(&s->queues, v[s->n_nodes + link], &len);
}

static void print_step(struct mc_sys *s, unsigned k, const uint32_t *v, struct mc_action a,
	const struct mc_result *r)
{
	static const char *const verbs[] = {
		[MC_LOSE] = "lost", [MC_DUP] = "doubled", [MC_SWAP] = "overtaken"};
	const struct mc_link *l = &s->link[a.index];
	char from[8], to[8];

	printf("%4u  ", k + 1);
	if (a.kind == MC_SEND) {
		printf("%s sends ", name_of(s, a.index, from));
	} else if (a.kind == MC_TIMEOUT) {
		printf("%s: %s timer", name_of(s, a.index, from),
			mc_host(s, a.index, v[a.index])->rnr ? "RNR" : "retransmission");
	} else if (a.kind == MC_TICK) {
		printf("%s: timer of ", name_of(s, a.index, from));
		printf("%s", name_of(s, s->link[s->out_link[a.index][a.port]].to, to));
	} else if (a.kind == MC_DRAIN || a.kind == MC_END) {
		printf("%s: %s", name_of(s, a.index, from),
			a.kind == MC_DRAIN       ? "the group drains"
			: mc_is_host(s, a.index) ? "leaves the group"
						 : "has no group any more");
	} else if (a.kind == MC_ANEW) {
		printf("%s: %s", name_of(s, a.index, from),
			mc_is_host(s, a.index) ||
					mc_switch_flags(s, a.index, v[a.index]) & MC_S_STOPPED
				? "begins anew"
				: "stops");
	} else if (a.kind == MC_ANSWER) {
		printf("%s answers", name_of(s, a.index, from));
	} else if (a.kind == MC_AGAIN) {
		printf("the group is made again");
	} else if (a.kind == MC_MANAGER) {
		printf("%s: the manager fails the group", name_of(s, a.index, from));
	} else {
		printf("%s > %s ", name_of(s, l->from, from), name_of(s, l->to, to));
		print_frame(s, head_of(s, v, a.index));
		if (a.kind != MC_DELIVER && a.kind != MC_HOLD)
			printf(" %s", verbs[a.kind]);
		else if (r)
			printf(": %s", r->verdict ? r->verdict : "");
	}
	for (unsigned i = 0; r && i < r->n; i++) {
		unsigned node = a.kind == MC_DELIVER || a.kind == MC_HOLD ? l->to : a.index;

		if (a.kind != MC_SEND)
			printf("%s%s ", i ? ", " : "; sends ",
				name_of(s, s->link[s->out_link[node][r->out[i].port]].to, to));
		print_frame(s, r->out[i].frame);
	}
	putchar('\n');
}

void mc_trace_print(struct mc_sys *s, const struct mc_outcome *o)
{
	uint32_t v[2][MC_MAX_WORDS];

	mc_initial(s, v[0]);
	for (unsigned k = 0; k < o->n_trace; k++) {
		const struct mc_result *r;

		mc_apply(s, v[k & 1], o->trace[k], v[~k & 1], &r);
		print_step(s, k, v[k & 1], o->trace[k], r);
	}
	printf("      %s\n", o->violation);
}

int mc_trace_pcap(struct mc_sys *s, const struct mc_outcome *o, const char *path)
{
	pcap_t *p = pcap_open_dead(DLT_EN10MB, MC_FRAME);
	pcap_dumper_t *file = p ? pcap_dump_open(p, path) : NULL;
	uint32_t v[2][MC_MAX_WORDS];

	if (file == NULL) {
		fprintf(stderr, "incline-model: %s: %s\n", path, p ? pcap_geterr(p) : "no memory");
		if (p)
			pcap_close(p);
		return -EIO;
	}
	mc_initial(s, v[0]);
	for (unsigned k = 0; k < o->n_trace; k++) {
		const struct mc_result *r;

		mc_apply(s, v[k & 1], o->trace[k], v[~k & 1], &r);
		for (unsigned i = 0; r && i < r->n; i++) {
			struct pcap_pkthdr head = {.ts = {.tv_sec = k + 1, .tv_usec = (int)i}};
			uint32_t len;
			const void *frame = intern_get(&s->frames, r->out[i].frame, &len);

			head.caplen = head.len = len;
			pcap_dump((u_char *)file, &head, frame);
		}
	}
	pcap_dump_close(file);
	pcap_close(p);
	return 0;
}
