/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/verbs/metrics.h"

#include <stdio.h>

#include "lib/ctl/metrics.h"
#include "lib/verbs/internal.h"
#include "lib/verbs/netdev.h"

enum { LABELS = 256 };

struct page {
	struct metrics *m;
	const struct iv_metrics_of *of;
	unsigned n;
};

static void kept(const struct page *p)
{
	char label[LABELS];

	metrics_family(p->m, "rnic_kept", CTL_GAUGE,
		"1: the port is here; 0: a program has it, or it cannot be opened.");
	for (unsigned i = 0; i < p->n; i++) {
		metrics_label(label, sizeof(label), 0, "rnic", p->of[i].name);
		metrics_sample(p->m, label, p->of[i].dev != NULL);
	}
}

static void counter(const struct page *p, enum rnic_counter c, const char *text)
{
	char name[64], label[LABELS];

	snprintf(name, sizeof(name), "rnic_%s", rnic_counter_name(c));
	metrics_family(p->m, name, CTL_COUNTER, text);
	for (unsigned i = 0; i < p->n; i++) {
		if (!p->of[i].dev)
			continue;
		metrics_label(label, sizeof(label), 0, "rnic", p->of[i].name);
		metrics_sample(p->m, label, rnic_count(p->of[i].dev->rnic, c));
	}
}

/* A sample for each port of each device; ports are numbered as verbs does. */
static void ports(const struct page *p,
	uint64_t (*of)(const struct rnic *, unsigned port, unsigned c), unsigned c)
{
	char label[LABELS], number[16];

	for (unsigned i = 0; i < p->n; i++) {
		for (unsigned k = 0; p->of[i].dev && k < p->of[i].dev->n_ports; k++) {
			size_t used = metrics_label(label, sizeof(label), 0, "rnic", p->of[i].name);

			snprintf(number, sizeof(number), "%u", k + 1);
			metrics_label(label, sizeof(label), used, "port", number);
			metrics_sample(p->m, label, of(p->of[i].dev->rnic, k, c));
		}
	}
}

static uint64_t port_count(const struct rnic *rnic, unsigned port, unsigned c)
{
	return rnic_port_count(rnic, port, (enum rnic_port_counter)c);
}

static uint64_t port_up(const struct rnic *rnic, unsigned port, unsigned c)
{
	(void)c;
	return rnic_port_is_up(rnic, port);
}

static void port_counter(const struct page *p, enum rnic_port_counter c, const char *text)
{
	char name[64];

	snprintf(name, sizeof(name), "rnic_port_%s", rnic_port_counter_name(c));
	metrics_family(p->m, name, CTL_COUNTER, text);
	ports(p, port_count, c);
}

static void drops(const struct page *p)
{
	char label[LABELS];

	metrics_family(p->m, "rnic_drops", CTL_COUNTER, "received frames dropped, by reason");
	for (unsigned i = 0; i < p->n; i++) {
		for (unsigned d = 1; p->of[i].dev && d < RNIC_N_DROPS; d++) {
			size_t used = metrics_label(label, sizeof(label), 0, "rnic", p->of[i].name);

			metrics_label(label, sizeof(label), used, "reason", rnic_drop_name(d));
			metrics_sample(p->m, label, rnic_drop_count(p->of[i].dev->rnic, d));
		}
	}
}

static void netdev(
	const struct page *p, enum iv_netdev_counter c, const char *name, const char *text)
{
	char label[LABELS];

	metrics_family(p->m, name, CTL_COUNTER, text);
	for (unsigned i = 0; i < p->n; i++) {
		if (!p->of[i].dev || !p->of[i].dev->netdev)
			continue;
		metrics_label(label, sizeof(label), 0, "rnic", p->of[i].name);
		metrics_sample(p->m, label, p->of[i].dev->netdev->count[c]);
	}
}

char *iv_metrics(const struct iv_metrics_of *of, unsigned n, size_t *len)
{
	const struct page p = {metrics_begin(), of, n};

	if (!p.m)
		return NULL;
	kept(&p);
#define X(sym, name, text) counter(&p, RNIC_C_##sym, text);
	RNIC_COUNTERS(X)
#undef X
	metrics_family(p.m, "rnic_port_up", CTL_GAUGE, "1 while the port's link is up");
	ports(&p, port_up, 0);
#define X(sym, name, text) port_counter(&p, RNIC_PORT_C_##sym, text);
	RNIC_PORT_COUNTERS(X)
#undef X
	drops(&p);
#define X(sym, name, text) netdev(&p, IV_NETDEV_##sym, "rnic_" name, text);
	IV_NETDEV_COUNTERS(X)
#undef X
	return metrics_end(p.m, len);
}
