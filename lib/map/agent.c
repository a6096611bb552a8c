/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/map/agent.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/map/locate.h"
#include "lib/wire/frame.h"

enum { HOP_LIMIT = 64, MAX_RATE = 1000000, MAX_SHARE = 1024, IP6_LEN = 40, LAST_HOPS = 2 };
static const uint64_t SECOND = UINT64_C(1000000000);

const struct map_config map_defaults = {
	.rate_hz = 1000,
	.share = 1,
	.timeout_ns = UINT64_C(100000000),
	.link = {.dead_run = 5,
		.lossy = 4,
		.good_run = 100,
		.good_max = 100000,
		.calm_ns = UINT64_C(60000000000)},
};

static int check(const struct map_config *c, char err[SRV6_ERR_LEN])
{
	const char *wrong = NULL;

	if (c->rate_hz == 0 || c->rate_hz > MAX_RATE)
		wrong = "rate: must be 1..1000000 Hz";
	else if (c->share == 0 || c->share > MAX_SHARE)
		wrong = "share: must be 1..1024";
	else if (c->timeout_ns == 0 || c->timeout_ns > 60 * SECOND ||
		 c->timeout_ns * c->rate_hz / SECOND >= MAP_RING - 1)
		wrong = "timeout: must be more than 0, and less than 1023 probes and a minute";
	else if (map_link_check(&c->link) < 0)
		wrong = "link: a number is out of its bounds";
	if (wrong != NULL)
		snprintf(err, SRV6_ERR_LEN, "%s", wrong);
	return wrong ? -EINVAL : 0;
}

/* The template of a way over a T1, of which the uplinks' numbers are taken; NULL: there is none. */
static const struct srv6_template *over_t1(const struct srv6_paths *p)
{
	for (unsigned i = 0; i < p->n_rows; i++)
		if (p->row[i].t.n_hops > LAST_HOPS)
			return &p->row[i].t;
	return NULL;
}

/* To the T0 and back: the path to oneself. Over a T1: T0, T1, T0 again, and the link. */
static int path_of(const struct srv6_paths *p, const struct srv6_template *self,
	const struct srv6_template *far, struct map_target *t)
{
	const uint32_t plane = (uint32_t)p->plane[t->plane].number << p->plane_shift;
	struct wire_ip up;
	uint16_t hop[4];

	if (srv6_template_expand(self, plane, &t->dst) < 0)
		return -EINVAL;
	if (t->uplink == MAP_NO_UPLINK)
		return 0;
	if (srv6_template_expand(far, plane | t->uplink, &up) < 0)
		return -EINVAL;
	hop[0] = hop[2] = srv6_usid(&t->dst, 0);
	hop[1] = srv6_usid(&up, 1);
	hop[3] = srv6_usid(&t->dst, 1);
	return srv6_address(get_be32(t->dst.b), hop, 4, &t->dst);
}

static int make_targets(struct map_agent *a, const struct srv6_paths *p,
	const struct srv6_template *self, const struct srv6_template *far, uint64_t now_ns)
{
	const unsigned per_plane = 1 + a->n_uplinks;

	for (unsigned i = 0; i < a->n; i++) {
		struct map_target *t = &a->target[i];
		const bool t1 = i % per_plane != 0;

		t->plane = (uint8_t)(i / per_plane);
		t->uplink = t1 ? (uint16_t)(i % per_plane - 1) : MAP_NO_UPLINK;
		if (path_of(p, self, far, t) < 0)
			return -EINVAL;
		t->interval_ns = SECOND * (t1 ? a->config.share : 1) / a->config.rate_hz;
		/* Spread out, so that they do not go in bursts. */
		t->next_ns = now_ns + t->interval_ns * i / a->n;
		map_link_init(&t->link, &a->config.link, now_ns);
	}
	return 0;
}

int map_agent_create(const struct srv6_paths *paths, const struct map_config *config,
	uint64_t now_ns, struct map_agent **out, char err[SRV6_ERR_LEN])
{
	const struct srv6_template *far = over_t1(paths);
	const unsigned uplinks = far ? paths->uplinks : 0, n = paths->n_planes * (1 + uplinks);
	struct srv6_template self;
	struct map_agent *a;

	if (check(config, err) < 0)
		return -EINVAL;
	if (uplinks > MAP_MAX_UPLINKS) {
		snprintf(err, SRV6_ERR_LEN, "uplinks: %u, must be at most %d for a map", uplinks,
			MAP_MAX_UPLINKS);
		return -EINVAL;
	}
	if (srv6_paths_find(paths, &paths->address, &self) < 0 || self.n_hops != LAST_HOPS) {
		snprintf(err, SRV6_ERR_LEN, "rows: none leads over one T0 to the node itself");
		return -EINVAL;
	}
	a = calloc(1, sizeof(*a) + n * sizeof(a->target[0]));
	if (a == NULL)
		return -ENOMEM;
	a->config = *config;
	a->group = srv6_usid(&self.address, 0);
	a->n_planes = paths->n_planes;
	a->n_uplinks = uplinks;
	a->n = n;
	if (make_targets(a, paths, &self, far, now_ns) < 0) {
		snprintf(err, SRV6_ERR_LEN, "rows: a path to a T1 cannot be made");
		free(a);
		return -EINVAL;
	}
	*out = a;
	return 0;
}

