/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent with its sockets in a thread of its own, and raw clients. */
#ifndef SERVER_HELPER_H
#define SERVER_HELPER_H

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ctrl/agent/agent.h"
#include "tests/unit/ctl/fake_switch.h"

enum { LONG_MS = 60000 }; /* nothing takes that long unless it is broken */

struct fixture {
	char dir[64], path[96];
	struct sw *sw;
	struct agent_options limits;
	json_t *config;
	volatile sig_atomic_t stop;
	pthread_t thread;
	int rc;
};

/* A folder and a switch; started as well (impatient: with short times); and their ends. */
int setup_dir(void **state);
int setup(void **state);
int setup_impatient(void **state);
int teardown_dir(void **state);
int teardown(void **state);
void start(struct fixture *f);
void stop(struct fixture *f);
/* What the thread does: serves until f->stop. */
void *run(void *f);

/* A connection to the UNIX socket. */
int dial(const struct fixture *f);
/* Sends all of it, or as much as the server takes before it closes. */
void put(int fd, const char *text, size_t len);
void put_text(int fd, const char *text);
void put_request(int fd, int id, const char *method);
/* So many, 0 and on, in one write: one by one they may fill a socket that is not read. */
void put_requests(int fd, int n, const char *method);
/* The next line as JSON, NULL when the server has closed. */
json_t *get_line(int fd);
void expect_id(int fd, int id);
void expect_error(int fd, int code, const char *message);
void expect_closed(int fd);
/* Somebody else is served. */
void expect_alive(struct fixture *f);

#endif
