/* SPDX-License-Identifier: BSD-3-Clause */
/* The methods of incline-switch; ctrl/agent has a handler for each. */
#include "lib/ctl/capture_schema.h"
#include "lib/ctl/config.h"
#include "lib/ctl/group_schema.h"
#include "lib/ctl/lease_schema.h"
#include "lib/ctl/mac_schema.h"
#include "lib/ctl/mcast_schema.h"
#include "lib/ctl/neigh_schema.h"
#include "lib/ctl/node_schema.h"
#include "lib/ctl/ring_schema.h"
#include "lib/ctl/schema.h"

static const struct ctl_field none[] = {{0}};

static const struct ctl_field version_result[] = {
	{"server", CTL_STRING, .required = true, .help = "always incline-switch"},
	{"name", CTL_STRING, .required = true, .help = "of this switch, from its configuration"},
	{"version", CTL_STRING, .required = true, .help = "of the program"},
	{"api", CTL_LIST, .item = CTL_INT, .required = true,
		.help = "versions of this interface that it speaks"},
	{"icrc", CTL_STRING, .required = true, .help = "kernels that compute the ICRC"},
	{"reduce", CTL_STRING, .required = true, .help = "kernels that add up"}, {0}};

static const struct ctl_field status_result[] = {
	{"name", CTL_STRING, .required = true, .help = "of the switch"},
	{"version", CTL_STRING, .required = true, .help = "of the program"},
	{"uptime_s", CTL_U64, .required = true, .help = "seconds since the agent started"},
	{"ports", CTL_INT, .required = true, .help = "ports"},
	{"ports_up", CTL_INT, .required = true, .help = "ports whose link is up"},
	{"tables", CTL_INT, .required = true, .help = "tables"},
	{"entries", CTL_INT, .required = true, .help = "entries in all tables"},
	{"groups", CTL_INT, .required = true, .help = "groups in any state"},
	{"groups_active", CTL_INT, .metric = CTL_GAUGE, .required = true,
		.help = "groups that aggregate"},
	{"groups_failed", CTL_INT, .metric = CTL_GAUGE, .required = true,
		.help = "groups that have failed"},
	{"rings_failed", CTL_INT, .metric = CTL_GAUGE, .required = true,
		.help = "NetReduce rings that have failed"},
	{"owners", CTL_INT, .metric = CTL_GAUGE, .required = true,
		.help = "jobs that hold, or have, groups or rings"},
	{"orphans", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "groups and rings that were ended because nobody held their owner"},
	{"arena_bytes", CTL_U64, .required = true, .help = "aggregation memory"},
	{"arena_used_bytes", CTL_U64, .required = true, .help = "of it taken by groups"},
	{"drops", CTL_U64, .required = true, .help = "packets lost: sum of all drop counters"},
	{"outcomes", CTL_U64, .required = true,
		.help = "packets that served and were not sent on: sum of all outcome counters"},
	{0}};

static const struct ctl_field schema_result[] = {
	{"methods", CTL_ANY, .required = true,
		.help = "per method: name, help, and JSON Schema of params and result"},
	{0}};

/* ---- tables ---- */

static const struct ctl_field pipeline_params[] = {
	{"table", CTL_STRING, .complete = "table", .pos = 1, .help = "this table only"}, {0}};

static const struct ctl_field pipeline_states[] = {
	{"state", CTL_STRING, .required = true, .help = "in which the parser ends with a packet"},
	{"ours", CTL_STRING,
		.help = "node that it goes to if it is addressed to the switch itself; absent: it "
			"is looked into, and gets another state"},
	{"others", CTL_STRING, .required = true,
		.help = "node that it goes to else; end: it is lost, or has served"},
	{"help", CTL_STRING, .required = true, .help = "what is in this state"}, {0}};

static const struct ctl_field pipeline_stages[] = {
	{"node", CTL_STRING, .required = true, .help = "of the packet graph"},
	{"packets", CTL_U64, .required = true, .help = "that it has handled"},
	{"tables", CTL_LIST, .item = CTL_STRING, .required = true,
		.help = "tables and views that it looks packets up in"},
	{"next", CTL_LIST, .item = CTL_STRING, .required = true,
		.help = "nodes that it gives packets to"},
	{0}};

