/* SPDX-License-Identifier: BSD-3-Clause */
/* 100 000 routes written in batches by one thread while packets flow: each batch changes several
 * tables, and not one packet sees half of it. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness.h"

enum {
	BATCHES = 10,
	PER_BATCH = 10000,
	V6_PER_BATCH = 100,
	ROUTES = BATCHES * PER_BATCH,
	FLIP = 4, /* updates that move the traffic */
	IN_FLIGHT = 32,
	BETWEEN = 64, /* packets that arrive between two batches, at least */
	PATIENCE = 200000,
};

static struct sw *sw;

/* What the two threads tell each other. */
static _Atomic unsigned arrived; /* packets */
static _Atomic bool done;

struct batch {
	int rc;
	unsigned ms, during; /* packets that arrived while it was written */
};
static struct writer {
	struct table_update *u;
	struct batch insert[BATCHES], refused, removal;
	char why[sizeof(((struct table_error *)0)->msg)];
} writer;

static void gateway(struct table_update *u, enum table_verb verb, unsigned k)
{
	*u = (struct table_update){.table = FWD_NEIGH, .verb = verb};
	u->entry.key[0].ip = h_ip(k % 2 ? "10.0.0.201" : "10.0.0.200");
	u->entry.param[0].u = sw->ports[1 + k % 2].id;
	h_host_mac(30 + k % 2, u->entry.param[1].mac);
}

static void traffics_route(struct table_update *u, enum table_verb verb, unsigned k)
{
	*u = (struct table_update){.table = FWD_ROUTE4, .verb = verb};
	u->entry.key[0].ip = h_ip("20.0.0.0");
	u->entry.key[0].prefix = 8;
	u->entry.param[0].ip = h_ip(k % 2 ? "10.0.0.201" : "10.0.0.200");
}

/* The traffic's route goes over to the other gateway, which is made known, and the one before
 * forgotten: any of it alone loses packets. */
static unsigned flip(struct table_update *u, unsigned k)
{
	gateway(&u[0], TABLE_DELETE, k + 1);
	traffics_route(&u[1], TABLE_DELETE, k + 1);
	gateway(&u[2], TABLE_INSERT, k);
	traffics_route(&u[3], TABLE_INSERT, k);
	return FLIP;
}

static void route4(struct table_update *u, enum table_verb verb, unsigned i)
{
	*u = (struct table_update){.table = FWD_ROUTE4, .verb = verb};
	u->entry.key[0].ip = wire_ip_from4(0x30000000 + (i << 8));
	u->entry.key[0].prefix = 24;
	u->entry.param[0].ip = h_host4(1 + i % 2);
}

static void route6(struct table_update *u, enum table_verb verb, unsigned i)
{
	*u = (struct table_update){.table = FWD_ROUTE6, .verb = verb};
	u->entry.key[0].ip = h_ip("2001:db8::");
	put_be16(u->entry.key[0].ip.b + 4, (uint16_t)i);
	u->entry.key[0].prefix = 48;
	u->entry.param[0].ip = h_host6(1 + i % 2);
}

static struct batch write_batch(unsigned n)
{
	const unsigned before = arrived;
	const uint64_t start = port_now_ns();
	struct table_error e = {0};
	struct batch b = {.rc = table_write(sw_tables(sw), writer.u, n, &e)};

	b.ms = (unsigned)((port_now_ns() - start) / 1000000);
	b.during = arrived - before;
	memcpy(writer.why, e.msg, sizeof(writer.why));
	return b;
}

static void let_packets_pass(void)
{
	for (const unsigned until = arrived + BETWEEN; (int)(until - arrived) > 0;)
		usleep(100);
}

