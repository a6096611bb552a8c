/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/map/link.h"

#include <errno.h>
#include <string.h>

static const char *const names[MAP_N_STATES] = {"unknown", "good", "lossy", "dead"};

const char *map_state_name(enum map_state state)
{
	return names[state];
}

int map_state_parse(const char *name)
{
	for (int i = 0; name != NULL && i < MAP_N_STATES; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -EINVAL;
}

int map_link_check(const struct map_link_config *c)
{
	if (c->dead_run == 0 || c->dead_run > MAP_WINDOW || c->lossy == 0 ||
		c->lossy > MAP_WINDOW || c->good_run < MAP_WINDOW || c->good_max < c->good_run ||
		c->calm_ns == 0)
		return -EINVAL;
	return 0;
}

void map_link_init(struct map_link *l, const struct map_link_config *c, uint64_t now_ns)
{
	*l = (struct map_link){.state = MAP_UNKNOWN, .need = c->good_run, .since_ns = now_ns};
}

static bool enter(struct map_link *l, enum map_state state, uint64_t now_ns)
{
	if (l->state == state)
		return false;
	l->state = (uint8_t)state;
	l->since_ns = now_ns;
	return true;
}

/* What was good for long begins anew; what was not has to show more than the last time. */
static void flapped(struct map_link *l, const struct map_link_config *c, uint64_t now_ns)
{
	const bool again = l->flaps > 0 && now_ns - l->since_ns < c->calm_ns;

	l->flaps++;
	l->need_before = l->need;
	if (!again)
		l->need = c->good_run;
	else
		l->need = l->need < c->good_max / 2 ? 2 * l->need : c->good_max;
}

static enum map_state judge(const struct map_link *l, const struct map_link_config *c)
{
	const bool lossy = (unsigned)__builtin_popcountll(l->history) >= c->lossy;

	if (l->run_lost >= c->dead_run)
		return MAP_DEAD;
	switch (l->state) {
	case MAP_UNKNOWN:
		if (lossy)
			return MAP_LOSSY;
		return l->run_good >= c->dead_run ? MAP_GOOD : MAP_UNKNOWN;
	case MAP_GOOD:
		return lossy ? MAP_LOSSY : MAP_GOOD;
	default:
		if (l->run_good >= l->need)
			return MAP_GOOD;
		return l->run_good > 0 ? MAP_LOSSY : l->state;
	}
}

bool map_link_note(
	struct map_link *l, const struct map_link_config *c, bool answered, uint64_t now_ns)
{
	enum map_state state;

	l->history = l->history << 1 | !answered;
	*(answered ? &l->answered : &l->lost) += 1;
	l->run_good = answered ? l->run_good + 1 : 0;
	l->run_lost = answered ? 0 : l->run_lost + 1;
	state = judge(l, c);
	if (l->state == MAP_GOOD && state != MAP_GOOD)
		flapped(l, c, now_ns);
	return enter(l, state, now_ns);
}

void map_link_excuse(struct map_link *l, uint64_t since_ns, uint64_t now_ns)
{
	l->history = 0;
	l->run_lost = 0;
	if (l->flaps == 0 || (l->state != MAP_DEAD && l->state != MAP_LOSSY) ||
		l->since_ns < since_ns)
		return;
	l->flaps--;
	l->need = l->need_before;
	l->run_good = 0;
	enter(l, MAP_UNKNOWN, now_ns);
}
