/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/inclinectl_rates.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* ---- the result ---- */

static const char *const links[] = {"up", "down", "gone", NULL};

static const struct ctl_field port_fields[] = {
	{"name", CTL_STRING, .required = true, .help = "of the port"},
	{"link", CTL_STRING, .values = links, .required = true,
		.help = "up, down, or gone: the switch has no such port any more"},
	{"rx_packets_s", CTL_REAL, .required = true, .help = "received per second"},
	{"rx_gbit_s", CTL_REAL, .required = true, .help = "10^9 bits per second, of whole frames"},
	{"tx_packets_s", CTL_REAL, .required = true, .help = "sent per second"},
	{"tx_gbit_s", CTL_REAL, .required = true, .help = "10^9 bits per second, of whole frames"},
	{"lost_s", CTL_REAL, .required = true,
		.help = "per second: tx_drops, rx_missed, rx_errors and rx_nombuf"},
	{0}};

static const struct ctl_field worker_fields[] = {
	{"worker", CTL_INT, .required = true, .help = "number"},
	{"cpu", CTL_INT, .help = "that it runs on, if it is one"},
	{"busy_percent", CTL_REAL, .required = true,
		.help = "cycles of turns with packets, of all its cycles"},
	{"rx_packets_s", CTL_REAL, .required = true, .help = "received per second"},
	{"tx_packets_s", CTL_REAL, .required = true, .help = "sent per second"},
	{"cycles_per_packet", CTL_REAL, .required = true, .help = "busy cycles for each received"},
	{"groups", CTL_INT, .required = true, .help = "that it owns"}, {0}};

static const struct ctl_field group_fields[] = {
	{"name", CTL_STRING, .required = true, .help = "of the group"},
	{"state", CTL_STRING, .required = true, .help = "installed, active, draining or failed"},
	{"operations", CTL_U64, .required = true, .help = "collectives begun so far"},
	{"operations_s", CTL_REAL, .required = true, .help = "begun per second"},
	{"missing", CTL_INT, .required = true,
		.help = "ranks that the oldest unfinished packet waits for"},
	{"waits_for", CTL_LIST, .item = CTL_INT, .required = true, .help = "these; the first 16"},
	{"stuck", CTL_BOOL, .required = true,
		.help = "the read before found it waiting for the same packet"},
	{0}};

static const struct ctl_field drop_fields[] = {
	{"reason", CTL_STRING, .required = true, .help = "name"},
	{"count", CTL_U64, .required = true, .help = "packets lost so far"},
	{"per_s", CTL_REAL, .required = true, .help = "lost per second"}, {0}};

const struct ctl_field rates_result[] = {
	{"time", CTL_STRING, .required = true, .help = "of the second read"},
	{"name", CTL_STRING, .required = true, .help = "of the switch"},
	{"seconds", CTL_REAL, .required = true, .help = "between the two reads"},
	{"restarted", CTL_BOOL, .required = true,
		.help = "the switch was started again in between: no rates this time"},
	{"drops_s", CTL_REAL, .help = "packets lost per second, for all reasons"},
	{"ports", CTL_LIST, .item = CTL_OBJECT, .fields = port_fields, .required = true,
		.help = "one item per port, those that are gone last"},
	{"workers", CTL_LIST, .item = CTL_OBJECT, .fields = worker_fields,
		.help = "one item per worker; absent where that is not told, over TCP"},
	{"groups", CTL_LIST, .item = CTL_OBJECT, .fields = group_fields, .required = true,
		.help = "the first 64 by slot"},
	{"groups_left_out", CTL_INT, .help = "more groups than that"},
	{"drops", CTL_LIST, .item = CTL_OBJECT, .fields = drop_fields, .required = true,
		.help = "reasons whose count grew in between"},
	{0}};

/* ---- two reads ---- */

int rates_grown(uint64_t before, uint64_t after, uint64_t *by)
{
	/* Forward by less than half the range, round its end too; everything else is a counter
	 * that began again below where it was. */
	if (after - before > UINT64_MAX / 2)
		return -ERANGE;
	*by = after - before;
	return 0;
}

json_t *rates_number(double n)
{
	return json_real(round(n * 100.0) / 100.0);
}

static bool grown(const json_t *before, const json_t *after, const char *field, uint64_t *by)
{
	uint64_t a, b;

	return !ctl_get_u64(json_object_get(before, field), &a) &&
	       !ctl_get_u64(json_object_get(after, field), &b) && !rates_grown(a, b, by);
}

