/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/match/prefix6.h"

#include <errno.h>
#include <rte_branch_prediction.h>
#include <rte_fib6.h>
#include <rte_malloc.h>
#include <rte_prefetch.h>
#include <rte_random.h>
#include <stdio.h>
#include <string.h>

#include "dataplane/match/wide.h"

enum {
	NEAR_BITS = 48, /* block and uSID; a subnet's site */
	NEAR_INDEX_BITS = 10,
	MIN_SLOT_BITS = 4,
	FAR_SLOTS = 8192, /* from here on slots are fetched ahead: a CPU's second cache has less */
	STRANGE = 4,      /* so many that differ one after the other: a burst of all sorts */
	LOOKUP_BURST = 64,
	TBL8_SPARE = 256,
	DIRECT_BITS = 24,
	MAX_2B = 32767, /* tables that two bytes can name */
};

/* Half an address as it is in memory: what masks are for, no numbers. */
struct halves {
	uint64_t hi, lo;
};

struct slot {
	struct halves key; /* zeros behind the prefix */
	uint16_t value;
	uint8_t used; /* its length plus 1; 0: free */
};

struct length {
	struct halves mask;
	uint8_t used; /* as of its slots */
	uint32_t left;
} __rte_aligned(32);

struct prefix6 {
	struct rte_fib6 *trie; /* NULL: the hash table */
	uint16_t none;         /* the default route's, if there is one */
	unsigned shift, n_lengths;
	uint32_t last;        /* slot */
	struct halves secret; /* random: nobody can choose what lies together */
	struct slot *slot;
	struct length length[PREFIX6_BITS]; /* the longest first */
	/* By a hash of an address's first bits: lengths of rows that these may begin, a bit each,
	 * if there are bits for all. */
	uint32_t near[1 << NEAR_INDEX_BITS];
};

/* ---- the hash table ---- */

static inline struct halves halves_of(const struct wire_ip *ip)
{
	struct halves h;

	memcpy(&h, ip, sizeof(h));
	return h;
}

static struct halves mask_of(unsigned bits)
{
	struct wire_ip mask = {{0}};

	memset(mask.b, 0xff, bits / 8);
	if (bits % 8)
		mask.b[bits / 8] = (uint8_t)(0xff00 >> bits % 8);
	return halves_of(&mask);
}

static inline struct halves masked(struct halves ip, struct halves mask)
{
	return (struct halves){ip.hi & mask.hi, ip.lo & mask.lo};
}

/* The first 48 bits are the lower ones of a little-endian half. */
static inline unsigned near_of(struct halves ip)
{
	const uint64_t first = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
				       ? ip.hi << (64 - NEAR_BITS)
				       : ip.hi >> (64 - NEAR_BITS);

	return (unsigned)(first * UINT64_C(0x9e3779b97f4a7c15) >> (64 - NEAR_INDEX_BITS));
}

static inline uint64_t folded(uint64_t a, uint64_t b)
{
	const unsigned __int128 x = (unsigned __int128)a * b;

	return (uint64_t)(x >> 64) ^ (uint64_t)x;
}

/* Hosts and subnets are numbered by the last bytes of each half, and one after the other: what is
 * simpler (sums of products, one product, its upper or lower half) has draws of the secret with
 * which such numbers lie in heaps. Any odd factors with half of their bits set do. */
static inline uint32_t slot_of(const struct prefix6 *p, struct halves key)
{
	const uint64_t hi = folded(key.hi ^ p->secret.hi, UINT64_C(0x9e3779b97f4a7c15));

	return (uint32_t)(folded(hi ^ key.lo ^ p->secret.lo, UINT64_C(0xd6e8feb86659fd93)) >>
			  p->shift);
}

static inline bool is_of(const struct slot *s, struct halves key)
{
	return ((s->key.hi ^ key.hi) | (s->key.lo ^ key.lo)) == 0;
}

/* That of this prefix, or the free one where it would be. */
static inline const struct slot *seek(
	const struct prefix6 *p, const struct length *l, struct halves key)
{
	uint32_t at = slot_of(p, key);

	for (;; at = (at + 1) & p->last) {
		const struct slot *s = &p->slot[at];

		if ((s->used == l->used && is_of(s, key)) || s->used == 0)
			return s;
	}
}

/* A row that was found and is the one of all that begin with it: packets of a burst have much in
 * common. */
struct recent {
	const struct length *length;
	const struct slot *slot;
};

