/* SPDX-License-Identifier: BSD-3-Clause */
/* What holds of a software RNIC whatever comes, for the targets that have one. */
#ifndef FUZZ_DEVICE_H
#define FUZZ_DEVICE_H

#include "lib/rnic/rnic.h"
#include "tests/fuzz/fuzz.h"

/* A protection domain, completion queues of sends and of receives, and a region of new memory. */
static inline void fuzz_device_open(struct rnic *rnic, uint64_t va, size_t len, int access,
	uint32_t cq_depth, struct rnic_pd **pd, struct rnic_cq *cq[2], uint8_t **mem,
	struct rnic_mr **mr)
{
	*mem = calloc(1, len);
	fuzz_check(rnic_pd_alloc(rnic, pd) == 0, "a domain");
	for (int i = 0; i < 2; i++)
		fuzz_check(rnic_cq_create(rnic, cq_depth, NULL, &cq[i]) == 0, "a queue");
	fuzz_check(rnic_mr_reg(*pd, *mem, len, va, access, mr) == 0, "a region");
}

static inline void fuzz_device_counts(const struct rnic *rnic, unsigned n_ports)
{
	uint64_t drops = 0, of_ports = 0;

	for (unsigned i = 1; i < RNIC_N_DROPS; i++)
		drops += rnic_drop_count(rnic, i);
	for (unsigned i = 0; i < n_ports; i++)
		of_ports += rnic_port_count(rnic, i, RNIC_PORT_C_RX_FRAMES);
	fuzz_check(
		rnic_count(rnic, RNIC_C_RX_FRAMES) == rnic_count(rnic, RNIC_C_RX_ACCEPTED) + drops,
		"every frame is taken or dropped");
	fuzz_check(rnic_count(rnic, RNIC_C_RX_FRAMES) == of_ports, "every frame came to a port");
}

#endif
