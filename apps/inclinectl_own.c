/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands whose words are not their method's parameters one by one: those of tables, and those
 * that read a file or a list of QPNs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "apps/inclinectl_cmd.h"

static int load_file(const char *path, json_t **out, char *err)
{
	bool is_stdin = !strcmp(path, "-");
	json_error_t error;
	json_t *json;
	FILE *in = is_stdin ? stdin : fopen(path, "re");

	if (!in)
		return cli_refuse(err, -errno, "%s: %s", path, strerror(errno));
	json = json_loadf(in, JSON_REJECT_DUPLICATES, &error);
	if (!is_stdin)
		fclose(in);
	if (!json)
		return cli_refuse(err, -EINVAL, "%s: line %d, column %d: %s", path, error.line,
			error.column, error.text);
	*out = ctl_strip_comments(json);
	json_decref(json);
	return 0;
}

/* A file that holds the parameters. */
static int parse_file(unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN])
{
	json_t *file = NULL;

	if (argc != 1)
		return cli_refuse(err, -EINVAL, "wants one file");
	int rc = load_file(argv[0], &file, err);
	if (!rc && !json_is_object(file))
		rc = cli_refuse(err, -EINVAL, "%s: must hold one object", argv[0]);
	if (!rc)
		json_object_update(params, file);
	json_decref(file);
	return rc;
}

/* The file holds the parameters, or just the list of updates. */
static int parse_table_write(
	unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN])
{
	json_t *file = NULL;

	if (argc != 1)
		return cli_refuse(err, -EINVAL, "wants one file");
	int rc = load_file(argv[0], &file, err);
	if (!rc && json_is_array(file))
		json_object_set(params, "updates", file);
	else if (!rc)
		json_object_update(params, file);
	json_decref(file);
	return rc;
}

/* "INDEX=QPN" */
static int parse_endpoint(const char *word, json_t *list, char *err)
{
	const char *equals = strchr(word, '=');
	char index[16];
	json_int_t i, qpn;

	if (!equals || (size_t)(equals - word) >= sizeof(index))
		return cli_refuse(err, -EINVAL, "%s: must be INDEX=QPN", word);
	memcpy(index, word, (size_t)(equals - word));
	index[equals - word] = '\0';
	if (cli_int(index, &i) || cli_int(equals + 1, &qpn))
		return cli_refuse(err, -EINVAL, "%s: must be INDEX=QPN", word);
	json_array_append_new(list, json_pack("{s:I,s:I}", "index", i, "qpn", qpn));
	return 0;
}

static int parse_group_activate(
	unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN])
{
	json_t *list = json_array();
	int rc = 0;

	if (argc)
		json_object_set_new(params, "group", cli_ref(argv[0]));
	for (unsigned i = 1; i < argc && !rc; i++)
		rc = parse_endpoint(argv[i], list, err);
	if (json_array_size(list))
		json_object_set(params, "endpoints", list);
	json_decref(list);
	return rc;
}

/* "INPUT=QPN", or "parent=QPN" */
static int parse_ring_activate(
	unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN])
{
	json_t *list = json_array();
	json_int_t qpn, input;
	int rc = 0;

	if (argc)
		json_object_set_new(params, "ring", cli_ref(argv[0]));
	for (unsigned i = 1; i < argc && !rc; i++) {
		const char *equals = strchr(argv[i], '=');
		char word[16] = "";

		if (equals && (size_t)(equals - argv[i]) < sizeof(word))
			memcpy(word, argv[i], (size_t)(equals - argv[i]));
		if (!equals || cli_int(equals + 1, &qpn) ||
			(strcmp(word, "parent") != 0 && cli_int(word, &input)))
			rc = cli_refuse(
				err, -EINVAL, "%s: must be INPUT=QPN or parent=QPN", argv[i]);
		else if (!strcmp(word, "parent"))
			json_object_set_new(params, "parent_qpn", json_integer(qpn));
		else
			json_array_append_new(
				list, json_pack("{s:I,s:I}", "input", input, "qpn", qpn));
	}
	if (json_array_size(list))
		json_object_set(params, "leaves", list);
	json_decref(list);
	return rc;
}

static const char *const lose = "lose.";

/* "lose.OPCODE" */
static int add_lose(const char *name, json_t *value, json_t *impair, char *err)
{
	json_int_t opcode;

	if (cli_int(name + strlen(lose), &opcode))
		return cli_refuse(err, -EINVAL, "%s: must be lose.OPCODE", name);
	if (!json_object_get(impair, "lose"))
		json_object_set_new(impair, "lose", json_array());
	return json_array_append_new(json_object_get(impair, "lose"),
		json_pack("{s:I,s:O}", "opcode", opcode, "loss", value));
}

static int add_weather(const char *name, json_t *value, json_t *impair, char *err)
{
	if (!json_is_number(value) && !json_is_boolean(value))
		return cli_refuse(err, -EINVAL, "%s: wants a number, true or false", name);
	if (strncmp(name, lose, strlen(lose)) == 0)
		return add_lose(name, value, impair, err);
	if (json_object_get(impair, name))
		return cli_refuse(err, -EINVAL, "%s: is given twice", name);
	return json_object_set(impair, name, value);
}

