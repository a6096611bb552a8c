/* SPDX-License-Identifier: BSD-3-Clause */
/* incline-sim: the code that ships, on made-up wires and virtual time (docs/simulator.md). */
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "apps/sim_models.h"
#include "apps/sim_mrc.h"
#include "apps/sim_multicast.h"
#include "apps/sim_scenario.h"
#include "apps/sim_soak.h"

static const char usage[] =
	"incline-sim run FILE.json [--seed N] [--json FILE] [--pcap FILE] [--series USEC]\n"
	"incline-sim epic-table 25..35 [--seed N] [--json FILE] [--max-bytes N]\n"
	"incline-sim epic-model [--quick] [--json FILE]\n"
	"incline-sim netreduce-model [--json FILE]\n"
	"incline-sim nodes [--quick] [--seed N] [--json FILE]\n"
	"incline-sim multicast traffic|throughput|fsdp|time [--quick] [--seed N] [--json FILE]\n"
	"incline-sim mrc-figure 2|4..6|5.2.1|8|9a..9d|10..12|14..22|all [--quick] [--seed N]\n"
	"                       [--json FILE]\n"
	"incline-sim bench [--quick] [--json FILE]\n"
	"incline-sim soak [--seed N] [--count N] [--mode 1|2|3|netreduce|ring] [--pcap FILE]\n"
	"                 [--json FILE] [--verbose]\n"
	"\n"
	"  run         a scenario, see docs/simulator.md\n"
	"  mrc-figure  a figure of the MRC paper, scaled down, our figures beside the paper's\n"
	"  epic-table  a table of EPIC's appendix K, our figures beside the paper's\n"
	"  epic-model  EPIC's formulas of time, memory and loss, beside what is measured\n"
	"  netreduce-model\n"
	"              NetReduce's cost model: figure 7, beside what the paper says\n"
	"  nodes       AllReduce among machines of several ranks: Parallel NetReduce and others\n"
	"  multicast   what Broadcast and AllGather by multicast save, beside the paper's figures\n"
	"  bench       packet-hops per second on this core, and a fabric of 1024 hosts\n"
	"  soak        random fabrics, groups, faults and timings, one case per seed; what fails "
	"is\n"
	"              made smaller, --pcap captures it\n";

enum { MAPPED_FROM = 32 << 20, HEAP = 1 << 30 };
static const uintptr_t HUGE_PAGE = 2 << 20;

struct args {
	const char *json, *pcap;
	uint64_t seed, max_bytes, count, series;
	unsigned mode;
	bool has_seed, quick, verbose;
};

static int save(const json_t *result, const char *path)
{
	if (!path || !result)
		return 0;
	if (strcmp(path, "-") == 0)
		return json_dumpf(result, stdout, JSON_INDENT(1)) || putchar('\n') < 0;
	if (json_dump_file(result, path, JSON_INDENT(1)) == 0)
		return 0;
	fprintf(stderr, "incline-sim: %s: cannot be written\n", path);
	return 1;
}

static double real(const json_t *row, const char *key)
{
	return json_number_value(json_object_get(row, key));
}

static void print_result(const json_t *result)
{
	const double hops = real(result, "hops"), seconds = real(result, "seconds");
	const json_t *row;
	size_t i;

	printf("%s: %.0f hosts, %.0f switches\n",
		json_string_value(json_object_get(result, "topology")), real(result, "hosts"),
		real(result, "switches"));
	printf("%12s %14s %10s %10s\n", "bytes", "virtual us", "Gb/s", "hops");
	json_array_foreach(json_object_get(result, "runs"), i, row)
		printf("%12.0f %14.3f %10.2f %10.0f\n", real(row, "bytes"), real(row, "ns") / 1000,
			real(row, "gbps"), real(row, "hops"));
	printf("%.0f packet-hops in %.2f s, trace %s\n", hops, seconds,
		json_string_value(json_object_get(result, "trace_hash")));
}

static int run_document(const json_t *doc, const struct args *args, json_t **result)
{
	struct scenario s;
	char err[CCL_ERR_LEN] = "";
	int rc = scenario_parse(doc, &s, err);

	if (rc == 0) {
		if (args->has_seed)
			s.sim.seed = args->seed;
		s.pcap = args->pcap;
		s.series_ns = args->series * 1000;
		rc = scenario_run(&s, result, err);
		if (*result && !(args->json && strcmp(args->json, "-") == 0))
			print_result(*result);
	}
	scenario_free(&s);
	if (rc)
		fprintf(stderr, "incline-sim: %s\n", err);
	return rc ? 1 : 0;
}

