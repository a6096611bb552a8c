/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of lib/verbs. Names begin with iv_ ("incline verbs"), since libibverbs itself exports
 * verbs_*.
 *
 * Locking, in the only order allowed (README.md explains why):
 *	1. iv_qp.sq_lock, then iv_qp.rq_lock	producers of the two work queues
 *	2. iv_cq.lock				consumer of the ring; two CQs: lower address first
 *	3. iv_dev.owner				ownership of the rnic and of its ports
 *	4. iv_channel.lock, iv_ctx.async_lock	event queues, taken by callbacks of the rnic
 *	   iv_cm.lock				IDs and events of rdma_cm (cm_internal.h)
 * iv_env_lock (envdev.c) is taken before all of them and only to open, close and exit. */
#ifndef VERBS_INTERNAL_H
#define VERBS_INTERNAL_H

#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "lib/rnic/rnic.h"
#include "lib/verbs/dv_mrc.h"
#include "lib/verbs/incline_dv.h"
#include "lib/verbs/port_ops.h"

enum { IV_PKEY = 0xffff, IV_NAME_LEN = 32 };
/* Longer than the rnic asks for a neighbour. */
static const uint64_t IV_RESOLVE_NS =
	(RNIC_NEIGH_ASKS * RNIC_NEIGH_EVERY_MS + 500) * UINT64_C(1000000);

struct iv_cm_dev;
struct iv_ctx;
struct iv_dev;
struct iv_iwarp;
struct iv_workers;

/* What ibv_get_device_list shows. */
struct iv_device {
	struct ibv_device base;
	uint8_t mac[6];
	struct iv_dev *dev; /* NULL while it is not open */
};

/* A port of it. Programs count from 1. */
struct iv_port {
	void *handle;      /* for iv_dev.ops */
	unsigned tx_left;  /* owner: frames in it that did not go out */
	bool link;         /* owner */
	uint64_t tried_ns; /* owner: last attempt to get the link back */
};

/* One rnic and its ports, shared by every context that is open on it. */
struct iv_dev {
	struct iv_device self; /* unless it was opened from a list */
	struct iv_device *device;
	const struct verbs_port_ops *ops;
	void *port; /* the first one's handle, which has the clock, too, and waits for all */
	struct iv_port ports[RNIC_MAX_PORTS];
	unsigned n_ports;
	struct rnic *rnic;
	struct iv_netdev *netdev;   /* or NULL */
	struct iv_iwarp *iwarp;     /* its queue pairs are iWARP's; NULL: they are RoCE's */
	struct iv_workers *workers; /* NULL: the owner receives everything */
	enum port_idle idle;

	pthread_mutex_t owner;
	atomic_uint control; /* control calls that wait for ownership: pollers stand back */
	bool dead;           /* owner: no more turns (the process is exiting) */
	uint64_t link_ns;    /* owner: last look at the links */
	bool all_up;         /* owner: as of then */

	unsigned mrc_ports;             /* planes of MRC; 0: there is no MRC */
	atomic_uint mrc_up;             /* those that are enabled */
	struct inc_dv_mrc_listener mrc; /* owner */

	struct iv_cm_dev *cm; /* owner; NULL: no program has asked for rdma_cm */

	atomic_ullong deadline; /* of the rnic, as of the last turn */
	atomic_ullong turn_ns;  /* when the last turn began */
	/* Callers of verbs that poll in vain: how many do now, and the last turn of one of them. */
	atomic_uint polling;
	atomic_ullong polled_ns;
	atomic_uint n_qp;

	atomic_bool threaded;
	pthread_t thread;
	atomic_bool stop;

	pthread_mutex_t list_lock;
	LIST_HEAD(, iv_ctx) contexts;
};

/* Source of asynchronous events: a QP, a CQ, or the context for the port's. The same event twice is
 * told once, as the latest. */
enum { IV_EVENT_TYPES = IBV_EVENT_WQ_FATAL + 1 };
struct iv_async {
	TAILQ_ENTRY(iv_async) link;
	uint8_t pending[IV_EVENT_TYPES]; /* enum ibv_event_type, oldest first */
	unsigned n_pending;
	uint32_t got; /* events handed to the application */
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
};

struct iv_pd {
	struct ibv_pd base;
	struct rnic_pd *pd;
	LIST_ENTRY(iv_pd) link;
};

struct iv_mr {
	struct ibv_mr base;
	struct rnic_mr *mr;
	LIST_ENTRY(iv_mr) link;
};

struct iv_mw {
	struct ibv_mw base;
	struct rnic_mr *mw;
	LIST_ENTRY(iv_mw) link;
};

struct iv_ah {
	struct ibv_ah base;
	struct rnic_ah *ah;
	LIST_ENTRY(iv_ah) link;
};

struct iv_srq {
	struct ibv_srq base;
	struct rnic_srq *srq;
	pthread_mutex_t lock; /* producers; order: as iv_qp.rq_lock */
	struct iv_async async;
	LIST_ENTRY(iv_srq) link;
};

