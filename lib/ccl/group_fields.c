/* SPDX-License-Identifier: BSD-3-Clause */
/* The fields of a group file. group.c checks a file with this table and takes defaults from it;
 * incline-perf --help-config prints it, and the table of docs/group-file.md is made of it. */
#include "lib/ccl/group.h"
#include "lib/ccl/mcast.h"
#include "lib/ccl/nodes.h"

enum {
	NAME_MAX_LEN = CCL_NAME_LEN - 1,
	DEVICE_MAX_LEN = 63,
	SOCKET_MAX_LEN = CCL_PATH_LEN - 1,
	ADDRESS_MAX_LEN = CCL_ADDRESS_LEN - 1,
	IP_MAX_LEN = WIRE_IP_STRLEN - 1,
	MS_MAX = 3600000,
};

static const char *const modes[] = {"I", "II", "III", "netreduce", "ring", NULL};
static const char *const kinds[] = {"auto", "single", "mixed", NULL};
static const char *const trees[] = {"knomial", "binary", NULL};
static const char *const transports[] = {"ud", "uc", NULL};
static const char *const algorithms[] = {
#define X(id, name, does, how) name,
	CCL_ALGORITHMS(X)
#undef X
		NULL};
static const char *const verbs[] = {"send", "write", NULL};

#define FLAG(name_, dflt_, meaning)                             \
	{                                                       \
		name_, CTL_BOOL, .dflt = dflt_, .help = meaning \
	}

static const struct ctl_field flag_fields[] = {
	FLAG("reproducible", "false", "floats are added in the same order in every run"),
	FLAG("dup_all", "false", "a switch answers a duplicate to all children"),
	FLAG("late_flush", "true", "it sends the results behind a late one again"),
	FLAG("stall_rnr", NULL,
		"it holds hosts that wait for others with RNR NAKs; absent: true, unless the "
		"device of a rank cannot bear them"),
	FLAG("strict_port", "true",
		"it refuses packets of a member that come by another port than \"port\"; false "
		"where they may"),
	FLAG("half", "true", "memory for fp16 and bf16, which are summed in fp32: twice as much"),
	FLAG("sr", "false",
		"selective acknowledgement: mode III, or mode II with allreduce and barrier alone; "
		"single groups, devices with selective queue pairs"),
	{0}};

static const struct ctl_field multicast_fields[] = {
	{"group", CTL_STRING, .required = true, .min = 1, .max = IP_MAX_LEN,
		.help = "the group's address, of the family of the ranks', this job's alone; the "
			"switches must forward it"},
	{"transport", CTL_STRING, .values = transports, .dflt = "ud",
		.help = "ud: datagrams, copied out of staging; uc: RDMA WRITEs that are placed as "
			"they come, by the software RNIC alone"},
	{"chains", CTL_INT, .min = 1, .max = CCL_MAX_RANKS, .dflt = "1",
		.help = "roots of an AllGather that send at a time; divides the number of ranks"},
	{"trees", CTL_INT, .min = 1, .max = CCL_MCAST_MAX_TREES, .dflt = "1",
		.help = "groups that share the chunks: this address and those behind it, which the "
			"switches must forward, too; each is taken by another receive worker of "
			"the device, if it has some"},
	{"min_bytes", CTL_INT, .min = 0, .max = INT32_MAX, .dflt = "65536",
		.help = "algorithm auto: Broadcast and AllGather of at least so many bytes"},
	{0}};

static const struct ctl_field rank_fields[] = {
	{"ip", CTL_STRING, .required = true, .min = 1, .max = IP_MAX_LEN,
		.help = "of the rank's RDMA device"},
	{0}};

static const struct ctl_field child_fields[] = {
	{"rank", CTL_INT, .min = 0, .max = CCL_MAX_RANKS - 1,
		.help = "a host: its place in ranks; or"},
	{"switch", CTL_STRING, .min = 1, .max = NAME_MAX_LEN,
		.help = "the name of a switch, whose parent this one is"},
	{"port", CTL_STRING, .required = true, .min = 1, .max = NAME_MAX_LEN,
		.help = "port of this switch that leads there"},
	{0}};

static const struct ctl_field switch_fields[] = {
	{"name", CTL_STRING, .required = true, .min = 1, .max = NAME_MAX_LEN,
		.help = "in this file, once"},
	{"socket", CTL_STRING, .required = true, .min = 1, .max = SOCKET_MAX_LEN,
		.help = "its control socket: a path, or tcp:HOST:PORT"},
	{"ip", CTL_STRING, .required = true, .min = 1, .max = IP_MAX_LEN,
		.help = "one of its addresses, of the family of the ranks'"},
	{"parent", CTL_STRING, .min = 1, .max = NAME_MAX_LEN, .nullable = true,
		.help = "switch above it; absent or null: the root of the tree"},
	{"parent_port", CTL_STRING, .min = 1, .max = NAME_MAX_LEN,
		.help = "port toward the parent; needed with one"},
	{"children", CTL_LIST, .item = CTL_OBJECT, .fields = child_fields, .required = true,
		.min = 1, .max = CCL_MAX_CHILDREN, .help = "what is below it"},
	{0}};

