/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of addresses of bridges under any order of frames, pins, links and time, with a packet
 * path that has no room at times. Limits and counts hold, the packet path knows what the table
 * does, and what is pinned stays where it is. */
#include <errno.h>
#include <string.h>

#include "dataplane/l2/mac_table.h"
#include "tests/fuzz/fuzz.h"

enum { STEP_LEN = 4, PORTS = 4, PINS = 4 };

static const uint8_t own[1][6] = {{2, 0, 0, 0, 0, 0xff}};

static struct mac_table table;
static struct mac_entry told[MAC_ENTRIES]; /* key 0: nothing */
static unsigned n_told, word;
static bool has_room;

static int put(void *arg, unsigned i, const struct mac_entry *e)
{
	(void)arg;
	fuzz_check(mac_is_host(&table, e->key), "a host's");
	fuzz_check(told[i].key == 0 || told[i].key == e->key, "its own place");
	if (!has_room)
		return -ENOSPC;
	n_told += told[i].key == 0;
	told[i] = *e;
	return 0;
}

static void forget(void *arg, uint64_t key)
{
	(void)arg;
	for (unsigned i = 0; i < MAC_ENTRIES; i++)
		if (told[i].key == key) {
			told[i].key = 0;
			n_told--;
			return;
		}
	fuzz_check(false, "what is forgotten was known");
}

static bool heard(void *arg, unsigned i)
{
	(void)arg, (void)i;
	return word++ % 3 == 0;
}

static const struct mac_ops ops = {put, forget, heard};

static void check(const struct mac_pin *pins, unsigned n_pins)
{
	unsigned learnt = 0, pinned = 0, of[PORTS] = {0}, known = 0;

	for (unsigned i = 0; i < MAC_ENTRIES; i++) {
		const struct mac_entry *e = &table.entry[i];

		if (!e->used) {
			fuzz_check(told[i].key == 0, "nobody is told of nothing");
			continue;
		}
		pinned += e->pinned;
		learnt += !e->pinned;
		known += e->told;
		of[e->port] += !e->pinned;
		fuzz_check(mac_table_find(&table, e->key) == e, "found, and once");
		fuzz_check(e->told || e->pinned, "told, or tried again");
		fuzz_check(!e->told || told[i].key == e->key, "the packet path's");
		fuzz_check(!e->told || e->pinned || told[i].port == e->port, "port");
	}
	fuzz_check(learnt == table.n_learnt && pinned == table.n_pinned, "counts");
	fuzz_check(known == n_told && pinned <= n_pins, "told");
	for (unsigned i = 0; i < PORTS; i++)
		fuzz_check(of[i] == table.n_of[i] && of[i] <= table.max_per_port, "a port's");
	for (unsigned i = 0; i < n_pins; i++) {
		const struct mac_entry *e = mac_table_find(&table, pins[i].key);

		fuzz_check(e != NULL && e->pinned, "pinned");
	}
}

static uint64_t key_of(const uint8_t *d)
{
	const uint8_t mac[6] = {d[1] == 7 ? 3 : 2, 0, 0, 0, 0, d[1]};

	return mac_key(mac, d[2] & 1);
}

static unsigned pin(const uint8_t *d, struct mac_pin pins[PINS])
{
	unsigned n = 0;

	for (unsigned i = 0; i < d[3] % (PINS + 1u); i++) {
		const uint8_t mac[6] = {2, 0, 0, 0, 0, (uint8_t)(d[1] % 16 + i)};

		pins[n++] = (struct mac_pin){mac_key(mac, d[2] & 1), d[2] >> 1 & 3};
	}
	mac_table_pin(&table, pins, n);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mac_pin pins[PINS];
	unsigned n_pins = 0;
	uint64_t now = UINT64_C(1000000000);

	mac_table_init(
		&table, 1 + (size ? data[0] % 32 : 0), UINT64_C(10000000000), own, 1, &ops, NULL);
	memset(told, 0, sizeof(told));
	n_told = word = 0;
	has_room = true;
	for (const uint8_t *d = data + 1; size > STEP_LEN; d += STEP_LEN, size -= STEP_LEN) {
		switch (d[0] % 8) {
		case 0:
			n_pins = pin(d, pins);
			break;
		case 1:
			mac_table_flush(&table, d[2] >> 1 & 3);
			break;
		case 2:
			has_room = d[3] % 4 != 0;
			break;
		case 3:
			now += UINT64_C(100000000) << d[3] % 8;
			mac_table_tick(&table, now);
			break;
		default:
			mac_table_heard(&table, key_of(d), d[2] >> 1 & 3, now);
		}
	}
	check(pins, n_pins);
	return 0;
}

size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	const size_t len = cap < 1024 ? cap : 1024;

	if (i >= 6)
		return 0;
	for (size_t k = 0; k < len; k++)
		out[k] = (uint8_t)(k * (2 * i + 7) >> (k & 3));
	return len;
}
