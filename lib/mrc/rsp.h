/* SPDX-License-Identifier: BSD-3-Clause */
/* The responder of a connection: what of the packets that arrive may be placed, which messages are
 * done and in which order their immediates complete, and what the peer is told of it: SACK, NACK,
 * transport ACK and NAK (MRC 1.0; docs/mrc.md has the rules). Payload is placed by whoever asks,
 * in any order; completions come in the order of PSNs. For each data packet:
 *
 *     mrc_rsp_look   MRC_NEW: check and write its memory, or mrc_rsp_refuse and stop here
 *     mrc_rsp_data   the packet has arrived
 *     mrc_rsp_step   until MRC_STEP_NONE; each MRC_STEP_WIMM takes a receive request
 *
 * and after a burst mrc_rsp_tx until there is nothing more to say.
 *
 * No clock (times are nanoseconds, passed in, not decreasing), no heap, no I/O. One owner. */
#ifndef MRC_RSP_H
#define MRC_RSP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/mrc/rcv.h"
#include "lib/mrc/settings.h"
#include "lib/wire/mrc.h"

enum {
	MRC_MAX_WIMM = MRC_MOST_max_wimm,
	MRC_SAYINGS = 64 /* SACKs and NACKs that wait to be sent */
};

struct mrc_rsp_config {
	uint32_t first_psn;
	uint32_t dqpn;      /* the peer's */
	uint16_t qpn_low;   /* low bits of our own */
	unsigned mpr_units; /* our window in 128 packets, 1 to 255 */
	bool dynamic_mpr;   /* both ends have agreed: SACKs carry the window */
	unsigned max_wimm;  /* immediates held until all before them is there, 1 to 1024 */
	uint32_t pmtu;      /* payload of First and Middle packets, 256 to 65535 - headers */
	/* 0 of the next three: their defaults (settings.h). */
	uint32_t sack_bytes;       /* a SACK for so many, */
	uint32_t sack_least_bytes; /* as which a smaller packet counts */
	uint8_t wimm_syndrome;     /* of the NAK of an immediate too many */
	uint64_t guard_ns; /* a SACK so long after the last arrival that had none, 0: never */
	uint64_t oor_ns;   /* at most one NACK PSN_OOR in so long */
	bool no_oor;       /* none at all: what is beyond the window is dropped silently */
	bool service_time; /* agreed: residence is added to reflected timestamps */
};

/* What a packet met on its way. */
struct mrc_met {
	uint32_t ev;
	bool ecn;       /* CE, of the outer header where there are two */
	bool path_bad;  /* known here to be about to fail, as when its port goes down */
	uint16_t ts;    /* of the packet, 0 if it had none */
	uint32_t bytes; /* UDP length + 40 */
	uint64_t at;    /* arrival, in the clock of now */
};

/* An immediate whose turn has come: a receive completion. */
struct mrc_wimm {
	uint32_t psn, imm;
	uint32_t bytes; /* of its whole message */
	bool se;
};

/* A SACK or NACK to be sent. */
struct mrc_saying {
	uint64_t at;
	uint32_t psn, ev;
	uint16_t ts, probe_id;
	uint8_t reason; /* enum mrc_nack_reason; 0: a SACK */
	uint8_t mark;   /* enum mrc_mark */
	bool rtx, probe;
};

struct mrc_rsp {
	struct mrc_rcv rcv;
	struct mrc_rsp_config c;
	uint8_t mpr_units; /* as announced */

	/* Messages: PSNs are walked in order once all before them is there. */
	uint32_t walked;   /* up to here; equals rcv.cack between packets unless failed */
	uint32_t packets;  /* walked of the message that is not at its end yet */
	uint32_t msn;      /* messages done */
	uint32_t done_psn; /* the last packet of the last one of them */
	bool ack_due;
	bool wimm_out;         /* a WIMM was given out and not counted as done yet */
	uint64_t *ends;        /* two bits by PSN modulo capacity: first and last of a message */
	struct mrc_wimm *wimm; /* by PSN distance from cack */
	unsigned n_wimm, wimm_head;

