/* SPDX-License-Identifier: BSD-3-Clause */
/* The real libibverbs and librdmacm, to which calls go that are not for an incline device. With the
 * preload library they are what comes next in the process; the drop-in libraries (dropin/), which
 * bear their names, load them and say where they are. */
#ifndef VERBS_BEHIND_H
#define VERBS_BEHIND_H

#include <errno.h>
#include <stdbool.h>

enum behind_library { BEHIND_VERBS, BEHIND_CM, N_BEHIND };

/* For the drop-in libraries, the only users of the two exported functions. handle: of dlopen, or
 * NULL if there is no such library. From then on ibv_get_device_list shows that library's devices,
 * too, behind ours. Any thread, before the first call goes to that library. */
void inc_behind_set(enum behind_library library, void *handle);
/* Our function of that name (exports.h, cm_exports.h), or NULL. */
void *inc_behind_ours(const char *name);

/* Begins the definition of a function that programs call by name. Inside it is iv_as_name: the name
 * itself may be bound to somebody else's in the process. */
#define EXPORT_NAME(type, name, params)                                                 \
	__attribute__((visibility("default"), alias("iv_as_" #name))) type name params; \
	type iv_as_##name params

/* Such a function, whole: ours if `mine` holds, else the one in the library behind; without one,
 * `none` and ENOSYS. */
#define EXPORT_BEHIND(type, name, ours, params, args, mine, library, none) \
	EXPORT_NAME(type, name, params)                                    \
	{                                                                  \
		type(*real) params;                                        \
		if (mine)                                                  \
			return ours args;                                  \
		*(void **)&real = iv_behind(library, #name);               \
		if (!real) {                                               \
			errno = ENOSYS;                                    \
			return none;                                       \
		}                                                          \
		return real args;                                          \
	}

/* The function of that name in the library behind, or NULL. */
void *iv_behind(enum behind_library library, const char *name);
/* INCLINE_RNIC is set, and the incline devices are all that the program is to see. */
bool iv_alone(void);

#endif
