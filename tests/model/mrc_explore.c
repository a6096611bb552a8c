/* SPDX-License-Identifier: BSD-3-Clause */
/* incline-model-mrc: everything that can happen to two queue pairs of MRC within budgets of losses,
 * trimmed packets, copies and early timers (docs/model-checking.md). Depth first; of a state that
 * was visited a 64-bit hash is kept. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/mrc/seeded_bugs.h"
#include "tests/model/intern.h"
#include "tests/model/mrc_pair.h"

enum { DEEPEST = 400, SEEN = 1 << 24, FIELDS = 7 };

/* A state on the way to the present one: as it was, what could happen, what of it is tried now. */
struct level {
	struct mrc_m_pair pair;
	struct mrc_m_step step[MRC_M_STEPS];
	unsigned n, at;
	uint32_t place; /* in seen */
};

static struct level *levels;
static uint64_t *seen;
static bool *on_way; /* to the present one: so is the state at that place of seen */
static unsigned long n_seen, n_steps, n_ends;
static unsigned deepest;

/* ---- states ---- */

static bool is_new(uint64_t h, uint32_t *place)
{
	h += !h;
	for (uint64_t at = h % SEEN;; at = (at + 1) % SEEN) {
		*place = (uint32_t)at;
		if (seen[at] == h)
			return false;
		if (seen[at] == 0) {
			seen[at] = h;
			n_seen++;
			return true;
		}
	}
}

static void enter(unsigned depth, uint32_t place)
{
	struct level *l = &levels[depth];

	on_way[place] = true;
	l->place = place;
	l->pair = mrc_m;
	l->n = mrc_m_steps(l->step);
	l->at = 0;
	deepest = depth > deepest ? depth : deepest;
}

/* Of a state that is met for the first time: NULL, or what is wrong; *further: something can follow
 * it. */
static const char *look(unsigned depth, bool *further)
{
	struct mrc_m_step step[MRC_M_STEPS];

	*further = false;
	if (mrc_m_ended()) {
		n_ends++;
		return NULL;
	}
	if (mrc_m_steps(step) == 0)
		return "nothing can happen any more, and not all is well";
	if (depth + 1 == DEEPEST)
		return "no end";
	*further = true;
	return NULL;
}

/* NULL, or what is wrong, at *depth. */
static const char *explore(const struct mrc_m_config *c, unsigned *depth)
{
	const char *wrong = NULL;
	unsigned d = 0;
	uint32_t place;

	mrc_m_begin(c);
	is_new(mrc_m_hash(), &place);
	enter(0, place);
	for (;;) {
		struct level *l = &levels[d];
		bool further;

		if (l->at == l->n) {
			on_way[l->place] = false;
			if (d-- == 0)
				return NULL;
			levels[d].at++;
			continue;
		}
		if (l->at > 0)
			mrc_m = l->pair;
		n_steps++;
		wrong = mrc_m_do(&l->step[l->at]);
		further = !wrong && is_new(mrc_m_hash(), &place);
		if (further)
			wrong = look(d, &further);
		else if (!wrong && on_way[place])
			wrong = "a state comes again: no end";
		if (wrong) {
			*depth = d + 1;
			return wrong;
		}
		if (!further) {
			l->at++;
			continue;
		}
		enter(++d, place);
		if (n_seen > SEEN / 2) {
			*depth = d;
			return "(too many states)";
		}
	}
}

static const char *run(const struct mrc_m_config *c, unsigned *depth)
{
	madvise(seen, SEEN * sizeof(*seen), MADV_DONTNEED); /* zeros */
	madvise(on_way, SEEN * sizeof(*on_way), MADV_DONTNEED);
	n_seen = n_steps = n_ends = 0;
	deepest = 0;
	return explore(c, depth);
}

/* ---- configurations ---- */

/* One end's messages: packets of each, with 'i' behind if it has an immediate: 2,1i,0i. */
static const char *parse_end(const char *text, struct mrc_m_config *c, unsigned end)
{
	while (*text >= '0' && *text <= '0' + MRC_M_PACKETS && c->n[end] < MRC_M_MESSAGES) {
		struct mrc_m_message *m = &c->message[end][c->n[end]++];

		m->packets = (uint8_t)(*text++ - '0');
		m->imm = *text == 'i';
		text += m->imm;
		if (*text != ',')
			return text;
		text++;
	}
	return text;
}

static int parse_messages(const char *text, struct mrc_m_config *c)
{
	text = parse_end(text, c, 0);
	if (*text == '/')
		text = parse_end(text + 1, c, 1);
	return *text || c->n[0] == 0 ? -EINVAL : 0;
}

