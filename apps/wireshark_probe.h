/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the fields of a header lie, found out by asking who reads it: a bit of a good packet is
 * turned, and what it changes in the reader's struct is the field that has it. So the dissector for
 * Wireshark knows the layouts without anybody having written them down a second time. */
#ifndef APPS_WIRESHARK_PROBE_H
#define APPS_WIRESHARK_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum show {
	SHOW_DEC,
	SHOW_HEX,
	SHOW_FLAG,
	SHOW_TEXT,     /* by a table of words */
	SHOW_RELATIVE, /* to "psn", signed */
};

/* A field of a reader's struct. */
struct member {
	const char *name, *title;
	size_t off, size;
	enum show show;
	const char *words; /* SHOW_TEXT: name of the table */
	unsigned scale;    /* what is shown for 1; 0: 1 */
};

enum { PROBE_HOST = 512 };

struct layout {
	uint8_t *bytes; /* a packet that is read without complaint, to be put back as it was */
	size_t len;     /* bytes of its headers: those that are turned */
	size_t whole;   /* all that the reader gets */
	size_t from;    /* first byte to be turned */
	size_t flag;    /* offset of a bool with which the rest is laid out otherwise; or NO_FLAG */
	const struct member *members; /* the last has no name */
	/* NULL and *host, or why it is refused. */
	const char *(*read)(const uint8_t *bytes, size_t whole, void *host);
};
#define NO_FLAG SIZE_MAX

struct place {
	size_t at, len;     /* bytes */
	unsigned bit, bits; /* from the highest bit of the first byte on */
	bool little;        /* bytes, the lowest first */
};

/* Prints what was found as members of a Lua table: fields, must, flag. Ends the program, with a
 * message, when a layout cannot be said so. need: bytes that must be there for a field that ends at
 * the given one, or NULL. */
void probe_print(const struct layout *l, size_t (*need)(const struct layout *l, size_t end));

/* Where one member lies; false: it is not in this header. */
bool probe_place(const struct layout *l, const char *name, struct place *place);

#endif
