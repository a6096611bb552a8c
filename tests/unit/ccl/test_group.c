/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ccl/group.h"
#include "tests/unit/ctl/fields_check.h"

#define STAR                                                                                 \
	"{'name':'g','bootstrap':'unix:/tmp/g.sock','mtu':1024,'M':2,'W':16,"                \
	"'timeout_ms':250,'#':'a comment','flags':{'reproducible':true},"                    \
	"'ranks':[{'ip':'10.77.0.10','#':'x'},{'ip':'10.77.0.11'}],"                         \
	"'switches':[{'name':'s0','socket':'/tmp/s0.sock','ip':'10.77.255.1','parent':null," \
	"'children':[{'rank':1,'port':'h1'},{'rank':0,'port':'h0'}]}]}"

/* Ranks 0, 2 below leaf a; 1, 3 below leaf b; the root lists b first. */
#define TREE                                                                                \
	"{'name':'t','bootstrap':'tcp:[::1]:7000',"                                         \
	"'ranks':[{'ip':'10.0.0.1'},{'ip':'10.0.0.2'},{'ip':'10.0.0.3'},{'ip':'fd00::4'}]," \
	"'switches':["                                                                      \
	"{'name':'r','socket':'/r','ip':'10.0.1.1','children':[{'switch':'b','port':'pb'}," \
	"{'switch':'a','port':'pa'}]},"                                                     \
	"{'name':'a','socket':'/a','ip':'10.0.1.2','parent':'r','parent_port':'up',"        \
	"'children':[{'rank':2,'port':'h2'},{'rank':0,'port':'h0'}]},"                      \
	"{'name':'b','socket':'/b','ip':'10.0.1.3','parent':'r','parent_port':'up',"        \
	"'children':[{'rank':3,'port':'h3'},{'rank':1,'port':'h1'}]}]}"

/* Single quotes for readability; swaps them, and replaces `from` with `to` if that is given. */
static json_t *document(const char *text, const char *from, const char *to)
{
	static char buf[8192];
	const char *at = from ? strstr(text, from) : NULL;
	json_t *doc;

	if (from) {
		assert_non_null(at);
		snprintf(buf, sizeof(buf), "%.*s%s%s", (int)(at - text), text, to,
			at + strlen(from));
	} else {
		snprintf(buf, sizeof(buf), "%s", text);
	}
	for (char *c = buf; *c; c++)
		if (*c == '\'')
			*c = '"';
	doc = json_loads(buf, 0, NULL);
	assert_non_null(doc);
	return doc;
}

static void star(void **state)
{
	json_t *doc = document(STAR, NULL, NULL);
	struct ccl_group *g;
	char err[CCL_ERR_LEN];

	(void)state;
	assert_int_equal(ccl_group_parse(doc, &g, err), 0);
	assert_string_equal(g->name, "g");
	assert_string_equal(g->mode, "II");
	assert_int_equal(g->mtu, 1024);
	assert_int_equal(g->m, 2);
	assert_int_equal(g->w, 16);
	assert_int_equal(g->timeout_ns, 250000000);
	assert_int_equal(g->gid_index, -1);
	assert_true(g->reproducible);
	assert_int_equal(json_object_size(g->flags), 1);
	assert_int_equal(g->n_ranks, 2);
	/* Children are in the order in which the switch adds. */
	assert_int_equal(g->sw[0].child[0].index, 0);
	assert_string_equal(g->sw[0].child[0].port, "h0");
	assert_int_equal(g->sw[0].child[1].index, 1);
	ccl_group_free(g);
	json_decref(doc);
}

static void tree(void **state)
{
	json_t *doc = document(TREE, NULL, NULL), *below;
	struct ccl_group *g;
	char err[CCL_ERR_LEN];

	(void)state;
	assert_int_equal(ccl_group_parse(doc, &g, err), 0);
	assert_int_equal(g->root, 0);
	assert_int_equal(g->mtu, 0);
	assert_int_equal(g->m, 4);
	assert_int_equal(g->w, 8);
	assert_false(g->reproducible);
	assert_string_equal(g->sw[g->sw[0].child[0].index].name, "a");
	assert_int_equal(g->sw[0].child[1].min_rank, 1);
	assert_int_equal(ccl_group_first_hop(g, 2), 1);
	assert_int_equal(ccl_group_first_hop(g, 3), 2);
	below = ccl_group_ranks_below(g, &g->sw[0].child[1]);
	assert_int_equal(json_array_size(below), 2);
	assert_int_equal(json_integer_value(json_array_get(below, 0)), 1);
	assert_int_equal(json_integer_value(json_array_get(below, 1)), 3);
	json_decref(below);
	ccl_group_free(g);
	json_decref(doc);
}

