/* SPDX-License-Identifier: BSD-3-Clause */
/* The group of a communicator: of the job's group file what is left of its tree for these ranks, or
 * for a manager their addresses. */
#include <jansson.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/mpi/im.h"

static uint64_t random_number(void)
{
	uint64_t n = 0;

	while (getrandom(&n, sizeof(n), 0) != sizeof(n))
		;
	return n;
}

/* ---- where they meet ---- */

static int free_port(void)
{
	struct sockaddr_in6 a = {.sin6_family = AF_INET6};
	socklen_t len = sizeof(a);
	const int s = socket(AF_INET6, SOCK_STREAM, 0);
	int port = 0;

	if (s >= 0 && !bind(s, (struct sockaddr *)&a, sizeof(a)) &&
		!getsockname(s, (struct sockaddr *)&a, &len))
		port = ntohs(a.sin6_port);
	if (s >= 0)
		close(s);
	return port;
}

/* On one machine by a socket in the file system, else at this rank's. */
static void meet(const struct im_member *member, int n, char at[128])
{
	const char *host = getenv("INCLINE_MPI_HOST"), *tmp = getenv("TMPDIR");
	char own[64] = "localhost";
	bool together = !host;

	for (int i = 1; i < n; i++)
		together = together && !strcmp(member[0].node, member[i].node);
	gethostname(own, sizeof(own) - 1);
	if (together)
		snprintf(at, 128, "unix:%.60s/incline-mpi-%016llx",
			tmp && tmp[0] == '/' ? tmp : "/tmp", (unsigned long long)random_number());
	else
		snprintf(at, 128, "tcp:%.100s:%d", host ? host : own, free_port());
}

/* ---- all of it ---- */

char *im_group(const struct im_member *member, int n, char why[CCL_ERR_LEN])
{
	static unsigned led;
	struct ccl_part *part = calloc((size_t)n, sizeof(*part));
	/* MPI_COMM_WORLD's, which is joined before others. */
	const bool multicast = im.world_rank == 0 && led == 0;
	char suffix[32], alone[32], at[128], *text;

	if (!part) {
		snprintf(why, CCL_ERR_LEN, "out of memory");
		return NULL;
	}
	for (int i = 0; i < n; i++)
		part[i] = member[i].part;
	/* By its first rank, and how many groups that one has led. */
	snprintf(suffix, sizeof(suffix), "%d.%u", im.world_rank, led++);
	snprintf(alone, sizeof(alone), "mpi-%08x", (unsigned)random_number());
	meet(member, n, at);
	text = ccl_subgroup(&(struct ccl_subgroup){.path = getenv("INCLINE_GROUP"),
				    .manager = getenv("INCLINE_MANAGER"),
				    .suffix = suffix,
				    .alone = alone,
				    .bootstrap = at,
				    .resumes = true,
				    .multicast = multicast},
		part, n, why);
	free(part);
	return text;
}

void im_read_group(struct im_comm *c, const char *text)
{
	json_t *doc = json_loads(text, 0, NULL);
	const char *name = json_string_value(json_object_get(doc, "name"));

	snprintf(c->name, sizeof(c->name), "%s", name ? name : "");
	c->resumes = json_is_true(json_object_get(doc, "resume"));
	json_decref(doc);
}
