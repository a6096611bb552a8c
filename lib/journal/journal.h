/* SPDX-License-Identifier: BSD-3-Clause */
/* What a daemon tells the operator, a line at a time on stderr. Where stderr is the journal's (the
 * variable JOURNAL_STREAM of systemd.exec(5)) a line begins with its level as sd-daemon(3) has it,
 * so that `journalctl -p warning` finds what counts; elsewhere it is the line alone. Any thread;
 * never on the packet path. */
#ifndef JOURNAL_H
#define JOURNAL_H

#include <stdio.h>

/* syslog(3)'s numbers. */
enum journal_level {
	JOURNAL_CRIT = 2,    /* the program ends by it */
	JOURNAL_ERR = 3,     /* something is lost: a group, a ring, a record */
	JOURNAL_WARNING = 4, /* something is not as it should be and goes on */
	JOURNAL_NOTICE = 5,  /* as it should be again */
	JOURNAL_INFO = 6,
};

/* format: without a newline at its end. The second: to a stream that may be stderr. */
void journal(enum journal_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void journal_to(FILE *out, enum journal_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
