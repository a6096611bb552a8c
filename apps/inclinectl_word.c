/* SPDX-License-Identifier: BSD-3-Clause */
/* A word of a command line as a value of JSON: by itself, as a field of the schema says, or one
 * pair "name=value" of several. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "apps/inclinectl_cmd.h"

int cli_refuse(char *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, CLI_ERR_LEN, fmt, ap);
	va_end(ap);
	return code;
}

static bool all_digits(const char *text)
{
	return text[0] && !text[strspn(text, "0123456789")];
}

int cli_int(const char *text, json_int_t *n)
{
	char *end;

	errno = 0;
	*n = strtoll(text, &end, 0);
	return errno || end == text || *end ? -EINVAL : 0;
}

json_t *cli_ref(const char *word)
{
	return all_digits(word) ? json_integer(strtoll(word, NULL, 10)) : json_string(word);
}

json_t *cli_value(const struct ctl_field *f, const char *word)
{
	json_int_t n;

	switch (f->type) {
	case CTL_BOOL:
		if (!strcmp(word, "true") || !strcmp(word, "false"))
			return json_boolean(word[0] == 't');
		break;
	case CTL_INT:
		if (!cli_int(word, &n))
			return json_integer(n);
		break;
	case CTL_REF:
		return cli_ref(word);
	default:
		break;
	}
	return json_string(word); /* if it should not be one, ctl_check says so */
}

int cli_set_pair(json_t *map, const char *word, char *err)
{
	const char *equals = strchr(word, '=');
	json_t *value = json_string(equals + 1);
	char *name = strndup(word, (size_t)(equals - word));
	int rc = 0;

	if (json_object_get(map, name))
		rc = cli_refuse(err, -EINVAL, "%s: is given twice", name);
	else if (!value || json_object_set(map, name, value))
		rc = cli_refuse(err, -EINVAL, "%s: is not UTF-8", name);
	json_decref(value);
	free(name);
	return rc;
}
