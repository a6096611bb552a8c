/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/verbs/behind.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "lib/verbs/cm_exports.h"
#include "lib/verbs/exports.h"
#include "lib/verbs/internal.h"

#define EXPORT __attribute__((visibility("default")))

static _Atomic(void *) behind[N_BEHIND];

EXPORT void inc_behind_set(enum behind_library library, void *handle)
{
	atomic_store(&behind[library], handle);
}

EXPORT void *inc_behind_ours(const char *name)
{
#define X(type, name, ...) {#name, (void *)iv_as_##name},
	static const struct {
		const char *name;
		void *function;
	} ours[] = {VERBS_EXPORTS(X) CM_EXPORTS(X)};
#undef X

	for (unsigned i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		if (strcmp(ours[i].name, name) == 0)
			return ours[i].function;
	}
	return NULL;
}

void *iv_behind(enum behind_library library, const char *name)
{
	void *handle = atomic_load(&behind[library]);

	return dlsym(handle ? handle : RTLD_NEXT, name);
}

bool iv_alone(void)
{
	return iv_env_set() && !atomic_load(&behind[BEHIND_VERBS]);
}