/* Puts nothing if it cannot be told. */
static void put_rate(json_t *out, const char *name, const json_t *before, const json_t *after,
	const char *field, double per, double seconds)
{
	uint64_t by;

	if (grown(before, after, field, &by))
		json_object_set_new(out, name, rates_number((double)by * per / seconds));
}

static void copy(json_t *out, const json_t *from, const char *field)
{
	json_t *value = json_object_get(from, field);

	if (value)
		json_object_set(out, field, value);
}

/* The row of a list whose field is equal to that of this one. */
static const json_t *same(const json_t *list, const json_t *row, const char *field)
{
	const json_t *value = json_object_get(row, field);
	json_t *other;
	size_t i;

	json_array_foreach(list, i,
		other) if (value && json_equal(json_object_get(other, field), value)) return other;
	return NULL;
}

/* ---- ports ---- */

static void put_lost(json_t *out, const json_t *before, const json_t *after, double seconds)
{
	static const char *const fields[] = {"tx_drops", "rx_missed", "rx_errors", "rx_nombuf"};
	uint64_t sum = 0, by;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		if (!grown(before, after, fields[i], &by))
			return;
		sum += by;
	}
	json_object_set_new(out, "lost_s", rates_number((double)sum / seconds));
}

static json_t *port_row(const json_t *before, const json_t *after, double seconds)
{
	json_t *out = json_object();

	copy(out, after, "name");
	copy(out, after, "link");
	put_rate(out, "rx_packets_s", before, after, "rx_packets", 1, seconds);
	put_rate(out, "rx_gbit_s", before, after, "rx_bytes", 8e-9, seconds);
	put_rate(out, "tx_packets_s", before, after, "tx_packets", 1, seconds);
	put_rate(out, "tx_gbit_s", before, after, "tx_bytes", 8e-9, seconds);
	put_lost(out, before, after, seconds);
	return out;
}

static json_t *port_rows(const json_t *before, const json_t *after, double seconds)
{
	json_t *out = json_array(), *row;
	size_t i;

	json_array_foreach(after, i, row)
		json_array_append_new(out, port_row(same(before, row, "name"), row, seconds));
	json_array_foreach(before, i, row)
	{
		if (!same(after, row, "name"))
			json_array_append_new(
				out, json_pack("{s:O?,s:s}", "name", json_object_get(row, "name"),
					     "link", "gone"));
	}
	return out;
}

/* ---- workers ---- */

static json_t *worker_row(const json_t *before, const json_t *after, double seconds)
{
	json_t *out = json_object();
	uint64_t busy, idle, packets;

	copy(out, after, "worker");
	copy(out, after, "cpu");
	bool known = grown(before, after, "busy_cycles", &busy);
	if (known && grown(before, after, "idle_cycles", &idle) && (busy || idle))
		json_object_set_new(out, "busy_percent",
			rates_number(100.0 * (double)busy / ((double)busy + (double)idle)));
	put_rate(out, "rx_packets_s", before, after, "rx_packets", 1, seconds);
	put_rate(out, "tx_packets_s", before, after, "tx_packets", 1, seconds);
	if (known && grown(before, after, "rx_packets", &packets) && packets)
		json_object_set_new(
			out, "cycles_per_packet", rates_number((double)busy / (double)packets));
	copy(out, after, "groups");
	return out;
}

/* ---- groups ---- */

static void put_waiting(json_t *out, const json_t *before, const json_t *after)
{
	const json_t *ranks = json_object_get(after, "missing_ranks");
	json_t *some = json_array(), *rank;
	size_t i;

	json_array_foreach(ranks, i, rank)
	{
		if (i < RATES_MAX_WAITED_FOR)
			json_array_append(some, rank);
	}
	json_object_set_new(out, "missing", json_integer((json_int_t)json_array_size(ranks)));
	json_object_set_new(out, "waits_for", some);
	json_object_set_new(out, "stuck",
		json_boolean(
			before && after &&
			json_equal(json_object_get(before, "psn"), json_object_get(after, "psn"))));
}

