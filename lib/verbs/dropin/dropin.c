/* SPDX-License-Identifier: BSD-3-Clause */
/* A library by the name of rdma-core's libibverbs.so.1 (or librdmacm.so.1), for programs that load
 * it with dlopen and look versioned names up in that handle. Every symbol is a stub (forward.S),
 * whose function is found when it is called first: that of libincline_verbs, which tells by the
 * object whose it is, if it has one and the version is today's; else that of the library behind. */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/verbs/behind.h"

#include SYMBOLS

#define STRING(text) #text
#define X(name, at, version) {STRING(name), STRING(version), sizeof(STRING(at)) == sizeof("@@")},
static const struct {
	const char *name, *version;
	bool is_default;
} symbols[] = {DROP_IN_SYMBOLS(X)};
#undef X

static void *behind; /* NULL: there is none */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* For stubs only. */
void *drop_in_bind(unsigned slot);

static bool is_self(void *handle)
{
	struct link_map *map;
	Dl_info self;

	return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && dladdr((void *)drop_in_bind, &self) &&
	       (void *)map->l_addr == self.dli_fbase;
}

static void load(void)
{
	const char *path = getenv(BEHIND_ENV);

	if (!path || !*path)
		path = BEHIND_PATH;
	behind = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (behind && is_self(behind)) {
		fprintf(stderr,
			"incline: %s is this library itself: " BEHIND_ENV
			" must name the one behind it\n",
			path);
		dlclose(behind);
		behind = NULL;
	}
	inc_behind_set(BEHIND_LIBRARY, behind);
}

void *drop_in_bind(unsigned slot)
{
	void *to = NULL;

	pthread_once(&once, load);
	if (symbols[slot].is_default)
		to = inc_behind_ours(symbols[slot].name);
	if (!to && behind)
		to = dlvsym(behind, symbols[slot].name, symbols[slot].version);
	if (!to) {
		/* As the dynamic linker ends a program that calls what it does not find. */
		fprintf(stderr, "incline: %s, version %s: not in the library behind (%s)\n",
			symbols[slot].name, symbols[slot].version,
			behind ? BEHIND_ENV : "there is none");
		_exit(127);
	}
	return to;
}
