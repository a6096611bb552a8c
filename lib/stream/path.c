/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/stream/path.h"

#include <string.h>

const char *stream_path_counter_name(enum stream_path_counter counter)
{
	static const char *const names[STREAM_PATH_N_COUNTERS] = {
#define X(sym, name, text) [STREAM_PATH_##sym] = name,
		STREAM_PATH_COUNTERS(X)
#undef X
	};

	return counter < STREAM_PATH_N_COUNTERS ? names[counter] : "unknown";
}

/* Nothing is posted for it: the bytes are kept in a slot, if there is one. */
static void bounce(struct stream_path *p, const uint8_t *payload, struct stream_note *note)
{
	if (p->free_slots == 0 || note->len > p->slot_bytes) {
		p->count[STREAM_PATH_NO_SLOT]++;
		note->verdict = PLACE_DROP;
		return;
	}
	note->slot = p->slots[--p->free_slots];
	memcpy(p->bounce + (size_t)note->slot * p->slot_bytes, payload, note->len);
	p->count[STREAM_PATH_BOUNCED] += note->len;
}

/* Whoever knows the ports and the window could overwrite what has come behind a hole and is counted
 * as here. So payload is believed as an acknowledgement is (RFC 5961, 5): it has to acknowledge
 * something near what we have sent. */
static bool plausible(const struct stream_path *p, const struct stream_note *note)
{
	uint64_t acked, tail;
	int64_t ahead;

	if ((note->tcp.flags & (TCP_ACK | TCP_SYN | TCP_RST)) != TCP_ACK ||
		place_sent(p->place, note->flow, &acked, &tail) < 0)
		return false;
	ahead = (int32_t)(note->tcp.ack - (uint32_t)acked);
	return ahead >= -ACK_LAG && ahead <= (int64_t)(tail - acked) + 1;
}

static void take_payload(struct stream_path *p, const uint8_t *payload, struct stream_note *note)
{
	const struct place_tuple tuple = {.local = note->dst,
		.remote = note->src,
		.local_port = note->tcp.dport,
		.remote_port = note->tcp.sport,
		.proto = IP_PROTO_TCP};
	const struct place_segment seg = {
		.payload = payload, .len = note->len, .seq = note->tcp.seq};

	note->verdict = PLACE_DROP;
	note->flow = place_find(p->place, &tuple);
	if (note->flow == 0) {
		/* No memory for those who have no connection: who has one sends it again. */
		p->count[STREAM_PATH_STRANGER]++;
	} else if (!plausible(p, note)) {
		p->count[STREAM_PATH_DOUBTED]++;
	} else {
		const struct place_result r = place_packet(p->place, note->flow, &seg);

		note->verdict = r.verdict;
		note->skip = r.skip;
		note->position = r.position;
	}
	if (note->verdict == PLACE_DEFER)
		bounce(p, payload, note);
}

bool stream_path_rx(struct stream_path *p, const uint8_t *frame, size_t len)
{
	struct stream_note *note;
	enum wire_tcp_drop drop;
	struct wire_pkt pkt;
	struct wire_tcp tcp;

	if (wire_parse(frame, len, &pkt) != WIRE_OK || !wire_ip_eq(&pkt.dst, &p->ip)) {
		p->count[STREAM_PATH_OTHER]++;
		return false;
	}
	drop = wire_tcp_parse(frame, &pkt, &tcp);
	if (drop == WIRE_TCP_OTHER) {
		p->count[STREAM_PATH_OTHER]++;
		return false;
	}
	p->count[STREAM_PATH_FRAMES]++;
	if (drop != WIRE_TCP_OK) {
		p->count[STREAM_PATH_BAD]++;
		return true;
	}
	if (!wire_tcp_checksum_ok(frame, &pkt)) {
		p->count[STREAM_PATH_CHECKSUM]++;
		return true;
	}
	note = ring_claim(&p->notes);
	if (note == NULL) {
		p->count[STREAM_PATH_NO_NOTE]++;
		return true;
	}
	*note = (struct stream_note){.kind = NOTE_SEGMENT,
		.verdict = PLACE_ACCEPT,
		.len = pkt.pay_len,
		.src = pkt.src,
		.dst = pkt.dst,
		.tcp = tcp};
	memcpy(note->mac, frame + 6, 6);
	if (pkt.pay_len > 0)
		take_payload(p, frame + pkt.pay_off, note);
	ring_publish(&p->notes);
	return true;
}

static size_t make_frame(
	struct stream_path *p, const struct stream_request *r, uint8_t *frame, size_t cap)
{
	const size_t len = (size_t)r->headers_len + r->len;

	if (len > cap || (r->len > 0 && place_read(p->place, r->flow, r->position,
						frame + r->headers_len, r->len) < 0)) {
		p->count[STREAM_PATH_NOT_READ]++;
		return 0;
	}
	memcpy(frame, r->headers, r->headers_len);
	wire_tcp_finish(frame, len);
	p->count[STREAM_PATH_SENT]++;
	p->count[STREAM_PATH_SENT_BYTES] += r->len;
	return len;
}

static bool copy(struct stream_path *p, const struct stream_request *r)
{
	const uint8_t *from = p->bounce + (size_t)r->slot * p->slot_bytes + r->offset;
	struct stream_note *note = ring_claim(&p->notes);

	if (note == NULL)
		return false;
	*note = (struct stream_note){.kind = NOTE_COPIED,
		.flow = r->flow,
		.slot = r->slot,
		.len = r->len,
		.position = r->position,
		.result = place_write(p->place, r->flow, r->position, from, r->len)};
	ring_publish(&p->notes);
	return true;
}

size_t stream_path_tx(struct stream_path *p, uint8_t *frame, size_t cap)
{
	const struct stream_request *r;

	while ((r = ring_peek(&p->requests)) != NULL) {
		size_t len = 0;

		if (r->kind == REQUEST_SEND)
			len = make_frame(p, r, frame, cap);
		else if (r->kind == REQUEST_FREE)
			p->slots[p->free_slots++] = r->slot;
		else if (!copy(p, r))
			return 0; /* when the control path has read its notes */
		ring_release_one(&p->requests);
		if (len > 0)
			return len;
	}
	return 0;
}

void stream_path_quiesce(struct stream_path *p)
{
	place_quiesce(p->place);
}
