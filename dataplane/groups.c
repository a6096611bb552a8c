/* SPDX-License-Identifier: BSD-3-Clause */
/* Groups from the control plane's side: slots with their generations, aggregation memory, and the
 * blocks that the worker works on. A slot that was freed rests before it is given away again, so
 * that packets that are still under way do not meet another group. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/runtime/host_ops.h"
#include "dataplane/sw.h"
#include "lib/journal/journal.h"
#include "lib/wire/random.h"

enum { FIRST_SLOT = 1, RANKS_TEXT = 96 };

/* UDP, BTH and ICRC around a payload; with RDMA WRITE a RETH and the immediate, too. */
enum { ROCE_OVER_IP = 8 + 12 + 4, WRITE_IMM = 16 + 4, IP4_LEN = 20, IP6_LEN = 40 };

static bool is_zero(const uint8_t mac[6])
{
	static const uint8_t zero[6];

	return memcmp(mac, zero, sizeof(zero)) == 0;
}

/* Before the check of the spec: so far nothing in it can be relied on. */
static int fill_local_ip(
	const struct sw *sw, struct inc_ep_spec *ep, unsigned i, char err[SW_ERR_LEN])
{
	char text[WIRE_IP_STRLEN];

	if (!wire_ip_is_zero(&ep->local_ip) || wire_ip_is_zero(&ep->remote_ip) ||
		sw_host_address(sw, &ep->remote_ip, &ep->local_ip) == 0)
		return 0;
	return sw_fail(err, -ENOENT,
		"endpoints[%u].local_ip: the switch has no address of the family of %s", i,
		wire_ip_format(&ep->remote_ip, text, sizeof(text)));
}

static int check_local_ip(
	const struct sw *sw, const struct inc_ep_spec *ep, unsigned i, char err[SW_ERR_LEN])
{
	char text[WIRE_IP_STRLEN];

	if (sw_host_is_local(sw, &ep->local_ip))
		return 0;
	return sw_fail(err, -EINVAL, "endpoints[%u].local_ip: %s is not an address of the switch",
		i, wire_ip_format(&ep->local_ip, text, sizeof(text)));
}

static int fill_macs(const struct sw *sw, const struct sw_host_port *port, struct inc_ep_spec *ep,
	unsigned i, char err[SW_ERR_LEN])
{
	struct sw_host_port other = {.name = "?"};
	struct sw_host_path path;
	char text[WIRE_IP_STRLEN];

	if (is_zero(ep->smac))
		memcpy(ep->smac, port->mac, sizeof(ep->smac));
	if (!is_zero(ep->dmac))
		return 0;
	wire_ip_format(&ep->remote_ip, text, sizeof(text));
	if (sw_host_path(sw, &ep->remote_ip, &path) < 0)
		return sw_fail(err, -ENOENT,
			"endpoints[%u].mac: %s is no neighbour and has no route: give the MAC "
			"address or a neigh entry",
			i, text);
	if (path.port != ep->port) {
		sw_host_port(sw, path.port, &other);
		return sw_fail(err, -EINVAL, "endpoints[%u].port: %s is reached by port %s, not %s",
			i, text, other.name, port->name);
	}
	memcpy(ep->dmac, path.dmac, sizeof(ep->dmac));
	if (ep->vlan == 0)
		ep->vlan = path.vlan;
	return 0;
}

static int fill_endpoint(
	const struct sw *sw, const struct inc_group_spec *spec, unsigned i, char err[SW_ERR_LEN])
{
	struct inc_ep_spec *ep = &spec->ep[i];
	struct sw_host_port port;
	unsigned need = spec->mtu + ROCE_OVER_IP +
			(spec->flags & INC_F_SR ? sizeof(struct roce_poseth) : 0) +
			(spec->flags & INC_F_WRITE ? (unsigned)WRITE_IMM : 0) +
			(wire_ip_is4(&ep->remote_ip) ? (unsigned)IP4_LEN : (unsigned)IP6_LEN);
	int rc;

	if (sw_host_port(sw, ep->port, &port) < 0)
		return sw_fail(
			err, -ENOENT, "endpoints[%u].port: there is no port %u", i, ep->port);
	if (need > port.mtu)
		return sw_fail(err, -EINVAL,
			"mtu: %u bytes of payload make packets of %u, more than the MTU %u of port "
			"%s",
			spec->mtu, need, port.mtu, port.name);
	rc = check_local_ip(sw, ep, i, err);
	if (rc == 0)
		rc = fill_macs(sw, &port, ep, i, err);
	return rc;
}

