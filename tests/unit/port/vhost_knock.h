/* SPDX-License-Identifier: BSD-3-Clause */
/* Knocks at a vhost port's socket: messages as the vhost-user protocol has them, of a front end
 * that is none, or that lies. */
#ifndef TEST_VHOST_KNOCK_H
#define TEST_VHOST_KNOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { VHOST_REGION = 1 << 21, VHOST_PAGE = 4096 };

/* X(symbol, what the knock does) */
#define VHOST_KNOCKS(X)                                       \
	X(CLOSE, "connects and closes")                       \
	X(GARBAGE, "300 bytes of noise")                      \
	X(HALF, "half of a header")                           \
	X(NONSENSE, "an unknown request, sizes out of range") \
	X(NO_FD, "memory without a file descriptor")          \
	X(MANY_FDS, "one region with three of them")          \
	X(UNINVITED_FD, "requests that have none, with one")  \
	X(SHORT, "memory that its file does not have")        \
	X(NOISY, "memory and rings full of noise")

enum vhost_knock {
#define X(sym, text) VHOST_##sym,
	VHOST_KNOCKS(X)
#undef X
		N_VHOST_KNOCKS
};
extern const char *const vhost_knock_text[N_VHOST_KNOCKS];

/* A connection on which nobody waits for more than ten seconds, or -errno. */
int vhost_come(const char *path);
/* Says what the knock says; 0, or -errno if it could not be made. What was said has been read, or
 * refused, where memory was offered. Who is at the other end may have hung up. */
int vhost_knock(int s, enum vhost_knock kind);
/* False: it has hung up. */
bool vhost_answers(int s);

/* A file for memory: of this length, with noise in it; or -errno. */
int vhost_noise(off_t bytes);
/* A whole front end with one region of this file and two rings. */
void vhost_offer(int s, int fd);

#endif
