/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/group_schema.h"

#include "lib/ctl/config.h"
#include "lib/ctl/node_schema.h"

enum {
	MAX_QPN = 0xffffff,
	MAX_PSN = 0xffffff,
	MAX_GROUP_SLOT = 4095,
	MAX_EP = 64,
	MAX_RANKS = 2048
};

#define GROUP_REF                                                             \
	{                                                                     \
		.name = "group", .type = CTL_REF, .required = true, .min = 1, \
		.max = MAX_GROUP_SLOT, .complete = "group", .pos = 1,         \
		.help = "name, or slot as an integer"                         \
	}

/* ---- the program ---- */

const struct ctl_field ctl_group_none[] = {{0}};

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
		.help = "mode III, or mode II and allreduce, single: selective acknowledgement, "
			"for links that lose packets; "
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

const struct ctl_field ctl_group_create_params[] = {
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

const struct ctl_field ctl_group_create_result[] = {
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

const struct ctl_field ctl_group_activate_params[] = {GROUP_REF,
	{"endpoints", CTL_LIST, .item = CTL_OBJECT, .fields = activate_endpoints, .max = MAX_EP,
		.help = "QPNs that group.create did not know"},
	{0}};

const struct ctl_field ctl_group_state_result[] = {
	{"group", CTL_INT, .required = true, .help = "slot"},
	{"name", CTL_STRING, .required = true, .help = "of the group"},
	{"state", CTL_STRING, .required = true, .help = "now: active, draining, failed or free"},
	{0}};

const struct ctl_field ctl_group_delete_params[] = {
	GROUP_REF, {"force", CTL_BOOL, .help = "at once, without draining; default false"}, {0}};

const struct ctl_field ctl_group_params[] = {GROUP_REF, {0}};

static const char *const group_states[] = {"installed", "active", "draining", "failed", NULL};

static const struct ctl_field group_list_groups[] = {
	{"group", CTL_INT, .required = true, .help = "slot"},
	{"name", CTL_STRING, .metric = CTL_LABEL, .required = true, .help = "of the group"},
	{"state", CTL_STRING, .values = group_states, .metric = CTL_STATES, .required = true,
		.help = "installed, active, draining or failed"},
	{"generation", CTL_INT, .required = true, .help = "of the slot"},
	{"mode", CTL_STRING, .required = true, .help = "INC mode"},
	{"kind", CTL_STRING, .required = true, .help = "single or mixed"},
	{"primitive", CTL_STRING, .help = "of a single group"},
	{"ranks", CTL_INT, .metric = CTL_GAUGE, .required = true, .help = "members"},
	{"endpoints", CTL_INT, .required = true, .help = "neighbours"},
	{"operations", CTL_U64, .required = true, .help = "collectives begun"},
	{"fail_reason", CTL_STRING, .help = "of a failed group"},
	{"worker", CTL_INT, .required = true, .help = "that works with it"},
	{"owner", CTL_STRING,
		.help = "of an owned group: held by a connection, alone (it waits for one), "
			"ending"},
	{0}};

const struct ctl_field ctl_group_list_result[] = {
	{"groups", CTL_LIST, .item = CTL_OBJECT, .fields = group_list_groups, .required = true,
		.help = "one item per group, by slot"},
	{0}};

const struct ctl_field ctl_group_show_params[] = {GROUP_REF,
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

const struct ctl_field ctl_group_rebind_params[] = {GROUP_REF,
	{"bound", CTL_BOOL, .required = true, .pos = 2,
		.help = "take aggregation memory (move, if it has some), or give it back"},
	{0}};

const struct ctl_field ctl_group_rebind_result[] = {
	{"group", CTL_INT, .required = true, .help = "slot"},
	{"name", CTL_STRING, .required = true, .help = "of the group"},
	{"state", CTL_STRING, .required = true, .help = "installed or active"},
	{"arena", CTL_OBJECT, .fields = arena_fields, .required = true, .help = "as it is now"},
	{0}};

const struct ctl_field ctl_group_resync_params[] = {GROUP_REF,
	{"psn", CTL_INT, .required = true, .pos = 2, .min = 0, .max = 0xffffff,
		.help = "of the next operation's control message"},
	{0}};

const struct ctl_field ctl_group_resync_result[] = {
	{"group", CTL_INT, .required = true, .help = "slot"},
	{"name", CTL_STRING, .required = true, .help = "of the group"},
	{"done", CTL_BOOL, .required = true,
		.help = "hosts may send; false: on its way, ask again for the same"},
	{0}};

const struct ctl_field ctl_group_move_params[] = {GROUP_REF,
	{"worker", CTL_INT, .required = true, .pos = 2, .min = 0, .max = CTL_MAX_WORKERS - 1,
		.help = "that is to own it"},
	{0}};

const struct ctl_field ctl_group_move_result[] = {
	{"group", CTL_INT, .required = true, .help = "slot"},
	{"name", CTL_STRING, .required = true, .help = "of the group"},
	{"worker", CTL_INT, .required = true, .help = "that owns it now"}, {0}};

const struct ctl_field ctl_group_show_result[] = {
	{"group", CTL_INT, .required = true, .help = "slot"},
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