void sw_groups_begin(struct sw *sw, uint64_t seed)
{
	for (unsigned slot = 0; slot < INC_GROUP_SLOTS; slot++)
		sw->groups->gen[slot] = (uint8_t)(wire_random(&seed) % INC_GENERATIONS);
}

static int free_slot(const struct sw *sw, uint64_t now)
{
	for (int slot = FIRST_SLOT; slot < SW_RING_SLOT0; slot++)
		if (sw->groups->group[slot] == NULL && sw->slot[slot].rest_until <= now &&
			!sw_host_is_read(sw, (unsigned)slot))
			return slot;
	return -ENOSPC;
}

static int take_memory(struct sw *sw, size_t bytes, uint64_t *off, char err[SW_ERR_LEN])
{
	int rc = inc_ranges_alloc(sw->arena, bytes, off);

	if (rc < 0 && sw->draining_bytes > 0)
		return sw_fail(err, rc,
			"aggregation memory: the group needs %zu bytes, %zu of %zu are free, and "
			"%zu wait for ports that may still read them",
			bytes, sw->arena->size - sw->arena->used, sw->arena->size,
			sw->draining_bytes);
	return rc == 0 ? 0
		       : sw_fail(err, rc,
				 "aggregation memory: the group needs %zu bytes, %zu of %zu are "
				 "free: raise \"arena_kb\" or lower mtu, M, W or slots",
				 bytes, sw->arena->size - sw->arena->used, sw->arena->size);
}

static void give_back(struct sw *sw, uint64_t off)
{
	if (off != INC_NO_ARENA)
		inc_ranges_free(sw->arena, off);
}

/* To ACTIVE; in Mode-I with connections to the peers. */
static int start(struct sw *sw, struct inc_group *g, char err[SW_ERR_LEN])
{
	int rc = inc_group_activate(g, err);

	if (rc < 0 || g->mode != INC_MODE_1)
		return rc;
	rc = sw_rnic_connect(sw, g, err);
	if (rc < 0)
		inc_group_set_state(g, INC_ACTIVE, INC_INSTALLED);
	return rc;
}

static int install(struct sw *sw, const struct inc_group_spec *spec, uint64_t by_neigh,
	unsigned slot, bool activate, char err[SW_ERR_LEN])
{
	struct inc_group *g = sw_host_alloc(inc_group_bytes(spec));
	struct sw_lease_member lease = {0};
	uint64_t off = INC_NO_ARENA;
	int rc = 0;

	if (g == NULL)
		return sw_fail(err, -ENOMEM,
			"no memory for %zu bytes of state: raise \"memory_mb\"",
			inc_group_bytes(spec));
	if (spec->lease[0])
		rc = sw_lease_join(sw, spec, inc_group_payload_bytes(spec), &lease, err);
	else if (!spec->unbound && inc_group_payload_bytes(spec) > 0)
		rc = take_memory(sw, inc_group_payload_bytes(spec), &off, err);
	if (rc < 0) {
		sw_host_free(g);
		return rc;
	}
	inc_group_init(g, spec, slot, sw->groups->gen[slot], off);
	if (spec->mode == INC_MODE_1)
		rc = sw_rnic_make(sw, g, err);
	if (rc == 0 && activate) {
		rc = start(sw, g, err);
		if (rc < 0)
			sw_rnic_remove(sw, g);
	}
	if (rc < 0) {
		give_back(sw, off);
		sw_lease_leave(sw, &lease, g);
		sw_host_free(g);
		return rc;
	}
	g->last_progress_ns = sw_now(sw);
	sw->slot[slot] = (struct sw_group_slot){.lease = lease, .by_neigh = by_neigh};
	if (!activate && spec->activate_ms)
		sw->slot[slot].activate_until = sw_now(sw) + spec->activate_ms * 1000000ull;
	sw->n_groups++;
	inc_set_owner(sw->groups, slot,
		spec->mode == INC_MODE_1 ? RNIC_WORKER : sw_host_place(sw, &spec->ep[0].local_ip));
	inc_table_set(sw->groups, slot, g);
	return 0;
}

