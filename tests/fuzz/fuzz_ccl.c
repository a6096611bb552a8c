/* SPDX-License-Identifier: BSD-3-Clause */
/* What CommLib hears from others before and beside the data: hellos, addresses in a ring, control
 * messages, lines of the bootstrap, and what switches answer at their control sockets. The first
 * byte says which. Whatever comes is taken or refused with a reason, groups and rings are made on
 * all switches or on none, and so are leases, however requests and answers are lost. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/ccl/boot_peer.h"
#include "lib/ccl/hello.h"
#include "lib/ccl/install.h"
#include "lib/ccl/lease.h"
#include "lib/ccl/msg.h"
#include "lib/ccl/rings.h"
#include "lib/ctl/client.h"
#include "tests/fuzz/fuzz.h"

enum { N_SWITCHES = 2, N_RANKS = 3, WAIT_MS = 20000 };

static const char group_text[] =
	"{\"name\":\"g\",\"bootstrap\":\"unix:/b\",\"mode\":\"II\",\"mtu\":1024,\"M\":4,\"W\":8,"
	"\"timeout_ms\":1000,\"lease\":\"l\",\"ranks\":[{\"ip\":\"10.0.0.1\"},{\"ip\":\"10.0.0.2\"}"
	",{\"ip\":\"10.0.0.3\"}],\"switches\":[{\"name\":\"s\",\"socket\":\"/s\",\"ip\":\"10.0.0."
	"9\","
	"\"parent\":null,\"children\":[{\"switch\":\"l\",\"port\":\"p\"},{\"rank\":2,\"port\":"
	"\"q\"}"
	"]}"
	",{\"name\":\"l\",\"socket\":\"/l\",\"ip\":\"10.0.0.8\",\"parent\":\"s\",\"parent_port\":"
	"\"u\",\"children\":[{\"rank\":0,\"port\":\"a\"},{\"rank\":1,\"port\":\"b\"}]}]}";

static struct ccl_group *the_group(void)
{
	char err[CCL_ERR_LEN];
	json_t *json = json_loads(group_text, 0, NULL);
	struct ccl_group *group;

	fuzz_check(ccl_group_parse(json, &group, err) == 0, "the group file is right");
	json_decref(json);
	return group;
}

static void refused(int rc, const char *err, size_t cap)
{
	fuzz_check(rc < 0, "a refusal is an error");
	fuzz_check(memchr(err, '\0', cap) != NULL && err[0] != '\0', "with a reason");
}

/* ---- switches, in the place of lib/ctl/client.c: a line of the input for every call ---- */

struct ctl_client {
	unsigned at; /* switch */
	unsigned made, holds;
	bool told; /* to release, or it was tried */
};

static struct ctl_client switches[N_SWITCHES];
static const char *lines, *lines_end;

/* "!x": a failure x; else what is answered. Behind the end all goes well. */
static const char *next_line(size_t *len)
{
	const char *line = lines,
		   *end = line ? memchr(line, '\n', (size_t)(lines_end - line)) : NULL;

	*len = line ? (size_t)((end ? end : lines_end) - line) : 0;
	lines = end ? end + 1 : NULL;
	return line ? line : "";
}

static int failure(struct ctl_error *e, int rc, int code)
{
	*e = (struct ctl_error){.code = code, .index = -1, .msg = "as the input wants it"};
	return rc;
}

int ctl_connect(const char *path, unsigned ms, struct ctl_client **client, struct ctl_error *e)
{
	(void)ms;
	*client = &switches[strcmp(path, "/s") != 0];
	(*client)->told |= (*client)->holds; /* a connection that is made anew is for a release */
	if (lines && lines + 1 < lines_end && lines[0] == '!' && lines[1] == 'c') {
		size_t ignored;

		next_line(&ignored);
		return failure(e, -ECONNREFUSED, 0);
	}
	return 0;
}

int ctl_connect_over(const struct ctl_io *io, const char *path, unsigned ms,
	struct ctl_client **client, struct ctl_error *e)
{
	(void)io;
	return ctl_connect(path, ms, client, e);
}

