/* SPDX-License-Identifier: BSD-3-Clause */
/* Captures as the control plane sees them: one tap per worker, read in the order of time. */
#include <errno.h>
#include <stdlib.h>

#include "dataplane/runtime/tap.h"
#include "dataplane/sw.h"

struct sw_capture {
	uint32_t id; /* never used again */
	unsigned port;
	bool in, out;
	uint32_t snaplen;
	struct bpf_insn *filter;
	unsigned n_taps; /* that workers may have */
	struct tap *tap[WORKER_MAX];
};

/* ---- starting and stopping ---- */

static void hang(struct worker *w, void *arg)
{
	struct tap *t = arg;

	t->next = w->taps;
	w->taps = t;
}

static void take_off(struct worker *w, void *arg)
{
	struct tap **at = &w->taps;

	while (*at && *at != arg)
		at = &(*at)->next;
	if (*at)
		*at = (*at)->next;
}

static void tap_free(struct tap *t)
{
	if (t)
		free(t->ring);
	free(t);
}

static void add_counts(const struct sw_capture *c, struct sw_capture_counts *sum)
{
	for (unsigned i = 0; i < c->n_taps; i++) {
		sum->captured += c->tap[i]->captured;
		sum->dropped += c->tap[i]->dropped;
		sum->filtered += c->tap[i]->filtered;
	}
}

/* What no worker has any more is freed; -ETIMEDOUT: some worker may have the rest. */
static int end(struct sw *sw, struct sw_capture *c)
{
	struct sw_capture_counts *past = &sw->captured;

	while (c->n_taps) {
		struct tap *t = c->tap[c->n_taps - 1];
		int rc = sw_worker_call(sw, c->n_taps - 1, take_off, t);

		if (rc < 0)
			return rc;
		past->captured += t->captured;
		past->dropped += t->dropped;
		past->filtered += t->filtered;
		tap_free(t);
		c->n_taps--;
	}
	free(c->filter);
	free(c);
	return 0;
}

static struct tap *tap_make(const struct sw_capture *c, uint16_t port, uint32_t ring_bytes)
{
	struct tap *t = calloc(1, sizeof(*t));
	uint8_t *ring = malloc(ring_bytes);

	if (!t || !ring) {
		free(t);
		free(ring);
		return NULL;
	}
	t->port = port;
	t->in = c->in;
	t->out = c->out;
	t->snaplen = c->snaplen;
	t->filter = c->filter;
	t->ring = ring;
	t->size = ring_bytes;
	return t;
}

static int check(const struct sw *sw, const struct sw_capture_spec *s, char err[SW_ERR_LEN])
{
	if (s->port >= sw->n_ports)
		return sw_fail(err, -ENOENT, "port: there is no port %u", s->port);
	if (!s->in && !s->out)
		return sw_fail(err, -EINVAL, "dir: neither what comes in nor what goes out");
	if (s->snaplen < 1 || s->snaplen > SW_CAPTURE_SNAPLEN)
		return sw_fail(err, -EINVAL, "snaplen: %u is not in 1..%d", s->snaplen,
			SW_CAPTURE_SNAPLEN);
	if (s->ring_bytes < SW_CAPTURE_RING_MIN || s->ring_bytes > SW_CAPTURE_RING_MAX ||
		!rte_is_power_of_2(s->ring_bytes))
		return sw_fail(err, -EINVAL, "ring_kb: %u is no power of two in %d..%d",
			s->ring_bytes >> 10, SW_CAPTURE_RING_MIN >> 10, SW_CAPTURE_RING_MAX >> 10);
	if (s->n_filter > SW_CAPTURE_FILTER)
		return sw_fail(err, -EINVAL, "filter: has %u instructions, the limit is %d",
			s->n_filter, SW_CAPTURE_FILTER);
	/* Jumps go forward, and land within: it ends. */
	if (s->n_filter && !bpf_validate(s->filter, (int)s->n_filter))
		return sw_fail(err, -EINVAL, "filter: is not a valid program");
	return 0;
}

static int build(struct sw *sw, struct sw_capture *c, const struct sw_capture_spec *s)
{
	if (s->n_filter) {
		c->filter = calloc(s->n_filter, sizeof(*c->filter));
		if (!c->filter)
			return -ENOMEM;
		memcpy(c->filter, s->filter, s->n_filter * sizeof(*c->filter));
	}
	for (unsigned i = 0; i < sw->n_workers; i++) {
		struct tap *t = tap_make(c, sw->ports[c->port].id, s->ring_bytes);
		int rc = t ? sw_worker_call(sw, i, hang, t) : -ENOMEM;

		if (rc < 0) {
			tap_free(t);
			return rc;
		}
		c->tap[c->n_taps++] = t;
	}
	return 0;
}

