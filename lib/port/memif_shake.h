/* SPDX-License-Identifier: BSD-3-Clause */
/* What the other end of a memif (protocol 2.0) says, checked message by message: a client until it
 * is connected, a server always. Pure: no sockets, no files; memif_conn.c has those. The driver of
 * DPDK 22.11 believes most of it: a ring that is added twice, a region number out of range, a file
 * that is too short or a second HELLO end its process. So it is told nothing that has not passed
 * here. */
#ifndef PORT_MEMIF_SHAKE_H
#define PORT_MEMIF_SHAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MEMIF_VERSION = 2 << 8, /* 2.0 */
	MEMIF_MSG_LEN = 128,
	MEMIF_NAME_LEN = 32,
	MEMIF_REGIONS = 16,
	MEMIF_LOG2_RING_MAX = 14,
	MEMIF_RING_HEADER = 128,
	MEMIF_DESC_LEN = 16,
};

enum memif_type {
	MEMIF_ACK = 1,
	MEMIF_HELLO,
	MEMIF_INIT,
	MEMIF_ADD_REGION,
	MEMIF_ADD_RING,
	MEMIF_CONNECT,
	MEMIF_CONNECTED,
	MEMIF_DISCONNECT,
};

/* In the byte order of the machine: both ends are on it. */
struct memif_msg {
	uint16_t type;
	union {
		struct __attribute__((packed)) {
			uint8_t name[MEMIF_NAME_LEN];
			uint16_t min_version, max_version, max_region, max_m2s_ring, max_s2m_ring;
			uint8_t max_log2_ring;
		} hello;
		struct __attribute__((packed)) {
			uint16_t version;
			uint32_t id;
			uint8_t mode; /* 0: Ethernet */
			uint8_t secret[24], name[MEMIF_NAME_LEN];
		} init;
		struct __attribute__((packed)) {
			uint16_t index;
			uint64_t size;
		} region;
		struct __attribute__((packed)) {
			uint16_t flags; /* 1: from client to server */
			uint16_t index, region;
			uint32_t offset;
			uint8_t log2_size;
			uint16_t private_hdr;
		} ring;
		struct __attribute__((packed)) {
			uint8_t name[MEMIF_NAME_LEN];
		} connect; /* and CONNECTED */
		struct __attribute__((packed)) {
			uint32_t code;
			char text[96];
		} disconnect;
		uint8_t bytes[MEMIF_MSG_LEN - 2];
	};
} __attribute__((packed));

/* X(symbol, name, meaning): why a client was sent away, or a client of ours has left its server */
#define MEMIF_REFUSALS(X)                                                             \
	X(LENGTH, "length", "a message has another length than 128 bytes")            \
	X(TYPE, "type", "a message that is not in turn here")                         \
	X(FDS, "fds", "a message has too few or too many file descriptors")           \
	X(VERSION, "version", "INIT for another version than 2.0")                    \
	X(MODE, "mode", "INIT for another mode than Ethernet")                        \
	X(NAME, "name", "a name that does not end")                                   \
	X(ID, "id", "INIT for an id that no port has")                                \
	X(BUSY, "busy", "the port has a client already")                              \
	X(REGION, "region", "ADD_REGION out of order, or the 17th")                   \
	X(REGION_SIZE, "region_size", "a region is empty or larger than its file")    \
	X(REGION_FILE, "region_file", "the rings' file can shrink: it is not sealed") \
	X(RING, "ring", "ADD_RING for another ring than 0, or again")                 \
	X(RING_SIZE, "ring_size", "a ring has more than 16384 descriptors")           \
	X(RING_PLACE, "ring_place", "a ring is not inside a region that can hold it") \
	X(INCOMPLETE, "incomplete", "CONNECT without both rings")                     \
	X(LATE, "late", "no CONNECT within two seconds")                              \
	X(GONE, "gone", "it went away before it was connected")                       \
	X(CROWD, "crowd", "the oldest of too many that had not said CONNECT")         \
	X(DRIVER, "driver", "the port's driver refused it")                           \
	X(MEMORY, "memory", "no memory or file descriptor left for it")               \
	X(S_LENGTH, "server_length", "a server's message of another length")          \
	X(S_TYPE, "server_type", "a server's message that is not in turn here")       \
	X(S_FDS, "server_fds", "a server sent a file descriptor")                     \
	X(S_VERSION, "server_version", "a server's HELLO without version 2.0")        \
	X(S_NAME, "server_name", "a server's name or text that does not end")

enum memif_refusal {
	MEMIF_FINE,
#define X(sym, name, text) MEMIF_NO_##sym,
	MEMIF_REFUSALS(X)
#undef X
		MEMIF_N_REFUSALS
};
const char *memif_refusal_name(enum memif_refusal why); /* "ring_size" */
const char *memif_refusal_text(enum memif_refusal why);

/* What is known of the file descriptors that came with a message. */
struct memif_files {
	unsigned n;
	uint64_t bytes; /* of the first, if it is a file that has a size; else 0 */
	bool sealed;    /* the first cannot shrink */
};

struct memif_shake {
	struct memif_msg init, connect;
	struct memif_msg region[MEMIF_REGIONS];
	struct memif_msg ring[2]; /* from server to client, from client to server */
	unsigned n_regions;
	bool has_init, has_ring[2], complete;
};

/* One message of len bytes from the client. Keeps it in the shake if it is fine; complete is set by
 * CONNECT. A file descriptor that came with ADD_REGION belongs to region n_regions - 1 then. */
enum memif_refusal memif_shake_take(struct memif_shake *s, const struct memif_msg *msg, size_t len,
	const struct memif_files *files);

/* What a client of ours has asked, and whether the server's words are an answer to that. */
struct memif_reply {
	uint16_t asked; /* type of the client's message that has no answer yet; 0: none */
	bool greeted;
};
/* The client says a message of this type. */
void memif_reply_ask(struct memif_reply *r, uint16_t type);
/* One message of len bytes from the server; len 0, its end, is none. */
enum memif_refusal memif_reply_take(struct memif_reply *r, const struct memif_msg *msg, size_t len,
	const struct memif_files *files);

/* The server's side: what it says first, and when it sends a client away. */
void memif_hello(struct memif_msg *msg);
void memif_goodbye(struct memif_msg *msg, const char *text);

#endif
