/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets of MRC (OCP "Multipath Reliable Connection" 1.0) in host order, and the codec between
 * them and bytes. No offset of MRC's headers is known outside the codec's own file, so that another
 * layout is another codec and nothing else: a transport takes a struct mrc_codec and never looks
 * behind it. The official text was not at hand when this was written; docs/mrc.md says of each
 * field how sure its place is.
 *
 * Bytes go from the BTH on; what is below is lib/wire/ip.h's. Nothing here allocates, keeps state
 * or reads a clock; any thread. */
#ifndef WIRE_MRC_H
#define WIRE_MRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/ip.h"

/* Opcodes 0xc0 to 0xdf are MRC's: the transport of a BTH opcode's upper three bits. */
enum { MRC_OPCODES = 0xc0, MRC_OPCODES_MASK = 0xe0 };

/* Destination of endpoint operations, which belong to no connection. */
enum { MRC_ENDPOINT_QPN = 2 };

/* Why a packet is refused: X(symbol, name, meaning). */
#define MRC_DROPS(X)                                                                              \
	X(SHORT, "mrc_short", "the packet ends inside its headers or its ICRC")                   \
	X(VERSION, "mrc_version", "BTH transport version is not 0")                               \
	X(PKEY, "mrc_pkey", "partition key is not 0xffff")                                        \
	X(OPCODE, "mrc_opcode", "opcode is not one of MRC's")                                     \
	X(PAD, "mrc_pad", "pad count is larger than the payload or does not align it to 4 bytes") \
	X(LONG, "mrc_long", "bytes follow a header that ends its packet")                         \
	X(FORMAT, "mrc_format", "a type or format number names a layout that is not known")       \
	X(QPN, "mrc_qpn", "an endpoint operation for another queue pair than 2, or the reverse")  \
	X(TRIMMED, "mrc_trimmed", "a control packet that was trimmed")

enum mrc_drop {
	MRC_OK = 0,
#define X(sym, name, text) MRC_DROP_##sym,
	MRC_DROPS(X)
#undef X
		MRC_N_DROPS
};

/* "mrc_short" etc., and the meaning. drop must be > MRC_OK and < MRC_N_DROPS. */
const char *mrc_drop_name(enum mrc_drop drop);
const char *mrc_drop_text(enum mrc_drop drop);

/* Time as packets carry it. Valid only with has_ts; 16 bits of 128 ns wrap after 8.39 ms. */
enum { MRC_TS_NS = 128 };
static inline uint16_t mrc_ts(uint64_t ns)
{
	return (uint16_t)(ns / MRC_TS_NS);
}

enum mrc_place { MRC_FIRST = 1, MRC_LAST = 2, MRC_MIDDLE = 0, MRC_ONLY = 3 };

/* A packet of an RDMA Write. */
struct mrc_data {
	uint8_t place; /* enum mrc_place: where in its message */
	bool has_imm;  /* Last or Only of a Write with Immediate */
	bool se, ackreq, rtx;
	bool has_ts, ts_vendor; /* ts_vendor: unit is the sender's own, not 128 ns */
	uint16_t ts;
	uint32_t dqpn, psn;
	uint16_t msn, rqmsn;
	uint32_t rkey, dmalen, imm;
	uint64_t va;      /* of this packet's first byte */
	uint16_t pay_len; /* without pad */
};

/* What a responder says of a path. */
enum mrc_mark { MRC_MARK_NONE, MRC_SKIP_ONCE, MRC_ALWAYS_SKIP };

struct mrc_sack {
	uint32_t dqpn;
	uint8_t mark; /* enum mrc_mark; 3 is reserved */
	bool rtx;     /* of the packet that triggered it */
	bool probe;   /* answers a reliability probe, then probe_id is valid, else trigger_psn */
	uint16_t probe_id;
	uint32_t trigger_psn;
	uint32_t cack_psn; /* it and all before it have arrived */
	uint32_t entropy;  /* EV of what triggered it */
	uint8_t mpr;       /* in units of 128 packets, 0: static */
	uint32_t base_psn; /* of bit 0 of the bitmap; within 2^15 of cack_psn */
	uint64_t bitmap;
	uint16_t spdcid, dpdcid;
	uint16_t ts;
	uint16_t ooo_count; /* 15 bits, saturating */
	bool restore_cwnd;
	uint8_t cwnd_penalty; /* in 1/128 of the acknowledged bytes, 7 bits */
	uint32_t rcvd_units;  /* bytes / MRC_RCVD_UNIT, modulo 2^24 */
};
enum { MRC_RCVD_UNIT = 256 };

