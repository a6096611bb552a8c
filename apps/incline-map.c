/* SPDX-License-Identifier: BSD-3-Clause */
/* The map of a fabric of planes (docs/map.md): "agent" probes from one node, over its ports, and
 * writes what it sees into a file; "show" makes the map of several such files. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <rte_ether.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/map/report.h"
#include "lib/port/config.h"
#include "lib/wire/frame.h"

enum {
	BURST = 32,
	CONNECT_MS = 10000,
	MEMORY_MB = 64,     /* beside the buffers */
	BUFFER_ROOM = 3072, /* of one, and what the pool has of it */
	MAX_SLEEP_US = 200,
	FRAME_ROOM = 128,
	MS_NS = 1000000,
	ASK_NS = 100 * MS_NS, /* between questions for a T0's MAC, and attempts to connect again */
};

static const char usage[] =
	"usage: incline-map agent [--rnic FILE[:FILE...]] [--paths FILE] [--rate HZ] [--share N]\n"
	"                         [--timeout MS] [--out FILE] [--every MS] [--for S]\n"
	"         probes from this node's ports until SIGTERM; FILEs from INCLINE_RNIC and\n"
	"         INCLINE_PATHS if not given (tools/lab exec sets them)\n"
	"       incline-map show [--json | --deny] [--plane-shift BITS] FILE...\n"
	"         the map of what agents have written; entropy values not to be used\n";

struct plane {
	struct port port;
	struct port_config config;
	bool given, open, known;
	struct wire_ip ip;
	uint8_t mac[6], t0_mac[6];
	uint64_t asked_ns;
};

struct node {
	struct srv6_paths *paths;
	struct map_agent *agent;
	struct plane plane[SRV6_MAX_PLANES];
	struct rte_mempool *pool;
	const char *out;
	uint64_t every_ns;
	bool complained;
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "incline-map: %s: %s\n", what, why);
	return 1;
}

/* ---- a node's ports ---- */

static struct plane *plane_of(struct node *n, const char *port)
{
	for (unsigned i = 0; i < n->paths->n_planes; i++)
		if (strcmp(n->paths->plane[i].port, port) == 0)
			return &n->plane[i];
	return NULL;
}

/* One port of an RNIC: its MAC, its first address, which must be IPv6. */
static int read_port(struct node *n, json_t *json, char err[PORT_ERR_LEN])
{
	const char *mac = json_string_value(json_object_get(json, "mac")),
		   *ip = json_string_value(json_array_get(json_object_get(json, "ip"), 0));
	json_t *port = json_object_get(json, "port");
	struct port_config config;
	struct plane *p;

	/* A memif client that has given its memory away cannot connect again. */
	if (strcmp(json_string_value(json_object_get(port, "type")) ?: "", "memif") == 0)
		json_object_set_new(port, "zero_copy", json_false());
	if (port_config_parse(port, &config, err) < 0)
		return -EINVAL;
	p = plane_of(n, config.name);
	if (p == NULL)
		snprintf(err, PORT_ERR_LEN, "port.name: no plane of the paths has this port");
	else if (p->given)
		snprintf(err, PORT_ERR_LEN, "port.name: %s is there twice", config.name);
	else if (mac == NULL || rte_ether_unformat_addr(mac, (struct rte_ether_addr *)p->mac) != 0)
		snprintf(err, PORT_ERR_LEN, "mac: must be there");
	else if (ip == NULL || wire_ip_parse(ip, &p->ip) < 0 || wire_ip_is4(&p->ip))
		snprintf(err, PORT_ERR_LEN, "ip: the first must be an IPv6 address");
	else {
		p->config = config;
		p->given = true;
		return 0;
	}
	return -EINVAL;
}

/* An RNIC's file, of one port or several. */
static int read_file(struct node *n, const char *file, char err[PORT_ERR_LEN])
{
	json_error_t where;
	json_t *json = json_load_file(file, JSON_REJECT_DUPLICATES, &where),
	       *ports = json_object_get(json, "ports"), *port;
	int rc = 0;
	size_t i;

	if (json == NULL) {
		snprintf(err, PORT_ERR_LEN, "%.200s", where.text);
		return -EINVAL;
	}
	if (ports == NULL)
		rc = read_port(n, json, err);
	json_array_foreach(ports, i, port)
	{
		rc = rc < 0 ? rc : read_port(n, port, err);
	}
	json_decref(json);
	return rc;
}

