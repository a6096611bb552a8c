/* SPDX-License-Identifier: BSD-3-Clause */
/* NetReduce rings from the control plane's side: all of a ring or nothing, and the table of
 * connections that the packet path looks into. */
#include <errno.h>
#include <string.h>

#include "dataplane/runtime/host_ops.h"
#include "dataplane/sw.h"
#include "lib/journal/journal.h"

enum { RANKS_TEXT = 96 };

/* IP is beside them: UDP, BTH, RETH, immediate and ICRC around a payload, the INA header in it. */
enum { AROUND = 8 + 12 + 16 + 4 + 4 + INA_LEN, IP4_LEN = 20, IP6_LEN = 40 };

/* ---- checking ---- */

static int check_local(const struct sw *sw, const struct wire_ip *remote, struct wire_ip *local,
	const char *what, char *err)
{
	char text[WIRE_IP_STRLEN];

	if (wire_ip_is_zero(local) && !wire_ip_is_zero(remote) &&
		sw_host_address(sw, remote, local) < 0)
		return sw_fail(err, -ENOENT,
			"%s.local_ip: the switch has no address of the family of %s", what,
			wire_ip_format(remote, text, sizeof(text)));
	if (!wire_ip_is_zero(local) && !sw_host_is_local(sw, local))
		return sw_fail(err, -EINVAL, "%s.local_ip: %s is not an address of the switch",
			what, wire_ip_format(local, text, sizeof(text)));
	return 0;
}

/* port: that leads there. */
static int check_route(const struct sw *sw, const struct nr_spec *spec, const struct wire_ip *ip,
	const char *what, uint16_t *port, char *err)
{
	const unsigned need =
		spec->mtu + AROUND + (wire_ip_is4(ip) ? (unsigned)IP4_LEN : (unsigned)IP6_LEN);
	struct sw_host_path path;
	char text[WIRE_IP_STRLEN];

	wire_ip_format(ip, text, sizeof(text));
	if (sw_host_path(sw, ip, &path) < 0)
		return sw_fail(err, -ENOENT, "%s: %s is no neighbour and has no route", what, text);
	if (path.mtu < need)
		return sw_fail(err, -EINVAL,
			"mtu: %u bytes of payload make packets of up to %u, more than the MTU %u "
			"on the way to %s",
			spec->mtu, need, path.mtu, text);
	*port = path.port;
	return 0;
}

static int check_paths(const struct sw *sw, struct nr_spec *spec, char *err)
{
	int rc = 0;

	for (unsigned i = 0; i < spec->n_in && rc == 0; i++) {
		struct nr_in_spec *in = &spec->in[i];

		if (!in->host) {
			rc = check_route(sw, spec, &in->remote_ip, "leaves.ip", &in->port, err);
			continue;
		}
		rc = check_route(sw, spec, &in->key.dst, "flows.dst", &in->back_port, err);
		if (rc == 0)
			rc = check_route(sw, spec, &in->key.src, "flows.src", &in->port, err);
	}
	if (rc == 0 && spec->has_parent)
		rc = check_route(sw, spec, &spec->parent_ip, "parent.ip", &spec->parent_port, err);
	return rc;
}

/* Completes the spec and checks it. */
static int complete(struct sw *sw, struct nr_spec *spec, char *err)
{
	int rc = 0;

	for (unsigned i = 0; i < spec->n_in && rc == 0; i++)
		if (!spec->in[i].host)
			rc = check_local(
				sw, &spec->in[i].remote_ip, &spec->in[i].local_ip, "leaves", err);
	if (rc == 0 && spec->has_parent)
		rc = check_local(sw, &spec->parent_ip, &spec->parent_local_ip, "parent", err);
	if (rc == 0)
		rc = nr_check(spec, err);
	return rc ? rc : check_paths(sw, spec, err);
}

/* ---- the table of connections ---- */

static void free_clt(struct sw *sw, void *what)
{
	(void)sw;
	nr_clt_destroy(what);
}

static void publish(struct sw *sw, struct nr_clt *clt)
{
	struct nr_clt *old = atomic_exchange_explicit(&sw->clt, clt, memory_order_acq_rel);

	if (old != NULL)
		sw_defer(sw, free_clt, old);
}

/* The table with ring r too (NULL: none), and without `without`. Of one that has failed nothing may
 * pass as if it were a sum. */
static int make_clt(struct sw *sw, struct nr_ring *r, const struct nr_ring *without,
	struct nr_clt **clt, char *err)
{
	struct nr_ring *active[NR_MAX_RINGS + 1] = {NULL};