static int parse(const char *const *arg, struct mrc_m_config *c)
{
	const struct {
		unsigned *to, most;
	} number[FIELDS - 1] = {{&c->losses, 3}, {&c->trims, 3}, {&c->twice, 3}, {&c->early, 3},
		{&c->min_active, 2}, {&c->tail_again, 8}};

	memset(c, 0, sizeof(*c));
	for (unsigned i = 0; i < FIELDS - 1; i++) {
		char *end;
		const unsigned long v = strtoul(arg[1 + i], &end, 10);

		if (*end || end == arg[1 + i] || v > number[i].most)
			return -EINVAL;
		*number[i].to = (unsigned)v;
	}
	return parse_messages(arg[0], c);
}

static void print_path(const char *wrong, unsigned depth)
{
	printf("VIOLATION: %s, after %u steps:\n", wrong, depth);
	for (unsigned i = 0; i < depth; i++)
		mrc_m_print(&levels[i].step[levels[i].at]);
}

static const char usage[] =
	"usage: incline-model-mrc MESSAGES LOSSES TRIMS TWICE EARLY MIN_ACTIVE TAIL_AGAIN\n"
	"                         ...\n"
	"       incline-model-mrc-bugs\n"
	"MESSAGES: packets of each, 'i' behind for an immediate; the other end's behind '/':\n"
	"2,1i/1. Budgets are 0 to 3, early timers too; MIN_ACTIVE: 0 to 2 of 3 paths;\n"
	"TAIL_AGAIN: 0 to 8, and at most so many packets go again on their age, of more a probe "
	"asks.\n"
	"incline-model-mrc-bugs puts bugs into lib/mrc, which must be found.\n";

static int check_all(int argc, char **argv)
{
	for (int i = 1; i < argc; i += FIELDS) {
		struct mrc_m_config c;
		const char *wrong;
		unsigned depth;

		if (i + FIELDS > argc || parse((const char *const *)argv + i, &c) < 0) {
			fputs(usage, stderr);
			return 2;
		}
		wrong = run(&c, &depth);
		printf("%s, %u lost, %u cut, %u twice, %u early, min_active %u, tail_again %u: %s: "
		       "%lu states, %lu steps, %lu ends, at most %u steps\n",
			argv[i], c.losses, c.trims, c.twice, c.early, c.min_active, c.tail_again,
			wrong ? "wrong" : "complete, ok", n_seen, n_steps, n_ends, deepest + 1);
		fflush(stdout);
		if (wrong) {
			print_path(wrong, depth);
			return 1;
		}
	}
	return argc < 2 ? 2 : 0;
}

#ifdef MRC_SEEDED_BUG

enum mrc_seeded_bug mrc_seeded_bug;

/* Each with the smallest configuration that shows it. */
static const struct {
	enum mrc_seeded_bug bug;
	const char *name, *text;
} bugs[] = {
#define X(sym, text) {MRC_BUG_##sym, #sym, text},
	MRC_SEEDED_BUGS(X)
#undef X
};

static int find_all(void)
{
	static const char *const config[] = {"2i,1i", "2", "1", "1", "0", "2", "8"};
	struct mrc_m_config c;
	unsigned depth = 0, missed = 0;

	if (parse(config, &c) < 0)
		return 2;
	for (unsigned i = 0; i < sizeof(bugs) / sizeof(bugs[0]); i++) {
		const char *wrong;

		mrc_seeded_bug = bugs[i].bug;
		wrong = run(&c, &depth);
		printf("%s, %s: %s", bugs[i].name, bugs[i].text, wrong ? wrong : "NOT FOUND");
		if (wrong)
			printf(", after %u steps\n", depth);
		else
			printf("\n");
		fflush(stdout);
		missed += !wrong;
	}
	mrc_seeded_bug = MRC_BUG_NONE;
	if (run(&c, &depth)) {
		printf("and without a bug something is wrong as well\n");
		return 1;
	}
	printf("without a bug: complete, ok, %lu states\n", n_seen);
	return missed ? 1 : 0;
}

#endif

int main(int argc, char **argv)
{
	levels = mc_reserve(DEEPEST * sizeof(*levels));
	seen = mc_reserve(SEEN * sizeof(*seen));
	on_way = mc_reserve(SEEN * sizeof(*on_way));
#ifdef MRC_SEEDED_BUG
	if (argc == 1)
		return find_all();
#endif
	return check_all(argc, argv);
}
