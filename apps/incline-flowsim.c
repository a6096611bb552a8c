/* SPDX-License-Identifier: BSD-3-Clause */
/* incline-flowsim: EPIC's flow simulations with the manager's own policies (docs/flowsim.md). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/flowsim_tables.h"

static const char usage[] =
	"incline-flowsim table 6|36..45 [OPTIONS]\n"
	"incline-flowsim figure 16|20..24 [OPTIONS]\n"
	"incline-flowsim job [--model NAME] [--setting NAME] [--scaleup] [--gpus N] [OPTIONS]\n"
	"\n"
	"  table   a table of EPIC, our figures beside the paper's, and where orders differ\n"
	"  figure  the same for a distribution: seconds by percentile, for tools/plot\n"
	"  job     one job: --model gpt3-175b|gpt3-13b|llama-65b|llama-7b on 128 GPUs,\n"
	"          --setting ring|edt|spatial|temporal\n"
	"\n"
	"  --json FILE  the result; - is stdout\n"
	"  --slots N    groups of a switch (a table's own; 16 with many jobs)\n"
	"  --sram N     bytes of a switch; without it memory is not scarce\n"
	"  --exact      rings move 2 (n - 1) / n times the buffer, not twice\n"
	"  --hashed     rings go by hash, not over the links with fewest flows\n"
	"  --scatter    jobs on servers picked at random\n"
	"  --scaleup-inc  scale-up links reduce, too\n"
	"  --jobs N --load X --seed N  of a trace: 300, 3, 1\n"
	"  --quiet      no progress\n";

static int number(const char *text, unsigned long long most, unsigned long long *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	return errno || end == text || *end || text[0] == '-' || *out > most ? -EINVAL : 0;
}

static int parse_flag(const char *arg, struct flowsim_options *o)
{
	const struct {
		const char *name;
		bool *flag;
	} flag[] = {{"--exact", &o->config.exact}, {"--hashed", &o->config.hashed},
		{"--scatter", &o->config.scatter}, {"--scaleup", &o->config.scaleup},
		{"--scaleup-inc", &o->config.scaleup_inc}, {"--quiet", &o->quiet}};

	for (unsigned i = 0; i < sizeof(flag) / sizeof(flag[0]); i++) {
		if (strcmp(arg, flag[i].name) == 0) {
			*flag[i].flag = true;
			return 0;
		}
	}
	return -ENOENT;
}

static int parse_name(const char *arg, const char *value, struct flowsim_options *o)
{
	if (strcmp(arg, "--json") == 0) {
		o->json = value;
		return 0;
	}
	for (unsigned i = 0; strcmp(arg, "--model") == 0 && i < FS_MODELS; i++) {
		o->model = i;
		if (strcmp(value, fs_models[i].name) == 0)
			return 0;
	}
	for (unsigned i = 0; strcmp(arg, "--setting") == 0 && i < FS_SETTINGS; i++) {
		o->setting = i;
		if (strcmp(value, fs_setting_name(i)) == 0)
			return 0;
	}
	return -EINVAL;
}

static int parse_value(const char *arg, const char *value, struct flowsim_options *o)
{
	unsigned long long n;
	char *end;

	if (strcmp(arg, "--load") == 0) {
		o->load = strtod(value, &end);
		return end != value && *end == '\0' && o->load > 0 && o->load <= 100 ? 0 : -EINVAL;
	}
	if (strcmp(arg, "--slots") == 0 && number(value, 1 << 16, &n) == 0 && n > 0)
		o->slots = (unsigned)n;
	else if (strcmp(arg, "--sram") == 0 && number(value, 1ull << 40, &n) == 0 && n > 0)
		o->sram = n;
	else if (strcmp(arg, "--jobs") == 0 && number(value, 1000000, &n) == 0 && n > 0)
		o->jobs = (unsigned)n;
	else if (strcmp(arg, "--gpus") == 0 && number(value, 1 << 16, &n) == 0 && n > 0)
		o->gpus = (unsigned)n;
	else if (strcmp(arg, "--seed") == 0 && number(value, UINT64_MAX, &n) == 0)
		o->config.seed = n;
	else
		return parse_name(arg, value, o);
	return 0;
}

static int parse(int argc, char **argv, struct flowsim_options *o)
{
	for (int i = 0; i < argc; i++) {
		if (parse_flag(argv[i], o) == 0)
			continue;
		if (i + 1 == argc || parse_value(argv[i], argv[i + 1], o)) {
			fprintf(stderr, "incline-flowsim: %s%s%s: not understood\n", argv[i],
				i + 1 < argc ? " " : "", i + 1 < argc ? argv[i + 1] : "");
			return -EINVAL;
		}
		i++;
	}
	return 0;
}

static int save(const json_t *result, const char *path)
{
	if (!path)
		return 0;
	if (strcmp(path, "-") == 0)
		return json_dumpf(result, stdout, JSON_INDENT(1)) || putchar('\n') < 0;
	if (json_dump_file(result, path, JSON_INDENT(1)) == 0)
		return 0;
	fprintf(stderr, "incline-flowsim: %s: cannot be written\n", path);
	return 1;
}

int main(int argc, char **argv)
{
	struct flowsim_options o = {
		.config = {.seed = 1}, .jobs = 300, .load = 3, .gpus = FS_SINGLE_GPUS};
	const char *verb = argc > 1 ? argv[1] : "";
	bool job = strcmp(verb, "job") == 0, named = !job && argc > 2;
	unsigned long long what = 0;
	json_t *result;
	int rc;

	if (strcmp(verb, "--help") == 0 || strcmp(verb, "--version") == 0) {
		fputs(verb[2] == 'h' ? usage : "incline-flowsim " INCLINE_VERSION "\n", stdout);
		return 0;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if ((!job && (!named || number(argv[2], 1000, &what))) ||
		parse(argc - 2 - named, argv + 2 + named, &o)) {
		fputs(usage, stderr);
		return 2;
	}
	o.out = o.json && strcmp(o.json, "-") == 0 ? stderr : stdout;
	result = json_object();
	rc = job                           ? flowsim_job(&o, result)
	     : strcmp(verb, "table") == 0  ? flowsim_table((unsigned)what, &o, result)
	     : strcmp(verb, "figure") == 0 ? flowsim_figure((unsigned)what, &o, result)
					   : -EINVAL;
	if (rc == -EINVAL)
		fputs(usage, stderr);
	rc = rc == -EINVAL ? 2 : rc ? 1 : save(result, o.json);
	json_decref(result);
	return rc;
}
