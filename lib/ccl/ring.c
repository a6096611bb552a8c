/* SPDX-License-Identifier: BSD-3-Clause */
/* The core of a ring: the messages of what was issued are sent under a window, what comes is copied
 * or reduced. No clock, no blocking. */
#include "lib/ccl/ring_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POLL = 16 };

static unsigned next_rank(const struct ccl_ring *r)
{
	return (r->rank + 1) % r->n_ranks;
}

static unsigned prev_rank(const struct ccl_ring *r)
{
	return (r->rank + r->n_ranks - 1) % r->n_ranks;
}

/* As messages to people have them. */
static unsigned next_name(const struct ccl_ring *r)
{
	return ring_known_as(r, next_rank(r));
}

static unsigned prev_name(const struct ccl_ring *r)
{
	return ring_known_as(r, prev_rank(r));
}

int ccl_ring_fail(struct ccl_ring *r, int error, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (r->failed)
		return r->failed;
	r->failed = error;
	n = snprintf(r->err, sizeof(r->err), "rank %u: ", ring_known_as(r, r->rank));
	va_start(ap, fmt);
	vsnprintf(r->err + n, sizeof(r->err) - (size_t)n, fmt, ap);
	va_end(ap);
	ring_qps_to_error(r);
	return error;
}

const char *ccl_ring_error(const struct ccl_ring *r)
{
	return r->err;
}

/* ---- messages for people ---- */

static void describe_wait(struct ccl_ring *r, char *buf, size_t cap)
{
	char ip[WIRE_IP_STRLEN];

	if (r->tx_acked < r->tx_posted &&
		(r->rx_arrived > r->tx_acked || r->rx_taken == r->rx_total))
		snprintf(buf, cap, "message %llu to rank %u (%s, QPN 0x%x) is not acknowledged",
			(unsigned long long)r->tx_acked, next_name(r),
			wire_ip_format(&r->next_at.ip, ip, sizeof(ip)), r->next_at.prev_qpn);
	else if (r->rx_taken < r->rx_total)
		snprintf(buf, cap, "waiting for %s %llu from rank %u (%s)",
			r->conf.netreduce ? "the sum in message" : "message",
			(unsigned long long)r->rx_arrived, prev_name(r),
			wire_ip_format(&r->prev_at.ip, ip, sizeof(ip)));
	else if (r->tx_posted < r->tx_total)
		snprintf(buf, cap, "rank %u (%s) has no room for message %llu", next_name(r),
			wire_ip_format(&r->next_at.ip, ip, sizeof(ip)),
			(unsigned long long)r->tx_posted);
	else
		snprintf(buf, cap, "nothing was outstanding");
}

static int completion_error(struct ccl_ring *r, const struct ibv_wc *wc)
{
	const bool next = wc->qp_num == r->next->qp_num;
	const struct ccl_ring_address *at = next ? &r->next_at : &r->prev_at;
	char wait[160], ip[WIRE_IP_STRLEN];
	const char *switched = "";
	int error;

	describe_wait(r, wait, sizeof(wait));
	switch (wc->status) {
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RNR_RETRY_EXC_ERR:
		error = -ETIMEDOUT;
		break;
	case IBV_WC_WR_FLUSH_ERR:
		error = -ECONNABORTED;
		break;
	case IBV_WC_REM_OP_ERR: /* a switch says so in the next rank's name (13.1) */
		if (r->conf.netreduce)
			switched = "the switch has failed the ring (the ranks disagree on a "
				   "collective, or a rank broke down): ";
		error = -EREMOTEIO;
		break;
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
		error = -EREMOTEIO;
		break;
	default:
		error = -EIO;
	}
	return ccl_ring_fail(r, error, "connection %s rank %u (%s): %s%s (vendor error 0x%x); %s",
		next ? "to" : "from", next ? next_name(r) : prev_name(r),
		wire_ip_format(&at->ip, ip, sizeof(ip)), switched, ibv_wc_status_str(wc->status),
		wc->vendor_err, wait);
}

