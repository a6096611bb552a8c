/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "ctrl/manager/store.h"

struct memory {
	json_t *kept, *pending; /* strings by key; pending: null for what goes */
};

static int each(void *arg, int (*take)(void *to, const char *key, const char *value), void *to)
{
	struct memory *s = arg;
	const char *key;
	json_t *value;
	int rc = 0;

	json_object_foreach(s->kept, key, value) if (!rc) rc =
		take(to, key, json_string_value(value));
	return rc;
}

static int put(void *arg, const char *key, const char *value)
{
	struct memory *s = arg;

	return json_object_set_new(s->pending, key, value ? json_string(value) : json_null())
		       ? -ENOMEM
		       : 0;
}

static int commit(void *arg)
{
	struct memory *s = arg;
	const char *key;
	json_t *value;
	int rc = 0;

	json_object_foreach(s->pending, key, value)
	{
		if (json_is_null(value))
			json_object_del(s->kept, key);
		else if (json_object_set(s->kept, key, value))
			rc = -ENOMEM;
	}
	json_object_clear(s->pending);
	return rc;
}

static void shut(void *arg)
{
	struct memory *s = arg;

	json_decref(s->kept);
	json_decref(s->pending);
	free(s);
}

int store_memory_open(struct store *out)
{
	struct memory *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	*out = (struct store){s, each, put, commit, shut};
	s->kept = json_object();
	s->pending = json_object();
	if (s->kept && s->pending)
		return 0;
	shut(s);
	return -ENOMEM;
}

/* ---- nothing ---- */

static int put_nothing(void *arg, const char *key, const char *value)
{
	(void)arg, (void)key, (void)value;
	return 0;
}

static int commit_nothing(void *arg)
{
	(void)arg;
	return 0;
}

void store_read_only(struct store *s)
{
	s->put = put_nothing;
	s->commit = commit_nothing;
}
