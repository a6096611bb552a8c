/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's file of paths (MRC paper, 2.3: "a node-specific configuration file"): which template
 * makes the addresses of paths to a destination. tools/lab writes one for each host of a fabric of
 * planes.
 *
 *	{"name": "h0", "address": "fd77::1:0", "plane_shift": 8, "uplinks": 2,
 *	 "planes": [{"plane": 1, "port": "h0-p1"}, ...],
 *	 "rows": [{"prefix": "fd77::2:0/112", "address": "fcbb:bb00:0:400:1:800::", "hops": 4,
 *		"copies": [{"from": 8, "width": 4, "usid": 0, "shift": 12}, ...],
 *		"downlink": {"from": 0, "width": 10, "usid": 3, "shift": 0}}, ...]}
 *
 * A destination's downlink number is the last bits of its address, as many as "downlink" has. An EV
 * is the plane's number, plane_shift bits up, and the number of one of the uplinks. */
#ifndef SRV6_PATHS_H
#define SRV6_PATHS_H

#include <jansson.h>

#include "lib/srv6/template.h"

enum { SRV6_MAX_PLANES = 16, SRV6_NAME_LEN = 32, SRV6_MAX_UPLINKS = 1024 };

struct srv6_row {
	struct wire_ip prefix;
	uint8_t bits;
	struct srv6_template t;
};

struct srv6_paths {
	char name[SRV6_NAME_LEN];
	struct wire_ip address; /* of the node's NIC, in all planes */
	uint8_t plane_shift;
	uint16_t uplinks; /* of a T0 */
	unsigned n_planes, n_rows;
	struct {
		uint8_t number;
		char port[SRV6_NAME_LEN];
	} plane[SRV6_MAX_PLANES];
	struct srv6_row row[];
};

/* 0 and *out, to be freed with free(); -EINVAL and a text that names the field and its limit: every
 * template is checked, and that each EV of the planes and uplinks makes an address. -ENOMEM. */
int srv6_paths_parse(const json_t *json, struct srv6_paths **out, char err[SRV6_ERR_LEN]);
/* The same of a file; -EINVAL also if it is not there or no JSON. */
int srv6_paths_read(const char *file, struct srv6_paths **out, char err[SRV6_ERR_LEN]);

/* The template of a destination: that of the longest prefix, specialised. -ENOENT: no row has it.
 */
int srv6_paths_find(const struct srv6_paths *p, const struct wire_ip *dst, struct srv6_template *t);

/* EV number i (0, 1 ...) of a template: plane by plane, and in a plane uplink by uplink, if the
 * template knows uplinks. -ENOENT behind the last one. */
int srv6_paths_ev(
	const struct srv6_paths *p, const struct srv6_template *t, unsigned i, uint32_t *ev);

#endif
