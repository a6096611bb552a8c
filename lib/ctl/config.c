/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/config.h"

#include <inttypes.h>
#include <string.h>

enum {
	NAME_MAX_LEN = 31,
	SUN_PATH_MAX = 107,
	IFNAME_MAX = 15,
	RING_NAME_MAX = 25,
	MS_MAX = 3600000,
	MTU_MAX_TAP = 1500, /* the driver of DPDK 22.11 sends nothing larger */
	DESC_MAX = 16384,
};

/* ---- ports ---- */

static const char *const roles[] = {"server", "client", NULL};

#define SOCKET(meaning)                                                                \
	{                                                                              \
		"socket", CTL_STRING, .required = true, .min = 1, .max = SUN_PATH_MAX, \
				      .help = meaning                                  \
	}
#define IFACE(meaning)                                                              \
	{                                                                           \
		"iface", CTL_STRING, .required = true, .min = 1, .max = IFNAME_MAX, \
				     .help = meaning                                \
	}

static const struct ctl_field memif_fields[] = {
	SOCKET("path of the UNIX socket that both ends name"),
	{"role", CTL_STRING, .values = roles, .dflt = "client",
		.help = "the server makes the socket, the client looks for it"},
	{"id", CTL_INT, .min = 0, .max = 65535, .dflt = "0",
		.help = "both ends' number of the interface at that socket"},
	{"zero_copy", CTL_BOOL, .dflt = "true",
		.help = "of a client: the peer reads this process' buffers; one client of a "
			"process, the others copy; once its server has gone a switch's copies, "
			"too"},
	{0}};

static const struct ctl_field af_packet_fields[] = {
	IFACE("kernel interface; its MTU must be at least mtu"), {0}};

static const struct ctl_field tap_fields[] = {IFACE("name of the interface that is made"),
	{"mtu", CTL_INT, .min = CTL_MTU_MIN, .max = MTU_MAX_TAP, .dflt = "1500",
		.help = "largest IP packet; DPDK 22.11 sends no larger ones to a tap"},
	{0}};

static const struct ctl_field vhost_fields[] = {SOCKET("path of the vhost-user socket"),
	{"client", CTL_BOOL, .dflt = "false", .help = "look for the socket instead of making it"},
	{0}};

static const struct ctl_field ring_fields[] = {
	{"peer", CTL_STRING, .min = 1, .max = RING_NAME_MAX,
		.help = "another ring port of the process, the other end of this cable; absent: a "
			"program that links the library holds it"},
	{0}};

static const struct ctl_field null_fields[] = {{0}};

static const struct ctl_field pcap_fields[] = {
	{"rx", CTL_STRING, .min = 1, .max = 200, .help = "capture whose frames are received once"},
	{"tx", CTL_STRING, .min = 1, .max = 200, .help = "capture that sent frames are written to"},
	{0}};

static const struct ctl_field pci_fields[] = {
	{"address", CTL_STRING, .required = true, .min = 1, .max = 16,
		.help = "PCI address, as 0000:3b:00.0"},
	{"args", CTL_STRING, .max = 400, .help = "devargs of the driver, as key=value,key=value"},
	{0}};

static const struct ctl_field vdev_fields[] = {
	{"args", CTL_STRING, .required = true, .min = 1, .max = 511,
		.help = "the text of an EAL --vdev option, for drivers without a type of their "
			"own"},
	{0}};

const struct ctl_variant ctl_port_types[] = {
	{"memif",
		"Shared memory with a process on this machine: a software RNIC, VPP, another "
		"switch. A switch's client whose server ends looks for it, or the next one, every "
		"300 ms.",
		memif_fields},
	{"af_packet", "A kernel interface, by a packet socket. Needs CAP_NET_RAW.",
		af_packet_fields},
	{"tap", "An interface of the kernel that the switch makes. Needs CAP_NET_ADMIN.",
		tap_fields},
	{"vhost", "A virtual machine's network device, by vhost-user.", vhost_fields},
	{"ring", "Ends inside the process: tests, benchmarks.", ring_fields},
	{"null", "Receives nothing, sends to nowhere.", null_fields},
	{"pcap", "Captures in place of a network; rx, tx or both.", pcap_fields},
	{"pci", "A NIC that DPDK has a driver for. The switch needs \"pci\": true.", pci_fields},
	{"vdev", "Any other virtual device of DPDK.", vdev_fields},
	{0},
};