static json_t *group_row(
	const json_t *row, const json_t *before, const json_t *after, double seconds)
{
	const char *name = json_string_value(json_object_get(row, "name"));
	const json_t *was = same(json_object_get(before, "groups"), row, "name");
	json_t *out = json_object();
	uint64_t by = 1;

	/* Another of the same name. */
	if (!json_equal(json_object_get(was, "generation"), json_object_get(row, "generation")) ||
		!json_equal(json_object_get(was, "group"), json_object_get(row, "group")))
		was = NULL;
	copy(out, row, "name");
	copy(out, row, "state");
	copy(out, row, "operations");
	put_rate(out, "operations_s", was, row, "operations", 1, seconds);
	/* A PSN comes again after 2^24 packets: only while no operation begins it is the same. */
	const bool still = grown(was, row, "operations", &by) && !by;
	put_waiting(out,
		still && name ? json_object_get(json_object_get(before, "waiting"), name) : NULL,
		name ? json_object_get(json_object_get(after, "waiting"), name) : NULL);
	return out;
}

static void put_groups(json_t *out, const json_t *before, const json_t *after, double seconds)
{
	const json_t *groups = json_object_get(after, "groups");
	const size_t n = json_array_size(groups);
	json_t *rows = json_array();

	for (size_t i = 0; i < n && i < RATES_MAX_GROUPS; i++)
		json_array_append_new(
			rows, group_row(json_array_get(groups, i), before, after, seconds));
	json_object_set_new(out, "groups", rows);
	if (n > RATES_MAX_GROUPS)
		json_object_set_new(
			out, "groups_left_out", json_integer((json_int_t)(n - RATES_MAX_GROUPS)));
}

/* ---- losses ---- */

/* A reason that was not listed before had not occurred; one that counts less was cleared, and what
 * it counts has come since. */
static void put_drops(json_t *out, const json_t *before, const json_t *after, double seconds)
{
	json_t *rows = json_array(), *row;
	uint64_t sum = 0;
	size_t i;

	json_array_foreach(after, i, row)
	{
		uint64_t was = 0, is = 0, by;

		ctl_get_u64(json_object_get(same(before, row, "reason"), "count"), &was);
		ctl_get_u64(json_object_get(row, "count"), &is);
		if (rates_grown(was, is, &by))
			by = is;
		if (!by)
			continue;
		sum += by;
		json_array_append_new(rows,
			json_pack("{s:O?,s:o,s:o}", "reason", json_object_get(row, "reason"),
				"count", ctl_u64(is), "per_s", rates_number((double)by / seconds)));
	}
	json_object_set_new(out, "drops_s", rates_number((double)sum / seconds));
	json_object_set_new(out, "drops", rows);
}

/* ---- all of it ---- */

/* Its uptime went back, or fell behind by more than what rounding explains. */
static bool was_restarted(const json_t *before, const json_t *after, double seconds)
{
	uint64_t was = 0, is = 0;

	ctl_get_u64(json_object_get(json_object_get(before, "status"), "uptime_s"), &was);
	ctl_get_u64(json_object_get(json_object_get(after, "status"), "uptime_s"), &is);
	return is < was || (double)(is - was) + 2 < seconds;
}

json_t *rates_between(const json_t *before, const json_t *after)
{
	uint64_t from, to;
	json_t *out, *workers = json_object_get(after, "workers"), *rows, *row;
	size_t i;

	if (ctl_get_u64(json_object_get(before, "ns"), &from) ||
		ctl_get_u64(json_object_get(after, "ns"), &to) || to <= from)
		return NULL;
	const double seconds = (double)(to - from) / 1e9;
	const bool restarted = was_restarted(before, after, seconds);
	const json_t *was = restarted ? NULL : before;

	out = json_object();
	copy(out, after, "time");
	copy(out, json_object_get(after, "status"), "name");
	json_object_set_new(out, "seconds", rates_number(seconds));
	json_object_set_new(out, "restarted", json_boolean(restarted));
	json_object_set_new(out, "ports",
		port_rows(json_object_get(was, "ports"), json_object_get(after, "ports"), seconds));
	rows = json_array();
	json_array_foreach(workers, i, row) json_array_append_new(rows,
		worker_row(same(json_object_get(was, "workers"), row, "worker"), row, seconds));
	if (workers)
		json_object_set(out, "workers", rows);
	json_decref(rows);
	put_groups(out, was, after, seconds);
	if (was)
		put_drops(out, json_object_get(was, "drops"), json_object_get(after, "drops"),
			seconds);
	else
		json_object_set_new(out, "drops", json_array());
	return out;
}
