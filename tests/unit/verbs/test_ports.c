/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices with two ports, as programs see them. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <rdma/rdma_cma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/verbs/internal.h"
#include "tests/unit/verbs/fabric.h"

enum { BUF = 1 << 18, GIDS = 3, DEPTH = 16, MS = 1000000 };

struct pairs {
	struct fabric *f;
	struct endpoint a[2], b[2]; /* on port 1, on port 2 */
};

static int setup(void **state)
{
	struct pairs *p = calloc(1, sizeof(*p));

	p->f = fabric_create();
	p->f->n_ports = 2;
	fabric_open(p->f, false);
	for (unsigned i = 0; i < 2; i++) {
		endpoint_create(&p->a[i], p->f->end[0].context, BUF, false);
		endpoint_create(&p->b[i], p->f->end[1].context, BUF, false);
		p->a[i].port = p->b[i].port = (uint8_t)(i + 1);
		endpoints_connect(&p->a[i], &p->b[i], 1);
		for (unsigned k = 0; k < BUF; k++)
			p->a[i].buf[k] = (uint8_t)(k * 5 + k / 253 + i);
	}
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct pairs *p = *state;

	for (unsigned i = 0; i < 2; i++) {
		endpoint_destroy(&p->a[i]);
		endpoint_destroy(&p->b[i]);
	}
	fabric_destroy(p->f);
	free(p);
	return 0;
}

static uint64_t stat(const struct pairs *p, unsigned end, const char *name)
{
	struct inc_dv_stat stats[256];
	unsigned n;

	assert_int_equal(inc_dv_query_stats(p->f->end[end].context, stats, 256, &n), 0);
	assert_true(n <= 256);
	for (unsigned i = 0; i < n; i++)
		if (strcmp(stats[i].name, name) == 0)
			return stats[i].value;
	fail_msg("no counter %s", name);
	return 0;
}

static void queries(void **state)
{
	struct pairs *p = *state;
	struct ibv_context *c = p->f->end[0].context;
	struct ibv_gid_entry table[2 * GIDS], entry;
	struct ibv_device_attr_ex ex;
	struct ibv_device_attr device;
	struct ibv_port_attr attr;
	union ibv_gid gid;
	uint16_t pkey;

	assert_int_equal(ibv_query_device(c, &device), 0);
	assert_int_equal(device.phys_port_cnt, 2);
	assert_int_equal(ibv_query_device_ex(c, NULL, &ex), 0);
	assert_int_equal(ex.phys_port_cnt_ex, 2);
	for (uint8_t n = 1; n <= 2; n++) {
		assert_int_equal(ibv_query_port(c, n, &attr), 0);
		assert_int_equal(attr.state, IBV_PORT_ACTIVE);
		assert_int_equal(attr.gid_tbl_len, GIDS);
		assert_int_equal(ibv_query_gid(c, n, 1, &gid), 0);
		assert_int_equal(gid.raw[14], n - 1); /* 10.77.port.1 */
		assert_int_equal(ibv_query_gid(c, n, 0, &gid), 0);
		assert_int_equal(gid.raw[14], n - 1); /* its MAC's */
		assert_int_equal(ibv_query_pkey(c, n, 0, &pkey), 0);
		assert_int_equal(ibv_query_gid_ex(c, n, 2, &entry, 0), 0);
		assert_int_equal(entry.port_num, n);
	}
	assert_int_equal(ibv_query_port(c, 3, &attr), EINVAL);
	assert_int_equal(ibv_query_gid(c, 3, 0, &gid), -1);
	assert_int_equal(ibv_query_gid(c, 0, 0, &gid), -1);
	assert_int_equal(ibv_query_pkey(c, 3, 0, &pkey), -1);
	assert_int_equal(ibv_query_gid_ex(c, 3, 0, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_table(c, table, 2 * GIDS - 1, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(c, table, 2 * GIDS, 0), 2 * GIDS);
	for (unsigned i = 0; i < 2 * GIDS; i++) {
		assert_int_equal(table[i].port_num, i / GIDS + 1);
		assert_int_equal(table[i].gid_index, i % GIDS);
	}
}

static void write_all(struct pairs *p, unsigned i, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		struct ibv_sge sge = {
			(uintptr_t)p->a[i].buf + k * (BUF / DEPTH), BUF / DEPTH, p->a[i].mr->lkey};
		struct ibv_send_wr wr = {.wr_id = k,
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_RDMA_WRITE,
					   .send_flags = IBV_SEND_SIGNALED,
					   .wr.rdma = {(uintptr_t)p->b[i].buf + k * (BUF / DEPTH),
						   p->b[i].mr->rkey}},
				   *bad;

		assert_int_equal(ibv_post_send(p->a[i].qp, &wr, &bad), 0);
	}
}

static void expect_all(struct pairs *p, unsigned i, unsigned n)
{
	struct ibv_wc wc;

	for (unsigned k = 0; k < n; k++) {
		wait_wc(&p->a[i], &wc);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, k);
	}
}

