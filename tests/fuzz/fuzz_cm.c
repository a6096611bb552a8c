/* SPDX-License-Identifier: BSD-3-Clause */
/* Any datagrams at all for the communication manager, in any state that a user brings it to. An
 * input is a list of steps: a byte what to do, then what that takes. */
#include <string.h>

#include "lib/cm/cm.h"
#include "lib/wire/bytes.h"
#include "tests/fuzz/fuzz.h"

enum { N_USERS = 8, MAX_STEPS = 64 };
enum step {
	RX,
	CONNECT,
	SIDR,
	ACCEPT,
	ESTABLISH,
	REJECT,
	DISCONNECT,
	RELEASE,
	TIME,
	SEEN,
	N_STEPS
};

struct fuzz {
	struct cm *cm;
	struct cm_conn *user[N_USERS];
	uint64_t now;
	uint32_t ids[N_USERS]; /* ours, as seen in what was sent */
	unsigned n_ids;
};

static const struct cm_path path = {
	{{[10] = 0xff, 0xff, 10, 77, 0, 1}}, {{[10] = 0xff, 0xff, 10, 77, 0, 2}}, 0};

size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	/* Both roles to the end, the message of a RX with its IDs mended (see receive). */
	static const struct {
		uint8_t step;
		uint16_t attr;
	} passive[] = {{RX, CM_REQ}, {ACCEPT}, {RX, CM_RTU}, {RX, CM_DREQ}, {DISCONNECT}, {TIME}},
	  active[] = {{CONNECT}, {RX, CM_REP}, {ESTABLISH}, {RX, CM_REP}, {DISCONNECT},
		  {RX, CM_DREP}, {TIME}},
	  others[] = {{SIDR}, {RX, CM_SIDR_REP}, {RX, CM_SIDR_REQ}, {ACCEPT}, {CONNECT},
		  {RX, CM_MRA}, {RX, CM_REJ}, {RX, CM_REQ}, {REJECT}, {RX, CM_REQ}};
	const void *seeds[] = {passive, active, others};
	const size_t n[] = {6, 7, 10};
	const __typeof__(passive[0]) *steps;
	size_t len = 0;

	if (i >= 3)
		return 0;
	steps = seeds[i];
	for (size_t k = 0; k < n[i]; k++) {
		struct cm_msg msg = {.attr = steps[k].attr, .local_id = 77};

		out[len++] = steps[k].step;
		out[len++] = 0; /* of the first user */
		if (steps[k].step != RX)
			continue;
		fuzz_check(len + CM_MAD_LEN <= cap, "seed fits");
		fuzz_check(cm_build(&msg, out + len) == 0, "seed builds");
		len += CM_MAD_LEN;
	}
	return len;
}

static unsigned on_request(void *arg, struct cm_conn *conn, const struct cm_path *from,
	const struct cm_msg *msg, void **user)
{
	struct fuzz *f = arg;

	(void)from, (void)msg;
	for (unsigned i = 0; i < N_USERS; i++) {
		if (f->user[i] != NULL)
			continue;
		f->user[i] = conn;
		*user = &f->user[i];
		return 0;
	}
	return f->n_ids & 1 ? CM_IGNORE : CM_REJ_INVALID_SERVICE_ID;
}

static void on_event(void *arg, struct cm_conn *conn, void *user, const struct cm_event *event)
{
	(void)arg, (void)event;
	fuzz_check(*(struct cm_conn **)user == conn, "events are for the connection's user");
}

static void drain(struct fuzz *f)
{
	struct cm_out out;
	struct cm_msg msg;
	unsigned n = 0;

	while (cm_tx(f->cm, &out)) {
		fuzz_check(++n < 1000, "what is to be sent has an end");
		fuzz_check(cm_parse(out.mad, sizeof(out.mad), &msg) == 0,
			"what is sent is well-formed");
		f->ids[f->n_ids++ % N_USERS] = msg.local_id;
	}
}

