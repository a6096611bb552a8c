/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <rte_pause.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "lib/port/port.h"

/* After work: a while at full speed, for what comes at once; then turns that let others run, for
 * what they are about to send (a sleep that short costs 20 to 60 us of latency instead of one);
 * then sleeps that grow with the time there was nothing. By time, as turns take what the number of
 * ports, or others on the core, make of them. */
enum {
	PAUSES = 32,
	BUSY_NS = 2000,
	YIELD_NS = 200000,
	SLEEP_SHARE = 4, /* of the time since */
	MIN_SLEEP_US = 20,
	MAX_SLEEP_US = 100,
	QUIET_SLEEP_US = 1000 /* no work for QUIET_NS: waking up is what it costs */
};
static const uint64_t QUIET_NS = 1000000000;

static const char *const idle_names[] = {
	[PORT_IDLE_SPIN] = "spin",
	[PORT_IDLE_PAUSE] = "pause",
	[PORT_IDLE_SLEEP] = "sleep",
};

int port_idle_parse(const char *name)
{
	for (int i = 0; i < (int)(sizeof(idle_names) / sizeof(idle_names[0])); i++)
		if (strcmp(name, idle_names[i]) == 0)
			return i;
	return -EINVAL;
}

const char *port_idle_name(enum port_idle idle)
{
	return idle <= PORT_IDLE_SLEEP ? idle_names[idle] : "?";
}

uint64_t port_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The kernel may round every sleep up by the thread's timer slack, 50 us by default: more than the
 * sleep itself. */
static void short_sleeps(void)
{
	static __thread bool done;

	if (done)
		return;
	done = true;
	prctl(PR_SET_TIMERSLACK, 1UL);
}

static void sleep_for(const struct port_backoff *b, uint64_t ns)
{
	const struct timespec t = {
		.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
	struct pollfd wake = {.fd = b->wake_fd, .events = POLLIN};

	if (b->wake_fd > 0)
		ppoll(&wake, 1, &t, NULL);
	else
		nanosleep(&t, NULL);
}

static uint64_t without_work(const struct port_backoff *b, uint64_t now_ns)
{
	return b->worked_ns > 0 && now_ns > b->worked_ns ? now_ns - b->worked_ns : 0;
}

bool port_backoff_sleeps(const struct port_backoff *b, uint64_t now_ns)
{
	return b->idle == PORT_IDLE_SLEEP && without_work(b, now_ns) >= BUSY_NS + YIELD_NS;
}

uint32_t port_backoff_longest(const struct port_backoff *b, uint64_t now_ns)
{
	if (b->max_sleep_us)
		return b->max_sleep_us;
	return now_ns > b->worked_ns && now_ns - b->worked_ns >= QUIET_NS ? QUIET_SLEEP_US
									  : MAX_SLEEP_US;
}

static uint64_t nap_ns(const struct port_backoff *b, uint64_t now_ns, uint64_t deadline_ns)
{
	const uint64_t max = (uint64_t)port_backoff_longest(b, now_ns) * 1000;
	uint64_t ns = (without_work(b, now_ns) - BUSY_NS - YIELD_NS) / SLEEP_SHARE;

	if (ns < MIN_SLEEP_US * 1000)
		ns = MIN_SLEEP_US * 1000;
	if (ns > max)
		ns = max;
	return ns < deadline_ns - now_ns ? ns : deadline_ns - now_ns;
}

void port_backoff(struct port_backoff *b, unsigned work, uint64_t now_ns, uint64_t deadline_ns)
{
	if (work > 0 || b->worked_ns == 0)
		b->worked_ns = now_ns;
	if (work > 0 || b->idle == PORT_IDLE_SPIN || deadline_ns <= now_ns)
		return;
	if (b->idle == PORT_IDLE_PAUSE || without_work(b, now_ns) < BUSY_NS) {
		for (unsigned i = 0; i < PAUSES; i++)
			rte_pause();
	} else if (!port_backoff_sleeps(b, now_ns)) {
		sched_yield();
	} else {
		short_sleeps();
		sleep_for(b, nap_ns(b, now_ns, deadline_ns));
	}
}
