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

int digits_load(const char *path, struct digit **digits, char *err, size_t cap)
{
	gzFile f = gzopen(path, "r");
	struct digit *list = NULL, *more;
	char line[1024];
	int n = 0, status;

	if (!f) {
		snprintf(err, cap, "%s: %s", path, strerror(errno));
		return -ENOENT;
	}
	while (gzgets(f, line, sizeof(line))) {
		more = n % 256 ? list : realloc(list, (size_t)(n + 256) * sizeof(*list));
		list = more ? more : list;
		if (!more || !parse_line(line, &list[n])) {
			snprintf(err, cap, "%s:%d: not %d pixels 0..16 and a label 0..%d", path,
				n + 1, DIGIT_PIXELS, DIGIT_CLASSES - 1);
			break;
		}
		n++;
	}
	gzerror(f, &status);
	if (!gzeof(f) || status < 0 || n == 0) {
		if (gzeof(f) || status < 0)
			snprintf(err, cap, "%s: %s", path, n ? "damaged" : "empty or damaged");
		gzclose(f);
		free(list);
		return -EINVAL;
	}
	gzclose(f);
	*digits = list;
	return n;
}