static const struct ctl_field group_fields[] = {
	{"name", CTL_STRING, .required = true, .min = 1, .max = NAME_MAX_LEN,
		.help = "of the group on the switches: letters, digits, _ . -, not digits alone"},
	{"bootstrap", CTL_STRING, .required = true, .min = 1, .max = ADDRESS_MAX_LEN,
		.help = "where rank 0 listens: unix:/PATH or tcp:HOST:PORT"},
	{"manager", CTL_STRING, .min = 1, .max = CCL_MAX_MANAGERS * CCL_ADDRESS_LEN - 1,
		.help = "of a file without switches: who finds the tree, a path, unix:PATH or "
			"tcp:HOST:PORT, or up to 8 of them with commas between, of which one "
			"leads; absent: the environment's INCLINE_MANAGER"},
	{"mode", CTL_STRING, .values = modes, .dflt = "II",
		.help = "the switch says whether it offers it; ring asks nothing of the switches"},
	{"rings", CTL_INT, .min = 1, .max = CCL_NODES_MAX_LOCAL, .dflt = "1",
		.help = "mode netreduce: ranks of a node, numbered node by node, each with a ring "
			"of its own across the nodes (of two or more); inside a node a ring of its "
			"ranks comes before and after. AllReduce and Barrier"},
	{"algorithm", CTL_STRING, .values = algorithms, .dflt = "auto",
		.help = "inc: in the switches, without fallback; multicast: Broadcast and "
			"AllGather; ring: all collectives, by the hosts; tree: Broadcast, by the "
			"hosts; auto: in the switches as mode and fallback say, beside them by "
			"multicast if a group is named"},
	{"multicast", CTL_OBJECT, .fields = multicast_fields,
		.help = "Broadcast and AllGather by multicast"},
	{"tree", CTL_STRING, .values = trees, .dflt = "knomial", .help = "of algorithm tree"},
	{"tree_radix", CTL_INT, .min = 2, .max = CCL_TREE_MAX_RADIX, .dflt = "4",
		.help = "of a knomial tree; 2: binomial"},
	{"fallback", CTL_BOOL, .dflt = "true",
		.help = "to a ring of the hosts when the switches have no room or do not offer the "
			"mode"},
	{"resume", CTL_BOOL, .dflt = "false",
		.help = "a communicator whose groups fail goes on by a ring of the hosts, "
			"repeating what "
			"was interrupted: each collective's result, or contribution, is copied; "
			"needs "
			"fallback; modes I, II and III, not reproducible, no lease, no multicast"},
	{"verb", CTL_STRING, .values = verbs, .dflt = "send",
		.help = "write: data and results by RDMA WRITE with Immediate; results are copied "
			"out of registered memory of W + 3 messages. Modes II and III"},
	{"lease", CTL_STRING, .min = 1, .max = NAME_MAX_LEN,
		.help = "share the switches' memory under this name: modes II and III, not "
			"reproducible, needs fallback"},
	{"lease_ms", CTL_INT, .min = 10, .max = MS_MAX,
		.help = "how long the lease may be held without progress before a switch takes it "
			"back and fails the group; absent: timeout_ms, at least 10"},
	{"lease_wait_ms", CTL_INT, .min = 0, .max = MS_MAX / 4, .dflt = "0",
		.help = "how long a collective waits for the lease while another job has it, "
			"before it goes by a ring of the hosts; at most a quarter of timeout_ms"},
	{"duty", CTL_INT, .min = 1, .max = 1000, .dflt = "1000",
		.help = "of a file without switches: share of the time in which the job "
			"communicates, per thousand; below 1000 a manager of policy temporal lends "
			"it memory by turns: modes II and III, not reproducible, needs fallback, "
			"no resume, multicast or algorithm"},
	{"kind", CTL_STRING, .values = kinds, .dflt = "auto",
		.help = "of groups; auto: by what the devices can do"},
	{"collectives", CTL_LIST, .item = CTL_STRING,
		.help = "what will be called: allreduce, reduce, broadcast, barrier, "
			"reduce_scatter, allgather; absent: all of them"},
	{"device", CTL_STRING, .min = 1, .max = DEVICE_MAX_LEN,
		.help = "RDMA device of a rank; absent: any that has its address"},
	{"gid_index", CTL_INT, .min = 0, .max = 255,
		.help = "of the address there; absent: found by the address"},
	{"mtu", CTL_INT, .min = 256, .max = 4096,
		.help = "payload bytes of a full packet, a power of two; absent: the smallest of "
			"all ranks' ports"},
	{"M", CTL_INT, .min = 1, .max = 1024, .dflt = "4", .help = "packets of a message"},
	{"W", CTL_INT, .min = 1, .max = 1024, .dflt = "8",
		.help = "messages between the oldest unfinished one and the newest; M*W is "
			"2..32768, each switch keeps twice as many slots"},
	{"timeout_ms", CTL_INT, .min = 1, .max = MS_MAX, .dflt = "10000",
		.help = "of each step of the set-up, and of a collective without any progress"},
	{"flags", CTL_OBJECT, .fields = flag_fields, .help = "of the groups on the switches"},
	{"ranks", CTL_LIST, .item = CTL_OBJECT, .fields = rank_fields, .required = true, .min = 1,
		.max = CCL_MAX_RANKS, .help = "in order"},
	{"switches", CTL_LIST, .item = CTL_OBJECT, .fields = switch_fields, .min = 1,
		.max = 2 * CCL_MAX_RANKS,
		.help = "a tree of at most four levels; absent: a manager finds it"},
	{0}};

const struct ctl_field ccl_group_file = {
	"", CTL_OBJECT, .fields = group_fields, .help = "a group of ranks, and its switches"};
