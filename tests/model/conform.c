/* SPDX-License-Identifier: BSD-3-Clause */
/* incline-model-conform: is the model's host what lib/rnic is, and CommLib on it? Random schedules
 *(who sends, what is delivered, lost, doubled, overtaken, held for want of a receive, whose timer
 *fires) drive the model, with the real engine as its switches; beside each host a queue pair of
 *lib/rnic gets the same packets and the same calls, and must send the same packets, and at the end
 *have taken and completed the same messages. A line of the suite that begins with "commlib" has
 *CommLib on top, which issues the operations as collectives and decides what is posted when; it
 *must send what the model's host sends, when that may. docs/model-checking.md.
 *
 *	incline-model-conform SUITE COUNT [SEED]	so many schedules of each configuration
 *	incline-model-conform SUITE COUNT mutants	each mutant of the host must be told
 *
 * Exit status 0: no difference (mutants: one for each); 1: a difference; 2: set-up. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/model/host_sr.h"
#include "tests/model/model.h"
#include "tests/model/mutants.h"
#include "tests/model/real_comm.h"

enum { STEPS_MAX = 1000, ACTIONS_MAX = 256, LINES_MAX = 64, WORDS_MAX = 32, SUITE_MAX = 1 << 14 };

enum mc_mutant mc_mutant;

struct walk {
	struct mc_sys *s;
	struct real_host host[MC_MAX_RANKS];
	bool commlib; /* they have it */
	struct real_controls controls;
	uint64_t random, schedules, ended, steps, packets;
	uint32_t v[MC_MAX_WORDS];
	struct real_out out;
	char why[256];
};

static uint64_t draw(struct walk *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return w->random;
}

/* ---- one event ---- */

static const char *differs(const struct wire_pkt *a, const uint8_t *a_bytes,
	const struct wire_pkt *b, const uint8_t *b_bytes)
{
	const bool answer = (a->opcode & ROCE_OP_MASK) == ROCE_ACK;
	const unsigned class = a->syndrome & ROCE_AETH_CLASS;

	if (a->opcode != b->opcode)
		return "opcode";
	if (a->psn != b->psn)
		return "PSN";
	if (a->dqpn != b->dqpn)
		return "destination QPN";
	if (a->ackreq != b->ackreq || a->se != b->se || a->mig != b->mig)
		return "AckReq, SE or MigReq";
	if (memcmp(&a->src, &b->src, sizeof(a->src)) != 0 ||
		memcmp(&a->dst, &b->dst, sizeof(a->dst)) != 0)
		return "addresses";
	/* An ACK's value are credits, which nobody here counts. */
	if (answer && (class != (b->syndrome & ROCE_AETH_CLASS) ||
			      (class != ROCE_AETH_ACK && a->syndrome != b->syndrome)))
		return "syndrome";
	if (answer && a->msn != b->msn)
		return "MSN";
	if ((a->flags & ROCE_F_IMM) && a->imm != b->imm)
		return "immediate";
	if ((a->flags & ROCE_F_POS) &&
		(a->pos_offset != b->pos_offset || a->pos_recv != b->pos_recv))
		return "place in the message";
	if (a->pay_len != b->pay_len ||
		memcmp(a_bytes + a->pay_off, b_bytes + b->pay_off, a->pay_len) != 0)
		return "payload";
	return NULL;
}

static bool compare(struct walk *w, const struct mc_result *res)
{
	const char *field = w->out.why;

	if (field == NULL && res->n != w->out.n)
		field = "number of packets";
	for (unsigned i = 0; field == NULL && i < res->n; i++) {
		const uint8_t *bytes;
		const struct wire_pkt *pkt = mc_frame_pkt(w->s, res->out[i].frame, &bytes);

		field = differs(pkt, bytes, &w->out.frame[i].pkt, w->out.frame[i].bytes);
	}
	w->packets += res->n;
	if (field == NULL)
		return true;
	snprintf(w->why, sizeof(w->why), "%s (model: %u packets, %s; lib/rnic: %u)", field, res->n,
		res->verdict ? res->verdict : "", w->out.n);
	return false;
}

static uint32_t head(const struct walk *w, unsigned link)
{
	uint32_t len;
	const uint32_t *q = intern_get(&w->s->queues, w->v[w->s->n_nodes + link], &len);

	return q[0];
}

/* Is what comes the first packet of a message that the host waits for? */
static bool begins(struct walk *w, unsigned node, uint32_t frame)
{
	const uint8_t *bytes;
	const uint16_t flags = mc_frame_pkt(w->s, frame, &bytes)->flags;

	return mc_host_would_take(w->s, node, w->v[node], frame) && (flags & ROCE_F_FIRST);
}

/* Does a message begin with what the host sends next? */
static bool is_new(struct walk *w, unsigned node)
{
	struct mc_host_state h = *mc_host(w->s, node, w->v[node]);

	if (w->s->cfg.flags & INC_F_SR)
		mc_sr_pass(&h);
	return h.next == h.high && w->s->prog.psn[h.next].first;
}

