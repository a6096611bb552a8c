/* SPDX-License-Identifier: BSD-3-Clause */
/* When a switch is dialled again. Whom nobody answers for, or who hangs up, is dialled five times a
 * second: bounds of docs/manager.md lean on it. Where TLS says no somebody has to do something
 * first: twice as long passes after each time, to 5 s, and why is said when it changes. No clock:
 * times are nanoseconds, monotonic. */
#ifndef MANAGER_REDIAL_H
#define MANAGER_REDIAL_H

#include <stdbool.h>
#include <stdint.h>

enum { REDIAL_WHY_LEN = 320 };

/* Zero at first. */
struct redial {
	uint64_t dialled;  /* when last */
	uint64_t pause_ns; /* since TLS says no: from then to the next time; 0: it does not */
	char why[REDIAL_WHY_LEN]; /* it said no last, "": it does not */
};

bool redial_is_due(const struct redial *r, uint64_t now);
/* It was well, or nobody was there, or hung up: what was before is forgotten. */
void redial_anew(struct redial *r);
/* TLS says no, and why. true: that is news. */
bool redial_refused(struct redial *r, const char *why);

#endif
