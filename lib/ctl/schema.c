/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/schema.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/near.h"

const struct ctl_method *ctl_find(const struct ctl_schema *schema, const char *name)
{
	for (unsigned i = 0; i < schema->n; i++)
		if (!strcmp(schema->methods[i].name, name))
			return &schema->methods[i];
	return NULL;
}

/* ---- values ---- */

enum { EXACT_INTEGERS = 53 }; /* bits that a double, and so most JSON readers, keep */

json_t *ctl_u64(uint64_t u)
{
	char text[24];

	if (u <= 1ULL << EXACT_INTEGERS)
		return json_integer((json_int_t)u);
	snprintf(text, sizeof(text), "%" PRIu64, u);
	return json_string(text);
}

int ctl_get_u64(const json_t *json, uint64_t *u)
{
	if (json_is_integer(json)) {
		if (json_integer_value(json) < 0)
			return -EINVAL;
		*u = (uint64_t)json_integer_value(json);
		return 0;
	}
	const char *text = json_string_value(json);
	if (!text)
		return -EINVAL;
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text;
	const char *allowed = hex ? "0123456789abcdefABCDEF" : "0123456789";
	if (!digits[0] || digits[strspn(digits, allowed)])
		return -EINVAL;
	errno = 0;
	uint64_t value = strtoull(digits, NULL, hex ? 16 : 10);
	if (errno)
		return -EINVAL;
	*u = value;
	return 0;
}

json_t *ctl_strip_comments(const json_t *json)
{
	json_t *out, *value;
	const char *key;
	size_t i;

	if (json_is_object(json)) {
		out = json_object();
		json_object_foreach((json_t *)json, key, value) if (key[0] != '#')
			json_object_set_new(out, key, ctl_strip_comments(value));
		return out;
	}
	if (json_is_array(json)) {
		out = json_array();
		json_array_foreach(json, i, value)
			json_array_append_new(out, ctl_strip_comments(value));
		return out;
	}
	return json_deep_copy(json);
}

/* ---- names of types ---- */

static const char *type_word(enum ctl_type type, bool plural)
{
	static const char *const words[][2] = {
		[CTL_BOOL] = {"boolean", "booleans"},
		[CTL_INT] = {"integer", "integers"},
		[CTL_U64] = {"u64", "u64s"},
		[CTL_REAL] = {"number", "numbers"},
		[CTL_STRING] = {"string", "strings"},
		[CTL_REF] = {"name or slot", "names or slots"},
		[CTL_OBJECT] = {"object", "objects"},
		[CTL_MAP] = {"map", "maps"},
		[CTL_LIST] = {"list", "lists"},
		[CTL_ANY] = {"any value", "values"},
	};

	return words[type][plural];
}

const char *ctl_type_text(const struct ctl_field *f, char *buf, size_t cap)
{
	size_t at;

	if (f->type == CTL_STRING && f->values) {
		at = 0;
		for (unsigned i = 0; f->values[i] && at < cap; i++)
			at += (size_t)snprintf(
				buf + at, cap - at, "%s%s", i ? " or " : "", f->values[i]);
		return buf;
	}
	at = (size_t)snprintf(buf, cap, "%s", type_word(f->type, false));
	if (at < cap && (f->type == CTL_LIST || f->type == CTL_MAP))
		at += (size_t)snprintf(buf + at, cap - at, " of %s", type_word(f->item, true));
	if (at < cap && f->max && (f->type == CTL_INT || f->type == CTL_U64))
		at += (size_t)snprintf(
			buf + at, cap - at, " %" PRId64 "..%" PRId64, f->min, f->max);
	for (unsigned i = 0; f->type == CTL_INT && f->values && f->values[i] && at < cap; i++)
		at += (size_t)snprintf(buf + at, cap - at, " or \"%s\"", f->values[i]);
	return buf;
}

/* ---- checks ---- */

