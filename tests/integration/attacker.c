/* SPDX-License-Identifier: BSD-3-Clause */
/* A host that attacks: sends made-up packets through its port as fast as it can.
 *
 *	attacker RNIC.json SWITCH MAC OWN VICTIM...
 *
 * RNIC.json is the host's (tools/lab), SWITCH an address of the switch, MAC that of its port. OWN
 * and VICTIMs are connections as their packets have them, SRC,DST,QPN[,PSN[,RING]]: OWN is one that
 * this host may send on, with its first PSN. RING is what INA headers name. Goes on until SIGTERM,
 * then prints how many packets it sent. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/port/config.h"
#include "lib/wire/frame.h"
#include "lib/wire/netreduce.h"

enum {
	N_FRAMES = 512,
	N_LAST = 64,
	LAST_AFTER = 8 * N_FRAMES,
	FRAME_MAX = 4400,
	BURST = 32,
	MAX_VICTIMS = 64,
	MTU = 4200
};

struct connection {
	struct wire_ip src, dst;
	uint32_t qpn, psn, ring;
};

struct attack {
	uint8_t mac[6], switch_mac[6];
	struct wire_ip sw;
	struct connection own, victim[MAX_VICTIMS];
	unsigned n_victims;
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

static unsigned payload_len(struct attack *a, uint8_t opcode)
{
	if (opcode == ROCE_ACK || opcode == ROCE_READ_REQUEST)
		return 0;
	return opcode == ROCE_SEND_ONLY_IMM ? 32 : 1024u << dice(a, 3);
}

static void build(struct attack *a, unsigned i, struct wire_flow *flow, const struct wire_hdr *hdr)
{
	const struct ina_hdr ina = {.ring = (uint16_t)a->victim[0].ring,
		.rank = (uint16_t)dice(a, 4),
		.msg = dice(a, 1 << 16),
		.packets = 4,
		.dtype = 2};
	uint8_t payload[4096];
	int n;

	for (unsigned k = 0; k < sizeof(payload); k++)
		payload[k] = (uint8_t)dice(a, 256);
	ina_encode(&ina, payload);
	memcpy(flow->smac, a->mac, 6);
	memcpy(flow->dmac, a->switch_mac, 6);
	n = wire_build_frame(
		a->frame[i].bytes, FRAME_MAX, flow, hdr, payload, payload_len(a, hdr->opcode));
	if (n < 0) {
		fprintf(stderr, "attacker: cannot build opcode 0x%02x\n", hdr->opcode);
		exit(1);
	}
	a->frame[i].len = (unsigned)n;
}

/* One packet, well-formed to begin with, then spoilt in one of several ways. */
static void make(struct attack *a, unsigned i)
{
	static const uint8_t opcodes[] = {ROCE_SEND_ONLY, ROCE_SEND_FIRST, ROCE_SEND_LAST,
		ROCE_SEND_ONLY_IMM, ROCE_ACK, ROCE_READ_REQUEST, ROCE_WRITE_ONLY, ROCE_WRITE_FIRST,
		ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST_IMM, ROCE_CNP};
	const struct connection *victim = &a->victim[dice(a, a->n_victims)];
	unsigned kind = i % 8;
	uint8_t *frame = a->frame[i].bytes;
	struct wire_flow flow = {.src = a->own.src, .dst = victim->dst, .ttl = 64, .sport = 0xc000};
	struct wire_hdr hdr = {
		.opcode = opcodes[dice(a, sizeof(opcodes))],
		.syndrome = (uint8_t)(dice(a, 2) ? 0x1f : 0x60 + dice(a, 32)),
		.dqpn = victim->qpn,
		.psn = dice(a, 1 << 24),
		.va = dice(a, 1 << 30),
		.rkey = dice(a, 1 << 12),
		.imm = 1u << 29 | dice(a, 1 << 29),
		.ackreq = true,
	};

	/* From host to host a switch only forwards: a few do, the rest would be a flood. */
	if ((kind == 0 || kind == 3 || kind == 7) && i % 128 >= 8)
		flow.dst = a->sw;
	if (kind == 1 || kind == 2) /* a member's address, on another port */
		flow.src = victim->src;
	else if (kind == 3) /* a QPN of nobody */
		hdr.dqpn = dice(a, 1 << 24);
	else if (kind == 4 || kind == 5) { /* in its own group: nothing was agreed on */
		flow.dst = a->own.dst;
		hdr.dqpn = a->own.qpn;
	} else if (kind == 6) { /* to a member, as if from the switch */
		flow.src = a->sw;
		flow.dst = victim->src;
		hdr.dqpn = dice(a, 64);
	}
	build(a, i, &flow, &hdr);
	if (kind == 5) /* its own group, but a bit is wrong */
		frame[a->frame[i].len - 1 - dice(a, 4)] ^= 1;
	else if (kind == 7) /* cut off, or its lengths lie */
		frame[ETH_HDR_LEN + dice(a, 30)] ^= (uint8_t)(1 + dice(a, 255));
}

