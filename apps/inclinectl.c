/* SPDX-License-Identifier: BSD-3-Clause */
/* inclinectl: the command line of a running switch. */
#include "apps/inclinectl.h"
#include "lib/ctl/address.h"
#include "lib/ctl/manager_schema.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ADDRESS = 512 };

struct options {
	const char *socket, *file;
	bool json, keep, interactive, complete;
	bool given; /* socket is, by an option */
	double watch_s, timeout_s;
};

/* The connection: made when first needed, and again after the switch has gone. */
struct link {
	const char *socket;
	unsigned timeout_ms;
	struct ctl_client *client;
	struct link *manager; /* for its methods; NULL: this is to it */
};

/* Of a switch it is if both have it. */
static bool is_managers(const char *method)
{
	return !ctl_find(&ctl_switch_schema, method) && ctl_find(&ctl_manager_schema, method);
}

/* A manager's may be several addresses: the first that somebody listens at. */
static int open_link(struct link *l, struct ctl_error *error)
{
	char item[MAX_ADDRESS];
	int rc = -EINVAL, n;

	for (unsigned i = 0; (n = ctl_address_item(l->socket, i, item, sizeof(item))) >= 0; i++) {
		rc = ctl_connect(item, 0, &l->client, error);
		if (!rc)
			return 0;
	}
	return n == -ENAMETOOLONG ? ctl_connect(l->socket, 0, &l->client, error) : rc;
}

static int call(void *arg, const char *method, const json_t *params, json_t **result,
	struct ctl_error *error)
{
	struct link *l = arg;
	int rc = 0;

	if (l->manager && is_managers(method))
		l = l->manager;
	/* The switch closes connections that are silent for long. */
	if (l->client && !ctl_is_open(l->client)) {
		ctl_close(l->client);
		l->client = NULL;
	}
	if (!l->client)
		rc = l->manager ? ctl_connect(l->socket, 0, &l->client, error)
				: open_link(l, error);
	if (!rc)
		rc = ctl_call(l->client, method, params, l->timeout_ms, result, error);
	if (rc && l->client && !error->code && rc != -E2BIG && rc != -EINVAL) {
		ctl_close(l->client);
		l->client = NULL;
	}
	return rc;
}

static volatile sig_atomic_t interrupted;

static void on_signal(int signal)
{
	(void)signal;
	interrupted = 1;
}

/* From the first time on, a signal ends the command as if it had been asked to. */
static bool wait_awhile(void *arg, unsigned ms)
{
	const struct sigaction catch = {.sa_handler = on_signal}, dflt = {.sa_handler = SIG_DFL};

	(void)arg;
	sigaction(SIGINT, &catch, NULL);
	sigaction(SIGTERM, &catch, NULL);
	if (ms && !interrupted)
		usleep(ms * 1000);
	if (!interrupted)
		return false;
	sigaction(SIGINT, &dflt, NULL);
	sigaction(SIGTERM, &dflt, NULL);
	interrupted = 0;
	return true;
}

static const char usage_text[] =
	"usage: inclinectl [OPTIONS] [COMMAND [ARGUMENTS]]\n"
	"Shows and changes a running incline-switch. Without a command: a summary.\n"
	"\n"
	"  -s, --socket PATH    control socket; default $INCLINE_SOCKET, or " CTL_DEFAULT_SOCKET
	"\n"
	"                       (or tcp:HOST:PORT); for \"job\" and \"topology\" that of a "
	"manager:\n"
	"                       default $INCLINE_MANAGER (several with commas between: the one\n"
	"                       that listens), or " CTL_DEFAULT_MANAGER "\n"
	"  -j, --json           print results as JSON; also after a command\n"
	"  -i, --interactive    read commands from the terminal, with completion and history\n"
	"  -f, --file FILE      run the commands in a file, one per line (- for standard input)\n"
	"  -k, --keep-going     with -f: go on after a command that fails\n"
	"  -w, --watch SECONDS  repeat the command until it fails or is interrupted; numbers that\n"
	"                       changed show their change per second, JSON is a line each time\n"
	"  -t, --timeout SECONDS  to wait for an answer; default 10\n"
	"      --complete       print what may stand for the last of the words, for shells\n"
	"  -V, --version        print the version of inclinectl\n"
	"  -h, --help           print this; \"inclinectl help\" lists the commands\n"
	"\n"
	"With $INCLINE_TLS, a directory with ca.pem, cert.pem and key.pem, TCP is TLS.\n"
	"Exit status: 0 done, 1 failed, 2 wrong usage.\n";