static inline uint16_t find_near(const struct prefix6 *p, struct halves ip, struct recent *r)
{
	const uint32_t all = p->near[near_of(ip)];

	for (uint32_t left = all; left != 0; left &= left - 1) {
		const struct length *l = &p->length[(unsigned)__builtin_ctz(left)];
		const struct slot *s = seek(p, l, masked(ip, l->mask));

		if (s->used == 0)
			continue;
		/* What begins with it has the same lengths to be asked for, and this first. */
		if (left == all && l->used > NEAR_BITS)
			*r = (struct recent){l, s};
		return s->value;
	}
	return p->none;
}

static uint16_t find_any(const struct prefix6 *p, struct halves ip)
{
	for (unsigned k = 0; k < p->n_lengths; k++) {
		const struct length *l = &p->length[k];
		const struct slot *s = seek(p, l, masked(ip, l->mask));

		if (s->used != 0)
			return s->value;
	}
	return p->none;
}

/* Where the first of its prefixes would be. */
static inline void fetch(const struct prefix6 *p, const struct wire_ip *ip)
{
	const struct halves whole = halves_of(ip);
	const uint32_t near = p->near[near_of(whole)];
	const struct length *l = &p->length[near ? __builtin_ctz(near) : 0];

	rte_prefetch0(&p->slot[slot_of(p, masked(whole, l->mask))]);
}

static void hash_lookup(
	const struct prefix6 *p, const struct wire_ip *ip, uint16_t *value, unsigned n)
{
	static const struct length no_length;
	static const struct slot no_slot = {.key = {UINT64_MAX, UINT64_MAX}};
	struct recent r = {&no_length, &no_slot};
	unsigned i = 0, strange = 0;

	if (unlikely(p->n_lengths > PREFIX6_FEW_LENGTHS)) {
		for (; i < n; i++)
			value[i] = find_any(p, halves_of(&ip[i]));
		return;
	}
	if (p->last >= FAR_SLOTS)
		for (unsigned k = 0; k < n; k++)
			fetch(p, &ip[k]);
	for (; i < n && strange < STRANGE; i++) {
		const struct halves whole = halves_of(&ip[i]);
		const bool known = is_of(r.slot, masked(whole, r.length->mask));

		value[i] = known ? r.slot->value : find_near(p, whole, &r);
		strange = known ? 0 : strange + 1;
	}
	for (; i < n; i++)
		value[i] = find_near(p, halves_of(&ip[i]), &r);
}

/* Rows that are shorter than what is looked at begin any of it. */
static void note_near(struct prefix6 *p, unsigned length, unsigned bits, struct halves key)
{
	const uint32_t bit = 1u << length % PREFIX6_FEW_LENGTHS;

	if (bits >= NEAR_BITS)
		p->near[near_of(key)] |= bit;
	else if (!(p->near[0] & bit))
		for (unsigned i = 0; i < 1 << NEAR_INDEX_BITS; i++)
			p->near[i] |= bit;
}

static int hash_add(struct prefix6 *p, const struct wire_ip *ip, unsigned bits, uint16_t value)
{
	struct halves key;
	struct length *l;
	struct slot *s;
	unsigned k = 0;

	if (bits == 0) {
		p->none = value;
		return 0;
	}
	while (k < p->n_lengths && p->length[k].used != bits + 1)
		k++;
	if (k == p->n_lengths)
		return -ENOMEM;
	l = &p->length[k];
	key = masked(halves_of(ip), l->mask);
	s = (struct slot *)(uintptr_t)seek(p, l, key);
	if (s->used == 0) {
		if (l->left == 0)
			return -ENOMEM;
		l->left--;
		note_near(p, k, bits, key);
	}
	*s = (struct slot){key, value, l->used};
	return 0;
}

/* No more than half of the slots are ever used. */
static int hash_create(struct prefix6 *p, const struct prefix6_sizes *sizes, uint32_t rows)
{
	unsigned slot_bits = MIN_SLOT_BITS;

	while (UINT32_C(1) << slot_bits < 2 * rows)
		slot_bits++;
	p->slot = rte_zmalloc("prefix6", sizeof(*p->slot) << slot_bits, RTE_CACHE_LINE_SIZE);
	if (p->slot == NULL)
		return -ENOMEM;
	p->shift = 64 - slot_bits;
	p->last = (UINT32_C(1) << slot_bits) - 1;
	p->secret = (struct halves){rte_rand(), rte_rand()};
	for (unsigned bits = PREFIX6_BITS; bits > 0; bits--)
		if (sizes->n[bits] > 0)
			p->length[p->n_lengths++] =
				(struct length){mask_of(bits), (uint8_t)(bits + 1), sizes->n[bits]};
	return 0;
}

unsigned prefix6_longest(const struct prefix6 *p)
{
	unsigned longest = 0;

	for (uint32_t i = 0; p->slot != NULL && i <= p->last; i++)
		if (p->slot[i].used)
			longest =
				RTE_MAX(longest, ((i - slot_of(p, p->slot[i].key)) & p->last) + 1);
	return longest;
}