static void both_carry(void **state)
{
	struct pairs *p = *state;
	const uint64_t packets = BUF / 1024;

	for (unsigned i = 0; i < 2; i++)
		write_all(p, i, DEPTH);
	for (unsigned i = 0; i < 2; i++) {
		expect_all(p, i, DEPTH);
		assert_memory_equal(p->a[i].buf, p->b[i].buf, BUF);
	}
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t sent = stat(p, 0, i ? "port2_tx_frames" : "port1_tx_frames");

		/* and what it took to find each other. */
		assert_true(sent >= packets && sent <= packets + 4);
		assert_int_equal(sent, stat(p, 1, i ? "port2_rx_frames" : "port1_rx_frames"));
		assert_int_equal(0, stat(p, 1, i ? "port2_rx_drops" : "port1_rx_drops"));
	}
	assert_int_equal(stat(p, 0, "tx_frames"),
		stat(p, 0, "port1_tx_frames") + stat(p, 0, "port2_tx_frames"));
}

/* So much time passes, in turns. */
static void run(struct pairs *p, uint64_t ns)
{
	for (const uint64_t until = p->f->now + ns; p->f->now < until;)
		fabric_step(p->f);
}

static void set_links(struct pairs *p, unsigned down)
{
	p->f->link_down = p->f->cut = down;
	run(p, 101 * MS); /* links are looked at ten times a second */
}

static void expect_event(struct pairs *p, enum ibv_event_type type, int port)
{
	struct ibv_async_event event;

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(ibv_get_async_event(p->f->end[i].context, &event), 0);
		assert_int_equal(event.event_type, type);
		assert_int_equal(event.element.port_num, port);
		ibv_ack_async_event(&event);
	}
}

static void no_event(struct pairs *p)
{
	struct ibv_async_event event;

	for (unsigned i = 0; i < 2; i++) {
		const int fd = p->f->end[i].context->async_fd;

		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
		assert_int_equal(ibv_get_async_event(p->f->end[i].context, &event), -1);
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	}
}

static void set_timeout(struct endpoint *ep)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD};

	assert_int_equal(ibv_modify_qp(ep->qp, &attr, IBV_QP_STATE), 0);
	attr.timeout = 16; /* 0.27 s */
	assert_int_equal(ibv_modify_qp(ep->qp, &attr, IBV_QP_TIMEOUT), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(ep->qp, &attr, IBV_QP_STATE), 0);
}

