/* SPDX-License-Identifier: BSD-3-Clause */
/* A way for packets of an AllReduce through the switch that bench-inc can measure. */
#ifndef BENCH_INC_PATH_H
#define BENCH_INC_PATH_H

#include <stddef.h>
#include <stdint.h>

#include "tests/unit/inc/fixture.h"

enum { PATH_BURST = 32, PATH_FAN_IN = 4, PATH_MAX_PARTS = 24 };

struct path;

struct path {
	const char *name;
	uint32_t mtu, n_psn; /* data packets of the operation, per rank */
	uint8_t **frame;     /* n_psn x PATH_FAN_IN frames, PSN by PSN */
	size_t frame_len;
	struct inc_group *g;
	void *block; /* the group before the first data packet: restored for each repetition */
	/* Sends all frames through, from the restored block on. Nanoseconds, and cycles by part. */
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

/* The engine's functions alone, or the whole graph between ring ports. pool: bytes of frames. */
void path_engine_open(struct path *p, uint32_t mtu, size_t pool);
void path_graph_open(struct path *p, uint32_t mtu, size_t pool);

/* For both: group parameters, the control message, the data frames (into p->frame[i], which have
 * room for frame_room bytes), and the copy of the block. fx.g is the path's group. */
enum { PATH_M = 4, PATH_W = 8, PATH_START_PSN = 256, PATH_HEAD_ROOM = 128 };
uint32_t path_n_psn(uint32_t mtu, size_t pool);
int path_control_frame(struct path *p, unsigned ep, uint8_t *out);
void path_make_frames(struct path *p);

#endif
