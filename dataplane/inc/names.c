/* SPDX-License-Identifier: BSD-3-Clause */
#include <infiniband/verbs.h>

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
	static const char *const names[] = {
#define X(sym, name) [INC_FAIL_##sym] = name,
		INC_FAILS(X)
#undef X
	};

	return reason < sizeof(names) / sizeof(names[0]) ? names[reason] : "?";
}

const char *inc_fail_status_name(unsigned status)
{
	switch (status) {
	case IBV_WC_LOC_LEN_ERR:
		return "local length error";
	case IBV_WC_LOC_PROT_ERR:
		return "local protection error";
	case IBV_WC_WR_FLUSH_ERR:
		return "queue pair went into error";
	case IBV_WC_REM_INV_REQ_ERR:
		return "peer refused the request";
	case IBV_WC_REM_ACCESS_ERR:
		return "peer refused access";
	case IBV_WC_REM_OP_ERR:
		return "peer failed";
	case IBV_WC_RETRY_EXC_ERR:
		return "peer does not answer";
	case IBV_WC_RNR_RETRY_EXC_ERR:
		return "peer takes no message";
	default:
		return "other error";
	}
}
