/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/node_schema.h"

#include "lib/ctl/event.h"

const struct ctl_field ctl_node_none[] = {{0}};

#define LLDP_FIELDS(port_field)                                                                   \
	{"chassis", CTL_STRING, .required = true,                                                 \
		.help = "of the neighbour: a MAC or IP address, a text, or 0x and hexadecimal "   \
			"digits; cut off after 63 characters, as what follows"},                  \
		{port_field, CTL_STRING, .required = true, .help = "of the neighbour, likewise"}, \
		{"system", CTL_STRING, .help = "its name, if it says one"},                       \
	{                                                                                         \
		"age_s", CTL_INT, .required = true, .help = "since it was heard last"             \
	}

static const struct ctl_field hello_lldp[] = {LLDP_FIELDS("port"), {0}};

static const struct ctl_field lldp_fields[] = {
	{"port", CTL_STRING, .required = true, .help = "of the switch"}, LLDP_FIELDS("peer_port"),
	{0}};

const struct ctl_field ctl_lldp_result[] = {
	{"chassis", CTL_STRING, .help = "that the switch says of itself; absent: LLDP is off"},
	{"neighbours", CTL_LIST, .item = CTL_OBJECT, .fields = lldp_fields, .required = true,
		.help = "up to four of a port"},
	{0}};

static const struct ctl_field hello_ports[] = {
	{"name", CTL_STRING, .required = true, .help = "of the port"},
	{"mac", CTL_STRING, .required = true, .help = "MAC address"},
	{"mtu", CTL_INT, .required = true, .help = "largest IP packet, bytes"},
	{"link", CTL_STRING, .required = true, .help = "up or down"},
	{"mbps", CTL_INT,
		.help = "of a NIC's link, megabits per second; absent: it is down, or the port is "
			"no NIC"},
	{"lldp", CTL_LIST, .item = CTL_OBJECT, .fields = hello_lldp,
		.help = "who is at its other end, as LLDP tells it; absent: nobody, or that is "
			"off"},
	{0}};

static const struct ctl_field hello_neighbours[] = {
	{"ip", CTL_STRING, .required = true, .help = "of the neighbour"},
	{"mac", CTL_STRING, .required = true, .help = "of the neighbour"},
	{"port", CTL_STRING, .required = true, .help = "that it is behind"}, {0}};

static const struct ctl_field hello_workers[] = {
	{"cpu", CTL_INT, .help = "that it runs on, if it is one"},
	{"socket", CTL_INT, .help = "NUMA node of that"}, {0}};

const struct ctl_field ctl_hello_result[] = {
	{"name", CTL_STRING, .required = true, .help = "of the switch"},
	{"boot", CTL_STRING, .required = true,
		.help = "16 hexadecimal digits: another number after each start"},
	{"version", CTL_STRING, .required = true, .help = "of the program"},
	{"chassis", CTL_STRING, .help = "that it says of itself by LLDP; absent: that is off"},
	{"modes", CTL_LIST, .item = CTL_STRING, .required = true, .help = "INC modes that it has"},
	{"max_groups", CTL_INT, .required = true, .help = "at a time"},
	{"max_endpoints", CTL_INT, .required = true, .help = "of a group"},
	{"groups", CTL_INT, .required = true, .help = "in any state"},
	{"arena_bytes", CTL_U64, .required = true, .help = "aggregation memory"},
	{"arena_used_bytes", CTL_U64, .required = true, .help = "of it taken by groups"},
	{"events", CTL_U64, .required = true, .help = "that have happened"},
	{"ports", CTL_LIST, .item = CTL_OBJECT, .fields = hello_ports, .required = true,
		.help = "one item per port"},
	{"neighbours", CTL_LIST, .item = CTL_OBJECT, .fields = hello_neighbours, .required = true,
		.help = "entries of table neigh"},
	{"workers", CTL_LIST, .item = CTL_OBJECT, .fields = hello_workers, .required = true,
		.help = "one item per worker"},
	{0}};

