/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/srv6/paths.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { EV_BITS = 32, IP6_BITS = 128, MAX_ROWS = 4096, WHERE_LEN = 48 };

static int fail(char err[SRV6_ERR_LEN], const char *where, const char *what)
{
	snprintf(err, SRV6_ERR_LEN, "%.40s%s%.110s", where, where[0] ? "." : "", what);
	return -EINVAL;
}

static int known(
	const json_t *obj, const char *where, const char *const *keys, char err[SRV6_ERR_LEN])
{
	const char *key;
	json_t *value;

	if (!json_is_object(obj)) {
		snprintf(err, SRV6_ERR_LEN, "%s%smust be an object", where, where[0] ? ": " : "");
		return -EINVAL;
	}
	json_object_foreach((json_t *)(uintptr_t)obj, key, value)
	{
		unsigned i = 0;
		char what[64];

		while (keys[i] != NULL && strcmp(keys[i], key) != 0)
			i++;
		if (keys[i] != NULL || key[0] == '#')
			continue;
		snprintf(what, sizeof(what), "%.40s: unknown field", key);
		return fail(err, where, what);
	}
	return 0;
}

/* -1 and the reason in err, or the number. */
static int number(const json_t *obj, const char *where, const char *key, int min, int max,
	char err[SRV6_ERR_LEN])
{
	const json_t *v = json_object_get(obj, key);
	json_int_t n = json_integer_value(v);
	char what[80];

	if (json_is_integer(v) && n >= min && n <= max)
		return (int)n;
	snprintf(what, sizeof(what), "%s: must be an integer %d..%d", key, min, max);
	fail(err, where, what);
	return -1;
}

static int text(const json_t *obj, const char *where, const char *key, char out[SRV6_NAME_LEN],
	char err[SRV6_ERR_LEN])
{
	const char *s = json_string_value(json_object_get(obj, key));
	char what[80];

	if (s != NULL && s[0] != '\0' && strlen(s) < SRV6_NAME_LEN) {
		snprintf(out, SRV6_NAME_LEN, "%s", s);
		return 0;
	}
	snprintf(what, sizeof(what), "%s: must be 1..%d characters", key, SRV6_NAME_LEN - 1);
	return fail(err, where, what);
}

/* An IPv6 address; bits != NULL: and the length of a prefix behind a slash. */
static int ip6(const json_t *obj, const char *where, const char *key, struct wire_ip *ip,
	uint8_t *bits, char err[SRV6_ERR_LEN])
{
	const char *s = json_string_value(json_object_get(obj, key));
	char addr[WIRE_IP_STRLEN] = "", what[80];
	unsigned n = IP6_BITS;
	int end = 0;

	if (s != NULL && strlen(s) < sizeof(addr) + 4 &&
		(bits == NULL ? sscanf(s, "%45[0-9a-fA-F:]%n", addr, &end) == 1
			      : sscanf(s, "%45[0-9a-fA-F:]/%3u%n", addr, &n, &end) == 2) &&
		s[end] == '\0' && n <= IP6_BITS && inet_pton(AF_INET6, addr, ip->b) == 1) {
		if (bits != NULL)
			*bits = (uint8_t)n;
		return 0;
	}
	snprintf(what, sizeof(what), "%s: must be an IPv6 %s", key, bits ? "prefix" : "address");
	return fail(err, where, what);
}

static int parse_copy(
	const json_t *obj, const char *where, struct srv6_copy *c, char err[SRV6_ERR_LEN])
{
	static const char *const keys[] = {"from", "width", "usid", "shift", NULL};
	int from, width, usid, shift;

	if (known(obj, where, keys, err) < 0 ||
		(from = number(obj, where, "from", 0, EV_BITS - 1, err)) < 0 ||
		(width = number(obj, where, "width", 1, SRV6_USID_BITS, err)) < 0 ||
		(usid = number(obj, where, "usid", 0, SRV6_USIDS - 1, err)) < 0 ||
		(shift = number(obj, where, "shift", 0, SRV6_USID_BITS - 1, err)) < 0)
		return -EINVAL;
	*c = (struct srv6_copy){(uint8_t)from, (uint8_t)width, (uint8_t)usid, (uint8_t)shift};
	return 0;
}

/* Every EV of the node names a path, of which no hop is 0. */
static int check_evs(const struct srv6_paths *p, const struct srv6_template *t, const char *where,
	char err[SRV6_ERR_LEN])
{
	struct wire_ip ip;
	uint32_t ev;

	for (unsigned i = 0; srv6_paths_ev(p, t, i, &ev) == 0; i++) {
		char what[80];

		if (srv6_template_expand(t, ev, &ip) == 0)
			continue;
		snprintf(what, sizeof(what), "address: EV 0x%x names no path", ev);
		return fail(err, where, what);
	}
	return 0;
}

static int parse_row(const struct srv6_paths *p, const json_t *obj, const char *where,
	struct srv6_row *row, char err[SRV6_ERR_LEN])
{
	static const char *const keys[] = {"prefix", "address", "hops", "copies", "downlink", NULL};
	const json_t *copies = json_object_get(obj, "copies"),
		     *downlink = json_object_get(obj, "downlink");
	struct srv6_template *t = &row->t;
	char in[2 * WHERE_LEN], why[SRV6_ERR_LEN];
	int hops;

