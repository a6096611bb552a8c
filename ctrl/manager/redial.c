/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctrl/manager/redial.h"

#include <stdio.h>
#include <string.h>

static const uint64_t FIRST_NS = 200000000, LAST_NS = 5000000000;

bool redial_is_due(const struct redial *r, uint64_t now)
{
	return now - r->dialled >= (r->pause_ns ? r->pause_ns : FIRST_NS);
}

void redial_anew(struct redial *r)
{
	r->pause_ns = 0;
	r->why[0] = '\0';
}

bool redial_refused(struct redial *r, const char *why)
{
	char text[REDIAL_WHY_LEN];
	bool news;

	snprintf(text, sizeof(text), "%s", why);
	news = strcmp(r->why, text) != 0;
	snprintf(r->why, sizeof(r->why), "%s", text);
	r->pause_ns = !r->pause_ns                ? FIRST_NS
		      : r->pause_ns < LAST_NS / 2 ? 2 * r->pause_ns
						  : LAST_NS;
	return news;
}
