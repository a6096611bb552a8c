/* SPDX-License-Identifier: BSD-3-Clause */
#include "apps/wireshark_probe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MEMBERS = 24, MAX_BITS = 64, MAX_BYTES = 96, NOWHERE = -1 };

struct found {
	int wire[MAX_MEMBERS][MAX_BITS]; /* bit of a member: bit of the packet */
	const char *why[8 * MAX_BYTES];  /* bit of the packet: why it cannot be another */
	int flag;
};

static void fail(const char *name, const char *what)
{
	fprintf(stderr, "wireshark_facts: %s: %s\n", name, what);
	exit(1);
}

static uint64_t value(const uint8_t *host, const struct member *m)
{
	uint64_t v = 0;

	memcpy(&v, host + m->off, m->size); /* of a little-endian machine, as everything here */
	return v;
}

/* One bit was turned: who has changed? A relative one moves with what it counts from, too. */
static void compare(
	const struct layout *l, const uint8_t *was, const uint8_t *is, int bit, struct found *found)
{
	bool absolute = false;

	for (int relative = 0; relative < 2; relative++) {
		for (unsigned i = 0; l->members[i].name; i++) {
			const struct member *m = &l->members[i];
			const uint64_t changed = value(was, m) ^ value(is, m);

			if (!changed || (m->show == SHOW_RELATIVE) != relative ||
				(relative && absolute))
				continue;
			absolute = true;
			if (!relative && changed & (changed - 1))
				fail(m->name, "a bit of the packet is more than one of the field");
			found->wire[i][__builtin_ctzll(changed)] = bit;
		}
	}
}

static void look(const struct layout *l, struct found *found)
{
	uint8_t was[PROBE_HOST] = {0}, is[PROBE_HOST];
	const char *why = l->read(l->bytes, l->whole, was);

	memset(found->wire, NOWHERE, sizeof(found->wire));
	memset(found->why, 0, sizeof(found->why));
	found->flag = NOWHERE;
	if (why || l->len > MAX_BYTES)
		fail("a packet that was built here is refused", why ? why : "too long");
	for (size_t bit = 8 * l->from; bit < 8 * l->len; bit++) {
		uint8_t *byte = &l->bytes[bit / 8];
		const uint8_t mask = (uint8_t)(0x80 >> bit % 8);

		memset(is, 0, sizeof(is));
		*byte ^= mask;
		found->why[bit] = l->read(l->bytes, l->whole, is);
		*byte ^= mask;
		if (found->why[bit])
			continue;
		if (l->flag != NO_FLAG && was[l->flag] != is[l->flag])
			found->flag = (int)bit;
		else
			compare(l, was, is, (int)bit, found);
	}
}

/* Bits that follow each other, the highest first, or whole bytes, the lowest first. */
static bool place_of(const char *name, const int *wire, struct place *p)
{
	bool big = true, little = true;
	int n = 0, first;

	while (n < MAX_BITS && wire[n] != NOWHERE)
		n++;
	if (!n)
		return false;
	for (int i = 0; i < n; i++) {
		big = big && wire[i] == wire[0] - i;
		little = little && wire[i] == wire[0] + 8 * (i / 8) - i % 8;
	}
	if (!big && !(little && n % 8 == 0 && wire[0] % 8 == 7))
		fail(name, "its bits lie neither way");
	first = big ? wire[n - 1] : wire[0] - 7;
	*p = (struct place){.at = (size_t)first / 8,
		.bit = (unsigned)first % 8,
		.bits = (unsigned)n,
		.little = !big};
	p->len = (p->bit + p->bits + 7) / 8;
	return true;
}

bool probe_place(const struct layout *l, const char *name, struct place *place)
{
	struct found found;

	look(l, &found);
	for (unsigned i = 0; l->members[i].name; i++)
		if (strcmp(l->members[i].name, name) == 0)
			return place_of(name, found.wire[i], place);
	return false;
}

static void print_field(const struct layout *l, const struct member *m, const struct place *p,
	size_t (*need)(const struct layout *l, size_t end))
{
	static const char *const shows[] = {"dec", "hex", "flag", "text", "relative"};

	printf("{name=\"%s\", title=\"%s\", show=\"%s\", at=%zu, len=%zu, bit=%u, bits=%u", m->name,
		m->title, shows[m->show], p->at, p->len, p->bit, p->bits);
	if (p->little)
		printf(", little=true");
	if (m->size == 8)
		printf(", wide=true");
	if (m->words)
		printf(", words=\"%s\"", m->words);
	if (m->scale)
		printf(", scale=%u", m->scale);
	printf(", need=%zu},\n\t\t", need ? need(l, p->at + p->len) : l->len);
}

/* Runs of bits that cannot be others. */
static void print_must(const struct layout *l, const struct found *found)
{
	for (size_t bit = 8 * l->from, end; bit < 8 * l->len; bit = end) {
		uint32_t is = 0;

		for (end = bit;
			end < 8 * l->len && end < bit + 32 && found->why[end] == found->why[bit];
			end++)
			is = is << 1 | (l->bytes[end / 8] >> (7 - end % 8) & 1);
		if (found->why[bit])
			printf("{at=%zu, len=%zu, bit=%zu, bits=%zu, is=%u, why=\"%s\"}, ", bit / 8,
				(end + 7) / 8 - bit / 8, bit % 8, end - bit, is, found->why[bit]);
	}
}

void probe_print(const struct layout *l, size_t (*need)(const struct layout *l, size_t end))
{
	struct found found;
	struct place p;

	look(l, &found);
	printf("len=%zu,\n\tfields={", l->len);
	for (unsigned i = 0; l->members[i].name; i++)
		if (place_of(l->members[i].name, found.wire[i], &p))
			print_field(l, &l->members[i], &p, need);
	printf("},\n\tmust={");
	print_must(l, &found);
	printf("},");
	if (found.flag != NOWHERE)
		printf("\n\tflag={at=%d, bit=%d},", found.flag / 8, found.flag % 8);
}