/* Where the model has nothing begun to send, neither has the queue pair; with CommLib, where it may
 * not begin anything either. */
static bool nothing_more(struct walk *w, unsigned node)
{
	const struct mc_host_state *h = mc_host(w->s, node, w->v[node]);

	if (w->commlib && mc_host_flags(w->s, node, w->v[node]) & MC_H_SEND)
		return true;
	if (mc_host_flags(w->s, node, w->v[node]) & MC_H_ANSWER)
		return true;
	if (!w->commlib && !h->err && !h->rnr && h->next < w->s->prog.n &&
		(h->next < h->high || !w->s->prog.psn[h->next].first))
		return true;
	/* The same, with what need not be sent again still before it. */
	if ((w->s->cfg.flags & INC_F_SR) && mc_host_flags(w->s, node, w->v[node]) & MC_H_SEND)
		return true;
	if (!real_sends(&w->host[node - w->s->n_sw]))
		return true;
	snprintf(w->why, sizeof(w->why), "%s sends more than the model",
		w->commlib ? "CommLib" : "lib/rnic");
	return false;
}

static bool step(struct walk *w, struct mc_action a)
{
	static const enum mc_event event[] = {[MC_DELIVER] = MC_EV_PACKET,
		[MC_HOLD] = MC_EV_HOLD,
		[MC_SEND] = MC_EV_SEND,
		[MC_TIMEOUT] = MC_EV_TIMEOUT,
		[MC_ANSWER] = MC_EV_ANSWER};
	const bool link = a.kind == MC_DELIVER || a.kind == MC_HOLD;
	const unsigned node = link ? w->s->link[a.index].to : a.index;
	const bool host =
		(link || a.kind == MC_SEND || a.kind == MC_TIMEOUT || a.kind == MC_ANSWER) &&
		mc_is_host(w->s, node);
	const uint32_t frame = link ? head(w, a.index) : 0;
	const bool post = host && (a.kind == MC_DELIVER ? begins(w, node, frame)
							: a.kind == MC_SEND && is_new(w, node));
	const bool dead = host && (mc_host_flags(w->s, node, w->v[node]) & MC_H_ERR);
	const struct mc_result *res;
	uint32_t to[MC_MAX_WORDS];
	const char *wrong = mc_apply(w->s, w->v, a, to, &res);

	memcpy(w->v, to, w->s->words * sizeof(*to));
	w->steps++;
	if (host && !dead) {
		real_step(&w->host[node - w->s->n_sw], event[a.kind], frame, post, &w->out);
		if (!compare(w, res) || !nothing_more(w, node))
			return false;
	}
	if (wrong != NULL)
		snprintf(w->why, sizeof(w->why), "the model itself: %s", wrong);
	return wrong == NULL;
}

/* ---- a schedule ---- */

static bool allowed(struct walk *w, struct mc_action a)
{
	if (a.kind == MC_SEND) /* lib/rnic's answers go first */
		return !(mc_host_flags(w->s, a.index, w->v[a.index]) & MC_H_ANSWER);
	if (a.kind == MC_HOLD) /* a NIC needs a receive at the first packet only */
		return begins(w, w->s->link[a.index].to, head(w, a.index));
	return a.kind != MC_TIMEOUT || real_may_time_out(&w->host[a.index - w->s->n_sw]);
}

static bool choose(struct walk *w, struct mc_action *chosen)
{
	struct mc_action a[ACTIONS_MAX];
	const unsigned n = mc_actions(w->s, w->v, a);
	unsigned weight[ACTIONS_MAX], sum = 0, at;

	for (unsigned i = 0; i < n; i++) {
		weight[i] = a[i].kind == MC_DELIVER || a[i].kind == MC_SEND ? 8 : 1;
		weight[i] = allowed(w, a[i]) ? weight[i] : 0;
		sum += weight[i];
	}
	if (sum == 0)
		return false;
	at = (unsigned)(draw(w) % sum);
	for (unsigned i = 0;; i++) {
		if (at < weight[i]) {
			*chosen = a[i];
			return true;
		}
		at -= weight[i];
	}
}

static bool all_done(struct walk *w)
{
	for (unsigned r = 0; r < w->s->n_ranks; r++)
		if (!(mc_host_flags(w->s, w->s->n_sw + r, w->v[w->s->n_sw + r]) & MC_H_ERR) &&
			!real_done(&w->host[r])) {
			snprintf(w->why, sizeof(w->why), "rank %u is done in the model only", r);
			return false;
		}
	w->ended++;
	return true;
}

/* False: a difference, in why. */
static bool schedule(struct walk *w, uint64_t seed)
{
	struct mc_action a;
	const char *why;

	w->random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	draw(w);
	mc_initial(w->s, w->v);
	for (unsigned r = 0; r < w->s->n_ranks; r++)
		real_reset(&w->host[r]);
	w->schedules++;
	for (unsigned i = 0; i < STEPS_MAX; i++) {
		if (mc_final(w->s, w->v, &why))
			return all_done(w);
		if (!choose(w, &a))
			return true; /* somebody would give up */
		if (!step(w, a))
			return false;
	}
	return true;
}