/* "FIELD=VALUE", or "lose.OPCODE=PROBABILITY" */
static int parse_weather(const char *word, json_t *impair, char *err)
{
	const char *equals = strchr(word, '=');
	char name[CLI_ERR_LEN / 2];
	json_t *value;
	int rc;

	if (!equals || (size_t)(equals - word) >= sizeof(name))
		return cli_refuse(err, -EINVAL, "%s: must be FIELD=VALUE", word);
	memcpy(name, word, (size_t)(equals - word));
	name[equals - word] = '\0';
	value = json_loads(equals + 1, JSON_DECODE_ANY, NULL);
	rc = add_weather(name, value, impair, err);
	json_decref(value);
	return rc;
}

static int parse_impair(
	unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN])
{
	json_t *impair = json_object();
	int rc = 0;

	if (argc)
		json_object_set_new(params, "port", json_string(argv[0]));
	for (unsigned i = 1; i < argc && !rc; i++)
		rc = parse_weather(argv[i], impair, err);
	if (json_object_size(impair))
		json_object_set(params, "impair", impair);
	json_decref(impair);
	return rc;
}

/* TABLE FIELD=VALUE... [ACTION [PARAM=VALUE...]] [--priority N]: pairs before the action's name are
 * the key, those behind it its data. */
static int parse_update(unsigned argc, const char *const *argv, const char *op, json_t *params,
	char err[CLI_ERR_LEN])
{
	json_t *key = json_object(), *data = NULL;
	json_t *u = json_pack("{s:s,s:o}", "op", op, "key", key);
	json_int_t n;
	int rc = 0;

	json_object_set_new(params, "updates", json_pack("[o]", u));
	if (argc)
		json_object_set_new(u, "table", json_string(argv[0]));
	for (unsigned i = 1; i < argc && !rc; i++) {
		if (!strcmp(argv[i], "--priority")) {
			if (++i == argc || cli_int(argv[i], &n))
				rc = cli_refuse(err, -EINVAL, "--priority: wants an integer");
			else
				json_object_set_new(u, "priority", json_integer(n));
		} else if (strchr(argv[i], '=')) {
			rc = cli_set_pair(data ? data : key, argv[i], err);
		} else if (data) {
			rc = cli_refuse(err, -EINVAL, "%s: must be PARAM=VALUE", argv[i]);
		} else {
			json_object_set_new(u, "action", json_string(argv[i]));
			data = json_object();
			json_object_set_new(u, "data", data);
		}
	}
	return rc;
}

static int parse_insert(
	unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN])
{
	return parse_update(argc, argv, "insert", params, err);
}

static int parse_modify(
	unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN])
{
	return parse_update(argc, argv, "modify", params, err);
}

static int parse_delete(
	unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN])
{
	return parse_update(argc, argv, "delete", params, err);
}

const struct cli_own cli_own[] = {
	{"table insert", "table.write",
		"TABLE FIELD=VALUE... ACTION [PARAM=VALUE...] [--priority N]",
		"Adds an entry; fails if there is one with this key.", parse_insert},
	{"table modify", "table.write",
		"TABLE FIELD=VALUE... ACTION [PARAM=VALUE...] [--priority N]",
		"Replaces the action of an entry.", parse_modify},
	{"table delete", "table.write", "TABLE FIELD=VALUE... [--priority N]", "Removes an entry.",
		parse_delete},
	{"table write", "table.write", "FILE",
		"Applies the updates in a JSON file (- for standard input): all or none.",
		parse_table_write},
	{"group create", "group.create", "FILE",
		"Installs the INC group in a JSON file (- for standard input).", parse_file},
	{"ring create", "ring.create", "FILE",
		"Installs the NetReduce ring in a JSON file (- for standard input).", parse_file},
	{"ring activate", "ring.activate", "RING [INPUT=QPN...] [parent=QPN]",
		"Starts an installed ring, with the QPNs not known before.", parse_ring_activate},
	{"port impair", "port.impair", "PORT [FIELD=VALUE...] [lose.OPCODE=PROBABILITY...]",
		"Has bad weather on a port from now on, as \"impair\" in the start-up file: "
		"loss=0.01 "
		"seed=7; without a FIELD fine weather.",
		parse_impair},
	{"capture", "capture.start",
		"PORT FILE [--dir in|out|both] [--filter EXPRESSION] [-c COUNT] [-s SNAPLEN] "
		"[-C MB [-W FILES]]",
		"Writes packets of a port to a pcapng file (- for standard output), until "
		"interrupted or COUNT are there; with -C to files of MB, the last FILES of them.",
		cli_parse_capture},
	{"group activate", "group.activate", "GROUP [INDEX=QPN...]",
		"Starts an installed group, with the QPNs not known before.", parse_group_activate},
	{0},
};
