/* SPDX-License-Identifier: BSD-3-Clause */
/* What a selective host (flag SR) knows of packets, as lib/rnic/sr.c does: which have arrived,
 * which are lost (docs/inc-protocol.md, 4.10), which it has kept. All are indices below MC_SR_PSN.
 */
#ifndef MODEL_HOST_SR_H
#define MODEL_HOST_SR_H

#include "tests/model/model.h"

/* ---- requester ---- */
/* `next` goes on to what is lost, or to high. */
void mc_sr_pass(struct mc_host_state *h);
/* The packet at `next` leaves, before next and high move. */
void mc_sr_sent(struct mc_host_state *h);
/* una moves to `una`. */
void mc_sr_acked(struct mc_host_state *h, unsigned una);
/* A timer, or RNR is over: all that has not arrived is sent again. */
void mc_sr_go_back(struct mc_host_state *h);
/* A NAK of una with len bytes of map. */
void mc_sr_nak(struct mc_host_state *h, const uint8_t *map, unsigned len);
/* What no step depends on any more is put to 0. */
void mc_sr_settle(struct mc_host_state *h);

/* ---- responder ---- */
/* epsn has come, and goes on; true: an ACK is due. */
bool mc_sr_take(struct mc_host_state *h, bool ackreq);
/* One behind it; true: a NAK is due, however often there was one. */
bool mc_sr_keep(struct mc_host_state *h, unsigned i, bool ackreq);
/* What is said now says what was kept: as bits from epsn + 1 on. */
uint64_t mc_sr_map(struct mc_host_state *h);

#endif
