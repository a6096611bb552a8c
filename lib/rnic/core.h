/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/rnic only: the objects and what the files of this folder call of one another. All
 * functions belong to the owner thread unless said otherwise. */
#ifndef RNIC_CORE_H
#define RNIC_CORE_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "lib/rnic/dcqcn.h"
#include "lib/rnic/placement.h"
#include "lib/rnic/rc.h"
#include "lib/rnic/rnic.h"
#include "lib/rnic/timer.h"
#include "lib/wire/template.h"

enum {
	WINDOW_DEFAULT = 512, /* packets in flight per QP */
	ACKREQ_EVERY = 64,    /* an AckReq at least this often */
	QUANTUM = 16,         /* packets of one QP before the next has its turn */
	MAX_WR = 1 << 14,
	MAX_CQE = 1 << 18,
	MAX_MCAST = 256, /* attachments of queue pairs to groups */
	GRH_LEN = 40,
	MULTICAST_QPN = 0xffffff,
	N_REPLIES = 16,   /* answers to ARP, ND, echo that may wait */
	N_NEIGH = 1024,   /* addresses that can be known at a time */
	LOOPBACK_MAX = 64 /* frames a device hands to itself in one call of rnic_tx */
};

enum timer_kind { TIMER_QP, TIMER_PACE, TIMER_NEIGH };

/* ---- rings ---- */

/* Single-producer single-consumer ring of entries of equal size; indices run freely. The producer
 * writes an entry, then publishes it with a release store of head; the consumer's acquire load of
 * head pairs with it. The consumer hands entries back with a release store of tail, which the
 * producer's acquire load pairs with before it writes there again. */
struct ring {
	uint8_t *mem;
	uint32_t stride, mask;
	_Alignas(64) _Atomic uint32_t head;
	_Alignas(64) _Atomic uint32_t tail;
};

int ring_init(struct ring *ring, uint32_t depth, uint32_t stride); /* depth: a power of two */
void ring_free(struct ring *ring);

static inline void *ring_at(const struct ring *ring, uint32_t index)
{
	return ring->mem + (size_t)(index & ring->mask) * ring->stride;
}

/* Producer: the entry to fill, or NULL if the ring is full. */
static inline void *ring_claim(struct ring *ring)
{
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);

	return head - tail > ring->mask ? NULL : ring_at(ring, head);
}

/* Producer: publishes the claimed entry. Sequentially consistent: what the producer reads next (the
 * QP's state) is not older than the publication, see wq.c. */
static inline void ring_publish(struct ring *ring)
{
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	atomic_store_explicit(&ring->head, head + 1, memory_order_seq_cst);
}

static inline uint32_t ring_head(const struct ring *ring)
{
	return atomic_load_explicit(&ring->head, memory_order_acquire);
}

/* Consumer. */
static inline uint32_t ring_tail(const struct ring *ring)
{
	return atomic_load_explicit(&ring->tail, memory_order_relaxed);
}

static inline void ring_release(struct ring *ring, uint32_t tail)
{
	atomic_store_explicit(&ring->tail, tail, memory_order_release);
}

/* ---- work requests ---- */

struct send_wqe {
	uint64_t wr_id;
	uint64_t raddr;
	uint64_t first;   /* sequence number of the first packet (owner) */
	uint64_t skipped; /* PSNs skipped on this QP before it (owner) */
	uint32_t rkey;
	uint32_t len;
	uint32_t imm;               /* as a number; or the key to invalidate */
	uint64_t swap_add, compare; /* of an atomic; or as in window.c */
	uint32_t recv;              /* messages before it that use up a receive request (owner) */
	uint8_t opcode;             /* enum ibv_wr_opcode */
	bool signaled, solicited, inlined, fenced;
	bool done; /* one that sends nothing: carried out (owner) */
	uint8_t n_sge;
	struct ibv_sge sge[]; /* or the inline bytes */
};

struct recv_wqe {
	uint64_t wr_id;
	uint64_t len;
	uint32_t n_sge;
	struct ibv_sge sge[];
};

