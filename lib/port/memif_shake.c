/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/port/memif_shake.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static_assert(sizeof(struct memif_msg) == MEMIF_MSG_LEN, "as on the wire");
static_assert(MEMIF_REGIONS == 16 && MEMIF_LOG2_RING_MAX == 14, "the texts say so");

const char *memif_refusal_name(enum memif_refusal why)
{
	static const char *const names[] = {"fine",
#define X(sym, name, text) name,
		MEMIF_REFUSALS(X)
#undef X
	};

	return names[why];
}

const char *memif_refusal_text(enum memif_refusal why)
{
	static const char *const texts[] = {"",
#define X(sym, name, text) text,
		MEMIF_REFUSALS(X)
#undef X
	};

	return texts[why];
}

/* The driver copies what it takes for a string. */
static bool ends(const void *text, size_t cap)
{
	return memchr(text, '\0', cap) != NULL;
}

static enum memif_refusal take_init(struct memif_shake *s, const struct memif_msg *msg)
{
	if (s->has_init)
		return MEMIF_NO_TYPE;
	if (msg->init.version != MEMIF_VERSION)
		return MEMIF_NO_VERSION;
	if (msg->init.mode != 0)
		return MEMIF_NO_MODE;
	if (!ends(msg->init.name, sizeof(msg->init.name)))
		return MEMIF_NO_NAME;
	s->init = *msg;
	s->has_init = true;
	return MEMIF_FINE;
}

/* Rings lie in region 0, where the driver reads and writes all the time. What can shrink under its
 * hands is a bus error. The further ones are buffers of a zero-copy client: DPDK's own memory,
 * which cannot be sealed. */
static enum memif_refusal take_region(
	struct memif_shake *s, const struct memif_msg *msg, const struct memif_files *files)
{
	if (msg->region.index != s->n_regions || s->n_regions == MEMIF_REGIONS || s->has_ring[0] ||
		s->has_ring[1])
		return MEMIF_NO_REGION;
	if (msg->region.size == 0 || msg->region.size > files->bytes)
		return MEMIF_NO_REGION_SIZE;
	if (s->n_regions == 0 && !files->sealed)
		return MEMIF_NO_REGION_FILE;
	s->region[s->n_regions++] = *msg;
	return MEMIF_FINE;
}

static enum memif_refusal take_ring(struct memif_shake *s, const struct memif_msg *msg)
{
	unsigned to_server = msg->ring.flags & 1;
	uint64_t end;

	if (msg->ring.index != 0 || msg->ring.flags > 1 || s->has_ring[to_server])
		return MEMIF_NO_RING;
	if (msg->ring.log2_size > MEMIF_LOG2_RING_MAX)
		return MEMIF_NO_RING_SIZE;
	end = (uint64_t)msg->ring.offset + MEMIF_RING_HEADER +
	      ((uint64_t)MEMIF_DESC_LEN << msg->ring.log2_size);
	if (msg->ring.region != 0 || s->n_regions == 0 || msg->ring.offset % MEMIF_DESC_LEN != 0 ||
		end > s->region[0].region.size)
		return MEMIF_NO_RING_PLACE;
	s->ring[to_server] = *msg;
	s->has_ring[to_server] = true;
	return MEMIF_FINE;
}

static enum memif_refusal take_connect(struct memif_shake *s, const struct memif_msg *msg)
{
	if (!s->has_ring[0] || !s->has_ring[1])
		return MEMIF_NO_INCOMPLETE;
	if (!ends(msg->connect.name, sizeof(msg->connect.name)))
		return MEMIF_NO_NAME;
	s->connect = *msg;
	s->complete = true;
	return MEMIF_FINE;
}

enum memif_refusal memif_shake_take(struct memif_shake *s, const struct memif_msg *msg, size_t len,
	const struct memif_files *files)
{
	bool with_fd = msg->type == MEMIF_ADD_REGION || msg->type == MEMIF_ADD_RING;

	if (len != sizeof(*msg))
		return MEMIF_NO_LENGTH;
	if (msg->type < MEMIF_INIT || msg->type > MEMIF_CONNECT || s->complete ||
		(msg->type != MEMIF_INIT && !s->has_init))
		return MEMIF_NO_TYPE;
	if (files->n != with_fd)
		return MEMIF_NO_FDS;
	switch ((enum memif_type)msg->type) {
	case MEMIF_INIT:
		return take_init(s, msg);
	case MEMIF_ADD_REGION:
		return take_region(s, msg, files);
	case MEMIF_ADD_RING:
		return take_ring(s, msg);
	default:
		return take_connect(s, msg);
	}
}

/* ---- the server's words ---- */

void memif_reply_ask(struct memif_reply *r, uint16_t type)
{
	r->asked = type;
}

static enum memif_refusal hear_hello(struct memif_reply *r, const struct memif_msg *msg)
{
	if (r->greeted)
		return MEMIF_NO_S_TYPE;
	if (msg->hello.min_version > MEMIF_VERSION || msg->hello.max_version < MEMIF_VERSION)
		return MEMIF_NO_S_VERSION;
	if (!ends(msg->hello.name, sizeof(msg->hello.name)))
		return MEMIF_NO_S_NAME;
	r->greeted = true;
	return MEMIF_FINE;
}

static enum memif_refusal hear_ack(struct memif_reply *r)
{
	if (r->asked != MEMIF_INIT && r->asked != MEMIF_ADD_REGION && r->asked != MEMIF_ADD_RING)
		return MEMIF_NO_S_TYPE;
	r->asked = 0;
	return MEMIF_FINE;
}

static enum memif_refusal hear_connected(struct memif_reply *r, const struct memif_msg *msg)
{
	if (r->asked != MEMIF_CONNECT)
		return MEMIF_NO_S_TYPE;
	if (!ends(msg->connect.name, sizeof(msg->connect.name)))
		return MEMIF_NO_S_NAME;
	r->asked = 0;
	return MEMIF_FINE;
}

enum memif_refusal memif_reply_take(struct memif_reply *r, const struct memif_msg *msg, size_t len,
	const struct memif_files *files)
{
	if (len != sizeof(*msg))
		return MEMIF_NO_S_LENGTH;
	if (files->n != 0)
		return MEMIF_NO_S_FDS;
	switch (msg->type) {
	case MEMIF_HELLO:
		return hear_hello(r, msg);
	case MEMIF_ACK:
		return hear_ack(r);
	case MEMIF_CONNECTED:
		return hear_connected(r, msg);
	case MEMIF_DISCONNECT:
		return ends(msg->disconnect.text, sizeof(msg->disconnect.text)) ? MEMIF_FINE
										: MEMIF_NO_S_NAME;
	default:
		return MEMIF_NO_S_TYPE;
	}
}

/* ---- what is said to a client ---- */

void memif_hello(struct memif_msg *msg)
{
	*msg = (struct memif_msg){.type = MEMIF_HELLO};
	snprintf((char *)msg->hello.name, sizeof(msg->hello.name), "incline");
	msg->hello.min_version = MEMIF_VERSION;
	msg->hello.max_version = MEMIF_VERSION;
	msg->hello.max_region = MEMIF_REGIONS - 1;
	msg->hello.max_log2_ring = MEMIF_LOG2_RING_MAX;
}

void memif_goodbye(struct memif_msg *msg, const char *text)
{
	*msg = (struct memif_msg){.type = MEMIF_DISCONNECT};
	snprintf(msg->disconnect.text, sizeof(msg->disconnect.text), "%s", text);
}
