/* SPDX-License-Identifier: BSD-3-Clause */
/* What is in memory, and what has to be there. */
#include <string.h>

#include "tests/interop/verbs_ops.h"

uint8_t *area(unsigned region, unsigned i)
{
	return state.memory + (region * OPS_MAX + i) * (size_t)AREA;
}

uint64_t remote(unsigned region, unsigned i)
{
	return state.there.addr + (region * OPS_MAX + i) * (uint64_t)AREA;
}

/* What side has in that region for operation i of this round; RECV and IN are the other's OUT. */
static uint8_t content(int side, unsigned region, unsigned i, uint32_t at)
{
	uint32_t x = (uint32_t)side * 0x9e3779b1u + region * 0x85ebca6bu + i * 0xc2b2ae35u +
		     (uint32_t)state.round * 0x27d4eb2fu + at * 0x165667b1u;

	return (uint8_t)((x ^ x >> 15) >> 3);
}

void fill(unsigned region)
{
	for (unsigned i = 0; i < conf.n_ops; i++)
		for (uint32_t k = 0; k < AREA; k++)
			area(region, i)[k] = content(conf.side, region, i, k);
}

uint64_t number(int side, unsigned i)
{
	uint64_t v = 0;

	for (uint32_t k = 0; k < sizeof(v); k++)
		((uint8_t *)&v)[k] = content(side, SHARED, i, k);
	return v;
}

void expect(unsigned region, unsigned i, uint32_t skip, uint32_t n, int side, unsigned theirs)
{
	const uint8_t *p = area(region, i) + skip;

	for (uint32_t k = 0; k < n; k++)
		if (p[k] != content(side, theirs, i, k))
			fail("operation %u, %s:%u: byte %u is 0x%02x, not 0x%02x", i,
				conf.op[i].verb->name, conf.op[i].len, k, p[k],
				content(side, theirs, i, k));
	state.bytes += n;
	for (uint32_t k = skip + n; k < AREA && region != OUT; k++)
		if (area(region, i)[k] != 0)
			fail("operation %u, %s:%u: byte %u behind it was written", i,
				conf.op[i].verb->name, conf.op[i].len, k - skip - n);
}

/* What an atomic has fetched, or left behind. */
static void expect_number(unsigned region, unsigned i, uint64_t want)
{
	uint64_t got;

	memcpy(&got, area(region, i), sizeof(got));
	if (got != want)
		fail("operation %u, %s: 0x%016llx, not 0x%016llx", i, conf.op[i].verb->name,
			(unsigned long long)got, (unsigned long long)want);
}

void verify(unsigned i)
{
	const struct op *op = &conf.op[i];
	uint64_t mine = number(conf.side, i), theirs = number(other(), i);
	bool atomic = op->verb->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		      op->verb->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	bool write = op->verb->opcode == IBV_WR_RDMA_WRITE ||
		     op->verb->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

	if (op->verb->status != IBV_WC_SUCCESS) { /* it must have done nothing */
		if (asks(other()) && write)
			expect(IN, i, 0, 0, other(), OUT);
		if (asks(other()) && atomic)
			expect_number(SHARED, i, mine);
		return;
	}
	if (asks(conf.side) && op->verb->opcode == IBV_WR_RDMA_READ)
		expect(OUT, i, 0, op->len, other(), SHARED);
	if (asks(conf.side) && atomic)
		expect_number(OUT, i, theirs);
	if (asks(other()) && write)
		expect(IN, i, 0, op->len, other(), OUT);
	if (asks(other()) && op->verb->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		expect_number(SHARED, i, mine + theirs);
	if (asks(other()) && op->verb->opcode == IBV_WR_ATOMIC_CMP_AND_SWP)
		expect_number(SHARED, i, state.round & 1 ? mine : theirs);
}
