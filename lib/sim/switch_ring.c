/* SPDX-License-Identifier: BSD-3-Clause */
/* NetReduce rings of a switch: every RoCE packet that passes is looked up, what is registered goes
 * through the engine. What dataplane/netreduce/node_netreduce.c is in the program; rings are few
 * here, so the table of connections (clt.h) is a list. */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/netreduce/clt.h"
#include "lib/sim/agent.h"

/* Behind the rows. */
static struct nr_key *keys_of(const struct nr_clt *t, unsigned cap)
{
	return (struct nr_key *)(uintptr_t)&t->row[cap];
}

struct list {
	unsigned cap;
	struct nr_clt clt; /* its last member is flexible: keep it last */
};

static const struct list *list_of(const struct nr_clt *t)
{
	return (const struct list *)((const char *)t - offsetof(struct list, clt));
}

static const struct nr_look *find(const struct nr_clt *t, const struct nr_key *key)
{
	const struct nr_key *keys = keys_of(t, list_of(t)->cap);

	for (unsigned i = 0; i < t->n; i++)
		if (memcmp(&keys[i], key, sizeof(*key)) == 0)
			return &t->row[i];
	return NULL;
}

static int add_ring(struct list *l, struct nr_ring *ring, char err[NR_ERR_LEN])
{
	struct nr_look look[NR_MAX_ROWS];
	struct nr_key key[NR_MAX_ROWS];
	const unsigned n = nr_rows(ring, key, look);

	for (unsigned i = 0; i < n; i++) {
		const struct nr_look *other = find(&l->clt, &key[i]);

		if (other) {
			snprintf(err, NR_ERR_LEN,
				"a connection of ring \"%s\" is registered already, by \"%s\"",
				ring->name, other->ring->name);
			return -EEXIST;
		}
		keys_of(&l->clt, l->cap)[l->clt.n] = key[i];
		l->clt.row[l->clt.n++] = look[i];
	}
	return 0;
}

int nr_clt_create(
	struct nr_ring *const *rings, unsigned n, struct nr_clt **clt, char err[NR_ERR_LEN])
{
	unsigned used = 0;
	struct list *l;
	int rc = 0;

	*clt = NULL;
	for (unsigned i = 0; i < n; i++)
		used += rings[i] ? NR_MAX_ROWS : 0;
	if (used == 0)
		return 0;
	l = calloc(1, sizeof(*l) + used * (sizeof(l->clt.row[0]) + sizeof(struct nr_key)));
	if (!l)
		return -ENOMEM;
	l->cap = used;
	for (unsigned i = 0; i < n && rc == 0; i++)
		rc = rings[i] ? add_ring(l, rings[i], err) : 0;
	if (rc)
		free(l);
	else
		*clt = &l->clt;
	return rc;
}

void nr_clt_destroy(struct nr_clt *clt)
{
	if (clt)
		free((void *)(uintptr_t)list_of(clt));
}

struct nr_ring *sim_switch_ring(struct sim *sim, unsigned i)
{
	const struct nr_clt *clt = sim_agent_clt(sim->sw[i].agent);

	return clt ? clt->row[0].ring : NULL;
}

struct emitting {
	struct sim *sim;
	unsigned sw;
};

static void emit(void *arg, struct nr_ring *ring, const struct nr_emit *emit)
{
	const struct emitting *em = arg;
	struct sim_frame *f =
		sim_frame_get(em->sim, (unsigned)emit->head_len + emit->pay_len + emit->tail_len);

	(void)ring;
	f->len = (unsigned)nr_frame(emit, f->data);
	sim_switch_send(em->sim, em->sw, f, &emit->dst);
}

bool sim_ring_rx(
	struct sim *sim, unsigned i, unsigned port, struct sim_frame *f, const struct wire_pkt *pkt)
{
	struct sim_node_switch *s = &sim->sw[i];
	struct emitting em = {sim, i};
	const struct nr_sink sink = {&em, emit};
	const struct nr_clt *clt = sim_agent_clt(s->agent);
	const struct nr_key key = nr_key_of(pkt);
	const struct nr_look *look = clt ? find(clt, &key) : NULL;
	enum nr_drop drop;

	if (!look)
		return false;
	drop = look->port != NR_ANY_PORT && look->port != port
		       ? NR_DROP_PORT
		       : nr_rx(look, &s->pub.arena, f->data, pkt, sim->now, &sink);
	if (drop == NR_FORWARD)
		return false;
	if (drop == NR_ICRC_BAD)
		s->pub.wire_drop[WIRE_ICRC_BAD]++;
	else
		s->pub.nr_drop[drop]++;
	sim_frame_put(sim, f);
	return true;
}
