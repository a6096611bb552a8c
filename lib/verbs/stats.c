/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters by name: for inc_dv_query_stats and the file INCLINE_STATS names. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/cm/cm.h"
#include "lib/lldp/table.h"
#include "lib/verbs/iwarp_dev.h"
#include "lib/verbs/netdev.h"
#include "lib/verbs/workers.h"
#include "lib/wire/icrc.h"

enum { LLDP_TEXT = 64 }; /* of what a neighbour says, with its end: the rest is cut off */
enum { MAX_PORT_STATS = 32, MAX_CM_STATS = CM_N_COUNTERS + CM_N_DROPS, MAX_IWARP_STATS = 64 };

#define EXPORT __attribute__((visibility("default")))

/* What the drivers of all ports say, added up. */
static unsigned driver_stats(const struct iv_dev *dev, struct inc_dv_stat stats[MAX_PORT_STATS])
{
	struct inc_dv_stat other[MAX_PORT_STATS];
	unsigned n;

	if (!dev->ops->stats)
		return 0;
	n = dev->ops->stats(dev->port, stats, MAX_PORT_STATS);
	for (unsigned i = 1; i < dev->n_ports; i++) {
		dev->ops->stats(dev->ports[i].handle, other, MAX_PORT_STATS);
		for (unsigned k = 0; k < n && k < MAX_PORT_STATS; k++)
			stats[k].value += other[k].value;
	}
	return n;
}

static unsigned port_stats(const struct iv_dev *dev, struct inc_dv_stat stats[MAX_PORT_STATS])
{
	unsigned n = driver_stats(dev, stats);

	if (dev->netdev && n < MAX_PORT_STATS)
		n += iv_netdev_stats(dev->netdev, stats + n, MAX_PORT_STATS - n);
	if (dev->workers && n < MAX_PORT_STATS)
		n += iv_workers_stats(dev->workers, stats + n, MAX_PORT_STATS - n);
	return n < MAX_PORT_STATS ? n : MAX_PORT_STATS;
}

/* Counters of each port, as port N of the program's: port1_rx_frames. */
#define NAME(sym, name, text) PREFIX name,
static const char *const port_names[RNIC_MAX_PORTS][RNIC_N_PORT_COUNTERS] = {
#define PREFIX "port1_"
	{RNIC_PORT_COUNTERS(NAME)},
#undef PREFIX
#define PREFIX "port2_"
	{RNIC_PORT_COUNTERS(NAME)},
#undef PREFIX
#define PREFIX "port3_"
	{RNIC_PORT_COUNTERS(NAME)},
#undef PREFIX
#define PREFIX "port4_"
	{RNIC_PORT_COUNTERS(NAME)},
#undef PREFIX
#define PREFIX "port5_"
	{RNIC_PORT_COUNTERS(NAME)},
#undef PREFIX
#define PREFIX "port6_"
	{RNIC_PORT_COUNTERS(NAME)},
#undef PREFIX
#define PREFIX "port7_"
	{RNIC_PORT_COUNTERS(NAME)},
#undef PREFIX
#define PREFIX "port8_"
	{RNIC_PORT_COUNTERS(NAME)},
#undef PREFIX
};

static json_t *neighbour_json(const struct lldp_neighbour *n, uint64_t now)
{
	char chassis[LLDP_TEXT], port[LLDP_TEXT], system[LLDP_TEXT];
	json_t *row = json_pack("{s:s, s:s, s:I}", "chassis",
		wire_lldp_chassis_text(&n->says.chassis, chassis, sizeof(chassis)), "port",
		wire_lldp_port_text(&n->says.port, port, sizeof(port)), "age_s",
		(json_int_t)((now - n->heard) / 1000000000));

	if (n->says.name_len > 0)
		json_object_set_new(row, "system",
			json_string(wire_lldp_name_text(&n->says, system, sizeof(system))));
	return row;
}

/* Who is at the other end of a port, by LLDP; absent: nobody, or that is off. */
static void add_lldp(const struct iv_dev *dev, unsigned port, json_t *to)
{
	const uint64_t now = dev->ops->now(dev->port);
	const struct lldp_neighbour *n;
	json_t *list = json_array();
	unsigned at = 0;

	while ((n = rnic_lldp_neighbour(dev->rnic, port, &at)))
		json_array_append_new(list, neighbour_json(n, now));
	if (json_array_size(list) > 0)
		json_object_set(to, "lldp", list);
	json_decref(list);
}