static void errors_name_the_field(void **state)
{
	static const struct {
		const char *text, *from, *to, *says;
	} t[] = {
		{STAR, "'name':'g'", "'nam':'g'", "nam: is not a known field, \"name\" is"},
		{STAR, "'name':'g',", "", "name: is missing"},
		{STAR, "'name':'g'", "'name':7", "name: must be string, not an integer"},
		{STAR, "'name':'g'", "'name':'0123456789012345678901234567890x'",
			"name: must have 1..31 bytes, has 32"},
		{STAR, "'name':'g'", "'name':'a b'", "name: \"a b\""},
		{STAR, "'mtu':1024", "'mtu':1500", "mtu: 1500 is not"},
		{STAR, "'mtu':1024", "'mtu':128", "mtu: 128 is not in 256..4096"},
		{STAR, "'M':2", "'M':'2'", "M: must be integer 1..1024, not a string"},
		{STAR, "'M':2,'W':16", "'M':1,'W':1", "W: M*W is 1"},
		{STAR, "'M':2,'W':16", "'M':1024,'W':64", "W: M*W is 65536"},
		{STAR, "unix:/tmp", "udp:/tmp", "bootstrap: \"udp:"},
		{STAR, "'reproducible'", "'reproducable'",
			"flags.reproducable: is not a known field, \"reproducible\" is"},
		{STAR, "true", "1", "flags.reproducible: must be boolean, not an integer"},
		{STAR, "'reproducible'", "'sr'", "flags.sr: is for \"collectives\""},
		{STAR, "'reproducible':true}", "'sr':true},'mode':'I'",
			"flags.sr: is for modes II and III, not I"},
		{STAR, "'reproducible':true}", "'sr':true},'mode':'III','kind':'mixed'",
			"flags.sr: is for single groups"},
		{STAR, "'M':2", "'mode':'IV','M':2", "mode: \"IV\" must be I or II or III or"},
		{STAR, "'M':2", "'kind':'both','M':2", "kind: \"both\" must be auto or single or"},
		{STAR, "'M':2", "'verb':'read','M':2", "verb: \"read\" must be send or write"},
		{STAR, "'M':2", "'verb':'write','mode':'I','M':2", "verb: write is for modes II"},
		{STAR, "'M':2", "'collectives':['allreduce','x'],'M':2",
			"collectives: item 1 is not"},
		{STAR, "'M':2", "'gid_index':256,'M':2", "gid_index: 256 is not in 0..255"},
		{STAR, "'M':2", "'resume':true,'M':2", "resume: a reproducible group cannot"},
		{STAR, "'reproducible':true}", "'half':true},'resume':true,'fallback':false",
			"resume: needs \"fallback\""},
		{STAR, "'reproducible':true}", "'half':true},'resume':true,'mode':'netreduce'",
			"resume: is for modes I, II and III, not netreduce"},
		{STAR, "'reproducible':true}", "'half':true},'resume':true,'lease':'p'",
			"resume: a group with a \"lease\" cannot"},
		{STAR, "'reproducible':true}",
			"'half':true},'resume':true,'multicast':{'group':'239.1.1.1'}",
			"resume: not with \"multicast\""},
		{STAR, "'reproducible':true}", "'half':true},'resume':true,'algorithm':'inc'",
			"resume: is not for algorithm inc"},
		{STAR, "'M':2", "'lease_ms':10,'M':2", "lease_ms: is for groups with"},
		{STAR, "'M':2", "'duty':300,'M':2", "duty: is for a manager, and there is none"},
		{STAR, "'M':2", "'rings':2,'M':2", "rings: 2 are for mode netreduce"},
		{STAR, "'M':2", "'rings':2,'mode':'netreduce','M':2",
			"rings: 2 must divide the number of ranks, into two nodes or more"},
		{TREE, "'bootstrap'", "'rings':3,'mode':'netreduce','bootstrap'",
			"rings: 3 must divide"},
		{TREE, "'bootstrap'",
			"'rings':2,'mode':'netreduce','collectives':['reduce'],'bootstrap'",
			"rings: 2 are for \"collectives\" allreduce and barrier"},
		{TREE, "'name':'t'",
			"'rings':2,'mode':'netreduce','name':'a123456789012345678901234567'",
			"name must have at most 27 bytes"},
		{TREE, "'bootstrap'", "'rings':65,'bootstrap'", "rings: 65 is not in 1..64"},
		{STAR, "'M':2", "'algorithm':'best','M':2", "algorithm: "},
		{STAR, "'M':2", "'algorithm':'multicast','M':2", "multicast.group: is missing"},
		{STAR, "'M':2", "'multicast':{'group':'10.0.0.1'},'M':2",
			"multicast.group: \"10.0.0.1\" is not a multicast address"},
		{STAR, "'M':2", "'multicast':{'group':'ff0e::1'},'M':2",
			"multicast.group: is of another family"},
		{STAR, "'M':2", "'multicast':{'group':'239.1.1.1','chains':3},'M':2",
			"multicast.chains: does not divide"},
		{STAR, "'M':2", "'multicast':{'group':'239.1.1.1','trees':9},'M':2",
			"multicast.trees: 9 is not in 1..8"},
		{STAR, "'M':2", "'multicast':{'group':'239.255.255.255','trees':2},'M':2",
			"multicast.trees: go beyond the multicast addresses"},
		{STAR, "'ranks':[{'ip':'10.77.0.10'",
			"'multicast':{'group':'ff0e::ffff:ffff','trees':2},'ranks':[{'ip':'fd::1'",
			"multicast.trees: go beyond the multicast addresses"},
		{STAR, "'M':2", "'multicast':{'group':'239.1.1.1','transport':'rc'},'M':2",
			"multicast.transport: "},
		{STAR, "'M':2", "'multicast':{'chains':1},'M':2", "multicast.group: "},
		{STAR, "'M':2", "'algorithm':'tree','collectives':['broadcast','reduce'],'M':2",
			"collectives: algorithm tree does no reduce"},
		{STAR, "'M':2", "'algorithm':'inc','mode':'ring','M':2", "algorithm: inc, but"},
		{STAR, "'M':2", "'algorithm':'ring','mode':'netreduce','M':2",
			"algorithm: mode netreduce"},
		{STAR,
			"'M':2,'W':16,'timeout_ms':250,'#':'a "
			"comment','flags':{'reproducible':true}",
			"'M':2,'lease':'p','algorithm':'ring'", "lease: is for algorithm auto"},
		{STAR,
			"'M':2,'W':16,'timeout_ms':250,'#':'a "
			"comment','flags':{'reproducible':true}",
			"'M':2,'lease':'p','multicast':{'group':'239.1.1.1'}",
			"multicast: is not for groups with a lease"},
		{STAR, "'M':2", "'tree_radix':1,'M':2", "tree_radix: "},
		{STAR, "'M':2", "'lease':'a b','M':2", "lease: \"a b\" is not made of"},
		{STAR, "'timeout_ms':250", "'timeout_ms':0", "timeout_ms: 0 is not in 1..3600000"},
		{STAR, "'10.77.0.11'", "'10.77.0'", "ranks[1].ip: \"10.77.0\" is not"},
		{STAR, "'ip':'10.77.0.11'", "'IP':'10.77.0.11'",
			"ranks[1].IP: is not a known field"},
		{STAR, "'rank':1", "'rank':2", "switches[0].children[0].rank: 2 is not in 0..1"},
		{STAR, "'rank':1", "'rank':0", "rank 0 is the child of \"s0\" a second time"},
		{STAR, "{'rank':1,'port':'h1'},", "", "rank 1 is nobody's child"},
		{STAR, ",'port':'h1'", "", "switches[0].children[0].port: is missing"},
		{STAR, "'rank':1,", "'rank':1,'switch':'s0',", "give either"},
		{STAR, "'parent':null", "'parent':'s0'", "switches[0].parent: \"s0\" is not"},
		{STAR, "'parent':null", "'parent_port':'u'", "switches[0].parent_port: the switch"},
		{STAR, "'socket':'/tmp/s0.sock',", "", "switches[0].socket: is missing"},
		{TREE, "'parent':'r','parent_port':'up',", "",
			"both \"r\" and \"a\" have no parent"},
		{TREE, "'parent_port':'up',", "", "switches[1].parent_port: missing"},
		{TREE, "'ip':'10.0.1.1',", "'ip':'10.0.1.1','parent':'a','parent_port':'x',",
			"every switch has a parent"},
		{TREE, "'name':'b'", "'name':'a'", "switches[2].name: \"a\" is used twice"},
		{TREE, "'switch':'b'", "'switch':'a'", "a second time"},
		{TREE, "{'switch':'b','port':'pb'},", "", "\"b\" is not among the children"},
		{TREE, "'switch':'b'", "'switch':'r'", "does not name this switch as its parent"},
	};
	struct ccl_group *g;
	char err[CCL_ERR_LEN];

	(void)state;
	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		json_t *doc = document(t[i].text, t[i].from, t[i].to);

		assert_int_equal(ccl_group_parse(doc, &g, err), -EINVAL);
		if (!strstr(err, t[i].says))
			fail_msg("case %zu: \"%s\" lacks \"%s\"", i, err, t[i].says);
		json_decref(doc);
	}
}