int sw_capture_start(
	struct sw *sw, const struct sw_capture_spec *s, uint32_t *id, char err[SW_ERR_LEN])
{
	struct sw_capture **place = sw->capture, *c;
	int rc = check(sw, s, err);

	if (rc < 0)
		return rc;
	while (place < sw->capture + SW_MAX_CAPTURES && *place)
		place++;
	if (place == sw->capture + SW_MAX_CAPTURES)
		return sw_fail(err, -EBUSY, "%d captures are running, the most there may be",
			SW_MAX_CAPTURES);
	c = calloc(1, sizeof(*c));
	if (!c)
		return sw_fail(err, -ENOMEM, "no memory for a capture");
	c->id = ++sw->last_capture;
	c->port = s->port;
	c->in = s->in;
	c->out = s->out;
	c->snaplen = s->snaplen;
	rc = build(sw, c, s);
	if (rc < 0) {
		if (end(sw, c) < 0)
			*place = c; /* a worker has it, and does not respond: later */
		return sw_fail(err, rc, "%s",
			rc == -ENOMEM ? "no memory for the ring: lower ring_kb"
				      : "a worker does not respond");
	}
	*place = c;
	*id = c->id;
	return 0;
}

static struct sw_capture **find(struct sw *sw, uint32_t id)
{
	for (unsigned i = 0; i < SW_MAX_CAPTURES; i++)
		if (sw->capture[i] && sw->capture[i]->id == id)
			return &sw->capture[i];
	return NULL;
}

int sw_capture_stop(struct sw *sw, uint32_t id)
{
	struct sw_capture **c = find(sw, id);
	int rc = c ? end(sw, *c) : -ENOENT;

	if (rc == 0)
		*c = NULL;
	return rc;
}

void sw_captures_destroy(struct sw *sw)
{
	for (unsigned i = 0; i < SW_MAX_CAPTURES; i++)
		if (sw->capture[i])
			end(sw, sw->capture[i]); /* no worker runs any more */
}

/* ---- reading ---- */

/* The tap with the oldest record, NULL: there is none. */
static struct tap *oldest(const struct sw_capture *c)
{
	struct tap *best = NULL;
	uint64_t ns = UINT64_MAX;

	for (unsigned i = 0; i < c->n_taps; i++) {
		const struct tap_record *r = tap_peek(c->tap[i]);

		if (r && r->ns < ns) {
			best = c->tap[i];
			ns = r->ns;
		}
	}
	return best;
}

int sw_capture_read(
	struct sw *sw, uint32_t id, unsigned n, size_t bytes, sw_captured_fn fn, void *arg)
{
	struct sw_capture **c = find(sw, id);
	unsigned got = 0;
	struct tap *t;

	if (!c)
		return -ENOENT;
	while (got < n && (t = oldest(*c)) != NULL) {
		const struct tap_record *r = tap_peek(t);

		if (got && r->cap > bytes)
			break;
		bytes -= RTE_MIN((size_t)r->cap, bytes);
		fn(arg, &(struct sw_captured){.ns = r->ns,
				.len = r->len,
				.cap = r->cap,
				.data = (const uint8_t *)(r + 1),
				.out = r->out,
				.end = r->drop ? drop_name(r->drop) : NULL,
				.lost = r->drop && !drop_is_outcome(r->drop)});
		tap_take(t);
		got++;
	}
	return (int)got;
}

int sw_capture_get(struct sw *sw, unsigned i, struct sw_capture_info *info)
{
	const struct sw_capture *c = i < SW_MAX_CAPTURES ? sw->capture[i] : NULL;

	if (i >= SW_MAX_CAPTURES)
		return -ENOENT;
	*info = (struct sw_capture_info){0};
	if (!c)
		return 0;
	info->id = c->id;
	snprintf(info->port, sizeof(info->port), "%s", sw->ports[c->port].config.name);
	info->in = c->in;
	info->out = c->out;
	info->snaplen = c->snaplen;
	add_counts(c, &info->count);
	return 0;
}

void sw_captures_count(const struct sw *sw, unsigned *running, struct sw_capture_counts *sum)
{
	*running = 0;
	*sum = sw->captured;
	for (unsigned i = 0; i < SW_MAX_CAPTURES; i++) {
		if (!sw->capture[i])
			continue;
		++*running;
		add_counts(sw->capture[i], sum);
	}
}
