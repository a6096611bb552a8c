/* SPDX-License-Identifier: BSD-3-Clause */
/* The methods of incline-switch; ctrl/agent has a handler for each. */
#include "lib/ctl/config.h"
#include "lib/ctl/lease_schema.h"
#include "lib/ctl/mcast_schema.h"
#include "lib/ctl/node_schema.h"
#include "lib/ctl/ring_schema.h"
#include "lib/ctl/schema.h"

enum {
	MAX_QPN = 0xffffff,
	MAX_PSN = 0xffffff,
	MAX_GROUP_SLOT = 4095,
	MAX_EP = 64,
	MAX_RANKS = 2048
};

static const struct ctl_field none[] = {{0}};

#define GROUP_REF                                                             \
	{                                                                     \
		.name = "group", .type = CTL_REF, .required = true, .min = 1, \
		.max = MAX_GROUP_SLOT, .complete = "group", .pos = 1,         \
		.help = "name, or slot as an integer"                         \
	}

/* ---- the program ---- */

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
	{"groups_active", CTL_INT, .required = true, .help = "groups that aggregate"},
	{"groups_failed", CTL_INT, .required = true, .help = "groups that have failed"},
	{"owners", CTL_INT, .required = true, .help = "jobs that hold, or have, groups or rings"},
	{"orphans", CTL_U64, .required = true,
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
	{"table", CTL_STRING, .complete = "table", .pos = 1, .help = "this one only"}, {0}};

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
	{"size", CTL_INT, .required = true, .help = "most entries"},
	{"entries", CTL_INT, .required = true, .help = "present entries"},
	{"priorities", CTL_BOOL, .required = true, .help = "entries have a priority"},
	{"keys", CTL_LIST, .item = CTL_OBJECT, .fields = pipeline_fields, .required = true,
		.help = "key fields"},
	{"actions", CTL_LIST, .item = CTL_OBJECT, .fields = pipeline_actions, .required = true,
		.help = "actions"},
	{0}};

static const struct ctl_field pipeline_result[] = {
	{"tables", CTL_LIST, .item = CTL_OBJECT, .fields = pipeline_tables, .required = true,
		.help = "in the order in which the switch registers them"},
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
	{"applied", CTL_INT, .required = true, .help = "number of updates"}, {0}};

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
		.help = "packets that have matched it; tables that count (local_sid, mcast_group, "
			"mcast_sender)"},
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

/* ---- groups ---- */

static const char *const modes[] = {"I", "II", "III", "netreduce", NULL};
static const char *const kinds[] = {"single", "mixed", NULL};
static const char *const primitives[] = {"allreduce", "reduce", "broadcast", NULL};

static const struct ctl_field flag_fields[] = {
	{"reproducible", CTL_BOOL,
		.help = "add in endpoint order, whatever the order of arrival; default false"},
	{"dup_all", CTL_BOOL, .help = "answer a duplicate to all children; default false"},
	{"late_flush", CTL_BOOL, .help = "send the results behind a late one again; default true"},
	{"stall_rnr", CTL_BOOL,
		.help = "hold hosts that wait for others with RNR NAKs; default true"},
	{"strict_port", CTL_BOOL,
		.help = "refuse packets from another port than the endpoint's; default true"},
	{"half", CTL_BOOL,
		.help = "memory for fp16 and bf16, which are summed in fp32: twice as much; "
			"default "
			"true"},
	{"sr", CTL_BOOL,
		.help = "mode III, single: selective acknowledgement, for links that lose packets; "
			"hosts' queue pairs must be selective; default false"},
	{0}};

static const struct ctl_field create_endpoints[] = {
	{"ip", CTL_STRING, .required = true, .help = "IP address of the peer"},
	{"qpn", CTL_INT, .min = 0, .max = MAX_QPN,
		.help = "QPN of the peer; 0 or absent: given by group.activate"},
	{"port", CTL_STRING, .required = true, .complete = "port", .help = "towards the peer"},
	{"mac", CTL_STRING, .help = "MAC of the peer; default from the neighbour table"},
	{"vlan", CTL_INT, .min = 0, .max = 4095, .help = "0: untagged, the default"},
	{"dscp", CTL_INT, .min = 0, .max = 63, .help = "of packets to the peer; default 0"},
	{"host", CTL_BOOL, .help = "the peer is a host, not a switch; default: not parent"},
	{"parent", CTL_BOOL,
		.help = "the peer is towards the root of the tree; the last endpoint; default "
			"false"},
	{"ranks", CTL_LIST, .item = CTL_INT, .max = MAX_RANKS,
		.help = "ranks behind this endpoint; may be absent for the parent: all others"},
	{"local_ip", CTL_STRING,
		.help = "address of the switch; default its first of the same family"},
	{"mr_addr", CTL_U64, .help = "verb write: where the host gets its results"},
	{"mr_len", CTL_INT, .min = 0, .max = INT32_MAX,
		.help = "bytes there: a whole number of messages of M x mtu, one more than it "
			"posts "
			"receives for"},
	{"rkey", CTL_INT, .min = 0, .max = UINT32_MAX, .help = "the memory's remote key"}, {0}};