#define PORT_FIELDS                                                                              \
	{"name", CTL_STRING, .required = true, .min = 1, .max = NAME_MAX_LEN,                    \
		.help = "of A-Z a-z 0-9 _ . -, unique in the file; of a ring port at most 25"},  \
		{"type", CTL_STRING, .required = true, .help = "the kind of device, see below"}, \
		{"mac", CTL_STRING,                                                              \
			.help = "as 02:00:00:00:00:01; default: the device's; of a memif "       \
				"server one made of the machine's name and id, its socket and "  \
				"id, of a memif client a random one that changes at every "      \
				"start"},                                                        \
		{"mtu", CTL_INT, .min = CTL_MTU_MIN, .max = CTL_MTU_MAX, .dflt = "4200",         \
			.help = "largest IP packet; 4096 bytes of RoCE payload need 4180"},      \
		{"rxd", CTL_INT, .min = CTL_MIN_DESC, .max = DESC_MAX, .dflt = "1024",           \
			.help = "receive descriptors, a power of two"},                          \
	{                                                                                        \
		"txd", CTL_INT, .min = CTL_MIN_DESC, .max = DESC_MAX, .dflt = "1024",            \
				.help = "send descriptors, a power of two"                       \
	}

const struct ctl_field ctl_port_fields[] = {PORT_FIELDS, {0}};

const struct ctl_field ctl_port_config = {"port", CTL_OBJECT, .fields = ctl_port_fields,
	.variants = ctl_port_types, .help = "a port"};

/* ---- bad weather, for tests ---- */

static const struct ctl_field lose_fields[] = {
	{"opcode", CTL_INT, .required = true, .min = 0, .max = 255, .help = "of the BTH"},
	{"loss", CTL_REAL, .required = true, .min = 0, .max = 1, .help = "probability"}, {0}};

#define PROBABILITY(field, meaning)                                               \
	{                                                                         \
		field, CTL_REAL, .min = 0, .max = 1, .dflt = "0", .help = meaning \
	}

const struct ctl_field ctl_impair_fields[] = {
	PROBABILITY("loss", "probability that a received packet is lost"),
	PROBABILITY("dup", "that it comes twice"),
	PROBABILITY("reorder", "that up to four later ones overtake it"),
	PROBABILITY("corrupt", "that one of its bits is turned over"),
	PROBABILITY("tx_loss", "that a packet to be sent is lost"),
	{"lose", CTL_LIST, .item = CTL_OBJECT, .fields = lose_fields, .min = 0, .max = CTL_MAX_LOSE,
		.help = "losses of received RoCE packets of one opcode"},
	{"icrc", CTL_BOOL, .dflt = "false",
		.help = "compute the ICRC of received RoCE packets anew, right or wrong as it was"},
	{"seed", CTL_INT, .min = 0, .max = INT64_MAX, .dflt = "1", .help = "of the random numbers"},
	{0}};

const struct ctl_field ctl_impair_config = {"impair", CTL_OBJECT, .fields = ctl_impair_fields,
	.help = "bad weather on this port, for tests"};

/* ---- what waits for a port ---- */

#define KBYTES(field, least, dflt_, meaning)                                                 \
	{                                                                                    \
		field, CTL_INT, .min = least, .max = 1 << 20, .dflt = dflt_, .help = meaning \
	}

static const struct ctl_field queue_fields[] = {
	KBYTES("control_kb", 1, "64",
		"limit of the queue for control, which goes first; a packet takes at least half a "
		"KB of a queue, and a buffer of \"memory_mb\""),
	KBYTES("data_kb", 1, "256", "limit of the queue for data"),
	{"hold_ms", CTL_INT, .min = 1, .max = MS_MAX, .dflt = "100",
		.help = "a port that takes nothing for so long loses what waits, and nothing waits "
			"for "
			"it until it takes a packet"},
	{"rate_mbps", CTL_INT, .min = 0, .max = 1000000, .dflt = "0",
		.help = "Mbit/s that are sent at most, of frames; 0: as many as the port takes"},
	KBYTES("burst_kb", 1, "64", "with rate_mbps: what may go at once after a pause"),
	KBYTES("mark_min_kb", 0, "0",
		"data waiting from which on ECN-capable packets are marked, at first few"),
	KBYTES("mark_max_kb", 0, "0", "data waiting from which on all are; 0: none is"),
	{"trim_bytes", CTL_INT, .min = 0, .max = 1024, .dflt = "0",
		.help = "what is left, from the Ethernet header on, of a trimmable packet that has "
			"no "
			"room; at least 64, 0: it is lost"},
	{"last_hop", CTL_BOOL, .dflt = "false",
		.help = "hosts are behind the port: trimmed packets say so"},
	{0}};

