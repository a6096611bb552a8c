/* SPDX-License-Identifier: BSD-3-Clause */
/* RDMA writes over connections of any number of queue pairs, RC or MRC: transfers that are told of
 * at both ends, from which collectives are made, or writes one behind the other for ever. */
#ifndef SIM_CONN_H
#define SIM_CONN_H

#include "lib/mrc/transport.h"
#include "lib/sim/sim.h"

enum { SIM_CONN_MAX_QPS = 16 };

struct sim_conns;
struct sim_conn;

struct sim_conn_conf {
	unsigned from, to; /* hosts */
	unsigned qps;      /* that every transfer is cut into equal parts for; 0 stands for 1 */
	bool mrc;          /* over paths of sim_srv6_paths; else RC */
	bool ecmp;         /* MRC's packets are STEV's, not SRv6's: switches choose by the EV */
	unsigned paths, active;    /* paths 0: all; with ecmp that many EVs, 0: MRC_MAX_EVS */
	struct rnic_mrc_attr attr; /* of mrc, with attr_mask, beside the paths */
	unsigned attr_mask;
	uint64_t start_ns; /* nothing leaves before, from sim_conns_start on */
	bool endless;      /* posts by itself, from its start on */
};

struct sim_conns_conf {
	struct sim *sim;
	const struct sim_conn_conf *conn;
	unsigned n;
	enum ibv_mtu mtu;
	uint32_t message; /* bytes of a write, at most 1 MB */
	uint64_t seed;    /* of paths */
	/* A transfer has arrived, all of it and all before it; nth: from 0 on. May post at
	 * connections that begin where this one ends. NULL: nobody wants to know. */
	void (*arrived)(void *arg, unsigned conn, unsigned nth);
	void *arg;
};

/* -EINVAL, -ENOMEM, or what the RNIC or sim_srv6_paths say. Takes an app of each host. */
int sim_conns_open(const struct sim_conns_conf *conf, struct sim_conns **conns);
void sim_conns_close(struct sim_conns *conns);

/* Endless ones begin, and what was posted leaves. */
void sim_conns_start(struct sim_conns *conns);
/* So many bytes more. Writes that fail end the run with -EIO (sim_run). */
void sim_conn_post(struct sim_conns *conns, unsigned conn, uint64_t bytes);
/* No more writes are posted by themselves. */
void sim_conn_stop(struct sim_conns *conns, unsigned conn);

uint64_t sim_conn_acked(const struct sim_conns *conns, unsigned conn); /* bytes */
/* Completed at the sender, all that was posted. */
bool sim_conn_idle(const struct sim_conns *conns, unsigned conn);
struct rnic_qp *sim_conn_qp(const struct sim_conns *conns, unsigned conn, unsigned qp);
/* Of MRC. */
const struct rnic_mrc_paths *sim_conn_paths(const struct sim_conns *conns, unsigned conn);
/* Sum over the connection's senders of a counter of the transport's own (rnic_qp_counter). */
uint64_t sim_conn_count(const struct sim_conns *conns, unsigned conn, const char *name);
/* Retransmission timeouts of all hosts' NICs since the simulation began. */
uint64_t sim_conns_timeouts(const struct sim_conns *conns);

#endif
