/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MAP_TEST_H
#define MAP_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>

int test_link(void);
int test_agent(void);
int test_deny(void);
int test_locate(void);
int test_report(void);

#endif
