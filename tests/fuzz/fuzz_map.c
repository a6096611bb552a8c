/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's file of paths; agents' reports, and what is denied by them; and an agent that hears what
 * others send, by a byte that says which. */
#include <string.h>

#include "lib/map/deny.h"
#include "tests/fuzz/fuzz.h"

enum { PATHS, REPORTS, PACKETS, N_KINDS, FEW_TARGETS = 64, ID = 0x01020304, MS = 1000000 };

#define COPY(f, w, u, s) "{\"from\":" #f ",\"width\":" #w ",\"usid\":" #u ",\"shift\":" #s "}"
static const char file[] =
	"{\"name\":\"h0\",\"address\":\"fd77::1:0\",\"plane_shift\":8,\"uplinks\":2,"
	"\"planes\":[{\"plane\":1,\"port\":\"a\"},{\"plane\":2,\"port\":\"b\"}],\"rows\":["
	"{\"prefix\":\"fd77::1:0/112\",\"address\":\"fcbb:bb00:12:800::\",\"hops\":2,\"copies\":"
	"[" COPY(8, 4, 0, 12) "," COPY(8, 4, 1, 12) "],\"downlink\":" COPY(
		0, 10, 1, 0) "},"
			     "{\"prefix\":\"fd77::/"
			     "16\",\"address\":\"fcbb:bb00:12:400:155:800::\",\"hops\":4,"
			     "\"copies\":[" COPY(8, 4, 0, 12) "," COPY(8, 4, 1, 12) "," COPY(
				     8, 4, 2, 12) "," COPY(8, 4, 3, 12) "," COPY(0, 8, 1,
				     0) "],\"downlink\":" COPY(0, 10, 3, 0) "}]}";
static const char reports[] =
	"[{\"host\":\"a\",\"group\":0,\"uplinks\":1,\"planes\":[{\"plane\":1,\"t0\":{\"state\":"
	"\"good\"},\"t1\":[{\"state\":\"dead\"}]}]},{\"host\":\"b\",\"group\":1,\"uplinks\":1,"
	"\"planes\":[{\"plane\":1,\"t0\":{\"state\":\"lossy\"},\"t1\":[{\"state\":\"good\"}]}]}]";

/* Of the same fabric as the file: both T0s of its paths, and host h0. */
static const char near_and_far[] =
	"[{\"host\":\"h0\",\"address\":\"fd77::1:0\",\"group\":18,\"uplinks\":2,\"sent\":9,"
	"\"planes\":[{\"plane\":1,\"t0\":{\"state\":\"good\"},\"t1\":[{\"state\":\"good\"},"
	"{\"state\":\"dead\"}]}]},{\"host\":\"h9\",\"group\":341,\"uplinks\":2,\"planes\":"
	"[{\"plane\":1,\"t0\":{\"state\":\"good\"},\"t1\":[{\"state\":\"lossy\"},"
	"{\"state\":\"good\"}]}]}]";

struct last {
	const struct map_target *t;
	uint8_t payload[MAP_PROBE_LEN];
	unsigned n;
};

static void keep(void *arg, const struct map_target *t, const uint8_t payload[MAP_PROBE_LEN])
{
	struct last *l = arg;

	fuzz_check(!wire_ip_is_zero(&t->dst), "a probe has a path");
	l->t = t;
	memcpy(l->payload, payload, MAP_PROBE_LEN);
	l->n++;
}

static struct map_agent *make(const struct srv6_paths *p)
{
	struct map_config c = map_defaults;
	struct map_agent *a = NULL;
	char err[SRV6_ERR_LEN] = "";

	c.id = ID;
	if (p->n_planes * (1u + p->uplinks) > FEW_TARGETS)
		return NULL;
	fuzz_check(map_agent_create(p, &c, 0, &a, err) == 0 || err[0], "a refusal says why");
	return a;
}

static void one_file(const uint8_t *data, size_t len)
{
	json_t *json = json_loadb((const char *)data, len, 0, NULL);
	struct srv6_paths *p = NULL;
	char err[SRV6_ERR_LEN] = "";
	struct last l = {0};
	struct map_agent *a;
	struct srv6_template t;
	uint32_t ev;

	if (json == NULL)
		return;
	if (srv6_paths_parse(json, &p, err) == 0) {
		for (unsigned i = 0; srv6_paths_find(p, &p->address, &t) == 0 &&
				     srv6_paths_ev(p, &t, i, &ev) == 0;
			i++) {
			struct wire_ip ip;

			fuzz_check(srv6_template_expand(&t, ev, &ip) == 0, "an EV is a path");
		}
		a = make(p);
		if (a != NULL)
			map_agent_turn(a, 1000 * (uint64_t)MS, keep, &l);
		fuzz_check(a == NULL || l.n == a->n, "a probe by every path");
		free(a);
	} else {
		fuzz_check(err[0], "a refusal says why");
	}
	free(p);
	json_decref(json);
}

