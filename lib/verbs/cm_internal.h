/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/verbs: librdmacm's objects on the communication manager of lib/cm.
 *
 * Locking: iv_dev.owner owns the communication manager of a device and the fields of an ID that its
 * callbacks write (marked "owner"). iv_cm.lock, a leaf taken after it, protects the lists of IDs,
 * queues of events and states, and counts the threads that use a device: it is closed when they
 * have let go of it. Functions of the interface called for one ID by several threads at once are
 * the program's mistake, as with librdmacm. */
#ifndef VERBS_CM_INTERNAL_H
#define VERBS_CM_INTERNAL_H

#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include "lib/cm/cm.h"
#include "lib/verbs/internal.h"

enum {
	IV_CM_DEVICES = 16,
	IV_CM_WAITING = 16, /* datagrams of a device whose destination is being resolved */
	IV_CM_BACKLOG = 128,
	IV_CM_TCP_REQUESTS = 128, /* of a device of iWARP, for which nobody has room just now */
	IV_CM_TCP_PORTS = 64,     /* of a device of iWARP, listened at */
	IV_CM_PRIVATE = 255,      /* bytes of private data of an event: its length is a byte */
	IV_CM_ACK_TIMEOUT = 17,   /* of queue pairs: 0.54 s */
	IV_CM_MAX_DEPTH = RNIC_MAX_RD_ATOMIC,
};

struct iv_id;
struct iwarp_link;
TAILQ_HEAD(iv_cm_events, iv_cm_event);
LIST_HEAD(iv_ids, iv_id);

/* The communication manager of a device; made with the first call that needs one. */
struct iv_cm_dev {
	struct iv_dev *dev;
	struct ibv_context *context; /* NULL when it has been closed; iv_cm.lock */
	struct ibv_pd *pd;           /* likewise */
	unsigned users;              /* threads between iv_cm_get and _put; iv_cm.lock */
	bool leaving;                /* it is being closed, or has been; iv_cm.lock */
	struct cm *cm;
	struct iv_ids resolving;              /* owner */
	struct cm_out waiting[IV_CM_WAITING]; /* owner */
	unsigned n_waiting;
	/* Of a device of iWARP (cm_iwarp.c); owner. */
	struct iv_cm_tcp_port {
		struct iwarp_link *link;
		struct wire_ip ip;
		uint16_t port;
		uint64_t until; /* UINT64_MAX: somebody listens */
	} tcp_ports[IV_CM_TCP_PORTS];
	unsigned n_tcp_ports;
	struct iv_cm_tcp_request {
		struct iwarp_link *link;
		uint32_t conn;
		uint64_t until;
	} requests[IV_CM_TCP_REQUESTS]; /* of peers that nobody listens to just now */
	unsigned n_requests;
};

struct iv_cm_channel {
	struct rdma_event_channel base; /* fd: an eventfd in semaphore mode, as of ibv channels */
	LIST_ENTRY(iv_cm_channel) link;
	struct iv_cm_events events;
	unsigned users; /* threads inside rdma_get_cm_event: what is destroyed stays for them */
	bool destroyed;
};
LIST_HEAD(iv_cm_channels, iv_cm_channel);

struct iv_cm_event {
	struct rdma_cm_event base;
	TAILQ_ENTRY(iv_cm_event) link;
	struct iv_mc *mc; /* of MULTICAST_JOIN */
	uint8_t private_data[IV_CM_PRIVATE];
};

struct iv_mc {
	LIST_ENTRY(iv_mc) link;
	struct wire_ip group;
	void *context;
	bool attached;
};

enum iv_id_state {
	ID_IDLE,
	ID_BOUND,
	ID_ADDR_QUERY,
	ID_ADDR_RESOLVED,
	ID_ROUTE_RESOLVED,
	ID_LISTEN,
	ID_REQUESTED, /* by a peer: to be accepted or rejected */
	ID_CONNECT,   /* begun by either side */
	ID_DONE,
};

/* An own address: port and index in its GID table, both from 0. */
struct iv_gid {
	uint8_t port, index;
};

