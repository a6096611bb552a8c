/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes at all to a manager: requests of ranks, tenants and strangers, what switches answer and
 * tell, connections that come and go, time, and records in its store. A line's first byte says
 * which of these it is. What is answered must be JSON-RPC and fit the schema; what is answered with
 * an error must have changed nothing; and what the manager has written down its successor can read.
 */
#include <jansson.h>
#include <string.h>

#include "ctrl/manager/manager.h"
#include "ctrl/manager/store.h"
#include "lib/ctl/manager_schema.h"
#include "tests/fuzz/fuzz.h"

enum { PEERS = 4, SWITCHES = 3, MAX_LINES = 48, FIRST_EPOCH = 5000 };

#define JOIN(job, rank)                                                     \
	"{'jsonrpc':'2.0','id':1,'method':'job.join','params':{'job':'" job \
	"','ranks':2,'rank':" #rank ",'who':7" #rank ",'ip':'10.1." #rank ".0','mtu':1024}}\n"
#define SAYS(what, job, epoch, rank)                                            \
	"{'jsonrpc':'2.0','id':1,'method':'job." what "','params':{'job':'" job \
	"','epoch':" #epoch ",'rank':" #rank ",'who':7" #rank "}}\n"
#define HELLO                                                                                     \
	"{'id':'hello','result':{'boot':'1f','modes':['II','III'],'max_groups':64,'arena_bytes'"  \
	":1048576,'arena_used_bytes':0,'ports':[{'name':'p0','link':'up','lldp':[]},{'name':'p1'" \
	",'link':'up'},{'name':'p2','link':'up'}]}}\n"
#define DONE(epoch, kind) "{'id':'" #epoch ":" #kind "','result':{}}\n"
#define ALL_UP "U\nA" HELLO "B" HELLO "C" HELLO
#define PLACED                                                                                 \
	ALL_UP "0" JOIN("j", 0) "1" JOIN("j", 1) "A" DONE(5000, 0) "B" DONE(5000, 0) "C" DONE( \
		5000, 0)
#define WORKS PLACED "0" SAYS("ready", "j", 5000, 0) "1" SAYS("ready", "j", 5000, 1)

static const char *const seeds[] = {
	"0{'jsonrpc':'2.0','id':1,'method':'ping'}\n1{'jsonrpc':'2.0','id':1,'method':'version'}\n"
	"2{'jsonrpc':'2.0','id':1,'method':'manager.who'}\n"
	"3{'jsonrpc':'2.0','id':1,'method':'job.list'}\n"
	"0{'jsonrpc':'2.0','id':1,'method':'topology.get'}\n",
	WORKS "0" SAYS("heartbeat", "j", 5000, 0) "1" SAYS("leave", "j", 5000, 1) "0" SAYS(
		"leave", "j", 5000, 0) "A" DONE(5000, 3) "B" DONE(5000, 3) "C" DONE(5000,
		3) "T9\n"
		   "0{'jsonrpc':'2.0','id':1,'method':'job.explain','params':{'job':'j'}}\n",
	WORKS
	"G0\nT5\nT5\nT5\nT5\n1" SAYS("heartbeat", "j", 5000, 1) "A" DONE(5000, 2) "T9\nT9\nT9\n",
	WORKS "A{'method':'event','params':{'kind':'port_down','port':'p2'}}\nT1\n1" JOIN("j", 1),
	WORKS "B{'method':'event','params':{'kind':'group_failed','job':'j','epoch':5000,'reason':"
	      "'x'}}\nT1\n3" JOIN("j", 0),
	WORKS "D\nT9\nT9\nU\nA{'id':'epochs','result':{'jobs':[{'job':'j','epoch':5000,'groups':1},"
	      "{'job':'x','epoch':9,'groups':2}]}}\n",
	ALL_UP "1" SAYS("heartbeat", "old", 77, 0) "2" JOIN("hers", 0) "3" JOIN(
		"hers", 1) "T9\n"
			   "A{'id':'5000:0','error':{'code':-32000,'message':'no','data':{'errno':'"
			   "ENOENT'}}}\n",
	PLACED
	"Srun/4000 {'job':'k','owner':'','who':[1],'mtu':1024,'m':0,'hop_ns':2000,'loss_ppm'"
	":0,'reproducible':false,'half':true,'want_bps':0,'least_bps':0,'duty':1000,"
	"'promised':false,'low':false,'ring':false}\nSstate/4000 {'phase':5,'want':0,'why':1,"
	"'end':0,'culprit':{'number':0},'ready':'0','left':'0'}\nSborn 3\nSepoch 9000\n",
};