static int read_files(struct node *n, const char *files)
{
	char *list = strdup(files), *save = NULL, err[PORT_ERR_LEN] = "";
	int rc = list ? 0 : fail("memory", strerror(ENOMEM));

	for (char *file = rc == 0 ? strtok_r(list, ":", &save) : NULL; rc == 0 && file;
		file = strtok_r(NULL, ":", &save))
		if (read_file(n, file, err) < 0)
			rc = fail(file, err);
	for (unsigned i = 0; rc == 0 && i < n->paths->n_planes; i++)
		if (!n->plane[i].given)
			rc = fail(n->paths->plane[i].port, "no --rnic file has this port");
	free(list);
	return rc;
}

/* As many buffers as the ports can hold, and memory for these. */
static int open_ports(struct node *n)
{
	struct port_config configs[SRV6_MAX_PLANES];
	struct port_eal eal = {.program = "incline-map"};
	const unsigned n_planes = n->paths->n_planes;
	char err[PORT_ERR_LEN] = "";
	unsigned need;

	for (unsigned i = 0; i < n_planes; i++)
		configs[i] = n->plane[i].config;
	need = port_pool_need(configs, n_planes);
	eal.memory_mb = MEMORY_MB + (unsigned)((uint64_t)need * BUFFER_ROOM >> 20);
	if (port_eal_init(&eal, err) < 0)
		return fail("EAL", err);
	n->pool = port_pool_create("probes", need, FRAME_ROOM, SOCKET_ID_ANY, err);
	if (n->pool == NULL)
		return fail("memory", err);
	for (unsigned i = 0; i < n_planes; i++) {
		if (port_open(&configs[i], n->pool, CONNECT_MS, &n->plane[i].port, err) < 0)
			return fail(configs[i].name, err);
		n->plane[i].open = true;
	}
	return 0;
}

static void transmit(struct node *n, struct plane *p, const uint8_t *frame, size_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(n->pool);

	if (m == NULL)
		return;
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), frame, len);
	if (port_tx_burst(&p->port, &m, 1) == 0)
		rte_pktmbuf_free(m);
}

/* Who the T0 is, of which nothing but a SID is known. Again as long as it does not answer probes.
 */
static void ask(struct node *n, unsigned plane, uint64_t now)
{
	const struct map_target *t0 = map_agent_target(n->agent, plane, MAP_NO_UPLINK);
	struct plane *p = &n->plane[plane];
	uint8_t frame[FRAME_ROOM];
	int len;

	if ((p->known && t0->link.state == MAP_GOOD) || now - p->asked_ns < ASK_NS)
		return;
	p->asked_ns = now;
	if (!port_link_up(&p->port))
		port_reconnect(&p->port);
	len = wire_build_ns(frame, sizeof(frame), p->mac, &p->ip, &t0->dst, 0);
	if (len > 0)
		transmit(n, p, frame, (size_t)len);
}

static void send_probe(void *arg, const struct map_target *t, const uint8_t payload[MAP_PROBE_LEN])
{
	struct node *n = arg;
	struct plane *p = &n->plane[t->plane];
	uint8_t frame[MAP_FRAME_LEN];

	if (!p->known)
		return;
	map_frame(p->t0_mac, p->mac, &p->ip, &t->dst, payload, frame);
	transmit(n, p, frame, sizeof(frame));
}

static void receive(struct node *n, unsigned plane, const uint8_t *frame, size_t len, uint64_t now)
{
	const struct map_target *t0 = map_agent_target(n->agent, plane, MAP_NO_UPLINK);
	struct plane *p = &n->plane[plane];
	struct wire_pkt pkt;

	if (len < ETH_HDR_LEN || memcmp(frame, p->mac, 6) != 0)
		return;
	if (len >= ETH_HDR_LEN + 7 && get_be16(frame + 12) == ETH_TYPE_IP6 &&
		frame[ETH_HDR_LEN + 6] == MAP_PROBE_NEXT) {
		map_agent_receive(n->agent, now, plane, frame + ETH_HDR_LEN, len - ETH_HDR_LEN);
		return;
	}
	if (wire_parse(frame, len, &pkt) == WIRE_OK && pkt.kind == WIRE_ND_NA && pkt.has_lladdr &&
		wire_ip_eq(&pkt.nd_target, &t0->dst)) {
		memcpy(p->t0_mac, pkt.nd_lladdr, 6);
		p->known = true;
	}
}

