/* SPDX-License-Identifier: BSD-3-Clause */
/* Knocks at the socket of a memif server: connections that are no client's. */
#ifndef TEST_KNOCK_H
#define TEST_KNOCK_H

#include <stdint.h>

/* X(symbol, what the server counts, what the knock does) */
#define KNOCKS(X)                                                                     \
	X(CLOSE, "gone", "connects and closes")                                       \
	X(GARBAGE, "type", "128 bytes of noise")                                      \
	X(SHORT, "length", "half of INIT")                                            \
	X(LONG, "length", "129 bytes")                                                \
	X(UNINVITED, "type", "CONNECT before INIT")                                   \
	X(INIT_GONE, "gone", "INIT, then closes")                                     \
	X(VERSION, "version", "INIT for version 1.0")                                 \
	X(MODE, "mode", "INIT for IP")                                                \
	X(ID, "id", "INIT for a port that is not there")                              \
	X(BUSY, "busy", "INIT for a port that has a client")                          \
	X(INIT_NAME, "name", "INIT with a name that does not end")                    \
	X(INIT_FD, "fds", "INIT with a file descriptor")                              \
	X(NO_FD, "fds", "ADD_REGION without a file descriptor")                       \
	X(MANY_FDS, "fds", "ADD_REGION with ten of them")                             \
	X(REGION_INDEX, "region", "ADD_REGION 65535")                                 \
	X(REGIONS, "region", "17 regions")                                            \
	X(REGION_SIZE, "region_size", "a region longer than its file")                \
	X(REGION_HUGE, "region_size", "a region of 2^64 - 1 bytes")                   \
	X(REGION_PIPE, "region_size", "a pipe for a region")                          \
	X(REGION_FILE, "region_file", "a file that can shrink")                       \
	X(RING_TWICE, "ring", "the same ring twice")                                  \
	X(RING_INDEX, "ring", "ring 65535")                                           \
	X(RING_SIZE, "ring_size", "a ring of 2^255 descriptors")                      \
	X(RING_REGION, "ring_place", "a ring in region 65535")                        \
	X(RING_PLACE, "ring_place", "a ring at the end of its region")                \
	X(RING_ODD, "ring_place", "a ring that is not aligned")                       \
	X(RINGLESS, "incomplete", "CONNECT with one ring")                            \
	X(CONNECT_NAME, "name", "CONNECT with a name that does not end")              \
	X(COOKIE, "driver", "rings without the cookie")                               \
	X(CONNECT_GONE, NULL, "connects as a client does and closes without looking") \
	X(CLIENT, NULL, "connects as a client does, waits until it is, closes")       \
	X(PIPE_CLIENT, NULL, "the same with closed pipes for interrupts")             \
	X(CONNECT_TWICE, "type", "connected, CONNECT again")

enum knock {
#define X(sym, counted, text) KNOCK_##sym,
	KNOCKS(X)
#undef X
		N_KNOCKS
};
extern const char *const knock_counted[N_KNOCKS]; /* NULL: may be nothing */
extern const char *const knock_text[N_KNOCKS];

/* Knocks once, for port id. Waits, at most ten seconds, until the server has closed or, where it
 * has nothing to object, has answered. busy_id: a port that has a client. 0, or -errno if there was
 * no answer. */
int knock(const char *path, enum knock kind, uint16_t id, uint16_t busy_id);

/* Connects as a client whose packets are in a file of its own (MEMIF region 1): a socket, and its
 * rings, KNOCK_RINGS_LEN bytes to be unmapped; or -errno. */
enum { KNOCK_RINGS_LEN = 4096 };
int knock_with_buffers(const char *path, uint16_t id, int buffers, void **rings);
/* Sends a packet: the first bytes of that file. */
void knock_send(void *rings);

/* Connects, and that is all: a socket, or -errno. */
int knock_connect(const char *path);

#endif
