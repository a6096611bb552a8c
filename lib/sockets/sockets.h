/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside lib/sockets: stream sockets of unmodified programs on lib/stream. One device per process,
 * one lock (sockets_enter): all that is not said to be otherwise is called with it. A program's
 * descriptor is one end of a pair of UNIX sockets, which mirrors whether the stream can be read and
 * written: so poll, select and epoll of any mixture of descriptors are the kernel's own. Bytes
 * never pass the pair. Errors are negative errno. */
#ifndef SOCKETS_SOCKETS_H
#define SOCKETS_SOCKETS_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/stream/stream.h"

enum {
	SOCKETS_MAX_FD = 65536,
	SOCKETS_CHUNK = 65536,  /* of a receive buffer: one receive of the stream */
	SOCKETS_DIRECT = 16384, /* a waiting call's buffer from this on is posted itself, up to */
	SOCKETS_DIRECT_MAX = 131072,
	SOCKETS_BULK = 4096, /* if the last one got so much */
	SOCKETS_BUFFER = 8 * SOCKETS_CHUNK,
	SOCKETS_SENDS = 8, /* under way per socket; more data joins the next one */
	SOCKETS_MAX_STACKS = 8,
};

enum sock_state {
	SOCK_BOUND, /* to an address of the device */
	SOCK_LISTENING,
	SOCK_RESOLVING, /* the peer's MAC */
	SOCK_CONNECTING,
	SOCK_OPEN,
	SOCK_DEAD, /* its connection has ended */
};

TAILQ_HEAD(sock_list, sock);

/* A program's socket. It lives until its last descriptor is closed and its connection has ended. */
struct sock {
	/* Of those that are resolving, listening, waiting to be accepted, or closed. */
	TAILQ_ENTRY(sock) link;
	TAILQ_ENTRY(sock) dirty; /* its mirror may be wrong */
	bool on_dirty;
	enum sock_state state;
	int family;
	unsigned refs;  /* descriptors, and calls that wait */
	int self, peer; /* the pair: as the program's, and ours; -1: closed */
	int kernel;     /* a kernel's socket that keeps options; -1: none yet */
	struct wire_ip local, remote;
	uint16_t local_port, remote_port;
	struct stack *stack;
	uint32_t conn;
	bool has_conn, closed, eof, read_shut, write_shut;
	int error; /* the next call's, positive; 0: none */
	/* Positions in the stream: of what has arrived, what is in completed receives, what the
	 * program has read, what buffers are posted for. */
	uint64_t rx_have, rx_done, rx_read, rx_posted;
	uint64_t tx_put, tx_posted, tx_acked; /* written, given to the stream, acknowledged */
	unsigned sends, receives;             /* under way */
	uint8_t *rx, *tx;                     /* rings of SOCKETS_BUFFER */
	uint8_t *direct;                      /* a waiting call's buffer, posted; NULL: none */
	uint64_t direct_at, direct_len;       /* bytes of the stream that it is for */
	pthread_t direct_by;                  /* whose call it is */
	bool bulk;                            /* the last call got SOCKETS_BULK at least */
	uint64_t rcv_timeout, snd_timeout;    /* ns, 0: none */
	bool reset_at_close;                  /* SO_LINGER of 0 */
	/* The mirror: watched by somebody; says readable; says full; has ended; was read empty. */
	bool watched, says_read, says_full, says_end, drained;
	struct sock_list waiting; /* of a listener */
	unsigned n_waiting, backlog;
	bool any, v6only; /* listens on all addresses; of its family only */
};

struct stack {
	struct stream *stream;
	struct wire_ip ip;
	struct sock **by_conn;
	/* Bytes that programs have received: placed in their own buffers; copied from the ring. */
	uint64_t direct, copied;
};

/* ---- device.c ---- */

extern pthread_mutex_t sockets_lock;
/* Whose address is it, without opening anything: -ENOENT if the device is not configured or it is
 * neither an own address nor zero. Takes no lock of the program's, needs none held. */
