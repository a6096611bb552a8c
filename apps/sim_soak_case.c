/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/sim_soak_case.h"

#include <errno.h>
#include <string.h>

static const char *const fault_name[SOAK_N_FAULTS] = {
	"loss", "burst", "nth", "dup", "reorder", "corrupt", "down", "queue"};

static unsigned below(uint64_t *rng, unsigned n)
{
	return (unsigned)(sim_random(rng) % n);
}

/* ---- making ---- */

static void make_topology(struct soak_case *c, uint64_t *rng)
{
	static const char *const shape[] = {"star:2", "star:3", "star:4", "star:6", "star:8",
		"tree:2x2", "tree:3x2", "tree:2x4", "tree:1x3", "tree:2x2x2", "clos2:3x2x2",
		"clos2:2x4x2"};
	static const uint64_t mbps[] = {1000, 10000, 100000}, delay[] = {200, 1000, 5000, 50000};

	snprintf(c->topology, sizeof(c->topology), "%s",
		shape[below(rng, sizeof(shape) / sizeof(shape[0]))]);
	c->mbps = mbps[below(rng, 3)];
	c->delay_ns = delay[below(rng, 4)];
}

static void make_work(struct soak_job *job, struct sim_work *w, uint64_t *rng)
{
	static const unsigned most[] = {64, 1024, 8192, 65536};
	const bool few = job->mode == CCL_MODE_NETREDUCE;

	w->op = (enum ccl_collective)below(rng, CCL_N_COLLECTIVES);
	if (few && w->op != CCL_BARRIER)
		w->op = CCL_ALLREDUCE;
	w->root = below(rng, job->n_ranks);
	w->bytes = below(rng, most[below(rng, 4)]) & ~3u;
	/* A block for every rank. */
	w->bytes -= w->bytes % (4 * job->n_ranks);
}

static const enum ccl_mode modes[] = {CCL_MODE_1, CCL_MODE_2, CCL_MODE_2, CCL_MODE_3, CCL_MODE_3,
	CCL_MODE_NETREDUCE, CCL_MODE_RING};

static void make_job(struct soak_job *job, unsigned n_hosts, unsigned mode, uint64_t *rng)
{
	static const uint64_t skew[] = {0, 0, 10000, 1000000, 100000000};
	static const uint16_t mtu[] = {256, 1024, 4096};

	job->mode =
		mode ? (enum ccl_mode)mode : modes[below(rng, sizeof(modes) / sizeof(modes[0]))];
	job->kind = below(rng, 2) ? CCL_MIXED : CCL_SINGLE;
	job->mtu = mtu[below(rng, 3)];
	job->m = (uint16_t)(1 + below(rng, 6));
	job->w = (uint16_t)(2 + below(rng, 20));
	/* Short timeouts of the hosts need STALL_RNR (docs/inc-protocol.md, 2.4). */
	job->flags = INC_F_STALL_RNR | (below(rng, 4) ? INC_F_LATE_FLUSH : 0) |
		     (below(rng, 4) ? 0 : INC_F_DUP_ALL) | (below(rng, 4) ? 0 : INC_F_REPRODUCIBLE);
	if (job->mode == CCL_MODE_3 && job->kind == CCL_SINGLE && below(rng, 2))
		job->flags |= INC_F_SR;
	job->start_psn = below(rng, 3) ? (uint32_t)below(rng, 1 << 24) : 0xfffff0;
	job->n_ranks = 2 + below(rng, n_hosts - 1);
	job->first_host = below(rng, n_hosts - job->n_ranks + 1);
	job->skew_ns = skew[below(rng, 5)];
	job->n_work = 1 + below(rng, SOAK_MAX_WORK);
	for (unsigned i = 0; i < job->n_work; i++)
		make_work(job, &job->work[i], rng);
}

/* As bad as it may be while retries, of which a queue pair has seven of 67 ms, bring everything
 * through in the end. */
static void make_fault(struct soak_fault *f, uint64_t *rng)
{
	static const double most[SOAK_N_FAULTS] = {
		[SOAK_LOSS] = 0.03,
		[SOAK_BURST] = 0.02,
		[SOAK_DUP] = 0.2,
		[SOAK_REORDER] = 0.2,
		[SOAK_CORRUPT] = 0.03,
	};

	f->kind = (enum soak_fault_kind)below(rng, SOAK_N_FAULTS);
	f->link = below(rng, 3) ? below(rng, 64) : SOAK_ALL_LINKS;
	f->p = most[f->kind] * (1 + below(rng, 100)) / 100;
	f->from = f->kind == SOAK_NTH     ? 1 + below(rng, 200)
		  : f->kind == SOAK_QUEUE ? 20000 + below(rng, 200000)
					  : below(rng, 2000000);
	f->len = 1000 + below(rng, below(rng, 2) ? 100000 : 100000000);
}

