/* SPDX-License-Identifier: BSD-3-Clause */
/* A communicator is joined: its ranks say what each can do, the first makes a group of it, all make
 * CommLib's communicator, and agree on whether that has worked. All by the MPI library itself. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/mpi/im.h"

struct verdict {
	int rc;
	char why[CCL_ERR_LEN];
};

/* Machines have the same name now and then, but not the same boot. */
static void node_name(char node[128])
{
	char host[64] = "", boot[64] = "";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	gethostname(host, sizeof(host) - 1);
	if (f && !fgets(boot, sizeof(boot), f))
		boot[0] = '\0';
	if (f)
		fclose(f);
	snprintf(node, 128, "%.63s %.60s", host, boot);
}

static void look_at_self(struct im_member *me)
{
	char err[CCL_ERR_LEN] = "";
	MPI_Comm parent = MPI_COMM_NULL;
	unsigned number = (unsigned)im.world_rank, size;
	int rc;

	memset(me, 0, sizeof(*me));
	node_name(me->node);
	PMPI_Comm_get_parent(&parent);
	rc = ccl_launched(NULL, &number, &size, err);
	me->part.number = (int)number;
	if (rc == -ENOENT)
		rc = 0;
	if (!rc && parent != MPI_COMM_NULL) {
		snprintf(err, sizeof(err), "it was spawned, and is in no group");
		rc = -EINVAL;
	} else if (!rc && !getenv("INCLINE_GROUP") && !getenv("INCLINE_MANAGER")) {
		snprintf(err, sizeof(err), "neither INCLINE_GROUP nor INCLINE_MANAGER is set");
		rc = -ENOENT;
	} else if (!rc && !getenv("INCLINE_GROUP")) {
		rc = ccl_own_address(getenv("INCLINE_DEVICE"), me->part.ip, err);
	}
	me->ok = !rc;
	snprintf(me->why, sizeof(me->why), "%.150s", err);
}

/* The group's text, at all ranks; NULL and why. */
static char *share_group(struct im_comm *c, const struct im_member *member)
{
	char *text = c->rank ? NULL : im_group(member, c->size, c->why);
	int len = text ? (int)strlen(text) + 1 : 0;

	if (PMPI_Bcast(&len, 1, MPI_INT, 0, c->comm))
		len = 0;
	if (c->rank && len)
		text = malloc((size_t)len);
	if (!len) {
		PMPI_Bcast(c->why, sizeof(c->why), MPI_CHAR, 0, c->comm);
		return NULL;
	}
	/* Without memory a rank has to take part all the same. */
	if (!text)
		PMPI_Abort(c->comm, 1);
	PMPI_Bcast(text, len, MPI_CHAR, 0, c->comm);
	return text;
}

static int make(struct im_comm *c, const char *text, char why[CCL_ERR_LEN])
{
	struct ccl_info info;
	int rc = ccl_group_load_text(text, &c->group, why);

	if (!rc)
		rc = ccl_comm_create(c->group, (unsigned)c->rank, &c->ccl, why);
	if (rc)
		return rc;
	ccl_query(c->ccl, &info);
	c->offered = info.collectives;
	snprintf(why, CCL_ERR_LEN, "%s", info.selection);
	/* A ring from the beginning ("resume" needs "fallback"): the MPI library has better. */
	return info.fallback ? -EOPNOTSUPP : 0;
}

/* 0 if it has worked everywhere; else the first failure is everybody's. */
static int agree(struct im_comm *c, struct verdict *own)
{
	struct verdict *all = calloc((size_t)c->size, sizeof(*all));
	int rc = all ? 0 : -ENOMEM;

	if (!all)
		PMPI_Abort(c->comm, 1);
	PMPI_Allgather(own, sizeof(*own), MPI_BYTE, all, sizeof(*own), MPI_BYTE, c->comm);
	snprintf(c->why, sizeof(c->why), "%s", all[0].why);
	for (int i = 0; i < c->size && !rc; i++) {
		rc = all[i].rc;
		if (rc)
			snprintf(c->why, sizeof(c->why), "%s", all[i].why);
	}
	free(all);
	return rc;
}

static int join(struct im_comm *c, struct im_member *member)
{
	struct verdict own = {0};
	char *text;

	look_at_self(&member[c->rank]);
	PMPI_Allgather(
		MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, member, sizeof(*member), MPI_BYTE, c->comm);
	for (int i = 0; i < c->size; i++) {
		if (member[i].ok)
			continue;
		snprintf(c->why, sizeof(c->why), "rank %d: %.160s", i, member[i].why);
		return -1;
	}
	text = share_group(c, member);
	if (!text)
		return -1;
	im_read_group(c, text);
	own.rc = make(c, text, own.why);
	free(text);
	if (!agree(c, &own))
		return 0;
	if (c->ccl) {
		ccl_abort(c->ccl, "another rank could not join");
		ccl_comm_destroy(c->ccl);
		c->ccl = NULL;
	}
	ccl_group_free(c->group);
	c->group = NULL;
	return -1;
}

/* From here on others drive it, too. */
static void enter(struct im_comm *c)
{
	pthread_mutex_lock(&im.lock);
	c->where = IM_IN;
	pthread_mutex_unlock(&im.lock);
	if (c->resumes)
		im_start_thread();
}

void im_join(struct im_comm *c)
{
	struct im_member *member = calloc((size_t)c->size, sizeof(*member));

	c->where = IM_OUT;
	if (!member)
		PMPI_Abort(c->comm, 1);
	if (c->size == 1)
		snprintf(c->why, sizeof(c->why), "a rank alone needs no network");
	else if (!join(c, member))
		enter(c);
	free(member);
	im_show_joined(c);
}
