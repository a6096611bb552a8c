/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be asked over a control socket, declared once as data. The server checks parameters with
 * it, inclinectl makes its commands, help, completion and text output of it, and the tables of
 * docs/control-socket.md are generated from it. Nothing here does I/O or keeps state, so everything
 * may be called from any thread. */
#ifndef CTL_SCHEMA_H
#define CTL_SCHEMA_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum ctl_type {
	CTL_BOOL,
	CTL_INT,    /* within min..max, or one of values, a string */
	CTL_U64,    /* integer up to 2^53, above that a string of decimal digits (ctl_u64) */
	CTL_REAL,   /* any number, within min..max */
	CTL_STRING, /* min..max bytes, or one of values */
	CTL_REF,    /* of a group: its name, or its slot as an integer min..max */
	CTL_OBJECT, /* exactly the fields */
	CTL_MAP,    /* any keys, each value an item */
	CTL_LIST,   /* min..max items */
	CTL_ANY,
};

/* What a field of a result is to monitoring (lib/ctl/metrics.h). */
enum ctl_metric {
	CTL_NO_METRIC,
	CTL_LABEL,   /* tells items of its list apart */
	CTL_GAUGE,   /* goes up and down; true is 1 */
	CTL_COUNTER, /* only grows, until the program ends or somebody clears it */
	CTL_STATES,  /* a string, one of its values */
};

struct ctl_field {
	const char *name;
	enum ctl_type type;
	bool required;    /* of a result: always there */
	int64_t min, max; /* max 0: no limit */
	const char *const *values;
	enum ctl_type item;             /* of CTL_LIST and CTL_MAP */
	const struct ctl_field *fields; /* of CTL_OBJECT, or of each item that is one; the last has
					 * no name */
	const char *complete; /* what the shell offers: "table", "group", "port", "file" */
	unsigned pos;         /* place on inclinectl's command line, 1..; 0: --name */
	const char *help;
	const char *dflt; /* what holds if it is absent, as text without quotes */
	/* Of an object: more fields, by the value of its field "type", up to a NULL value. They
	 * come before its own of the same name. */
	const struct ctl_variant *variants;
	enum ctl_metric metric;
	bool nullable; /* null says the same as its absence */
};

struct ctl_variant {
	const char *value, *help;
	const struct ctl_field *fields;
};

/* What somebody may do who has come over TCP, where nobody is asked who he is, unless the
 * configuration says "control_tcp_full". */
enum ctl_tcp {
	CTL_TCP_NO,  /* nothing */
	CTL_TCP_OWN, /* to what belongs to the owner that his connection holds (owner.hold) */
	CTL_TCP_ANY,
};

struct ctl_method {
	const char *name;    /* "group.list" */
	const char *command; /* "group list"; NULL: no command of its own */
	const char *help;
	bool changes; /* something on the switch */
	const struct ctl_field *params, *result;
	enum ctl_tcp tcp;
};

struct ctl_schema {
	const char *server; /* name of the program that listens */
	const struct ctl_method *methods;
	unsigned n;
};

/* The methods of incline-switch. */
extern const struct ctl_schema ctl_switch_schema;

enum { CTL_API = 1, CTL_PATH_LEN = 96, CTL_MSG_LEN = 256, CTL_MAX_LINE = 1 << 20 };

#define CTL_DEFAULT_SOCKET "/run/incline/switch.sock"

/* JSON-RPC error codes (specification, 5.1), and ours for a request that was understood but cannot
 * be done now, or not by whoever asks. */
enum {
	CTL_PARSE_ERROR = -32700,
	CTL_INVALID_REQUEST = -32600,
	CTL_UNKNOWN_METHOD = -32601,
	CTL_INVALID_PARAMS = -32602,
	CTL_INTERNAL = -32603,
	CTL_REFUSED = -32000,
	CTL_NOT_ALLOWED = -32001, /* not over TCP, or not to this owner */
};

struct ctl_problem {
	char path[CTL_PATH_LEN]; /* "endpoints[2].ip" */
	char msg[CTL_MSG_LEN];
};

const struct ctl_method *ctl_find(const struct ctl_schema *schema, const char *name);

/* Checks an object against a list of fields: unknown or missing fields, wrong types,
 * values out of range. 0, or -EINVAL with the first problem; its path begins with `at` ("" at the
 * top). NULL stands for an empty object. */
int ctl_check(const struct ctl_field *fields, const json_t *object, const char *at,
	struct ctl_problem *problem);

/* The same for one value of a field, whose name messages call `at`. */
int ctl_check_value(const struct ctl_field *field, const json_t *value, const char *at,
	struct ctl_problem *problem);

/* A field of an object, or of the items of a list of them; NULL: none of that name. Also a way to
 * a part that is read by itself. */
const struct ctl_field *ctl_member(const struct ctl_field *object, const char *name);

/* "path: message" into buf, or the message alone. */
void ctl_problem_text(const struct ctl_problem *problem, char *buf, size_t cap);

/* A member of an object that has been checked, or its default: 0, false, NULL if it has none.
 * ctl_int of a number that may be a word instead ("auto") is 0 for the word. */
int64_t ctl_int(const struct ctl_field *object, const json_t *json, const char *name);
bool ctl_bool(const struct ctl_field *object, const json_t *json, const char *name);
const char *ctl_text(const struct ctl_field *object, const json_t *json, const char *name);

/* u64 to and from JSON. Reading accepts an integer >= 0 or a string, decimal or 0x hexadecimal;
 * -EINVAL otherwise, with *u unchanged. */
json_t *ctl_u64(uint64_t u);
int ctl_get_u64(const json_t *json, uint64_t *u);

/* Any JSON value of len bytes, without duplicate keys; NULL, and why. Numbers from 2^63 to 2^64-1
 * within its members become strings, as ctl_u64 writes them. */
json_t *ctl_load(const char *text, size_t len, json_error_t *error);

/* A copy without the members whose key begins with '#': those are comments in our files. */
json_t *ctl_strip_comments(const json_t *json);

/* "integer 0..4095", "list of objects" ... for help texts; returns buf. */
const char *ctl_type_text(const struct ctl_field *field, char *buf, size_t cap);

/* Reference tables of all methods, as in docs/control-socket.md. */
void ctl_markdown(const struct ctl_schema *schema, FILE *out);

/* The schema of a file of ours (JSON Schema, draft 2020-12; new reference). What one field alone
 * cannot tell it does not say; lengths of strings are bytes here, and characters there. */
json_t *ctl_json_schema(const struct ctl_field *object, const char *title);

/* The methods as JSON, parameters and results as JSON Schema (new reference). */
json_t *ctl_describe(const struct ctl_schema *schema);

#endif
