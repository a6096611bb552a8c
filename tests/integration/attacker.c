/* SPDX-License-Identifier: BSD-3-Clause */
/* A host that attacks: sends made-up packets through its port as fast as it can.
 *
 *	attacker RNIC.json SECONDS ADDRESS-OF-SWITCH OWN-QPN MEMBER=QPN...
 *
 * RNIC.json is the host's (tools/lab). OWN-QPN is the switch's QPN of a group that this host is a
 * member of; MEMBER=QPN pairs are a member's address and the switch's QPN for it in another group.
 * Prints how many packets it sent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/port/port.h"
#include "lib/wire/frame.h"

enum { N_FRAMES = 512, FRAME_MAX = 4400, BURST = 32, MAX_MEMBERS = 16, MTU = 4200 };

struct attack {
	uint8_t mac[6], switch_mac[6];
	struct wire_ip own, sw;
	uint32_t own_qpn;
	unsigned n_members;
	struct wire_ip member[MAX_MEMBERS];
	uint32_t qpn[MAX_MEMBERS];
	struct {
		uint8_t bytes[FRAME_MAX];
		unsigned len;
	} frame[N_FRAMES];
	uint64_t rng;
};

static uint32_t dice(struct attack *a, uint32_t n)
{
	a->rng = a->rng * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)(a->rng >> 33) % n;
}

/* One packet, well-formed to begin with, then spoilt in one of several ways. */
static void make(struct attack *a, unsigned i)
{
	static const uint8_t opcodes[] = {ROCE_SEND_ONLY, ROCE_SEND_FIRST, ROCE_SEND_LAST,
		ROCE_SEND_ONLY_IMM, ROCE_ACK, ROCE_READ_REQUEST, ROCE_WRITE_ONLY};
	unsigned victim = dice(a, a->n_members), kind = i % 8;
	uint8_t *frame = a->frame[i].bytes, payload[4096];
	struct wire_flow flow = {.src = a->own, .dst = a->sw, .ttl = 64, .sport = 0xc000};
	struct wire_hdr hdr = {
		.opcode = opcodes[dice(a, sizeof(opcodes))],
		.syndrome = (uint8_t)(dice(a, 2) ? 0x1f : 0x60 + dice(a, 5)),
		.dqpn = a->qpn[victim],
		.psn = dice(a, 1 << 24),
		.imm = 1u << 29 | dice(a, 1 << 29),
		.ackreq = true,
	};
	unsigned len = 1024u << dice(a, 3);
	int n;

	for (unsigned k = 0; k < sizeof(payload); k++)
		payload[k] = (uint8_t)dice(a, 256);
	memcpy(flow.smac, a->mac, 6);
	memcpy(flow.dmac, a->switch_mac, 6);
	if (hdr.opcode == ROCE_ACK || hdr.opcode == ROCE_READ_REQUEST)
		len = 0;
	else if (hdr.opcode == ROCE_SEND_ONLY_IMM)
		len = 32;
	if (kind == 1 || kind == 2) /* a member's address, on another port */
		flow.src = a->member[victim];
	else if (kind == 3) /* a QPN of nobody */
		hdr.dqpn = dice(a, 1 << 24);
	else if (kind == 4 || kind == 5) { /* in its own group: nothing was agreed on */
		hdr.dqpn = a->own_qpn;
		hdr.syndrome &= 0x7f & ~7; /* a fatal NAK would end it */
	} else if (kind == 6) {            /* to a member, as if from the switch */
		flow.src = a->sw;
		flow.dst = a->member[victim];
		hdr.dqpn = dice(a, 64);
	}
	n = wire_build_frame(frame, FRAME_MAX, &flow, &hdr, payload, len);
	if (n < 0) {
		fprintf(stderr, "attacker: cannot build opcode 0x%02x\n", hdr.opcode);
		exit(1);
	}
	if (kind == 5) /* its own group, but a bit is wrong */
		frame[n - 1 - (int)dice(a, 4)] ^= 1;
	else if (kind == 7) /* cut off, or its lengths lie */
		frame[ETH_HDR_LEN + dice(a, 30)] ^= (uint8_t)(1 + dice(a, 255));
	a->frame[i].len = (unsigned)n;
}

static unsigned send_burst(
	const struct attack *a, const struct port *port, struct rte_mempool *pool, unsigned from)
{
	struct rte_mbuf *m[BURST], *in[BURST];
	unsigned n, k;

	for (n = 0; n < BURST && (m[n] = rte_pktmbuf_alloc(pool)) != NULL; n++) {
		unsigned i = (from + n) % N_FRAMES;

		memcpy(rte_pktmbuf_append(m[n], (uint16_t)a->frame[i].len), a->frame[i].bytes,
			a->frame[i].len);
	}
	k = port_tx_burst(port, m, n);
	rte_pktmbuf_free_bulk(m + k, n - k);
	rte_pktmbuf_free_bulk(in, port_rx_burst(port, in, BURST));
	return k;
}

static int parse(struct attack *a, int argc, char **argv)
{
	for (int i = 5; i < argc && a->n_members < MAX_MEMBERS; i++) {
		char *equals = strchr(argv[i], '=');

		if (!equals)
			return -1;
		*equals = '\0';
		if (wire_ip_parse(argv[i], &a->member[a->n_members]) < 0)
			return -1;
		a->qpn[a->n_members++] = (uint32_t)strtoul(equals + 1, NULL, 0);
	}
	a->own_qpn = (uint32_t)strtoul(argv[4], NULL, 0);
	return wire_ip_parse(argv[3], &a->sw);
}

int main(int argc, char **argv)
{
	static struct attack a = {.rng = 1};
	const struct port_eal eal = {.program = "attacker", .memory_mb = 128};
	json_t *json = argc > 5 ? json_load_file(argv[1], 0, NULL) : NULL;
	const char *mac = json_string_value(json_object_get(json, "mac"));
	struct port_config config;
	struct rte_mempool *pool;
	struct port port;
	char err[PORT_ERR_LEN] = "usage: attacker RNIC.json SECONDS SWITCH OWN-QPN MEMBER=QPN...";
	uint64_t end, sent = 0;

	if (!mac || rte_ether_unformat_addr(mac, (struct rte_ether_addr *)a.mac) != 0 ||
		parse(&a, argc, argv) < 0 ||
		wire_ip_parse(json_string_value(json_array_get(json_object_get(json, "ip"), 0)),
			&a.own) < 0 ||
		port_config_parse(json_object_get(json, "port"), &config, err) < 0 ||
		port_eal_init(&eal, err) < 0 ||
		(pool = port_pool_create("attack", 16383, MTU, err)) == NULL ||
		port_open(&config, pool, 5000, &port, err) < 0) {
		fprintf(stderr, "attacker: %s\n", err);
		return 1;
	}
	memset(a.switch_mac, 0xff, sizeof(a.switch_mac)); /* any port of the switch takes it */
	for (unsigned i = 0; i < N_FRAMES; i++)
		make(&a, i);
	end = port_now_ns() + strtoull(argv[2], NULL, 0) * 1000000000;
	while (port_now_ns() < end)
		sent += send_burst(&a, &port, pool, (unsigned)sent);
	printf("%llu\n", (unsigned long long)sent);
	port_close(&port);
	port_eal_fini();
	json_decref(json);
	return 0;
}