static const char *const verbs[] = {"send", "write", NULL};

static const struct ctl_field create_params[] = {
	{"name", CTL_STRING, .required = true, .min = 1, .max = 31,
		.help = "letters, digits, '_', '.', '-'; not digits alone"},
	{"mode", CTL_STRING, .values = modes, .required = true, .help = "INC mode"},
	{"kind", CTL_STRING, .values = kinds, .required = true,
		.help = "one primitive for the group's whole life, or any sequence"},
	{"primitive", CTL_STRING, .values = primitives, .help = "of a single group"},
	{"root", CTL_INT, .min = 0, .max = MAX_RANKS - 1,
		.help = "rank that receives a reduce or sends a broadcast; default 0"},
	{"mtu", CTL_INT, .min = 256, .max = 4096, .required = true,
		.help = "payload bytes of a full packet: 256, 512, 1024, 2048 or 4096"},
	{"M", CTL_INT, .min = 1, .max = 32768, .required = true, .help = "packets per message"},
	{"W", CTL_INT, .min = 1, .max = 32768, .required = true, .help = "messages per window"},
	{"slots", CTL_INT, .min = 0, .max = 65536,
		.help = "ring size; default the smallest power of two that holds 2 M W"},
	{"rto_us", CTL_INT, .min = 10, .max = 64000,
		.help = "mode III: least time before something is sent again, else twice the "
			"measured round trip; default 1000"},
	{"start_psn", CTL_INT, .min = 0, .max = MAX_PSN,
		.help = "first PSN of the group, the same on all its switches; default random"},
	{"ranks", CTL_INT, .min = 1, .max = MAX_RANKS, .required = true, .help = "members"},
	{"verb", CTL_STRING, .values = verbs,
		.help = "how hosts send data and get results: send, the default, or write (RDMA "
			"WRITE with Immediate); modes II and III"},
	{"flags", CTL_OBJECT, .fields = flag_fields, .help = "choices"},
	{"endpoints", CTL_LIST, .item = CTL_OBJECT, .fields = create_endpoints, .min = 1,
		.max = MAX_EP, .required = true, .help = "one per neighbour in the tree"},
	{"bound", CTL_BOOL, .help = "take aggregation memory at once; default true"},
	{"lease", CTL_STRING, .min = 1, .max = 31,
		.help = "no memory of its own, but this lease's when its tenant holds it"},
	{"tenant", CTL_STRING, .min = 1, .max = 31,
		.help = "groups that get the lease together; default: the group's name"},
	{"lease_ms", CTL_INT, .min = 10, .max = 3600000,
		.help = "how long the tenant may hold it without progress; default 10000"},
	{"activate_ms", CTL_INT, .min = 1, .max = 3600000,
		.help = "taken away again unless it is activated within so many ms; default: it "
			"stays"},
	{"activate", CTL_BOOL, .help = "start at once; default: if all QPNs are known"},
	{"job", CTL_STRING, .min = 1, .max = CTL_MAX_JOB,
		.help = "that the group is made for; with epoch"},
	{"epoch", CTL_U64,
		.help = "of the job: a group of one that is over, or older than the newest that "
			"the switch has heard of, is refused (ESTALE)"},
	{0}};

static const struct ctl_field connection_fields[] = {
	{"expects", CTL_INT, .required = true, .help = "next PSN from the peer"},
	{"acknowledged", CTL_INT, .required = true,
		.help = "first PSN not acknowledged to the peer: the rest is held back for want of "
			"room"},
	{"unacknowledged", CTL_INT, .required = true, .help = "first PSN the peer may lack"},
	{"next", CTL_INT, .required = true, .help = "next PSN to send"},
	{"highest", CTL_INT, .required = true, .help = "highest PSN sent + 1"},
	{"retries", CTL_INT, .required = true, .help = "timeouts since the peer was last heard"},
	{"round_trip_us", CTL_INT, .required = true, .help = "as measured; 0: not yet"},
	{"rnr_wait", CTL_BOOL, .required = true, .help = "the peer has no receive posted"}, {0}};

