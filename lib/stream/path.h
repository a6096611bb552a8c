/* SPDX-License-Identifier: BSD-3-Clause */
/* The data path of a stream stack: all that touches payload. A frame that arrives is verified, its
 * payload is placed (lib/place) or, if nothing is posted for it, put into a slot of bounce memory;
 * its header and the verdict go to the control path. Of what the control path asks for, frames are
 * made. One thread; the other end of the two rings is the control path's, on the same thread or
 * another. No clock, no heap. */
#ifndef STREAM_PATH_H
#define STREAM_PATH_H

#include "lib/place/place.h"
#include "lib/place/ring.h"
#include "lib/wire/tcp.h"

enum { ACK_LAG = 1 << 20 }; /* bytes by which an overtaken packet may be behind */

/* From the data path: the header of a segment, or that a copy has been made. */
struct stream_note {
	enum { NOTE_SEGMENT, NOTE_COPIED } kind;
	enum place_verdict verdict; /* of its payload: PLACE_ACCEPT, _DROP, _DEFER: it is in slot */
	uint32_t flow;
	uint32_t slot; /* of NOTE_COPIED as well */
	uint32_t len;  /* of the payload, or of the copy */
	uint32_t skip;
	uint64_t position; /* PLACE_ACCEPT: of its first byte */
	int result;        /* NOTE_COPIED: 0, or place_write's */
	uint8_t mac[6];    /* of its sender */
	struct wire_ip src, dst;
	struct wire_tcp tcp;
};

/* To the data path. */
struct stream_request {
	enum { REQUEST_SEND, REQUEST_COPY, REQUEST_FREE } kind;
	uint32_t flow;
	uint64_t position;     /* of the payload's first byte in the flow */
	uint32_t len;          /* of the payload */
	uint32_t slot, offset; /* REQUEST_COPY: from where; REQUEST_FREE: which */
	uint16_t headers_len;
	uint8_t headers[WIRE_TCP_MAX_HEADERS];
};

/* X(symbol, name, meaning) */
#define STREAM_PATH_COUNTERS(X)                                                                 \
	X(FRAMES, "frames", "frames that arrived for this stack's address")                     \
	X(OTHER, "other", "frames that did not, or are no TCP: left to the caller")             \
	X(BAD, "bad", "segments with a malformed header")                                       \
	X(CHECKSUM, "checksum", "segments with a wrong checksum; nothing of them is believed")  \
	X(NO_NOTE, "no_note", "segments dropped because the control path is behind")            \
	X(DOUBTED, "doubted", "payload not placed: it acknowledges what cannot have been sent") \
	X(STRANGER, "stranger", "payload not kept: it belongs to no connection")                \
	X(NO_SLOT, "no_slot", "payload dropped because bounce memory was used up")              \
	X(BOUNCED, "bounced", "bytes of payload that came before their buffer")                 \
	X(SENT, "sent", "frames sent")                                                          \
	X(SENT_BYTES, "sent_bytes", "bytes of payload in them")                                 \
	X(NOT_READ, "not_read", "requests to send what was acknowledged, or is gone, meanwhile")

enum stream_path_counter {
#define X(sym, name, text) STREAM_PATH_##sym,
	STREAM_PATH_COUNTERS(X)
#undef X
		STREAM_PATH_N_COUNTERS
};
const char *stream_path_counter_name(enum stream_path_counter counter);

struct stream_path {
	struct place *place;
	struct wire_ip ip;
	struct ring notes, requests;
	uint8_t *bounce; /* slots of slot_bytes */
	uint32_t slot_bytes, free_slots;
	uint32_t *slots; /* those that are free, a stack */
	uint64_t count[STREAM_PATH_N_COUNTERS];
};

/* One frame. false: it is none for this stack, nothing was done with it. The frame may be given
 * back at once. */
bool stream_path_rx(struct stream_path *path, const uint8_t *frame, size_t len);
/* The next frame to be sent, into room for the largest one; its length, 0: none. */
size_t stream_path_tx(struct stream_path *path, uint8_t *frame, size_t cap);
/* After each burst, also an empty one. */
void stream_path_quiesce(struct stream_path *path);

#endif