static const struct ctl_field pipeline_fields[] = {
	{"name", CTL_STRING, .required = true, .help = "of the field"},
	{"type", CTL_STRING, .required = true, .help = "uint, bool, ip4, ip6, ip, mac or port"},
	{"match", CTL_STRING, .help = "keys: exact, lpm, ternary or range"},
	{"min", CTL_U64, .help = "uint: lower limit"},
	{"max", CTL_U64, .help = "uint: upper limit"},
	{"optional", CTL_BOOL, .required = true, .help = "may be left out"},
	{"help", CTL_STRING, .required = true, .help = "meaning"}, {0}};

static const struct ctl_field pipeline_actions[] = {
	{"name", CTL_STRING, .required = true, .help = "of the action"},
	{"help", CTL_STRING, .required = true, .help = "meaning"},
	{"params", CTL_LIST, .item = CTL_OBJECT, .fields = pipeline_fields, .required = true,
		.help = "its parameters"},
	{0}};

static const struct ctl_field pipeline_tables[] = {
	{"name", CTL_STRING, .required = true, .help = "of the table"},
	{"help", CTL_STRING, .required = true, .help = "meaning"},
	{"node", CTL_STRING, .help = "of the packet graph, that looks packets up in it"},
	{"miss", CTL_STRING,
		.help = "default action: the node, or the reason to end, of packets that match "
			"none of its entries, nor of the other tables that are one lookup with it"},
	{"size", CTL_INT, .required = true, .help = "most entries"},
	{"entries", CTL_U64, .required = true, .help = "present entries"},
	{"hits", CTL_U64, .help = "packets that have matched the present entries, if it counts"},
	{"priorities", CTL_BOOL, .required = true, .help = "entries have a priority"},
	{"keys", CTL_LIST, .item = CTL_OBJECT, .fields = pipeline_fields, .required = true,
		.help = "key fields"},
	{"actions", CTL_LIST, .item = CTL_OBJECT, .fields = pipeline_actions, .required = true,
		.help = "actions"},
	{0}};

static const struct ctl_field pipeline_result[] = {
	{"parser", CTL_LIST, .item = CTL_OBJECT, .fields = pipeline_states,
		.help = "what the parser tells apart; not with `table`"},
	{"stages", CTL_LIST, .item = CTL_OBJECT, .fields = pipeline_stages,
		.help = "nodes in the order in which packets pass them, but for ways back; not "
			"with `table`"},
	{"tables", CTL_LIST, .item = CTL_OBJECT, .fields = pipeline_tables, .required = true,
		.help = "in the order in which the switch registers them"},
	{"views", CTL_LIST, .item = CTL_OBJECT, .fields = pipeline_tables,
		.help = "what nodes look up that is made by other methods: read only; not with "
			"`table`"},
	{0}};

static const struct ctl_field table_list_tables[] = {
	{"name", CTL_STRING, .required = true, .help = "of the table"},
	{"entries", CTL_INT, .required = true, .help = "present entries"},
	{"size", CTL_INT, .required = true, .help = "most entries"},
	{"keys", CTL_LIST, .item = CTL_STRING, .required = true, .help = "key fields"},
	{"actions", CTL_LIST, .item = CTL_STRING, .required = true, .help = "actions"},
	{"help", CTL_STRING, .required = true, .help = "meaning"}, {0}};

static const struct ctl_field table_list_result[] = {
	{"tables", CTL_LIST, .item = CTL_OBJECT, .fields = table_list_tables, .required = true,
		.help = "one item per table"},
	{0}};

static const char *const ops[] = {"insert", "modify", "delete", NULL};

static const struct ctl_field update_fields[] = {
	{"op", CTL_STRING, .values = ops, .required = true, .help = "what to do"},
	{"table", CTL_STRING, .required = true, .help = "name of the table"},
	{"key", CTL_MAP, .item = CTL_ANY, .required = true, .help = "value by key field"},
	{"action", CTL_STRING, .help = "name of the action; not for delete"},
	{"data", CTL_MAP, .item = CTL_ANY, .help = "value by action parameter; not for delete"},
	{"priority", CTL_INT, .min = INT32_MIN, .max = INT32_MAX,
		.help = "tables with a ternary or range key: higher wins; default 0"},
	{0}};

