/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/ctl/cli_helper.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int call(void *arg, const char *method, const json_t *params, json_t **result,
	struct ctl_error *error)
{
	struct fixture *f = arg;
	json_t *request = json_pack("{s:s,s:i,s:s,s:O*}", "jsonrpc", "2.0", "id", 1, "method",
		method, "params", params);
	char *line = json_dumps(request, 0);
	json_t *answer = f->down ? NULL : send_line(f->rpc, line, strlen(line));
	json_t *bad = json_object_get(answer, "error");
	int rc = bad || f->down ? -EREMOTEIO : 0;

	*result = json_incref(json_object_get(answer, "result"));
	*error = (struct ctl_error){.index = -1};
	/* As ctl_call: the path apart from the message. */
	const char *msg = json_string_value(json_object_get(bad, "message"));
	const char *path = json_string_value(json_object_get(json_object_get(bad, "data"), "path"));
	if (path) {
		snprintf(error->path, sizeof(error->path), "%s", path);
		msg += strlen(path) + 2;
	}
	snprintf(error->msg, sizeof(error->msg), "%s", msg ? msg : "nobody listens");
	json_decref(answer);
	json_decref(request);
	free(line);
	return rc;
}

static bool wait_awhile(void *arg, unsigned ms)
{
	struct fixture *f = arg;

	f->ms += ms;
	return ms > 0 && (!f->paused || f->paused(f));
}

/* The time of the waits, from noon of a day on. */
static void tell_time(void *arg, struct cli_time *now)
{
	const struct fixture *f = arg;

	now->ns = 1000000 * (f->ms + 1);
	now->unix_ms = 1700049600000 + f->ms;
}

int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	rpc_setup((void **)&f->rpc);
	f->cli = (struct cli){
		.call = call, .pause = wait_awhile, .clock = tell_time, .arg = f, .where = ""};
	f->cli.out = open_memstream(&f->out, &f->out_len);
	f->cli.err = open_memstream(&f->err, &f->err_len);
	snprintf(f->file, sizeof(f->file), "%s/commands", f->rpc->dir);
	*state = f;
	return 0;
}

int teardown(void **state)
{
	struct fixture *f = *state;

	cli_forget(&f->cli);
	fclose(f->cli.out);
	fclose(f->cli.err);
	free(f->out);
	free(f->err);
	unlink(f->file);
	rpc_teardown((void **)&f->rpc);
	free(f);
	return 0;
}

unsigned split(char *line, const char **argv)
{
	unsigned n = 0;

	for (char *save, *w = strtok_r(line, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	return n;
}

int run(struct fixture *f, const char *line)
{
	const char *argv[64];
	char *copy = strdup(line);

	rewind(f->cli.out);
	rewind(f->cli.err);
	int rc = cli_run(&f->cli, split(copy, argv), argv);
	fputc('\0', f->cli.out);
	fputc('\0', f->cli.err);
	fflush(f->cli.out);
	fflush(f->cli.err);
	free(copy);
	return rc;
}

void run_ok(struct fixture *f, const char *line)
{
	if (run(f, line) != CLI_OK)
		fail_msg("%s: %s", line, f->err);
	assert_string_equal(f->err, "");
}

void run_bad(struct fixture *f, const char *line, int status, const char *err)
{
	assert_int_equal(run(f, line), status);
	assert_string_equal(f->err, err);
	assert_string_equal(f->out, "");
}

void write_file(struct fixture *f, const char *text)
{
	FILE *out = fopen(f->file, "w");

	fputs(text, out);
	fclose(out);
}

void create_group(struct fixture *f)
{
	char line[256];

	write_file(f,
		"{ \"#\": \"a comment\", \"name\": \"job-7\", \"mode\": \"II\", \"kind\": "
		"\"single\","
		" \"primitive\": \"allreduce\", \"mtu\": 1024, \"M\": 4, \"W\": 8, \"ranks\": 2,"
		" \"start_psn\": 100, \"endpoints\": [ { \"#who\": \"rank 0\","
		" \"ip\": \"10.0.0.1\", \"qpn\": 17, \"port\": \"p0\", \"ranks\": [0] },"
		" { \"ip\": \"10.0.0.2\", \"port\": \"p1\", \"ranks\": [1] } ] }\n");
	snprintf(line, sizeof(line), "group create %s", f->file);
	run_ok(f, line);
	fake_switch_arrived(f->rpc->sw, 1, 100, 2);
}
