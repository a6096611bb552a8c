/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/mac_schema.h"

const struct ctl_field ctl_mac_none[] = {{0}};

static const char *const kinds[] = {"learnt", "static", NULL};

static const struct ctl_field mac_fields[] = {
	{"mac", CTL_STRING, .required = true, .help = "MAC address"},
	{"vlan", CTL_INT, .help = "of its bridge; absent: untagged"},
	{"port", CTL_STRING, .required = true, .help = "where it is"},
	{"kind", CTL_STRING, .values = kinds, .required = true,
		.help = "static: a row of table mac, that nothing moves"},
	{"idle", CTL_U64,
		.help = "learnt: seconds since something was heard of it, looked at each second"},
	{0}};

const struct ctl_field ctl_mac_list_result[] = {
	{"macs", CTL_LIST, .item = CTL_OBJECT, .fields = mac_fields, .required = true,
		.help = "one item per address and VLAN, 1000 at most"},
	{"total", CTL_INT, .metric = CTL_GAUGE, .required = true, .help = "how many there are"},
	{"learnt", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "addresses learnt so far"},
	{"aged", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "forgotten: silent for \"mac_age_s\""},
	{"flushed", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "forgotten: the link of their port went down"},
	{"moved", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "that have come to another port"},
	{"refused", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "not learnt or moved: the port (\"mac_max\") or the table is full"},
	{"held", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "frames whose source was not looked at: too many new ones at the port"},
	{0}};
