/* SPDX-License-Identifier: BSD-3-Clause */
/* incline-manager: the manager of a fabric as a program. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctrl/manager/serve.h"
#include "lib/ctl/config.h"
#include "lib/ctl/manager_schema.h"
#include "lib/ctl/notify.h"

static volatile sig_atomic_t stop, again;

static const char usage[] =
	"usage: incline-manager -c FILE\n"
	"\n"
	"Places the trees of jobs' groups on the fabric described in FILE, and ends what has "
	"failed,\n"
	"until SIGINT or SIGTERM. Jobs find it by INCLINE_MANAGER, or the key \"manager\" of their "
	"group file.\n"
	"\n"
	"  -c, --config FILE  the configuration: switches, hosts, links (docs/manager.md)\n"
	"      --check        check it, and end\n"
	"      --help-config[=markdown|schema]\n"
	"                     print what can be in FILE\n"
	"      --help-markdown  print that and all methods, as in docs/manager.md\n"
	"      --version      print the version\n"
	"  -h, --help         print this\n"
	"\n"
	"SIGHUP reads certificates (\"tls\") anew, for connections that come later.\n";

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static void on_hangup(int sig)
{
	(void)sig;
	again = 1;
}

static void catch_signals(void)
{
	const struct sigaction action = {.sa_handler = on_signal};
	const struct sigaction hangup = {.sa_handler = on_hangup, .sa_flags = SA_RESTART};
	struct sigaction was;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* Whoever starts it with nohup wants a terminal that closes to do nothing. */
	if (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &hangup, NULL);
}

static void ready(const char *path, const char *tcp)
{
	printf("incline-manager ready: %s%s%s\n", path, tcp ? " and " : "", tcp ? tcp : "");
	fflush(stdout);
	ctl_notify("incline-manager", "READY=1");
}

/* -1: go on; else exit with this status. */
static int options(int argc, char **argv, const char **file, bool *check)
{
	static const struct option longs[] = {{"config", required_argument, NULL, 'c'},
		{"check", no_argument, NULL, 'k'}, {"help-config", optional_argument, NULL, 'f'},
		{"help-markdown", no_argument, NULL, 'm'}, {"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'}, {0}};
	int c;

	while ((c = getopt_long(argc, argv, "c:h", longs, NULL)) != -1) {
		if (c == 'c')
			*file = optarg;
		else if (c == 'k')
			*check = true;
		else if (c == 'f')
			return ctl_config_help("incline-manager", &ctl_manager_config, optarg);
		else if (c == 'm')
			ctl_manager_markdown(stdout);
		else if (c == 'v')
			puts("incline-manager " INCLINE_VERSION);
		else if (c == 'h')
			fputs(usage, stdout);
		if (c == 'm' || c == 'v' || c == 'h')
			return 0;
		if (c == '?')
			break;
	}
	if (c == -1 && *file && optind == argc)
		return -1;
	fputs(usage, stderr);
	return 2;
}

/* Checked, without comments; NULL after a line on stderr. */
static json_t *load(const char *file)
{
	struct ctl_problem problem;
	json_error_t where;
	char text[512];
	json_t *raw = json_load_file(file, JSON_REJECT_DUPLICATES, &where), *config;

	if (!raw) {
		fprintf(stderr, "incline-manager: %s:%d:%d: %s\n", file, where.line, where.column,
			where.text);
		return NULL;
	}
	config = ctl_strip_comments(raw);
	json_decref(raw);
	if (!ctl_check_value(&ctl_manager_config, config, "", &problem))
		return config;
	ctl_problem_text(&problem, text, sizeof(text));
	fprintf(stderr, "incline-manager: %s: %s\n", file, text);
	json_decref(config);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *file = NULL;
	bool check = false;
	int rc = options(argc, argv, &file, &check);
	char err[MANAGER_ERR_LEN];
	json_t *config;

	if (rc >= 0)
		return rc;
	config = load(file);
	if (!config)
		return 1;
	catch_signals();
	if (check && manager_check(config, err))
		rc = fprintf(stderr, "incline-manager: %s: %s\n", file, err) != 0;
	else if (check)
		rc = printf("%s: ok\n", file) < 0;
	else
		rc = manager_run(config, &stop, &again, ready, &manager_times) != 0;
	if (!check)
		ctl_notify("incline-manager", "STOPPING=1");
	json_decref(config);
	return rc;
}
