/* SPDX-License-Identifier: BSD-3-Clause */
/* A way for packets of an AllReduce through the switch that bench-inc can measure. */
#ifndef BENCH_INC_PATH_H
#define BENCH_INC_PATH_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/unit/inc/fixture.h"

enum { PATH_BURST = 32, PATH_FAN_IN = 4, PATH_MAX_PARTS = 24, PATH_MAX_WORKERS = 8 };

/* What is asked for. */
struct path_spec {
	const char *mode; /* "II", "III", "NetReduce" */
	uint32_t mtu;
	size_t pool;     /* bytes of frames */
	unsigned groups; /* that share them */
	bool acks;       /* members acknowledge each message of results, as hosts do */
	/* Of a switch with this many: who receives from the members, and has their groups. */
	unsigned worker, workers; /* 0 of 0: of a switch with one */
};

struct path;

/* A part of the switch's state, flat: restored for each repetition. */
struct path_block {
	void *at, *copy;
	size_t bytes;
};

struct path {
	const char *name;
	struct path_spec spec;
	uint32_t n_psn;  /* data packets per rank, of all groups */
	uint8_t **frame; /* n_psn x PATH_FAN_IN frames, PSN by PSN, groups in turns */
	size_t frame_len;
	struct inc_group **g;     /* spec.groups */
	struct path_block *block; /* before the first data packet */
	unsigned n_blocks;
	/* Sends all frames through, from the restored blocks on. Nanoseconds, and cycles by part.
	 */
	uint64_t (*run)(struct path *p);
	void (*close)(struct path *p);
	unsigned n_parts;
	struct {
		char name[32];
		uint64_t cycles;
	} part[PATH_MAX_PARTS];
	void *priv;
};

uint64_t path_now_ns(void);

/* The engine's functions alone (Mode-II, one group), the whole graph between ring ports, with
 * groups of Mode-II or III or with a NetReduce ring. */
void path_engine_open(struct path *p, const struct path_spec *spec);
void path_graph_open(struct path *p, const struct path_spec *spec);

/* What one copy more of a result costs the graph, in ns: duplicates are answered to one member, and
 * to all. The best of reps. */
double path_replica_ns(uint32_t mtu, unsigned reps);

/* inc_workers.c: a worker alone and n at the same time, a thread and CPU each, with a group each, n
 * up to PATH_MAX_WORKERS. A row per payload, printed and appended to results. 0, or -1 after a line
 * on stderr. */

int path_workers(unsigned n, unsigned rounds, size_t pool, json_t *results);

/* For all: group parameters, the control message, the data frames (into p->frame[i]), copies of the
 * blocks and their way back. */
enum { PATH_M = 4, PATH_W = 8, PATH_START_PSN = 256, PATH_HEAD_ROOM = 128 };
uint32_t path_n_psn(const struct path_spec *spec);
uint32_t path_psn(const struct path *p, uint32_t frame);
struct inc_group *path_group(const struct path *p, uint32_t frame);
int path_control_frame(struct path *p, unsigned group, unsigned ep, uint8_t *out);
/* A member's acknowledgement of all results before next. */
int path_ack_frame(struct path *p, unsigned ep, uint32_t next, uint8_t *out);
void path_make_frames(struct path *p);
void path_keep(struct path *p, void *block, size_t bytes);
void path_restore(struct path *p);

/* inc_netreduce.c: frame i of the ring's packets. Room for mtu + PATH_HEAD_ROOM. */
struct sw;
unsigned path_ring_open(struct path *p, struct sw *sw);
void path_ring_frames(struct path *p, struct sw *sw);
void path_ring_close(struct sw *sw, unsigned ring);

#endif