struct iv_channel {
	struct ibv_comp_channel base;
	pthread_mutex_t lock;
	TAILQ_HEAD(, iv_cq) ready; /* CQs with pending > 0; the eventfd holds the sum */
	LIST_ENTRY(iv_channel) link;
};

struct iv_cq {
	union {
		struct ibv_cq base;
		struct ibv_cq_ex ex;
	};
	struct rnic_cq *cq;
	pthread_mutex_t lock;
	atomic_uint empty; /* polls in vain since the last completion */

	unsigned pending, got; /* events; channel.lock */
	TAILQ_ENTRY(iv_cq) ready_link;
	struct iv_async async;

	pthread_mutex_t batch_lock; /* start_poll .. end_poll; taken before all other locks */
	struct ibv_wc wc;           /* the completion there */
	LIST_ENTRY(iv_cq) link;
};

/* Work requests between ibv_wr_start and ibv_wr_complete. */
struct iv_batch {
	struct ibv_send_wr *wr; /* max_send_wr entries */
	struct ibv_sge *sge;    /* n_sge per entry */
	uint8_t *inl;           /* max_inline_data bytes per entry */
	unsigned n_sge;
	unsigned n;
	int err;
};

struct iv_qp {
	union {
		struct ibv_qp base;
		struct ibv_qp_ex ex;
	};
	struct rnic_qp *qp;
	pthread_mutex_t sq_lock, rq_lock;
	struct ibv_qp_cap cap;
	bool sq_sig_all;
	bool has_ex; /* made with send_ops_flags */
	uint64_t send_ops;
	struct iv_batch batch; /* sq_lock */
	struct iv_async async;
	LIST_ENTRY(iv_qp) link;
};

struct iv_ctx {
	struct verbs_context vctx; /* first; its context is what programs see */
	struct iv_dev *dev;
	LIST_ENTRY(iv_ctx) link;

	pthread_mutex_t lock; /* the lists */
	LIST_HEAD(, iv_pd) pds;
	LIST_HEAD(, iv_mr) mrs;
	LIST_HEAD(, iv_mw) mws;
	LIST_HEAD(, iv_channel) channels;
	LIST_HEAD(, iv_cq) cqs;
	LIST_HEAD(, iv_qp) qps;
	LIST_HEAD(, iv_ah) ahs;
	LIST_HEAD(, iv_srq) srqs;
	uint32_t next_handle;

	pthread_mutex_t async_lock;
	TAILQ_HEAD(, iv_async) async_ready; /* context.async_fd holds the number of events */
	struct iv_async port_async[RNIC_MAX_PORTS];
};

static inline struct iv_ctx *iv_ctx(const struct ibv_context *context)
{
	return (struct iv_ctx *)((const char *)context - offsetof(struct iv_ctx, vctx.context));
}

static inline struct iv_dev *iv_dev(const struct ibv_context *context)
{
	return iv_ctx(context)->dev;
}

/* What a program calls port n. */
static inline bool iv_has_port(const struct ibv_context *context, unsigned n)
{
	return n >= 1 && n <= iv_dev(context)->n_ports;
}

/* Every pointer of the interface is the first member of ours. */
static inline struct iv_cq *iv_cq(struct ibv_cq *cq)
{
	return (struct iv_cq *)cq;
}

static inline struct iv_qp *iv_qp(struct ibv_qp *qp)
{
	return (struct iv_qp *)qp;
}

/* Sets errno and returns the positive errno as verbs do; err may have either sign. */
int iv_errno(int err);
/* A line on stderr if INCLINE_VERBS_DEBUG is set. */
void iv_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- device.c ---- */

/* device: as listed, or NULL to make one up. NULL with errno set. */
struct iv_dev *iv_dev_create(const struct verbs_port_ops *ops, void *port,
	const struct verbs_open_attr *attr, struct iv_device *device);
void iv_dev_stop(struct iv_dev *dev); /* the threads */
/* Stops, sends what is ready, frees the rnic. No context may be open. */
void iv_dev_destroy(struct iv_dev *dev);
void iv_device_init(struct iv_device *device, const char *name, const uint8_t mac[6], bool iwarp);
bool iv_device_mine(const struct ibv_device *device);

/* Ownership for a control call; waits for the running turn to end. */
void iv_own(struct iv_dev *dev);
void iv_disown(struct iv_dev *dev);
/* As iv_own, but gives up (false) after 100 ms: for exit handlers. */
bool iv_own_timed(struct iv_dev *dev);
/* One turn; by the owner. */
unsigned iv_turn(struct iv_dev *dev);
/* Turns until nothing moves (but not for ever): the last acknowledgements; by the owner. */
void iv_drain(struct iv_dev *dev);
/* One turn if nobody owns the device. */
unsigned iv_progress(struct iv_dev *dev);
/* After a post: send what may go if nobody owns the device. */
void iv_kick(struct iv_dev *dev);
/* How long a thread of the device may sleep that has nothing to do; 0: as any other. */
unsigned iv_max_sleep_us(const struct iv_dev *dev);
/* A caller found nothing n times in a row. */
void iv_idle(struct iv_dev *dev, unsigned n);

