/* SPDX-License-Identifier: BSD-3-Clause */
/* Two verbs devices at the ends of one cable or two, in one process: on virtual time in one thread,
 * or with datapath threads on the real clock. */
#ifndef TEST_VERBS_FABRIC_H
#define TEST_VERBS_FABRIC_H

#include <pthread.h>

#include "lib/verbs/incline_dv.h"
#include "lib/verbs/port_ops.h"

enum { CABLE_FRAMES = 1024, CABLE_FRAME_CAP = 4400 };

struct fabric;

struct fabric_end {
	struct fabric *fabric;
	unsigned index, port;
	struct {
		uint8_t data[CABLE_FRAME_CAP];
		uint32_t len;
		bool back;         /* given back, but not one before it */
	} queue[CABLE_FRAMES];     /* to be received here */
	unsigned head, read, tail; /* the frames from head to read are with the device */
	unsigned staged;           /* taken by tx, waiting for tx_flush; they follow the tail */
	unsigned closed;
	struct ibv_context *context; /* of the first port */
};

struct fabric {
	struct fabric_end end[2], second[2]; /* first and second port of each */
	unsigned n_ports;                    /* before fabric_open; default 1 */
	bool same_addresses;                 /* likewise: the second port has the first's */
	pthread_mutex_t lock;
	bool real_time;
	uint64_t now;
	uint64_t rng;
	unsigned loss;    /* per mille of the frames */
	unsigned corrupt; /* per mille: a bit of the payload is flipped */
	/* Bit N: of port N. */
	unsigned cut;                    /* lose everything */
	unsigned link_down;              /* is what is said of the link */
	unsigned room;                   /* what tx_room says; 0: as much as the queue holds */
	unsigned flush;                  /* frames that tx_flush passes on at a time; 0: all */
	bool alone;                      /* a device that spins does not run the other */
	bool blocked;                    /* tx_room says 0 */
	void (*on_tx)(struct fabric *f); /* while the sender owns its device; or NULL */
	void *arg;                       /* for it */
	uint64_t n_tx, n_lost, n_corrupt;
	uint16_t mtu;
	unsigned max_qp;             /* of a device; 0: the core's default */
	struct iv_netdev *netdev[2]; /* before fabric_open */
	bool iwarp;                  /* likewise: their queue pairs are iWARP's */
	bool lldp;                   /* likewise: hosts a and b, ports nic0 and nic1 */
	unsigned workers;            /* likewise: receive workers of both */
};

struct fabric *fabric_create(void);
/* Opens a device at both ends: 10.77.0.1 and 10.77.0.2, also fd77::1 and fd77::2; 10.77.1.1,
 * fd77:1::1 and so on at the second port. */
void fabric_open(struct fabric *fabric, bool thread);
/* Closes what is open and frees. */
void fabric_destroy(struct fabric *fabric);
/* One turn of both devices, 1 us. */
void fabric_step(struct fabric *fabric);

/* A queue pair at one end with what it needs. */
struct endpoint {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;
	size_t len;
	uint8_t timeout; /* as ibv_qp_attr, for endpoint_rts */
	uint8_t port;    /* of the device, from 1 on; 0 stands for 1 */
};

enum { EP_DEPTH = 64, EP_PSN = 0xfffff0 };
void endpoint_create(struct endpoint *ep, struct ibv_context *context, size_t len, bool events);
void endpoint_destroy(struct endpoint *ep);
int endpoint_init(struct endpoint *ep);
int endpoint_rtr(struct endpoint *ep, uint32_t dest_qpn, const union ibv_gid *dgid, int sgid_index);
int endpoint_rts(struct endpoint *ep);
/* Both to RTS, facing each other by the GIDs of that index of their port, which is the same. */
void endpoints_connect(struct endpoint *a, struct endpoint *b, int gid_index);

int post_recv(struct endpoint *ep, uint64_t wr_id, size_t offset, uint32_t len);
int post_send(struct endpoint *ep, uint64_t wr_id, enum ibv_wr_opcode opcode, size_t offset,
	uint32_t len);
/* Polls (and thereby runs) until there is a completion. */
void wait_wc(struct endpoint *ep, struct ibv_wc *wc);

#endif
