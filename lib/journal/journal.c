/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/journal/journal.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { LINE_LEN = 1024 };

/* The journal's device and inode are in the environment: a program whose stderr is led elsewhere
 * inherits that all the same. */
static bool is_the_journals(FILE *out)
{
	const char *text = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;
	char more;

	return text && sscanf(text, "%llu:%llu%c", &dev, &ino, &more) == 2 && fileno(out) >= 0 &&
	       fstat(fileno(out), &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

/* In one call: lines of several threads do not mix. */
static void put(FILE *out, enum journal_level level, const char *format, va_list ap)
{
	char line[LINE_LEN];

	vsnprintf(line, sizeof(line), format, ap);
	if (is_the_journals(out))
		fprintf(out, "<%u>%s\n", level, line);
	else
		fprintf(out, "%s\n", line);
}

void journal(enum journal_level level, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	put(stderr, level, format, ap);
	va_end(ap);
}

void journal_to(FILE *out, enum journal_level level, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	put(out, level, format, ap);
	va_end(ap);
}