/* Completes the spec and checks it. */
static int complete(struct sw *sw, struct inc_group_spec *spec, char err[SW_ERR_LEN])
{
	int rc = 0;

	for (unsigned i = 0; rc == 0 && i < spec->n_ep && i < INC_MAX_EP; i++)
		rc = fill_local_ip(sw, &spec->ep[i], i, err);
	if (rc == 0)
		rc = inc_group_check(spec, err);
	for (unsigned i = 0; rc == 0 && i < spec->n_ep; i++)
		rc = fill_endpoint(sw, spec, i, err);
	return rc;
}

/* Endpoints that follow the neighbour table. */
static uint64_t without_mac(const struct inc_group_spec *spec)
{
	uint64_t eps = 0;

	for (unsigned i = 0; i < spec->n_ep && i < INC_MAX_EP; i++)
		eps |= (uint64_t)is_zero(spec->ep[i].dmac) << i;
	return eps;
}

int sw_group_create(struct sw *sw, struct inc_group_spec *spec, bool activate, unsigned *slot,
	char err[SW_ERR_LEN])
{
	const uint64_t by_neigh = without_mac(spec);
	int rc = complete(sw, spec, err), free;

	if (rc < 0)
		return rc;
	if (sw_group_find(sw, spec->name) >= 0)
		return sw_fail(err, -EEXIST, "name: there is a group \"%s\" already", spec->name);
	free = free_slot(sw, sw_now(sw));
	if (free < 0)
		return sw_fail(err, free, "all %d group slots are in use, or resting for %llu ms",
			SW_RING_SLOT0 - FIRST_SLOT,
			(unsigned long long)(sw->config.slot_rest_ns / 1000000));
	rc = install(sw, spec, by_neigh, (unsigned)free, activate, err);
	if (rc == 0)
		*slot = (unsigned)free;
	return rc;
}

struct inc_group *sw_group_get(struct sw *sw, unsigned slot)
{
	return slot < INC_GROUP_SLOTS ? sw->groups->group[slot] : NULL;
}

const char *sw_group_lease(struct sw *sw, unsigned slot, const char **tenant)
{
	const struct sw_lease_member *m = &sw->slot[slot].lease;

	*tenant = m->tenant;
	return m->lease ? sw->leases->lease[m->lease - 1].name : "";
}

int sw_group_find(struct sw *sw, const char *name)
{
	for (int slot = FIRST_SLOT; slot < INC_GROUP_SLOTS; slot++)
		if (sw->groups->group[slot] != NULL &&
			strcmp(sw->groups->group[slot]->name, name) == 0)
			return slot;
	return -ENOENT;
}

static int get(struct sw *sw, unsigned slot, struct inc_group **g, char err[SW_ERR_LEN])
{
	*g = sw_group_get(sw, slot);
	return *g ? 0 : sw_fail(err, -ENOENT, "there is no group in slot %u", slot);
}

static int moves(const struct inc_group *g, char err[SW_ERR_LEN])
{
	return sw_fail(err, -EBUSY,
		"group %s is given or losing memory, which a port may still read", g->name);
}

int sw_group_activate(
	struct sw *sw, unsigned slot, const uint32_t *qpn, unsigned n_qpn, char err[SW_ERR_LEN])
{
	struct inc_group *g;
	uint64_t new = 0; /* endpoints whose QPN was not known */
	int rc = get(sw, slot, &g, err);

