/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/ctl/fields_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fields_are_sound(const struct ctl_field *fields)
{
	for (const struct ctl_field *f = fields; f && f->name; f++) {
		struct ctl_problem problem;
		json_t *dflt = NULL;

		assert_true(f->help && f->help[0]);
		assert_false(f->required && f->dflt);
		if (f->dflt && f->type == CTL_STRING)
			dflt = json_string(f->dflt);
		else if (f->dflt)
			dflt = json_loads(f->dflt, JSON_DECODE_ANY, NULL);
		if (f->dflt && (!dflt || ctl_check_value(f, dflt, f->name, &problem)))
			fail_msg("%s: default %s: %s", f->name, f->dflt, problem.msg);
		json_decref(dflt);
		fields_are_sound(f->fields);
		for (const struct ctl_variant *v = f->variants; v && v->value; v++)
			fields_are_sound(v->fields);
	}
}

void page_is_made_of(const char *name, const char *begin, const struct ctl_field *object)
{
	char *text = calloc(1, 1 << 20), *want = NULL, path[512];
	FILE *in, *out;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", DOCS, name);
	in = fopen(path, "r");
	assert_non_null(in);
	assert_true(fread(text, 1, (1 << 20) - 1, in) > 0);
	fclose(in);
	out = open_memstream(&want, &len);
	ctl_config_markdown(object, out);
	fclose(out);
	char *from = strstr(text, begin), *to = strstr(text, "<!-- end of generated part -->");
	assert_non_null(from);
	assert_non_null(to);
	*to = '\0';
	assert_string_equal(from + strlen(begin), want);
	free(text);
	free(want);
}
