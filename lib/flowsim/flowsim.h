/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs on a fabric, at the granularity of collectives (EPIC appendix L): GPUs compute and
 * communicate in turns, groups' rates are max-min fair, and whether a group goes by the network is
 * decided by the manager's own policies and book (lib/mgr).
 *
 * A group by the network moves its ranks' buffer once over each link of its tree, each way; by a
 * ring of its hosts it moves twice the buffer from each to the next. With EDT and spatial
 * multiplexing a job's groups are placed when it starts and keep what they got until it ends; with
 * temporal multiplexing each collective asks anew, and goes by the ring if nothing is free. A
 * group's collectives are one per iteration, which stands for all of its layers'.
 *
 * Event by event on virtual nanoseconds; the same configuration gives the same results to the last
 * bit. Heap; one owner, no clock, no I/O. */
#ifndef FLOWSIM_FLOWSIM_H
#define FLOWSIM_FLOWSIM_H

#include "lib/flowsim/fabric.h"
#include "lib/flowsim/trace.h"

/* Fitted to tables 40 to 43, as the paper does not say it: per GPU, by which a ring moves twice the
 * buffer as well. */
static const uint64_t FS_SCALEUP_BPS = 16000000000000;

struct fs_config {
	const struct mgr_policy *policy; /* NULL: rings */
	bool scaleup;         /* the tp GPUs of a group share a server, whose links are their own */
	bool scaleup_inc;     /* which reduces, too */
	uint64_t scaleup_bps; /* 0: FS_SCALEUP_BPS */
	bool exact;   /* rings move 2 (n - 1) / n times the buffer; the paper's figures have 2 */
	bool hashed;  /* rings' ways by hash, as ECMP has it; else over the links with fewest flows
		       */
	bool scatter; /* jobs on servers picked at random; else on the first that are free */
	uint64_t seed;
};

struct fs_result {
	uint64_t submit_ns, start_ns, end_ns; /* all GPUs are given to it at the start */
	unsigned groups, in_network;          /* collectives over the fabric */
	double bytes, in_network_bytes;       /* of their buffers */
};

struct fs_totals {
	uint64_t now_ns, events;
	uint64_t placed, refused;       /* groups */
	unsigned peak_groups;           /* on a switch */
	uint64_t peak_bytes;            /* of memory, on all switches together */
	double mean_groups, mean_bytes; /* over time, on all switches together */
};

struct fs_sim;

/* Jobs by time of submission. The fabric and the jobs outlive it, and nobody else uses that fabric
 * meanwhile. -EINVAL: a job that is too large for the fabric, whose GPUs are not whole groups of
 * tp, whose tp is not the first job's or does not divide a leaf's hosts, that comes before the one
 * before: err says which; -ENOMEM. */
int fs_sim_new(struct fs_fabric *f, const struct fs_config *config, const struct fs_job *job,
	unsigned n, struct fs_sim **out, char err[FS_ERR_LEN]);
void fs_sim_free(struct fs_sim *s);

/* What happens at the next point in time. 1: there is more; 0: all jobs have ended; -ENOMEM. */
int fs_sim_step(struct fs_sim *s);

/* Jobs that have ended; a job's, its end_ns 0: it has not. */
unsigned fs_sim_ended(const struct fs_sim *s);
const struct fs_result *fs_sim_result(const struct fs_sim *s, unsigned job);
struct fs_totals fs_sim_totals(const struct fs_sim *s);

#endif
