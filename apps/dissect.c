/* SPDX-License-Identifier: BSD-3-Clause */
/* A file of captures, and what is found in it as text. */
#include "apps/dissect.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- as JSON ---- */

static void count(json_t *counts, const char *name)
{
	const json_int_t n = json_integer_value(json_object_get(counts, name));

	json_object_set_new(counts, name, json_integer(n + 1));
}

/* The rest of the file, or -EPROTO. */
static int each(struct pcap_reader *r, uint32_t block, json_t *result, json_t *others,
	struct dissect_ladder *l)
{
	json_t *icrc = json_object_get(result, "icrc");
	struct dissect_packet p;
	struct pcap_frame f;
	unsigned n = 0;
	int rc;

	while ((rc = pcap_next(r, &f)) > 0) {
		dissect_frame(r, &f, ++n, block, &p);
		const char *verdict = json_string_value(json_object_get(p.json, "icrc"));

		if (verdict)
			count(icrc, verdict);
		if (json_object_get(p.json, "refused"))
			count(result, "refused");
		if (p.has_psn)
			dissect_ladder_add(l, &p);
		else
			json_array_append_new(others, p.json);
	}
	json_object_set_new(result, "frames", json_integer(n));
	return rc;
}

json_t *dissect_file(const void *data, size_t len, uint32_t block, char err[DISSECT_ERR])
{
	struct pcap_reader *r = malloc(sizeof(*r));
	struct dissect_ladder *l = dissect_ladder_new();
	json_t *result = json_pack("{s:i,s:{s:i,s:i,s:i,s:i},s:i}", "frames", 0, "icrc", "ok", 0,
		"bad", 0, "cut", 0, "trimmed", 0, "refused", 0);
	json_t *others = json_array(), *connections;
	uint64_t left_out = 0;
	int rc;

	snprintf(err, DISSECT_ERR, "out of memory");
	rc = r && l ? pcap_open(r, data, len) : -1;
	if (!rc)
		rc = each(r, block, result, others, l);
	connections = l ? dissect_ladder_end(l, &left_out) : json_array();
	json_object_set_new(result, "left_out", json_integer((json_int_t)left_out));
	json_object_set_new(result, "connections", connections);
	json_object_set_new(result, "others", others);
	if (rc && r && l)
		snprintf(err, DISSECT_ERR, "offset %zu: %s", r->bad_at, r->bad);
	free(r);
	if (!rc)
		return result;
	json_decref(result);
	return NULL;
}

/* ---- as text ---- */

/* What has its own place in a line. */
static bool has_place(const char *key)
{
	static const char *const places[] = {"n", "ns", "way", "op", "psn", "src", "dst", "marks"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (!strcmp(places[i], key))
			return true;
	return false;
}

static void put_value(FILE *out, const json_t *v);

static void put_members(FILE *out, const json_t *o)
{
	const char *key, *sep = "";
	json_t *v;

	json_object_foreach((json_t *)o, key, v)
	{
		if (json_is_string(v) && strchr(json_string_value(v), ' '))
			fprintf(out, "%s%s=\"%s\"", sep, key, json_string_value(v));
		else {
			fprintf(out, "%s%s=", sep, key);
			put_value(out, v);
		}
		sep = " ";
	}
}

static void put_value(FILE *out, const json_t *v)
{
	json_t *item;
	size_t i;

	if (json_is_string(v)) {
		fputs(json_string_value(v), out);
	} else if (json_is_integer(v)) {
		fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	} else if (json_is_array(v)) {
		json_array_foreach(v, i, item)
		{
			fputs(i ? "," : "", out);
			put_value(out, item);
		}
	} else if (json_is_object(v)) {
		fputc('(', out);
		put_members(out, v);
		fputc(')', out);
	} else {
		fputs(json_is_true(v) ? "true" : "false", out);
	}
}

static const char *text_of(const json_t *o, const char *name)
{
	const char *text = json_string_value(json_object_get(o, name));

	return text ? text : "";
}

/* Where it stands, seconds since the first of them, what it is. */
static void put_packet(FILE *out, const json_t *p, json_int_t start)
{
	const json_int_t ns = json_integer_value(json_object_get(p, "ns")) - start;
	const char *way = text_of(p, "way"), *key;
	json_t *marks = json_object_get(p, "marks"), *rest = json_object(), *v;
	size_t i;

	json_object_foreach((json_t *)p, key, v) if (!has_place(key)) json_object_set(rest, key, v);
	fprintf(out, "%6" JSON_INTEGER_FORMAT " %13.9f ",
		json_integer_value(json_object_get(p, "n")), (double)ns / 1e9);
	if (way[0])
		fprintf(out, "%s %-8" JSON_INTEGER_FORMAT " %s ", way[0] == 'a' ? "---->" : "<----",
			json_integer_value(json_object_get(p, "psn")), text_of(p, "op"));
	else
		fprintf(out, "%s > %s %s%s", text_of(p, "src"), text_of(p, "dst"), text_of(p, "op"),
			json_object_get(p, "op") ? " " : "");
	put_members(out, rest);
	json_array_foreach(marks, i, v) fprintf(out, " [%s]", json_string_value(v));
	fputc('\n', out);
	json_decref(rest);
}

static void put_end(FILE *out, const json_t *end)
{
	fprintf(out, "%s qp %s", text_of(end, "ip"),
		json_object_get(end, "qp") ? text_of(end, "qp") : "?");
}

static void put_counts(FILE *out, const char *what, const json_t *counts)
{
	if (!counts)
		return;
	fprintf(out, "  %s ", what);
	put_members(out, counts);
	fputc('\n', out);
}

void dissect_text(FILE *out, const json_t *result)
{
	const json_t *others = json_object_get(result, "others");
	json_t *c, *p;
	size_t i, k;

	fprintf(out, "frames=%" JSON_INTEGER_FORMAT " icrc=",
		json_integer_value(json_object_get(result, "frames")));
	put_value(out, json_object_get(result, "icrc"));
	fprintf(out, " refused=%" JSON_INTEGER_FORMAT " left_out=%" JSON_INTEGER_FORMAT "\n",
		json_integer_value(json_object_get(result, "refused")),
		json_integer_value(json_object_get(result, "left_out")));
	json_array_foreach(json_object_get(result, "connections"), i, c)
	{
		const json_t *packets = json_object_get(c, "packets");
		const json_int_t start =
			json_integer_value(json_object_get(json_array_get(packets, 0), "ns"));

		fprintf(out, "\nconnection %zu: a ", i + 1);
		put_end(out, json_object_get(c, "a"));
		fputs(", b ", out);
		put_end(out, json_object_get(c, "b"));
		fprintf(out, ", from %lld.%09lld\n", (long long)start / 1000000000,
			(long long)start % 1000000000);
		put_counts(out, "a>b", json_object_get(c, "to_b"));
		put_counts(out, "b>a", json_object_get(c, "to_a"));
		json_array_foreach(packets, k, p) put_packet(out, p, start);
	}
	if (!json_array_size(others))
		return;
	fputs("\nothers:\n", out);
	json_array_foreach(others, i, p) put_packet(
		out, p, json_integer_value(json_object_get(json_array_get(others, 0), "ns")));
}
