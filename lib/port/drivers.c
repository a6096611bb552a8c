/* SPDX-License-Identifier: BSD-3-Clause */
/* Drivers are loaded when a port wants one. The EAL by itself loads all that are installed, some
 * hundred and thirty libraries with what they need. It asks for each whether it is a file: that one
 * call of that one library is led here while it starts (hook.c), and it finds only what no program
 * can do without. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <rte_config.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/port/internal.h"

enum { FOLDER_LEN = sizeof(RTE_EAL_PMD_PATH) };

static bool held_back;

/* Is this file of the folder the library of a driver, and if one is named, of that one? */
static bool is_driver(const char *file, const char *name)
{
	static const char prefix[] = "librte_";
	const size_t skip = sizeof(prefix) - 1, len = name ? strlen(name) : 0;

	if (strncmp(file, prefix, skip) != 0 || strstr(file, ".so") == NULL)
		return false;
	return len == 0 ||
	       (strncmp(file + skip, name, len) == 0 && strncmp(file + skip + len, ".so", 3) == 0);
}

/* Pools are made of free lists of these kinds. */
static int stat_of_eal(const char *path, struct stat64 *st)
{
	const char *file = path + FOLDER_LEN;

	if (strncmp(path, RTE_EAL_PMD_PATH "/", FOLDER_LEN) == 0 && is_driver(file, NULL) &&
		!is_driver(file, "mempool_ring") && !is_driver(file, "mempool_stack")) {
		errno = ENOENT;
		return -1;
	}
	return stat64(path, st);
}

void port_drivers_hold_back(bool on)
{
	if (on)
		held_back = port_hook("librte_eal", "stat64", (void *)stat_of_eal) > 0;
	else if (held_back)
		port_hook("librte_eal", "stat64", (void *)stat64);
}

/* Of every name that it has: they lead to one file, and count as one. */
static int load(const char *name)
{
	DIR *dir = opendir(RTE_EAL_PMD_PATH);
	char path[FOLDER_LEN + NAME_MAX + 1];
	const struct dirent *entry;
	int n = 0;

	dlerror();
	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		if (!is_driver(entry->d_name, name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", RTE_EAL_PMD_PATH, entry->d_name);
		n += dlopen(path, RTLD_NOW) != NULL;
	}
	if (dir != NULL)
		closedir(dir);
	return n;
}

int port_drivers_load(const char *name, char err[PORT_ERR_LEN])
{
	if (!held_back || name == NULL)
		return 0;
	if (strcmp(name, PORT_ANY_DRIVER) == 0) {
		load(NULL);
		held_back = false; /* there are no more */
		return 0;
	}
	if (load(name) == 0) {
		const char *why = dlerror();

		return port_fail(err, ENODEV, "type: DPDK's driver %s is not installed in %s%s%s",
			name, RTE_EAL_PMD_PATH, why ? ": " : "", why ? why : "");
	}
	return 0;
}
