/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of fields that files are checked with, and the pages of docs/ that are made of them. */
#ifndef TEST_CTL_FIELDS_CHECK_H
#define TEST_CTL_FIELDS_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs the above first */
#include <cmocka.h>

#include "lib/ctl/config.h"

/* Every field has a meaning, and a default that it would accept. */
void fields_are_sound(const struct ctl_field *fields);
/* A page of DOCS has between its marks what tools/docs would write there. */
void page_is_made_of(const char *name, const char *begin, const struct ctl_field *object);

#endif
