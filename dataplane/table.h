/* SPDX-License-Identifier: BSD-3-Clause */
/* Match-action tables that describe themselves. A table is one static descriptor: key fields with
 * width and match kind, actions with typed parameters, size. JSON validation, inclinectl's help and
 * completion and the reference page are all made from it.
 *
 * The registry is the control plane's store. A batch of updates is applied to a copy; the new
 * content is handed to publish(), which builds what the workers use and swaps it in (RCU); only
 * then does the registry take it over. So a batch happens as a whole or not at all, and workers
 * never see a half. Not thread-safe: the control thread owns a registry. */
#ifndef DATAPLANE_TABLE_H
#define DATAPLANE_TABLE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/wire/ip.h"

/* TERNARY is a value and a mask of a TABLE_UINT, a prefix or anything of IP types (of rows that
 * match the priority decides, not the length), a port or anything of TABLE_PORT. */
enum table_match { TABLE_EXACT, TABLE_LPM, TABLE_TERNARY, TABLE_RANGE };
enum table_type { TABLE_UINT, TABLE_BOOL, TABLE_IP4, TABLE_IP6, TABLE_IP, TABLE_MAC, TABLE_PORT };

static inline bool table_is_ip(enum table_type type)
{
	return type == TABLE_IP || type == TABLE_IP4 || type == TABLE_IP6;
}

enum { TABLE_MAX_KEYS = 10, TABLE_MAX_PARAMS = 8, TABLE_MAX_ACTIONS = 8, TABLE_ERR_LEN = 192 };

struct table_field {
	const char *name, *help;
	enum table_type type;
	enum table_match match; /* keys only */
	uint64_t min, max;      /* TABLE_UINT; max 0: no limit */
	bool optional;          /* parameters only: zero when absent, whatever min says */
};

struct table_action {
	const char *name, *help;
	unsigned n_params;
	struct table_field params[TABLE_MAX_PARAMS];
};

struct table_desc {
	const char *name, *help;
	unsigned n_keys, n_actions;
	struct table_field keys[TABLE_MAX_KEYS];
	struct table_action actions[TABLE_MAX_ACTIONS];
	uint32_t size; /* most entries */
	/* The graph node that looks packets up in it, and what becomes of those that match no row:
	 * a node, a drop reason, an outcome, or one of its own actions. NULL: whoever registers it
	 * says nothing of that. */
	const char *node, *miss;
};

/* Without padding: keys are hashed and compared as bytes. */
struct table_value {
	union {
		struct {
			uint64_t u; /* UINT, BOOL, PORT (port id) */
			union {
				uint64_t mask; /* TERNARY; of PORT: all 16 bits, or none */
				uint64_t high; /* RANGE: u .. high */
			};
		};
		struct wire_ip ip; /* IP*, IPv4 mapped */
		uint8_t mac[6];
	};
	uint8_t prefix; /* LPM and TERNARY, of IP*: bits, of 32 for IPv4 and of 128 for IPv6 */
	bool any;       /* TERNARY, of IP*: every address, of either family */
	uint8_t reserved[6];
};

/* Identity is the key, and in tables with a ternary or range key the priority too. */
struct table_entry {
	struct table_value key[TABLE_MAX_KEYS];
	uint16_t action;
	int32_t priority; /* tables with a ternary or range key: higher wins; else 0 */
	struct table_value param[TABLE_MAX_PARAMS];
};

struct table_rows {
	const struct table_desc *desc;
	uint32_t n;
	bool changed; /* for publish: by this batch */
	const struct table_entry *entry;
};

enum table_verb { TABLE_INSERT, TABLE_MODIFY, TABLE_DELETE };

struct table_update {
	enum table_verb verb;
	unsigned table;           /* index in the registry */
	struct table_entry entry; /* DELETE: the identity only */
};

#define TABLE_NO_INDEX UINT_MAX

struct table_error {
	unsigned index; /* of the update in the batch, TABLE_NO_INDEX: of the batch as a whole */
	char path[64];  /* "key.dst", "data.port", "" */
	char msg[TABLE_ERR_LEN];
};

struct table_registry;

/* publish gets the complete new content of every table (index as registered), rows in the order in
 * which they were inserted. It returns 0 after swapping it in, or -errno with err->msg (and index
 * if it knows which update is at fault) and nothing changed. Rows that it took live until the next
 * publish that succeeds has returned; rows that it refused are gone when it returns. */
typedef int (*table_publish_fn)(
	void *arg, const struct table_rows *tables, unsigned n_tables, struct table_error *err);

/* descs must outlive the registry; names are unique (-EEXIST). -EINVAL if a descriptor makes no
 * sense: LPM is for IP types, ternary for these, TABLE_UINT and TABLE_PORT, range for TABLE_UINT.
 * publish is not called for the empty tables at the start. */
int table_registry_create(const struct table_desc *const *descs, unsigned n,
	table_publish_fn publish, void *arg, struct table_registry **reg);
void table_registry_destroy(struct table_registry *reg);

unsigned table_count(const struct table_registry *reg);
const struct table_desc *table_desc(const struct table_registry *reg, unsigned table);
int table_find(const struct table_registry *reg, const char *name); /* index or -ENOENT */
/* The current content; valid until the next table_write. */
void table_rows(const struct table_registry *reg, unsigned table, struct table_rows *rows);

/* The entry with e's identity, or NULL; e needs its key and priority only. As for table_rows. */
const struct table_entry *table_lookup(
	const struct table_registry *reg, unsigned table, const struct table_entry *e);

/* Applies a batch, update after update, as a whole. -EEXIST (insert of a known key), -ENOENT
 * (modify, delete of an unknown one), -ENOSPC (table full at that point of the batch), -EINVAL
 * (value out of the descriptor's range), -ENOMEM, or what publish said; then nothing has changed
 * and *err tells why. Values are stored in canonical form: what match and type do not use is zero.
 * Cost is linear in the entries of the tables touched, so many updates belong into one batch. */
int table_write(struct table_registry *reg, const struct table_update *updates, unsigned n,
	struct table_error *err);

#endif
