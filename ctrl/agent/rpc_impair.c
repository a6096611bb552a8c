/* SPDX-License-Identifier: BSD-3-Clause */
/* port.impair. */
#include <errno.h>

#include "ctrl/agent/rpc.h"
#include "ctrl/config/switch_config.h"

int rpc_port_impair(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	const char *name = rpc_string(params, "port");
	const int port = sw_port_find(a->sw, name);
	char text[SW_ERR_LEN] = "";
	int rc;

	if (port < 0)
		return rpc_fail(e, -ENOENT, "port", "no port is named \"%.48s\"", name);
	rc = switch_impair(a->sw, (unsigned)port, json_object_get(params, "impair"), text);
	if (rc < 0)
		return rpc_fail_text(e, rc, text);
	*result = json_object();
	return 0;
}
