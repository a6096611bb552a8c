/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures of packets at a port: rows for ctl_switch_schema. */
#ifndef CTL_CAPTURE_SCHEMA_H
#define CTL_CAPTURE_SCHEMA_H

#include "lib/ctl/schema.h"

extern const struct ctl_field ctl_capture_start_params[], ctl_capture_start_result[],
	ctl_capture_read_params[], ctl_capture_read_result[], ctl_capture_stop_params[],
	ctl_capture_counts[], ctl_capture_list_result[], ctl_capture_none[];

#define CTL_CAPTURE_METHODS                                                                     \
	{"capture.start", NULL,                                                                 \
		"Begins to copy what comes in or goes out by a port, for this connection: it "  \
		"ends with it.",                                                                \
		true, ctl_capture_start_params, ctl_capture_start_result},                      \
		{"capture.read", NULL,                                                          \
			"Takes packets that a capture of this connection has copied: at once, " \
			"none "                                                                 \
			"if there are none.",                                                   \
			false, ctl_capture_read_params, ctl_capture_read_result},               \
		{"capture.stop", NULL, "Ends a capture of this connection.", true,              \
			ctl_capture_stop_params, ctl_capture_counts},                           \
	{                                                                                       \
		"capture.list", "captures", "Lists the captures that run.", false,              \
			ctl_capture_none, ctl_capture_list_result                               \
	}

#endif
