/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures over the control connection: whose they are, what is told of packets, and inclinectl's
 * files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl/base64.h"
#include "lib/ctl/schema.h"
#include "tests/unit/ctl/cli_helper.h"

/* ---- bytes ---- */

static void expect_text(const void *data, size_t len, const char *text)
{
	json_t *json = ctl_bytes(data, len);
	uint8_t *back = NULL;
	size_t n = 77;

	assert_string_equal(json_string_value(json), text);
	assert_int_equal(ctl_get_bytes(json, &back, &n), 0);
	assert_int_equal(n, len);
	assert_memory_equal(back, data, len);
	free(back);
	json_decref(json);
}

/* RFC 4648, section 10. */
static void test_base64(void **state)
{
	static const char *const bad[] = {
		"Z", "Zg", "Zg=", "Zg===", "=Zg=", "Zm9v Zm9v", "Zm9v\n", "Zm9*", "===="};
	uint8_t *data;
	size_t len;
	json_t *json;

	(void)state;
	expect_text("", 0, "");
	expect_text("f", 1, "Zg==");
	expect_text("fo", 2, "Zm8=");
	expect_text("foo", 3, "Zm9v");
	expect_text("foob", 4, "Zm9vYg==");
	expect_text("\0\xff", 2, "AP8=");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		json = json_string(bad[i]);
		if (ctl_get_bytes(json, &data, &len) != -EINVAL)
			fail_msg("%s", bad[i]);
		json_decref(json);
	}
	assert_int_equal(ctl_get_bytes(NULL, &data, &len), -EINVAL);
}

/* ---- methods ---- */

