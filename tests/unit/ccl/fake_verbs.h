/* SPDX-License-Identifier: BSD-3-Clause */
/* A libibverbs of the test's own: devices on one imaginary switch that adds whole messages. Nothing
 * moves by itself: fake_step delivers one result or one acknowledgement, chosen by a seeded
 * generator, so that a test decides about order and time. It checks what a NIC would rely on:
 * registered memory, queue sizes, send buffers that do not change before the acknowledgement, and
 * the window. A breach ends the program with a message. */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum { FAKE_MAX = 8 };

/* n devices named fake0.., device i with address 10.77.0.(10+i) at GID 1, and RoCE MTU mtu. The
 * queue pair made on device i is rank i's. */
void fake_init(unsigned n, unsigned mtu, uint64_t seed);
void fake_fini(void); /* checks that everything was freed */

struct ibv_context *fake_context(unsigned i); /* of an open device, to be closed by fake_fini */

/* true: ibv_poll_cq moves everything that can move, for blocking calls in threads. */
void fake_auto(bool on);

/* One random event; false if nothing can happen. */
bool fake_step(void);

/* Counts by rank. */
unsigned fake_sends(unsigned rank);     /* messages posted */
unsigned fake_delivered(unsigned rank); /* results delivered */
unsigned fake_rnr(void);                /* results that found no receive posted */

/* The window each rank has to keep: posted minus finished (acknowledged and delivered, as far as
 * the program has polled) <= w. */
void fake_window(unsigned w);

/* Attributes with which a queue pair was brought up. */
const struct ibv_qp_attr *fake_attr(unsigned rank);
enum ibv_qp_state fake_state(unsigned rank);

/* Mischief. */
void fake_fail_send(unsigned rank, enum ibv_wc_status status); /* the oldest posted send, now */
void fake_hold(unsigned rank, bool on);         /* what this rank has sent does not arrive */
void fake_hold_acks(unsigned rank, bool on);    /* it arrives, but is not acknowledged */
void fake_shorten(unsigned rank, unsigned msg); /* result msg arrives one element short */
void fake_flip(unsigned rank, unsigned msg, unsigned byte); /* one byte of the result changes */
void fake_fail_rtr(unsigned rank, int err);                 /* modify to RTR fails */

#endif
