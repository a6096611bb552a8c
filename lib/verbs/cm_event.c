/* SPDX-License-Identifier: BSD-3-Clause */
/* Event channels of librdmacm. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/verbs/cm_exports.h"
#include "lib/verbs/cm_internal.h"

enum { LATE_S = 1 };

static struct iv_cm_channel *channel_of(const struct iv_id *id)
{
	return (struct iv_cm_channel *)id->base.channel;
}

struct rdma_event_channel *iv_create_event_channel(void)
{
	struct iv_cm_channel *channel;
	int ret = iv_cm_open();

	if (ret) {
		errno = -ret;
		return NULL;
	}
	channel = calloc(1, sizeof(*channel));
	if (!channel)
		return NULL;
	TAILQ_INIT(&channel->events);
	channel->base.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (channel->base.fd < 0) {
		free(channel);
		return NULL;
	}
	pthread_mutex_lock(&iv_cm.lock);
	LIST_INSERT_HEAD(&iv_cm.channels, channel, link);
	pthread_mutex_unlock(&iv_cm.lock);
	return &channel->base;
}

static void channel_free(struct iv_cm_channel *channel)
{
	close(channel->base.fd);
	free(channel);
}

/* rping and others destroy a channel on which another thread of theirs waits, or is about to. With
 * librdmacm that thread stays in the kernel until the process ends; here it stays in poll. */
void iv_destroy_event_channel(struct rdma_event_channel *base)
{
	struct iv_cm_channel *channel = (struct iv_cm_channel *)base;
	struct iv_cm_event *event;
	eventfd_t one;
	bool in_use;

	pthread_mutex_lock(&iv_cm.lock);
	LIST_REMOVE(channel, link);
	while ((event = TAILQ_FIRST(&channel->events))) {
		TAILQ_REMOVE(&channel->events, event, link);
		(void)!eventfd_read(base->fd, &one);
		free(event);
	}
	channel->destroyed = true;
	in_use = channel->users > 0;
	pthread_mutex_unlock(&iv_cm.lock);
	if (!in_use)
		channel_free(channel);
}

/* False: it has been destroyed. */
static bool enter(struct iv_cm_channel *channel)
{
	struct iv_cm_channel *one;

	pthread_mutex_lock(&iv_cm.lock);
	LIST_FOREACH(one, &iv_cm.channels, link)
	if (one == channel)
		break;
	if (one)
		one->users++;
	pthread_mutex_unlock(&iv_cm.lock);
	return one != NULL;
}

static void leave(struct iv_cm_channel *channel)
{
	bool last;

	pthread_mutex_lock(&iv_cm.lock);
	last = --channel->users == 0 && channel->destroyed;
	pthread_mutex_unlock(&iv_cm.lock);
	if (last)
		channel_free(channel);
}

/* ---- queueing ---- */

struct iv_cm_event *iv_cm_event_new(struct iv_id *id, enum rdma_cm_event_type type, int status)
{
	struct iv_cm_event *event = calloc(1, sizeof(*event));

	if (!event) {
		iv_debug("%s lost: no memory", "event of the connection manager");
		return NULL;
	}
	event->base.id = &id->base;
	event->base.event = type;
	event->base.status = status;
	return event;
}

/* Private data has the same place in both kinds of parameters. */
void iv_cm_event_data(struct iv_cm_event *event, const void *data, size_t len)
{
	memcpy(event->private_data, data, len);
	event->base.param.conn.private_data = event->private_data;
	event->base.param.conn.private_data_len = (uint8_t)len;
}

static void put(struct iv_cm_channel *channel, struct iv_cm_event *event)
{
	TAILQ_INSERT_TAIL(&channel->events, event, link);
	(void)!eventfd_write(channel->base.fd, 1);
}

static void take(struct iv_cm_channel *channel, struct iv_cm_event *event)
{
	eventfd_t one;

	TAILQ_REMOVE(&channel->events, event, link);
	(void)!eventfd_read(channel->base.fd, &one);
}

void iv_cm_raise_locked(struct iv_cm_event *event)
{
	if (event)
		put(channel_of(
			    iv_id(event->base.listen_id ? event->base.listen_id : event->base.id)),
			event);
}

void iv_cm_raise(struct iv_cm_event *event)
{
	pthread_mutex_lock(&iv_cm.lock);
	iv_cm_raise_locked(event);
	pthread_mutex_unlock(&iv_cm.lock);
}

void iv_cm_raise_plain(struct iv_id *id, enum rdma_cm_event_type type, int status)
{
	struct iv_cm_event *event = iv_cm_event_new(id, type, status);

	if (event)
		iv_cm_raise(event);
}

static struct iv_cm_event *find(
	struct iv_cm_channel *channel, const struct iv_id *id, bool of_listener)
{
	struct iv_cm_event *event;

	TAILQ_FOREACH(event, &channel->events, link)
	if ((of_listener ? event->base.listen_id : event->base.id) == &id->base)
		return event;
	return NULL;
}

