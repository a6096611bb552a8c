/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups of hosts that leave no PSNs out (--resync; docs/inc-protocol.md, 3.7): behind an operation
 * that not all send and receive, once all ranks are through with it, the switches begin anew, in
 * any order, and then the hosts. A switch that is asked stops first, and what comes to it until it
 * goes on is dropped. */
#include "dataplane/inc/seeded_bugs.h"
#include "tests/model/model.h"

unsigned mc_anew_next(const struct mc_config *c, unsigned from)
{
	for (unsigned op = from + 1u; c->resync && op < c->n_ops; op++)
		if (c->op[op - 1].prim != INC_AR && c->op[op - 1].n > 0)
			return op;
	return c->n_ops;
}

static unsigned from_of(const struct mc_sys *s, const uint32_t *v, unsigned node)
{
	return mc_host(s, node, v[node])->from;
}

/* Where the last of them is. */
static unsigned all_from(const struct mc_sys *s, const uint32_t *v)
{
	unsigned from = s->cfg.n_ops;

	for (unsigned i = s->n_sw; i < s->n_nodes; i++)
		from = from_of(s, v, i) < from ? from_of(s, v, i) : from;
	return from;
}

static bool all_are_through(struct mc_sys *s, const uint32_t *v, unsigned ops)
{
	const unsigned end = INC_BUG(ANEW_ALONE) ? s->n_sw + 1 : s->n_nodes; /* rank 0 */

	for (unsigned i = s->n_sw; i < end; i++)
		if (!mc_host_finished(s, i, v[i], ops))
			return false;
	return true;
}

/* Has this switch begun anew since those operations? */
static bool is_ready(struct mc_sys *s, const uint32_t *v, unsigned sw)
{
	return (mc_switch_flags(s, sw, v[sw]) & (MC_S_ANEW | MC_S_STOPPED)) == MC_S_ANEW;
}

/* All switches are ready: the hosts are told. The first to go on ends that. */
static bool hosts_are_told(struct mc_sys *s, const uint32_t *v, unsigned from)
{
	for (unsigned i = s->n_sw; i < s->n_nodes; i++)
		if (from_of(s, v, i) > from)
			return true;
	for (unsigned i = 0; i < s->n_sw; i++)
		if (!is_ready(s, v, i))
			return false;
	return true;
}

unsigned mc_anew_actions(struct mc_sys *s, const uint32_t *v, struct mc_action *a)
{
	const unsigned from = all_from(s, v), next = mc_anew_next(&s->cfg, from);
	unsigned n = 0;
	bool told;

	if (next == s->cfg.n_ops || !all_are_through(s, v, next))
		return 0;
	told = hosts_are_told(s, v, from);
	for (unsigned i = 0; i < s->n_nodes; i++) {
		const bool host = mc_is_host(s, i);
		const unsigned flags = host ? 0 : mc_switch_flags(s, i, v[i]);

		if (host ? told && from_of(s, v, i) == from && mc_host_finished(s, i, v[i], next)
			 : !told && !is_ready(s, v, i) &&
					(flags & MC_S_STOPPED || !(flags & MC_S_BUSY)))
			a[n++] = (struct mc_action){MC_ANEW, (uint8_t)i};
	}
	return n;
}

const char *mc_anew_apply(struct mc_sys *s, unsigned node, const uint32_t *v, uint32_t *to)
{
	const unsigned flags = mc_is_host(s, node) ? 0 : mc_switch_flags(s, node, v[node]);
	const unsigned ops = (flags & MC_S_OPS) >> MC_S_OPS_SHIFT;

	to[node] = mc_node_step(s, node, v[node], MC_EV_ANEW, 0, 0)->state;
	if (!mc_is_host(s, node) && ops != mc_anew_next(&s->cfg, all_from(s, v)))
		return "a switch that is to begin anew has another operation next than the ranks";
	return NULL;
}

bool mc_anew_waits_for(struct mc_sys *s, const uint32_t *v, unsigned nodes)
{
	const unsigned next = mc_anew_next(&s->cfg, all_from(s, v));
	bool through = true;

	for (; nodes >> s->n_sw != 0 && through; nodes &= nodes - 1) {
		const unsigned i = (unsigned)__builtin_ctz(nodes);

		through = !mc_is_host(s, i) || mc_host_finished(s, i, v[i], next);
	}
	return next == s->cfg.n_ops || !through;
}
