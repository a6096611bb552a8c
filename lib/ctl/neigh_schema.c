/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/neigh_schema.h"

const struct ctl_field ctl_neigh_none[] = {{0}};

static const char *const states[] = {"incomplete", "reachable", "stale", "probe", "failed", NULL};

static const struct ctl_field neigh_fields[] = {
	{"ip", CTL_STRING, .required = true, .help = "its address"},
	{"port", CTL_STRING, .required = true, .help = "where it is, or is asked for"},
	{"vlan", CTL_INT, .help = "that it is in; absent: untagged"},
	{"mac", CTL_STRING, .help = "absent: not known"},
	{"state", CTL_STRING, .values = states, .required = true,
		.help = "incomplete: asked for, has not answered yet; reachable: has answered "
			"within 30 s; stale: known, and asked again as soon as something is sent "
			"to it; probe: being asked again; failed: has not answered"},
	{"age", CTL_U64, .required = true, .help = "seconds in this state"},
	{"waiting", CTL_INT, .required = true, .help = "packets that wait for its answer"}, {0}};

const struct ctl_field ctl_neigh_list_result[] = {
	{"neighbours", CTL_LIST, .item = CTL_OBJECT, .fields = neigh_fields, .required = true,
		.help = "one item per address, 1000 at most"},
	{"total", CTL_INT, .metric = CTL_GAUGE, .required = true, .help = "how many there are"},
	{"learnt", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "neighbours learnt so far"},
	{"forgotten", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "silent or not used any more"},
	{"unanswered", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "asked for in vain"},
	{"requests", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "ARP requests and solicitations sent"},
	{"requests_held", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "not sent in time: too many at the port"},
	{"claims", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "of another MAC address for a known neighbour: the old one is asked first"},
	{"moved", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "neighbours whose MAC address has changed"},
	{"refused", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "not learnt or asked for: the port (\"neigh_max\") or the table is full"},
	{"crowded", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "packets that could not wait: too many do"},
	{0}};