/* The control thread's part. */
static void *write_all(void *arg)
{
	unsigned n = 0;

	for (unsigned k = 0; k < BATCHES; k++) {
		n = flip(writer.u, k);
		for (unsigned i = 0; i < PER_BATCH; i++)
			route4(&writer.u[n++], TABLE_INSERT, k * PER_BATCH + i);
		for (unsigned i = 0; i < V6_PER_BATCH; i++)
			route6(&writer.u[n++], TABLE_INSERT, k * V6_PER_BATCH + i);
		writer.insert[k] = write_batch(n);
		let_packets_pass();
	}
	/* The last of its updates is wrong: there is this route. */
	n = flip(writer.u, BATCHES);
	route6(&writer.u[n++], TABLE_DELETE, 0);
	route4(&writer.u[n++], TABLE_INSERT, ROUTES - 1);
	writer.refused = write_batch(n);
	let_packets_pass();
	n = flip(writer.u, BATCHES);
	for (unsigned i = 1; i < ROUTES; i++)
		route4(&writer.u[n++], TABLE_DELETE, i);
	writer.removal = write_batch(n);
	let_packets_pass();
	done = true;
	return arg;
}

static unsigned send(const char *to)
{
	const struct wire_ip a = h_host4(0), dst = h_ip(to);
	uint8_t b[128];
	unsigned len = h_ip4(b, h_port_mac(sw, 0), &a, &dst, 99, 9, "x", 1);

	h_inject(sw, 0, b, len);
	return 1;
}

/* What has come out, by whichever gateway's port, addressed to that gateway. */
static unsigned take_all(void)
{
	unsigned n = 0;
	struct frame f;
	uint8_t mac[6];

	for (unsigned port = 0; port < 3; port++)
		for (; h_take(sw, port, &f); n++) {
			h_host_mac(30 + port - 1, mac);
			assert_in_range(port, 1, 2);
			assert_memory_equal(f.b, mac, sizeof(mac));
		}
	return n;
}

static void keep_sending(void)
{
	unsigned sent = 0, idle = 0;

	while ((!done || sent != arrived) && idle < PATIENCE) {
		unsigned n;

		while (!done && sent - arrived < IN_FLIGHT)
			sent += send("20.0.0.1");
		n = take_all();
		arrived += n;
		idle = n > 0 ? 0 : idle + 1;
		if (n == 0)
			usleep(100);
	}
	assert_int_equal(arrived, sent);
}

static void print_times(void)
{
	unsigned ms = 0, during = 0;

	printf("%u routes in %u batches, each with %u of IPv6 and another gateway:", ROUTES,
		BATCHES, V6_PER_BATCH);
	for (unsigned k = 0; k < BATCHES; k++) {
		printf(" %u", writer.insert[k].ms);
		ms += writer.insert[k].ms;
		during += writer.insert[k].during;
	}
	printf(" ms, %u in all; %u packets arrived meanwhile, none was lost\n", ms, during);
	printf("%u routes less in one batch: %u ms, %u packets\n", ROUTES - 1, writer.removal.ms,
		writer.removal.during);
}

static void under_traffic(void **state)
{
	struct table_rows rows;
	struct table_error e;
	char err[SW_ERR_LEN] = "";
	pthread_t thread;

	(void)state;
	sw = h_start(3, "{'idle':'sleep','memory_mb':512}", NULL);
	if (sw_start(sw, err) != 0)
		fail_msg("%s", err);
	writer.u = calloc(ROUTES + FLIP, sizeof(*writer.u));
	assert_non_null(writer.u);
	gateway(&writer.u[0], TABLE_INSERT, 1);
	traffics_route(&writer.u[1], TABLE_INSERT, 1);
	assert_int_equal(table_write(sw_tables(sw), writer.u, 2, &e), 0);
	assert_int_equal(pthread_create(&thread, NULL, write_all, NULL), 0);
	keep_sending();
	pthread_join(thread, NULL);

	for (unsigned k = 0; k < BATCHES; k++)
		assert_int_equal(writer.insert[k].rc, 0);
	assert_int_equal(writer.refused.rc, -EEXIST);
	assert_int_equal(writer.removal.rc, 0);
	table_rows(sw_tables(sw), FWD_ROUTE4, &rows);
	assert_int_equal(rows.n, 2); /* the traffic's and one */
	table_rows(sw_tables(sw), FWD_ROUTE6, &rows);
	assert_int_equal(rows.n, BATCHES * V6_PER_BATCH); /* what was refused took none away */
	assert_int_equal(h_losses(sw), 0);
	print_times();
	free(writer.u);
	h_stop(sw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(under_traffic),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	port_eal_fini();
	return failed;
}
