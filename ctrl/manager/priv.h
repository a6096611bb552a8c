/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside the manager, each part on those before it: base.c has the clock and finds things, keep.c
 * writes what outlives it, ask.c asks agents, adopted.c has jobs of before, discover.c what only
 * LLDP says, cabling.c what LLDP says of the file's links, fabric.c the graph, switches.c listens
 * to agents, show.c tells operators, policy.c is what they set, jobs.c talks with ranks,
 * keep_load.c reads what a predecessor wrote, manager.c is all of it. */
#ifndef MANAGER_PRIV_H
#define MANAGER_PRIV_H

#include "ctrl/manager/manager.h"
#include "ctrl/manager/store.h"
#include "lib/ctl/rpc.h"
#include "lib/mgr/job.h"

enum {
	MANAGER_MAX_RUNS = 16384,
	MANAGER_CONTROL_LEN = 108,
	MANAGER_IP_LEN = 46,
	/* With what is learnt, as many as a file may have; both ends of links. */
	MG_MAX_HOSTS = 8192,
	MG_MAX_NODES = 4096 + MG_MAX_HOSTS,
	MG_MAX_PORTS = 2 * 65536,
};

#define MG_SETTLE_NS 3000000000 /* for a new manager to hear its switches */

struct mg_switch {
	char name[MGR_NAME_LEN], control[MANAGER_CONTROL_LEN], ip[MANAGER_IP_LEN];
	unsigned node;
	struct mgr_node is;    /* as the graph has it */
	bool connected, known; /* known: it has said hello on this connection */
	bool met;              /* it has said hello to this manager */
	bool compared;         /* and what it has was compared with what it should */
	uint64_t heard, asked; /* when last */
	char chassis[64];      /* that it says by LLDP, "": none */
	json_t *workers;       /* NUMA node of each, -1: nobody knows; NULL: it has not told */
	uint64_t dead;         /* since when nobody listens there; 0: somebody does, or who knows */
	bool was_dead;         /* for long enough to be said so */
	LIST_HEAD(, mg_cable) cables;
	unsigned n_cables;
	/* With discover, while it is known: whom each port hears, addresses of neighbours there,
	 * and why something that is heard there is not learnt, a sentence. */
	json_t *at_ports, *ips, *refused;
	json_t *mbps;                   /* of ports that say it, likewise */
	uint64_t block[MGR_MAX_BLOCKS]; /* sizes of the book's blocks there, as written down */
	json_t *named, *numbered;       /* by port how many names, and addresses, it has taught */
	unsigned n_names;               /* hosts and addresses that it has taught */
};

struct mg_host {
	char name[MGR_NAME_LEN], ip[MANAGER_IP_LEN];
	unsigned node;
	bool learnt; /* this address: a host may have several */
};

/* A port of a switch that hears by LLDP a node of the fabric that the file does not have there. */
struct mg_cable {
	LIST_ENTRY(mg_cable) link;
	struct mg_switch *sw;
	uint64_t since;
	char port[MGR_NAME_LEN], line[MGR_LINE_LEN]; /* line: a sentence */
	bool unused;                                 /* the link that the file has there */
	bool told;                                   /* by the last hello */
};

/* A job that was there before this manager was: its ranks have said so. */
struct mg_adopted {
	LIST_ENTRY(mg_adopted) link;
	char job[MGR_NAME_LEN];
	uint64_t epoch, seen;
	bool there; /* a switch has groups of it: else ranks may say anything */
};

struct manager {
	struct manager_io io;
	uint64_t heartbeat_ns, started;
	bool settled;           /* every switch was heard, or had its time: jobs are placed */
	struct mgr_shape shape; /* of the fabric: the rest is the job's */
	struct mgr_graph *g;
	struct mgr_book *b;
	struct mgr_place *p;
	struct mgr_jobs *jobs;
	const struct mgr_policy *policy, *file_policy; /* of trees to come; as configured */
	unsigned tenant_jobs, tenant_ranks;
	unsigned cycle_ms;                  /* of windows */
	uint64_t not_the_rank, place_taken; /* requests refused for that: manager.who */
	bool lldp_decides;                  /* else it only tells */
	bool discover;                      /* what the file does not have */
	uint64_t learnt_bps;                /* of links that were learnt */
	unsigned file_ports;                /* ports below are the file's, and so are links */
	unsigned n_sw, n_hosts, host_room;
	struct mg_switch *sw;
	struct mg_host *host;
	json_t *chassis;      /* by chassis the index of the only switch that says it */
	json_t *host_chassis; /* by name of a host that links were learnt to: what it says */
	json_t *by_ip;        /* index of a host */
	json_t *sw_ips;       /* addresses of switches */
	LIST_HEAD(, manager_peer) peers; /* that have joined */
	LIST_HEAD(, mg_adopted) adopted;
	unsigned n_adopted;
	uint64_t now;                  /* of the call that is being served: mg_clock */
	uint64_t ticked, slept;        /* last; what passed meanwhile and does not count */
	struct manager_peer *peer;     /* whose request that is */
	struct store store, own_store; /* own_store: in memory, if none was given */
	uint64_t born, epoch_bound;    /* keep.c */
	char *page;                    /* of metrics, when it was last made; NULL: never */
	size_t page_len;
	uint64_t page_made;
	int failed; /* the store has, -errno: nothing is told to anybody */
};

/* ---- base.c ---- */

void __attribute__((format(printf, 3, 4)))
mg_say(struct manager *m, enum journal_level level, const char *fmt, ...);

