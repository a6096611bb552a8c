/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading what a predecessor has written down (keep.c says what). The file is ours, but may have
 * been damaged or written to by others: everything is checked. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/manager/keep.h"

/* ---- records ---- */

static const struct ctl_field sw_fields[] = {{"node", CTL_STRING, .required = true},
	{"parent", CTL_INT, .required = true, .min = -1, .max = MGR_MAX_NODES},
	{"port", CTL_STRING, .required = true}, {"transit", CTL_BOOL, .required = true}, {0}};

static const struct ctl_field member_fields[] = {
	{"sw", CTL_INT, .required = true, .min = 0, .max = MGR_MAX_NODES},
	{"node", CTL_STRING, .required = true}, {"port", CTL_STRING, .required = true}, {0}};

static const struct ctl_field tree_fields[] = {
	{"sw", CTL_LIST, .item = CTL_OBJECT, .fields = sw_fields, .required = true, .min = 1,
		.max = MGR_MAX_NODES},
	{"members", CTL_LIST, .item = CTL_OBJECT, .fields = member_fields, .required = true,
		.min = 1, .max = MGR_MAX_MEMBERS},
	{0}};

static const struct ctl_field plan_fields[] = {
	{"mode", CTL_INT, .required = true, .min = MGR_MODE_I, .max = MGR_MODE_III},
	{"m", CTL_INT, .required = true, .min = 1, .max = MGR_MAX_WINDOW},
	{"w", CTL_INT, .required = true, .min = 1, .max = MGR_MAX_WINDOW},
	{"slots", CTL_INT, .required = true, .min = 0, .max = MGR_MAX_SLOTS},
	{"bps", CTL_U64, .required = true}, {"goodput", CTL_U64, .required = true},
	{"duty", CTL_INT, .required = true, .min = 1, .max = MGR_DUTY},
	{"whole", CTL_BOOL, .required = true},
	{"height", CTL_INT, .required = true, .min = 1, .max = MGR_MAX_HEIGHT},
	{"tree", CTL_OBJECT, .fields = tree_fields, .required = true},
	{"block", CTL_INT, .min = 0, .max = MGR_MAX_BLOCKS},
	{"start", CTL_INT, .min = 0, .max = MGR_DUTY},
	{"length", CTL_INT, .min = 0, .max = MGR_DUTY}, {0}};

static const struct ctl_field run_fields[] = {
	{"job", CTL_STRING, .required = true, .min = 1, .max = MGR_NAME_LEN - 1},
	{"owner", CTL_STRING, .required = true, .max = MGR_NAME_LEN - 1},
	{"who", CTL_LIST, .item = CTL_U64, .required = true, .min = 1, .max = MGR_MAX_MEMBERS},
	{"mtu", CTL_INT, .required = true, .min = 256, .max = 4096},
	{"m", CTL_INT, .required = true, .min = 0, .max = MGR_MAX_WINDOW},
	{"hop_ns", CTL_U64, .required = true},
	{"loss_ppm", CTL_INT, .required = true, .min = 0, .max = MGR_PPM},
	{"reproducible", CTL_BOOL, .required = true}, {"half", CTL_BOOL, .required = true},
	{"want_bps", CTL_U64, .required = true}, {"least_bps", CTL_U64, .required = true},
	{"duty", CTL_INT, .required = true, .min = 1, .max = MGR_DUTY},
	{"promised", CTL_BOOL, .required = true}, {"low", CTL_BOOL, .required = true},
	{"ring", CTL_BOOL, .required = true}, {"plan", CTL_OBJECT, .fields = plan_fields}, {0}};

static const struct ctl_field culprit_fields[] = {{"node", CTL_STRING}, {"port", CTL_STRING},
	{"number", CTL_INT, .min = 0, .max = UINT32_MAX}, {0}};

static const struct ctl_field state_fields[] = {
	{"phase", CTL_INT, .required = true, .min = MGR_INSTALLING, .max = MGR_OVER},
	{"want", CTL_INT, .required = true, .min = 0, .max = MGR_STEP_GONE},
	{"why", CTL_INT, .required = true, .min = 0, .max = MGR_WHYS - 1},
	{"end", CTL_INT, .required = true, .min = 0, .max = MGR_ENDS - 1},
	{"culprit", CTL_OBJECT, .fields = culprit_fields, .required = true},
	{"ready", CTL_STRING, .required = true, .min = 1, .max = MGR_MAX_MEMBERS},
	{"left", CTL_STRING, .required = true, .min = 1, .max = MGR_MAX_MEMBERS}, {0}};