static const struct ctl_field pipes_fields[] = {
	{"aggregate_psn", CTL_INT, .required = true, .help = "first PSN still to be aggregated"},
	{"broadcast_psn", CTL_INT, .required = true, .help = "first PSN still to be replicated"},
	{0}};

static const struct ctl_field endpoint_result[] = {
	{"index", CTL_INT, .required = true, .help = "place in the group"},
	{"port", CTL_STRING, .required = true, .help = "towards the peer"},
	{"ip", CTL_STRING, .required = true, .help = "address of the switch"},
	{"qpn", CTL_INT, .required = true, .help = "QPN of the switch"},
	{"mac", CTL_STRING, .required = true, .help = "MAC of the switch"},
	{"remote_ip", CTL_STRING, .required = true, .help = "address of the peer"},
	{"remote_qpn", CTL_INT, .required = true, .help = "QPN of the peer, 0 if not known yet"},
	{"remote_mac", CTL_STRING, .required = true, .help = "MAC of the peer or of the next hop"},
	{"role", CTL_STRING, .required = true, .help = "of the peer: host, switch or parent"},
	{"vlan", CTL_INT, .required = true, .help = "0: untagged"},
	{"dscp", CTL_INT, .required = true, .help = "of packets to the peer"},
	{"ranks", CTL_LIST, .item = CTL_INT, .required = true, .help = "behind the endpoint"},
	{"connection", CTL_OBJECT, .fields = connection_fields,
		.help = "mode III: to and from the peer"},
	{0}};

static const struct ctl_field create_result[] = {
	{"group", CTL_INT, .required = true, .help = "slot that identifies the group"},
	{"name", CTL_STRING, .required = true, .help = "as given"},
	{"generation", CTL_INT, .required = true, .help = "of the slot"},
	{"state", CTL_STRING, .required = true, .help = "installed or active"},
	{"mtu", CTL_INT, .required = true, .help = "payload bytes of a full packet"},
	{"M", CTL_INT, .required = true, .help = "packets per message"},
	{"W", CTL_INT, .required = true, .help = "messages per window"},
	{"slots", CTL_INT, .required = true, .help = "ring size"},
	{"start_psn", CTL_INT, .required = true, .help = "first PSN"},
	{"endpoints", CTL_LIST, .item = CTL_OBJECT, .fields = endpoint_result, .required = true,
		.help = "as installed"},
	{0}};

static const struct ctl_field activate_endpoints[] = {
	{"index", CTL_INT, .min = 0, .max = MAX_EP - 1, .required = true,
		.help = "of the endpoint"},
	{"qpn", CTL_INT, .min = 1, .max = MAX_QPN, .required = true, .help = "QPN of the peer"},
	{0}};

static const struct ctl_field activate_params[] = {GROUP_REF,
	{"endpoints", CTL_LIST, .item = CTL_OBJECT, .fields = activate_endpoints, .max = MAX_EP,
		.help = "QPNs that group.create did not know"},
	{0}};

static const struct ctl_field group_state_result[] = {
	{"group", CTL_INT, .required = true, .help = "slot"},
	{"name", CTL_STRING, .required = true, .help = "of the group"},
	{"state", CTL_STRING, .required = true, .help = "now: active, draining, failed or free"},
	{0}};

static const struct ctl_field delete_params[] = {
	GROUP_REF, {"force", CTL_BOOL, .help = "at once, without draining; default false"}, {0}};

static const struct ctl_field group_params[] = {GROUP_REF, {0}};

