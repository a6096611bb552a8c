/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/manager_schema.h"

#include "lib/ctl/config.h"

enum { NAME = 31, ADDRESS = 107, MAX_RANKS = 2048, MAX_MS = 3600000 };

static const struct ctl_field none[] = {{0}};

/* ---- configuration ---- */

static const char *const policies[] = {"edt", "spatial", "temporal", NULL};

static const char *const lldp_words[] = {"use", "say", NULL};

static const char *const sources[] = {"file", "lldp", NULL};

static const struct ctl_field switch_config[] = {
	{"name", CTL_STRING, .required = true, .min = 1, .max = NAME, .help = "of the switch"},
	{"control", CTL_STRING, .required = true, .min = 1, .max = ADDRESS,
		.help = "its control socket: a path, unix:PATH or tcp:HOST:PORT"},
	{"ip", CTL_STRING, .required = true, .min = 1, .max = 45,
		.help = "the address at which groups end there"},
	{"tier", CTL_INT, .min = 0, .max = 254, .dflt = "0",
		.help = "from 1, next to hosts; 0: from the links"},
	{0}};

static const struct ctl_field host_config[] = {
	{"name", CTL_STRING, .required = true, .min = 1, .max = NAME, .help = "of the host"},
	{"ip", CTL_STRING, .required = true, .min = 1, .max = 45,
		.help = "of its RNIC: by it a rank is found"},
	{0}};

static const struct ctl_field link_config[] = {
	{"a", CTL_STRING, .required = true, .min = 1, .max = NAME, .help = "a switch"},
	{"a_port", CTL_STRING, .required = true, .min = 1, .max = NAME, .help = "its port"},
	{"b", CTL_STRING, .required = true, .min = 1, .max = NAME, .help = "a switch or a host"},
	{"b_port", CTL_STRING, .min = 1, .max = NAME, .dflt = "nic", .help = "its port"},
	{"mbps", CTL_INT, .min = 1, .max = 10000000, .dflt = "100000",
		.help = "megabits per second, each way"},
	{0}};

static const struct ctl_field config_fields[] = {
	{"listen", CTL_STRING, .min = 1, .max = ADDRESS, .dflt = CTL_DEFAULT_MANAGER,
		.help = "path of the UNIX socket for ranks and operators"},
	{"listen_tcp", CTL_STRING, .min = 1, .max = ADDRESS,
		.help = "ADDRESS:PORT to listen at as well; without \"tls\" nobody is asked who he "
			"is, and only ranks' methods are allowed"},
	{"metrics", CTL_STRING, .min = 1, .max = 255,
		.help = "ADDRESS:PORT, or unix:PATH, where counters are served over HTTP as "
			"/metrics, for Prometheus (OpenMetrics): to be read by whoever gets there"},
	{"clients", CTL_INT, .min = 16, .max = 65536, .dflt = "2048",
		.help = "connections at a time, of ranks and operators; over TCP three of four of "
			"them"},
	{"tls", CTL_STRING, .min = 1, .max = 4000,
		.help = "directory with ca.pem, cert.pem, key.pem, and crl.pem if certificates are "
			"revoked: TCP connections, to switches too, are TLS 1.3, and both ends "
			"show "
			"certificates of that CA"},
	{"audit", CTL_STRING, .min = 1, .max = 4095,
		.help = "file to which every change is appended, and every request that was not "
			"allowed: one JSON object per line"},
	{"tenant_jobs", CTL_INT, .min = 1, .max = 16384, .dflt = "64",
		.help = "that a tenant may have at a time"},
	{"tenant_ranks", CTL_INT, .min = 1, .max = 65536, .dflt = "256",
		.help = "of all jobs of a tenant together"},
	{"tenant_bytes", CTL_INT, .min = 0, .max = INT64_C(1) << 40, .dflt = "0",
		.help = "of memory on any one switch, of all jobs of a tenant together; 0: what "
			"there is. A job gets a smaller window to keep to it, or no tree"},
	{"store", CTL_STRING, .min = 1, .max = 4095, .dflt = CTL_DEFAULT_STORE,
		.help = "SQLite file for what a manager that starts anew has to know; \"memory\": "
			"it learns from ranks and switches; etcd:http://HOST:PORT[,...][/FABRIC]: "
			"of several managers one leads, the others wait"},
	{"store_tls", CTL_STRING, .min = 1, .max = 4000,
		.help = "directory with ca.pem, cert.pem, key.pem, and crl.pem if certificates are "
			"revoked, for an etcd at https://: the only CA that counts there, and what "
			"to show to members that ask who comes"},
	{"policy", CTL_STRING, .values = policies, .dflt = "spatial",
		.help = "how trees share the fabric"},
	{"lldp", CTL_STRING, .values = lldp_words, .dflt = "use",
		.help = "a link between switches whose port hears another node than it should by "
			"LLDP: \"use\": it is not used; \"say\": that is only told"},
	{"heartbeat_ms", CTL_INT, .min = 100, .max = 60000, .dflt = "1000",
		.help = "a rank, or a switch, that is silent for three of them is lost"},
	{"join_ms", CTL_INT, .min = 100, .max = MAX_MS, .dflt = "30000",
		.help = "for all ranks of a job to join"},
	{"drain_ms", CTL_INT, .min = 0, .max = 60000, .dflt = "2000",
		.help = "from failing a group to removing it: who still sends is told meanwhile"},
	{"hop_ns", CTL_INT, .min = 1, .max = 100000000, .dflt = "2000",
		.help = "one link and one switch, one way: windows and memory follow from it"},
	{"loss_ppm", CTL_INT, .min = 0, .max = 999999, .dflt = "0",
		.help = "of packets, per hop: the mode follows from it"},
	{"cycle_ms", CTL_INT, .min = 10, .max = 60000, .dflt = "100",
		.help = "policy temporal: jobs whose duty is below 1000 take turns with the "
			"memory that they share, each once in so long"},
	{"switches", CTL_LIST, .item = CTL_OBJECT, .fields = switch_config, .required = true,
		.min = 1, .max = 4096, .help = "of the fabric"},
	{"discover", CTL_BOOL,
		.help = "hosts and links that are not listed are learnt from whom switches hear by "
			"LLDP; default false: there are none, and both lists are required"},
	{"discover_mbps", CTL_INT, .min = 1, .max = 10000000, .dflt = "100000",
		.help = "megabits per second, each way, of links that are learnt, whose ports do "
			"not say"},
	{"hosts", CTL_LIST, .item = CTL_OBJECT, .fields = host_config, .min = 1, .max = 8192,
		.help = "of the fabric"},
	{"links", CTL_LIST, .item = CTL_OBJECT, .fields = link_config, .min = 1, .max = 65536,
		.help = "of the fabric"},
	{0}};

