/* SPDX-License-Identifier: BSD-3-Clause */
/* Trimmed frames, byte for byte. */
#include "dataplane/egress/trim.h"

#include <string.h>

#include "lib/wire/bytes.h"
#include "packets.h"

enum { TRIMMED = 12, TOS = 4 << 2 | IP_ECN_ECT0 };

/* What has to come out, written here once more by hand. */
static unsigned expected(uint8_t *want, int family, uint16_t vlan, unsigned pay_len, unsigned keep)
{
	const unsigned l3 = vlan ? 18 : 14, len = keep + l3 - 14;
	const uint8_t tos = TRIMMED << 2 | IP_ECN_ECT0;

	frame_of(want, family, vlan, TOS, pay_len);
	if (family == 4) {
		want[l3 + 1] = tos;
		put_be16(want + l3 + 2, (uint16_t)(len - l3));
		put_be16(want + l3 + 10, 0);
		put_be16(want + l3 + 10, (uint16_t)~ip_sum(want + l3, 20, 0));
	} else {
		want[l3] = 0x60 | tos >> 4;
		want[l3 + 1] = (uint8_t)(tos << 4);
		put_be16(want + l3 + 4, (uint16_t)(len - l3 - 40));
	}
	return len;
}

static void byte_for_byte(void **state)
{
	static const unsigned keeps[] = {74, 75, 82, 128, 152, 256, 1023};

	(void)state;
	for (unsigned i = 0; i < 7 * 8; i++) {
		const int family = i & 1 ? 6 : 4;
		const uint16_t vlan = i & 2 ? 0x2007 : 0;
		const unsigned keep = keeps[i / 8];
		struct rte_mbuf *m = packet(family, vlan, TOS, 1024, i & 4);
		uint8_t want[FRAME_MAX], got[FRAME_MAX];
		unsigned len = expected(want, family, vlan, 1024, keep);
		struct wire_outer outer = wire_outer(rte_pktmbuf_mtod(m, uint8_t *), m->data_len);
		struct wire_outer again;

		assert_int_equal(egress_trimmed_len(m, &outer, keep), len);
		egress_trim(m, &outer, len, TRIMMED);
		assert_int_equal(bytes_of(m, got), len);
		assert_memory_equal(got, want, len);
		again = wire_outer(got, len);
		assert_int_equal(again.tos >> 2, TRIMMED);
		rte_pktmbuf_free(m);
		assert_int_equal(packets_in_use(), 0);
	}
}

/* Segments beyond the end go back at once, those before stay. */
static void segments(void **state)
{
	struct rte_mbuf *m = packet(4, 0, TOS, 1024, true);
	struct wire_outer outer = wire_outer(rte_pktmbuf_mtod(m, uint8_t *), m->data_len);
	unsigned head = m->data_len;

	(void)state;
	egress_trim(m, &outer, head + 1, TRIMMED);
	assert_int_equal(m->nb_segs, 2);
	assert_int_equal(m->next->data_len, 1);
	assert_int_equal(packets_in_use(), 2);
	egress_trim(m, &outer, head, TRIMMED);
	assert_int_equal(m->nb_segs, 1);
	assert_int_equal(m->data_len, head);
	assert_null(m->next);
	assert_int_equal(packets_in_use(), 1);
	rte_pktmbuf_free(m);
}

static unsigned len_of(struct rte_mbuf *m, unsigned keep)
{
	struct wire_outer outer = wire_outer(rte_pktmbuf_mtod(m, uint8_t *), m->data_len);

	return egress_trimmed_len(m, &outer, keep);
}

static void not_trimmed(void **state)
{
	struct rte_mbuf *m = packet(6, 0, TOS, 100, false), *other;

	(void)state;
	assert_int_equal(len_of(m, m->pkt_len), 0); /* nothing would be saved */
	assert_int_equal(len_of(m, m->pkt_len - 1), m->pkt_len - 1);
	assert_int_equal(len_of(m, 14 + 39), 0); /* a part of the header */
	assert_int_equal(len_of(m, 14 + 40), 14 + 40);
	rte_mbuf_refcnt_set(m, 2);
	assert_int_equal(len_of(m, 64), 0); /* somebody else's, too */
	rte_mbuf_refcnt_set(m, 1);
	other = packet(4, 0, TOS, 1, false);
	rte_pktmbuf_free(other->next);
	rte_pktmbuf_attach(other, m);
	assert_int_equal(len_of(other, 64), 0); /* a reference to it */
	rte_pktmbuf_free(other);
	rte_pktmbuf_mtod(m, uint8_t *)[12] = 0x12;
	assert_int_equal(len_of(m, 64), 0); /* not IP */
	rte_pktmbuf_free(m);
	assert_int_equal(packets_in_use(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(byte_for_byte),
		cmocka_unit_test(segments),
		cmocka_unit_test(not_trimmed),
	};

	return cmocka_run_group_tests(tests, packets_setup, packets_teardown);
}
