/* SPDX-License-Identifier: BSD-3-Clause */
/* bench-srv6 KIND ROUTES BURSTS: bursts of frames of 128 bytes through the whole graph between two
 * ring ports, for callgrind (tools/bench srv6 --count), which counts within sw_turn. KIND: "un",
 * whose next uSIDs are routes of /64 at random, or "route", to these directly. */
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/wire/bytes.h"
#include "tests/unit/dataplane/harness.h"

enum { BURST = 32, PAYLOAD = 74, NO_NEXT = 59, MEMORY_MB = 1024 };

static void name_route(uint8_t *usids, unsigned i)
{
	put_be16(usids, (uint16_t)(0x2000 + i / 256));
	put_be16(usids + 2, (uint16_t)(1 + i % 256));
}

static void insert(struct sw *sw, unsigned routes)
{
	struct table_update *u = calloc(routes + 1, sizeof(*u));
	struct table_error e = {0};

	u[0] = (struct table_update){.verb = TABLE_INSERT, .table = FWD_LOCAL_SID};
	u[0].entry.key[0].ip = h_ip("fcbb:bb00:1000::");
	u[0].entry.key[0].prefix = 48;
	for (unsigned i = 1; i <= routes; i++) {
		u[i] = (struct table_update){.verb = TABLE_INSERT, .table = FWD_ROUTE6};
		u[i].entry.key[0].ip = h_ip("fcbb:bb00::");
		name_route(u[i].entry.key[0].ip.b + 4, i - 1);
		u[i].entry.key[0].prefix = 64;
		u[i].entry.param[0].ip = h_host6(1);
	}
	if (table_write(sw_tables(sw), u, routes + 1, &e) != 0) {
		fprintf(stderr, "bench-srv6: %s\n", e.msg);
		exit(1);
	}
	free(u);
}

static void burst(struct sw *sw, bool un, unsigned routes)
{
	static const uint8_t payload[PAYLOAD];
	struct wire_ip src = h_host6(0), dst = h_ip("fcbb:bb00::");
	struct frame f = {0};

	if (un)
		put_be16(dst.b + 4, 0x1000);
	for (unsigned i = 0; i < BURST; i++) {
		name_route(dst.b + (un ? 6 : 4), (unsigned)rand() % routes);
		f.len = h_ip6(f.b, h_port_mac(sw, 0), &src, &dst, NO_NEXT, 64, payload, PAYLOAD);
		h_inject(sw, 0, f.b, f.len);
	}
	sw_turn(sw, 0, port_now_ns());
	for (unsigned i = 0; i < BURST; i++)
		if (!h_take(sw, 1, &f)) {
			fprintf(stderr, "bench-srv6: %u of %u packets came out\n", i, BURST);
			exit(1);
		}
}

int main(int argc, char **argv)
{
	const unsigned routes = argc == 4 ? (unsigned)atoi(argv[2]) : 0;
	char more[64];
	struct sw *sw;

	if (routes == 0) {
		fprintf(stderr, "usage: bench-srv6 un|route ROUTES BURSTS\n");
		return 2;
	}
	snprintf(more, sizeof(more), "{'memory_mb':%d}", MEMORY_MB);
	sw = h_start(2, more, NULL);
	insert(sw, routes);
	for (int i = 0; i < atoi(argv[3]); i++)
		burst(sw, strcmp(argv[1], "un") == 0, routes);
	h_stop(sw);
	return 0;
}
