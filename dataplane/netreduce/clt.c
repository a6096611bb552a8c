/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/netreduce/clt.h"

#include <errno.h>
#include <rte_jhash.h>
#include <stdio.h>
#include <stdlib.h>

static_assert(sizeof(struct nr_key) == 36, "hashed as it lies: no holes");

static struct rte_hash *make_hash(unsigned n)
{
	static unsigned serial; /* old and new live side by side */
	char name[RTE_HASH_NAMESIZE];
	const struct rte_hash_parameters p = {
		.name = name,
		.entries = n < 8 ? 8 : 2 * n,
		.key_len = sizeof(struct nr_key),
		.hash_func = rte_jhash,
		.socket_id = SOCKET_ID_ANY,
	};

	snprintf(name, sizeof(name), "clt%u", serial++);
	return rte_hash_create(&p);
}

static int add(struct nr_clt *t, const struct nr_key *key, const struct nr_look *look, char *err)
{
	char src[WIRE_IP_STRLEN], dst[WIRE_IP_STRLEN];
	void *at;

	if (rte_hash_lookup_data(t->hash, key, &at) >= 0) {
		snprintf(err, NR_ERR_LEN,
			"connection from %s to %s, QPN 0x%06x, is registered already, by ring "
			"\"%s\"",
			wire_ip_format(&key->src, src, sizeof(src)),
			wire_ip_format(&key->dst, dst, sizeof(dst)), key->qpn,
			t->row[(uintptr_t)at].ring->name);
		return -EEXIST;
	}
	t->row[t->n] = *look;
	if (rte_hash_add_key_data(t->hash, key, (void *)(uintptr_t)t->n) < 0) {
		snprintf(
			err, NR_ERR_LEN, "no memory for the connection table: raise \"memory_mb\"");
		return -ENOMEM;
	}
	t->n++;
	return 0;
}

int nr_clt_create(
	struct nr_ring *const *rings, unsigned n, struct nr_clt **clt, char err[NR_ERR_LEN])
{
	struct nr_look look[NR_MAX_ROWS];
	struct nr_key key[NR_MAX_ROWS];
	struct nr_clt *t;
	unsigned used = 0;
	int rc = 0;

	*clt = NULL;
	for (unsigned i = 0; i < n; i++)
		used += rings[i] != NULL;
	if (used == 0)
		return 0;
	t = calloc(1, sizeof(*t) + (size_t)used * NR_MAX_ROWS * sizeof(t->row[0]));
	if (t != NULL)
		t->hash = make_hash(used * NR_MAX_ROWS);
	if (t == NULL || t->hash == NULL) {
		snprintf(
			err, NR_ERR_LEN, "no memory for the connection table: raise \"memory_mb\"");
		nr_clt_destroy(t);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < n && rc == 0; i++) {
		unsigned rows = rings[i] ? nr_rows(rings[i], key, look) : 0;

		for (unsigned k = 0; k < rows && rc == 0; k++)
			rc = add(t, &key[k], &look[k], err);
	}
	if (rc < 0) {
		nr_clt_destroy(t);
		return rc;
	}
	*clt = t;
	return 0;
}

void nr_clt_destroy(struct nr_clt *clt)
{
	if (clt == NULL)
		return;
	rte_hash_free(clt->hash);
	free(clt);
}
