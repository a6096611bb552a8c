/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/digits.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static bool parse_line(const char *line, struct digit *s)
{
	for (unsigned i = 0; i <= DIGIT_PIXELS; i++) {
		char *end;
		const long v = strtol(line, &end, 10);

		if (end == line || v < 0 || v > (i < DIGIT_PIXELS ? 16 : DIGIT_CLASSES - 1) ||
			(i < DIGIT_PIXELS ? *end != ',' : *end && !strchr("\r\n", *end)))
			return false;
		if (i < DIGIT_PIXELS)
			s->pixel[i] = (float)v / 16.0f;
		else
			s->label = (unsigned)v;
		line = end + 1;
	}
	return true;
}

/* What is wrong with a file that has n digits before its end, or before a line that is none. */
static bool refuse(gzFile f, const char *path, int n, bool bad_line, char *err, size_t cap)
{
	int status;

	gzerror(f, &status);
	if (status < 0 || (!bad_line && !gzeof(f)))
		snprintf(err, cap, "%s: damaged", path);
	else if (bad_line)
		snprintf(err, cap, "%s:%d: not %d pixels 0..16 and a label 0..%d", path, n + 1,
			DIGIT_PIXELS, DIGIT_CLASSES - 1);
	else if (n < DIGITS_MIN)
		snprintf(err, cap, "%s: %d digits, at least %d are needed", path, n, DIGITS_MIN);
	else
		return false;
	return true;
}

int digits_load(const char *path, struct digit **digits, char *err, size_t cap)
{
	gzFile f = gzopen(path, "r");
	struct digit *list = NULL, *more;
	bool bad = false;
	char line[1024];
	int n = 0;

	if (!f) {
		snprintf(err, cap, "%s: %s", path, strerror(errno));
		return -ENOENT;
	}
	while (!bad && gzgets(f, line, sizeof(line))) {
		more = n % 256 ? list : realloc(list, (size_t)(n + 256) * sizeof(*list));
		list = more ? more : list;
		bad = !more || !parse_line(line, &list[n]);
		n += !bad;
	}
	bad = refuse(f, path, n, bad, err, cap);
	gzclose(f);
	if (bad) {
		free(list);
		return -EINVAL;
	}
	*digits = list;
	return n;
}
