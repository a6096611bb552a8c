/* SPDX-License-Identifier: BSD-3-Clause */
/* What a collective looks like on the wire: the control message, and how the bytes are cut into
 * operations, messages and packets (docs/inc-protocol.md, 2.1 and 2.4). Pure functions. */
#ifndef CCL_MSG_H
#define CCL_MSG_H

#include <stdint.h>

enum {
	CCL_CTRL_LEN = 32,
	CCL_MAX_PACKETS = (1 << 22) - 1, /* of an operation: nothing compared may span 2^23 PSNs */
	CCL_MAX_RANKS = 2048,
};

enum ccl_prim { CCL_PRIM_AR = 0, CCL_PRIM_RED = 1, CCL_PRIM_BC = 2 };
enum ccl_ctrl_flags { CCL_F_WRITE = 1 << 0, CCL_F_LAST = 1 << 1 };

struct ccl_ctrl {
	uint8_t prim;   /* enum ccl_prim */
	uint8_t op;     /* enum reduce_op */
	uint8_t dtype;  /* enum reduce_dtype */
	uint8_t op_seq; /* operations of the group modulo 256 */
	uint16_t root;
	uint32_t n; /* data packets */
	uint64_t bytes;
	uint32_t flags; /* enum ccl_ctrl_flags */
	uint32_t m;     /* packets per message */
	uint64_t tag;   /* any number the ranks agree on */
};

/* The immediate, as a number (to be sent in network order), and the payload. */
uint32_t ccl_ctrl_imm(const struct ccl_ctrl *ctrl);
void ccl_ctrl_encode(const struct ccl_ctrl *ctrl, uint8_t out[CCL_CTRL_LEN]);

/* The inverse. -EINVAL: another version or magic. */
int ccl_ctrl_decode(uint32_t imm, const uint8_t in[CCL_CTRL_LEN], struct ccl_ctrl *ctrl);

/* Name of the first field in which two controls differ, NULL if they are equal. */
const char *ccl_ctrl_differ(const struct ccl_ctrl *a, const struct ccl_ctrl *b);

/* How one operation is cut. Message 0 is the control, 1 .. n_msgs-1 carry data; packet PSNs are
 * relative to the control's. */
struct ccl_plan {
	uint64_t bytes;
	uint32_t mtu, m;
	uint32_t n; /* data packets */
	uint32_t n_msgs;
};

/* bytes must not exceed what ccl_plan_part gave. */
void ccl_plan_init(struct ccl_plan *plan, uint64_t bytes, uint32_t mtu, uint32_t m);
uint64_t ccl_plan_offset(const struct ccl_plan *plan, uint32_t msg); /* of data message msg */
uint32_t ccl_plan_len(const struct ccl_plan *plan, uint32_t msg);    /* bytes, the control has 32 */
uint32_t ccl_plan_psn(const struct ccl_plan *plan, uint32_t msg);    /* of its first packet */

/* Bytes of the next operation when `left` bytes of a collective remain: all, or as many whole
 * messages as fit into max_packets (at least m). */
uint64_t ccl_plan_part(uint64_t left, uint32_t mtu, uint32_t m, uint32_t max_packets);

#endif
