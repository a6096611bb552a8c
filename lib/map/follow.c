/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/map/follow.h"

#include <errno.h>
#include <stdlib.h>

int map_follow_init(struct map_follow *f, const char *const *name, unsigned n, uint64_t stale_ns)
{
	*f = (struct map_follow){
		.stale_ns = stale_ns, .n = n, .agent = calloc(n, sizeof(*f->agent))};
	if (f->agent == NULL)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		f->agent[i].name = name[i];
	return 0;
}

void map_follow_fini(struct map_follow *f)
{
	for (unsigned i = 0; i < f->n; i++)
		json_decref(f->agent[i].report);
	free(f->agent);
	*f = (struct map_follow){0};
}

void map_follow_report(struct map_follow *f, unsigned i, json_t *report, uint64_t now_ns)
{
	struct map_followed *a = &f->agent[i];
	const json_int_t sent = json_integer_value(json_object_get(report, "sent"));

	if (report == NULL)
		return;
	if (a->report != NULL && sent != a->sent) {
		a->changed_ns = now_ns;
		a->moves = true;
	}
	json_decref(a->report);
	a->report = report;
	a->sent = sent;
}

int map_follow_join(
	const struct map_follow *f, uint64_t now_ns, struct map **m, char err[MAP_ERR_LEN])
{
	const char **name = calloc(f->n, sizeof(*name));
	json_t *fresh = json_array();
	unsigned n = 0;
	int rc = 0;

	*m = NULL;
	for (unsigned i = 0; name != NULL && i < f->n; i++) {
		const struct map_followed *a = &f->agent[i];

		if (!a->moves || now_ns - a->changed_ns >= f->stale_ns)
			continue;
		name[n++] = a->name;
		json_array_append(fresh, a->report);
	}
	if (name == NULL || json_array_size(fresh) != n)
		rc = -ENOMEM;
	else if (n > 0)
		rc = map_join(fresh, name, m, err);
	if (rc == -ENOMEM)
		snprintf(err, MAP_ERR_LEN, "out of memory");
	json_decref(fresh);
	free(name);
	return rc;
}
