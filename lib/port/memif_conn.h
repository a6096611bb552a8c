/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside the door: one client's two sockets, and the messages on them. */
#ifndef PORT_MEMIF_CONN_H
#define PORT_MEMIF_CONN_H

#include <sys/un.h>

#include "lib/port/memif_shake.h"

enum memif_conn_state {
	CONN_SHAKE,  /* the client talks to the door */
	CONN_WAIT,   /* it has said all; the port's former client is still going, or the driver
			takes no connection now */
	CONN_HELLO,  /* connected to the driver, which has not said HELLO */
	CONN_REPLAY, /* what the client said is repeated */
	CONN_OPEN,   /* connected */
	CONN_LEAVE,  /* the driver has been told, and has not closed yet */
};

struct memif_door;

struct memif_conn {
	struct memif_conn *next;
	struct memif_door *door;
	int outer, inner; /* sockets, or -1 */
	enum memif_conn_state state;
	uint64_t until; /* of SHAKE to REPLAY */
	unsigned step;  /* messages repeated */
	int region_fd[MEMIF_REGIONS];
	struct memif_shake shake;
};

/* A socket of the kind that they talk over, and path as its address; -1 with errno. */
int memif_address(struct sockaddr_un *at, const char *path);
/* One message. At most one file descriptor is kept, *fd or -1; files says how many came and what
 * the first is. Returns its length, 0 at the end, or -errno (-EAGAIN). */
int memif_msg_recv(int socket, struct memif_msg *msg, int *fd, struct memif_files *files);
/* 0 or -errno; never waits, never raises a signal. fd -1: none. */
int memif_msg_send(int socket, const struct memif_msg *msg, int fd);

/* The next message to repeat to the driver, and the file descriptor that goes with it; false after
 * the last. event: what stands for the client's interrupts. */
bool memif_conn_next(struct memif_conn *c, int event, const struct memif_msg **msg, int *fd);
void memif_conn_drop_regions(struct memif_conn *c);

#endif
