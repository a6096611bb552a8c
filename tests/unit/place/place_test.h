/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of lib/place share: an engine in a block of its own, tuples, regions. */
#ifndef PLACE_TEST_H
#define PLACE_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/place/place.h"

static inline struct place *engine(const struct place_config *config)
{
	const size_t size = place_size(config);
	struct place *p;
	void *block;

	assert_true(size > 0);
	block = aligned_alloc(64, size);
	assert_non_null(block);
	assert_int_equal(place_init(config, block, &p), 0);
	return p;
}

/* The block begins with struct place. */
static inline void engine_free(struct place *p)
{
	free(p);
}

static inline struct place_tuple tuple_of(uint32_t i)
{
	struct place_tuple t = {.local = wire_ip_from4(0x0a000001),
		.remote = wire_ip_from4(0x0a010000 + (i >> 14)),
		.local_port = 5001,
		.remote_port = (uint16_t)(1024 + (i & 0x3fff)),
		.proto = IP_PROTO_TCP};

	return t;
}

static inline uint32_t region(struct place *p, void *memory, uint64_t len)
{
	uint32_t mr = 0;

	assert_int_equal(place_mr_add(p, memory, len, true, &mr), 0);
	return mr;
}

static inline uint64_t next_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

#endif
