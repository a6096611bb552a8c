/* SPDX-License-Identifier: BSD-3-Clause */
/* A group's block as JSON. Read while a worker writes it: counters and slots are a snapshot that
 * may be a packet apart. */
#ifndef AGENT_GROUP_JSON_H
#define AGENT_GROUP_JSON_H

#include "ctrl/agent/rpc.h"

/* Names in the order of enum inc_mode, inc_kind, inc_prim; NULL at the end. */
extern const char *const group_modes[], *const group_kinds[], *const group_primitives[];

/* Slot of the group that parameters name, or rpc_fail's result. */
int group_resolve(struct agent *a, const json_t *params, struct rpc_error *e);

/* What is only compared and shown, of the letters of a name, into out of cap bytes (the schema has
 * checked its length): 0, or rpc_fail's result. */
int rpc_read_letters(
	const char *field, const char *text, char *out, size_t cap, struct rpc_error *e);
/* Likewise the name of a group or ring, into out: digits alone would be taken for a number. */
int rpc_read_name(const char *name, char *out, size_t cap, struct rpc_error *e);

/* The answer to group.create. */
json_t *group_created_json(struct sw *sw, unsigned slot);
/* {"bound","bytes","offset"}. */
json_t *group_arena_json(const struct inc_group *g);

#endif
