/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/port/impair.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/wire/frame.h"

enum { OVERTAKEN_MAX = 4, HOLD_NS = 1000000 };

static const uint64_t ALWAYS = 1ULL << 32;

/* splitmix64 */
static uint64_t draw(struct impair *im)
{
	uint64_t z = im->rng += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static bool happens(struct impair *im, uint64_t probability)
{
	return probability != 0 && (draw(im) >> 32) < probability;
}

/* A probability, of 2^32; 0 if there is none. */
static int parse_probability(const json_t *v, const char *name, uint64_t *p, char *err, size_t cap)
{
	double number = json_number_value(v);

	if (v != NULL && (!json_is_number(v) || !(number >= 0 && number <= 1))) {
		snprintf(err, cap, "%s: must be a probability, 0..1", name);
		return -EINVAL;
	}
	*p = (uint64_t)(number * (double)ALWAYS);
	return 0;
}

static int parse_lose_row(
	const json_t *v, size_t i, struct impair_lose *lose, char *err, size_t cap)
{
	const json_t *opcode = json_object_get(v, "opcode"), *loss = json_object_get(v, "loss");
	json_int_t o = json_integer_value(opcode);
	char name[32];

	if (json_object_size(v) != 2 || opcode == NULL || loss == NULL) {
		snprintf(err, cap, "lose[%zu]: must be {\"opcode\", \"loss\"}", i);
		return -EINVAL;
	}
	if (!json_is_integer(opcode) || o < 0 || o > UINT8_MAX) {
		snprintf(err, cap, "lose[%zu].opcode: must be an integer, 0..255", i);
		return -EINVAL;
	}
	lose->opcode = (uint8_t)o;
	snprintf(name, sizeof(name), "lose[%zu].loss", i);
	return parse_probability(loss, name, &lose->loss, err, cap);
}

static int parse_lose(const json_t *list, struct impair *im, char *err, size_t cap)
{
	if (list == NULL)
		return 0;
	if (!json_is_array(list) || json_array_size(list) > IMPAIR_LOSE_MAX) {
		snprintf(err, cap, "lose: must be an array of at most %d", IMPAIR_LOSE_MAX);
		return -EINVAL;
	}
	for (size_t i = 0; i < json_array_size(list); i++)
		if (parse_lose_row(json_array_get(list, i), i, &im->lose[im->n_lose++], err, cap) <
			0)
			return -EINVAL;
	return 0;
}

int impair_parse(const json_t *json, struct impair *im, char *err, size_t cap)
{
	const struct {
		const char *name;
		uint64_t *p;
	} fields[] = {{"loss", &im->loss}, {"dup", &im->dup}, {"reorder", &im->reorder},
		{"corrupt", &im->corrupt}, {"tx_loss", &im->tx_loss}};
	const json_t *seed = json_object_get(json, "seed");

	memset(im, 0, sizeof(*im));
	for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (parse_probability(json_object_get(json, fields[i].name), fields[i].name,
			    fields[i].p, err, cap) < 0)
			return -EINVAL;
	if (seed != NULL && (!json_is_integer(seed) || json_integer_value(seed) < 0)) {
		snprintf(err, cap, "seed: must be an integer, not negative");
		return -EINVAL;
	}
	im->rng = seed ? (uint64_t)json_integer_value(seed) : 1;
	return parse_lose(json_object_get(json, "lose"), im, err, cap);
}

/* Is it lost for its opcode? */
static bool opcode_loses(struct impair *im, const struct rte_mbuf *m)
{
	struct wire_pkt pkt;

	if (im->n_lose == 0 ||
		wire_parse(rte_pktmbuf_mtod(m, const uint8_t *), rte_pktmbuf_data_len(m), &pkt) !=
			WIRE_OK ||
		pkt.kind != WIRE_ROCE)
		return false;
	for (const struct impair_lose *l = im->lose; l < im->lose + im->n_lose; l++)
		if (l->opcode == pkt.opcode && happens(im, l->loss))
			return true;
	return false;
}

static void flip_bit(struct impair *im, struct rte_mbuf *m)
{
	uint64_t bit = draw(im) % ((uint64_t)rte_pktmbuf_data_len(m) * 8);

	rte_pktmbuf_mtod(m, uint8_t *)[bit / 8] ^= (uint8_t)(1 << (bit % 8));
}

static bool hold(struct impair *im, struct rte_mbuf *m, uint64_t now)
{
	if (im->n_held == IMPAIR_HELD)
		return false;
	im->held[im->n_held].mbuf = m;
	im->held[im->n_held].left = 1 + (unsigned)(draw(im) % OVERTAKEN_MAX);
	im->held[im->n_held].until_ns = now + HOLD_NS;
	im->n_held++;
	return true;
}

/* Lets go of what has been overtaken enough, or (overtakers 0) has waited long enough. */
static unsigned release(struct impair *im, struct rte_mbuf **out, unsigned overtakers, uint64_t now)
{
	unsigned n = 0, kept = 0;

	for (unsigned i = 0; i < im->n_held; i++) {
		bool go = im->held[i].left <= overtakers || im->held[i].until_ns <= now;

		im->held[i].left -= overtakers < im->held[i].left ? overtakers : 0;
		if (go)
			out[n++] = im->held[i].mbuf;
		else
			im->held[kept++] = im->held[i];
	}
	im->n_held = kept;
	return n;
}

struct impair_result impair_apply(struct impair *im, struct rte_mbuf **in, unsigned n,
	struct rte_mbuf **out, struct rte_mempool *pool, uint64_t now)
{
	struct impair_result r = {0};

	r.out = release(im, out, 0, now);
	for (unsigned i = 0; i < n; i++) {
		struct rte_mbuf *m = in[i], *copy = NULL;

		if (happens(im, im->loss) || opcode_loses(im, m)) {
			rte_pktmbuf_free(m);
			r.lost++;
			continue;
		}
		if (happens(im, im->dup)) {
			copy = rte_pktmbuf_copy(m, pool, 0, UINT32_MAX);
			r.doubled++;
			r.no_mbuf += copy == NULL;
		}
		if (happens(im, im->corrupt) && rte_pktmbuf_data_len(m) > 0)
			flip_bit(im, m);
		if (copy != NULL)
			out[r.out++] = copy;
		if (happens(im, im->reorder) && hold(im, m, now))
			continue;
		out[r.out++] = m;
		r.out += release(im, out + r.out, 1, 0);
	}
	return r;
}

bool impair_loses(struct impair *im)
{
	return happens(im, im->tx_loss);
}

void impair_free_held(struct impair *im)
{
	for (unsigned i = 0; i < im->n_held; i++)
		rte_pktmbuf_free(im->held[i].mbuf);
	im->n_held = 0;
}