static struct ccl_group *ring_of(const struct ccl_group *g, unsigned i, const char *name)
{
	struct ccl_group *ring;

	assert_int_equal(ccl_group_ring(g, i, &ring), 0);
	assert_string_equal(ring->name, name);
	assert_int_equal(ring->n_ranks, g->n_ranks / g->rings);
	assert_int_equal(ring->of.first, i);
	assert_int_equal(ring->of.step, g->rings);
	for (unsigned r = 0; r < ring->n_ranks; r++)
		assert_memory_equal(
			&ring->rank_ip[r], &g->rank_ip[i + r * g->rings], sizeof(struct wire_ip));
	return ring;
}

/* Nodes of ranks 0, 1 and 2, 3. Rank 0 and 2 have a switch in common, which is all their ring
 * needs; so have 1 and 3. */
static void rings_below_leaves(void **state)
{
	json_t *doc = document(TREE, "'bootstrap'", "'rings':2,'mode':'netreduce','bootstrap'");
	struct ccl_group *g, *ring;
	char err[CCL_ERR_LEN];

	(void)state;
	assert_int_equal(ccl_group_parse(doc, &g, err), 0);
	for (unsigned i = 0; i < 2; i++) {
		ring = ring_of(g, i, i ? "t.r1" : "t.r0");
		assert_int_equal(ring->n_switches, 1);
		assert_string_equal(ring->sw[0].name, i ? "b" : "a");
		assert_int_equal(ring->sw[0].parent, -1);
		assert_int_equal(ring->sw[0].n_children, 2);
		for (unsigned c = 0; c < 2; c++) {
			assert_true(ring->sw[0].child[c].host);
			assert_int_equal(ring->sw[0].child[c].index, c);
		}
		assert_string_equal(ring->sw[0].child[1].port, i ? "h3" : "h2");
		ccl_group_free(ring);
	}
	ccl_group_free(g);
	json_decref(doc);
}