static void round_trip(const uint8_t *mad, size_t len)
{
	struct cm_msg msg, again;
	uint8_t out[CM_MAD_LEN];

	if (cm_parse(mad, len, &msg) != 0 || (msg.attr == CM_REQ && msg.req.alternate))
		return;
	fuzz_check(cm_build(&msg, out) == 0, "a parsed message builds");
	fuzz_check(cm_parse(out, sizeof(out), &again) == 0, "a built message parses");
	fuzz_check(memcmp(&msg, &again, sizeof(msg)) == 0, "nothing was lost");
}

/* Every other datagram gets an ID that means something here, or hardly any would get far. */
static size_t receive(struct fuzz *f, uint8_t how, const uint8_t *data, size_t left)
{
	size_t len = left < CM_MAD_LEN ? left : CM_MAD_LEN;
	uint8_t *mad = malloc(len ? len : 1);
	struct ipcm ipcm;

	memcpy(mad, data, len);
	if (len == CM_MAD_LEN && !(how & 1) && f->n_ids > 0)
		put_be32(mad + 28, f->ids[(how >> 1) % N_USERS]);
	round_trip(mad, len);
	ipcm_parse(mad, len, &ipcm);
	cm_rx(f->cm, &path, mad, len, f->now);
	free(mad);
	return len;
}

static void connect(struct fuzz *f, struct cm_conn **user, bool sidr)
{
	const struct cm_req req = {.service_id = 1, .qpn = 9};

	if (*user != NULL)
		return;
	if (sidr)
		cm_sidr_request(f->cm, &path, 1, NULL, 0, user, f->now, user);
	else
		cm_connect(f->cm, &path, &req, NULL, 0, user, f->now, user);
}

static void act(struct fuzz *f, enum step step, struct cm_conn **user)
{
	const struct cm_rep rep = {.qpn = 5};
	const struct cm_sidr_rep sidr = {.qpn = 5};
	struct cm_conn *conn = *user;

	switch (step) {
	case CONNECT:
	case SIDR:
		connect(f, user, step == SIDR);
		return;
	case TIME:
		if (cm_deadline(f->cm) != UINT64_MAX)
			f->now = cm_deadline(f->cm);
		cm_timer(f->cm, f->now);
		return;
	default:
		break;
	}
	if (conn == NULL)
		return;
	switch (step) {
	case ACCEPT:
		if (cm_accept(conn, &rep, "a", 1, f->now) < 0)
			cm_sidr_reply(conn, &sidr, "a", 1, f->now);
		return;
	case ESTABLISH:
		cm_establish(conn, "e", 1, f->now);
		return;
	case REJECT:
		cm_reject(conn, CM_REJ_CONSUMER, "r", 1, f->now);
		return;
	case DISCONNECT:
		cm_disconnect(conn, f->now);
		return;
	case SEEN:
		cm_established(conn, f->now);
		return;
	case RELEASE:
		*user = NULL;
		cm_release(conn, f->now);
		return;
	default:
		return;
	}
}

static void finish(struct fuzz *f)
{
	uint64_t drops = 0;
	unsigned n = 0;

	cm_shutdown(f->cm, f->now);
	drain(f);
	while (cm_deadline(f->cm) != UINT64_MAX) {
		fuzz_check(++n < 100000, "everything ends");
		f->now = cm_deadline(f->cm);
		cm_timer(f->cm, f->now);
		drain(f);
	}
	fuzz_check(cm_conns(f->cm) == 0, "nothing is left");
	for (unsigned d = 1; d < CM_N_DROPS; d++)
		drops += cm_drop_count(f->cm, d);
	fuzz_check(cm_count(f->cm, CM_C_RX) == cm_count(f->cm, CM_C_ACCEPTED) + drops,
		"every datagram is accounted for");
	cm_destroy(f->cm);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz f = {.now = 1};
	const struct cm_config config = {
		.max_conn = 12, .seed = 1, .events = {&f, on_request, on_event}};

	fuzz_check(cm_create(&config, &f.cm) == 0, "cm_create");
	for (size_t at = 0, steps = 0; at + 2 <= size && steps < MAX_STEPS; steps++) {
		uint8_t step = data[at] % N_STEPS, how = data[at + 1];

		at += 2;
		if (step == RX)
			at += receive(&f, how, data + at, size - at);
		else
			act(&f, (enum step)step, &f.user[how % N_USERS]);
		drain(&f);
	}
	finish(&f);
	return 0;
}
