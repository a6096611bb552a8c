/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside the door: memif_serve.c has the thread, memif_door.c the doors, memif_talk.c what is said
 * at them. All of it is called under the lock. */
#ifndef PORT_MEMIF_DOOR_PRIV_H
#define PORT_MEMIF_DOOR_PRIV_H

#include "lib/port/memif_conn.h"
#include "lib/port/memif_door.h"

/* ---- memif_serve.c: the thread, its poll set and its lock ---- */

/* Once per process; it waits, and costs nothing, when the last door is gone. */
int memif_serve_start(char err[PORT_ERR_LEN]);
void memif_serve_lock(void);
void memif_serve_unlock(void);
/* Until the thread has done something, a second at most; the lock is free meanwhile. */
void memif_serve_wait(void);

/* who: a door or a conversation, which hears of it. 0 or -1 with errno. */
int memif_watch(int fd, void *who);
void memif_unwatch(int fd);
void memif_unwatch_and_close(int *fd); /* -1 afterwards, and maybe before */
/* The event descriptor that nobody reads, in place of a client's. */
int memif_no_interrupt(void);
uint64_t memif_in_ms(unsigned ms);

/* ---- memif_door.c: the doors ---- */

bool memif_door_has_admitted(const struct memif_door *d, uint32_t id);
/* Where the driver listens. */
void memif_door_inner(const struct memif_door *d, char inner[MEMIF_INNER_LEN]);
/* For the thread. An event: false if it is of no door. What time brings: the returned time is when
 * there is more, UINT64_MAX never. */
bool memif_door_hear(const void *who);
uint64_t memif_door_pass_time(uint64_t now);

/* ---- memif_talk.c: conversations ---- */

/* With the client of a new socket. */
void memif_talk_begin(struct memif_door *d, int fd);
bool memif_talk_on_the_way(const struct memif_door *d, uint16_t id); /* to the port's driver */
void memif_talk_end_port(const struct memif_door *d, uint16_t id);   /* those with its driver */
void memif_talk_end_all(const struct memif_door *d);
void memif_talk_count(enum memif_refusal why);
/* As for doors. */
bool memif_talk_hear(const void *who);
uint64_t memif_talk_pass_time(uint64_t now);

#endif
