/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ccl/talk.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_MS = 60000, MAX_ACTIVATE_MS = 3600000 };

unsigned ccl_talk_timeout_ms(const struct ccl_group *g)
{
	const uint64_t ms = g->timeout_ns / 1000000;

	return ms > LONGEST_MS ? LONGEST_MS : (unsigned)ms;
}

unsigned ccl_talk_activate_ms(const struct ccl_group *g, unsigned n_groups)
{
	const uint64_t ms = (uint64_t)ccl_talk_timeout_ms(g) * (2 * g->n_switches * n_groups + 1);

	return ms > MAX_ACTIVATE_MS ? MAX_ACTIVATE_MS : (unsigned)ms;
}

void ccl_talk_end(struct ccl_talk *t)
{
	ctl_close(t->client);
	t->client = NULL;
	t->held = false;
}

int ccl_talk_hold(const struct ccl_group *g, struct ctl_client *client, unsigned timeout_ms,
	struct ctl_error *e)
{
	json_t *params;
	int rc;

	if (!g->owner[0])
		return 0;
	params = json_pack("{s:s, s:i}", "owner", g->owner, "owner_ms", CCL_OWNER_MS);
	rc = params ? ctl_call(client, "owner.hold", params, timeout_ms, NULL, e) : -ENOMEM;
	json_decref(params);
	return rc;
}

static int64_t now_ms(const struct ccl_talk *t)
{
	return t->group->io->now_ms(t->group->io->arg);
}

static unsigned left_ms(const struct ccl_talk *t, int64_t deadline)
{
	const int64_t left = deadline - now_ms(t);

	return left > 0 ? (unsigned)left : 0;
}

static int dial(struct ccl_talk *t, unsigned ms, struct ctl_error *e)
{
	*e = (struct ctl_error){.index = -1};
	return ctl_connect_over(t->group->io, t->group->sw[t->sw].socket, ms, &t->client, e);
}

/* The switch has not answered: it may do what was asked, or may have done it. */
static bool is_unsure(int rc, const struct ctl_error *e)
{
	return e->code == 0 && rc != 0 && rc != -E2BIG && rc != -EINVAL;
}

/* sent: the request itself, too. */
static int ask(struct ccl_talk *t, const char *method, const json_t *params, int64_t deadline,
	unsigned tries, bool *sent, json_t **result, struct ctl_error *e)
{
	int rc = 0;

	*sent = false;
	*e = (struct ctl_error){.index = -1};
	if (!t->held)
		rc = ccl_talk_hold(t->group, t->client, left_ms(t, deadline) / tries, e);
	if (rc)
		return rc;
	t->held = *sent = true;
	return ctl_call(t->client, method, params, left_ms(t, deadline) / tries, result, e);
}

static int call(struct ccl_talk *t, const char *method, const json_t *params, json_t **result,
	struct ctl_error *e)
{
	int64_t deadline;
	bool sent;
	int rc;

	if (t->client && !ctl_is_open(t->client))
		ccl_talk_end(t);
	rc = t->client ? 0 : dial(t, t->connect_ms, e);
	deadline = now_ms(t) + ccl_talk_timeout_ms(t->group);
	for (unsigned tries = CCL_TALK_TRIES; rc == 0; tries--) {
		rc = ask(t, method, params, deadline, tries, &sent, result, e);
		if (!is_unsure(rc, e))
			return rc;
		t->unsure |= sent;
		/* It may be dead without saying so. */
		ccl_talk_end(t);
		if ((rc != -ECONNRESET && rc != -ETIMEDOUT) || tries == 1 || !left_ms(t, deadline))
			return rc;
		t->again |= sent;
		rc = dial(t,
			left_ms(t, deadline) < t->connect_ms ? left_ms(t, deadline) : t->connect_ms,
			e);
	}
	return rc;
}

int64_t ccl_talk_patience(const struct ccl_talk *t)
{
	const unsigned ms = ccl_talk_timeout_ms(t->group);

	return now_ms(t) + (ms < CCL_FORMER_MS ? (int)ms : CCL_FORMER_MS);
}

bool ccl_talk_wait(const struct ccl_talk *t, int64_t patience)
{
	if (now_ms(t) >= patience)
		return false;
	t->group->io->sleep_ms(t->group->io->arg, CCL_FORMER_EVERY_MS);
	return true;
}

void ccl_talk_renew(struct ccl_talk *t)
{
	struct ctl_error e;

	if (t->client && ctl_is_open(t->client))
		return;
	ccl_talk_end(t);
	if (dial(t, 0, &e))
		return;
	t->held = ccl_talk_hold(t->group, t->client, CCL_TALK_ASK_MS, &e) == 0;
	if (!t->held)
		ccl_talk_end(t);
}

int ccl_talk(struct ccl_talk *t, const char *method, json_t *params, json_t **result,
	struct ctl_error *e, char err[CCL_ERR_LEN])
{
	const char *name = t->group->sw[t->sw].name;
	int rc;

	t->again = t->unsure = false;
	if (!params) {
		snprintf(err, CCL_ERR_LEN, "switch %s: %s: out of memory", name, method);
		return -ENOMEM;
	}
	rc = call(t, method, params, result, e);
	json_decref(params);
	if (rc == 0)
		t->unsure = false;
	else if (e->code == 0)
		snprintf(err, CCL_ERR_LEN, "switch %s: %s", name, e->msg);
	else
		snprintf(err, CCL_ERR_LEN, "switch %s: %s: %s%s%s", name, method, e->path,
			e->path[0] ? ": " : "", e->msg);
	return rc;
}

void ccl_talk_add(char *text, size_t cap, const char *fmt, ...)
{
	const size_t n = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	if (n < cap)
		vsnprintf(text + n, cap - n, fmt, ap);
	va_end(ap);
}
