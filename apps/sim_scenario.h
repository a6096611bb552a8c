/* SPDX-License-Identifier: BSD-3-Clause */
/* What incline-sim runs. A scenario is a JSON object:
 *
 *	"topology"   see lib/sim/topo.h; required
 *	"seed"	     default 1
 *	"link"	     of every link: the fields of struct sim_link_conf,
 *		     "down": [[from, until], ..] ns
 *	"links"	     {"h0>s0": {..}} the same for single directions, over what "link" says
 *	"workload"   allreduce, reduce, .. barrier, permutation, incast or trace
 *	"trace"	     of workload trace: [{"time": ns, "src", "dst": names of hosts, "bytes"}, ..],
 *		     RDMA writes, each begun at its time; "bytes" is left out
 *	"bytes"	     one size, or a list of them, run one after the other
 *	"mode"	     1, 2, 3, "netreduce" or "ring"; default 2
 *	"ranks"	     hosts that take part; default all (incast: of senders)
 *	"mtu", "m", "w", "root"  of the group; default 1024, 4, 64, the topology's root
 *	"sr"	     boolean: selective acknowledgement (mode 3); default false
 *	"control"    what becomes of control messages, see sim_control.h
 *	"dcqcn"	     boolean: ECN-capable packets; default false
 *	"limit_ms"   of virtual time per size; default 60 000 */
#ifndef APPS_SIM_SCENARIO_H
#define APPS_SIM_SCENARIO_H

#include <jansson.h>

#include "apps/sim_series.h"
#include "lib/sim/coll.h"
#include "lib/sim/rdma.h"

enum { SCENARIO_MAX_SIZES = 32, SCENARIO_MAX_TRACE = 100000 };

struct scenario {
	struct sim_topo topo;
	struct sim_conf sim;
	json_t *links; /* borrowed */
	bool rdma, incast;
	struct sim_flow *trace; /* n_trace of them, or NULL */
	unsigned n_trace;
	enum ccl_collective op;
	enum ccl_mode mode;
	unsigned n_sizes, ranks, root;
	uint64_t bytes[SCENARIO_MAX_SIZES];
	uint16_t mtu, m, w;
	bool sr;
	uint64_t limit_ns;
	const char *pcap;
	uint64_t series_ns; /* 0: no series */
};

/* 0, or -errno with the field and the reason in err. doc must outlive the scenario. */
int scenario_parse(const json_t *doc, struct scenario *s, char err[CCL_ERR_LEN]);
void scenario_free(struct scenario *s);

/* Runs it; the result is an object with "runs", "links", "trace_hash", "hops", "seconds". */
int scenario_run(const struct scenario *s, json_t **result, char err[CCL_ERR_LEN]);

double sim_seconds(void); /* of real time */

/* One of EPIC's tables (25..32, 35): prints, and adds to result, our figures beside the paper's. */
int sim_epic_table(unsigned table, uint64_t max_bytes, uint64_t seed, json_t *result);

#endif
