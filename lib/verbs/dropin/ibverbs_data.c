/* SPDX-License-Identifier: BSD-3-Clause */
/* The one variable of libibverbs: providers read it, and find this one first. The library behind
 * may find it, too, and sets it by the same rule when it is used first. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

extern bool verbs_allow_disassociate_destroy;

__attribute__((visibility("default"))) bool verbs_allow_disassociate_destroy;

__attribute__((constructor)) static void read_flag(void)
{
	const char *flag = getenv("RDMAV_ALLOW_DISASSOC_DESTROY");

	verbs_allow_disassociate_destroy = flag && strcmp(flag, "0") != 0;
}
