/* SPDX-License-Identifier: BSD-3-Clause */
/* What every rank tells rank 0 first: what it can do, and its configuration, to notice group files
 * that differ. */
#ifndef CCL_HELLO_H
#define CCL_HELLO_H

#include "lib/ccl/comm.h"
#include "lib/ccl/select.h"

json_t *ccl_hello(const struct ccl_group *group, const struct ccl_comm *comm);

/* Rank 0: a rank's hello. Its ability and MTU, or -EPROTO, -EINVAL, -EMSGSIZE with the field at
 * fault in err. */
int ccl_hello_check(const struct ccl_group *group, unsigned rank, const json_t *hello,
	struct ccl_ability *ability, unsigned *mtu, char err[CCL_ERR_LEN]);

#endif