const struct ctl_field ctl_manager_config = {
	"configuration", CTL_OBJECT, .fields = config_fields, .help = "of incline-manager"};

/* ---- jobs ---- */

static const char *const modes[] = {"I", "II", "III", NULL};

static const char *const kinds[] = {"auto", "single", "mixed", NULL};

static const char *const verbs[] = {"send", "write", NULL};

static const struct ctl_field device_fields[] = {
	{"name", CTL_STRING, .required = true, .min = 1, .max = 63, .help = "of the device"},
	{"skip", CTL_BOOL, .help = "it can leave out PSNs; default false"},
	{"selective", CTL_BOOL, .help = "it has selective queue pairs; default false"},
	{"mtu", CTL_INT, .min = 256, .max = 4096, .help = "of its port; default: the job's"}, {0}};

static const struct ctl_field join_params[] = {
	{"job", CTL_STRING, .required = true, .min = 1, .max = NAME, .help = "name"},
	{"ranks", CTL_INT, .required = true, .min = 1, .max = MAX_RANKS, .help = "of the job"},
	{"rank", CTL_INT, .required = true, .min = 0, .max = MAX_RANKS - 1, .help = "who joins"},
	{"who", CTL_U64, .required = true,
		.help = "another random number for another process: the same joins once, and only "
			"who knows it speaks for the rank"},
	{"ip", CTL_STRING, .required = true, .min = 1, .max = 45, .help = "of the rank's RNIC"},
	{"mtu", CTL_INT, .required = true, .min = 256, .max = 4096,
		.help = "payload bytes of a full packet; the same at all ranks, as what follows"},
	{"M", CTL_INT, .min = 0, .max = 1024, .help = "packets per message; default 0: chosen"},
	{"mode", CTL_STRING, .values = modes,
		.help = "this one; default: II or III, as the devices can; I for mixed groups, if "
			"one cannot leave out PSNs"},
	{"device", CTL_OBJECT, .fields = device_fields, .help = "what the rank's can do"},
	{"kind", CTL_STRING, .values = kinds, .help = "of the groups; default auto"},
	{"sr", CTL_BOOL, .help = "selective queue pairs; default false"},
	{"verb", CTL_STRING, .values = verbs, .help = "default send"},
	{"basic", CTL_BOOL, .help = "AllReduce and Barrier alone; default false"},
	{"reproducible", CTL_BOOL, .help = "add in one order; default false"},
	{"half", CTL_BOOL, .help = "memory for fp16 and bf16; default true"},
	{"mbps", CTL_INT, .min = 0, .max = 10000000,
		.help = "more is of no use; default 0: as much as there is"},
	{"duty", CTL_INT, .min = 1, .max = 1000,
		.help = "share of the time in which it communicates, per thousand; default 1000; "
			"less counts with \"lease\""},
	{"lease", CTL_BOOL,
		.help = "it can have its memory for a collective at a time; default false"},
	{"resume", CTL_BOOL,
		.help = "it goes on by a ring of its hosts if the network fails in the middle, and "
			"stays a job; default false: its ranks are told, and join again"},
	{0}};

