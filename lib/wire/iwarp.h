/* SPDX-License-Identifier: BSD-3-Clause */
/* iWARP over TCP: MPA (RFC 5044; enhanced set-up, RFC 6581), DDP (RFC 5041), RDMAP (RFC 5040, and
 * the Immediate Data messages of RFC 7306). No offset of theirs is known outside of the codec's
 * file. Markers are not spoken: a frame that asks for them is read, and says so.
 *
 * Bytes are those of the TCP stream. Nothing here allocates, keeps state or reads a clock; any
 * thread. */
#ifndef WIRE_IWARP_H
#define WIRE_IWARP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What may be wrong with what a peer sends, and how a Terminate message names it (RFC 5040, 4.8;
 * RFC 5041, 7; RFC 5044, 8). X(symbol, layer, type, code, name, meaning) */
#define IWARP_FAULTS(X)                                                                            \
	X(CATASTROPHIC, 0, 0, 0x00, "rdmap_catastrophic", "local catastrophic error")              \
	X(STAG, 0, 1, 0x00, "rdmap_stag", "a READ names a key that is none")                       \
	X(BOUNDS, 0, 1, 0x01, "rdmap_bounds", "a READ from outside of the memory of its key")      \
	X(ACCESS, 0, 1, 0x02, "rdmap_access", "the memory's or queue pair's rights forbid it")     \
	X(STREAM, 0, 1, 0x03, "rdmap_stream", "a READ names a key of another domain")              \
	X(WRAP, 0, 1, 0x04, "rdmap_wrap", "offset and length of a READ wrap")                      \
	X(VERSION, 0, 2, 0x05, "rdmap_version", "RDMAP version is not 1")                          \
	X(OPCODE, 0, 2, 0x06, "rdmap_opcode", "an opcode that does not belong where it stands")    \
	X(MALFORMED, 0, 2, 0x07, "rdmap_malformed", "a message whose length is not its opcode's")  \
	X(INVALIDATE, 0, 2, 0x09, "rdmap_invalidate", "a key that the peer may not invalidate")    \
	X(BUFFER, 0, 2, 0xff, "rdmap_buffer", "the memory of a request here cannot be written")    \
	X(SHORT, 1, 0, 0x00, "ddp_short", "a segment ends inside its header")                      \
	X(TAGGED_STAG, 1, 1, 0x00, "ddp_stag", "a key that is none, or of no READ under way")      \
	X(TAGGED_BOUNDS, 1, 1, 0x01, "ddp_bounds", "payload for outside of the memory of its key") \
	X(TAGGED_STREAM, 1, 1, 0x02, "ddp_stream", "a key of another domain, or queue pair")       \
	X(TAGGED_WRAP, 1, 1, 0x03, "ddp_wrap", "tagged offset and length wrap")                    \
	X(TAGGED_VERSION, 1, 1, 0x04, "ddp_tagged_version", "DDP version is not 1")                \
	X(QN, 1, 2, 0x01, "ddp_qn", "untagged, for a queue that there is not")                     \
	X(NO_BUFFER, 1, 2, 0x02, "ddp_no_buffer", "untagged, and nothing is posted for it")        \
	X(MSN, 1, 2, 0x03, "ddp_msn", "message number is not the next of its queue")               \
	X(MO, 1, 2, 0x04, "ddp_mo", "message offset is not behind what has come")                  \
	X(TOO_LONG, 1, 2, 0x05, "ddp_too_long", "message is longer than what is posted for it")    \
	X(UNTAGGED_VERSION, 1, 2, 0x06, "ddp_untagged_version", "DDP version is not 1")            \
	X(LOST, 2, 0, 0x01, "mpa_lost", "the stream ended in the middle of a frame")               \
	X(CRC, 2, 0, 0x02, "mpa_crc", "CRC32c of a frame is wrong")                                \
	X(MARKER, 2, 0, 0x03, "mpa_marker", "markers do not match")                                \
	X(START, 2, 0, 0x04, "mpa_start", "request or reply frame is malformed, or unexpected")    \
	X(START_LOCAL, 2, 0, 0x05, "mpa_local", "peer's local error while connecting")             \
	X(IRD, 2, 0, 0x06, "mpa_ird", "too few READs may be outstanding")                          \
	X(RTR, 2, 0, 0x07, "mpa_rtr", "no ready-to-receive message that both ends know")

enum iwarp_fault {
	IWARP_OK = 0,
#define X(sym, layer, type, code, name, text) IWARP_FAULT_##sym,
	IWARP_FAULTS(X)
#undef X
		IWARP_N_FAULTS
};

/* "mpa_crc" etc., and the meaning. fault must be > IWARP_OK and < IWARP_N_FAULTS. */
const char *iwarp_fault_name(enum iwarp_fault fault);
const char *iwarp_fault_text(enum iwarp_fault fault);

/* ---- MPA ---- */

enum {
	MPA_START_LEN = 20, /* request and reply frame without private data */
	MPA_MAX_PRIVATE = 512,
	MPA_MAX_START = MPA_START_LEN + MPA_MAX_PRIVATE,
	MPA_ENHANCED_LEN = 4, /* of the private data, if enhanced */
	MPA_MAX_DEPTH = 0x3fff,
	MPA_LEN_LEN = 2,
	MPA_CRC_LEN = 4,
	MPA_MAX_ULPDU = 65535,
	MPA_MAX_FPDU = 65544,
};

/* Ready-to-receive messages of the initiator, zero-length ones (RFC 6581, 4.1). */
enum { MPA_RTR_SEND = 1, MPA_RTR_WRITE = 2, MPA_RTR_READ = 4 };

