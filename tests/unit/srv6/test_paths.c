/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's file of paths: what is found in one, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/srv6/paths.h"

#define COPY(f, w, u, s) "{'from':" #f ",'width':" #w ",'usid':" #u ",'shift':" #s "}"
#define PLANES "'planes':[{'plane':1,'port':'a'},{'plane':2,'port':'b'}]"
#define NEAR                                                                 \
	"{'prefix':'fd77::1:0/112','address':'fcbb:bb00:12:800::','hops':2," \
	"'copies':[" COPY(8, 4, 0, 12) "," COPY(8, 4, 1, 12) "],"            \
							     "'downlink':" COPY(0, 10, 1, 0) "}"
#define FAR                                                                                  \
	"{'prefix':'fd77::/16','address':'fcbb:bb00:12:400:155:800::','hops':4,"             \
	"'copies':[" COPY(8, 4, 0, 12) "," COPY(8, 4, 1, 12) "," COPY(8, 4, 2, 12) "," COPY( \
		8, 4, 3, 12) "," COPY(0, 8, 1, 0) "],'downlink':" COPY(0, 10, 3, 0) "}"
#define HEAD "'name':'h0','address':'fd77::1:0','plane_shift':8,"
#define WHOLE "{'#':'x'," HEAD "'uplinks':3," PLANES ",'rows':[" FAR "," NEAR "]}"

static int parse(const char *text, struct srv6_paths **p, char err[SRV6_ERR_LEN])
{
	char *copy = strdup(text);
	json_error_t where;
	json_t *json;
	int rc;

	for (char *c = copy; *c; c++)
		if (*c == '\'')
			*c = '"';
	json = json_loads(copy, 0, &where);
	if (json == NULL)
		fail_msg("%s: %s", copy, where.text);
	free(copy);
	rc = srv6_paths_parse(json, p, err);
	json_decref(json);
	return rc;
}

static struct wire_ip ip(const char *text)
{
	struct wire_ip made;

	assert_int_equal(wire_ip_parse(text, &made), 0);
	return made;
}

static void is_path(const struct srv6_template *t, uint32_t ev, const char *want)
{
	char text[WIRE_IP_STRLEN];
	struct wire_ip made;

	assert_int_equal(srv6_template_expand(t, ev, &made), 0);
	assert_string_equal(wire_ip_format(&made, text, sizeof(text)), want);
}

/* The row of the longest prefix; its EVs, plane by plane. */
static void found(void **state)
{
	static const uint32_t far[] = {0x100, 0x101, 0x102, 0x200, 0x201, 0x202};
	struct wire_ip there = ip("fd77::2:7f"), here = ip("fd77::1:1"), nowhere = ip("fd78::1");
	char err[SRV6_ERR_LEN] = "";
	struct srv6_template t;
	struct srv6_paths *p;
	uint32_t ev;

	(void)state;
	if (parse(WHOLE, &p, err) != 0)
		fail_msg("%s", err);
	assert_int_equal(p->n_planes, 2);
	assert_string_equal(p->plane[1].port, "b");
	assert_int_equal(srv6_paths_find(p, &there, &t), 0);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(srv6_paths_ev(p, &t, i, &ev), 0);
		assert_int_equal(ev, far[i]);
	}
	assert_int_equal(srv6_paths_ev(p, &t, 6, &ev), -ENOENT);
	is_path(&t, 0x202, "fcbb:bb00:2012:2402:2155:287f::");
	assert_int_equal(srv6_paths_find(p, &here, &t), 0);
	assert_int_equal(srv6_paths_ev(p, &t, 1, &ev), 0);
	assert_int_equal(ev, 0x200);
	is_path(&t, ev, "fcbb:bb00:2012:2801::");
	assert_int_equal(srv6_paths_ev(p, &t, 2, &ev), -ENOENT);
	assert_int_equal(srv6_paths_find(p, &nowhere, &t), -ENOENT);
	free(p);
}

static void refused(void **state)
{
	static const struct {
		const char *text, *said;
	} bad[] = {
		{"{" HEAD "'uplinks':3," PLANES "}", "rows: must be a list of 1..4096"},
		{"{'x':1," HEAD "'uplinks':3," PLANES ",'rows':[" NEAR "]}", "x: unknown field"},
		{"{" HEAD "'uplinks':0," PLANES ",'rows':[" NEAR "]}",
			"uplinks: must be an integer 1..1024"},
		{"{" HEAD "'uplinks':257," PLANES ",'rows':[" NEAR "]}",
			"uplinks: more than there is room for below plane_shift"},
		{"{" HEAD "'uplinks':3,'planes':[],'rows':[" NEAR "]}",
			"planes: must be a list of 1..16"},
		{"{" HEAD "'uplinks':3,'planes':[{'plane':256,'port':'a'}],'rows':[" NEAR "]}",
			"planes[0].plane: must be an integer 0..255"},
		{"{" HEAD "'uplinks':3,'planes':[{'plane':1,'port':'a'},{'plane':1,'port':'b'}],"
		 "'rows':[" NEAR "]}",
			"planes[1].plane: is there twice"},
		{"{" HEAD "'uplinks':3,'planes':[{'plane':1,'port':''}],'rows':[" NEAR "]}",
			"planes[0].port: must be 1..31 characters"},
		/* An EV with more bits than a copy takes. */
		{"{" HEAD "'uplinks':3,'planes':[{'plane':16,'port':'a'}],'rows':[" NEAR "]}",
			"rows[0].address: EV 0x1000 names no path"},
		{"{" HEAD "'uplinks':3," PLANES
		 ",'rows':[{'prefix':'fd77::/129','address':'fcbb::','hops':1}]}",
			"rows[0].prefix: must be an IPv6 prefix"},
		{"{" HEAD "'uplinks':3," PLANES
		 ",'rows':[{'prefix':'fd77::/16','address':'10.0.0.1','hops':1}]}",
			"rows[0].address: must be an IPv6 address"},
		{"{" HEAD "'uplinks':3," PLANES
		 ",'rows':[{'prefix':'fd77::/16','address':'fcbb:bb00:1::','hops':7}]}",
			"rows[0].hops: must be an integer 1..6"},
		{"{" HEAD "'uplinks':3," PLANES ",'rows':[{'prefix':'fd77::/"
		 "16','address':'fcbb:bb00:1::','hops':1,'copies':[" COPY(8, 17, 0, 0) "]}]}",
			"rows[0].copies[0].width: must be an integer 1..16"},
		{"{" HEAD "'uplinks':3," PLANES ",'rows':[{'prefix':'fd77::/"
		 "16','address':'fcbb:bb00:1::','hops':1,'copies':[" COPY(8, 4, 1, 0) "]}]}",
			"a uSID behind the last hop"},
		{"{" HEAD "'uplinks':3," PLANES ",'rows':[5]}", "must be an object"},
	};
	struct srv6_paths *p = NULL;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char err[SRV6_ERR_LEN] = "";

		assert_int_equal(parse(bad[i].text, &p, err), -EINVAL);
		if (strstr(err, bad[i].said) == NULL)
			fail_msg("%zu: \"%s\" does not say \"%s\"", i, err, bad[i].said);
		assert_null(p);
	}
}

static void no_file(void **state)
{
	char err[SRV6_ERR_LEN] = "";
	struct srv6_paths *p;

	(void)state;
	assert_int_equal(srv6_paths_read("/nonexistent/paths.json", &p, err), -EINVAL);
	assert_non_null(strstr(err, "nonexistent"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(found),
		cmocka_unit_test(refused),
		cmocka_unit_test(no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
