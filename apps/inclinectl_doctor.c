/* SPDX-License-Identifier: BSD-3-Clause */
/* "doctor": what of this machine is not as a switch, or a software RNIC, wants it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "apps/inclinectl_checks.h"
#include "apps/inclinectl_cmd.h"

static const struct ctl_field doctor_params[] = {
	{"config", CTL_STRING, .complete = "file",
		.help = "configuration of a switch or an RNIC; default: that of the switch which "
			"runs, if one does"},
	{"root", CTL_STRING, .complete = "file",
		.help = "folder with the sys, proc and dev of another machine; default: this "
			"one's"},
	{0}};

const struct ctl_method cli_doctor = {"doctor", "doctor",
	"Looks whether this machine is ready for its configuration: hugepages, IOMMU, CPUs, clock, "
	"limits, drivers, PCIe, NUMA, MTUs; says what mends it. Status 1 if something fails.",
	false, doctor_params, checks_result};

const char *const cli_doctor_shorts[] = {"-c", "--config", NULL};

/* New reference, or NULL with a message printed. */
static json_t *load(struct cli *cli, const char *path)
{
	json_error_t error;
	json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &error), *out;

	if (!json_is_object(json)) {
		fprintf(cli->err, "error: %sdoctor: %s: %s\n", cli->where, path,
			json ? "must hold one object" : error.text);
		json_decref(json);
		return NULL;
	}
	out = ctl_strip_comments(json);
	json_decref(json);
	return out;
}

/* Of the switch that runs, if there is one: NULL else. */
static json_t *ask(struct cli *cli, const char *method, json_t *params, const char *member)
{
	json_t *result = NULL, *out = NULL;
	struct ctl_error e;

	if (!cli->call(cli->arg, method, params, &result, &e))
		out = json_incref(json_object_get(result, member));
	json_decref(result);
	json_decref(params);
	return out;
}

int cli_run_doctor(struct cli *cli, const json_t *params)
{
	const char *path = json_string_value(json_object_get(params, "config"));
	const char *root = json_string_value(json_object_get(params, "root"));
	json_t *config = NULL, *workers = NULL, *result;
	struct checks_about about = {.root = root ? root : ""};

	if (path && !(config = load(cli, path)))
		return CLI_FAILED;
	if (!path && (config = ask(cli, "config.get", json_pack("{s:b}", "tables", 0), "config")))
		workers = ask(cli, "worker.list", NULL, "workers");
	about.config = config;
	about.workers = workers;
	result = checks_run(&about);
	json_object_set_new(result, "config",
		json_string(path     ? path
			    : config ? "running"
				     : "none"));
	const bool fails = json_integer_value(json_object_get(result, "fail")) > 0;
	if (cli->json) {
		json_dumpf(result, cli->out, JSON_INDENT(2));
		fputc('\n', cli->out);
	} else {
		cli_text(cli->out, checks_result, result);
	}
	fflush(cli->out);
	json_decref(result);
	json_decref(workers);
	json_decref(config);
	return fails ? CLI_FAILED : CLI_OK;
}
