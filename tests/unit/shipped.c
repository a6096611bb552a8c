/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/shipped.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>
#include <dirent.h>
#include <string.h>

unsigned shipped_configs(void (*check)(const char *file, const json_t *json))
{
	DIR *dir = opendir(PMD_CONFIGS);
	struct dirent *d;
	unsigned n = 0;

	assert_non_null(dir);
	while ((d = readdir(dir)) != NULL) {
		char path[512];
		json_error_t where;
		json_t *json;

		if (!strstr(d->d_name, ".json"))
			continue;
		snprintf(path, sizeof(path), "%s/%.200s", PMD_CONFIGS, d->d_name);
		json = json_load_file(path, JSON_REJECT_DUPLICATES, &where);
		if (json == NULL)
			fail_msg("%s:%d: %s", path, where.line, where.text);
		check(d->d_name, json);
		json_decref(json);
		n++;
	}
	closedir(dir);
	return n;
}