	if (known(obj, where, keys, err) < 0 ||
		ip6(obj, where, "prefix", &row->prefix, &row->bits, err) < 0 ||
		ip6(obj, where, "address", &t->address, NULL, err) < 0 ||
		(hops = number(obj, where, "hops", 1, SRV6_USIDS, err)) < 0)
		return -EINVAL;
	t->n_hops = (uint8_t)hops;
	if (!json_is_array(copies) || json_array_size(copies) > SRV6_MAX_COPIES)
		return fail(err, where, "copies: must be a list of at most 16");
	for (size_t i = 0; i < json_array_size(copies); i++) {
		snprintf(in, sizeof(in), "%s.copies[%zu]", where, i);
		if (parse_copy(json_array_get(copies, i), in, &t->copy[t->n_copies++], err) < 0)
			return -EINVAL;
	}
	snprintf(in, sizeof(in), "%s.downlink", where);
	if (downlink != NULL && parse_copy(downlink, in, &t->downlink, err) < 0)
		return -EINVAL;
	if (srv6_template_check(t, why) < 0)
		return fail(err, where, why);
	return check_evs(p, t, where, err);
}

static int parse_planes(struct srv6_paths *p, const json_t *list, char err[SRV6_ERR_LEN])
{
	static const char *const keys[] = {"plane", "port", NULL};
	const size_t n = json_array_size(list);

	if (n == 0 || n > SRV6_MAX_PLANES)
		return fail(err, "", "planes: must be a list of 1..16");
	for (size_t i = 0; i < n; i++) {
		const json_t *obj = json_array_get(list, i);
		char where[WHERE_LEN];
		int plane;

		snprintf(where, sizeof(where), "planes[%zu]", i);
		if (known(obj, where, keys, err) < 0 ||
			(plane = number(obj, where, "plane", 0, UINT8_MAX, err)) < 0 ||
			text(obj, where, "port", p->plane[i].port, err) < 0)
			return -EINVAL;
		p->plane[i].number = (uint8_t)plane;
		for (size_t k = 0; k < i; k++)
			if (p->plane[k].number == plane)
				return fail(err, where, "plane: is there twice");
	}
	p->n_planes = (unsigned)n;
	return 0;
}

static int parse(const json_t *json, struct srv6_paths *p, char err[SRV6_ERR_LEN])
{
	static const char *const keys[] = {
		"name", "address", "plane_shift", "uplinks", "planes", "rows", NULL};
	const json_t *rows = json_object_get(json, "rows");
	int shift, uplinks;

	if (known(json, "", keys, err) < 0 || text(json, "", "name", p->name, err) < 0 ||
		ip6(json, "", "address", &p->address, NULL, err) < 0 ||
		(shift = number(json, "", "plane_shift", 0, EV_BITS - 8, err)) < 0 ||
		(uplinks = number(json, "", "uplinks", 1, SRV6_MAX_UPLINKS, err)) < 0)
		return -EINVAL;
	p->plane_shift = (uint8_t)shift;
	p->uplinks = (uint16_t)uplinks;
	if (p->uplinks > 1u << p->plane_shift)
		return fail(err, "", "uplinks: more than there is room for below plane_shift");
	if (parse_planes(p, json_object_get(json, "planes"), err) < 0)
		return -EINVAL;
	for (size_t i = 0; i < json_array_size(rows); i++) {
		char where[WHERE_LEN];

		snprintf(where, sizeof(where), "rows[%zu]", i);
		if (parse_row(p, json_array_get(rows, i), where, &p->row[p->n_rows++], err) < 0)
			return -EINVAL;
	}
	return 0;
}

int srv6_paths_parse(const json_t *json, struct srv6_paths **out, char err[SRV6_ERR_LEN])
{
	const size_t n = json_array_size(json_object_get(json, "rows"));
	struct srv6_paths *p;
	int rc;

	if (n == 0 || n > MAX_ROWS)
		return fail(err, "", "rows: must be a list of 1..4096");
	p = calloc(1, sizeof(*p) + n * sizeof(p->row[0]));
	if (p == NULL)
		return -ENOMEM;
	rc = parse(json, p, err);
	if (rc == 0)
		*out = p;
	else
		free(p);
	return rc;
}

int srv6_paths_read(const char *file, struct srv6_paths **out, char err[SRV6_ERR_LEN])
{
	json_error_t where;
	json_t *json = json_load_file(file, JSON_REJECT_DUPLICATES, &where);
	int rc;

	if (json == NULL) {
		snprintf(err, SRV6_ERR_LEN, "line %d: %.120s", where.line, where.text);
		return -EINVAL;
	}
	rc = srv6_paths_parse(json, out, err);
	json_decref(json);
	return rc;
}

static bool covers(const struct srv6_row *row, const struct wire_ip *ip)
{
	const unsigned whole = row->bits / 8, rest = row->bits % 8;

	return memcmp(row->prefix.b, ip->b, whole) == 0 &&
	       (rest == 0 || (row->prefix.b[whole] ^ ip->b[whole]) >> (8 - rest) == 0);
}

int srv6_paths_find(const struct srv6_paths *p, const struct wire_ip *dst, struct srv6_template *t)
{
	const struct srv6_row *best = NULL;
	uint32_t downlink = get_be32(dst->b + 12);

	for (unsigned i = 0; i < p->n_rows; i++)
		if (covers(&p->row[i], dst) && (best == NULL || p->row[i].bits > best->bits))
			best = &p->row[i];
	if (best == NULL)
		return -ENOENT;
	downlink &=
		(uint32_t)((UINT64_C(1) << (best->t.downlink.from + best->t.downlink.width)) - 1);
	return srv6_template_specialise(&best->t, downlink, t);
}

int srv6_paths_ev(
	const struct srv6_paths *p, const struct srv6_template *t, unsigned i, uint32_t *ev)
{
	const uint32_t below = (1u << p->plane_shift) - 1;
	const unsigned uplinks = srv6_template_ev_mask(t) & below ? p->uplinks : 1;

	if (i / uplinks >= p->n_planes)
		return -ENOENT;
	*ev = (uint32_t)p->plane[i / uplinks].number << p->plane_shift | i % uplinks;
	return 0;
}