/* Half of the cases have a control plane that works; the others' may fail, and then says so. */
static void make_control(struct sim_control_conf *k, uint64_t *rng)
{
	static const uint64_t MS = 1000000;

	k->timeout_ns = (500 + below(rng, 5000)) * MS;
	if (below(rng, 2))
		return;
	k->delay_ns = below(rng, 20 * MS);
	k->jitter_ns = below(rng, 2) ? 0 : below(rng, 50 * MS);
	k->loss = below(rng, 2) ? 0 : (double)below(rng, 200) / 1000;
	k->brk = below(rng, 2) ? 0 : (double)below(rng, 150) / 1000;
	k->silent = below(rng, 2) ? 0 : (double)below(rng, 100) / 1000;
	k->late_nth = below(rng, 4) ? 0 : 1 + below(rng, 40);
	k->late_ns = k->late_nth ? below(rng, 30000) * MS : 0;
	k->n_down = below(rng, 4) ? 0 : 1;
	k->down[0].from = below(rng, 500 * MS);
	k->down[0].until = k->down[0].from + below(rng, 8000) * MS + 1;
}

static unsigned hosts_of(const char *topology)
{
	struct sim_topo topo;
	char err[SIM_ERR_LEN];
	unsigned n;

	if (sim_topo_make(topology, &topo, err))
		return 0;
	n = topo.n_hosts;
	sim_topo_free(&topo);
	return n;
}

void soak_case_make(struct soak_case *c, uint64_t seed, unsigned mode)
{
	static const uint8_t jobs[] = {1, 1, 1, 2, 2, 3};
	uint64_t rng = seed;
	unsigned n_hosts;

	memset(c, 0, sizeof(*c));
	c->seed = seed;
	make_topology(c, &rng);
	n_hosts = hosts_of(c->topology);
	c->n_jobs = jobs[below(&rng, sizeof(jobs))];
	c->n_faults = below(&rng, SOAK_MAX_FAULTS + 1);
	for (unsigned i = 0; i < c->n_jobs; i++)
		make_job(&c->job[i], n_hosts, mode, &rng);
	for (unsigned i = 0; i < c->n_faults; i++)
		make_fault(&c->fault[i], &rng);
	make_control(&c->control, &rng);
}

/* ---- printing ---- */

static const char *mode_name(enum ccl_mode mode)
{
	static const char *const name[] = {"?", "mode 1", "mode 2", "mode 3", "netreduce", "ring"};

	return name[mode <= CCL_MODE_RING ? mode : 0];
}

static void print_job(const struct soak_job *job, FILE *out)
{
	fprintf(out,
		"  %s, %s, hosts %u..%u, MTU %u, M %u, W %u, flags 0x%x, PSN 0x%06x, skew %llu ns:",
		mode_name(job->mode), ccl_kind_name(job->kind), job->first_host,
		job->first_host + job->n_ranks - 1, job->mtu, job->m, job->w, job->flags,
		job->start_psn, (unsigned long long)job->skew_ns);
	for (unsigned i = 0; i < job->n_work; i++)
		fprintf(out, " %s(%llu bytes, root %u)", ccl_collective_name(job->work[i].op),
			(unsigned long long)job->work[i].bytes, job->work[i].root);
	fputc('\n', out);
}

static void print_fault(const struct soak_fault *f, FILE *out)
{
	fprintf(out, "  %s", fault_name[f->kind]);
	if (f->link == SOAK_ALL_LINKS)
		fprintf(out, " on all links");
	else
		fprintf(out, " on link %u", f->link);
	if (f->kind == SOAK_NTH)
		fprintf(out, ": frame %llu", (unsigned long long)f->from);
	else if (f->kind == SOAK_QUEUE)
		fprintf(out, ": %llu bytes", (unsigned long long)f->from);
	else if (f->kind == SOAK_DOWN)
		fprintf(out, ": from %llu ns for %llu ns", (unsigned long long)f->from,
			(unsigned long long)f->len);
	else
		fprintf(out, ": %g", f->p);
	fputc('\n', out);
}

static void print_control(const struct sim_control_conf *k, FILE *out)
{
	fprintf(out,
		"  control: timeout %llu ms, delay %llu + %llu ns, loss %g, break %g, silent %g",
		(unsigned long long)k->timeout_ns / 1000000, (unsigned long long)k->delay_ns,
		(unsigned long long)k->jitter_ns, k->loss, k->brk, k->silent);
	if (k->late_nth)
		fprintf(out, ", message %llu late by %llu ns", (unsigned long long)k->late_nth,
			(unsigned long long)k->late_ns);
	if (k->n_down)
		fprintf(out, ", down from %llu to %llu ns", (unsigned long long)k->down[0].from,
			(unsigned long long)k->down[0].until);
	fputc('\n', out);
}

