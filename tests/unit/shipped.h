/* SPDX-License-Identifier: BSD-3-Clause */
/* The configurations that are shipped. */
#ifndef TEST_SHIPPED_H
#define TEST_SHIPPED_H

#include <jansson.h>

/* Calls check for every JSON file of pmd-configs/, comments and all; those of RNICs are named
 * rnic-*. Returns how many there are. */
unsigned shipped_configs(void (*check)(const char *file, const json_t *json));

#endif
