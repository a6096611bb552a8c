/* SPDX-License-Identifier: BSD-3-Clause */
/* SipHash-2-4 (Aumasson, Bernstein 2012): names come from tenants, and who does not know the key
 * cannot make many that fall together. Pure. */
#ifndef MGR_HASH_H
#define MGR_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t mgr_hash(const uint64_t key[2], const void *data, size_t len);

#endif
