/* SPDX-License-Identifier: BSD-3-Clause */
/* The neighbour cache under any order of packets that wait, words of neighbours, true or not, and
 * time. Every packet is settled once; limits hold; who is known and answers keeps his address. */
#include <string.h>

#include "dataplane/l2/neigh_cache.h"
#include "tests/fuzz/fuzz.h"

enum { PACKETS = 4096, PORTS = 2, STEP_LEN = 4 };

static struct neigh_cache cache;
static uint8_t where[PACKETS]; /* 1: in the cache */
static unsigned inside, asked, word_of_used;

static void ask(void *arg, const struct neigh_entry *e, bool unicast)
{
	(void)arg;
	fuzz_check(!unicast || e->state == NEIGH_PROBE, "only who is known is asked alone");
	fuzz_check(e->state == NEIGH_PROBE || e->state == NEIGH_INCOMPLETE, "who asks waits");
	asked++;
}

static void settle(void *arg, const struct neigh_entry *e, void *packet, enum neigh_fate fate)
{
	uint8_t *at = packet;

	(void)arg;
	fuzz_check(*at == 1, "settled once");
	fuzz_check(fate != NEIGH_SEND || neigh_is_known(e), "sent to who is known");
	*at = 0;
	inside--;
}

static bool needed(void *arg, const struct neigh_entry *e)
{
	(void)arg;
	return e->ip.b[15] % 16 == 0;
}

static bool used(void *arg, const struct neigh_entry *e)
{
	(void)arg, (void)e;
	return word_of_used++ % 3 == 0;
}

static const struct neigh_ops ops = {ask, settle, needed, used};

static void check(void)
{
	unsigned n = 0, waiting = 0, of[PORTS] = {0}, never[PORTS] = {0};

	for (unsigned i = 0; i < NEIGH_MAX; i++) {
		const struct neigh_entry *e = &cache.entry[i];

		if (e->state == NEIGH_FREE)
			continue;
		n++;
		of[e->port]++;
		waiting += e->n_waiting;
		never[e->port] += e->state == NEIGH_INCOMPLETE || e->state == NEIGH_FAILED;
		fuzz_check(e->n_waiting == 0 || e->state == NEIGH_INCOMPLETE, "who waits asks");
		fuzz_check(neigh_cache_find(&cache, &e->ip) == e, "found, and once");
	}
	fuzz_check(n == cache.n && waiting == cache.n_waiting && waiting == inside, "counts");
	fuzz_check(waiting <= NEIGH_ALL_WAITING, "packets");
	for (unsigned i = 0; i < PORTS; i++) {
		fuzz_check(of[i] == cache.port[i].n && of[i] <= cache.max_per_port, "a port's");
		fuzz_check(never[i] == cache.port[i].n_asked, "those that never answered");
	}
}

static void step(const uint8_t *d, unsigned packet, uint64_t *now)
{
	const struct wire_ip ip = wire_ip_from4(0x0a000000 + (d[1] | (d[2] & 1) << 8));
	const uint16_t port = d[2] >> 1 & 1, vlan = (d[2] >> 2 & 3) == 3 ? 7 : 0;
	const uint8_t mac[6] = {2, 0, 0, 0, 0, d[3] & 3};

	switch (d[0] % 8) {
	case 0:
	case 1:
	case 2:
		where[packet] = 1;
		inside++;
		neigh_cache_want(&cache, port, vlan, &ip, &where[packet], *now);
		break;
	case 3:
		neigh_cache_want(&cache, port, vlan, &ip, NULL, *now);
		break;
	case 4:
	case 5:
		neigh_cache_heard(
			&cache, (enum neigh_word)((d[3] >> 2) % 3), port, vlan, &ip, mac, *now);
		break;
	case 6:
		*now += UINT64_C(10000000) << d[3] % 18;
		break;
	default:
		*now += 100000000;
		neigh_cache_tick(&cache, *now);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t now = UINT64_C(1000000000);

	neigh_cache_init(&cache, 1 + (size ? data[0] : 0), &ops, NULL);
	inside = asked = word_of_used = 0;
	for (unsigned i = 0; i < PACKETS && (i + 1) * STEP_LEN < size; i++)
		step(data + i * STEP_LEN + 1, i, &now);
	check();
	fuzz_check(asked == cache.count.requests, "requests are counted");
	neigh_cache_clear(&cache);
	check();
	fuzz_check(cache.n == 0 && inside == 0, "nothing is left");
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