static const struct ctl_field link_fields[] = {
	{"a", CTL_STRING, .required = true, .min = 1, .max = MGR_NAME_LEN - 1},
	{"a_port", CTL_STRING, .required = true, .min = 1, .max = MGR_NAME_LEN - 1},
	{"b", CTL_STRING, .required = true, .min = 1, .max = MGR_NAME_LEN - 1},
	{"b_port", CTL_STRING, .required = true, .min = 1, .max = MGR_NAME_LEN - 1},
	{"host", CTL_BOOL, .required = true}, {"chassis", CTL_STRING, .min = 1, .max = 63},
	{"mbps", CTL_INT, .min = 1, .max = 10000000}, {0}};

static const struct ctl_field host_fields[] = {
	{"name", CTL_STRING, .required = true, .min = 1, .max = MGR_NAME_LEN - 1}, {0}};

static const struct ctl_field blocks_fields[] = {
	{"bytes", CTL_LIST, .item = CTL_U64, .required = true, .min = 1, .max = MGR_MAX_BLOCKS},
	{0}};

static const struct ctl_field policy_fields[] = {
	{"policy", CTL_STRING, .required = true}, {"file", CTL_STRING, .required = true}, {0}};

/* ---- all of them ---- */

struct loading {
	struct manager *m;
	char *err;
	json_t *run, *state;                   /* by epoch, as text */
	json_t *link, *host, *blocks, *policy; /* by what follows */
	uint64_t *epoch;                       /* of runs */
	unsigned n, room;
	uint64_t born, bound; /* 0: not there */
};

static int refuse(char *err, const char *key, const char *why)
{
	snprintf(err, MANAGER_ERR_LEN, "store: record \"%.64s\": %.160s", key, why);
	return -EBADMSG;
}

/* The whole of it, decimal. */
static bool number(const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && !*end && !errno;
}

static int read_record(struct loading *l, const char *key, const char *value,
	const struct ctl_field *fields, json_t *into)
{
	struct ctl_problem p;
	char why[CTL_PATH_LEN + CTL_MSG_LEN];
	json_error_t at;
	json_t *j = ctl_load(value, strlen(value), &at);

	if (!j)
		return refuse(l->err, key, at.text);
	if (ctl_check(fields, j, "", &p)) {
		ctl_problem_text(&p, why, sizeof(why));
		json_decref(j);
		return refuse(l->err, key, why);
	}
	return json_object_set_new(into, strchr(key, '/') ? strchr(key, '/') + 1 : key, j) ? -ENOMEM
											   : 0;
}

static int note_epoch(struct loading *l, uint64_t epoch)
{
	uint64_t *more = l->epoch;

	if (l->n == l->room) {
		l->room = l->room ? 2 * l->room : 64;
		more = realloc(l->epoch, l->room * sizeof(*more));
		if (!more)
			return -ENOMEM;
		l->epoch = more;
	}
	l->epoch[l->n++] = epoch;
	return 0;
}

static int take(void *to, const char *key, const char *value)
{
	struct loading *l = to;
	uint64_t epoch;
	int rc;

	if (!strcmp(key, "born") || !strcmp(key, "epoch"))
		return number(value, key[0] == 'b' ? &l->born : &l->bound)
			       ? 0
			       : refuse(l->err, key, "is no number");
	if (!strncmp(key, "run/", 4) && number(key + 4, &epoch)) {
		rc = read_record(l, key, value, run_fields, l->run);
		return rc ? rc : note_epoch(l, epoch);
	}
	if (!strncmp(key, "state/", 6) && number(key + 6, &epoch))
		return read_record(l, key, value, state_fields, l->state);
	if (!strncmp(key, "link/", 5))
		return read_record(l, key, value, link_fields, l->link);
	if (!strncmp(key, "host/", 5))
		return read_record(l, key, value, host_fields, l->host);
	if (!strcmp(key, "policy"))
		return read_record(l, key, value, policy_fields, l->policy);
	if (!strncmp(key, "blocks/", 7))
		return read_record(l, key, value, blocks_fields, l->blocks);
	return refuse(l->err, key, "is not known to this version");
}

