/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes at all as lines of a control socket. What is answered must be JSON-RPC and fit the
 * schema; what is answered with an error must have changed nothing. */
#include <jansson.h>
#include <string.h>

#include "ctrl/agent/agent.h"
#include "lib/ctl/schema.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/ctl/fake_switch.h"

static const char *const seeds[] = {
	"{'jsonrpc':'2.0','id':1,'method':'status'}",
	"{'jsonrpc':'2.0','id':'x','method':'version','params':{}}",
	"{'jsonrpc':'2.0','id':null,'method':'schema.get'}",
	"{'jsonrpc':'2.0','method':'ping'}",
	"{'jsonrpc':'2.0','id':2,'method':'pipeline.get','params':{'table':'routes'}}",
	"{'jsonrpc':'2.0','id':3,'method':'stats.get','params':{'what':'nodes'}}",
	"{'jsonrpc':'2.0','id':4,'method':'drops.get','params':{'nonzero':true,'clear':true}}",
	"{'jsonrpc':'2.0','id':5,'method':'trace.start','params':{'port':'p0','count':9}}\n"
	"{'jsonrpc':'2.0','id':6,'method':'trace.read','params':{'from':1,'limit':3}}",
	"{'jsonrpc':'2.0','id':7,'method':'config.get','params':{'tables':true}}\n"
	"{'jsonrpc':'2.0','id':8,'method':'config.save'}",
	"{'jsonrpc':'2.0','id':9,'method':'table.write','params':{'updates':["
	"{'op':'insert','table':'routes','key':{'dst':'10.0.0.0/8'},'action':'via',"
	"'data':{'hop':'fd00::1'}},{'op':'modify','table':'routes','key':{'dst':'10.0.0.0/8'},"
	"'action':'blackhole'},{'op':'insert','table':'neighbours','key':{'ip':'10.0.0.1'},"
	"'action':'set','data':{'mac':'02:00:00:00:00:01','port':'p1','vlan':7}},"
	"{'op':'insert','table':'classes','priority':-7,'key':{'type':'0x0800&&&0xff00',"
	"'dport':'1..1023','tagged':false,'in':'p0'},'action':'mark','data':{'dscp':3,"
	"'cookie':'0xffffffffffffffff'}}]}}\n"
	"{'jsonrpc':'2.0','id':10,'method':'table.read','params':{'table':'classes','key':{"
	"'type':'0x0800&&&0xff00'},'limit':5,'offset':0}}\n"
	"{'jsonrpc':'2.0','id':11,'method':'table.write','params':{'updates':["
	"{'op':'delete','table':'routes','key':{'dst':'10.0.0.0/8'}}]}}\n"
	"{'jsonrpc':'2.0','id':12,'method':'table.list'}",
	"{'jsonrpc':'2.0','id':13,'method':'group.create','params':{'name':'g1','mode':'II',"
	"'kind':'single','primitive':'allreduce','mtu':256,'M':1,'W':2,'slots':4,'start_psn':9,"
	"'ranks':3,'flags':{'reproducible':true},'endpoints':["
	"{'ip':'10.0.0.1','qpn':1,'port':'p0','ranks':[0]},"
	"{'ip':'10.0.0.2','qpn':0,'port':'p1','mac':'02:00:00:00:00:05','vlan':5,'dscp':1,"
	"'ranks':[1],'local_ip':'10.0.0.9'},{'ip':'10.0.0.3','qpn':3,'port':'p1','parent':true}]}}"
	"\n"
	"{'jsonrpc':'2.0','id':14,'method':'group.activate','params':{'group':'g1','endpoints':["
	"{'index':1,'qpn':2}]}}\n"
	"{'jsonrpc':'2.0','id':15,'method':'group.show','params':{'group':1,'slots':true}}\n"
	"{'jsonrpc':'2.0','id':16,'method':'group.fail','params':{'group':'g1'}}\n"
	"{'jsonrpc':'2.0','id':17,'method':'group.list'}\n"
	"{'jsonrpc':'2.0','id':18,'method':'group.delete','params':{'group':1,'force':true}}",
};

size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	return fuzz_seed_json(i < sizeof(seeds) / sizeof(*seeds) ? seeds[i] : NULL, out, cap);
}

/* What an error must not change. */
struct state {
	uint32_t rows[4];
	uint8_t groups[INC_GROUP_SLOTS];
};

static void look(struct sw *sw, struct state *s)
{
	memset(s, 0, sizeof(*s));
	for (unsigned i = 0; i < 4; i++) {
		struct table_rows rows;

		table_rows(sw->tables, i, &rows);
		s->rows[i] = rows.n;
	}
	for (unsigned i = 0; i < INC_GROUP_SLOTS; i++)
		s->groups[i] = sw->group[i] ? 1 + sw->group[i]->state : 0;
}

static void check_result(const char *line, size_t len, const json_t *result)
{
	json_t *request = json_loadb(line, len, 0, NULL);
	const char *name = json_string_value(json_object_get(request, "method"));
	const struct ctl_method *method = name ? ctl_find(&ctl_switch_schema, name) : NULL;
	struct ctl_problem problem;

	fuzz_check(method != NULL, "only known methods have results");
	fuzz_check(!ctl_check(method->result, result, "", &problem), "result fits the schema");
	json_decref(request);
}

static void handle(struct sw *sw, struct agent *agent, const char *line, size_t len)
{
	struct state before, after;

	look(sw, &before);
	char *text = agent_handle_line(agent, NULL, line, len);
	if (!text)
		return;
	look(sw, &after);
	fuzz_check(!strchr(text, '\n'), "an answer is one line");
	json_t *answer = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	json_t *result = json_object_get(answer, "result");
	json_t *error = json_object_get(answer, "error");
	fuzz_check(json_is_object(answer), "an answer is an object");
	fuzz_check(json_object_get(answer, "id") != NULL, "an answer has an id");
	fuzz_check(!result != !error, "an answer has a result or an error");
	if (error)
		fuzz_check(!memcmp(&before, &after, sizeof(before)), "an error changes nothing");
	else
		check_result(line, len, result);
	json_decref(answer);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sw *sw = fake_switch_create();
	struct agent *agent;
	const char *at = (const char *)data, *end = at + size;

	json_object_seed(1);
	fuzz_check(!agent_create(sw, NULL, &agent), "agent_create");
	for (unsigned lines = 0; at < end && lines < 16; lines++) {
		const char *eol = memchr(at, '\n', (size_t)(end - at));

		if (!eol)
			eol = end;
		handle(sw, agent, at, (size_t)(eol - at));
		at = eol < end ? eol + 1 : end;
	}
	agent_destroy(agent);
	fake_switch_destroy(sw);
	return 0;
}
