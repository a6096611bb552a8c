/* SPDX-License-Identifier: BSD-3-Clause */
/* JSON of a request. jansson's integers have 63 bits and a sign; a u64 has 64. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/schema.h"

enum { FLAGS = JSON_REJECT_DUPLICATES | JSON_DECODE_ANY };

static const char digits[] = "0123456789";

/* The length of a number at text that a u64 holds and jansson does not, 0: it is none. */
static size_t big_number(const char *text)
{
	const size_t n = strspn(text, digits);
	unsigned long long u;

	if (n < 19 || text[0] == '0' || (text[n] && strchr(".eE+-", text[n])))
		return 0;
	errno = 0;
	u = strtoull(text, NULL, 10);
	return errno == 0 && u > INT64_MAX ? n : 0;
}

/* The length of a string at text, with its quotes. */
static size_t string_length(const char *text)
{
	size_t n = 1;

	while (text[n] && text[n] != '"')
		n += text[n] == '\\' && text[n + 1] ? 2 : 1;
	return text[n] ? n + 1 : n;
}

/* Copies text into out, with such numbers as strings if they are within an object's member (an id,
 * at the top, comes back as it was given). Returns how many bytes. */
static size_t quote_numbers(const char *text, char *out)
{
	char *to = out;
	int depth = 0;

	while (*text) {
		size_t n = 1, big = 0;

		if (*text == '"')
			n = string_length(text);
		else if (*text == '-' || (*text >= '0' && *text <= '9'))
			n = strspn(text, "-+.eE0123456789");
		if (depth > 1)
			big = big_number(text);
		depth += (*text == '{' || *text == '[') - (*text == '}' || *text == ']');
		if (big)
			*to++ = '"';
		memcpy(to, text, n);
		to += n;
		text += n;
		if (big)
			*to++ = '"';
	}
	return (size_t)(to - out);
}

json_t *ctl_load(const char *text, size_t len, json_error_t *error)
{
	json_t *json = json_loadb(text, len, FLAGS, error), *again = NULL;
	char *copy, *quoted;

	if (json || json_error_code(error) != json_error_numeric_overflow || memchr(text, 0, len))
		return json;
	copy = strndup(text, len);
	quoted = malloc(len + len / 4 + 1); /* two quotes to 19 digits */
	if (copy && quoted)
		again = json_loadb(quoted, quote_numbers(copy, quoted), FLAGS, NULL);
	free(copy);
	free(quoted);
	return again; /* else the error is that of the text as it was given */
}