/* What a datagram's send request has besides: behind its scatter list. */
struct ud_dest {
	struct wire_flow flow; /* without the source port */
	uint32_t qpn, qkey;
	bool loopback, multicast;
};

struct rnic_ah {
	LIST_ENTRY(rnic_ah) link;
	struct rnic_pd *pd;
	struct ud_dest dest; /* without qpn and qkey */
};

/* ---- memory ---- */

struct rnic_pd {
	LIST_ENTRY(rnic_pd) link;
	struct rnic *rnic;
	uint32_t users;
};

/* The low bits of a key are the program's to choose where it may (type 2 windows); then comes the
 * index into the table of regions. */
enum { KEY_FREE_BITS = 8 };

/* A memory region, or a window: a part of a region, with a key and rights of its own. */
struct rnic_mr {
	struct rnic_pd *pd;
	uint8_t *addr;
	uint64_t len, iova;
	int access;
	uint32_t key;
	uint32_t windows;       /* bound to this region */
	uint8_t type;           /* enum ibv_mw_type; 0: a region */
	struct rnic_mr *region; /* of a window; NULL: not bound */
	uint32_t qpn;           /* of the QP that a type 2 window is bound to */
};

/* What a key belongs to, if it is valid. */
struct rnic_mr *mr_find(const struct rnic *rnic, uint32_t key);
/* The same whatever the key's free bits. */
struct rnic_mr *mr_find_any(const struct rnic *rnic, uint32_t key);
/* Memory behind len bytes at va, or NULL if key, domain, bounds or access forbid it. For local
 * access: no windows. */
uint8_t *mr_translate(
	const struct rnic_pd *pd, uint32_t key, uint64_t va, uint64_t len, int access);
/* The same for the peer of this QP. */
uint8_t *mr_translate_remote(
	const struct rnic_qp *qp, uint32_t key, uint64_t va, uint64_t len, int access);

/* ---- windows (window.c) ---- */

/* A request that is carried out here and sends nothing: binding, local invalidation. */
bool wqe_is_local(const struct send_wqe *wqe);
enum ibv_wc_status window_run(struct rnic_qp *qp, const struct send_wqe *wqe);
/* Fields of the request; -EINVAL, -EOPNOTSUPP. */
int window_post(struct send_wqe *wqe, const struct ibv_send_wr *wr);
void window_unbind(struct rnic_mr *mw);
/* May the peer of this QP, or the QP itself, invalidate the key? */
bool window_may_invalidate(const struct rnic_qp *qp, uint32_t key);
void window_invalidate(struct rnic_qp *qp, uint32_t key);

/* Names len bytes from offset on of a send request as the frame's pieces (placement.c); -EFAULT if
 * memory registration forbids it. */
int gather_payload(const struct rnic_pd *pd, const struct send_wqe *wqe, uint64_t offset,
	size_t len, struct rnic_frame *frame);

/* ---- completion queues ---- */

struct cqe {
	struct ibv_wc wc;
	/* Cleared by the owner when the QP goes: may race with a poll, which either still returns
	 * the entry or passes over it. */
	atomic_bool valid;
};

enum cq_arm { CQ_DISARMED, CQ_ARM_SOLICITED, CQ_ARM_ANY };

struct rnic_cq {
	LIST_ENTRY(rnic_cq) link;
	struct rnic *rnic;
	void *user;
	uint32_t users;      /* queues of QPs that complete here */
	_Atomic int armed;   /* enum cq_arm */
	atomic_bool overrun; /* for good */
	struct ring ring;
};

void cq_push(struct rnic_cq *cq, const struct ibv_wc *wc, bool solicited);
void cq_purge(struct rnic_cq *cq, uint32_t qpn);
bool cq_is_dead(const struct rnic_cq *cq);
/* QPs whose CQ has overrun fail: not where that happened, in the middle of something. */
void cq_settle(struct rnic *rnic);

/* ---- queue pairs ---- */