int ctl_connect_begin(
	const struct ctl_io *io, const char *path, struct ctl_client **client, struct ctl_error *e)
{
	return ctl_connect_over(io, path, 0, client, e);
}

int ctl_connected(struct ctl_client *client, struct ctl_error *e)
{
	(void)client, (void)e;
	return 0;
}

static int64_t waited_ms; /* nothing else takes time */

static int64_t no_time(void *arg)
{
	(void)arg;
	return waited_ms;
}

static void wait_ms(void *arg, unsigned ms)
{
	(void)arg;
	waited_ms += ms;
}

const struct ctl_io ctl_sockets = {.now_ms = no_time, .sleep_ms = wait_ms};

void ctl_close(struct ctl_client *client)
{
	(void)client;
}

bool ctl_is_open(const struct ctl_client *client)
{
	(void)client;
	return true;
}

int ctl_fd(const struct ctl_client *client)
{
	(void)client;
	return -1;
}

static void carry_out(struct ctl_client *c, const char *method)
{
	if (strcmp(method, "lease.acquire") == 0)
		c->holds = 1;
	else if (strcmp(method, "lease.release") == 0)
		c->holds = 0;
	else if (strcmp(method, "group.create") == 0 || strcmp(method, "ring.create") == 0)
		c->made++;
	else if (strcmp(method, "group.delete") == 0 || strcmp(method, "ring.delete") == 0)
		c->made -= c->made > 0;
}

int ctl_call(struct ctl_client *c, const char *method, const json_t *params, unsigned ms,
	json_t **result, struct ctl_error *e)
{
	static const int refusals[] = {-EBUSY, -ENOSPC, -EOPNOTSUPP, -ENOENT, -EINVAL, -EEXIST};
	size_t len;
	const char *line = next_line(&len);
	const char what = len > 1 && line[0] == '!' ? line[1] : '.';

	(void)ms;
	fuzz_check(json_is_object(params), "a request has parameters");
	c->told |= strcmp(method, "lease.release") == 0;
	if (what == 'l') /* the request is lost */
		return failure(e, -ETIMEDOUT, 0);
	if (what >= '0' && what < '6')
		return failure(e, refusals[what - '0'], -32000);
	carry_out(c, method);
	if (what == 'a') /* the answer is */
		return failure(e, -ETIMEDOUT, 0);
	if (result)
		*result = json_loadb(line, len, JSON_DECODE_ANY, NULL);
	if (result && *result == NULL)
		*result = json_object();
	return 0;
}

/* ---- the parsers ---- */

static void hello(const struct ccl_group *g, const json_t *json)
{
	struct ccl_ability ability;
	char err[CCL_ERR_LEN] = "";
	unsigned mtu = 0;
	const int rc = ccl_hello_check(g, 0, json, &ability, &mtu, err);

	if (rc)
		refused(rc, err, sizeof(err));
	else
		fuzz_check(mtu >= 256 && mtu <= 4096, "a port's MTU");
}

static void ring_address(const json_t *json)
{
	struct ccl_ring_address a, again;
	const int rc = ccl_ring_address_parse(json, &a);
	json_t *text;

	fuzz_check(rc == 0 || rc == -EPROTO, "taken or refused");
	if (rc)
		return;
	text = ccl_ring_address_json(&a);
	fuzz_check(a.mtu >= 256 && a.mtu <= 4096, "a port's MTU");
	fuzz_check(ccl_ring_address_parse(text, &again) == 0 && wire_ip_eq(&a.ip, &again.ip),
		"what was read can be written");
	json_decref(text);
}