static const struct ctl_field table_write_params[] = {
	{"updates", CTL_LIST, .item = CTL_OBJECT, .fields = update_fields, .required = true,
		.min = 1, .max = 65536, .help = "applied in this order, all or none"},
	{0}};

static const struct ctl_field table_write_result[] = {
	{"applied", CTL_INT, .required = true, .help = "number of updates"},
	{"routes_without_neighbour", CTL_INT,
		.help = "routes of all that there are now whose next hop is no neighbour; absent: "
			"none"},
	{0}};

static const struct ctl_field table_read_params[] = {
	{"table", CTL_STRING, .required = true, .complete = "table", .pos = 1,
		.help = "name of the table"},
	{"key", CTL_MAP, .item = CTL_ANY, .help = "only entries with these values in the key"},
	{"action", CTL_STRING, .help = "only entries with this action"},
	{"offset", CTL_INT, .min = 0, .max = INT32_MAX,
		.help = "leave out the first of the entries found; default 0"},
	{"limit", CTL_INT, .min = 1, .max = 1000, .help = "most entries to return; default 100"},
	{0}};

static const struct ctl_field entry_fields[] = {
	{"key", CTL_MAP, .item = CTL_ANY, .required = true, .help = "value by key field"},
	{"priority", CTL_INT, .help = "tables with a ternary or range key"},
	{"action", CTL_STRING, .required = true, .help = "name of the action"},
	{"data", CTL_MAP, .item = CTL_ANY, .required = true, .help = "value by action parameter"},
	{"hits", CTL_U64,
		.help = "packets that have matched it; tables that count (acl, local_sid, "
			"mcast_group, mcast_sender)"},
	{0}};

static const struct ctl_field table_read_result[] = {
	{"table", CTL_STRING, .required = true, .help = "name of the table"},
	{"total", CTL_INT, .required = true, .help = "entries found"},
	{"next", CTL_INT, .help = "offset of the next page; absent on the last"},
	{"entries", CTL_LIST, .item = CTL_OBJECT, .fields = entry_fields, .required = true,
		.help = "in the order of insertion, values in canonical form"},
	{0}};

/* ---- owners ---- */

static const struct ctl_field owner_params[] = {
	{"owner", CTL_STRING, .required = true, .min = 16, .max = 64,
		.help = "a secret, made at random by whoever begins; a connection holds one"},
	{"owner_ms", CTL_INT, .min = 100, .max = 3600000,
		.help = "what it owns ends when no connection has held it for so long, and no "
			"operation has made progress; default 5000"},
	{0}};

static const struct ctl_field owner_result[] = {
	{"groups", CTL_INT, .required = true, .help = "that it has now"},
	{"rings", CTL_INT, .required = true, .help = "that it has now"}, {0}};

/* ---- state ---- */

static const char *const links[] = {"down", "up", NULL};

static const struct ctl_field port_fields[] = {
	{"name", CTL_STRING, .metric = CTL_LABEL, .required = true, .help = "of the port"},
	{"type", CTL_STRING, .required = true, .help = "as configured"},
	{"id", CTL_INT, .required = true, .help = "DPDK's port id"},
	{"mac", CTL_STRING, .required = true, .help = "MAC address"},
	{"mtu", CTL_INT, .metric = CTL_GAUGE, .required = true, .help = "largest IP packet, bytes"},
	{"link", CTL_STRING, .values = links, .metric = CTL_STATES, .required = true,
		.help = "up or down"},
	{"rx_packets", CTL_U64, .metric = CTL_COUNTER, .required = true, .help = "received"},
	{"rx_bytes", CTL_U64, .metric = CTL_COUNTER, .required = true, .help = "received"},
	{"tx_packets", CTL_U64, .metric = CTL_COUNTER, .required = true, .help = "sent"},
	{"tx_bytes", CTL_U64, .metric = CTL_COUNTER, .required = true, .help = "sent"},
	{"tx_drops", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "not sent: the port's queue was full"},
	{"rx_missed", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "lost by the driver: its queue was full"},
	{"rx_errors", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "lost by the driver: bad frames"},
	{"rx_nombuf", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "lost by the driver: no buffer was left"},
	{"mac_mismatch", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "ARP, ND and control messages of neighbours whose MAC address is not what "
			"their neigh entries say: nothing gets to them"},
	{"mac_unlisted", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "of these, from neighbours that the log and mismatch do not name: 64 had "
			"been found before"},
	{"mismatch", CTL_STRING,
		.help = "the latest neighbour of which that is still true, and the address it has"},
	{0}};