/* A transport. Called with the QP found and in a state of the table in io.c. */
struct transport {
	enum ibv_qp_type type;
	bool connected;  /* one peer, whose address the QP has */
	uint8_t opcodes; /* enum roce_transport */
	/* A packet with right ICRC from the QP's peer. 0 if it took effect, else the drop reason.
	 */
	unsigned (*rx)(
		struct rnic_qp *qp, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now);
	/* The next request packet; false if there is none or none may be sent: the QP then leaves
	 * the scheduler until qp_ready. */
	bool (*tx)(struct rnic_qp *qp, struct rnic_frame *frame, uint64_t now);
	/* The answer that qp_answer announced; false: there is none any more. */
	bool (*tx_answer)(struct rnic_qp *qp, struct rnic_frame *frame);
	void (*timer)(struct rnic_qp *qp);
	/* State changes: to RTR and RTS (attributes are in place), to SQD and back, to RESET. */
	void (*start_recv)(struct rnic_qp *qp);
	void (*start_send)(struct rnic_qp *qp);
	void (*drain)(struct rnic_qp *qp, bool on);
	void (*reset)(struct rnic_qp *qp);
	int (*skip)(struct rnic_qp *qp, enum rnic_dir dir, uint32_t from, uint32_t count);
};

extern const struct transport rc_transport, selective_transport, uc_transport, ud_transport;

struct rnic_srq {
	LIST_ENTRY(rnic_srq) link;
	struct rnic_pd *pd;
	void *user;
	uint32_t users, max_wr, max_sge;
	uint32_t limit; /* 0: no event */
	struct ring ring;
};

struct rnic_qp {
	struct rnic *rnic;
	const struct transport *ops;
	_Atomic int state; /* enum ibv_qp_state; written by the owner */
	uint32_t qpn, slot;
	uint32_t mtu; /* bytes */
	struct wire_flow flow;
	struct wire_template
		full;             /* headers of packets that are nothing but mtu bytes of payload */
	bool loopback;            /* the peer is this device */
	bool en_ready, en_answer; /* on the device's lists */
	uint8_t quantum;
	TAILQ_ENTRY(rnic_qp) ready, answer;
	struct timer timer, pace;
	bool cnp_due, cnp_sent;
	uint64_t cnp_at; /* last one */
	struct dcqcn flow_rate;
	struct ring sq, rq;
	uint32_t dest_off; /* of a send request's struct ud_dest */
	/* With an SRQ: the request taken from it, whole messages at a time. */
	struct recv_wqe *held;
	bool holds;
	/* UC, UD: bytes of the oldest send request that have left; and whether all have, in a frame
	 * that the caller may still be copying: it completes at the next call. */
	uint32_t sent;
	bool all_sent;
	struct rc_requester req;
	struct rc_responder resp;
	struct rc_selective *sel; /* or NULL */
	struct ibv_qp_attr attr;  /* as set by rnic_qp_modify */
	struct rnic_qp_init init;
};

TAILQ_HEAD(qp_list, rnic_qp);

static inline enum ibv_qp_state qp_state(const struct rnic_qp *qp)
{
	return (enum ibv_qp_state)atomic_load_explicit(&qp->state, memory_order_relaxed);
}

/* A receive request for a message that begins; false: there is none. */
bool qp_take_recv(struct rnic_qp *qp);
/* The one taken. */
static inline const struct recv_wqe *qp_recv(const struct rnic_qp *qp)
{
	return qp->held != NULL ? qp->held : ring_at(&qp->rq, ring_tail(&qp->rq));
}
/* Puts the send queue into SQE: what is in it is flushed, receiving goes on. */
void qp_sq_error(struct rnic_qp *qp);
/* Puts the QP into ERR: no more packets, all work requests are flushed. */
void qp_error(struct rnic_qp *qp);
/* Completes with WR_FLUSH_ERR whatever is in the queues of a QP in ERR. */
void qp_flush(struct rnic_qp *qp);
void qp_event(struct rnic_qp *qp, enum ibv_event_type type);
/* Completion of the send request at the tail of the ring, which is released. */
void qp_complete_send(struct rnic_qp *qp, enum ibv_wc_status status);
/* Completion of the oldest receive request; wc's opcode, byte_len, imm and flags are set. */
void qp_complete_recv(struct rnic_qp *qp, struct ibv_wc *wc, bool solicited);