static bool seconds(const char *text, double *s)
{
	char *end;

	*s = strtod(text, &end);
	return end != text && !*end && *s > 0 && *s < 1e6;
}

/* -1: go on; else exit with this status. */
static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {{"socket", required_argument, NULL, 's'},
		{"json", no_argument, NULL, 'j'}, {"interactive", no_argument, NULL, 'i'},
		{"file", required_argument, NULL, 'f'}, {"keep-going", no_argument, NULL, 'k'},
		{"watch", required_argument, NULL, 'w'}, {"timeout", required_argument, NULL, 't'},
		{"complete", no_argument, NULL, 'c'}, {"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'}, {0}};
	int c;

	/* '+': options of commands are theirs. */
	while ((c = getopt_long(argc, argv, "+s:jif:kw:t:Vh", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			o->socket = optarg;
			o->given = true;
			break;
		case 'j':
			o->json = true;
			break;
		case 'i':
			o->interactive = true;
			break;
		case 'f':
			o->file = optarg;
			break;
		case 'c':
			o->complete = true;
			break;
		case 'k':
			o->keep = true;
			break;
		case 'w':
		case 't':
			if (seconds(optarg, c == 'w' ? &o->watch_s : &o->timeout_s))
				break;
			fprintf(stderr, "error: -%c: %s: must be seconds above 0\n", c, optarg);
			return CLI_USAGE;
		case 'V':
			printf("inclinectl %s\n", INCLINE_VERSION);
			return CLI_OK;
		case 'h':
			fputs(usage_text, stdout);
			return CLI_OK;
		default:
			fputs("error: see inclinectl --help\n", stderr);
			return CLI_USAGE;
		}
	}
	if (o->file && (o->interactive || optind < argc)) {
		fputs("error: -f: stands alone, without -i and without a command\n", stderr);
		return CLI_USAGE;
	}
	return -1;
}

static void print_offer(void *arg, const char *candidate)
{
	(void)arg;
	puts(candidate);
}

static int complete(struct cli *cli, unsigned n, const char *const *words)
{
	cli_complete(cli, n ? n - 1 : 0, words, n ? words[n - 1] : "", print_offer, NULL);
	return CLI_OK;
}

static void now(void *arg, struct cli_time *t)
{
	struct timespec ts;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	t->ns = (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
	clock_gettime(CLOCK_REALTIME, &ts);
	t->unix_ms = (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	const char *env = getenv("INCLINE_SOCKET");
	struct options o = {.socket = env && env[0] ? env : CTL_DEFAULT_SOCKET, .timeout_s = 10};
	int rc = parse_options(argc, argv, &o);

	if (rc >= 0)
		return rc;
	const char *manager = getenv("INCLINE_MANAGER");
	struct link to_manager = {.timeout_ms = (unsigned)(o.timeout_s * 1000)};
	struct link link = {
		.socket = o.socket, .timeout_ms = to_manager.timeout_ms, .manager = &to_manager};
	to_manager.socket = o.given                 ? o.socket
			    : manager && manager[0] ? manager
						    : CTL_DEFAULT_MANAGER;
	struct cli cli = {.call = call,
		.pause = wait_awhile,
		.clock = now,
		.arg = &link,
		.out = stdout,
		.err = stderr,
		.json = o.json,
		.where = ""};
	unsigned n = (unsigned)(argc - optind);
	const char *const *words = (const char *const *)argv + optind;
	if (o.file)
		rc = cli_run_file(&cli, o.file, o.keep);
	else if (o.complete)
		rc = complete(&cli, n, words);
	else if (o.interactive)
		rc = cli_interact(&cli);
	else if (o.watch_s > 0)
		rc = cli_watch(&cli, (unsigned)(o.watch_s * 1000) + 1, n, words);
	else
		rc = cli_run(&cli, n, words);
	cli_forget(&cli);
	ctl_close(link.client);
	ctl_close(to_manager.client);
	if (fflush(stdout) || ferror(stdout)) {
		fputs("error: standard output: cannot be written\n", stderr);
		return CLI_FAILED;
	}
	return rc;
}