	if (rc < 0)
		return rc;
	if (g->state != INC_INSTALLED)
		return sw_fail(
			err, -EBUSY, "the group is %s, not installed", inc_state_name(g->state));
	if (n_qpn > g->n_ep)
		return sw_fail(err, -EINVAL, "qpn: %u numbers for %u endpoints", n_qpn, g->n_ep);
	if (sw->slot[slot].moving)
		return moves(g, err);
	for (unsigned i = 0; i < n_qpn; i++) {
		if (qpn[i] > PSN_MASK)
			return sw_fail(
				err, -EINVAL, "qpn[%u]: 0x%x has more than 24 bits", i, qpn[i]);
		if (qpn[i] != 0 && inc_ep_at(g, i)->remote_qpn != 0 &&
			inc_ep_at(g, i)->remote_qpn != qpn[i])
			return sw_fail(err, -EEXIST, "qpn[%u]: is known already, as 0x%06x", i,
				inc_ep_at(g, i)->remote_qpn);
	}
	for (unsigned i = 0; i < n_qpn; i++)
		if (qpn[i] != 0 && inc_ep_at(g, i)->remote_qpn == 0) {
			inc_ep_at(g, i)->remote_qpn = qpn[i];
			new |= 1ull << i;
		}
	rc = start(sw, g, err);
	if (rc == 0)
		sw->slot[slot].activate_until = 0;
	for (unsigned i = 0; i < n_qpn && rc < 0; i++)
		if (new >> i & 1)
			inc_ep_at(g, i)->remote_qpn = 0;
	return rc;
}

/* ---- the indirection layer ---- */

struct rebind {
	unsigned slot;
	uint8_t gen;
	bool anew;          /* where it is, for queue pairs that begin anew */
	bool bound, active; /* as it is to be; as it was */
	uint64_t off;       /* taken for it, or INC_NO_ARENA */
};

/* No worker works with the group any more. */
static void rebind(struct sw *sw, void *what)
{
	struct rebind *r = what;
	struct inc_group *g = sw_group_get(sw, r->slot);

	if (g == NULL || g->gen != r->gen) { /* deleted meanwhile */
		give_back(sw, r->off);
		free(r);
		return;
	}
	sw->slot[r->slot].moving = false;
	if (r->anew) {
		inc_group_resync(g);
	} else {
		give_back(sw, g->pay_off);
		/* What it had is free now, so that this cannot fail for a group that moves. */
		if (r->bound && r->off == INC_NO_ARENA && g->pay_bytes > 0)
			inc_ranges_alloc(sw->arena, g->pay_bytes, &r->off);
		inc_group_rebind(g, r->off);
	}
	if (r->active)
		inc_group_set_state(g, INC_INSTALLED, INC_ACTIVE);
	free(r);
}

static int finished(struct inc_group *g, char err[SW_ERR_LEN])
{
	char ranks[RANKS_TEXT];
	uint64_t eps;
	uint32_t psn;

	if (!inc_group_busy(g, &psn, &eps))
		return 0;
	inc_group_ranks_of(g, eps, ranks, sizeof(ranks));
	return sw_fail(
		err, -EBUSY, "an operation is not finished: PSN %u waits for ranks %s", psn, ranks);
}

static int in_service(const struct inc_group *g, char err[SW_ERR_LEN])
{
	if (g->state == INC_ACTIVE || g->state == INC_INSTALLED)
		return 0;
	return sw_fail(err, -EBUSY, "the group is %s", inc_state_name(g->state));
}

/* Of a group in service, which may have its memory elsewhere or begin anew; mode_1, leased: why one
 * of that mode, or with a lease, may not. -EBUSY: it is not in service. */
static int get_to_rebind(struct sw *sw, unsigned slot, const char *mode_1, const char *leased,
	struct inc_group **g, char err[SW_ERR_LEN])
{
	int rc = get(sw, slot, g, err);

