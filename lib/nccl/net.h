/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection of NCCL's network: one way, over one RC queue pair. Who receives says for each
 * buffer that it is there, by an empty SEND with the buffer's length, and only then is it sent
 * into: no message meets a queue pair without a receive. The TCP connection by which they have met
 * stays, and shows when the partner has ended. */
#ifndef NCCL_NET_H
#define NCCL_NET_H

#include "lib/nccl/im.h"

enum {
	NP_REQUESTS = NCCL_MAX_REQUESTS,
	NP_ROOM = 2 * NP_REQUESTS, /* of the queues: buffers announced, and those that are over but
				      not yet acknowledged */
};

struct np_net_request {
	struct np_conn *on;
	bool used, done;
	uint32_t len;
};

/* What both say when they meet, who has called first. */
struct np_hello {
	uint64_t random; /* of the handle */
	uint32_t qpn, mtu;
	uint8_t ip[16];
};

enum np_stage { NP_CONNECTING, NP_HELLO, NP_READY, NP_OPEN };

struct np_conn {
	pthread_mutex_t lock;
	const struct np_port *port;
	bool sends;
	int fd;
	enum np_stage stage;
	uint64_t since; /* the set-up began */
	struct np_hello own, peer;
	size_t told, heard; /* bytes, of this stage */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	struct np_net_request request[NP_REQUESTS];
	unsigned n_announced;   /* receives: SENDs not yet acknowledged */
	uint32_t room[NP_ROOM]; /* sends: buffers announced and not used, a ring */
	unsigned room_head, room_tail;
	uint64_t looked; /* at the TCP connection */
	unsigned gone;   /* looks that have found it closed */
	nccl_rc failed;
};

uint64_t np_clock(void);

/* ---- net.c ---- */

/* A receive for the partner's next announcement. 0 or an errno. */
int np_await(struct np_conn *c);

#endif
