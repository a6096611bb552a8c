/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/mrc/doubt.h"

#include <string.h>

struct mrc_doubt mrc_doubts_take(struct mrc_doubts *ds, unsigned i)
{
	const struct mrc_doubt d = ds->d[i];

	memmove(&ds->d[i], &ds->d[i + 1], (--ds->n - i) * sizeof(d));
	memset(&ds->d[ds->n], 0, sizeof(d));
	return d;
}

void mrc_doubts_add(struct mrc_doubts *ds, const struct mrc_doubt *d)
{
	if (ds->n == MRC_DOUBTS)
		mrc_doubts_take(ds, 0);
	ds->d[ds->n++] = *d;
}

bool mrc_doubts_named(struct mrc_doubts *ds, uint32_t psn, int ev, bool again, uint64_t *at)
{
	for (unsigned i = 0; i < ds->n; i++)
		if (ds->d[i].psn == psn && ds->d[i].ev == ev && ds->d[i].again == again) {
			*at = mrc_doubts_take(ds, i).at;
			return true;
		}
	return false;
}

void mrc_doubts_came(struct mrc_doubts *ds, uint32_t psn, bool by_last)
{
	for (unsigned i = 0; i < ds->n;) {
		if (ds->d[i].psn == psn && !by_last) {
			mrc_doubts_take(ds, i);
			continue;
		}
		ds->d[i].suspect |= ds->d[i].psn == psn;
		i++;
	}
}

uint64_t mrc_doubts_deadline(const struct mrc_doubts *ds, uint64_t silent_ns)
{
	uint64_t at = UINT64_MAX;

	for (unsigned i = 0; silent_ns && i < ds->n; i++)
		if (ds->d[i].suspect && ds->d[i].at + silent_ns < at)
			at = ds->d[i].at + silent_ns;
	return at;
}
