/* SPDX-License-Identifier: BSD-3-Clause */
/* A libibverbs of the test's own: devices on one imaginary switch that reduces and copies whole
 * messages, as the control messages say. Nothing moves by itself: fake_step delivers one result or
 * one acknowledgement, chosen by a seeded generator, so that a test decides about order and time.
 * It checks what a NIC and a switch would rely on: registered memory, queue sizes, send buffers
 * that do not change before the acknowledgement, PSNs, the window, fences. A breach ends the
 * program with a message. */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum { FAKE_MAX = 8 };

enum fake_kind { FAKE_SINGLE, FAKE_MODE1, FAKE_MODE2, FAKE_MODE3 }; /* modes: mixed groups */
void fake_set_kind(enum fake_kind kind);

/* n devices named fake0.., device i with address 10.77.0.(10+i) at GID 1, and RoCE MTU mtu. Queue
 * pairs made on device i are rank i's: the g-th is its membership in group g. */
void fake_init(unsigned n, unsigned mtu, uint64_t seed);
void fake_fini(void); /* checks that everything was freed */

struct ibv_context *fake_context(unsigned i); /* of an open device, to be closed by fake_fini */

/* true: ibv_poll_cq moves everything that can move, for blocking calls in threads. */
void fake_auto(bool on);

/* One random event; false if nothing can happen. */
bool fake_step(void);

/* As inc_dv_qp_skip. */
int fake_skip(struct ibv_qp *qp, int dir, uint32_t from, uint32_t count);

/* Whether the device of a rank is one that can (inc_dv_is_supported); it cannot at first. */
void fake_can_skip(unsigned rank, bool yes);

/* Counts by rank, of group 0. */
unsigned fake_sends(unsigned rank);     /* messages posted */
unsigned fake_delivered(unsigned rank); /* results delivered */
unsigned fake_rnr(void);                /* results of own requests that found no receive posted */
unsigned fake_qps(unsigned rank);       /* queue pairs, of all groups */

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
void fake_flip(unsigned rank, unsigned msg, unsigned byte);   /* one byte of the result changes */
void fake_fail_rtr(unsigned rank, int err);                   /* modify to RTR fails */
void fake_fail_rtr_times(unsigned rank, int err, unsigned n); /* so often, then no more */

#endif
