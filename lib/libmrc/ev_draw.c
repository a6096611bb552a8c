/* SPDX-License-Identifier: BSD-3-Clause */
/* From profiles to what packets carry: EVs drawn from fields, expansion, choice for a connection.
 */
#include <errno.h>
#include <string.h>

#include "lib/libmrc/profile.h"
#include "lib/wire/bytes.h"
#include "lib/wire/ip.h"

enum {
	BUCKETS = 4 * PROFILES_EVS_PROFILE, /* of a table of EVs, at most a quarter full */
	TRIES = 64,                         /* per EV, of a random one that is new */
	HIGH_PORT = 0x8000,                 /* source ports below 1024 upset what is on the way */
};

int ev_format(const struct ev_profile *p, const struct fmt_profile *f, struct srv6_ev_format *out)
{
	*out = (struct srv6_ev_format){.n_fields = p->n_fields, .n_widths = f->n_fields};
	memcpy(out->width, f->width, f->n_fields);
	for (unsigned i = 0; i < p->n_fields; i++) {
		const struct mrc_ctl_ev_field *field = &p->field[i];

		out->field[i] = (struct srv6_ev_field){.width = field->width,
			.init = field->init_val,
			.min = field->min_val,
			.max = field->max_val,
			.mask = field->mask};
	}
	return srv6_ev_check(out);
}

static bool clear_from(const uint8_t *bytes, unsigned bit)
{
	for (; bit < 8 * MRC_CTL_EV_MAX_BYTES; bit++) {
		if (bytes[bit / 8] >> (7 - bit % 8) & 1)
			return false;
	}
	return true;
}

/* The bytes behind the fields, and how many bits the EV itself may have. */
static int expand(const struct ev_profile *p, const struct mrc_ctl_ev *ev,
	uint8_t out[SRV6_EV_BYTES], unsigned *bits)
{
	struct srv6_ev_format format;

	*bits = p->fmt.mode ? 0 : 32;
	for (unsigned i = 0; i < p->fmt.n_fields; i++)
		*bits += p->fmt.width[i];
	if (p->n_fields == 0) {
		memcpy(out, ev->val, SRV6_EV_BYTES);
		return clear_from(out, *bits) ? 0 : -EINVAL;
	}
	if (ev_format(p, &p->fmt, &format))
		return -EINVAL;
	*bits = srv6_ev_bits(&format);
	return srv6_ev_expand(&format, ev->val, sizeof(ev->val), out) < 0 ? -EINVAL : 0;
}

int ev_to_path(const struct ev_profile *p, const struct mrc_ctl_ev *ev, uint16_t index,
	struct ev_path *path)
{
	static const uint8_t none[16];
	uint8_t bytes[SRV6_EV_BYTES];
	unsigned bits;

	*path = (struct ev_path){.port = (uint8_t)(ev->port - 1), .entry = index};
	if (expand(p, ev, bytes, &bits))
		return -EINVAL;
	switch (p->fmt.mode) {
	case MRC_CTL_EV_FMT_MODE_UDP:
		path->ev = get_be16(bytes);
		return 0;
	case MRC_CTL_EV_FMT_MODE_SRV6:
		if (memcmp(bytes, none, 16) == 0)
			return -EINVAL; /* nowhere */
		path->n_segments = memcmp(bytes + 16, none, 16) ? 2 : 1;
		memcpy(path->segment, bytes, sizeof(path->segment));
		/* The address is used up on its way: what is echoed is a handle. */
		path->ev = bits <= 32 ? get_be32(ev->val) : index;
		return 0;
	default:
		path->ev = get_be32(bytes);
		return 0;
	}
}

/* ---- drawing ---- */

struct table {
	uint16_t bucket[BUCKETS]; /* index + 1 */
};

/* Whether bytes are new among the entries; then they are entry n. */
static bool is_new(struct table *t, const struct ev_entry *entry, uint32_t n, const uint8_t *val)
{
	uint64_t hash = 0xcbf29ce484222325;
	uint32_t at;

	for (unsigned i = 0; i < MRC_CTL_EV_MAX_BYTES; i++)
		hash = (hash ^ val[i]) * 0x100000001b3;
	for (at = (uint32_t)(hash >> 32) % BUCKETS; t->bucket[at]; at = (at + 1) % BUCKETS) {
		if (memcmp(entry[t->bucket[at] - 1].ev.val, val, MRC_CTL_EV_MAX_BYTES) == 0)
			return false;
	}
	t->bucket[at] = (uint16_t)(n + 1);
	return true;
}

