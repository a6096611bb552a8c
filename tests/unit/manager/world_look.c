/* SPDX-License-Identifier: BSD-3-Clause */
/* What switches have, past the manager. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/agent/rpc.h"
#include "tests/unit/manager/world.h"

static json_t *of_switch(struct world *w, unsigned i, const char *method)
{
	json_t *result = world_ask_switch(w, i, NULL, method, NULL);

	assert_non_null(result);
	return result;
}

char *world_inventory(struct world *w, unsigned i)
{
	json_t *status = of_switch(w, i, "status"),
	       *all = json_pack("{s:o,s:o,s:O}", "groups", of_switch(w, i, "group.list"), "leases",
		       of_switch(w, i, "lease.list"), "arena",
		       json_object_get(status, "arena_used_bytes"));
	char *text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);

	json_decref(status);
	json_decref(all);
	return text;
}

void world_install_static(struct world *w, unsigned i)
{
	json_t *endpoints = json_pack("[{s:s,s:i,s:s,s:s,s:b,s:[i]},{s:s,s:i,s:s,s:s,s:b,s:[i]}]",
		       "ip", "10.0.0.1", "qpn", 1, "port", "p0", "mac", "02:00:00:00:00:01", "host",
		       1, "ranks", 0, "ip", "10.0.0.2", "qpn", 2, "port", "p1", "mac",
		       "02:00:00:00:00:02", "host", 1, "ranks", 1),
	       *made = world_ask_switch(w, i, NULL, "group.create",
		       json_pack("{s:s,s:s,s:s,s:i,s:i,s:i,s:i,s:o}", "name", "static", "mode",
			       "III", "kind", "mixed", "mtu", 1024, "M", 1, "W", 1, "ranks", 2,
			       "endpoints", endpoints));

	assert_non_null(made);
	json_decref(made);
}

bool world_has(struct world *w, unsigned i, const char *job, uint64_t epoch)
{
	for (unsigned slot = 1; w->sw[i].sw && slot < INC_GROUP_SLOTS; slot++) {
		uint64_t is;
		const char *of = epoch_of(&w->sw[i].agent->epochs, slot, &is);

		if (sw_group_get(w->sw[i].sw, slot) && of && !strcmp(of, job) && is == epoch)
			return true;
	}
	return false;
}

bool world_is_over(const struct world *w, unsigned i, const char *job, uint64_t epoch)
{
	const struct world_switch *s = &w->sw[i];
	uint64_t newest;

	return s->sw && epoch_check(&s->agent->epochs, s->sw, job, epoch, &newest) == -ESTALE;
}
