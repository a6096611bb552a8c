/* SPDX-License-Identifier: BSD-3-Clause */
/* Small files of /sys and /proc, or of a copy of them somewhere else. What is in them is not
 * trusted: only regular files are read, a bounded part of each, no read waits, and what is no
 * printable ASCII becomes '?'. Paths are made like printf's, below root ("": the machine's own).
 * Errors are negative errno. */
#ifndef CTL_TREE_H
#define CTL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TREE_PATH __attribute__((format(printf, 4, 5)))

enum { TREE_NAME = 64 };

/* The file's first cap - 1 bytes, as text of lines. */
int tree_text(const char *root, char *buf, size_t cap, const char *fmt, ...) TREE_PATH;
/* Its first line. */
int tree_line(const char *root, char *buf, size_t cap, const char *fmt, ...) TREE_PATH;
/* The integer that is all of its first line, decimal or 0x; -EINVAL: it is none. */
int tree_number(const char *root, int64_t *n, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The last part of what a symbolic link leads to. */
int tree_link(const char *root, char *buf, size_t cap, const char *fmt, ...) TREE_PATH;
/* Up to max names in a folder, sorted, without those that begin with '.'. Returns how many. */
int tree_names(
	const char *root, char (*names)[TREE_NAME], size_t max, const char *fmt, ...) TREE_PATH;
bool tree_has(const char *root, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Is n in a list as the kernel writes it, "0-3,8,10-11"? What is no such list has none. */
bool tree_in_list(const char *list, int64_t n);
/* Is one of the words, between blanks, this? */
bool tree_has_word(const char *text, const char *word);

#endif