/* Each node below a switch of its own, that of ranks 2 and 3 first in the file: only the root is
 * where a ring's ranks meet, behind its ports to the leaves, in the order of the ranks. */
static void rings_across_leaves(void **state)
{
	json_t *doc = document(TREE, "'bootstrap'", "'rings':2,'mode':'netreduce','bootstrap'");
	json_t *leaf[2], *swap;
	struct ccl_group *g, *ring;
	char err[CCL_ERR_LEN];

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		leaf[i] = json_array_get(json_object_get(doc, "switches"), 1 + i);
	/* a: 2, 0; b: 3, 1. Now a: 2, 3; b: 0, 1. */
	swap = json_incref(json_array_get(json_object_get(leaf[0], "children"), 1));
	json_array_set(json_object_get(leaf[0], "children"), 1,
		json_array_get(json_object_get(leaf[1], "children"), 0));
	json_array_set_new(json_object_get(leaf[1], "children"), 0, swap);
	assert_int_equal(ccl_group_parse(doc, &g, err), 0);
	for (unsigned i = 0; i < 2; i++) {
		ring = ring_of(g, i, i ? "t.r1" : "t.r0");
		assert_int_equal(ring->n_switches, 1);
		assert_string_equal(ring->sw[ring->root].name, "r");
		assert_int_equal(ring->sw[0].n_children, 2);
		assert_int_equal(ring->sw[0].child[0].index, 0);
		assert_string_equal(ring->sw[0].child[0].port, "pb");
		assert_int_equal(ring->sw[0].child[1].index, 1);
		assert_string_equal(ring->sw[0].child[1].port, "pa");
		ccl_group_free(ring);
	}
	ccl_group_free(g);
	json_decref(doc);
}

