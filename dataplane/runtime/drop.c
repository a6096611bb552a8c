/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/runtime/drop.h"

/* The RNIC's own list knows losses only; what it has had before it acknowledges again. */
static const struct {
	const char *name, *text;
	bool outcome;
} drops[N_DROPS] = {[DROP_NONE] = {"none", "not dropped", false},
#define X(sym, name, text) [DROP_WIRE_##sym] = {name, text, false},
	WIRE_DROPS(X)
#undef X
#define X(sym, name, text) [DROP_INC_##sym] = {name, text, false},
		INC_LOSSES(X)
#undef X
#define X(sym, name, text) [DROP_INC_##sym] = {name, text, true},
			INC_OUTCOMES(X)
#undef X
#define X(sym, name, text) [DROP_NR_##sym] = {name, text, false},
				NR_LOSSES(X)
#undef X
#define X(sym, name, text) [DROP_NR_##sym] = {name, text, true},
					NR_OUTCOMES(X)
#undef X
#define X(sym, name, text) [DROP_RNIC_##sym] = {name, text, DROP_RNIC_##sym == DROP_RNIC_DUPLICATE},
						RNIC_DROPS(X)
#undef X
#define X(sym, name, text) [DROP_SRV6_##sym] = {name, text, false},
							SRV6_DROPS(X)
#undef X
#define X(sym, name, text) [DROP_##sym] = {name, text, false},
								SW_LOSSES(X)
#undef X
#define X(sym, name, text) [DROP_##sym] = {name, text, true},
									SW_OUTCOMES(X)
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

bool drop_is_outcome(enum drop drop)
{
	return drop < N_DROPS && drops[drop].outcome;
}