static int read_all(struct loading *l)
{
	int rc;

	l->run = json_object();
	l->state = json_object();
	l->link = json_object();
	l->host = json_object();
	l->blocks = json_object();
	l->policy = json_object();
	if (!l->run || !l->state || !l->link || !l->host || !l->blocks || !l->policy)
		return -ENOMEM;
	rc = l->m->store.each(l->m->store.arg, take, l);
	if (rc && rc != -ENOMEM && rc != -EBADMSG)
		snprintf(l->err, MANAGER_ERR_LEN, "store: cannot be read: %s", strerror(-rc));
	return rc;
}

static void forget(struct loading *l)
{
	json_decref(l->run);
	json_decref(l->state);
	json_decref(l->link);
	json_decref(l->host);
	json_decref(l->blocks);
	json_decref(l->policy);
	free(l->epoch);
}

int mg_keep_epoch(struct manager *m, uint64_t first, uint64_t *epoch, char err[MANAGER_ERR_LEN])
{
	struct loading l = {.m = m, .err = err};
	int rc = read_all(&l);

	m->born = l.born ? l.born : first;
	*epoch = l.bound > first ? l.bound : first;
	if (!rc && !l.born && (rc = mg_put_number(m, "born", m->born)))
		snprintf(err, MANAGER_ERR_LEN, "store: cannot be written to: %s", strerror(-rc));
	forget(&l);
	return rc;
}

/* ---- one run ---- */

static int read_switches(struct manager *m, const json_t *list, struct mgr_tree *t)
{
	const json_t *row;
	struct mgr_link l;
	size_t i;

	json_array_foreach(list, i, row)
	{
		struct mgr_tree_sw *s = &t->sw[i];
		const int node = mgr_graph_find(m->g, rpc_string(row, "node"));
		int link;

		s->parent = (int)rpc_int(row, "parent", -1);
		s->transit = rpc_bool(row, "transit", false);
		if (node < 0 || !mg_switch_of(m, (unsigned)node) || s->parent >= (int)i ||
			(s->parent < 0) != (i == 0))
			return -ENOENT;
		s->node = (unsigned)node;
		if (i == 0)
			continue;
		link = mg_link_at(m, s->node, rpc_string(row, "port"), &l);
		if (link < 0 || l.node[l.node[0] == s->node] != t->sw[s->parent].node)
			return -ENOENT;
		s->link = (unsigned)link;
		t->sw[s->parent].n_children++;
	}
	return 0;
}

static int read_members(struct manager *m, const json_t *list, struct mgr_tree *t)
{
	const json_t *row;
	struct mgr_link l;
	size_t i;

	json_array_foreach(list, i, row)
	{
		const int node = mgr_graph_find(m->g, rpc_string(row, "node"));
		const unsigned sw = (unsigned)rpc_int(row, "sw", 0);
		int link;

		if (node < 0 || sw >= t->n_sw)
			return -ENOENT;
		link = mg_link_at(m, (unsigned)node, rpc_string(row, "port"), &l);
		if (link < 0 || l.node[l.node[0] == (unsigned)node] != t->sw[sw].node)
			return -ENOENT;
		t->member[i].sw = sw;
		t->member[i].link = (unsigned)link;
		t->sw[sw].n_children++;
	}
	return 0;
}