/* What was sent comes to the receiver as it is when the switch does not know the ring. */
static int not_a_sum(struct ccl_ring *r, uint64_t msg)
{
	return ccl_ring_fail(r, -EREMOTEIO,
		"message %llu came as rank %u had sent it and not as a sum: the switch does not "
		"know the ring any more (it was deleted, or the switch began anew)",
		(unsigned long long)msg, prev_name(r));
}

/* A message's immediate data: its number, of NetReduce without the bit that marks a sum. */
static uint32_t message_imm(const struct ccl_ring *r, uint64_t msg)
{
	return (uint32_t)msg & ~(r->conf.netreduce ? INA_IMM_SUM : 0);
}

/* ---- sending ---- */

static uint32_t region_key(const struct ccl_ring *r, const uint8_t *p, uint32_t len, bool *found)
{
	for (unsigned i = 0; i < CCL_RING_MAX_REGIONS; i++) {
		const struct ring_region *reg = &r->region[i];

		if (reg->mr && p >= reg->base && len <= reg->len &&
			(uint64_t)(p - reg->base) <= reg->len - len) {
			*found = true;
			return reg->mr->lkey;
		}
	}
	*found = false;
	return 0;
}

/* The bytes of a message where the device can read them. What is registered stays where it is: it
 * is not overwritten before the message is acknowledged, or (results of a later step) not before
 * the next rank has it, when nothing can be sent again but what will be thrown away. */
static struct ibv_sge data_sge(struct ccl_ring *r, const struct ring_part *part, uint64_t msg)
{
	bool found;
	uint32_t key = region_key(r, part->from, part->len, &found);
	uint8_t *slot = ring_send_slot(r, msg);

	if (found)
		return (struct ibv_sge){(uintptr_t)part->from, part->len, key};
	memcpy(slot, part->from, part->len);
	r->staged_sends++;
	return (struct ibv_sge){(uintptr_t)slot, part->len, r->mr->lkey};
}

/* Header before, zeros behind: a message of NetReduce has M packets, whatever it carries. The last
 * packet need not be full. */
static unsigned frame_netreduce(
	struct ccl_ring *r, const struct ring_coll *c, struct ibv_sge *sge, uint32_t len)
{
	const uint32_t min = (r->m - 1) * r->mtu;
	const struct ina_hdr ina = {
		.ring = r->conf.ring_id,
		.rank = (uint16_t)r->rank,
		.msg = r->conf.first_msg + (uint32_t)r->tx_posted,
		.packets = (uint16_t)r->m,
		.dtype = (uint8_t)c->dtype,
		.op = (uint8_t)c->op,
	};
	uint8_t *header = ring_header(r, r->tx_posted);
	unsigned n = len ? 2 : 1;

	ina_encode(&ina, header);
	sge[0] = (struct ibv_sge){(uintptr_t)header, INA_LEN, r->mr->lkey};
	if (len < min)
		sge[n++] = (struct ibv_sge){(uintptr_t)ring_zeros(r), min - len, r->mr->lkey};
	return n;
}

static int post_write(struct ccl_ring *r, const struct ring_coll *c, const struct ring_part *part)
{
	const uint64_t msg = r->tx_posted;
	struct ibv_sge sge[3];
	struct ibv_send_wr wr =
				   {
					   .wr_id = RING_WR_SEND,
					   .sg_list = sge,
					   .num_sge = part->len ? 1 : 0,
					   .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
					   .send_flags = IBV_SEND_SIGNALED,
					   .imm_data = htonl(message_imm(r, msg)),
					   .wr.rdma = {.remote_addr =
							       r->next_at.slots +
							       msg % r->w * r->next_at.slot_len,
						   .rkey = r->next_at.rkey},
				   },
			   *bad;
	int rc;

	if (part->len)
		sge[r->conf.netreduce ? 1 : 0] = data_sge(r, part, msg);
	if (r->conf.netreduce)
		wr.num_sge = (int)frame_netreduce(r, c, sge, part->len);
	rc = ibv_post_send(r->next, &wr, &bad);
	if (rc)
		return ccl_ring_fail(r, -rc, "posting message %llu to rank %u: %s",
			(unsigned long long)msg, next_name(r), strerror(rc));
	r->tx_posted++;
	return 0;
}

