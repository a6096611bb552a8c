/* SPDX-License-Identifier: BSD-3-Clause */
/* Who uses a device for RDMA-CM, and what becomes of IDs when it is closed under them. */
#include <errno.h>

#include "lib/verbs/cm_internal.h"

/* ---- use ---- */

int iv_cm_get(struct iv_id *id, struct iv_cm_dev **cdev)
{
	int ret = 0;

	pthread_mutex_lock(&iv_cm.lock);
	if (id->removed || (id->cdev && id->cdev->leaving))
		ret = -ENODEV;
	else if (!id->cdev)
		ret = -EINVAL;
	else
		id->cdev->users++;
	*cdev = ret ? NULL : id->cdev;
	pthread_mutex_unlock(&iv_cm.lock);
	return ret;
}

void iv_cm_put(struct iv_cm_dev *cdev)
{
	pthread_mutex_lock(&iv_cm.lock);
	if (--cdev->users == 0 && cdev->leaving)
		pthread_cond_broadcast(&iv_cm.unused);
	pthread_mutex_unlock(&iv_cm.lock);
}

unsigned iv_cm_get_all(struct iv_cm_dev *cdevs[IV_CM_DEVICES])
{
	unsigned n;

	pthread_mutex_lock(&iv_cm.lock);
	n = iv_cm.n_dev;
	for (unsigned i = 0; i < n; i++) {
		cdevs[i] = iv_cm.dev[i];
		cdevs[i]->users++;
	}
	pthread_mutex_unlock(&iv_cm.lock);
	return n;
}

void iv_cm_put_all(struct iv_cm_dev *const cdevs[], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		iv_cm_put(cdevs[i]);
}

/* ---- the end of a device ---- */

/* Nobody finds it any more; those who have it come to an end. */
static void leave_users(struct iv_cm_dev *cdev)
{
	pthread_mutex_lock(&iv_cm.lock);
	cdev->leaving = true;
	for (unsigned i = 0; i < iv_cm.n_dev; i++)
		if (iv_cm.dev[i] == cdev)
			iv_cm.dev[i] = iv_cm.dev[--iv_cm.n_dev];
	while (cdev->users > 0)
		pthread_cond_wait(&iv_cm.unused, &iv_cm.lock);
	pthread_mutex_unlock(&iv_cm.lock);
}

/* The communication manager has no ID any more, and gets none: it only tells peers goodbye. */
static void leave_core(struct iv_cm_dev *cdev)
{
	struct iv_dev *dev = cdev->dev;
	struct iv_id *id;

	iv_own(dev);
	cm_shutdown(cdev->cm, dev->ops->now(dev->port));
	if (dev->iwarp)
		iv_cm_iwarp_shutdown(cdev);
	while ((id = LIST_FIRST(&cdev->resolving))) {
		LIST_REMOVE(id, resolving);
		id->is_resolving = false;
	}
	iv_cm_flush(cdev);
	iv_disown(dev);
}

/* What the ID has of the context goes with it. iv_cm.lock is held. */
static void remove_from(struct iv_id *id)
{
	struct rdma_cm_id *base = &id->base;

	id->cdev = NULL;
	id->removed = true;
	id->conn = NULL;
	id->iwarp_link = NULL;
	base->verbs = NULL;
	base->pd = NULL;
	base->qp = NULL;
	base->srq = NULL;
	base->send_cq = base->recv_cq = NULL;
	base->send_cq_channel = base->recv_cq_channel = NULL;
	iv_cm_raise_locked(iv_cm_event_new(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0));
}

void iv_cm_leave(struct ibv_context *context)
{
	struct iv_cm_dev *cdev = iv_dev(context)->cm;
	struct iv_id *id;

	if (!cdev || cdev->context != context)
		return;
	leave_users(cdev);
	leave_core(cdev);
	pthread_mutex_lock(&iv_cm.lock);
	LIST_FOREACH(id, &iv_cm.ids, link)
	if (id->cdev == cdev)
		remove_from(id);
	cdev->context = NULL;
	cdev->pd = NULL;
	pthread_mutex_unlock(&iv_cm.lock);
}
