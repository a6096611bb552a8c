/* SPDX-License-Identifier: BSD-3-Clause */
/* The requestor of a connection: cuts messages into packets, chooses what leaves next and on which
 * path, and completes messages in order when the peer's transport ACK covers them (MRC 1.0;
 * docs/mrc.md has the rules). It puts together the sent packets (snd.h), the paths (evset.h) and
 * the congestion window (nscc.h); payload stays where it is: a packet names its message and offset.
 *
 * Order of sending: what was lost, then probes, then new data. Retransmissions take a fresh path
 * and wait for the congestion window as new data does.
 *
 * No clock (times are nanoseconds, passed in, not decreasing), no heap, no I/O. One owner. */
#ifndef MRC_REQ_H
#define MRC_REQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/mrc/evset.h"
#include "lib/mrc/nscc.h"
#include "lib/mrc/snd.h"
#include "lib/wire/mrc.h"

enum { MRC_MAX_MESSAGES = 1 << 15, MRC_PMTU_MAX = 8192, MRC_PROBES_OUT = 16 };

struct mrc_req_config {
	struct mrc_snd_config snd;
	uint32_t dqpn;     /* the peer's */
	uint16_t qpn_low;  /* low bits of our own */
	uint32_t pmtu;     /* payload of a packet, 256 to 8192 */
	unsigned messages; /* that may be queued, a power of two up to 2^15 */
	unsigned max_wimm; /* begun and not acknowledged at a time, at least 1: the peer's limit */
	bool cc;           /* NSCC; else the peer's window is the only one */
	bool peer_nacks_trimmed; /* agreed; else packets say that they must not be trimmed */
	/* 0 of these: the default (settings.h). */
	uint32_t loss_percent; /* of the congestion window, sent later and arrived: lost */
	uint32_t stamps_us;    /* reflected time stamps of older packets are not believed */
	uint8_t wimm_syndrome; /* by which the peer refuses an immediate too many */
};

/* An RDMA Write. */
struct mrc_msg {
	uint64_t cookie; /* the caller's */
	uint64_t va;     /* at the peer */
	uint32_t rkey, length;
	uint32_t imm; /* if has_imm */
	bool has_imm, se;
};

struct mrc_request {
	struct mrc_msg m;
	uint32_t packets, sent; /* sent: packets that have left at least once */
	uint32_t last_psn;      /* valid once sent == packets */
	uint16_t msn, rqmsn;
};

enum mrc_status {
	MRC_STATUS_OK,
	MRC_STATUS_RETRY, /* the peer does not answer */
	MRC_STATUS_INV_REQ,
	MRC_STATUS_ACCESS,
	MRC_STATUS_OPERATION,
	MRC_STATUS_FLUSHED /* behind the message that failed */
};

/* A probe that has left. */
struct mrc_probe_out {
	uint16_t id;
	int16_t ev;    /* MRC_NO_EV: none, or answered */
	uint32_t turn; /* there, as mrc_snd_probe has it */
};

struct mrc_req {
	struct mrc_req_config c;
	struct mrc_snd snd;
	struct mrc_evset *evs;
	struct nscc *nscc;
	uint64_t in_window;        /* our part of it (nscc.h), */
	bool held;                 /* it is others' turn: no data leaves; the owner's to set */
	struct mrc_request *queue; /* a ring; the counters run free */
	uint32_t head, next, tail; /* oldest not completed, first not wholly sent, end */
	uint16_t msn, rqmsn;       /* of the next message that begins */
	unsigned wimms;            /* begun and not completed */
	uint32_t rcvd_units;       /* last that a SACK said */
	enum mrc_status status;    /* not MRC_STATUS_OK: over */
	bool status_told;

	/* Probes: of bad paths, and to hear whether anything is left at all. The answers to the
	 * last few count. */
	int probe_ev; /* MRC_NO_EV: none waits */
	bool tail_probe;
	uint16_t probe_id; /* of the last that left */
	struct mrc_probe_out probe_out[MRC_PROBES_OUT];

	/* counters */
	uint64_t ignored;     /* words of the peer that cannot be: counted, without effect */
	uint64_t unknown_evs; /* SACKs of none of our EVs: what they say of packets holds */
	uint64_t again, probes, lost, trimmed;
};

/* Bytes of memory for a configuration; 0 if a field is out of range. A multiple of 8. */
size_t mrc_req_bytes(const struct mrc_req_config *config);
/* evs and nscc (NULL unless config.cc) are made and belong to the caller, as mem does:
 * mrc_req_bytes(config) bytes aligned to 8. All live as long as *q, nscc until
 * mrc_req_leave_window. Several requestors may have one nscc. -EINVAL. */
int mrc_req_init(struct mrc_req *q, const struct mrc_req_config *config, struct mrc_evset *evs,
	struct nscc *nscc, void *mem);

/* Queues a message; a copy is made. -ENOSPC: as many as may be are queued. -EINVAL: longer than
 * 2^31 bytes. -ENOTCONN: the connection is over. */
int mrc_req_post(struct mrc_req *q, const struct mrc_msg *msg);

struct mrc_out {
	struct mrc_pkt pkt; /* data or probe */
	uint32_t ev;
	uint8_t port;    /* the EV's */
	uint8_t class;   /* enum mrc_class */
	uint64_t cookie; /* data: of its message, */
	uint32_t offset; /* and where in it the payload of pkt.data.pay_len bytes begins */
};

/* What leaves next, on a port of room (a bit each); false: nothing may. */
bool mrc_req_tx(struct mrc_req *q, uint8_t room, uint64_t now, struct mrc_out *out);

/* Whether a packet could leave if all ports had room. */
bool mrc_req_wants(const struct mrc_req *q);
/* Whether data could but for the congestion window, or for being held. */
bool mrc_req_blocked(const struct mrc_req *q);
/* Nothing of it counts in the congestion window any more, which others may have, and it is not
 * looked at again. Its connection is over. */
void mrc_req_leave_window(struct mrc_req *q);

/* Words of the peer. -EINVAL: one that cannot be, counted in ignored, without effect. */
int mrc_req_sack(struct mrc_req *q, const struct mrc_sack *sack, uint64_t now);
int mrc_req_nack(struct mrc_req *q, const struct mrc_nack *nack, uint64_t now);
int mrc_req_ack(struct mrc_req *q, const struct mrc_ack *ack, uint64_t now);

struct mrc_done {
	uint64_t cookie;
	enum mrc_status status;
};
/* The next message that is done, in order; false: none. After a failure the first that is not done
 * has its reason, the rest are flushed. */
bool mrc_req_done(struct mrc_req *q, struct mrc_done *done);
/* Ends it: what is queued completes with status, which is not MRC_STATUS_OK. */
void mrc_req_fail(struct mrc_req *q, enum mrc_status status);

/* When mrc_req_timer has to be called; UINT64_MAX: never. */
uint64_t mrc_req_deadline(const struct mrc_req *q);
void mrc_req_timer(struct mrc_req *q, uint64_t now);

#endif