	for (unsigned i = 0; i < NR_MAX_RINGS; i++)
		if (sw->ring[i] && sw->ring[i]->state >= NR_ACTIVE && sw->ring[i] != without)
			active[i] = sw->ring[i];
	active[NR_MAX_RINGS] = r;
	return nr_clt_create(active, NR_MAX_RINGS + 1, clt, err);
}

/* INSTALLED to ACTIVE, or nothing. */
static int activate(struct sw *sw, struct nr_ring *r, char *err)
{
	struct nr_clt *clt;
	int rc = make_clt(sw, r, r, &clt, err);

	if (rc < 0)
		return rc;
	rc = nr_activate(r, err);
	if (rc < 0) {
		nr_clt_destroy(clt);
		return rc;
	}
	r->last_progress_ns = sw_now(sw);
	publish(sw, clt);
	return 0;
}

/* ---- life ---- */

static int free_place(const struct sw *sw, uint64_t now)
{
	for (int i = 0; i < NR_MAX_RINGS; i++)
		if (sw->ring[i] == NULL && sw->ring_rest[i] <= now &&
			!sw_host_is_read(sw, SW_RING_SLOT0 + (unsigned)i))
			return i;
	return -ENOSPC;
}

/* Of aggregation memory. */
static size_t pay_bytes(const struct nr_ring *r)
{
	return (size_t)r->n_msgs * r->m * r->n_in * r->buf_stride;
}

static void free_ring(struct sw *sw, void *what)
{
	struct nr_ring *r = what;

	inc_ranges_free(sw->arena, r->pay_off);
	sw_host_free(r);
}

static int install(struct sw *sw, const struct nr_spec *spec, unsigned place, char *err)
{
	struct nr_ring *r = sw_host_alloc(nr_ring_bytes(spec));
	const size_t payload = nr_payload_bytes(spec);
	uint64_t off;
	int rc;

	if (r == NULL)
		return sw_fail(err, -ENOMEM,
			"no memory for %zu bytes of state: raise \"memory_mb\"",
			nr_ring_bytes(spec));
	rc = inc_ranges_alloc(sw->arena, payload, &off);
	if (rc < 0) {
		sw_host_free(r);
		return sw_fail(err, rc,
			"aggregation memory: the ring needs %zu bytes, %zu of %zu are free: raise "
			"\"arena_kb\" or lower mtu, M or W",
			payload, sw->arena->size - sw->arena->used, sw->arena->size);
	}
	nr_init(r, spec, SW_RING_SLOT0 + place, sw->groups->gen[SW_RING_SLOT0 + place], off);
	inc_set_owner(sw->groups, SW_RING_SLOT0 + place, sw_host_place(sw, NULL));
	sw->ring[place] = r;
	sw->ring_activate[place] =
		spec->activate_ms ? sw_now(sw) + spec->activate_ms * 1000000ull : 0;
	sw->n_rings++;
	return 0;
}

int sw_ring_create(
	struct sw *sw, struct nr_spec *spec, bool start, unsigned *ring, char err[SW_ERR_LEN])
{
	int rc = complete(sw, spec, err), place;

	if (rc < 0)
		return rc;
	if (sw_ring_find(sw, spec->name) >= 0)
		return sw_fail(err, -EEXIST, "name: there is a ring \"%s\" already", spec->name);
	place = free_place(sw, sw_now(sw));
	if (place < 0)
		return sw_fail(err, place, "all %d rings are in use, or resting for %llu ms",
			NR_MAX_RINGS, (unsigned long long)(sw->config.slot_rest_ns / 1000000));
	rc = install(sw, spec, (unsigned)place, err);
	if (rc == 0 && start) {
		rc = activate(sw, sw->ring[place], err);
		if (rc < 0) {
			free_ring(sw, sw->ring[place]);
			sw->ring[place] = NULL;
			sw->n_rings--;
		}
	}
	if (rc == 0)
		*ring = (unsigned)place;
	return rc;
}

struct nr_ring *sw_ring_get(struct sw *sw, unsigned ring)
{
	return ring < NR_MAX_RINGS ? sw->ring[ring] : NULL;
}

int sw_ring_find(struct sw *sw, const char *name)
{
	for (int i = 0; i < NR_MAX_RINGS; i++)
		if (sw->ring[i] != NULL && strcmp(sw->ring[i]->name, name) == 0)
			return i;
	return -ENOENT;
}

