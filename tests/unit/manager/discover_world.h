/* SPDX-License-Identifier: BSD-3-Clause */
/* A world (world.h) whose fabric no file describes: what each switch hears by LLDP and has as
 * neighbours is said here. */
#ifndef TESTS_MANAGER_DISCOVER_WORLD_H
#define TESTS_MANAGER_DISCOVER_WORLD_H

#include "lib/ctl/rpc.h"
#include "tests/unit/manager/world.h"

enum { HELLO_MS = 1500 }; /* from what is said to what the manager knows */

extern struct world dw;
extern json_t *dw_neighbours[SWITCHES];                     /* that switches tell of */
extern void (*dw_changes_hello)(unsigned i, json_t *hello); /* NULL: nobody */

int dw_setup(void **state);
int dw_teardown(void **state);
/* The manager anew, with a file that has not this (NULL: nothing else is changed). */
void dw_start_with(const char *without);

void dw_chassis_of(unsigned i, char text[SW_LLDP_TEXT]);
/* Port of switch i hears that; for good, until something else is said. */
void dw_hear(
	unsigned i, unsigned port, const char *chassis, const char *its_port, const char *system);
void dw_hear_switch(unsigned i, unsigned port, unsigned peer, unsigned of);
/* Host `name` says so at a port of a leaf; whose neighbour there has this address. */
void dw_host_at(unsigned leaf, unsigned port, const char *name, const char *ip);
void dw_silence(unsigned i);
void dw_cable_switches(void);
/* The job's rank r has address 10.1.r.j, at leaf r. */
void dw_cable_hosts(void);

/* How many links say that, of all (state NULL) or of those in this state. */
unsigned dw_links(const char *by, const char *state);
bool dw_cabled(const char *a, const char *a_port, const char *b, const char *b_port);
unsigned dw_nodes(void);
void dw_expect_conflicts(size_t n, const char *line);
void dw_start_jobs(void);

int dw_refused_tests(void);

#endif