static const struct ctl_field group_list_groups[] = {
	{"group", CTL_INT, .required = true, .help = "slot"},
	{"name", CTL_STRING, .required = true, .help = "of the group"},
	{"state", CTL_STRING, .required = true, .help = "installed, active, draining or failed"},
	{"generation", CTL_INT, .required = true, .help = "of the slot"},
	{"mode", CTL_STRING, .required = true, .help = "INC mode"},
	{"kind", CTL_STRING, .required = true, .help = "single or mixed"},
	{"primitive", CTL_STRING, .help = "of a single group"},
	{"ranks", CTL_INT, .required = true, .help = "members"},
	{"endpoints", CTL_INT, .required = true, .help = "neighbours"},
	{"operations", CTL_U64, .required = true, .help = "collectives begun"},
	{"fail_reason", CTL_STRING, .help = "of a failed group"},
	{"worker", CTL_INT, .required = true, .help = "that works with it"},
	{"owner", CTL_STRING,
		.help = "of an owned group: held by a connection, alone (it waits for one), "
			"ending"},
	{0}};

static const struct ctl_field group_list_result[] = {
	{"groups", CTL_LIST, .item = CTL_OBJECT, .fields = group_list_groups, .required = true,
		.help = "one item per group, by slot"},
	{0}};

static const struct ctl_field show_params[] = {GROUP_REF,
	{"slots", CTL_BOOL, .help = "list the partly filled slots too; default false"}, {0}};

static const struct ctl_field waiting_fields[] = {
	{"psn", CTL_INT, .required = true, .help = "PSN that the slot holds"},
	{"arrived", CTL_LIST, .item = CTL_INT, .required = true, .help = "endpoints that came"},
	{"missing", CTL_LIST, .item = CTL_INT, .required = true, .help = "endpoints waited for"},
	{"missing_ranks", CTL_LIST, .item = CTL_INT, .required = true, .help = "ranks behind them"},
	{0}};

static const struct ctl_field arena_fields[] = {
	{"bound", CTL_BOOL, .required = true, .help = "the group has it now"},
	{"bytes", CTL_U64, .required = true, .help = "that it takes"},
	{"offset", CTL_U64, .help = "where, if bound"}, {0}};

static const struct ctl_field group_lease_fields[] = {
	{"name", CTL_STRING, .required = true, .help = "of the lease"},
	{"tenant", CTL_STRING, .required = true, .help = "to which the group belongs"}, {0}};

static const struct ctl_field rebind_params[] = {GROUP_REF,
	{"bound", CTL_BOOL, .required = true, .pos = 2,
		.help = "take aggregation memory (move, if it has some), or give it back"},
	{0}};

static const struct ctl_field rebind_result[] = {
	{"group", CTL_INT, .required = true, .help = "slot"},
	{"name", CTL_STRING, .required = true, .help = "of the group"},
	{"state", CTL_STRING, .required = true, .help = "installed or active"},
	{"arena", CTL_OBJECT, .fields = arena_fields, .required = true, .help = "as it is now"},
	{0}};

static const struct ctl_field move_params[] = {GROUP_REF,
	{"worker", CTL_INT, .required = true, .pos = 2, .min = 0, .max = CTL_MAX_WORKERS - 1,
		.help = "that is to own it"},
	{0}};

static const struct ctl_field move_result[] = {{"group", CTL_INT, .required = true, .help = "slot"},
	{"name", CTL_STRING, .required = true, .help = "of the group"},
	{"worker", CTL_INT, .required = true, .help = "that owns it now"}, {0}};

static const struct ctl_field show_result[] = {{"group", CTL_INT, .required = true, .help = "slot"},
	{"name", CTL_STRING, .required = true, .help = "of the group"},
	{"state", CTL_STRING, .required = true, .help = "installed, active, draining or failed"},
	{"fail_reason", CTL_STRING, .help = "of a failed group"},
	{"fail_endpoint", CTL_INT, .help = "endpoint that the failure came from"},
	{"fail_status", CTL_STRING, .help = "of mode1_qp: what the queue pair reported"},
	{"generation", CTL_INT, .required = true, .help = "of the slot"},
	{"mode", CTL_STRING, .required = true, .help = "INC mode"},
	{"kind", CTL_STRING, .required = true, .help = "single or mixed"},
	{"primitive", CTL_STRING, .help = "of a single group"},
	{"root", CTL_INT, .help = "of a single reduce or broadcast group"},
	{"verb", CTL_STRING, .help = "write: results come by RDMA WRITE"},
	{"flags", CTL_LIST, .item = CTL_STRING, .required = true, .help = "those that are set"},
	{"mtu", CTL_INT, .required = true, .help = "payload bytes of a full packet"},
	{"M", CTL_INT, .required = true, .help = "packets per message"},
	{"W", CTL_INT, .required = true, .help = "messages per window"},
	{"slots", CTL_INT, .required = true, .help = "ring size"},
	{"arena", CTL_OBJECT, .fields = arena_fields, .required = true,
		.help = "aggregation memory"},
	{"lease", CTL_OBJECT, .fields = group_lease_fields, .help = "where that comes from"},
	{"owner", CTL_STRING, .help = "as in group.list"},
	{"worker", CTL_INT, .required = true, .help = "that works with it"},
	{"start_psn", CTL_INT, .required = true, .help = "first PSN"},
	{"next_psn", CTL_INT, .required = true, .help = "where the next operation begins"},
	{"pipes", CTL_OBJECT, .fields = pipes_fields, .help = "mode III: where they begin"},
	{"ranks", CTL_INT, .required = true, .help = "members"},
	{"waiting", CTL_OBJECT, .fields = waiting_fields,
		.help = "the oldest slot that waits for somebody"},
	{"counters", CTL_MAP, .item = CTL_U64, .required = true, .help = "what it has done"},
	{"endpoints", CTL_LIST, .item = CTL_OBJECT, .fields = endpoint_result, .required = true,
		.help = "neighbours in the tree"},
	{"waiting_slots", CTL_LIST, .item = CTL_OBJECT, .fields = waiting_fields,
		.help = "on request: partly filled slots, the oldest 64"},
	{0}};

