/* SPDX-License-Identifier: BSD-3-Clause */
/* What a queue pair of RC is told on its way from RESET to RTS: the attributes that each change of
 * state needs (IBTA vol. 1, 11.2.5.2), as a mask for ibv_modify_qp or rnic_qp_modify. */
#ifndef TESTS_RC_STEPS_H
#define TESTS_RC_STEPS_H

#include <infiniband/verbs.h>

enum {
	RC_TO_INIT = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
	RC_TO_RTR = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		    IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	RC_TO_RTS = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
};

#endif
