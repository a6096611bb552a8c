/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocking parts of a ring: meeting the other ranks through a bootstrap, waiting. */
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "lib/ccl/boot.h"
#include "lib/ccl/ring_priv.h"

_Static_assert((int)CCL_BOOT_ERR_LEN == (int)CCL_ERR_LEN, "errors are passed on");

/* As in wait.c: polling with a yield each turn, then short sleeps on the completion channel. */
static const uint64_t SPIN_NS = 500000;
enum { NAP_MS = 10 };

/* ---- addresses ---- */

json_t *ccl_ring_address_json(const struct ccl_ring_address *a)
{
	char ip[WIRE_IP_STRLEN];

	return json_pack("{s:s, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I}", "ip",
		wire_ip_format(&a->ip, ip, sizeof(ip)), "next_qpn", (int)a->next_qpn, "prev_qpn",
		(int)a->prev_qpn, "start_psn", (int)a->start_psn, "mtu", (int)a->mtu, "slots",
		(json_int_t)a->slots, "slot_len", (json_int_t)a->slot_len, "rkey",
		(json_int_t)a->rkey, "first_message", (json_int_t)a->first_msg);
}

int ccl_ring_address_parse(const json_t *json, struct ccl_ring_address *a)
{
	json_int_t slots, slot_len, rkey, first_msg;
	int next, prev, psn, mtu;
	const char *ip;

	*a = (struct ccl_ring_address){0};
	if (json_unpack((json_t *)json, "{s:s, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I}", "ip", &ip,
		    "next_qpn", &next, "prev_qpn", &prev, "start_psn", &psn, "mtu", &mtu, "slots",
		    &slots, "slot_len", &slot_len, "rkey", &rkey, "first_message", &first_msg) ||
		wire_ip_parse(ip, &a->ip) || mtu < 256 || mtu > 4096)
		return -EPROTO;
	a->next_qpn = (uint32_t)next;
	a->prev_qpn = (uint32_t)prev;
	a->start_psn = (uint32_t)psn;
	a->mtu = (unsigned)mtu;
	a->slots = (uint64_t)slots;
	a->slot_len = (uint32_t)slot_len;
	a->rkey = (uint32_t)rkey;
	a->first_msg = (uint32_t)first_msg;
	return 0;
}

/* ---- meeting ---- */

int ring_address_read(
	const json_t *json, unsigned rank, struct ccl_ring_address *at, unsigned *mtu, char *err)
{
	if (ccl_ring_address_parse(json, at)) {
		snprintf(err, CCL_ERR_LEN, "rank %u: its address in the ring makes no sense", rank);
		return -EPROTO;
	}
	*mtu = at->mtu < *mtu ? at->mtu : *mtu;
	return 0;
}

/* Errors after which the ranks can do without the switches. */
static bool no_room(int rc)
{
	return rc == -ENOSPC || rc == -EMFILE || rc == -EAGAIN || rc == -EBUSY || rc == -ENOMEM ||
	       rc == -EOPNOTSUPP;
}

const char *ccl_ring_plain(const struct ccl_ring *r)
{
	return r->plain;
}

/* Rank 0: what everybody says, then the list of that to everybody. */
static int lead(const struct ring_meeting *m, json_t *own, json_t **list, char *err)
{
	json_t **all = calloc(m->n_ranks, sizeof(json_t *));
	int rc = -ENOMEM;

	snprintf(err, CCL_ERR_LEN, "rank 0: out of memory");
	if (all)
		rc = ccl_boot_gather(m->boot, all, err);
	*list = json_array();
	json_array_append(*list, own);
	for (unsigned i = 1; i < m->n_ranks && !rc; i++)
		json_array_append_new(*list, all[i]);
	m->plain[0] = '\0';
	if (!rc)
		rc = m->look(m->arg, *list, err);
	if (rc && m->fallback && no_room(rc)) {
		snprintf(m->plain, CCL_ERR_LEN, "%s", err);
		rc = 0;
	}
	if (rc) {
		ccl_boot_abort(m->boot, err);
	} else {
		json_t *answer = json_pack("{s:O, s:s}", "ring", *list, "plain", m->plain);

		rc = ccl_boot_broadcast(m->boot, answer, err);
		json_decref(answer);
	}
	free(all);
	return rc;
}

