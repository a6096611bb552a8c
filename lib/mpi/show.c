/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said of it, on standard error. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "lib/mpi/im.h"

static const char *const reasons[] = {
#define X(id, text) [IM_##id] = text,
	IM_REASONS(X)
#undef X
};

static const char *const names[] = {
	[CCL_ALLREDUCE] = "Allreduce",
	[CCL_REDUCE] = "Reduce",
	[CCL_BROADCAST] = "Bcast",
	[CCL_BARRIER] = "Barrier",
	[CCL_REDUCE_SCATTER] = "Reduce_scatter_block",
	[CCL_ALLGATHER] = "Allgather",
};

/* In one piece: ranks share the terminal. */
void im_say(const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	n = n < (int)sizeof(line) - 1 ? n : (int)sizeof(line) - 2;
	line[n] = '\n';
	line[n + 1] = '\0';
	fputs("incline: ", stderr);
	fputs(line, stderr);
}

static const char *name_of(const struct im_comm *c, char name[MPI_MAX_OBJECT_NAME])
{
	int len;

	if (PMPI_Comm_get_name(c->comm, name, &len) || !len)
		snprintf(name, MPI_MAX_OBJECT_NAME, "a communicator");
	return name;
}

void im_show_joined(const struct im_comm *c)
{
	char name[MPI_MAX_OBJECT_NAME];

	if (im.show > 1 && c->rank == 0)
		im_say("%s of %d ranks: %s: %s", name_of(c, name), c->size,
			c->where == IM_IN ? "in the network" : "not in the network", c->why);
}

static unsigned long all_calls(const struct im_count *n)
{
	unsigned long all = 0;

	for (unsigned r = 0; r < IM_N_REASONS; r++)
		all += n->calls[r];
	return all;
}

static void show_count(enum ccl_collective kind, const struct im_count *n)
{
	char elsewhere[512] = "";
	size_t len = 0;

	for (unsigned r = 1; r < IM_N_REASONS; r++)
		if (n->calls[r] && len < sizeof(elsewhere))
			len += (size_t)snprintf(elsewhere + len, sizeof(elsewhere) - len,
				"%s%lu: %s", len ? ", " : "; elsewhere ", n->calls[r], reasons[r]);
	im_say("  %s: %lu of %lu calls in the network%s", names[kind], n->calls[IM_NETWORK],
		all_calls(n), elsewhere);
}

void im_show_counts(const struct im_comm *c)
{
	char name[MPI_MAX_OBJECT_NAME];
	bool any = false;

	if (im.show < 2 || c->rank)
		return;
	for (unsigned k = 0; k < CCL_N_COLLECTIVES; k++) {
		if (!all_calls(&c->count[k]))
			continue;
		if (!any)
			im_say("%s of %d ranks, calls of its rank 0:", name_of(c, name), c->size);
		any = true;
		show_count((enum ccl_collective)k, &c->count[k]);
	}
}

void im_add_counts(const struct im_comm *c)
{
	for (unsigned k = 0; k < CCL_N_COLLECTIVES; k++) {
		for (unsigned r = 0; r < IM_N_REASONS; r++)
			im.total[k].calls[r] += c->count[k].calls[r];
		im.total[k].bytes += c->count[k].bytes;
	}
}

void im_summary(void)
{
	unsigned long long own[3] = {0}, sum[3];

	for (unsigned k = 0; k < CCL_N_COLLECTIVES; k++) {
		own[0] += im.total[k].calls[IM_NETWORK];
		own[1] += all_calls(&im.total[k]);
		own[2] += im.total[k].bytes;
	}
	PMPI_Reduce(own, sum, 3, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (im.world_rank == 0 && im.show)
		im_say("%llu of %llu calls of collectives in the network (%.1f %%), %llu bytes; "
		       "all "
		       "ranks together",
			sum[0], sum[1], sum[1] ? 100.0 * (double)sum[0] / (double)sum[1] : 0.0,
			sum[2]);
}
