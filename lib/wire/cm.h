/* SPDX-License-Identifier: BSD-3-Clause */
/* Connection management datagrams (IBTA vol. 1, 13.4.3 and chapter 12) and the header that the RDMA
 * IP CM service puts in front of private data (annex A11). A management datagram is the payload of
 * one UD SEND ONLY between the queue pairs 1 of two ports, Q_Key CM_QKEY, always of CM_MAD_LEN
 * bytes: 24 of header, 232 of message, which ends with the private data of the consumer.
 *
 * Everything on the wire is big-endian. The layouts are in cm.c, nowhere else. */
#ifndef WIRE_CM_H
#define WIRE_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/ip.h"

enum { CM_MAD_LEN = 256, CM_QPN = 1, CM_PRIVATE_MAX = 224 };
#define CM_QKEY UINT32_C(0x80010000)

/* Attributes of class 7, version 2, method Send (12.6): X(symbol, attribute ID, bytes of private
 * data). */
#define CM_MESSAGES(X)         \
	X(REQ, 0x10, 92)       \
	X(MRA, 0x11, 222)      \
	X(REJ, 0x12, 148)      \
	X(REP, 0x13, 196)      \
	X(RTU, 0x14, 224)      \
	X(DREQ, 0x15, 220)     \
	X(DREP, 0x16, 224)     \
	X(SIDR_REQ, 0x17, 216) \
	X(SIDR_REP, 0x18, 136)

enum cm_attr {
#define X(sym, id, len) CM_##sym = (id),
	CM_MESSAGES(X)
#undef X
		CM_LAP = 0x19,
	CM_APR = 0x1a, /* path migration: known by number only */
};

enum {
#define X(sym, id, len) CM_##sym##_PRIVATE = (len),
	CM_MESSAGES(X)
#undef X
};

/* Why a connection is rejected (12.6.7.2), as far as anybody here says so. */
enum cm_rej_reason {
	CM_REJ_NO_QP = 1,
	CM_REJ_TIMEOUT = 4,
	CM_REJ_UNSUPPORTED = 5,
	CM_REJ_INVALID_COMM_ID = 6,
	CM_REJ_INVALID_SERVICE_ID = 8,
	CM_REJ_INVALID_TRANSPORT = 9,
	CM_REJ_STALE_CONN = 10,
	CM_REJ_INVALID_GID = 13,
	CM_REJ_INVALID_MTU = 26,
	CM_REJ_CONSUMER = 28,
	CM_REJ_VENDOR_OPTION = 35,
};

enum cm_sidr_status {
	CM_SIDR_VALID = 0,
	CM_SIDR_NO_SERVICE = 1,
	CM_SIDR_REJECTED = 2,
	CM_SIDR_NO_QP = 3,
};

/* What a REJ or an MRA is about. */
enum cm_about { CM_ABOUT_REQ = 0, CM_ABOUT_REP = 1, CM_ABOUT_OTHER = 2 };

/* Transport service types of a REQ. */
enum cm_transport { CM_RC = 0, CM_UC = 1, CM_RD = 2, CM_EXTENDED = 3 };

enum { CM_REJ_INFO_MAX = 72, CM_LID_PERMISSIVE = 0xffff };

struct cm_req {
	uint64_t service_id;
	uint8_t ca_guid[8];
	uint32_t qkey, qpn;
	uint32_t psn; /* that the *receiver* of the message begins to send with; 24 bits, as the QPN
		       */
	uint8_t responder_resources, initiator_depth;
	uint8_t remote_timeout, local_timeout; /* CM response timeouts, 5 bits: 4.096 us << n */
	uint8_t transport;                     /* enum cm_transport */
	bool flow_control, srq;
	uint8_t retry_count, rnr_retry; /* 3 bits */
	uint8_t max_retries;            /* of CM messages; 4 bits */
	uint8_t mtu;                    /* enum ibv_mtu; 4 bits */
	uint16_t pkey;
	struct wire_ip sgid, dgid;
	uint32_t flow_label; /* 20 bits */
	uint8_t rate;        /* enum ibv_rate; 6 bits */
	uint8_t traffic_class, hop_limit, sl;
	bool subnet_local;
	uint8_t ack_timeout; /* of the requester's QP; 5 bits */
	bool alternate;      /* an alternate path is named (parsing only: nothing else is kept) */
};

