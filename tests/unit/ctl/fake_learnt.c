/* SPDX-License-Identifier: BSD-3-Clause */
/* Of the switch that has no packets: what its pipeline is, and what it has learnt. */
#include <errno.h>
#include <stdio.h>

#include "tests/unit/ctl/fake_switch.h"

/* ---- pipeline ---- */

bool parse_state(unsigned i, struct parse_state *state)
{
	static const struct parse_state states[] = {{"udp", "looked into", NULL, "forward"},
		{"roce", "of a collective", "engine", "forward"}};

	if (i < 2)
		*state = states[i];
	return i < 2;
}

int sw_stage_get(struct sw *sw, unsigned i, struct sw_stage *stage)
{
	static const struct sw_stage stages[] = {{"parse", 2, {"engine", "forward"}, 9},
		{"engine", 0, {0}, 5}, {"forward", 0, {0}, 4}};

	(void)sw;
	if (i > 2)
		return -ENOENT;
	*stage = stages[i];
	return 0;
}

int sw_view_get(const struct sw *sw, unsigned i, struct sw_view *view)
{
	static const struct table_desc members = {.name = "members",
		.help = "of groups",
		.node = "engine",
		.miss = "end",
		.size = 64,
		.n_keys = 1,
		.keys = {{.name = "qpn", .help = "number", .max = 0xffffff}}};

	(void)sw;
	*view = (struct sw_view){&members, 3, 5};
	return i ? -ENOENT : 0;
}

/* ---- what is learnt ---- */

unsigned sw_neighs(const struct sw *sw, struct neigh_counters *count)
{
	(void)sw;
	*count = (struct neigh_counters){9, 8, 7, 6, 5, 4, 3, 2, 1};
	return 2;
}

int sw_neigh_get(const struct sw *sw, unsigned *at, struct sw_neigh_info *info)
{
	(void)sw;
	if (*at >= 2)
		return -ENOENT;
	*info = (struct sw_neigh_info){.ip = wire_ip_from4(0x0a000007),
		.port = "p1",
		.mac = {2, 0, 0, 0, 0, 7},
		.vlan = 5,
		.known = *at == 0,
		.state = *at == 0 ? "reachable" : "incomplete",
		.state_ns = UINT64_C(3000000000),
		.waiting = *at};
	++*at;
	return 0;
}

int sw_notes_fd(const struct sw *sw)
{
	(void)sw;
	return -1;
}

void sw_notes_turn(struct sw *sw, uint64_t now)
{
	(void)sw, (void)now;
}

const char *sw_lldp_chassis(const struct sw *sw, char text[SW_LLDP_TEXT])
{
	snprintf(text, SW_LLDP_TEXT, "%s", sw->chassis);
	return text;
}

int sw_lldp_get(const struct sw *sw, unsigned port, unsigned *at, struct sw_lldp_info *info)
{
	if (port >= SW_MAX_PORTS || *at > 0 || sw->heard[port].chassis[0] == '\0')
		return -ENOENT;
	++*at;
	*info = sw->heard[port];
	return 0;
}

unsigned sw_macs(const struct sw *sw, struct mac_counters *count, uint64_t *held)
{
	(void)sw;
	*count = (struct mac_counters){5, 4, 3, 2, 1};
	*held = 6;
	return 2;
}

int sw_mac_get(const struct sw *sw, unsigned *at, struct sw_mac_info *info)
{
	(void)sw;
	if (*at >= 2)
		return -ENOENT;
	*info = (struct sw_mac_info){.mac = {2, 0, 0, 0, 0, 7},
		.vlan = *at == 0 ? 0 : 5,
		.port = "p1",
		.is_static = *at == 1,
		.idle_ns = UINT64_C(3000000000)};
	++*at;
	return 0;
}

unsigned sw_members(const struct sw *sw, struct sw_member_counters *count)
{
	(void)sw;
	*count = (struct sw_member_counters){4, 3, 2, 1, 5, 6};
	return 2;
}

int sw_member_get(const struct sw *sw, unsigned i, struct sw_member *member)
{
	(void)sw;
	if (i > 1)
		return -ENOENT;
	*member = (struct sw_member){
		.vlan = i == 0 ? 0 : 7, .leaving = i == 1, .left_ns = 2500000000, .port = "p1"};
	wire_ip_parse(i == 0 ? "239.1.2.3" : "ff0e::7", &member->group);
	return 0;
}