static const struct ctl_field port_result[] = {
	{"ports", CTL_LIST, .item = CTL_OBJECT, .fields = port_fields, .required = true,
		.help = "one item per port"},
	{0}};

static const struct ctl_field worker_fields[] = {
	{"worker", CTL_INT, .metric = CTL_LABEL, .required = true, .help = "number"},
	{"cpu", CTL_INT, .help = "that it runs on, if it is one"},
	{"socket", CTL_INT, .help = "NUMA node of that"},
	{"turns", CTL_U64, .metric = CTL_COUNTER, .required = true, .help = "of its loop"},
	{"busy_cycles", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "CPU cycles of turns with packets"},
	{"idle_cycles", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "of those without, and asleep"},
	{"rx_packets", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "received from ports"},
	{"tx_packets", CTL_U64, .metric = CTL_COUNTER, .required = true, .help = "sent"},
	{"handed_over", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "packets that came here and are of another worker's group or ring"},
	{"taken_over", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "from other workers"},
	{"handoff_full", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "lost: the way to the owner was full"},
	{"groups", CTL_INT, .metric = CTL_GAUGE, .required = true, .help = "that it owns"},
	{"rings", CTL_INT, .metric = CTL_GAUGE, .required = true, .help = "that it owns"},
	{"arena_bytes", CTL_U64, .metric = CTL_GAUGE, .required = true,
		.help = "aggregation memory of its groups"},
	{0}};

static const struct ctl_field worker_result[] = {
	{"workers", CTL_LIST, .item = CTL_OBJECT, .fields = worker_fields, .required = true,
		.help = "one item per worker"},
	{0}};

static const struct ctl_field queue_fields[] = {
	{"port", CTL_STRING, .metric = CTL_LABEL, .required = true,
		.help = "of the port that they wait for"},
	{"queue", CTL_STRING, .metric = CTL_LABEL, .required = true,
		.help = "control, which goes first, or data"},
	{"packets", CTL_U64, .metric = CTL_GAUGE, .required = true, .help = "that wait now"},
	{"bytes", CTL_U64, .metric = CTL_GAUGE, .required = true, .help = "that wait now"},
	{"limit_bytes", CTL_U64, .metric = CTL_GAUGE, .required = true, .help = "that may wait"},
	{"peak_bytes", CTL_U64, .metric = CTL_GAUGE, .required = true,
		.help = "most that waited at a time"},
	{"queued", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "packets that had to wait so far"},
	{"marked", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "of them marked Congestion Experienced"},
	{"trimmed", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "packets without room that wait in control as their headers"},
	{"full", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "packets lost for want of room"},
	{"stale", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "packets lost because the port took nothing for too long"},
	{0}};

static const struct ctl_field queue_result[] = {
	{"queues", CTL_LIST, .item = CTL_OBJECT, .fields = queue_fields, .required = true,
		.help = "two items per port"},
	{0}};

static const char *const stats_kinds[] = {"values", "nodes", "groups", NULL};

static const struct ctl_field stats_params[] = {
	{"what", CTL_STRING, .values = stats_kinds, .pos = 1, .help = "this part only"}, {0}};

static const char *const value_kinds[] = {"gauge", "counter", NULL};

static const struct ctl_field value_fields[] = {
	{"name", CTL_STRING, .required = true, .help = "of the value"},
	{"value", CTL_U64, .required = true, .help = "now"},
	{"kind", CTL_STRING, .values = value_kinds, .required = true,
		.help = "a counter only grows"},
	{"help", CTL_STRING, .required = true, .help = "meaning"}, {0}};

