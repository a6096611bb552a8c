/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric.h"

#include <stdlib.h>
#include <string.h>

enum { ROLE = 10, LINK = 2 };
static const uint64_t STEP_NS = 100000, FLIGHT_NS = 50000;

static struct srv6_template row_to(unsigned from, unsigned to)
{
	const bool near = from == to;
	struct srv6_template t = {.n_hops = near ? 2 : 4, .n_copies = near ? 2 : 5};

	put_be32(t.address.b, 0xfcbbbb00);
	srv6_usid_put(&t.address, 0, (uint16_t)from);
	srv6_usid_put(&t.address, t.n_hops - 1u, LINK << ROLE);
	if (!near) {
		srv6_usid_put(&t.address, 1, 1 << ROLE);
		srv6_usid_put(&t.address, 2, (uint16_t)to);
	}
	for (uint8_t i = 0; i < t.n_hops; i++)
		t.copy[i] = (struct srv6_copy){8, 4, i, 12};
	if (!near)
		t.copy[4] = (struct srv6_copy){0, 8, 1, 0};
	t.downlink = (struct srv6_copy){0, ROLE, (uint8_t)(t.n_hops - 1), 0};
	return t;
}

/* As tools/lab writes them: fd77::GROUP:DOWNLINK. */
static struct srv6_paths *paths_of(unsigned host)
{
	struct srv6_paths *p = calloc(1, sizeof(*p) + F_T0 * sizeof(p->row[0]));

	snprintf(p->name, sizeof(p->name), "h%u", host);
	put_be16(p->address.b, 0xfd77);
	put_be16(p->address.b + 12, (uint16_t)(1 + host / F_DOWN));
	put_be16(p->address.b + 14, (uint16_t)(host % F_DOWN));
	p->plane_shift = 8;
	p->uplinks = F_T1;
	for (; p->n_planes < F_PLANES; p->n_planes++)
		p->plane[p->n_planes].number = (uint8_t)(1 + p->n_planes);
	for (; p->n_rows < F_T0; p->n_rows++) {
		struct srv6_row *r = &p->row[p->n_rows];

		r->bits = 112;
		put_be16(r->prefix.b, 0xfd77);
		put_be16(r->prefix.b + 12, (uint16_t)(1 + p->n_rows));
		r->t = row_to(host / F_DOWN, p->n_rows);
	}
	return p;
}

struct fabric *fabric_start(const struct map_config *config)
{
	struct fabric *f = calloc(1, sizeof(*f));
	char err[SRV6_ERR_LEN] = "";

	f->rng = 1;
	for (unsigned i = 0; i < F_HOSTS; i++) {
		struct map_config c = *config;

		c.id = 100 + i;
		f->paths[i] = paths_of(i);
		if (map_agent_create(f->paths[i], &c, 0, &f->agent[i], err) < 0)
			fail_msg("%s", err);
	}
	return f;
}

void fabric_stop(struct fabric *f)
{
	for (unsigned i = 0; i < F_HOSTS; i++) {
		free(f->paths[i]);
		free(f->agent[i]);
	}
	free(f);
}

static bool passes(struct fabric *f, unsigned loss)
{
	f->rng = f->rng * 6364136223846793005 + 1442695040888963407;
	return (f->rng >> 33) % 1000 >= loss;
}

/* From the host over every switch that the address names, and over each link between them. */
static bool travels(struct fabric *f, unsigned plane, const struct wire_ip *dst)
{
	uint16_t hop[SRV6_USIDS];
	const unsigned n = srv6_path(dst, hop), t0 = f->of / F_DOWN;
	bool ok = passes(f, f->host_link[plane][f->of]);

	for (unsigned i = 0; i < n; i++) {
		const unsigned role = hop[i] >> ROLE & 3, index = hop[i] & 1023;

		assert_int_equal(hop[i] >> 12, plane + 1);
		if (role == 0) {
			assert_int_equal(index, t0);
			ok = ok && passes(f, f->t0[plane][t0]);
		} else if (role == 1) {
			ok = ok && passes(f, f->uplink[plane][t0][index]) &&
			     passes(f, f->t1[plane][index]) &&
			     passes(f, f->uplink[plane][t0][index]);
		} else {
			assert_int_equal(i, n - 1);
			assert_int_equal(index, f->of % F_DOWN);
			ok = ok && passes(f, f->host_link[plane][f->of]);
		}
	}
	return ok;
}

static void send(void *arg, const struct map_target *t, const uint8_t payload[MAP_PROBE_LEN])
{
	static const uint8_t mac[6];
	static const struct wire_ip src;
	struct fabric *f = arg;
	uint8_t frame[MAP_FRAME_LEN];

	f->sent++;
	map_frame(mac, mac, &src, &t->dst, payload, frame);
	if (travels(f, t->plane, &t->dst))
		assert_true(map_agent_receive(f->agent[f->of], f->now_ns + FLIGHT_NS, t->plane,
			frame + 14, sizeof(frame) - 14));
}

void fabric_run(struct fabric *f, uint64_t ns)
{
	for (const uint64_t end = f->now_ns + ns; f->now_ns < end; f->now_ns += STEP_NS)
		for (f->of = 0; f->of < F_HOSTS; f->of++)
			map_agent_turn(f->agent[f->of], f->now_ns, send, f);
}

unsigned fabric_seen(const struct fabric *f, struct map_seen seen[F_HOSTS * F_PLANES])
{
	unsigned n = 0;

	for (unsigned i = 0; i < F_HOSTS; i++)
		for (unsigned p = 0; p < F_PLANES; p++) {
			const struct map_agent *a = f->agent[i];

			seen[n] = (struct map_seen){.host = (uint16_t)i,
				.group = a->group,
				.plane = (uint8_t)(p + 1),
				.t0 = map_agent_target(a, p, MAP_NO_UPLINK)->link.state};
			for (unsigned k = 0; k < F_T1; k++)
				seen[n].t1[k] = map_agent_target(a, p, (uint16_t)k)->link.state;
			n++;
		}
	return n;
}

unsigned fabric_locate(const struct fabric *f, struct map_fault *fault, unsigned cap)
{
	struct map_seen seen[F_HOSTS * F_PLANES];
	const unsigned n = fabric_seen(f, seen);

	return map_locate(seen, n, F_T1, fault, cap);
}
