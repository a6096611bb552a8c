/* SPDX-License-Identifier: BSD-3-Clause */
/* Where MAC addresses are, by VLAN: the filtering database of a learning bridge (IEEE 802.1Q, 8.7
 * to 8.9), as the control thread keeps it. No I/O: time is an argument, and what the packet path is
 * to know is said to `ops`.
 *
 * Built for a link on which somebody makes addresses up: entries are bounded by port and in all,
 * group addresses, zero and the switch's own are never learnt, and what is pinned never moves. */
#ifndef DATAPLANE_L2_MAC_TABLE_H
#define DATAPLANE_L2_MAC_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
	MAC_MAX = 8192,        /* that are learnt */
	MAC_MAX_STATIC = 4096, /* that are pinned */
	MAC_ENTRIES = MAC_MAX + MAC_MAX_STATIC,
	MAC_BUCKETS = 16384,
	MAC_MAX_PORTS = 64,
};

/* ns: between looks at which addresses have been heard of, as exact as ageing is. */
static const uint64_t MAC_SCAN = UINT64_C(1000000000);

/* Address and VLAN (0: untagged). */
static inline uint64_t mac_key(const uint8_t mac[6], uint16_t vlan)
{
	uint64_t key = vlan;

	for (unsigned i = 0; i < 6; i++)
		key = key << 8 | mac[i];
	return key;
}

static inline void mac_of_key(uint64_t key, uint8_t mac[6])
{
	for (unsigned i = 0; i < 6; i++)
		mac[i] = (uint8_t)(key >> (40 - 8 * i));
}

static inline uint16_t mac_vlan_of_key(uint64_t key)
{
	return (uint16_t)(key >> 48);
}

struct mac_entry {
	uint64_t key;
	uint16_t port; /* index */
	bool used, pinned;
	bool wanted; /* pinned: by the rows of now */
	bool told;   /* ops->put has taken it */
	uint64_t heard;
	unsigned chain; /* next of its bucket, or free one, + 1 */
};

struct mac_ops {
	/* Entry number i is, or has moved: 0, or -errno: no room, and it is asked again (pinned) or
	 * not learnt. */
	int (*put)(void *arg, unsigned i, const struct mac_entry *e);
	void (*remove)(void *arg, uint64_t key);
	/* Something has been heard of entry i since this was last asked. */
	bool (*heard)(void *arg, unsigned i);
};

/* X(field, meaning) */
#define MAC_COUNTERS(X)                                                     \
	X(learnt, "addresses learnt")                                       \
	X(aged, "addresses forgotten: silent for too long")                 \
	X(flushed, "addresses forgotten: the link of their port went down") \
	X(moved, "addresses that have come to another port")                \
	X(refused, "addresses not learnt or moved: the port or the table is full")

struct mac_counters {
#define X(field, text) uint64_t field;
	MAC_COUNTERS(X)
#undef X
};

struct mac_table {
	const struct mac_ops *ops;
	void *arg;
	uint64_t age;          /* ns */
	unsigned max_per_port; /* of those that are learnt */
	unsigned n_learnt, n_pinned;
	unsigned n_of[MAC_MAX_PORTS]; /* learnt */
	unsigned n_own;
	uint64_t own[MAC_MAX_PORTS]; /* keys, VLAN 0 */
	uint64_t scan_at;
	bool untold; /* some pinned entry is not told yet */
	struct mac_counters count;
	unsigned free; /* entry + 1 */
	unsigned bucket[MAC_BUCKETS];
	struct mac_entry entry[MAC_ENTRIES];
};

/* own: the switch's own addresses, at most MAC_MAX_PORTS. */
void mac_table_init(struct mac_table *t, unsigned max_per_port, uint64_t age,
	const uint8_t (*own)[6], unsigned n_own, const struct mac_ops *ops, void *arg);

/* This address may be a host's. */
bool mac_is_host(const struct mac_table *t, uint64_t key);

/* NULL: not known. */
const struct mac_entry *mac_table_find(const struct mac_table *t, uint64_t key);

/* A frame from this address has come by this port. */
void mac_table_heard(struct mac_table *t, uint64_t key, uint16_t port, uint64_t now);

struct mac_pin {
	uint64_t key;  /* a host's */
	uint16_t port; /* index */
};
/* These n are pinned from now on, at most MAC_MAX_STATIC, and no others. */
void mac_table_pin(struct mac_table *t, const struct mac_pin *pins, unsigned n);

/* Those learnt at this port are forgotten. */
void mac_table_flush(struct mac_table *t, uint16_t port);

/* What is due. To be called every 100 ms or so. */
void mac_table_tick(struct mac_table *t, uint64_t now);

#endif