size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	return fuzz_seed_json(i < sizeof(seeds) / sizeof(*seeds) ? seeds[i] : NULL, out, cap);
}

/* ---- a manager of two leaves and a spine ---- */

struct world {
	struct manager *m;
	struct store store;
	struct manager_peer peer[PEERS];
	uint64_t now;
	bool written; /* by others, to the store */
};

static void send_nothing(void *arg, unsigned i, const char *line)
{
	(void)arg;
	fuzz_check(i < SWITCHES && line[0] == '{' && !strchr(line, '\n'), "a line to a switch");
}

static void drop(void *arg, unsigned i)
{
	(void)arg;
	fuzz_check(i < SWITCHES, "a switch");
}

static void say(void *arg, enum journal_level level, const char *line)
{
	(void)arg, (void)level;
	fuzz_check(line[0] != '\0', "a sentence");
}

static int create(struct world *w, struct manager **m)
{
	static const char config[] =
		"{'switches':[{'name':'leaf0','control':'/a','ip':'10.2.0.0'},{'name':'leaf1',"
		"'control':'/b','ip':'10.2.0.1'},{'name':'spine','control':'/c','ip':'10.2.0.2'}],"
		"'hosts':[{'name':'h0','ip':'10.1.0.0'},{'name':'h1','ip':'10.1.1.0'}],'links':["
		"{'a':'leaf0','a_port':'p0','b':'h0'},{'a':'leaf1','a_port':'p0','b':'h1'},"
		"{'a':'leaf0','a_port':'p2','b':'spine','b_port':'p0'},"
		"{'a':'leaf1','a_port':'p2','b':'spine','b_port':'p1'}]}";
	const struct manager_io io = {w, send_nothing, drop, say, .name = "here:7"};
	char text[sizeof(config)], err[MANAGER_ERR_LEN] = "";
	struct ctl_problem p;
	json_t *c;
	int rc;

	for (size_t i = 0; i < sizeof(config); i++)
		text[i] = config[i] == '\'' ? '"' : config[i];
	c = json_loads(text, 0, NULL);
	fuzz_check(c && !ctl_check_value(&ctl_manager_config, c, "", &p), "a configuration");
	rc = manager_create(c, &io, &w->store, FIRST_EPOCH, w->now, m, err);
	json_decref(c);
	fuzz_check(!rc || err[0], "a reason");
	return rc;
}

static void open_world(struct world *w)
{
	static const enum ctl_role role[PEERS] = {CTL_LOCAL, CTL_STRANGER, CTL_TENANT, CTL_TENANT};

	*w = (struct world){.now = 1000000000};
	for (unsigned i = 0; i < PEERS; i++) {
		w->peer[i].who.role = role[i];
		memcpy(w->peer[i].who.name, i == 3 ? "bob" : "ann", i > 1 ? 4 : 0);
	}
	fuzz_check(!store_memory_open(&w->store), "store_memory_open");
	fuzz_check(!create(w, &w->m), "manager_create");
}

/* ---- requests ---- */

/* The result fits what the schema says of it; what of a rank's own is left to others is "{}". */
static void check_result(const char *name, const json_t *result)
{
	const struct ctl_method *method = name ? ctl_find(&ctl_manager_schema, name) : NULL;
	struct ctl_problem problem;

	fuzz_check(method != NULL, "only known methods have results");
	fuzz_check(!ctl_check(method->result, result, "", &problem), "result fits the schema");
}

