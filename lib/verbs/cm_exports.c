/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions that programs call by librdmacm's names: see exports.c. */
#include "lib/verbs/cm_exports.h"

#include <errno.h>

#include "lib/verbs/behind.h"
#include "lib/verbs/cm_internal.h"

#define X(type, name, ours, params, args, none) \
	EXPORT_BEHIND(type, name, ours, params, args, iv_cm_on(), BEHIND_CM, none)
CM_EXPORTS(X)
#undef X

/* ---- not offered ---- */

int iv_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	(void)id, (void)ece;
	return iv_cm_ret(EOPNOTSUPP);
}

int iv_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	(void)id, (void)ece;
	return iv_cm_ret(EOPNOTSUPP);
}
