/* SPDX-License-Identifier: BSD-3-Clause */
/* A group from a file, and from text in memory. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/ccl/group.h"

int ccl_group_load(const char *path, struct ccl_group **group, char err[CCL_ERR_LEN])
{
	FILE *f = fopen(path, "re");
	char why[CCL_ERR_LEN];
	json_error_t je;
	json_t *doc;
	int rc;

	if (!f) {
		rc = -errno;
		snprintf(err, CCL_ERR_LEN, "%s: %s", path, strerror(-rc));
		return rc;
	}
	doc = json_loadf(f, JSON_REJECT_DUPLICATES, &je);
	fclose(f);
	if (!doc) {
		snprintf(err, CCL_ERR_LEN, "%s:%d:%d: %s", path, je.line, je.column, je.text);
		return -EINVAL;
	}
	rc = ccl_group_parse(doc, group, why);
	json_decref(doc);
	if (rc)
		snprintf(err, CCL_ERR_LEN, "%.200s: %.300s", path, why);
	return rc;
}

int ccl_group_load_text(const char *text, struct ccl_group **group, char err[CCL_ERR_LEN])
{
	json_error_t je;
	json_t *doc = json_loads(text, 0, &je);
	int rc;

	if (!doc) {
		snprintf(err, CCL_ERR_LEN, "%d:%d: %s", je.line, je.column, je.text);
		return -EINVAL;
	}
	rc = ccl_group_parse(doc, group, err);
	json_decref(doc);
	return rc;
}

unsigned ccl_group_size(const struct ccl_group *group)
{
	return group->n_ranks;
}