/* What a program chooses over the file is checked as the file is, and refused without a change. */
static void algorithms(void **state)
{
	json_t *doc = document(STAR, "'M':2", "'collectives':['allgather'],'M':2");
	char err[CCL_ERR_LEN], how[CCL_HOW_LEN], other[CCL_HOW_LEN];
	struct ccl_group *g;

	(void)state;
	assert_int_equal(ccl_group_parse(doc, &g, err), 0);
	assert_int_equal(g->algorithm, CCL_BY_AUTO);
	assert_int_equal(ccl_group_set_algorithm(g, CCL_BY_MULTICAST, err), -EINVAL);
	assert_string_equal(err, "multicast.group: is missing, algorithm multicast needs it");
	assert_int_equal(ccl_group_set_algorithm(g, CCL_BY_TREE, err), -EINVAL);
	assert_string_equal(err, "collectives: algorithm tree does no allgather");
	assert_int_equal(g->algorithm, CCL_BY_AUTO);
	ccl_group_how(g, how);
	assert_int_equal(ccl_group_set_algorithm(g, CCL_BY_RING, err), 0);
	assert_string_not_equal(how, ccl_group_how(g, other));
	ccl_group_apply_algorithm(g);
	assert_int_equal(g->mode_id, CCL_MODE_RING);
	ccl_group_free(g);
	json_decref(doc);
	for (int i = 0; i < CCL_N_ALGORITHMS; i++)
		assert_int_equal(ccl_algorithm_parse(ccl_algorithm_name((enum ccl_algorithm)i)), i);
	assert_int_equal(ccl_algorithm_parse("best"), -EINVAL);
	assert_int_equal(ccl_algorithm_does(CCL_N_ALGORITHMS), 0);
}

/* Every rank but the root has one parent, which has it among its children, and is reached once. */
static void trees(void **state)
{
	(void)state;
	for (unsigned radix = 1; radix <= CCL_TREE_MAX_RADIX; radix++)
		for (unsigned n = 1; n <= 300; n++) {
			const struct ccl_tree_shape s = {.binary = radix == 1, .radix = radix};
			unsigned children = 0;

			for (unsigned v = 0; v < n; v++) {
				unsigned child[CCL_TREE_MAX_CHILDREN];
				const unsigned k = ccl_tree_children(&s, n, v, child);

				children += k;
				for (unsigned i = 0; i < k; i++) {
					assert_in_range(child[i], v + 1, n - 1);
					assert_int_equal(ccl_tree_parent(&s, child[i]), v);
				}
			}
			assert_int_equal(children, n - 1);
		}
}

/* A chain of five switches: one too deep. Without the last one it passes. */
static void depth(void **state)
{
	for (int n = 4; n <= 5; n++) {
		json_t *list = json_array();
		struct ccl_group *g;
		char err[CCL_ERR_LEN];
		json_t *doc;

		for (int i = 0; i < n; i++) {
			char name[8], up[8], down[8];
			json_t *sw;

			snprintf(name, sizeof(name), "s%d", i);
			snprintf(up, sizeof(up), "s%d", i - 1);
			snprintf(down, sizeof(down), "s%d", i + 1);
			sw = json_pack(
				"{s:s,s:s,s:s}", "name", name, "socket", "/x", "ip", "10.0.0.9");
			if (i)
				json_object_update_new(sw,
					json_pack("{s:s,s:s}", "parent", up, "parent_port", "up"));
			json_object_set_new(sw, "children",
				i < n - 1 ? json_pack("[{s:s,s:s}]", "switch", down, "port", "d")
					  : json_pack("[{s:i,s:s}]", "rank", 0, "port", "h"));
			json_array_append_new(list, sw);
		}
		doc = json_pack("{s:s,s:s,s:[{s:s}],s:o}", "name", "d", "bootstrap", "unix:/x",
			"ranks", "ip", "10.0.0.1", "switches", list);
		assert_int_equal(ccl_group_parse(doc, &g, err), n == 4 ? 0 : -EINVAL);
		if (n == 4)
			ccl_group_free(g);
		else
			assert_non_null(strstr(err, "more than 4 levels"));
		json_decref(doc);
	}
	(void)state;
}

