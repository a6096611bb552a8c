/* SPDX-License-Identifier: BSD-3-Clause */
/* The door of the memif servers: the public socket of a memif port is ours, the driver listens at
 * one that only this process reaches, in the directory PATH.d of mode 0700. The reasons:
 * the driver of DPDK 22.11 panics when a client closes before HELLO is sent, and believes what
 * clients say (memif_shake.h). So the door itself talks with a client until it has said CONNECT,
 * checks every word, and only then repeats all of it to the driver, to the end even if the client
 * goes away meanwhile. After that it hands DISCONNECT both ways; packets go through shared
 * memory and never pass here.
 *
 * A client of a port whose last client is just going waits for that. Bounded: 32 conversations, the
 * oldest unfinished one goes first; two seconds until CONNECT; one client per port. Every refusal
 * is counted by name. The driver gets an event descriptor of ours for a client's interrupts, which
 * nobody reads: it would block in, or die of, what a client may give it. So clients must poll, as
 * DPDK's do.
 *
 * Several ports may share a socket, each with an id of its own. One thread serves all doors of a
 * process; the functions are for the control thread. */
#ifndef PORT_MEMIF_DOOR_H
#define PORT_MEMIF_DOOR_H

#include "lib/port/memif_shake.h"
#include "lib/port/port.h"

enum { MEMIF_INNER_LEN = 40 };

/* Before the device of port id is made: inner is the socket that its driver is to bind. Claims the
 * public path. -errno with the reason in err: -EADDRINUSE, -EEXIST "id: ..." */
int memif_door_open(
	const char *path, uint16_t id, char inner[MEMIF_INNER_LEN], char err[PORT_ERR_LEN]);
/* The device has started: its clients may come. */
int memif_door_admit(const char *path, uint16_t id, char err[PORT_ERR_LEN]);
/* Before the device is closed: nobody is on the way to its driver when this returns. */
void memif_door_shut(const char *path, uint16_t id);
/* After that; also in place of admit. */
void memif_door_close(const char *path, uint16_t id);

#endif