/* X(symbol, code, name) */
#define MRC_NACK_REASONS(X)                      \
	X(TRIMMED, 0x01, "trimmed")              \
	X(TRIMMED_LASTHOP, 0x02, "trimmed_last") \
	X(NO_BITMAP, 0x06, "no_bitmap")          \
	X(NO_PKT_BUFFER, 0x07, "no_pkt_buffer")  \
	X(NO_RESOURCE, 0x0a, "no_resource")      \
	X(PSN_OOR, 0x0b, "psn_oor_window")       \
	X(UNEXP_EVENT, 0x19, "unexp_event")

enum mrc_nack_reason {
#define X(sym, code, name) MRC_NACK_##sym = code,
	MRC_NACK_REASONS(X)
#undef X
};

/* NULL for a code that is not defined. */
const char *mrc_nack_name(uint8_t reason);

struct mrc_nack {
	uint32_t dqpn, psn;
	uint8_t reason; /* enum mrc_nack_reason; others arrive too, and are the transport's to judge
			 */
	uint8_t vendor_info;
	uint32_t entropy;
	uint16_t spdcid, dpdcid;
	uint16_t ts;
};

/* Reliability probe of a connection's EV. */
struct mrc_probe {
	uint32_t dqpn;
	uint16_t id;
	uint8_t vendor_info;
	uint16_t spdcid, dpdcid;
	uint16_t ts;
	bool ts_vendor;
};

enum mrc_endpoint_op { MRC_PORT_STATUS = 0, MRC_EV_PROBE = 1 };

struct mrc_endpoint {
	uint16_t id;         /* echoed */
	uint8_t op;          /* enum mrc_endpoint_op; not to be believed in a response */
	uint8_t vendor_info; /* request only */
	uint32_t port_mask;  /* request only: bit N, port N is usable; ports count from 1 */
	uint16_t ts;         /* echoed */
	bool ts_vendor;      /* request only */
};

/* Transport ACK or NAK. */
enum { MRC_SYNDROME_ACK = 0x1f, MRC_SYNDROME_WIMM = 0x65 };
struct mrc_ack {
	uint32_t dqpn, psn;
	uint8_t syndrome;
	uint32_t msn;
};

enum mrc_kind {
	MRC_KIND_DATA,
	MRC_KIND_ACK,
	MRC_KIND_ENDPOINT_REQUEST,
	MRC_KIND_ENDPOINT_RESPONSE,
	MRC_KIND_SACK,
	MRC_KIND_NACK,
	MRC_KIND_PROBE,
};

/* How much of a trimmed data packet's headers was there: opcode, QPN and PSN always were. */
enum mrc_depth { MRC_DEPTH_BTH, MRC_DEPTH_TS, MRC_DEPTH_RETH, MRC_DEPTH_ALL };

struct mrc_pkt {
	uint8_t kind;     /* enum mrc_kind */
	uint8_t depth;    /* enum mrc_depth; MRC_DEPTH_ALL unless trimmed */
	uint16_t pay_off; /* of the payload, from the BTH; data that was not trimmed only */
	union {
		struct mrc_data data;
		struct mrc_ack ack;
		struct mrc_endpoint endpoint;
		struct mrc_sack sack;
		struct mrc_nack nack;
		struct mrc_probe probe;
	};
};

/* Most bytes that encode() writes. */
enum { MRC_MAX_HEADERS = 64 };

struct mrc_codec {
	const char *name;
	uint32_t protocol_version; /* the bit that stands for it where versions are agreed */

