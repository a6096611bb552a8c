/* SPDX-License-Identifier: BSD-3-Clause */
/* NetReduce rings of a switch: every RoCE packet that passes is looked up, what is registered goes
 * through the engine. What dataplane/netreduce/node_netreduce.c is in the program; rings are few
 * here, so the table is a list. */
#include <errno.h>
#include <stdlib.h>

#include "lib/sim/priv.h"

enum { RING_SLOT0 = 4032, RING_GEN = 9 };

int sim_ring_make(
	struct sim *sim, unsigned i, struct nr_spec *spec, unsigned index, char err[NR_ERR_LEN])
{
	struct sim_node_switch *s = &sim->sw[i];
	struct sim_ring *ring;
	uint64_t off;
	int rc = nr_check(spec, err);

	if (rc == 0)
		rc = sim_switch_memory(sim, i, nr_payload_bytes(spec), &off);
	if (rc)
		return rc;
	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	ring->ring = calloc(1, nr_ring_bytes(spec));
	if (!ring->ring) {
		free(ring);
		return -ENOMEM;
	}
	nr_init(ring->ring, spec, RING_SLOT0 + index, RING_GEN, off);
	ring->index = index;
	ring->next = s->ring;
	s->ring = ring;
	rc = nr_activate(ring->ring, err);
	ring->n_rows = nr_rows(ring->ring, ring->key, ring->look);
	return rc;
}

uint32_t sim_ring_qpn(unsigned index, unsigned input)
{
	return inc_qpn(RING_SLOT0 + index, input, RING_GEN);
}

void sim_ring_forget(struct sim *sim, unsigned i, unsigned index)
{
	struct sim_ring **at = &sim->sw[i].ring, *gone;

	while (*at && (*at)->index != index)
		at = &(*at)->next;
	gone = *at;
	if (!gone)
		return;
	*at = gone->next;
	free(gone->ring);
	free(gone);
}

static const struct nr_look *find(const struct sim_node_switch *s, const struct wire_pkt *pkt)
{
	const struct nr_key key = nr_key_of(pkt);

	for (const struct sim_ring *ring = s->ring; ring; ring = ring->next)
		for (unsigned r = 0; r < ring->n_rows; r++)
			if (memcmp(&ring->key[r], &key, sizeof(key)) == 0)
				return &ring->look[r];
	return NULL;
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

bool sim_ring_rx(struct sim *sim, unsigned i, struct sim_frame *f, const struct wire_pkt *pkt)
{
	struct sim_node_switch *s = &sim->sw[i];
	struct emitting em = {sim, i};
	const struct nr_sink sink = {&em, emit};
	const struct nr_look *look = find(s, pkt);
	enum nr_drop drop;

	if (!look)
		return false;
	drop = nr_rx(look, &s->pub.arena, f->data, pkt, sim->now, &sink);
	if (drop == NR_FORWARD)
		return false;
	if (drop == NR_ICRC_BAD)
		s->pub.wire_drop[WIRE_ICRC_BAD]++;
	else
		s->pub.nr_drop[drop]++;
	sim_frame_put(sim, f);
	return true;
}
