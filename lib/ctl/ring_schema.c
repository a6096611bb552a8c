/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/ring_schema.h"

enum { MAX_24 = 0xffffff, MAX_IN = 63, MAX_RANKS = 2048, MAX_RINGS = 64 };

#define RING_REF                                                                                   \
	{                                                                                          \
		.name = "ring", .type = CTL_REF, .required = true, .min = 0, .max = MAX_RINGS - 1, \
		.complete = "ring", .pos = 1, .help = "name, or number as an integer"              \
	}

const struct ctl_field ctl_ring_none[] = {{0}};

static const struct ctl_field flow_fields[] = {
	{"rank", CTL_INT, .min = 0, .max = MAX_RANKS - 1, .required = true,
		.help = "that sends on the connection"},
	{"src", CTL_STRING, .required = true, .help = "address of the rank"},
	{"dst", CTL_STRING, .required = true, .help = "address of the next rank"},
	{"qpn", CTL_INT, .min = 2, .max = MAX_24, .required = true,
		.help = "QPN of the next rank's end"},
	{"reply_qpn", CTL_INT, .min = 0, .max = MAX_24,
		.help = "QPN of the rank's own end, so that it can be told to wait; 0: not known"},
	{"psn", CTL_INT, .min = 0, .max = MAX_24,
		.help = "first PSN; default: learnt from a message's first packet"},
	{0}};

static const struct ctl_field leaf_fields[] = {
	{"ip", CTL_STRING, .required = true, .help = "address of the switch below"},
	{"local_ip", CTL_STRING, .help = "own address; default the first of the family"},
	{"qpn", CTL_INT, .min = 0, .max = MAX_24, .help = "its QPN; 0 or none: not known yet"},
	{"ranks", CTL_LIST, .item = CTL_INT, .min = 1, .max = MAX_RANKS, .required = true,
		.help = "below it"},
	{0}};

static const struct ctl_field parent_fields[] = {
	{"ip", CTL_STRING, .required = true, .help = "address of the switch above"},
	{"local_ip", CTL_STRING, .help = "own address; default the first of the family"},
	{"qpn", CTL_INT, .min = 0, .max = MAX_24, .help = "its QPN; 0 or none: not known yet"},
	{0}};

const struct ctl_field ctl_ring_create_params[] = {
	{"name", CTL_STRING, .required = true, .min = 1, .max = 31,
		.help = "letters, digits, '_', '.', '-'; not digits alone"},
	{"id", CTL_INT, .min = 0, .max = 65535, .help = "in the hosts' headers; default 0"},
	{"mtu", CTL_INT, .min = 256, .max = 4096, .required = true,
		.help = "payload bytes of a full packet: 256, 512, 1024, 2048 or 4096"},
	{"M", CTL_INT, .min = 1, .max = 1024, .required = true, .help = "packets per message"},
	{"W", CTL_INT, .min = 1, .max = 1024, .required = true, .help = "messages per window"},
	{"ranks", CTL_INT, .min = 2, .max = MAX_RANKS, .required = true, .help = "members"},
	{"first_message", CTL_U64, .help = "number of the first message; default 0"},
	{"stall_rnr", CTL_BOOL,
		.help = "tell hosts that wait for slower ones to wait (RNR NAK); default true"},
	{"strict_port", CTL_BOOL,
		.help = "refuse packets from another port than the one that leads to their sender "
			"now; default true"},
	{"mark_sums", CTL_BOOL,
		.help = "bit 31 of the immediate data is set in what a host gets, "
			"so that it takes no other rank's vector for a sum; default false"},
	{"flows", CTL_LIST, .item = CTL_OBJECT, .fields = flow_fields, .max = MAX_IN,
		.help = "connections of the ranks that are attached here"},
	{"leaves", CTL_LIST, .item = CTL_OBJECT, .fields = leaf_fields, .max = MAX_IN,
		.help = "switches below"},
	{"parent", CTL_OBJECT, .fields = parent_fields, .help = "switch above; the root has none"},
	{"activate_ms", CTL_INT, .min = 1, .max = 3600000,
		.help = "taken away again unless it is activated within so many ms; default: it "
			"stays"},
	{"activate", CTL_BOOL, .help = "start at once; default: if all QPNs are known"}, {0}};

static const struct ctl_field created_leaf_fields[] = {
	{"input", CTL_INT, .required = true, .help = "place in the ring"},
	{"qpn", CTL_INT, .required = true, .help = "QPN here, for the switch below"},
	{"ranks", CTL_LIST, .item = CTL_INT, .required = true, .help = "below it"}, {0}};

const struct ctl_field ctl_ring_create_result[] = {
	{"ring", CTL_INT, .required = true, .help = "number that identifies the ring"},
	{"name", CTL_STRING, .required = true, .help = "as given"},
	{"state", CTL_STRING, .required = true, .help = "installed or active"},
	{"leaves", CTL_LIST, .item = CTL_OBJECT, .fields = created_leaf_fields, .required = true,
		.help = "in order of their lowest rank"},
	{"parent_qpn", CTL_INT, .help = "QPN here, for the parent"},
	{"buffer_bytes", CTL_U64, .required = true, .help = "aggregation memory"}, {0}};

static const struct ctl_field activate_leaf_fields[] = {
	{"input", CTL_INT, .min = 0, .max = MAX_IN - 1, .required = true,
		.help = "as ring.create numbered it"},
	{"qpn", CTL_INT, .min = 1, .max = MAX_24, .required = true,
		.help = "QPN of the switch below"},
	{0}};

