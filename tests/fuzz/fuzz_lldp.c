/* SPDX-License-Identifier: BSD-3-Clause */
/* LLDP: whatever is accepted can be built again and then reads the same; texts fit; and a table of
 * neighbours that hears it has no more of them than it may. */
#include <string.h>

#include "lib/lldp/table.h"
#include "lib/wire/frame.h"
#include "tests/fuzz/fuzz.h"

static const uint8_t mac[6] = {2, 0, 0, 0, 0, 7};

static void check_texts(const struct wire_lldp *says)
{
	char buf[24];

	for (size_t cap = 1; cap <= sizeof(buf); cap += 23) {
		memset(buf, 'x', sizeof(buf));
		fuzz_check(strlen(wire_lldp_chassis_text(&says->chassis, buf, cap)) < cap, "fits");
		fuzz_check(strlen(wire_lldp_port_text(&says->port, buf, cap)) < cap, "fits");
		fuzz_check(strlen(wire_lldp_name_text(says, buf, cap)) < cap, "fits");
	}
}

/* A port that hears it, for a while, with others beside. */
static void hear(const struct wire_lldp *says)
{
	static struct lldp_table *t;
	struct wire_lldp other = *says;

	t = t != NULL ? t : lldp_table_new(2);
	fuzz_check(t != NULL, "memory");
	memset(t->port, 0, 2 * sizeof(t->port[0]));
	for (unsigned i = 0; i < 2 * LLDP_PER_PORT; i++) {
		lldp_heard(t, i & 1, says, i);
		other.chassis.b[0]++;
		lldp_heard(t, i & 1, &other, i);
		fuzz_check(lldp_neighbours(t) <= 2 * LLDP_PER_PORT, "no more than there is room");
		lldp_turn(t, i & 1, true, i);
	}
	fuzz_check(says->ttl != 0 || lldp_neighbours(t) == 0, "who goes is gone");
	for (unsigned i = 0; i < 2; i++) {
		fuzz_check(
			lldp_due(t, i) > 0 && lldp_due(t, i) <= LLDP_EVERY_NS, "a time to speak");
		lldp_turn(t, i, true, UINT64_C(70000000000000));
	}
	fuzz_check(lldp_neighbours(t) == 0, "nobody is kept for ever");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *frame = malloc(ETH_HDR_LEN + size), again[LLDP_MAX_LEN];
	struct wire_lldp says, back;
	enum wire_lldp_error error;
	int len;

	memset(frame, 0, ETH_HDR_LEN);
	memcpy(frame + ETH_HDR_LEN, data, size);
	wire_is_lldp(frame, ETH_HDR_LEN + size);
	error = wire_lldp_parse(frame, ETH_HDR_LEN + size, &says);
	free(frame);
	fuzz_check(error <= WIRE_LLDP_TTL, "a reason");
	if (error != WIRE_LLDP_OK)
		return 0;
	len = wire_build_lldp(again, sizeof(again), mac, &says);
	fuzz_check(len >= ETH_MIN_LEN && wire_is_lldp(again, (size_t)len), "is built");
	fuzz_check(wire_lldp_parse(again, (size_t)len, &back) == WIRE_LLDP_OK, "is read");
	fuzz_check(memcmp(&says, &back, sizeof(says)) == 0, "says the same");
	check_texts(&says);
	hear(&says);
	return 0;
}

size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	struct wire_lldp says = {.chassis = {(uint8_t)(1 + i), 6, "chass"},
		.port = {(uint8_t)(7 - i), 6, "port 1"},
		.name_len = (uint8_t)(i * 40),
		.ttl = (uint16_t)(i * 20)};
	uint8_t frame[LLDP_MAX_LEN];
	int len;

	if (i >= 7)
		return 0;
	memset(says.name, 'n', sizeof(says.name));
	len = wire_build_lldp(frame, sizeof(frame), mac, &says);
	if (len < 0 || (size_t)len - ETH_HDR_LEN > cap)
		return 0;
	memcpy(out, frame + ETH_HDR_LEN, (size_t)len - ETH_HDR_LEN);
	return (size_t)len - ETH_HDR_LEN;
}