struct cm_rep {
	uint32_t qkey, qpn, psn;
	uint8_t responder_resources, initiator_depth;
	uint8_t target_ack_delay; /* 5 bits */
	uint8_t failover;         /* 2 bits */
	bool flow_control, srq;
	uint8_t rnr_retry;
	uint8_t ca_guid[8];
};

struct cm_rej {
	uint8_t about; /* enum cm_about */
	uint16_t reason;
	uint8_t info_len; /* <= CM_REJ_INFO_MAX */
	uint8_t info[CM_REJ_INFO_MAX];
};

struct cm_mra {
	uint8_t about;
	uint8_t service_timeout; /* 5 bits: 4.096 us << n more */
};

struct cm_sidr_req {
	uint16_t pkey;
	uint64_t service_id;
};

struct cm_sidr_rep {
	uint8_t status; /* enum cm_sidr_status */
	uint32_t qpn, qkey;
	uint64_t service_id;
};

/* One message. private_data is always as long as the message has room for, the rest is zeros. */
struct cm_msg {
	uint16_t attr; /* enum cm_attr */
	uint64_t tid;
	uint32_t local_id;  /* the sender's communication ID; of SIDR: the request's number */
	uint32_t remote_id; /* the receiver's, 0 if the message has none */
	union {
		struct cm_req req;
		struct cm_rep rep;
		struct cm_rej rej;
		struct cm_mra mra;
		uint32_t dreq_qpn; /* of the receiver */
		struct cm_sidr_req sidr_req;
		struct cm_sidr_rep sidr_rep;
	};
	uint8_t private_data[CM_PRIVATE_MAX];
};

/* Bytes of private data of a message; 0: not one of CM_MESSAGES. */
unsigned cm_private_len(unsigned attr);
/* "REQ"; "unknown". */
const char *cm_attr_name(unsigned attr);

/* Reads len bytes at mad. 0; -EMSGSIZE: not CM_MAD_LEN bytes; -EPROTO: not a MAD of base version 1,
 * class 7, version 2, method Send, status 0; -EOPNOTSUPP: LAP or APR; -EINVAL: another attribute,
 * or a length inside of it that does not fit. Only with 0 is anything in msg to be used. */
int cm_parse(const uint8_t *mad, size_t len, struct cm_msg *msg);

/* Writes the message. -EINVAL: unknown attribute or a field beyond its bits; nothing is written. A
 * message that cm_parse read comes out as it was, if what is reserved was zero. */
int cm_build(const struct cm_msg *msg, uint8_t mad[CM_MAD_LEN]);

/* The RDMA IP CM service (annex A11): the service ID is that of a port, and the private data of REQ
 * and SIDR REQ begin with the addresses. */
enum { IPCM_HDR_LEN = 36 };
enum ipcm_space { IPCM_TCP = 0x0106, IPCM_UDP = 0x0111 };

static inline uint64_t ipcm_service_id(unsigned space, uint16_t port)
{
	return (uint64_t)space << 16 | port;
}

struct ipcm {
	struct wire_ip src, dst; /* both IPv4-mapped or both IPv6 */
	uint16_t sport;
};

/* 0; -EMSGSIZE: less than IPCM_HDR_LEN; -EPROTO: major version not 0, IP version neither 4 nor 6,
 * or an IPv6 address that is an IPv4-mapped one. */
int ipcm_parse(const uint8_t *p, size_t len, struct ipcm *ipcm);
/* -EINVAL: address families differ. */
int ipcm_build(const struct ipcm *ipcm, uint8_t p[IPCM_HDR_LEN]);

#endif
