/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/drop.h"

static const struct {
	const char *name, *text;
} drops[N_DROPS] = {[DROP_NONE] = {"none", "not dropped"},
#define X(sym, name, text) [DROP_WIRE_##sym] = {name, text},
	WIRE_DROPS(X)
#undef X
#define X(sym, name, text) [DROP_INC_##sym] = {name, text},
		INC_DROPS(X)
#undef X
#define X(sym, name, text) [DROP_NR_##sym] = {name, text},
			NR_DROPS(X)
#undef X
#define X(sym, name, text) [DROP_RNIC_##sym] = {name, text},
				RNIC_DROPS(X)
#undef X
#define X(sym, name, text) [DROP_##sym] = {name, text},
					SW_DROPS(X)
#undef X
};

const char *drop_name(enum drop drop)
{
	return drop < N_DROPS ? drops[drop].name : "?";
}

const char *drop_text(enum drop drop)
{
	return drop < N_DROPS ? drops[drop].text : "?";
}