const struct ctl_field ctl_ring_activate_params[] = {RING_REF,
	{"leaves", CTL_LIST, .item = CTL_OBJECT, .fields = activate_leaf_fields, .max = MAX_IN,
		.help = "QPNs that ring.create did not know"},
	{"parent_qpn", CTL_INT, .min = 1, .max = MAX_24, .help = "QPN of the parent"}, {0}};

const struct ctl_field ctl_ring_state_result[] = {
	{"ring", CTL_INT, .required = true, .help = "number"},
	{"name", CTL_STRING, .required = true, .help = "of the ring"},
	{"state", CTL_STRING, .required = true, .help = "now: active, failed or free"}, {0}};

const struct ctl_field ctl_ring_params[] = {RING_REF, {0}};

#define FAILED                                                                                 \
	{"fail_reason", CTL_STRING,                                                            \
		.help = "of a failed ring: dtype_mismatch, op_mismatch, length_mismatch, "     \
			"packets_mismatch (what ranks, or a rank and the ring, disagree on), " \
			"manager (ring.fail, or nobody held it) or switch (another switch's "  \
			"part has failed)"},                                                   \
	{                                                                                      \
		"failure", CTL_STRING,                                                         \
			.help = "of a failed ring: the same in words, with who "               \
				"says what of which packet"                                    \
	}

static const struct ctl_field list_fields[] = {
	{"ring", CTL_INT, .required = true, .help = "number"},
	{"name", CTL_STRING, .required = true, .help = "of the ring"},
	{"state", CTL_STRING, .required = true, .help = "installed, active or failed"},
	{"ranks", CTL_INT, .required = true, .help = "members"},
	{"flows", CTL_INT, .required = true, .help = "connections of ranks attached here"},
	{"leaves", CTL_INT, .required = true, .help = "switches below"},
	{"root", CTL_BOOL, .required = true, .help = "no switch above"},
	{"completed", CTL_U64, .required = true, .help = "packets aggregated"},
	{"owner", CTL_STRING,
		.help = "of an owned ring: held by a connection, alone (it waits for one), ending"},
	FAILED, {0}};

const struct ctl_field ctl_ring_list_result[] = {
	{"rings", CTL_LIST, .item = CTL_OBJECT, .fields = list_fields, .required = true,
		.help = "one item per ring"},
	{0}};

static const struct ctl_field input_fields[] = {
	{"input", CTL_INT, .required = true, .help = "place in the ring"},
	{"kind", CTL_STRING, .required = true, .help = "host or switch"},
	{"src", CTL_STRING, .required = true, .help = "where its packets come from"},
	{"dst", CTL_STRING, .required = true, .help = "where they go"},
	{"qpn", CTL_INT, .required = true, .help = "destination QPN"},
	{"reply_qpn", CTL_INT, .required = true, .help = "QPN of its own end, 0 if not known"},
	{"message", CTL_U64, .help = "host: the latest one seen"},
	{"psn", CTL_INT, .help = "host: of that message's first packet"},
	{"ranks", CTL_LIST, .item = CTL_INT, .required = true, .help = "behind it"}, {0}};

static const struct ctl_field disagreement_fields[] = {
	{"message", CTL_U64, .required = true, .help = "number of the message"},
	{"packet", CTL_INT, .required = true, .help = "place of the packet in it"},
	{"ranks", CTL_LIST, .item = CTL_INT, .required = true,
		.help = "whose packet it was: one, or those below a switch"},
	{"value", CTL_STRING, .required = true, .help = "that it said or had"},
	{"other_ranks", CTL_LIST, .item = CTL_INT,
		.help = "whose packet said otherwise; absent: the ring was made otherwise"},
	{"other_value", CTL_STRING, .required = true, .help = "of those"}, {0}};

static const struct ctl_field waiting_fields[] = {
	{"message", CTL_U64, .required = true, .help = "number of the message"},
	{"packet", CTL_INT, .required = true, .help = "place of the packet in it"},
	{"missing_ranks", CTL_LIST, .item = CTL_INT, .required = true, .help = "waited for"}, {0}};

static const struct ctl_field above_fields[] = {
	{"ip", CTL_STRING, .required = true, .help = "address"},
	{"qpn", CTL_INT, .required = true, .help = "its QPN, 0 if not known yet"},
	{"local_qpn", CTL_INT, .required = true, .help = "QPN here"}, {0}};

const struct ctl_field ctl_ring_show_result[] = {
	{"ring", CTL_INT, .required = true, .help = "number"},
	{"name", CTL_STRING, .required = true, .help = "of the ring"},
	{"state", CTL_STRING, .required = true, .help = "installed, active or failed"},
	{"id", CTL_INT, .required = true, .help = "in the hosts' headers"},
	{"mtu", CTL_INT, .required = true, .help = "payload bytes of a full packet"},
	{"M", CTL_INT, .required = true, .help = "packets per message"},
	{"W", CTL_INT, .required = true, .help = "messages per window"},
	{"ranks", CTL_INT, .required = true, .help = "members"},
	{"buffer_bytes", CTL_U64, .required = true, .help = "aggregation memory"},
	{"owner", CTL_STRING, .help = "as in ring.list"}, FAILED,
	{"disagreement", CTL_OBJECT, .fields = disagreement_fields,
		.help = "of a ring that has failed for a mismatch"},
	{"waiting", CTL_OBJECT, .fields = waiting_fields,
		.help = "the oldest packet that waits for somebody"},
	{"parent", CTL_OBJECT, .fields = above_fields, .help = "switch above"},
	{"counters", CTL_MAP, .item = CTL_U64, .required = true, .help = "what it has done"},
	{"inputs", CTL_LIST, .item = CTL_OBJECT, .fields = input_fields, .required = true,
		.help = "what each packet is waited for from"},
	{0}};