/* As an operator sees it; to be freed. */
static char *look(struct world *w)
{
	static const char *const names[] = {"job.list", "topology.get"};
	json_t *all = json_array();
	char *text;

	for (unsigned i = 0; i < 2; i++) {
		char line[80];
		const int len = snprintf(line, sizeof(line),
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\"}", names[i]);
		char *answer = manager_line(w->m, NULL, line, (size_t)len, w->now);
		json_t *a = json_loads(answer, 0, NULL);

		check_result(names[i], json_object_get(a, "result"));
		json_array_append(all, json_object_get(a, "result"));
		json_decref(a);
		free(answer);
	}
	text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
	json_decref(all);
	return text;
}

static void check_answer(const char *line, size_t len, const char *text, bool changed)
{
	json_t *answer = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *request;
	json_t *result = json_object_get(answer, "result"),
	       *error = json_object_get(answer, "error");
	json_error_t ignored;

	fuzz_check(!strchr(text, '\n'), "an answer is one line");
	fuzz_check(json_is_object(answer), "an answer is an object");
	fuzz_check(json_object_get(answer, "id") != NULL, "an answer has an id");
	fuzz_check(!result != !error, "an answer has a result or an error");
	fuzz_check(!error || !changed, "an error changes nothing");
	if (result) {
		request = ctl_load(line, len, &ignored);
		check_result(json_string_value(json_object_get(request, "method")), result);
		json_decref(request);
	}
	json_decref(answer);
}

static void ask(struct world *w, struct manager_peer *peer, const char *line, size_t len)
{
	char *before = look(w), *text = manager_line(w->m, peer, line, len, w->now),
	     *after = look(w);

	if (text)
		check_answer(line, len, text, strcmp(before, after) != 0);
	free(before);
	free(text);
	free(after);
}

/* ---- all else ---- */

/* "KEY VALUE" */
static void write_record(struct world *w, const char *line, size_t len)
{
	char *text = strndup(line, len), *value = strchr(text, ' ');

	if (value)
		*value++ = '\0';
	if (value && !w->store.put(w->store.arg, text, value) && !w->store.commit(w->store.arg))
		w->written = true;
	free(text);
}

static void all_switches(struct world *w, bool up)
{
	for (unsigned i = 0; i < SWITCHES; i++)
		if (up)
			manager_up(w->m, i, w->now);
		else
			manager_down(w->m, i, true, w->now);
}

static void handle(struct world *w, char what, const char *line, size_t len)
{
	const unsigned n = len ? (unsigned char)line[0] : 0;

	if (what >= '0' && what < '0' + PEERS)
		ask(w, &w->peer[what - '0'], line, len);
	else if (what >= 'A' && what < 'A' + SWITCHES)
		manager_heard(w->m, (unsigned)(what - 'A'), line, len, w->now);
	else if (what == 'T') /* tenths of a second */
		manager_tick(w->m, w->now += n % 10 * 100000000);
	else if (what == 'G')
		manager_gone(w->m, &w->peer[n % PEERS]);
	else if (what == 'U' || what == 'D')
		all_switches(w, what == 'U');
	else if (what == 'S')
		write_record(w, line, len);
	else
		ask(w, NULL, line, len);
}

/* Whoever comes next goes on with what is there, or says what of it makes no sense. */
static void succeed(struct world *w)
{
	struct manager *next = NULL;
	char *seen;
	int rc;

	for (unsigned i = 0; i < PEERS; i++)
		manager_gone(w->m, &w->peer[i]);
	manager_tick(w->m, w->now += 100000000);
	manager_destroy(w->m);
	rc = create(w, &next);
	fuzz_check(!rc || w->written, "a successor reads what was written");
	w->m = next;
	if (rc)
		return;
	seen = look(w);
	free(seen);
	manager_destroy(next);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;
	struct world w;

	json_object_seed(1);
	open_world(&w);
	for (unsigned lines = 0; at < end && lines < MAX_LINES; lines++) {
		const char *eol = memchr(at, '\n', (size_t)(end - at));

		if (!eol)
			eol = end;
		if (eol > at)
			handle(&w, at[0], at + 1, (size_t)(eol - at) - 1);
		at = eol < end ? eol + 1 : end;
	}
	succeed(&w);
	w.store.close(w.store.arg);
	return 0;
}
