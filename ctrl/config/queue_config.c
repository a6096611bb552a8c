/* SPDX-License-Identifier: BSD-3-Clause */
/* "queue" and "impair" of a port and "dscp" of the switch. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctrl/config/parts.h"
#include "lib/ctl/config.h"

enum { TRIM_MIN = 64 };

static uint64_t bytes_of(const json_t *json, const char *field)
{
	return (uint64_t)ctl_int(&ctl_queue_config, json, field) << 10;
}

int queue_parse(const json_t *json, struct egress_config *c, char *err, size_t cap)
{
	const struct ctl_field *schema = &ctl_queue_config;

	*c = (struct egress_config){
		.limit = {[EGRESS_Q_CONTROL] = bytes_of(json, "control_kb"),
			[EGRESS_Q_DATA] = bytes_of(json, "data_kb")},
		.red = {bytes_of(json, "mark_min_kb"), bytes_of(json, "mark_max_kb")},
		.trim = (unsigned)ctl_int(schema, json, "trim_bytes"),
		.last_hop = ctl_bool(schema, json, "last_hop"),
		.rate = (uint64_t)ctl_int(schema, json, "rate_mbps") * 125000,
		.burst = bytes_of(json, "burst_kb"),
		.hold_ns = (uint64_t)ctl_int(schema, json, "hold_ms") * 1000000,
	};
	if (c->red.min > c->red.max)
		return snprintf(err, cap, "mark_min_kb: is more than mark_max_kb"), -EINVAL;
	if (c->trim != 0 && c->trim < TRIM_MIN)
		return snprintf(err, cap, "trim_bytes: %u is neither 0 nor at least %d", c->trim,
			       TRIM_MIN),
		       -EINVAL;
	return 0;
}

/* The DSCPs of a list are of this class, and those that were by default are data. */
static int set_class(const json_t *json, const char *field, enum egress_class class,
	struct egress_classes *c, char *err, size_t cap)
{
	const json_t *list = json_object_get(json, field);

	for (size_t i = 0; list != NULL && i < EGRESS_N_DSCP; i++)
		if (c->of[i] == class)
			c->of[i] = EGRESS_DATA;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_int_t dscp = json_integer_value(json_array_get(list, i));

		if (dscp < 0 || dscp >= EGRESS_N_DSCP) {
			snprintf(err, cap, "%s[%zu]: %lld is not in 0..%d", field, i,
				(long long)dscp, EGRESS_N_DSCP - 1);
			return -EINVAL;
		}
		c->of[dscp] = (uint8_t) class;
	}
	return 0;
}

int classes_parse(const json_t *json, struct egress_classes *c, char *err, size_t cap)
{
	egress_classes_default(c);
	c->trimmed = (uint8_t)ctl_int(&ctl_dscp_config, json, "trimmed");
	c->trimmed_last_hop = (uint8_t)ctl_int(&ctl_dscp_config, json, "trimmed_last_hop");
	if (set_class(json, "trimmable", EGRESS_TRIMMABLE, c, err, cap) < 0 ||
		set_class(json, "control", EGRESS_CONTROL, c, err, cap) < 0)
		return -EINVAL;
	c->of[c->trimmed] = c->of[c->trimmed_last_hop] = EGRESS_CONTROL;
	return 0;
}

/* ---- impair ---- */

static const uint64_t ALWAYS = 1ULL << 32;

static uint64_t probability(const json_t *v)
{
	return (uint64_t)(json_number_value(v) * (double)ALWAYS);
}

int impair_parse(const json_t *json, struct impair *im, char *err, size_t cap)
{
	struct ctl_problem problem;
	const json_t *row;
	size_t i;

	static_assert(IMPAIR_LOSE_MAX == (int)CTL_MAX_LOSE, "as docs/config.md says");
	memset(im, 0, sizeof(*im));
	if (ctl_check_value(&ctl_impair_config, json, "", &problem) < 0) {
		ctl_problem_text(&problem, err, cap);
		return -EINVAL;
	}
	im->loss = probability(json_object_get(json, "loss"));
	im->dup = probability(json_object_get(json, "dup"));
	im->reorder = probability(json_object_get(json, "reorder"));
	im->corrupt = probability(json_object_get(json, "corrupt"));
	im->tx_loss = probability(json_object_get(json, "tx_loss"));
	im->icrc = json_is_true(json_object_get(json, "icrc"));
	im->rng = (uint64_t)ctl_int(&ctl_impair_config, json, "seed");
	json_array_foreach(json_object_get(json, "lose"), i, row) im->lose[im->n_lose++] =
		(struct impair_lose){
			.opcode = (uint8_t)json_integer_value(json_object_get(row, "opcode")),
			.loss = probability(json_object_get(row, "loss"))};
	return 0;
}
