/* SPDX-License-Identifier: BSD-3-Clause */
/* What MRC costs beside RC: bytes of a queue pair's state, and the time of a packet. Both
 * transports write the same bytes between the same two RNICs in this process (ends.h), in turn, so
 * that what else the machine does meets both; each repetition gives a ratio. */
#include <getopt.h>
#include <jansson.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

#include "lib/mrc/req.h"
#include "lib/mrc/reverse.h"
#include "tests/bench/ends.h"
#include "tests/bench/machine.h"

enum { PATHS = 256, SEED = 1, MEASURED_QPS = 32, REPS = 15, QUICK_REPS = 3, MAX_REPS = REPS };
enum { PACKETS = 1 << 16, QUICK_PACKETS = 1 << 13, MESSAGE = 65536 };

static struct rnic_mrc_paths paths128, paths256;

/* ---- bytes ---- */

static size_t heap(void)
{
	const struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* Of one end's queue pair at RTS, as the heap sees it: with its work queues. */
static size_t heap_of(struct end ends[2], struct load load)
{
	size_t before;

	load.qps = MEASURED_QPS;
	connect_all(ends, &load); /* what is made once is there */
	disconnect_all(ends, &load);
	before = heap();
	connect_all(ends, &load);
	before = heap() - before;
	disconnect_all(ends, &load);
	return before / MEASURED_QPS / 2;
}

struct part {
	const char *name;
	size_t each, fixed; /* bytes of an EV, and whatever their number */
};

/* Where the bytes of a queue pair are. The last part is all else. */
static unsigned parts_of(size_t total, struct part part[8])
{
	const struct mrc_req_config req = {.snd.mpr_units = RNIC_MRC_MPR_DEFAULT,
		.pmtu = 4096,
		.messages = DEPTH,
		.max_wimm = RNIC_MRC_WIMM_DEFAULT};
	const struct mrc_rsp_config rsp = {
		.mpr_units = RNIC_MRC_MPR_DEFAULT, .max_wimm = RNIC_MRC_WIMM_DEFAULT, .pmtu = 4096};
	const struct mrc_evset *evs = NULL;
	const struct mrc_snd *snd = NULL;
	unsigned n = 0;
	size_t sum = 0;

	part[n++] = (struct part){"states of EVs", sizeof(evs->ev[0]), 0};
	part[n++] = (struct part){"rings of planes", sizeof(evs->ring[0].index[0]), 0};
	part[n++] = (struct part){"order of paths", sizeof(snd->path[0]), 0};
	part[n++] = (struct part){"EVs by hash", 0, sizeof(evs->bucket)};
	part[n++] = (struct part){"packets sent", 0, mrc_snd_bytes(RNIC_MRC_MPR_DEFAULT)};
	part[n++] = (struct part){"requests", 0, mrc_req_bytes(&req) - part[4].fixed};
	part[n++] = (struct part){"packets arrived", 0, mrc_rsp_bytes(&rsp)};
	for (unsigned i = 0; i < n; i++)
		sum += part[i].each * PATHS + part[i].fixed;
	part[n++] = (struct part){"all else", 0, total - sum};
	return n;
}

static json_t *state(struct end ends[2])
{
	struct load rc = {.name = "RC", .opcode = IBV_WR_RDMA_WRITE, .mtu = 4096, .qps = 1},
		    mrc = rc;
	json_t *out = json_array();
	struct part part[8];
	size_t total, of_rc, of_mrc, used[2] = {0};
	unsigned n;

	mrc.mrc = true;
	mrc.paths = &paths256;
	connect_all(ends, &mrc);
	total = rnic_mrc_bytes(ends[0].qp[0]);
	disconnect_all(ends, &mrc);
	n = parts_of(total, part);
	printf("# state of a queue pair, bytes; window %d packets, %d requests, %d immediates\n",
		RNIC_MRC_MPR_DEFAULT * 128, DEPTH, RNIC_MRC_WIMM_DEFAULT);
	printf("%-18s %8s %8s\n", "", "128 EVs", "256 EVs");
	for (unsigned i = 0; i < n; i++) {
		const size_t a = part[i].each * 128 + part[i].fixed,
			     b = part[i].each * 256 + part[i].fixed;

		printf("%-18s %8zu %8zu\n", part[i].name, a, b);
		json_array_append_new(
			out, json_pack("{s:s,s:I,s:I}", "part", part[i].name, "evs_128",
				     (json_int_t)a, "evs_256", (json_int_t)b));
		used[0] += a;
		used[1] += b;
	}
	of_rc = heap_of(ends, rc);
	of_mrc = heap_of(ends, mrc);
	printf("%-18s %8zu %8zu  of %zu: there is always room for 256\n", "in use", used[0],
		used[1], total);
	printf("%-18s %8zu %8zu  beside \"a few bits\" of health in the paper (2.1)\n",
		"bytes of an EV", (used[1] - used[0]) / 128, (used[1] - used[0]) / 128);
	printf("%-18s MRC %zu, RC %zu: %.1f times\n", "heap, work queues", of_mrc, of_rc,
		(double)of_mrc / (double)of_rc);
	return json_pack("{s:o,s:[I,I],s:I,s:I,s:I}", "parts", out, "in_use", (json_int_t)used[0],
		(json_int_t)used[1], "allocated", (json_int_t)total, "heap_mrc", (json_int_t)of_mrc,
		"heap_rc", (json_int_t)of_rc);
}

/* ---- time ---- */

/* Ticks of the TSC per ns, of a moment in which nothing else is measured. */
static double tsc_rate(void)
{
	const uint64_t start = clock_ns(), tsc = __rdtsc();

	while (clock_ns() - start < 20000000)
		;
	return (double)(__rdtsc() - tsc) / (double)(clock_ns() - start);
}

/* ns of one data packet, and frames that went for it, words of the peer included. */
struct sample {
	double ns, frames;
};

static uint64_t frames_so_far(const struct end ends[2])
{
	return rnic_count(ends[0].rnic, RNIC_C_RX_FRAMES) +
	       rnic_count(ends[1].rnic, RNIC_C_RX_FRAMES);
}

static struct sample measure(struct end ends[2], const struct load *load, uint64_t packets)
{
	const uint64_t messages = packets / ((load->size + load->mtu - 1) / load->mtu);
	struct sample s;
	uint64_t frames;

	connect_all(ends, load);
	run(ends, load, messages / 16 + 1); /* warm */
	frames = frames_so_far(ends);
	s.ns = 1e9 / run(ends, load, messages) * (double)messages / (double)packets;
	s.frames = (double)(frames_so_far(ends) - frames) / (double)packets;
	disconnect_all(ends, load);
	return s;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct spread {
	double best, median, worst;
};

static struct spread spread_of(double *v, unsigned n)
{
	qsort(v, n, sizeof(*v), by_value);
	return (struct spread){v[0], v[n / 2], v[n - 1]};
}

static json_t *spread_json(struct spread s)
{
	return json_pack("{s:f,s:f,s:f}", "best", s.best, "median", s.median, "worst", s.worst);
}

static const struct row {
	const char *name;
	uint32_t size, mtu;
	const struct rnic_mrc_paths *paths;
	bool no_cc;
} rows[] = {
	{"128 EVs, NSCC", MESSAGE, 4096, &paths128, false},
	{"128 EVs, NSCC", MESSAGE, 1024, &paths128, false},
	{"128 EVs, NSCC", MESSAGE, 256, &paths128, false},
	{"256 EVs, NSCC", MESSAGE, 1024, &paths256, false},
	{"128 EVs, no CC", MESSAGE, 1024, &paths128, true},
	{"128 EVs, NSCC", 64, 1024, &paths128, false},
};

static void report(struct end ends[2], const struct row *row, unsigned reps, uint64_t packets,
	double rate, json_t *results)
{
	const struct load rc = {.name = "RC",
				  .opcode = IBV_WR_RDMA_WRITE,
				  .size = row->size,
				  .mtu = row->mtu,
				  .qps = 1},
			  mrc = {.name = "MRC",
				  .opcode = IBV_WR_RDMA_WRITE,
				  .size = row->size,
				  .mtu = row->mtu,
				  .qps = 1,
				  .mrc = true,
				  .paths = row->paths,
				  .no_cc = row->no_cc};
	double rc_ns[MAX_REPS], mrc_ns[MAX_REPS], ratio[MAX_REPS];
	struct sample a = {0}, b = {0};
	struct spread r, m, q;

	for (unsigned i = 0; i < reps; i++) {
		/* Neither is always the first. */
		if (i % 2 == 0)
			a = measure(ends, &rc, packets);
		b = measure(ends, &mrc, packets);
		if (i % 2)
			a = measure(ends, &rc, packets);
		rc_ns[i] = a.ns;
		mrc_ns[i] = b.ns;
		ratio[i] = b.ns / a.ns;
	}
	r = spread_of(rc_ns, reps);
	m = spread_of(mrc_ns, reps);
	q = spread_of(ratio, reps);
	printf("%-15s %6u %5u %7.1f %7.1f %7.1f %7.1f %7.0f %7.0f %6.2f %6.2f - %-6.2f %5.2f "
	       "%5.2f\n",
		row->name, row->size, row->mtu, r.best, r.median, m.best, m.median, r.best * rate,
		m.best * rate, q.median, q.best, q.worst, a.frames, b.frames);
	json_array_append_new(results,
		json_pack("{s:s,s:i,s:i,s:o,s:o,s:f,s:f,s:o,s:f,s:f}", "mrc", row->name, "bytes",
			(int)row->size, "mtu", (int)row->mtu, "rc_ns", spread_json(r), "mrc_ns",
			spread_json(m), "rc_cycles", r.best * rate, "mrc_cycles", m.best * rate,
			"ratio", spread_json(q), "rc_frames", a.frames, "mrc_frames", b.frames));
}

static json_t *times(struct end ends[2], bool quick)
{
	json_t *results = json_array();
	const double rate = tsc_rate();

	printf("# time of a data packet, both ends and the peer's words on one core; ratio: MRC to "
	       "RC, of each of %d repetitions\n",
		quick ? QUICK_REPS : REPS);
	printf("# cycles: of the TSC, %.2f GHz, of the best; frames: on the wire per data packet, "
	       "RC and MRC\n",
		rate);
	printf("%-15s %6s %5s %7s %7s %7s %7s %7s %7s %6s %15s %5s %5s\n", "MRC", "bytes", "MTU",
		"RC ns", "median", "MRC ns", "median", "RC cyc", "MRC cyc", "ratio", "from - to",
		"RC", "MRC");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		report(ends, &rows[i], quick ? QUICK_REPS : REPS, quick ? QUICK_PACKETS : PACKETS,
			rate, results);
	return results;
}

/* Nothing but right bytes counts: each transport writes everything. */
static void verify(struct end ends[2], bool mrc)
{
	const struct load all = {.name = "WRITE",
		.opcode = IBV_WR_RDMA_WRITE,
		.size = MEMORY,
		.mtu = 4096,
		.qps = 1,
		.mrc = mrc,
		.paths = mrc ? &paths256 : NULL};

	memset(ends[1].memory, 0, MEMORY);
	connect_all(ends, &all);
	run(ends, &all, 1);
	disconnect_all(ends, &all);
	check(memcmp(ends[0].memory, ends[1].memory, MEMORY) == 0, "the bytes are wrong");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"json", required_argument, NULL, 'j'},
		{"quick", no_argument, NULL, 'q'}, {"help", no_argument, NULL, 'h'}, {0}};
	struct end ends[2] = {0};
	const char *file = NULL;
	bool quick = false;
	json_t *root;
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (opt == 'j')
			file = optarg;
		else if (opt == 'q')
			quick = true;
		else {
			fprintf(opt == 'h' ? stdout : stderr,
				"usage: bench-mrc [--quick] [--json FILE]\n");
			return opt == 'h' ? 0 : 2;
		}
	}
	check(rnic_mrc_paths_auto(&paths128, RNIC_MRC_UDP, 1, 128, SEED) == 0 &&
			rnic_mrc_paths_auto(&paths256, RNIC_MRC_UDP, 1, PATHS, SEED) == 0,
		"rnic_mrc_paths_auto");
	for (unsigned k = 0; k < 2; k++)
		end_create(&ends[k], k);
	verify(ends, false);
	verify(ends, true);
	root = json_pack("{s:s,s:o}", "bench", "mrc", "machine",
		bench_machine("times of both are longer, the ratio holds"));
	json_object_set_new(root, "state", state(ends));
	json_object_set_new(root, "results", times(ends, quick));
	for (unsigned k = 0; k < 2; k++)
		end_destroy(&ends[k]);
	if (file && json_dump_file(root, file, JSON_INDENT(1)) != 0) {
		fprintf(stderr, "bench-mrc: cannot write %s\n", file);
		return 1;
	}
	json_decref(root);
	return 0;
}