static struct srv6_paths *seed_paths(void)
{
	json_t *json = json_loads(file, 0, NULL);
	struct srv6_paths *p = NULL;
	char err[SRV6_ERR_LEN];

	fuzz_check(srv6_paths_parse(json, &p, err) == 0, "the seed is good");
	json_decref(json);
	return p;
}

/* Whatever a map says, something is left, and what it said is over in time. */
static void one_deny(const struct map *m)
{
	static const struct wire_ip to = {{0xfd, 0x77, [13] = 2}};
	static struct map_deny d;
	struct srv6_paths *p = seed_paths();
	char err[MAP_ERR_LEN];
	unsigned changed;

	fuzz_check(map_deny_init(&d, &map_deny_defaults, p, &to, err) == 0, "the seed has a path");
	changed = map_deny_turn(&d, m, MS);
	fuzz_check(changed == d.n_denied && d.n_denied < d.n, "a path is left");
	fuzz_check(map_deny_turn(&d, m, 2 * MS) == 0, "the same map changes nothing");
	fuzz_check(map_deny_turn(&d, NULL, 2 * MS + map_deny_defaults.hold_ns) == changed &&
			   d.n_denied == 0,
		"without a map all is over in time");
	free(p);
}

static void one_map(const uint8_t *data, size_t len)
{
	json_t *json = json_loadb((const char *)data, len, 0, NULL);
	char err[MAP_ERR_LEN] = "", *text = NULL;
	struct map *m = NULL;
	size_t n;
	FILE *out;

	if (json == NULL)
		return;
	if (map_join(json, NULL, &m, err) == 0) {
		out = open_memstream(&text, &n);
		map_print(m, out);
		fclose(out);
		free(text);
		json_decref(map_json(m));
		json_decref(map_denylist(m, 8));
		one_deny(m);
		map_free(m);
	} else {
		fuzz_check(err[0], "a refusal says why");
	}
	json_decref(json);
}

/* A step is a time, and what comes then: nothing, the last probe's answer, or bytes. */
static void one_agent(const uint8_t *data, size_t len)
{
	uint8_t ip6[40 + MAP_PROBE_LEN + 8] = {0x60, [6] = MAP_PROBE_NEXT};
	struct srv6_paths *p = seed_paths();
	struct last l = {0};
	struct map_agent *a;
	uint64_t now = 0, answers = 0, noted = 0;

	a = make(p);
	while (len >= 2) {
		const unsigned what = data[1] % 3;
		size_t n = what == 2 ? (len - 2 < 24 ? len - 2 : 24) : 0;

		now += (uint64_t)data[0] * MS / 4;
		map_agent_turn(a, now, keep, &l);
		memcpy(ip6 + 40, l.payload, MAP_PROBE_LEN);
		if (what == 2)
			memcpy(ip6 + 40, data + 2, n);
		if (what != 0 && l.t != NULL)
			answers +=
				map_agent_receive(a, now, l.t->plane, ip6, what == 1 ? 56 : 40 + n);
		data += 2 + n;
		len -= 2 + n;
	}
	for (unsigned i = 0; i < a->n; i++) {
		noted += a->target[i].link.answered;
		fuzz_check(a->target[i].next_seq - a->target[i].oldest < MAP_RING,
			"what is under way is remembered");
	}
	fuzz_check(noted <= answers && answers <= l.n, "no more answers than probes");
	free(a);
	free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const run[N_KINDS])(const uint8_t *, size_t) = {
		[PATHS] = one_file, [REPORTS] = one_map, [PACKETS] = one_agent};

	if (size > 0)
		run[data[0] % N_KINDS](data + 1, size - 1);
	return 0;
}

size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	static const char steps[] = "\x04\x01\x04\x01\x04\x00\x04\x01\xff\x00\xff\x00\x04\x01";
	static const struct {
		uint8_t kind;
		const char *text;
		size_t len;
	} seeds[] = {{PATHS, file, sizeof(file) - 1}, {REPORTS, reports, sizeof(reports) - 1},
		{PACKETS, steps, sizeof(steps) - 1},
		{REPORTS, near_and_far, sizeof(near_and_far) - 1}};

	if (i >= sizeof(seeds) / sizeof(seeds[0]) || cap <= seeds[i].len)
		return 0;
	out[0] = seeds[i].kind;
	memcpy(out + 1, seeds[i].text, seeds[i].len);
	return 1 + seeds[i].len;
}
