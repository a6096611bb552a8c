/* SPDX-License-Identifier: BSD-3-Clause */
/* Which attributes a state change of a queue pair needs and allows (IBTA vol. 1, 11.2.5.2). */
#include "lib/rnic/transport.h"

enum {
	TO_INIT = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	IN_RTS = IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH |
		 IBV_QP_PATH_MIG_STATE,
};

const struct transition rc_transitions[QP_N_STATES][QP_N_STATES] = {
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
const struct transition uc_transitions[QP_N_STATES][QP_N_STATES] = {
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

const struct transition ud_transitions[QP_N_STATES][QP_N_STATES] = {
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
