/* SPDX-License-Identifier: BSD-3-Clause */
/* What can be said of a port without opening it. */
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/port/internal.h"

int port_check_directory(const char *field, const char *path, bool write, char err[PORT_ERR_LEN])
{
	const char *end = strrchr(path, '/');
	char dir[108];
	struct stat st;

	snprintf(dir, sizeof(dir), "%.*s", end ? (int)(end - path) : 1, end ? path : ".");
	if (end == path)
		snprintf(dir, sizeof(dir), "/");
	if (stat(dir, &st) != 0 || !S_ISDIR(st.st_mode)) {
		snprintf(err, PORT_ERR_LEN, "%s: there is no directory %s", field, dir);
		return -ENOENT;
	}
	if (access(dir, write ? W_OK | X_OK : X_OK) != 0) {
		snprintf(err, PORT_ERR_LEN, "%s: the directory %s cannot be %s", field, dir,
			write ? "written to" : "entered");
		return -EACCES;
	}
	return 0;
}

static int check_iface(const struct port_config *c, char err[PORT_ERR_LEN])
{
	if (if_nametoindex(c->iface) == 0) {
		snprintf(err, PORT_ERR_LEN, "iface: there is no interface %s", c->iface);
		return -ENODEV;
	}
	return port_check_interface_mtu(c, err);
}

static int check_pci(const struct port_config *c, char err[PORT_ERR_LEN])
{
	char path[128];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%.63s", c->pci);
	if (access(path, F_OK) == 0)
		return 0;
	snprintf(err, PORT_ERR_LEN, "address: there is no PCI device %s", c->pci);
	return -ENODEV;
}

int port_check(const struct port_config *c, char err[PORT_ERR_LEN])
{
	port_log_clear();
	if (c->socket[0] != '\0')
		return port_check_directory("socket", c->socket, !c->client, err);
	if (strcmp(c->type, "af_packet") == 0)
		return check_iface(c, err);
	if (c->pci[0] != '\0')
		return check_pci(c, err);
	return 0;
}