static const struct ctl_field node_fields[] = {
	{"node", CTL_STRING, .metric = CTL_LABEL, .required = true, .help = "of the packet graph"},
	{"calls", CTL_U64, .metric = CTL_COUNTER, .required = true, .help = "times it ran"},
	{"packets", CTL_U64, .metric = CTL_COUNTER, .required = true, .help = "packets it handled"},
	{"cycles", CTL_U64, .metric = CTL_COUNTER, .required = true, .help = "CPU cycles it took"},
	{"packets_per_call", CTL_REAL, .required = true, .help = "mean"},
	{"cycles_per_packet", CTL_REAL, .required = true, .help = "mean"}, {0}};

static const struct ctl_field group_stat_fields[] = {
	{"group", CTL_INT, .required = true, .help = "slot"},
	{"name", CTL_STRING, .required = true, .help = "of the group"},
	{"counters", CTL_MAP, .item = CTL_U64, .required = true, .help = "what it has done"}, {0}};

static const struct ctl_field stats_result[] = {
	{"values", CTL_LIST, .item = CTL_OBJECT, .fields = value_fields,
		.help = "values of the whole program"},
	{"nodes", CTL_LIST, .item = CTL_OBJECT, .fields = node_fields,
		.help = "cost of each graph node, summed over workers"},
	{"groups", CTL_LIST, .item = CTL_OBJECT, .fields = group_stat_fields,
		.help = "counters of each group"},
	{0}};

static const struct ctl_field drops_params[] = {
	{"nonzero", CTL_BOOL, .help = "leave out reasons that did not occur; default false"},
	{"clear", CTL_BOOL, .help = "set all these counters to zero afterwards; default false"},
	{0}};

static const struct ctl_field drop_fields[] = {
	{"reason", CTL_STRING, .metric = CTL_LABEL, .required = true, .help = "name"},
	{"count", CTL_U64, .metric = CTL_COUNTER, .required = true, .help = "packets lost"},
	{"help", CTL_STRING, .required = true, .help = "meaning"}, {0}};

static const struct ctl_field outcome_fields[] = {
	{"outcome", CTL_STRING, .metric = CTL_LABEL, .required = true, .help = "name"},
	{"count", CTL_U64, .metric = CTL_COUNTER, .required = true, .help = "packets"},
	{"help", CTL_STRING, .required = true, .help = "meaning"}, {0}};

static const struct ctl_field drops_result[] = {
	{"drops", CTL_LIST, .item = CTL_OBJECT, .fields = drop_fields, .required = true,
		.help = "packets lost, one item per reason"},
	{"outcomes", CTL_LIST, .item = CTL_OBJECT, .fields = outcome_fields, .required = true,
		.help = "packets that served and were not sent on, one item per way: no losses"},
	{0}};

static const struct ctl_field trace_start_params[] = {
	{"port", CTL_STRING, .complete = "port", .pos = 1,
		.help = "received there; default: anywhere"},
	{"count", CTL_INT, .min = 1, .max = 4096, .help = "packets; default 1"}, {0}};

static const struct ctl_field trace_start_result[] = {
	{"count", CTL_INT, .required = true, .help = "packets that will be traced"}, {0}};

static const struct ctl_field trace_read_params[] = {
	{"from", CTL_INT, .min = 0, .max = INT32_MAX, .help = "first record; default 0"},
	{"limit", CTL_INT, .min = 1, .max = 1000, .help = "most records; default 200"}, {0}};

static const struct ctl_field trace_fields[] = {
	{"packet", CTL_INT, .required = true, .help = "records of one packet share it"},
	{"ns", CTL_U64, .required = true, .help = "time of the switch's clock"},
	{"node", CTL_STRING, .required = true, .help = "of the packet graph"},
	{"text", CTL_STRING, .required = true, .help = "what the node saw"}, {0}};

static const struct ctl_field trace_read_result[] = {
	{"next", CTL_INT, .required = true, .help = "`from` of the next call"},
	{"records", CTL_LIST, .item = CTL_OBJECT, .fields = trace_fields, .required = true,
		.help = "in order of time"},
	{0}};

/* ---- configuration ---- */

static const struct ctl_field config_get_params[] = {
	{"tables", CTL_BOOL, .help = "with the entries of all tables; default true"}, {0}};