/* ---- the trie ---- */

/* How many second-level tables of 256 addresses a prefix can take: none for up to the 24 bits that
 * are looked up at once, then one for each further 8. */
static uint32_t tbl8s(unsigned bits)
{
	return bits <= DIRECT_BITS ? 0 : (bits - DIRECT_BITS + 7) / 8;
}

/* An entry is a value or the number of a second-level table: what has too many of these for two
 * bytes has entries of four. */
static int trie_create(struct prefix6 *p, const struct prefix6_sizes *sizes, uint32_t rows)
{
	static unsigned serial; /* old and new live side by side */
	struct rte_fib6_conf conf = {
		.type = RTE_FIB6_TRIE, .default_nh = p->none, .max_routes = (int)rows + 2};
	uint32_t num_tbl8 = TBL8_SPARE;
	char name[32];
	uint16_t width;

	for (unsigned bits = 0; bits <= PREFIX6_BITS; bits++)
		num_tbl8 += sizes->n[bits] * tbl8s(bits);
	conf.trie.num_tbl8 = num_tbl8;
	conf.trie.nh_sz = num_tbl8 > MAX_2B ? RTE_FIB6_TRIE_4B : RTE_FIB6_TRIE_2B;
	snprintf(name, sizeof(name), "prefix6.%u", serial++);
	p->trie = rte_fib6_create(name, SOCKET_ID_ANY, &conf);
	if (p->trie == NULL)
		return -ENOMEM;
	width = wide_begin();
	if (width != 0) {
		rte_fib6_select_lookup(p->trie, RTE_FIB6_LOOKUP_TRIE_VECTOR_AVX512);
		wide_end(width);
	}
	return 0;
}

static void trie_lookup(
	const struct prefix6 *p, const struct wire_ip *ip, uint16_t *value, unsigned n)
{
	uint8_t copy[LOOKUP_BURST][RTE_FIB6_IPV6_ADDR_SIZE];
	uint64_t next[LOOKUP_BURST];

	for (unsigned from = 0; from < n; from += LOOKUP_BURST) {
		const unsigned some = RTE_MIN(n - from, (unsigned)LOOKUP_BURST);

		memcpy(copy, ip + from, some * sizeof(copy[0]));
		rte_fib6_lookup_bulk(p->trie, copy, next, (int)some);
		for (unsigned i = 0; i < some; i++)
			value[from + i] = (uint16_t)next[i];
	}
}

/* ---- either ---- */

void prefix6_count(struct prefix6_sizes *sizes, const struct wire_ip *ip, unsigned bits)
{
	const struct halves mask = mask_of(bits), key = masked(halves_of(ip), mask);

	sizes->n[bits]++;
	sizes->last |= bits > 0 && key.hi == mask.hi && key.lo == mask.lo;
}

int prefix6_create(const struct prefix6_sizes *sizes, uint16_t none, struct prefix6 **made)
{
	struct prefix6 *p = rte_zmalloc("prefix6", sizeof(*p), RTE_CACHE_LINE_SIZE);
	uint32_t rows = sizes->n[0], lengths = 0;
	int rc;

	if (p == NULL)
		return -ENOMEM;
	for (unsigned bits = 1; bits <= PREFIX6_BITS; bits++) {
		rows += sizes->n[bits];
		lengths += sizes->n[bits] > 0;
	}
	p->none = none;
	if (sizes->last ||
		lengths <= (rows <= PREFIX6_FEW ? PREFIX6_FEW_LENGTHS : PREFIX6_MANY_LENGTHS))
		rc = hash_create(p, sizes, rows);
	else
		rc = trie_create(p, sizes, rows);
	if (rc == 0)
		*made = p;
	else
		prefix6_destroy(p);
	return rc;
}

void prefix6_destroy(struct prefix6 *p)
{
	if (p == NULL)
		return;
	rte_fib6_free(p->trie);
	rte_free(p->slot);
	rte_free(p);
}

int prefix6_add(struct prefix6 *p, const struct wire_ip *ip, unsigned bits, uint16_t value)
{
	if (p->trie != NULL)
		return rte_fib6_add(p->trie, ip->b, (uint8_t)bits, value) == 0 ? 0 : -ENOMEM;
	return hash_add(p, ip, bits, value);
}

void prefix6_lookup(const struct prefix6 *p, const struct wire_ip *ip, uint16_t *value, unsigned n)
{
	if (p->trie != NULL)
		trie_lookup(p, ip, value, n);
	else
		hash_lookup(p, ip, value, n);
}

bool prefix6_is_trie(const struct prefix6 *p)
{
	return p->trie != NULL;
}