	if (rc == 0)
		rc = in_service(*g, err);
	if (rc < 0)
		return rc;
	if ((*g)->mode == INC_MODE_1)
		return sw_fail(err, -EOPNOTSUPP, "a group of mode I %s", mode_1);
	if (sw->slot[slot].lease.lease)
		return sw_fail(err, -EOPNOTSUPP, "the group has a lease%s", leased);
	return 0;
}

/* NULL, *rc and why: something of it is not finished, or there is no memory. */
static struct rebind *new_rebind(struct inc_group *g, unsigned slot, int *rc, char err[SW_ERR_LEN])
{
	struct rebind *r;

	*rc = finished(g, err);
	if (*rc < 0)
		return NULL;
	r = malloc(sizeof(*r));
	if (r == NULL)
		*rc = sw_fail(err, -ENOMEM, "out of memory");
	else
		*r = (struct rebind){.slot = slot, .gen = g->gen, .off = INC_NO_ARENA};
	return r;
}

/* From now on workers take up nothing for it. */
static void set_moving(struct sw *sw, struct inc_group *g, struct rebind *r)
{
	r->active = inc_group_set_state(g, INC_ACTIVE, INC_INSTALLED);
	sw->slot[r->slot].moving = true;
}

int sw_group_rebind(struct sw *sw, unsigned slot, bool bound, char err[SW_ERR_LEN])
{
	struct inc_group *g;
	struct rebind *r;
	int rc = get_to_rebind(sw, slot, "keeps its memory: receives are posted into it",
		": its memory comes and goes with that", &g, err);

	if (rc < 0)
		return rc;
	if (sw->slot[slot].moving)
		return moves(g, err);
	r = new_rebind(g, slot, &rc, err);
	if (r == NULL)
		return rc;
	r->bound = bound;
	if (bound && g->pay_off == INC_NO_ARENA && g->pay_bytes > 0) {
		rc = take_memory(sw, g->pay_bytes, &r->off, err);
		if (rc < 0) {
			free(r);
			return rc;
		}
	}
	set_moving(sw, g, r);
	sw_defer_unread(sw, slot, g->pay_off == INC_NO_ARENA ? 0 : g->pay_bytes, rebind, r);
	return 0;
}

int sw_group_resync(struct sw *sw, unsigned slot, uint32_t psn, bool *done, char err[SW_ERR_LEN])
{
	struct inc_group *g;
	struct rebind *r;
	int rc = get_to_rebind(
		sw, slot, "has queue pairs of its own: they count messages", "", &g, err);

	*done = false;
	if (rc < 0)
		return rc == -EBUSY ? -ECANCELED : rc; /* not to be waited for */
	if (g->next_ctrl != psn)
		return sw_fail(err, -EINVAL, "psn: the next operation's is %u", g->next_ctrl);
	if (sw->slot[slot].moving)
		return 0;
	*done = inc_group_is_anew(g);
	if (*done)
		return 0;
	r = new_rebind(g, slot, &rc, err);
	if (r == NULL)
		return rc;
	r->anew = true;
	set_moving(sw, g, r);
	sw_defer(sw, rebind, r); /* what is being sent from its memory stays what it is */
	*done = !sw->slot[slot].moving;
	return 0;
}

struct removed {
	struct inc_group *g;
	struct sw_lease_member lease;
};

static void free_group(struct sw *sw, void *what)
{
	struct removed *r = what;

	if (r->lease.lease)
		sw_lease_leave(sw, &r->lease, r->g);
	else
		give_back(sw, r->g->pay_off);
	sw_host_free(r->g);
	free(r);
}

/* From now on the worker does not find it; the memory follows. */
static void remove_group(struct sw *sw, unsigned slot)
{
	struct inc_group *g = sw->groups->group[slot];
	struct removed *r = malloc(sizeof(*r));

	if (r != NULL)
		*r = (struct removed){g, sw->slot[slot].lease};
	sw->groups->gen[slot] = (uint8_t)((g->gen + 1) % INC_GENERATIONS);
	sw->n_stalled -= sw->slot[slot].stalled;
	sw->slot[slot] = (struct sw_group_slot){.rest_until = sw_now(sw) + sw->config.slot_rest_ns};
	sw->n_groups--;
	inc_table_set(sw->groups, slot, NULL);
	sw_rnic_remove(sw, g);
	if (r != NULL) /* else its memory is lost: the machine has none */
		sw_defer_unread(
			sw, slot, g->pay_off == INC_NO_ARENA ? 0 : g->pay_bytes, free_group, r);
}

