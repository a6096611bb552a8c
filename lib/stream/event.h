/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions by a descriptor, for programs that sleep in poll, select or epoll: an eventfd that is
 * readable when there is a completion that was not there when it was last armed. Beside the stack,
 * not in it: this makes system calls (one per time that it wakes somebody, one to arm). Who sleeps
 * does so outside of whatever lets one thread at a time at the stack. */
#ifndef STREAM_EVENT_H
#define STREAM_EVENT_H

#include "lib/stream/stream.h"

/* For a stack that is yet to be created: its notify. The descriptor, the caller's to close after
 * stream_destroy; -errno. It is armed by stream_event_arm, not before. */
int stream_event_open(struct stream_config *config);
/* After stream_poll has given all there is: the descriptor is readable from the next completion on,
 * or now if there is one already. 0, -errno. */
int stream_event_arm(struct stream *s, int fd);

#endif