#define NO_CAPTURE(method, n)                                                           \
	call_bad(r, method, "{'capture':" #n "}", CTL_REFUSED, "ENOENT", -1, "capture", \
		"capture: this connection has no capture " #n)

static void test_methods(void **state)
{
	struct rpc_fixture *r = ((struct fixture *)*state)->rpc;
	struct agent_peer one = {0}, other = {0};
	json_t *a;

	call_bad(r, "capture.start", "{'port':'p0'}", CTL_REFUSED, "EOPNOTSUPP", -1, NULL,
		"there is no connection that it would end with");
	r->peer = &one;
	call_bad(r, "capture.start", "{'port':'p7'}", CTL_REFUSED, "ENOENT", -1, "port",
		"port: no port is named \"p7\"");
	call_bad(r, "capture.start", "{'port':'p0','ring_kb':129}", CTL_INVALID_PARAMS, "EINVAL",
		-1, "ring_kb", "ring_kb: 129 is no power of two in 128..16384");
	a = call_ok(r, "capture.start",
		"{'port':'p1','dir':'in','snaplen':96,'ring_kb':256,"
		"'filter':[{'code':6,'jt':0,'jf':0,'k':65535}]}");
	assert_int_equal(json_integer_value(json_object_get(a, "capture")), 1);
	json_decref(a);
	assert_int_equal(r->sw->capture_spec.port, 1);
	assert_true(r->sw->capture_spec.in && !r->sw->capture_spec.out);
	assert_int_equal(r->sw->capture_spec.snaplen, 96);
	assert_int_equal(r->sw->capture_spec.ring_bytes, 256 << 10);
	assert_int_equal(r->sw->capture_spec.n_filter, 1);
	json_decref(call_ok(r, "capture.start", "{'port':'p0'}"));
	assert_true(r->sw->capture_spec.in && r->sw->capture_spec.out);
	assert_int_equal(r->sw->capture_spec.snaplen, 65535);
	assert_int_equal(r->sw->capture_spec.ring_bytes, 4 << 20);
	/* Nobody else's. */
	r->peer = &other;
	NO_CAPTURE("capture.read", 1);
	NO_CAPTURE("capture.stop", 1);
	r->peer = NULL;
	NO_CAPTURE("capture.read", 1);
	a = call_ok(r, "capture.list", NULL);
	assert_int_equal(json_array_size(json_object_get(a, "captures")), 2);
	json_decref(a);
	r->peer = &one;
	r->sw->capture_packets = 3;
	a = call_ok(r, "capture.read", "{'capture':1,'limit':2}");
	json_object_del(json_array_get(json_object_get(a, "packets"), 1), "data");
	json_t *first = json_array_get(json_object_get(a, "packets"), 0);
	assert_int_equal(json_string_length(json_object_get(first, "data")), 80);
	json_object_del(first, "data");
	expect_json(a, "{'packets':[{'ns':1000,'dir':'in','len':100,'drop':'ip_ttl'},"
		       "{'ns':1001,'dir':'in','len':100,'outcome':'inc_done'}],"
		       "'captured':3,'dropped':7,'filtered':9}");
	expect_json(call_ok(r, "capture.stop", "{'capture':1}"),
		"{'captured':3,'dropped':7,'filtered':9}");
	NO_CAPTURE("capture.stop", 1);
	assert_int_equal(r->sw->capture[0], 0);
	r->peer = NULL;
}

/* Other people's data are not for tenants. */
static void test_tenant(void **state)
{
	struct rpc_fixture *r = ((struct fixture *)*state)->rpc;
	const struct ctl_who who = {.role = CTL_TENANT, .name = "alice"};
	struct agent_peer peer = {0};

	agent_peer_came(&peer, &who, false);
	r->peer = &peer;
	call_bad(r, "capture.start", "{'port':'p0'}", CTL_NOT_ALLOWED, "EPERM", -1, NULL,
		"not allowed with a tenant's certificate");
	assert_int_equal(r->sw->last_capture, 0);
	r->peer = NULL;
}

/* They end with their connection, at once or as soon as workers let go. */
static void test_gone(void **state)
{
	struct rpc_fixture *r = ((struct fixture *)*state)->rpc;
	struct agent_peer one = {0}, other = {0};

	r->peer = &one;
	json_decref(call_ok(r, "capture.start", "{'port':'p0'}"));
	r->peer = &other;
	json_decref(call_ok(r, "capture.start", "{'port':'p0'}"));
	r->peer = NULL;
	agent_peer_gone(r->agent, &one);
	assert_int_equal(r->sw->capture[0], 0);
	assert_int_equal(r->sw->capture[1], 2);
	r->sw->capture_sticks = true;
	agent_peer_gone(r->agent, &other);
	agent_tick(r->agent, 1);
	assert_int_equal(r->sw->capture[1], 2);
	/* A connection at the same place is another. */
	r->peer = &other;
	NO_CAPTURE("capture.read", 2);
	r->peer = NULL;
	r->sw->capture_sticks = false;
	agent_tick(r->agent, 2);
	assert_int_equal(r->sw->capture[1], 0);
}

/* ---- files ---- */

static void read_file(struct fixture *f, const char *name, uint8_t **data, size_t *len)
{
	char path[192];
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s", f->rpc->dir, name);
	in = fopen(path, "r");
	if (!in)
		fail_msg("%s", path);
	*data = calloc(1, 1 << 20);
	*len = fread(*data, 1, 1 << 20, in);
	fclose(in);
	unlink(path);
}

/* Blocks of this type; each length is the same at both ends, and they fill the file. */
static unsigned blocks(const uint8_t *data, size_t len, uint32_t type)
{
	unsigned n = 0;

	for (size_t at = 0; at < len;) {
		uint32_t head[2], again;

		assert_true(len - at >= 12);
		memcpy(head, data + at, 8);
		assert_true(head[1] >= 12 && head[1] % 4 == 0 && head[1] <= len - at);
		memcpy(&again, data + at + head[1] - 4, 4);
		assert_int_equal(again, head[1]);
		n += head[0] == type;
		at += head[1];
	}
	return n;
}

static bool contains(const uint8_t *data, size_t len, const char *text)
{
	return memmem(data, len, text, strlen(text)) != NULL;
}

static void test_file(void **state)
{
	struct fixture *f = *state;
	struct agent_peer one = {0};
	char line[256];
	uint8_t *data;
	size_t len;

	f->rpc->peer = &one;
	f->rpc->sw->capture_packets = 5;
	snprintf(line, sizeof(line), "capture p0 %s/a.pcapng --filter arp -s 96", f->rpc->dir);
	run_ok(f, line);
	assert_non_null(strstr(f->out, "packets   5\n"));
	assert_non_null(strstr(f->out, "dropped   7\n"));
	assert_true(f->rpc->sw->capture_spec.n_filter >= 4);
	assert_int_equal(f->rpc->sw->capture_spec.snaplen, 96);
	read_file(f, "a.pcapng", &data, &len);
	assert_int_equal(blocks(data, len, 0x0a0d0d0a), 1);
	assert_int_equal(blocks(data, len, 1), 1);
	assert_int_equal(blocks(data, len, 6), 5);
	assert_int_equal(blocks(data, len, 5), 1);
	assert_true(contains(data, len, "drop ip_ttl") && contains(data, len, "outcome inc_done"));
	assert_true(contains(data, len, "p0") && contains(data, len, "arp"));
	free(data);
	assert_int_equal(f->rpc->sw->capture[0], 0);
	f->rpc->peer = NULL;
}

/* So many, though more are there; to standard output; with --json. */
static void test_count(void **state)
{
	struct fixture *f = *state;
	struct agent_peer one = {0};

	f->rpc->peer = &one;
	f->rpc->sw->capture_packets = 2000;
	assert_int_equal(run(f, "capture p0 - -c 700 --json"), CLI_OK);
	assert_int_equal(blocks((uint8_t *)f->out, f->out_len - 1, 6), 700);
	json_t *s = json_loads(f->err, 0, NULL);
	assert_int_equal(json_integer_value(json_object_get(s, "packets")), 700);
	assert_int_equal(json_integer_value(json_object_get(s, "bytes")), f->out_len - 1);
	json_decref(s);
	assert_int_equal(f->rpc->sw->capture[0], 0);
	f->rpc->peer = NULL;
}

/* The last two of as many files as it takes. */
static void test_ring_of_files(void **state)
{
	struct fixture *f = *state;
	struct agent_peer one = {0};
	char line[256];
	unsigned n[2];

	f->rpc->peer = &one;
	f->rpc->sw->capture_packets = 25000;
	snprintf(line, sizeof(line), "capture p0 %s/ring.pcapng -c 25000 -C 1 -W 2", f->rpc->dir);
	run_ok(f, line);
	assert_non_null(strstr(f->out, "packets   25000\n"));
	for (unsigned i = 0; i < 2; i++) {
		char name[32];
		uint8_t *data;
		size_t len;

		snprintf(name, sizeof(name), "ring-%u.pcapng", i);
		read_file(f, name, &data, &len);
		n[i] = blocks(data, len, 6);
		assert_int_equal(blocks(data, len, 5), 1);
		assert_true(n[i] > 0 && len < 1000400);
		free(data);
	}
	assert_non_null(strstr(f->out, "ring-"));
	f->rpc->peer = NULL;
}

/* A disk that is full ends it at once and is told once, also while packets keep coming. */
static void test_disk_full(void **state)
{
	struct fixture *f = *state;
	struct agent_peer one = {0};

	f->rpc->peer = &one;
	f->rpc->sw->capture_packets = 5000;
	run_bad(f, "capture p0 /dev/full", CLI_FAILED,
		"error: capture: /dev/full: No space left on device\n");
	assert_true(f->rpc->sw->capture_given <= 500);
	assert_int_equal(f->rpc->sw->capture[0], 0);
	f->rpc->peer = NULL;
}

static void test_words(void **state)
{
	static const struct {
		const char *line, *err;
	} cases[] = {
		{"capture", "wants a port and a file"},
		{"capture p0", "wants a port and a file"},
		{"capture p0 f more", "more: is one word too many"},
		{"capture p0 f -c", "-c: wants a value"},
		{"capture p0 f -c none", "-c: none: must be an integer above 0"},
		{"capture p0 f -W 3", "-W: wants -C, the size of a file"},
		{"capture p0 - -C 1", "-C: standard output is one file"},
		{"capture p0 f --all", "--all: is not an option"},
		{"capture p0 f --dir up", "dir: \"up\" must be in or out or both"},
		{"capture p0 f -s 70000", "snaplen: 70000 is not in 1..65535"},
	};
	struct fixture *f = *state;
	struct agent_peer one = {0};
	char want[160];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(want, sizeof(want), "error: capture: %s\n", cases[i].err);
		run_bad(f, cases[i].line, CLI_USAGE, want);
	}
	assert_int_equal(run(f, "capture p0 f --filter nonsense"), CLI_USAGE);
	assert_memory_equal(f->err, "error: capture: --filter: ", 26);
	f->rpc->peer = &one;
	run_bad(f, "capture p9 /nowhere/f", CLI_FAILED,
		"error: capture: port: no port is named \"p9\"\n");
	run_bad(f, "capture p0 /nowhere/f", CLI_FAILED,
		"error: capture: /nowhere/f: No such file or directory\n");
	assert_int_equal(f->rpc->sw->capture[0], 0);
	f->rpc->peer = NULL;
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_base64),
		T(test_methods),
		T(test_tenant),
		T(test_gone),
		T(test_file),
		T(test_count),
		T(test_ring_of_files),
		T(test_disk_full),
		T(test_words),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