int sw_group_delete(struct sw *sw, unsigned slot, bool force, char err[SW_ERR_LEN])
{
	struct inc_group *g;
	int rc = get(sw, slot, &g, err);

	if (rc < 0)
		return rc;
	/* Only a group that works has anything to finish. */
	if (force || !inc_group_set_state(g, INC_ACTIVE, INC_DRAINING)) {
		if (!force && g->state == INC_DRAINING)
			return sw_fail(err, -EALREADY, "the group is draining");
		remove_group(sw, slot);
		return 0;
	}
	sw->slot[slot].drain_until = sw_now(sw) + sw->config.drain_ns;
	return 0;
}

int sw_group_fail(struct sw *sw, unsigned slot, char err[SW_ERR_LEN])
{
	struct inc_group *g;
	int rc = get(sw, slot, &g, err);

	if (rc == 0) {
		inc_group_fail(g, INC_FAIL_MANAGER, 0xff);
		sw_rnic_stop(sw, g);
	}
	return rc;
}

void sw_groups_destroy(struct sw *sw)
{
	for (unsigned slot = FIRST_SLOT; slot < INC_GROUP_SLOTS; slot++)
		if (sw->groups->group[slot] != NULL)
			remove_group(sw, slot);
}

/* A group that waits is normal; one that waits for long should be seen, with whom it waits for. */
static void watch(struct sw *sw, unsigned slot, uint64_t now)
{
	struct inc_group *g = sw->groups->group[slot];
	struct sw_group_slot *s = &sw->slot[slot];
	uint64_t last = g->last_progress_ns, eps = 0;
	bool stalled;
	char ranks[RANKS_TEXT];
	uint32_t psn = 0;

	/* The time first: who is missing takes a look at all slots, which are the worker's. */
	if (g->state == INC_ACTIVE && now > last && now - last >= sw->config.stall_ns)
		eps = inc_group_missing(g, &psn);
	stalled = eps != 0;
	if (stalled && !s->stalled) {
		sw->stalls++;
		inc_group_ranks_of(g, eps, ranks, sizeof(ranks));
		journal(JOURNAL_WARNING,
			"%s: group %s: no progress for %llu ms, PSN %u waits for ranks %s",
			sw->config.name, g->name, (unsigned long long)((now - last) / 1000000), psn,
			ranks);
	}
	sw->n_stalled += (unsigned)stalled - (unsigned)s->stalled;
	s->stalled = stalled;
}

/* Whoever has made a group and not come back to start it has given up, and may not have been able
 * to say so. */
static bool is_over(uint64_t until, uint64_t now)
{
	return until != 0 && until <= now;
}

void sw_tick(struct sw *sw, uint64_t now_ns)
{
	sw->out.hangs = false; /* as far as is known now */
	sw_reclaim(sw);
	sw_log_mismatches(sw);
	sw_links_tick(sw, now_ns);
	sw_neigh_tick(sw, now_ns);
	sw_bridge_tick(sw, now_ns);
	sw_lldp_tick(sw, now_ns);
	sw_rings_tick(sw, now_ns);
	sw_membership_tick(sw, now_ns);
	sw_leases_tick(sw, now_ns);
	for (unsigned slot = FIRST_SLOT; slot < INC_GROUP_SLOTS; slot++) {
		if (sw->groups->group[slot] == NULL)
			continue;
		if (is_over(sw->slot[slot].drain_until, now_ns) ||
			is_over(sw->slot[slot].activate_until, now_ns))
			remove_group(sw, slot);
		else
			watch(sw, slot, now_ns);
	}
}