	/* Reads len bytes from the BTH to the end of the packet, ICRC included. trimmed: a switch
	 * has cut the packet, so that headers count as far as they are there and no ICRC is
	 * expected. MRC_OK with all fields of the kind set, or the reason, and nothing else of
	 * *pkt may be used. Not checked: the ICRC, and what only a connection knows (QPN, PSN,
	 * payload against the path MTU). Never reads beyond len. */
	enum mrc_drop (*decode)(const uint8_t *bth, size_t len, bool trimmed, struct mrc_pkt *pkt);

	/* Writes the headers of pkt->kind from the BTH to before the payload (data), or the whole
	 * packet without its ICRC (others). pay_len counts for the pad. Returns the bytes written
	 * (at most MRC_MAX_HEADERS), -ENOSPC if room is too small, -EINVAL if a field does not fit
	 * its place on the wire. */
	int (*encode)(const struct mrc_pkt *pkt, uint8_t *out, size_t room);
};

extern const struct mrc_codec mrc_codec_ocp_r1;

/* EV and addresses. An EV of 32 bits lies in the IPv6 flow label and the UDP source port; of an EV
 * over IPv4, or in UDP mode, only the lower 16 bits exist, in the port. Which half goes where is
 * not settled by public texts, hence the order. */
enum mrc_ev_order { MRC_EV_FLOW_HIGH, MRC_EV_FLOW_LOW };

static inline uint32_t mrc_ev(uint32_t flow_label, uint16_t sport, enum mrc_ev_order order)
{
	uint32_t flow = flow_label & 0xffff;

	return order == MRC_EV_FLOW_HIGH ? flow << 16 | sport : (uint32_t)sport << 16 | flow;
}

static inline uint32_t mrc_ev_flow_label(uint32_t ev, enum mrc_ev_order order)
{
	return order == MRC_EV_FLOW_HIGH ? ev >> 16 : ev & 0xffff;
}

static inline uint16_t mrc_ev_sport(uint32_t ev, enum mrc_ev_order order)
{
	return (uint16_t)(order == MRC_EV_FLOW_HIGH ? ev : ev >> 16);
}

/* Reads the EV of a packet whose IP header (4 without options, or 6) and UDP header are there; the
 * caller has checked that 28 (IPv4) or 48 bytes are. */
uint32_t mrc_ev_get(const uint8_t *l3, enum mrc_ev_order order);

/* Traffic classes, and the DSCP that stands for each unless it is configured otherwise. */
#define MRC_CLASSES(X)                         \
	X(NO_TRIM, "no_trim", 0)               \
	X(TRIMMABLE, "trimmable", 4)           \
	X(TRIMMABLE_RETX, "trimmable_retx", 8) \
	X(TRIMMED, "trimmed", 12)              \
	X(TRIMMED_LAST, "trimmed_lasthop", 16) \
	X(CONTROL, "control", 46)

enum mrc_dscp {
#define X(sym, name, dscp) MRC_DSCP_##sym = dscp,
	MRC_CLASSES(X)
#undef X
};

enum mrc_class {
#define X(sym, name, dscp) MRC_CLASS_##sym,
	MRC_CLASSES(X)
#undef X
		MRC_N_CLASSES
};

/* Addressing of one packet below MRC. */
struct mrc_flow {
	struct wire_ip src, dst; /* both IPv4-mapped or both IPv6 */
	uint8_t tos;             /* DSCP << 2 | ECN */
	uint8_t ttl;
	uint16_t udp_port; /* destination */
	uint32_t ev;
	enum mrc_ev_order order;
};

/* IP and UDP headers for len bytes from the BTH on, pad and ICRC included (UDP checksum 0; IPv4:
 * DF, identification 0). Returns 28 or 48, -EINVAL (families differ, len too large), -ENOSPC. */
int mrc_build_l3(uint8_t *out, size_t room, const struct mrc_flow *flow, size_t len);

/* The whole IP packet: headers, payload copied, pad, ICRC. pkt->data.pay_len bytes at payload (NULL
 * unless data). Returns its length or the errors of its parts. */
int mrc_build(uint8_t *out, size_t room, const struct mrc_codec *codec, const struct mrc_flow *flow,
	const struct mrc_pkt *pkt, const void *payload);

#endif