static void control(const uint8_t *in, size_t size)
{
	uint8_t out[CCL_CTRL_LEN];
	struct ccl_ctrl ctrl;
	uint32_t imm;

	if (size < sizeof(imm) + CCL_CTRL_LEN)
		return;
	memcpy(&imm, in, sizeof(imm));
	if (ccl_ctrl_decode(imm, in + sizeof(imm), &ctrl) != 0)
		return;
	ccl_ctrl_encode(&ctrl, out);
	fuzz_check(ccl_ctrl_imm(&ctrl) == imm, "the immediate again");
	fuzz_check(memcmp(out, in + sizeof(imm), sizeof(out)) == 0, "the payload again");
	fuzz_check(ccl_ctrl_differ(&ctrl, &ctrl) == NULL, "equal to itself");
}

/* Lines that come in pieces, at two boundaries that the input names. */
static void bootstrap(const uint8_t *in, size_t size)
{
	struct boot_peer peer = {.rank = -1};
	const size_t cut = size ? in[0] % size : 0;
	unsigned objects = 0;
	json_t *object;
	int fd[2], rc = 0;

	fuzz_check(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0, "a pair of sockets");
	peer.fd = fd[0];
	for (unsigned part = 0; part < 2 && rc >= 0; part++) {
		const size_t from = part ? cut : 0, to = part ? size : cut;

		fuzz_check(to == from || write(fd[1], in + from, to - from) == (ssize_t)(to - from),
			"written");
		while ((rc = boot_read(&peer, &object)) == 1) {
			fuzz_check(json_is_object(object), "a line is an object");
			(void)boot_error(object);
			json_decref(object);
			fuzz_check(++objects <= size, "no more lines than bytes");
		}
	}
	close(fd[1]);
	fuzz_check(rc <= 0, "taken, or refused");
	boot_peer_close(&peer);
}

/* ---- what switches answer ---- */

static bool some_failed(const char *text, size_t len)
{
	return memchr(text, '!', len) != NULL;
}

/* Where no message was lost or refused nothing is left of what was not made. */
static void groups(const struct ccl_group *g, const char *text, size_t len)
{
	char err[CCL_ERR_LEN] = "";
	struct ccl_install in;
	int rc;

	fuzz_check(ccl_install_init(&in, g, CCL_SINGLE, ~0u, err) == 0, "groups to be made");
	rc = ccl_install(&in, err);
	if (rc)
		refused(rc, err, sizeof(err));
	else
		fuzz_check(ccl_installed_qpn(&in, 0, 0) <= 0xffffff, "a queue pair number");
	if (rc == 0)
		ccl_uninstall(&in, false, err);
	for (unsigned i = 0; i < N_SWITCHES && !some_failed(text, len) && rc == 0; i++)
		fuzz_check(switches[i].made == 0, "what was made is deleted");
	ccl_install_fini(&in);
}

static void ring(const struct ccl_group *g)
{
	struct ccl_ring_address all[N_RANKS] = {{.mtu = 1024, .next_qpn = 2, .prev_qpn = 3}};
	char err[CCL_ERR_LEN] = "";
	struct ccl_rings *rings;
	int rc;

	for (unsigned i = 0; i < N_RANKS; i++) {
		all[i] = all[0];
		all[i].ip = g->rank_ip[i];
	}
	fuzz_check(ccl_rings_plan(g, &rings, err) == 0, "a ring to be made");
	rc = ccl_rings_install(rings, all, 1024, err);
	if (rc)
		refused(rc, err, sizeof(err));
	else
		ccl_rings_uninstall(rings, err);
	ccl_rings_free(rings);
}

/* A lease is on all switches or on none, but for those that could not be told: these take it back
 * by themselves. */
