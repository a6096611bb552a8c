/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of a software RNIC. */
#include "lib/ctl/config.h"
#include "lib/mrc/settings.h"

enum { NAME_MAX_LEN = 31, IFNAME_MAX = 15, RX_WORKERS_MAX = 16 };

static const char *const transports[] = {"roce", "iwarp", NULL};
static const char *const idles[] = {"spin", "pause", "sleep", NULL};

static const struct ctl_field neighbor_fields[] = {
	{"ip", CTL_STRING, .required = true, .help = "address of a peer"},
	{"mac", CTL_STRING, .required = true, .help = "the MAC address that it is reached by"},
	{0}};

static const struct ctl_field netdev_fields[] = {
	{"name", CTL_STRING, .required = true, .min = 1, .max = IFNAME_MAX,
		.help = "of a tap device, made if there is none"},
	{"prefix4", CTL_INT, .min = 0, .max = 32, .dflt = "24",
		.help = "length of the prefix of its IPv4 addresses, which are those in ip"},
	{"prefix6", CTL_INT, .min = 0, .max = 128, .dflt = "64", .help = "and of the IPv6 ones"},
	{0}};

#define NUMBER(field, most, dflt_, meaning)                                           \
	{                                                                             \
		field, CTL_INT, .min = 1, .max = most, .dflt = dflt_, .help = meaning \
	}

static const struct ctl_field congestion_fields[] = {
	{"reaction", CTL_BOOL, .dflt = "true", .help = "a CNP cuts its queue pair's rate"},
	{"notification", CTL_BOOL, .dflt = "true", .help = "a packet marked CE draws a CNP"},
	{"ect", CTL_BOOL, .dflt = "false",
		.help = "packets of queue pairs whose traffic class says not-ECT are sent as "
			"ECT(0), CNPs apart"},
	NUMBER("line_mbps", 1000000, "25000", "rate of the line: of a queue pair without CNPs"),
	NUMBER("min_mbps", 1000000, "10", "rate that a queue pair keeps"),
	NUMBER("ai_mbps", 1000000, "40", "additive increase, R_AI"),
	NUMBER("hai_mbps", 1000000, "400", "hyper increase, R_HAI"),
	NUMBER("alpha_shift", 16, "8", "gain g is 2^-alpha_shift"),
	NUMBER("alpha_us", 1000000, "55", "alpha decays after so long without a CNP"),
	NUMBER("timer_us", 1000000, "55", "the rate rises after so long"),
	NUMBER("byte_count", 2147483647, "10485760", "and after so many bytes"),
	NUMBER("recovery_steps", 1000, "5", "rises of fast recovery, F"),
	NUMBER("cut_us", 1000000, "4", "at most one cut in so long"),
	NUMBER("cnp_us", 1000000, "50", "at most one CNP for a queue pair in so long"),
	NUMBER("cnp_dscp", 63, "48", "of CNPs"),
	{"window_bytes", CTL_INT, .min = 0, .max = 1 << 30, .dflt = "0",
		.help = "bytes that a queue pair of RC may have unacknowledged at first; twice as "
			"many as long as that gives a higher rate, half after a CNP; 0: as many as "
			"packets allow"},
	{0}};