int sw_ring_activate(struct sw *sw, unsigned ring, const uint32_t qpn[NR_MAX_IN],
	uint32_t parent_qpn, char err[SW_ERR_LEN])
{
	struct nr_ring *r = sw_ring_get(sw, ring);

	if (r == NULL)
		return sw_fail(err, -ENOENT, "there is no ring %u", ring);
	if (r->state != NR_INSTALLED)
		return sw_fail(err, -EBUSY, "the ring is %s", nr_state_name(r->state));
	if (parent_qpn && !r->has_parent)
		return sw_fail(err, -EINVAL, "parent_qpn: the ring has no parent here");
	for (unsigned i = 0; i < NR_MAX_IN; i++)
		if (qpn[i] && (i >= r->n_in || nr_in_at(r, i)->host))
			return sw_fail(err, -EINVAL, "leaves: input %u is no switch below", i);
	for (unsigned i = 0; i < r->n_in; i++)
		if (qpn[i])
			nr_in_at(r, i)->remote_qpn = qpn[i];
	if (parent_qpn)
		r->parent_qpn = parent_qpn;
	return activate(sw, r, err);
}

int sw_ring_fail(struct sw *sw, unsigned ring, char err[SW_ERR_LEN])
{
	struct nr_ring *r = sw_ring_get(sw, ring);

	if (r == NULL)
		return sw_fail(err, -ENOENT, "there is no ring %u", ring);
	nr_set_failed(r);
	return 0;
}

/* The packet path forgets its connections first; the memory follows. */
int sw_ring_delete(struct sw *sw, unsigned ring, char err[SW_ERR_LEN])
{
	struct nr_ring *r = sw_ring_get(sw, ring);
	struct nr_clt *clt;
	int rc;

	if (r == NULL)
		return sw_fail(err, -ENOENT, "there is no ring %u", ring);
	rc = make_clt(sw, NULL, r, &clt, err);
	if (rc < 0)
		return rc;
	publish(sw, clt);
	sw->ring[ring] = NULL;
	sw->groups->gen[r->slot] = (uint8_t)((r->gen + 1) % INC_GENERATIONS);
	sw->ring_rest[ring] = sw_now(sw) + sw->config.slot_rest_ns;
	sw->ring_stalled[ring] = sw->ring_said[ring] = false;
	sw->n_rings--;
	sw_defer_unread(sw, r->slot, pay_bytes(r), free_ring, r);
	return 0;
}

void sw_rings_destroy(struct sw *sw)
{
	publish(sw, NULL);
	for (unsigned i = 0; i < NR_MAX_RINGS; i++) {
		if (sw->ring[i] != NULL)
			sw_defer_unread(sw, sw->ring[i]->slot, pay_bytes(sw->ring[i]), free_ring,
				sw->ring[i]);
		sw->ring[i] = NULL;
	}
}

/* ---- watching ---- */

/* Once for each. */
static void say_failed(struct sw *sw, unsigned i)
{
	char why[SW_ERR_LEN];

	if (!sw->ring_said[i]) {
		nr_fail_text(sw->ring[i], why, sizeof(why));
		journal(JOURNAL_ERR, "%s: ring %s has failed: %s", sw->config.name,
			sw->ring[i]->name, why);
	}
	sw->ring_said[i] = true;
	sw->ring_stalled[i] = false;
}

void sw_rings_tick(struct sw *sw, uint64_t now)
{
	for (unsigned i = 0; i < NR_MAX_RINGS; i++) {
		struct nr_ring *r = sw->ring[i];
		uint32_t msg = 0, o = 0;
		char ranks[RANKS_TEXT], err[SW_ERR_LEN];
		uint64_t last, inputs;
		uint8_t state;
		bool stalled;

		if (r == NULL)
			continue;
		/* With NR_FAILED comes why: a worker has written that before. */
		state = __atomic_load_n(&r->state, __ATOMIC_ACQUIRE);
		if (state == NR_INSTALLED && sw->ring_activate[i] != 0 &&
			sw->ring_activate[i] <= now) {
			sw_ring_delete(sw, i, err); /* given up by its maker */
			continue;
		}
		if (state == NR_FAILED)
			say_failed(sw, i);
		if (state != NR_ACTIVE)
			continue;
		last = r->last_progress_ns;
		if (now <= last || now - last < sw->config.stall_ns) {
			sw->ring_stalled[i] = false;
			continue;
		}
		inputs = nr_missing(r, &msg, &o);
		stalled = inputs != 0;
		if (stalled && !sw->ring_stalled[i]) {
			sw->stalls++;
			nr_ranks_of(r, inputs, ranks, sizeof(ranks));
			journal(JOURNAL_WARNING,
				"%s: ring %s: no progress for %llu ms, packet %u of message %u "
				"waits for ranks %s",
				sw->config.name, r->name,
				(unsigned long long)((now - last) / 1000000), o, msg, ranks);
		}
		sw->ring_stalled[i] = stalled;
	}
}