static void put_bits(uint8_t *bytes, unsigned *at, uint32_t value, unsigned n)
{
	while (n--) {
		bytes[*at / 8] |= (uint8_t)((value >> n & 1) << (7 - *at % 8));
		++*at;
	}
}

/* A random EV of the profile. */
static void random_ev(struct profiles *b, const struct ev_profile *p, uint8_t *val)
{
	unsigned at = 0;

	memset(val, 0, MRC_CTL_EV_MAX_BYTES);
	if (p->mode == MRC_CTL_EV_MODE_AUTO) {
		uint32_t r = (uint32_t)profiles_random(b) | HIGH_PORT;

		if (p->fmt.mode == MRC_CTL_EV_FMT_MODE_UDP)
			put_be16(val, (uint16_t)r);
		else
			put_be32(val, r);
		return;
	}
	for (unsigned i = 0; i < p->n_fields; i++) {
		const struct mrc_ctl_ev_field *f = &p->field[i];
		uint64_t span = (uint64_t)f->max_val - f->min_val + 1;

		put_bits(val, &at, f->min_val + (uint32_t)(profiles_random(b) % span),
			(unsigned)__builtin_popcount(f->mask));
	}
}

/* Whether the fields have n different values. */
static bool enough(const struct ev_profile *p, uint32_t n)
{
	uint64_t values = 1;

	if (p->mode == MRC_CTL_EV_MODE_AUTO)
		return n < HIGH_PORT;
	for (unsigned i = 0; i < p->n_fields && values < n; i++)
		values *= (uint64_t)p->field[i].max_val - p->field[i].min_val + 1;
	return values >= n;
}

int ev_draw(struct profiles *b, const struct ev_profile *p, struct ev_entry *entry, uint32_t count)
{
	struct table table = {{0}};
	uint64_t tries = (uint64_t)TRIES * count + TRIES;
	uint32_t n = 0;

	if (p->mode == MRC_CTL_EV_MODE_AUTO && p->fmt.mode == MRC_CTL_EV_FMT_MODE_SRV6)
		return -EINVAL; /* nobody can guess addresses */
	if (!enough(p, count))
		return -E2BIG;
	while (n < count && tries--) {
		struct ev_entry *e = &entry[n];

		*e = (struct ev_entry){.set = true, .generation = b->generation + 1};
		random_ev(b, p, e->ev.val);
		e->ev.port = (uint8_t)(n % b->n_ports + 1);
		if (is_new(&table, entry, n, e->ev.val))
			n++;
	}
	b->generation++;
	return n == count ? 0 : -E2BIG;
}

/* ---- a connection's choice ---- */

static bool path_known(const struct ev_path *path, unsigned n, uint32_t ev)
{
	for (unsigned i = 0; i < n; i++) {
		if (path[i].ev == ev)
			return true;
	}
	return false;
}

static void shuffle(struct profiles *b, uint16_t *order, uint32_t n)
{
	for (uint32_t i = n; i > 1; i--) {
		uint32_t j = (uint32_t)(profiles_random(b) % i);
		uint16_t x = order[i - 1];

		order[i - 1] = order[j];
		order[j] = x;
	}
}

static int carries(const struct ev_profile *p, bool ip4)
{
	return ip4 && (p->fmt.mode == MRC_CTL_EV_FMT_MODE_STEV ||
			      p->fmt.mode == MRC_CTL_EV_FMT_MODE_SRV6)
		       ? -EINVAL
		       : 0;
}

int ev_paths(struct profiles *b, const struct ev_profile *p, bool ip4,
	struct ev_path path[PROFILES_EVS_QP])
{
	uint16_t order[PROFILES_EVS_PROFILE];
	unsigned of_port[PROFILES_PORTS] = {0}, n = 0;
	unsigned most = PROFILES_EVS_QP / b->n_ports;

	if (carries(p, ip4))
		return -EINVAL;
	for (uint32_t i = 0; i < p->count; i++)
		order[i] = (uint16_t)i;
	if (p->count > PROFILES_EVS_QP)
		shuffle(b, order, p->count);
	for (uint32_t i = 0; i < p->count; i++) {
		const struct ev_entry *e = &p->entry[order[i]];

		if (!e->set || ev_to_path(p, &e->ev, order[i], &path[n]))
			continue;
		if (ip4 && p->fmt.mode == 0)
			path[n].ev &= 0xffff;
		if (of_port[path[n].port] == most || path_known(path, n, path[n].ev))
			continue;
		path[n].denied = e->denied;
		path[n].generation = e->generation;
		of_port[path[n++].port]++;
		if (n == PROFILES_EVS_QP)
			break;
	}
	return n ? (int)n : -EINVAL;
}