	/* The lowest PSN that could not be placed, until it is the oldest hole. */
	bool fault;
	uint8_t fault_syndrome;
	uint32_t fault_psn;

	bool failed, nak_due; /* the connection is over; that has to be said */
	uint8_t syndrome;
	uint32_t nak_psn;

	struct mrc_saying say[MRC_SAYINGS];
	uint32_t say_head, say_tail; /* free running */
	uint32_t unsacked;           /* bytes since the last SACK, by the counter's rule */
	bool guard;                  /* an arrival since the last SACK: last */
	struct mrc_saying last;
	uint64_t oor_at; /* next NACK PSN_OOR not before */

	/* counters */
	uint64_t duplicates, beyond, trimmed, refused, lost_sayings;
};

/* Bytes of memory for a configuration; 0 if a field is out of range. A multiple of 8. */
size_t mrc_rsp_bytes(const struct mrc_rsp_config *config);
/* mem: mrc_rsp_bytes(config) bytes aligned to 8, the caller's, as long as *r lives. -EINVAL. */
int mrc_rsp_init(struct mrc_rsp *r, const struct mrc_rsp_config *config, void *mem);

/* What a packet is: only MRC_NEW may be placed. MRC_MISFIT: its length does not fit its place in
 * the message, or it has an immediate too many. Changes nothing. */
enum mrc_arrival mrc_rsp_look(const struct mrc_rsp *r, const struct mrc_data *d);

/* A packet that mrc_rsp_look allows but whose memory is not to be written: syndrome (AETH_NAK_*)
 * goes to the peer once all before psn has arrived, unless the packet comes again and is placed. */
void mrc_rsp_refuse(struct mrc_rsp *r, uint32_t psn, uint8_t syndrome);

/* The packet d has arrived, and was placed if it is MRC_NEW. Returns what it was. A misfit ends the
 * connection: by its length once all before it is there, by its immediate at once. */
enum mrc_arrival mrc_rsp_data(
	struct mrc_rsp *r, const struct mrc_data *d, const struct mrc_met *met, uint64_t now);

enum mrc_step {
	MRC_STEP_NONE,  /* nothing more until another packet arrives */
	MRC_STEP_WIMM,  /* *wimm completes a receive request, or mrc_rsp_fail if there is none */
	MRC_STEP_FAILED /* the connection is over; the NAK waits in mrc_rsp_tx */
};
enum mrc_step mrc_rsp_step(struct mrc_rsp *r, struct mrc_wimm *wimm);
/* Ends the connection with a NAK of psn; a second call changes nothing. */
void mrc_rsp_fail(struct mrc_rsp *r, uint32_t psn, uint8_t syndrome);

/* A data packet that a switch has trimmed; lasthop: on the port that faces us. */
void mrc_rsp_trimmed(
	struct mrc_rsp *r, uint32_t psn, bool lasthop, const struct mrc_met *met, uint64_t now);
/* A reliability probe. */
void mrc_rsp_probe(struct mrc_rsp *r, const struct mrc_probe *probe, const struct mrc_met *met);

/* Announces another window from now on, 1 to config.mpr_units; packets that were sent under the
 * old one are still taken. -EINVAL: out of range, or dynamic_mpr is off. */
int mrc_rsp_set_mpr(struct mrc_rsp *r, unsigned mpr_units);

/* Whether mrc_rsp_tx has something. */
bool mrc_rsp_pending(const struct mrc_rsp *r);
/* The next control packet, oldest first, the transport ACK last; false: none. */
bool mrc_rsp_tx(struct mrc_rsp *r, uint64_t now, struct mrc_pkt *pkt);

/* When mrc_rsp_timer has to be called; UINT64_MAX: never. */
uint64_t mrc_rsp_deadline(const struct mrc_rsp *r);
void mrc_rsp_timer(struct mrc_rsp *r, uint64_t now);

#endif