/* In the place of another: the very PSN that its own connection waits for, with a key that may be
 * anybody's. */
static void make_last(struct attack *a, unsigned i)
{
	struct wire_flow flow = {.src = a->own.src, .dst = a->own.dst, .ttl = 64, .sport = 0xc000};
	const struct wire_hdr hdr = {
		.opcode = i % 2 ? ROCE_WRITE_ONLY : ROCE_WRITE_FIRST,
		.dqpn = a->own.qpn,
		.psn = a->own.psn,
		.va = dice(a, 1 << 30),
		.rkey = i,
		.ackreq = true,
	};

	build(a, i, &flow, &hdr);
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

static int parse_connection(char *text, struct connection *c)
{
	char *part[5] = {text};
	unsigned n = 1;

	for (char *at = text; n < 5 && (at = strchr(at, ',')) != NULL; n++) {
		*at++ = '\0';
		part[n] = at;
	}
	if (n < 3 || wire_ip_parse(part[0], &c->src) < 0 || wire_ip_parse(part[1], &c->dst) < 0)
		return -1;
	c->qpn = (uint32_t)strtoul(part[2], NULL, 0);
	c->psn = n > 3 ? (uint32_t)strtoul(part[3], NULL, 0) : 0;
	c->ring = n > 4 ? (uint32_t)strtoul(part[4], NULL, 0) : 0;
	return 0;
}

static int parse(struct attack *a, int argc, char **argv)
{
	for (int i = 5; i < argc && a->n_victims < MAX_VICTIMS; i++)
		if (parse_connection(argv[i], &a->victim[a->n_victims++]) < 0)
			return -1;
	return parse_connection(argv[4], &a->own) < 0 ? -1 : wire_ip_parse(argv[2], &a->sw);
}

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
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
	char err[PORT_ERR_LEN] = "usage: attacker RNIC.json SWITCH MAC OWN VICTIM...";
	uint64_t sent = 0;
	bool last = false;

	signal(SIGTERM, on_signal);
	if (!mac || rte_ether_unformat_addr(mac, (struct rte_ether_addr *)a.mac) != 0 ||
		rte_ether_unformat_addr(argv[3], (struct rte_ether_addr *)a.switch_mac) != 0 ||
		parse(&a, argc, argv) < 0 ||
		port_config_parse(json_object_get(json, "port"), &config, err) < 0 ||
		port_eal_init(&eal, err) < 0 ||
		(pool = port_pool_create("attack", 16383, MTU, SOCKET_ID_ANY, err)) == NULL ||
		port_open(&config, pool, 5000, &port, err) < 0) {
		fprintf(stderr, "attacker: %s\n", err);
		return 1;
	}
	for (unsigned i = 0; i < N_FRAMES; i++)
		make(&a, i);
	while (!stop) {
		sent += send_burst(&a, &port, pool, (unsigned)(sent % N_FRAMES));
		/* All of them were sent: now what may end its own group. */
		for (unsigned i = 0; i < N_LAST && !last && sent > LAST_AFTER; i++)
			make_last(&a, i);
		last = sent > LAST_AFTER;
	}
	printf("%llu\n", (unsigned long long)sent);
	port_close(&port);
	port_eal_fini();
	json_decref(json);
	return 0;
}