static int run_file(const char *path, const struct args *args)
{
	json_error_t bad;
	json_t *doc = json_load_file(path, JSON_REJECT_DUPLICATES, &bad), *result = NULL;
	int rc;

	if (!doc) {
		if (bad.line < 0) /* it could not be opened: the text says so, and its name */
			fprintf(stderr, "incline-sim: %s\n", bad.text);
		else
			fprintf(stderr, "incline-sim: %s: line %d: %s\n", path, bad.line, bad.text);
		return 1;
	}
	rc = run_document(doc, args, &result);
	rc |= save(result, args->json);
	json_decref(result);
	json_decref(doc);
	return rc;
}

/* What a scenario of the bench costs: rate of hops, memory. */
static int bench_one(const char *name, const char *text, const struct args *args, json_t *all)
{
	json_t *doc = json_loads(text, 0, NULL), *result = NULL, *row;
	struct rusage usage;
	double hops = 0, seconds = 0;
	size_t i;
	int rc = run_document(doc, args, &result);

	json_array_foreach(json_object_get(result, "runs"), i, row)
	{
		hops += real(row, "hops");
		seconds += real(row, "cpu_seconds"); /* what else runs does not count */
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("%s: %.2f million packet-hops per second of a core, at most %ld MiB so far\n\n",
		name, seconds > 0 ? hops / seconds * 1e-6 : 0, usage.ru_maxrss / 1024);
	json_object_del(result, "links");
	json_array_append_new(
		all, json_pack("{s:s,s:f,s:f,s:f,s:I,s:i}", "scenario", name, "hops", hops,
			     "cpu_seconds", seconds, "hops_per_second",
			     seconds > 0 ? hops / seconds : 0, "max_rss_kb",
			     (json_int_t)usage.ru_maxrss, "hosts", (int)real(result, "hosts")));
	json_decref(result);
	json_decref(doc);
	return rc;
}

static int bench(const struct args *args)
{
	static const struct {
		const char *name, *text;
		bool slow;
	} list[] = {
		{"forward",
			"{\"topology\":\"fattree:4\",\"workload\":\"permutation\",\"bytes\":"
			"4000000,"
			"\"mtu\":256}",
			false},
		{"allreduce",
			"{\"topology\":\"star:8\",\"workload\":\"allreduce\",\"bytes\":4000000,"
			"\"mtu\":256,\"m\":16}",
			false},
		{"clos-1024",
			"{\"topology\":\"clos2:32x32x16\",\"workload\":\"allreduce\","
			"\"bytes\":262144,\"w\":16}",
			false},
		{"fattree-1024",
			"{\"topology\":\"fattree:16\",\"workload\":\"permutation\",\"bytes\":"
			"262144}",
			true},
	};
	json_t *rows = json_array();
	json_t *all = json_pack("{s:s,s:o}", "bench", "sim", "results", rows);
	int rc = 0;

	for (unsigned i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (!(args->quick && list[i].slow))
			rc |= bench_one(list[i].name, list[i].text, args, rows);
	if (args->json)
		rc |= json_dump_file(all, args->json, JSON_INDENT(1)) != 0;
	json_decref(all);
	return rc;
}

static int table(const char *number, const struct args *args)
{
	json_t *result = json_object();
	int rc = sim_epic_table((unsigned)strtoul(number, NULL, 10),
		args->max_bytes ? args->max_bytes : 64 << 20, args->has_seed ? args->seed : 1,
		result);

	rc = (rc ? 1 : 0) | save(result, args->json);
	json_decref(result);
	return rc;
}

static int netreduce_model(const struct args *args)
{
	json_t *result = json_object();
	int rc;

	sim_netreduce_model(result);
	rc = save(result, args->json);
	json_decref(result);
	return rc;
}

static int epic_model(const struct args *args)
{
	json_t *result = json_object();
	int rc = sim_epic_model(args->quick, result);

	rc = (rc ? 1 : 0) | save(result, args->json);
	json_decref(result);
	return rc;
}

static int nodes_table(const struct args *args)
{
	json_t *result = json_object();
	int rc = sim_nodes_table(args->quick, args->has_seed ? args->seed : 1, result);

	rc = (rc ? 1 : 0) | save(result, args->json);
	json_decref(result);
	return rc;
}

static int multicast(const char *what, const struct args *args)
{
	json_t *result = json_object();
	int rc = sim_multicast(what, args->quick, args->has_seed ? args->seed : 1, result);

	rc = (rc ? 1 : 0) | save(result, args->json);
	json_decref(result);
	return rc;
}

static int soak(const struct args *args)
{
	const struct soak_options options = {
		.first = args->has_seed ? args->seed : 1,
		.count = args->count ? args->count : 1000,
		.pcap = args->pcap,
		.mode = args->mode,
		.verbose = args->verbose,
	};
	json_t *result = json_object();
	int rc = soak_run(&options, result);

	if (rc < 0)
		fprintf(stderr, "incline-sim: soak: %s\n", strerror(-rc));
	rc = (rc ? 1 : 0) | save(result, args->json);
	json_decref(result);
	return rc;
}

static int parse_mode(const char *value, struct args *args)
{
	static const char *const name[] = {"1", "2", "3", "netreduce", "ring"};

	for (unsigned i = 0; i < sizeof(name) / sizeof(name[0]); i++)
		if (strcmp(value, name[i]) == 0) {
			args->mode = CCL_MODE_1 + i;
			return 0;
		}
	return -EINVAL;
}

static int parse(int argc, char **argv, struct args *args)
{
	for (int i = 0; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : NULL;

		if (strcmp(argv[i], "--quick") == 0) {
			args->quick = true;
			continue;
		}
		if (strcmp(argv[i], "--verbose") == 0) {
			args->verbose = true;
			continue;
		}
		if (!value)
			return -EINVAL;
		if (strcmp(argv[i], "--seed") == 0) {
			args->seed = strtoull(value, NULL, 0);
			args->has_seed = true;
		} else if (strcmp(argv[i], "--max-bytes") == 0) {
			args->max_bytes = strtoull(value, NULL, 0);
		} else if (strcmp(argv[i], "--series") == 0) {
			args->series = strtoull(value, NULL, 0);
		} else if (strcmp(argv[i], "--count") == 0) {
			args->count = strtoull(value, NULL, 0);
		} else if (strcmp(argv[i], "--mode") == 0) {
			if (parse_mode(value, args))
				return -EINVAL;
		} else if (strcmp(argv[i], "--json") == 0) {
			args->json = value;
		} else if (strcmp(argv[i], "--pcap") == 0) {
			args->pcap = value;
		} else {
			return -EINVAL;
		}
		i++;
	}
	return 0;
}

/* A world of a thousand hosts is a gigabyte in small pieces, visited at random: in pages of 4 KB
 * most visits miss the TLB, and half a second goes into faults. So the heap, all of it, is eligible
 * for huge pages before anything is there; where there are none it is as ever. */
static void use_huge_pages(void)
{
	const uintptr_t from = ((uintptr_t)sbrk(0) + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
	uintptr_t to;

	mallopt(M_MMAP_THRESHOLD, MAPPED_FROM);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	mallopt(M_TOP_PAD, HEAP);
	free(malloc(MAPPED_FROM / 2)); /* the heap grows by HEAP */
	to = (uintptr_t)sbrk(0) & ~(HUGE_PAGE - 1);
	if (to > from)
		madvise((void *)from, to - from, MADV_HUGEPAGE);
}

int main(int argc, char **argv)
{
	struct args args = {0};
	const char *verb = argc > 1 ? argv[1] : "";
	const bool named = argc > 2 && argv[2][0] != '-';
	const int first = named ? 3 : 2;

	if (strcmp(verb, "--help") == 0 || strcmp(verb, "--version") == 0) {
		fputs(verb[2] == 'h' ? usage : "incline-sim " INCLINE_VERSION "\n", stdout);
		return 0;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	use_huge_pages();
	if (argc >= 2 && parse(argc - first, argv + first, &args) == 0) {
		if (strcmp(verb, "run") == 0 && named)
			return run_file(argv[2], &args);
		if (strcmp(verb, "epic-table") == 0 && named)
			return table(argv[2], &args);
		if (strcmp(verb, "epic-model") == 0 && !named)
			return epic_model(&args);
		if (strcmp(verb, "nodes") == 0 && !named)
			return nodes_table(&args);
		if (strcmp(verb, "netreduce-model") == 0 && !named)
			return netreduce_model(&args);
		if (strcmp(verb, "multicast") == 0 && named)
			return multicast(argv[2], &args);
		if (strcmp(verb, "mrc-figure") == 0 && named)
			return mrc_figure(
				argv[2], args.has_seed ? args.seed : 1, args.quick, args.json);
		if (strcmp(verb, "bench") == 0 && !named)
			return bench(&args);
		if (strcmp(verb, "soak") == 0 && !named)
			return soak(&args);
	}
	fputs(usage, stderr);
	return 2;
}