static bool bad(const struct map_link *l)
{
	return l->state == MAP_DEAD || l->state == MAP_LOSSY;
}

/* The way to the T0 has become bad: what those over it have lost of late was that. As long as it
 * takes to see it, at their own rate. */
static void excuse(struct map_agent *a, unsigned plane, uint64_t now_ns)
{
	const unsigned first = plane * (1 + a->n_uplinks);

	for (unsigned i = first + 1; i <= first + a->n_uplinks; i++) {
		const uint64_t takes =
			2 * a->config.timeout_ns + MAP_WINDOW * a->target[i].interval_ns;

		map_link_excuse(&a->target[i].link, now_ns > takes ? now_ns - takes : 0, now_ns);
	}
}

static void note(struct map_agent *a, struct map_target *t, bool answered, uint64_t now_ns)
{
	const struct map_link *t0 = &a->target[t->plane * (1 + a->n_uplinks)].link;
	const bool was = bad(t0);

	if (t->uplink != MAP_NO_UPLINK && was)
		return;
	map_link_note(&t->link, &a->config.link, answered, now_ns);
	if (t->uplink == MAP_NO_UPLINK && !was && bad(t0))
		excuse(a, t->plane, now_ns);
}

static void expire(struct map_agent *a, struct map_target *t, uint64_t now_ns)
{
	for (; t->oldest != t->next_seq; t->oldest++) {
		const unsigned at = t->oldest % MAP_RING;

		if (!t->ring[at].answered) {
			if (now_ns - t->ring[at].sent_ns < a->config.timeout_ns)
				break;
			note(a, t, false, now_ns);
		}
	}
}

static void probe(
	struct map_agent *a, struct map_target *t, uint64_t now_ns, map_send_fn send, void *arg)
{
	const struct map_probe p = {a->config.id, (uint32_t)(t - a->target), t->next_seq};
	uint8_t payload[MAP_PROBE_LEN];
	const unsigned at = t->next_seq % MAP_RING;

	map_probe_encode(&p, payload);
	t->ring[at].sent_ns = now_ns;
	t->ring[at].answered = 0;
	t->next_seq++;
	send(arg, t, payload);
	t->next_ns += t->interval_ns;
	if (t->next_ns <= now_ns) {
		const uint64_t n = (now_ns - t->next_ns) / t->interval_ns + 1;

		t->skipped += n;
		t->next_ns += n * t->interval_ns;
	}
}

uint64_t map_agent_turn(struct map_agent *a, uint64_t now_ns, map_send_fn send, void *arg)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < a->n; i++) {
		struct map_target *t = &a->target[i];

		expire(a, t, now_ns);
		if (t->next_ns <= now_ns)
			probe(a, t, now_ns, send, arg);
		next = t->next_ns < next ? t->next_ns : next;
	}
	return next;
}

bool map_agent_receive(
	struct map_agent *a, uint64_t now_ns, unsigned plane, const uint8_t *ip6, size_t len)
{
	struct map_target *t;
	struct map_probe p;

	if (len < IP6_LEN || ip6[0] >> 4 != 6 || ip6[6] != MAP_PROBE_NEXT ||
		!map_probe_decode(ip6 + IP6_LEN, len - IP6_LEN, &p) || p.agent != a->config.id ||
		p.target >= a->n || a->target[p.target].plane != plane) {
		a->foreign++;
		return false;
	}
	t = &a->target[p.target];
	expire(a, t, now_ns);
	if (p.seq - t->oldest >= t->next_seq - t->oldest || t->ring[p.seq % MAP_RING].answered) {
		a->late++;
		return false;
	}
	t->ring[p.seq % MAP_RING].answered = 1;
	note(a, t, true, now_ns);
	return true;
}

void map_frame(const uint8_t dmac[6], const uint8_t smac[6], const struct wire_ip *src,
	const struct wire_ip *dst, const uint8_t payload[MAP_PROBE_LEN], uint8_t out[MAP_FRAME_LEN])
{
	uint8_t *ip6 = out + ETH_HDR_LEN;

	memcpy(out, dmac, 6);
	memcpy(out + 6, smac, 6);
	put_be16(out + 12, ETH_TYPE_IP6);
	put_be32(ip6, 0x60000000);
	put_be16(ip6 + 4, MAP_PROBE_LEN);
	ip6[6] = MAP_PROBE_NEXT;
	ip6[7] = HOP_LIMIT;
	memcpy(ip6 + 8, src->b, 16);
	memcpy(ip6 + 24, dst->b, 16);
	memcpy(ip6 + IP6_LEN, payload, MAP_PROBE_LEN);
}