/* Memory by turns asks of a group what a lease does. */
static void duties(void **state)
{
	static const char *const cases[][2] = {{"'duty':300", ""},
		{"'duty':9,'mode':'I'", "duty: below 1000 is for"}, {"'duty':0", "duty: 0 is not"},
		{"'duty':9,'fallback':false", "duty: below 1000 needs \"fallback\""},
		{"'duty':9,'flags':{'reproducible':true}", "duty: a reproducible group"},
		{"'duty':9,'resume':true", "duty: below 1000 is not for resume"}};
	char err[CCL_ERR_LEN];
	struct ccl_group *g;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		json_t *doc = document("{'name':'m','bootstrap':'unix:/b','manager':'/m',X,"
				       "'ranks':[{'ip':'fd00::1'}]}",
			"X", cases[i][0]);

		ccl_group_parse(doc, &g, err) ? (void)0 : ccl_group_free(g);
		assert_true(!err[0] == !i && strstr(err, cases[i][1]));
		json_decref(doc);
	}
}

/* Without switches: for a manager, whose plan is a tree as the file would have it. */
static void managed(void **state)
{
	static const char text[] = "{'name':'m','bootstrap':'unix:/b','manager':'/m','flags':{"
				   "'reproducible':true},'ranks':[{'ip':'10.0.0.1'},"
				   "{'ip':'10.0.0.2'},{'ip':'10.0.0.3'},{'ip':'fd00::4'}]}";
	json_t *doc = document(TREE, NULL, NULL), *plan = json_object_get(doc, "switches"), *file;
	struct ccl_group *g, own;
	char err[CCL_ERR_LEN];

	(void)state;
	unsetenv("INCLINE_MANAGER");
	file = document(text, NULL, NULL);
	assert_int_equal(ccl_group_parse(file, &g, err), 0);
	assert_string_equal(g->manager, "/m");
	assert_int_equal(g->n_switches, 0);
	assert_false(g->mode_given || g->m_given);
	own = *g;
	assert_int_equal(ccl_group_take_plan(&own, "III", 4, 7, plan, err), 0);
	assert_int_equal(own.mode_id, CCL_MODE_3);
	assert_int_equal(own.w, 7);
	assert_int_equal(ccl_group_first_hop(&own, 3), 2);
	ccl_group_drop_tree(&own);
	assert_int_equal(ccl_group_take_plan(&own, "IV", 4, 7, plan, err), -EINVAL);
	assert_string_equal(err, "mode: \"IV\" is none");
	/* A plan that lacks a rank: refused, nothing is kept. */
	json_array_remove(plan, 2);
	assert_int_equal(ccl_group_take_plan(&own, "II", 4, 7, plan, err), -EINVAL);
	assert_int_equal(own.n_switches, 0);
	assert_int_equal(g->n_switches, 0);
	ccl_group_free(g);
	json_decref(file);
	json_decref(doc);
	/* The environment says who, or nobody does; switches that are named need nobody. */
	file = document(text, "'manager':'/m',", "");
	assert_int_equal(ccl_group_parse(file, &g, err), -EINVAL);
	assert_non_null(strstr(err, "switches: is missing, and no manager"));
	setenv("INCLINE_MANAGER", "tcp:10.9.9.9:1", 1);
	assert_int_equal(ccl_group_parse(file, &g, err), 0);
	assert_string_equal(g->manager, "tcp:10.9.9.9:1");
	ccl_group_free(g);
	json_decref(file);
	file = document(STAR, NULL, NULL);
	assert_int_equal(ccl_group_parse(file, &g, err), 0);
	assert_string_equal(g->manager, "");
	ccl_group_free(g);
	json_decref(file);
	file = document(text, "'manager':'/m'", "'mode':'netreduce'");
	assert_int_equal(ccl_group_parse(file, &g, err), -EINVAL);
	assert_non_null(strstr(err, "mode: netreduce has no tree for a manager"));
	json_decref(file);
	/* Which mode selective queue pairs need is the manager's to choose, unless the file does.
	 */
	for (unsigned i = 0; i < 2; i++) {
		file = document(
			text, "'reproducible':true}", i ? "'sr':true},'mode':'II'" : "'sr':true}");
		assert_int_equal(ccl_group_parse(file, &g, err), i ? -EINVAL : 0);
		json_decref(file);
		if (i)
			assert_non_null(strstr(err, "flags.sr: is for \"collectives\""));
		else
			ccl_group_free(g);
	}
	unsetenv("INCLINE_MANAGER");
}

