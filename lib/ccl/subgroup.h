/* SPDX-License-Identifier: BSD-3-Clause */
/* The group of some ranks: what is left of a group file's tree for them, or for a manager their
 * addresses. For libraries under the programs of a framework (lib/mpi, lib/nccl), which have
 * CommLib by its public interface. */
#ifndef CCL_SUBGROUP_H
#define CCL_SUBGROUP_H

#include <incline/ccl.h>
#include <stdbool.h>

/* A rank of the new group, in its order. */
struct ccl_part {
	int number;          /* in the group file */
	char ip[CCL_IP_LEN]; /* without a file that has ranks */
};

struct ccl_subgroup {
	const char *path;    /* group file; NULL: none, a manager finds the tree */
	const char *manager; /* of a group without switches that names none; may be NULL */
	const char *suffix;  /* with 18 characters of the file's name it is the group's ... */
	const char *alone;   /* ... and this, if there is no such name */
	const char *bootstrap;
	bool resumes; /* false: the file's "resume" does not count */
	bool half;    /* sums of fp16 and bf16 are to be had, whatever the file's "flags" say */
	/* The file's "multicast" is this group's: at most one of the job may have it, since a
	 * datagram comes to all members of its address, whichever communicator they belong to. */
	bool multicast;
};

/* The group as text, on the heap; NULL and why. What switches do not take is the framework's, which
 * has better than a ring for it: no fallback, but where what has begun may have to go on by one
 * ("lease", "resume"). */
char *ccl_subgroup(
	const struct ccl_subgroup *want, const struct ccl_part *part, int n, char why[CCL_ERR_LEN]);

/* The number of the file's rank that has an address of these. prefer: this one of several, -1: none
 * is preferred. -ENOENT: none has; -EINVAL: several have, or the file is wrong; both say why. */
int ccl_subgroup_find(
	const char *path, const char (*ip)[CCL_IP_LEN], int n, int prefer, char why[CCL_ERR_LEN]);

#endif
