/* SPDX-License-Identifier: BSD-3-Clause */
/* What libmrc (lib/libmrc) has of a device beside libibverbs: it is another shared object, and
 * finds this one with dlsym(RTLD_DEFAULT, "inc_dv_mrc"), so that it says so where there is none.
 * Both are of one build: the structures are the transport's own. */
#ifndef VERBS_DV_MRC_H
#define VERBS_DV_MRC_H

#include <infiniband/verbs.h>

#include "lib/mrc/transport.h"

/* Called by the thread that owns the device: no call back into it, nor into libibverbs, and no lock
 * that is held during such calls. */
struct inc_dv_mrc_listener {
	void *arg;
	void (*ev_changed)(void *arg, struct ibv_qp *qp, unsigned index, enum mrc_ev_state state);
	void (*answered)(void *arg, uint64_t cookie, unsigned port, uint64_t rtt_ns, bool adjusted);
};

/* Negative errno. A context that is not of this library's device is -EOPNOTSUPP (ports: 0); a queue
 * pair is one that create_qp made. */
struct inc_dv_mrc {
	size_t size; /* of this structure: another size is another build's */
	/* Ports of MRC: planes. */
	unsigned (*ports)(const struct ibv_context *context);
	/* All contexts of the device have one listener; NULL: none. */
	int (*listen)(struct ibv_context *context, const struct inc_dv_mrc_listener *listener);
	/* As ibv_create_qp: NULL with errno set. The QP is modified, used and destroyed by
	 * libibverbs' functions. */
	struct ibv_qp *(*create_qp)(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
	/* As rnic_mrc_set, rnic_mrc_ev_set, rnic_mrc_ports, rnic_mrc_ask, rnic_mrc_forget. */
	int (*set)(struct ibv_qp *qp, const struct rnic_mrc_attr *attr, unsigned mask);
	int (*ev_set)(struct ibv_qp *qp, unsigned index, enum mrc_ev_state state);
	int (*set_ports)(struct ibv_context *context, uint8_t up);
	int (*ask)(struct ibv_context *context, const struct rnic_mrc_request *request);
	void (*forget)(struct ibv_context *context, uint64_t cookie);
	/* An event of the CQ in its channel, as if a completion had come. Takes the channel's lock
	 * only: it may be called by a listener. */
	void (*raise)(struct ibv_cq *cq);
	/* Does the device's work for a caller that waits; what it returns is 0 if there was none.
	 */
	unsigned (*progress)(struct ibv_context *context);
};

const struct inc_dv_mrc *inc_dv_mrc(void);

#endif
