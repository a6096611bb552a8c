/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections and their ladders. A *half* is what goes to one queue pair; requests to it are
 * numbered by its PSNs, and the other half, to the queue pair at the other end, has the answers to
 * them. No packet of RC names its own queue pair, so that two halves are found to be one connection
 * when an answer has the PSN of a request. */
#include <stdlib.h>
#include <string.h>

#include "apps/dissect.h"
#include "lib/wire/psn.h"

enum {
	WINDOW = 32768, /* PSNs behind the newest of which is known whether they were seen */
	HALVES_MAX = 16384,
	BUCKETS = 4096,
	MTU_LEAST = 256,
};

struct half {
	struct half *chain, *peer;
	struct dissect_key key;
	unsigned order;
	bool begun;         /* a request was seen */
	uint32_t next;      /* PSN behind the newest request */
	uint32_t slack;     /* so many more may belong to that: a READ of unknown MTU */
	uint32_t read, mtu; /* bytes of that READ; of the path, 0: unknown */
	uint8_t seen[WINDOW / 8];
	json_t *packets;
	uint64_t requests, responses, naks, again, late, missing;
};

struct dissect_ladder {
	struct half *bucket[BUCKETS];
	struct half **half; /* in their order */
	unsigned n, cap;
	uint64_t left_out; /* packets of more halves than are kept */
};

/* ---- PSNs ---- */

static bool was_seen(const struct half *h, uint32_t psn)
{
	return h->seen[psn % WINDOW / 8] >> psn % 8 & 1;
}

static void set_seen(struct half *h, uint32_t psn, bool seen)
{
	uint8_t *b = &h->seen[psn % WINDOW / 8];

	*b = (uint8_t)(seen ? *b | 1u << psn % 8 : *b & ~(1u << psn % 8));
}

/* The newest PSN is this one: those in between are missing. */
static void advance(struct half *h, uint32_t psn)
{
	const int32_t step = h->begun ? psn_diff(psn, h->next) + 1 : 1;

	if (step >= WINDOW)
		memset(h->seen, 0, sizeof(h->seen));
	else
		for (int32_t i = 0; i < step; i++)
			set_seen(h, psn_add(psn, -i), false);
	set_seen(h, psn, true);
	h->begun = true;
	h->next = psn_add(psn, 1);
	h->slack = 0;
}

/* Packets that answer the READ that was the newest, as far as is known. */
static void spread_read(struct half *h)
{
	const uint32_t first = psn_add(h->next, -1);
	const uint32_t mtu = h->mtu ? h->mtu : MTU_LEAST;
	uint32_t n = h->read / mtu + (h->read % mtu != 0);

	n = n > 1 ? n - 1 : 0;
	if (n >= WINDOW / 2)
		n = WINDOW / 2;
	if (!h->mtu) {
		h->slack = n;
		return;
	}
	for (uint32_t i = 1; i <= n; i++)
		set_seen(h, psn_add(first, (int32_t)i), true);
	h->next = psn_add(h->next, (int32_t)n);
	h->slack = 0;
	h->read = 0;
}

static void mark(json_t *json, const char *text)
{
	json_t *marks = json_object_get(json, "marks");

	if (!marks) {
		marks = json_array();
		json_object_set_new(json, "marks", marks);
	}
	json_array_append_new(marks, json_string(text));
}

static void request(struct half *h, const struct dissect_packet *p)
{
	const int32_t ahead = h->begun ? psn_diff(p->psn, h->next) : 0;
	char text[48];

	h->requests++;
	if (p->whole_mtu && p->payload)
		h->mtu = p->payload;
	if (ahead < 0) {
		const bool again = ahead <= -WINDOW || was_seen(h, p->psn);

		mark(p->json, again ? "retransmission" : "late");
		h->again += again;
		h->late += !again;
		set_seen(h, p->psn, true);
		return;
	}
	if (ahead > (int32_t)h->slack) {
		const uint32_t missing = (uint32_t)ahead - h->slack;

		snprintf(text, sizeof(text), "gap of %u before", missing);
		mark(p->json, text);
		h->missing += missing;
	}
	advance(h, p->psn);
	h->read = p->read;
	if (p->read)
		spread_read(h);
}

/* ---- halves ---- */

static bool same_key(const struct dissect_key *a, const struct dissect_key *b)
{
	return a->dqpn == b->dqpn && a->sqpn == b->sqpn && wire_ip_eq(&a->src, &b->src) &&
	       wire_ip_eq(&a->dst, &b->dst);
}

static unsigned hash(const struct dissect_key *k)
{
	uint32_t h = k->dqpn * 2654435761u ^ k->sqpn * 2246822519u;

	for (unsigned i = 0; i < 16; i++)
		h = (h ^ k->src.b[i]) * 16777619u + k->dst.b[i];
	return (h ^ h >> 16) % BUCKETS;
}

static bool keep(struct dissect_ladder *l, struct half *h)
{
	if (l->n == l->cap) {
		const unsigned cap = l->cap ? 2 * l->cap : 64;
		struct half **more = realloc(l->half, cap * sizeof(*more));

		if (!more)
			return false;
		l->half = more;
		l->cap = cap;
	}
	h->order = l->n;
	l->half[l->n++] = h;
	return true;
}

static struct half *half_of(struct dissect_ladder *l, const struct dissect_key *key)
{
	struct half **at = &l->bucket[hash(key)], *h;

