/* SPDX-License-Identifier: BSD-3-Clause */
/* How the processes of a group meet before they have queue pairs: rank 0 listens on a UNIX or TCP
 * socket, the others connect, and everything goes through rank 0. One JSON object per line, of 4 MB
 * at most: 2 KB of each rank of the largest group, in one line for all of them. Knows nothing of
 * RDMA: another bootstrap (MPI, PMIx, a scheduler) would offer these same functions.
 *
 * All calls block, each for a bounded time. Errors are negative errno with one sentence in err. One
 * thread per object. */
#ifndef CCL_BOOT_H
#define CCL_BOOT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct ccl_boot;

enum { CCL_BOOT_ERR_LEN = 512, CCL_BOOT_MAX_LINE = 4 << 20 };

/* Rank 0 begins to listen and returns at once; the others connect, for at most timeout_ms. address
 * is unix:/PATH or tcp:HOST:PORT. */
int ccl_boot_open(const char *address, unsigned rank, unsigned n_ranks, unsigned timeout_ms,
	struct ccl_boot **boot, char err[CCL_BOOT_ERR_LEN]);
void ccl_boot_close(struct ccl_boot *boot); /* may be NULL */

/* Rank 0: waits for one object of every other rank; all[r] becomes it (a new reference, all[0]
 * stays). -ETIMEDOUT names the ranks that are missing; -ECONNABORTED: a rank sent an error or
 * went away, known once everybody has come (so that everybody can be told) or the time is over. On
 * an error nothing is left in all. */
int ccl_boot_gather(struct ccl_boot *boot, json_t **all, char err[CCL_BOOT_ERR_LEN]);

/* The same, and as soon as one of the objects is a call (ccl_boot_watch), all others are called.
 * Rank 0 calls at once if why is not NULL. */
int ccl_boot_gather_called(
	struct ccl_boot *boot, const char *why, json_t **all, char err[CCL_BOOT_ERR_LEN]);

/* Rank 0: sends each[r], or the same object to all others. Best effort: who does not get it will be
 * missed in the next gather. -EMSGSIZE: an object is too long for a line; -ENOMEM, also for one
 * that is NULL: all were told an error in its place, if there was memory for that. */
int ccl_boot_scatter(struct ccl_boot *boot, json_t *const *each, char err[CCL_BOOT_ERR_LEN]);
int ccl_boot_broadcast(struct ccl_boot *boot, const json_t *object, char err[CCL_BOOT_ERR_LEN]);

/* Others: sends an object to rank 0; waits for its answer (a new reference). */
int ccl_boot_tell(struct ccl_boot *boot, const json_t *object, char err[CCL_BOOT_ERR_LEN]);
int ccl_boot_hear(struct ccl_boot *boot, json_t **object, char err[CCL_BOOT_ERR_LEN]);

/* All ranks: every rank's object, by rank, at all of them; own is consumed, *all a new reference.
 */
int ccl_boot_exchange(struct ccl_boot *boot, json_t *own, json_t **all, char err[CCL_BOOT_ERR_LEN]);

/* Sends an error to all others (rank 0) or to rank 0: their gather or hear fails with this reason.
 */
void ccl_boot_abort(struct ccl_boot *boot, const char *reason);

/* Others: as ccl_boot_hear, but passes over calls of rank 0. */
int ccl_boot_hear_called(struct ccl_boot *boot, json_t **object, char err[CCL_BOOT_ERR_LEN]);

/* All ranks: returns when everybody has called it. */
int ccl_boot_barrier(struct ccl_boot *boot, char err[CCL_BOOT_ERR_LEN]);

/* Between gatherings: has a rank sent an error, or gone away without having said anything? 0, or
 * -ECONNABORTED with the reason; -ESTALE: an object with text "call" has come, which calls all
 * ranks to a gathering, and that text. Does not wait and loses nothing of what was sent. */
int ccl_boot_watch(struct ccl_boot *boot, char err[CCL_BOOT_ERR_LEN]);

/* Ranks whose connection has been closed, as "2,3"; "" if none is known to have gone. Does not
 * wait. */
void ccl_boot_gone(struct ccl_boot *boot, char *ranks, size_t cap);

#endif
