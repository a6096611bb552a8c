/* SPDX-License-Identifier: BSD-3-Clause */
/* What outlives the manager: keep.c writes it, keep_load.c reads it. */
#ifndef MANAGER_KEEP_H
#define MANAGER_KEEP_H

#include "ctrl/manager/priv.h"

/* The first epoch that may be given: above all that this store has seen, and at least first. 0, or
 * -errno with a reason in err that names the record. */
int mg_keep_epoch(struct manager *m, uint64_t first, uint64_t *epoch, char err[MANAGER_ERR_LEN]);

/* Goes on with what is in the store. A run whose switches, hosts or links are not in the fabric any
 * more, or which changed, is dropped, and said: switches' groups of it go as nobody's. A record
 * that makes no sense: -EBADMSG, named in err. */
int mg_keep_load(struct manager *m, char err[MANAGER_ERR_LEN]);

/* Writes down what has changed. -errno, at once and from then on: nothing may be told to anybody.
 */
int mg_keep(struct manager *m);

/* Before an act that is not written down (the end of what is nobody's): a store that several
 * managers share is written to, so that it says whether it is ours; as mg_keep. */
int mg_keep_ours(struct manager *m);

/* A record of what was learnt of the fabric, or set (takes over value; NULL: not any more), for the
 * next mg_keep. */
void mg_keep_learnt(struct manager *m, const char *key, json_t *value);

/* Inside of both. */
int mg_put_number(struct manager *m, const char *key, uint64_t number);
bool mg_end_names_switch(enum mgr_end end); /* its culprit is a switch */

#endif