/* The second cable is pulled out in the middle, and put back in time. */
static void one_link_down(void **state)
{
	struct pairs *p = *state;
	struct ibv_port_attr attr;
	struct ibv_wc wc;

	set_timeout(&p->a[1]);
	for (unsigned i = 0; i < 2; i++)
		write_all(p, i, DEPTH);
	set_links(p, 2);
	expect_event(p, IBV_EVENT_PORT_ERR, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(ibv_query_port(p->f->end[i].context, 1, &attr), 0);
		assert_int_equal(attr.state, IBV_PORT_ACTIVE);
		assert_int_equal(ibv_query_port(p->f->end[i].context, 2, &attr), 0);
		assert_int_equal(attr.state, IBV_PORT_DOWN);
	}
	expect_all(p, 0, DEPTH);
	assert_memory_equal(p->a[0].buf, p->b[0].buf, BUF);
	/* It works on, and the other waits. */
	write_all(p, 0, DEPTH);
	expect_all(p, 0, DEPTH);
	run(p, 500 * MS);
	assert_int_equal(ibv_poll_cq(p->a[1].cq, 1, &wc), 0);
	assert_true(stat(p, 0, "port2_tx_lost") > 0);
	assert_int_equal(stat(p, 0, "port1_tx_lost"), 0);
	no_event(p);
	set_links(p, 0);
	expect_event(p, IBV_EVENT_PORT_ACTIVE, 2);
	expect_all(p, 1, DEPTH);
	assert_memory_equal(p->a[1].buf, p->b[1].buf, BUF);
	assert_int_equal(stat(p, 0, "port2_downs"), 1);
	assert_int_equal(stat(p, 0, "port1_downs"), 0);
	no_event(p);
}

/* And too late. */
static void one_link_stays_down(void **state)
{
	struct pairs *p = *state;
	struct ibv_wc wc;

	write_all(p, 1, 2);
	set_links(p, 2);
	expect_event(p, IBV_EVENT_PORT_ERR, 2);
	write_all(p, 0, 2);
	expect_all(p, 0, 2);
	run(p, 1000 * MS);
	wait_wc(&p->a[1], &wc);
	assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
	wait_wc(&p->a[1], &wc);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	set_links(p, 0);
	write_all(p, 0, 2);
	expect_all(p, 0, 2);
}

static void address_handles(void **state)
{
	struct pairs *p = *state;
	struct ibv_ah_attr attr = {.is_global = 1, .grh = {.sgid_index = 1, .hop_limit = 1}};
	struct ibv_ah *ah;

	for (uint8_t n = 0; n <= 3; n++) {
		attr.port_num = n;
		/* A peer on the cable of that port, if there is one. */
		assert_int_equal(
			0, ibv_query_gid(p->f->end[1].context, n == 2 ? 2 : 1, 1, &attr.grh.dgid));
		ah = ibv_create_ah(p->a[0].pd, &attr);
		assert_int_equal(ah != NULL, n == 1 || n == 2);
		if (ah)
			ibv_destroy_ah(ah);
	}
	/* Nobody answers for the first port's address on the second cable. */
	attr.port_num = 2;
	errno = 0;
	assert_null(ibv_create_ah(p->a[0].pd, &attr));
	assert_true(errno == EHOSTUNREACH || errno == ETIMEDOUT);
}

/* An ID bound to an address is bound to the port that has it. */
static void rdma_cm(void **state)
{
	struct pairs *p = *state;
	struct sockaddr_in at = {.sin_family = AF_INET};
	struct rdma_event_channel *channel;
	struct rdma_cm_id *id, *to;

	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(incline_verbs_cm_add(p->f->end[i].context), 0);
	channel = rdma_create_event_channel();
	for (uint8_t n = 0; n < 2; n++) {
		struct rdma_cm_event *event;

		assert_int_equal(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), 0);
		at.sin_addr.s_addr = htonl(0x0a4d0001 + (uint32_t)(n << 8));
		assert_int_equal(rdma_bind_addr(id, (struct sockaddr *)&at), 0);
		assert_int_equal(id->port_num, n + 1);
		assert_int_equal(rdma_create_id(channel, &to, NULL, RDMA_PS_TCP), 0);
		at.sin_addr.s_addr = htonl(0x0a4d0002 + (uint32_t)(n << 8));
		assert_int_equal(rdma_resolve_addr(to, NULL, (struct sockaddr *)&at, 1000), 0);
		assert_int_equal(rdma_get_cm_event(channel, &event), 0);
		assert_int_equal(event->event, RDMA_CM_EVENT_ADDR_RESOLVED);
		rdma_ack_cm_event(event);
		/* By the nearest address: that of the same cable. */
		assert_int_equal(to->port_num, n + 1);
		assert_int_equal(rdma_destroy_id(id), 0);
		assert_int_equal(rdma_destroy_id(to), 0);
	}
	rdma_destroy_event_channel(channel);
}

