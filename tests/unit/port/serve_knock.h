/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers of a memif that are none: what they say to a client that has come to them. */
#ifndef TEST_SERVE_KNOCK_H
#define TEST_SERVE_KNOCK_H

/* X(symbol, what the client counts, what the server does) */
#define SERVE_KNOCKS(X)                                                          \
	X(GONE, NULL, "closes")                                                  \
	X(NOISE, "server_type", "128 bytes of noise")                            \
	X(EMPTY, NULL, "a message of no bytes")                                  \
	X(SHORT, "server_length", "half of HELLO")                               \
	X(LONG, "server_length", "129 bytes")                                    \
	X(BYE, NULL, "DISCONNECT before HELLO")                                  \
	X(ACK, "server_type", "ACK before HELLO")                                \
	X(CONNECTED, "server_type", "CONNECTED before HELLO")                    \
	X(INIT, "server_type", "INIT, as if it were a client")                   \
	X(REGION, "server_fds", "ADD_REGION with a file before HELLO")           \
	X(HELLO_OLD, "server_version", "HELLO for version 1.0")                  \
	X(HELLO_NEW, "server_version", "HELLO for version 3.0")                  \
	X(HELLO_BACKWARDS, "server_version", "HELLO for versions 3.0 to 1.0")    \
	X(HELLO_NAME, "server_name", "HELLO with a name that does not end")      \
	X(HELLO_FD, "server_fds", "HELLO with a file descriptor")                \
	X(HELLO_FDS, "server_fds", "HELLO with ten of them")                     \
	X(HELLO_GONE, NULL, "HELLO, then closes")                                \
	X(HELLO_TWICE, "server_type", "HELLO twice")                             \
	X(HELLO_BYE, NULL, "HELLO, DISCONNECT")                                  \
	X(HELLO_CONNECTED, "server_type", "HELLO, CONNECTED")                    \
	X(HELLO_INIT, "server_type", "HELLO, INIT")                              \
	X(HELLO_REGION, "server_fds", "HELLO, ADD_REGION with a file")           \
	X(HELLO_REGION_NO_FD, "server_type", "HELLO, ADD_REGION without a file") \
	X(HELLO_RING, "server_fds", "HELLO, ADD_RING")                           \
	X(HELLO_CONNECT, "server_type", "HELLO, CONNECT")                        \
	X(ACKS_GONE_1, NULL, "closes after one ACK")                             \
	X(ACKS_GONE_2, NULL, "closes after two")                                 \
	X(ACKS_GONE_3, NULL, "closes after three")                               \
	X(ACKS_GONE_4, NULL, "closes after four, in place of CONNECTED")         \
	X(ACKS_HELLO, "server_type", "HELLO in place of CONNECTED")              \
	X(ACKS_ACK, "server_type", "ACK in place of CONNECTED")                  \
	X(ACKS_REGION, "server_fds", "ADD_REGION with a file in place of it")    \
	X(ACKS_NAME, "server_name", "CONNECTED with a name that does not end")   \
	X(ACKS_BYE, "server_name", "DISCONNECT with a text that does not end")   \
	X(UP_GONE, NULL, "connected, closes")                                    \
	X(UP_BYE, NULL, "connected, DISCONNECT")                                 \
	X(UP_HELLO, "server_type", "connected, HELLO")                           \
	X(UP_ACK, "server_type", "connected, ACK")                               \
	X(UP_CONNECTED, "server_type", "connected, CONNECTED again")             \
	X(UP_REGION, "server_fds", "connected, ADD_REGION with a file")          \
	X(UP_CONNECT, "server_type", "connected, CONNECT")                       \
	X(HUGE, NULL, "HELLO with the largest numbers, connected, closes")       \
	X(TINY, NULL, "HELLO with rings of one descriptor, connected, closes")

enum serve_knock {
#define X(sym, counted, text) SERVE_##sym,
	SERVE_KNOCKS(X)
#undef X
		N_SERVE_KNOCKS
};
extern const char *const serve_knock_counted[N_SERVE_KNOCKS]; /* NULL: nothing */
extern const char *const serve_knock_text[N_SERVE_KNOCKS];

/* With the client at the other end of s, which is closed: when the client has, or at once where
 * that is what the server does. `while_up`, where it is not NULL, is called while the client is
 * connected. 0, or -errno if the client neither closed nor answered within ten seconds. */
int serve_knock(int s, enum serve_knock kind, void (*while_up)(void));

#endif