/* ---- state ---- */

static const struct ctl_field port_fields[] = {
	{"name", CTL_STRING, .required = true, .help = "of the port"},
	{"type", CTL_STRING, .required = true, .help = "as configured"},
	{"id", CTL_INT, .required = true, .help = "DPDK's port id"},
	{"mac", CTL_STRING, .required = true, .help = "MAC address"},
	{"mtu", CTL_INT, .required = true, .help = "largest IP packet, bytes"},
	{"link", CTL_STRING, .required = true, .help = "up or down"},
	{"rx_packets", CTL_U64, .required = true, .help = "received"},
	{"rx_bytes", CTL_U64, .required = true, .help = "received"},
	{"tx_packets", CTL_U64, .required = true, .help = "sent"},
	{"tx_bytes", CTL_U64, .required = true, .help = "sent"},
	{"tx_drops", CTL_U64, .required = true, .help = "not sent: the port's queue was full"},
	{"rx_missed", CTL_U64, .required = true, .help = "lost by the driver: its queue was full"},
	{"rx_errors", CTL_U64, .required = true, .help = "lost by the driver: bad frames"},
	{"rx_nombuf", CTL_U64, .required = true, .help = "lost by the driver: no buffer was left"},
	{"mac_mismatch", CTL_U64, .required = true,
		.help = "ARP, ND and control messages of neighbours whose MAC address is not what "
			"their neigh entries say: nothing gets to them"},
	{"mac_unlisted", CTL_U64, .required = true,
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
	{"worker", CTL_INT, .required = true, .help = "number"},
	{"cpu", CTL_INT, .help = "that it runs on, if it is one"},
	{"socket", CTL_INT, .help = "NUMA node of that"},
	{"turns", CTL_U64, .required = true, .help = "of its loop"},
	{"busy_cycles", CTL_U64, .required = true, .help = "CPU cycles of turns with packets"},
	{"idle_cycles", CTL_U64, .required = true, .help = "of those without, and asleep"},
	{"rx_packets", CTL_U64, .required = true, .help = "received from ports"},
	{"tx_packets", CTL_U64, .required = true, .help = "sent"},
	{"handed_over", CTL_U64, .required = true,
		.help = "packets that came here and are of another worker's group or ring"},
	{"taken_over", CTL_U64, .required = true, .help = "from other workers"},
	{"handoff_full", CTL_U64, .required = true, .help = "lost: the way to the owner was full"},
	{"groups", CTL_INT, .required = true, .help = "that it owns"},
	{"rings", CTL_INT, .required = true, .help = "that it owns"},
	{"arena_bytes", CTL_U64, .required = true, .help = "aggregation memory of its groups"},
	{0}};

static const struct ctl_field worker_result[] = {
	{"workers", CTL_LIST, .item = CTL_OBJECT, .fields = worker_fields, .required = true,
		.help = "one item per worker"},
	{0}};

static const struct ctl_field queue_fields[] = {
	{"port", CTL_STRING, .required = true, .help = "of the port that they wait for"},
	{"queue", CTL_STRING, .required = true, .help = "control, which goes first, or data"},
	{"packets", CTL_U64, .required = true, .help = "that wait now"},
	{"bytes", CTL_U64, .required = true, .help = "that wait now"},
	{"limit_bytes", CTL_U64, .required = true, .help = "that may wait"},
	{"peak_bytes", CTL_U64, .required = true, .help = "most that waited at a time"},
	{"queued", CTL_U64, .required = true, .help = "packets that had to wait so far"},
	{"marked", CTL_U64, .required = true, .help = "of them marked Congestion Experienced"},
	{"trimmed", CTL_U64, .required = true,
		.help = "packets without room that wait in control as their headers"},
	{"full", CTL_U64, .required = true, .help = "packets lost for want of room"},
	{"stale", CTL_U64, .required = true,
		.help = "packets lost because the port took nothing for too long"},
	{0}};

static const struct ctl_field queue_result[] = {
	{"queues", CTL_LIST, .item = CTL_OBJECT, .fields = queue_fields, .required = true,
		.help = "two items per port"},
	{0}};

static const char *const stats_kinds[] = {"values", "nodes", "groups", NULL};

static const struct ctl_field stats_params[] = {
	{"what", CTL_STRING, .values = stats_kinds, .pos = 1, .help = "this part only"}, {0}};

static const struct ctl_field value_fields[] = {
	{"name", CTL_STRING, .required = true, .help = "of the value"},
	{"value", CTL_U64, .required = true, .help = "now"},
	{"help", CTL_STRING, .required = true, .help = "meaning"}, {0}};

static const struct ctl_field node_fields[] = {
	{"node", CTL_STRING, .required = true, .help = "of the packet graph"},
	{"calls", CTL_U64, .required = true, .help = "times it ran"},
	{"packets", CTL_U64, .required = true, .help = "packets it handled"},
	{"cycles", CTL_U64, .required = true, .help = "CPU cycles it took"},
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
	{"reason", CTL_STRING, .required = true, .help = "name"},
	{"count", CTL_U64, .required = true, .help = "packets"},
	{"help", CTL_STRING, .required = true, .help = "meaning"}, {0}};

static const struct ctl_field outcome_fields[] = {
	{"outcome", CTL_STRING, .required = true, .help = "name"},
	{"count", CTL_U64, .required = true, .help = "packets"},
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

static const struct ctl_field config_get_result[] = {
	{"config", CTL_ANY, .required = true, .help = "as in the start-up file"}, {0}};

static const struct ctl_field config_save_result[] = {
	{"file", CTL_STRING, .required = true, .help = "start-up file"},
	{"bytes", CTL_U64, .required = true, .help = "its size"},
	{"entries", CTL_INT, .required = true, .help = "table entries in it"}, {0}};

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
	{"worker.list", "workers",
		"Lists the workers: where they run, what they have done and own.", false, none,
		worker_result},
	{"queue.list", "queues", "Lists what waits for the ports.", false, none, queue_result},
	CTL_MCAST_METHODS,
	{"pipeline.get", "pipeline", "Describes tables, keys and actions.", false, pipeline_params,
		pipeline_result},
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
	{"group.create", NULL, "Installs an INC group.", true, create_params, create_result,
		CTL_TCP_OWN},
	{"group.activate", NULL, "Starts an installed group.", true, activate_params,
		group_state_result, CTL_TCP_OWN},
	{"group.rebind", "group rebind",
		"Gives a group aggregation memory or takes it away, between operations.", true,
		rebind_params, rebind_result, CTL_TCP_OWN},
	{"group.move", "group move", "Gives a group to another worker, while it works.", true,
		move_params, move_result},
	{"group.delete", "group delete", "Removes a group, by default after draining.", true,
		delete_params, group_state_result, CTL_TCP_OWN},
	{"group.fail", "group fail", "Marks a group as failed: its members are told.", true,
		group_params, group_state_result, CTL_TCP_OWN},
	{"group.list", "group list", "Lists the groups.", false, none, group_list_result},
	{"group.show", "group show", "Shows a group: endpoints, counters, who is waited for.",
		false, show_params, show_result, CTL_TCP_OWN},
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
	{"config.get", "config get", "Shows the running configuration.", false, config_get_params,
		config_get_result},
	{"config.save", "config save", "Writes the running configuration to the start-up file.",
		true, none, config_save_result},
};

const struct ctl_schema ctl_switch_schema = {
	"incline-switch", methods, sizeof(methods) / sizeof(methods[0])};