/* 0, or -EINVAL if mask is not what the transition from -> to needs and allows (qp_attr.c). */
int qp_attr_check(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to, int mask);

/* A request out of a user's: checks and copies. Any one thread per ring. */
int recv_post(struct ring *ring, uint32_t max_sge, const struct ibv_recv_wr *wr);
/* Takes the oldest request of an SRQ into `to`; false: it is empty. */
bool srq_take(struct rnic_srq *srq, struct recv_wqe *to);

/* unacked.c: the sending half of UC and UD. NULL if there is no request, or none may begin. */
struct send_wqe *unacked_next(struct rnic_qp *qp);
/* len bytes of it are in a frame. */
void unacked_sent(struct rnic_qp *qp, const struct send_wqe *wqe, uint32_t len);
void unacked_settle(struct rnic_qp *qp);
void unacked_drain(struct rnic_qp *qp, bool on);
void unacked_start_send(struct rnic_qp *qp);
void unacked_reset(struct rnic_qp *qp);
void unacked_timer(struct rnic_qp *qp);
bool unacked_tx_answer(struct rnic_qp *qp, struct rnic_frame *frame);

/* ---- multicast (mcast.c) ---- */

struct mcast {
	struct wire_ip group;
	struct rnic_qp *qp;
};

bool ip_is_multicast(const struct wire_ip *ip);
void multicast_mac(const struct wire_ip *ip, uint8_t mac[6]);
bool mcast_member(const struct rnic *rnic, const struct wire_ip *group);
void mcast_forget(struct rnic_qp *qp);
/* To every QP attached to the group: 0 if one took it. */
unsigned mcast_rx(
	struct rnic *rnic, const uint8_t *frame, const struct wire_pkt *pkt, uint64_t now);
bool qp_receives(const struct rnic_qp *qp);

/* A datagram to QP 1 (gsi.c): 0 or the drop reason. */
unsigned gsi_rx(struct rnic *rnic, const uint8_t *frame, const struct wire_pkt *pkt);
/* UDP source port of a QP's datagrams, as Soft-RoCE: Knuth's multiplicative hash. */
static inline uint16_t ud_source_port(uint32_t qpn)
{
	return (uint16_t)(0xc000 | qpn * UINT32_C(0x61c88647) >> 18);
}

/* ECN bits that packets of this traffic class carry. */
static inline uint8_t ect_tos(bool ect, uint8_t tos)
{
	return ect && (tos & IP_ECN_MASK) == IP_ECN_NOT_ECT ? tos | IP_ECN_ECT0 : tos;
}

/* ---- scheduler (sched.c) ---- */

void sched_ring_bell(struct rnic *rnic, uint32_t slot); /* any thread */
void qp_ready(struct rnic_qp *qp);
void qp_answer(struct rnic_qp *qp);
void sched_remove(struct rnic_qp *qp);
/* QPs whose bell rang become ready. */
void sched_collect(struct rnic *rnic);

/* ---- address resolution (neigh.c) ---- */

enum neigh_state { NEIGH_FREE, NEIGH_ASKING, NEIGH_KNOWN, NEIGH_STATIC, NEIGH_FAILED };

struct neigh {
	struct timer timer;
	struct wire_ip ip, src;
	uint8_t mac[6];
	uint8_t state;
	uint8_t asked;
	uint64_t expires;
	uint32_t chain; /* next in its bucket + 1 */
};

int neigh_init(struct rnic *rnic);
/* rnic_resolve with the source address to ask from. */
int neigh_resolve(struct rnic *rnic, const struct wire_ip *src, const struct wire_ip *ip,
	uint8_t dmac[6], uint64_t now);
