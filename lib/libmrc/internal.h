/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside libmrc: objects of the API around those of libibverbs.
 *
 * Locks, in this order; calls into libibverbs and struct inc_dv_mrc are made with `note` free:
 *	1. mrc_dev.lock		its list of queue pairs, changes of profiles
 *	2. mrc_qp.lock		a queue pair's attributes
 *	3. mrc_dev.note		profiles' contents, paths of queue pairs, events, answers: taken by
 *				the device's thread, too */
#ifndef LIBMRC_INTERNAL_H
#define LIBMRC_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "lib/libmrc/event_ring.h"
#include "lib/libmrc/mrc_ctl.h"
#include "lib/libmrc/profile.h"
#include "lib/verbs/dv_mrc.h"

#define API __attribute__((visibility("default")))

enum { MAX_HINTS = 1024 };

/* A device that contexts of this process use; profiles live as long. */
struct mrc_dev {
	LIST_ENTRY(mrc_dev) link;
	struct ibv_device *device;
	const struct inc_dv_mrc *dv;
	unsigned n_contexts; /* the registry's lock */
	pthread_mutex_t lock, note;
	uint8_t admin; /* ports that are enabled, a bit each from 0 on; lock */
	LIST_HEAD(, mrc_qp) qps;
	struct profiles book;
	LIST_HEAD(, mrc_cq) cqs;
	LIST_HEAD(, ep_batch) batches;
	uint32_t batch_id;
};

struct mrc_context {
	struct ibv_context *verbs;
	struct mrc_dev *dev;
	size_t stride; /* of events */
	atomic_uint children, hints;
};

struct mrc_comp_channel {
	struct mrc_context *ctx;
	struct ibv_comp_channel *channel;
};

struct mrc_cq {
	struct mrc_context *ctx;
	struct ibv_cq *cq; /* its cq_context is this; events of EVs borrow it for their channel */
	void *cq_context;
	LIST_ENTRY(mrc_cq) link; /* note */
	bool is_ev;
	struct event_ring ring; /* note, as armed; if is_ev */
	bool armed;
};

struct mrc_qp_hint {
	struct mrc_context *ctx;
	struct mrc_qp_hint_attr attr; /* note */
	unsigned users;               /* note */
};

struct mrc_qp {
	struct mrc_context *ctx;
	struct ibv_qp *qp; /* its qp_context is this */
	struct mrc_qp_init_attr init;
	LIST_ENTRY(mrc_qp) link;
	pthread_mutex_t lock;
	struct mrc_qp_attr attr;
	int have;              /* attributes that were set since RESET */
	struct ev_profile *ev; /* NULL: built in */
	struct cc_profile *cc;
	/* Since RTR, if ev is not NULL: what the transport has, and where in the profile it is. */
	struct rnic_mrc_paths *paths;
	struct ev_path map[PROFILES_EVS_QP]; /* note, as the next two */
	unsigned n_map;
	bool bad[PROFILES_EVS_QP];
};

/* Sets errno, returns it; err of either sign. */
int mrc_errno(int err);
/* The same as functions that return -1. */
int mrc_fail(int err);

/* The interface to the context's device if it has MRC, else NULL. */
const struct inc_dv_mrc *mrc_dv(const struct ibv_context *context);
/* Whether the caller has CAP_NET_ADMIN. */
bool mrc_admin(void);
/* Whether a controller's call is one: 0, EINVAL or EPERM. */
int mrc_may_control(const struct mrc_context *ctx, const void *attr);
/* Whether the option INCLINE_MRC_STRICT is set. */
bool mrc_strict(void);

/* 0 or an errno: note is taken inside. */
int mrc_hint_use(struct mrc_context *ctx, struct mrc_qp_hint *hint);
void mrc_hint_drop(struct mrc_qp_hint *hint);

/* After a change of the profile: what is denied in it is denied in queue pairs. dev->lock is held.
 */
void mrc_qp_deny(struct mrc_dev *dev, const struct ev_profile *p);
/* Forgets profiles, paths and hint; no path is used any more. */
void mrc_qp_release(struct mrc_qp *qp);
int mrc_qp_state(const struct mrc_qp *qp, enum ibv_qp_state *state);

/* Called by the device. */
void mrc_on_ev(void *arg, struct ibv_qp *qp, unsigned index, enum mrc_ev_state state);
void mrc_on_answer(void *arg, uint64_t cookie, unsigned port, uint64_t rtt_ns, bool adjusted);

struct mrc_qp_attr mrc_qp_defaults(void);

#endif
