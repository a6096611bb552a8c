/* SPDX-License-Identifier: BSD-3-Clause */
/* The groups of a communicator on the switches: the tree becomes a group file, as an operator would
 * write it, and CommLib's own code makes the groups over control connections. */
#include <errno.h>
#include <stdlib.h>

#include "lib/sim/coll_priv.h"

static json_t *ip_text(const struct wire_ip *ip)
{
	char text[WIRE_IP_STRLEN];

	return json_string(wire_ip_format(ip, text, sizeof(text)));
}

static json_t *port_text(const struct sim *sim, unsigned sw, unsigned node)
{
	return json_sprintf("p%d", sim_port_to_node(sim, sw, node));
}

static json_t *children(const struct sim_tree *t, unsigned sw)
{
	const struct sim *sim = t->coll->conf.sim;
	const struct sim_branch *b = &t->branch[sw];
	json_t *list = json_array();

	for (unsigned i = 0; i < b->n_child; i++) {
		const struct sim_child *c = &b->child[i];
		const unsigned node =
			c->host ? sim_coll_host(t->coll, c->index) : sim->topo->n_hosts + c->index;
		json_t *child = json_pack("{s:o}", "port", port_text(sim, sw, node));

		if (c->host)
			json_object_set_new(child, "rank", json_integer(c->index));
		else
			json_object_set_new(
				child, "switch", json_string(sim->topo->sw[c->index].name));
		json_array_append_new(list, child);
	}
	return list;
}

static json_t *switches(const struct sim_tree *t)
{
	const struct sim *sim = t->coll->conf.sim;
	json_t *list = json_array();

	for (unsigned i = 0; i < t->n; i++) {
		const unsigned up = t->branch[i].parent;
		json_t *sw;

		if (!t->branch[i].used)
			continue;
		sw = json_pack("{s:s, s:o, s:o, s:o}", "name", sim->topo->sw[i].name, "socket",
			json_sprintf("sim:%u", i), "ip", ip_text(&sim->topo->sw[i].ip), "children",
			children(t, i));
		if (i != t->root)
			json_object_update_new(sw,
				json_pack("{s:s, s:o}", "parent", sim->topo->sw[up].name,
					"parent_port", port_text(sim, i, sim->topo->n_hosts + up)));
		json_array_append_new(list, sw);
	}
	return list;
}

static json_t *flags(const struct sim_coll_conf *conf)
{
	json_t *out = json_pack("{s:b, s:b, s:b, s:b, s:b, s:b}", "reproducible",
		conf->flags & INC_F_REPRODUCIBLE, "dup_all", conf->flags & INC_F_DUP_ALL,
		"late_flush", conf->flags & INC_F_LATE_FLUSH, "stall_rnr",
		conf->flags & INC_F_STALL_RNR, "strict_port", conf->flags & INC_F_STRICT_PORT,
		"half", conf->flags & INC_F_HALF);

	if (conf->flags & INC_F_SR)
		json_object_set_new(out, "sr", json_true());
	return out;
}

/* NULL: all. */
static json_t *collectives(const struct sim_coll_conf *conf)
{
	json_t *list = conf->collectives ? json_array() : NULL;

	for (unsigned i = 0; 1u << i <= conf->collectives; i++)
		if (conf->collectives >> i & 1)
			json_array_append_new(
				list, json_string(ccl_collective_name((enum ccl_collective)i)));
	return list;
}

static json_t *document(const struct sim_tree *t, unsigned number)
{
	static const char *const modes[] = {"", "I", "II", "III", "netreduce", "ring"};
	const struct sim_coll_conf *conf = &t->coll->conf;
	const uint64_t timeout = sim_control_timeout(conf->sim);
	json_t *ranks = json_array();

	for (unsigned r = 0; r < conf->n_ranks; r++)
		json_array_append_new(ranks,
			json_pack("{s:o}", "ip",
				ip_text(&conf->sim->topo->host[sim_coll_host(t->coll, r)].ip)));
	return json_pack("{s:o, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:I, s:o, s:o, s:o, s:o*, s:i}",
		"name", json_sprintf("g%u", number), "bootstrap", "unix:/none", "mode",
		modes[conf->mode], "kind", ccl_kind_name(conf->kind), "verb",
		conf->flags & INC_F_WRITE ? "write" : "send", "mtu", conf->mtu, "M", conf->m, "W",
		conf->w, "timeout_ms", (json_int_t)(timeout ? timeout / 1000000 : 10000), "flags",
		flags(conf), "ranks", ranks, "switches", switches(t), "collectives",
		collectives(conf), "rings", conf->rings ? (int)conf->rings : 1);
}

int sim_coll_describe(struct sim_coll *c, char *err)
{
	struct sim_tree t;
	json_t *doc;
	int rc = sim_tree_make(c, &t, err);

	if (rc == 0) {
		doc = document(&t, c->conf.sim->n_colls++);
		rc = doc ? ccl_group_parse(doc, &c->group, err) : -ENOMEM;
		json_decref(doc);
	}
	if (rc == 0) {
		c->group->io = sim_control_io(c->conf.sim);
		c->group->slots = c->conf.slots;
		snprintf(c->group->owner, sizeof(c->group->owner), "simulated-job-%.10s",
			c->group->name);
	}
	sim_tree_free(&t);
	return rc;
}

/* Each group has first PSNs of its own. */
static uint32_t start_psn(const struct sim_coll *c, unsigned g)
{
	return (c->conf.start_psn + g * 0x10001) & PSN_MASK;
}

int sim_coll_install(struct sim_coll *c, char *err)
{
	struct ccl_member member;
	int rc = ccl_install_init(&c->install, c->group, c->conf.kind, c->conf.collectives, err);

	c->install.mtu = c->conf.mtu;
	for (unsigned g = 0; rc == 0 && g < c->install.n; g++) {
		c->install.sub[g].start_psn = start_psn(c, g);
		for (unsigned r = 0; rc == 0 && r < c->conf.n_ranks; r++) {
			rc = ccl_member(c->rank[r].comm, g, &member);
			c->install.sub[g].rank_qpn[r] = member.qpn;
			c->install.sub[g].rank_mr[r] =
				(struct ccl_mr){member.mr_addr, member.mr_len, member.rkey};
		}
	}
	return rc ? rc : ccl_install(&c->install, err);
}

int sim_coll_install_rings(struct sim_coll *c, const struct ccl_ring_address *at, char *err)
{
	const int rc = ccl_rings_plan(c->group, &c->rings, err);

	return rc ? rc : ccl_rings_install(c->rings, at, c->conf.mtu, err);
}

unsigned sim_coll_remotes(struct sim_coll *c, unsigned rank, struct ccl_remote *remote)
{
	for (unsigned g = 0; g < c->install.n; g++)
		remote[g] = (struct ccl_remote){
			ccl_installed_qpn(&c->install, g, rank), start_psn(c, g)};
	return c->install.n;
}

int sim_coll_remove(struct sim_coll *c, char *err)
{
	int rc = 0;

	if (c->install.group)
		rc = ccl_uninstall(&c->install, true, err);
	if (rc == 0)
		rc = ccl_rings_uninstall(c->rings, err);
	ccl_install_fini(&c->install);
	ccl_rings_free(c->rings);
	ccl_group_free(c->group);
	c->rings = NULL;
	c->group = NULL;
	return rc;
}