void iv_cm_move(struct iv_id *id, struct iv_cm_channel *to)
{
	struct iv_cm_event *event;
	struct iv_cm_channel *from;

	pthread_mutex_lock(&iv_cm.lock);
	from = channel_of(id);
	id->base.channel = &to->base;
	while (from != to && ((event = find(from, id, false)) || (event = find(from, id, true)))) {
		take(from, event);
		put(to, event);
	}
	pthread_mutex_unlock(&iv_cm.lock);
}

static struct iv_cm_event *take_one(struct iv_id *id)
{
	struct iv_cm_event *event;

	pthread_mutex_lock(&iv_cm.lock);
	event = find(channel_of(id), id, true);
	if (!event)
		event = find(channel_of(id), id, false);
	if (event)
		take(channel_of(id), event);
	pthread_mutex_unlock(&iv_cm.lock);
	return event;
}

void iv_cm_forget(struct iv_id *id)
{
	struct iv_cm_event *event;

	while ((event = take_one(id))) {
		if (event->base.listen_id == &id->base) {
			/* A request that the program has not heard of: nobody else has that ID. */
			struct iv_id *requested = iv_id(event->base.id);

			iv_cm_forget(requested);
			iv_cm_drop_conn(requested);
			iv_id_free(requested);
		}
		free(event);
	}
}

/* ---- getting ---- */

static struct iv_cm_event *next_event(struct iv_cm_channel *channel)
{
	struct iv_cm_event *event;

	pthread_mutex_lock(&iv_cm.lock);
	event = TAILQ_FIRST(&channel->events);
	if (event) {
		take(channel, event);
		iv_id(event->base.id)->got++;
		if (event->base.listen_id)
			iv_id(event->base.listen_id)->got++;
	}
	pthread_mutex_unlock(&iv_cm.lock);
	return event;
}

static struct iv_cm_event *wait_event(struct iv_cm_channel *channel)
{
	for (;;) {
		struct iv_cm_event *event = next_event(channel);
		int flags;

		if (event)
			return event;
		iv_cm_progress();
		event = next_event(channel);
		if (event)
			return event;
		flags = fcntl(channel->base.fd, F_GETFL);
		if (flags >= 0 && (flags & O_NONBLOCK)) {
			errno = EAGAIN;
			return NULL;
		}
		if (iv_cm_wait(channel->base.fd))
			return NULL; /* EINTR among others: the application decides */
	}
}

static void acked(struct iv_id *id)
{
	if (++id->acked == id->got)
		pthread_cond_broadcast(&id->all_acked);
}

int iv_ack_cm_event(struct rdma_cm_event *base)
{
	if (!base)
		return iv_cm_ret(EINVAL);
	if (base->event == RDMA_CM_EVENT_MULTICAST_ERROR)
		free(((struct iv_cm_event *)base)->mc);
	pthread_mutex_lock(&iv_cm.lock);
	acked(iv_id(base->id));
	if (base->listen_id)
		acked(iv_id(base->listen_id));
	pthread_mutex_unlock(&iv_cm.lock);
	free(base);
	return 0;
}

/* What the library does before the program sees the event: as librdmacm, on the program's thread.
 */
static void process(struct iv_cm_event *event)
{
	struct rdma_cm_event *base = &event->base;
	struct iv_id *id = iv_id(base->id);
	struct rdma_event_channel *channel;
	int ret;

	switch (base->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		/* Who waits for each ID by itself needs a channel for each. */
		channel = iv_id(base->listen_id)->sync ? iv_create_event_channel() : NULL;
		if (channel) {
			iv_cm_move(id, (struct iv_cm_channel *)channel);
			id->sync = true;
		}
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		if (!base->id->qp)
			break; /* the program's: rdma_establish */
		ret = iv_cm_respond(id);
		base->event = ret ? RDMA_CM_EVENT_CONNECT_ERROR : RDMA_CM_EVENT_ESTABLISHED;
		base->status = ret;
		break;
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_UNREACHABLE:
		iv_id_to_err(id);
		break;
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		iv_mc_joined(event);
		break;
	default:
		break;
	}
}

int iv_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **out)
{
	struct iv_cm_event *event;

	if (!channel || !out)
		return iv_cm_ret(EINVAL);
	if (!enter((struct iv_cm_channel *)channel)) {
		/* A moment too late: most likely the process is about to end, and the error would
		 * only spoil its exit status. */
		sleep(LATE_S);
		return iv_cm_ret(EBADF);
	}
	event = wait_event((struct iv_cm_channel *)channel);
	if (!event) {
		const int error = errno;

		leave((struct iv_cm_channel *)channel);
		return iv_cm_ret(error);
	}
	leave((struct iv_cm_channel *)channel);
	process(event);
	*out = &event->base;
	return 0;
}

int iv_cm_complete(struct iv_id *id)
{
	struct rdma_cm_event *event;

	if (!id->sync)
		return 0;
	if (id->base.event) {
		iv_ack_cm_event(id->base.event);
		id->base.event = NULL;
	}
	while (iv_get_cm_event(id->base.channel, &event))
		if (errno != EINTR)
			return -1;
	id->base.event = event;
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return iv_cm_ret(ENODEV);
	if (event->status == 0)
		return 0;
	return iv_cm_ret(event->event == RDMA_CM_EVENT_REJECTED ? ECONNREFUSED : event->status);
}
