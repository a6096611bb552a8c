/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose a group is, and what somebody may do who has come over TCP. */
#include <errno.h>
#include <string.h>

#include "ctrl/agent/rpc.h"

static const struct owner *asker(const struct agent *a)
{
	return a->peer ? a->peer->owner : NULL;
}

/* Of whom the job must be, "": not a tenant. */
static const char *tenant_name(const struct agent *a)
{
	return a->peer && a->peer->who.role == CTL_TENANT ? a->peer->who.name : "";
}

void rpc_own_group(struct agent *a, unsigned slot)
{
	a->owners.group[slot] = a->peer ? a->peer->owner : NULL;
}

void rpc_own_ring(struct agent *a, unsigned ring)
{
	a->owners.ring[ring] = a->peer ? a->peer->owner : NULL;
}

int rpc_owner_hold(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	const char *token = rpc_string(params, "owner");
	const uint64_t wait_ns = (uint64_t)rpc_int(params, "owner_ms", OWNER_MS) * 1000000;
	struct owner *before, *now;

	if (!a->peer)
		return rpc_fail(e, -EOPNOTSUPP, "", "there is no connection to hold an owner");
	before = a->peer->owner;
	if (before && strcmp(before->token, token))
		return rpc_fail(e, -EBUSY, "owner", "this connection holds another one already");
	now = before ? before : owner_hold(&a->owners, token, tenant_name(a));
	if (!now)
		return rpc_fail(e, -EMFILE, "", "too many connections hold owners, the limit is %d",
			OWNER_MAX_HELD);
	now->wait_ns = wait_ns;
	a->peer->owner = now;
	*result = json_pack("{s:i,s:i}", "groups", (int)owner_groups(&a->owners, a->sw, now),
		"rings", (int)owner_rings(&a->owners, a->sw, now));
	return 0;
}

/* ---- over TCP ---- */

static int not_allowed(
	const struct agent *a, struct rpc_error *e, const char *path, const char *what)
{
	const enum ctl_role role = a->peer->who.role;

	rpc_fail(e, -EPERM, path, "%s %s", what,
		role == CTL_TENANT  ? "with a tenant's certificate"
		: role == CTL_AGENT ? "with a switch's certificate"
				    : "over TCP: use the UNIX socket, or \"control_tcp_full\"");
	e->code = CTL_NOT_ALLOWED;
	return -EPERM;
}

static const char *tenant_of(struct agent *a, unsigned slot)
{
	const char *tenant, *lease = sw_group_lease(a->sw, slot, &tenant);

	return lease[0] ? tenant : NULL;
}

/* Does a group of this tenant belong to the owner (NULL: to somebody else than the asker)? */
static bool tenant_is(struct agent *a, const char *tenant, const struct owner *owner)
{
	for (unsigned slot = 1; slot < INC_GROUP_SLOTS; slot++) {
		const char *is = sw_group_get(a->sw, slot) ? tenant_of(a, slot) : NULL;
		const struct owner *whose = a->owners.group[slot];

		if (is && !strcmp(is, tenant) && (owner ? whose == owner : whose != asker(a)))
			return true;
	}
	return false;
}

static int may_group(struct agent *a, const json_t *ref, struct rpc_error *e)
{
	const int slot = json_is_string(ref) ? sw_group_find(a->sw, json_string_value(ref))
					     : (int)json_integer_value(ref);

	if (slot < 0 || !sw_group_get(a->sw, (unsigned)slot))
		return 0; /* the handler says so */
	return a->owners.group[slot] == asker(a)
		       ? 0
		       : not_allowed(a, e, "group", "belongs to somebody else: not");
}

static int may_ring(struct agent *a, const json_t *ref, struct rpc_error *e)
{
	const int ring = json_is_string(ref) ? sw_ring_find(a->sw, json_string_value(ref))
					     : (int)json_integer_value(ref);

	if (ring < 0 || !sw_ring_get(a->sw, (unsigned)ring))
		return 0;
	return a->owners.ring[ring] == asker(a)
		       ? 0
		       : not_allowed(a, e, "ring", "belongs to somebody else: not");
}

/* A job of which the manager has said whose it is takes nobody else's groups. */
static int may_job(struct agent *a, const char *job, struct rpc_error *e)
{
	const char *whose = job ? epoch_tenant(&a->epochs, job) : NULL;

	if (!job || a->peer->who.role != CTL_TENANT || (whose && !strcmp(whose, tenant_name(a))))
		return 0;
	return not_allowed(a, e, "job",
		whose ? "belongs to somebody else: not" : "is not one of the manager's: not");
}

/* lease.acquire and lease.release are for who has groups of the tenant; nobody's groups join
 * another's tenant. */
static int may_tenant(
	struct agent *a, const struct ctl_method *m, const json_t *params, struct rpc_error *e)
{
	const bool create = !strcmp(m->name, "group.create");
	const char *tenant = rpc_string(params, "tenant");

	if (!rpc_string(params, "lease"))
		return 0;
	if (!tenant)
		tenant = rpc_string(params, "name");
	if (create ? !tenant_is(a, tenant, NULL) : tenant_is(a, tenant, asker(a)))
		return 0;
	return not_allowed(a, e, "tenant", "belongs to somebody else: not");
}

int rpc_may(struct agent *a, const struct ctl_method *m, const json_t *params, struct rpc_error *e)
{
	const json_t *ref;
	int rc = 0;

	if (a->peer && a->peer->who.role == CTL_AGENT && strcmp(m->name, "ping") &&
		strcmp(m->name, "version"))
		return not_allowed(a, e, "", "not allowed");
	if (!a->peer || !a->peer->restricted || m->tcp == CTL_TCP_ANY)
		return 0;
	if (m->tcp == CTL_TCP_NO)
		return not_allowed(a, e, "", "not allowed");
	if (!asker(a))
		return not_allowed(a, e, "", "not allowed without owner.hold");
	if ((ref = json_object_get(params, "group")))
		rc = may_group(a, ref, e);
	if (!rc && (ref = json_object_get(params, "ring")))
		rc = may_ring(a, ref, e);
	if (!rc && !strcmp(m->name, "group.create"))
		rc = may_job(a, rpc_string(params, "job"), e);
	return rc ? rc : may_tenant(a, m, params, e);
}
