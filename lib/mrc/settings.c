/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mrc/settings.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "lib/wire/mrc.h"
#include "lib/wire/roce.h"

/* What lib/wire knows of the same. */
_Static_assert((int)MRC_DFLT_udp_port == ROCE_UDP_PORT, "one port");
_Static_assert((int)MRC_DFLT_wimm_syndrome == MRC_SYNDROME_WIMM, "one syndrome");
#define ONE(name, sym) \
	_Static_assert((int)MRC_DFLT_dscp_##name == (int)MRC_DSCP_##sym, "one DSCP of a class")
ONE(no_trim, NO_TRIM);
ONE(trimmable, TRIMMABLE);
ONE(trimmable_retx, TRIMMABLE_RETX);
ONE(trimmed, TRIMMED);
ONE(trimmed_lasthop, TRIMMED_LAST);
ONE(control, CONTROL);
#undef ONE

static const struct {
	const char *name;
	size_t offset;
	uint32_t least, most;
} table[] = {
#define X(name, unit, dflt, least, most, mark, section, help) \
	{#name, offsetof(struct mrc_settings, name), least, most},
	MRC_SETTINGS(X)
#undef X
};

/* What is not cut must not look so. */
static bool looks_cut(const struct mrc_settings *s, uint32_t dscp, const char **as)
{
	*as = dscp == s->dscp_trimmed           ? "dscp_trimmed"
	      : dscp == s->dscp_trimmed_lasthop ? "dscp_trimmed_lasthop"
						: NULL;
	return *as != NULL;
}

static bool classes_ok(const struct mrc_settings *s, const char **field, const char **other)
{
	const struct {
		const char *name;
		uint32_t dscp;
	} whole[] = {{"dscp_no_trim", s->dscp_no_trim}, {"dscp_trimmable", s->dscp_trimmable},
		{"dscp_trimmable_retx", s->dscp_trimmable_retx}, {"dscp_control", s->dscp_control}};

	for (unsigned i = 0; i < sizeof(whole) / sizeof(*whole); i++) {
		*field = whole[i].name;
		if (looks_cut(s, whole[i].dscp, other))
			return false;
	}
	return true;
}

int mrc_settings_check(const struct mrc_settings *s, const char **field, const char **other)
{
	const char *ignored[2];

	field = field ? field : &ignored[0];
	other = other ? other : &ignored[1];
	*other = NULL;
	for (unsigned i = 0; i < sizeof(table) / sizeof(*table); i++) {
		uint32_t value;

		*field = table[i].name;
		memcpy(&value, (const uint8_t *)s + table[i].offset, sizeof(value));
		if (value < table[i].least || value > table[i].most)
			return -EINVAL;
	}
	return classes_ok(s, field, other) ? 0 : -EINVAL;
}