static json_t *ports_json(const struct iv_dev *dev)
{
	json_t *list = json_array();

	for (unsigned p = 0; p < dev->n_ports; p++) {
		json_t *port = json_pack("{s:b}", "up", rnic_port_is_up(dev->rnic, p));

		for (unsigned c = 0; c < RNIC_N_PORT_COUNTERS; c++)
			json_object_set_new(port, rnic_port_counter_name(c),
				json_integer((json_int_t)rnic_port_count(dev->rnic, p, c)));
		add_lldp(dev, p, port);
		json_array_append_new(list, port);
	}
	return list;
}

static void iwarp_json(const struct iv_dev *dev, json_t *counters)
{
	struct inc_dv_stat stats[MAX_IWARP_STATS];
	const unsigned n = dev->iwarp ? iv_iwarp_stats(dev->iwarp, stats, MAX_IWARP_STATS) : 0;

	for (unsigned i = 0; i < n; i++)
		json_object_set_new(
			counters, stats[i].name, json_integer((json_int_t)stats[i].value));
}

static json_t *to_json(struct iv_dev *dev)
{
	struct inc_dv_stat port[MAX_PORT_STATS];
	const unsigned n_port = port_stats(dev, port);
	json_t *counters = json_object(), *drops = json_object(), *ports = json_object();

	for (unsigned i = 0; i < RNIC_N_COUNTERS; i++)
		json_object_set_new(counters, rnic_counter_name((enum rnic_counter)i),
			json_integer((json_int_t)rnic_count(dev->rnic, (enum rnic_counter)i)));
	for (unsigned i = 1; i < RNIC_N_DROPS; i++)
		json_object_set_new(drops, rnic_drop_name(i),
			json_integer((json_int_t)rnic_drop_count(dev->rnic, i)));
	if (dev->cm) {
		struct inc_dv_stat cm[MAX_CM_STATS];
		const unsigned n_cm = iv_cm_stats(dev, cm, MAX_CM_STATS);

		for (unsigned i = 0; i < n_cm; i++)
			json_object_set_new(i < CM_N_COUNTERS ? counters : drops, cm[i].name,
				json_integer((json_int_t)cm[i].value));
	}
	iwarp_json(dev, counters);
	for (unsigned i = 0; i < n_port; i++)
		json_object_set_new(ports, port[i].name, json_integer((json_int_t)port[i].value));
	return json_pack("{s:s, s:i, s:s, s:s, s:o, s:o, s:o, s:o}", "device",
		dev->device->base.name, "pid", (int)getpid(), "version", INCLINE_VERSION, "icrc",
		icrc_kernel_name(), "counters", counters, "drops", drops, "port", ports, "ports",
		ports_json(dev));
}

void iv_stats_write(struct iv_dev *dev, const char *path)
{
	json_t *stats = to_json(dev);
	char part[4096];

	/* Whole or not at all, for whoever waits for the file. */
	snprintf(part, sizeof(part), "%s.%d.part", path, (int)getpid());
	if (!stats || json_dump_file(stats, part, JSON_INDENT(2)) || rename(part, path))
		iv_debug("INCLINE_STATS: %s: %s", path, strerror(errno));
	json_decref(stats);
}

EXPORT int inc_dv_query_stats(
	struct ibv_context *context, struct inc_dv_stat *stats, unsigned n, unsigned *count)
{
	struct inc_dv_stat port[MAX_PORT_STATS];
	const struct iv_dev *dev;
	unsigned at = 0, n_port;

	if (!iv_mine(context))
		return iv_errno(EOPNOTSUPP);
	dev = iv_dev(context);
	for (unsigned i = 0; i < RNIC_N_COUNTERS; i++, at++) {
		if (at < n)
			stats[at] = (struct inc_dv_stat){rnic_counter_name((enum rnic_counter)i),
				rnic_count(dev->rnic, (enum rnic_counter)i)};
	}
	for (unsigned i = 1; i < RNIC_N_DROPS; i++, at++) {
		if (at < n)
			stats[at] = (struct inc_dv_stat){
				rnic_drop_name(i), rnic_drop_count(dev->rnic, i)};
	}
	for (unsigned p = 0; p < dev->n_ports; p++)
		for (unsigned c = 0; c < RNIC_N_PORT_COUNTERS; c++, at++)
			if (at < n)
				stats[at] = (struct inc_dv_stat){
					port_names[p][c], rnic_port_count(dev->rnic, p, c)};
	if (dev->cm)
		at += iv_cm_stats(dev, stats + (at < n ? at : n), at < n ? n - at : 0);
	if (dev->iwarp)
		at += iv_iwarp_stats(dev->iwarp, stats + (at < n ? at : n), at < n ? n - at : 0);
	n_port = port_stats(dev, port);
	for (unsigned i = 0; i < n_port; i++, at++) {
		if (at < n)
			stats[at] = port[i];
	}
	*count = at;
	return 0;
}