/* A request or reply frame. */
struct mpa_start {
	bool reply;
	bool markers, crc; /* asked for by the sender */
	bool reject;       /* replies only */
	uint8_t revision;
	bool enhanced;     /* revision 2 only; then the next four are valid */
	bool peer_to_peer; /* either end may send first, once an RTR message has come */
	uint8_t rtr;       /* MPA_RTR_*, a set */
	uint16_t ird, ord; /* READs the sender takes, has outstanding; to MPA_MAX_DEPTH */
	uint16_t private_len;
	const uint8_t *private_data; /* without what is enhanced */
};

/* Writes the frame; its length, -ENOSPC, -EINVAL (a field does not fit). */
int mpa_start_build(uint8_t *out, size_t cap, const struct mpa_start *start);
/* Reads a frame of which len bytes have come: 0 and all of *start, which refers to bytes; > 0: how
 * many there have to be to say more, always more than len; -EPROTO: it is none (found as soon as a
 * byte of the key is wrong, or the lengths are). */
int mpa_start_parse(const uint8_t *bytes, size_t len, bool reply, struct mpa_start *start);

/* Of the FPDU that carries so many bytes: length field, ULPDU, pad, CRC. */
size_t mpa_fpdu_len(size_t ulpdu);
/* The largest ULPDU in an FPDU of so many bytes; 0: none. */
size_t mpa_mulpdu(size_t fpdu);
/* Length of the FPDU that these bytes begin, 0: fewer than 2 bytes. */
size_t mpa_fpdu_peek(const uint8_t *bytes, size_t len);
/* Puts length field, pad and CRC around a ULPDU that lies at MPA_LEN_LEN; the FPDU's length. */
size_t mpa_fpdu_seal(uint8_t *fpdu, size_t ulpdu);
/* Of a whole FPDU: its ULPDU and the CRC. */
bool mpa_fpdu_open(const uint8_t *fpdu, const uint8_t **ulpdu, size_t *len);

/* ---- DDP and RDMAP ---- */

enum rdmap_opcode {
	RDMAP_WRITE = 0,
	RDMAP_READ_REQUEST = 1,
	RDMAP_READ_RESPONSE = 2,
	RDMAP_SEND = 3,
	RDMAP_SEND_INV = 4,
	RDMAP_SEND_SE = 5,
	RDMAP_SEND_SE_INV = 6,
	RDMAP_TERMINATE = 7,
	RDMAP_IMM = 8, /* RFC 7306 */
	RDMAP_IMM_SE = 9,
};

enum ddp_queue { DDP_QN_SEND, DDP_QN_READ, DDP_QN_TERMINATE, DDP_N_QUEUES };

enum {
	DDP_TAGGED_LEN = 14,
	DDP_UNTAGGED_LEN = 18,
	RDMAP_READ_LEN = 28, /* what follows the untagged header */
	RDMAP_IMM_LEN = 8,
	/* Control field, length of the segment, its header, RDMAP's header of a READ request. */
	RDMAP_MAX_TERMINATE = 4 + 2 + DDP_UNTAGGED_LEN + RDMAP_READ_LEN,
};

/* A segment's headers. */
struct ddp_segment {
	bool tagged, last;
	uint8_t opcode;
	uint32_t stag;        /* tagged; or the key that a SEND invalidates */
	uint64_t to;          /* tagged */
	uint32_t qn, msn, mo; /* untagged */
	uint16_t header_len;  /* set when parsed */
};

/* Of a ULPDU. IWARP_OK, or SHORT, TAGGED_VERSION, UNTAGGED_VERSION, VERSION, OPCODE (none of
 * rdmap_opcode, or tagged where it cannot be and the reverse), QN. *segment is set as far as
 * header_len is not 0. */
enum iwarp_fault ddp_parse(const uint8_t *ulpdu, size_t len, struct ddp_segment *segment);
/* DDP_TAGGED_LEN or DDP_UNTAGGED_LEN bytes at out. */
size_t ddp_build(uint8_t *out, const struct ddp_segment *segment);

struct rdmap_read {
	uint32_t sink_stag;
	uint64_t sink_to;
	uint32_t len;
	uint32_t source_stag;
	uint64_t source_to;
};
/* RDMAP_READ_LEN bytes each. */
void rdmap_read_parse(const uint8_t *bytes, struct rdmap_read *read);
void rdmap_read_build(uint8_t *out, const struct rdmap_read *read);

/* The 64 bits of an Immediate Data message: verbs have 32, which go last. */
uint32_t rdmap_imm_parse(const uint8_t bytes[RDMAP_IMM_LEN]);
void rdmap_imm_build(uint8_t out[RDMAP_IMM_LEN], uint32_t imm);

struct rdmap_terminate {
	uint8_t layer, type, code;
	/* IWARP_OK: not one of IWARP_FAULTS. */
	enum iwarp_fault fault;
	/* What was wrong, as far as it is told whole; header_len is 0: it is not. */
	struct ddp_segment segment;
};
/* The payload of a Terminate message. ulpdu: the segment that was wrong, whose headers are told
 * unless it is cut or of another version of DDP (which says nothing of its layout), or NULL. Bytes
 * written, at most RDMAP_MAX_TERMINATE. */
size_t rdmap_terminate_build(
	uint8_t *out, enum iwarp_fault fault, const uint8_t *ulpdu, size_t ulpdu_len);
/* -EPROTO: too short for its control field. */
int rdmap_terminate_parse(const uint8_t *bytes, size_t len, struct rdmap_terminate *terminate);

#endif
