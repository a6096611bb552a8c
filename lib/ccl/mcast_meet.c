/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that multicast meet through a bootstrap: each tells its address, its queue pair of the
 * group, and one queue pair for each rank that it has a connection to. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/ccl/boot.h"
#include "lib/ccl/mcast_priv.h"

_Static_assert((int)CCL_BOOT_ERR_LEN == (int)CCL_ERR_LEN, "errors are passed on");

json_t *ccl_mcast_address(const struct ccl_mcast *c)
{
	char ip[WIRE_IP_STRLEN];
	json_t *rc = json_object(), *qpn = json_array();

	for (unsigned i = 0; i < c->conf.trees; i++)
		json_array_append_new(qpn, json_integer(c->tree[i].qp->qp_num));

	for (unsigned i = 0; i < c->n_peers; i++) {
		char rank[16];

		snprintf(rank, sizeof(rank), "%u", c->peer[i]);
		json_object_set_new(rc, rank, json_integer(c->rc[i]->qp_num));
	}
	return json_pack("{s:s, s:o, s:s, s:I, s:i, s:o}", "ip",
		wire_ip_format(&c->ip, ip, sizeof(ip)), "qpn", qpn, "transport",
		c->conf.uc ? "uc" : "ud", "key", (json_int_t)c->own_key, "mtu", (int)c->mtu, "rc",
		rc);
}

static int read_all(struct ccl_mcast *c, const json_t *list, uint32_t *qpn, char *err)
{
	char self[16];

	snprintf(self, sizeof(self), "%u", c->conf.rank);
	for (unsigned i = 0; i < c->conf.n_ranks; i++) {
		const json_t *one = json_array_get(list, i);
		const char *ip, *transport;
		json_int_t key;
		json_t *qpns;
		int mtu;

		if (json_unpack((json_t *)(uintptr_t)one, "{s:s, s:o, s:s, s:I, s:i}", "ip", &ip,
			    "qpn", &qpns, "transport", &transport, "key", &key, "mtu", &mtu) ||
			key < 0 || key > UINT32_MAX || wire_ip_parse(ip, &c->rank[i].ip) ||
			mtu < 256 || mtu > 4096 || (mtu & (mtu - 1))) {
			snprintf(
				err, CCL_ERR_LEN, "multicast: rank %u's address makes no sense", i);
			return -EPROTO;
		}
		if (strcmp(transport, c->conf.uc ? "uc" : "ud") != 0) {
			snprintf(err, CCL_ERR_LEN, "multicast: rank %u's transport is %.8s, not %s",
				i, transport, c->conf.uc ? "uc" : "ud");
			return -EPROTO;
		}
		if (json_array_size(qpns) != c->conf.trees) {
			snprintf(err, CCL_ERR_LEN, "multicast: rank %u has %zu trees, not %u", i,
				json_array_size(qpns), c->conf.trees);
			return -EPROTO;
		}
		for (unsigned k = 0; k < c->conf.trees; k++)
			c->rank[i].group_qpn[k] =
				(uint32_t)json_integer_value(json_array_get(qpns, k));
		c->key ^= (uint32_t)key;
		c->mtu = (unsigned)mtu < c->mtu ? (unsigned)mtu : c->mtu;
	}
	for (unsigned i = 0; i < c->n_peers; i++)
		qpn[i] = (uint32_t)json_integer_value(json_object_get(
			json_object_get(json_array_get(list, c->peer[i]), "rc"), self));
	return 0;
}

int ccl_mcast_connect(struct ccl_mcast *c, const json_t *all, char err[CCL_ERR_LEN])
{
	uint32_t qpn[MCAST_MAX_PEERS];
	int rc = read_all(c, all, qpn, err);

	if (rc == 0)
		rc = mc_connect(c, qpn, err);
	c->ready = rc == 0;
	return rc;
}

int ccl_mcast_meet(struct ccl_mcast *c, struct ccl_boot *boot, char err[CCL_ERR_LEN])
{
	json_t *all = NULL;
	int rc = ccl_boot_exchange(boot, ccl_mcast_address(c), &all, err);

	if (rc == 0)
		rc = ccl_mcast_connect(c, all, err);
	json_decref(all);
	if (rc)
		ccl_boot_abort(boot, err);
	return rc ? rc : ccl_boot_barrier(boot, err);
}
