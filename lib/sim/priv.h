/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the parts of the simulator. */
#ifndef SIM_PRIV_H
#define SIM_PRIV_H

#include <stdio.h>

#include "dataplane/inc/mode1.h"
#include "lib/sim/sim.h"
#include "lib/verbs/port_ops.h"

/* A frame on a link or in a queue; it has one owner. */
struct sim_frame {
	struct sim_frame *next;
	unsigned len, cap;
	bool first;  /* goes ahead of others where links let it */
	unsigned in; /* link + 1 that it came to a switch by; 0: the node's own */
	uint8_t data[];
};

/* What happens at a time: a frame arrives over a link, or (frame NULL) a node or the control plane
 * wakes up, or a link's list goes on. */
struct sim_event {
	uint64_t at, order;
	struct sim_frame *frame;
	unsigned index; /* of the link, or the node: hosts, then switches; control; queue.c's */
};

struct sim_host;

/* A host's port, in one plane. */
struct sim_port {
	struct sim_host *host;
	unsigned plane, waiting;
	struct sim_frame *first, **last; /* inbox */
};

struct sim_host {
	struct sim *sim;
	struct ibv_context *context;
	unsigned index;
	struct sim_port port[SIM_MAX_PLANES];
	struct {
		sim_app run;
		void *arg;
	} app[SIM_MAX_APPS];
	unsigned n_apps;
	bool ready;
	uint64_t wake; /* the earliest wake-up that is scheduled */
	uint64_t frozen_until;
};

struct sim_peer {
	unsigned node, link;
};

struct sim_node_switch {
	struct sim_switch pub;
	struct mode1_device *mode1; /* NULL: no Mode-I group so far */
	struct mode1 **of_slot;     /* its groups */
	struct sim_agent *agent;    /* NULL: nobody has asked it for anything so far */
	unsigned n_hosts, n_ports;  /* ports: hosts first */
	struct sim_peer *port;
	/* [switch]: inter-switch ports on a shortest way there; bit 0 is port n_hosts. */
	uint64_t *next;
	uint64_t wake; /* the earliest wake-up that is scheduled */
};

struct sim {
	struct sim_conf conf;
	const struct sim_topo *topo;
	uint64_t now, order, hops, hash;
	struct sim_event *heap; /* in events, which is what was allocated */
	void *events;
	unsigned n_events, cap_events;
	struct sim_link *link;
	unsigned n_links;
	struct sim_host *host;
	struct sim_node_switch *sw;
	unsigned *ready; /* hosts that have to run: a ring, each host in it at most once */
	unsigned ready_head, n_ready;
	struct sim_frame *free[2]; /* small, full */
	unsigned frame_cap;
	FILE *pcap;
	sim_tap tap;
	void *tap_arg;
	sim_sampler sampler;
	void *sampler_arg;
	uint64_t every, sample_at;
	struct sim_control *control;
	unsigned n_colls; /* made so far */
	struct sim_group *groups;
	unsigned *by_ip; /* open addressing: node + 1 */
	unsigned ip_mask;
};

void sim_capture_frame(struct sim *sim, unsigned link, const struct sim_frame *frame);
struct sim_frame *sim_frame_get(struct sim *sim, unsigned len);
void sim_frame_put(struct sim *sim, struct sim_frame *frame);
/* The frame enters the link; it is gone. */
void sim_send(struct sim *sim, unsigned link, struct sim_frame *frame);
void sim_switch_wake(struct sim *sim, unsigned sw, uint64_t at);

/* ---- queue.c: links with priority flow control ---- */

/* The frame waits for its turn; then sim_transmit. */
void sim_queue_put(struct sim *sim, unsigned link, struct sim_frame *frame, bool ahead);
/* An event of sim_queue_wake. */
void sim_queue_event(struct sim *sim, unsigned event);
void sim_queue_close(struct sim_link *link);
/* sim_queue_event(event) at that time. */
void sim_queue_wake(struct sim *sim, unsigned event, uint64_t at);
/* The frame enters the wire, past every list; it is gone. */
void sim_transmit(struct sim *sim, unsigned link, struct sim_frame *frame, bool ahead);