struct iv_id {
	struct rdma_cm_id base;
	LIST_ENTRY(iv_id) link;      /* all */
	LIST_ENTRY(iv_id) resolving; /* owner */
	bool is_resolving;           /* owner */
	uint64_t resolve_until;      /* owner */
	struct iv_cm_dev *cdev;      /* NULL: not bound to a device; iv_cm.lock, see iv_cm_get */
	bool removed;                /* its device has been closed; iv_cm.lock */
	enum iv_id_state state;      /* iv_cm.lock */
	bool sync, bound_any, reuse, afonly;
	bool has_port;       /* of its own; accepted ones share their listener's. iv_cm.lock */
	unsigned got, acked; /* events; iv_cm.lock */
	pthread_cond_t all_acked;
	unsigned backlog, pending; /* of a listener; iv_cm.lock */
	struct iv_id *listener;    /* while the request waits for an answer; iv_cm.lock */
	struct cm_conn *conn;      /* owner; NULL: none */
	/* On iWARP: its connection, NULL: none; who has begun; it is established. Owner. */
	struct iwarp_link *iwarp_link;
	uint32_t iwarp_conn;
	bool iwarp_asks, iwarp_up;
	uint8_t next_hop[6]; /* MAC of the peer or the router; owner until ADDR_RESOLVED */
	struct wire_ip local, remote;
	struct iv_gid gid;
	uint8_t tos;
	struct ibv_sa_path_rec path_rec;
	/* What the queue pair needs to know; owner until the event that says so. */
	uint32_t qpn, psn, remote_qpn, remote_psn, qkey;
	uint8_t responder_resources, initiator_depth, retry_count, rnr_retry, mtu, ack_timeout;
	bool ack_timeout_set, srq;
	uint32_t flow_label;
	uint64_t service_id;
	struct ibv_qp_init_attr *qp_init; /* of rdma_create_ep, for those accepted */
	LIST_HEAD(, iv_mc) groups;
};

/* A port that was listened at seconds ago. Programs listen for one connection after another, and
 * their peers do not know when (perftest: one for its parameters, a second of sleep on both sides,
 * one for the test): a request in between is left to come again, not rejected. */
enum { IV_CM_CLOSED = 8 };
struct iv_cm_closed {
	uint64_t service_id, at;
};

struct iv_cm {
	pthread_mutex_t lock;
	struct iv_cm_closed closed[IV_CM_CLOSED];
	unsigned n_closed; /* ever */
	struct iv_ids ids;
	struct iv_cm_channels channels;
	pthread_cond_t unused; /* a device that leaves has no users any more */
	struct iv_cm_dev *dev[IV_CM_DEVICES];
	unsigned n_dev;
	atomic_bool added; /* there was a device: IDs are ours, also when it has been closed */
};
extern struct iv_cm iv_cm;

static inline struct iv_id *iv_id(struct rdma_cm_id *id)
{
	return (struct iv_id *)id;
}

static inline bool iv_id_ud(const struct iv_id *id)
{
	return id->base.qp_type == IBV_QPT_UD;
}

static inline bool iv_is_group(const struct wire_ip *ip)
{
	return ip->b[0] == 0xff || (wire_ip_is4(ip) && (ip->b[12] & 0xf0) == 0xe0);
}

/* -1 with errno; err may have either sign. 0 stays 0. */
int iv_cm_ret(int err);

/* ---- cm_dev.c ---- */

/* rdma_* is ours: INCLINE_RNIC is set, or incline_verbs_cm_add was called. */
bool iv_cm_on(void);
/* Opens what INCLINE_RNIC describes, once. 0 or -errno. */
int iv_cm_open(void);
/* The device that has the address, and its place in the GID table; or that is nearest to it. To be
 * given back with iv_cm_put; NULL: none. */
struct iv_cm_dev *iv_cm_find(const struct wire_ip *ip, struct iv_gid *gid);
struct iv_cm_dev *iv_cm_nearest(const struct wire_ip *ip, struct iv_gid *gid);
/* The first port that has this address; 0 if none has. */
unsigned iv_cm_port(const struct rnic *rnic, const struct wire_ip *ip);
/* After this no callback is under way that began before. */
void iv_cm_barrier(void);
/* One turn of each device. */
void iv_cm_progress(void);
/* Waits until something may have happened; fd: readable when it has. -1 with errno: interrupted. */
int iv_cm_wait(int fd);
/* After a call into the communication manager, as the owner; then iv_disown, iv_kick. */
void iv_cm_flush(struct iv_cm_dev *cdev);

/* ---- cm_use.c ---- */

/* The device of the ID, which is not closed until iv_cm_put. Not by the owner of a device. -EINVAL:
 * the ID is not bound to one; -ENODEV: it has been closed. */
int iv_cm_get(struct iv_id *id, struct iv_cm_dev **cdev);
void iv_cm_put(struct iv_cm_dev *cdev);
/* All devices; returns how many. */
unsigned iv_cm_get_all(struct iv_cm_dev *cdevs[IV_CM_DEVICES]);
void iv_cm_put_all(struct iv_cm_dev *const cdevs[], unsigned n);

/* ---- cm_event.c ---- */

/* Queues an event of the ID; msg or NULL. Any thread, also the owner of a device. */
struct iv_cm_event *iv_cm_event_new(struct iv_id *id, enum rdma_cm_event_type type, int status);
void iv_cm_event_data(struct iv_cm_event *event, const void *data, size_t len);
void iv_cm_raise(struct iv_cm_event *event);
void iv_cm_raise_locked(struct iv_cm_event *event); /* iv_cm.lock is held; NULL: nothing */
void iv_cm_raise_plain(struct iv_id *id, enum rdma_cm_event_type type, int status);
/* Takes the ID's events out of its queue; those of peers' requests to it are rejected. */
void iv_cm_forget(struct iv_id *id);
/* Its events go to another channel from now on. */
void iv_cm_move(struct iv_id *id, struct iv_cm_channel *channel);
/* A synchronous ID: waits for the event of what was begun. */
int iv_cm_complete(struct iv_id *id);

