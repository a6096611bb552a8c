/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to the switches' agents. A request's id says what it was for, so nothing is kept of
 * requests under way: "7:2" is action 2 of epoch 7. Whatever is lost is said again. */
#include <stdlib.h>

#include "ctrl/manager/keep.h"

void mg_ask(
	struct manager *m, struct mg_switch *s, const char *id, const char *method, json_t *params)
{
	json_t *request = json_pack("{s:s,s:s,s:s}", "jsonrpc", "2.0", "id", id, "method", method);
	char *line;

	if (params)
		json_object_set_new(request, "params", params);
	line = json_dumps(request, JSON_COMPACT);
	if (line && s->connected)
		m->io.send(m->io.arg, (unsigned)(s - m->sw), line);
	free(line);
	json_decref(request);
}

static json_t *end_params(const char *job, uint64_t epoch, bool take_away)
{
	return json_pack("{s:s,s:o,s:b}", "job", job, "epoch", ctl_u64(epoch), "remove", take_away);
}

void mg_end_epoch(struct manager *m, struct mg_switch *s, const char *id, const char *job,
	uint64_t epoch, bool take_away)
{
	mg_ask(m, s, id, "epoch.end", end_params(job, epoch, take_away));
}

void mg_clear_way(struct manager *m, struct mg_switch *s, const char *id, const struct mgr_job *job,
	uint64_t epoch)
{
	json_t *params = end_params(job->name, epoch - 1, true);

	if (params && job->owner[0])
		json_object_set_new(params, "tenant", rpc_text(job->owner));
	mg_ask(m, s, id, "epoch.end", params);
}

void mg_end_everywhere(struct manager *m, const char *job, uint64_t epoch, bool take_away)
{
	if (mg_keep_ours(m))
		return;
	for (unsigned i = 0; i < m->n_sw; i++)
		mg_end_epoch(m, &m->sw[i], "end", job, epoch, take_away);
}