bool sockets_configured(void);
bool sockets_own(const struct wire_ip *ip);
bool sockets_reaches(const struct wire_ip *ip);
/* Opens the device at the first call: -ENETDOWN, with the reason on stderr. */
int sockets_open(void);
unsigned sockets_stacks(struct stack **stacks);
/* The stack to reach an address from; NULL: none of that family. */
struct stack *sockets_source(const struct wire_ip *ip);
/* Receives, runs what is due, sends, tells sockets. Returns how much there was to do. */
unsigned sockets_turn(void);
uint64_t sockets_now(void);
/* Lets the resolution of a peer's address go on: 0 known, -EAGAIN, -EHOSTUNREACH. */
int sockets_resolve(const struct wire_ip *ip, uint8_t mac[6]);
/* A child of fork: the device is the parent's, all sockets are dead here. */
bool sockets_forked(void);
/* Also in a child of vfork, which has its own descriptors and its parent's memory. A system call.
 */
bool sockets_foreign(void);

/* ---- sock.c ---- */

/* The program's descriptor fd of a kernel socket becomes one of a socket of ours. */
int sock_adopt(int fd, int family, struct sock **sock);
/* The socket of a descriptor, NULL: none. Without the lock. */
struct sock *sock_of(int fd);
void sock_set(int fd, struct sock *s);
void sock_event(struct stack *stack, const struct stream_completion *c);
void sock_ref(struct sock *s);
void sock_unref(struct sock *s); /* the last one closes it */
void sock_resolve_all(void);
/* Closed sockets whose connection has not ended; bytes: that have something to send. */
bool sock_lingering(bool bytes);

int sock_bind(struct sock *s, const struct wire_ip *ip, uint16_t port);
int sock_listen(struct sock *s, int backlog);
/* -EINPROGRESS. */
int sock_connect(struct sock *s, const struct wire_ip *ip, uint16_t port);
/* A connection that waits: its socket and a descriptor; -EAGAIN: none. */
int sock_accept(struct sock *s, int flags, struct sock **accepted);

/* ---- mirror.c ---- */

bool sock_readable(const struct sock *s);
bool sock_writable(const struct sock *s);
/* Its mirror may be wrong from now on; no matter any more. */
void sock_touch(struct sock *s);
void sock_untouch(struct sock *s);
/* Brings the mirrors of all that were touched up to date. before_wait: also those that say too
 * much, which costs system calls that a busy program does not need. */
void sock_sync(bool before_wait);

/* ---- rings.c ---- */

/* Up to len bytes; 0: end; -EAGAIN. peek: they stay. */
ssize_t sock_read(struct sock *s, void *buf, size_t len, bool peek);
ssize_t sock_write(struct sock *s, const void *buf, size_t len);
int sock_shutdown(struct sock *s, int how);
/* A receive of the stream says with its completion where it began and how long it was to be. */
enum { SOCKETS_LEN_BITS = 18 };
static inline uint64_t sock_receive_cookie(uint64_t at, uint64_t len)
{
	return at << SOCKETS_LEN_BITS | len;
}
/* The cookie has the low bits of the position, which is near `about`. */
static inline uint64_t sock_received_at(uint64_t cookie, uint64_t about)
{
	const int64_t ahead = (int64_t)(cookie - (about << SOCKETS_LEN_BITS));

	return about + (uint64_t)(ahead >> SOCKETS_LEN_BITS);
}
/* What there is room for, and what there is to send, is posted to the stream; the last of it also
 * ends the sending direction that the program has shut. */
void sock_post_receives(struct sock *s);
void sock_post_sends(struct sock *s);

/* ---- direct.c ---- */

/* Before a call waits for bytes, of which there are none: what comes goes into its buffer. false:
 * it does not, and the ring is posted. */
bool sock_direct_begin(struct sock *s, void *buf, size_t len);
/* The buffer is the call's again: bytes in it, which have been read; or, if the call is given up
 * and reads nothing, 0, and they are the next one's. */
size_t sock_direct_end(struct sock *s, bool read);

/* ---- exports.c, for whoever calls libc itself ---- */

/* The lock, for a program's thread: with it the thread cannot be cancelled, as it would be by many
 * a function of libc's, which would leave the lock behind. Not nested. */
void sockets_enter(void);
void sockets_leave(void);

/* libc's function of that name, the next one behind ours. */
#define REAL(name)                                   \
	({                                           \
		static void *_Atomic real_;          \
		if (real_ == NULL)                   \
			real_ = sockets_real(#name); \
		(__typeof__(&name))(uintptr_t)real_; \
	})
void *sockets_real(const char *name);

#endif