/* -ENOENT: it is not on this fabric (any more). */
static int read_plan(struct manager *m, const json_t *j, struct mgr_plan *p)
{
	const json_t *tree = json_object_get(j, "tree"), *sw = json_object_get(tree, "sw"),
		     *members = json_object_get(tree, "members");
	struct mgr_tree *t = &p->tree;
	int rc;

	*p = (struct mgr_plan){
		.size = {(unsigned)rpc_int(j, "mode", 0), (unsigned)rpc_int(j, "m", 0),
			(unsigned)rpc_int(j, "w", 0), (unsigned)rpc_int(j, "slots", 0)},
		.duty = (unsigned)rpc_int(j, "duty", MGR_DUTY),
		.whole = rpc_bool(j, "whole", false),
		.window = {(unsigned)rpc_int(j, "block", 0), (unsigned)rpc_int(j, "start", 0),
			(unsigned)rpc_int(j, "length", 0)}};
	ctl_get_u64(json_object_get(j, "bps"), &p->bps);
	ctl_get_u64(json_object_get(j, "goodput"), &p->goodput);
	t->n_sw = (unsigned)json_array_size(sw);
	t->n_members = (unsigned)json_array_size(members);
	t->height = (unsigned)rpc_int(j, "height", 1);
	t->sw = calloc(t->n_sw, sizeof(t->sw[0]));
	t->member = calloc(t->n_members, sizeof(t->member[0]));
	if (!t->sw || !t->member)
		return -ENOMEM;
	rc = read_switches(m, sw, t);
	if (!rc)
		rc = read_members(m, members, t);
	for (unsigned i = 0; i < t->n_sw; i++)
		if (t->sw[i].n_children > t->n_children)
			t->n_children = t->sw[i].n_children;
	return t->n_children > MGR_MAX_CHILDREN ? -ENOENT : rc;
}

static void read_job(const json_t *j, struct mgr_job *job)
{
	*job = (struct mgr_job){.n_ranks = (unsigned)json_array_size(json_object_get(j, "who")),
		.duty = (unsigned)rpc_int(j, "duty", MGR_DUTY),
		.promised = rpc_bool(j, "promised", false),
		.low = rpc_bool(j, "low", false),
		.ring = rpc_bool(j, "ring", false),
		.shape = {.mtu = (unsigned)rpc_int(j, "mtu", 0),
			.m = (unsigned)rpc_int(j, "m", 0),
			.loss_ppm = (unsigned)rpc_int(j, "loss_ppm", 0),
			.reproducible = rpc_bool(j, "reproducible", false),
			.half = rpc_bool(j, "half", true)}};
	snprintf(job->name, sizeof(job->name), "%s", rpc_string(j, "job"));
	snprintf(job->owner, sizeof(job->owner), "%s", rpc_string(j, "owner"));
	ctl_get_u64(json_object_get(j, "hop_ns"), &job->shape.hop_ns);
	ctl_get_u64(json_object_get(j, "want_bps"), &job->want_bps);
	ctl_get_u64(json_object_get(j, "least_bps"), &job->least_bps);
}

struct ranks {
	const json_t *who;
	const char *ready, *left;
};

static uint64_t who(const void *ranks, unsigned rank)
{
	const struct ranks *r = ranks;
	uint64_t out = 0;

	ctl_get_u64(json_array_get(r->who, rank), &out);
	return out;
}

static bool ready(const void *ranks, unsigned rank)
{
	return ((const struct ranks *)ranks)->ready[rank] == '1';
}

static bool left(const void *ranks, unsigned rank)
{
	return ((const struct ranks *)ranks)->left[rank] == '1';
}

static unsigned read_culprit(struct manager *m, const json_t *j)
{
	const char *node = rpc_string(j, "node"), *port = rpc_string(j, "port");
	const int at = node ? mgr_graph_find(m->g, node) : -ENOENT;
	struct mgr_link l;

	if (!node)
		return (unsigned)rpc_int(j, "number", 0);
	if (at < 0 || !port)
		return at < 0 ? UINT32_MAX : (unsigned)at;
	return (unsigned)mg_link_at(m, (unsigned)at, port, &l);
}

