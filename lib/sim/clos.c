/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/sim/clos.h"

#include <errno.h>

enum { MAX_HOSTS_BITS = 48 };

int sim_clos_size(unsigned radix, unsigned planes, unsigned tiers, struct sim_clos *out)
{
	const uint64_t half = (uint64_t)radix * planes / 2;
	uint64_t below = 1; /* switches of all tiers but the top one: 2 below each */

	if (radix == 0 || radix % 2 || radix > SIM_CLOS_MAX_RADIX || planes == 0 ||
		planes > SIM_CLOS_MAX_PLANES || tiers == 0 || tiers > SIM_CLOS_MAX_TIERS)
		return -EINVAL;
	for (unsigned t = 1; t < tiers; t++) {
		below *= half;
		if (below > (UINT64_C(1) << MAX_HOSTS_BITS) / (2 * half))
			return -ERANGE;
	}
	*out = (struct sim_clos){.radix = radix, .planes = planes, .tiers = tiers};
	out->hosts = 2 * half * below;
	out->switches = planes * (2 * tiers - 1) * below;
	out->links = planes * tiers * out->hosts; /* each tier has as many as there are hosts */
	out->ends_per_host = 2.0 * tiers;
	out->switches_per_host = (double)out->switches / (double)out->hosts;
	out->near = tiers == 1 ? out->hosts : half;
	out->path_switches = 2 * tiers - 1;
	out->up_link_share = tiers == 1 ? 0 : 1 / (double)half;
	out->nic_link_share = 1.0 / planes;
	return 0;
}

unsigned sim_clos_tiers(unsigned radix, unsigned planes, uint64_t hosts)
{
	struct sim_clos clos;

	for (unsigned t = 1; t <= SIM_CLOS_MAX_TIERS; t++) {
		const int rc = sim_clos_size(radix, planes, t, &clos);

		if (rc == -EINVAL)
			return 0;
		if (rc == -ERANGE || clos.hosts >= hosts)
			return t;
	}
	return 0;
}
