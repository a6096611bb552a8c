/* SPDX-License-Identifier: BSD-3-Clause */
/* MRC on the software RNIC: a transport beside RC (lib/rnic/transport.h), made of the mechanisms of
 * this folder (docs/mrc.md has the rules). RDMA Write and Write with Immediate; each packet takes a
 * path of its own, is placed on arrival in any order, and requests complete in order when the
 * peer's transport ACK covers them.
 *
 *     rnic_mrc_open(rnic, &config)                       once, before a queue pair and any traffic
 *     rnic_qp_create(rnic, &{.type = IBV_QPT_RC, .transport = &rnic_mrc, ...}, &qp)
 *     rnic_mrc_set(qp, &attr, RNIC_MRC_PATHS | ...)      what is not set has its default
 *     rnic_qp_modify(qp, ...)                            INIT, RTR, RTS; there is no SQD
 *
 * INIT needs IBV_QP_ACCESS_FLAGS; RTR IBV_QP_AV, _PATH_MTU, _DEST_QPN, _RQ_PSN; RTS IBV_QP_SQ_PSN.
 * IBV_QP_PORT, _PKEY_INDEX, _TIMEOUT, _RETRY_CNT, _RNR_RETRY are taken and have no effect, so are
 * _MAX_DEST_RD_ATOMIC, _MIN_RNR_TIMER, _MAX_QP_RD_ATOMIC. RTR may be -ENOMEM.
 *
 * Planes are numbered from 0. On a device with several ports each port is a plane, with an address
 * of the queue pair on all of them; a device with one port carries all planes by it.
 *
 * All functions belong to the device's owner thread. Errors are negative errno, and nothing is
 * changed. Times are nanoseconds of the device's clock. */
#ifndef MRC_TRANSPORT_H
#define MRC_TRANSPORT_H

#include "lib/mrc/evset.h"
#include "lib/mrc/nscc.h"
#include "lib/mrc/rsp.h"
#include "lib/mrc/settings.h"
#include "lib/mrc/snd.h"
#include "lib/rnic/rnic.h"
#include "lib/wire/mrc.h"

extern const struct transport_ops rnic_mrc;

/* ---- the device ---- */

/* Attributes of queue pairs: what they are that nobody sets, and their limits (settings.h). */
enum {
	RNIC_MRC_MPR_DEFAULT = MRC_DFLT_mpr,
	RNIC_MRC_MPR_LIMIT = MRC_MOST_mpr,
	RNIC_MRC_WIMM_DEFAULT = MRC_DFLT_max_wimm,
	RNIC_MRC_WIMM_LIMIT = MRC_MOST_max_wimm
};

struct rnic_mrc_events {
	void *arg;
	/* As of rnic_events: from inside the device, must not call back into it. Any may be NULL.
	 * A queue pair's EV has changed its state (GOOD, BAD, DENIED; SKIP shows as GOOD). index:
	 * in the QP's paths. */
	void (*ev_changed)(void *arg, struct rnic_qp *qp, unsigned index, enum mrc_ev_state state);
	/* The answer to rnic_mrc_ask. rtt_ns: from its departure; adjusted: without the time that
	 * the peer took, as its time stamp says. port: that it came back on. */
	void (*answered)(void *arg, uint64_t cookie, unsigned port, uint64_t rtt_ns, bool adjusted);
};

struct rnic_mrc_config {
	unsigned n_ports; /* planes, 1 to MRC_MAX_PORTS; 0: as many as the device has ports, which
			     is the only other value if it has several */
	const struct mrc_codec *codec;       /* NULL: mrc_codec_ocp_r1 */
	const struct mrc_settings *settings; /* NULL: the defaults; copied */
	/* Where this device is in the fabric of switches with uSIDs: the address that a packet has
	 * left when it arrives in SRv6 (block and the uSID of this host, per port). All zeros:
	 * packets in SRv6 are taken at the own addresses only. */
	struct wire_ip sid[MRC_MAX_PORTS];
	bool no_trim_nack; /* trimmed packets are dropped and counted */
	struct rnic_mrc_events events;
};

/* The device speaks MRC from now on, until rnic_destroy. -EINVAL: a field is out of range, or what
 * mrc_settings_check says; -EEXIST:
 * it does already; -ENOMEM. */
int rnic_mrc_open(struct rnic *rnic, const struct rnic_mrc_config *config);

/* Planes that may be used, a bit each: paths of the others rest, and peers are told, as they are
 * when a port goes down (rnic_port_set). All may at first. */
void rnic_mrc_ports(struct rnic *rnic, uint8_t up, uint64_t now);

/* Counters of the device: name and value of the index-th; NULL: there are no more. */
const char *rnic_mrc_counter(const struct rnic *rnic, unsigned index, uint64_t *value);

/* ---- paths ---- */

enum rnic_mrc_format {
	RNIC_MRC_UDP,  /* the EV, 16 bits, is the UDP source port */
	RNIC_MRC_STEV, /* 32 bits, of UDP source port and IPv6 flow label */
	RNIC_MRC_SRV6, /* as STEV, and an outer header with the segments of the path; IPv6 only */
};

struct rnic_mrc_path {
	uint32_t ev;               /* as the wire has it, and a SACK echoes it; no two the same */
	uint8_t port;              /* from 0 on */
	bool denied;               /* not to be used at first */
	uint8_t n_segments;        /* SRV6: 1 or 2, else 0 */
	struct wire_ip segment[2]; /* in the order of the path */
};

/* A set of paths, the caller's: unchanged for as long as a QP that it was given to is not RESET
 * again. Many QPs may have the same. */
