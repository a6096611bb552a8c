/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/bench/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

json_t *bench_machine(const char *busy)
{
	char model[128] = "?", line[256];
	FILE *f = fopen("/proc/cpuinfo", "r");
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const char *commit = getenv("INCLINE_COMMIT");
	double load = 0;

	while (f && fgets(line, sizeof(line), f) &&
		sscanf(line, "model name : %127[^\n]", model) != 1)
		;
	if (f)
		fclose(f);
	getloadavg(&load, 1);
	printf("# %s, %ld CPUs, load %.1f, commit %s%s%s\n", model, cpus, load, commit ?: "?",
		load > (double)cpus / 2 ? "; the machine is busy: " : "",
		load > (double)cpus / 2 ? busy : "");
	return json_pack("{s:s,s:i,s:f,s:s}", "cpu", model, "cpus", (int)cpus, "load", load,
		"commit", commit ?: "?");
}