/* ---- who is at the other end ---- */

/* As the file INCLINE_STATS of the second device has it of a port; NULL: nobody (new reference). */
static json_t *heard(struct fabric *f, unsigned port)
{
	char path[] = "/tmp/incline-verbs-XXXXXX";
	const int fd = mkstemp(path);
	json_t *stats, *list;

	assert_true(fd >= 0);
	close(fd);
	iv_stats_write(iv_dev(f->end[1].context), path);
	stats = json_load_file(path, 0, NULL);
	unlink(path);
	list = json_object_get(json_array_get(json_object_get(stats, "ports"), port), "lldp");
	json_incref(list);
	json_decref(stats);
	return list;
}

static void expect_heard(struct fabric *f, unsigned port, const char *row)
{
	json_t *list = heard(f, port), *want = row ? json_loads(row, 0, NULL) : NULL;

	if (!json_equal(list, want) && list != want)
		fail_msg("%s", json_dumps(list, JSON_COMPACT));
	json_decref(want);
	json_decref(list);
}

static void run_until(struct fabric *f, uint64_t now)
{
	while (f->now < now) {
		f->now += 100 * MS;
		for (unsigned i = 0; i < 4; i++)
			fabric_step(f);
	}
}

static void hear_each_other(unsigned n_ports)
{
	struct fabric *f = fabric_create();
	struct ibv_context *context;
	char row[128];

	f->n_ports = n_ports;
	f->lldp = true;
	fabric_open(f, false);
	run_until(f, f->now + UINT64_C(10000) * MS);
	for (unsigned p = 0; p < n_ports; p++) {
		snprintf(row, sizeof(row),
			"[{\"chassis\":\"02:00:00:00:00:01\",\"port\":\"nic%u\",\"system\":\"a\","
			"\"age_s\":6}]",
			p);
		expect_heard(f, p, row);
	}
	context = f->end[0].context;
	f->end[0].context = NULL; /* the cable does not run it any more */
	assert_int_equal(ibv_close_device(context), 0);
	for (unsigned i = 0; i < 4; i++)
		fabric_step(f);
	for (unsigned p = 0; p < n_ports; p++)
		expect_heard(f, p, NULL);
	fabric_destroy(f);
}

/* Each port is told by the other end's, and a device that is closed says goodbye. */
static void lldp(void **state)
{
	(void)state;
	hear_each_other(2);
	hear_each_other(1);
}

/* Queue pairs over TCP have one port. */
static void not_with_iwarp(void **state)
{
	struct verbs_open_attr attr = {.iwarp = true};
	const struct verbs_port_ops ops = {0};

	(void)state;
	attr.rnic.n_ports = 2;
	errno = 0;
	assert_null(incline_verbs_open_port(&ops, NULL, &attr));
	assert_int_equal(errno, EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(queries, setup, teardown),
		cmocka_unit_test_setup_teardown(both_carry, setup, teardown),
		cmocka_unit_test_setup_teardown(one_link_down, setup, teardown),
		cmocka_unit_test_setup_teardown(one_link_stays_down, setup, teardown),
		cmocka_unit_test_setup_teardown(address_handles, setup, teardown),
		cmocka_unit_test_setup_teardown(rdma_cm, setup, teardown),
		cmocka_unit_test(lldp),
		cmocka_unit_test(not_with_iwarp),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
