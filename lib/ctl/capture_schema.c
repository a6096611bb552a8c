/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/capture_schema.h"

const struct ctl_field ctl_capture_none[] = {{0}};

static const char *const dirs[] = {"in", "out", "both", NULL};

static const struct ctl_field insn_fields[] = {
	{"code", CTL_INT, .required = true, .min = 0, .max = UINT16_MAX, .help = "operation"},
	{"jt", CTL_INT, .required = true, .min = 0, .max = UINT8_MAX, .help = "jump if true"},
	{"jf", CTL_INT, .required = true, .min = 0, .max = UINT8_MAX, .help = "jump if false"},
	{"k", CTL_INT, .required = true, .min = 0, .max = UINT32_MAX, .help = "operand"}, {0}};

const struct ctl_field ctl_capture_start_params[] = {
	{"port", CTL_STRING, .required = true, .complete = "port", .help = "name of the port"},
	{"dir", CTL_STRING, .values = dirs,
		.help = "what comes in, as the switch sees it, what goes out, as the port has "
			"taken it; default both"},
	{"snaplen", CTL_INT, .min = 1, .max = 65535,
		.help = "bytes of a packet that are kept; default 65535"},
	{"ring_kb", CTL_INT, .min = 128, .max = 16384,
		.help = "for packets of each worker that are not read yet, a power of two; default "
			"4096"},
	{"filter", CTL_LIST, .item = CTL_OBJECT, .fields = insn_fields, .min = 1, .max = 512,
		.help = "a program in classic BPF for Ethernet, as libpcap makes it and "
			"`tcpdump -ddd` shows it: only packets for which it returns more than 0"},
	{0}};

const struct ctl_field ctl_capture_start_result[] = {
	{"capture", CTL_INT, .required = true, .help = "its number"},
	{"epoch_ns", CTL_U64, .required = true,
		.help = "what to add to a packet's `ns` to have the time since 1970, when it "
			"began"},
	{0}};

const struct ctl_field ctl_capture_read_params[] = {
	{"capture", CTL_INT, .required = true, .min = 1, .max = UINT32_MAX, .help = "its number"},
	{"limit", CTL_INT, .min = 1, .max = 1000, .help = "most packets to return; default 256"},
	{0}};

static const struct ctl_field packet_fields[] = {
	{"ns", CTL_U64, .required = true,
		.help = "time of the switch's clock, when the worker's turn began"},
	{"dir", CTL_STRING, .values = dirs, .required = true, .help = "in or out"},
	{"len", CTL_INT, .required = true, .help = "bytes of the packet"},
	{"drop", CTL_STRING, .help = "why it was lost, if it came in and was"},
	{"outcome", CTL_STRING, .help = "how it has served, if it came in and was not sent on"},
	{"data", CTL_STRING, .required = true, .help = "its first bytes, in base64"}, {0}};

#define COUNTS                                                                                    \
	{"captured", CTL_U64, .required = true, .help = "packets copied so far"},                 \
		{"dropped", CTL_U64, .required = true,                                            \
			.help = "packets missing: what was copied was not read fast enough"},     \
	{                                                                                         \
		"filtered", CTL_U64, .required = true, .help = "packets that the filter left out" \
	}

const struct ctl_field ctl_capture_read_result[] = {
	{"packets", CTL_LIST, .item = CTL_OBJECT, .fields = packet_fields, .required = true,
		.help = "in order of time, as far as workers have shown theirs; some 256 KiB of "
			"data at most"},
	COUNTS, {0}};

const struct ctl_field ctl_capture_stop_params[] = {
	{"capture", CTL_INT, .required = true, .min = 1, .max = UINT32_MAX, .help = "its number"},
	{0}};

const struct ctl_field ctl_capture_counts[] = {COUNTS, {0}};

static const struct ctl_field list_fields[] = {
	{"capture", CTL_INT, .required = true, .help = "its number"},
	{"port", CTL_STRING, .required = true, .help = "name of the port"},
	{"dir", CTL_STRING, .values = dirs, .required = true, .help = "of the packets"},
	{"snaplen", CTL_INT, .required = true, .help = "bytes of a packet that are kept"}, COUNTS,
	{0}};

const struct ctl_field ctl_capture_list_result[] = {
	{"captures", CTL_LIST, .item = CTL_OBJECT, .fields = list_fields, .required = true,
		.help = "one item per capture, whoever reads it"},
	{0}};