/* The time of a call, into now. From one tick to the next a heartbeat passes at most: what is
 * longer (a process that was stopped, a disk that hung) is nobody's silence, for who has spoken
 * could not be heard. */
void mg_clock(struct manager *m, uint64_t now);
/* Of whom jobs must be that the asker sees and changes; NULL: he may see all. */
const char *mg_tenant(const struct manager *m);
const char *mg_phase_name(enum mgr_phase phase);
struct mg_switch *mg_switch_of(struct manager *m, unsigned node); /* NULL: none */
const struct mg_host *mg_host_by_ip(const struct manager *m, const char *ip);
/* Entry i of m->host is there, or is not any more: another takes its index. */
int mg_host_added(struct manager *m, unsigned i);
void mg_host_gone(struct manager *m, unsigned i);
bool mg_is_switch_ip(const struct manager *m, const char *ip);
/* Index of the link at a port of a node, and the link; -ENOENT. */
int mg_link_at(struct manager *m, unsigned node, const char *port, struct mgr_link *l);
/* The node that has spoken by LLDP, -ENOENT: none of the fabric's. */
int mg_cable_who(const struct manager *m, const json_t *heard);

/* ---- ask.c ---- */

/* Takes over params (NULL: none). */
void mg_ask(
	struct manager *m, struct mg_switch *s, const char *id, const char *method, json_t *params);
/* Ends the job's epochs to this one on a switch. */
void mg_end_epoch(struct manager *m, struct mg_switch *s, const char *id, const char *job,
	uint64_t epoch, bool take_away);
/* What is older goes, and the switch knows whose groups may come. */
void mg_clear_way(struct manager *m, struct mg_switch *s, const char *id, const struct mgr_job *job,
	uint64_t epoch);
/* Ends an epoch that is no run's, on all switches. */
void mg_end_everywhere(struct manager *m, const char *job, uint64_t epoch, bool take_away);

/* ---- adopted.c ---- */

/* So many nanoseconds yet ranks of jobs from before may be heard of; 0: no more. */
uint64_t mg_learns_for(const struct manager *m);
struct mg_adopted *mg_adopted_find(struct manager *m, const char *job, uint64_t epoch);
void mg_adopted_end(struct manager *m, struct mg_adopted *a, const char *why);

/* ---- fabric.c ---- */

int mg_fabric_open(struct manager *m, const json_t *config, char err[MANAGER_ERR_LEN]);
void mg_fabric_close(struct manager *m);
/* What a switch has said of itself. -EPROTO: nonsense. */
int mg_fabric_hello(struct manager *m, struct mg_switch *s, const json_t *hello);
void mg_fabric_state(struct manager *m, struct mg_switch *s, bool up);
/* A port of a switch; jobs over its link are told if that has gone, or is not there at the first
 * word of a connection. */
void mg_fabric_port(struct manager *m, struct mg_switch *s, const char *port, bool up);
/* The switches of a plan's tree, as a group file has them. NULL without memory. */
json_t *mg_tree_json(const struct manager *m, const struct mgr_tree *tree);

/* ---- cabling.c ---- */

/* What a switch hears at its ports by LLDP: learnt, or noted and said where it is not what is
 * known.
 * Takes effect with the next mg_fabric_port. */
void mg_cabling_hello(struct manager *m, struct mg_switch *s, const json_t *hello);
bool mg_cable_is_wrong(const struct mg_switch *s, const char *port);
/* The cable after c (NULL: the first), of all switches; NULL: no more. */
const struct mg_cable *mg_cable_next(const struct manager *m, const struct mg_cable *c);
/* The link that is not used for longest, and how many there are; NULL: none. */
const struct mg_cable *mg_cable_unused(const struct manager *m, unsigned *n);
void mg_cabling_close(struct manager *m);

/* ---- discover.c ---- */

bool mg_is_learnt(const struct manager *m, unsigned link);
/* What the file does not have, and this switch hears. */
void mg_discover_hello(struct manager *m, struct mg_switch *s, const json_t *hello);
/* Why what is heard at a port is not learnt: a sentence; NULL: it is, or there is nothing. */
const char *mg_discover_refused(const struct mg_switch *s, const char *port);
/* It cannot tell any more whom it hears. */
void mg_discover_deaf(struct mg_switch *s);
/* What was learnt before a restart, records as keep.c has them by what follows their kind. Those
 * that the file leaves no place for are deleted. */
void mg_discover_restore(struct manager *m, json_t *links, json_t *hosts);

/* ---- switches.c ---- */

/* Does what the jobs want done. */
void mg_act(struct manager *m);
void mg_switches_tick(struct manager *m);

/* ---- device.c ---- */

/* Modes for a rank that joins, by its device and what its group file asks for. -errno: it is
 * refused, and why. */
int mg_device_modes(const json_t *params, unsigned *modes, struct rpc_error *e);

/* ---- jobs.c ---- */

int mg_call(
	void *arg, const char *method, const json_t *params, json_t **result, struct rpc_error *e);
void mg_jobs_tick(struct manager *m);

/* ---- policy.c ---- */

int mg_policy_set(struct manager *m, const json_t *params, json_t **result, struct rpc_error *e);
/* As its record has it. -EBADMSG: it names none; or the store's error. */
int mg_policy_restore(struct manager *m, const json_t *record);

/* ---- show.c ---- */

int mg_show(struct manager *m, const char *method, const json_t *params, json_t **result,
	struct rpc_error *e);

#endif
