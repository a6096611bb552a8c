/* SPDX-License-Identifier: BSD-3-Clause */
/* Wakes a thread that sleeps in port_backoff until there is something in a ring for it. One thread
 * sleeps; any rings, after it has put something there. */
#ifndef VERBS_BELL_H
#define VERBS_BELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/port/port.h"

struct iv_bell {
	/* Written to once for each time that asleep goes from true to false by somebody else; read
	 * after every sleep, without waiting. */
	int fd;
	atomic_bool asleep;
};

/* False: no descriptor is left. fini also after that. */
bool iv_bell_init(struct iv_bell *bell);
void iv_bell_fini(struct iv_bell *bell);
void iv_bell_ring(struct iv_bell *bell);
/* port_backoff, which the bell wakes. ready: is there something after all? */
void iv_bell_back_off(struct iv_bell *bell, bool (*ready)(void *arg), void *arg,
	struct port_backoff *backoff, unsigned work, uint64_t now, uint64_t deadline);

#endif
