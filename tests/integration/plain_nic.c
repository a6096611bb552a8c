/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded before the software RNIC, it makes that a device like any other: nobody finds what it
 * can do beyond plain verbs (lib/verbs/incline_dv.h). */
#include <stdbool.h>

struct ibv_context;

bool inc_dv_is_supported(const struct ibv_context *context);

bool inc_dv_is_supported(const struct ibv_context *context)
{
	(void)context;
	return false;
}
