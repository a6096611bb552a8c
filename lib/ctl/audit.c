/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_NAMED = 12, MAX_TEXT = 128 };

/* What a request is about: its scalars, short, without what only its sender is to know. */
static json_t *about(const json_t *params)
{
	json_t *out = json_object(), *value;
	const char *key;

	json_object_foreach((json_t *)params, key, value)
	{
		if (!strcmp(key, "owner") || !strcmp(key, "who") ||
			json_object_size(out) == MAX_NAMED || strlen(key) > MAX_TEXT)
			continue;
		if (json_is_string(value) && json_string_length(value) <= MAX_TEXT)
			json_object_set(out, key, value);
		else if (json_is_integer(value) || json_is_boolean(value))
			json_object_set(out, key, value);
	}
	return out;
}

char *ctl_audit_line(const struct ctl_who *who, const char *method, const json_t *params, int rc,
	const struct rpc_error *e)
{
	json_t *j = json_pack("{s:s,s:s,s:s,s:o}", "role", ctl_role_name(who->role), "name",
		who->name, "method", method, "about", about(params));
	char *line;

	if (who->role == CTL_LOCAL)
		json_object_set_new(j, "uid", json_integer(who->uid));
	json_object_set_new(j, "result",
		rc ? rpc_text(e->msg[0] ? e->msg : strerror(-rc)) : json_string("done"));
	line = json_dumps(j, JSON_COMPACT);
	json_decref(j);
	return line;
}

int ctl_audit_open(const char *field, const char *path, char *err, size_t cap)
{
	const int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd >= 0)
		return fd;
	snprintf(err, cap, "%s: %.150s: %s", field, path, strerror(errno));
	return -errno;
}

int ctl_audit_write(int fd, const char *line)
{
	struct timespec t;
	struct tm tm;
	char when[32], *text;
	ssize_t n;
	int len;

	clock_gettime(CLOCK_REALTIME, &t);
	gmtime_r(&t.tv_sec, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S", &tm);
	len = asprintf(&text, "{\"time\":\"%s.%03ldZ\",%s\n", when, t.tv_nsec / 1000000, line + 1);
	if (len < 0)
		return -ENOMEM;
	n = write(fd, text, (size_t)len);
	free(text);
	return n == len ? 0 : n < 0 ? -errno : -EIO;
}
