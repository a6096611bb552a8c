/* SPDX-License-Identifier: BSD-3-Clause */
/* The policy of trees that are placed from now on. The file names one; who operates may set another
 * while the manager runs. That is written down beside what the file named then, and holds until the
 * file names something else. Trees that are there keep what they have: the book knows of each
 * whether its links are its alone, and whether it shares memory. */
#include <errno.h>
#include <string.h>

#include "ctrl/manager/keep.h"

static const char KEY[] = "policy";

static void use(struct manager *m, const struct mgr_policy *policy)
{
	m->policy = policy;
	mgr_jobs_set_policy(m->jobs, policy);
}

int mg_policy_set(struct manager *m, const json_t *params, json_t **result, struct rpc_error *e)
{
	const struct mgr_policy *policy = mgr_policy_find(rpc_string(params, "policy")),
				*before = m->policy;
	json_t *kept = NULL;

	if (!policy)
		return rpc_fail(e, -EINVAL, "policy", "is not known");
	/* Links of others are left alone, so they have to be known. */
	if (policy->whole && m->n_adopted > 0)
		return rpc_fail(e, -EBUSY, "policy",
			"%s gives a link to one tree, and which links %u jobs have that run since "
			"before the manager was started nobody knows: when they have ended",
			policy->name, m->n_adopted);
	if (policy->whole && mg_learns_for(m))
		return rpc_fail(e, -EBUSY, "policy",
			"%s gives a link to one tree, and jobs that run since before the manager "
			"was started may yet be heard of: in %u s",
			policy->name, 1 + (unsigned)(mg_learns_for(m) / 1000000000));
	if (policy != m->file_policy)
		kept = json_pack("{s:s,s:s}", "policy", policy->name, "file", m->file_policy->name);
	mg_keep_learnt(m, KEY, kept);
	use(m, policy);
	if (policy != before)
		mg_say(m, JOURNAL_NOTICE, "policy %s in place of %s for trees to come",
			policy->name, before->name);
	*result = json_pack("{s:s,s:s}", "policy", policy->name, "before", before->name);
	return 0;
}

int mg_policy_restore(struct manager *m, const json_t *record)
{
	const struct mgr_policy *policy = mgr_policy_find(rpc_string(record, "policy"));

	if (!policy)
		return -EBADMSG;
	if (strcmp(rpc_string(record, "file"), m->file_policy->name) != 0) {
		mg_say(m, JOURNAL_NOTICE,
			"policy %s as the file has it, in place of %s that was set",
			m->policy->name, policy->name);
		mg_keep_learnt(m, KEY, NULL);
		return m->failed;
	}
	mg_say(m, JOURNAL_NOTICE, "policy %s, as it was set, in place of the file's %s",
		policy->name, m->file_policy->name);
	use(m, policy);
	return 0;
}
