/* SPDX-License-Identifier: BSD-3-Clause */
/* Two software RNICs in one process: frames go from one to the other through 64 buffers, as over
 * memif, with both ends' work on one core. What a step refuses ends the program. */
#ifndef BENCH_ENDS_H
#define BENCH_ENDS_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/mrc/transport.h"
#include "lib/rnic/rnic.h"

enum {
	BURST = 32,
	SLOTS = 2 * BURST,
	SLOT = 4608,
	MEMORY = 1 << 20, /* bytes that are written, and as many for answers */
	DEPTH = 64,
	MAX_QP = 64,
};

struct end {
	struct rnic *rnic;
	struct rnic_pd *pd;
	struct rnic_cq *cq;
	struct rnic_mr *mr;
	struct rnic_qp *qp[MAX_QP];
	uint8_t *memory;
};

struct load {
	const char *name;
	enum ibv_wr_opcode opcode;
	uint32_t size, mtu; /* mtu: 256, 1024 or 4096 */
	unsigned qps;
	bool bandwidth;                     /* of payload, which has a limit; else messages count */
	bool mrc;                           /* over paths of UDP; else RC */
	const struct rnic_mrc_paths *paths; /* of mrc; NULL: 128, drawn */
	bool no_cc;                         /* of mrc: without NSCC */
	bool selective;                     /* SR in place of RC */
};

extern uint8_t bench_frames[SLOTS][SLOT];

void check(bool ok, const char *what);
/* Of this core's work: others that run on it do not count. */
uint64_t work_ns(void);
uint64_t clock_ns(void);

void end_create(struct end *e, unsigned index);
void end_destroy(struct end *e);
/* All queue pairs of a load, at both ends, to RTS. */
void connect_all(struct end ends[2], const struct load *load);
void disconnect_all(struct end ends[2], const struct load *load);

void post(struct end *e, struct end *peer, const struct load *load, unsigned qp, uint32_t at);
void post_recv(struct end *e, const struct load *load, unsigned qp, uint32_t at);
/* What `from` has to send, at most a burst, arrives. Returns frames. */
unsigned carry(struct end *from, struct end *to);
/* So many messages of a load: how many per second of work. */
double run(struct end ends[2], const struct load *load, uint64_t messages);

#endif
