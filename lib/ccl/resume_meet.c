/* SPDX-License-Identifier: BSD-3-Clause */
/* The blocking part of going on by a ring (resume.h): the ranks meet through the bootstrap. Who has
 * failed says where it stands to rank 0, who calls all the others; what they do follows from where
 * all of them stand. Who wants to end says the same: another rank may need what it has kept. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/ccl/resume.h"
#include "lib/ccl/setup_priv.h"

/* ---- where ranks stand ---- */

static json_t *standing_json(const struct ccl_comm *c, const char *why)
{
	struct ccl_standing *s = malloc(sizeof(*s));
	json_t *digests = json_array(), *object;

	if (!s || !digests) {
		free(s);
		json_decref(digests);
		return NULL;
	}
	ccl_resume_standing(c, s);
	for (unsigned i = 0; i < s->n; i++)
		json_array_append_new(digests, json_integer((json_int_t)s->digest[i]));
	object = json_pack("{s:I, s:I, s:I, s:o}", "kept", (json_int_t)s->kept, "done",
		(json_int_t)s->done, "issued", (json_int_t)s->issued, "digests", digests);
	if (object && why)
		json_object_set_new(object, "call", json_string(why));
	free(s);
	return object;
}

/* They have 32 bits. */
static int parse_digests(const json_t *digests, struct ccl_standing *s)
{
	const size_t n = json_array_size(digests);

	if (n > CCL_RESUME_MAX_KEPT)
		return -EPROTO;
	for (size_t i = 0; i < n; i++) {
		const json_t *digest = json_array_get(digests, i);

		if (!json_is_integer(digest) || json_integer_value(digest) < 0 ||
			json_integer_value(digest) > UINT32_MAX)
			return -EPROTO;
		s->digest[i] = (uint32_t)json_integer_value(digest);
	}
	s->n = (unsigned)n;
	return 0;
}

static int parse_standing(const json_t *object, struct ccl_standing *s)
{
	json_int_t kept, done, issued;
	const json_t *digests;

	if (json_unpack((json_t *)object, "{s:I, s:I, s:I, s:o}", "kept", &kept, "done", &done,
		    "issued", &issued, "digests", &digests) ||
		kept < 0 || done < kept || issued < done ||
		(json_int_t)json_array_size(digests) != issued - kept)
		return -EPROTO;
	*s = (struct ccl_standing){.leaving = !json_object_get(object, "call"),
		.kept = (uint64_t)kept,
		.done = (uint64_t)done,
		.issued = (uint64_t)issued};
	return parse_digests(digests, s);
}

/* Rank 0: what is to be done. *verdict: {} if all want to end. */
static int judge(json_t *const *all, unsigned n, json_t **verdict, char err[CCL_ERR_LEN])
{
	struct ccl_standing *at = calloc(n, sizeof(*at)),
			    **by = calloc(n, sizeof(struct ccl_standing *));
	struct ccl_verdict v;
	bool leaving = true;
	int rc = at && by ? 0 : -ENOMEM;

	if (rc)
		snprintf(err, CCL_ERR_LEN, "rank 0: out of memory");
	for (unsigned r = 0; r < n && !rc; r++) {
		by[r] = &at[r];
		rc = parse_standing(all[r], by[r]);
		if (rc)
			snprintf(err, CCL_ERR_LEN,
				"rank %u does not say where it stands: no resume there?", r);
		leaving &= !rc && at[r].leaving;
	}
	if (!rc && leaving)
		*verdict = json_object();
	else if (!rc &&
		 !(rc = ccl_resume_decide((const struct ccl_standing *const *)by, n, &v, err)))
		*verdict = json_pack("{s:I, s:I, s:i}", "first", (json_int_t)v.first, "known",
			(json_int_t)v.known, "source", (int)v.source);
	free(by);
	free(at);
	return rc;
}

static int lead(struct ccl_setup *s, const char *why, json_t *own, json_t **verdict, char *err)
{
	const unsigned n = s->group->n_ranks;
	json_t **all = calloc(n, sizeof(json_t *));
	int rc = -ENOMEM;

	snprintf(err, CCL_ERR_LEN, "rank 0: out of memory");
	if (all) {
		rc = ccl_boot_gather_called(s->boot, why, all, err);
		all[0] = json_incref(own);
		if (rc == 0)
			rc = judge(all, n, verdict, err);
		for (unsigned r = 0; r < n; r++)
			json_decref(all[r]);
	}
	if (rc)
		ccl_boot_abort(s->boot, err);
	else
		rc = ccl_boot_broadcast(s->boot, *verdict, err);
	free(all);
	return rc;
}