/* ---- cm_id.c ---- */

struct iv_id *iv_id_new(struct rdma_event_channel *channel, void *context, enum rdma_port_space ps,
	enum ibv_qp_type type);
void iv_id_free(struct iv_id *id);
/* Binds it to a device that the caller got, or owns. */
void iv_id_use(struct iv_id *id, struct iv_cm_dev *cdev, struct iv_gid gid);
int iv_to_ip(const struct sockaddr *addr, struct wire_ip *ip, uint16_t *port);
void iv_from_ip(const struct wire_ip *ip, uint16_t port, struct sockaddr_storage *addr);
int iv_id_set_state(struct iv_id *id, enum iv_id_state from, enum iv_id_state to);
void iv_id_route(struct iv_id *id, const struct iv_cm_dev *cdev);
int iv_create_id_sync(struct rdma_cm_id **id, enum rdma_port_space ps, enum ibv_qp_type type);

/* ---- cm_request.c ---- */

uint16_t iv_cm_ip_port(const struct sockaddr_storage *addr);
/* READs outstanding, of those that are wanted. */
uint8_t iv_cm_depth(unsigned wanted);
/* Reserves a place in the backlog of who listens; NULL with the reason to reject. */
struct iv_id *iv_cm_find_listener(
	const struct cm_path *path, uint64_t service_id, bool ud, uint64_t now, unsigned *reason);
/* An ID for the peer's request, from that port of its; NULL: no memory. */
struct iv_id *iv_cm_requested_id(struct iv_id *listener, struct cm_conn *conn,
	struct iv_cm_dev *cdev, const struct cm_path *path, uint16_t sport);
/* Does it, if it listens, do so at that address of ours? */
bool iv_cm_at(const struct iv_id *id, const struct wire_ip *ip);
/* Gives the place back. */
void iv_cm_forget_request(struct iv_id *listener);
unsigned iv_cm_on_request(void *arg, struct cm_conn *conn, const struct cm_path *path,
	const struct cm_msg *msg, void **user);
/* The request has been answered, or nobody will. */
void iv_cm_answered(struct iv_id *id);
/* It does not listen any more. */
void iv_cm_unlisten(struct iv_id *id);

/* ---- cm_conn.c ---- */

/* The device of the ID, and its ownership. 0 or -errno. */
int iv_cm_begin(struct iv_id *id, struct iv_cm_dev **cdev);
/* What follows from a call is sent, and what iv_cm_begin took given back. Returns ret. */
int iv_cm_done(struct iv_cm_dev *cdev, int ret);
uint64_t iv_cm_now(const struct iv_cm_dev *cdev);
void iv_cm_on_event(void *arg, struct cm_conn *conn, void *user, const struct cm_event *event);
/* Gives the connection up. */
void iv_cm_drop_conn(struct iv_id *id);
/* After the peer's REP: the queue pair to RTS, and the RTU. 0 or -errno. */
int iv_cm_respond(struct iv_id *id);

/* ---- cm_iwarp.c: the same where the device is iWARP's (lib/iwarp/link.h) ---- */

/* Opens the ID's port on all such devices; nobody listens at some that are open. 0 or -errno. */
int iv_cm_iwarp_listen(const struct iv_id *id);
void iv_cm_iwarp_unlistened(void);
int iv_cm_iwarp_connect(struct iv_id *id, const struct rdma_conn_param *param);
int iv_cm_iwarp_accept(struct iv_id *id, const struct rdma_conn_param *param);
int iv_cm_iwarp_reject(struct iv_id *id, const void *data, size_t len);
int iv_cm_iwarp_disconnect(struct iv_id *id);
/* By the owner: */
void iv_cm_iwarp_drop(struct iv_id *id);
void iv_cm_iwarp_shutdown(struct iv_cm_dev *cdev);
unsigned iv_cm_iwarp_turn(struct iv_cm_dev *cdev, uint64_t now);
uint64_t iv_cm_iwarp_deadline(const struct iv_cm_dev *cdev);

/* ---- cm_qp.c ---- */

int iv_id_to_init(struct iv_id *id, struct ibv_qp *qp);
int iv_id_to_rts(struct iv_id *id);
void iv_id_to_err(struct iv_id *id);
void iv_id_ah(const struct iv_id *id, struct ibv_ah_attr *attr);

/* ---- cm_mcast.c ---- */

void iv_mc_joined(struct iv_cm_event *event);
void iv_mc_leave_all(struct iv_id *id);

#endif
