/* SPDX-License-Identifier: BSD-3-Clause */
/* A scenario's "control". */
#include "apps/sim_control.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int refuse(char *err, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int refuse(char *err, const char *field, const char *fmt, ...)
{
	int n = snprintf(err, CCL_ERR_LEN, "control%s%s: ", field[0] ? "." : "", field);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err + n, (size_t)(CCL_ERR_LEN - n), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static int parse_down(const json_t *list, struct sim_control_conf *conf, char *err)
{
	const size_t n = json_array_size(list);

	if (!json_is_array(list) || n > SIM_CONTROL_MAX_DOWN)
		return refuse(err, "down_us", "must be a list of up to %d spans [from, until]",
			SIM_CONTROL_MAX_DOWN);
	for (size_t i = 0; i < n; i++) {
		const json_t *span = json_array_get(list, i);
		const json_int_t from = json_integer_value(json_array_get(span, 0));
		const json_int_t until = json_integer_value(json_array_get(span, 1));

		if (json_array_size(span) != 2 || !json_is_integer(json_array_get(span, 0)) ||
			from < 0 || until <= from || until > SIM_CONTROL_MAX_US)
			return refuse(err, "down_us",
				"span %zu must be [from, until], 0 <= from < until <= %lld", i,
				(long long)SIM_CONTROL_MAX_US);
		conf->down[i].from = (uint64_t)from * 1000;
		conf->down[i].until = (uint64_t)until * 1000;
	}
	conf->n_down = (unsigned)n;
	return 0;
}

struct number {
	const char *name;
	uint64_t *to, unit; /* written in units of so much */
	json_int_t min, max;
};

static int parse_number(const struct number *n, const json_t *value, char *err)
{
	const json_int_t v = json_integer_value(value);

	if (!json_is_integer(value) || v < n->min || v > n->max)
		return refuse(err, n->name, "must be an integer, %lld..%lld", (long long)n->min,
			(long long)n->max);
	*n->to = (uint64_t)v * n->unit;
	return 0;
}

static int parse_chance(const char *name, double *to, const json_t *value, char *err)
{
	*to = json_number_value(value);
	if (!json_is_number(value) || *to < 0 || *to > 1)
		return refuse(err, name, "must be 0..1");
	return 0;
}

static int parse_field(
	const char *key, const json_t *value, struct sim_control_conf *conf, char *err)
{
	const json_int_t most = SIM_CONTROL_MAX_US, any = UINT32_MAX;
	const struct number number[] = {{"delay_us", &conf->delay_ns, 1000, 0, most},
		{"jitter_us", &conf->jitter_ns, 1000, 0, most},
		{"late_us", &conf->late_ns, 1000, 0, most},
		{"timeout_ms", &conf->timeout_ns, 1000000, 1, 3600000},
		{"break_nth", &conf->break_nth, 1, 1, any},
		{"silent_nth", &conf->silent_nth, 1, 1, any},
		{"late_nth", &conf->late_nth, 1, 1, any}};
	const struct {
		const char *name;
		double *to;
	} chance[] = {{"loss", &conf->loss}, {"break", &conf->brk}, {"silent", &conf->silent}};

	for (unsigned i = 0; i < sizeof(number) / sizeof(number[0]); i++)
		if (strcmp(key, number[i].name) == 0)
			return parse_number(&number[i], value, err);
	for (unsigned i = 0; i < sizeof(chance) / sizeof(chance[0]); i++)
		if (strcmp(key, chance[i].name) == 0)
			return parse_chance(key, chance[i].to, value, err);
	if (strcmp(key, "down_us") == 0)
		return parse_down(value, conf, err);
	return key[0] == '#' ? 0 : refuse(err, key, "unknown field");
}

int sim_control_parse(const json_t *doc, struct sim_control_conf *conf, char err[CCL_ERR_LEN])
{
	const char *key;
	json_t *value;
	int rc = 0;

	if (doc && !json_is_object(doc))
		return refuse(err, "", "must be an object");
	json_object_foreach((json_t *)doc, key, value)
	{
		rc = rc ? rc : parse_field(key, value, conf, err);
	}
	if (rc == 0 && !conf->late_nth != !conf->late_ns)
		return refuse(err, "late_nth", "goes with late_us");
	return rc;
}