void soak_case_print(const struct soak_case *c, FILE *out)
{
	fprintf(out, "  %s, %llu Mb/s, %llu ns\n", c->topology, (unsigned long long)c->mbps,
		(unsigned long long)c->delay_ns);
	print_control(&c->control, out);
	for (unsigned i = 0; i < c->n_jobs; i++)
		print_job(&c->job[i], out);
	for (unsigned i = 0; i < c->n_faults; i++)
		print_fault(&c->fault[i], out);
}

/* ---- making it smaller ---- */

static bool drop_job(struct soak_case *c, unsigned i)
{
	if (c->n_jobs < 2 || i >= c->n_jobs)
		return false;
	memmove(&c->job[i], &c->job[i + 1], (--c->n_jobs - i) * sizeof(c->job[0]));
	return true;
}

static bool drop_fault(struct soak_case *c, unsigned i)
{
	if (i >= c->n_faults)
		return false;
	memmove(&c->fault[i], &c->fault[i + 1], (--c->n_faults - i) * sizeof(c->fault[0]));
	return true;
}

static bool drop_work(struct soak_job *job, unsigned i)
{
	if (job->n_work < 2 || i >= job->n_work)
		return false;
	memmove(&job->work[i], &job->work[i + 1], (--job->n_work - i) * sizeof(job->work[0]));
	return true;
}

static bool fewer_ranks(struct soak_job *job)
{
	if (job->n_ranks < 3)
		return false;
	job->n_ranks--;
	for (unsigned i = 0; i < job->n_work; i++) {
		struct sim_work *w = &job->work[i];

		w->root = w->root < job->n_ranks ? w->root : 0;
		w->bytes -= w->bytes % (4 * job->n_ranks);
	}
	return true;
}

static bool fewer_bytes(struct soak_job *job, unsigned i)
{
	struct sim_work *w = &job->work[i];

	if (i >= job->n_work || w->bytes == 0)
		return false;
	w->bytes /= 2;
	w->bytes -= w->bytes % (4 * job->n_ranks);
	return true;
}

static bool simpler_topology(struct soak_case *c)
{
	unsigned need = 2;
	char star[32];

	for (unsigned i = 0; i < c->n_jobs; i++)
		if (c->job[i].first_host + c->job[i].n_ranks > need)
			need = c->job[i].first_host + c->job[i].n_ranks;
	snprintf(star, sizeof(star), "star:%u", need);
	if (strcmp(star, c->topology) == 0)
		return false;
	memcpy(c->topology, star, sizeof(star));
	return true;
}

static bool zero(uint64_t *value)
{
	const bool had = *value != 0;

	*value = 0;
	return had;
}

static bool first_hosts(struct soak_job *job)
{
	const bool had = job->first_host != 0;

	job->first_host = 0;
	return had;
}

/* One kind of fault less. */
static bool calmer(struct sim_control_conf *k, unsigned i)
{
	double *const chance[] = {&k->loss, &k->brk, &k->silent};
	uint64_t *const number[] = {&k->late_nth, &k->jitter_ns, &k->delay_ns};
	bool had;

	if (i >= 3 && i < 6)
		return zero(number[i - 3]);
	had = i < 3 ? *chance[i] > 0 : k->n_down > 0;
	if (i < 3)
		*chance[i] = 0;
	else
		k->n_down = 0;
	return had;
}

bool soak_case_shrink(struct soak_case *c, unsigned i, bool *changed)
{
	enum {
		OWN = 2 * SOAK_MAX_WORK + 3,
		JOBS = SOAK_MAX_JOBS + SOAK_MAX_FAULTS,
		CONTROL = JOBS + SOAK_MAX_JOBS * OWN + 1,
		N_CONTROL = 7
	};
	struct soak_job *job = &c->job[i < JOBS ? 0 : (i - JOBS) / OWN % SOAK_MAX_JOBS];
	const unsigned k = i < JOBS ? 0 : (i - JOBS) % OWN;

	if (i < SOAK_MAX_JOBS)
		*changed = drop_job(c, i);
	else if (i < JOBS)
		*changed = drop_fault(c, i - SOAK_MAX_JOBS);
	else if (i == JOBS + SOAK_MAX_JOBS * OWN)
		*changed = simpler_topology(c);
	else if (i >= CONTROL + N_CONTROL)
		return false;
	else if (i >= CONTROL)
		*changed = calmer(&c->control, i - CONTROL);
	else if ((unsigned)(job - c->job) >= c->n_jobs)
		*changed = false;
	else if (k < SOAK_MAX_WORK)
		*changed = drop_work(job, k);
	else if (k < 2 * SOAK_MAX_WORK)
		*changed = fewer_bytes(job, k - SOAK_MAX_WORK);
	else if (k == 2 * SOAK_MAX_WORK)
		*changed = fewer_ranks(job);
	else
		*changed = k == 2 * SOAK_MAX_WORK + 1 ? zero(&job->skew_ns) : first_hosts(job);
	return true;
}
