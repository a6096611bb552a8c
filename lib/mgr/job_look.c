/* SPDX-License-Identifier: BSD-3-Clause */
/* What others see of runs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/mgr/job_priv.h"

static const uint64_t SECOND = 1000000000;

bool mgr_jobs_view(const struct mgr_jobs *js, uint64_t epoch, struct mgr_run_view *out)
{
	const struct mgr_run *r = mgr_run_find(js, epoch);

	if (r == NULL)
		return false;
	*out = (struct mgr_run_view){.job = &r->job,
		.plan = r->placed ? &r->plan : NULL,
		.phase = r->phase,
		.why = r->why,
		.end = r->end,
		.culprit = r->culprit};
	return true;
}

bool mgr_jobs_is_other(const struct mgr_jobs *js, uint64_t epoch, unsigned rank, uint64_t who)
{
	const struct mgr_run *r = mgr_run_find(js, epoch);

	/* One comparison of a machine word. */
	return r != NULL && rank < r->job.n_ranks && r->rank[rank].joined &&
	       r->rank[rank].info.who != who;
}

uint64_t mgr_jobs_before(const struct mgr_jobs *js, uint64_t epoch)
{
	const struct mgr_run *at = mgr_run_find(js, epoch); /* where the last call ended */
	const struct mgr_run *r = at ? at->next : js->run;

	while (r != NULL && r->epoch >= epoch)
		r = r->next;
	return r ? r->epoch : 0;
}

unsigned mgr_jobs_of(const struct mgr_jobs *js, const char *owner, unsigned *ranks)
{
	unsigned n = 0;

	*ranks = 0;
	for (const struct mgr_run *r = js->run; r != NULL; r = r->next) {
		if (r->phase == MGR_OVER || strcmp(r->job.owner, owner) != 0)
			continue;
		*ranks += r->job.n_ranks;
		n++;
	}
	return n;
}

unsigned mgr_jobs_count(const struct mgr_jobs *js)
{
	return js->n_runs;
}

static void end_line(const struct mgr_jobs *js, const struct mgr_run *r, char *line, size_t len)
{
	const struct mgr_node *n = mgr_graph_node(js->g, r->culprit);
	struct mgr_link l;

	switch (r->end) {
	case MGR_END_RANK_SILENT:
		snprintf(line, len, "rank %u was not heard of any more", r->culprit);
		break;
	case MGR_END_RANK_AGAIN:
		snprintf(line, len, "rank %u joined anew", r->culprit);
		break;
	case MGR_END_JOIN_TIME:
		snprintf(line, len, "only %u of %u ranks joined in time", r->culprit,
			r->job.n_ranks);
		break;
	case MGR_END_LINK_DOWN:
		if (mgr_graph_link(js->g, r->culprit, &l) == 0)
			snprintf(line, len, "the link between %s and %s went down",
				mgr_graph_node(js->g, l.node[0])->name,
				mgr_graph_node(js->g, l.node[1])->name);
		else
			snprintf(line, len, "a link of its tree is gone");
		break;
	case MGR_END_GROUP_FAILED:
		snprintf(line, len, "its group failed on %s", n ? n->name : "?");
		break;
	case MGR_END_GROUP_GONE:
		snprintf(line, len, "%s had no group of it any more", n ? n->name : "?");
		break;
	case MGR_END_SWITCH_LOST:
		snprintf(line, len, "%s started anew", n ? n->name : "a switch that is gone");
		break;
	case MGR_END_SWITCH_SILENT:
		snprintf(line, len, "%s did not answer", n ? n->name : "?");
		break;
	case MGR_END_REFUSED:
		snprintf(line, len, "%s refused the group", n ? n->name : "?");
		break;
	case MGR_END_LEFT:
		snprintf(line, len, "all ranks left");
		break;
	default:
		snprintf(line, len, "nothing failed");
		break;
	}
}

/* It was in the network, which all ranks were connected with. */
static bool goes_on(const struct mgr_run *r)
{
	return r->phase == MGR_RING && r->job.ring && r->n_ready == r->job.n_ranks;
}

static void phase_line(const struct mgr_run *r, uint64_t now, char *line, size_t len)
{
	static const char *const phase[] = {"joining", "installing", "connecting", "starting",
		"active", "by the hosts' ring", "over"};

	if (!goes_on(r))
		snprintf(line, len, "%s", phase[r->phase]);
	else if (r->since == UINT64_MAX)
		snprintf(line, len,
			"going on by the hosts' ring since before this manager was started");
	else
		snprintf(line, len, "going on by the hosts' ring for %llu s",
			(unsigned long long)((now - r->since) / 1000000000));
}

/* Whom it waited for is of no interest once it is over. */
static void note_line(const struct mgr_run *r, uint64_t now, char *line, unsigned len)
{
	if (r->note[0] && r->note_of == 0)
		snprintf(line, len, "; %s", r->note);
	else if (r->note[0] && r->end == MGR_END_NONE)
		snprintf(line, len, "; %llu s ago %s",
			(unsigned long long)((now - r->note_at) / SECOND), r->note);
	else
		line[0] = '\0';
}

int mgr_jobs_explain(
	const struct mgr_jobs *js, const char *name, uint64_t now, char *line, unsigned len)
{
	const struct mgr_run *r = mgr_run_find(js, mgr_jobs_find(js, name));
	char at[MGR_LINE_LEN], rest[MGR_LINE_LEN], note[MGR_LINE_LEN];

	if (r == NULL)
		return -ENOENT;
	if (r->end != MGR_END_NONE)
		end_line(js, r, rest, sizeof(rest));
	else if (r->placed)
		mgr_plan_line(js->p,
			&(struct mgr_wish){.shape = r->job.shape, .n_members = r->job.n_ranks},
			&r->plan, rest, sizeof(rest));
	else if (mgr_run_is_held(js, r))
		snprintf(rest, sizeof(rest),
			"all %u ranks have joined; it is placed when the manager, which has just "
			"started, has heard all switches, in %llu s at most",
			r->job.n_ranks, (unsigned long long)((js->hold_ns + SECOND - 1) / SECOND));
	else if (r->phase == MGR_JOINING)
		snprintf(rest, sizeof(rest), "%u of %u ranks have joined", r->n_joined,
			r->job.n_ranks);
	else
		snprintf(rest, sizeof(rest), "%s", mgr_why_line(r->why));
	phase_line(r, now, at, sizeof(at));
	note_line(r, now, note, sizeof(note));
	snprintf(line, len, "%s, epoch %llu, %s: %s%s", r->job.name, (unsigned long long)r->epoch,
		at, rest, note);
	return 0;
}

void mgr_jobs_note(struct mgr_jobs *js, uint64_t epoch, unsigned of, uint64_t now, const char *text)
{
	struct mgr_run *r = mgr_run_find(js, epoch);

	if (r == NULL || (r->note[0] && of > r->note_of && now - r->note_at < 10 * SECOND))
		return;
	snprintf(r->note, sizeof(r->note), "%s", text);
	r->note_of = of;
	r->note_at = now;
}
