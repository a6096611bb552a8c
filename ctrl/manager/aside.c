/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

#include "ctrl/manager/serve.h"
#include "lib/ctl/client.h"
#include "lib/ctl/listen.h"
#include "lib/ctl/lock.h"
#include "lib/journal/journal.h"

enum { KNOCK_MS = 100 }; /* between two tries */

/* How who listens there answers: 0, or -errno as ctl_connect and ctl_call; -EBUSY: nobody listens,
 * but somebody has the socket's lock. */
static int knock(const char *path, unsigned hung_ms)
{
	struct ctl_client *c = NULL;
	char lock[CTL_LOCK_STRLEN];
	struct ctl_error e;
	int rc = ctl_connect(path, 0, &c, &e);

	if (!rc)
		rc = ctl_call(c, "version", NULL, hung_ms, NULL, &e);
	ctl_close(c);
	ctl_lock_name(lock, path);
	if ((rc == -ECONNREFUSED || rc == -ENOENT) && ctl_lock_owner(lock))
		return -EBUSY;
	return rc;
}

static bool hangs(const char *path, unsigned hung_ms)
{
	const struct timespec pause = {.tv_nsec = KNOCK_MS * 1000000l};
	int rc = -ECONNRESET;

	for (unsigned i = 0;
		i < hung_ms / KNOCK_MS && (rc == -ECONNRESET || rc == -EAGAIN || rc == -EBUSY);
		i++) {
		if (i)
			nanosleep(&pause, NULL);
		rc = knock(path, hung_ms);
	}
	/* -EAGAIN: for so long nobody has taken the connections that wait there; -EBUSY: he has
	 * hung before he listened, or at his end. */
	return rc == -ETIMEDOUT || rc == -EAGAIN || rc == -EBUSY;
}

void manager_push_aside(const char *path, unsigned hung_ms)
{
	struct ctl_lock_holder holder;
	struct stat st;
	int rc;

	/* Before he is asked: of who has come since nothing is known. */
	rc = ctl_look(path, &holder);
	if (!rc && hangs(path, hung_ms) && (lstat(path, &st) || S_ISSOCK(st.st_mode))) {
		rc = ctl_push_aside(path, &holder);
		if (!rc)
			journal(JOURNAL_WARNING,
				"incline-manager: %s: who listens there hangs: it is taken over",
				path);
	}
	ctl_lock_forget(&holder);
}
