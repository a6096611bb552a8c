/* SPDX-License-Identifier: BSD-3-Clause */
/* "impair" of a port: in the start-up file, and told while the switch runs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctrl/config/switch_config.h"
#include "lib/ctl/config.h"

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

static void note(struct sw *sw, unsigned port, const json_t *impair)
{
	json_t *given = sw_config_json(sw);
	json_t *config = json_array_get(json_object_get(given, "ports"), port);

	if (impair)
		json_object_set_new(config, "impair", json_deep_copy(impair));
	else
		json_object_del(config, "impair");
	json_decref(given);
}

int switch_impair(struct sw *sw, unsigned port, const json_t *json, char err[SW_ERR_LEN])
{
	struct impair weather;
	char what[SW_ERR_LEN];
	int rc;

	if (json && impair_parse(json, &weather, what, sizeof(what)) < 0) {
		snprintf(err, SW_ERR_LEN, "impair.%.200s", what);
		return -EINVAL;
	}
	rc = sw_port_impair(sw, port, json ? &weather : NULL, err);
	/* Who hangs has not heard of it, others have. */
	if (rc == 0 || rc == -ETIMEDOUT)
		note(sw, port, json);
	return rc;
}
