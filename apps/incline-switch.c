/* SPDX-License-Identifier: BSD-3-Clause */
/* incline-switch: the switch as a program. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "ctrl/agent/agent.h"
#include "ctrl/config/switch_config.h"
#include "dataplane/switch.h"
#include "lib/ctl/config.h"
#include "lib/ctl/notify.h"
#include "lib/journal/journal.h"

static volatile sig_atomic_t stop, load;

static const char usage[] =
	"usage: incline-switch -c FILE [--check]\n"
	"\n"
	"Runs a switch with the JSON configuration in FILE until SIGINT or SIGTERM.\n"
	"\n"
	"  -c, --config FILE  the configuration; examples are in pmd-configs/\n"
	"      --check        check it without opening anything, and end\n"
	"      --help-config[=markdown|schema]\n"
	"                     print what can be in FILE (docs/config.md has it, too)\n"
	"      --version      print the version\n"
	"  -h, --help         print this\n"
	"\n"
	"SIGHUP takes over the tables of FILE, all of them or none, reads certificates anew, and\n"
	"says on stderr what became of it, and what takes a restart. One that is ignored at the\n"
	"start (nohup) stays so.\n"
	"\n"
	"Environment: INCLINE_EAL_LOG=LEVEL prints what DPDK logs. NOTIFY_SOCKET: a service\n"
	"manager is told there when the switch is ready (sd_notify), and with WATCHDOG_USEC that\n"
	"it lives. INCLINE_ICRC=scalar, isal, avx2 or avx512: ICRC kernels other than this CPU's\n"
	"best.\n";

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static void on_hangup(int sig)
{
	(void)sig;
	load = 1;
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct sigaction hangup = {.sa_handler = on_hangup, .sa_flags = SA_RESTART}, was;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* Whoever starts it with nohup wants a terminal that closes to do nothing. */
	if (sigaction(SIGHUP, NULL, &was) == 0 && was.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &hangup, NULL);
}

static int fail(const char *file, const char *what)
{
	journal(JOURNAL_ERR, "incline-switch: %s: %s", file, what);
	return 1;
}

static int options(int argc, char **argv, const char **file, bool *check)
{
	static const struct option longs[] = {
		{"config", required_argument, NULL, 'c'},
		{"check", no_argument, NULL, 'k'},
		{"help-config", optional_argument, NULL, 'f'},
		{"version", no_argument, NULL, 'v'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "c:h", longs, NULL)) != -1) {
		switch (c) {
		case 'c':
			*file = optarg;
			break;
		case 'k':
			*check = true;
			break;
		case 'f':
			exit(ctl_config_help("incline-switch", &ctl_switch_config, optarg));
		case 'v':
			puts("incline-switch " INCLINE_VERSION);
			exit(0);
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			return -EINVAL;
		}
	}
	return *file != NULL && optind == argc ? 0 : -EINVAL;
}

static void say_ready(struct sw *sw, const char *control, const char *tcp)
{
	if (sw_lcores(sw)[0])
		printf("incline-switch %s: the control thread and its workers are on lcores %s\n",
			sw_name(sw), sw_lcores(sw));
	printf("incline-switch %s ready: %u ports, control %s%s%s\n", sw_name(sw), sw_n_ports(sw),
		control, tcp ? " and " : "", tcp ? tcp : "");
	fflush(stdout);
	ctl_notify("incline-switch", "READY=1");
}

/* What is still under way to groups of the switch that was here before is not for those to come. */
static int begin_generations(struct sw *sw, char err[SW_ERR_LEN])
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) {
		snprintf(
			err, SW_ERR_LEN, "the system gives no random numbers: %s", strerror(errno));
		return -EIO;
	}
	sw_groups_begin(sw, seed);
	return 0;
}

static int run(struct sw *sw, json_t *config, const char *file)
{
	const struct agent_options agent = {.ready = say_ready, .load = &load};
	const char *control = json_string_value(json_object_get(config, "control"));
	char err[SW_ERR_LEN];

	if (begin_generations(sw, err) < 0 || sw_start(sw, err) < 0)
		return fail(file, err);
	json_object_set_new(config, "startup_file", json_string(file));
	int rc = agent_run_with(sw, control, config, &stop, &agent);
	ctl_notify("incline-switch", "STOPPING=1");
	return rc < 0;
}

/* What the switch itself does not need to know. */
static int check_control(const json_t *config, char err[SW_ERR_LEN])
{
	const char *control = json_string_value(json_object_get(config, "control"));

	if (control == NULL || control[0] == '\0') {
		snprintf(err, SW_ERR_LEN, "control: is required, the path of the control socket");
		return -EINVAL;
	}
	return port_check_directory("control", control, true, err);
}

static void warn(const char *file, const json_t *config)
{
	if (json_array_size(json_object_get(config, "addresses")) == 0)
		journal(JOURNAL_WARNING,
			"incline-switch: %s: warning: addresses: there are none, no group can end "
			"here",
			file);
}

int main(int argc, char **argv)
{
	const char *file = NULL;
	bool check = false;
	json_error_t where;
	struct sw *sw = NULL;
	char err[SW_ERR_LEN];
	json_t *config;
	int rc;

	if (options(argc, argv, &file, &check) < 0) {
		fputs(usage, stderr);
		return 2;
	}
	config = json_load_file(file, JSON_REJECT_DUPLICATES, &where);
	if (config == NULL) {
		if (where.line > 0)
			journal(JOURNAL_ERR, "incline-switch: %s:%d:%d: %s", file, where.line,
				where.column, where.text);
		else
			journal(JOURNAL_ERR, "incline-switch: %s", where.text);
		return 1;
	}
	catch_signals();
	if (agent_check_config(config, err, sizeof(err)) < 0 ||
		switch_create(config, !check, &sw, err) < 0 || check_control(config, err) < 0)
		rc = fail(file, err);
	else
		rc = 0;
	if (rc == 0 &&
		agent_apply_tables(sw, json_object_get(config, "tables"), err, sizeof(err)) < 0)
		rc = fail(file, err);
	if (rc == 0)
		warn(file, config);
	if (rc == 0 && check)
		printf("%s: ok, %u ports\n", file, sw_n_ports(sw));
	else if (rc == 0)
		rc = run(sw, config, file);
	sw_destroy_last(sw);
	json_decref(config);
	port_eal_fini();
	return rc;
}
