// SPDX-License-Identifier: BSD-3-Clause
#include "tests/unit/libmrc/headers.c"
