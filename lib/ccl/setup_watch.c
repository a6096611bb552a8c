/* SPDX-License-Identifier: BSD-3-Clause */
/* What a set-up that is done is asked while its communicator waits: who is gone, and who is waited
 * for. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/ccl/setup_priv.h"

enum { RENEW_MS = 2000 };

/* Rank 0: the switches are to know that it lives. */
static void renew(struct ccl_setup *s)
{
	const int64_t now = s->group->io->now_ms(s->group->io->arg);

	if (s->rank || now - s->renewed_ms < RENEW_MS)
		return;
	s->renewed_ms = now;
	ccl_install_renew(&s->in);
	ccl_rings_renew(s->rings);
}

int ccl_setup_watch(struct ccl_setup *s, char why[CCL_ERR_LEN])
{
	const int rc = s->managed ? ccl_managed_watch(s->managed, why) : 0;
	char gone[CCL_ERR_LEN];
	int rc2;

	renew(s);
	rc2 = ccl_boot_watch(s->boot, gone);
	if (rc2 && (!rc || rc2 != -ESTALE))
		memcpy(why, gone, sizeof(gone));
	return rc2 ? rc2 : rc ? -ESTALE : 0;
}

bool ccl_setup_turn(struct ccl_setup *s, struct ccl_turn *turn)
{
	return s->managed && ccl_managed_turn(s->managed, turn);
}

void ccl_setup_tell(struct ccl_setup *s, const char *why)
{
	ccl_boot_abort(s->boot, why);
}

void ccl_setup_diagnose(
	struct ccl_setup *s, enum ccl_prim prim, unsigned root, char *text, size_t cap)
{
	char gone[128], name[CCL_NAME_LEN];
	size_t n;

	text[0] = '\0';
	if (s->group->mode_id == CCL_MODE_NETREDUCE)
		ccl_rings_missing(s->group, s->rank, text, cap);
	else if (!s->fallback && s->group->mode_id != CCL_MODE_RING &&
		 ccl_sub_name(s->group, prim, root, name) == 0)
		ccl_install_missing(s->group, name, text, cap);
	ccl_boot_gone(s->boot, gone, sizeof(gone));
	n = strlen(text);
	if (gone[0])
		snprintf(text + n, cap - n, "; gone: rank %s", gone);
}
