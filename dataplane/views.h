/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables that nodes have of what others make (groups, rings): described as tables are, read only.
 * Each is described by the file of the node that looks packets up in it. */
#ifndef DATAPLANE_VIEWS_H
#define DATAPLANE_VIEWS_H

#include "dataplane/table.h"

extern const struct table_desc inc_endpoint_view;  /* inc/node_inc_lookup.c */
extern const struct table_desc nr_connection_view; /* netreduce/node_netreduce.c */
extern const struct table_desc mac_learnt_view;    /* l2/node_bridge.c */

#endif