static int problem_set(struct ctl_problem *p, const char *path, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static int problem_set(struct ctl_problem *p, const char *path, const char *fmt, ...)
{
	va_list ap;

	snprintf(p->path, sizeof(p->path), "%s", path);
	va_start(ap, fmt);
	vsnprintf(p->msg, sizeof(p->msg), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static const char *json_word(const json_t *json)
{
	switch (json_typeof(json)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "a list";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
		return "an integer";
	case JSON_REAL:
		return "a fraction";
	case JSON_TRUE:
	case JSON_FALSE:
		return "a boolean";
	case JSON_NULL:
		return "null";
	}
	return "?";
}

static int wrong_type(
	const struct ctl_field *f, const json_t *v, const char *path, struct ctl_problem *p)
{
	char text[128];

	return problem_set(
		p, path, "must be %s, not %s", ctl_type_text(f, text, sizeof(text)), json_word(v));
}

static bool within(const struct ctl_field *f, int64_t n)
{
	return !f->max || (n >= f->min && n <= f->max);
}

static bool is_value(const struct ctl_field *f, const char *text)
{
	for (unsigned i = 0; f->values && f->values[i]; i++)
		if (!strcmp(f->values[i], text))
			return true;
	return false;
}

static int check_string(
	const struct ctl_field *f, const json_t *v, const char *path, struct ctl_problem *p)
{
	const char *text = json_string_value(v);
	char all[128];

	if (!text)
		return wrong_type(f, v, path, p);
	if (!within(f, (int64_t)json_string_length(v)))
		return problem_set(p, path, "must have %" PRId64 "..%" PRId64 " bytes, has %zu",
			f->min, f->max, json_string_length(v));
	if (!f->values || is_value(f, text))
		return 0;
	return problem_set(
		p, path, "\"%.64s\" must be %s", text, ctl_type_text(f, all, sizeof(all)));
}

static int check_int(
	const struct ctl_field *f, const json_t *v, const char *path, struct ctl_problem *p)
{
	char all[128];

	if (f->type == CTL_INT && f->values && json_is_string(v))
		return is_value(f, json_string_value(v))
			       ? 0
			       : problem_set(p, path, "\"%.64s\" must be %s", json_string_value(v),
					 ctl_type_text(f, all, sizeof(all)));
	if (!json_is_integer(v))
		return wrong_type(f, v, path, p);
	if (!within(f, json_integer_value(v)))
		return problem_set(p, path,
			"%" JSON_INTEGER_FORMAT " is not in %" PRId64 "..%" PRId64,
			json_integer_value(v), f->min, f->max);
	return 0;
}

static int check_real(
	const struct ctl_field *f, const json_t *v, const char *path, struct ctl_problem *p)
{
	double n = json_number_value(v);

	if (!json_is_number(v))
		return wrong_type(f, v, path, p);
	if (f->max && !(n >= (double)f->min && n <= (double)f->max))
		return problem_set(
			p, path, "%g is not in %" PRId64 "..%" PRId64, n, f->min, f->max);
	return 0;
}

static int check_value(
	const struct ctl_field *f, const json_t *v, const char *path, struct ctl_problem *p);

static int check_object(
	const struct ctl_field *f, const json_t *v, const char *path, struct ctl_problem *p);

static int check_items(
	const struct ctl_field *f, const json_t *v, const char *path, struct ctl_problem *p)
{
	const struct ctl_field item = {
		.name = f->name, .type = f->item, .fields = f->fields, .variants = f->variants};
	char sub[CTL_PATH_LEN];
	const char *key;
	json_t *value;
	size_t i;
	int rc;

	if (f->type == CTL_MAP) {
		if (!json_is_object(v))
			return wrong_type(f, v, path, p);
		json_object_foreach((json_t *)v, key, value)
		{
			snprintf(sub, sizeof(sub), "%s.%s", path, key);
			rc = check_value(&item, value, sub, p);
			if (rc)
				return rc;
		}
		return 0;
	}
	if (!json_is_array(v))
		return wrong_type(f, v, path, p);
	if (!within(f, (int64_t)json_array_size(v)))
		return problem_set(p, path, "must have %" PRId64 "..%" PRId64 " items, has %zu",
			f->min, f->max, json_array_size(v));
	json_array_foreach(v, i, value)
	{
		snprintf(sub, sizeof(sub), "%s[%zu]", path, i);
		rc = check_value(&item, value, sub, p);
		if (rc)
			return rc;
	}
	return 0;
}

static int check_value(
	const struct ctl_field *f, const json_t *v, const char *path, struct ctl_problem *p)
{
	uint64_t u;

	if (f->nullable && json_is_null(v))
		return 0;
	switch (f->type) {
	case CTL_BOOL:
		return json_is_boolean(v) ? 0 : wrong_type(f, v, path, p);
	case CTL_INT:
		return check_int(f, v, path, p);
	case CTL_U64:
		if (ctl_get_u64(v, &u))
			return wrong_type(f, v, path, p);
		if (f->max && (u < (uint64_t)f->min || u > (uint64_t)f->max))
			return problem_set(p, path, "%" PRIu64 " is not in %" PRId64 "..%" PRId64,
				u, f->min, f->max);
		return 0;
	case CTL_REAL:
		return check_real(f, v, path, p);
	case CTL_STRING:
		return check_string(f, v, path, p);
	case CTL_REF:
		return json_is_string(v) ? 0 : check_int(f, v, path, p);
	case CTL_OBJECT:
		return json_is_object(v) ? check_object(f, v, path, p) : wrong_type(f, v, path, p);
	case CTL_MAP:
	case CTL_LIST:
		return check_items(f, v, path, p);
	case CTL_ANY:
		return 0;
	}
	return problem_set(p, path, "has a type that the schema does not know");
}

static const struct ctl_field *find_in(const struct ctl_field *fields, const char *name)
{
	for (; fields && fields->name; fields++)
		if (!strcmp(fields->name, name))
			return fields;
	return NULL;
}

const struct ctl_field *ctl_member(const struct ctl_field *object, const char *name)
{
	return find_in(object->fields, name);
}

/* The variant that the object's "type" names; NULL if none. */
static const struct ctl_variant *variant_of(const struct ctl_field *f, const json_t *object)
{
	const char *type = json_string_value(json_object_get(object, "type"));

	for (const struct ctl_variant *v = f->variants; v && v->value && type; v++)
		if (!strcmp(v->value, type))
			return v;
	return NULL;
}

static const struct ctl_field *field_find(
	const struct ctl_field *f, const struct ctl_variant *variant, const char *name)
{
	const struct ctl_field *found = variant ? find_in(variant->fields, name) : NULL;

	return found ? found : find_in(f->fields, name);
}

static int unknown(const struct ctl_field *f, const struct ctl_variant *variant, const char *name,
	const char *path, struct ctl_problem *p)
{
	const struct ctl_field *lists[] = {variant ? variant->fields : NULL, f->fields};
	const char *near = NULL;

	for (unsigned i = 0; i < 2; i++)
		for (const struct ctl_field *k = lists[i]; k && k->name; k++)
			near = ctl_nearer(name, near, k->name);
	if (near)
		return problem_set(p, path, "is not a known field, \"%s\" is", near);
	if (variant && !find_in(f->fields, name))
		return problem_set(p, path, "is not a known field for type %s", variant->value);
	return problem_set(p, path, "is not a known field");
}

static int missing(const struct ctl_field *fields, const struct ctl_variant *variant,
	const json_t *object, const char *at, struct ctl_problem *p)
{
	char path[CTL_PATH_LEN];

	for (const struct ctl_field *f = fields; f && f->name; f++) {
		if (!f->required || json_object_get(object, f->name))
			continue;
		snprintf(path, sizeof(path), "%s%s%s", at, at[0] ? "." : "", f->name);
		return variant ? problem_set(
					 p, path, "is missing, type %s needs it", variant->value)
			       : problem_set(p, path, "is missing");
	}
	return 0;
}

static int no_variant(
	const struct ctl_field *f, const json_t *type, const char *at, struct ctl_problem *p)
{
	char all[128], path[CTL_PATH_LEN];
	size_t n = 0;

	snprintf(path, sizeof(path), "%s%stype", at, at[0] ? "." : "");
	for (const struct ctl_variant *v = f->variants; v->value && n < sizeof(all); v++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s",
			v == f->variants ? ""
			: v[1].value     ? ", "
					 : " or ",
			v->value);
	if (json_is_string(type))
		return problem_set(p, path, "\"%.32s\" must be %s", json_string_value(type), all);
	return problem_set(p, path, "%s: %s", type ? "must be a string" : "is missing", all);
}

static int check_object(
	const struct ctl_field *f, const json_t *object, const char *at, struct ctl_problem *p)
{
	const struct ctl_variant *variant = variant_of(f, object);
	char path[CTL_PATH_LEN];
	const char *key;
	json_t *value;
	int rc;

	if (object && !json_is_object(object))
		return problem_set(p, at, "must be an object, not %s", json_word(object));
	if (f->variants && !variant)
		return no_variant(f, json_object_get(object, "type"), at, p);
	json_object_foreach((json_t *)object, key, value)
	{
		const struct ctl_field *field = field_find(f, variant, key);

		snprintf(path, sizeof(path), "%s%s%.64s", at, at[0] ? "." : "", key);
		rc = field ? check_value(field, value, path, p) : unknown(f, variant, key, path, p);
		if (rc)
			return rc;
	}
	rc = missing(f->fields, NULL, object, at, p);
	return rc || !variant ? rc : missing(variant->fields, variant, object, at, p);
}

int ctl_check(const struct ctl_field *fields, const json_t *object, const char *at,
	struct ctl_problem *problem)
{
	const struct ctl_field f = {.type = CTL_OBJECT, .fields = fields};

	return check_object(&f, object, at, problem);
}

int ctl_check_value(const struct ctl_field *field, const json_t *value, const char *at,
	struct ctl_problem *problem)
{
	return check_value(field, value, at, problem);
}

void ctl_problem_text(const struct ctl_problem *problem, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s%s%s", problem->path, problem->path[0] ? ": " : "", problem->msg);
}

/* ---- values that have been checked, and defaults ---- */

static const char *default_of(const struct ctl_field *object, const json_t *json, const char *name)
{
	const struct ctl_field *f = field_find(object, variant_of(object, json), name);

	return f ? f->dflt : NULL;
}

int64_t ctl_int(const struct ctl_field *object, const json_t *json, const char *name)
{
	const json_t *v = json_object_get(json, name);
	const char *dflt = default_of(object, json, name);

	if (v)
		return json_integer_value(v);
	return dflt ? strtoll(dflt, NULL, 10) : 0;
}

bool ctl_bool(const struct ctl_field *object, const json_t *json, const char *name)
{
	const json_t *v = json_object_get(json, name);
	const char *dflt = default_of(object, json, name);

	return v ? json_is_true(v) : dflt && !strcmp(dflt, "true");
}

const char *ctl_text(const struct ctl_field *object, const json_t *json, const char *name)
{
	const json_t *v = json_object_get(json, name);

	return v ? json_string_value(v) : default_of(object, json, name);
}