static int follow(const struct ring_meeting *m, json_t *own, json_t **list, char *err)
{
	const char *plain;
	json_t *answer = NULL;
	int rc = ccl_boot_tell(m->boot, own, err);

	if (rc == 0)
		rc = ccl_boot_hear(m->boot, &answer, err);
	*list = json_incref(json_object_get(answer, "ring"));
	plain = json_string_value(json_object_get(answer, "plain"));
	snprintf(m->plain, CCL_ERR_LEN, "%s", plain ? plain : "");
	json_decref(answer);
	return rc;
}

int ring_meet(const struct ring_meeting *m, json_t *own, char *err)
{
	json_t *list = NULL;
	int rc = m->rank ? follow(m, own, &list, err) : lead(m, own, &list, err);

	if (rc == 0) {
		rc = m->connect(m->arg, list, err);
		if (rc)
			ccl_boot_abort(m->boot, err);
		else
			rc = ccl_boot_barrier(m->boot, err);
	}
	json_decref(list);
	return rc;
}

/* ---- of one ring ---- */

struct one {
	struct ccl_ring *ring;
	ccl_ring_between between;
	void *arg;
};

static int read_all(const struct ccl_ring *r, const json_t *list, struct ccl_ring_address **all,
	unsigned *mtu, char *err)
{
	*mtu = 4096;
	*all = calloc(r->n_ranks, sizeof(**all));
	if (!*all) {
		snprintf(err, CCL_ERR_LEN, "rank %u: out of memory", r->rank);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < r->n_ranks; i++)
		if (ring_address_read(json_array_get(list, i), i, &(*all)[i], mtu, err))
			return -EPROTO;
	return 0;
}

static int look(void *arg, const json_t *list, char *err)
{
	const struct one *one = arg;
	struct ccl_ring_address *all;
	unsigned mtu;
	int rc = read_all(one->ring, list, &all, &mtu, err);

	if (!rc && one->between)
		rc = one->between(one->arg, all, one->ring->n_ranks, mtu, err);
	free(all);
	return rc;
}

static int connect_to(void *arg, const json_t *list, char *err)
{
	struct ccl_ring *r = ((const struct one *)arg)->ring;
	const unsigned n = r->n_ranks;
	struct ccl_ring_address *all;
	unsigned mtu;
	int rc = read_all(r, list, &all, &mtu, err);

	r->conf.netreduce &= !r->plain[0];
	if (!rc)
		rc = ccl_ring_connect(
			r, &all[(r->rank + n - 1) % n], &all[(r->rank + 1) % n], mtu, err);
	free(all);
	return rc;
}

int ccl_ring_meet(struct ccl_ring *r, struct ccl_boot *boot, ccl_ring_between between, void *arg,
	char err[CCL_ERR_LEN])
{
	struct one one = {r, between, arg};
	const struct ring_meeting m = {.boot = boot,
		.rank = r->rank,
		.n_ranks = r->n_ranks,
		.fallback = between && r->conf.fallback,
		.plain = r->plain,
		.look = look,
		.connect = connect_to,
		.arg = &one};
	struct ccl_ring_address mine;
	json_t *own;
	int rc;

	ccl_ring_address(r, &mine);
	own = ccl_ring_address_json(&mine);
	rc = ring_meet(&m, own, err);
	json_decref(own);
	return rc;
}

/* ---- waiting ---- */

static uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int nap(struct ccl_ring *r)
{
	struct pollfd p = {.fd = r->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	unsigned n = 0;
	void *arg;
	int rc;

	if (ibv_req_notify_cq(r->cq, 0))
		return ccl_ring_fail(r, -EIO, "the completion queue cannot be armed");
	rc = ccl_ring_progress(r, clock_ns());
	if (rc != 0)
		return rc;
	if (poll(&p, 1, NAP_MS) > 0)
		while (ibv_get_cq_event(r->channel, &cq, &arg) == 0)
			n++;
	if (n)
		ibv_ack_cq_events(r->cq, n);
	return 0;
}

int ccl_ring_wait(struct ccl_ring *r, struct ccl_req req, uint64_t timeout_ns)
{
	const uint64_t start = clock_ns();
	uint64_t idle_since = start;

	for (;;) {
		const uint64_t now = clock_ns();
		int n = ccl_ring_progress(r, now);
		const int done = ccl_ring_test(r, req);

		if (done)
			return done > 0 ? 0 : done;
		if (n < 0)
			return n;
		if (now - start >= timeout_ns)
			return -ETIMEDOUT;
		if (n > 0) {
			idle_since = now;
		} else if (now - idle_since < SPIN_NS) {
			sched_yield();
		} else {
			n = nap(r);
			if (n < 0)
				return n;
			idle_since = clock_ns();
		}
	}
}