static const struct ctl_field mrc_fields[] = {
#define X(field, unit, dflt_, least, most, mark, section, meaning) \
	{#field, CTL_INT, .min = least, .max = most, .dflt = #dflt_, .help = meaning},
	MRC_SETTINGS(X)
#undef X
		{0}};

/* A port's own, in the file itself if there is only one. */
#define OF_PORT(must)                                                                            \
	{"mac", CTL_STRING, .required = must, .help = "unicast and not zero"},                   \
		{"ip", CTL_LIST, .item = CTL_STRING, .min = 0, .max = CTL_MAX_RNIC_ADDRESSES,    \
			.help = "IPv4 or IPv6, each a GID, from index 1 on; GID 0 is the "       \
				"link-local address made from the MAC"},                         \
		{"port", CTL_OBJECT, .fields = ctl_port_fields, .variants = ctl_port_types,      \
			.required = must,                                                        \
			.help = "takes mac and mtu from here unless it has its own"},            \
		{"mtu", CTL_INT, .min = CTL_MTU_MIN, .max = CTL_MTU_MAX,                         \
			.help = "largest IP packet, not above the port's; absent: the port's"},  \
		{"neighbors", CTL_LIST, .item = CTL_OBJECT, .fields = neighbor_fields, .min = 0, \
			.max = CTL_MAX_NEIGHBORS,                                                \
			.help = "peers that need no address resolution"},                        \
		{"via", CTL_STRING,                                                              \
			.help = "address of the router that packets with an outer header are "   \
				"sent to; "                                                      \
				"absent: straight to where that ends. RC, UC and UD send none"}, \
	{                                                                                        \
		"sid", CTL_STRING,                                                               \
			.help = "IPv6 address that packets of MRC in SRv6 arrive with: block "   \
				"and the uSID of this port, their last; absent: they are taken " \
				"at ip alone"                                                    \
	}

static const struct ctl_field port_fields[] = {OF_PORT(true), {0}};

static const struct ctl_field rnic_fields[] = {OF_PORT(false),
	{"ports", CTL_LIST, .item = CTL_OBJECT, .fields = port_fields, .min = 1,
		.max = CTL_MAX_RNIC_PORTS,
		.help = "in place of mac, ip, port, mtu, neighbors, via and sid, of which mac and "
			"port are required otherwise: the ports of the device, networks apart; "
			"verbs "
			"count them from 1. Not with netdev"},
	{"transport", CTL_STRING, .values = transports, .dflt = "roce",
		.help = "of queue pairs. iwarp: over TCP, one connection each, made by RDMA-CM; "
			"one port, at least one address in ip, not with netdev"},
	{"idle", CTL_STRING, .values = idles, .dflt = "sleep",
		.help = "what the device's thread does without packets: spin and pause need a core "
			"of their own"},
	{"device", CTL_STRING, .min = 1, .max = NAME_MAX_LEN,
		.help = "name, of A-Z a-z 0-9 _ -; absent: incline0, or with N in place of 0 for "
			"file N of those that INCLINE_RNIC names"},
	{"wait_ms", CTL_INT, .min = 0, .max = 600000,
		.help = "how long ibv_open_device waits for the server of a memif or vhost and for "
			"the link; absent: 10000, and 0 where the port is itself such a server, "
			"whose link comes with the first client"},
	{"memory_mb", CTL_INT, .min = 32, .max = 65536,
		.help = "for packet buffers; absent: what rings and MTU need"},
	{"hugepages", CTL_BOOL, .dflt = "false", .help = "take packet memory from hugepages"},
	{"max_qp", CTL_INT, .min = 1, .max = 65536, .dflt = "16384",
		.help = "queue pairs of the device; one that may be costs 50 bytes, one that is "
			"some KB and its queues. As many CQs and protection domains, but 1024 at "
			"least"},
	{"netdev", CTL_OBJECT, .fields = netdev_fields,
		.help = "a network interface for what is not RoCE"},
	{"congestion", CTL_OBJECT, .fields = congestion_fields, .help = "DCQCN, and a window"},
	{"mrc", CTL_OBJECT, .fields = mrc_fields,
		.help = "the transport MRC; docs/mrc.md says how sure each number is"},
	{"rx_workers", CTL_INT, .min = 0, .max = RX_WORKERS_MAX, .dflt = "0",
		.help = "receive workers: threads that take what comes for queue pairs that a "
			"program has given to them (inc_dv_create_qp). Not with "
			"transport iwarp"},
	{"lldp", CTL_BOOL, .dflt = "false",
		.help = "say by every port which host this is, and hear who is at its other end "
			"(IEEE 802.1AB, every 30 s): INCLINE_STATS shows it, and a manager "
			"compares what switches hear with its file"},
	{"host", CTL_STRING, .min = 1, .max = CTL_MAX_RNIC_HOST,
		.help = "name that lldp says, the one that a manager's file has for this host; "
			"absent: the machine's"},
	{0}};

const struct ctl_field ctl_rnic_config = {
	"", CTL_OBJECT, .fields = rnic_fields, .help = "configuration of a software RNIC"};
