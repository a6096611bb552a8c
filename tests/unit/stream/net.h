/* SPDX-License-Identifier: BSD-3-Clause */
/* Two stacks, a network between them that loses, repeats and overtakes, virtual time; and programs
 * that send each other streams whose every byte is known. */
#ifndef STREAM_NET_H
#define STREAM_NET_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/stream/stream.h"

enum { NET_FRAMES = 8192, NET_FRAME = 9300, CLIENT = 0, SERVER = 1 };

#define NET_DROP UINT64_MAX

struct net_frame {
	struct net_frame *next;
	uint64_t at;
	uint16_t len;
	uint8_t to;
	uint8_t bytes[NET_FRAME];
};

struct net {
	struct stream *s[2];
	uint64_t now, seed;
	uint64_t delay;                  /* one way, ns */
	uint32_t loss, repeat, overtake; /* of a million */
	unsigned tx_most;                /* frames that a data path sends in a turn; 0: all */
	uint64_t sent, lost;
	/* A link each way before the delay: bit/s, 0: none; bytes that wait, more are dropped. */
	uint64_t rate, buffer, free_at[2], dropped;
	struct net_frame *queue, *last, *unused;
	unsigned frames; /* made so far, NET_FRAMES at most */
	/* Around every call into a control path: what it must not see. NULL: nothing. */
	void (*shut)(void *arg, bool shut);
	void *arg;
	uint8_t mac[2][6];
	struct wire_ip ip[2];
	uint32_t isn; /* of the next one; then random ones */
	void (*look)(struct net *n, uint8_t *frame, size_t len, int to);
	/* How much later than others a frame comes, ns; NET_DROP: never. */
	uint64_t (*fate)(struct net *n, const uint8_t *frame, size_t len, int to);
};

/* change: of the defaults, may be NULL. */
struct net *net_new(uint64_t seed, void (*change)(struct stream_config *config, int side));
void net_free(struct net *n);
uint32_t net_random(struct net *n, uint32_t below);
/* Delivers, turns, sends; then goes on to the next time at which something happens, at most to
 * `until`. false: nothing ever happens again. */
bool net_step(struct net *n, uint64_t until);
void net_inject(struct net *n, int to, const uint8_t *frame, size_t len);
void net_put(
	struct net *n, int to, const uint8_t *frame, size_t len, uint64_t at); /* it arrives then */
/* A frame from outside to the server or the client. */
void net_segment(struct net *n, int to, const struct wire_ip *src, const struct wire_tcp *tcp,
	const char *payload);

/* One end's program. */
struct program {
	struct net *net;
	int side;
	uint32_t conn;
	bool open, closed, close_asked, eof;
	int64_t result;
	uint8_t *tx, *rx;
	size_t tx_len, rx_len; /* all of them */
	size_t sent, acked, posted, received;
	unsigned sends, recvs; /* under way */
	uint32_t piece;        /* of a call, at most */
	uint64_t recv_after;   /* buffers are posted from then on */
	uint64_t recv_pause;   /* between two posts */
};

uint8_t net_byte(int from, size_t i); /* of the stream that this side sends */
void program_init(struct program *p, struct net *n, int side, size_t tx_len, size_t rx_len);
void program_free(struct program *p);
/* Connects client to server (port 80), and both programs run until both connections are closed, or
 * until a time: true if they are closed. */
void programs_connect(struct program p[2]);
bool programs_run(struct program p[2], uint64_t until);
void programs_check(const struct program p[2]); /* every byte, both ways */
/* Nothing is left in a stack that has no connections. */
void net_check_empty(struct net *n);

/* ---- one long flow over one link ---- */

struct net_path {
	uint64_t rate, rtt; /* bit/s, ns */
	uint16_t mtu;
	size_t bytes; /* of a measurement */
};

/* Of a configuration: this MTU, and room for what is under way on a long and fast path. */
void net_roomy(struct stream_config *c, uint16_t mtu);
/* The client sends bytes to the server, over a link with room for one product of rate and delay and
 * for what a switch has anyway. */
struct net *flow_new(uint64_t seed, const struct net_path *path,
	void (*change)(struct stream_config *config, int side), struct program p[2], size_t bytes);
void flow_open(struct program p[2]);
/* Until `of` has come to bytes, looked at every `step` ns. A flow that stands fails the test. */
void flow_run(
	struct program p[2], size_t (*of)(const struct program p[2]), size_t bytes, uint64_t step);
size_t flow_received(const struct program p[2]); /* what the server was told of */
void flow_free(struct program p[2]);
/* Takes SACK-permitted out of SYNs: net.look. */
void net_no_sack(struct net *n, uint8_t *frame, size_t len, int to);

#endif