static const struct ctl_field child_fields[] = {{"rank", CTL_INT, .help = "a rank, or"},
	{"switch", CTL_STRING, .help = "a switch: of the same list"},
	{"port", CTL_STRING, .required = true, .help = "towards it"}, {0}};

static const struct ctl_field tree_fields[] = {
	{"name", CTL_STRING, .required = true, .help = "of the switch"},
	{"socket", CTL_STRING, .required = true, .help = "its control socket"},
	{"ip", CTL_STRING, .required = true, .help = "where groups end"},
	{"parent", CTL_STRING, .help = "towards the root; absent: this is it"},
	{"parent_port", CTL_STRING, .help = "towards the parent"},
	{"children", CTL_LIST, .item = CTL_OBJECT, .fields = child_fields, .required = true,
		.help = "below it"},
	{0}};

static const struct ctl_field plan_fields[] = {
	{"mode", CTL_STRING, .required = true, .help = "INC mode"},
	{"M", CTL_INT, .required = true, .help = "packets per message"},
	{"W", CTL_INT, .required = true, .help = "messages per window"},
	{"switches", CTL_LIST, .item = CTL_OBJECT, .fields = tree_fields, .required = true,
		.help = "as a group file has them"},
	{0}};

static const struct ctl_field window_fields[] = {
	{"lease", CTL_STRING, .required = true, .help = "by whose name it is shared"},
	{"cycle_us", CTL_INT, .required = true, .help = "microseconds in which all take turns"},
	{"at_us", CTL_INT, .required = true, .help = "of the cycle that have passed now"},
	{"start_us", CTL_INT, .required = true,
		.help = "of the cycle at which the job's turn begins"},
	{"length_us", CTL_INT, .required = true,
		.help = "that it lasts; 0: it has none, and takes the lease when it can"},
	{0}};

static const char *const phases[] = {"joining", "installing", "connecting", "starting", "active",
	"ring", "over", "adopted", NULL};

static const struct ctl_field state_result[] = {
	{"epoch", CTL_U64, .required = true, .help = "of this run of the job"},
	{"phase", CTL_STRING, .values = phases, .required = true,
		.help = "ring: the network is not used; over: join again; adopted: it runs since "
			"before the manager started"},
	{"line", CTL_STRING, .required = true, .help = "as job.explain"},
	{"plan", CTL_OBJECT, .fields = plan_fields, .help = "while the phase is connecting"},
	{"window", CTL_OBJECT, .fields = window_fields,
		.help = "of a job that shares its switches' memory: when it may use it"},
	{0}};

static const struct ctl_field rank_params[] = {
	{"job", CTL_STRING, .required = true, .min = 1, .max = NAME, .help = "name"},
	{"epoch", CTL_U64, .required = true, .help = "as joined"},
	{"rank", CTL_INT, .required = true, .min = 0, .max = MAX_RANKS - 1, .help = "who says it"},
	{"who", CTL_U64, .required = true, .help = "as joined: another process is refused"}, {0}};

static const struct ctl_field job_params[] = {
	{"job", CTL_STRING, .required = true, .min = 1, .max = NAME, .pos = 1, .help = "name"},
	{0}};

static const struct ctl_field explain_result[] = {
	{"line", CTL_STRING, .required = true,
		.help = "tree, mode, switches, memory; or why not, and what would have to change"},
	{0}};

static const struct ctl_field job_fields[] = {{"job", CTL_STRING, .required = true, .help = "name"},
	{"epoch", CTL_U64, .required = true, .help = "of its last run"},
	{"phase", CTL_STRING, .values = phases, .required = true, .help = "where that is"},
	{"ranks", CTL_INT, .required = true, .help = "of it"},
	{"tenant", CTL_STRING, .help = "whose it is, by his certificate"},
	{"mode", CTL_STRING, .help = "INC mode"},
	{"bytes", CTL_U64, .help = "of memory, on all switches"},
	{"switches", CTL_LIST, .item = CTL_STRING, .help = "of its tree, the root first"}, {0}};

static const struct ctl_field list_result[] = {
	{"jobs", CTL_LIST, .item = CTL_OBJECT, .fields = job_fields, .required = true,
		.help = "one item per run, the newest first"},
	{0}};

/* ---- the fabric ---- */