/* ---- events ---- */

const struct ctl_field ctl_event_fields[] = {
	{"seq", CTL_U64, .required = true, .help = "counted from 0 since the program's start"},
	{"ns", CTL_U64, .required = true, .help = "time of the switch's clock"},
	{"kind", CTL_STRING, .values = ctl_event_names, .required = true,
		.help = "what has happened"},
	{"port", CTL_STRING, .help = "port_up, port_down: which"},
	{"group", CTL_INT, .help = "group_failed, group_stalled: slot"},
	{"ring", CTL_INT, .help = "ring_failed, ring_stalled: number"},
	{"name", CTL_STRING, .help = "of the group or ring"},
	{"job", CTL_STRING, .help = "of the group, if it was made with one"},
	{"epoch", CTL_U64, .help = "of the group, likewise"},
	{"reason", CTL_STRING,
		.help = "group_failed, ring_failed: as fail_reason of group.show, ring.show"},
	{"failure", CTL_STRING, .help = "ring_failed: as failure of ring.show"},
	{"ep", CTL_INT, .help = "group_failed: the endpoint at fault, if there is one"},
	{"missing", CTL_LIST, .item = CTL_INT,
		.help = "group_stalled: the first ranks that it waits for, 64 at most"},
	{"lease", CTL_STRING, .help = "lease_lost: taken back from a holder in silence"},
	{"arena_bytes", CTL_U64, .help = "memory_low: aggregation memory"},
	{"arena_used_bytes", CTL_U64,
		.help = "memory_low: of it, more than nine of ten, after less than eight"},
	{"dropped", CTL_U64,
		.help = "notifications: events before this one that this connection was too slow "
			"for"},
	{0}};

const struct ctl_field ctl_event_list_params[] = {
	{"from", CTL_U64, .help = "first `seq`; default: the oldest that is kept"}, {0}};

const struct ctl_field ctl_event_list_result[] = {
	{"next", CTL_U64, .required = true, .help = "`from` of the next call"},
	{"missed", CTL_U64, .required = true,
		.help = "events from `from` on that are not kept any more; 0 without `from`"},
	{"events", CTL_LIST, .item = CTL_OBJECT, .fields = ctl_event_fields, .required = true,
		.help = "the last 256 at most, oldest first"},
	{0}};

const struct ctl_field ctl_event_subscribe_result[] = {
	{"next", CTL_U64, .required = true, .help = "`seq` of the first event that will be told"},
	{0}};

/* ---- epochs ---- */

const struct ctl_field ctl_epoch_end_params[] = {
	{"job", CTL_STRING, .required = true, .min = 1, .max = CTL_MAX_JOB, .pos = 1,
		.help = "as groups name it"},
	{"epoch", CTL_U64, .required = true, .pos = 2, .help = "this one and all before it"},
	{"remove", CTL_BOOL,
		.help = "take the groups away; default false: they fail, and members are told"},
	{"tenant", CTL_STRING, .max = 31,
		.help = "whose the job is from now on: over TLS nobody else's groups are of it"},
	{0}};

const struct ctl_field ctl_epoch_end_result[] = {
	{"groups", CTL_INT, .required = true, .help = "that were failed or removed"}, {0}};

static const struct ctl_field epoch_fields[] = {
	{"job", CTL_STRING, .required = true, .help = "as its groups name it"},
	{"epoch", CTL_U64, .required = true, .help = "the newest that the switch has heard of"},
	{"ended", CTL_BOOL, .required = true, .help = "it has been ended, too"},
	{"groups", CTL_INT, .required = true, .help = "of any epoch"},
	{"failed", CTL_INT, .required = true, .help = "of these"}, {0}};

const struct ctl_field ctl_epoch_list_result[] = {
	{"jobs", CTL_LIST, .item = CTL_OBJECT, .fields = epoch_fields, .required = true,
		.help = "one item per job"},
	{0}};
