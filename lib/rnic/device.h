/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic, and for transports: the device, which has all the others (device.c; frames:
 * rx.c, tx.c, frame.c). All functions of this folder belong to the owner thread unless they say
 * otherwise. */
#ifndef RNIC_DEVICE_H
#define RNIC_DEVICE_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "lib/rnic/dcqcn.h"
#include "lib/rnic/mcast.h"
#include "lib/rnic/neigh.h"
#include "lib/rnic/path.h"
#include "lib/rnic/qp.h"
#include "lib/rnic/rnic.h"
#include "lib/rnic/timer.h"

enum { N_REPLIES = 16 }; /* answers to ARP, ND, echo that may wait for a port */

/* struct timer.kind */
enum timer_kind { TIMER_QP, TIMER_NEIGH, TIMER_LLDP };

struct reply {
	uint8_t *bytes; /* reply_cap */
	uint32_t len;
};

struct rnic_port {
	uint8_t mac[6];
	bool up;
	uint8_t n_gid;
	struct wire_ip gid[RNIC_MAX_GID];
	struct wire_ip via; /* or zero */
	uint32_t mtu;
	enum ibv_mtu active_mtu;
	struct reply reply[N_REPLIES];
	uint32_t reply_head, reply_tail, reply_cap;
	uint64_t count[RNIC_N_PORT_COUNTERS];
};

/* Completions of whoever produces them, the owner or a worker (cq.h). */
struct cq_gather {
	bool on;                        /* they are shown by cq_publish, all at once */
	STAILQ_HEAD(, rnic_cq) unshown; /* whose first completion came first is shown first */
};

struct rnic {
	struct rnic_events events;
	unsigned n_ports;
	unsigned up; /* bit N: port N is */
	struct rnic_port port[RNIC_MAX_PORTS];
	uint32_t window;
	uint8_t quantum;
	uint32_t max_qp, max_cq, max_mr, max_pd;
	uint32_t n_qp, n_cq, n_mr, n_pd, n_srq;
	/* What no table names. */
	LIST_HEAD(, rnic_pd) pds;
	LIST_HEAD(, rnic_cq) cqs;
	LIST_HEAD(, rnic_srq) srqs;
	LIST_HEAD(, rnic_ah) ahs;
	_Atomic uint32_t n_mcast; /* written by the owner */
	struct mcast mcast[MAX_MCAST];
	unsigned reports_due;  /* bit N: port N has frames waiting, and then reports (struct
				  mcast.due) */
	atomic_bool unsettled; /* for cq_settle; written by workers, too */
	struct cq_gather gather;
	struct rnic_worker *worker;
	unsigned n_workers;
	unsigned n_pinned; /* queue pairs that have one */
	unsigned holds;    /* workers_hold without workers_let_go */
	bool rx_holds;     /* one of them is for frames that are being taken */
	atomic_bool held;  /* workers stand back */
	bool copy_back;    /* the frame made last goes to a group with members here */
	uint64_t random;   /* state of the generator */
	struct dcqcn_params dcqcn;
	bool cnp_react, cnp_notify, ect;
	uint32_t window_bytes;
	uint8_t cnp_tos;
	uint64_t cnp_ns;
	uint16_t ip_id;
	uint64_t rx_at; /* when the last frame came */
	/* Bit N: a transport with a codec of its own has the opcodes N << 5 (any thread). */
	_Atomic uint32_t own_codecs;
	_Atomic(const struct transport_ops *) owner; /* transport_own; NULL: none (any thread) */
	void *kept;
	uint32_t gsi_psn;

	/* QPN = generation, then slot + 2 in the low bits: neither 0, 1 nor 0xffffff. */
	struct rnic_qp **qp;
	uint32_t *qp_generation, *qp_free; /* qp_free: FIFO, so that a number rests before reuse */
	uint32_t qp_free_head, qp_bits, qp_generations;
	struct rnic_mr **mr; /* by the low bits of the key */
	uint64_t mr_changes; /* from 1: a translation found at this number still holds */
	uint32_t *mr_free;
	uint32_t mr_free_head, mr_bits;

	_Atomic uint64_t *bell, *bell_sum; /* one bit per QP; one per word of bell */
	_Atomic uint64_t bell_top;         /* one per word of bell_sum */
	uint32_t n_bell, n_bell_sum;
	uint64_t sched_steps; /* bells taken, words of bells looked at, QPs asked for a frame */
	atomic_bool left;     /* the lists below, or replies, are not empty */
	/* Queue pairs with something to send, by lane. Bit N: that of lane N is not empty; or port
	 * N has replies. */
	struct qp_list ready[N_LANES], controls[N_LANES];
	unsigned has_ready, has_controls, has_replies;
	unsigned turn;    /* the lane whose queue pair sends next */
	uint8_t *scratch; /* a frame to itself */
	uint32_t scratch_cap;

	struct timers timers;
	struct neigh *neigh;
	uint32_t *neigh_bucket; /* index + 1 of the first */
	uint32_t neigh_hand;
	struct rnic_lldp *lldp; /* NULL: off */

	uint64_t count[RNIC_N_COUNTERS];
	uint64_t drop[RNIC_N_DROPS];
};

static inline void rnic_inc(struct rnic *rnic, enum rnic_counter c)
{
	rnic->count[c]++;
}

/* ports.c: what the configuration says of them, then their memory, and that again. */
int ports_init(struct rnic *rnic, const struct rnic_config *config);
int ports_alloc(struct rnic *rnic);
void ports_free(struct rnic *rnic);

/* rx.c: what becomes of a frame at that worker, 0: the owner. 0 if it took effect, else the drop
 * reason. */
unsigned rx_frame(struct rnic *rnic, unsigned worker, unsigned port, const uint8_t *frame,
	size_t len, uint64_t now);

uint64_t rnic_random(struct rnic *rnic);
/* Index of a port's own address in its GID table, or -1. */
int rnic_own_ip(const struct rnic *rnic, unsigned port, const struct wire_ip *ip);
/* A frame that waits outside of any QP: rnic_reply gives room for the port's reply_cap bytes, or
 * NULL if too many wait; rnic_reply_send queues the len bytes written there. */
uint8_t *rnic_reply(struct rnic *rnic, unsigned port);
void rnic_reply_send(struct rnic *rnic, unsigned port, int len);
/* Headers in front of, pad and ICRC behind the pieces that the frame has, pay_len bytes together;
 * and where it goes. A path with headers made ready is used for its queue pair alone. */
void frame_build(struct rnic *rnic, const struct rnic_path *path, struct rnic_frame *frame,
	struct wire_hdr *hdr, size_t pay_len);
/* The same where a transport has written the headers itself: head_len bytes in frame->head, the IP
 * header at l3_off. */
void frame_finish_own(struct rnic_frame *frame, const struct rnic_path *path, size_t l3_off,
	size_t head_len, size_t pay_len);

#endif
