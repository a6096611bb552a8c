/* SPDX-License-Identifier: BSD-3-Clause */
/* What an RC requester's send requests are on the wire. */
#include "lib/rnic/rc.h"
#include "lib/rnic/window.h"

uint32_t rc_packets(const struct rnic_qp *qp, const struct send_wqe *wqe)
{
	if (wqe_is_local(wqe))
		return 0;
	return rc_packets_of(qp, wqe->len);
}

bool rc_is_atomic(const struct send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

bool rc_is_rd(const struct send_wqe *wqe)
{
	return wqe->opcode == IBV_WR_RDMA_READ || rc_is_atomic(wqe);
}

bool rc_takes_recv(uint8_t opcode)
{
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM ||
	       opcode == IBV_WR_SEND_WITH_INV || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

uint8_t rc_opcode(const struct send_wqe *wqe, bool first, bool last)
{
	static const uint8_t send[2][2] = {
		{ROCE_SEND_MIDDLE, ROCE_SEND_LAST}, {ROCE_SEND_FIRST, ROCE_SEND_ONLY}};
	static const uint8_t write[2][2] = {
		{ROCE_WRITE_MIDDLE, ROCE_WRITE_LAST}, {ROCE_WRITE_FIRST, ROCE_WRITE_ONLY}};

	switch (wqe->opcode) {
	case IBV_WR_SEND_WITH_INV:
		return last ? (first ? ROCE_SEND_ONLY_INV : ROCE_SEND_LAST_INV) : send[first][last];
	case IBV_WR_SEND_WITH_IMM:
		/* The opcodes with immediate follow those without. */
		return send[first][last] + last;
	case IBV_WR_RDMA_WRITE:
		return write[first][last];
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return write[first][last] + last;
	default:
		return send[first][last];
	}
}
