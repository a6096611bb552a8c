/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/inc/drops.h"
#include "dataplane/inc/group.h"

static const struct {
	const char *name, *text;
} drops[INC_N_DROPS] = {[INC_OK] = {"ok", "not dropped"},
#define X(sym, name, text) [INC_DROP_##sym] = {name, text},
	INC_DROPS(X)
#undef X
};

static const char *const counters[INC_N_COUNTERS] = {
#define X(sym, name, text) [INC_C_##sym] = name,
	INC_COUNTERS(X)
#undef X
};

const char *inc_drop_name(enum inc_drop drop)
{
	return drop < INC_N_DROPS ? drops[drop].name : "?";
}

const char *inc_drop_text(enum inc_drop drop)
{
	return drop < INC_N_DROPS ? drops[drop].text : "?";
}

const char *inc_counter_name(enum inc_counter c)
{
	return c < INC_N_COUNTERS ? counters[c] : "?";
}

const char *inc_state_name(unsigned state)
{
	static const char *const names[] = {"free", "installed", "active", "draining", "failed"};

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : "?";
}

const char *inc_fail_name(unsigned reason)
{
	static const char *const names[] = {"none", "ctrl_mismatch", "fatal_nak", "manager"};

	return reason < sizeof(names) / sizeof(names[0]) ? names[reason] : "?";
}