static bool room(const struct ccl_ring *r)
{
	/* NetReduce: a message is taken only once its own send is acknowledged as well. */
	if (r->conf.netreduce)
		return r->tx_posted - r->rx_taken < r->w;
	return r->tx_posted - r->tx_credit < r->w && r->tx_posted - r->tx_acked < r->w;
}

static int post_sends(struct ccl_ring *r)
{
	while (r->tx_coll < r->issued) {
		const struct ring_coll *c = ring_coll_at(r, r->tx_coll);
		const uint64_t k = r->tx_posted - c->tx_first;
		struct ring_part part;
		int rc;

		if (k == c->n_tx) {
			r->tx_coll++;
			continue;
		}
		if (!room(r) || (ring_tx_needs(r, c, k) &&
					r->rx_taken < c->rx_first + ring_tx_needs(r, c, k)))
			return 0;
		part = ring_tx_part(r, c, k);
		rc = post_write(r, c, &part);
		if (rc)
			return rc;
	}
	return 0;
}

/* Tells the rank before how much room there is, half a window at a time, one telling at a time. */
static int tell_credit(struct ccl_ring *r)
{
	struct ibv_send_wr wr =
				   {
					   .wr_id = RING_WR_TOLD,
					   .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
					   .send_flags = IBV_SEND_SIGNALED,
					   .imm_data = htonl((uint32_t)r->rx_taken),
					   .wr.rdma = {.remote_addr = r->prev_at.slots,
						   .rkey = r->prev_at.rkey},
				   },
			   *bad;
	const unsigned half = r->w > 1 ? r->w / 2 : 1;
	int rc;

	if (r->conf.netreduce || r->credit_busy || r->rx_taken - r->credit_told < half)
		return 0;
	rc = ibv_post_send(r->prev, &wr, &bad);
	if (rc)
		return ccl_ring_fail(
			r, -rc, "telling rank %u of free slots: %s", prev_name(r), strerror(rc));
	r->credit_busy = true;
	r->credit_told = r->rx_taken;
	return 0;
}

/* ---- receiving ---- */

static int check_header(struct ccl_ring *r, const struct ring_coll *c, const uint8_t *slot)
{
	const uint32_t msg = r->conf.first_msg + (uint32_t)r->rx_taken;
	struct ina_hdr h;

	if (ina_decode(slot, &h) && h.ring == r->conf.ring_id && h.rank == prev_rank(r) &&
		h.msg == msg && h.packets == r->m && h.dtype == c->dtype && h.op == c->op)
		return 0;
	return ccl_ring_fail(r, -EPROTO,
		"message %llu from rank %u has another header: the ranks call different "
		"collectives",
		(unsigned long long)r->rx_taken, prev_name(r));
}

static int take(struct ccl_ring *r, const struct ring_coll *c)
{
	const struct ring_part part = ring_rx_part(r, c, r->rx_taken - c->rx_first);
	const uint8_t *slot = ring_recv_slot(r, r->rx_taken);

	if (r->conf.netreduce) {
		const int rc = check_header(r, c, slot);

		if (rc)
			return rc;
		slot += INA_LEN;
	}
	if (part.len == 0)
		return 0;
	if (part.from == NULL) {
		memcpy(part.to, slot, part.len);
		return 0;
	}
	if (part.from != part.to)
		memcpy(part.to, part.from, part.len);
	c->add(part.to, slot, part.len);
	return 0;
}

static int take_all(struct ccl_ring *r)
{
	while (r->rx_coll < r->issued) {
		const struct ring_coll *c = ring_coll_at(r, r->rx_coll);
		int rc;

		if (r->rx_taken == c->rx_first + c->n_rx) {
			r->rx_coll++;
			continue;
		}
		if (r->rx_taken == r->rx_arrived ||
			(r->conf.netreduce && r->rx_taken == r->tx_acked))
			break;
		rc = take(r, c);
		if (rc)
			return rc;
		r->rx_taken++;
	}
	return tell_credit(r);
}