const struct ctl_field ctl_queue_config = {
	"queue", CTL_OBJECT, .fields = queue_fields, .help = "what waits for this port"};

#define DSCPS(field, meaning)                                                          \
	{                                                                              \
		field, CTL_LIST, .item = CTL_INT, .min = 0, .max = 64, .help = meaning \
	}
#define DSCP(field, dflt_, meaning)                                                 \
	{                                                                           \
		field, CTL_INT, .min = 0, .max = 63, .dflt = dflt_, .help = meaning \
	}

static const struct ctl_field dscp_fields[] = {
	DSCPS("control", "wait in the queues for control; default 46"),
	DSCPS("trimmable", "may be trimmed; default 4 and 8"),
	DSCP("trimmed", "12", "of a trimmed packet; control, too"),
	DSCP("trimmed_last_hop", "16", "of one trimmed at a port with last_hop; control, too"),
	{0}};

const struct ctl_field ctl_dscp_config = {
	"dscp", CTL_OBJECT, .fields = dscp_fields, .help = "classes of packets by DSCP"};

/* ---- the switch ---- */

static const struct ctl_field switch_port_fields[] = {PORT_FIELDS,
	{"proxy_arp", CTL_BOOL, .dflt = "false",
		.help = "answer ARP and ND on this port as well for every address that is reached "
			"through another one or a tunnel, and for SIDs of the switch"},
	{"neigh_learn", CTL_BOOL, .dflt = "true",
		.help = "ask with ARP and ND for destinations of routes that are \"direct\" at "
			"this "
			"port, and for next hops there, and learn those that ask for the switch; "
			"entries of neigh go before"},
	{"mcast_learn", CTL_BOOL, .dflt = "false",
		.help = "learn members of multicast groups at this port from their IGMP and MLD "
			"reports, and ask for them"},
	{"bridge", CTL_LIST, .item = CTL_INT, .min = 1, .max = 64,
		.help = "VLANs (0: untagged) of whose learning bridges it is a port: frames that "
			"come in them leave by MAC address, by the other ports of the same VLAN's "
			"bridge; what is sent to the switch's own MAC and IP addresses is routed "
			"and "
			"answered as ever; not with proxy_arp"},
	{"flood_pps", CTL_INT, .min = 1, .max = 100000000, .dflt = "10000",
		.help = "frames a second that have come by it and are sent to all ports of a "
			"bridge, at most; a tenth of that at once"},
	{"queue", CTL_OBJECT, .fields = queue_fields, .help = "what waits for this port"},
	{"impair", CTL_OBJECT, .fields = ctl_impair_fields,
		.help = "bad weather on this port, for tests"},
	{0}};

const struct ctl_field ctl_switch_port_config = {"port", CTL_OBJECT, .fields = switch_port_fields,
	.variants = ctl_port_types, .help = "a port of the switch"};

static const char *const idles[] = {"spin", "pause", "sleep", NULL};

static const char *const automatic[] = {"auto", NULL};

