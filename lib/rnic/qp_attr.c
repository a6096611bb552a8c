/* SPDX-License-Identifier: BSD-3-Clause */
/* Which attributes a state change of a queue pair needs and allows (IBTA vol. 1, 11.2.5.2). */
#include <errno.h>

#include "lib/rnic/qp.h"

enum { N_STATES = IBV_QPS_ERR + 1 };

struct transition {
	bool valid;
	int required, optional;
};

enum {
	TO_INIT = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	IN_RTS = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH |
		 IBV_QP_PATH_MIG_STATE,
};

static const struct transition rc_transitions[N_STATES][N_STATES] = {
	[IBV_QPS_RESET] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_INIT] = {true, TO_INIT},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_INIT] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_INIT] = {true, 0, TO_INIT},
			[IBV_QPS_RTR] = {true,
				IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
				IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_RTR] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_RTS] = {true,
				IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
				IN_RTS},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_RTS] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_RTS] = {true, 0, IN_RTS},
			[IBV_QPS_SQD] = {true, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_SQD] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_RTS] = {true, 0, IN_RTS},
			[IBV_QPS_SQD] = {true, 0,
				IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC |
					IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_ALT_PATH |
					IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX |
					IBV_QP_MIN_RNR_TIMER | IBV_QP_PATH_MIG_STATE},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_SQE] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_RTS] = {true},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_ERR] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_ERR] = {true},
		},
};

/* Without what only RC has. */
static const struct transition uc_transitions[N_STATES][N_STATES] = {
	[IBV_QPS_RESET] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_INIT] = {true, TO_INIT},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_INIT] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_INIT] = {true, 0, TO_INIT},
			[IBV_QPS_RTR] = {true,
				IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
				IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_RTR] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_RTS] = {true, IBV_QP_SQ_PSN, IN_RTS & ~IBV_QP_MIN_RNR_TIMER},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_RTS] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_RTS] = {true, 0, IN_RTS & ~IBV_QP_MIN_RNR_TIMER},
			[IBV_QPS_SQD] = {true, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_SQD] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_RTS] = {true, 0, IN_RTS & ~IBV_QP_MIN_RNR_TIMER},
			[IBV_QPS_SQD] = {true, 0,
				IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS |
					IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_SQE] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_RTS] = {true, 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_ERR] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_ERR] = {true},
		},
};

static const struct transition ud_transitions[N_STATES][N_STATES] = {
	[IBV_QPS_RESET] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_INIT] = {true, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_INIT] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_INIT] = {true, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
			[IBV_QPS_RTR] = {true, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_RTR] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_RTS] = {true, IBV_QP_SQ_PSN, IBV_QP_CUR_STATE | IBV_QP_QKEY},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_RTS] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_RTS] = {true, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
			[IBV_QPS_SQD] = {true, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_SQD] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_RTS] = {true, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
			[IBV_QPS_SQD] = {true, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_SQE] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_RTS] = {true, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY},
			[IBV_QPS_ERR] = {true},
		},
	[IBV_QPS_ERR] =
		{
			[IBV_QPS_RESET] = {true},
			[IBV_QPS_ERR] = {true},
		},
};

int qp_attr_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	const struct transition *t;

	if ((unsigned)from >= N_STATES || (unsigned)to >= N_STATES)
		return -EINVAL;
	t = type == IBV_QPT_RC   ? &rc_transitions[from][to]
	    : type == IBV_QPT_UC ? &uc_transitions[from][to]
				 : &ud_transitions[from][to];
	mask &= ~IBV_QP_STATE;
	if (!t->valid || (mask & t->required) != t->required ||
		(mask & ~(t->required | t->optional)))
		return -EINVAL;
	return 0;
}
