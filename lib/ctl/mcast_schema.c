/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/mcast_schema.h"

const struct ctl_field ctl_mcast_none[] = {{0}};

static const struct ctl_field member_fields[] = {
	{"group", CTL_STRING, .required = true, .help = "its address"},
	{"port", CTL_STRING, .required = true, .help = "where a member is"},
	{"vlan", CTL_INT, .help = "that it is in; absent: untagged"},
	{"leaving", CTL_BOOL, .required = true,
		.help = "one has left, and the others at the port are being asked"},
	{"seconds", CTL_U64, .required = true, .help = "until it is forgotten, if it keeps silent"},
	{0}};

const struct ctl_field ctl_mcast_members_result[] = {
	{"members", CTL_LIST, .item = CTL_OBJECT, .fields = member_fields, .required = true,
		.help = "one item per group and port, 1000 at most"},
	{"total", CTL_INT, .required = true, .help = "how many there are"},
	{"joined", CTL_U64, .required = true, .help = "groups learnt at a port so far"},
	{"left", CTL_U64, .required = true, .help = "that nobody wanted any more"},
	{"expired", CTL_U64, .required = true, .help = "whose members kept silent"},
	{"refused", CTL_U64, .required = true, .help = "joins beyond \"mcast_max\""},
	{"bad", CTL_U64, .required = true, .help = "reports that make no sense"},
	{"deferred", CTL_U64, .required = true,
		.help = "times that members were not taken over for want of memory, and tried "
			"again "
			"at the next tick"},
	{0}};