static const struct ctl_field switch_fields[] = {
	{"name", CTL_STRING, .min = 1, .max = NAME_MAX_LEN, .dflt = "incline",
		.help = "of the switch, in messages and answers"},
	{"addresses", CTL_LIST, .item = CTL_STRING, .min = 0, .max = CTL_MAX_ADDRESSES,
		.help = "the switch's own IPv4 and IPv6 addresses; hosts' collectives go to them, "
			"so "
			"without any it only forwards"},
	{"control", CTL_STRING, .min = 1, .max = SUN_PATH_MAX,
		.help = "path of the control socket, made with mode 0660; needed to run"},
	{"control_tcp", CTL_STRING, .min = 1, .max = 255,
		.help = "ADDRESS:PORT to listen at as well, without authentication: who reaches it "
			"may do what "
			"a job needs, to groups and rings of its own"},
	{"control_tcp_full", CTL_BOOL, .dflt = "false",
		.help = "over TCP everything is allowed, as on the UNIX socket: for closed "
			"networks"},
	{"control_tls", CTL_STRING, .min = 1, .max = 4000,
		.help = "directory with ca.pem, cert.pem, key.pem, and crl.pem if certificates are "
			"revoked: TCP connections are TLS 1.3, and who comes shows a certificate "
			"of that CA"},
	{"audit", CTL_STRING, .min = 1, .max = 4095,
		.help = "file to which every change over a control connection is appended, and "
			"every "
			"request that was not allowed: one JSON object per line"},
	{"metrics", CTL_STRING, .min = 1, .max = 255,
		.help = "ADDRESS:PORT, or unix:PATH, where counters are served over HTTP as "
			"/metrics, for Prometheus (OpenMetrics): to be read by whoever gets there"},
	{"control_idle_ms", CTL_INT, .min = 1000, .max = MS_MAX, .dflt = "60000",
		.help = "silence after which a control connection that holds no owner is closed"},
	{"ports", CTL_LIST, .item = CTL_OBJECT, .fields = switch_port_fields,
		.variants = ctl_port_types, .required = true, .min = 1, .max = CTL_MAX_PORTS,
		.help = "in the order of their numbers; no more than DPDK was built for (Debian: "
			"32)"},
	{"tables", CTL_MAP, .item = CTL_ANY,
		.help = "by table, the list of its entries at start-up: {\"key\", \"action\", "
			"\"data\", \"priority\"}, as for table.write; `inclinectl tables` lists "
			"what "
			"there is"},
	{"dscp", CTL_OBJECT, .fields = dscp_fields, .help = "classes of packets by DSCP"},
	{"idle", CTL_STRING, .values = idles, .dflt = "sleep",
		.help = "what the worker does without packets: spin and pause need a core of their "
			"own"},
	{"workers", CTL_INT, .min = 1, .max = CTL_MAX_WORKERS, .values = automatic, .dflt = "1",
		.help = "threads that packets are worked on by: the ports are dealt out to them to "
			"receive "
			"from, and each group and ring is of one of them, to which the others hand "
			"its "
			"packets over; auto: one for each isolated core on the NICs' NUMA nodes, "
			"or where none is isolated, as many as there are ports, but for a core "
			"that is left; they are bound to their CPUs, and what `lcores` would be is "
			"printed at the start"},
	{"lcores", CTL_STRING, .min = 1, .max = 255,
		.help = "EAL --lcores text of one main lcore (the control thread) and one for each "
			"worker, as "
			"0@0,1@2; absent: all float over all CPUs, or as \"workers\" auto finds"},
	{"hugepages", CTL_BOOL, .dflt = "false", .help = "take packet memory from hugepages"},
	{"pci", CTL_BOOL, .dflt = "false", .help = "look for PCI devices, for ports of type pci"},
	{"telemetry", CTL_BOOL, .dflt = "false", .help = "DPDK's telemetry socket"},
	{"memory_mb", CTL_INT, .min = 64, .max = 1 << 20, .dflt = "256",
		.help = "memory of the EAL: packet buffers, routes, groups"},
	{"icmp_errors", CTL_BOOL, .dflt = "true",
		.help = "tell sources of packets that have no hop left, no route, no neighbour, do "
			"not fit, or whose segments are wrong, by ICMP"},
	{"lldp", CTL_BOOL, .dflt = "false",
		.help = "say by every port who the switch is, and hear who is at its other end "
			"(IEEE 802.1AB, every 30 s): lldp.list shows it, and a manager compares it "
			"with its file"},
	{"neigh_max", CTL_INT, .min = 1, .max = 4096, .dflt = "1024",
		.help = "neighbours that are learnt at one port at most (\"neigh_learn\")"},
	{"mac_max", CTL_INT, .min = 1, .max = 8192, .dflt = "1024",
		.help = "addresses that are learnt at one port at most (\"bridge\"), of 8192 in "
			"all"},
	{"mac_age_s", CTL_INT, .min = 10, .max = 86400, .dflt = "300",
		.help = "seconds of silence after which a bridge forgets an address"},
	{"mcast_max", CTL_INT, .min = 1, .max = 4096, .dflt = "256",
		.help = "groups that are learnt at one port at most (\"mcast_learn\")"},
	{"arena_kb", CTL_INT, .min = 4, .max = 1 << 20, .dflt = "4096",
		.help = "aggregation memory, of all groups; what fits into the L2 cache is "
			"fastest"},
	{"slot_rest_ms", CTL_INT, .min = 0, .max = MS_MAX, .dflt = "10000",
		.help = "how long a group's slot rests before another group gets it"},
	{"drain_ms", CTL_INT, .min = 0, .max = MS_MAX, .dflt = "2000",
		.help = "how long a deleted group still answers late packets"},
	{"stall_ms", CTL_INT, .min = 1, .max = MS_MAX, .dflt = "30000",
		.help = "a group with an unfinished operation and no progress for so long is "
			"reported"},
	{0}};