static const struct ctl_field node_fields[] = {
	{"name", CTL_STRING, .required = true, .help = "of the node"},
	{"kind", CTL_STRING, .required = true, .help = "switch or host"},
	{"state", CTL_STRING, .required = true, .help = "up or down"},
	{"tier", CTL_INT, .help = "of a switch"},
	{"boot", CTL_STRING, .help = "of a switch, as it last said"},
	{"arena_bytes", CTL_U64, .help = "of a switch: aggregation memory"},
	{"promised_bytes", CTL_U64, .help = "of it, to jobs"},
	{"groups", CTL_INT, .help = "of a switch: trees that it is in"},
	{"workers", CTL_LIST, .item = CTL_INT,
		.help = "of a switch, one item each: NUMA node of the CPU that it runs on; -1: it "
			"is on no single one, or none is known"},
	{0}};

static const struct ctl_field link_fields[] = {{"a", CTL_STRING, .required = true, .help = "node"},
	{"a_port", CTL_STRING, .required = true, .help = "its port"},
	{"b", CTL_STRING, .required = true, .help = "node"},
	{"b_port", CTL_STRING, .required = true, .help = "its port"},
	{"mbps", CTL_INT, .required = true, .help = "each way"},
	{"state", CTL_STRING, .required = true, .help = "up or down"},
	{"trees", CTL_INT, .required = true, .help = "over it"},
	{"by", CTL_STRING, .required = true, .values = sources,
		.help = "who says that it is there"},
	{0}};

static const struct ctl_field topology_result[] = {
	{"nodes", CTL_LIST, .item = CTL_OBJECT, .fields = node_fields, .required = true,
		.help = "switches and hosts"},
	{"links", CTL_LIST, .item = CTL_OBJECT, .fields = link_fields, .required = true,
		.help = "between them"},
	{"conflicts", CTL_LIST, .item = CTL_STRING, .required = true,
		.help = "where the file and what switches say do not agree"},
	{0}};

static const struct ctl_field version_result[] = {
	{"server", CTL_STRING, .required = true, .help = "always incline-manager"},
	{"version", CTL_STRING, .required = true, .help = "of the program"},
	{"policy", CTL_STRING, .required = true, .help = "how trees share the fabric"}, {0}};

static const struct ctl_field who_result[] = {
	{"name", CTL_STRING, .required = true,
		.help = "HOST:PID, as those say it who wait for their turn"},
	{"leads_s", CTL_INT, .required = true, .help = "seconds that it has led for"},
	{"switches", CTL_INT, .required = true, .help = "that it is connected with"},
	{"policy", CTL_STRING, .required = true, .help = "of trees that are placed from now on"},
	{"not_the_rank", CTL_U64, .required = true,
		.help = "refused: spoke for a rank that is another process"},
	{"place_taken", CTL_U64, .required = true,
		.help = "refused: would have joined in the place of a rank that is there"},
	{0}};

static const struct ctl_field policy_params[] = {
	{"policy", CTL_STRING, .values = policies, .required = true, .pos = 1,
		.help = "how trees share the fabric"},
	{0}};

static const struct ctl_field policy_result[] = {
	{"policy", CTL_STRING, .required = true, .help = "of trees that are placed from now on"},
	{"before", CTL_STRING, .required = true, .help = "until now"}, {0}};

static const struct ctl_method methods[] = {
	{"ping", NULL, "Answers.", false, none, none, CTL_TCP_ANY},
	{"version", NULL, "Tells who answers.", false, none, version_result, CTL_TCP_ANY},
	{"manager.who", "manager who",
		"Tells which manager of the fabric leads: of several it is the one that answers.",
		false, none, who_result, CTL_TCP_ANY},
	{"job.join", NULL,
		"A rank joins a job. Its connection is its sign of life from then on. Doing it "
		"again "
		"changes nothing.",
		true, join_params, state_result, CTL_TCP_ANY},
	{"job.heartbeat", NULL, "A rank says that it lives, and hears how its job is.", false,
		rank_params, state_result, CTL_TCP_ANY},
	{"job.ready", NULL, "A rank is connected: with all of them the job is active.", true,
		rank_params, state_result, CTL_TCP_ANY},
	{"job.leave", NULL, "A rank has done what it wanted.", true, rank_params, none,
		CTL_TCP_ANY},
	{"job.explain", "job explain", "Tells a job's tree, or why it has none, on one line.",
		false, job_params, explain_result, CTL_TCP_ANY},
	{"job.list", "job list", "Lists the jobs.", false, none, list_result},
	{"policy.set", "policy set",
		"Sets the policy of trees that are placed from now on, until the configuration "
		"names another one; jobs that run stay as they are.",
		true, policy_params, policy_result},
	{"topology.get", "topology", "Shows the fabric as the manager knows it.", false, none,
		topology_result},
};

const struct ctl_schema ctl_manager_schema = {
	"incline-manager", methods, sizeof(methods) / sizeof(methods[0])};

void ctl_manager_markdown(FILE *out)
{
	ctl_config_markdown(&ctl_manager_config, out);
	fputc('\n', out);
	ctl_markdown(&ctl_manager_schema, out);
}
