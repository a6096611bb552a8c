/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of incline-mrcperf: two ends of a TCP connection make queue pairs by the MRC API and write
 * to each other's memory. The client says what is measured. */
#ifndef APPS_MRCPERF_H
#define APPS_MRCPERF_H

#include <jansson.h>
#include <mrc.h>
#include <mrc_ctl.h>
#include <stdbool.h>
#include <stdio.h>

enum { MRCPERF_QPS = 64, MRCPERF_DEPTH = 256, MRCPERF_GID_TEXT = 33, MRCPERF_PROFILE = 1 };

struct srv6_paths;
struct mrcperf_watch;

/* The same at both ends. */
struct mrcperf_plan {
	unsigned qps, depth; /* depth: messages of a queue pair that may be on their way */
	unsigned imm;        /* writes with immediate: each message is checked as it arrives */
	unsigned long min, max, iters; /* bytes; messages of each queue pair and size */
	unsigned seed;
};

struct mrcperf_end {
	struct mrcperf_plan plan;
	const char *device; /* NULL: the first */
	const char *paths;  /* file; NULL: none, EVs are the library's */
	const char *maps;   /* files of incline-map's agents; NULL: none */
	struct srv6_paths *map;
	unsigned n_paths; /* of map, to the peer */
	struct mrcperf_watch *watch;
	int gid;
	FILE *in, *out; /* of the TCP connection */
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct mrc_context *ctx;
	struct mrc_cq *cq;
	struct mrc_qp *qp[MRCPERF_QPS];
	/* A slot of max bytes for each message of each queue pair, then the words below. */
	uint8_t *buf;
	size_t slots;              /* bytes of all of them */
	volatile uint64_t *credit; /* of each queue pair: messages that the peer has checked */
	struct ibv_mr *mr;
	uint64_t peer_addr;
	uint32_t peer_rkey;
};

/* ---- mrcperf_conn.c: 0, or -1 with a message on stderr ---- */

int mrcperf_listen(struct mrcperf_end *e, const char *port);
int mrcperf_dial(struct mrcperf_end *e, const char *host, const char *port);
/* From the device to queue pairs that are connected to the peer's. */
int mrcperf_open(struct mrcperf_end *e);
void mrcperf_close(struct mrcperf_end *e);
/* A line to the peer, and the number that its line begins with after word; -1: something else. */
int mrcperf_say(struct mrcperf_end *e, const char *word, unsigned long number);
long mrcperf_hear(struct mrcperf_end *e, const char *word);
/* What the client wants next: 1 and the size of messages, 0 that it ends, -1 something else. */
int mrcperf_next(struct mrcperf_end *e, unsigned long *size);

/* ---- mrcperf_paths.c: likewise ---- */

/* Reads e->paths, and finds e->gid by it. */
int mrcperf_paths_read(struct mrcperf_end *e);
void mrcperf_paths_free(struct mrcperf_end *e);
/* The profile of all paths to the peer; 0, the built-in one, without a file. */
int mrcperf_profile(struct mrcperf_end *e, const union ibv_gid *peer, uint64_t *id);
/* The EV of a profile that is a path's address. */
struct mrc_ctl_ev mrcperf_ev(const struct srv6_paths *p, uint32_t ev, const uint8_t address[16]);

/* ---- mrcperf_map.c: likewise ---- */

/* Denies paths of MRCPERF_PROFILE as agents of incline-map see the fabric; nothing without maps. */
int mrcperf_watch_start(struct mrcperf_end *e, const union ibv_gid *peer);
void mrcperf_watch_stop(struct mrcperf_end *e);
/* {"denied": [EV...], "denials", "returns"}, null without maps; a new reference. */
json_t *mrcperf_watch_json(struct mrcperf_end *e);

/* ---- mrcperf_run.c ---- */

struct mrcperf_row {
	unsigned long size, messages;
	double seconds;
	unsigned long checked, wrong; /* messages */
};

/* All messages of one size. -1: an end has failed. */
int mrcperf_send(struct mrcperf_end *e, unsigned long size, struct mrcperf_row *row);
int mrcperf_receive(struct mrcperf_end *e, unsigned long size);

#endif