static void lease(const struct ccl_group *g)
{
	char err[CCL_ERR_LEN], why[CCL_DESK_WHY];
	struct ccl_desk desk;
	struct pollfd p = {.events = POLLIN};
	int rc, answer = 1;
	bool granted;

	memset(switches, 0, sizeof(switches));
	fuzz_check(ccl_lease_desk_open(g, &desk, err) == 0, "a desk");
	p.fd = desk.fd;
	desk.ask(desk.arg, CCL_LEASE_ACQUIRE);
	do
		rc = poll(&p, 1, WAIT_MS);
	while (rc < 0 && errno == EINTR); /* libFuzzer's clock */
	fuzz_check(rc == 1, "an answer comes");
	fuzz_check(desk.answer(desk.arg, &answer, why), "it is there");
	fuzz_check(answer <= 0, "granted or an error");
	granted = answer == 0;
	fuzz_check(granted || why[0] != '\0', "a refusal has a reason");
	for (unsigned i = 0; i < N_SWITCHES; i++)
		fuzz_check(granted ? switches[i].holds : !switches[i].holds || switches[i].told,
			"all or nothing");
	if (granted)
		desk.ask(desk.arg, CCL_LEASE_RELEASE);
	desk.close(desk.arg);
	for (unsigned i = 0; i < N_SWITCHES; i++)
		fuzz_check(
			!switches[i].holds || switches[i].told, "what was granted is given back");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ccl_group *g;
	json_t *json;

	if (size < 1)
		return 0;
	json_object_seed(1);
	g = the_group();
	memset(switches, 0, sizeof(switches));
	lines = (const char *)data + 1;
	lines_end = (const char *)data + size;
	json = json_loadb((const char *)data + 1, size - 1, JSON_DECODE_ANY, NULL);
	switch (data[0] % 8) {
	case 0:
		hello(g, json);
		break;
	case 1:
		ring_address(json);
		break;
	case 2:
		control(data + 1, size - 1);
		break;
	case 3:
		bootstrap(data + 1, size - 1);
		break;
	case 4:
	case 5:
		groups(g, lines, size - 1);
		break;
	case 6:
		ring(g);
		break;
	default:
		for (unsigned round = 0; round < 3; round++)
			lease(g);
	}
	json_decref(json);
	ccl_group_free(g);
	return 0;
}

#define CREATED(group)                                                                          \
	"{\"group\":" #group ",\"endpoints\":[{\"index\":0,\"qpn\":4096},{\"index\":1,\"qpn\":" \
	"4160},{\"index\":2,\"qpn\":4224}]}\n"

static const char *const seeds[] = {
	"\0{\"ccl\":4,\"group\":\"g\",\"ip\":\"10.0.0.1\",\"device\":\"incline0\",\"skip\":true,"
	"\"rnr\":true,\"mtu\":1024,\"ranks\":3,\"M\":4,\"W\":8,\"mode\":\"II\",\"lease\":\"l\","
	"\"write\":false,\"collectives\":63}",
	"\1{\"ip\":\"10.0.0.1\",\"next_qpn\":5,\"prev_qpn\":6,\"start_psn\":16777215,\"mtu\":1024,"
	"\"slots\":4096,\"slot_len\":4096,\"rkey\":305419896}",
	"\3{\"rank\":1}\n{\"error\":\"no\"}\n{\"a\":[1,2]}\n",
	"\4{\"state\":\"FAILED\"}\n{}\n" CREATED(1) "!3\n" CREATED(2),
	"\4!3\n" CREATED(1) "!3\n!3\n!3\n!3\n" CREATED(2) CREATED(3) CREATED(4),
	"\6{\"ring\":1,\"parent_qpn\":0,\"leaves\":[{\"ranks\":[0,1],\"qpn\":7,\"input\":0}]}\n{"
	"\"ring\":2,\"parent_qpn\":9,\"leaves\":[]}\n{}\n{}\n",
	"\7{}\n!0\n{}\n!l\n!l\n{}\n{}\n!a\n",
	"\7!a\n!l\n!a\n{}\n!l\n!c\n!c\n{}\n",
};

size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	static const uint8_t ctrl[1 + 4 + CCL_CTRL_LEN] = {
		2, 0, 0, 16, 32, 0x49, 0x4e, 0x43, 0x31, 4, 0, 0, 0, 0, 16};
	const unsigned n = sizeof(seeds) / sizeof(seeds[0]);
	size_t len = i < n ? 1 + strlen(seeds[i] + 1) : i == n ? sizeof(ctrl) : 0;

	if (len > cap)
		return 0;
	memcpy(out, i < n ? (const uint8_t *)seeds[i] : ctrl, len);
	return len;
}