static unsigned poll_ports(struct node *n, uint64_t now)
{
	struct rte_mbuf *m[BURST];
	unsigned work = 0;

	for (unsigned i = 0; i < n->paths->n_planes; i++) {
		unsigned k = port_rx_burst(&n->plane[i].port, m, BURST);

		for (unsigned j = 0; j < k; j++)
			if (m[j]->nb_segs == 1)
				receive(n, i, rte_pktmbuf_mtod(m[j], const uint8_t *),
					m[j]->data_len, now);
		rte_pktmbuf_free_bulk(m, k);
		work += k;
		ask(n, i, now);
	}
	return work;
}

/* ---- agent ---- */

/* All of it or nothing: others read meanwhile. */
static void report(struct node *n)
{
	json_t *json = map_agent_json(n->agent, n->paths);
	char part[4096];

	snprintf(part, sizeof(part), "%s.new", n->out);
	if ((json_dump_file(json, part, JSON_INDENT(1)) != 0 || rename(part, n->out) != 0) &&
		!n->complained) {
		fail(n->out, strerror(errno));
		n->complained = true;
	}
	json_decref(json);
}

static void run(struct node *n, uint64_t end)
{
	struct port_backoff backoff = {.idle = PORT_IDLE_SLEEP, .max_sleep_us = MAX_SLEEP_US};
	uint64_t now = port_now_ns(), next_report = now + n->every_ns;

	while (!stopped && now < end) {
		unsigned work = poll_ports(n, now);
		uint64_t next = map_agent_turn(n->agent, now, send_probe, n);

		if (n->out != NULL && now >= next_report) {
			report(n);
			next_report = now + n->every_ns;
		}
		port_backoff(&backoff, work, now, next);
		now = port_now_ns();
	}
}

static void show_own(const struct node *n)
{
	char err[MAP_ERR_LEN] = "";
	json_t *list = json_array();
	struct map *m;

	json_array_append_new(list, map_agent_json(n->agent, n->paths));
	if (map_join(list, NULL, &m, err) == 0) {
		map_print(m, stdout);
		map_free(m);
	} else {
		fail("map", err);
	}
	json_decref(list);
}

struct options {
	const char *rnic, *paths, *out;
	struct map_config config;
	double every_ms, seconds;
};

static int agent(const struct options *o)
{
	struct node *n = calloc(1, sizeof(*n));
	char err[SRV6_ERR_LEN] = "";
	int rc = 0;

	if (n == NULL || o->rnic == NULL || o->paths == NULL)
		rc = fail("agent", "needs --rnic and --paths");
	else if (srv6_paths_read(o->paths, &n->paths, err) < 0)
		rc = fail(o->paths, err);
	else if (map_agent_create(n->paths, &o->config, port_now_ns(), &n->agent, err) < 0)
		rc = fail("agent", err);
	else
		rc = read_files(n, o->rnic);
	rc = rc == 0 ? open_ports(n) : rc;
	if (rc == 0) {
		n->out = o->out;
		n->every_ns = (uint64_t)(o->every_ms * MS_NS);
		printf("incline-map: %s ready, %u paths in %u planes\n", n->paths->name,
			n->agent->n, n->paths->n_planes);
		fflush(stdout);
		run(n, o->seconds > 0 ? port_now_ns() + (uint64_t)(o->seconds * 1000 * MS_NS)
				      : UINT64_MAX);
		if (n->out != NULL)
			report(n);
		show_own(n);
	}
	for (unsigned i = 0; n != NULL && i < SRV6_MAX_PLANES; i++)
		if (n->plane[i].open)
			port_close(&n->plane[i].port);
	if (port_eal_started())
		port_eal_fini();
	if (n != NULL) {
		free(n->agent);
		free(n->paths);
	}
	free(n);
	return rc;
}

