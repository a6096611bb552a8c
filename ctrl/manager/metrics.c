/* SPDX-License-Identifier: BSD-3-Clause */
/* What a monitoring system sees of a manager. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/manager/priv.h"
#include "lib/ctl/metrics.h"

static const uint64_t PAGE_NS = 1000000000;

enum { PHASES = MGR_OVER + 1, LABEL = 2 * MGR_NAME_LEN + sizeof("switch=\"\"") };

static void one(struct metrics *out, const char *name, enum ctl_metric type, uint64_t value,
	const char *help)
{
	metrics_family(out, name, type, help);
	metrics_sample(out, "", value);
}

static void jobs(struct metrics *out, const struct manager *m)
{
	uint64_t n[PHASES] = {0};
	struct mgr_run_view v;
	char label[LABEL];

	for (uint64_t epoch = mgr_jobs_before(m->jobs, UINT64_MAX); epoch;
		epoch = mgr_jobs_before(m->jobs, epoch))
		if (mgr_jobs_view(m->jobs, epoch, &v))
			n[v.phase]++;
	metrics_family(out, "manager_jobs", CTL_GAUGE, "runs of jobs, by phase");
	for (unsigned i = 0; i < PHASES; i++) {
		metrics_label(label, sizeof(label), 0, "phase", mg_phase_name((enum mgr_phase)i));
		metrics_sample(out, label, n[i]);
	}
	metrics_label(label, sizeof(label), 0, "phase", "adopted");
	metrics_sample(out, label, m->n_adopted);
}

static uint64_t is_known(const struct manager *m, const struct mg_switch *s)
{
	(void)m;
	return s->known;
}

static uint64_t arena(const struct manager *m, const struct mg_switch *s)
{
	return mgr_graph_node(m->g, s->node)->sram;
}

static uint64_t promised(const struct manager *m, const struct mg_switch *s)
{
	return mgr_book_used_bytes(m->b, s->node);
}

static uint64_t groups(const struct manager *m, const struct mg_switch *s)
{
	return mgr_book_switch_holders(m->b, s->node);
}

static const struct {
	const char *name, *help;
	uint64_t (*of)(const struct manager *m, const struct mg_switch *s);
} families[] = {
	{"manager_switch_connected", "1: it has said who it is, on the connection there is",
		is_known},
	{"manager_switch_arena_bytes", "aggregation memory, as it last said", arena},
	{"manager_switch_promised_bytes", "of it, to jobs", promised},
	{"manager_switch_groups", "trees that it is in", groups},
};

static void switches(struct metrics *out, const struct manager *m)
{
	const size_t n = metrics_fit(out, m->n_sw);

	for (unsigned f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
		metrics_family(out, families[f].name, CTL_GAUGE, families[f].help);
		for (size_t i = 0; i < n; i++) {
			const struct mg_switch *s = &m->sw[i];
			char label[LABEL];

			metrics_label(label, sizeof(label), 0, "switch",
				mgr_graph_node(m->g, s->node)->name);
			metrics_sample(out, label, families[f].of(m, s));
		}
	}
}

static uint64_t conflicts(const struct manager *m)
{
	const struct mg_cable *cable = NULL;
	struct mgr_conflict c;
	uint64_t n = 0;

	for (unsigned at = 0; mgr_graph_conflict(m->g, &at, &c);)
		n++;
	while ((cable = mg_cable_next(m, cable)))
		n++;
	return n;
}

/* The page as it is now. */
static char *make(const struct manager *m, size_t *len)
{
	struct metrics *out = metrics_begin();

	if (!out)
		return NULL;
	one(out, "manager_leads_s", CTL_GAUGE, (m->now + m->slept - m->started) / 1000000000,
		"how long this manager has led for");
	jobs(out, m);
	switches(out, m);
	one(out, "manager_conflicts", CTL_GAUGE, conflicts(m),
		"links on which the file and what switches say do not agree");
	one(out, "manager_not_the_rank", CTL_COUNTER, m->not_the_rank,
		"requests refused: spoke for a rank that is another process");
	one(out, "manager_place_taken", CTL_COUNTER, m->place_taken,
		"requests refused: would have joined in the place of a rank that is there");
	return metrics_end(out, len);
}

/* Whoever asks often gets what was made for others: the thread that makes it hears heartbeats. */
char *manager_metrics(struct manager *m, size_t *len)
{
	const uint64_t now = m->now + m->slept;
	char *copy;

	if (m->page && now - m->page_made < PAGE_NS && m->page_made <= now) {
		*len = m->page_len;
		copy = malloc(m->page_len + 1);
		return copy ? memcpy(copy, m->page, m->page_len + 1) : NULL;
	}
	free(m->page);
	m->page = make(m, &m->page_len);
	m->page_made = now;
	*len = m->page_len;
	return m->page ? strdup(m->page) : NULL;
}
