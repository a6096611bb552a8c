/* SPDX-License-Identifier: BSD-3-Clause */
/* In which modes a rank's device can do what its group file asks for. What it cannot do at all is
 * refused with the field that stands in the way; else the mode is chosen among the rest, of all
 * ranks. */
#include <errno.h>
#include <string.h>

#include "ctrl/manager/priv.h"

struct asked {
	const char *mode; /* NULL: any */
	const char *kind;
	const json_t *device;
	unsigned rank;
	bool sr, write, basic;
};

static const char *name_of(const struct asked *a)
{
	return rpc_string(a->device, "name") ?: "?";
}

static unsigned modes_of(const char *mode)
{
	if (!mode)
		return MGR_MODE_II | MGR_MODE_III;
	return !strcmp(mode, "I") ? MGR_MODE_I : !strcmp(mode, "II") ? MGR_MODE_II : MGR_MODE_III;
}

/* Selective queue pairs cannot leave out PSNs, and in Mode II hear of what they have sent by their
 * own acknowledgements: where every rank gets a result. */
static int with_sr(const struct asked *a, unsigned *modes, struct rpc_error *e)
{
	if (!rpc_bool(a->device, "selective", false))
		return rpc_fail(e, -EOPNOTSUPP, "device.selective",
			"rank %u's device (%s) has no selective queue pairs, which \"sr\" needs",
			a->rank, name_of(a));
	if (!strcmp(a->kind, "mixed"))
		return rpc_fail(e, -EOPNOTSUPP, "kind",
			"\"sr\" is for single groups: a mixed one leaves out PSNs");
	*modes &= a->basic ? MGR_MODE_II | MGR_MODE_III : MGR_MODE_III;
	if (!*modes)
		return rpc_fail(e, -EOPNOTSUPP, "mode",
			"\"sr\" is for mode III, or II with allreduce and barrier alone, not %s",
			a->mode);
	return 0;
}

static int with_mixed(const struct asked *a, unsigned *modes, struct rpc_error *e)
{
	if (rpc_bool(a->device, "skip", false)) {
		if (!a->mode && !a->write)
			*modes |= MGR_MODE_I; /* another rank's device may need it */
		return 0;
	}
	*modes = (a->mode ? *modes : MGR_MODES) & MGR_MODE_I;
	if (*modes && !a->write)
		return 0;
	return rpc_fail(e, -EOPNOTSUPP, "device.skip",
		"a mixed group in mode %s needs devices that can leave out PSNs, and rank %u's "
		"(%s) cannot%s",
		a->mode && strcmp(a->mode, "I") ? a->mode : "II or III", a->rank, name_of(a),
		a->write ? ", and mode I has no verb \"write\"" : "");
}

int mg_device_modes(const json_t *params, unsigned *modes, struct rpc_error *e)
{
	const char *verb = rpc_string(params, "verb");
	const struct asked a = {.mode = rpc_string(params, "mode"),
		.kind = rpc_string(params, "kind") ?: "auto",
		.device = json_object_get(params, "device"),
		.rank = (unsigned)rpc_int(params, "rank", 0),
		.sr = rpc_bool(params, "sr", false),
		.write = verb && !strcmp(verb, "write"),
		.basic = rpc_bool(params, "basic", false)};
	const int64_t mtu = rpc_int(params, "mtu", 0), most = rpc_int(a.device, "mtu", mtu);
	int rc = 0;

	*modes = modes_of(a.mode);
	if (most < mtu)
		return rpc_fail(e, -EMSGSIZE, "device.mtu",
			"the port of rank %u's device (%s) has %lld, the job's is %lld", a.rank,
			name_of(&a), (long long)most, (long long)mtu);
	if (a.write && *modes == MGR_MODE_I)
		return rpc_fail(e, -EOPNOTSUPP, "verb", "write is for modes II and III, not I");
	if (a.sr)
		rc = with_sr(&a, modes, e);
	else if (a.device && !strcmp(a.kind, "mixed"))
		rc = with_mixed(&a, modes, e);
	return rc;
}
