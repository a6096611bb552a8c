/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_manager.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ctl/client.h"

struct fake_manager fake;
struct fake_job job;

struct ctl_client {
	char path[64];
};
static struct ctl_client client_to;

static int64_t fake_now(void *arg)
{
	(void)arg;
	return fake.clock_ms;
}

static void fake_sleep(void *arg, unsigned ms)
{
	(void)arg;
	fake.clock_ms += ms;
}

static const struct ctl_io io = {.now_ms = fake_now, .sleep_ms = fake_sleep};

static bool is(const char *which, const char *path)
{
	return which && (!which[0] || strstr(which, path));
}

int __wrap_ctl_connect_over(const struct ctl_io *over, const char *path, unsigned timeout_ms,
	struct ctl_client **client, struct ctl_error *error);
int __wrap_ctl_connect_over(const struct ctl_io *over, const char *path, unsigned timeout_ms,
	struct ctl_client **client, struct ctl_error *error)
{
	(void)over;
	if (is(fake.nobody_at, path)) {
		fake.clock_ms += timeout_ms;
		*error = (struct ctl_error){.index = -1};
		snprintf(error->msg, sizeof(error->msg), "%s: nobody listens", path);
		return fake.nobody_rc;
	}
	snprintf(client_to.path, sizeof(client_to.path), "%s", path);
	*client = &client_to;
	fake.is_open = true;
	return 0;
}

int __wrap_ctl_connect_begin(const struct ctl_io *over, const char *path,
	struct ctl_client **client, struct ctl_error *error);
int __wrap_ctl_connect_begin(const struct ctl_io *over, const char *path,
	struct ctl_client **client, struct ctl_error *error)
{
	const int rc = __wrap_ctl_connect_over(over, path, 0, client, error);

	fake.is_open = false;
	return rc;
}

int __wrap_ctl_connected(struct ctl_client *client, struct ctl_error *error);
int __wrap_ctl_connected(struct ctl_client *client, struct ctl_error *error)
{
	(void)error;
	if (fake.silent && !is("/a,/b", client->path))
		return -EINPROGRESS;
	if (fake.looks) {
		fake.looks--;
		return -EINPROGRESS;
	}
	fake.is_open = true;
	return 0;
}

void __wrap_ctl_close(struct ctl_client *client);
void __wrap_ctl_close(struct ctl_client *client)
{
	(void)client;
}

bool __wrap_ctl_is_open(const struct ctl_client *client);
bool __wrap_ctl_is_open(const struct ctl_client *client)
{
	(void)client;
	return fake.is_open;
}

json_t *fake_json(const char *text)
{
	char *copy = strdup(text);
	json_t *json;

	for (char *p = copy; *p; p++)
		if (*p == '\'')
			*p = '"';
	json = json_loads(copy, JSON_DECODE_ANY, NULL);
	assert_non_null(json);
	free(copy);
	return json;
}

int __wrap_ctl_call(struct ctl_client *client, const char *method, const json_t *params,
	unsigned timeout_ms, json_t **result, struct ctl_error *error);
int __wrap_ctl_call(struct ctl_client *client, const char *method, const json_t *params,
	unsigned timeout_ms, json_t **result, struct ctl_error *error)
{
	const size_t at = strlen(fake.asked);
	const char *answer;
	unsigned i;

	json_decref(fake.asked_with);
	fake.asked_with = json_deep_copy(params);
	if (at + 16 < sizeof(fake.asked))
		snprintf(fake.asked + at, sizeof(fake.asked) - at, "%s.%c ", client->path,
			method[4]);
	*error = (struct ctl_error){.index = -1};
	if (is(fake.hangs_at, client->path)) {
		fake.clock_ms += timeout_ms;
		snprintf(error->msg, sizeof(error->msg), "no answer");
		return -ETIMEDOUT;
	}
	if (is(fake.resets_at, client->path) ||
		(fake.turn_at && fake.n_calls >= fake.turn_at && !strcmp(client->path, "/a") &&
			fake.turn_at--)) {
		snprintf(error->msg, sizeof(error->msg), "closed");
		fake.is_open = false;
		return fake.resets_rc;
	}
	if (fake.taken && !strcmp(method, "job.join")) {
		fake.taken--;
		error->code = -32000;
		snprintf(error->path, sizeof(error->path), "%s", fake.busy);
		snprintf(error->msg, sizeof(error->msg), "0 is there");
		return -EBUSY;
	}
	i = fake.n_calls++;
	answer = fake.answers[i < 3 && fake.answers[i] ? i : fake.answers[1] ? 1 : 0];
	if (!strcmp(answer, FAKE_STALE)) {
		error->code = -32000;
		snprintf(error->msg, sizeof(error->msg), "epoch 1 is over");
		return -ESTALE;
	}
	if (result)
		*result = fake_json(answer);
	return 0;
}

void fake_manager_start(void)
{
	const int64_t now = fake.clock_ms;

	json_decref(fake.asked_with);
	fake = (struct fake_manager){.clock_ms = now,
		.nobody_rc = -ECONNREFUSED,
		.resets_rc = -ECONNRESET,
		.busy = "rank"};
	job = (struct fake_job){.ips = {wire_ip_from4(0x0a000001), wire_ip_from4(0x0a000002)},
		.group = {.name = "job",
			.manager = "/m",
			.n_ranks = 2,
			.rank_ip = job.ips,
			.timeout_ns = UINT64_C(1000000000),
			.fallback = true,
			.io = &io}};
}

int fake_manager_join(const char *first, const char *second, char err[CCL_ERR_LEN])
{
	static const struct ccl_ability able = {.skip = true, .device = "rnic0"};
	char why[CCL_ERR_LEN];

	fake.answers[0] = first;
	fake.answers[1] = second;
	return ccl_managed_join(&job.group, 0, 1024, &able, &job.managed, why, err);
}

void fake_manager_stop(void)
{
	ccl_managed_leave(job.managed, false);
	job.managed = NULL;
	json_decref(fake.asked_with);
	fake.asked_with = NULL;
}
