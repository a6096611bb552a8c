/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/lease_schema.h"

const struct ctl_field ctl_lease_none[] = {{0}};

const struct ctl_field ctl_lease_params[] = {
	{"lease", CTL_STRING, .required = true, .min = 1, .max = 31, .pos = 1,
		.help = "as groups name it"},
	{"tenant", CTL_STRING, .required = true, .min = 1, .max = 31, .pos = 2,
		.help = "whose groups are meant"},
	{0}};

const struct ctl_field ctl_lease_acquire_result[] = {
	{"lease", CTL_STRING, .required = true, .help = "as given"},
	{"holder", CTL_STRING, .required = true, .help = "the tenant"}, {0}};

const struct ctl_field ctl_lease_release_result[] = {
	{"lease", CTL_STRING, .required = true, .help = "as given"},
	{"pending", CTL_BOOL, .required = true,
		.help = "some acknowledgement is still to come before it is free"},
	{0}};

static const struct ctl_field lease_fields[] = {
	{"name", CTL_STRING, .metric = CTL_LABEL, .required = true, .help = "of the lease"},
	{"bytes", CTL_U64, .metric = CTL_GAUGE, .required = true,
		.help = "as much as its largest tenant needs"},
	{"offset", CTL_U64, .help = "where in the aggregation memory, if it takes any"},
	{"groups", CTL_INT, .metric = CTL_GAUGE, .required = true, .help = "that name it"},
	{"holder", CTL_STRING, .help = "tenant that has it now"},
	{"held_ms", CTL_U64, .metric = CTL_GAUGE, .help = "for how long"},
	{"releasing", CTL_BOOL, .help = "the holder is letting go"},
	{"acquired", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "times that a tenant got it"},
	{"refused", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "times that a tenant did not get it"},
	{"released", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "times that its holder let it go"},
	{"taken_back", CTL_U64, .metric = CTL_COUNTER, .required = true,
		.help = "times that it was taken from a holder in silence"},
	{0}};

const struct ctl_field ctl_lease_list_result[] = {
	{"leases", CTL_LIST, .item = CTL_OBJECT, .fields = lease_fields, .required = true,
		.help = "one item per lease"},
	{0}};