struct rnic_mrc_paths {
	enum rnic_mrc_format format;
	unsigned n;          /* 1 to MRC_MAX_EVS */
	unsigned max_active; /* of them; the rest is backup. 0: the device's active_evs */
	unsigned min_active; /* never fewer because of bad ones; 0: one per port */
	struct rnic_mrc_path path[MRC_MAX_EVS];
};

/* n paths (a multiple of n_ports, at most MRC_MAX_EVS) drawn at random, the same number for each
 * port: the mode AUTO. -EINVAL also for SRV6, whose paths nobody can guess. */
int rnic_mrc_paths_auto(struct rnic_mrc_paths *paths, enum rnic_mrc_format format, unsigned n_ports,
	unsigned n, uint64_t seed);

struct srv6_template;
/* SRV6, one path per EV: the address by the template (lib/srv6/template.h), the port by ports[i].
 * -EINVAL, -ERANGE as srv6_template_expand. */
int rnic_mrc_paths_srv6(struct rnic_mrc_paths *paths, const struct srv6_template *t,
	const uint32_t *ev, const uint8_t *ports, unsigned n);

/* ---- queue pairs ---- */

/* Congestion control, copied. */
struct rnic_mrc_cc {
	bool none;               /* the peer's window alone */
	struct nscc_config nscc; /* zeros: defaults from the link */
	struct nscc_link link;   /* zeros: the device's rate, the path MTU and headers, trims */
};

/* Which fields of struct rnic_mrc_attr count, and until when they may be set. */
enum rnic_mrc_mask {
	RNIC_MRC_PATHS = 1 << 0,         /* before RTR */
	RNIC_MRC_CC = 1 << 1,            /* before RTS */
	RNIC_MRC_MPR_DEST = 1 << 2,      /* before RTR */
	RNIC_MRC_MAX_WIMM_DEST = 1 << 3, /* before RTR */
	RNIC_MRC_CAPS = 1 << 4,          /* before RTR */
	RNIC_MRC_MPR = 1 << 5,           /* before RTS */
	RNIC_MRC_MAX_WIMM = 1 << 6,      /* before RTS */
	RNIC_MRC_TIMEOUT = 1 << 7,       /* at any time */
	RNIC_MRC_RETRY = 1 << 8,         /* at any time */
};

enum rnic_mrc_caps {
	RNIC_MRC_PEER_NO_TRIM_NACK = 1 << 0, /* packets say that they must not be trimmed */
	RNIC_MRC_DYNAMIC_MPR = 1 << 1,       /* both ends have agreed */
	RNIC_MRC_SERVICE_TIME = 1 << 2,      /* agreed: residence is added to reflected times */
};

struct rnic_mrc_attr {
	/* NULL: AUTO, in UDP over IPv4 and STEV over IPv6; the query then has NULL, too. */
	const struct rnic_mrc_paths *paths;
	struct rnic_mrc_cc cc;
	uint8_t mpr;      /* requestor: the peer's window in 128 packets, at least 1 */
	uint8_t mpr_dest; /* responder: the own one */
	uint16_t max_wimm, max_wimm_dest; /* at least 1 */
	uint8_t timeout;                  /* 1.024 us << timeout; 0: MRC_TIMEOUT_DEFAULT */
	uint8_t linear_cnt, exp_cnt;      /* MRC_EXP_ENDLESS: for ever */
	uint32_t caps;                    /* enum rnic_mrc_caps */
};

/* transport_attr.c: a library of its own, also for who is not in the device's object. What a queue
 * pair has that nobody has set; whether all numbers that mask names are within their limits. */
struct rnic_mrc_attr rnic_mrc_defaults(void);
bool rnic_mrc_within_limits(const struct rnic_mrc_attr *attr, unsigned mask);

/* -EINVAL: not a QP of this transport, a field out of range, its time has passed, or unknown bits.
 * Going to RESET brings the defaults back. */
int rnic_mrc_set(struct rnic_qp *qp, const struct rnic_mrc_attr *attr, unsigned mask);
int rnic_mrc_get(const struct rnic_qp *qp, struct rnic_mrc_attr *attr);

/* The controller's word on one path, by index in the QP's paths, from RTR on. state: MRC_EV_GOOD or
 * MRC_EV_DENIED. */
int rnic_mrc_ev_set(struct rnic_qp *qp, unsigned index, enum mrc_ev_state state);
/* How it is doing (SKIP shows as GOOD). */
int rnic_mrc_ev_get(const struct rnic_qp *qp, unsigned index, enum mrc_ev_state *state);
/* The paths that the QP really has, AUTO's too; NULL before RTR. */
const struct rnic_mrc_paths *rnic_mrc_paths_of(const struct rnic_qp *qp);

/* Bytes of memory that the queue pair has, without its work queues. */
size_t rnic_mrc_bytes(const struct rnic_qp *qp);

/* ---- endpoint requests: probes and port status without a queue pair ---- */

enum { RNIC_MRC_ASKED = 256 }; /* that may be out at a time */

struct rnic_mrc_request {
	struct wire_ip src, dst; /* src: an own address */
	uint8_t op;              /* enum mrc_endpoint_op */
	uint32_t port_mask;      /* MRC_PORT_STATUS: bit N for port N, from 1 on */
	enum rnic_mrc_format format;
	struct rnic_mrc_path path;
	uint8_t dscp;
	uint64_t cookie;
};

/* It comes out of rnic_tx; events.answered brings the answer. -EAGAIN, -EHOSTUNREACH as
 * rnic_resolve; -ENOSPC: too many are out or wait to leave, try again after rnic_tx; -EINVAL. */
int rnic_mrc_ask(struct rnic *rnic, const struct rnic_mrc_request *request, uint64_t now);
/* No longer waited for: all requests of this cookie. */
void rnic_mrc_forget(struct rnic *rnic, uint64_t cookie);

#endif