/* ---- frames.c: by the owner ---- */

/* Up to a burst from each port into the rnic; up to some frames out of it, and how many a port
 * still has from earlier turns. How many there were. */
unsigned iv_receive(struct iv_dev *dev, uint64_t now);
unsigned iv_transmit(struct iv_dev *dev, uint64_t now);
bool iv_tx_left(const struct iv_dev *dev);
/* Of the network interface. */
unsigned iv_transmit_shared(struct iv_dev *dev, uint64_t now);
/* Tells the rnic of links that have changed, if it is time to look. */
void iv_check_links(struct iv_dev *dev, uint64_t now);

/* ---- context.c ---- */

struct ibv_context *iv_ctx_open(struct iv_dev *dev);
/* Frees the context and all that was made with it; true if it was the last one of the device. */
bool iv_ctx_close(struct ibv_context *context);
bool iv_mine(const struct ibv_context *context);
uint32_t iv_handle(struct iv_ctx *ctx);

/* ---- events.c ---- */

void iv_on_cq_event(void *arg, struct rnic_cq *cq);
void iv_on_qp_event(void *arg, struct rnic_qp *qp, enum ibv_event_type type);
void iv_on_cq_error(void *arg, struct rnic_cq *rcq);
void iv_on_port_event(void *arg, unsigned port, enum ibv_event_type type);
void iv_on_srq_event(void *arg, struct rnic_srq *srq, enum ibv_event_type type);
void iv_async_raise(struct iv_ctx *ctx, struct iv_async *src, enum ibv_event_type type);
/* Forget undelivered events of an object that goes; got is how many the application still acks. */
void iv_async_forget(struct iv_ctx *ctx, struct iv_async *src);
void iv_cq_forget_events(struct iv_cq *cq);
void iv_channel_free(struct iv_channel *channel);

/* ---- objects, cq.c, qp.c: freeing without looking back, for iv_ctx_close ---- */

void iv_pd_free(struct iv_pd *pd);
void iv_mr_free(struct iv_mr *mr);
void iv_mw_free(struct iv_mw *mw);
void iv_cq_free(struct iv_cq *cq);
void iv_qp_free(struct iv_qp *qp);
void iv_ah_free(struct iv_ah *ah);
void iv_srq_free(struct iv_srq *srq);

/* One request of the send queue, which the caller has locked. */
int iv_post_one(struct iv_qp *qp, const struct ibv_send_wr *wr);
int iv_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_srq *iv_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *init);
int iv_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr);
struct ibv_mw *iv_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int iv_dealloc_mw(struct ibv_mw *mw);
int iv_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int iv_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int iv_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int iv_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_cq_ex *iv_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
/* transport: NULL, what attr says. worker: as rnic_qp_init. */
struct ibv_qp *iv_create_qp_as(struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
	const struct transport_ops *transport, unsigned worker);
struct ibv_qp *iv_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);

/* qp_ex.c, cq_ex.c */
int iv_qp_ex_init(struct iv_qp *qp, uint64_t send_ops);
void iv_qp_ex_fini(struct iv_qp *qp);
int iv_cq_ex_init(struct iv_cq *cq, uint64_t wc_flags);

/* ---- dv_mrc.c ---- */

void iv_on_mrc_ev(void *arg, struct rnic_qp *qp, unsigned index, enum mrc_ev_state state);
void iv_on_mrc_answer(void *arg, uint64_t cookie, unsigned port, uint64_t rtt_ns, bool adjusted);

/* ---- cm_use.c ---- */

/* The context is about to be closed: if RDMA-CM works on it, waits for the threads that do, and
 * tells its IDs (RDMA_CM_EVENT_DEVICE_REMOVAL). Not by the owner. */
void iv_cm_leave(struct ibv_context *context);

/* ---- cm_dev.c: the communication manager; all but destroy by the owner ---- */

unsigned iv_on_mad(void *arg, const struct rnic_mad *mad, const uint8_t *data);
unsigned iv_cm_turn(struct iv_dev *dev, uint64_t now); /* if there is one */
uint64_t iv_cm_deadline(const struct iv_dev *dev);     /* if there is one */
/* The device goes: peers are told. */
void iv_cm_stop(struct iv_dev *dev);
void iv_cm_destroy(struct iv_dev *dev);
/* Of name, at most n; returns how many there are. */
unsigned iv_cm_stats(const struct iv_dev *dev, struct inc_dv_stat *stats, unsigned n);

/* ---- stats.c ---- */

/* Writes counters and drop reasons as JSON; errors go to iv_debug. */
void iv_stats_write(struct iv_dev *dev, const char *path);

/* ---- envdev.c: the device that INCLINE_RNIC describes ---- */

/* False also on a thread that is opening the port: a driver that uses libibverbs itself gets the
 * real one. */
bool iv_env_set(void);
/* The same, for the list of devices: a user who has forgotten it is told by iv_debug. */
bool iv_env_lists(void);
/* Is there a device of that name in the list? */
bool iv_env_has(const char *name);

#endif
