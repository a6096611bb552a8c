/* SPDX-License-Identifier: BSD-3-Clause */
/* What becomes of a packet in the IncEngine (docs/inc-protocol.md, 1.5): X(symbol, name, meaning).
 * Losses are packets that it refuses; outcomes are what it does with those it takes, counted alike
 * so that packets in = packets out + losses + outcomes. */
#ifndef INC_DROPS_H
#define INC_DROPS_H

#define INC_LOSSES(X)                                                                              \
	X(NO_GROUP, "inc_no_group", "the QPN's group slot is not in use")                          \
	X(GENERATION, "inc_generation", "the QPN belongs to an earlier group in the same slot")    \
	X(NO_ENDPOINT, "inc_no_endpoint", "the QPN's endpoint does not exist in the group")        \
	X(SOURCE, "inc_source", "source IP is not the endpoint's peer: not a member")              \
	X(PORT, "inc_port", "arrived on another port than the endpoint's")                         \
	X(VLAN, "inc_vlan", "arrived in another VLAN than the endpoint's")                         \
	X(GROUP_STATE, "inc_group_state", "group is installed but not active")                     \
	X(GROUP_FAILED, "inc_group_failed", "group has failed")                                    \
	X(DRAINING, "inc_draining", "new operation on a group that is being destroyed")            \
	X(OPCODE, "inc_opcode", "opcode that a collective never uses")                             \
	X(LENGTH, "inc_length", "payload exceeds the group's MTU")                                 \
	X(CTRL_INVALID, "inc_ctrl_invalid", "control message with a bad field")                    \
	X(NO_CONTROL, "inc_no_control", "data or control before the operation's own control")      \
	X(NO_DESCRIPTOR, "inc_no_descriptor", "descriptor ring is full of live operations")        \
	X(OPCODE_POS, "inc_opcode_pos", "opcode does not fit the PSN's position in its message")   \
	X(LENGTH_POS, "inc_length_pos", "length does not fit the PSN's position in its operation") \
	X(PSN_STALE, "inc_psn_stale", "PSN older than its slot's owner, from a switch")            \
	X(PSN_AHEAD, "inc_psn_ahead", "PSN beyond the end of the pipe: the sender is too fast")    \
	X(WRONG_ENDPOINT, "inc_wrong_endpoint", "data from an endpoint that is not to send it")    \
	X(NO_ARENA, "inc_no_arena", "the group has no aggregation memory now: see group.rebind")   \
	X(NAK_CODE, "inc_nak_code", "NAK with a reserved code")                                    \
	X(ACK_RANGE, "inc_ack_range", "acknowledgement of what is not outstanding")                \
	X(ACK_CLASS, "inc_ack_class", "acknowledgement where the operation has none")

#define INC_OUTCOMES(X)                                                                       \
	X(CNP_RATE, "inc_cnp_rate", "CNP within 50 us of the one before")                     \
	X(ACK_MERGED, "inc_ack_merged", "acknowledgement that waits for other receivers'")    \
	X(ACK_TOLD, "inc_ack_told", "NAK to a host that waits after one for the same packet") \
	X(ACK_OLD, "inc_ack_old", "acknowledgement of what was acknowledged before")          \
	X(CONSUMED, "inc_consumed", "aggregated into a slot that still waits for others")     \
	X(DUP_WAIT, "inc_dup_wait", "duplicate of a slot that still waits for others")        \
	X(DONE, "inc_done", "packet was answered or completed its slot: what follows is emitted")

#define INC_DROPS(X)  \
	INC_LOSSES(X) \
	INC_OUTCOMES(X)

enum inc_drop {
	INC_OK = 0,
#define X(sym, name, text) INC_DROP_##sym,
	INC_DROPS(X)
#undef X
		INC_N_DROPS
};

const char *inc_drop_name(enum inc_drop drop);
const char *inc_drop_text(enum inc_drop drop);

#endif
