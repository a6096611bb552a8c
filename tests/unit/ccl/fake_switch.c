/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/ccl/fake_switch.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/ctl/schema.h"

static json_t *created(const struct fake_switch *sw, const json_t *params)
{
	const json_t *in = json_object_get(params, "endpoints");
	json_t *eps = json_array();

	for (size_t i = 0; i < json_array_size(in); i++) {
		const json_t *ep = json_array_get(in, i);

		json_array_append_new(eps, json_pack("{s:i, s:O, s:i, s:O}", "index", (int)i, "ip",
						   json_object_get(ep, "local_ip"), "qpn",
						   (int)(0x10000 * (sw->creates - 1) +
							   0x1000 * (sw->number + 1) + 0x40 * i),
						   "port", json_object_get(ep, "port")));
	}
	return json_pack("{s:i, s:O, s:s, s:o}", "group",
		(int)(100 * (sw->creates - 1) + sw->number + 1), "name",
		json_object_get(params, "name"), "state", "installed", "endpoints", eps);
}

static json_t *shown(struct fake_switch *sw)
{
	json_t *show = json_pack("{s:i, s:s, s:s}", "group", (int)(sw->number + 1), "name", "g",
		"state", sw->state ? sw->state : "active");

	if (sw->missing_rank >= 0)
		json_object_set_new(show, "waiting",
			json_pack("{s:i, s:[i]}", "psn", 5, "missing_ranks", sw->missing_rank));
	sw->shows++;
	return show;
}

static json_t *answer(struct fake_switch *sw, const char *method, const json_t *params)
{
	const struct ctl_method *m = ctl_find(&ctl_switch_schema, method);
	struct ctl_problem problem;

	if ((!m || ctl_check(m->params, params, "", &problem)) && !sw->breach[0])
		snprintf(sw->breach, sizeof(sw->breach), "%s: %.80s: %.100s", method,
			m ? problem.path : "", m ? problem.msg : "no such method");
	if (!strcmp(method, "group.show"))
		return shown(sw);
	if (!strcmp(method, "group.create")) {
		sw->creates++;
		json_decref(sw->created);
		sw->created = json_deep_copy(params);
		return created(sw, params);
	}
	if (!strcmp(method, "group.activate")) {
		sw->activates++;
		json_decref(sw->activated);
		sw->activated = json_deep_copy(params);
	} else if (!strcmp(method, "group.delete")) {
		sw->deletes++;
		sw->forced += json_is_true(json_object_get(params, "force"));
		sw->state = NULL;
	} else if (!strcmp(method, "lease.acquire")) {
		static atomic_uint serial;

		sw->acquired_at = ++serial;
		sw->acquires++;
	} else if (!strcmp(method, "lease.release")) {
		sw->releases++;
	} else if (!strcmp(method, "group.resync")) {
		sw->psn = (uint32_t)json_integer_value(json_object_get(params, "psn"));
		return json_pack("{s:i, s:s, s:b}", "group", 1, "name", "job", "done",
			++sw->resyncs > sw->not_ready);
	}
	return json_object();
}

static bool is(const json_t *params, const char *key, const char *value)
{
	const char *is = json_string_value(json_object_get(params, key));

	return is && value && strcmp(is, value) == 0;
}

static json_t *refusal(int err)
{
	return json_pack("{s:i, s:s, s:{s:s, s:s}}", "code", CTL_REFUSED, "message",
		"the test says no", "data", "errno", strerrorname_np(err), "path",
		"endpoints[0].ip");
}

static json_t *respond(struct fake_switch *sw, const json_t *request)
{
	const char *method = json_string_value(json_object_get(request, "method"));
	json_t *out =
		json_pack("{s:s, s:O}", "jsonrpc", "2.0", "id", json_object_get(request, "id"));

	if (sw->fail_method && !strcmp(method, sw->fail_method)) {
		json_object_set_new(out, "error", refusal(sw->fail_errno));
		if (sw->fail_times && --sw->fail_times == 0)
			sw->fail_method = NULL;
	} else if (is(json_object_get(request, "params"), "kind", sw->lacks) ||
		   is(json_object_get(request, "params"), "primitive", sw->lacks)) {
		json_object_set_new(out, "error", refusal(EOPNOTSUPP));
	} else {
		json_object_set_new(
			out, "result", answer(sw, method, json_object_get(request, "params")));
	}
	return out;
}

enum { MAX_FDS = 32, MAX_LINE = 65536 };

struct peer {
	int fd;
	char *buf;
	size_t len;
};

/* What has come; false: the peer has closed. */
static bool serve(struct fake_switch *sw, struct peer *p)
{
	const ssize_t n = recv(p->fd, p->buf + p->len, MAX_LINE - p->len, 0);
	char *end;

	if (n <= 0)
		return false;
	p->len += (size_t)n;
	while ((end = memchr(p->buf, '\n', p->len))) {
		const size_t used = (size_t)(end - p->buf) + 1;
		json_t *request = json_loadb(p->buf, used, 0, NULL);
		json_t *out = respond(sw, request);
		char *text = json_dumps(out, JSON_COMPACT);

		/* Who asked may have lost patience, and closed. */
		if (send(p->fd, text, strlen(text), MSG_NOSIGNAL) > 0)
			(void)!send(p->fd, "\n", 1, MSG_NOSIGNAL);
		free(text);
		json_decref(out);
		json_decref(request);
		memmove(p->buf, p->buf + used, p->len - used);
		p->len -= used;
	}
	return true;
}

static void close_peer(struct peer *p)
{
	close(p->fd);
	free(p->buf);
}

static void *run(void *arg)
{
	struct fake_switch *sw = arg;
	struct peer peer[MAX_FDS];
	unsigned n = 0;

	while (!sw->stop) {
		struct pollfd p[MAX_FDS + 1] = {{.fd = sw->listener, .events = POLLIN}};

		for (unsigned i = 0; i < n; i++)
			p[i + 1] = (struct pollfd){.fd = peer[i].fd, .events = POLLIN};
		if (poll(p, n + 1, 20) <= 0)
			continue;
		for (unsigned i = n; i-- > 0;)
			if (p[i + 1].revents && !serve(sw, &peer[i])) {
				close_peer(&peer[i]);
				peer[i] = peer[--n];
			}
		if (p[0].revents && n < MAX_FDS)
			peer[n++] = (struct peer){
				accept(sw->listener, NULL, NULL), malloc(MAX_LINE), 0};
	}
	while (n > 0)
		close_peer(&peer[--n]);
	return NULL;
}

void fake_switch_start(struct fake_switch *sw)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};

	memcpy(sun.sun_path, sw->path, sizeof(sun.sun_path));
	unlink(sw->path);
	sw->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(sw->listener, (struct sockaddr *)&sun, sizeof(sun)) || listen(sw->listener, 16) ||
		pthread_create(&sw->thread, NULL, run, sw))
		abort();
}

void fake_switch_stop(struct fake_switch *sw)
{
	sw->stop = true;
	pthread_join(sw->thread, NULL);
	close(sw->listener);
	unlink(sw->path);
}