void neigh_timer(struct rnic *rnic, struct neigh *neigh, uint64_t now);
/* ARP, ND: learns and answers. 0 or the drop reason. */
unsigned neigh_rx(
	struct rnic *rnic, const struct wire_pkt *pkt, const uint8_t *frame, uint64_t now);

/* ---- the device ---- */

struct reply {
	uint8_t *bytes; /* reply_cap */
	uint32_t len;
};

struct rnic {
	struct rnic_events events;
	uint8_t mac[6];
	uint8_t n_gid;
	struct wire_ip gid[RNIC_MAX_GID];
	uint32_t port_mtu;
	enum ibv_mtu active_mtu;
	uint32_t window;
	uint32_t max_qp, max_cq, max_mr, max_pd;
	uint32_t n_qp, n_cq, n_mr, n_pd, n_srq;
	/* What no table names. */
	LIST_HEAD(, rnic_pd) pds;
	LIST_HEAD(, rnic_cq) cqs;
	LIST_HEAD(, rnic_srq) srqs;
	LIST_HEAD(, rnic_ah) ahs;
	_Atomic uint32_t n_mcast; /* written by the owner */
	struct mcast mcast[MAX_MCAST];
	bool cq_overrun; /* for cq_settle */
	bool copy_back;  /* the frame made last goes to a group with members here */
	uint64_t random; /* state of the generator */
	struct dcqcn_params dcqcn;
	bool cnp_react, cnp_notify, ect;
	uint8_t cnp_tos;
	uint64_t cnp_ns;
	uint16_t ip_id;
	uint32_t gsi_psn;

	/* QPN = generation, then slot + 2 in the low bits: neither 0, 1 nor 0xffffff. */
	struct rnic_qp **qp;
	uint32_t *qp_generation, *qp_free; /* qp_free: FIFO, so that a number rests before reuse */
	uint32_t qp_free_head, qp_bits, qp_generations;
	struct rnic_mr **mr; /* by the low bits of the key */
	uint32_t *mr_free;
	uint32_t mr_free_head, mr_bits;

	_Atomic uint64_t *bell, *bell_sum; /* one bit per QP; one per word of bell */
	_Atomic uint64_t bell_top;         /* one per word of bell_sum */
	uint32_t n_bell, n_bell_sum;
	uint64_t sched_steps; /* bells taken, words of bells looked at, QPs asked for a frame */
	atomic_bool left;     /* the lists below, or replies, are not empty */
	struct qp_list ready, answers;
	struct reply reply[N_REPLIES];
	uint32_t reply_head, reply_tail, reply_cap;
	uint8_t *scratch; /* a frame to itself */

	struct timers timers;
	struct neigh *neigh;
	uint32_t *neigh_bucket; /* index + 1 of the first */
	uint32_t neigh_hand;

	uint64_t count[RNIC_N_COUNTERS];
	uint64_t drop[RNIC_N_DROPS];
};

static inline void rnic_inc(struct rnic *rnic, enum rnic_counter c)
{
	rnic->count[c]++;
}

uint64_t rnic_random(struct rnic *rnic);
/* Index of an own address in the GID table, or -1. */
int rnic_own_ip(const struct rnic *rnic, const struct wire_ip *ip);
/* A frame that waits outside of any QP: rnic_reply gives room for reply_cap bytes, or NULL if too
 * many wait; rnic_reply_send queues the len bytes written there. */
uint8_t *rnic_reply(struct rnic *rnic);
void rnic_reply_send(struct rnic *rnic, int len);
/* Headers in front of, pad and ICRC behind the pieces that the frame has, pay_len bytes together.
 */
void frame_build(struct rnic *rnic, const struct wire_flow *flow, struct rnic_frame *frame,
	struct wire_hdr *hdr, size_t pay_len);
/* The same for the flow of a connection. */
void frame_finish(
	struct rnic_qp *qp, struct rnic_frame *frame, struct wire_hdr *hdr, size_t pay_len);

#endif
