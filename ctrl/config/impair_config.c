/* SPDX-License-Identifier: BSD-3-Clause */
/* "impair" of a port, told while the switch runs. */
#include <errno.h>
#include <stdio.h>

#include "ctrl/config/parts.h"
#include "ctrl/config/switch_config.h"

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