/* Up to eight, of which one leads. */
static void managers(void **state)
{
	char long_one[] = "/1,/"
			  "0123456789012345678901234567890123456789012345678901234567890123456789"
			  "012345678901234567890123456789012345678901234";
	const struct {
		const char *list, *said;
	} cases[] = {
		{"/1,/2,/3,/4,/5,/6,/7,tcp:h:8", NULL},
		{"/1,/2,/3,/4,/5,/6,/7,/8,/9", "manager: must be at most 8 addresses"},
		{"/1,,/3", "manager: address 1 is empty"},
		{"/1,", "manager: address 1 is empty"},
		{",/1", "manager: address 0 is empty"},
		{long_one, "manager: address 1 must have at most 115 bytes"},
	};
	json_t *doc = document("{'name':'m','bootstrap':'unix:/b','ranks':[{'ip':'10.0.0.1'},"
			       "{'ip':'10.0.0.2'}]}",
		NULL, NULL);
	struct ccl_group *g;
	char err[CCL_ERR_LEN];

	(void)state;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_object_set_new(doc, "manager", json_string(cases[i].list));
		if (!cases[i].said) {
			assert_int_equal(ccl_group_parse(doc, &g, err), 0);
			assert_string_equal(g->manager, cases[i].list);
			ccl_group_free(g);
			continue;
		}
		assert_int_equal(ccl_group_parse(doc, &g, err), -EINVAL);
		if (!strstr(err, cases[i].said))
			fail_msg("%s: %s", cases[i].list, err);
	}
	json_decref(doc);
}

static void file(void **state)
{
	char path[] = "/tmp/ccl-group-XXXXXX";
	const int fd = mkstemp(path);
	struct ccl_group *g;
	char err[CCL_ERR_LEN];

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "{\n \"name\": \n}", 13), 13);
	assert_int_equal(ccl_group_load(path, &g, err), -EINVAL);
	assert_non_null(strstr(err, path));
	assert_non_null(strstr(err, ":3:"));
	/* A field that is there twice: which one would hold? */
	assert_int_equal(pwrite(fd, "{\"M\":1,\"M\":2}  ", 15, 0), 15);
	assert_int_equal(ccl_group_load(path, &g, err), -EINVAL);
	assert_non_null(strstr(err, "duplicate"));
	close(fd);
	unlink(path);
	assert_int_equal(ccl_group_load(path, &g, err), -ENOENT);
	assert_non_null(strstr(err, "No such file"));
}

/* The page is made of the table that the file is checked with. */
static void fields(void **state)
{
	(void)state;
	fields_are_sound(ccl_group_file.fields);
	page_is_made_of("group-file.md",
		"<!-- generated: incline-perf --help-config=markdown -->\n", &ccl_group_file);
}

#define THREE                                                                             \
	"{\"name\": \"a\", \"bootstrap\": \"unix:/b\", \"manager\": \"/m\", \"ranks\": [" \
	"{\"ip\": \"10.0.0.1\"}, {\"ip\": \"10.0.0.2\"}, {\"ip\": \"10.0.0.3\"}]}"

static void text(void **state)
{
	struct ccl_group *g;
	char err[CCL_ERR_LEN];

	(void)state;
	assert_int_equal(ccl_group_load_text("{\n \"name\": }", &g, err), -EINVAL);
	assert_non_null(strstr(err, "2:"));
	assert_int_equal(ccl_group_load_text("{\"name\": \"a\"}", &g, err), -EINVAL);
	assert_non_null(strstr(err, "bootstrap: is missing"));
	assert_int_equal(ccl_group_load_text(THREE, &g, err), 0);
	assert_int_equal(ccl_group_size(g), 3);
	ccl_group_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(star),
		cmocka_unit_test(tree),
		cmocka_unit_test(rings_below_leaves),
		cmocka_unit_test(rings_across_leaves),
		cmocka_unit_test(errors_name_the_field),
		cmocka_unit_test(algorithms),
		cmocka_unit_test(trees),
		cmocka_unit_test(depth),
		cmocka_unit_test(managed),
		cmocka_unit_test(duties),
		cmocka_unit_test(managers),
		cmocka_unit_test(file),
		cmocka_unit_test(fields),
		cmocka_unit_test(text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
