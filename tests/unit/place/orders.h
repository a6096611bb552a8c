/* SPDX-License-Identifier: BSD-3-Clause */
/* Put before the room's sources (-include): PLACE_STEP is a call into the test. */
#ifndef PLACE_ORDERS_H
#define PLACE_ORDERS_H

#include <stdbool.h>

void orders_step(const volatile void *address, bool writes);

#endif