static const struct ctl_field port_impair_params[] = {
	{"port", CTL_STRING, .required = true, .complete = "port", .pos = 1, .help = "which one"},
	{"impair", CTL_OBJECT, .fields = ctl_impair_fields,
		.help = "as in the start-up file, but of this port alone; absent: fine weather"},
	{0}};

static const struct ctl_field config_get_result[] = {
	{"config", CTL_ANY, .required = true, .help = "as in the start-up file"}, {0}};

static const struct ctl_field config_save_result[] = {
	{"file", CTL_STRING, .required = true, .help = "start-up file"},
	{"bytes", CTL_U64, .required = true, .help = "its size"},
	{"entries", CTL_INT, .required = true, .help = "table entries in it"}, {0}};

static const struct ctl_field config_load_result[] = {
	{"file", CTL_STRING, .required = true, .help = "start-up file"},
	{"added", CTL_INT, .required = true, .help = "entries that were in no table"},
	{"changed", CTL_INT, .required = true, .help = "entries that do something else now"},
	{"removed", CTL_INT, .required = true, .help = "entries that the file does not have"},
	{"kept", CTL_INT, .required = true, .help = "entries that are as they were"},
	{"restart", CTL_LIST, .item = CTL_STRING, .required = true,
		.help = "keys of the file, but tables, that are not as the switch runs: they take "
			"a restart"},
	{0}};

static const struct ctl_method methods[] = {
	{"ping", "ping", "Answers; to see whether the switch is there.", false, none, none,
		CTL_TCP_ANY},
	{"version", "version", "Tells who answers and which versions it speaks.", false, none,
		version_result, CTL_TCP_ANY},
	{"status", "status", "Sums up the state of the switch.", false, none, status_result,
		CTL_TCP_ANY},
	{"schema.get", NULL, "Describes every method by JSON Schema.", false, none, schema_result,
		CTL_TCP_ANY},
	{"port.list", "ports", "Lists the ports with their counters.", false, none, port_result,
		CTL_TCP_ANY},
	{"port.impair", NULL, "Has bad weather on a port from now on, for tests.", true,
		port_impair_params, none},
	{"worker.list", "workers",
		"Lists the workers: where they run, what they have done and own.", false, none,
		worker_result},
	{"queue.list", "queues", "Lists what waits for the ports.", false, none, queue_result},
	CTL_MCAST_METHODS,
	CTL_NEIGH_METHODS,
	CTL_MAC_METHODS,
	{"pipeline.get", "pipeline",
		"Describes the parser, the stages and their tables, keys and actions.", false,
		pipeline_params, pipeline_result},
	{"table.list", "table list", "Lists the tables.", false, none, table_list_result},
	{"table.read", "table read", "Reads entries of a table, page by page.", false,
		table_read_params, table_read_result},
	{"table.write", NULL, "Applies a batch of updates: all of it or nothing.", true,
		table_write_params, table_write_result},
	CTL_NODE_METHODS,
	{"owner.hold", NULL,
		"Keeps what an owner makes: groups and rings that are created over this "
		"connection from now on belong to it, and end some time after the last connection "
		"that holds it has.",
		true, owner_params, owner_result, CTL_TCP_ANY},
	CTL_GROUP_METHODS,
	CTL_LEASE_METHODS,
	CTL_RING_METHODS,
	{"stats.get", "stats", "Shows counters and values.", false, stats_params, stats_result},
	{"drops.get", "drops",
		"Shows how many packets were lost, by reason, and what became of others that end "
		"here.",
		false, drops_params, drops_result},
	{"trace.start", "trace start", "Traces the next packets through all nodes.", true,
		trace_start_params, trace_start_result},
	{"trace.read", "trace read", "Reads what the last trace has recorded.", false,
		trace_read_params, trace_read_result},
	CTL_CAPTURE_METHODS,
	{"config.get", "config get", "Shows the running configuration.", false, config_get_params,
		config_get_result},
	{"config.save", "config save", "Writes the running configuration to the start-up file.",
		true, none, config_save_result},
	{"config.load", "config load",
		"Makes the tables what the start-up file says, all of them or none.", true, none,
		config_load_result},
};

const struct ctl_schema ctl_switch_schema = {
	"incline-switch", methods, sizeof(methods) / sizeof(methods[0])};
