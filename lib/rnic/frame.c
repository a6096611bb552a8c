/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames as they leave: headers, pad and ICRC around a payload that stays where it is until the
 * port copies it. */
#include <errno.h>
#include <string.h>

#include "lib/rnic/device.h"
#include "lib/rnic/path.h"
#include "lib/wire/icrc.h"

/* Headers are in place. */
static void finish(struct rnic_frame *frame, uint32_t before, uint32_t share, size_t pay_len)
{
	unsigned pad = wire_pad(pay_len);

	memset(frame->tail, 0, pad);
	frame->tail_len = (uint16_t)(pad + ROCE_ICRC_LEN);
	frame->len = (uint32_t)(frame->head_len + pay_len + frame->tail_len);
	frame->crc_before = before;
	frame->crc_share = share;
	frame->unsealed = true;
}

/* Where it goes, which is not in the bytes alone. */
static void send_by(struct rnic_frame *frame, const struct rnic_path *path)
{
	frame->port = path->port;
	frame->loopback = path->loopback;
}

void frame_build(struct rnic *rnic, const struct rnic_path *path, struct rnic_frame *frame,
	struct wire_hdr *hdr, size_t pay_len)
{
	const struct wire_template *full = path->full;
	const size_t l3 = wire_l3_off(path->flow.vlan);

	send_by(frame, path);
	hdr->ip_id = rnic->ip_id++;
	if (full != NULL && pay_len == full->pay_len &&
		roce_ext_len(roce_opcode_flags(hdr->opcode)) == 0) {
		const uint32_t share = wire_template_write(full, hdr, 0, frame->head);

		frame->head_len = full->len;
		finish(frame, 0, share, pay_len);
		return;
	}
	frame->head_len = (uint16_t)wire_build_headers(
		frame->head, sizeof(frame->head), &path->flow, hdr, pay_len);
	finish(frame, icrc_headers(frame->head + l3, frame->head_len - l3), 0, pay_len);
}

void frame_finish_own(struct rnic_frame *frame, const struct rnic_path *path, size_t l3_off,
	size_t head_len, size_t pay_len)
{
	send_by(frame, path);
	frame->head_len = (uint16_t)head_len;
	finish(frame, icrc_headers(frame->head + l3_off, head_len - l3_off), 0, pay_len);
}

int rnic_frame_flatten(const struct rnic_frame *frame, uint8_t *out, size_t cap)
{
	uint8_t *at = out + frame->head_len;
	uint32_t crc = frame->crc_before;

	if (frame->len > cap)
		return -ENOSPC;
	memcpy(out, frame->head, frame->head_len);
	for (unsigned i = 0; i < frame->n_iov; i++) {
		/* One reading: the program may write to its memory at any time, and what leaves is
		 * what the ICRC must be of. */
		if (frame->unsealed)
			crc = icrc_copy(crc, at, frame->iov[i].base, frame->iov[i].len);
		else
			memcpy(at, frame->iov[i].base, frame->iov[i].len);
		at += frame->iov[i].len;
	}
	memcpy(at, frame->tail, frame->tail_len);
	if (frame->unsealed) {
		/* Payload and pad append to what is before them; the rest was worked out from the
		 * headers. */
		const size_t pad = frame->tail_len - (size_t)ROCE_ICRC_LEN;

		if (pad)
			crc = icrc_append(crc, at, pad);
		icrc_store(at + pad, crc ^ frame->crc_share);
	}
	return (int)frame->len;
}