/* Node of an address: hosts, then switches; -1: nobody's. */
int sim_node_of(const struct sim *sim, const struct wire_ip *ip);

int sim_host_open(struct sim *sim, unsigned i);
void sim_host_close(struct sim_host *h);
/* The frame is the host's, or gone: false if its receive ring is full. */
bool sim_host_rx(struct sim_host *h, unsigned plane, struct sim_frame *frame);
int sim_host_run(struct sim_host *h);
/* It runs soon: asks for its memory; next: of that, which is there by now, for its first frame's.
 */
void sim_host_prefetch(const struct sim_host *h, bool next);

int sim_switches_open(struct sim *sim);
void sim_switches_close(struct sim *sim);
/* Timers of the switch's groups. */
void sim_switch_tick(struct sim *sim, unsigned i);
void sim_switch_rx(struct sim *sim, unsigned i, unsigned port, struct sim_frame *frame);

/* Sends a frame of the switch's own on its way to dst, as it would forward it. */
void sim_switch_send(
	struct sim *sim, unsigned sw, struct sim_frame *frame, const struct wire_ip *dst);
/* Port on a shortest way to a node; -ENOENT: there is none. */
int sim_port_to_node(const struct sim *sim, unsigned sw, unsigned node);
/* Aggregation memory of every switch: an address space that is filled as it is used. */
extern const size_t SIM_ARENA_BYTES;

/* ---- switch_srv6.c: uSIDs ---- */

/* The frame is addressed to a uSID of this switch, and is gone; false: it is not. */
bool sim_srv6_rx(struct sim *sim, unsigned sw, struct sim_frame *frame);
/* What a host's port has left of a path's address: rnic_mrc_config.sid. Zero: the topology has no
 * planes. */
struct wire_ip sim_srv6_sid(const struct sim *sim, unsigned host, unsigned plane);

/* ---- switch_rnic.c: connections of Mode-I groups end in a device of the switch ---- */

/* As mode1_create and mode1_connect. */
int sim_mode1_make(struct sim *sim, unsigned sw, struct inc_group *g, char err[INC_ERR_LEN]);
int sim_mode1_connect(struct sim *sim, unsigned sw, struct inc_group *g, char err[INC_ERR_LEN]);
void sim_mode1_stop(struct sim *sim, unsigned sw, unsigned slot);
void sim_mode1_forget(struct sim *sim, unsigned sw, unsigned slot);
void sim_mode1_rx(struct sim *sim, unsigned sw, unsigned port, const struct sim_frame *frame,
	const struct wire_pkt *pkt);
void sim_mode1_close(struct sim_node_switch *s);
/* Does what is due, sends what is there. */
void sim_mode1_turn(struct sim *sim, unsigned sw);

/* ---- multicast.c ---- */

/* A packet to a group; the frame is gone. */
void sim_multicast_rx(struct sim *sim, unsigned sw, unsigned port, struct sim_frame *frame,
	const struct wire_pkt *pkt);
void sim_multicast_close(struct sim *sim);

/* ---- switch_ring.c: NetReduce ---- */

/* False: the frame is no ring's and goes on; true: it is gone. */
bool sim_ring_rx(struct sim *sim, unsigned sw, unsigned port, struct sim_frame *frame,
	const struct wire_pkt *pkt);

void sim_hash_frame(struct sim *sim, unsigned link, const struct sim_frame *frame);
/* Of a control connection. */
void sim_hash_bytes(struct sim *sim, unsigned where, const char *data, size_t len);
/* An acknowledgement or CNP. */
bool sim_is_answer(const struct sim_frame *frame);
void sim_mark_ce(uint8_t *frame, unsigned len);

#endif
