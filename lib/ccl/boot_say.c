/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank says to the others in the bootstrap: a line for one, for each, for all. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/ccl/boot.h"
#include "lib/ccl/boot_peer.h"

int boot_fail(char *err, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err, CCL_BOOT_ERR_LEN, fmt, ap);
	va_end(ap);
	return rc;
}

int boot_too_long(char *err, const char *whose, size_t len)
{
	return boot_fail(err, -EMSGSIZE, "%s line has %zu bytes, at most %d can be sent", whose,
		len, CCL_BOOT_MAX_LINE);
}

static void say_all(struct ccl_boot *b, const char *line, size_t len)
{
	for (unsigned i = 0; i < b->n_peers; i++)
		if (b->peer[i].fd >= 0)
			boot_send_line(&b->peer[i], line, len);
}

static int no_memory(struct ccl_boot *b, char *err)
{
	boot_fail(err, -ENOMEM, "rank 0: out of memory");
	ccl_boot_abort(b, err);
	return -ENOMEM;
}

int ccl_boot_broadcast(struct ccl_boot *b, const json_t *object, char err[CCL_BOOT_ERR_LEN])
{
	size_t len = 0;
	char *line = object ? boot_line(object, &len) : NULL;
	int rc = 0;

	if (!line)
		return no_memory(b, err);
	if (len > CCL_BOOT_MAX_LINE) {
		rc = boot_too_long(err, "rank 0's", len);
		ccl_boot_abort(b, err);
	} else {
		say_all(b, line, len);
	}
	free(line);
	return rc;
}

void ccl_boot_abort(struct ccl_boot *b, const char *reason)
{
	json_t *object = json_pack("{s:s, s:i}", "error", reason, "rank", (int)b->rank);
	size_t len;
	char *line = object ? boot_line(object, &len) : NULL;

	if (line)
		say_all(b, line, len);
	free(line);
	json_decref(object);
}

struct boot_peer *boot_peer_of(struct ccl_boot *b, unsigned rank)
{
	for (unsigned i = 0; i < b->n_peers; i++)
		if (b->peer[i].fd >= 0 && b->peer[i].rank == (int)rank)
			return &b->peer[i];
	return NULL;
}

int ccl_boot_scatter(struct ccl_boot *b, json_t *const *each, char err[CCL_BOOT_ERR_LEN])
{
	for (unsigned r = 1; r < b->n_ranks; r++) {
		struct boot_peer *p = boot_peer_of(b, r);
		size_t len = 0;
		char *line = boot_line(each[r], &len);
		const int rc = p && line ? boot_send_line(p, line, len) : 0;

		free(line);
		if (!line)
			return no_memory(b, err);
		if (rc == -EMSGSIZE) {
			boot_too_long(err, "rank 0's", len);
			ccl_boot_abort(b, err);
			return rc;
		}
	}
	return 0;
}