const struct ctl_field ctl_switch_config = {
	"", CTL_OBJECT, .fields = switch_fields, .help = "configuration of incline-switch"};

/* ---- as text ---- */

static const char *type_text(const struct ctl_field *f, char *buf, size_t cap)
{
	size_t n;

	ctl_type_text(f, buf, cap);
	n = strlen(buf);
	if (f->type == CTL_REAL && f->max)
		snprintf(buf + n, cap - n, " %" PRId64 "..%" PRId64, f->min, f->max);
	else if (f->type == CTL_INT && f->max == INT64_MAX)
		snprintf(buf, cap, "integer from %" PRId64 " on", f->min);
	else if (f->type == CTL_STRING && f->max && !f->values)
		snprintf(buf + n, cap - n, ", %" PRId64 "..%" PRId64 " bytes", f->min, f->max);
	else if (f->type == CTL_LIST && f->max)
		snprintf(buf + n, cap - n, ", %" PRId64 "..%" PRId64, f->min, f->max);
	return buf;
}

/* A table row or a line, of a field whose place is `prefix`. */
typedef void (*print_fn)(const char *prefix, const struct ctl_field *f, FILE *out);

static void print_fields(
	const struct ctl_field *fields, const char *prefix, print_fn print, FILE *out)
{
	char path[CTL_PATH_LEN];

	for (const struct ctl_field *f = fields; f && f->name; f++) {
		print(prefix, f, out);
		snprintf(path, sizeof(path), "%s%s%s.", prefix, f->name,
			f->type == CTL_LIST ? "[]" : "");
		print_fields(f->fields, path, print, out);
	}
}

/* The object below which there are variants: that itself, or a member; NULL. */
static const struct ctl_field *with_variants(const struct ctl_field *object)
{
	if (object->variants)
		return object;
	for (const struct ctl_field *f = object->fields; f && f->name; f++)
		if (f->variants)
			return f;
	return NULL;
}

static const char *dflt_text(const struct ctl_field *f)
{
	return f->required ? "required" : f->dflt ? f->dflt : "";
}

static void line(const char *prefix, const struct ctl_field *f, FILE *out)
{
	char type[192];

	fprintf(out, "  %s%s: %s%s%s\n      %s\n", prefix, f->name,
		type_text(f, type, sizeof(type)),
		f->required ? "; "
		: f->dflt   ? "; default "
			    : "",
		dflt_text(f), f->help);
}

void ctl_config_text(const struct ctl_field *object, FILE *out)
{
	const struct ctl_field *more = with_variants(object);

	print_fields(object->fields, "", line, out);
	for (const struct ctl_variant *v = more ? more->variants : NULL; v && v->value; v++) {
		fprintf(out, "\nof type %s: %s\n", v->value, v->help);
		print_fields(v->fields, "", line, out);
	}
}

static void row(const char *prefix, const struct ctl_field *f, FILE *out)
{
	char type[192];

	fprintf(out, "| `%s%s` | %s | %s | %s |\n", prefix, f->name,
		type_text(f, type, sizeof(type)), dflt_text(f), f->help);
}

static void table(const struct ctl_field *fields, FILE *out)
{
	fprintf(out, "| field | type | default | meaning |\n|---|---|---|---|\n");
	print_fields(fields, "", row, out);
}

void ctl_config_markdown(const struct ctl_field *object, FILE *out)
{
	const struct ctl_field *more = with_variants(object);

	table(object->fields, out);
	for (const struct ctl_variant *v = more ? more->variants : NULL; v && v->value; v++) {
		fprintf(out, "\n### Type %s\n\n%s", v->value, v->help);
		fprintf(out, v->fields->name ? "\n\n" : " No fields of its own.\n");
		if (v->fields->name)
			table(v->fields, out);
	}
}

int ctl_config_help(const char *program, const struct ctl_field *object, const char *form)
{
	if (form == NULL) {
		ctl_config_text(object, stdout);
	} else if (strcmp(form, "markdown") == 0) {
		ctl_config_markdown(object, stdout);
	} else if (strcmp(form, "schema") == 0) {
		json_t *schema = ctl_json_schema(object, object->help);

		json_dumpf(schema, stdout, JSON_INDENT(1));
		putchar('\n');
		json_decref(schema);
	} else {
		fprintf(stderr, "%s: --help-config=%s: must be markdown or schema\n", program,
			form);
		return 2;
	}
	return 0;
}