/* All ranks: why this one calls them; NULL: it wants to end. */
static int meet(struct ccl_comm *c, const char *why, json_t **verdict, char *err)
{
	struct ccl_setup *s = c->setup;
	json_t *own = standing_json(c, why);
	int rc;

	*verdict = NULL;
	if (!own) {
		snprintf(err, CCL_ERR_LEN, "rank %u: out of memory", c->rank);
		ccl_boot_abort(s->boot, err);
		return -ENOMEM;
	}
	if (c->rank == 0) {
		rc = lead(s, why, own, verdict, err);
	} else {
		rc = ccl_boot_tell(s->boot, own, err);
		if (rc == 0)
			rc = ccl_boot_hear_called(s->boot, verdict, err);
	}
	json_decref(own);
	return rc;
}

/* ---- the ring ---- */

static int make_ring(struct ccl_comm *c, struct ccl_ring **ring, char *err)
{
	const struct ccl_ring_conf conf = {
		.context = c->context,
		.port = c->port,
		.gid_index = c->gid_index,
		.rank = c->rank,
		.n_ranks = c->n_ranks,
		.mtu = c->mtu,
		.m = c->m,
		.w = c->w,
		.timeout_ns = c->timeout_ns,
		.start_psn = ccl_random_psn(),
	};
	int rc = ccl_ring_open(&conf, ring, err);

	if (rc) {
		ccl_boot_abort(c->setup->boot, err);
		return rc;
	}
	rc = ccl_ring_meet(*ring, c->setup->boot, NULL, NULL, err);
	if (rc)
		ccl_ring_close(*ring);
	return rc;
}

/* The switches end what nobody keeps: rank 0 needs not wait for those that may be gone. To a
 * manager the ranks stay there, and it says how the job goes on. */
static void let_go(struct ccl_setup *s)
{
	if (s->rank == 0)
		ccl_install_fini(&s->in);
	s->fallback = true;
	ccl_managed_resumed(s->managed);
}

static int parse_verdict(const struct ccl_comm *c, const json_t *object, struct ccl_verdict *v)
{
	json_int_t first, known, source;

	if (json_unpack((json_t *)object, "{s:I, s:I, s:I}", "first", &first, "known", &known,
		    "source", &source) ||
		first < 0 || known < 0 || source < 0 || source >= c->n_ranks)
		return -EPROTO;
	*v = (struct ccl_verdict){(uint64_t)first, (uint64_t)known, (unsigned)source};
	return ccl_resume_can(c, v) ? 0 : -EPROTO;
}

/* What fails here the others hear: they would wait for this rank's part of the ring. */
static int go_over(struct ccl_comm *c, const json_t *verdict, char *err)
{
	struct ccl_verdict v;
	struct ccl_ring *ring = NULL;
	int rc = parse_verdict(c, verdict, &v);

	if (rc) {
		snprintf(err, CCL_ERR_LEN, "rank %u: rank 0's verdict makes no sense", c->rank);
		ccl_boot_abort(c->setup->boot, err);
		return rc;
	}
	let_go(c->setup);
	rc = make_ring(c, &ring, err);
	if (rc)
		return rc;
	rc = ccl_resume_over(c, ring, &v);
	if (rc) {
		ccl_ring_close(ring);
		snprintf(err, CCL_ERR_LEN, "rank %u: going over to the ring: %s", c->rank,
			strerror(-rc));
		ccl_boot_abort(c->setup->boot, err);
	}
	return rc;
}

/* ---- from blocking calls ---- */

static void say(const struct ccl_comm *c)
{
	struct ccl_info info;

	ccl_query(c, &info);
	if (c->rank == 0)
		fprintf(stderr, "incline-ccl: group %s goes on by %s\n", c->setup->group->name,
			info.selection);
}

bool ccl_resume_meet(struct ccl_comm *c)
{
	char why[CCL_RESUME_WHY], err[CCL_ERR_LEN];
	const size_t len = strlen(c->err);
	json_t *verdict;
	int rc;

	if (!c->setup || !ccl_resume_may(c))
		return false;
	snprintf(why, sizeof(why), "%.*s", (int)sizeof(why) - 1, c->err);
	rc = meet(c, why, &verdict, err);
	if (rc == 0)
		rc = go_over(c, verdict, err);
	json_decref(verdict);
	if (rc == 0) {
		say(c);
		return true;
	}
	ccl_resume_deny(c);
	ccl_talk_add(c->err + len, sizeof(c->err) - len, "; no ring instead: %.200s", err);
	return false;
}

static int end_ring(struct ccl_comm *c, char *err)
{
	const int rc = ccl_drain(c);

	if (rc == 0)
		return ccl_boot_barrier(c->setup->boot, err);
	ccl_boot_abort(c->setup->boot, c->err);
	return rc;
}

int ccl_resume_leave(struct ccl_comm *c, char err[CCL_ERR_LEN])
{
	json_t *verdict;
	bool help;
	int rc;

	if (ccl_resume_is_over(c))
		return end_ring(c, err);
	rc = meet(c, NULL, &verdict, err);
	help = rc == 0 && json_object_size(verdict) > 0;
	if (help) {
		ccl_fail(c, -ECONNABORTED, "another rank could not finish");
		rc = go_over(c, verdict, err);
	}
	json_decref(verdict);
	if (!help || rc)
		return rc;
	say(c);
	return end_ring(c, err);
}