/* ---- configurations, each in a process ---- */

struct line {
	char *word[WORDS_MAX];
	int n;
	bool commlib; /* its first word, which is taken away */
};

static int run_line(struct line *line, uint64_t count, uint64_t seed, bool quiet)
{
	struct walk *w = calloc(1, sizeof(*w));
	struct mc_config c;

	mc_config_defaults(&c);
	if (w == NULL || mc_config_parse(&c, line->n, line->word) != 0)
		return 2;
	c.por = c.symmetry = false;
	w->commlib = line->commlib;
	w->s = malloc(sizeof(*w->s));
	if (w->s == NULL)
		return 2;
	mc_sys_open(w->s, &c);
	for (unsigned r = 0; r < c.n_ranks; r++)
		real_open(&w->host[r], w->s, r, w->commlib ? &w->controls : NULL);
	for (uint64_t i = 0; i < count; i++) {
		if (schedule(w, seed + i))
			continue;
		if (!quiet)
			printf("seed %llu, step %llu: %s\n", (unsigned long long)(seed + i),
				(unsigned long long)w->steps, w->why);
		return 1;
	}
	if (!quiet)
		printf("%llu schedules, %llu to the end, %llu steps, %llu packets compared\n",
			(unsigned long long)w->schedules, (unsigned long long)w->ended,
			(unsigned long long)w->steps, (unsigned long long)w->packets);
	/* Schedules that all stop early would compare little. */
	return w->ended * 10 >= w->schedules * 9 ? 0 : 1;
}

static int in_process(struct line *line, uint64_t count, uint64_t seed, bool quiet)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		const int rc = run_line(line, count, seed, quiet);

		fflush(stdout);
		_exit(rc);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 2;
	return WEXITSTATUS(status);
}

static unsigned read_suite(const char *path, struct line *lines)
{
	static char text[SUITE_MAX], program[] = "incline-model-conform";
	char *rest, *words;
	unsigned n = 0;
	FILE *f = fopen(path, "r");

	if (f == NULL || fread(text, 1, sizeof(text) - 1, f) == 0) {
		fprintf(stderr, "incline-model-conform: %s: %s\n", path, strerror(errno));
		exit(2);
	}
	fclose(f);
	for (char *l = strtok_r(text, "\n", &rest); l && n < LINES_MAX;
		l = strtok_r(NULL, "\n", &rest)) {
		l[strcspn(l, "#")] = '\0';
		lines[n].word[0] = program;
		lines[n].n = 1;
		for (char *p = strtok_r(l, " ", &words); p && lines[n].n < WORDS_MAX;
			p = strtok_r(NULL, " ", &words))
			if (strcmp(p, "commlib") == 0)
				lines[n].commlib = true;
			else
				lines[n].word[lines[n].n++] = p;
		n += lines[n].n > 1;
	}
	return n;
}

static int compare_all(struct line *lines, unsigned n, uint64_t count, uint64_t seed)
{
	unsigned bad = 0;

	for (unsigned i = 0; i < n; i++) {
		printf("%s", lines[i].commlib ? "commlib " : "");
		for (int k = 1; k < lines[i].n; k++)
			printf("%s ", lines[i].word[k]);
		printf("\n    ");
		bad += in_process(&lines[i], count, seed, false) != 0;
	}
	printf("%u configurations, %llu schedules, %u configurations with a difference\n", n,
		(unsigned long long)(n * count), bad);
	return bad || n == 0;
}

static int find_mutants(struct line *lines, unsigned n, uint64_t count)
{
	static const char *const text[] = {"",
#define X(sym, what) #sym ": " what,
		MC_MUTANT_LIST(X)
#undef X
	};
	unsigned missed = 0;

	for (unsigned m = 1; m < MC_N_MUTANTS; m++) {
		const bool commlib = strstr(text[m], ": CommLib") != NULL;
		unsigned i = 0;

		mc_mutant = (enum mc_mutant)m;
		while (i < n &&
			(lines[i].commlib != commlib || in_process(&lines[i], count, 1, true) != 1))
			i++;
		printf("%s %s\n", i < n ? "found " : "MISSED", text[m]);
		missed += i == n;
	}
	printf("%u differences seeded, %u missed\n", (unsigned)MC_N_MUTANTS - 1, missed);
	return missed != 0;
}

int main(int argc, char **argv)
{
	static struct line lines[LINES_MAX];
	uint64_t count;
	unsigned n;

	if (argc < 3 || argc > 4) {
		fputs("incline-model-conform SUITE COUNT [SEED|mutants]\n", stderr);
		return 2;
	}
	n = read_suite(argv[1], lines);
	count = strtoull(argv[2], NULL, 10);
	if (argc == 4 && strcmp(argv[3], "mutants") == 0)
		return find_mutants(lines, n, count);
	return compare_all(lines, n, count, argc == 4 ? strtoull(argv[3], NULL, 10) : 1);
}