static void close_done(struct ccl_ring *r)
{
	while (r->done < r->issued) {
		struct ring_coll *c = ring_coll_at(r, r->done);

		if (r->rx_taken < c->rx_first + c->n_rx || r->tx_acked < c->tx_first + c->n_tx)
			return;
		free(c->scratch);
		c->scratch = NULL;
		r->done++;
	}
}

int ring_pump(struct ccl_ring *r)
{
	uint64_t posted;
	int rc;

	do {
		posted = r->tx_posted;
		if ((rc = take_all(r)) || (rc = post_sends(r)))
			return rc;
	} while (r->tx_posted != posted);
	close_done(r);
	return 0;
}

/* ---- completions ---- */

static int repost(struct ccl_ring *r, struct ibv_qp *qp, uint64_t id)
{
	struct ibv_recv_wr wr = {.wr_id = id}, *bad;
	const int rc = ibv_post_recv(qp, &wr, &bad);

	return rc ? ccl_ring_fail(r, -rc, "posting a receive: %s", strerror(rc)) : 0;
}

static int arrived(struct ccl_ring *r, const struct ibv_wc *wc)
{
	const uint64_t sent = r->conf.netreduce ? r->tx_posted : UINT64_MAX;
	const uint32_t sum = r->conf.netreduce ? INA_IMM_SUM : 0, imm = ntohl(wc->imm_data);

	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || (imm & ~sum) != message_imm(r, r->rx_arrived) ||
		r->rx_arrived - r->rx_taken >= r->w || r->rx_arrived >= sent)
		return ccl_ring_fail(r, -EPROTO, "message %u from rank %u came instead of %llu",
			imm & ~sum, prev_name(r), (unsigned long long)r->rx_arrived);
	if ((imm & sum) != sum)
		return not_a_sum(r, r->rx_arrived);
	r->rx_arrived++;
	return repost(r, r->prev, RING_WR_RECV);
}

static int credit(struct ccl_ring *r, const struct ibv_wc *wc)
{
	const uint32_t more = ntohl(wc->imm_data) - (uint32_t)r->tx_credit;

	if (!(wc->wc_flags & IBV_WC_WITH_IMM) || more > r->tx_posted - r->tx_credit)
		return ccl_ring_fail(
			r, -EPROTO, "rank %u took messages that were not sent", next_name(r));
	r->tx_credit += more;
	return repost(r, r->next, RING_WR_CREDIT);
}

static int completed(struct ccl_ring *r, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS)
		return completion_error(r, wc);
	switch (wc->wr_id) {
	case RING_WR_SEND:
		r->tx_acked++;
		return 0;
	case RING_WR_TOLD:
		r->credit_busy = false;
		return 0;
	case RING_WR_RECV:
		return arrived(r, wc);
	default:
		return credit(r, wc);
	}
}

int ccl_ring_progress(struct ccl_ring *r, uint64_t now)
{
	struct ibv_wc wc[POLL];
	char wait[160];
	int n = 0, rc = 0;

	if (r->failed)
		return r->failed;
	if (!r->connected)
		return -ENOTCONN;
	if (r->n_ranks > 1)
		n = ibv_poll_cq(r->cq, POLL, wc);
	if (n < 0)
		return ccl_ring_fail(r, -EIO, "the completion queue failed");
	for (int i = 0; i < n && !rc; i++)
		rc = completed(r, &wc[i]);
	if (rc || (n > 0 && ring_pump(r)))
		return r->failed;
	/* Time in which nobody looked proves nothing. */
	if (n > 0 || r->fresh || now - r->looked_ns > r->timeout_ns / 2) {
		r->progress_ns = now;
		r->fresh = false;
	}
	r->looked_ns = now;
	if (ccl_ring_busy(r) && now - r->progress_ns >= r->timeout_ns) {
		describe_wait(r, wait, sizeof(wait));
		return ccl_ring_fail(r, -ETIMEDOUT, "nothing came for %llu ms; %s",
			(unsigned long long)(r->timeout_ns / 1000000), wait);
	}
	return n;
}