/* -ENOENT: not on this fabric. */
static int restore(struct loading *l, uint64_t epoch, const char *key)
{
	const json_t *run = json_object_get(l->run, key), *state = json_object_get(l->state, key);
	struct ranks ranks = {
		json_object_get(run, "who"), rpc_string(state, "ready"), rpc_string(state, "left")};
	struct mgr_run_kept k = {.epoch = epoch,
		.who = who,
		.ready = ready,
		.left = left,
		.ranks = &ranks,
		.phase = (enum mgr_phase)rpc_int(state, "phase", 0),
		.want = (enum mgr_step)rpc_int(state, "want", 0),
		.why = (enum mgr_why)rpc_int(state, "why", 0),
		.end = (enum mgr_end)rpc_int(state, "end", 0)};
	struct mgr_plan plan = {0};
	int rc = 0;

	read_job(run, &k.job);
	if (strlen(ranks.ready) != k.job.n_ranks || strlen(ranks.left) != k.job.n_ranks)
		return -EINVAL;
	k.culprit = read_culprit(l->m, json_object_get(state, "culprit"));
	if (json_object_get(run, "plan")) {
		rc = read_plan(l->m, json_object_get(run, "plan"), &plan);
		k.plan = &plan;
	}
	if (!rc)
		rc = mgr_jobs_restore(l->m->jobs, &k, l->m->now);
	if (rc)
		mgr_plan_free(&plan);
	return rc;
}

static int drop(struct manager *m, uint64_t epoch, const char *job)
{
	char key[32];
	int rc;

	mg_say(m, JOURNAL_WARNING,
		"job %s, epoch %" PRIu64 ": its tree is not in this fabric: it is over", job,
		epoch);
	snprintf(key, sizeof(key), "run/%" PRIu64, epoch);
	rc = m->store.put(m->store.arg, key, NULL);
	snprintf(key, sizeof(key), "state/%" PRIu64, epoch);
	return rc ? rc : m->store.put(m->store.arg, key, NULL);
}

static int load_run(struct loading *l, uint64_t epoch)
{
	char key[24], name[32];
	int rc;

	snprintf(key, sizeof(key), "%" PRIu64, epoch);
	snprintf(name, sizeof(name), "run/%s", key);
	if (!json_object_get(l->state, key))
		return refuse(l->err, name, "its \"state\" is missing");
	rc = restore(l, epoch, key);
	if (rc == -ENOENT)
		return drop(l->m, epoch, rpc_string(json_object_get(l->run, key), "job"));
	return rc == -ENOMEM || !rc ? rc : refuse(l->err, name, "contradicts itself, or its state");
}

/* After the runs: blocks that are none's any more are nobody's. */
static int load_blocks(struct loading *l)
{
	char key[MGR_NAME_LEN + 64];
	const char *name;
	json_t *row;

	json_object_foreach(l->blocks, name, row)
	{
		const json_t *sizes = json_object_get(row, "bytes");
		const int node = mgr_graph_find(l->m->g, name);
		struct mg_switch *s = node < 0 ? NULL : mg_switch_of(l->m, (unsigned)node);
		uint64_t bytes = 0;
		int rc = 0;

		snprintf(key, sizeof(key), "blocks/%s", name);
		for (unsigned i = 0; s && !rc && i < json_array_size(sizes); i++) {
			ctl_get_u64(json_array_get(sizes, i), &bytes);
			s->block[i] = bytes;
			rc = mgr_book_restore_block(l->m->b, s->node, i + 1, bytes);
		}
		if (rc)
			return refuse(l->err, key, "is larger than any switch's memory");
		if (!s && (rc = l->m->store.put(l->m->store.arg, key, NULL)))
			return rc;
	}
	return 0;
}

static int load_policy(struct loading *l)
{
	const json_t *record = json_object_get(l->policy, "policy");
	const int rc = record ? mg_policy_restore(l->m, record) : 0;

	return rc == -EBADMSG ? refuse(l->err, "policy", "names no policy") : rc;
}

static int ascending(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

int mg_keep_load(struct manager *m, char err[MANAGER_ERR_LEN])
{
	struct loading l = {.m = m, .err = err};
	int rc = read_all(&l);

	if (!rc)
		mg_discover_restore(m, l.link, l.host);
	if (l.n)
		qsort(l.epoch, l.n, sizeof(*l.epoch), ascending);
	for (unsigned i = 0; !rc && i < l.n; i++)
		rc = load_run(&l, l.epoch[i]);
	if (!rc)
		rc = load_blocks(&l);
	if (!rc)
		rc = load_policy(&l);
	if (!rc && json_object_size(l.state) != l.n)
		rc = refuse(err, "state", "there are more of them than runs");
	if (!rc && l.n)
		mg_say(m, JOURNAL_NOTICE, "goes on with %u runs of its predecessor",
			mgr_jobs_count(m->jobs));
	forget(&l);
	return rc;
}