	for (h = *at; h; h = h->chain)
		if (same_key(&h->key, key))
			return h;
	h = l->n < HALVES_MAX ? calloc(1, sizeof(*h)) : NULL;
	if (!h || !keep(l, h)) {
		free(h);
		return NULL;
	}
	h->key = *key;
	h->packets = json_array();
	h->chain = *at;
	*at = h;
	return h;
}

/* The half whose requests this one's answers are for: the newest that has sent this PSN. */
static struct half *find_peer(struct dissect_ladder *l, const struct half *answers, uint32_t psn)
{
	for (unsigned i = l->n; i-- > 0;) {
		struct half *h = l->half[i];

		if (h != answers && !h->peer && h->begun && !h->key.sqpn &&
			wire_ip_eq(&h->key.src, &answers->key.dst) &&
			wire_ip_eq(&h->key.dst, &answers->key.src) && psn_lt(psn, h->next) &&
			psn_diff(h->next, psn) <= WINDOW && was_seen(h, psn))
			return h;
	}
	return NULL;
}

static void response(struct dissect_ladder *l, struct half *h, const struct dissect_packet *p)
{
	struct half *asked;

	h->responses++;
	h->naks += p->nak;
	if (!h->peer) {
		asked = find_peer(l, h, p->psn);
		if (asked) {
			h->peer = asked;
			asked->peer = h;
		}
	}
	/* The first answer to a READ tells how many there are. */
	if (h->peer && p->whole_mtu && p->payload && h->peer->mtu != p->payload) {
		h->peer->mtu = p->payload;
		if (h->peer->read)
			spread_read(h->peer);
	}
	if (p->nak)
		mark(p->json, "nak");
}

struct dissect_ladder *dissect_ladder_new(void)
{
	return calloc(1, sizeof(struct dissect_ladder));
}

void dissect_ladder_add(struct dissect_ladder *l, struct dissect_packet *p)
{
	struct half *h = half_of(l, &p->key);

	if (!h) {
		l->left_out++;
		json_decref(p->json);
		return;
	}
	/* A packet whose ICRC is bad never was. */
	if (p->icrc_bad)
		mark(p->json, "not taken: ICRC");
	else if (p->request)
		request(h, p);
	else
		response(l, h, p);
	json_array_append_new(h->packets, p->json);
}

/* ---- the end ---- */

static json_t *end_of(const struct half *to)
{
	char ip[WIRE_IP_STRLEN], qp[16];

	snprintf(qp, sizeof(qp), "0x%x", to->key.dqpn);
	return json_pack("{s:s,s:s}", "ip", wire_ip_format(&to->key.dst, ip, sizeof(ip)), "qp", qp);
}

static json_t *counts(const struct half *h)
{
	return json_pack("{s:I,s:I,s:I,s:I,s:I,s:I}", "requests", (json_int_t)h->requests,
		"responses", (json_int_t)h->responses, "naks", (json_int_t)h->naks,
		"retransmissions", (json_int_t)h->again, "late", (json_int_t)h->late, "missing",
		(json_int_t)h->missing);
}

static json_int_t number(const json_t *packet)
{
	return json_integer_value(json_object_get(packet, "n"));
}

/* Both halves' packets in the order of the file, each with where it goes. */
static json_t *merge(const struct half *a, const struct half *b)
{
	json_t *out = json_array();
	size_t i = 0, k = 0;
	const size_t n = json_array_size(a->packets), m = b ? json_array_size(b->packets) : 0;

	while (i < n || k < m) {
		const bool first =
			k == m || (i < n && number(json_array_get(a->packets, i)) <
						    number(json_array_get(b->packets, k)));
		json_t *p =
			first ? json_array_get(a->packets, i++) : json_array_get(b->packets, k++);

		json_object_set_new(p, "way", json_string(first ? "a>b" : "b>a"));
		json_array_append(out, p);
	}
	return out;
}

/* a: who has sent the first packet. */
static json_t *connection(const struct half *h)
{
	json_t *out = json_object(), *a;
	char ip[WIRE_IP_STRLEN], qp[16];

	if (h->peer) {
		a = end_of(h->peer);
	} else {
		a = json_pack("{s:s}", "ip", wire_ip_format(&h->key.src, ip, sizeof(ip)));
		snprintf(qp, sizeof(qp), "0x%x", h->key.sqpn);
		if (h->key.sqpn)
			json_object_set_new(a, "qp", json_string(qp));
	}
	json_object_set_new(out, "a", a);
	json_object_set_new(out, "b", end_of(h));
	json_object_set_new(out, "to_b", counts(h));
	if (h->peer)
		json_object_set_new(out, "to_a", counts(h->peer));
	json_object_set_new(out, "packets", merge(h, h->peer));
	return out;
}

json_t *dissect_ladder_end(struct dissect_ladder *l, uint64_t *left_out)
{
	json_t *list = json_array();

	*left_out = l->left_out;
	for (unsigned i = 0; i < l->n; i++)
		if (!l->half[i]->peer || l->half[i]->peer->order > i)
			json_array_append_new(list, connection(l->half[i]));
	for (unsigned i = 0; i < l->n; i++) {
		json_decref(l->half[i]->packets);
		free(l->half[i]);
	}
	free(l->half);
	free(l);
	return list;
}