/* ---- show ---- */

static void print(const struct map *m, bool as_json, bool deny, unsigned plane_shift)
{
	json_t *out;

	if (!as_json && !deny) {
		map_print(m, stdout);
		return;
	}
	out = deny ? map_denylist(m, plane_shift) : map_json(m);
	json_dumpf(out, stdout, JSON_INDENT(1));
	printf("\n");
	json_decref(out);
}

static int show(char *const *files, bool as_json, bool deny, unsigned plane_shift)
{
	char err[MAP_ERR_LEN] = "out of memory";
	json_t *list = json_array();
	struct map *m = NULL;
	int rc = 0;

	for (unsigned i = 0; rc == 0 && files[i] != NULL; i++) {
		json_error_t where;
		json_t *json = json_load_file(files[i], JSON_REJECT_DUPLICATES, &where);

		rc = json == NULL ? fail(files[i], where.text) : 0;
		if (json != NULL)
			json_array_append_new(list, json);
	}
	if (rc == 0 && map_join(list, (const char *const *)files, &m, err) < 0)
		rc = fail("show", err);
	if (rc == 0)
		print(m, as_json, deny, plane_shift);
	json_decref(list);
	map_free(m);
	return rc;
}

/* A number within bounds, or the end of the program. */
static double number(const char *option, double min, double max)
{
	char *end;
	double v = strtod(optarg, &end);

	if (end == optarg || *end != '\0' || !(v >= min && v <= max)) {
		fprintf(stderr, "incline-map: %s: %s, must be %g..%g\n", option, optarg, min, max);
		exit(2);
	}
	return v;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"rnic", required_argument, NULL, 'r'},
		{"paths", required_argument, NULL, 'p'}, {"rate", required_argument, NULL, 'R'},
		{"share", required_argument, NULL, 's'}, {"timeout", required_argument, NULL, 't'},
		{"out", required_argument, NULL, 'o'}, {"every", required_argument, NULL, 'e'},
		{"for", required_argument, NULL, 'f'}, {"json", no_argument, NULL, 'j'},
		{"deny", no_argument, NULL, 'd'}, {"plane-shift", required_argument, NULL, 'P'},
		{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'V'}, {0}};
	struct options o = {.rnic = getenv("INCLINE_RNIC"),
		.paths = getenv("INCLINE_PATHS"),
		.config = map_defaults,
		.every_ms = 200};
	bool as_json = false, deny = false;
	unsigned plane_shift = 8;
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (opt) {
		case 'r':
			o.rnic = optarg;
			break;
		case 'p':
			o.paths = optarg;
			break;
		case 'R':
			o.config.rate_hz = (uint32_t)number("--rate", 1, 1e6);
			break;
		case 's':
			o.config.share = (uint32_t)number("--share", 1, 1024);
			break;
		case 't':
			o.config.timeout_ns = (uint64_t)(number("--timeout", 0.001, 60000) * MS_NS);
			break;
		case 'o':
			o.out = optarg;
			break;
		case 'e':
			o.every_ms = number("--every", 1, 3.6e6);
			break;
		case 'f':
			o.seconds = number("--for", 0.001, 1e9);
			break;
		case 'j':
			as_json = true;
			break;
		case 'd':
			deny = true;
			break;
		case 'P':
			plane_shift = (unsigned)number("--plane-shift", 0, 24);
			break;
		case 'V':
			puts("incline-map " INCLINE_VERSION);
			return 0;
		default:
			fputs(usage, opt == 'h' ? stdout : stderr);
			return opt == 'h' ? 0 : 2;
		}
	}
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	if (getrandom(&o.config.id, sizeof(o.config.id), 0) != sizeof(o.config.id))
		return fail("random number", strerror(errno));
	if (optind + 1 == argc && strcmp(argv[optind], "agent") == 0)
		return agent(&o);
	if (optind + 1 < argc && strcmp(argv[optind], "show") == 0)
		return show(argv + optind + 1, as_json, deny, plane_shift);
	fputs(usage, stderr);
	return 2;
}
